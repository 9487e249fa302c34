//! Send lateness apart from what long turns of the sender's loop explain, and what those were.
//!
//! A thread above the sender takes its CPU now and then. Whatever the host takes beside that is an
//! interruption, too, so nothing here rests on a quiet machine.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use whylate_model::CpuId;
use whylate_model::flow::{Pacing, TookTurn};
use whylate_stats::Histogram;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, sched, thread};

use crate::needs;
use crate::program::{self, Beside, said, whylate};
use crate::requests::{flow, logged};

/// How long the hog has the CPU, and how often.
const BURST: u64 = 5_000_000;
const EVERY: Duration = Duration::from_millis(45);
/// An interruption of a burst is no shorter than this.
const LONG: u64 = BURST * 9 / 10;

/// Takes a CPU now and then until it is told to stop; how often it did.
fn hog(cpu: CpuId, stop: &AtomicBool) -> u64 {
    let now = || clock_ns(Clock::Monotonic);
    thread::set_name("planted-hog").unwrap();
    affinity::set(&[cpu]).unwrap();
    sched::set_fifo(50).unwrap();
    let mut bursts = 0;
    while !stop.load(Ordering::Relaxed) {
        let until = now() + BURST;
        while now() < until {
            std::hint::spin_loop();
        }
        bursts += 1;
        std::thread::sleep(EVERY);
    }
    bursts
}

/// Shares of values above, and the p99.
fn above(of: &Histogram, limit: u64) -> f64 {
    of.count_above(limit) as f64 / of.len().max(1) as f64
}

/// A run beside which a hog took the client's CPU.
struct Hogged {
    bursts: u64,
    directory: PathBuf,
    text: String,
    pacing: Pacing,
    _home: TempDir,
}

fn hogged(words: &str, client: CpuId, other: CpuId) -> Hogged {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let hog = Beside::begin(move |stop| hog(client, stop));
    let words =
        format!("rtt {words} --cpus {client} --other-cpu {other} --duration 2s --warmup 200ms");
    let mut command = whylate(words.split_whitespace());
    command.arg("-o").arg(&directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().unwrap();
    let bursts = hog.end();
    // Lines break where the words end.
    let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{words}: {text}");
    let run = program::read(&directory);
    let pacing = flow(&run).departures.pacing.clone().expect("something was intended");
    Hogged { bursts, directory, text, pacing, _home: home }
}

#[test]
#[ignore = "live figure: to accept"]
fn long_turns_that_a_hog_made_are_named_after_a_thread_and_own_system_calls_after_nothing() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    if !needs::root() || needs::tracefs().is_none() {
        return;
    }
    // A client that sleeps has no turns that tell.
    for (words, spins) in [("--rate 2kpps", true), ("--rate 2kpps --wait block", false)] {
        let Hogged { bursts, text, pacing, .. } = hogged(words, cpus[1], cpus[0]);
        let Some(named) = &pacing.named else {
            assert!(!spins, "{words}: {pacing:?}\n{text}");
            assert!(text.contains("what they were was not"), "{text}");
            continue;
        };
        eprintln!("{words}: {bursts} bursts; {pacing:?}");
        assert!(spins, "{words}: {pacing:?}");
        assert!(named.looked_at <= pacing.long_turns, "{pacing:?}");
        let (turns, took) = named.sum();
        assert_eq!(turns + named.own_or_unnamed(), named.looked_at, "{pacing:?}");
        let hog = named.by.iter().find(|of| of.what == TookTurn::Thread);
        let hog = hog.expect("a thread had the CPU");
        // Most of the hog's time fell into the measurement.
        let measured = bursts * 2 / 3;
        assert!(hog.turns >= measured, "{pacing:?} of {bursts}");
        assert!(hog.took.0 >= measured * LONG && took >= hog.took, "{pacing:?} of {bursts}");
        assert!(text.contains("are named"), "{text}");
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn what_a_hog_above_the_sender_makes_late_is_excluded_by_what_the_senders_own_loop_tells() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    if !needs::root() {
        return;
    }
    for words in ["--rate 10kpps", "--one-way --rate 50kpps", "--wait block --rate 2kpps"] {
        needs::unless_taken(&cpus[..2], STOLEN_NS, || excluded(words, (cpus[1], cpus[0])));
    }
}

/// The host and others had so much of both CPUs: what they took is in no burst of the hog.
const STOLEN_NS: f64 = 100e6;

/// Whether what is late beside the hog is what its bursts made late.
fn excluded(words: &str, (client, other): (CpuId, CpuId)) -> Result<(), String> {
    let Hogged { bursts, directory, text, pacing, _home } =
        hogged(&format!("{words} --no-trace"), client, other);
    let [all, apart] =
        ["rtt-lateness", "rtt-lateness-uninterrupted"].map(|name| logged(&directory, name));
    let p99 = |of: &Histogram| of.value_at(99.0).unwrap();
    let told = format!(
        "{words}: {bursts} bursts; {} long turns took {}; {:.2}% excluded; p99 {} of all, {} apart; \
         above {} ns: {:.4} of all, {:.6} apart",
        pacing.long_turns,
        pacing.took,
        100.0 * pacing.share().unwrap(),
        p99(&all),
        p99(&apart),
        BURST / 4,
        above(&all, BURST / 4),
        above(&apart, BURST / 4),
    );
    eprintln!("{told}");
    // All intended ones are in one of the two.
    assert_eq!(pacing.of, all.len(), "{words}");
    assert_eq!(pacing.excluded + apart.len(), all.len(), "{words}");
    assert_eq!(pacing.named, None, "there was no trace");
    assert_eq!(pacing.lateness.as_deref(), Some("rtt-lateness-uninterrupted"));
    assert!(text.contains("apart from long turns"), "{text}");
    // Most of the hog's time fell into the measurement: what it took is known by its length.
    let measured = bursts * 2 / 3;
    let seen = pacing.long_turns >= measured && pacing.took.0 >= measured * LONG;
    // One in ten requests was due in a burst, and so the p99 of all is late by most of one.
    let late = p99(&all) > BURST / 2 && above(&all, BURST / 4) > 0.04;
    let apart =
        20.0 * above(&apart, BURST / 4) < above(&all, BURST / 4) && 10 * p99(&apart) < p99(&all);
    if seen && late && apart { Ok(()) } else { Err(told) }
}
