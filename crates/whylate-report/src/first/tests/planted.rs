//! First screens of self-tests, of a matrix and of sums: of runs that are planted, or made of kept ones.

use whylate_model::cause::Validation;
use whylate_model::directory::RunDir;
use whylate_model::origin::Origin;
use whylate_model::run::{GapSummary, Run, SelfTest, SelfTestKind};
use whylate_model::series::{Quantile, Series};
use whylate_model::{Nanos, TicksDelta};

use super::{assert_fits, commanded, shown, style};
use crate::ReportError;
use crate::kept::kept;
use crate::merge::{Request, merge};

fn kind(kind: &str, injected: u64, found: u64, named_right: u64) -> SelfTestKind {
    SelfTestKind {
        kind: kind.to_owned(),
        injected,
        found,
        ascribed: found,
        ascribed_rightly: named_right,
        named_right,
        with_trace: true,
        length_error_ns: Some(-120.0),
        length_error_p99_ns: Some(1_830.0),
    }
}

/// The kept self-test with these kinds.
fn selftest(kinds: Vec<SelfTestKind>) -> Run {
    let mut run = kept("selftest").1;
    run.selftest = Some(SelfTest { kinds, ..SelfTest::default() });
    run.files = whylate_model::trust::Files::default();
    run.validation = Some(Validation {
        switch_as_switch: 1_190,
        switch_as_none: 7,
        none_as_switch: 3,
        none_as_none: 3_580,
        undecided: 50,
    });
    run
}

#[test]
fn a_self_test_without_an_injection_says_so_once_and_what_to_do() {
    let screen = shown(&selftest(Vec::new()), style());
    assert_fits(&screen);
    assert_eq!(screen.matches("njected").count(), 1, "{screen}");
    let trust = screen.split_once("Trust: ").unwrap().1;
    let trust = trust.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(trust.starts_with("poor. "), "{screen}");
    assert!(trust.contains(" Record it again as root, and let it end by itself."), "{screen}");
}

#[test]
fn a_self_test_says_how_many_of_how_many_were_found_and_named_right() {
    let kinds = vec![
        kind("fifo preemption", 211, 211, 211),
        kind("ipi", 503, 502, 498),
        SelfTestKind { length_error_p99_ns: None, ..kind("page fault", 499, 499, 499) },
    ];
    let screen = shown(&selftest(kinds.clone()), style());
    assert_fits(&screen);
    assert!(
        screen.contains("1,212 of 1,213 injected interruptions were found (99.9%, 95% CI "),
        "{screen}"
    );
    assert!(
        screen.contains("1,208 of 1,212 were attributed to the right cause (99.7%, 95% CI "),
        "{screen}"
    );
    let all = "502 of 503 interruptions were found, and all must be;";
    assert!(screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(all), "{screen}");
    insta::assert_snapshot!("selftest", screen);
    let mut without = kinds;
    for kind in &mut without {
        kind.with_trace = false;
    }
    without.remove(1);
    let mut run = selftest(without);
    let skipped = [("cpu hog".to_owned(), "there is one CPU.".to_owned())];
    run.selftest.as_mut().unwrap().skipped = skipped.into();
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(
        screen.contains("All 710 injected interruptions were found (95% CI 99.5–100%)."),
        "{screen}"
    );
    assert!(!screen.contains("to the right cause"), "{screen}");
    assert!(screen.contains("Not injected: cpu hog (there is one CPU)."), "{screen}");
}

#[test]
fn a_self_test_of_any_number_of_kinds_fits_and_one_of_none_judges_nothing() {
    let kinds = (0..40).map(|at| kind(&"漢".repeat(at), 10, 10, 9)).collect();
    let screen = shown(&selftest(kinds), style());
    assert_fits(&screen);
    assert!(screen.contains("more: --full"), "{screen}");
    let screen = shown(&selftest(Vec::new()), style());
    assert_fits(&screen);
    let said = "No interruption was injected, so there is nothing to judge.";
    assert_eq!(screen.lines().nth(1), Some(said), "{screen}");
    assert!(screen.contains("Trust: poor."), "{screen}");
}

