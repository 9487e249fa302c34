//! A first screen in lines: how much of each part fits, and how tables are laid out.
//!
//! At 80 columns or wider there are never more than 24 lines with the command's own: a name that is too long is cut
//! and says so, and of sentences and rows that have no room it is said how many there are. On a narrower terminal everything wraps, and a table goes on below itself.

use anstyle::Style as Paint;
use whylate_model::Printable;
use whylate_model::trust::Level;

use super::names::apart;
use super::{DIRECTORY, Screen, trusted};
use crate::doc::Table;
use crate::numbers::scale::{Letters, Unit};
use crate::numbers::{Cell, Names};
use crate::render::terminal::{BOLD, GREEN, RED, YELLOW, wrap};
use crate::render::{CUT, beginning, columns, shorter, whole_numbers};
use crate::spans::{Name, Sentence, assert_stand};
use crate::terminal::Style;

/// Lines of a screen, without that of the command.
const LINES: usize = 23;
/// Columns at which they hold.
pub(super) const COLUMNS: usize = 80;
/// Lines of the answer, of all tables with what stands between them, of the notes beside tables of any length, and of
/// the trust.
const ANSWER: usize = 2;
const TABLES: usize = 14;
const NOTES: usize = 5;
const TRUST: usize = 3;
/// Letters of a name in the first column of a table, or in any other.
pub(super) const LABEL: usize = 30;
const WORDS: usize = 24;
/// Lines of a text beside a name.
const TEXT: usize = 2;
/// What commands stand behind, and where a page is that has no room for its path.
pub(super) const MORE: &str = "More:  ";
const HERE: &str = "report.html there";
/// Between two columns.
pub(super) const APART: usize = 2;

/// Its text.
pub(super) fn write(screen: &Screen, style: Style) -> String {
    assert_stand(&screen.answer, &screen.tables, &screen.whole);
    let most = |lines: usize| if style.width >= COLUMNS { lines } else { usize::MAX };
    let fitting = Fitting { width: style.width, letters: style.letters, names: &screen.names };
    let mut lines: Vec<(Paint, String)> = Vec::new();
    let mut add = |paint: Paint, of: Vec<String>| {
        lines.extend(of.into_iter().map(|line| (paint, line)));
    };
    let recorded = screen.recorded.iter().map(|said| fitting.one_line(said)).collect::<Vec<_>>();
    let (answer, below) = fitting.answer(&screen.answer, most(ANSWER));
    let notes: Vec<String> = below.into_iter().chain(screen.notes.iter().cloned()).collect();
    let of_notes = fitting.notes(&notes, usize::MAX).len().min(NOTES);
    let trust = screen
        .trust
        .as_ref()
        .map(|trust| (trust.level(), trusted::lines(trust, screen, &fitting, most(TRUST))));
    let more = fitting.more(screen);
    let of_trust = trust.as_ref().map_or(0, |(_, lines)| lines.len());
    let others = recorded.len() + answer.len() + of_trust + more.len() + APARTS;
    let room = most(LINES).saturating_sub(others);
    let tables = fitting.tables(&screen.tables, room.saturating_sub(of_notes).min(most(TABLES)));
    let notes = fitting.notes(&notes, room.saturating_sub(tables.len()));
    add(Paint::new(), recorded);
    add(BOLD, answer);
    if !tables.is_empty() || !notes.is_empty() {
        add(Paint::new(), vec![String::new()]);
    }
    add(Paint::new(), tables);
    add(Paint::new(), notes);
    add(Paint::new(), vec![String::new()]);
    if let Some((level, lines)) = trust {
        add(
            match level {
                Level::Good => GREEN,
                Level::Limited => YELLOW,
                Level::Poor => RED,
            },
            lines,
        );
    }
    add(Paint::new(), more);
    let painted = |(paint, line): &(Paint, String)| {
        let line = line.trim_end();
        if style.colour && *paint != Paint::new() && !line.is_empty() {
            format!("{paint}{line}{paint:#}\n")
        } else {
            format!("{line}\n")
        }
    };
    lines.iter().map(painted).collect()
}

/// A table as a first screen has it, whole, for a report of any width.
pub(super) fn as_texts(table: &Table, letters: Letters) -> Table {
    let names = &Names::default();
    let fitting = Fitting { width: usize::MAX, letters, names };
    let mut lines = fitting.cells(table, usize::MAX).into_iter();
    let heads = lines.next().unwrap_or_default();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let words: Vec<usize> = (1..heads.len()).filter(|at| table.columns[*at].words).collect();
    Table::new("", &heads).words(&words).with(lines)
}

