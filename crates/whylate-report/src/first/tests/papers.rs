//! First screens of papers' experiments.

use std::path::Path;

use whylate_model::paper::{
    Agreement, Brief, Here, NotHere, PAPER_VERSION, Paper, Row, Scenario, Unit,
};
use whylate_model::trust::{Level, Reason, Trust};

use super::super::{Place, first_screen_of_paper};
use super::{assert_fits, style};
use crate::kept::{RUNS, kept};
use crate::numbers::scale::Letters;
use crate::paper::Parts;
use crate::terminal::Style;

fn paper(name: &str, scenarios: Vec<Scenario>) -> Paper {
    Paper {
        format_version: PAPER_VERSION,
        tool_version: "0.1.0".to_owned(),
        command_line: ["/usr/bin/whylate", "paper", name, "--quick"].map(str::to_owned).to_vec(),
        name: name.to_owned(),
        reference: "A paper, 2002".to_owned(),
        quick: true,
        seed: 1,
        host: kept("gaps").1.host,
        scenarios,
        not_here: Vec::new(),
    }
}

fn scenario(place: &str, rows: Vec<Row>) -> Scenario {
    Scenario {
        place: place.to_owned(),
        title: "an experiment".to_owned(),
        commands: Vec::new(),
        runs: Vec::new(),
        rows,
        bars: Vec::new(),
        tables: Vec::new(),
        distributions: Vec::new(),
        effects: Vec::new(),
        notes: Vec::new(),
    }
}

/// A row: its agreement, what it is, the paper's figure, and this host's with its interval.
fn row(
    agreement: Option<Agreement>,
    (what, paper): (&str, &str),
    (value, unit): (f64, Unit),
    interval: Option<(f64, f64)>,
) -> Row {
    Row {
        what: format!("{what}, in all its words, of which there are more than fit a table"),
        paper: Some(paper.to_owned()),
        here: Some(Here { value, unit, interval, n: Some(90) }),
        without_host: None,
        why: "why they differ".to_owned(),
        agreement,
        brief: Some(Brief { what: what.to_owned(), paper: paper.to_owned() }),
    }
}

const AGREES: Option<Agreement> = Some(Agreement::Agrees);
const DIFFERS: Option<Agreement> = Some(Agreement::Differs);

/// Section 5.5 of Hourglass, as a small virtual machine had it.
pub(super) fn hourglass() -> Paper {
    let share = |agreement, words, (value, low, high)| {
        row(agreement, words, (value, Unit::Share), Some((low, high)))
    };
    let time = |words, ms| row(AGREES, words, (ms, Unit::Nanoseconds), None);
    let rows = vec![
        time(("response, task 0, analysis", "3 ms"), 3e6),
        time(("response, task 1, analysis", "29 ms"), 29e6),
        time(("response, task 1, late timer", "39 ms"), 39e6),
        share(AGREES, ("misses, task 0, usleep (10 ms)", "0 of 1,001"), (0.0, 0.0, 0.01)),
        share(AGREES, ("misses, task 1, usleep (10 ms)", "142 of 285 (50%)"), (0.51, 0.4, 0.62)),
        share(AGREES, ("misses, task 0, usleep today", "0 of 1,001"), (0.024, 0.003, 0.085)),
        share(AGREES, ("misses, task 1, usleep today", "142 of 285 (50%)"), (0.64, 0.42, 0.82)),
        share(AGREES, ("misses, task 0, fine timer", "0 of 1,003"), (0.021, 0.001, 0.11)),
        share(DIFFERS, ("misses, task 1, fine timer", "0 of 304"), (0.44, 0.24, 0.66)),
        share(AGREES, ("misses, task 0, 12 ms, usleep", "0 of 1,001"), (0.013, 0.001, 0.057)),
        share(DIFFERS, ("misses, task 1, 12 ms, usleep", "0 of 303"), (0.53, 0.33, 0.73)),
    ];
    paper("hourglass2002", vec![scenario("5.5", rows)])
}

