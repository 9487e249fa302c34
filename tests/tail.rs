//! Why slow requests were slow: planted causes are named, and what was not planted is not.
//!
//! The host may stop this machine for tens of milliseconds, which is a cause by its own name; a run in
//! which it and others took more than what was planted, by what the kernel counts, is made again. A
//! cause that is claimed and was not planted is excused by the same evidence alone.

use std::process::Stdio;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::run::Run;
use whylate_model::tail::{End, Tail, TailCause, WatchedBy};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Pid};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::signal::send_to_process;
use whylate_sys::{affinity, sched, thread, thread_clock};

use crate::needs::{self, Taken, unless_taken};
use crate::pairs::say;
use crate::program::{self, said, whylate};
use crate::requests::{SIGCONT, SIGSTOP};

/// Runs without anything planted.
const QUIET_RUNS: usize = 12;
/// A handler of the kernel's takes no longer by itself: the host has stopped it.
const HANDLER: Nanos = Nanos(1_000_000);
/// Name of the thread that takes a CPU.
const HOG: &str = "planted-hog";

/// What these tests need: two CPUs, root, and the kernel's tracing.
fn place() -> Option<(CpuId, CpuId)> {
    let cpus = needs::cpus(2)?;
    let there = needs::root() && needs::tracefs().is_some();
    there.then(|| (cpus[1], cpus[0]))
}

/// A run of 3 s whose reflector and client are dealt with by `meddle` once the reflector listens.
fn meddled(words: &str, meddle: impl FnOnce(Pid)) -> (Run, String) {
    with_flows(words, &[], meddle)
}

/// The same with more flows.
fn with_flows(words: &str, flows: &[String], meddle: impl FnOnce(Pid)) -> (Run, String) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = format!("rtt --rate 2kpps --duration 2500ms --warmup 200ms {words}");
    let mut command = whylate(words.split_whitespace());
    for flow in flows {
        command.args(["--flow", flow]);
    }
    command.arg("-o").arg(&directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    meddle(program::reflector_of(child.id()));
    let output = child.wait_with_output().unwrap();
    // Lines break where the words end.
    let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
    (program::read(&directory), text)
}

fn tail(run: &Run) -> &Tail {
    run.flows[0].tail.as_ref().expect("slow requests were looked at")
}

/// The first of some runs in which `is` is claimed; none where in each the host and others took more of
/// the two CPUs than was planted.
fn claimed(
    (client, other): (CpuId, CpuId),
    planted: Nanos,
    mut run: impl FnMut() -> (Run, String),
    is: impl Fn(&TailCause) -> bool,
) -> Option<(TailCause, Tail, String)> {
    unless_taken(&[client, other], planted.0 as f64, || {
        let (run, text) = run();
        let tail = tail(&run).clone();
        let found = tail.claimed().find(|cause| is(cause)).cloned();
        match found {
            Some(cause) => Ok((cause, tail, text)),
            None => Err(format!("what was planted is not claimed: {tail:#?}\n{text}")),
        }
    })
}

fn check(cause: &TailCause, tail: &Tail) {
    let (lift, over) = (cause.lift.unwrap(), cause.over_chance.unwrap());
    eprintln!(
        "{} at {:?}: {:.3} of slow, {:.4} of ordinary, {:.4} by chance, lift {:.1} ({:.1} to {:.1}), \
         {} episodes, took {}",
        cause.cause,
        cause.end,
        cause.of_slow,
        cause.of_ordinary,
        cause.by_chance.unwrap(),
        lift.ratio,
        lift.low,
        lift.high,
        cause.episodes,
        cause.took
    );
    assert!(lift.low > tail.lift_least && over.low > tail.lift_least, "{cause:?}");
    assert!(cause.episodes >= tail.episodes_least && cause.took >= tail.strike, "{cause:?}");
    assert!(cause.of_slow > cause.of_ordinary, "{cause:?}");
}

fn now() -> u64 {
    clock_ns(Clock::Monotonic)
}

/// How often something is planted.
const TIMES: u64 = 40;
/// What a hog takes each time.
const BURST: Nanos = Nanos(4_000_000);
/// What all of them take.
const HOGGED: Nanos = Nanos(TIMES * BURST.0);

