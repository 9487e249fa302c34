//! Reservations and real-time threads: what they promise, what they change, and that it is put back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;
use whylate_model::cause::Cause;
use whylate_model::directory::RunDir;
use whylate_model::execution::{StoredJob, Verdict};
use whylate_model::run::Run;
use whylate_model::segments;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Ticks};
use whylate_sys::affinity;

use crate::needs;
use crate::program::{self, Started, said, until, whylate};

const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const BALANCE: &str = "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance";

/// What the sets with a margin reserve beyond their execution time, in nanoseconds.
const MARGIN: u64 = 100_000;

/// What reservations may change on a host.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    throttling: Option<String>,
    balance: Option<String>,
    cpusets: Vec<String>,
}

impl Host {
    fn now() -> Self {
        let names = |path: &str| -> Vec<String> {
            let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
            let directories = entries.flatten().filter(|entry| entry.path().is_dir());
            directories.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        Self {
            throttling: fs::read_to_string(THROTTLING).ok(),
            balance: fs::read_to_string(BALANCE).ok(),
            cpusets: names("/sys/fs/cgroup/cpuset"),
        }
    }
}

/// The paper's task set of 5.6 with reservations of these amounts; none where the kernel has no
/// room for it.
fn reserved(seconds: u32, first: &str, second: &str) -> Option<(TempDir, Run)> {
    let words = format!(
        "hourglass -d {seconds}s -n 2 -t 0 -w PERIODIC 3ms 8ms -rh {first} 8ms \
         -t 1 -w PERIODIC 17ms 33ms -rh {second} 33ms"
    );
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let output = whylate(words.split_whitespace()).arg("-o").arg(&directory).output().unwrap();
    if output.status.code() == Some(1) {
        let text = said(&output);
        assert!(text.contains("reserv") || text.contains("cpuset"), "{text}");
        needs::missing(&format!("no reservations here: {text}"));
        return None;
    }
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    Some((home, program::read(&directory)))
}

/// What interrupts, the host and the wake-up took from a job while it was the one to run.
fn charged(job: &StoredJob) -> u64 {
    job.waking.0 + job.interrupts.0 + job.host.0 + job.unknown.0
}

/// What was taken from the jobs of all threads that overlapped the 33 ms before a release or the
/// job itself: whoever is behind has the earlier deadline, and runs first.
fn taken_around(miss: &StoredJob, jobs: &[StoredJob], window: Ticks) -> u64 {
    let begin = miss.release.0 - window.0;
    let end = miss.done.unwrap_or(miss.deadline);
    let around = |job: &&StoredJob| {
        job.release < end && job.done.unwrap_or(job.deadline).0.max(job.deadline.0) > begin
    };
    jobs.iter().filter(around).map(charged).sum()
}

#[test]
#[ignore = "live figure: to accept"]
fn with_a_margin_each_miss_had_more_taken_by_interrupts_and_the_host_than_the_margin() {
    let _alone = program::alone();
    if !needs::root() || needs::tracefs().is_none() {
        return;
    }
    let before = Host::now();
    let Some((home, run)) = reserved(4, "3.1ms", "17.1ms") else { return };
    assert_eq!(Host::now(), before, "everything is put back");
    let directory = RunDir::open(home.path().join("run")).unwrap();
    let jobs: Vec<StoredJob> =
        segments::read_jobs(&directory).unwrap().collect::<Result<_, _>>().unwrap();
    let rate = run.clock.hz.0 / 1e9;
    let window = Ticks((33e6 * rate) as u64);
    let (mut misses, mut hits) = (0, 0);
    // Of each thread's job before: when it was done, and what the jobs until then owe.
    let mut before: BTreeMap<u16, (Option<Ticks>, u64)> = BTreeMap::new();
    for job in &jobs {
        // What is charged to it, from its wake-up on, and what kept the CPU from everybody. The kernel
        // enforces a reservation at its ticks and takes what was overdrawn off the next periods'
        // budgets: what a job had taken beyond the margin is paid back by the margins after it.
        let taken = charged(job) + job.away.0;
        let owed = before.get(&job.thread).map_or(0, |(_, owed)| *owed);
        let owing = (owed + taken).saturating_sub(MARGIN);
        let last = before.insert(job.thread, (job.done, owing));
        match job.verdict {
            Verdict::Hit => hits += 1,
            // What came of a job that never began was decided in the job before it.
            Verdict::Skipped => {}
            Verdict::Late | Verdict::Unfinished => {
                misses += 1;
                // Or the job before it was done only then, or had overdrawn what was reserved.
                let behind = last.is_some_and(|(done, owed)| {
                    done.is_none_or(|done| done > job.release) || owed > 0
                });
                // Or the other thread was held up by at least as much as this one is late.
                let done = job.done.unwrap_or(job.deadline);
                let late = (done.0.saturating_sub(job.deadline.0)) as f64 / rate;
                let passed_on = taken_around(job, &jobs, window) as f64 >= late;
                let explained = taken > MARGIN || behind || (job.done.is_some() && passed_on);
                assert!(explained, "{job:?} after {last:?}, late by {late} ns");
            }
        }
    }
    assert!(hits > 0, "{misses} misses and no hit");
    for thread in &run.threads {
        assert!(thread.policy.starts_with("SCHED_DEADLINE"), "{}", thread.policy);
        assert!(thread.overruns.is_some());
        let of = &thread.switches;
        assert_eq!(of.traced, Some(of.voluntary + of.involuntary), "thread {}", thread.name);
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn reserved_exactly_many_deadlines_are_missed_and_named_after_the_throttling() {
    let _alone = program::alone();
    if !needs::root() || needs::tracefs().is_none() {
        return;
    }
    let Some((_home, run)) = reserved(4, "3ms", "17ms") else { return };
    let misses = |index: usize| run.threads[index].deadlines.as_ref().unwrap().misses;
    assert!(misses(0) + misses(1) > 60, "{} and {}", misses(0), misses(1));
    let causes = run.threads.iter().flat_map(|t| &t.deadlines.as_ref().unwrap().causes);
    let mut named = causes.filter(|of| of.cause == Cause::Throttled);
    assert!(named.next().is_some());
    let overruns: u64 = run.threads.iter().filter_map(|thread| thread.overruns).sum();
    assert!(overruns > 0, "SIGXCPU is counted and kills nobody");
}

#[test]
fn reservations_beyond_the_cpu_are_refused_with_the_sum_and_nothing_is_left_behind() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let before = Host::now();
    let words = "hourglass -d 1s -n 2 -a -w PERIODIC 5ms 8ms -rh 6ms 8ms";
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let output = whylate(words.split(' ')).arg("-o").arg(&run).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("1.5"), "{}", said(&output));
    assert!(!run.exists());
    assert_eq!(Host::now(), before);
}

#[test]
fn what_a_killed_run_left_is_mended_by_the_next() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    if !Path::new(BALANCE).exists() {
        return needs::absent("no cpuset hierarchy of version 1");
    }
    let before = Host::now();
    let home = tempfile::tempdir().unwrap();
    let words = "hourglass -d 20s -n 1 -t 0 -w PERIODIC 1ms 10ms -rh 2ms 10ms -o";
    let mut started = Started::new({
        let mut command = whylate(words.split(' '));
        command.arg(home.path().join("killed"));
        command
    });
    until("the cpuset is made", || (Host::now() != before).then_some(()));
    started.0.kill().unwrap();
    started.0.wait().unwrap();
    assert_ne!(Host::now(), before, "it was killed too late");
    let next = whylate("hourglass -d 100ms -n 1 -o".split(' '))
        .arg(home.path().join("next"))
        .output()
        .unwrap();
    assert!(matches!(next.status.code(), Some(0 | 4)), "{}", said(&next));
    assert_eq!(Host::now(), before, "{}", said(&next));
}

