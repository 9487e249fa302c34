//! First screens of the runs that are kept, and of what no run is large enough for.

use std::path::Path;

use whylate_model::run::Run;

use self::possible::assert_possible;
use super::*;
use crate::kept::kept;
use crate::numbers::scale::Letters;
use crate::spans::Told;

mod accounts;
mod answers;
mod backends;
mod bad;
mod boxes;
mod compare;
mod doctor;
mod lab;
mod large;
mod more;
mod once;
mod papers;
mod planted;
mod possible;
mod predicted;
mod recorded;
mod sets;
mod spent;
mod sums;

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
    let place = Place { directory: Some(Path::new("RUN")), again: true };
    first_screen(run, place, style).unwrap()
}

/// A run that something else was planted into, as this command would have made it: it has the machine and the date
/// of a recording of busy threads, and nothing of what that found.
pub(super) fn made_by(command: &str, run: Run) -> Run {
    let mut run = commanded(command, run);
    run.gaps.clear();
    run.causes.clear();
    run.worst.clear();
    run.coverage = None;
    run
}

/// The run as this command would have made it.
pub(super) fn commanded(command: &str, run: Run) -> Run {
    Run { command_line: command.split(' ').map(str::to_owned).collect(), ..run }
}

/// It has no more than 24 lines of 80 columns, no escape of a terminal, no word for which there is a better one, and
/// nothing that contradicts itself.
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
    // Of single words the check of pinned output knows the contexts.
    let is_phrase = |line: &&str| !line.starts_with('#') && !line.contains(" | only: ");
    let lines = PHRASES.lines().filter(is_phrase);
    for phrase in lines.filter_map(|line| line.split_once(" => ")).map(|(phrase, _)| phrase) {
        assert!(!flat.contains(phrase), "{phrase:?} in\n{screen}");
    }
    assert_possible(screen);
}

/// The screen of a run fits, and nothing on it contradicts anything else.
#[track_caller]
pub(super) fn assert_fits(screen: &str) {
    assert_lines(screen);
    assert_possible(screen);
}

