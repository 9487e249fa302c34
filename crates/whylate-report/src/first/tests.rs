//! First screens of the runs that are kept, and of what no run is large enough for.

use std::path::Path;

use whylate_model::run::Run;

use super::*;
use crate::kept::kept;
use crate::numbers::scale::Letters;

mod accounts;
mod backends;
mod bad;
mod boxes;
mod compare;
mod doctor;
mod lab;
mod large;
mod papers;
mod planted;
mod predicted;
mod sets;
mod spent;

/// Kinds of runs that have a first screen.
const KINDS: [&str; 10] = [
    "checkup",
    "gaps",
    "hourglass",
    "merge",
    "rta",
    "rtt",
    "selftest",
    "switch-cost",
    "threads",
    "wake",
];

/// Phrases that no user is to read.
const PHRASES: &str = include_str!("../../../../docs/phrases.txt");

/// What stands in no sentence for a user, each with what stands in its place.
const INSTEAD: [(&str, &str); 20] = [
    ("what a busy thread did not get", "lost time"),
    (" gap", "stall"),
    ("host", "hypervisor, or this machine"),
    ("residual", "no kernel event, or IRQ entry/exit"),
    ("entry/exit/inner", "IRQ entry/exit"),
    ("interrupt local_timer", "timer tick"),
    ("(ordinary)", "(normal)"),
    ("lateness", "wake-up latency, or send delay"),
    ("passed over", "skipped wake-up"),
    ("activation", "wake-up"),
    ("named after", "preempted by"),
    ("ask for", "utilisation"),
    ("prio ", "nothing"),
    ("pid ", "the name"),
    ("(R6)", "nothing"),
    ("(R8)", "nothing"),
    ("untrustworthy", "poor"),
    ("verdict", "trust"),
    ("0.00 ", "<0.01"),
    ("-0", "0"),
];

pub(super) fn style() -> Style {
    Style { letters: Letters::Unicode, ..Style::default() }
}

/// The screen as `report` shows it.
pub(super) fn shown(run: &Run, style: Style) -> String {
    let place = Place { directory: Path::new("RUN"), again: true };
    first_screen(run, place, style).unwrap()
}

/// It has no more than 24 lines of 80 columns, no escape of a terminal, and no word for which there is a
/// better one.
pub(super) fn assert_small(screen: &str) {
    // The command of the user is a line, too.
    assert!(screen.lines().count() < 24, "{} lines:\n{screen}", screen.lines().count());
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "{line:?} in\n{screen}");
    }
    assert!(!screen.contains('\u{1b}') && screen.contains("\nMore:  "), "{screen:?}");
    // A command is what it is, and so is where a test lies.
    let folder = std::env::temp_dir().display().to_string();
    let own = screen.split_once("More:").unwrap().0.replace(&folder, "").to_lowercase();
    let own = own.replace("whylate gaps", "");
    for (word, better) in INSTEAD {
        assert!(!own.contains(word), "{word:?} for {better:?}:\n{screen}");
    }
    let flat = own.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = PHRASES.lines().filter(|line| !line.starts_with('#'));
    for phrase in lines.filter_map(|line| line.split_once(" => ")).map(|(phrase, _)| phrase) {
        assert!(!flat.contains(phrase), "{phrase:?} in\n{screen}");
    }
}

/// The same of a run, whose screen says how far to trust it and where the rest is.
pub(super) fn assert_fits(screen: &str) {
    // The command of the user is a line, too.
    assert!(screen.lines().count() < 24, "{} lines:\n{screen}", screen.lines().count());
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "{line:?} in\n{screen}");
    }
    assert!(
        screen.contains("Trust: ") && screen.contains("More:  whylate report RUN --full"),
        "{screen}"
    );
}

#[test]
fn the_first_screen_of_each_kept_run_says_what_it_said() {
    for kind in KINDS {
        let screen = shown(&kept(kind).1, style());
        assert_fits(&screen);
        insta::assert_snapshot!(kind, screen);
    }
}

#[test]
fn no_first_screen_has_a_word_for_which_there_is_a_better_one() {
    for kind in KINDS {
        let screen = shown(&kept(kind).1, style());
        // What the user wrote is his.
        let own = screen.split_once('\n').unwrap().1.split_once("More:").unwrap().0.to_lowercase();
        for (word, better) in INSTEAD {
            assert!(!own.contains(word), "{kind} has {word:?} for {better:?}:\n{screen}");
        }
    }
}

