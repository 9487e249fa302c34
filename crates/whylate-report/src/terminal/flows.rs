//! Flows of requests: by which way, what left, what became of it.

use whylate_model::run::Run;

use super::text::Page;
use crate::flows::{ACCOUNT, TIMES, account, departures, parts, remarks, ways};
use crate::svg::Table;

pub(super) fn sections(page: &mut Page, run: &Run) {
    if run.flows.is_empty() {
        return;
    }
    page.paragraph(TIMES);
    for table in [Some(departures(run)), Some(ways(run)), parts(run)].into_iter().flatten() {
        print(page, &table);
    }
    for said in &remarks(run) {
        page.item(said);
    }
    print(page, &account(run));
    page.paragraph(ACCOUNT);
}

fn print(page: &mut Page, table: &Table) {
    page.section(&table.caption);
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}
