//! Words, lines and tables within a number of columns.

use std::fmt::Write;

use anstyle::{AnsiColor, Style as Paint};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use whylate_model::Printable;

use super::Style;
use crate::trusted::MARK;

/// A report under construction.
pub(super) struct Page {
    style: Style,
    text: String,
}

const BOLD: Paint = Paint::new().bold();
const GREEN: Paint = AnsiColor::Green.on_default();
const RED: Paint = AnsiColor::Red.on_default();
const YELLOW: Paint = AnsiColor::Yellow.on_default();
const GREY: Paint = Paint::new().dimmed();

impl Page {
    pub(super) fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    pub(super) fn finish(self) -> String {
        let lines: Vec<&str> = self.text.lines().map(str::trim_end).collect();
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }

    /// Columns that there are.
    pub(super) fn width(&self) -> usize {
        self.style.width
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    pub(super) fn title(&mut self, text: &str) {
        self.wrapped(text, "", "", BOLD);
    }

    pub(super) fn section(&mut self, text: &str) {
        self.blank();
        self.wrapped(text, "", "", BOLD);
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.wrapped(text, "", "", Paint::new());
    }

    pub(super) fn item(&mut self, text: &str) {
        self.wrapped(text, "  - ", "    ", Paint::new());
    }

    pub(super) fn note(&mut self, text: &str) {
        self.wrapped(text, "! ", "  ", YELLOW);
    }

    pub(super) fn advice(&mut self, text: &str) {
        self.wrapped(text, "    ", "    ", Paint::new());
    }

    /// A line for a shell, which can be taken from the page as it is: a backslash ends a line that
    /// goes on.
    pub(super) fn command(&mut self, text: &str) {
        let mut line = "    $".to_owned();
        for word in text.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() + 2 > self.style.width {
                line.push_str(" \\");
                self.line(&line, Paint::new());
                "       ".clone_into(&mut line);
            }
            line.push(' ');
            line.push_str(word);
        }
        self.line(&line, Paint::new());
    }

    /// A line of a drawing, as it is: control characters are the drawer's concern.
    pub(super) fn drawn(&mut self, line: &str) {
        self.line(line, Paint::new());
    }

    pub(super) fn good(&mut self, text: &str) {
        self.wrapped(text, "", "", GREEN);
    }

    pub(super) fn bad(&mut self, text: &str) {
        self.wrapped(text, "", "", RED);
    }

    /// A table whose first column is text and the others numbers, unless `left` names them.
    pub(super) fn table(&mut self, head: &[&str], rows: &[Vec<String>], left: &[usize]) {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(self.style.width as u16)
            .set_header(head);
        for row in rows {
            table.add_row(row.iter().map(|cell| Printable(cell).to_string()));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let aligned = index == 0 || left.contains(&index);
            let side = if aligned { CellAlignment::Left } else { CellAlignment::Right };
            column.set_cell_alignment(side);
            column.set_padding((u16::from(index > 0), 1));
        }
        for line in table.to_string().lines() {
            let line = if self.style.colour { dimmed(line) } else { line.to_owned() };
            self.text.push_str(&line);
            self.blank();
        }
    }

