//! Documents as text: on a terminal and on a page.
//!
//! Whatever a run directory holds, here is where it is made harmless: no control character reaches a
//! terminal, nothing of a run is markup on a page, and no text is longer than a reader would read.

pub(crate) mod page;
pub(crate) mod plain;
pub(crate) mod terminal;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::doc::Where;
use crate::numbers::{Cell, count};

/// Longest text from a run that is shown whole.
const LONGEST_TEXT: usize = 4_000;

/// A text that is no longer than [`LONGEST_TEXT`], and says so where it was.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => {
            Cow::Owned(format!("{}... ({} bytes in all)", &text[..end], count(text.len() as u64)))
        }
        None => Cow::Borrowed(text),
    }
}

/// Columns that a text takes on a terminal: a letter has one, two or none.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The beginning of a text that takes so many columns at most.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, letter)| {
        taken += letter.width().unwrap_or(0);
        taken > most
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// Where a text was cut.
pub(crate) const CUT: &str = "...";

/// A text of so many columns at most; one that was cut says so. A number is not cut, unless the text begins with it:
/// what is left of one is another.
pub(crate) fn shorter(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let kept = beginning(text, most.saturating_sub(CUT.len()));
    whole_numbers(kept, &text[kept.len()..]).to_owned() + CUT
}

/// The beginning of a text that goes on with the rest, without a number of which a part is in the rest.
pub(crate) fn whole_numbers<'a>(kept: &'a str, rest: &str) -> &'a str {
    let ends = rest.starts_with(char::is_whitespace);
    let (before, last) = kept.rsplit_once(char::is_whitespace).unwrap_or(("", kept));
    let is_number = last
        .trim_start_matches(|letter: char| !letter.is_alphanumeric())
        .starts_with(|letter: char| letter.is_ascii_digit());
    if !ends && is_number && !before.is_empty() { before } else { kept }.trim_end()
}

/// Rows as they are shown: the first of them, and a last one that counts the others.
fn capped(rows: &[Vec<Cell>], most: usize) -> Vec<Vec<Cell>> {
    let mut shown = rows.iter().take(most).cloned().collect::<Vec<_>>();
    if let [first, ..] = rows
        && rows.len() > most
    {
        let mut last = vec![Cell::from(""); first.len()];
        if let Some(cell) = last.first_mut() {
            *cell = Cell::from(and_more(rows.len() - most));
        }
        shown.push(last);
    }
    shown
}

/// What stands below the last that is shown.
fn and_more(more: usize) -> String {
    format!("and {more} more, in run.json")
}

/// Is what is shown there shown here?
fn is_shown(there: Where, here: Where) -> bool {
    there == Where::Both || there == here
}
