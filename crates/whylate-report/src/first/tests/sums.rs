//! Sums of recordings of any kind have a first screen, which says what was measured.

use whylate_model::origin::{Origin, Share};
use whylate_model::run::Run;

use super::planted::{summed, summed_with};
use super::{assert_fits, assert_lines, assert_whole, shown, style};
use crate::first::subject;
use crate::kept::{kept, kinds};
use crate::terminal::Style;
use crate::trusted::tests::trust;

/// What a run says that measured nothing.
const NOTHING: &str = "Nothing was measured.";

/// What a sum with samples has, on its first screen and wherever its answer stands.
#[track_caller]
fn assert_told(kind: &str, run: &Run) -> String {
    let screen = shown(run, style());
    assert_lines(&screen);
    if run.series.iter().all(|of| of.n == 0) {
        return screen;
    }
    let answer = crate::answer(run);
    assert!(answer != NOTHING && !screen.contains(NOTHING), "{kind}: {answer}\n{screen}");
    let title = subject::of(&run.as_shown());
    let (what, runs) = title.rsplit_once(", over ").unwrap();
    assert_ne!(what, "A recording", "{kind}");
    assert_eq!(runs, format!("{} runs", run.origins.len()), "{kind}: {title}");
    assert!(answer.contains(&format!("ver {runs}")), "{kind}: {answer}");
    assert!(screen.contains("\nruns"), "{kind}:\n{screen}");
    screen
}

/// Threads were never added up, and stalls and the self-test of version 1 count some of which they keep no log.
const REFUSED: [&str; 7] = ["gaps", "hourglass", "rta", "selftest", "steps", "threads", "wake"];

#[test]
fn a_sum_of_each_kind_that_merge_takes_says_what_was_measured() {
    let (mut refused, mut why) = (Vec::new(), Vec::new());
    for kind in kinds() {
        match summed(&kind) {
            Ok(run) => {
                let screen = assert_told(&kind, &run);
                assert_fits(&screen);
                assert_whole(&screen);
                if ["breakdown", "delay", "device"].contains(&kind.as_str()) {
                    insta::assert_snapshot!(format!("sum-{kind}"), screen);
                }
            }
            Err(error) => {
                why.push(format!("{kind}: {error}"));
                refused.push(kind);
            }
        }
    }
    assert_eq!(refused, REFUSED, "{why:?}");
}

/// The sum of two recordings of a kind, the second of which is not trusted from p99 on, with its first screen, its
/// whole report and its page.
fn with_one_distrusted(kind: &str, distrust: fn(&mut Run)) -> (Run, [String; 3]) {
    let run = summed_with(kind, distrust).unwrap();
    let page = crate::html::render(&kept(kind).0, &run);
    let said = [shown(&run, style()), crate::render(&run, Style::default()), page];
    assert_whole(&said[0]);
    (run, said.map(|text| text.replace("\n  ", " ")))
}

#[test]
fn a_sum_is_marked_where_one_of_its_recordings_is_not_trusted() {
    let of_box: fn(&mut Run) = |run| {
        for at in &mut run.device.as_mut().unwrap().sizes {
            at.trust = Some(trust(Some(95.0)));
        }
    };
    let of_flow: fn(&mut Run) = |run| run.flows[0].trust = Some(trust(Some(95.0)));
    let of_backends: fn(&mut Run) = |run| {
        for row in &mut run.backends.as_mut().unwrap().rows {
            row.measured.as_mut().unwrap().trust = Some(trust(Some(95.0)));
        }
    };
    for (kind, distrust) in [("device", of_box), ("rtt", of_flow), ("backends", of_backends)] {
        let (run, [screen, full, page]) = with_one_distrusted(kind, distrust);
        for (place, text) in [("screen", &screen), ("full", &full), ("page", &page)] {
            assert!(text.contains("p99 ~") && !text.contains("p50 ~"), "{kind}, {place}:\n{text}");
        }
        assert!(screen.contains("~: beyond what "), "{kind}:\n{screen}");
        for text in [&full, &page] {
            assert!(text.contains("numbers beyond p95, marked ~,"), "{kind}:\n{text}");
            assert!(text.contains("1 of 2 recordings without a calibration"), "{kind}:\n{text}");
        }
        // The row of the recording that was not calibrated has no mark.
        let rows = screen.split_once("\nruns").unwrap().1;
        let row = |name: &str| rows.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row("second").contains('~') && !row("first").contains('~'), "{kind}:\n{rows}");
        let json = serde_json::to_value(&run).unwrap();
        let of_series = json["series"].as_array().unwrap();
        let limit = |of: &serde_json::Value| of["trust"]["limit_percent"].as_f64();
        assert!(of_series.iter().any(|of| limit(of) == Some(95.0)), "{kind}");
        let of_origins = [0, 1].map(|at| {
            let shares = json["origins"][at]["series"].as_array().unwrap();
            shares.iter().any(|of| limit(of) == Some(95.0))
        });
        assert_eq!(of_origins.iter().filter(|of| **of).count(), 1, "{kind}");
        assert!(!shown(&summed(kind).unwrap(), style()).contains('~'), "{kind}");
    }
}

/// What one of two recordings of this run added to it, had `merge` taken them.
fn origin(run: &Run, directory: &str) -> Origin {
    let mut origin = kept("merge").1.origins.swap_remove(0);
    let shares = origin.series.swap_remove(0);
    directory.clone_into(&mut origin.directory);
    let of = run.series.iter().map(|of| {
        let lost = run.gaps.iter().find(|gaps| gaps.series == of.name);
        Share {
            series: of.name.clone(),
            recorded_as: of.name.clone(),
            n: of.n / 2,
            left_out: 0,
            max: of.max,
            lost_share: lost.map(|of| of.lost_share),
            lost_share_interval: None,
            quantiles: of.quantiles.clone(),
            ..shares.clone()
        }
    });
    origin.series = of.collect();
    origin
}

#[test]
fn a_sum_of_a_kind_that_merge_does_not_take_says_what_was_measured() {
    for kind in kinds() {
        let mut run = kept(&kind).1;
        run.origins = ["first", "second"].map(|name| origin(&run, name)).into();
        assert_told(&kind, &run);
    }
}
