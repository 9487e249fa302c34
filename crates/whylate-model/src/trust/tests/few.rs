//! Samples that are too small: jobs for a share of missed deadlines, runs for a mean, messages for the rows of a
//! check-up, and rounds for the time in a box.

use super::*;
use crate::device::Device;
use crate::series::Series;

/// The kept set, whose thread `video` missed some of its deadlines, with another interval of their share.
fn missed(hits: u64, misses: u64, interval: Option<(f64, f64)>) -> Run {
    let mut run = clean(include_str!("../../../../../tests/runs/threads/run.json"));
    let of = run.threads[1].deadlines.as_mut().unwrap();
    (of.hits, of.misses, of.miss_share_interval) = (hits, misses, interval);
    run
}

#[test]
fn few_jobs_limit_trust_in_the_share_of_missed_deadlines_from_ten_points_to_each_side_on() {
    let limited = |what: &str| vec![(Level::Limited, what.to_owned())];
    assert_eq!(
        said(&missed(120, 31, Some((0.10, 0.35)))),
        limited("151 jobs of thread video give its miss rate only to +-12 points")
    );
    assert_eq!(
        said(&missed(5, 8, Some((0.316, 0.861)))),
        limited("13 jobs of thread video give its miss rate only to +-27 points")
    );
    for enough in
        [missed(5, 8, Some((0.4, 0.6))), missed(13, 0, Some((0.0, 0.25))), missed(5, 8, None)]
    {
        assert_eq!(said(&enough), []);
    }
    // Of several threads the one that is known least.
    let mut run = missed(5, 8, Some((0.316, 0.861)));
    let other = run.threads[1].clone();
    run.threads.push(other);
    let of = run.threads.last_mut().unwrap();
    of.name = "other".to_owned();
    of.deadlines.as_mut().unwrap().miss_share_interval = Some((0.1, 0.9));
    assert_eq!(
        said(&run),
        limited("13 jobs of thread other give its miss rate only to +-40 points")
    );
}

#[test]
fn a_sum_of_fewer_than_five_runs_is_limited() {
    let sum = |many: usize| {
        let mut run = clean(include_str!("../../../../../tests/runs/merge/run.json"));
        let origin = run.origins[0].clone();
        run.origins = vec![origin; many];
        run
    };
    for (many, word) in [(2, "two"), (3, "three"), (4, "four")] {
        let what =
            format!("{word} runs give no useful interval for their mean: merge five or more");
        assert_eq!(said(&sum(many)), [(Level::Limited, what)]);
    }
    assert_eq!(said(&sum(5)), []);
}

#[test]
fn what_limits_recordings_of_a_sum_and_not_the_sum_is_told_once_with_whose_it_is() {
    let mut sum = clean(include_str!("../../../../../tests/runs/merge/run.json"));
    let mut origin = sum.origins[0].clone();
    (origin.doubts, origin.command_line) = (Vec::new(), vec!["whylate".to_owned()]);
    sum.origins = (0..5)
        .map(|number| Origin { directory: format!("run-{number}"), ..origin.clone() })
        .collect();
    assert_eq!(said(&sum), []);
    let limited = |what: &str| [(Level::Limited, what.to_owned())];
    sum.origins[1].doubts.push("the box is in doubt".to_owned());
    assert_eq!(said(&sum), limited("run-1: the box is in doubt"));
    sum.origins[3].doubts.push("the box is in doubt".to_owned());
    assert_eq!(said(&sum), limited("2 of 5 runs: the box is in doubt"));
    // Whatever the sum was asked for, its recordings were quick, also those of older sums.
    for origin in &mut sum.origins {
        origin.doubts.clear();
        origin.command_line.push("--quick".to_owned());
    }
    assert_eq!(said(&sum), limited(QUICK));
    sum.command_line.push("--quick".to_owned());
    assert_eq!(said(&sum), limited(QUICK));
}

#[test]
fn what_a_sum_of_recordings_cannot_be_judged_by_is_kept_of_each() {
    let mut run = clean(include_str!("../../../../../tests/runs/device/run.json"));
    run.device.as_mut().unwrap().doubts = vec!["the box is in doubt".to_owned()];
    let doubts = doubts(&run);
    assert_eq!(doubts[0], "the box is in doubt");
    assert!(doubts[1].contains(TOO_FEW_ROUNDS), "{doubts:?}");
    assert_eq!(super::super::doubts(&gaps()), [""; 0]);
}