/// Empty lines of a screen: below the answer and above the trust.
const APARTS: usize = 2;

/// What texts and tables are fitted into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fitting<'a> {
    width: usize,
    letters: Letters,
    names: &'a Names,
}

impl Fitting<'_> {
    /// As a reader has it: the numbers of what was written elsewhere as those of the screen, in its letters.
    fn told(&self, text: &str) -> String {
        self.letters.write(&self.names.respelled(text))
    }

    /// Lines of a text, each but the first of which is indented.
    pub(super) fn wrapped(&self, text: &str, first: &str) -> Vec<String> {
        let rest = " ".repeat(first.chars().count());
        wrap(&self.told(text), first, &rest, self.width)
    }

    /// No more than so many lines; what is cut says so.
    pub(super) fn cut(&self, mut lines: Vec<String>, most: usize) -> Vec<String> {
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                let room = self.width.saturating_sub(CUT.len());
                let kept = beginning(last, room);
                *last = whole_numbers(kept, &last[kept.len()..]).to_owned() + CUT;
            }
        }
        lines
    }

    fn one_line(&self, text: &str) -> String {
        shorter(&Printable(text).to_string(), self.width)
    }

    /// Each sentence on a line of its own where that has room, else all of them as one text; those that have no room
    /// in it, as texts to stand below.
    fn answer(&self, sentences: &[Sentence], most: usize) -> (Vec<String>, Vec<String>) {
        let mut sentences: Vec<String> = sentences.iter().map(Sentence::said).collect();
        let mut below = Vec::new();
        loop {
            let apart: Vec<String> =
                sentences.iter().flat_map(|said| self.wrapped(said, "")).collect();
            if apart.len() <= most {
                return (apart, below);
            }
            let joined = self.wrapped(&sentences.join(" "), "");
            if joined.len() <= most || sentences.len() < 2 {
                return (self.cut(joined, most), below);
            }
            below.extend(sentences.pop());
            below.rotate_right(1);
        }
    }

    /// The first notes, each of them whole; the others are counted.
    fn notes(&self, notes: &[String], most: usize) -> Vec<String> {
        let told = |shown: usize| {
            let mut told = notes[..shown].to_vec();
            let more = match notes.len() - shown {
                0 => String::new(),
                1 => "1 more note: --full.".to_owned(),
                more => format!("{more} more notes: --full."),
            };
            match told.last_mut() {
                _ if more.is_empty() => {}
                Some(last) => {
                    last.push(' ');
                    last.push_str(&more);
                }
                None => told.push(more),
            }
            told.iter().flat_map(|note| self.wrapped(note, "")).collect::<Vec<_>>()
        };
        let all = (0..=notes.len()).rev().map(told);
        all.into_iter().find(|lines| lines.len() <= most).unwrap_or_default()
    }

    /// What to change, and commands, none of which is broken: what one is for goes before the command does. The page
    /// has the line of the first where that has room. A directory whose path leaves no room for a command has a name.
    fn more(&self, screen: &Screen) -> Vec<String> {
        let mut lines: Vec<String> =
            screen.change.iter().flat_map(|said| self.wrapped(said, MORE)).collect();
        let fits = |said: &str, width: usize| MORE.len() + columns(said) <= width;
        let width = self.width.max(COLUMNS);
        let path = screen.directory.as_deref();
        // With the path the page has to have room, too.
        let is_long = |(at, command): (usize, &String), path: &str| {
            let page = if at == 0 { format!(", or open {HERE}") } else { String::new() };
            let told = format!("{}{page}", alone(command).replace(DIRECTORY, path));
            command.contains(DIRECTORY) && !fits(&told, width)
        };
        let mut told = Vec::new();
        let place = match path {
            Some(path) if screen.more.iter().enumerate().any(|of| is_long(of, path)) => {
                told.push(format!("D={path}"));
                "\"$D\""
            }
            _ => path.unwrap_or_default(),
        };
        for (at, command) in screen.more.iter().enumerate() {
            let command = Printable(&command.replace(DIRECTORY, place)).to_string();
            let pages =
                path.filter(|_| at == 0).map(|_| [format!("{place}/report.html"), HERE.to_owned()]);
            let pages =
                pages.into_iter().flatten().map(|page| format!("{command}, or open {page}"));
            let with_page = pages.into_iter().find(|said| fits(said, self.width));
            let alone = alone(&command);
            let whole = with_page.unwrap_or_else(|| command.clone());
            if fits(&whole, width) {
                told.push(whole);
            } else if at == 0 || fits(alone, width) {
                told.push(alone.to_owned());
            }
        }
        for said in told {
            let first = if lines.is_empty() { MORE } else { "       " };
            lines.push(format!("{first}{said}"));
        }
        lines
    }

    /// All tables within so many lines: the longest of them is cut first, and what adds up last.
    fn tables(&self, tables: &[Table], most: usize) -> Vec<String> {
        let tables: Vec<&Table> = tables.iter().filter(|table| !table.rows.is_empty()).collect();
        // An entry has a line at least.
        let fitting = |of: &&Table| entries(of).min(of.most.unwrap_or(usize::MAX)).min(most);
        let mut shown: Vec<usize> = tables.iter().map(fitting).collect();
        let wide = Self { width: self.width.max(COLUMNS), ..*self };
        let lines = |fitting: &Self, shown: &[usize]| -> Vec<String> {
            let each = tables.iter().zip(shown).map(|(of, shown)| fitting.table(of, *shown));
            let each: Vec<Vec<String>> = each.filter(|lines| !lines.is_empty()).collect();
            each.join(&String::new())
        };
        while lines(&wide, &shown).len() > most {
            let left = tables.iter().zip(&mut shown).filter(|(_, rows)| **rows > 0);
            let Some((_, longest)) = left.max_by_key(|(of, rows)| (**rows > 1, !of.whole, **rows))
            else {
                break;
            };
            *longest -= 1;
        }
        lines(self, &shown)
    }

    /// The first entries of a table, and its last where it has to have that; the others are counted.
    fn table(&self, table: &Table, shown: usize) -> Vec<String> {
        if shown == 0 {
            return Vec::new();
        }
        let is_last_moved = table.keeps_last && shown < table.rows.len();
        let moved = is_last_moved.then(|| {
            let mut moved = table.clone();
            moved.rows.swap(shown - 1, table.rows.len() - 1);
            moved
        });
        let rows = shown.saturating_mul(table.together);
        let all = self.cells(moved.as_ref().unwrap_or(table), rows);
        let mut lines =
            if is_of_texts(table) { self.texts(&all) } else { self.columns(table, &all) };
        let more = entries(table).saturating_sub(shown);
        if more > 0 {
            let between = rest(table, rows).map_or_else(String::new, |of| format!(", {of}"));
            lines.push(format!("and {more} more{between}: --full"));
        }
        lines
    }

    /// Names, each with its text beside it.
    fn texts(&self, all: &[Vec<String>]) -> Vec<String> {
        let name = |row: &Vec<String>| row.first().cloned().unwrap_or_default();
        let width = all.iter().map(|row| columns(&name(row))).max().unwrap_or(0) + APART;
        let most = if self.width >= COLUMNS { TEXT } else { usize::MAX };
        let lines = all.iter().map(|row| {
            let text = row.get(1).map_or("", String::as_str);
            let (name, rest) = (name(row), " ".repeat(width));
            let first = format!("{name}{}", " ".repeat(width - columns(&name)));
            let lines = wrap(&self.told(text), &first, &rest, self.width);
            let lines = lines.into_iter().map(|line| line.trim_end().to_owned());
            self.cut(lines.collect(), most)
        });
        lines.flatten().collect()
    }

    /// Cells under each other. Columns that have no room stand below.
    fn columns(&self, table: &Table, all: &[Vec<String>]) -> Vec<String> {
        let Some(many) = all.first().map(Vec::len) else { return Vec::new() };
        let width = |at: usize| {
            all.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell)).max().unwrap_or(0)
        };
        let mut from = 1;
        let mut lines = Vec::new();
        while from < many || (many == 1 && lines.is_empty()) {
            let mut taken = width(0);
            let mut to = from;
            while to < many && (to == from || taken + APART + width(to) <= self.width) {
                taken += APART + width(to);
                to += 1;
            }
            for row in all {
                let mut line = row[0].clone();
                line.push_str(&" ".repeat(width(0).saturating_sub(columns(&row[0]))));
                for (at, cell) in row.iter().enumerate().take(to).skip(from) {
                    line.push_str(&" ".repeat(APART));
                    let words = table.columns.get(at).is_some_and(|column| column.words);
                    let room = " ".repeat(width(at).saturating_sub(columns(cell)));
                    let (before, behind) =
                        if words { ("", room.as_str()) } else { (room.as_str(), "") };
                    line.extend([before, cell, behind]);
                }
                lines.push(line.trim_end().to_owned());
            }
            from = to.max(from + 1);
        }
        lines
    }

    /// The head and the rows, as they are written.
    fn cells(&self, table: &Table, rows: usize) -> Vec<Vec<String>> {
        let middles = table.rows.iter().flat_map(|row| {
            let all = row.iter().zip(&table.columns);
            all.filter(|(_, column)| column.head.starts_with("p50")).map(|(cell, _)| cell)
        });
        let unit = Unit::of_middles(table.rows.iter().flatten(), middles);
        let has_times =
            |at: &usize| table.rows.iter().filter_map(|row| row.get(*at)).any(Cell::is_time);
        let of_times: Vec<usize> = (0..table.columns.len()).filter(has_times).collect();
        // What several columns have in common stands in front of them.
        let place = if let [only] = of_times.as_slice() { *only } else { 0 };
        let head = table.columns.iter().enumerate().map(|(at, column)| {
            let unit =
                unit.filter(|_| at == place).map_or(String::new(), |of| format!(", {}", of.name));
            self.letters.write(&format!("{}{unit}", column.head))
        });
        let written = |text: String| self.letters.write(&Printable(&text).to_string());
        let mut all: Vec<Vec<String>> = vec![head.collect()];
        all.resize(1 + rows.min(table.rows.len()), Vec::new());
        // Those that are not shown count, too: a table has the same digits at any length.
        for at in 0..table.columns.len() {
            let column: Vec<&Cell> = table.rows.iter().filter_map(|row| row.get(at)).collect();
            let texts = Cell::in_column(&column, unit).into_iter().map(written);
            all.iter_mut().skip(1).zip(texts).for_each(|(row, text)| row.push(text));
        }
        // A text is wrapped.
        let of_texts = is_of_texts(table);
        for row in all.iter_mut().skip(1).filter(|_| !of_texts) {
            row.iter_mut().skip(1).for_each(|cell| *cell = shorter(cell, WORDS));
        }
        // A name leaves room for any of the columns beside it; what stands alone has the line.
        let beside = all.iter().flat_map(|row| row.iter().skip(1)).map(|cell| columns(cell));
        let beside = if of_texts { WORDS } else { beside.max().unwrap_or(0) };
        let room = self.width.saturating_sub(APART + beside);
        let most = if table.columns.len() == 1 { self.width } else { LABEL.min(room) };
        let first = |row: &Vec<String>| row.first().cloned().unwrap_or_default();
        let names: Vec<String> = all.iter().skip(1).map(first).collect();
        for (row, name) in all.iter_mut().skip(1).zip(apart(&names, most)) {
            if let Some(first) = row.first_mut() {
                *first = name;
            }
        }
        all
    }
}

