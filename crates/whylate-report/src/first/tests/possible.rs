//! Can what a first screen says be so? One check of all of them, by what a user reads: order and sums of the figures
//! in the tables, parts beside their wholes, and each figure of the answer.

use std::ops::RangeInclusive;

mod answer;
mod tables;
mod tests;

/// Nothing on the screen contradicts anything else on it.
#[track_caller]
pub(super) fn assert_possible(screen: &str) {
    let wrong = contradictions(screen);
    assert!(wrong.is_empty(), "{}\nin\n{screen}", wrong.join("\n"));
}

/// What contradicts what.
pub(super) fn contradictions(text: &str) -> Vec<String> {
    let screen = Screen::read(text);
    let mut wrong = tables::contradictions(&screen);
    wrong.extend(answer::contradictions(&screen));
    wrong
}

/// A screen as a user reads it.
struct Screen {
    answer: String,
    tables: Vec<Table>,
    notes: String,
}

/// A table in lines.
#[derive(Debug, Default, Clone)]
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Entries that had no room.
    more: usize,
}

impl Screen {
    fn read(text: &str) -> Self {
        let text = &with_letters(text);
        let (own, _) = text.split_once("\nMore:").unwrap_or((text, ""));
        let (own, _) = own.split_once("\nTrust:").unwrap_or((own, ""));
        let (answer, rest) = own.split_once("\n\n").unwrap_or((own, ""));
        // The first line is the user's command.
        let is_own = |line: &&str| !line.starts_with("Recorded") && !line.starts_with("Merged");
        let answer = answer.lines().filter(is_own).collect::<Vec<_>>().join(" ");
        let (mut tables, mut notes) = (Vec::new(), String::new());
        for block in rest.split("\n\n") {
            Table::read_all(block, &mut tables, &mut notes);
        }
        tables.extend(hourglass(&notes));
        Self { answer, tables, notes }
    }

    fn table(&self, head: &str) -> Option<&Table> {
        self.tables.iter().find(|of| of.heads[0].starts_with(head))
    }
}

/// With the letters that a terminal beyond ASCII gets.
fn with_letters(text: &str) -> String {
    let letters: Vec<char> = text.replace(">=", "≥").chars().collect();
    let is_end = |at: Option<&char>, of: &str| {
        at.is_some_and(|letter| letter.is_ascii_digit() || of.contains(*letter))
    };
    let written = letters.iter().enumerate().map(|(at, letter)| {
        let between =
            at > 0 && is_end(letters.get(at - 1), "%") && is_end(letters.get(at + 1), "<");
        if *letter == '-' && between { '–' } else { *letter }
    });
    written.collect()
}

/// The lines of the paper's program as a table: `thread 0: missed 84 deadlines, hit 541`.
fn hourglass(notes: &str) -> Option<Table> {
    let heads = ["thread", "missed", "jobs"].map(str::to_owned).to_vec();
    let row = |of: &str| {
        let (missed, hits) = of.split_once(" deadlines, hit ")?;
        let [missed, hits] = [missed, hits.split(' ').next()?].map(str::parse::<u64>);
        let (missed, hits) = (missed.ok()?, hits.ok()?);
        Some(vec![String::new(), missed.to_string(), (missed + hits).to_string()])
    };
    let rows: Vec<Vec<String>> = notes.split(": missed ").skip(1).filter_map(row).collect();
    let more = notes.split("more: ").nth(1).and_then(|of| of.split(' ').next()?.parse().ok());
    (!rows.is_empty()).then(|| Table { heads, rows, more: more.unwrap_or(0) })
}

/// What stands between two columns.
fn cells(line: &str) -> Vec<String> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

impl Table {
    /// The tables of a block, and the sentences behind them. Columns without room stand below, under the first again.
    fn read_all(block: &str, all: &mut Vec<Self>, notes: &mut String) {
        let first = all.len();
        let mut table = Self::default();
        for line in block.lines() {
            // Of sorted rows the values of those that are left out follow.
            let more = line.strip_prefix("and ").and_then(|of| of.strip_suffix(": --full"));
            if let Some((more, _)) = more.and_then(|of| of.split_once(" more")) {
                table.more = more.replace(',', "").parse().unwrap_or(0);
            } else if line.starts_with(' ')
                && table.heads.first().is_some_and(|head| !head.is_empty())
            {
                // The text beside a name goes on.
            } else if !line.contains("  ") {
                notes.extend([line, " "]);
            } else if table.heads.is_empty() || cells(line)[0] == table.heads[0] {
                all.extend((!table.rows.is_empty()).then(|| std::mem::take(&mut table)));
                let unnamed = line.starts_with(' ').then(String::new);
                table.heads = unnamed.into_iter().chain(cells(line)).collect();
            } else {
                let cells = cells(line);
                // A name may hold what stands between columns.
                let of_name = (cells.len() + 1).saturating_sub(table.heads.len()).max(1);
                let (name, cells) = cells.split_at(of_name.min(cells.len()));
                table.rows.push(std::iter::once(name.join("  ")).chain(cells.to_vec()).collect());
            }
        }
        let more = table.more;
        if table.rows.is_empty() && more > 0 {
            notes.extend(["more: ", more.to_string().as_str(), " "]);
        }
        all.extend((!table.rows.is_empty()).then_some(table));
        all[first..].iter_mut().for_each(|table| table.more = more);
    }

