//! Tools of which it is known what they do to the truth.

use whylate_model::calibration::LimitEnd;

use super::*;

/// A part in which the truth was so much, and what a tool that does `tool` with it reports.
fn part(delay: u64, truth: u64, tool: impl Fn(f64) -> f64) -> (Nanos, Reading) {
    let mut values = Histogram::new();
    values.record_n(truth, 1_000);
    let truth = values.value_at(50.0).unwrap() as f64;
    let found = vec![(50.0, tool(truth)), (99.0, tool(truth))];
    (Nanos(delay), Reading { found, truth: values, alone: 0, per_second: 1_000.0 })
}

fn readings(tool: impl Fn(f64) -> f64) -> Readings {
    let delays = [10_000, 20_000, 50_000];
    let parts = delays.iter().flat_map(|delay| {
        let tool = &tool;
        (0..3).map(move |run| part(*delay, 2 * delay + 40 + 10 * run, tool))
    });
    Readings { statistic: Statistic::Median, parts: parts.collect(), base: vec![tool(0.0)] }
}

fn tool_of(readings: &Readings) -> ForeignTool {
    let slope = least_squares(&readings.points()).unwrap();
    ForeignTool {
        command: "client".to_owned(),
        metric: "m".to_owned(),
        passes: 2,
        readings: Vec::new(),
        slope: Some(stored_slope(SLOPE_OF, &slope)),
    }
}

#[test]
fn a_tool_that_divides_by_two_has_a_slope_of_one_half_and_is_told_to_halve() {
    let half = readings(|truth| f64::midpoint(truth, 6_000.0));
    let tool = tool_of(&half);
    assert!(tool.halves(), "{:?}", tool.slope);
    let curve = half.curve(Nanos(10_000), 1.0);
    assert!(curve[0].high_ns.unwrap() < -1_000.0, "{:?}", curve[0]);
    let told = notes(&half, &tool, (Nanos(10_000), Some(3_000.0), 1_000.0));
    let told = told.iter().find(|note| note.contains("it halves")).unwrap();
    assert!(told.contains("holds up to p99"), "{told}");
}

#[test]
fn a_tool_that_follows_has_a_slope_of_one_and_its_base_can_be_taken_off() {
    let good = readings(|truth| truth + 6_000.0);
    let tool = tool_of(&good);
    assert!(!tool.halves() && (tool.slope.as_ref().unwrap().value - 1.0).abs() < 1e-6);
    let raw = good.curve(Nanos(20_000), 1.0);
    assert_eq!(limit(&raw, 1_000.0).percent, None);
    let off = compensated(&raw, 6_000.0);
    assert_eq!(limit(&off, 1_000.0).percent, Some(99.0));
    let at = good.at(Nanos(20_000)).unwrap();
    assert_eq!((at.readings, at.delay), (3, Nanos(20_000)));
    assert!(notes(&good, &tool, (Nanos(20_000), Some(6e3), 1e3)).len() == 1);
}

#[test]
fn of_two_runs_there_is_no_interval_and_no_limit() {
    let mut few = readings(|truth| truth);
    few.parts.retain({
        let mut seen = 0;
        move |(delay, _)| {
            seen += u32::from(*delay == Nanos(10_000));
            *delay != Nanos(10_000) || seen <= 2
        }
    });
    let curve = few.curve(Nanos(10_000), 1.0);
    assert_eq!((curve[0].error_ns, curve[0].low_ns), (Some(0.0), None));
    let limit = limit(&curve, 1_000.0);
    assert_eq!((limit.percent, limit.ended_by), (None, LimitEnd::Sample));
}

#[test]
fn a_percentile_that_no_runs_truth_has_messages_for_has_no_interval_and_ends_the_limit() {
    let mut good = readings(|truth| truth + 10.0);
    for (_, of) in &mut good.parts {
        // Of 1 000 messages there is no such one: a tool that prints it says nothing.
        let value = of.found[0].1;
        of.found.push((99.999, value));
    }
    let curve = good.curve(Nanos(10_000), 1.0);
    let [_, at_99, last] = &curve[..] else { panic!("{curve:?}") };
    assert!(at_99.low_ns.is_some() && at_99.high_ns.is_some(), "{at_99:?}");
    assert!(last.error_ns.is_some(), "{last:?}");
    assert_eq!((last.low_ns, last.high_ns), (None, None));
    let limit = limit(&curve, 1_000.0);
    assert_eq!((limit.percent, limit.ended_by), (Some(99.0), LimitEnd::Sample));
    assert_eq!(limit.fails_at, Some(99.999));
}

#[test]
fn what_runs_reported_is_not_averaged_but_told_from_least_to_most() {
    let several = readings(|truth| truth);
    let delay = Nanos(10_000);
    let told = reported(&several.curve(delay, 1.0), &several, delay);
    for at in &told {
        assert_eq!(at.value, None, "{at:?}");
        let (least, most) = (at.low.unwrap(), at.high.unwrap());
        // Three runs, 10 ns apart.
        assert!(least < most && most.0 - least.0 <= 40, "{at:?}");
    }
    let mut one = readings(|truth| truth);
    one.parts.truncate(1);
    let told = reported(&one.curve(delay, 1.0), &one, delay);
    assert!(told.len() == 2 && told.iter().all(|at| at.value.is_some() && at.low.is_none()));
}

