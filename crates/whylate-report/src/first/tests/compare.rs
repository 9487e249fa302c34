//! First screens of comparisons: one run a side and five, gaps and requests, with limits and without.

use std::path::{Path, PathBuf};

use whylate_model::Nanos;
use whylate_model::difference::Difference;
use whylate_model::directory::RunDir;
use whylate_model::run::Run;
use whylate_model::series::{Definition, Quantile, Series};
use whylate_stats::{Histogram, quantile};

use super::super::first_of_comparison;
use super::{Style, assert_small, assert_whole, style};
use crate::compare::{
    CauseChange, Caution, Comparison, NumberDifference, PairResult, Request, Spread, Verdict,
    compare,
};
use crate::kept::kept;
use crate::numbers::scale::Letters;
use crate::trusted::tests::calibrated;

/// Seconds that a planted run has.
const SECONDS: u32 = 40;

/// Some numbers, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }
}

fn write(
    home: &Path,
    name: &str,
    run: &Run,
    values: impl Fn(&mut Numbers, &str) -> Histogram,
) -> PathBuf {
    let path = home.join(name);
    let directory = RunDir::create(&path).unwrap();
    let mut log = directory.histogram_log().unwrap();
    let mut numbers = Numbers(run.seed);
    let mut run = run.clone();
    for series in &mut run.series {
        let mut all = Histogram::new();
        for second in 0..SECONDS {
            let values = values(&mut numbers, &series.name);
            all.add(&values);
            log.append(&series.name, &values, f64::from(second), 1.0).unwrap();
        }
        series.n = all.len();
        (series.min, series.max) = (all.min().map(Nanos), all.max().map(Nanos));
        // What its report tells is what it may be compared by.
        series.quantiles = quantile::estimates(&all, |_| all.len() as f64)
            .map(|of| {
                let [value, low, high] = [of.value, of.low, of.high].map(|at| at.map(Nanos));
                Quantile { percent: of.percent, value, low, high, n_eff: of.n_eff }
            })
            .to_vec();
    }
    directory.write_run(&run).unwrap();
    path
}

/// A busy thread that loses about so much of each second to stalls of about this length.
fn stalls(home: &Path, seed: u64, lost: f64, length: u64) -> PathBuf {
    let mut run = kept("gaps").1;
    run.seed = seed;
    run.segments.clear();
    run.warnings.clear();
    let ticks = (f64::from(SECONDS) * run.clock.hz.0) as u64;
    run.gaps[0].end = whylate_model::Ticks(run.gaps[0].start.0 + ticks);
    let many = (lost * 1e9 / length as f64) as u64;
    // As many again as a tenth of them, in the mean.
    run.gaps[0].lost_share = 1.1 * lost;
    write(home, &format!("busy-{seed}"), &run, |numbers, _| {
        let many = many + numbers.below(many / 5);
        (0..many).map(|_| length / 2 + numbers.below(length)).collect()
    })
}

/// A client whose replies take about this long, and the change that it had.
fn requests(home: &Path, seed: u64, level: u64, change: impl FnOnce(&mut Run)) -> PathBuf {
    let mut run = calibrated(None);
    run.flows[0].trust = None;
    let packets = &mut run.flows[0].packets;
    let lost = std::mem::take(&mut packets.lost);
    (packets.received, packets.arrived) = (packets.received + lost, packets.arrived + lost);
    // What took the CPU from the client is no part of these.
    (run.coverage, run.evidence.steal_ns) = (None, None);
    run.seed = seed;
    run.segments.clear();
    run.worst.clear();
    run.warnings.clear();
    let response = run.series[0].clone();
    let others = [
        ("rtt-service", "service", Definition::RoundTrip),
        ("rtt-lateness", "send lateness", Definition::SendLateness),
    ];
    run.series.extend(others.map(|(name, label, definition)| Series {
        name: name.to_owned(),
        label: label.to_owned(),
        definition,
        ..response.clone()
    }));
    change(&mut run);
    write(home, &format!("rtt-{seed}"), &run, |numbers, name| {
        let level = if name == "rtt-lateness" { 500 } else { level };
        (0..200).map(|_| level + numbers.below(level / 10)).collect()
    })
}