#[test]
fn a_terminal_without_letters_beyond_ascii_gets_none() {
    for kind in KINDS {
        let screen = shown(&kept(kind).1, Style { letters: Letters::Plain, ..Style::default() });
        assert!(screen.is_ascii(), "{screen}");
        assert_fits(&screen);
    }
}

/// Words of a table stay whole where its columns have no room side by side.
#[test]
fn a_narrow_terminal_wraps_everything_and_breaks_no_word_of_a_table() {
    for kind in KINDS {
        let run = kept(kind).1;
        let wide = shown(&run, style());
        let narrow = shown(&run, Style { width: 40, ..style() });
        let path = |line: &&str| !line.contains("whylate") && !line.contains("RUN/");
        for line in narrow.lines().filter(path) {
            assert!(line.chars().count() <= 40, "{line:?} in\n{narrow}");
        }
        let words: Vec<&str> = narrow.split_whitespace().collect();
        let tables = wide.split_once("\n\n").unwrap().1.split_once("Trust:").unwrap().0;
        for word in tables.split_whitespace() {
            assert!(words.contains(&word), "{word} is not whole in\n{narrow}");
        }
    }
}

#[test]
fn a_run_that_is_shown_again_begins_with_its_date_and_command() {
    let mut run = kept("gaps").1;
    let first = |run: &Run| shown(run, style()).lines().next().unwrap().to_owned();
    assert_eq!(
        first(&run),
        "Recorded 2026-11-21 16:22 UTC by: whylate gaps --cpus 1 --duration 1s --warmu..."
    );
    run.command_line = vec!["/usr/bin/whylate".to_owned(), "gaps".to_owned(), "a b".to_owned()];
    assert!(first(&run).ends_with("UTC by: whylate gaps 'a b'"), "{}", first(&run));
    run.command_line.clear();
    assert_eq!(first(&run), "Recorded 2026-11-21 16:22 UTC");
    let place = Place { directory: Path::new("RUN"), again: false };
    assert!(first_screen(&run, place, style()).unwrap().starts_with("CPU 1 lost"));
}

#[test]
fn a_limit_that_was_exceeded_is_said_beside_the_trust() {
    let mut run = kept("gaps").1;
    run.verdict = Verdict::LimitExceeded { what: "a gap of 488us, limit 100us".to_owned() };
    let screen = shown(&run, style());
    assert!(screen.contains("Limit exceeded: ") && screen.contains("Trust: limited."), "{screen}");
    assert_fits(&screen);
}

