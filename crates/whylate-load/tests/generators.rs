//! Generators in processes of their own: at work, stopped, killed, out of time, and never left
//! behind.
//!
//! The child is this test program again, told to run an ignored test below, which does what the
//! tool's own hidden command does.

#![expect(clippy::unwrap_used, reason = "what a test calls is part of the test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, thread};

use whylate_host::journal::{Journal, Outcome, recover_in};
use whylate_load::{Kind, Load, LoadError, Program, Wanted, generate_stdin, parse, start_by};
use whylate_model::load::LoadFacts;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Pid};
use whylate_suite::absent as skip;
use whylate_sys::sched::Policy;
use whylate_sys::{affinity, sched, signal};

/// Longer than all that a test waits for.
const LONG: Duration = Duration::from_secs(900);
const SIGKILL: i32 = 9;
/// Where the parent that is to be killed keeps its journal and its files.
const HOME: &str = "WHYLATE_LOAD_TEST_HOME";

#[test]
#[ignore = "run by the other tests as their child process"]
fn child_generates() {
    generate_stdin().unwrap();
}

#[test]
#[ignore = "run by another test as the parent that it kills"]
fn parent_that_is_killed() {
    let home = env::var(HOME).unwrap();
    let home = Path::new(&home);
    let load = begin("disk:files=100,cpu:10%", home, LONG);
    let pids: Vec<String> = load.pids().iter().map(ToString::to_string).collect();
    println!("pids {}", pids.join(" "));
    thread::park();
}

/// One at a time: two tests' loads would take each other's CPUs.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn program() -> Program {
    let arguments = ["--ignored", "--exact", "--nocapture", "child_generates"];
    Program {
        exe: env::current_exe().unwrap(),
        arguments: arguments.map(ToOwned::to_owned).to_vec(),
    }
}

/// What is wanted with the last CPU disturbed and the others elsewhere.
fn wanted(words: &str, home: &Path, at_most: Duration) -> Wanted {
    let mut elsewhere = affinity::get();
    let disturbed = vec![elsewhere.pop().unwrap()];
    Wanted {
        kinds: parse(words).unwrap(),
        disturbed,
        elsewhere,
        at_most,
        journal: Some(Journal::open_in(&home.join("journals")).unwrap()),
        files_in: Some(home.to_owned()),
        ..Wanted::default()
    }
}

fn begin(words: &str, home: &Path, at_most: Duration) -> Load {
    start_by(&program(), &wanted(words, home, at_most)).unwrap()
}

fn two_cpus() -> bool {
    let enough = affinity::get().len() >= 2;
    if !enough {
        skip(&"this process has a single CPU");
    }
    enough
}

fn is_gone(pid: Pid) -> bool {
    whylate_sys::process::start_time(pid).is_err()
}