#[test]
fn a_one_way_flow_of_which_nobody_knows_what_came_is_not_to_be_trusted() {
    let mut run = requests();
    let flow = &mut run.flows[0];
    flow.asked.one_way = true;
    flow.packets = Packets { sent: 7, unaccounted: 7, ..Packets::default() };
    let what = format!("how many of 7 messages of {} came is unknown", flow.name);
    assert_eq!(poor(&run), [what]);
    // Of one that is there beside the first, the headline says nothing.
    let mut first = run.flows[0].clone();
    first.name = "first".to_owned();
    first.packets = Packets { sent: 7, received: 7, ..Packets::default() };
    run.flows.insert(0, first);
    assert_eq!(poor(&run), [""; 0]);
}

#[test]
fn a_headline_that_its_calibration_does_not_support_limits_trust() {
    let with = |limit_percent: Option<f64>| {
        let mut run = requests();
        run.flows[0].trust = Some(Calibrated {
            backend: "udp spin".to_owned(),
            limit_percent,
            limit_raw_percent: None,
            base: None,
            tolerance: Nanos(1_000),
            calibrated_at_ns: 0,
            age: Nanos(0),
            calibrated_pps: 1e3,
            stale: None,
            other: Vec::new(),
        });
        run
    };
    let backend = requests().flows[0].way.backend.clone();
    let told = |at: &str| {
        [(Level::Limited, format!("the calibration of {backend} does not support {at}"))]
    };
    assert_eq!(said(&with(Some(99.0))), []);
    for median in [98.9, 50.0] {
        assert_eq!(said(&with(Some(median))), told("p99"));
    }
    for none in [Some(49.9), None] {
        assert_eq!(said(&with(none)), told("even p50"));
    }
    // A flow beside the first is in no headline.
    let mut beside = with(None);
    beside.flows[0].name = "beside".to_owned();
    beside.flows.insert(0, requests().flows.remove(0));
    assert_eq!(said(&beside), []);
}

#[test]
fn another_run_is_told_once_without_the_id_of_its_process_however_it_is_stored() {
    let mut run = gaps();
    run.warnings.push(Warning::AnotherRun { pid: 7, same_cpu: true });
    run.warnings.push(Warning::AnotherRun { pid: 8, same_cpu: true });
    let stored = "another whylate was measuring on the same CPU (process 7)".to_owned();
    run.verdict = Verdict::Untrustworthy { reasons: vec![stored] };
    let told = "another whylate was measuring on the same CPU".to_owned();
    assert_eq!(said(&run), [(Level::Poor, told)]);
    assert_eq!(run.warnings[0].process(), Some(7));
}

#[test]
fn each_row_of_a_check_up_whose_sample_does_not_bound_p99_limits_trust() {
    let (some, none) = (Some(Nanos(20)), None);
    let show = |run: &mut Run, name: &str, value: Option<Nanos>, high: Option<Nanos>| {
        let series = run.series.iter_mut().find(|of| of.name == name).unwrap();
        let p99 = series.quantiles.iter_mut().find(|of| (of.percent - 99.0).abs() < 1e-9).unwrap();
        (p99.low, p99.value, p99.high) = (some, value, high);
    };
    let clean = clean(include_str!("../../../../../tests/runs/checkup/run.json"));
    // That of its stalls is withheld: how long they are is no row.
    assert!(clean.series[1].at(99.0).is_none() && clean.series[1].name == "gap-cpu1");
    assert_eq!(said(&clean), []);
    for (name, n, label) in [
        ("wake", 4_000, "wake-up latency, FIFO"),
        ("udp-other-core", 9_210, "UDP, other CPU"),
        ("delta-cpu1", 6_500_352, "clock reading, CPU 1"),
    ] {
        let series = clean.series.iter().find(|series| series.name == name);
        let n_eff = series.unwrap().quantiles.iter().find(|of| of.percent > 98.9).unwrap().n_eff;
        let alone = format!(", as many as {n_eff:.0} independent ones,");
        let alone = if n_eff < f64::from(n) / 2.0 { alone } else { String::new() };
        let what = format!("{n} samples of {label}{alone} do not bound p99");
        for (value, high) in [(none, none), (some, none), (none, some)] {
            let mut run = clean.clone();
            show(&mut run, name, value, high);
            assert_eq!(said(&run), [(Level::Limited, what.clone())], "{value:?} {high:?}");
            // Of threads or flows another series is the headline.
            run.gaps.clear();
            assert_eq!(said(&run), [], "{name} of no check-up");
        }
    }
    // Of wake-ups the row has the skipped ones, by the name of those that were measured.
    let mut run = clean;
    show(&mut run, "wake", none, none);
    let wake = run.series.iter().find(|of| of.name == "wake").unwrap();
    let (name, label) = ("wake-corrected".to_owned(), "and skipped, FIFO".to_owned());
    let corrected = Series { name, label, n: 4_034, ..wake.clone() };
    run.series.push(corrected);
    let what = "4034 samples of wake-up latency, FIFO do not bound p99".to_owned();
    assert_eq!(said(&run), [(Level::Limited, what)]);
    show(&mut run, "wake-corrected", some, some);
    assert_eq!(said(&run), []);
}

