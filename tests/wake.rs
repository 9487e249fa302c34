//! Wake-ups: counted and split, and under a planted stall.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use whylate_model::directory::RunDir;
use whylate_model::run::{Run, Verdict};
use whylate_model::wake::{WakeStage, WakeSummary};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Ticks};

use crate::needs;
use crate::program::{self, recorded, said, until, whylate};
use crate::stalls::Stalls;

const MS: u64 = 1_000_000;
const SIGINT: i32 = 2;

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
    let words =
        format!("wake --cpus {cpu} --timers HR,timerfd,epoll --period 2ms --duration 300ms");
    let recorded = recorded(&words);
    let run = &recorded.run;
    assert_eq!(run.wakes.len(), 3);
    for of in &run.wakes {
        // The first is due a period after the start, the last before the end; those that were due
        // while the thread was late past its end are not known. Its first reading is as late as
        // its first wake-up at most.
        let all = of.woken + of.skipped.unwrap();
        let thread = run.threads.iter().find(|thread| thread.name == of.thread).unwrap();
        let ran = thread.end.since(thread.start).to_nanos(run.clock.hz);
        let latest = of.latest.first().map_or(0, |wake| wake.late.0);
        let unknown = 3 + (ran.0 + latest).saturating_sub(300 * MS) / (2 * MS);
        assert!((150_u64.saturating_sub(unknown)..=150).contains(&all), "{}: {all}", of.thread);
        let named: u64 = of.causes.iter().map(|cause| cause.wakes).sum();
        assert!(named <= of.woken, "{}: {named} of {} are named", of.thread, of.woken);
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
    assert!(text.contains("Wake-up latency by cause") && text.contains("timer"), "{text}");
}

/// Values of a series in the log later than a length, those in the bin of that length itself, and how many
/// periods each of them is long.
fn later_in_log(directory: &Path, series: &str, than: u64) -> (u64, u64, u64) {
    let log = RunDir::open(directory).unwrap().read_histograms().unwrap();
    let (mut later, mut beside, mut periods) = (0, 0, 0);
    for (.., values) in log.into_iter().filter(|(name, ..)| name == series) {
        for (value, count) in values.bins() {
            later += if value > than { count } else { 0 };
            beside += if value == values.bin_of(than) { count } else { 0 };
            periods += value / MS * count;
        }
    }
    (later, beside, periods)
}

#[test]
fn a_planted_stall_is_ten_late_activations_and_no_more_than_the_log_makes_up_for() {
    let _alone = program::alone();
    let Some(cpu) = measured() else { return };
    if !needs::root() || !needs::real_time() {
        return;
    }
    let stalls = Stalls::on(cpu, Duration::from_millis(60));
    let (recorded, planted) = until("stalls lie in a recording", || {
        let recorded = recorded(&format!("wake --cpus {cpu} --duration 500ms"));
        let (thread, hz) = (&recorded.run.threads[0], recorded.run.clock.hz);
        // Two periods inside the schedule, so that each activation of a stall is due in it. A thread that is
        // still late when the schedule is over does not count what it passed over last: one stall, if any.
        let edge = Nanos(2 * MS).to_ticks(hz);
        let over = thread.start + Nanos(500 * MS).to_ticks(hz);
        let end = Ticks(thread.end.min(over).0.saturating_sub(edge.0));
        let uncounted = u64::from(thread.end > over);
        let planted = stalls.between(thread.start + edge, end).saturating_sub(uncounted);
        (planted > 0).then_some((recorded, planted))
    });
    drop(stalls);
    let of = only(&recorded.run);
    let later = of.later.iter().find(|later| later.than == Nanos(MS)).unwrap();
    let (raw, corrected) = (later.raw, later.corrected.unwrap());
    let skipped = of.skipped.unwrap();
    // Ten instants lie in each stall: one was woken for late, and nine were passed over. The last of
    // them is late by less than 1 ms, the nine before it by more.
    assert!(raw + skipped >= 10 * planted, "{raw} and {skipped} of {planted}");
    assert!(corrected >= 9 * planted, "{corrected} of {planted}");
    // What is beyond is the host's and others': nothing is counted that no late wake-up makes up for.
    let (raw_log, beside, periods) = later_in_log(&recorded.directory, "wake-HR", MS);
    let (corrected_log, ..) = later_in_log(&recorded.directory, "wake-corrected-HR", MS);
    assert!(raw_log.abs_diff(raw) <= beside, "{raw_log} in the log, {raw}");
    assert!(corrected_log.abs_diff(corrected) <= raw, "{corrected_log} in the log, {corrected}");
    // What the last one passed over when the schedule had ended is counted nowhere, and lies in its lateness.
    let (thread, hz) = (&recorded.run.threads[0], recorded.run.clock.hz);
    let over = thread.start + Nanos(500 * MS).to_ticks(hz);
    let beyond = thread.end.since(over).to_nanos(hz).0.div_ceil(MS);
    assert!(
        skipped <= periods + raw && periods <= skipped + raw + beyond,
        "{skipped} passed over in {periods} periods of lateness, {beyond} of them when it was over"
    );
}

