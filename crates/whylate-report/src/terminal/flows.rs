//! Flows of requests: by which way, what left, what became of it.

use whylate_model::run::Run;

use super::text::Page;
use crate::flows::{ACCOUNT, account, departures, parts, remarks, times, ways};
use crate::svg::Table;
use crate::{pacing, tail};

pub(super) fn sections(page: &mut Page, run: &Run) {
    if run.flows.is_empty() {
        return;
    }
    page.paragraph(times(run));
    for table in [Some(departures(run)), Some(ways(run)), parts(run)].into_iter().flatten() {
        print(page, &table);
    }
    for said in &remarks(run) {
        page.item(said);
    }
    print(page, &account(run));
    page.paragraph(ACCOUNT);
    if let Some(table) = pacing::table(run) {
        print(page, &table);
        page.paragraph(pacing::APART);
    }
    for why in tail::sections(run) {
        page.section(&why.table.caption);
        page.paragraph(&why.answer);
        if !why.table.rows.is_empty() {
            let head: Vec<&str> = why.table.head.iter().map(String::as_str).collect();
            page.table(&head, &why.table.rows, &why.table.left);
            page.paragraph(tail::SHARES);
        }
        for said in &why.told {
            page.item(said);
        }
    }
}

fn print(page: &mut Page, table: &Table) {
    page.section(&table.caption);
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}
