//! Why slow requests were slow: each is looked at or counted, each flow has causes of its own, and what is
//! claimed fulfils what a claim takes. That what is planted is claimed, and on a quiet run nothing, are
//! live figures.

use std::time::Duration;

use whylate_model::CpuId;
use whylate_model::cause::Cause;
use whylate_model::run::Run;
use whylate_model::tail::{End, Tail, WatchedBy};
use whylate_model::warning::Warning;

use crate::hog::{self, Pace};
use crate::needs;
use crate::program::{self, Recorded, recorded_words_as, said};

/// What the kernel calls the threads of these runs that have no name of their own: others of the program may run.
const OWN: &str = "whylate-itself";

/// A thread takes the other end's CPU for so long, now and then.
const PACE: Pace = Pace { burst: Duration::from_millis(4), between: Duration::from_millis(36) };

/// What these tests need: two CPUs, root, and the kernel's tracing.
fn place() -> Option<(CpuId, CpuId)> {
    let cpus = needs::cpus(2)?;
    let there = needs::root() && needs::tracefs().is_some();
    there.then(|| (cpus[1], cpus[0]))
}

/// A short run with more flows.
fn looked(words: &str, flows: &[String]) -> (Recorded, String) {
    let words = format!("rtt --rate 2kpps --duration 500ms --warmup 200ms {words}");
    let mut words: Vec<&str> = words.split_whitespace().collect();
    for flow in flows {
        words.extend(["--flow", flow]);
    }
    let recorded = recorded_words_as(OWN, &words);
    // Lines break where the words end.
    let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
    (recorded, text)
}

fn tail(run: &Run, flow: usize) -> &Tail {
    run.flows[flow].tail.as_ref().expect("slow requests were looked at")
}

/// Every request that was to be sent was looked at or counted, unless its record was dropped; what is
/// claimed is shown to be no chance; and what whylate's own threads did is no cause.
fn is_sound(run: &Run, flow: usize, text: &str) {
    let tail = tail(run, flow);
    let packets = &run.flows[flow].packets;
    let all = packets.sent + packets.refused + packets.never_sent;
    let told = tail.requests + tail.by_whylate + tail.left_aside;
    let dropped = |warning: &Warning| matches!(warning, Warning::RecordsDropped { .. });
    let dropped = run.warnings.iter().any(dropped);
    assert!(told == all || (dropped && told < all), "{told} of {all}: {tail:?}");
    for cause in tail.claimed() {
        let (lift, over) = (cause.lift.unwrap(), cause.over_chance.unwrap());
        assert!(lift.low > tail.lift_least && over.low > tail.lift_least, "{cause:?}");
        assert!(cause.episodes >= tail.episodes_least && cause.took >= tail.strike, "{cause:?}");
        assert!(cause.of_slow > cause.of_ordinary, "{cause:?}");
        assert!(cause.cause != Cause::Whylate, "{text}");
    }
    let its = |cause: &Cause| match cause {
        Cause::Thread { comm, .. } => comm == OWN || comm.starts_with("client"),
        _ => false,
    };
    // Threads of another run are called alike.
    let other = |warning: &Warning| matches!(warning, Warning::AnotherRun { .. });
    let alone = !run.warnings.iter().any(other);
    assert!(!alone || !tail.causes.iter().any(|of| its(&of.cause)), "{tail:#?}");
}

#[test]
fn threads_of_whylate_are_no_cause_and_those_in_the_way_of_many_requests_are_warned_of() {
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    let (recorded, text) = looked(&format!("--cpus {client} --other-cpu {other}"), &[]);
    is_sound(&recorded.run, 0, &text);
    let tail = tail(&recorded.run, 0);
    let warned = |warning: &Warning| matches!(warning, Warning::OwnThreadsInTheWay { .. });
    let often = tail.by_whylate >= tail.episodes_least;
    assert_eq!(recorded.run.warnings.iter().any(warned), often, "{text}");
    // Nobody stops a thread by itself.
    assert!(!tail.claimed().any(|of| of.cause == Cause::Stopped), "{text}");
}

#[test]
fn slow_requests_of_every_flow_are_looked_at_as_its_ends_wait_and_each_has_its_own_causes() {
    let _alone = program::alone();
    let Some((client, other)) = place().filter(|_| needs::real_time()) else { return };
    for (wait, by_turns) in [("spin", true), ("block", false)] {
        let words =
            format!("--cpus {client} --other-cpu {other} --slow 95 --no-dma-latency --wait {wait}");
        let seat = format!("cpu={client} other-cpu={other} wait=block");
        let flows =
            [format!("second: rate=1kpps {seat}"), format!("load: rate=500pps one-way {seat}")];
        let hog = hog::begin(other, PACE);
        let (recorded, text) = looked(&words, &flows);
        assert!(!hog.end().is_empty(), "nothing was planted");
        let run = &recorded.run;
        for flow in [0, 1] {
            is_sound(run, flow, &text);
            let ends = &tail(run, flow).ends;
            assert!(ends.iter().all(|end| end.traced), "{ends:?}");
            // The hog takes the CPU of one end; whether anybody took that of the client is the machine's.
            let planted = ends.iter().find(|end| end.end == End::Other);
            assert!(planted.is_some_and(|end| end.interruptions > 0), "{ends:?}");
            for end in ends {
                let turns = matches!(end.by, WatchedBy::Turns { .. });
                assert_eq!(turns, by_turns && flow == 0, "{ends:?}");
            }
        }
        assert!(text.contains("Why requests of rtt were slow"), "{text}");
        assert!(text.contains("Why requests of second were slow"), "{text}");
        // What asks for no reply is never slow.
        assert!(run.flows[2].tail.is_none());
        assert!(!text.contains("Why requests of load were slow"), "{text}");
    }
}

#[test]
fn without_a_trace_interruptions_have_no_name_and_the_report_says_so() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let words = format!("--cpus {} --other-cpu {} --no-trace", cpus[1], cpus[0]);
    let (recorded, text) = looked(&words, &[]);
    let of = tail(&recorded.run, 0);
    assert!(of.ends.iter().all(|end| !end.traced), "{of:?}");
    assert!(of.causes.iter().all(|cause| cause.cause == Cause::Unknown), "{of:?}");
    assert!(text.contains("not traced, and so not named"), "{text}");
    let (recorded, text) = looked(&format!("{words} --wait block"), &[]);
    let of = tail(&recorded.run, 0);
    assert!(of.ends.iter().all(|end| end.by == WatchedBy::Nothing), "{of:?}");
    assert!(text.contains("No cause is claimed: neither end was looked at"), "{text}");
}
