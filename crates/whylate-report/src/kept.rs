//! The pages of the runs that are kept, one of each kind: a change of what a page holds is seen.
//!
//! What a terminal shows of the same runs is pinned by the tests of the whole tool.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use whylate_model::directory::RunDir;
use whylate_model::paper::Paper;
use whylate_model::run::Run;

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