/// Takes a CPU for 4 ms, forty times.
fn hog(cpu: CpuId) {
    let burst = move || {
        thread::set_name(HOG).unwrap();
        affinity::set(&[cpu]).unwrap();
        sched::set_fifo(50).unwrap();
        for _ in 0..TIMES {
            let until = now() + BURST.0;
            while now() < until {
                std::hint::spin_loop();
            }
            std::thread::sleep(Duration::from_millis(66));
        }
    };
    std::thread::spawn(burst).join().unwrap();
}

fn is_hog(cause: &TailCause) -> bool {
    let hog = Cause::Thread { comm: HOG.to_owned(), class: PriorityClass::RealTime };
    cause.end == End::Other && cause.cause == hog
}

#[test]
#[ignore = "live figure: to accept"]
fn a_thread_that_takes_the_reflectors_cpu_is_named_whether_it_spins_or_sleeps() {
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    for (wait, by_turns) in [("spin", true), ("block", false)] {
        let words =
            format!("--cpus {client} --other-cpu {other} --slow 95 --no-dma-latency --wait {wait}");
        let run = || meddled(&words, |_| hog(other));
        let found = claimed((client, other), HOGGED, run, is_hog);
        let Some((cause, tail, text)) = found else { return };
        check(&cause, &tail);
        assert!(tail.ends.iter().all(|end| end.traced && end.interruptions > 0), "{tail:?}");
        for end in &tail.ends {
            assert_eq!(matches!(end.by, WatchedBy::Turns { .. }), by_turns, "{tail:?}");
        }
        assert!(text.contains("Why requests of rtt were slow"), "{text}");
        assert!(text.contains("Thread planted-hog (real-time) at the other end struck"), "{text}");
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn a_reflector_that_is_stopped_is_called_so_and_not_idle() {
    const STOPS: u64 = 12;
    const STOPPED: Duration = Duration::from_millis(30);
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    let stall = |reflector: Pid| {
        std::thread::sleep(Duration::from_millis(400));
        for _ in 0..STOPS {
            // It has gone where the run was shorter than this.
            let _ = send_to_process(reflector, SIGSTOP);
            std::thread::sleep(STOPPED);
            let _ = send_to_process(reflector, SIGCONT);
            std::thread::sleep(Duration::from_millis(120));
        }
    };
    let words = format!("--cpus {client} --other-cpu {other}");
    let is = |cause: &TailCause| cause.end == End::Other && cause.cause == Cause::Stopped;
    let planted = Nanos(STOPS * STOPPED.as_nanos() as u64);
    let found = claimed((client, other), planted, || meddled(&words, stall), is);
    let Some((cause, tail, _)) = found else { return };
    check(&cause, &tail);
    let idle =
        |cause: &TailCause| matches!(cause.cause, Cause::Thread { class: PriorityClass::Idle, .. });
    assert!(!tail.claimed().any(idle), "{tail:?}");
}

/// Interrupts of a storm, and their distance in nanoseconds.
const TIMERS: u64 = 900;
const APART: u64 = 5_000;

/// Has the timer of a CPU interrupt it for 4.5 ms, again and again: the next interrupt is due when the
/// last is over, or before.
fn interrupts(cpu: CpuId) {
    let storm = move || {
        thread::set_name("planted-timers").unwrap();
        affinity::set(&[cpu]).unwrap();
        sched::set_fifo(50).unwrap();
        let timer = || timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
        let timers: Vec<_> = (0..TIMERS).map(|_| timer()).collect();
        for _ in 0..TIMES {
            let first = now() + 2_000_000;
            for (at, timer) in (first..).step_by(APART as usize).zip(&timers) {
                let it_interval = Timespec::default();
                let it_value = Timespec {
                    tv_sec: (at / 1_000_000_000) as i64,
                    tv_nsec: (at % 1_000_000_000) as i64,
                };
                let once = Itimerspec { it_interval, it_value };
                timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once).unwrap();
            }
            std::thread::sleep(Duration::from_millis(66));
        }
    };
    std::thread::spawn(storm).join().unwrap();
}

#[test]
#[ignore = "live figure: to accept"]
fn interrupts_that_take_the_clients_cpu_are_named_by_their_vector() {
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    let words = format!("--cpus {client} --other-cpu {other} --slow 95");
    let is = |cause: &TailCause| {
        cause.end == End::Client && matches!(cause.cause, Cause::Interrupt { .. })
    };
    let planted = Nanos(TIMES * TIMERS * APART);
    let run = || meddled(&words, |_| interrupts(client));
    let found = claimed((client, other), planted, run, is);
    let Some((cause, tail, _)) = found else { return };
    check(&cause, &tail);
}

/// How far claims on a run in which nothing was planted are borne out by what the kernel counts.
struct Evidence {
    /// Are all of them but the host's? A thread's by the CPU time that it had. A tick, or what runs
    /// behind it, is no cause on a quiet run, unless one took so long that the host stopped it.
    others: bool,
    /// What the host is said to have taken, in nanoseconds: half of the median so often. It is there if
    /// it is there at all.
    host_ns: f64,
}

impl Evidence {
    fn of(claims: &[&TailCause], taken: &Taken) -> Self {
        let took = |of: &TailCause| of.took.0 as f64 * of.episodes as f64 / 2.0;
        let mut evidence = Self { others: true, host_ns: 0.0 };
        for of in claims {
            match &of.cause {
                Cause::Host => evidence.host_ns += took(of),
                Cause::Thread { comm, .. }
                    if !comm.starts_with("kworker") && !comm.starts_with("swapper") =>
                {
                    evidence.others &= taken.by_threads_ns(comm) >= took(of);
                }
                _ if of.took >= HANDLER => evidence.host_ns += took(of),
                _ => evidence.others = false,
            }
        }
        evidence
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn on_a_quiet_run_no_cause_is_claimed_and_whylate_itself_is_none() {
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    let words = format!("--cpus {client} --other-cpu {other}");
    let (mut evidence, mut last) = (Vec::new(), String::new());
    // The kernel counts what is stolen in hundredths of a second: over all runs together it tells.
    let stolen = Taken::now(&[client, other]);
    for _ in 0..QUIET_RUNS {
        let taken = Taken::now(&[client, other]);
        let (run, text) = meddled(&words, |_| ());
        let tail = tail(&run);
        let claims: Vec<&TailCause> = tail.claimed().collect();
        let named: Vec<String> = claims.iter().map(|of| of.cause.to_string()).collect();
        say(&format!(
            "claimed on a quiet run: {named:?}; whylate itself was in the way of {} requests; the host \
             took {:.0} ms and others {:.0} ms",
            tail.by_whylate,
            taken.by_the_host_ns() / 1e6,
            taken.by_others_ns() / 1e6
        ));
        let looked_at = tail.requests + tail.by_whylate;
        assert!(looked_at > 4_900 && looked_at + tail.left_aside >= 5_000, "{tail:?}");
        // Whatever its threads did is theirs, and no cause.
        assert!(!claims.iter().any(|of| of.cause == Cause::Whylate), "{text}");
        let its = |of: &TailCause| match &of.cause {
            Cause::Thread { comm, .. } => comm.starts_with("whylate") || comm.starts_with("client"),
            _ => false,
        };
        assert!(!tail.causes.iter().any(its), "{tail:#?}");
        let warned = |warning: &Warning| matches!(warning, Warning::OwnThreadsInTheWay { .. });
        let often = tail.by_whylate >= tail.episodes_least;
        assert_eq!(run.warnings.iter().any(warned), often, "{text}");
        // What other tests plant nobody brings by itself.
        assert!(!claims.iter().any(|of| is_hog(of) || of.cause == Cause::Stopped), "{text}");
        if claims.is_empty() {
            return;
        }
        evidence.push(Evidence::of(&claims, &taken));
        last = format!("{tail:#?}\n{text}");
    }
    let claimed: f64 = evidence.iter().map(|of| of.host_ns).sum();
    let stolen = stolen.by_the_host_ns();
    say(&format!(
        "the host is said to have taken {:.1} ms in {QUIET_RUNS} runs, and {:.0} ms were stolen",
        claimed / 1e6,
        stolen / 1e6
    ));
    let borne_out = |of: &Evidence| of.others && (of.host_ns == 0.0 || stolen >= claimed);
    let runs = evidence.iter().filter(|of| borne_out(of)).count();
    assert!(
        runs > 0,
        "in each of {QUIET_RUNS} runs something is claimed that nothing bears out: {last}"
    );
    say(&format!(
        "no run was quiet; in {runs} of them the kernel's counts bear out all that is claimed"
    ));
}

#[test]
fn a_claim_that_nothing_was_planted_for_is_excused_by_evidence_alone() {
    let mut cause = TailCause {
        end: End::Client,
        cause: Cause::Interrupt { name: "local_timer".to_owned() },
        episodes: 10,
        slow: 20,
        of_slow: 0.4,
        of_ordinary: 0.01,
        by_chance: Some(0.01),
        lift: None,
        over_chance: None,
        took: Nanos(15_000),
        claimed: true,
    };
    let taken = Taken::now(&affinity::get());
    let of = |cause: &TailCause| Evidence::of(&[cause], &taken);
    assert!(!of(&cause).others, "a tick is never the host's doing");
    // Unless it took so long that the host stopped it, as it must then have.
    cause.took = HANDLER;
    assert!(of(&cause).others && (of(&cause).host_ns - 5e6).abs() < 1.0);
    cause.cause = Cause::Host;
    assert!(of(&cause).others && (of(&cause).host_ns - 5e6).abs() < 1.0);
    // This very thread has had the CPU since, and nobody for ten hours.
    let end = thread_clock::cpu_time().0 + 20_000_000;
    while thread_clock::cpu_time().0 < end {
        std::hint::spin_loop();
    }
    let comm = std::fs::read_to_string("/proc/thread-self/comm").unwrap().trim_end().to_owned();
    cause.cause = Cause::Thread { comm, class: PriorityClass::Ordinary };
    assert!(of(&cause).others && of(&cause).host_ns == 0.0);
    cause.took = Nanos(3_600 * 1_000_000_000);
    assert!(!of(&cause).others);
}

#[test]
#[ignore = "live figure: to accept"]
fn slow_requests_of_every_flow_are_looked_at_and_each_has_its_own_cause() {
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    let words =
        format!("--cpus {client} --other-cpu {other} --slow 95 --no-dma-latency --wait block");
    let seat = format!("cpu={client} other-cpu={other} wait=block");
    let flows = [format!("second: rate=1kpps {seat}"), format!("load: rate=500pps one-way {seat}")];
    let run = || with_flows(&words, &flows, |_| hog(other));
    let found = claimed((client, other), HOGGED, run, is_hog);
    let Some((cause, tail, text)) = found else { return };
    check(&cause, &tail);
    assert!(text.contains("Why requests of rtt were slow"), "{text}");
    assert!(text.contains("Why requests of second were slow"), "{text}");
    assert!(!text.contains("Why requests of load were slow"), "{text}");
    // The second flow's other end has lost the same CPU.
    let again = claimed(
        (client, other),
        HOGGED,
        || {
            let (mut run, text) = run();
            assert!(run.flows[2].tail.is_none(), "what asks for no reply is never slow");
            run.flows.remove(0);
            (run, text)
        },
        is_hog,
    );
    let Some((cause, tail, _)) = again else { return };
    check(&cause, &tail);
    let looked_at = tail.requests + tail.by_whylate;
    assert!(looked_at > 2_000 && looked_at <= 2_500, "{tail:?}");
}

#[test]
fn without_a_trace_interruptions_have_no_name_and_the_report_says_so() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let words = format!("--cpus {} --other-cpu {} --no-trace", cpus[1], cpus[0]);
    let looked = |words: &str| {
        let words = format!("rtt --rate 2kpps --duration 500ms --warmup 200ms {words}");
        let recorded = program::record_ending(&words, &[0, 4]);
        let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
        (recorded.run.clone(), text)
    };
    let (run, text) = looked(&words);
    let tail = tail(&run);
    assert!(tail.ends.iter().all(|end| !end.traced), "{tail:?}");
    assert!(tail.causes.iter().all(|cause| cause.cause == Cause::Unknown), "{tail:?}");
    assert!(text.contains("not traced, and so not named"), "{text}");
    let asleep = format!("{words} --wait block");
    let (run, text) = looked(&asleep);
    let tail = self::tail(&run);
    assert!(tail.ends.iter().all(|end| end.by == WatchedBy::Nothing), "{tail:?}");
    assert!(text.contains("No cause is claimed: neither end was looked at"), "{text}");
}
