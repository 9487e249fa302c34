//! Reservations and real-time threads: what they promise, what they change, and that it is put back.

use std::fs;
use std::path::Path;
use std::time::Duration;

use whylate_model::Nanos;
use whylate_model::directory::RunDir;
use whylate_model::execution::{StoredJob, Verdict};
use whylate_model::segments;
use whylate_model::warning::Warning;
use whylate_sys::affinity;

use crate::needs;
use crate::program::{self, Started, said, until, whylate};
use crate::runaway::{Unthrottled, Wanting};

const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const BALANCE: &str = "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance";

/// What reservations may change on a host.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    throttling: Option<String>,
    balance: Option<String>,
    /// Those of this program: others come and go.
    cpusets: Vec<String>,
}

impl Host {
    fn now() -> Self {
        let names = |path: &str| -> Vec<String> {
            let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
            let directories = entries.flatten().filter(|entry| entry.path().is_dir());
            let names = directories.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.filter(|name| name.starts_with("whylate-")).collect()
        };
        Self {
            throttling: fs::read_to_string(THROTTLING).ok(),
            balance: fs::read_to_string(BALANCE).ok(),
            cpusets: names("/sys/fs/cgroup/cpuset"),
        }
    }
}

/// The paper's task set of 5.6 with reservations of these amounts.
fn of_the_paper(first: &str, second: &str) -> String {
    format!(
        "hourglass -d 660ms -n 2 -t 0 -w PERIODIC 3ms 8ms -rh {first} 8ms \
         -t 1 -w PERIODIC 17ms 33ms -rh {second} 33ms"
    )
}

/// Why this kernel does not take the reservations of a command line, where it does not.
pub(crate) fn refused(words: &str) -> Option<String> {
    let home = tempfile::tempdir().unwrap();
    // As short as may be: whether they are taken is known before anything is measured.
    let mut words: Vec<&str> = words.split_whitespace().collect();
    if let Some(at) = words.iter().position(|word| *word == "-d") {
        words[at + 1] = "10ms";
    }
    let output = whylate(words).arg("-o").arg(home.path().join("run")).output().unwrap();
    if output.status.code() != Some(1) {
        return None;
    }
    let text = said(&output);
    assert!(text.contains("reserv") || text.contains("cpuset"), "{text}");
    Some(text)
}

#[test]
fn reserved_threads_are_under_the_deadline_policy_count_overruns_and_all_is_put_back() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    if let Some(why) = refused(&of_the_paper("3ms", "17ms")) {
        return needs::absent(&format!("no reservations here: {why}"));
    }
    for (first, second) in [("3.1ms", "17.1ms"), ("3ms", "17ms")] {
        let words = of_the_paper(first, second);
        let before = Host::now();
        let recorded = program::recorded(&words);
        assert_eq!(Host::now(), before, "everything is put back");
        let directory = RunDir::open(&recorded.directory).unwrap();
        let jobs: Vec<StoredJob> =
            segments::read_jobs(&directory).unwrap().collect::<Result<_, _>>().unwrap();
        // SIGXCPU is counted and kills nobody: each thread ends with its last job.
        for (number, (thread, due)) in (0..).zip(recorded.run.threads.iter().zip([83, 20])) {
            assert!(thread.policy.starts_with("SCHED_DEADLINE"), "{}", thread.policy);
            assert!(thread.overruns.is_some());
            let of = thread.deadlines.as_ref().unwrap();
            // The deadline of the last job may lie behind the end.
            let judged = of.hits + of.misses;
            assert!((due - 1..=due).contains(&judged), "{of:?}");
            let hits = |job: &&StoredJob| job.thread == number && job.verdict == Verdict::Hit;
            let of_thread = jobs.iter().filter(|job| job.thread == number).count() as u64;
            assert!(
                (judged..=due).contains(&of_thread),
                "thread {number}: {of_thread} jobs, {of:?}"
            );
            assert_eq!(jobs.iter().filter(hits).count() as u64, of.hits, "thread {number}");
        }
    }
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
    program::ended(next.status.code(), &program::read(&home.path().join("next")));
    assert_eq!(Host::now(), before, "{}", said(&next));
}

#[test]
fn a_runaway_real_time_set_is_ended_where_the_kernel_leaves_nobody_else_the_cpu() {
    let _alone = program::alone();
    if !needs::root() || needs::cpus(2).is_none() {
        return;
    }
    let Some(unthrottled) = Unthrottled::lift() else {
        return needs::absent("real-time throttling cannot be lifted");
    };
    // On every CPU an ordinary thread wants all of it: the canary asks for next to nothing.
    let wanting = Wanting::on(&affinity::get());
    let words = "hourglass -d 5s -n 1 -t 0 -p RTHIGH -w CPU";
    // What it is about: a set may be ended for it.
    let recorded = program::recorded_but_for(words, &["the set was ended: "]);
    drop((wanting, unthrottled));
    let (run, thread) = (&recorded.run, &recorded.run.threads[0]);
    let starved = |warning: &Warning| matches!(warning, Warning::SetStarved { .. });
    let ran = thread.end.since(thread.start).to_nanos(run.clock.hz);
    if run.warnings.iter().any(starved) {
        assert_eq!(recorded.output.status.code(), Some(4));
        assert!(Duration::from_nanos(ran.0) < Duration::from_secs(5), "ended after {ran}");
    } else {
        // The fair server of Linux 6.12 serves ordinary threads all the same.
        assert!(thread.lost > Nanos(0), "nobody was served, and the set went on");
    }
}
