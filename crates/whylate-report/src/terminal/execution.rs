//! The execution trace and the histogram of context switches in letters: `render_trace` and
//! `process_ctx` on a terminal.

use super::Style;
use crate::execution::{Received, ThreadRow, Window};
use crate::numbers::count;
use crate::render::terminal::Page;
use crate::svg::Table;
use crate::svg::execution::{milliseconds, table as received_table};
use crate::svg::switches::{Panel, sentence, table as switches_table};

/// Letters of a name; longer ones are cut, the table has them whole.
const NAME: usize = 14;
/// Fewer columns of time show nothing.
const NARROWEST: usize = 20;
/// Lines of a histogram; bins beyond are joined, two and two.
const MOST_LINES: usize = 30;
/// Threads with a line in the trace; more are not taken in at a glance.
const MOST_ROWS: usize = 64;

/// Which thread had the CPU when: a line for each thread, a letter for each part of the window.
#[must_use]
pub fn trace(rows: &[ThreadRow], window: Window, title: &str, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(title);
    draw_trace(&mut page, rows, window, title);
    page.finish()
}

/// What context switches took: a histogram for each panel, and what rule R1 makes of it.
#[must_use]
pub fn switches(panels: &[Panel], title: &str, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(title);
    if panels.iter().all(|panel| panel.times.n == 0) {
        page.paragraph("There was no context switch.");
    }
    for panel in panels.iter().filter(|panel| panel.times.n > 0) {
        page.blank();
        page.paragraph(&sentence(panel));
        histogram(&mut page, panel, style.width);
    }
    print(&mut page, &switches_table(panels, title));
    page.finish()
}

/// The lines of the trace, how to read them, and their table.
pub(super) fn draw_trace(page: &mut Page, rows: &[ThreadRow], window: Window, title: &str) {
    let columns = page.width().saturating_sub(NAME + 3).max(NARROWEST);
    for row in rows.iter().take(MOST_ROWS) {
        let letters: String = row.shares(window, columns).into_iter().map(letter).collect();
        page.drawn(&format!("{:NAME$} |{letters}|", cut(&row.label)));
    }
    page.drawn(&axis(window, columns));
    let each = window.length_ns() / columns as f64;
    page.paragraph(&format!(
        "ms since the beginning of the run; a column is {} ms: # more than two thirds of it, + more \
         than a third, . less, blank none",
        milliseconds(each, each / 10.0)
    ));
    if rows.len() > MOST_ROWS {
        page.paragraph(&format!("{} more threads are in the table.", rows.len() - MOST_ROWS));
    }
    let received: Vec<Received> = rows.iter().map(|row| row.received(window)).collect();
    print(page, &received_table(rows, &received, window, title));
}

/// What rule R1 makes of context switches: a sentence for each panel, and their table.
pub(super) fn draw_switches(page: &mut Page, panels: &[Panel]) {
    for panel in panels {
        page.item(&sentence(panel));
    }
    print(page, &switches_table(panels, "Context switches"));
}

fn histogram(page: &mut Page, panel: &Panel, width: usize) {
    let bins = &panel.times.bins;
    let join = bins.len().div_ceil(MOST_LINES).max(1);
    let lines: Vec<(u64, u64, u64)> = bins
        .chunks(join)
        .map(|bins| {
            let counted = bins.iter().map(|bin| bin.count).sum();
            (bins[0].from.0, bins[bins.len() - 1].to.0, counted)
        })
        .collect();
    let most = lines.iter().map(|line| line.2).max().unwrap_or(1).max(1);
    let counts = count(most).len();
    let room = width.saturating_sub(18 + counts).max(NARROWEST);
    for (from, to, counted) in lines {
        // What there is, is seen.
        let bar = (counted as f64 / most as f64 * room as f64).ceil() as usize;
        let expected = panel.times.expected.is_some_and(|cost| (from..to).contains(&cost.0));
        let mark = if expected { '>' } else { ' ' };
        let from = format!("{:.3}us", from as f64 / 1e3);
        page.drawn(&format!("{mark} {from:>11} {:>counts$} {}", count(counted), "#".repeat(bar)));
    }
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

fn print(page: &mut Page, table: &Table) {
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.blank();
    page.table(&head, &table.rows, &table.left);
}

#[cfg(test)]
mod tests {
    use whylate_model::{Hertz, Nanos, Ticks};

    use super::*;
    use crate::execution::{rows, tests::turns};
    use crate::svg::switches::tests::panel;

    #[test]
    fn the_trace_shows_who_had_the_cpu() {
        let names: Vec<String> = (0..4).map(|i| format!("{i} NORMAL\u{1b}")).collect();
        let rows = rows(&turns(), &names, Ticks(0), Hertz(2e9));
        let window = Window { from: Nanos(0), length: Nanos(100_000_000) };
        let text = trace(&rows, window, "Execution trace", Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_histogram_of_switches_has_its_expected_cost_marked() {
        let text = switches(&[panel("involuntary")], "Context switches", Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
        assert!(switches(&[], "t", Style::default()).contains("no context switch"));
    }

    #[test]
    fn a_narrow_terminal_and_an_empty_window_do_no_harm() {
        let style = Style { width: 1, ..Style::default() };
        let window = Window { from: Nanos(0), length: Nanos(0) };
        let row = ThreadRow { label: "a".to_owned(), spans: Vec::new() };
        assert!(trace(&[row], window, "t", style).contains('|'));
        assert!(switches(&[panel("a")], "t", style).contains('#'));
    }
}