/// Its screen; `reasons` limit its trust.
fn shown(paper: &Paper, reasons: &[&str], style: Style) -> String {
    let limited = |what: &&str| Reason { level: Level::Limited, what: (*what).to_owned() };
    let trust = Trust { reasons: reasons.iter().map(limited).collect() };
    let parts = Parts { trust, began_ns: Some(1_795_000_000_000_000_000) };
    first_screen_of_paper(
        paper,
        &parts,
        Place { directory: Some(Path::new("RUN")), again: true },
        style,
    )
}

#[test]
fn a_paper_says_first_what_differs_and_what_agrees_with_the_figures_of_both() {
    let reasons = [
        "a quick run: shorter parts, so wider intervals",
        "real-time throttling: the kernel grants 950ms in every 1.00s",
    ];
    let screen = shown(&hourglass(), &reasons, style());
    assert_fits(&screen);
    let said = "Differs in 2 of 11 figures: misses, task 1, fine timer 44% (paper 0 of 304).";
    assert_eq!(screen.lines().nth(1), Some(said), "{screen}");
    insta::assert_snapshot!("paper-hourglass2002", screen);
}

#[test]
fn of_a_paper_whose_times_have_other_ends_figures_stand_beside_each_other_and_nothing_is_judged() {
    let of = |what: &str, paper: &str, ns: f64, interval| {
        row(None, (&format!("{what}, client and server"), paper), (ns, Unit::Nanoseconds), interval)
    };
    let rows = vec![
        of("minimum", "7 µs", 15.3e3, None),
        of("median", "9 µs", 18.1e3, Some((17.9e3, 18.3e3))),
        of("p99.9", "107 µs", 871e3, Some((402e3, 2_110e3))),
        of("largest", "203 µs", 4.7e6, None),
    ];
    let mut paper = paper("pam2017", vec![scenario("6a", rows)]);
    paper.not_here.push(NotHere {
        place: "8".to_owned(),
        title: "x".to_owned(),
        would_be: "y".to_owned(),
    });
    let screen = shown(&paper, &[], style());
    assert_fits(&screen);
    assert!(!screen.contains("Differs") && !screen.contains("Agrees"), "{screen}");
    insta::assert_snapshot!("paper-pam2017", screen);
}

#[test]
fn claims_of_a_paper_agree_where_they_hold_and_those_that_cannot_be_told_are_counted() {
    let ns = |value: f64| (value, Unit::Nanoseconds);
    let mut untold = row(None, ("error, p99.99, card's stamps", "below 1 µs"), ns(0.0), None);
    untold.here = None;
    let rows = vec![
        row(DIFFERS, ("spread of the reference", "280 ns"), ns(90_400.0), None),
        untold,
        row(AGREES, ("overhead, blocking, p50", "at least 17 µs"), ns(2.1e4), Some((2e4, 2.2e4))),
        row(AGREES, ("effects captured by xdp spin", "all"), (90.0, Unit::Count), None),
        row(
            DIFFERS,
            ("p99.99 drop, power saving off", "2.6 times"),
            (1.4, Unit::Ratio),
            Some((1.1, 1.8)),
        ),
        row(
            DIFFERS,
            ("throughput", "94 Mbit/s"),
            (8.3e9, Unit::BitsPerSecond),
            Some((7.57e9, 8.92e9)),
        ),
        row(DIFFERS, ("stalls", "about 100/s"), (1_018.0, Unit::PerSecond), Some((950.0, 1_100.0))),
    ];
    let reason = "a quick run: shorter parts, so wider intervals";
    let screen = shown(&paper("killer2017", vec![scenario("fig2", rows)]), &[reason], style());
    assert_fits(&screen);
    assert!(screen.contains("1 more figure of the paper is not compared"), "{screen}");
    insta::assert_snapshot!("paper-killer2017", screen);
}