/// A command without what it is for.
fn alone(command: &str) -> &str {
    command.split_once("  ").map_or(command, |(command, _)| command)
}

/// Between which values the rows behind so many lie, of a table that is sorted by some.
fn rest(table: &Table, rows: usize) -> Option<String> {
    let column = table.sorted_by.filter(|_| !table.keeps_last)?;
    let cell = |row: Option<&Vec<Cell>>| row.and_then(|row| row.get(column)).cloned();
    let left_out = table.rows.get(rows..)?;
    let said = |row| Some(cell(row)?.alone().said());
    let (most, least) = (said(left_out.first())?, said(left_out.last())?);
    Some(if most == least { most } else { format!("{}–{most}", least.trim_end_matches('%')) })
}

/// How many entries a table has.
fn entries(table: &Table) -> usize {
    table.rows.len().div_ceil(table.together)
}

/// Is it of names and a text about each?
fn is_of_texts(table: &Table) -> bool {
    matches!(table.columns.as_slice(), [_, text] if text.words)
}

/// A name from outside as a table has it: harmless, and no longer than there is room for.
pub(super) fn name(text: &str) -> String {
    shorter(&Printable(text).to_string(), LABEL)
}

/// The same in a sentence.
pub(super) fn short(text: &str) -> Name {
    Name::cut(text, LABEL)
}
