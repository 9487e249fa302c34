//! Gaps of recordings with unlike thresholds: sums and comparisons are of those above the larger one, causes
//! and longest gaps with them.

use std::path::{Path, PathBuf};

use whylate_model::Nanos;
use whylate_model::cause::{Cause, CauseTotal, WorstGap};
use whylate_model::run::Run;

use crate::directories::{Planted, merge};
use crate::program;

const FLOOR: Nanos = Nanos(30_000);
/// Above the exact bins of histograms, which know such lengths to a thousandth.
const SHORT: u64 = 25_003;

fn tick() -> Cause {
    Cause::Interrupt { name: "local_timer".to_owned() }
}

/// A recording that saw short gaps, too.
fn low(home: &Path, name: &str, rows_left_out: usize) -> PathBuf {
    let gaps = [(500, 40, tick()), (SHORT, 900, Cause::Host), (41_007, 20, Cause::Nmi)];
    let mut run =
        Planted::new("host", 0).named_gaps(1, Nanos(100), &gaps).without_rows(rows_left_out);
    let worst = example();
    for length in [700_000, SHORT] {
        run.run.worst.push(WorstGap { length: Nanos(length), ..worst.clone() });
    }
    run.write(home, name)
}

fn high(home: &Path, name: &str) -> PathBuf {
    let gaps = [(33_001, 30, Cause::Host), (90_000, 3, tick())];
    Planted::new("host", 60).named_gaps(1, FLOOR, &gaps).write(home, name)
}

fn example() -> WorstGap {
    let run = program::read(&program::file("runs/gaps"));
    run.worst.into_iter().find(|gap| gap.cpu_before.0 == 1).unwrap()
}

/// What the causes took and what was lost, and how many gaps either has.
fn sums(run: &Run, of_cpu: bool) -> [(f64, u64); 2] {
    let mine = |total: &&CauseTotal| total.cpu.is_some() == of_cpu;
    let causes: Vec<&CauseTotal> = run.causes.iter().filter(mine).collect();
    let took = causes.iter().map(|total| total.lost_ns).sum();
    let gaps = causes.iter().map(|total| total.gaps).sum();
    [(took, gaps), (run.gaps[0].lost.0 as f64, run.gaps[0].gaps)]
}

fn of(run: &Run, cause: &Cause) -> Option<(u64, f64)> {
    let mut totals = run.causes.iter().filter(|total| total.cpu.is_none());
    totals.find(|total| total.cause == *cause).map(|total| (total.gaps, total.lost_ns))
}

#[test]
fn causes_of_merged_gaps_sum_to_what_was_lost_above_the_common_threshold() {
    let home = tempfile::tempdir().unwrap();
    let both = [low(home.path(), "low", 0), high(home.path(), "high")];
    let into = home.path().join("sum");
    let output = merge(&[], &both, &into);
    assert_eq!(output.status.code(), Some(0), "{}", program::said(&output));
    let run = program::read(&into);
    let lost = 200.0 * 40_997.0 + 300.0 * 32_991.0 + 30.0 * 89_990.0;
    for of_cpu in [false, true] {
        let [(took, named), (of_gaps, gaps)] = sums(&run, of_cpu);
        assert_eq!((named, gaps), (530, 530));
        assert!(
            (took - lost).abs() < 1.0 && (of_gaps - lost).abs() < 1.0,
            "{took} {of_gaps} {lost}"
        );
    }
    // The short gaps of the host are gone, and so is the tick of the first recording.
    assert_eq!(of(&run, &Cause::Host).map(|(gaps, _)| gaps), Some(300));
    assert_eq!(of(&run, &tick()).map(|(gaps, _)| gaps), Some(30));
    let shares: f64 =
        run.causes.iter().filter(|of| of.cpu.is_none()).map(|of| of.share_of_lost).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    let coverage = run.coverage.unwrap();
    let all = coverage.by_events + coverage.by_residuals + coverage.by_nothing;
    assert!((all - 1.0).abs() < 1e-9, "{coverage:?}");
    let longest: Vec<Nanos> =
        run.origins.iter().flat_map(|origin| origin.worst.iter().map(|gap| gap.length)).collect();
    assert_eq!(longest, [Nanos(700_000)]);
    assert!(run.gaps[0].threshold_rule.contains("counted by whole stalls"));

    // A sum that is cut again has the same.
    let step = home.path().join("step");
    merge(&[], &both[..1], &step);
    let steps = home.path().join("steps");
    let output = merge(&[], &[step, both[1].clone()], &steps);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", program::said(&output));
    let again = program::read(&steps);
    assert_eq!(sums(&again, false)[1].1, 530);
    assert_eq!(of(&again, &Cause::Host).map(|(gaps, _)| gaps), Some(300));
    let [(took, _), (of_gaps, _)] = sums(&again, false);
    assert!((took - of_gaps).abs() < 1.0, "{took} {of_gaps}");
}

#[test]
fn gaps_that_no_table_has_are_of_no_known_cause_and_the_sum_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let both = [low(home.path(), "low", 50), high(home.path(), "high")];
    let into = home.path().join("sum");
    let output = merge(&[], &both, &into);
    assert_eq!(output.status.code(), Some(0), "{}", program::said(&output));
    let run = program::read(&into);
    let [(took, named), (of_gaps, gaps)] = sums(&run, false);
    assert_eq!((named, gaps), (530, 530));
    assert!((took - of_gaps).abs() < 1.0, "{took} {of_gaps}");
    assert_eq!(of(&run, &Cause::Unknown).map(|(gaps, _)| gaps), Some(50));
    assert_eq!(of(&run, &Cause::Nmi).map(|(gaps, _)| gaps), Some(150));
}

#[test]
fn causes_of_cpus_that_are_added_up_are_cut_with_their_gaps() {
    let home = tempfile::tempdir().unwrap();
    let low = [(SHORT, 900, Cause::Host), (41_007, 20, Cause::Nmi)];
    let both = Planted::new("host", 0)
        .named_gaps(0, Nanos(100), &low)
        .named_gaps(1, Nanos(200), &low)
        .write(home.path(), "low");
    let into = home.path().join("sum");
    let output = merge(&["--across-cpus"], &[both, high(home.path(), "high")], &into);
    assert_eq!(output.status.code(), Some(0), "{}", program::said(&output));
    let run = program::read(&into);
    let [(took, named), (of_gaps, gaps)] = sums(&run, false);
    assert_eq!((named, gaps), (730, 730));
    assert!((took - of_gaps).abs() < 1.0, "{took} {of_gaps}");
}
