//! A set of threads: what each received, whether it met its deadlines, which had the CPU when, and
//! what switching between them took.

use whylate_model::run::Run;

use super::execution;
use super::text::Page;
use crate::execution::recorded::{Recorded, SWITCHES, TITLE};
use crate::svg::Table;
use crate::threads::{Explained, RECEIVED, SKIPPED, judged, phases, received};

/// What there is to tell beside the run: its blocks, and the window whose trace is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Traced<'a> {
    /// What the run directory holds.
    pub recorded: &'a Recorded,
    /// Draw the execution trace?
    pub trace: bool,
}

pub(super) fn sections(page: &mut Page, run: &Run, traced: Option<Traced>) {
    if run.threads.is_empty() || run.only_wakes() {
        return;
    }
    if let Some(judged) = judged(run) {
        page.section("Deadlines");
        print(page, &judged.table);
        page.paragraph(SKIPPED);
        judged.misses.iter().for_each(|said| page.item(said));
    }
    for Explained { table, how } in phases(run) {
        page.section(&table.caption);
        print(page, &table);
        page.paragraph(how);
    }
    let received = received(run);
    page.section("CPU time of each thread");
    print(page, &received.table);
    page.paragraph(RECEIVED);
    received.items.iter().for_each(|said| page.item(said));
    if let Some(Traced { recorded, trace }) = traced {
        if trace {
            trace_of(page, recorded);
        }
        switches_of(page, recorded);
        recorded.notes().iter().for_each(|note| page.note(note));
    }
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

fn print(page: &mut Page, table: &Table) {
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}
