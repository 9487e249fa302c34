//! Documents on a terminal: words, lines and tables within a number of columns.

use std::fmt::Write;

use anstyle::{AnsiColor, Style as Paint};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use whylate_model::Printable;
use whylate_model::trust::Level;

use super::{and_more, beginning, capped, columns, is_shown, shortened};
use crate::doc::{self, Block, Document, Section, Where};
use crate::numbers::{MARK, Names};
use crate::terminal::Style;

/// Rows of a table: what is more is counted in the last.
const MOST_ROWS: usize = 256;
/// Items of a list.
const MOST_ITEMS: usize = 256;

/// The text of a document.
pub(crate) fn write(document: &Document, style: Style) -> String {
    let mut page = Page::new(style, document.names.clone());
    if !document.title.is_empty() {
        page.wrapped(&document.title, "", "", BOLD);
    }
    document.sections.iter().for_each(|section| page.write(section));
    page.finish()
}

/// Blocks as a terminal of 80 columns has them.
#[cfg(test)]
pub(crate) fn told(blocks: impl IntoIterator<Item = Block>) -> String {
    write(&Document::default().with(blocks), Style::default())
}

/// A report under construction.
#[derive(Debug)]
struct Page {
    style: Style,
    names: Names,
    text: String,
    /// The heading that the next table stands under, which it does not repeat.
    heading: Option<String>,
    /// Is there nothing between that heading and what comes?
    below_heading: bool,
}

pub(crate) const BOLD: Paint = Paint::new().bold();
pub(crate) const GREEN: Paint = AnsiColor::Green.on_default();
pub(crate) const RED: Paint = AnsiColor::Red.on_default();
pub(crate) const YELLOW: Paint = AnsiColor::Yellow.on_default();
const GREY: Paint = Paint::new().dimmed();

/// Units that stay with their numbers.
const UNITS: [&str; 5] = ["ns", "µs", "us", "ms", "s"];
/// Stands between a number and its unit until lines are broken: nobody's letter.
const JOINT: char = '\u{e000}';

impl Page {
    fn new(style: Style, names: Names) -> Self {
        Self { style, names, text: String::new(), heading: None, below_heading: false }
    }

