//! Send lateness apart from what long turns of the sender's loop explain, and what those were.
//!
//! A thread above the sender takes its CPU now and then. Whatever the host takes beside that is an
//! interruption, too, so nothing here rests on a quiet machine. How much of what it makes late is
//! excluded is a live figure.

use std::time::Duration;

use whylate_model::CpuId;
use whylate_model::flow::{Pacing, TookTurn};

use crate::hog::{self, Pace};
use crate::needs;
use crate::program::{self, Recorded, recorded, said};
use crate::requests::{flow, logged};

/// How long the hog has the CPU, and how often.
const PACE: Pace = Pace { burst: Duration::from_millis(5), between: Duration::from_millis(45) };

/// A run beside which a hog took the client's CPU.
struct Hogged {
    recorded: Recorded,
    text: String,
    pacing: Pacing,
}

fn hogged(words: &str, client: CpuId, other: CpuId) -> Hogged {
    let hog = hog::begin(client, PACE);
    let recorded = recorded(&format!(
        "rtt {words} --cpus {client} --other-cpu {other} --duration 500ms --warmup 200ms"
    ));
    assert!(!hog.end().is_empty(), "nothing was planted");
    // Lines break where the words end.
    let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
    let pacing = flow(&recorded.run).departures.pacing.clone().expect("something was intended");
    Hogged { recorded, text, pacing }
}

#[test]
fn long_turns_that_a_hog_made_are_named_after_a_thread_and_own_system_calls_after_nothing() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    if !needs::root() || needs::tracefs().is_none() || !needs::real_time() {
        return;
    }
    // A client that sleeps has no turns that tell.
    for (words, spins) in [("--rate 2kpps", true), ("--rate 2kpps --wait block", false)] {
        let Hogged { text, pacing, .. } = hogged(words, cpus[1], cpus[0]);
        let Some(named) = &pacing.named else {
            assert!(!spins, "{words}: {pacing:?}\n{text}");
            assert!(text.contains("their cause was not recorded"), "{text}");
            continue;
        };
        assert!(spins, "{words}: {pacing:?}");
        assert!(named.looked_at <= pacing.long_turns, "{pacing:?}");
        let (turns, took) = named.sum();
        assert_eq!(turns + named.own_or_unnamed(), named.looked_at, "{pacing:?}");
        let hog = named.by.iter().find(|of| of.what == TookTurn::Thread);
        let hog = hog.expect("a thread had the CPU");
        assert!(hog.turns > 0 && hog.turns <= turns && took >= hog.took, "{pacing:?}");
        assert!(text.contains("have a known cause"), "{text}");
    }
}

#[test]
fn departures_within_long_turns_and_those_without_are_all_of_them_and_have_a_series_of_their_own() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    if !needs::root() || !needs::real_time() {
        return;
    }
    for words in ["--rate 10kpps", "--one-way --rate 50kpps", "--wait block --rate 2kpps"] {
        let Hogged { recorded, text, pacing } =
            hogged(&format!("{words} --no-trace"), cpus[1], cpus[0]);
        let [all, apart] = ["rtt-lateness", "rtt-lateness-uninterrupted"]
            .map(|name| logged(&recorded.directory, name));
        assert_eq!(pacing.of, all.len(), "{words}");
        assert_eq!(pacing.excluded + apart.len(), all.len(), "{words}");
        assert!(pacing.excluded > 0 && pacing.long_turns > 0, "{words}: {pacing:?}");
        assert_eq!(pacing.named, None, "there was no trace");
        assert_eq!(pacing.lateness.as_deref(), Some("rtt-lateness-uninterrupted"));
        assert!(text.contains("with and without interruptions of the sender"), "{text}");
    }
}