    /// Where the column is that is called so; its unit may stand behind that.
    fn column(&self, head: &str) -> Option<usize> {
        let unit = |rest: &str| rest.strip_prefix(", ").is_some_and(|unit| time(unit).is_some());
        let is =
            |of: &String| of.strip_prefix(head).is_some_and(|rest| rest.is_empty() || unit(rest));
        self.heads.iter().position(is)
    }

    /// What a column holds in a row, in its own unit.
    fn at(&self, row: usize, head: &str) -> Option<Number> {
        Number::read(self.rows.get(row)?.get(self.column(head)?)?)
    }

    /// All numbers of a column.
    fn all(&self, head: &str) -> Vec<Number> {
        (0..self.rows.len()).filter_map(|row| self.at(row, head)).collect()
    }

    /// One in a column, in ns, by the unit above it, above the table or behind the name of the row.
    fn unit(&self, row: usize, column: usize) -> Option<f64> {
        let of = |head: &String| time(head.rsplit(", ").next()?);
        of(self.heads.get(column)?)
            .or_else(|| of(&self.heads[0]))
            .or_else(|| of(&self.rows.get(row)?[0]))
    }

    fn sum(&self, head: &str) -> Option<Number> {
        let all = self.all(head);
        let own = all.iter().zip(&self.rows).filter(|(_, row)| row[0] != "total");
        let sum = |(a, b): (f64, f64), of: &Number| (a + of.value, b + of.off);
        let (value, off) = own.map(|(of, _)| of).fold((0.0, 0.0), sum);
        (all.len() == self.rows.len() && all.len() > 1).then_some(Number {
            value,
            off,
            bound: Bound::None,
        })
    }
}

/// A number in a cell, and how far it may be off as it is written.
#[derive(Debug, Clone, Copy)]
struct Number {
    value: f64,
    off: f64,
    bound: Bound,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    None,
    /// It is that at least.
    Least,
    /// It is less.
    Less,
}

impl Number {
    fn read(text: &str) -> Option<Self> {
        // The mark of what is beyond trust is no part of a number.
        let text = text.trim_start_matches('~');
        let bound = match text.chars().next()? {
            '≥' | '>' => Bound::Least,
            '<' => Bound::Less,
            _ => Bound::None,
        };
        let plain =
            text.trim_start_matches(['≥', '<', '>', '+']).trim_end_matches('%').replace(',', "");
        let plain = plain.replace('−', "-");
        let value: f64 = plain.parse().ok()?;
        let places = plain.split_once('.').map_or(0, |(_, behind)| behind.len() as i32);
        // A whole number may have been rounded to three digits; a part of a hundred to a whole one.
        let digits = plain.trim_start_matches('-').len() as i32;
        let exact = match places {
            0 if text.ends_with('%') => 1.0,
            0 => 10_f64.powi((digits - 3).max(0)),
            places => 10_f64.powi(-places),
        };
        Some(Self { value, off: exact / 2.0, bound })
    }

    /// Both may be the same as far as they are written.
    fn is(self, other: Self) -> bool {
        (self.value - other.value).abs() <= self.off + other.off + 1e-9
    }

    /// It is shown to be more than the other.
    fn is_more(self, other: Self) -> bool {
        self.bound != Bound::Less
            && other.bound != Bound::Least
            && self.value > other.value + self.off + other.off + 1e-9
    }
}

/// Both ends of an interval.
fn interval(text: &str) -> Option<RangeInclusive<f64>> {
    let text = text.trim_end_matches('%');
    let (low, high) = text.split_once(" to ").or_else(|| text.split_once('–'))?;
    let end = |of: &str| Number::read(of.trim());
    let (low, high) = (end(low)?, end(high)?);
    let off = low.off.max(high.off) * 1.01;
    let least = if low.bound == Bound::Less { 0.0 } else { low.value - off };
    Some(least..=high.value + off)
}

/// A unit in ns.
fn time(unit: &str) -> Option<f64> {
    [("ns", 1.0), ("µs", 1e3), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]
        .into_iter()
        .find_map(|(of, ns)| (of == unit).then_some(ns))
}
