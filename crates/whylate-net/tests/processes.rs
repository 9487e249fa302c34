//! Reflectors in processes of their own: started, used, ended, killed, and never left behind.
//!
//! The child is this test program again, told to run the one ignored test below, which reflects on
//! its standard input as the tool's own hidden command does.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{env, fs, thread};

use whylate_clock::HardwareCounter;
use whylate_model::{CpuId, Hertz, Nanos, Pid};
use whylate_net::message::{Cookie, Header, Kind};
use whylate_net::{
    ClosedLoop, Ended, NetError, ReflectEnd, Reflector, ReflectorProcess, StdinReflector,
    reflect_stdin,
};
use whylate_port::udp::{Family, loopback_pair};
use whylate_port::{Port, Received, Setup, Wait, inherited, unix};
use whylate_suite::{absent, missing};
use whylate_sys::affinity;
use whylate_threads::Placement;

const CHILD: [&str; 4] = ["--ignored", "--exact", "--nocapture", "child_reflects_on_stdin"];
const CHILD_IS: &str = "the reflector is ";
const SECOND: Nanos = Nanos::SECOND;

#[test]
#[ignore = "run by the other tests as their child process"]
fn child_reflects_on_stdin() {
    let settings = StdinReflector {
        cpu: affinity::get().first().copied(),
        fifo: None,
        wait: Wait::Block,
        reflector: Reflector { cookie: None, idle: Nanos(60 * SECOND.0) },
    };
    match reflect_stdin(settings) {
        // Stopped when its parent has died, which one test lets happen.
        Ok((summary, _)) => {
            assert!(matches!(summary.why, ReflectEnd::ToldTo | ReflectEnd::Stopped));
        }
        Err(NetError::Port(error)) => absent(&error),
        Err(error) => panic!("{error}"),
    }
}

fn spawn(end: OwnedFd, cpu: CpuId) -> ReflectorProcess {
    let exe = env::current_exe().expect("a running program has a path");
    ReflectorProcess::spawn(&exe, CHILD, end, cpu).expect("this program can be started again")
}

fn counter() -> Option<HardwareCounter> {
    HardwareCounter::open().inspect_err(missing).ok()
}

fn exists(pid: Pid) -> bool {
    fs::exists(format!("/proc/{pid}")).expect("/proc can be looked at")
}

fn settings() -> ClosedLoop {
    ClosedLoop {
        requests: 200,
        warmup_requests: 10,
        timeout: Nanos(20 * SECOND.0),
        duration: Nanos(60 * SECOND.0),
        ..ClosedLoop::new(Hertz(1e9))
    }
}

/// Greets once and waits for the answer: greetings that are repeated would fill the queue of a
/// child that starts slowly.
fn awake(port: &mut dyn Port, cookie: Cookie) {
    let mut hello = [0; 64];
    Header { kind: Kind::Hello, cookie, sequence: 0 }.write(&mut hello);
    port.send(&hello).expect("the child lives");
    let answer = port.receive(&mut hello, Nanos(60 * SECOND.0)).expect("the child lives");
    assert!(matches!(answer, Received::Message { length: 64, .. }), "{answer:?}");
}

#[test]
fn a_round_trip_between_two_processes_accounts_for_every_request_and_the_child_ends_by_itself() {
    let Some(counter) = counter() else { return };
    let allowed = affinity::get();
    let (Some(&first), Some(&last)) = (allowed.first(), allowed.last()) else {
        panic!("a thread may run somewhere")
    };
    for (pair, client) in [(unix::pair(), first), (loopback_pair(Family::V4), last)] {
        let (here, there) = pair.expect("sockets can be made");
        let mut child = spawn(there, first);
        assert_eq!(affinity::get_of(child.pid()).expect("the child lives"), [first]);
        let setup = Setup { counter, rate: Hertz(1e9), wait: Wait::Block };
        let mut port = inherited::open(here, setup).expect("a socket of our own");
        let placement = Placement { cpu: Some(client), fifo: None };
        let settings = settings();
        awake(&mut *port, settings.cookie);
        let stop = AtomicBool::new(false);
        let placed =
            settings.run_placed(placement, &mut port, &stop, &mut |_| ()).expect("measured");
        let outcome = placed.outcome;
        assert!(matches!(outcome.why, Ended::Requests), "{:?}", outcome.why);
        assert!(outcome.adds_up());
        assert_eq!((outcome.accounting.received, outcome.service.len()), (200, 200));
        // On a busy machine the account comes too late to be waited for.
        assert!(outcome.reflector.is_none_or(|report| report.echoed == 200));
        assert_eq!(placed.seat.cpu, Some(client));
        let status = child.wait(Nanos(20 * SECOND.0)).expect("our own child");
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }
}