#[test]
fn at_most_two_reasons_are_told_and_the_others_are_counted() {
    use whylate_model::warning::Warning;
    let mut run = kept("gaps").1;
    run.coverage = None;
    let trust = |run: &Run| {
        let screen = shown(run, style());
        assert_fits(&screen);
        let from = screen.split_once("Trust: ").unwrap().1;
        from.split_once("More:").unwrap().0.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(trust(&run), "good.");
    run.warnings.push(Warning::NoHousekeepingCpu);
    assert!(
        trust(&run).starts_with("limited. No CPU was left for whylate's own work"),
        "{}",
        trust(&run)
    );
    for pid in 1..=8 {
        run.warnings.push(Warning::AnotherRun { pid, same_cpu: true });
    }
    assert!(trust(&run).starts_with("poor. Another whylate was measuring"), "{}", trust(&run));
    assert!(trust(&run).contains("; and 7 more: --full."), "{}", trust(&run));
}

/// The run of one CPU as one of so many, each a little worse than the one before.
fn on_cpus(many: u32) -> Run {
    let mut run = kept("gaps").1;
    let (gaps, series) = (run.gaps.remove(0), run.series.remove(0));
    let of_cpu = run.causes.clone();
    for cpu in 0..many {
        let name = format!("gap-cpu{cpu}");
        let lost_share = 0.001 * f64::from(cpu + 1);
        let cpu_id = whylate_model::CpuId(cpu);
        let label = format!("gaps, CPU {cpu}");
        run.series.push(whylate_model::series::Series {
            name: name.clone(),
            label,
            ..series.clone()
        });
        run.gaps.push(whylate_model::run::GapSummary {
            cpu: cpu_id,
            series: name,
            lost_share,
            lost_share_interval: Some((0.9 * lost_share, 1.2 * lost_share)),
            ..gaps.clone()
        });
        let own = of_cpu.iter().filter(|total| total.cpu.is_none());
        run.causes.extend(
            own.map(|total| whylate_model::cause::CauseTotal {
                cpu: Some(cpu_id),
                ..total.clone()
            }),
        );
    }
    run
}

#[test]
fn of_many_cpus_the_worst_stand_first_and_the_others_are_counted() {
    for (many, rows) in [(2, 2), (8, 8), (9, 5), (64, 5), (512, 5)] {
        let screen = shown(&on_cpus(many), style());
        assert_fits(&screen);
        let worst = many - 1;
        let of_cpu =
            screen.lines().filter(|line| line.starts_with("CPU ") && !line.contains("lost"));
        assert_eq!(of_cpu.clone().count(), rows, "{screen}");
        let first = of_cpu.clone().next().unwrap();
        assert!(first.starts_with(&format!("CPU {worst} ")), "{screen}");
        let said = format!("CPU {worst} lost most: ");
        assert!(screen.lines().nth(1).unwrap().starts_with(&said), "{screen}");
        let more = format!("and {} more: --full", many as usize - rows);
        assert_eq!(screen.contains(&more), many as usize > rows, "{screen}");
    }
    insta::assert_snapshot!("gaps-64", shown(&on_cpus(64), style()));
}

#[test]
fn a_run_without_a_stall_says_so_and_invents_no_number() {
    let mut run = kept("gaps").1;
    run.series[0].max = None;
    run.series[0].n = 0;
    (run.gaps[0].gaps, run.gaps[0].lost_share) = (0, 0.0);
    run.gaps[0].lost = whylate_model::Nanos(0);
    run.gaps[0].rates.clear();
    run.causes.clear();
    run.worst.clear();
    run.coverage = None;
    let screen = shown(&run, style());
    let said = "CPU 1 lost nothing in 1 s: there was no stall of 321 ns or more.";
    assert_eq!(screen.lines().nth(1), Some(said), "{screen}");
    assert_fits(&screen);
}

/// Figures of an answer that are no cell: sums over rows or runs, what a column is short of another, the number
/// of runs, the share that a percentile leaves.
const OF_SEVERAL: [(&str, &str); 17] = [
    ("checkup", "50.9%"),
    ("checkup", "48.7–52.6%"),
    ("gaps", "1.8–2.3%"),
    ("hourglass", "2"),
    ("hourglass", "143 ms"),
    ("hourglass", "448 ms"),
    ("merge", "2"),
    ("merge", "400 ms"),
    ("rta", "15"),
    ("rta", "164 µs"),
    ("rtt", "1%"),
    ("threads", "69"),
    ("threads", "12%"),
    ("selftest-2", "158"),
    ("selftest-2", "97.7–100%"),
    ("selftest-2", "158"),
    ("selftest-2", "97.7–100%"),
];

/// The numbers of an answer, each with the unit of a time behind it. Which CPU it is, and with which certainty an
/// interval holds, are no figures.
fn figures(answer: &str) -> Vec<String> {
    let words: Vec<&str> =
        answer.split_whitespace().map(|word| word.trim_matches(BESIDE)).collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let named = at.checked_sub(1).is_some_and(|before| words[before] == "CPU");
        let is_figure = word.starts_with(|letter: char| letter.is_ascii_digit());
        if is_figure && !named && *word != "95%" {
            let unit = words.get(at + 1).filter(|unit| time(unit).is_some());
            found.push(unit.map_or((*word).to_owned(), |unit| format!("{word} {unit}")));
        }
    }
    found
}

/// What stands around a number.
const BESIDE: [char; 7] = ['(', ')', ',', ';', '.', ':', '≥'];

/// A unit in ns.
fn time(unit: &str) -> Option<f64> {
    [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]
        .into_iter()
        .find_map(|(of, ns)| (of == unit).then_some(ns))
}

/// A number, and what its last digit is worth.
fn number(word: &str) -> Option<(f64, f64)> {
    let plain = word.trim_matches(BESIDE).replace(',', "");
    let digits = plain.split_once('.').map_or(0, |(_, behind)| behind.len());
    Some((plain.parse().ok()?, 10_f64.powi(-(digits as i32))))
}

