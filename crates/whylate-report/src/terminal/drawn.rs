//! A set of threads in letters: which had the CPU when, and what switching between them took.

use crate::doc::{Block, Document};
use crate::execution::recorded::{Recorded, SWITCHES, TITLE};
use crate::execution::{Received, ThreadRow, Window};
use crate::svg::execution::{milliseconds, table as received_table};
use crate::svg::switches::{sentence, table as switches_table};

/// Letters of a name; longer ones are cut, the table has them whole.
const NAME: usize = 14;
/// Fewer columns of time show nothing.
const NARROWEST: usize = 20;
/// Threads with a line in the trace; more are not taken in at a glance.
const MOST_ROWS: usize = 64;

/// What there is to tell beside the run: its blocks, and the window whose trace is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Traced<'a> {
    /// What the run directory holds.
    pub recorded: &'a Recorded,
    /// Draw the execution trace?
    pub trace: bool,
}

/// What of them stands below their section, on a terminal of so many columns.
pub(super) fn add(document: Document, traced: Traced, width: usize) -> Document {
    let Traced { recorded, trace } = traced;
    let document = match recorded.rows() {
        _ if !trace => document,
        Some(rows) => {
            let words = Block::Text(recorded.window_in_words());
            let drawn = lines(rows, recorded.window(), width);
            document.about(TITLE, [words].into_iter().chain(drawn).collect())
        }
        None => {
            let none = "The run directory holds no block of CPU time.".to_owned();
            document.about(TITLE, vec![Block::Text(none)])
        }
    };
    let panels = recorded.switches();
    let switches = if panels.is_empty() {
        Vec::new()
    } else {
        let table = switches_table(panels, "").captioned_on_the_page();
        let said = panels.iter().map(sentence).collect();
        vec![Block::Items(said), Block::Table(table), Block::How(SWITCHES.to_owned())]
    };
    let notes = recorded.notes().iter().cloned().map(Block::Note);
    document.about("Context switches", switches).with(notes)
}

/// A line for each thread, a letter for each part of the window, how to read them, and their table.
fn lines(rows: &[ThreadRow], window: Window, width: usize) -> Vec<Block> {
    let columns = width.saturating_sub(NAME + 3).max(NARROWEST);
    let row = |row: &ThreadRow| {
        let letters: String = row.shares(window, columns).into_iter().map(letter).collect();
        format!("{:NAME$} |{letters}|", cut(&row.label))
    };
    let mut lines: Vec<String> = rows.iter().take(MOST_ROWS).map(row).collect();
    lines.push(axis(window, columns));
    let each = window.length_ns() / columns as f64;
    let how = format!(
        "ms since the beginning of the run; a column is {} ms: # more than two thirds of it, + more \
         than a third, . less, blank none",
        milliseconds(each, each / 10.0)
    );
    let more = rows.len().saturating_sub(MOST_ROWS);
    let more = (more > 0).then(|| Block::Text(format!("{more} more threads are in the table.")));
    let received: Vec<Received> = rows.iter().map(|row| row.received(window)).collect();
    let table = received_table(rows, &received, window, TITLE).captioned_on_the_page();
    let mut blocks = vec![Block::Drawn(lines), Block::How(how)];
    blocks.extend(more.into_iter().chain([Block::Table(table)]));
    blocks
}

fn letter(share: f64) -> char {
    match share {
        share if share > 2.0 / 3.0 => '#',
        share if share > 1.0 / 3.0 => '+',
        share if share > 0.0 => '.',
        _ => ' ',
    }
}

fn cut(label: &str) -> String {
    // A name with something in it that does not print is shown escaped, in the same room.
    let label = whylate_model::Printable(label).to_string();
    label.chars().take(NAME).collect()
}

/// The window's begin, middle and end below the columns they stand for.
fn axis(window: Window, columns: usize) -> String {
    let label = |share: f64| {
        let at = window.begin_ns() + share * window.length_ns();
        milliseconds(at, window.length_ns() / 1e3)
    };
    let (begin, middle, end) = (label(0.0), label(0.5), label(1.0));
    let half = columns / 2 + 1;
    let middle_at = half.saturating_sub(middle.len() / 2);
    let end_at = (columns + 2).saturating_sub(end.len());
    let first = format!("{begin:middle_at$}{middle}");
    format!("{:NAME$} {first:end_at$}{end}", "")
}

#[cfg(test)]
mod tests {
    use whylate_model::{Hertz, Nanos, Ticks};

    use super::*;
    use crate::execution::{rows, tests::turns};
    use crate::render::terminal::write;
    use crate::terminal::Style;

    fn drawn(rows: &[ThreadRow], window: Window, style: Style) -> String {
        write(&Document::new(TITLE).with(lines(rows, window, style.width)), style)
    }

    #[test]
    fn the_trace_shows_who_had_the_cpu() {
        let names: Vec<String> = (0..4).map(|i| format!("{i} NORMAL\u{1b}")).collect();
        let rows = rows(&turns(), &names, Ticks(0), Hertz(2e9));
        let window = Window { from: Nanos(0), length: Nanos(100_000_000) };
        let text = drawn(&rows, window, Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_narrow_terminal_and_an_empty_window_do_no_harm() {
        let style = Style { width: 1, ..Style::default() };
        let window = Window { from: Nanos(0), length: Nanos(0) };
        let row = ThreadRow { label: "a".to_owned(), spans: Vec::new() };
        assert!(drawn(&[row], window, style).contains('|'));
    }
}