/// Lifts the throttling of real-time threads until it is dropped.
struct Unthrottled(String);

impl Unthrottled {
    fn lift() -> Option<Self> {
        let former = fs::read_to_string(THROTTLING).ok()?;
        fs::write(THROTTLING, "-1").ok()?;
        Some(Self(former))
    }
}

impl Drop for Unthrottled {
    fn drop(&mut self) {
        let _ = fs::write(THROTTLING, self.0.trim());
    }
}

/// Ordinary threads, one on each of some CPUs, that want all of their CPU until this is dropped.
struct Wanting(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Wanting {
    fn on(cpus: &[CpuId]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let threads = cpus.iter().map(|cpu| {
            let (over, cpu) = (Arc::clone(&over), *cpu);
            std::thread::spawn(move || {
                affinity::set(&[cpu]).unwrap();
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        });
        let threads = threads.collect();
        Self(over, threads)
    }
}

impl Drop for Wanting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        for thread in self.1.drain(..) {
            let _ = thread.join();
        }
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn a_runaway_real_time_set_is_ended_where_the_kernel_leaves_nobody_else_the_cpu() {
    let _alone = program::alone();
    if !needs::root() || needs::cpus(2).is_none() {
        return;
    }
    let Some(_unthrottled) = Unthrottled::lift() else {
        return needs::missing("real-time throttling cannot be lifted");
    };
    let words = "hourglass -d 8s -n 1 -t 0 -p RTHIGH -w CPU";
    // On every CPU an ordinary thread wants all of it: the canary asks for next to nothing.
    let wanting = Wanting::on(&affinity::get());
    let recorded = program::record_ending(words, &[0, 4]);
    drop(wanting);
    let (run, thread) = (&recorded.run, &recorded.run.threads[0]);
    let starved = |warning: &Warning| matches!(warning, Warning::SetStarved { .. });
    let ran = thread.end.since(thread.start).to_nanos(run.clock.hz);
    if run.warnings.iter().any(starved) {
        assert!(Duration::from_nanos(ran.0) < Duration::from_secs(7), "ended after {ran}");
    } else {
        // The fair server of Linux 6.12 serves ordinary threads all the same.
        let share = thread.lost.0 as f64 / ran.0 as f64;
        assert!(share > 0.02, "nobody was served, and the set went on: {share}");
    }
}
