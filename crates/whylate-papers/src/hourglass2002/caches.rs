//! 5.2: what a context switch costs through the caches, by working set. Figure 5.

use whylate_model::Nanos;
use whylate_model::paper::{Here, Scenario, Unit};
use whylate_model::switch_cost::IndirectRow;
use whylate_record::switch_cost::{Indirect, Request};

use super::switches::{record, request};
use crate::PaperError;
use crate::bench::Bench;
use crate::rows::{Filled, row};

/// Pairs of trials, as in the paper.
const TRIALS: u32 = 15;
/// CPU time after which a runner yields.
const QUANTUM: Nanos = Nanos(200_000);
/// Lengths of a trial, usual and quick; the paper's took 45 s.
const LENGTHS: (Nanos, Nanos) = (Nanos(400_000_000), Nanos(100_000_000));

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let length = if bench.quick() { LENGTHS.1 } else { LENGTHS.0 };
    let indirect = Indirect { sizes: None, quantum: Some(QUANTUM), trials: TRIALS, length };
    bench.go_on()?;
    let words = format!(
        "--indirect --trials {TRIALS} --trial {}ms --no-trace --seed {}",
        length.0 / 1_000_000,
        bench.seed()
    );
    scenario.notes.push(format!(
        "runners of one real-time priority yield after {QUANTUM}, and the one alone to nobody; the \
         paper left its threads to the kernel's quanta"
    ));
    let request = Request { indirect: Some(indirect), trace: false, ..request(bench) };
    let found = record(("5.2", &words), &request, bench, scenario)?;
    for of in &found.indirect {
        let mut row = row(format!("cost of a switch, working set of {}", size(of.bytes)), why(of));
        row.paper = paper(of.bytes).map(str::to_owned);
        scenario.rows.push(row.here(of.penalty.as_ref().map(|penalty| Here {
            value: penalty.mean_ns,
            unit: Unit::Nanoseconds,
            interval: Some(penalty.interval_ns),
            n: Some(u64::from(penalty.pairs)),
        })));
    }
    Ok(())
}

/// What the paper says of such a working set: its second-level cache had 256 KiB.
fn paper(bytes: u64) -> Option<&'static str> {
    (64 << 10..=128 << 10)
        .contains(&bytes)
        .then_some("333us expected for 100 KB at 300 MB/s; roughly so in Figure 5")
}

fn why(of: &IndirectRow) -> String {
    let mut said = Vec::new();
    said.extend(of.refill.map(|refill| {
        let predicted = Nanos(refill.predicted_ns.max(0.0).round() as u64);
        format!("filling the caches again should take {predicted}")
    }));
    said.extend(of.reason.clone());
    if of.discarded > 0 {
        let (discarded, tried) = (of.discarded, of.tried);
        said.push(format!("{discarded} of {tried} pairs discarded: the host took more of one"));
    }
    if said.is_empty() {
        said.push("the switch itself and filling the caches again".to_owned());
    }
    said.join("; ")
}

fn size(bytes: u64) -> String {
    match bytes {
        ..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}
