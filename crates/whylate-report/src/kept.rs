//! The pages of the runs that are kept, one of each kind: a change of what a page holds is seen.
//!
//! What a terminal shows of the same runs is pinned by the tests of the whole tool.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use whylate_model::directory::RunDir;
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
fn each_figure_of_a_headline_stands_in_the_report_and_on_the_page() {
    for kind in kinds() {
        let (directory, run) = kept(&kind);
        let run = run.as_shown();
        let headline = crate::answer(&run);
        let wide = Style { width: 10_000, ..Style::default() };
        let text = crate::render(&run, wide);
        let text = text.split_once("\n\n").unwrap().1;
        assert!(!text.contains(&headline), "{kind}: {headline}");
        let page = crate::html::render(&directory, &run);
        let page = page.split_once("</header>").unwrap().1.split_once("</main>").unwrap().0;
        let page: String = page
            .split('<')
            .map(|part| part.split_once('>').map_or(part, |of| of.1))
            .fold(String::new(), |text, part| text + " " + part);
        let (figures, of_page) = (figures(&headline), words(&page));
        let of_text = words(text);
        assert!(!figures.is_empty(), "{kind}: {headline}");
        for figure in figures {
            assert!(of_text.contains(&figure), "{kind}: {figure} is in no table: {text}");
            assert!(of_page.contains(&figure), "{kind}: {figure} is not on the page");
        }
    }
}

/// Of a page, what is read.
fn read(page: &str) -> String {
    let body = page.split_once("</header>").unwrap().1.split_once("</main>").unwrap().0;
    body.split('<').map(|part| part.split_once('>').map_or(part, |of| of.1)).collect()
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
            let joined = |word: &&str| {
                let number = word.trim_start_matches(['(', '<', '>', '=', '~', '+', '-', '−', '≥']);
                let unit = number.trim_start_matches(|of: char| of.is_ascii_digit() || of == '.');
                let unit = unit.trim_end_matches([')', ',', ';', ':', '.']);
                number.starts_with(|of: char| of.is_ascii_digit())
                    && ["ns", "us", "µs"].contains(&unit)
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

/// The words of a text without what stands around them, a number and its unit as one.
fn words(text: &str) -> Vec<String> {
    let around = ['.', ',', ':', ';', '(', ')', '~', '<'];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_matches(around);
        match words.last_mut() {
            Some(last) if ["ns", "µs", "ms", "s"].contains(&bare) => last.push_str(bare),
            _ => words.push(bare.to_owned()),
        }
    }
    words
}

/// Those that are numbers, with or without a unit. With which certainty an interval holds is no figure of a run.
fn figures(sentence: &str) -> Vec<String> {
    let is_number = |word: &String| word.starts_with(|letter: char| letter.is_ascii_digit());
    words(sentence).into_iter().filter(is_number).filter(|word| word != "95%").collect()
}

/// What a reader of a page sees, an element a line; of a picture the digest alone.
fn outline(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1.split_once("</main>").unwrap().0;
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
