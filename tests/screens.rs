//! First screens and whole reports where there is no terminal, another locale, few columns or no standard output.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use whylate_model::paper::{Agreement, Brief, Here, PAPER_VERSION, Paper, Row, Scenario, Unit};

use crate::kept::KINDS;
use crate::needs;
use crate::program::{self, as_used, said};

/// What a run is asked to be shown as.
const FORMS: [&[&str]; 2] = [&[], &["--full"]];

/// The kept runs, and a paper.
fn directories(home: &Path) -> Vec<PathBuf> {
    let kept = KINDS.into_iter().map(|kind| program::file("runs").join(kind));
    kept.chain([paper(home)]).collect()
}

/// A paper of one figure, whose name nobody should have.
fn paper(home: &Path) -> PathBuf {
    let place = home.join("paper");
    std::fs::create_dir_all(&place).unwrap();
    let what = "misses\u{1b}[31m, \u{202e}<b>task</b>";
    let interval = Some((0.4, 0.6));
    let row = Row {
        what: what.to_owned(),
        paper: Some("142 of 285".to_owned()),
        here: Some(Here { value: 0.5, unit: Unit::Share, interval, n: Some(90) }),
        without_host: None,
        why: "the intervals overlap".to_owned(),
        agreement: Some(Agreement::Agrees),
        brief: Some(Brief { what: what.to_owned(), paper: "142 of 285 (50%)".to_owned() }),
    };
    let scenario = Scenario {
        place: "5.5".to_owned(),
        title: "deadlines".to_owned(),
        commands: Vec::new(),
        runs: Vec::new(),
        rows: vec![row],
        bars: Vec::new(),
        tables: Vec::new(),
        distributions: Vec::new(),
        effects: Vec::new(),
        notes: Vec::new(),
    };
    let paper = Paper {
        format_version: PAPER_VERSION,
        tool_version: "0.1.0".to_owned(),
        command_line: vec!["whylate".to_owned(), "paper".to_owned()],
        name: "hourglass2002".to_owned(),
        reference: "a paper".to_owned(),
        quick: false,
        seed: 1,
        host: program::read(&program::file("runs/gaps")).host,
        scenarios: vec![scenario],
        not_here: Vec::new(),
    };
    paper.write(&place).unwrap();
    place
}

/// `whylate report` of it, which may speak of colour as the caller has it.
fn report(place: &Path, words: &[&str]) -> Command {
    let mut command = as_used(["report"]);
    command.arg(place).args(words).env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8");
    command
}

fn text(output: Output) -> String {
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_paper_is_shown_as_its_first_screen_unless_all_of_it_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let place = paper(home.path());
    let first = text(report(&place, &[]).output().unwrap());
    assert!(
        first.starts_with("Recorded by: whylate paper\nAgrees in 1 of 1 figure: misses"),
        "{first}"
    );
    assert!(first.lines().count() < 24 && first.contains("\nTrust: good.\n"), "{first}");
    let whole = text(report(&place, &["--full"]).output().unwrap());
    assert!(whole.starts_with("hourglass2002, repeated\n"), "{whole}");
    assert!(whole.ends_with("\nTrust: good.\n"), "{whole}");
    let json: serde_json::Value =
        serde_json::from_str(&text(report(&place, &["--format", "json"]).output().unwrap()))
            .unwrap();
    assert_eq!(json["scenarios"][0]["rows"][0]["agreement"], "agrees");
}

#[test]
fn no_escape_sequence_leaves_a_report_that_goes_to_no_terminal() {
    let home = tempfile::tempdir().unwrap();
    for place in directories(home.path()) {
        for words in FORMS {
            let said = text(report(&place, words).output().unwrap());
            let moves = |letter: char| letter.is_control() && letter != '\n';
            assert!(!said.contains(moves) && !said.contains('\u{202e}'), "{place:?} {words:?}");
        }
    }
}

#[test]
fn a_terminal_has_colours_and_with_no_color_the_same_text_without() {
    let Some(script) = needs::program("script") else { return };
    let home = tempfile::tempdir().unwrap();
    for place in directories(home.path()) {
        let on_terminal = |no_color: Option<&str>| {
            let mut command = Command::new(&script);
            let program = program::path().display();
            command.args([
                "-qec",
                &format!("'{program}' report '{}'", place.display()),
                "/dev/null",
            ]);
            command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm").stdin(Stdio::null());
            command.env_remove("COLUMNS").env_remove("NO_COLOR");
            no_color.map(|no| command.env("NO_COLOR", no));
            text(command.output().unwrap()).replace('\r', "")
        };
        let (plain, coloured) = (on_terminal(Some("1")), on_terminal(None));
        assert!(!plain.contains('\u{1b}'), "{place:?}: {plain:?}");
        assert!(coloured.contains("\u{1b}[1m"), "{place:?}: {coloured:?}");
        let mut without = String::new();
        for (at, part) in coloured.split('\u{1b}').enumerate() {
            without.push_str(if at == 0 { part } else { part.split_once('m').unwrap().1 });
        }
        assert_eq!(without, plain, "{place:?}");
    }
}

#[test]
fn columns_and_letters_are_those_of_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    for place in directories(home.path()) {
        let shown = |columns: &str, locale: &str| {
            let mut command = report(&place, &[]);
            command.env("COLUMNS", columns).env("LC_ALL", locale);
            text(command.output().unwrap())
        };
        let path = |line: &&str| !line.contains("whylate") && !line.contains("Page: ");
        for columns in ["40", "200"] {
            let said = shown(columns, "C.UTF-8");
            let (said, _) = said.split_once("More:").unwrap_or((&said, ""));
            let most = columns.parse().unwrap();
            for line in said.lines().filter(path) {
                assert!(line.chars().count() <= most, "{place:?}, {columns}: {line}");
            }
        }
        for columns in ["40", "80", "200"] {
            let plain = shown(columns, "C");
            assert!(plain.is_ascii(), "{place:?}: {plain}");
            let both = [["µs", "us"], ["–", "-"], ["≥", ">="], ["±", "+-"], ["−", "-"]];
            let unicode = both
                .iter()
                .fold(shown("200", "C.UTF-8"), |text, [letter, plain]| text.replace(letter, plain));
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert!(columns != "200" || words(&plain) == words(&unicode), "{plain}\n{unicode}");
        }
    }
}

#[test]
fn a_report_that_nobody_can_read_ends_as_it_would_and_one_that_cannot_be_written_with_1() {
    let home = tempfile::tempdir().unwrap();
    for place in directories(home.path()) {
        for words in FORMS {
            let read = report(&place, words).output().unwrap();
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let unread = report(&place, words).stdout(writer).output().unwrap();
            assert_eq!((unread.status, &unread.stderr), (read.status, &read.stderr), "{place:?}");
            // Standard output that is closed is none: there is nothing to write to, and nothing fails.
            let mut closed = Command::new("sh");
            closed.args(["-c", "exec \"$@\" >&-", "sh"]).arg(program::path()).arg("report");
            let closed = closed.arg(&place).args(words).output().unwrap();
            assert_eq!((closed.status, &closed.stderr), (read.status, &read.stderr), "{place:?}");
            let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
            let full = report(&place, words).stdout(full).output().unwrap();
            assert_eq!(full.status.code(), Some(1), "{place:?}: {}", said(&full));
            assert!(said(&full).contains("cannot write to standard output"), "{}", said(&full));
        }
    }
}