#[test]
fn load_beside_it_is_counted_and_a_killed_generator_spoils_trust() {
    let _alone = program::alone();
    let Some(cpu) = measured() else { return };
    if !needs::root() {
        return;
    }
    let quiet = recorded(&format!("wake --cpus {cpu} --duration 300ms --load net"));
    let load = &quiet.run.loads[0];
    assert_eq!((load.load.as_str(), load.unit.as_str()), ("net", "bytes"));
    assert!(load.amount > 0 && !load.ended_early, "{load:?}");
    assert!(!matches!(quiet.run.verdict, Verdict::Pending));

    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = format!("wake --cpus {cpu} --duration 60s --checkpoint 300ms --load cpu:20% -o");
    let mut command = whylate(words.split_whitespace());
    command.arg(&directory);
    let mut started = program::Started::new(command);
    let pid = started.pid();
    until("the recording goes on", || RunDir::open(&directory).ok()?.read_run().ok());
    let child = until("the generator runs", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let children = tasks.flatten().filter_map(|task| {
            std::fs::read_to_string(task.path().join("children")).ok()?.trim().parse::<i32>().ok()
        });
        children.last()
    });
    let killed = Command::new("kill").args(["-KILL", &child.to_string()]).status().unwrap();
    assert!(killed.success());
    let told =
        |warning: &Warning| matches!(warning, Warning::LoadEnded { load, .. } if load == "cpu");
    until("a checkpoint tells of it", || {
        let run = RunDir::open(&directory).ok()?.read_run().ok()?;
        run.warnings.iter().any(told).then_some(())
    });
    whylate_sys::signal::send_to_process(pid, SIGINT).unwrap();
    assert_eq!(started.status(), Some(4), "not to be relied on");
    let run = program::read(&directory);
    // The test killed it.
    program::ended_but_for(Some(4), &run, &["the load `cpu` ended early: "]);
    assert!(run.warnings.iter().any(told), "{:?}", run.warnings);
    assert!(run.loads[0].ended_early);
}

#[test]
fn without_the_privilege_the_priority_is_ordinary_and_the_run_says_so() {
    let _alone = program::alone();
    let Some(cpu) = needs::cpus(1).and_then(|cpus| cpus.last().copied()) else { return };
    let words = format!("wake --cpus {cpu} --duration 300ms");
    let Some(recorded) = program::record_without_rights(&words) else { return };
    let (run, text) = (&recorded.run, said(&recorded.output));
    assert!(text.contains("CAP_SYS_NICE"), "{text}");
    assert!(run.settings["notes"].to_string().contains("CAP_SYS_NICE"), "{:?}", run.settings);
    assert!(run.threads[0].policy.starts_with("SCHED_OTHER"), "{}", run.threads[0].policy);
    let stages: BTreeMap<WakeStage, u64> =
        only(run).split.iter().map(|part| (part.stage, part.wakes)).collect();
    assert!(stages.keys().all(|stage| *stage != WakeStage::OtherThread), "{stages:?}");
}