/// The kept run of a busy thread as a matrix of so many CPUs, each cell a little better than the one before.
fn matrix(cpus: u32) -> Run {
    let mut run = commanded("whylate gaps --matrix --duration 1s", kept("gaps").1);
    let (gaps, series) = (run.gaps.remove(0), run.series.remove(0));
    run.causes.clear();
    run.worst.clear();
    run.coverage = None;
    let cells = ["floating", "floating-shared", "floating-fifo", "pinned", "pinned-shared"];
    let cells =
        cells.into_iter().chain(["pinned-mlock", "pinned-mlock-fifo", "pinned-mlock-fifo-moved"]);
    for (at, cell) in cells.enumerate() {
        for cpu in 0..cpus {
            let name = format!("{cell}-gap-cpu{cpu}");
            let words = cell.replace('-', " ");
            let label = if cpus == 1 { words } else { format!("{words}, CPU {cpu}") };
            let lost_share = 0.6 / 2_f64.powi(at as i32);
            run.series.push(Series { name: name.clone(), label, ..series.clone() });
            run.gaps.push(GapSummary {
                cpu: whylate_model::CpuId(cpu),
                series: name,
                lost_share,
                lost_share_interval: Some((0.8 * lost_share, 1.1 * lost_share)),
                ..gaps.clone()
            });
        }
    }
    run
}

#[test]
fn a_matrix_names_the_way_to_run_that_lost_most_and_the_one_that_lost_least() {
    let screen = shown(&matrix(1), style());
    assert_fits(&screen);
    let said = "Floating lost most (60% of its time), pinned mlock fifo moved least (0.47%).";
    assert_eq!(screen.lines().nth(1), Some(said), "{screen}");
    assert_eq!(screen.lines().nth(2), Some("Their 95% intervals do not overlap."), "{screen}");
    insta::assert_snapshot!("matrix", screen);
    for cpus in [2, 16] {
        let screen = shown(&matrix(cpus), style());
        assert_fits(&screen);
        assert!(
            screen.contains("more: --full") && screen.contains("\nfloating, CPU 0 "),
            "{screen}"
        );
    }
    let mut near = matrix(1);
    for gaps in &mut near.gaps {
        gaps.lost_share_interval = Some((0.0, 0.7));
    }
    let screen = shown(&near, style());
    assert!(screen.contains("Their 95% intervals overlap: no difference is shown."), "{screen}");
    near.gaps.truncate(1);
    let screen = shown(&near, style());
    assert!(
        screen.lines().nth(1).unwrap().starts_with("floating lost 60% of its time"),
        "{screen}"
    );
}

/// The sum of a kept run and of the same from another host.
fn sum(kind: &str) -> Run {
    summed(kind).unwrap()
}

/// The same, where `merge` takes it.
pub(super) fn summed(kind: &str) -> Result<Run, ReportError> {
    summed_with(kind, |_| {})
}

/// The same with something else in the second recording.
pub(super) fn summed_with(kind: &str, second: impl FnOnce(&mut Run)) -> Result<Run, ReportError> {
    let home = tempfile::tempdir().unwrap();
    let (kept, mut run) = kept(kind);
    let places = ["first", "second"].map(|name| home.path().join(name));
    for place in &places {
        std::fs::create_dir(place).unwrap();
        for entry in std::fs::read_dir(kept.path()).unwrap().map(|entry| entry.unwrap()) {
            std::fs::copy(entry.path(), place.join(entry.file_name())).unwrap();
        }
    }
    run.host.hostname = "another".to_owned();
    run.origins.iter_mut().for_each(|of| of.host.hostname = "another".to_owned());
    second(&mut run);
    RunDir::open(&places[1]).unwrap().write_run(&run).unwrap();
    let request = Request {
        directories: places.to_vec(),
        tables: false,
        command_line: ["whylate", "merge", "first", "second", "-o", "sum"]
            .map(str::to_owned)
            .to_vec(),
        ..Request::default()
    };
    let run = merge(&request, &home.path().join("sum"))?.run;
    // Where they lay is in the names of recordings, and in what is said of each.
    let folder = format!("{}/", home.path().display());
    Ok(serde_json::from_str(&serde_json::to_string(&run).unwrap().replace(&folder, "")).unwrap())
}

