//! Whole reports of what is no run, of names that nobody should have.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use whylate_model::paper::{PAPER_VERSION, Scenario, TextTable};

use super::*;
use crate::compare::{Request, compare};
use crate::kept::{RUNS, kept};
use crate::render::{columns, plain};

/// What a name of a thread, a process, a machine or a file may hold.
const NAMES: [&str; 4] = [
    "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J",
    "<script>alert(1)</script>\"'&<img src=x>",
    "\u{202e}\u{200f}\u{61c}\u{2066}txet 漢字🦀",
    "two\r\nlines\tand\u{2028}more",
];

/// The same with these letters behind each word that may be any.
fn named<T: Serialize + DeserializeOwned>(of: &T, letters: &str) -> T {
    let mut value = serde_json::to_value(of).unwrap();
    let mut places = Vec::new();
    texts(&value, String::new(), &mut places);
    assert!(!places.is_empty());
    for place in places {
        let mut changed = value.clone();
        if let Some(Value::String(text)) = changed.pointer_mut(&place) {
            text.push_str(letters);
        }
        if serde_json::from_value::<T>(changed.clone()).is_ok() {
            value = changed;
        }
    }
    serde_json::from_value(value).unwrap()
}

/// Where the texts of a value are.
fn texts(value: &Value, place: String, all: &mut Vec<String>) {
    match value {
        Value::String(_) => all.push(place),
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                texts(value, format!("{place}/{at}"), all);
            }
        }
        Value::Object(object) => {
            for (name, value) in object {
                texts(value, format!("{place}/{name}"), all);
            }
        }
        _ => {}
    }
}

/// A paper of one experiment with a table of its own.
fn paper() -> Paper {
    let table = TextTable {
        caption: "a table".to_owned(),
        head: ["", "here"].map(str::to_owned).to_vec(),
        rows: vec![["a row", "1"].map(str::to_owned).to_vec()],
        left: vec![1, 7],
    };
    Paper {
        format_version: PAPER_VERSION,
        tool_version: "0.1.0".to_owned(),
        command_line: Vec::new(),
        name: "hourglass2002".to_owned(),
        reference: "a paper".to_owned(),
        quick: true,
        seed: 1,
        host: kept("gaps").1.host,
        scenarios: vec![Scenario {
            place: "5.5".to_owned(),
            title: "deadlines".to_owned(),
            commands: vec!["whylate threads".to_owned()],
            runs: Vec::new(),
            rows: Vec::new(),
            bars: Vec::new(),
            tables: vec![table],
            distributions: Vec::new(),
            effects: Vec::new(),
            notes: vec!["stopped early".to_owned()],
        }],
        not_here: Vec::new(),
    }
}

fn compared() -> Comparison {
    let side = |kind: &str| vec![Path::new(RUNS).join(kind)];
    let request = Request {
        before: side("gaps"),
        after: side("gaps-2"),
        limits: vec!["p99=+10%".parse().unwrap()],
        ..Request::default()
    };
    compare(&request).unwrap().comparison
}

/// One of each with these letters in its names.
fn all(letters: &str) -> Vec<Document> {
    let columns = Percentiles::default();
    vec![
        reflected::document(&named(&reflected::tests::reflected(), letters), columns),
        forward::document(&named(&forward::tests::forwarded(), letters), columns),
        delay::document(&named(&delay::tests::line(), letters), columns),
        doctor::document(&named(&doctor::tests::diagnosis(), letters), true),
        lab::document(&named(&lab::tests::status(), letters)),
        prediction::document(&named(&prediction::tests::predicted(&[4, 12]), letters)),
        compare::section::document(&named(&compared(), letters), Vec::new()),
        paper::document(&named(&paper(), letters), &Trust::default(), |_| Vec::new()),
    ]
}

#[test]
fn no_name_in_a_report_of_what_is_no_run_moves_a_cursor_turns_a_line_or_is_markup() {
    let turns = |letter: char| matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_bad = |letter: char| (letter.is_control() && letter != '\n') || turns(letter);
    for letters in NAMES {
        for document in all(letters) {
            for width in [40, 80, 200] {
                let text = write(&document, Style { width, ..Style::default() });
                assert!(!text.contains(is_bad), "{text:?}");
                assert!(text.len() > document.title.len() + letters.len(), "{text}");
                // A word of a command is whole, however long it is, and a narrow table has its columns.
                let mut goes_on = false;
                for line in text.lines() {
                    let is_command = goes_on || line.starts_with("    $");
                    goes_on = is_command && line.ends_with(" \\");
                    let fits = width == 40 || columns(line) <= width;
                    assert!(is_command || fits, "{line:?} in\n{text}");
                }
            }
            let page = plain::page("whylate", &document);
            assert!(!page.contains(is_bad), "{page:?}");
            assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        }
    }
}

#[test]
fn a_warning_of_another_run_has_the_id_of_its_process_in_whole_reports_alone() {
    let run = kept("hourglass").1;
    let whole = render(&run, Style::default());
    let known = "! another whylate was running on this machine (process 11170)";
    assert!(whole.contains(known), "{whole}");
    assert_eq!(whole.matches("11170").count(), 1, "{whole}");
    let place = crate::first::Place { directory: Some(Path::new("RUN")), again: true };
    let screen = crate::first::first_screen(&run, place, Style::default()).unwrap();
    assert!(screen.contains("nother whylate was running") && !screen.contains("11170"), "{screen}");
}