/// It has no more than 24 lines of 80 columns, and says how far to trust it and where the rest is: of a run that is
/// not whole no more can be asked.
#[track_caller]
pub(super) fn assert_lines(screen: &str) {
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

/// No sentence of it ends before its end. Of a screen with names that somebody made too long nobody can ask that.
#[track_caller]
pub(super) fn assert_whole(screen: &str) {
    let (own, _) = screen.split_once("More:").unwrap();
    let is_command = |line: &&str| line.starts_with("Recorded ") || line.starts_with("Merged ");
    for line in own.lines().filter(|line| !is_command(line)) {
        assert!(!line.ends_with("..."), "{line:?} in\n{screen}");
    }
}

#[test]
fn the_first_screen_of_each_kept_run_says_what_it_said() {
    for kind in KINDS {
        let screen = shown(&kept(kind).1, style());
        assert_fits(&screen);
        assert_whole(&screen);
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
        // Commands and options are not broken.
        let path = |line: &&str| {
            let is_option = line.trim_start().starts_with("--");
            !is_option && !line.contains("whylate") && !line.contains("RUN/")
        };
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
    let place = Place { directory: Some(Path::new("RUN")), again: false };
    assert!(first_screen(&run, place, style()).unwrap().starts_with("CPU 1 lost"));
}

#[test]
fn a_limit_that_was_exceeded_is_said_beside_the_trust() {
    let mut run = kept("gaps").1;
    let what = "a gap of 488us, limit 100us".to_owned();
    run.verdict = Verdict::LimitExceeded { what, reasons: Vec::new() };
    let screen = shown(&run, style());
    assert!(screen.contains("Limit exceeded: ") && screen.contains("Trust: limited."), "{screen}");
    assert_fits(&screen);
}

#[test]
fn notes_without_room_are_left_out_whole_and_counted_and_lines_that_tables_leave_are_theirs() {
    let note = |at: u32| format!("Note {at} {}.", "of words ".repeat(10).trim_end());
    let of = |rows: u32, notes: u32| {
        let mut table = Table::new("", &["name", "n"]);
        (0..rows).for_each(|at| table.row([format!("row {at}"), at.to_string()]));
        let screen = Screen {
            answer: vec!["It is so.".into()],
            tables: vec![table],
            notes: (0..notes).map(note).collect(),
            more: vec!["whylate".to_owned()],
            ..Screen::default()
        };
        layout::write(&screen, style())
    };
    for (rows, notes, told, more) in [
        (30, 1, 1, None),
        (30, 2, 2, None),
        (30, 9, 2, Some("7 more notes: --full.")),
        (2, 5, 5, None),
        (2, 9, 8, Some("1 more note: --full.")),
    ] {
        let screen = of(rows, notes);
        assert!(screen.lines().count() < 24, "{screen}");
        assert_whole(&screen);
        let text = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        for at in 0..notes {
            assert_eq!(text.contains(&note(at)), at < told, "{at}:\n{screen}");
        }
        assert_eq!(text.contains(" more note"), more.is_some(), "{screen}");
        assert!(more.is_none_or(|more| text.contains(more)), "{screen}");
    }
    // What has no room in the answer stands first below it.
    let long = |of: &str| Sentence::from(Told::of(format!("{of} {}.", "and ".repeat(30))));
    let screen = Screen {
        answer: vec![long("First"), long("Second")],
        notes: vec![note(1)],
        more: vec!["whylate".to_owned()],
        ..Screen::default()
    };
    let screen = layout::write(&screen, style());
    let blocks: Vec<&str> = screen.split("\n\n").collect();
    assert!(blocks[0].starts_with("First ") && blocks[0].lines().count() == 2, "{screen}");
    assert!(blocks[1].starts_with("Second ") && blocks[1].contains("Note 1"), "{screen}");
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
    for load in 1..=8 {
        let (load, how) = (format!("hog {load}"), "killed".to_owned());
        run.warnings.push(Warning::LoadEnded { load, how });
    }
    assert!(
        trust(&run).starts_with("poor. The load `hog 1` ended early: killed ("),
        "{}",
        trust(&run)
    );
    assert!(trust(&run).contains("; and 7 more: --full."), "{}", trust(&run));
}

#[test]
fn three_causes_are_named_where_a_line_has_room() {
    let mut run = kept("gaps").1;
    let second = |run: &Run| shown(run, style()).lines().nth(2).unwrap().to_owned();
    let said = "Of that, 47% has no kernel event, 33% is IRQ entry/exit and 20% the timer tick.";
    assert_eq!(second(&run), said);
    assert_eq!(said.chars().count(), 79);
    // One letter more, and there is room for two.
    run.findings.retain(|finding| finding.rule != whylate_model::cause::Rule::R9);
    assert_eq!(second(&run), "Of that, 47% has no kernel event and 33% is IRQ entry/exit.");
}

/// Which processes they were is in the whole report.
#[test]
fn other_measurements_at_the_same_time_are_one_reason_with_what_to_do() {
    use whylate_model::warning::Warning;
    let mut run = kept("gaps").1;
    run.coverage = None;
    let trust = |run: &Run| {
        let screen = shown(run, style());
        assert_fits(&screen);
        let (_, trust) = screen.split_once("Trust: ").unwrap();
        trust.split_once("More:").unwrap().0.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    run.warnings.push(Warning::AnotherRun { pid: 7, same_cpu: false });
    let one = "limited. Another whylate was running on this machine. Wait until it has ended, and record again.";
    assert_eq!(trust(&run), one);
    // A sum has those of all its recordings.
    run.warnings.push(Warning::AnotherRun { pid: 7, same_cpu: false });
    assert_eq!(trust(&run), one);
    run.warnings.extend([8, 9].map(|pid| Warning::AnotherRun { pid, same_cpu: false }));
    assert_eq!(
        trust(&run),
        "limited. 3 other whylate processes were running on this machine. Wait until they have ended, and record \
         again."
    );
    run.warnings.push(Warning::AnotherRun { pid: 10, same_cpu: true });
    let both = "poor. Another whylate was measuring on the same CPU (wait until it has ended, and record again); 3 other \
         whylate processes were";
    assert!(trust(&run).starts_with(both), "{}", trust(&run));
}

/// The run of one CPU as one of so many, each a little worse than the one before.
fn on_cpus(many: u32) -> Run {
    let cpus = format!("whylate gaps --cpus 0-{} --duration 1s", many - 1);
    let mut run = commanded(&cpus, kept("gaps").1);
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
        // With the shares between which the others lie.
        let more = format!("and {} more, ", many as usize - rows);
        let told = screen.lines().find(|line| line.starts_with(&more));
        assert_eq!(told.is_some(), many as usize > rows, "{screen}");
        let between = told.is_none_or(|of| of.ends_with("%: --full") && of.contains('–'));
        assert!(between, "{screen}");
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
    let said = "CPU 1 lost nothing in 1.00 s: there was no stall of 321 ns or more.";
    assert_eq!(screen.lines().nth(1), Some(said), "{screen}");
    assert_fits(&screen);
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
        crate::answer(&run).contains("; the longest stall was 303 ms."),
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
