//! Phrases that are not to be read by users: the committed list, and where they are looked for.
//!
//! The list has a phrase on a line with what is said instead, the words around it in which it may stand, and the
//! places in which it is looked for or not. It is searched for in the README, the manual, the changelog, the
//! pinned output of commands, the help, what the scripts of pages say and all that the product can print: the
//! string literals of its sources, tests left out. Where a value stands in a text, `*` of a phrase may stand for it.

mod list;
mod literals;

use std::path::Path;

use anyhow::{Context, Result};

use crate::product::Comments;

const LIST: &str = "docs/phrases.txt";
/// Sources whose comments are printed, as help.
const HELP: &str = "crates/whylate/src/cli/";
/// Scripts of others.
const FOREIGN: &str = "/uplot/";

/// Where a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Readme,
    Changelog,
    Book,
    /// What the program says how it is used, as sources and as pinned output.
    Help,
    /// Pinned output of commands, and pages.
    Output,
    /// Strings of the product's sources.
    Messages,
    /// Scripts of pages.
    Script,
}

const PLACES: [(&str, Place); 7] = [
    ("readme", Place::Readme),
    ("changelog", Place::Changelog),
    ("book", Place::Book),
    ("help", Place::Help),
    ("output", Place::Output),
    ("messages", Place::Messages),
    ("script", Place::Script),
];

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let list = root.join(LIST);
    if !list.exists() {
        return Ok(vec![format!("{LIST}: missing")]);
    }
    let phrases = list::read(&std::fs::read_to_string(&list).with_context(|| LIST.to_owned())?)?;
    let mut faults = Vec::new();
    for extension in ["md", "snap", "trycmd", "rs", "js"] {
        for path in crate::files(root, extension)? {
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let Some(place) = place(&shown) else { continue };
            let text = std::fs::read_to_string(&path).with_context(|| shown.clone())?;
            let said = said(&text, place, extension).with_context(|| shown.clone())?;
            let said = in_one_line(&said);
            let words = list::words(&said).collect();
            let found = phrases
                .iter()
                .filter(|of| of.is_for(place, &shown) && of.may_be_in(&words) && of.is_in(&said));
            faults
                .extend(found.map(|of| format!("{shown}: \"{}\"; say: {}", of.words, of.instead)));
        }
    }
    Ok(faults)
}

/// Where a file is read; none of one that no user reads.
fn place(path: &str) -> Option<Place> {
    let product = path.starts_with("crates/") && !path.contains("/tests/");
    match path.rsplit_once('.')?.1 {
        "md" if path == "README.md" => Some(Place::Readme),
        "md" if path == "CHANGELOG.md" => Some(Place::Changelog),
        "md" => path.starts_with("docs/src/").then_some(Place::Book),
        "snap" if path.starts_with(HELP) => Some(Place::Help),
        "snap" => Some(Place::Output),
        "trycmd" => Some(Place::Help),
        "js" => (product && !path.contains(FOREIGN)).then_some(Place::Script),
        _ if !product || !path.contains("/src/") || path.ends_with("/tests.rs") => None,
        _ => Some(if path.starts_with(HELP) { Place::Help } else { Place::Messages }),
    }
}

/// What of a file is read.
fn said(text: &str, place: Place, extension: &str) -> Result<String> {
    match extension {
        "rs" => {
            let help = place == Place::Help;
            let comments = if help { Comments::Kept } else { Comments::LeftOut };
            literals::of(text, comments)
        }
        "js" => Ok(literals::of_script(text)),
        "snap" => Ok(without_tags(pinned(text))),
        _ => Ok(text.to_owned()),
    }
}

/// What was pinned, without what a snapshot says of itself.
fn pinned(text: &str) -> &str {
    let behind = |text| str::split_once(text, "---\n").map(|(_, behind)| behind);
    behind(text).and_then(behind).unwrap_or(text)
}

/// A page as it is read: its names of elements, classes and places are no words.
fn without_tags(text: &str) -> String {
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        read.push_str(before);
        let is_tag =
            from[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!');
        let end = from.find('>').filter(|_| is_tag);
        // What stands in two elements is not one sentence, unless the one is within the other's.
        read.push_str(if end.is_some() { " " } else { "<" });
        rest = &from[end.unwrap_or(0) + 1..];
    }
    read.push_str(rest);
    read
}

/// A text as somebody reads it: where it is wrapped makes no difference.
fn in_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests;
