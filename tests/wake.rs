//! Wake-ups: counted, split and named, and under a planted stall.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::cause::Cause;
use whylate_model::run::{Run, Verdict};
use whylate_model::wake::{WakeStage, WakeSummary};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos};
use whylate_sys::{affinity, sched};

use crate::cyclictest::{self, PRIORITY};
use crate::needs;
use crate::program::{self, record_ending, said, until, whylate};

const MS: u64 = 1_000_000;

/// The CPU that is measured.
fn measured() -> Option<CpuId> {
    needs::cpus(2).map(|cpus| cpus[cpus.len() - 1])
}

fn only(run: &Run) -> &WakeSummary {
    assert_eq!(run.wakes.len(), 1);
    &run.wakes[0]
}

#[test]
fn wake_ups_and_skipped_ones_are_all_that_were_due_and_their_parts_sum_to_their_lateness() {
    let _alone = program::alone();
    let Some(cpu) = measured() else { return };
    if !needs::root() || needs::tracefs().is_none() {
        return;
    }
    let words = format!("wake --cpus {cpu} --timers HR,timerfd,epoll --period 2ms --duration 2s");
    let recorded = record_ending(&words, &[0, 4]);
    let run = &recorded.run;
    assert_eq!(run.wakes.len(), 3);
    for of in &run.wakes {
        // The first is due a period after the start, the last before the end; those that were due
        // while the last one was late are not known.
        let all = of.woken + of.skipped.unwrap();
        let unknown = 3 + of.latest[0].late.0 / (2 * MS);
        assert!((1_000 - unknown..=1_000).contains(&all), "{}: {all}", of.thread);
        let named: u64 = of.causes.iter().map(|cause| cause.wakes).sum();
        // But for those whose instant had passed before the thread began to wait.
        let enough = named <= of.woken && named * 100 >= of.woken * 98;
        assert!(enough, "{}: {named} of {} are named", of.thread, of.woken);
        let parts: f64 = of.split.iter().map(|part| part.total_ns).sum();
        let apart = (parts - of.late_ns).abs() / of.late_ns;
        assert!(apart < 0.02, "{}: parts {parts} of {}", of.thread, of.late_ns);
        for wake in &of.latest {
            let sum: u64 = wake.parts.iter().map(|part| part.length.0).sum();
            let late = wake.late.to_ticks(run.clock.hz).0;
            assert!(sum.abs_diff(late) <= 3, "{sum} of {late}");
        }
        let corrected =
            run.series.iter().find(|s| s.name == format!("wake-corrected-{}", of.thread));
        assert_eq!(corrected.unwrap().n, all);
    }
    let text = said(&recorded.output);
    assert!(text.contains("Wake-ups later than") && text.contains("SCHED_FIFO 95"), "{text}");
    assert!(text.contains("Where their lateness went") && text.contains("timer"), "{text}");
}

/// A thread above everything on one CPU that keeps it for 10 ms, now and then.
struct Stalls {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// How long each lasts.
const STALL: Nanos = Nanos(10 * MS);

impl Stalls {
    fn on(cpu: CpuId) -> Self {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (told, done) = (stop.clone(), count.clone());
        let body = move || {
            affinity::set(&[cpu]).unwrap();
            sched::set_fifo(PRIORITY + 2).unwrap();
            let mut counter = HardwareCounter::open().unwrap();
            let length = ticks_in(STALL, &mut counter);
            while !told.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(200));
                let start = counter.read();
                while counter.read().since(start).0 < length {}
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name("stall".to_owned()).spawn(body).unwrap();
        Self { stop, count, thread: Some(thread) }
    }