#[test]
fn a_mean_is_set_beside_the_mean_of_the_truth_and_claims_no_percentile() {
    // Of ten messages one takes 100 us longer: the mean lies 10 us above the median.
    let part = |run: u64| {
        let mut truth = Histogram::new();
        truth.record_n(20_000 + 10 * run, 900);
        truth.record_n(120_000 + 10 * run, 100);
        let found = vec![(50.0, truth.mean().unwrap() + 5_000.0)];
        (Nanos(10_000), Reading { found, truth, alone: 0, per_second: 1_000.0 })
    };
    let parts = (0..3).map(part).collect();
    let of = Readings { statistic: Statistic::Mean, parts, base: vec![5_000.0] };
    assert!(of.curve(Nanos(10_000), 1.0).is_empty());
    let error = of.error_of_mean(Nanos(10_000), 1.0, 0.0).unwrap();
    assert!((error.error_ns.unwrap() - 5_000.0).abs() < 1e-6, "{error:?}");
    let less = of.error_of_mean(Nanos(10_000), 1.0, 5_000.0).unwrap();
    assert!(less.error_ns.unwrap().abs() < 1e-6, "{less:?}");
    let at = of.at(Nanos(10_000)).unwrap();
    // The truth beside it is the mean too: 30 us and not 20.
    assert!((29_000..31_000).contains(&at.truth.0), "{at:?}");
    let follows = tool_of(&readings(|truth| truth));
    let told = notes(&of, &follows, (Nanos(10_000), Some(5_000.0), 1_000.0));
    assert!(told[0].contains("is a mean") && told[0].contains("+5.00 us"), "{told:?}");
    let halves = tool_of(&readings(|truth| truth / 2.0));
    let told = notes(&of, &halves, (Nanos(10_000), Some(5_000.0), 1_000.0));
    assert!(told.iter().any(|note| note.contains("taken off, is off by")), "{told:?}");
    assert_eq!(limit(&of.curve(Nanos(10_000), 1.0), 1_000.0).percent, None);
}

#[test]
fn a_mean_with_percentiles_is_refused() {
    let request = |pattern: &str, statistic| ForeignRequest {
        client: vec!["client".to_owned()],
        server: None,
        metric: Metric::new(pattern, Unit::Us).unwrap(),
        statistic,
        passes: Passes::Both,
        port: 11_111,
        most: Duration::from_secs(5),
    };
    let both = "(?P<percent>[0-9.]+) (?P<value>[0-9.]+)";
    let refused = request(both, Statistic::Mean).check().unwrap_err();
    assert!(refused.contains("--statistic mean"), "{refused}");
    assert_eq!(request(both, Statistic::Median).check(), Ok(()));
    assert_eq!(request("(?P<value>[0-9.]+)", Statistic::Mean).check(), Ok(()));
}

#[test]
fn words_are_filled_in_and_programs_without_words_are_refused() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    let request = ForeignRequest {
        client: words("sockperf ping-pong -i {address} -p {port}"),
        server: Some(Vec::new()),
        metric: Metric::new("(?P<value>[0-9]+)", Unit::Us).unwrap(),
        statistic: Statistic::Median,
        passes: Passes::Both,
        port: 11_111,
        most: Duration::from_secs(5),
    };
    let program = request.program(&request.client).unwrap();
    assert_eq!(program.named(), "sockperf ping-pong -i 198.18.0.2 -p 11111");
    assert_eq!(request.check().unwrap_err(), "--server names no program");
}

#[test]
fn ours_stands_beside_a_tool_that_halves_with_both_numbers_and_says_what_they_differ_by() {
    let ours = readings(|truth| truth + 8_000.0);
    let told = |tool: &Readings| {
        let (its, own) = (tool_of(tool), tool_of(&ours));
        ours::compared(Nanos(50_000), (&its, tool), (&own, &ours)).unwrap()
    };
    // 100 us in the line and 8 us of the way; half of both is half of ours.
    let half = told(&readings(|truth| f64::midpoint(truth, 8_000.0)));
    assert!(half.contains("0.50 of ours") && half.contains("ours rises by 1.000"), "{half}");
    assert!(half.contains("its number by 0.500: the halving is what"), "{half}");
    let whole = told(&readings(|truth| truth + 8_000.0));
    assert!(whole.contains("1.00 of ours") && !whole.contains("halving"), "{whole}");
    let (tool, nothing) = (tool_of(&ours), Readings::default());
    assert_eq!(ours::compared(Nanos(50_000), (&tool, &ours), (&tool, &nothing)), None);
}

#[test]
fn both_clients_go_through_every_delay_and_back_to_back_in_each_round() {
    let turns = in_turns(&[Nanos(10), Nanos(20)]);
    assert_eq!(turns.len(), 6);
    for who in [Who::Tool, Who::Ours] {
        let between: Vec<PartOf> =
            turns.iter().filter(|(of, _)| *of == who).map(|(_, between)| *between).collect();
        let line = |delay| PartOf::Line { delay: Nanos(delay) };
        assert_eq!(between, [line(10), line(20), PartOf::BackToBack]);
    }
}