fn of(before: Vec<PathBuf>, after: Vec<PathBuf>, limits: &[&str]) -> Comparison {
    let limits = limits.iter().map(|limit| limit.parse().unwrap()).collect();
    compare(&Request { before, after, limits, ..Request::default() }).unwrap().comparison
}

#[test]
fn a_host_name_that_alone_differs_is_not_called_another_machine() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = [1, 2].map(|seed| stalls(home.path(), seed, 0.01, 2_000));
    let mut found = of(vec![a], vec![b], &[]);
    let differs = |name: &str| Difference {
        name: name.to_owned(),
        left: "box-one".to_owned(),
        right: "box-two".to_owned(),
    };
    found.differences = vec![differs("host name"), differs("setting loop")];
    let told = |found: &Comparison| screen(found).split_whitespace().collect::<Vec<_>>().join(" ");
    let alone =
        "Only the name of the machine differs (box-one and box-two): it may be the same one.";
    let said = told(&found);
    assert!(said.contains(alone) && said.contains("Also differs: loop (box-one"), "{said}");
    assert!(!said.contains("machine (box-one"), "{said}");
    let whole = |found: &Comparison| {
        let text = crate::terminal::full_of_comparison(found, style());
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains("only the name differs")
    };
    assert!(whole(&found));
    found.differences.push(differs("kernel"));
    let said = told(&found);
    assert!(!said.contains("Only the name") && said.contains("machine (box-one"), "{said}");
    assert!(!whole(&found));
    let side = crate::compare::Side::A;
    let mixed = |fields: &[&str]| {
        let fields = fields.iter().map(|of| (*of).to_owned()).collect();
        Caution::MixedSide { side, fields }.to_string()
    };
    assert!(mixed(&["host name"]).contains("differ in nothing else that is known"));
    assert!(mixed(&["host name", "kernel"]).ends_with("differ in host name, kernel"));
}

/// Its screen with no path of this machine in it.
fn screen(of: &Comparison) -> String {
    let screen = first_of_comparison(of, style());
    assert_small(&screen);
    screen
}

#[test]
fn the_share_of_lost_time_and_rates_of_stalls_are_those_of_the_run_itself() {
    let sides = ["before", "after"];
    let [a, b] = sides.map(|side| Path::new(crate::kept::RUNS).join(side));
    let found = of(vec![a], vec![b], &[]);
    let PairResult::Compared(one) = &found.pairs[0].result else { panic!("{found:?}") };
    let lost = one.lost_share.as_ref().unwrap();
    let [before, after] = sides.map(|side| kept(side).1.gaps[0].lost_share);
    assert!((lost.before - before).abs() < 1e-9 && (lost.after - after).abs() < 1e-9, "{lost:?}");
    assert!((lost.difference.difference - (after - before)).abs() < 1e-9, "{lost:?}");
    let (low, high) = lost.difference.interval;
    assert!(low < lost.difference.difference && lost.difference.difference < high, "{lost:?}");
    assert_eq!(one.rates.len(), 4);
    for of in &one.rates {
        let own = sides.map(|side| {
            let rates = kept(side).1.gaps[0].rates.clone();
            rates.into_iter().find(|rate| rate.at_least == of.at_least).unwrap().per_second
        });
        let (before, after) = (of.per_second.before, of.per_second.after);
        assert!((before - own[0]).abs() < 1e-6 && (after - own[1]).abs() < 1e-6, "{of:?} {own:?}");
    }
    // Its main cause took no more than all of it.
    let screen = screen(&found);
    assert!(screen.contains("B: 1.6% against 51% (−49 points"), "{screen}");
}

