//! What a sum says as a whole, from the recordings that a kept one is the sum of.

use std::path::Path;

use whylate_model::TicksDelta;
use whylate_model::directory::parse_run;

use super::*;

/// Its two recordings, and its gaps.
fn kept() -> (Vec<Origin>, Vec<GapSummary>) {
    let json = include_bytes!("../../../../tests/runs/merge/run.json");
    let run = parse_run(Path::new("run.json"), json).unwrap();
    let mut origins = run.origins;
    for (origin, name) in origins.iter_mut().zip(["a", "b"]) {
        name.clone_into(&mut origin.directory);
        (origin.state, origin.verdict) = (RunState::Complete, Verdict::Trustworthy);
        origin.warnings.clear();
    }
    (origins, run.gaps)
}

#[test]
fn a_sum_came_as_far_as_the_recording_that_came_least_far() {
    use RunState::{Complete, Running, Stopped};
    for (of, expected) in [
        ([Complete, Complete], Complete),
        ([Complete, Stopped], Stopped),
        ([Stopped, Running], Running),
        ([Running, Complete], Running),
    ] {
        let mut origins = kept().0;
        origins.iter_mut().zip(of).for_each(|(origin, state)| origin.state = state);
        assert_eq!(state(&origins), expected, "{of:?}");
    }
}

#[test]
fn a_sum_asks_what_each_of_its_recordings_asks() {
    let mut origins = kept().0;
    for origin in &mut origins {
        "Who?".clone_into(&mut origin.question);
    }
    assert_eq!(question(&origins), "The sum of 2 recordings, each of which asks: Who?");
    assert_eq!(question(&origins[..1]), "Who?");
    "What?".clone_into(&mut origins[0].question);
    assert_eq!(question(&origins), "The sum of 2 recordings, each of which asks: 2 questions");
}

#[test]
fn warnings_of_recordings_are_told_once_up_to_a_limit_and_with_those_of_the_sum() {
    let (mut origins, mut gaps) = kept();
    gaps.truncate(1);
    gaps[0].noise_below_threshold = 0.01;
    let dropped = |dropped| Warning::RecordsDropped { cpu: CpuId(1), dropped };
    origins[0].warnings = vec![dropped(1), dropped(2), dropped(1)];
    origins[1].warnings = vec![dropped(2), dropped(3)];
    assert_eq!(warnings(&origins, &gaps), [dropped(1), dropped(2), dropped(3)]);
    // A hundredth of noise is borne, more is not, of whatever sign, and told once.
    gaps[0].noise_below_threshold = -0.011;
    let noise = Warning::NoiseBelowThreshold { cpu: gaps[0].cpu, share: -0.011 };
    assert_eq!(warnings(&origins, &gaps)[3..], [noise]);
    let own = Warning::NoiseBelowThreshold { cpu: CpuId(7), share: 0.5 };
    origins[1].warnings.push(own.clone());
    assert_eq!(warnings(&origins, &gaps)[3..], [own]);
    origins[0].state = RunState::Running;
    assert_eq!(warnings(&origins, &gaps)[4..], [Warning::Interrupted]);
    origins[0].warnings.push(Warning::Interrupted);
    assert_eq!(
        warnings(&origins, &gaps).iter().filter(|of| **of == Warning::Interrupted).count(),
        1
    );
    origins[0].state = RunState::Complete;
    origins[0].warnings = (0..100).map(dropped).collect();
    gaps[0].noise_below_threshold = 0.0;
    assert_eq!(warnings(&origins, &gaps).len(), MOST_WARNINGS);
}