#[test]
fn a_dropped_child_is_killed_and_reaped() {
    let (_here, there) = unix::pair().expect("sockets can be made");
    let child = spawn(there, affinity::get()[0]);
    let pid = child.pid();
    assert!(exists(pid));
    drop(child);
    assert!(!exists(pid), "neither running nor a zombie");
}

#[test]
fn a_child_killed_in_the_middle_ends_the_run_and_loses_nothing_measured_before() {
    let Some(counter) = counter() else { return };
    let (here, there) = unix::pair().expect("sockets can be made");
    let child = spawn(there, affinity::get()[0]);
    let setup = Setup { counter, rate: Hertz(1e9), wait: Wait::Block };
    let mut port = inherited::open(here, setup).expect("a socket of our own");
    // A request that was under way times out; the next one finds nobody.
    let (requests, timeout) = (1_000_000_000, SECOND);
    let settings = ClosedLoop { requests, timeout, interval: Nanos(1), ..settings() };
    awake(&mut *port, settings.cookie);
    let (tell, told) = std::sync::mpsc::channel();
    let outcome = thread::scope(|scope| {
        let killer = scope.spawn(move || {
            told.recv().expect("requests are made");
            drop(child);
        });
        let mut watch = |_| {
            // Only the first one is waited for.
            let _ = tell.send(());
        };
        let stop = AtomicBool::new(false);
        let outcome = settings.run(&mut port, &stop, &mut watch).expect("measured");
        killer.join().expect("the child was killed");
        outcome
    });
    let Ended::Failed(error) = &outcome.why else { panic!("{:?}", outcome.why) };
    assert!(error.is_peer_gone(), "{error}");
    assert!(!outcome.service.is_empty());
    assert!(outcome.adds_up(), "{outcome:?}");
}

/// Dies without any chance to tidy up, as a killed parent does.
#[test]
#[ignore = "run by the test below as a parent that dies"]
fn parent_starts_a_reflector_and_dies() {
    let Some(counter) = counter() else { return };
    let (here, there) = unix::pair().expect("sockets can be made");
    let child = spawn(there, affinity::get()[0]);
    // Not before the child reflects, and so has learnt who its parent is.
    let setup = Setup { counter, rate: Hertz(1e9), wait: Wait::Block };
    let mut port = inherited::open(here, setup).expect("a socket of our own");
    awake(&mut *port, Cookie(1));
    println!("{CHILD_IS}{}", child.pid());
    std::process::exit(0);
}

#[test]
fn a_reflector_ends_soon_after_its_parent_has_died() {
    let exe = env::current_exe().expect("a running program has a path");
    let args = ["--ignored", "--exact", "--nocapture", "parent_starts_a_reflector_and_dies"];
    // The reflector holds its parent's standard error open: it must not be waited for.
    let output = Command::new(exe).args(args).stderr(Stdio::inherit()).output();
    let output = output.expect("this program can be started again");
    let text = String::from_utf8_lossy(&output.stdout);
    let pid = text.lines().find_map(|line| line.split_once(CHILD_IS)).map(|(_, pid)| pid.trim());
    let pid = pid.unwrap_or_else(|| panic!("no child was started: {text}"));
    // Nobody may have reaped it yet: a zombie has ended.
    let runs = || {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    // Half a minute on a machine that is busy with other things; a tenth of a second otherwise.
    let ended = (0..6_000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        !runs()
    });
    assert!(ended, "{pid} still runs");
}

#[test]
fn a_program_that_cannot_be_started_and_a_cpu_that_does_not_exist_are_named() {
    let ends = || unix::pair().expect("sockets can be made").1;
    let missing = "/nowhere/to/be/found".as_ref();
    let error = ReflectorProcess::spawn(missing, CHILD, ends(), CpuId(0)).unwrap_err();
    assert!(error.to_string().contains("/nowhere/to/be/found"), "{error}");
    let exe = env::current_exe().expect("a running program has a path");
    let error = ReflectorProcess::spawn(&exe, CHILD, ends(), CpuId(1_000)).unwrap_err();
    assert!(matches!(error, NetError::Pin { .. }), "{error}");
}