#[test]
fn a_difference_of_lost_time_is_told_in_points_with_its_interval() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = [(1, 0.018, 6_000), (2, 0.179, 37_000)]
        .map(|(seed, lost, length)| stalls(home.path(), seed, lost, length));
    let found = of(vec![a], vec![b], &[]);
    let screen_of = screen(&found);
    assert!(screen_of.starts_with("CPU 1 lost more in B: "), "{screen_of}");
    assert!(screen_of.contains("One run per side (*) cannot tell"), "{screen_of}");
    insta::assert_snapshot!("compare", screen_of);
    let mut same = found;
    if let PairResult::Compared(of) = &mut same.pairs[0].result
        && let Some(lost) = &mut of.lost_share
    {
        lost.verdict = Verdict::NoDifferenceShown;
    }
    let screen = screen(&same);
    assert!(screen.starts_with("CPU 1: no change is shown; it lost 2.0% in A and "), "{screen}");
}

#[test]
fn one_run_a_side_leaves_its_advice_beside_the_trust() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] =
        [(1, 0.018), (2, 0.179)].map(|(seed, lost)| stalls(home.path(), seed, lost, 9_000));
    let screen = screen(&of(vec![a], vec![b], &[]));
    let (answer, trust) = screen.split_once("Trust: limited.").unwrap();
    assert!(answer.contains("One run per side (*) cannot tell a real change"), "{screen}");
    let trust = trust.split_whitespace().collect::<Vec<_>>().join(" ");
    let advice = "Record five runs per side, alternating A B A B: whylate compare B1 ... B5 --baseline A1 ... A5.";
    assert!(trust.contains(advice) && !trust.contains("One run on each side"), "{screen}");
}

#[test]
fn five_runs_of_requests_a_side_are_told_with_what_was_exceeded() {
    let home = tempfile::tempdir().unwrap();
    let side = |from: u64, level| {
        (from..from + 5).map(|seed| requests(home.path(), seed, level, |_| ())).collect::<Vec<_>>()
    };
    let (a, b) = (side(1, 10_000), side(11, 14_000));
    let limits = ["p50=+10%", "rtt-lateness:p50=+10%", "p99.9999=+10%"];
    let found = of(a.clone(), b.clone(), &limits);
    let exceeded = screen(&found);
    assert!(exceeded.starts_with("Response time p50 rose to 14.7 µs in B from 1"), "{exceeded}");
    assert!(exceeded.contains("\nLimit exceeded: p50=+10% of response time (by "), "{exceeded}");
    assert!(exceeded.contains(" and 1 more limit."), "{exceeded}");
    insta::assert_snapshot!("compare-5", exceeded);
    let text = screen(&of(a.clone(), b.clone(), &["p50=+90%", "p99.9999=+10%"]));
    assert!(
        text.contains("Limit p99.9999=+10% of ") && text.contains("cannot be judged"),
        "{text}"
    );
    let text = screen(&of(a.clone(), b.clone(), &["p50=+90%"]));
    assert!(text.contains("\nAll 3 limits were held.\n"), "{text}");
    let text = screen(&of(a, b, &["rtt-response:p50=+90%"]));
    assert!(text.contains("\nThe limit was held.\n") && text.contains("\nTrust: good."), "{text}");
}

#[test]
fn what_differs_besides_is_named_and_what_is_not_alike_is_not_compared() {
    let home = tempfile::tempdir().unwrap();
    let a = requests(home.path(), 1, 10_000, |_| ());
    let b = requests(home.path(), 2, 10_000, |run| {
        "6.18.0".clone_into(&mut run.host.kernel);
        run.host.hostname = "x".repeat(400);
        run.settings.insert("warmup".to_owned(), "1s".into());
    });
    let screen_of = screen(&of(vec![a.clone()], vec![b], &[]));
    assert!(screen_of.contains("Also differs: ") && screen_of.contains("6.18.0"), "{screen_of}");
    let faster = requests(home.path(), 3, 10_000, |run| {
        run.flows[0].asked.per_second = Some(2_000_000.0);
    });
    let text = screen(&of(vec![a.clone()], vec![faster.clone()], &[]));
    assert!(text.starts_with("Nothing was compared: response time differs in rate ("), "{text}");
    assert!(text.contains("--across rate compares them all the same"), "{text}");
    assert!(!text.contains("Trust:"), "{text}");
    let request = Request { before: vec![a.clone()], after: vec![faster], ..Request::default() };
    let across = Request { across: vec!["rate".parse().unwrap()], ..request.clone() };
    let text = screen(&compare(&across).unwrap().comparison);
    assert!(text.contains("As asked, response time is compared across rate ("), "{text}");
    let beside = Request { side_by_side: true, ..request };
    let text = screen(&compare(&beside).unwrap().comparison);
    assert!(text.starts_with("Both sides are shown as asked"), "{text}");
    assert!(!text.contains("change"), "{text}");
    let gaps = stalls(home.path(), 4, 0.1, 9_000);
    let text = screen(&of(vec![a], vec![gaps], &[]));
    assert!(text.starts_with("The two sides have no series in common"), "{text}");
}

