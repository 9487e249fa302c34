//! Causes that are planted into slow requests: each is claimed, where it was, and nothing in its place.

use std::process::Stdio;
use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::Pid;
use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::run::Run;
use whylate_model::tail::{End, Tail, TailCause};
use whylate_sys::signal::send_to_process;

use crate::hog::{self, Pace};
use crate::needed;
use crate::plant::{self, interrupts};
use crate::program::{self, ended, said, whylate};
use crate::requests::{SIGCONT, SIGSTOP};

/// A thread that takes a CPU for 4 ms, about forty times in a run.
const PACE: Pace = Pace { burst: Duration::from_millis(4), between: Duration::from_millis(66) };
/// Storms of interrupts that fill a run.
const STORMS: usize = 40;
/// How often a reflector is stopped, and how long.
const STOPS: u64 = 12;
const STOPPED: Duration = Duration::from_millis(30);

const fn claimed(claim: &'static str) -> Row {
    Row { claim, unit: "rounds", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "tail_causes",
    method: "what is claimed of slow requests beside a thread that takes the other end's CPU, stops of the \
             reflector, and interrupts of the client's CPU",
    rows: &[
        claimed("a thread is named where the other end spins"),
        claimed("a thread is named where it sleeps"),
        claimed("it is named of a second flow, too"),
        Row {
            claim: "requests of the second flow that were looked at",
            unit: "share",
            bound: Bound::AtLeast(0.8),
        },
        claimed("a stopped reflector is called so"),
        claimed("and not idle"),
        claimed("interrupts are named by their vector"),
    ],
    rounds: 3,
    seconds: 14.0,
    most_taken: Some(0.025),
    needs: || needed::traced(&[]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let seat = plant::seat();
    let beside_a_hog = |wait: &str, flows: &[String]| {
        let hog = hog::begin(seat.other, PACE);
        let words = format!("{seat} --slow 95 --no-dma-latency --wait {wait}");
        let run = recorded(&words, flows, |_| ());
        assert!(!hog.end().is_empty(), "nothing was planted");
        run
    };
    let spins = beside_a_hog("spin", &[]);
    let flow = format!("cpu={} other-cpu={} wait=block", seat.client, seat.other);
    let flows = [format!("second: rate=1kpps {flow}"), format!("load: rate=500pps one-way {flow}")];
    let sleeps = beside_a_hog("block", &flows);
    assert!(sleeps.flows[2].tail.is_none(), "what asks for no reply is never slow");
    let second = tail(&sleeps, 1);
    let stalled = recorded(&seat.to_string(), &[], stall);
    let stormed =
        recorded(&format!("{seat} --slow 95"), &[], |_| interrupts::storm(seat.client, STORMS));
    let all = sleeps.flows[1].packets.sent;
    Ok(vec![
        named(&spins, 0, is_hog),
        named(&sleeps, 0, is_hog),
        named(&sleeps, 1, is_hog),
        Reading::Share { hits: (second.requests + second.by_whylate).min(all), of: all },
        named(&stalled, 0, |of| of.end == End::Other && of.cause == Cause::Stopped),
        Reading::held(!tail(&stalled, 0).claimed().any(is_idle)),
        named(&stormed, 0, |of| {
            of.end == End::Client && matches!(of.cause, Cause::Interrupt { .. })
        }),
    ])
}

/// A run of 2.5 s whose reflector is dealt with by `meddle` once it listens.
fn recorded(words: &str, flows: &[String], meddle: impl FnOnce(Pid)) -> Run {
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
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = program::read(&directory);
    ended(output.status.code(), &run);
    run
}

/// Stops a reflector and lets it go on, again and again.
fn stall(reflector: Pid) {
    std::thread::sleep(Duration::from_millis(400));
    for _ in 0..STOPS {
        // It has gone where the run was shorter than this.
        let _ = send_to_process(reflector, SIGSTOP);
        std::thread::sleep(STOPPED);
        let _ = send_to_process(reflector, SIGCONT);
        std::thread::sleep(Duration::from_millis(120));
    }
}

fn tail(run: &Run, flow: usize) -> &Tail {
    run.flows[flow].tail.as_ref().expect("slow requests were looked at")
}

/// Such a cause is claimed, by what a claim takes.
fn named(run: &Run, flow: usize, is: impl Fn(&TailCause) -> bool) -> Reading {
    let tail = tail(run, flow);
    let found = tail.claimed().find(|cause| is(cause));
    if let Some(cause) = found {
        let (lift, over) = (cause.lift.unwrap(), cause.over_chance.unwrap());
        assert!(lift.low > tail.lift_least && over.low > tail.lift_least, "{cause:?}");
        assert!(cause.episodes >= tail.episodes_least && cause.took >= tail.strike, "{cause:?}");
        assert!(cause.of_slow > cause.of_ordinary, "{cause:?}");
    }
    Reading::held(found.is_some())
}

fn is_hog(cause: &TailCause) -> bool {
    let hog = Cause::Thread { comm: hog::NAME.to_owned(), class: PriorityClass::RealTime };
    cause.end == End::Other && cause.cause == hog
}

fn is_idle(cause: &TailCause) -> bool {
    matches!(cause.cause, Cause::Thread { class: PriorityClass::Idle, .. })
}