    fn finish(self) -> String {
        let lines: Vec<&str> = self.text.lines().map(str::trim_end).collect();
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn item(&mut self, text: &str) {
        self.wrapped(text, "  - ", "    ", Paint::new());
    }

    fn note(&mut self, text: &str) {
        self.wrapped(text, "! ", "  ", YELLOW);
    }

    fn advice(&mut self, text: &str) {
        self.wrapped(text, "    ", "    ", Paint::new());
    }

    /// A line for a shell, which can be taken from the page as it is: a backslash ends a line that
    /// goes on.
    fn command(&mut self, text: &str) {
        let mut line = "    $".to_owned();
        for word in Printable(text).to_string().split_whitespace() {
            if columns(&line) + 1 + columns(word) + 2 > self.style.width {
                line.push_str(" \\");
                self.line(&line, Paint::new());
                "       ".clone_into(&mut line);
            }
            line.push(' ');
            line.push_str(word);
        }
        self.line(&line, Paint::new());
    }

    /// A section of a document.
    fn write(&mut self, section: &Section) {
        if is_shown(section.headed, Where::Terminal) {
            self.heading(&section.heading);
        }
        self.blocks(&section.blocks);
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text) => return self.heading(text),
            Block::Only(there, blocks) if is_shown(*there, Where::Terminal) => {
                return self.blocks(blocks);
            }
            Block::Only(..) | Block::Figure(_) | Block::Fold(_) | Block::Link(..) => return,
            Block::Text(text) | Block::How(text) => self.wrapped(text, "", "", Paint::new()),
            Block::Note(text) | Block::Judged(Level::Limited, text) => self.note(text),
            Block::Advice(text) => self.advice(text),
            Block::Judged(Level::Good, text) => self.wrapped(text, "", "", GREEN),
            Block::Judged(Level::Poor, text) => self.wrapped(text, "", "", RED),
            Block::Items(items) => self.items(items),
            Block::Code(words, code) => {
                let words = self.told(words);
                self.lines(&format!("{words}: {}", code.join(", ")), "", "", Paint::new());
            }
            Block::Command(text) => self.command(text),
            Block::Drawn(lines) => lines.iter().for_each(|line| self.line(line, Paint::new())),
            Block::Warnings(all) => {
                for warning in all {
                    match warning.level {
                        // Nothing to act on: a property of the machine.
                        Level::Good => self.item(&warning.text),
                        Level::Limited | Level::Poor => self.note(&warning.text),
                    }
                    self.advice(&warning.advice);
                }
            }
            Block::Table(table) => self.of(table),
        }
        self.below_heading = false;
    }

    fn items(&mut self, items: &[String]) {
        items.iter().take(MOST_ITEMS).for_each(|item| self.item(item));
        if items.len() > MOST_ITEMS {
            self.item(&and_more(items.len() - MOST_ITEMS));
        }
    }

    fn bold(&mut self, text: &str) {
        self.blank();
        self.wrapped(text, "", "", BOLD);
    }

    fn heading(&mut self, text: &str) {
        self.bold(text);
        (self.heading, self.below_heading) = (Some(text.to_owned()), true);
    }

    /// A table under its caption; one without rows is left out.
    fn of(&mut self, table: &doc::Table) {
        if table.rows.is_empty() {
            return;
        }
        let captioned = is_shown(table.captioned, Where::Terminal);
        let is_told = self.heading.take().is_some_and(|above| above == table.caption);
        if (table.caption.is_empty() || !captioned) && !self.below_heading {
            self.blank();
        } else if !is_told && !self.below_heading {
            self.bold(&table.caption);
        }
        let shown: Vec<_> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| is_shown(column.shown, Where::Terminal))
            .collect();
        let head: Vec<String> = shown.iter().map(|(_, column)| self.told(&column.head)).collect();
        let words = shown.iter().enumerate().filter(|(_, (_, column))| column.words);
        let words: Vec<usize> = words.map(|(place, _)| place).collect();
        let rows: Vec<Vec<String>> = capped(&table.rows, table.most.unwrap_or(MOST_ROWS))
            .iter()
            .map(|row| {
                let cells = shown.iter().filter_map(|(at, column)| {
                    let (text, names) = (row.get(*at)?.to_string(), *at == 0 || column.words);
                    Some(if names { text } else { self.told(&text) })
                });
                cells.collect()
            })
            .collect();
        self.table(&head, &rows, &words);
    }

    /// A table whose first column is text and the others numbers, unless `left` names them.
    fn table(&mut self, head: &[String], rows: &[Vec<String>], left: &[usize]) {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(self.style.width as u16)
            .set_header(head.iter().map(|cell| self.cell(cell)));
        for row in rows {
            table.add_row(row.iter().map(|cell| self.cell(cell)));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let aligned = index == 0 || left.contains(&index);
            let side = if aligned { CellAlignment::Left } else { CellAlignment::Right };
            column.set_cell_alignment(side);
            column.set_padding((u16::from(index > 0), 1));
        }
        for line in table.to_string().lines() {
            let line = line.replace(JOINT, " ");
            let line = if self.style.colour { dimmed(&line) } else { line };
            self.text.push_str(&line);
            self.blank();
        }
    }

    /// As a cell has it; a number stays with its unit.
    fn cell(&self, text: &str) -> String {
        joined(&self.style.letters.write(&Printable(&shortened(text)).to_string()))
    }

    /// As a reader has it: the numbers of what was written elsewhere as those of the report.
    fn told(&self, text: &str) -> String {
        self.names.respelled(text)
    }

    fn wrapped(&mut self, text: &str, first: &str, rest: &str, paint: Paint) {
        self.lines(&self.told(text), first, rest, paint);
    }

    fn lines(&mut self, text: &str, first: &str, rest: &str, paint: Paint) {
        for line in wrap(&self.style.letters.write(text), first, rest, self.style.width) {
            self.line(&line, paint);
        }
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

/// The lines of a text, the first of which begins with `first` and each other one with `rest`; a number stays
/// with its unit.
pub(crate) fn wrap(text: &str, first: &str, rest: &str, width: usize) -> Vec<String> {
    // Whatever a run directory holds: no control character reaches the terminal.
    let text = joined(&Printable(&shortened(text)).to_string());
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    // A letter may take two columns.
    let most = width.saturating_sub(columns(rest).max(columns(first))).max(2);
    for word in text.split_whitespace().flat_map(|word| pieces(word, most)) {
        let space = usize::from(!empty);
        if !empty && columns(&line) + space + columns(word) > width {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines.into_iter().map(|line| line.replace(JOINT, " ")).collect()
}

/// The text with a joint between each number and its unit.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    let mut before = "";
    for (at, word) in text.split(' ').enumerate() {
        if at > 0 {
            let number = before.ends_with(|letter: char| letter.is_ascii_digit());
            let unit = word.trim_end_matches(|letter: char| !letter.is_alphabetic());
            joined.push(if number && UNITS.contains(&unit) { JOINT } else { ' ' });
        }
        joined.push_str(word);
        before = word;
    }
    joined
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
fn pieces(mut word: &str, most: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while columns(word) > most {
        let piece = beginning(word, most);
        pieces.push(piece);
        word = &word[piece.len()..];
    }
    pieces.push(word);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_goes_on_says_so_to_the_shell() {
        let mut page = Page::new(Style { width: 30, ..Style::default() }, Names::default());
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
            let head = ["", "p50", "p99", "max"].map(str::to_owned);
            let mut page = Page::new(Style { colour, ..Style::default() }, Names::default());
            let cells = ["a~b", "1 µs", "~2–3 µs", "~9 ms"].map(str::to_owned).to_vec();
            page.table(&head, &[cells], &[]);
            page.finish()
        };
        let plain = draw(false);
        assert!(plain.contains("~2–3 µs") && !plain.contains('\u{1b}'), "{plain:?}");
        let grey = draw(true);
        assert!(grey.contains("\u{1b}[2m~2–3 µs\u{1b}[0m"), "{grey:?}");
        assert!(grey.contains("\u{1b}[2m~9 ms\u{1b}[0m") && grey.matches("\u{1b}[2m").count() == 2);
    }

    #[test]
    fn no_line_is_longer_than_the_page() {
        let mut page = Page::new(Style { width: 40, ..Style::default() }, Names::default());
        page.item("many words that do not fit on one line of forty columns, and more of them");
        page.note(&"x".repeat(100));
        let text = page.finish();
        assert!(text.lines().count() > 1);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    }
}