#[test]
fn a_side_that_is_not_to_be_trusted_makes_the_trust_poor() {
    let home = tempfile::tempdir().unwrap();
    let a = requests(home.path(), 1, 10_000, |_| ());
    let lost = vec!["records were lost".to_owned()];
    let b = requests(home.path(), 2, 10_000, |run| {
        run.verdict = whylate_model::run::Verdict::Untrustworthy { reasons: lost };
    });
    let path = b.display().to_string();
    let text = screen(&of(vec![a], vec![b], &[])).replace(&path, "B");
    assert!(text.contains("\nTrust: poor. "), "{text}");
}

/// The comparison of one CPU as one of so many, each with a little more lost in B than the one before.
fn of_cpus(one: &Comparison, many: u32) -> Comparison {
    let mut of = one.clone();
    let pair = of.pairs.remove(0);
    for cpu in 0..many {
        let mut pair = pair.clone();
        pair.series = format!("gap-cpu{cpu}");
        pair.before.label = format!("gaps, CPU {cpu}");
        if let PairResult::Compared(of) = &mut pair.result
            && let Some(lost) = &mut of.lost_share
        {
            lost.difference.relative = Some(100.0 + f64::from(cpu));
        }
        of.pairs.push(pair);
    }
    let difference = |name: &str| Difference {
        name: name.repeat(30),
        left: "left ".repeat(60),
        right: "right ".repeat(60),
    };
    of.differences = vec![difference("setting a"), difference("kernel"), difference("cpus")];
    of.cautions = vec![of.cautions.clone(); 30].concat();
    of.limits = vec![of.limits.clone(); 30].concat();
    of
}

#[test]
fn of_many_cpus_the_one_that_changed_most_stands_first_and_the_others_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = [(1, 0.018, 6_000), (2, 0.179, 37_000)]
        .map(|(seed, lost, length)| stalls(home.path(), seed, lost, length));
    let one = of(vec![a], vec![b], &["p50=+10%", "lost=+10%"]);
    for many in [2, 9, 64, 512] {
        let screen = screen(&of_cpus(&one, many));
        let worst = format!("CPU {} lost more in B: ", many - 1);
        assert!(screen.starts_with(&worst), "{screen}");
        assert!(screen.contains("Limit exceeded: "), "{screen}");
        let rows = screen.lines().filter(|line| line.starts_with("CPU ")).count() as u32 - 1;
        let more = format!("and {} more: --full", many - rows);
        assert_eq!(screen.contains(&more), many > rows, "{screen}");
    }
}

#[test]
fn a_cause_that_took_another_share_is_named_in_the_words_of_a_first_screen() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = [(1, 0.018, 6_000), (2, 0.179, 37_000)]
        .map(|(seed, lost, length)| stalls(home.path(), seed, lost, length));
    let mut found = of(vec![a], vec![b], &[]);
    let difference = Spread {
        difference: 0.48,
        relative: None,
        interval: (0.4, 0.56),
        within: None,
        between: None,
        resampled: true,
    };
    let share = NumberDifference { before: 0.0, after: 0.48, difference, verdict: Verdict::ALower };
    for (cause, class, told) in [
        (
            "thread hog (ordinary)",
            Some("task hog (normal)"),
            "cause: task hog (normal), +48 points",
        ),
        ("page fault\u{1b}", None, "cause: page fault\\u{1b}, +48 points"),
    ] {
        if let PairResult::Compared(of) = &mut found.pairs[0].result {
            let (cause, class) = (cause.to_owned(), class.map(str::to_owned));
            of.causes =
                Some(CauseChange::Shown { cause, class, is_largest: true, share: share.clone() });
        }
        let screen = screen(&found);
        assert!(screen.contains(told), "{screen}");
    }
    // Another one changed more in the mean, and that is not shown.
    if let PairResult::Compared(of) = &mut found.pairs[0].result
        && let Some(CauseChange::Shown { is_largest, .. }) = &mut of.causes
    {
        *is_largest = false;
    }
    let screen = screen(&found);
    assert!(screen.contains("The share of page fault\\u{1b} changed: +48 points."), "{screen}");
}

