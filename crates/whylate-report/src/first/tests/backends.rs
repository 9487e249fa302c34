//! First screens of backends that are compared: some faster, none, many, and names that nobody should have.

use whylate_model::backends::{BackendRole, BackendRow, Claim};
use whylate_model::run::Run;

use super::{assert_fits, assert_small, made_by, shown, style};
use crate::backends::tests::planted;
use crate::numbers::scale::Letters;
use crate::render::columns;
use crate::terminal::Style;

fn screen(run: &Run) -> String {
    let command = "whylate rtt --bed lab --compare-backends udp,xdp,packet";
    let screen = shown(&made_by(command, run.clone()), style());
    assert_fits(&screen);
    assert_small(screen.split_once('\n').unwrap().1);
    screen
}

/// The screen of the planted comparison with other rows, its lines joined.
fn of_rows(change: impl FnOnce(&mut Vec<BackendRow>)) -> String {
    let mut run = planted();
    change(&mut run.backends.as_mut().unwrap().rows);
    screen(&run).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn claims(rows: &mut [BackendRow], claim: &Claim) {
    for saved in rows.iter_mut().flat_map(|row| &mut row.saved) {
        saved.claim = saved.claim.as_ref().map(|_| claim.clone());
    }
}

#[test]
fn backends_are_told_by_what_each_saves_with_its_interval_and_why_one_is_missing() {
    let screen = screen(&planted());
    let said = "xdp spin saves 5.00 µs (95% CI 4.95–5.05 µs) of udp spin's p50 (10 µs).";
    assert!(screen.lines().any(|line| line == said), "{screen}");
    assert!(screen.contains("packet spin (it needs CAP_NET_RAW)."), "{screen}");
    insta::assert_snapshot!("backends", screen);
}

#[test]
fn of_several_that_save_the_one_that_saves_most_is_named_and_the_slower_are_counted() {
    let screen = of_rows(|rows| {
        for (at, claim) in [Claim::Saves, Claim::Costs, Claim::NoDifference].into_iter().enumerate()
        {
            let mut row = rows[2].clone();
            row.backend = format!("other{at}");
            let (saved, mean_ns) = (&mut row.saved[0], [4_000.0, -3_000.0, 10.0][at]);
            (saved.mean_ns, saved.claim) = (mean_ns, Some(claim));
            saved.interval_ns = Some((mean_ns - 50.0, mean_ns + 50.0));
            rows.push(row);
        }
    });
    assert!(screen.contains("xdp spin saves most: 5.00 µs"), "{screen}");
    assert!(screen.contains("save time: 2 of 4 backends; to take longer: 1."), "{screen}");
    for claim in ["faster", "slower", "not shown", "not measured"] {
        assert!(screen.contains(claim), "{claim}: {screen}");
    }
}

#[test]
fn where_no_backend_is_faster_that_is_the_answer_and_why_it_cannot_be_judged_stands_below() {
    let none = "No backend is shown to be faster than udp spin (p50 10 µs).";
    let why = "udp spin differs from itself by up to +-9% (at most 3% is allowed)".to_owned();
    let screen = of_rows(|rows| claims(rows, &Claim::Nothing { why }));
    assert!(screen.contains(none), "{screen}");
    assert!(
        screen.contains("xdp spin cannot be judged: udp spin differs from itself by up to ±9%"),
        "{screen}"
    );
    assert!(screen.contains("--compare-backends --rounds 20"), "{screen}");
    let screen = of_rows(|rows| claims(rows, &Claim::Costs));
    assert!(screen.contains(none) && screen.contains("Shown to be slower: 1 of 1."), "{screen}");
    let screen = of_rows(|rows| claims(rows, &Claim::NoDifference));
    assert!(screen.contains(none) && !screen.contains("slower"), "{screen}");
}

#[test]
fn where_none_was_measured_nothing_is_compared_and_the_reason_is_told() {
    let without = |rows: &mut Vec<BackendRow>, roles: &[BackendRole]| {
        for row in rows.iter_mut().filter(|row| roles.contains(&row.role)) {
            (row.measured, row.saved) = (None, Vec::new());
            row.reason = Some("no right to it".to_owned());
        }
    };
    let alone = of_rows(|rows| without(rows, &[BackendRole::Compared]));
    assert!(alone.contains("No other backend was measured than udp spin."), "{alone}");
    assert!(alone.contains("xdp spin (no right to it)"), "{alone}");
    let all = [BackendRole::First, BackendRole::Control, BackendRole::Compared];
    let none = of_rows(|rows| without(rows, &all));
    assert!(none.contains("No backend was measured that others can be compared with."), "{none}");
    assert!(none.contains("udp spin (no right to it)") && !none.contains("Saved:"), "{none}");
    assert!(of_rows(Vec::clear).contains("No backend was measured"));
}

#[test]
fn of_many_backends_those_that_do_not_fit_are_counted() {
    let mut run = planted();
    let rows = &mut run.backends.as_mut().unwrap().rows;
    let (there, missing) = (rows[2].clone(), rows[3].clone());
    rows.extend((0..40).map(|at| BackendRow { backend: format!("way{at}"), ..there.clone() }));
    rows.extend((0..40).map(|_| missing.clone()));
    let screen = screen(&run);
    assert!(screen.contains("41 of 41 backends are shown to save time."), "{screen}");
    assert!(
        screen.contains("\nand ") && screen.contains("or incomplete (41): packet spin"),
        "{screen}"
    );
}

#[test]
fn a_backend_of_any_name_is_told_on_terminals_of_40_80_and_200_columns() {
    let names = ["\u{1b}[31mred\n\u{202e}", "漢字🦀", "<b>&"].map(|name| name.repeat(40));
    for (width, letters) in [(40, Letters::Plain), (80, Letters::Unicode), (200, Letters::Unicode)]
    {
        for name in names.iter().chain([&"x".repeat(4_000)]) {
            let mut run = planted();
            for row in &mut run.backends.as_mut().unwrap().rows {
                row.backend.push_str(name);
                row.reason = Some(name.clone());
            }
            let screen = shown(&run, Style { width, letters, ..Style::default() });
            let (text, _) = screen.split_once("More:").unwrap();
            let bad =
                |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
            assert!(!text.contains(bad), "{screen:?}");
            assert!(text.lines().all(|line| columns(line) <= width), "{screen}");
            assert!(width < 80 || screen.lines().count() < 24, "{screen}");
        }
    }
}
