//! Load that the tool makes arrives at the CPU that it is to disturb.

use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_load::{Program, Wanted, parse, start_by};
use whylate_model::CpuId;
use whylate_sys::affinity;

use crate::needs;
use crate::program;

/// Turns without and with load, one after the other.
const TURNS: usize = 2;
const TURN: Duration = Duration::from_millis(300);

/// A kind of load, and where the kernel counts what it brings to a CPU.
struct Kind {
    words: &'static str,
    table: &'static str,
    rows: &'static [&'static str],
}

const INTERRUPTS: Kind =
    Kind { words: "ipi:rate=20000", table: "/proc/interrupts", rows: &["TLB", "CAL"] };
const NETWORK: Kind = Kind { words: "net", table: "/proc/softirqs", rows: &["NET_RX"] };

pub(crate) const FIGURE: Figure = Figure {
    name: "load_arrives",
    method: "what a CPU counted in two turns of 300 ms with a load that is to disturb it, and in as many \
             without, one after the other",
    rows: &[
        Row {
            claim: "interrupts with load over those without",
            unit: "ratio",
            bound: Bound::AtLeast(3.0),
        },
        Row { claim: "interrupts with load", unit: "interrupts", bound: Bound::AtLeast(1_000.0) },
        Row {
            claim: "softirqs of the network with load over those without",
            unit: "ratio",
            bound: Bound::AtLeast(3.0),
        },
        Row {
            claim: "softirqs of the network with load",
            unit: "softirqs",
            bound: Bound::AtLeast(100.0),
        },
    ],
    rounds: 6,
    seconds: 2.7,
    most_taken: None,
    needs: || needs::can_use(2),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let mut readings = Vec::new();
    for kind in [INTERRUPTS, NETWORK] {
        let Some((without, with)) = rises(&kind) else {
            let why = format!("{} has no row {}", kind.table, kind.rows.join(" or "));
            readings.extend([Reading::Absent(why.clone()), Reading::Absent(why)]);
            continue;
        };
        readings.push(Reading::Value(with as f64 / without.max(1) as f64));
        readings.push(Reading::Value(with as f64));
    }
    Ok(readings)
}

/// A counter of a CPU in a table of `/proc`; none where this machine does not count that.
fn counter(kind: &Kind, cpu: CpuId) -> Option<u64> {
    let text = std::fs::read_to_string(kind.table).unwrap();
    let mut lines = text.lines();
    let cpu = format!("CPU{cpu}");
    let column = lines.next()?.split_whitespace().position(|name| name == cpu)?;
    let row = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let number = numbers.split_whitespace().nth(column)?.parse::<u64>().ok()?;
        kind.rows.contains(&name.trim()).then_some(number)
    };
    lines.filter_map(row).reduce(|sum, more| sum + more)
}

/// How much a counter rises in turns without load and in as many with it.
fn rises(kind: &Kind) -> Option<(u64, u64)> {
    let cpus = affinity::get();
    let (elsewhere, disturbed) = (cpus[0], cpus[1]);
    let tool =
        Program { exe: program::path().to_owned(), arguments: vec![Program::COMMAND.to_owned()] };
    let wanted = Wanted {
        kinds: parse(kind.words).unwrap(),
        disturbed: vec![disturbed],
        elsewhere: vec![elsewhere],
        at_most: Duration::from_secs(30),
        ..Wanted::default()
    };
    let now = || counter(kind, disturbed);
    let (mut without, mut with) = (0, 0);
    for _ in 0..TURNS {
        let before = now()?;
        std::thread::sleep(TURN);
        without += now()? - before;
        let load = start_by(&tool, &wanted).unwrap();
        let before = now()?;
        std::thread::sleep(TURN);
        with += now()? - before;
        let facts = load.stop();
        assert!(facts.iter().all(|facts| facts.amount > 0 && !facts.ended_early), "{facts:?}");
    }
    Some((without, with))
}