#[test]
fn a_cause_is_most_of_a_change_only_where_it_is_half_of_it_or_more_and_no_more_than_all() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = [(1, 0.018, 6_000), (2, 0.179, 37_000)]
        .map(|(seed, lost, length)| stalls(home.path(), seed, lost, length));
    let mut found = of(vec![a], vec![b], &[]);
    let changed = |by: f64| {
        let interval = (by - 0.04, by + 0.04);
        let (within, between) = (None, None);
        let difference =
            Spread { difference: by, relative: None, interval, within, between, resampled: true };
        let (before, after) = ((-by).max(0.0), by.max(0.0));
        NumberDifference { before, after, difference, verdict: Verdict::ALower }
    };
    for (whole, part, told) in [
        (0.44, 0.09, "Largest change by cause: softirqs, +9 points."),
        (0.44, 0.22, "Most of the change is by softirqs: +22 points."),
        (0.44, 0.44, "Most of the change is by softirqs: +44 points."),
        (0.44, 0.441, "Most of the change is by softirqs: +44 points."),
        (0.41, 0.49, "Largest change by cause: softirqs, +49 points, more than the whole."),
        (-0.41, -0.49, "Largest change by cause: softirqs, −49 points, more than the whole."),
        (-0.03, 0.09, "Largest change by cause: softirqs, +9 points."),
    ] {
        if let PairResult::Compared(of) = &mut found.pairs[0].result {
            of.lost_share = Some(changed(whole));
            let (cause, class) = ("softirqs".to_owned(), None);
            let share = changed(part);
            of.causes = Some(CauseChange::Shown { cause, class, is_largest: true, share });
        }
        let screen = screen(&found);
        assert!(screen.contains(told), "{whole} {part}: {screen}");
    }
}

#[test]
fn the_next_steps_of_a_comparison_are_its_own_command() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = [1, 2].map(|seed| stalls(home.path(), seed, 0.01 * f64::from(seed as u32), 2_000));
    let mut found = of(vec![a], vec![b], &["lost=+10%"]);
    let named = |found: &mut Comparison, a: &str, b: &str| {
        a.clone_into(&mut found.before[0].directory);
        b.clone_into(&mut found.after[0].directory);
    };
    named(&mut found, "g1", "my g2");
    let told = "More:  whylate compare g1 'my g2' --limit lost=+10% --full  has every number\n";
    assert!(screen(&found).contains(told), "{}", screen(&found));
    found.limits.clear();
    let told = "compare g1 'my g2' --full  has every number\n       --limit 'p99=+10%'  makes";
    assert!(screen(&found).contains(told), "{}", screen(&found));
    let one = found.after[0].clone();
    found.after.push(one);
    let told = "More:  whylate compare 'my g2' 'my g2' --baseline g1 --full  has every number\n";
    assert!(screen(&found).contains(told), "{}", screen(&found));
    // Where the names leave no room there is no command that could be typed.
    named(&mut found, &"x".repeat(80), "g2");
    let text = screen(&found);
    assert!(text.contains("More:  --full  has every number; --html FILE draws them\n"), "{text}");
    assert!(!text.contains("whylate compare ..."), "{text}");
}