    fn wrapped(&mut self, text: &str, first: &str, rest: &str, paint: Paint) {
        // Whatever a run directory holds: no control character reaches the terminal.
        let text = Printable(text).to_string();
        let mut line = first.to_owned();
        let mut empty = true;
        let most = self.style.width.saturating_sub(rest.len().max(first.len())).max(1);
        for word in text.split_whitespace().flat_map(|word| pieces(word, most)) {
            let space = usize::from(!empty);
            if !empty && line.chars().count() + space + word.chars().count() > self.style.width {
                self.line(&line, paint);
                rest.clone_into(&mut line);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(&word);
            empty = false;
        }
        self.line(&line, paint);
    }

    fn line(&mut self, line: &str, paint: Paint) {
        // Writing to a String cannot fail.
        let _ = if self.style.colour && paint != Paint::new() {
            writeln!(self.text, "{paint}{line}{paint:#}")
        } else {
            writeln!(self.text, "{line}")
        };
    }
}

/// A line of a table with the cells that are marked as beyond trust in grey. Between two cells there are
/// two spaces and more, within one never.
fn dimmed(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(MARK) {
        let (before, cell) = rest.split_at(start);
        let end = cell.find("  ").unwrap_or_else(|| cell.trim_end().len());
        shown.push_str(before);
        // A mark inside a word is none of ours.
        if before.is_empty() || before.ends_with(' ') {
            let _ = write!(shown, "{GREY}{}{GREY:#}", &cell[..end]);
        } else {
            shown.push_str(&cell[..end]);
        }
        rest = &cell[end..];
    }
    shown.push_str(rest);
    shown
}

/// A word that is longer than a line, in pieces that are not.
fn pieces(word: &str, most: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(most).map(|piece| piece.iter().collect()).collect()
}

/// A share as a percentage with three significant digits: `0.0123%`, `4.50%`, `100%`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let size = percent.abs();
    let decimals = match size {
        _ if size == 0.0 => 0,
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ => (2.0 - size.log10().floor()).clamp(3.0, 6.0) as usize,
    };
    format!("{percent:.decimals$}%")
}

/// A rate per second with three significant digits.
pub(crate) fn rate(per_second: f64) -> String {
    let decimals = match per_second {
        99.95.. => 0,
        9.995.. => 1,
        0.9995.. => 2,
        _ => 4,
    };
    format!("{per_second:.decimals$}/s")
}

/// A count with thousands apart: `12 345 678`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut spaced = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            spaced.push(' ');
        }
        spaced.push(digit);
    }
    spaced
}

/// A count in few columns: `999`, `12.3k`, `4.56M`, `91.4G`.
pub(crate) fn short_count(n: u64) -> String {
    match n {
        ..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2}M", n as f64 / 1e6),
        _ => format!("{:.2}G", n as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_three_digits() {
        for (share, text) in [
            (0.0, "0%"),
            (1.0, "100%"),
            (0.045, "4.50%"),
            (0.123_4, "12.3%"),
            (0.000_123, "0.0123%"),
        ] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn counts_are_spaced_or_short() {
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(999), "999");
        assert_eq!(short_count(91_400_000_000), "91.40G");
        assert_eq!(short_count(12_345), "12.3k");
    }

    #[test]
    fn a_command_that_goes_on_says_so_to_the_shell() {
        let mut page = Page::new(Style { width: 30, ..Style::default() });
        page.command("for f in /sys/a/b /sys/c/d; do echo 1 > $f; done");
        let text = page.finish();
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
        let joined = text.replace("\\\n", " ");
        let words: Vec<&str> = joined.split_whitespace().skip(1).collect();
        assert_eq!(words.join(" "), "for f in /sys/a/b /sys/c/d; do echo 1 > $f; done");
    }

    #[test]
    fn cells_beyond_trust_are_grey_where_there_are_colours_and_marked_always() {
        let draw = |colour| {
            let mut page = Page::new(Style { colour, ..Style::default() });
            let cells = ["a~b", "1us", "~2us .. 3us", "~9ms"].map(str::to_owned).to_vec();
            page.table(&["", "p50", "p99", "max"], &[cells], &[]);
            page.finish()
        };
        let plain = draw(false);
        assert!(plain.contains("~2us .. 3us") && !plain.contains('\u{1b}'), "{plain:?}");
        let grey = draw(true);
        assert!(grey.contains("\u{1b}[2m~2us .. 3us\u{1b}[0m"), "{grey:?}");
        assert!(grey.contains("\u{1b}[2m~9ms\u{1b}[0m") && grey.matches("\u{1b}[2m").count() == 2);
    }

    #[test]
    fn no_line_is_longer_than_the_page() {
        let mut page = Page::new(Style { width: 40, ..Style::default() });
        page.item("many words that do not fit on one line of forty columns, and more of them");
        page.note(&"x".repeat(100));
        let text = page.finish();
        assert!(text.lines().count() > 1);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    }
}
