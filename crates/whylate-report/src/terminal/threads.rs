//! A set of threads, drawn: which had the CPU when, and what switching between them took.

use super::execution;
use crate::execution::recorded::{Recorded, SWITCHES, TITLE};
use crate::render::terminal::Page;

/// What there is to tell beside the run: its blocks, and the window whose trace is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Traced<'a> {
    /// What the run directory holds.
    pub recorded: &'a Recorded,
    /// Draw the execution trace?
    pub trace: bool,
}

/// What a terminal draws of them, below their section.
pub(super) fn drawn(page: &mut Page, Traced { recorded, trace }: Traced) {
    if trace {
        trace_of(page, recorded);
    }
    switches_of(page, recorded);
    recorded.notes().iter().for_each(|note| page.note(note));
}

fn trace_of(page: &mut Page, recorded: &Recorded) {
    page.section(TITLE);
    match recorded.rows() {
        Some(rows) => {
            page.paragraph(&recorded.window_in_words());
            execution::draw_trace(page, rows, recorded.window(), TITLE);
        }
        None => page.paragraph("The run directory holds no block of CPU time."),
    }
}

fn switches_of(page: &mut Page, recorded: &Recorded) {
    if recorded.switches().is_empty() {
        return;
    }
    page.section("Context switches");
    execution::draw_switches(page, recorded.switches());
    page.paragraph(SWITCHES);
}
