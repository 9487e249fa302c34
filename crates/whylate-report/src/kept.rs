//! The pages of the runs that are kept, one of each kind: a change of what a page holds is seen.
//!
//! What a terminal shows of the same runs is pinned by the tests of the whole tool.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use whylate_model::directory::RunDir;
use whylate_model::paper::Paper;
use whylate_model::run::Run;

use crate::numbers::Value;
use crate::{Letters, Style};

/// Elements that stand on a line of their own in an outline.
const BEGINS_A_LINE: [&str; 16] = [
    "header", "main", "section", "h1", "h2", "h3", "p", "div", "figure", "svg", "table", "tr",
    "ul", "li", "details", "summary",
];

/// Where the directories are.
pub(crate) const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/runs");

/// A kept run with its directory.
pub(crate) fn kept(kind: &str) -> (RunDir, Run) {
    let home: PathBuf = Path::new(RUNS).join(kind);
    let directory = RunDir::open(home).unwrap();
    let run = directory.read_run().unwrap();
    (directory, run)
}

/// Their names; the tests of the whole tool say which there are.
pub(crate) fn kinds() -> Vec<String> {
    let entries = std::fs::read_dir(RUNS).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut found: Vec<String> = entries.map(|entry| name(entry).into_string().unwrap()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

#[test]
fn the_page_of_a_kept_run_of_each_kind_holds_what_it_held() {
    for kind in kinds() {
        let (directory, run) = kept(&kind);
        let page = crate::html::render(&directory, &run);
        insta::assert_snapshot!(kind, outline(&page.replace(RUNS, "RUNS")));
    }
}

#[test]
fn the_page_of_a_kept_paper_holds_what_it_held() {
    let place = Path::new(RUNS).join("../papers/hourglass2002");
    let paper = Paper::read(&place).unwrap().unwrap();
    insta::assert_snapshot!("hourglass2002", outline(&crate::paper::page(&place, &paper)));
}

/// Of a page, what is read and is not for a shell.
fn read(page: &str) -> String {
    let body = page.split_once("</header>").unwrap().1.split_once("</main>").unwrap().0;
    let parts = body.split("<code>").enumerate();
    let read =
        parts.map(
            |(at, part)| {
                if at == 0 { part } else { part.split_once("</code>").map_or("", |(_, of)| of) }
            },
        );
    let elements = read.flat_map(|part| part.split('<'));
    let texts = elements.map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_whole_report_has_the_letters_of_its_terminal_and_no_unit_that_is_joined_to_its_number() {
    for kind in kinds() {
        let (directory, run) = kept(&kind);
        let plain = Style { letters: Letters::Plain, ..Style::default() };
        assert!(crate::render(&run, plain).is_ascii(), "{kind}");
        let page = crate::html::render(&directory, &run);
        let texts = [crate::render(&run, Style::default()), read(&page).replace("&gt;", ">")];
        for text in texts {
            // A setting in words and a task's clause are as somebody typed them.
            let settings = run.settings.values().map(ToString::to_string);
            let clauses = run.threads.iter().map(|thread| thread.workload.clone());
            let typed: Vec<String> = settings.chain(clauses).collect();
            let is_typed = |word: &str| typed.iter().any(|of| of.split(' ').any(|one| one == word));
            let joined = |word: &&str| {
                let number = word.trim_start_matches(['(', '<', '>', '=', '~', '+', '-', '−', '≥']);
                let unit = number.trim_start_matches(|of: char| of.is_ascii_digit() || of == '.');
                let unit = unit.trim_end_matches([')', ',', ';', ':', '.']);
                number.starts_with(|of: char| of.is_ascii_digit())
                    && ["ns", "us", "µs", "ms"].contains(&unit)
                    && !is_typed(word)
            };
            let found: Vec<&str> = text.split_whitespace().filter(joined).collect();
            assert!(found.is_empty(), "{kind}: {found:?}");
            for sign in [" .. ", "+-", ">max"] {
                let lines: Vec<&str> = text.lines().filter(|line| line.contains(sign)).collect();
                assert!(lines.is_empty(), "{kind} has {sign:?}: {lines:?}");
            }
        }
    }
}

#[test]
fn a_percentile_that_the_sample_does_not_support_is_its_lower_bound_in_report_and_page() {
    let mut looked = 0;
    for kind in kinds() {
        let (directory, run) = kept(&kind);
        let text = crate::render(&run, Style { width: 400, ..Style::default() });
        let page = crate::html::render(&directory, &run);
        for quantile in run.series.iter().flat_map(|series| &series.quantiles) {
            let shown = [99.0, 99.9].contains(&quantile.percent) && quantile.value.is_none();
            let Some(low) = quantile.low.filter(|_| shown) else { continue };
            let bound = Value::AtLeast(low.0 as f64).to_string();
            assert!(bound.starts_with('≥') && text.contains(&bound), "{kind}: {bound}: {text}");
            assert!(page.contains(&format!("{bound}</td>")), "{kind}: {bound} is not on the page");
            looked += 1;
        }
    }
    assert!(looked > 0, "each percentile of each kept run is supported");
}

/// Names in the kept task set, each beside one of the same shape that nobody takes for a number.
const NAMES: [(&str, &str); 6] = [
    ("1.5us", "a.bcd"),
    ("95 %", "ab c"),
    ("-3ms", "-abc"),
    ("poll-10us", "poll-abcd"),
    ("12345", "abcde"),
    ("+-2s", "abcd"),
];

#[test]
fn a_name_that_looks_like_a_number_stays_in_report_page_and_first_screen() {
    let (directory, run) = kept("threads");
    let stored = serde_json::to_string(&run).unwrap();
    let shown = |name: &str| -> [String; 3] {
        let renamed = stored.replace("audio", name).replace("\"example\"", &format!("\"{name}\""));
        let run: Run = serde_json::from_str(&renamed).unwrap();
        let wide = Style { width: 4_000, ..Style::default() };
        let place = crate::Place { directory: Some(Path::new("RUN")), again: false };
        let first = crate::first_screen(&run, place, wide).unwrap();
        [crate::render(&run, wide), crate::html::render(&directory, &run), first]
    };
    for (name, plain) in NAMES {
        for (odd, usual) in shown(name).into_iter().zip(shown(plain)) {
            assert!(usual.contains(plain), "{usual}");
            let lines = odd.lines().zip(usual.lines());
            for (odd, usual) in lines {
                assert_eq!(odd, usual.replace(plain, name));
            }
        }
    }
}

/// What a reader of a page sees, an element a line; of a picture the digest alone.
fn outline(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    let body = body.split_once("</main>").map_or(body, |(main, _)| main);
    let mut parts = body.split("<svg");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (picture, rest) = part.split_once("</svg>").unwrap();
        let _ = write!(text, "<svg {:016x}/>{rest}", digest(picture));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    // What space there is beside a tag shows nothing.
    let mut outline = words.join(" ").replace("> ", ">").replace(" <", "<");
    for name in BEGINS_A_LINE {
        for end in [" ", ">"] {
            outline = outline.replace(&format!("<{name}{end}"), &format!("\n<{name}{end}"));
        }
    }
    outline
}

/// FNV-1a: the same on every machine and by every release of the compiler.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |digest: u64, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
