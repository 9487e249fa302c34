//! The lines of the list, and whether a text holds one of them.

use std::collections::HashSet;
use std::ops::Range;

use anyhow::{Context, Result};

use super::{PLACES, Place};

/// Words that a `*` stands for at most.
const MOST_WORDS: usize = 6;
/// The mark between two texts that are not read as one.
pub(super) const BETWEEN: &str = " ; ";

/// A phrase that is not to be read, in lower case.
pub(super) struct Phrase {
    pub(super) words: String,
    pub(super) instead: String,
    /// Longer phrases, of which it may be a part.
    within: Vec<String>,
    /// Places in which it is looked for; empty: in all.
    only: Vec<Place>,
    /// Places and paths in which it is not.
    except: Vec<Place>,
    except_paths: Vec<String>,
}

/// The phrases of a list, one on each line that is no comment.
pub(super) fn read(list: &str) -> Result<Vec<Phrase>> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| phrase(line).with_context(|| format!("no line of the list: {line}"))).collect()
}

/// A line: `phrase => what to say [| within: longer phrase, ..] [| only: place, ..] [| except: place or path, ..]`.
fn phrase(line: &str) -> Option<Phrase> {
    let mut parts = line.split(" | ");
    let (words, instead) = parts.next()?.split_once(" => ")?;
    let mut phrase = Phrase {
        words: words.to_lowercase(),
        instead: instead.to_owned(),
        within: Vec::new(),
        only: Vec::new(),
        except: Vec::new(),
        except_paths: Vec::new(),
    };
    let place = |name: &str| PLACES.iter().find(|(of, _)| *of == name).map(|(_, place)| *place);
    for part in parts {
        let (what, names) = part.split_once(": ")?;
        for name in names.split(", ") {
            match (what, place(name)) {
                ("within", _) => phrase.within.push(name.to_lowercase()),
                ("only", Some(place)) => phrase.only.push(place),
                ("except", Some(place)) => phrase.except.push(place),
                ("except", None) if name.contains(['/', '.']) => {
                    phrase.except_paths.push(name.to_owned());
                }
                _ => return None,
            }
        }
    }
    Some(phrase)
}

impl Phrase {
    /// Is it looked for there?
    pub(super) fn is_for(&self, place: Place, path: &str) -> bool {
        (self.only.is_empty() || self.only.contains(&place))
            && !self.except.contains(&place)
            && !self.except_paths.iter().any(|of| path.starts_with(of.as_str()))
    }

    /// Has a text all of its words, wherever? Most texts do not, and are not searched.
    pub(super) fn may_be_in(&self, text: &HashSet<&str>) -> bool {
        words(&self.words).all(|word| text.contains(word))
    }

    /// Is it in a text, as words of their own and outside the longer phrases?
    pub(super) fn is_in(&self, text: &str) -> bool {
        let pieces: Vec<&str> = self.words.split('*').map(str::trim).collect();
        let Some((first, others)) = pieces.split_first() else { return false };
        let mut allowed: Option<Vec<Range<usize>>> = None;
        let mut found = occurrences(text, first).filter_map(|begin| {
            let mut end = begin + first.len();
            for piece in others {
                end = following(text, end, piece)?;
            }
            Some(begin..end)
        });
        found.any(|found| {
            let allowed = allowed.get_or_insert_with(|| self.allowed(text));
            !allowed.iter().any(|of| of.start <= found.start && found.end <= of.end)
        })
    }

    /// Where the longer phrases stand.
    fn allowed(&self, text: &str) -> Vec<Range<usize>> {
        let of = |longer: &String| -> Vec<Range<usize>> {
            text.match_indices(longer.as_str()).map(|(at, _)| at..at + longer.len()).collect()
        };
        self.within.iter().flat_map(of).collect()
    }
}

/// The words of a text, without what stands between them.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Where words begin in a text that are words of their own there.
fn occurrences<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_of_a_word = |at: Option<char>| at.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(words).map(|(at, _)| at).filter(move |at| {
        let (before, behind) = (&text[..*at], &text[at + words.len()..]);
        let begins_within =
            words.starts_with(char::is_alphanumeric) && is_of_a_word(before.chars().next_back());
        let ends_within =
            words.ends_with(char::is_alphanumeric) && is_of_a_word(behind.chars().next());
        !begins_within && !ends_within
    })
}

/// Where a piece ends that follows behind a few words, of the same text.
fn following(text: &str, from: usize, piece: &str) -> Option<usize> {
    let rest = &text[from..];
    // The words up to there, with the spaces around them.
    let words = rest.match_indices(' ').nth(MOST_WORDS).map_or(rest.len(), |(at, _)| at);
    let reach = (words + 1 + piece.len()).min(rest.len());
    let reach = (reach..=rest.len()).find(|at| rest.is_char_boundary(*at))?;
    let between = rest.find(BETWEEN).unwrap_or(rest.len());
    let found = occurrences(&rest[..reach.min(between)], piece).find(|at| *at > 1)?;
    Some(from + found + piece.len())
}
