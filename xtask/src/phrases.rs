//! Phrases that are not to be read by users: the committed list, and where they are looked for.
//!
//! The list has a phrase on a line with what is said instead, and the words around it in which it may stand.
//! It is searched for in the README, the manual, the changelog, the pinned output of commands, the help and
//! all that the product can print: the string literals of its sources, tests left out.

mod literals;

use std::path::Path;

use anyhow::{Context, Result};

use crate::product::Comments;

const LIST: &str = "docs/phrases.txt";
/// Sources whose comments are printed, as help.
const HELP: &str = "crates/whylate/src/cli";

/// A phrase that is not to be read, in lower case.
struct Phrase {
    words: String,
    instead: String,
    /// Longer phrases, of which it may be a part.
    within: Vec<String>,
}

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let list = root.join(LIST);
    if !list.exists() {
        return Ok(vec![format!("{LIST}: missing")]);
    }
    let list = std::fs::read_to_string(&list).with_context(|| LIST.to_owned())?;
    let phrases = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| read(line).with_context(|| format!("{LIST}: {line}")))
        .collect::<Result<Vec<Phrase>>>()?;
    let mut faults = Vec::new();
    for extension in ["md", "snap", "trycmd", "rs"] {
        for path in crate::files(root, extension)? {
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let text = || std::fs::read_to_string(&path).with_context(|| shown.clone());
            let said = match extension {
                "md" if !is_read_by_users(&shown) => continue,
                "rs" if !is_of_the_product(&shown) => continue,
                "rs" => {
                    let help = shown.starts_with(HELP);
                    let comments = if help { Comments::Kept } else { Comments::LeftOut };
                    literals::of(&text()?, comments).with_context(|| shown.clone())?
                }
                _ => text()?,
            };
            let said = in_one_line(&said);
            faults.extend(
                phrases.iter().filter(|phrase| phrase.is_in(&said)).map(|phrase| {
                    format!("{shown}: \"{}\"; say: {}", phrase.words, phrase.instead)
                }),
            );
        }
    }
    Ok(faults)
}

fn is_read_by_users(path: &str) -> bool {
    ["README.md", "CHANGELOG.md"].contains(&path) || path.starts_with("docs/src/")
}

fn is_of_the_product(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/src/")
        && !path.ends_with("/tests.rs")
        && !path.contains("/tests/")
}

/// A line of the list: `phrase => what to say [| within: longer phrase, ..]`.
fn read(line: &str) -> Option<Phrase> {
    let (line, within) = line.split_once(" | within: ").unwrap_or((line, ""));
    let (phrase, instead) = line.split_once(" => ")?;
    let within = within.split(", ").filter(|words| !words.is_empty());
    Some(Phrase {
        words: phrase.to_lowercase(),
        instead: instead.to_owned(),
        within: within.map(str::to_lowercase).collect(),
    })
}

/// A text as somebody reads it: where it is wrapped makes no difference.
fn in_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

impl Phrase {
    /// Is it in a text, as words of their own and outside the longer phrases?
    fn is_in(&self, text: &str) -> bool {
        let hidden =
            self.within.iter().fold(text.to_owned(), |text, longer| text.replace(longer, "~"));
        hidden.match_indices(&self.words).any(|(at, _)| {
            let before = hidden[..at].chars().next_back();
            let after = hidden[at + self.words.len()..].chars().next();
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHRASES: &str = "# a comment\n\nnamed after => by cause\nhost => this machine | within: host-a, of the host\n";

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [&[(LIST, PHRASES)], files].concat() {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        check(root.path()).unwrap()
    }

    #[test]
    fn a_phrase_is_found_wherever_a_user_reads_it() {
        let said = "\"named after\"; say: by cause";
        let planted = [
            ("README.md", "Misses are named\nafter their cause."),
            ("docs/src/threads.md", "NAMED AFTER"),
            ("tests/snapshots/a.snap", "misses named after: x"),
            ("tests/cli/help.trycmd", "  named after"),
            ("crates/a/src/b.rs", "fn b() -> &'static str { \"misses are named \\\n   after\" }"),
            ("crates/whylate/src/cli/c.rs", "/// What misses are named after.\nstruct C;"),
        ];
        for (path, text) in planted {
            assert_eq!(faults(&[(path, text)]), [format!("{path}: {said}")]);
        }
    }

    #[test]
    fn what_no_user_reads_may_hold_it() {
        let files = [
            ("ARCHITECTURE.md", "named after"),
            ("crates/a/src/b.rs", "/// named after\nfn b() {} // named after"),
            ("crates/a/src/c.rs", "#[cfg(test)]\nmod tests { const A: &str = \"named after\"; }"),
            ("crates/a/src/b/tests.rs", "const A: &str = \"named after\";"),
            ("tests/d.rs", "const A: &str = \"named after\";"),
            ("README.md", "It is renamed after; named afterwards."),
        ];
        assert_eq!(faults(&files), Vec::<String>::new());
    }

    #[test]
    fn a_phrase_may_be_a_part_of_the_longer_ones_that_its_line_names() {
        assert_eq!(faults(&[("README.md", "host-a and the name of the host; hosts")]), [""; 0]);
        assert_eq!(faults(&[("README.md", "the host")]).len(), 1);
    }

    #[test]
    fn a_line_that_says_nothing_instead_is_no_part_of_the_list() {
        assert!(read("named after").is_none());
    }
}