#[test]
fn a_paper_of_any_number_of_figures_with_any_names_fits() {
    for (letters, ascii) in [("x", true), ("\u{1b}[31m<b>", true), ("漢字\u{202e}", false)] {
        let long = |mut row: Row| {
            for text in [&mut row.what, &mut row.why] {
                *text = letters.repeat(900);
            }
            row.brief = Some(Brief { what: letters.repeat(900), paper: letters.repeat(900) });
            row
        };
        let rows: Vec<Row> = (0..60)
            .flat_map(|_| hourglass().scenarios.remove(0).rows)
            .enumerate()
            .map(|(at, row)| if at % 3 == 0 { long(row) } else { row })
            .collect();
        let mut paper = paper("hourglass2002", vec![scenario("5.5", rows)]);
        paper.scenarios[0].place = letters.repeat(40);
        let reasons: Vec<String> = (0..40).map(|of| format!("reason {of} {letters}")).collect();
        let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
        let screen = shown(&paper, &reasons, style());
        assert!(screen.lines().count() < 24, "{screen}");
        assert!(screen.lines().all(|line| crate::render::columns(line) <= 80), "{screen}");
        assert!(screen.contains("more: --full"), "{screen}");
        assert!(!screen.contains('\u{1b}') && !screen.contains('\u{202e}'), "{screen:?}");
        let plain = shown(&paper, &reasons, Style { letters: Letters::Plain, ..Style::default() });
        assert!(!ascii || plain.is_ascii(), "{plain}");
        let narrow = shown(&hourglass(), &[], Style { width: 40, ..style() });
        let (text, _) = narrow.split_once("More:").unwrap();
        assert!(text.lines().all(|line| crate::render::columns(line) <= 40), "{narrow}");
    }
}

#[test]
fn a_paper_of_which_nothing_was_measured_says_so() {
    let mut paper = paper("pam2017", vec![scenario("4", Vec::new())]);
    paper.scenarios[0].notes.push("not done: no network".to_owned());
    let parts = Parts::read(Path::new(RUNS), &paper);
    assert_eq!(parts.trust.level(), Level::Poor);
    let place = Place { directory: Some(Path::new("RUN")), again: false };
    let screen = first_screen_of_paper(&paper, &parts, place, style());
    assert_fits(&screen);
    assert!(screen.starts_with("No figure of the paper was measured.\n"), "{screen}");
    assert!(screen.contains("Trust: poor. Nothing was measured;"), "{screen}");
}

/// What its runs say limits it, the more of them the earlier; what one of them lacks spoils no other.
#[test]
fn a_paper_is_trusted_as_far_as_its_runs_and_what_was_not_done() {
    let mut paper = hourglass();
    paper.scenarios[0].runs =
        ["wake", "gaps", "none", "../gaps", "wake"].map(str::to_owned).to_vec();
    paper.scenarios.push(scenario("5.6", Vec::new()));
    paper.scenarios[1].notes.push("not done: no reservation".to_owned());
    let parts = Parts::read(Path::new(RUNS), &paper);
    let reasons: Vec<&str> = parts.trust.reasons.iter().map(|of| of.what.as_str()).collect();
    assert_eq!(
        &reasons[..3],
        [
            "a quick run: shorter parts, so wider intervals",
            "5.6 was not done: no reservation",
            "the run none cannot be read",
        ]
    );
    assert!(
        reasons[3..].iter().all(|of| of.ends_with("(wake)") || of.ends_with("(gaps)")),
        "{reasons:?}"
    );
    assert!(parts.trust.reasons.iter().all(|of| of.level == Level::Limited), "{reasons:?}");
    assert!(parts.began_ns.is_some());
    // Of a run that stands alone what spoils it spoils the paper.
    paper.scenarios.truncate(1);
    paper.scenarios[0].runs = vec!["selftest".to_owned()];
    let parts = Parts::read(Path::new(RUNS), &paper);
    assert_eq!(parts.trust.level(), Level::Poor, "{parts:?}");
    let text = crate::full_of_paper(&paper, &parts.trust, Style::default());
    assert!(text.contains("\nTrust: poor, do not use the headline:\n  - "), "{text}");
    let page = crate::paper::page(Path::new(RUNS), &paper);
    assert!(page.contains("<h2>Trust: poor</h2>"), "{page}");
}
