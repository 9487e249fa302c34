//! What a context switch costs: times by kind, what the kernel says of them, and working sets.

use whylate_model::run::Run;

use super::text::Page;
use crate::svg::Table;
use crate::switch_cost::{
    EVIDENCE, GROWTH, PENALTY, REFILL, TIMES, evidence, growth, growth_remarks, penalties,
    penalty_remarks, refill_remarks, refills, remarks, times,
};

/// Columns of the table of times that fit beside each other.
const COLUMNS: usize = 6;

pub(super) fn sections(page: &mut Page, run: &Run) {
    let Some(found) = &run.switch_cost else { return };
    if !found.direct.is_empty() {
        page.section("Context switches");
        if let Some(mut times) = times(found) {
            // The percentiles of all of them stand in the table of series.
            let narrow = |row: &mut Vec<String>| row.truncate(COLUMNS);
            narrow(&mut times.head);
            times.rows.iter_mut().for_each(narrow);
            print(page, &times);
            page.paragraph(TIMES);
        }
        if let Some(evidence) = evidence(found) {
            print(page, &evidence);
            page.paragraph(EVIDENCE);
        }
        for said in &remarks(found) {
            page.item(said);
        }
    }
    if let Some(penalties) = penalties(found) {
        page.section("Through the caches");
        print(page, &penalties);
        page.paragraph(PENALTY);
        for said in &penalty_remarks(found) {
            page.item(said);
        }
    }
    if let Some(refills) = refills(found) {
        page.section(&refills.caption);
        print(page, &refills);
        page.paragraph(REFILL);
    }
    for said in &refill_remarks(found) {
        page.item(said);
    }
    if let Some(growth) = growth(found) {
        page.section(&growth.caption);
        print(page, &growth);
        page.paragraph(GROWTH);
        for said in &growth_remarks(found) {
            page.item(said);
        }
    }
}

fn print(page: &mut Page, table: &Table) {
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}