    fn so_far(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A length in ticks, by a look at both clocks: a stall may be a few per cent off.
fn ticks_in(length: Nanos, counter: &mut HardwareCounter) -> u64 {
    use whylate_sys::nanosleep::{Clock, clock_ns};
    let (ns, ticks) = (clock_ns(Clock::Monotonic), counter.read());
    std::thread::sleep(Duration::from_millis(20));
    let (ns, ticks) = (clock_ns(Clock::Monotonic) - ns, counter.read().since(ticks).0);
    (ticks as f64 * length.0 as f64 / ns as f64) as u64
}

#[test]
fn a_planted_stall_is_ten_late_activations_where_cyclictest_has_one() {
    let _alone = program::alone();
    let Some(cpu) = measured() else { return };
    if !needs::root() || needs::tracefs().is_none() || needs::program("cyclictest").is_none() {
        return;
    }
    let stalls = Stalls::on(cpu);
    let before = stalls.so_far();
    let recorded = record_ending(&format!("wake --cpus {cpu} --duration 3s"), &[0, 4]);
    let of = only(&recorded.run);
    let planted = stalls.so_far() - before;
    let theirs = cyclictest::samples(cpu, 1_000, 2_000);
    drop(stalls);
    // Later than 5 ms, of a stall of 10: five activations, or four and a bit; and one by cyclictest.
    let later = of.later.iter().find(|later| later.than == Nanos(5 * MS)).unwrap();
    let (raw, corrected) = (later.raw, later.corrected.unwrap());
    let missed: u64 = of.skipped.unwrap();
    let one_each = theirs.iter().filter(|late| **late > 5 * MS).count();
    println!(
        "stalls of 10 ms: wake {raw} late by more than 5 ms as measured and {corrected} corrected, \
         {missed} passed over in {} stalls; cyclictest {one_each} of {} samples",
        planted,
        theirs.len()
    );
    // Some of the planted ones lie in the preparation and in the report.
    assert!(raw >= 8 && planted >= 10, "{raw} of {planted}");
    assert!(corrected >= 4 * raw, "{corrected} of {raw}");
    assert!(missed >= 8 * raw, "{missed} of {raw}");
    // What one stall hides is gone from cyclictest: a period of 1 ms in 2 s, less the stalls.
    assert!((5..=20).contains(&one_each), "{one_each}");
    let stall = |cause: &Cause| matches!(cause, Cause::Thread { comm, .. } if comm == "stall");
    let named: u64 = of.causes.iter().filter(|of| stall(&of.cause)).map(|of| of.wakes).sum();
    assert!(named >= 6, "named after who had the CPU: {:?}", of.causes);
    let others = of.split.iter().find(|part| part.stage == WakeStage::OtherThread).unwrap();
    assert!(others.total_ns > 6.0 * 5e6, "5 ms and more each: {:?}", of.split);
}

#[test]
fn load_beside_it_is_counted_and_a_killed_generator_spoils_trust() {
    let _alone = program::alone();
    let Some(cpu) = measured() else { return };
    if !needs::root() {
        return;
    }
    let quiet = record_ending(&format!("wake --cpus {cpu} --duration 1s --load net"), &[0, 4]);
    let load = &quiet.run.loads[0];
    assert_eq!((load.load.as_str(), load.unit.as_str()), ("net", "bytes"));
    assert!(load.amount > 1_000_000 && !load.ended_early, "{load:?}");
    assert!(!matches!(quiet.run.verdict, Verdict::Pending));

    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = format!("wake --cpus {cpu} --duration 4s --load cpu:20% -o");
    let mut command = whylate(words.split_whitespace());
    command.arg(&directory);
    let mut started = program::Started::new(command);
    let pid = started.pid();
    let child = until("the generator runs", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let children = tasks.flatten().filter_map(|task| {
            std::fs::read_to_string(task.path().join("children")).ok()?.trim().parse::<i32>().ok()
        });
        children.last()
    });
    std::thread::sleep(Duration::from_millis(700));
    let killed = Command::new("kill").args(["-KILL", &child.to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(started.status(), Some(4), "not to be relied on");
    let run = program::read(&directory);
    let told =
        |warning: &Warning| matches!(warning, Warning::LoadEnded { load, .. } if load == "cpu");
    assert!(run.warnings.iter().any(told), "{:?}", run.warnings);
    assert!(run.loads[0].ended_early);
}

#[test]
fn without_the_privilege_the_priority_is_ordinary_and_the_run_says_so() {
    let _alone = program::alone();
    let Some(recorded) = program::record_without_rights("wake --duration 300ms") else { return };
    let (run, text) = (&recorded.run, said(&recorded.output));
    assert!(text.contains("CAP_SYS_NICE"), "{text}");
    assert!(run.settings["notes"].contains("CAP_SYS_NICE"), "{:?}", run.settings);
    assert!(run.threads[0].policy.starts_with("SCHED_OTHER"), "{}", run.threads[0].policy);
    let stages: BTreeMap<WakeStage, u64> =
        only(run).split.iter().map(|part| (part.stage, part.wakes)).collect();
    assert!(stages.keys().all(|stage| *stage != WakeStage::OtherThread), "{stages:?}");
}