/// Does a cell hold it? A time is shorter in a sentence, and its cell has the unit of a head.
fn is_in(figure: &str, tables: &str) -> bool {
    let words = || tables.split_whitespace();
    let Some((figure, unit)) = figure.split_once(' ') else {
        return words().any(|word| word.trim_matches(BESIDE) == figure);
    };
    let ((length, exact), ns) = (number(figure).unwrap(), time(unit).unwrap());
    let units: Vec<f64> = words().filter_map(time).collect();
    let near = |(cell, of_cell): (f64, f64), unit: f64| {
        let (apart, of_cell) = ((cell * unit - length * ns).abs(), of_cell * unit);
        // What has no more digits than a count must be the same.
        apart < 1e-3 || (of_cell < 0.1 * length * ns && apart <= exact * ns + of_cell / 2.0)
    };
    words().filter_map(number).any(|cell| units.iter().any(|unit| near(cell, *unit)))
}

#[test]
fn the_numbers_of_the_answer_stand_in_the_tables() {
    let mut of_several = Vec::new();
    // Of the self-test of version 1 nothing can be judged: it has no table.
    for kind in KINDS.into_iter().filter(|kind| *kind != "selftest").chain(["selftest-2"]) {
        let screen = shown(&kept(kind).1, style());
        let (answer, tables) = screen.split_once("\n\n").unwrap();
        let (tables, _) = tables.split_once("Trust: ").unwrap();
        // The first line is the user's command.
        let figures = figures(answer.split_once('\n').unwrap().1);
        assert!(!figures.is_empty(), "{screen}");
        let missing = figures.into_iter().filter(|figure| !is_in(figure, tables));
        of_several.extend(missing.map(|figure| (kind, figure)));
    }
    let expected = OF_SEVERAL.map(|(kind, figure)| (kind, figure.to_owned()));
    assert_eq!(of_several, expected);
}

#[test]
fn the_longest_stall_is_that_of_the_report_where_a_reading_met_it_too() {
    use whylate_model::series::{Definition, Series};
    let mut run = kept("gaps").1;
    let thread = run.gaps[0].series.replace("gap-", "delta-");
    let max = Some(whylate_model::Nanos(303_000_000));
    let definition = Definition::ReadDelta;
    run.series.push(Series { name: thread, definition, max, ..run.series[0].clone() });
    let screen = shown(&run, style());
    assert!(screen.contains("; the longest stall was 303 ms."), "{screen}");
    assert!(
        crate::answer(&run).contains("; the longest stall was 303 ms, "),
        "{}",
        crate::answer(&run)
    );
}

#[test]
fn the_name_of_a_file_stays_as_it_is_where_a_sentence_begins() {
    let mut run = kept("gaps").1;
    run.files.problems.push("gaps-0001.parquet is missing".to_owned());
    let screen = shown(&run, style());
    assert!(screen.contains("Trust: poor. gaps-0001.parquet is missing"), "{screen}");
    assert_eq!(trusted::upper("another whylate"), "Another whylate");
}

/// Names of a run may be as long as somebody likes, and hold whatever.
#[test]
fn a_name_of_any_length_has_its_place_and_no_more() {
    use whylate_model::cause::{Cause, PriorityClass};
    let mut run = kept("gaps").1;
    let comm = "\u{1b}[31m".to_owned() + &"x".repeat(5_000);
    for total in run.causes.iter_mut().filter(|total| total.lost_ns > 5e6) {
        total.cause = Cause::Thread { comm: comm.clone(), class: PriorityClass::Ordinary };
    }
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
}

#[test]
fn a_shell_takes_each_word_of_a_command_as_it_is() {
    for (word, quoted) in [
        ("run-1/a:b,c=d+e@f%g", "run-1/a:b,c=d+e@f%g"),
        ("", "''"),
        ("two words", "'two words'"),
        ("~root", "'~root'"),
        ("$(reboot)", "'$(reboot)'"),
        ("it's $HOME `id` \"x\"", r#"'it'\''s $HOME `id` "x"'"#),
        ("a\nb'\u{202e}\\", r"$'a\x0ab\'\U0000202e\\'"),
        ("µ", "µ"),
    ] {
        assert_eq!(for_a_shell(word), quoted);
    }
}