#[test]
fn sides_that_have_nothing_in_common_are_told_by_what_they_measured_and_not_to_be_judged() {
    let [a, b] = ["gaps", "wake"].map(|kind| Path::new(crate::kept::RUNS).join(kind));
    let mut found = of(vec![a], vec![b], &[]);
    "g1".clone_into(&mut found.before[0].directory);
    "w1".clone_into(&mut found.after[0].directory);
    let text = screen(&found);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "The two sides have no series in common: g1 measured lost CPU time on CPU 1, w1 \
                timer wake-up latency on CPU 1.";
    assert!(said.starts_with(told), "{text}");
    assert!(text.contains("More:  whylate report g1\n       whylate report w1\n"), "{text}");
    for no in ["--limit", "every number", "Also differs"] {
        assert!(!text.contains(no), "{no}: {text}");
    }
}

#[test]
fn limits_of_what_the_headline_is_about_come_first_and_the_others_are_counted_as_limits() {
    let side = || vec![Path::new(crate::kept::RUNS).join("wake")];
    let mut found = of(side(), side(), &["p50=+10%"]);
    assert_eq!(found.limits.len(), 2, "{:?}", found.limits);
    // The series without skipped wake-ups is judged first.
    found.limits.sort_by_key(|judged| judged.series.contains("corrected"));
    let not = || crate::compare::Outcome::CannotBeJudged { reason: "x".to_owned() };
    found.limits.iter_mut().for_each(|judged| judged.outcome = not());
    let told = "Limit p50=+10% of wake-up latency, HR cannot be judged: x; and 1 more limit.";
    let text = first_of_comparison(&found, style());
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(told), "{text}");
}

#[test]
fn an_answer_from_a_run_in_which_trust_is_poor_begins_so() {
    let home = tempfile::tempdir().unwrap();
    let lost = || vec!["records were lost".to_owned()];
    let poor = |run: &mut Run| {
        run.verdict = whylate_model::run::Verdict::Untrustworthy { reasons: lost() };
    };
    let a = requests(home.path(), 1, 10_000, |_| ());
    let b = requests(home.path(), 2, 14_000, poor);
    let text = first_of_comparison(&of(vec![a.clone()], vec![b], &[]), style());
    assert!(text.starts_with("Trust is poor: response time p50 rose to "), "{text}");
    // What is known to be the same recording is told as it is.
    let text = first_of_comparison(&of(vec![a.clone()], vec![a], &[]), style());
    assert!(text.starts_with("Response time p50: no change is shown"), "{text}");
    let (quiet, busy) = (stalls(home.path(), 3, 0.01, 2_000), stalls(home.path(), 4, 0.1, 9_000));
    let mut found = of(vec![quiet], vec![busy], &[]);
    let directory = "b".to_owned();
    found.cautions.push(Caution::NotTrustworthy { directory, reasons: lost() });
    let text = screen(&found);
    assert!(text.starts_with("Trust is poor: CPU 1 lost more in B: "), "{text}");
}

#[test]
fn whole_requests_of_a_process_come_before_their_parts() {
    let side = || vec![Path::new(crate::kept::RUNS).join("watch")];
    let of = of(side(), side(), &[]);
    let text = first_of_comparison(&of, style());
    assert!(text.starts_with("Whole request of watched p"), "{text}");
    let names = names(&of);
    assert!(names[0].starts_with("whole request"), "{names:?}");
}

#[test]
fn a_caution_about_one_interval_has_the_name_of_the_screen() {
    let side = || vec![Path::new(crate::kept::RUNS).join("wake")];
    let of = of(side(), side(), &[]);
    let caution =
        |series: &str, intervals| Caution::FewIntervals { series: series.to_owned(), intervals };
    let one = of.told(&caution("wake-corrected-HR", 1));
    assert_eq!(one, "all due wake-ups: one side has only 1 interval of time");
    let two = of.told(&caution("nothing", 2));
    assert_eq!(two, "nothing: one side has only 2 intervals of time");
}

