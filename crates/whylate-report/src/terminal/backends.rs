//! Several backends in turns.

use whylate_model::run::Run;

use super::text::Page;
use crate::backends::{HOW, TITLE, remarks, round_trips, savings};
use crate::svg::Table;

pub(super) fn sections(page: &mut Page, run: &Run) {
    let Some(of) = run.backends.as_deref() else { return };
    page.section(TITLE);
    let trips = round_trips(run, of);
    for table in [Some(trips), savings(of)].into_iter().flatten() {
        page.paragraph(&table.caption);
        print(page, &table);
    }
    page.paragraph(HOW);
    for said in &remarks(of) {
        page.item(said);
    }
}

fn print(page: &mut Page, table: &Table) {
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}
