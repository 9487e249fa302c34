//! Planted figures, taken as the live ones are: rounds that hang, crash, end without a word or leave somebody
//! behind. `driver.rs` runs it, with the repository and the machine in `PLANTED_ROOT`.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out")]

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use accept::command::Stock;
use accept::figure::{Bound, Figure, Reading, Round, Row, anywhere};
use rustix::process::{Signal, getpid, kill_process, setsid};

const FIGURE: Figure = Figure {
    name: "counts",
    method: "the numbers of its rounds",
    rows: &[Row { claim: "numbers", unit: "rounds", bound: Bound::AtMost(9.0) }],
    rounds: 6,
    seconds: 0.0,
    most_taken: None,
    needs: anywhere,
    round: counts,
};

fn counts(round: Round) -> Result<Vec<Reading>, String> {
    Ok(vec![Reading::Value(round.number as f64)])
}

/// Somebody who stays, in a session of its own.
fn sleeper() {
    let words = ["--fork", "sleep", "3600"];
    // It holds no pipe of whoever waits for what is said here.
    let started = Command::new("setsid").args(words).stderr(Stdio::null()).status();
    assert!(started.is_ok_and(|status| status.success()), "setsid cannot be run");
}

fn for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3_600));
    }
}

/// Ends this process by a signal, one of which may be somebody's who looks at it first.
fn by(signal: Signal) -> ! {
    loop {
        let _ = kill_process(getpid(), signal);
        std::thread::sleep(Duration::from_millis(10));
    }
}

const USUAL: [&Figure; 10] = [
    &FIGURE,
    &Figure {
        name: "hangs",
        round: |round| match round.number {
            2 => {
                let root = std::env::var_os("PLANTED_ROOT").unwrap_or_default();
                let setting = PathBuf::from(root).join("proc/sys/kernel/sched_rt_runtime_us");
                let _ = std::fs::write(setting, "-1\n");
                // As a daemon does: neither its group nor its parent leads to the round.
                sleeper();
                let _ = setsid();
                for_ever()
            }
            _ => counts(round),
        },
        ..FIGURE
    },
    &Figure {
        name: "aborts",
        round: |round| if round.number == 1 { std::process::abort() } else { counts(round) },
        ..FIGURE
    },
    &Figure { name: "faults", rounds: 1, round: |_| by(Signal::SEGV), ..FIGURE },
    &Figure { name: "is_silent", rounds: 1, round: |_| std::process::exit(0), ..FIGURE },
    &Figure { name: "divides", rounds: 1, round: |_| Ok(vec![Reading::Value(f64::NAN)]), ..FIGURE },
    &Figure {
        name: "leaves",
        rounds: 1,
        round: |round| {
            sleeper();
            counts(round)
        },
        ..FIGURE
    },
    &Figure { name: "asks", needs: || for_ever(), ..FIGURE },
    &Figure { name: "crashes_asking", needs: || std::process::abort(), ..FIGURE },
    &Figure { name: "last", ..FIGURE },
];

/// Goes on for ever with somebody beside it, unless it may end.
fn goes_on(round: Round) -> Result<Vec<Reading>, String> {
    let root = PathBuf::from(std::env::var_os("PLANTED_ROOT").unwrap_or_default());
    if round.number == 2 && !root.join("tmp/may-end").exists() {
        sleeper();
        for_ever()
    }
    counts(round)
}

const BY_NAME: [&Figure; 3] = [
    &Figure { name: "takes_long", rounds: 1, ..FIGURE },
    // No deadline ends it before it is interrupted.
    &Figure { name: "goes_on", seconds: 600.0, round: goes_on, ..FIGURE },
    &Figure { name: "is_interrupted", rounds: 1, round: |_| by(Signal::TERM), ..FIGURE },
];

fn main() -> ExitCode {
    let root = PathBuf::from(std::env::var_os("PLANTED_ROOT").unwrap_or_default());
    let least_deadline = Duration::from_secs(3);
    let machine = root.clone();
    Stock { usual: &USUAL, by_name: &BY_NAME, root, program: None, least_deadline, machine }.run()
}