#[test]
fn a_sum_is_as_trustworthy_as_the_least_of_its_recordings_with_the_name_of_each() {
    let mut origins = kept().0;
    assert_eq!(verdict(&origins), Verdict::Trustworthy);
    let with = |what: &str, reasons: &[&str]| Verdict::LimitExceeded {
        what: what.to_owned(),
        reasons: reasons.iter().map(|of| (*of).to_owned()).collect(),
    };
    let exceeded = |what: &str| with(what, &[]);
    (origins[0].verdict, origins[1].verdict) = (exceeded("p99"), exceeded("p50"));
    assert_eq!(verdict(&origins), exceeded("a: p99"));
    origins[1].verdict = with("p50", &["lost"]);
    assert_eq!(verdict(&origins), with("a: p99", &["b: lost"]));
    origins[1].verdict = Verdict::Pending;
    assert_eq!(verdict(&origins), with("a: p99", &["b: it did not end, and has no verdict"]));
    origins[0].verdict = Verdict::Trustworthy;
    let reasons = |of: &[Origin]| match verdict(of) {
        Verdict::Untrustworthy { reasons } => reasons,
        other => panic!("{other:?}"),
    };
    assert_eq!(reasons(&origins), ["b: it did not end, and has no verdict"]);
    let many = |n: usize| Verdict::Untrustworthy { reasons: vec!["lost".to_owned(); n] };
    origins[0].verdict = many(MOST_REASONS - 1);
    assert_eq!(reasons(&origins).len(), MOST_REASONS);
    origins[0].verdict = many(MOST_REASONS);
    let told = reasons(&origins);
    assert_eq!((told.len(), told[MOST_REASONS].as_str()), (9, "and 1 more reasons"));
    (origins[0].verdict, origins[1].verdict) = (many(MOST_REASONS + 2), many(3));
    assert_eq!(reasons(&origins)[MOST_REASONS], "and 5 more reasons");

    let mut of_sum = Verdict::Trustworthy;
    for _ in 0..2 {
        distrust(&mut of_sum, "short".to_owned());
    }
    let reasons = vec!["short".to_owned(); 2];
    assert_eq!(of_sum, Verdict::Untrustworthy { reasons });
    let mut of_sum = exceeded("p99");
    distrust(&mut of_sum, "short".to_owned());
    assert_eq!(of_sum, with("p99", &["short"]));
}

/// Recordings with gaps of these lengths among their longest, on these CPUs.
fn longest(of: [&[(u32, u64)]; 2]) -> Vec<Origin> {
    let mut origins = kept().0;
    let template = origins[0].worst[0].clone();
    for (origin, gaps) in origins.iter_mut().zip(of) {
        let worst = |&(cpu, length): &(u32, u64)| {
            let (cpu_before, length) = (CpuId(cpu), Nanos(length));
            whylate_model::cause::WorstGap { cpu_before, length, ..template.clone() }
        };
        origin.worst = gaps.iter().map(worst).collect();
    }
    origins
}

fn lengths(origins: &[Origin]) -> Vec<Vec<u64>> {
    let of = |origin: &Origin| origin.worst.iter().map(|gap| gap.length.0).collect();
    origins.iter().map(of).collect()
}

#[test]
fn gaps_below_the_threshold_of_their_cpu_are_none_of_the_longest() {
    let mut gaps = kept().1;
    gaps.truncate(1);
    let other = GapSummary { cpu: CpuId(2), threshold: TicksDelta(50), ..gaps[0].clone() };
    (gaps[0].cpu, gaps[0].threshold) = (CpuId(1), TicksDelta(100));
    gaps.push(other);
    let mut origins = longest([&[(1, 100), (1, 99), (2, 50), (2, 49)], &[(7, 50), (7, 49)]]);
    leave_out_short(&mut origins, &gaps);
    assert_eq!(lengths(&origins), [vec![100, 50], vec![50]], "others by the least of all");
}

#[test]
fn of_the_longest_of_each_recording_those_of_all_are_kept() {
    let (long, short): (Vec<_>, Vec<_>) =
        ((0..15).map(|n| (1, 1_000 - n)).collect(), (0..15).map(|n| (1, 900 - n)).collect());
    let mut origins = longest([&long, &short]);
    keep_the_longest(&mut origins);
    assert_eq!(origins.iter().map(|of| of.worst.len()).collect::<Vec<_>>(), [15, 5]);
    assert_eq!(lengths(&origins)[1], [900, 899, 898, 897, 896]);
    // Of equal ones no more than the sum has room for; of few all.
    let equal = [(1, 5); MOST_WORST];
    let mut origins = longest([&equal[..12], &equal[..12]]);
    keep_the_longest(&mut origins);
    assert_eq!(origins.iter().map(|of| of.worst.len()).collect::<Vec<_>>(), [12, 8]);
    let mut few = longest([&equal[..12], &equal[..7]]);
    keep_the_longest(&mut few);
    assert_eq!(few.iter().map(|of| of.worst.len()).collect::<Vec<_>>(), [12, 7]);
}