#[test]
fn a_box_of_whose_own_time_nothing_is_known_limits_trust() {
    let kept = clean(include_str!("../../../../../tests/runs/device/run.json"));
    let limited =
        |what: &str| vec![(Level::Limited, format!("the time in the box has no bounds{what}"))];
    let rounds = |at: &str| {
        let what = format!("3 rounds are too few to bound the time in the box{at}");
        vec![(Level::Limited, what)]
    };
    assert_eq!(said(&kept), rounds(""));
    let with = |change: fn(&mut Device)| {
        let mut run = kept.clone();
        change(run.device.as_mut().unwrap());
        said(&run)
    };
    // A bound that says something, at whatever percentile and from whichever side.
    let one = with(|of| of.sizes[1].bounds[1].high_ns = Some(6_000.0));
    assert_eq!(one, rounds(" at 3 of 4 sizes and ways"));
    let all = with(|of| of.sizes.iter_mut().for_each(|of| of.bounds[0].low_ns = Some(1.0)));
    assert_eq!(all, []);
    let why = with(|of| {
        of.sizes[0].bounds.clear();
        of.sizes[0].no_bounds = Some("a bare link is missing".to_owned());
    });
    assert_eq!(why, limited(": a bare link is missing"));
    // Where nothing came, or two captures saw the box itself, nothing is missing.
    assert_eq!(with(|of| of.sizes.iter_mut().for_each(|of| of.n = 0)), []);
    assert_eq!(with(|of| of.sizes.clear()), []);
    let captured = with(|of| {
        of.captures = Some(crate::device::TwoCaptures {
            before: "in.pcap".to_owned(),
            behind: "out.pcap".to_owned(),
            matched: 1,
            only_before: 0,
            only_behind: 0,
            ambiguous: 0,
            unjudged: 0,
            left_out: Vec::new(),
            ways: Vec::new(),
            resolution_ns: 1.0,
            clocks: "one".to_owned(),
        });
    });
    assert_eq!(captured, []);
}

#[test]
fn percentiles_of_a_watch_have_no_interval_and_that_limits_their_trust() {
    let mut run = clean(include_str!("../../../../../tests/runs/watch/run.json"));
    let limited = |run: &Run| -> Vec<String> {
        let reasons = Trust::of(run).reasons.into_iter();
        reasons.filter(|of| of.level == Level::Limited).map(|of| of.what).collect()
    };
    assert_eq!(limited(&run), [NO_INTERVAL]);
    let name = run.watched.as_ref().unwrap().breakdown.series.clone().unwrap();
    let at = |run: &mut Run| {
        let series = run.series.iter().position(|series| series.name == name).unwrap();
        let of = &run.series[series].quantiles;
        (series, of.iter().position(|of| (of.percent - HEADLINE).abs() < 1e-9).unwrap())
    };
    let (series, p99) = at(&mut run);
    run.series[series].quantiles[p99].high = run.series[series].max;
    assert_eq!(limited(&run), Vec::<String>::new());
    run.series[series].quantiles[p99].value = None;
    assert_eq!(limited(&run), [format!("{} requests do not bound p99", run.series[series].n)]);
}