fn until(what: &str, mut look: impl FnMut() -> bool) {
    for _ in 0..9_000 {
        if look() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("waited for minutes in vain until {what}");
}

/// Trees of files that there are in a directory.
fn trees(home: &Path) -> usize {
    let entries = std::fs::read_dir(home).unwrap().flatten();
    entries.filter(|e| e.file_name().to_string_lossy().starts_with("whylate-load-")).count()
}

#[test]
fn each_generator_does_something_and_is_gone_when_it_was_stopped() {
    let _alone = alone();
    if !two_cpus() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let words = "net,net:udp=2000pps,disk:files=200,ipi:rate=1000,cpu:20%,mem:8MiB";
    let mut load = begin(words, home.path(), LONG);
    let pids = load.pids();
    // Two each for net and mem.
    assert_eq!(pids.len(), 9);
    assert_eq!(trees(home.path()), 1);
    let first = load.so_far();
    until("each of them has done more", || {
        assert_eq!(load.poll(), []);
        let more = |(first, now): (&LoadFacts, &LoadFacts)| {
            now.amount > first.amount && now.time > first.time
        };
        first.iter().zip(&load.so_far()).all(more)
    });
    let facts = load.stop();
    for facts in &facts {
        assert!(!facts.ended_early && facts.per_second() > Some(0.0), "{facts:?}");
    }
    let names: Vec<&str> = facts.iter().map(|facts| facts.load.as_str()).collect();
    assert_eq!(names, ["net", "net:udp", "disk", "ipi", "cpu", "mem"]);
    assert!(pids.iter().all(|pid| is_gone(*pid)), "a generator was left behind");
    assert_eq!(trees(home.path()), 0, "files were left behind");
}

#[test]
fn datagrams_sent_are_those_received_and_those_lost_and_no_more_than_the_rate_allows() {
    let _alone = alone();
    if !two_cpus() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut load = begin("net:udp=5000pps,bytes=200", home.path(), LONG);
    until("some hundred datagrams came", || load.so_far()[0].amount > 500);
    let facts = load.stop().remove(0);
    let (offered, lost) = (facts.offered.unwrap(), facts.lost.unwrap());
    assert_eq!(offered, facts.amount + lost);
    // The receiver's time begins before the first is sent.
    let allowed = 5_000.0 * facts.time.0 as f64 / 1e9;
    assert!(offered as f64 <= allowed + 100.0, "{offered} of {allowed}");
}

#[test]
fn a_killed_generator_is_a_warning_that_spoils_trust_and_the_others_go_on() {
    let _alone = alone();
    let home = tempfile::tempdir().unwrap();
    let mut load = begin("disk:files=50,cpu:10%", home.path(), LONG);
    let (walker, hog) = (load.pids()[0], load.pids()[1]);
    until("the walker has done something", || load.so_far()[0].amount > 0);
    assert_eq!(load.poll(), []);
    signal::send_to_process(walker, SIGKILL).unwrap();
    let mut warnings = Vec::new();
    until("the death is noticed", || {
        warnings.extend(load.poll());
        !warnings.is_empty()
    });
    let [warning @ Warning::LoadEnded { load: name, how }] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert_eq!(name, "disk");
    assert!(how.contains("signal: 9"), "{how}");
    assert!(warning.spoils_trust());
    assert_eq!(load.poll(), [], "it is told once");
    assert!(!is_gone(hog));
    let facts = load.stop();
    assert!(facts[0].ended_early && facts[0].amount > 0, "{:?}", facts[0]);
    assert!(!facts[1].ended_early, "{:?}", facts[1]);
}

#[test]
fn a_generator_that_nobody_tells_ends_at_its_time_limit() {
    let _alone = alone();
    if !two_cpus() {
        return;
    }
    let words = "net,net:udp,disk:files=50,ipi:rate=100,cpu:5%,mem:1MiB";
    // Where it takes so long until all of them are at work, the first have ended by then, and one that
    // had no CPU in its time has done nothing.
    let done = [1, 5, 20, 80].into_iter().any(|seconds| {
        let (limit, home) = (Duration::from_secs(seconds), tempfile::tempdir().unwrap());
        let mut load = match start_by(&program(), &wanted(words, home.path(), limit)) {
            Ok(load) => load,
            Err(LoadError::Refused { why, .. }) if why.contains("its time limit") => return false,
            Err(error) => panic!("{error}"),
        };
        let mut warnings = Vec::new();
        until("all have ended", || {
            warnings.extend(load.poll());
            warnings.len() >= 6
        });
        let limit = format!("its time limit of {}", Nanos(limit.as_nanos() as u64));
        let by_time =
            |w: &&Warning| matches!(w, Warning::LoadEnded { how, .. } if how.contains(&limit));
        assert_eq!(warnings.iter().filter(by_time).count(), 6, "{warnings:?}");
        assert_eq!(load.poll(), [], "each is told once");
        let facts = load.stop();
        assert!(facts.iter().all(|facts| facts.ended_early), "{facts:?}");
        facts.iter().all(|facts| facts.amount > 0)
    });
    assert!(done, "in none of these times each of them did something");
}

#[test]
fn children_die_with_their_parent_and_the_next_start_removes_its_files() {
    let _alone = alone();
    let home = tempfile::tempdir().unwrap();
    let mut parent = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "parent_that_is_killed"])
        .env(HOME, home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(parent.stdout.take().unwrap());
    let line = said.lines().map_while(Result::ok).find(|line| line.contains("pids "));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let line = line.expect("the parent says which children it has");
    let (_, pids) = line.split_once("pids ").unwrap();
    let pids: Vec<Pid> = pids.split(' ').map(|pid| Pid(pid.parse().unwrap())).collect();
    assert_eq!(pids.len(), 2);
    // Whoever adopts them may take its time to reap them.
    let ended = |pid: &Pid| {
        let started = whylate_sys::process::start_time(*pid);
        started.map_or(true, |started| !whylate_sys::process::alive(*pid, started))
    };
    until("the children are gone", || pids.iter().all(ended));
    assert_eq!(trees(home.path()), 1, "a killed process removes nothing");
    let recovered = recover_in(&home.path().join("journals"), &[]);
    assert_eq!(recovered.len(), 1, "{recovered:?}");
    assert_eq!(recovered[0].outcome, Outcome::Restored, "{}", recovered[0]);
    assert_eq!(trees(home.path()), 0);
}