/// The same as a sum of so many, each slower than the one before: what all of them have lies in the middle, and the
/// largest values are those of the last.
fn of_many(mut run: Run, many: u64) -> Run {
    let origin = run.origins[0].clone();
    for series in &mut run.series {
        series.max = series.max.map(|max| Nanos(max.0 * many));
        series.n =
            origin.series.iter().find(|of| of.series == series.name).map_or(0, |of| of.n * many);
        for of in &mut series.quantiles {
            let middle = |of: Option<Nanos>| of.map(|of| Nanos(of.0 * (many + 1) / 2));
            (of.value, of.low, of.high) = (middle(of.value), middle(of.low), middle(of.high));
        }
    }
    for gaps in &mut run.gaps {
        let parts: f64 = (1..=many).map(|at| 1.0 / at as f64).sum();
        gaps.lost_share *= parts / many as f64;
        gaps.lost_share_interval = None;
        let each = gaps.end.since(gaps.start).0 / 2;
        gaps.end = gaps.start + TicksDelta(each * many);
    }
    let nth = |at: u64| {
        let mut origin: Origin = origin.clone();
        origin.directory = format!("run-{at}-{}", "x".repeat(60));
        for share in &mut origin.series {
            for of in &mut share.quantiles {
                of.value = of.value.or(of.low).map(|value| Nanos(value.0 * (at + 1)));
            }
            let shown = |percent: f64| {
                let of = share.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9);
                of.and_then(|of| of.value)
            };
            (share.p50, share.p99, share.p999) = (shown(50.0), shown(99.0), shown(99.9));
            share.max = share.max.map(|max| Nanos(max.0 * (at + 1)));
            share.lost_share = share.lost_share.map(|share| share / (at + 1) as f64);
        }
        origin
    };
    run.origins = (0..many).map(nth).collect();
    let names: Vec<&str> = run.origins.iter().map(|of| of.directory.as_str()).collect();
    let command = format!("whylate merge -o sum {}", names.join(" "));
    commanded(&command, run)
}

#[test]
fn a_sum_of_each_kind_has_its_answer_and_how_its_recordings_differ() {
    for kind in ["checkup", "rtt", "switch-cost"] {
        let run = sum(kind);
        let screen = shown(&run, style());
        assert_fits(&screen);
        assert!(screen.contains("ver 2 runs") && screen.contains("\nruns"), "{screen}");
        insta::assert_snapshot!(format!("sum-{kind}"), screen);
        for many in [1, 3, 30, 300] {
            let screen = shown(&of_many(run.clone(), many), style());
            assert_fits(&screen);
            let apart = screen.contains(" lies between ") || screen.contains("The runs disagree: ");
            assert_eq!(apart, many > 1, "{kind} of {many}:\n{screen}");
        }
    }
}

/// A percentile that no recording shows by itself is at least what it is in each of them.
#[test]
fn a_sum_reaches_no_less_than_each_of_its_recordings() {
    for kind in ["checkup", "rtt"] {
        let (run, mut bounds) = (sum(kind), 0);
        for of in &run.series {
            for quantile in of.quantiles.iter().filter(|of| of.value.is_none()) {
                let known = run.origins.iter().flat_map(|origin| &origin.series);
                let known = known.filter(|share| share.series == of.name).map(|share| {
                    let same = |of: &&Quantile| (of.percent - quantile.percent).abs() < 1e-9;
                    share.quantiles.iter().find(same).and_then(|of| of.low)
                });
                let least = known.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().min());
                assert!(quantile.low >= least, "{}: {quantile:?}, {least:?}", of.name);
                bounds += u64::from(least.is_some());
            }
        }
        assert!(bounds > 5, "{kind}: {bounds}");
    }
}

#[test]
fn of_many_recordings_of_requests_the_slowest_stand_first() {
    let screen = shown(&of_many(sum("rtt"), 30), style());
    let row = screen.lines().find(|line| line.starts_with("run-")).unwrap();
    assert!(row.starts_with("run-29-"), "{screen}");
    insta::assert_snapshot!("sum-rtt-30", screen);
}

#[test]
fn flows_that_were_added_up_to_one_series_have_one_row_and_their_losses_are_counted_together() {
    let mut run = sum("rtt");
    let mut other = run.flows[0].clone();
    "larger".clone_into(&mut other.name);
    (other.packets.lost, run.flows[0].packets.lost) = (500, 0);
    run.flows.push(other);
    let screen = shown(&run, style());
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("; 500 lost."), "{screen}");
    assert_eq!(screen.matches(": response time ").count(), 1, "{screen}");
}