#[test]
fn a_core_of_the_check_up_is_a_cpu_and_a_thread_keeps_its_name() {
    let home = tempfile::tempdir().unwrap();
    let runs = [(1, 10_000), (2, 20_000)];
    let [a, b] = runs.map(|(seed, level)| requests(home.path(), seed, level, |_| ()));
    let mut of = of(vec![a], vec![b], &[]);
    for (label, told) in [("UDP, same core", "UDP, same CPU"), ("jobs of scorer", "jobs of scorer")]
    {
        of.pairs.iter_mut().for_each(|pair| pair.before.label = label.to_owned());
        let screen = screen(&of).to_lowercase();
        assert!(screen.contains(&told.to_lowercase()), "{screen}");
    }
}

#[test]
fn names_of_any_length_leave_the_percentile_in_its_row() {
    let home = tempfile::tempdir().unwrap();
    let label = |run: &mut Run| run.series[0].label = format!("response, {}", "x".repeat(200));
    let [a, b] = [1, 2].map(|seed| requests(home.path(), seed, 10_000 + 5_000 * seed, label));
    let found = of(vec![a], vec![b], &[]);
    let text = screen(&found);
    assert!(text.contains("... p99, µs") || text.contains("... p99.9, µs"), "{text}");
    let narrow = first_of_comparison(&found, Style { width: 40, ..style() });
    for line in narrow.lines().filter(|line| !line.contains("--")) {
        assert!(line.chars().count() <= 40, "{line:?} in\n{narrow}");
    }
    assert!(
        first_of_comparison(&found, Style { letters: Letters::Plain, ..Style::default() })
            .is_ascii()
    );
}

/// What the rows of its table are of.
fn names(of: &Comparison) -> Vec<String> {
    let mut of = of.clone();
    // Wherever these tests are run: names of directories are cut, however long they are.
    for caution in &mut of.cautions {
        if let Caution::SameRecording { before, after } = caution {
            (*before, *after) = ("before".to_owned(), "after".to_owned());
        }
    }
    let screen = first_of_comparison(&of, style());
    assert!(screen.lines().count() < 24, "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    // Where the runs lie is a name in the reasons of its trust, and may be cut.
    let own = screen.split_once("\nTrust:").map_or(screen.as_str(), |(own, _)| own);
    assert_whole(&format!("{own}\nMore:"));
    let rows = screen.lines().skip_while(|line| !line.contains("A (before)")).skip(1);
    let rows = rows.take_while(|line| line.contains("  "));
    rows.map(|line| line.split("  ").next().unwrap().to_owned()).collect()
}

#[test]
fn no_two_rows_of_a_comparison_have_the_same_name() {
    let mut compared = 0;
    for kind in crate::kept::kinds() {
        let side = || vec![Path::new(crate::kept::RUNS).join(&kind)];
        let request = Request { before: side(), after: side(), ..Request::default() };
        let Ok(found) = compare(&request) else { continue };
        let names = names(&found.comparison);
        let mut different = names.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), names.len(), "{kind}: {names:?}");
        compared += usize::from(!names.is_empty());
    }
    assert!(compared > 15, "{compared} kinds were compared");
}

#[test]
fn both_rows_of_timer_wake_ups_are_called_as_wake_calls_them() {
    let side = || vec![Path::new(crate::kept::RUNS).join("wake")];
    let mut of = of(side(), side(), &[]);
    let called =
        ["all due wake-ups p50, µs", "all due wake-ups p90, µs", "all due wake-ups max, µs"];
    assert_eq!(names(&of), [&called[..], &["uncorrected p50, µs"]].concat());
    // Of several timers each says which it is.
    let others = of.pairs.iter().map(|pair| {
        let series = pair.series.replace("HR", "TT");
        crate::compare::Pair { series, ..pair.clone() }
    });
    of.pairs.extend(others.collect::<Vec<_>>());
    let names = names(&of);
    let of = |thread: &str| names.iter().filter(|of| of.ends_with(thread)).collect::<Vec<_>>();
    let [one, other] = [of(" HR p50, µs"), of(" TT p50, µs")];
    let begin = |all: &[&String]| all.iter().map(|of| of[..3].to_owned()).collect::<Vec<_>>();
    assert_eq!([begin(&one), begin(&other)], [["all", "unc"]; 2], "{names:?}");
}