/// Policy and CPUs of the thread that works: neither the watch nor the first thread, which is the
/// test harness of the child.
fn working(pid: Pid) -> (Policy, Vec<CpuId>) {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let tids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).map(Pid);
    let name = |tid: &Pid| std::fs::read_to_string(format!("/proc/{tid}/comm")).unwrap();
    let tid = tids.filter(|tid| *tid != pid).find(|tid| name(tid).trim() != "load/watch").unwrap();
    (sched::policy_of(tid).unwrap(), affinity::get_of(tid).unwrap())
}

#[test]
fn generators_are_ordinary_and_on_their_cpus_whoever_starts_them() {
    let _alone = alone();
    if !two_cpus() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let wanted = wanted("net,cpu:5%", home.path(), LONG);
    let started = thread::scope(|scope| {
        let by_real_time = scope.spawn(|| {
            if let Err(refusal) = sched::set_fifo(10) {
                skip(&refusal);
            }
            // Its children end with this thread: it looks at them itself.
            let load = start_by(&program(), &wanted).unwrap();
            let looks: Vec<(Policy, Vec<CpuId>)> = load.pids().into_iter().map(working).collect();
            drop(load);
            looks
        });
        by_real_time.join().unwrap()
    });
    let ordinary = Policy::Other { nice: 0 };
    assert!(started.iter().all(|(policy, _)| *policy == ordinary), "{started:?}");
    let cpus: Vec<&Vec<CpuId>> = started.iter().map(|(_, cpus)| cpus).collect();
    assert_eq!(cpus, [&wanted.elsewhere, &wanted.disturbed, &wanted.disturbed]);
}

#[test]
fn load_that_cannot_be_made_is_refused_by_name_and_leaves_nothing() {
    let _alone = alone();
    let home = tempfile::tempdir().unwrap();
    let with = |words: &str, change: &dyn Fn(&mut Wanted)| {
        let mut wanted = wanted(words, home.path(), LONG);
        change(&mut wanted);
        start_by(&program(), &wanted).unwrap_err()
    };
    for words in ["net", "ipi"] {
        let error = with(words, &|wanted| wanted.elsewhere.clear());
        assert!(matches!(&error, LoadError::NoOtherCpu { load } if load == words), "{error}");
    }
    let error = with("cpu", &|wanted| wanted.disturbed.clear());
    assert!(matches!(error, LoadError::Nothing(_)), "{error}");
    let error = with("cpu", &|wanted| wanted.at_most = Duration::ZERO);
    assert!(matches!(error, LoadError::Nothing(_)), "{error}");
    let error = with("mem", &|wanted| wanted.kinds = vec![Kind::Mem { bytes: 1 << 60 }]);
    assert!(matches!(error, LoadError::NoMemory { .. }), "{error}");
    let nowhere = CpuId(4095);
    let error = with("disk:files=50,cpu", &|wanted| wanted.disturbed = vec![nowhere]);
    assert!(matches!(&error, LoadError::Refused { why, .. } if why.contains("4095")), "{error}");
    assert_eq!(trees(home.path()), 0);
    let missing = Program { exe: "/nowhere/whylate".into(), arguments: Vec::new() };
    let error = start_by(&missing, &wanted("cpu", home.path(), LONG)).unwrap_err().to_string();
    assert!(error.contains("/nowhere/whylate"), "{error}");
}
