//! Wake-ups: how late, where the time went, and what the late ones are named after.

use whylate_model::run::Run;

use super::text::Page;
use crate::svg::Table;
use crate::wake::{CORRECTED, SPLIT, wakes};

pub(super) fn sections(page: &mut Page, run: &Run) {
    let Some(wakes) = wakes(run) else { return };
    page.section("Wake-ups later than");
    print(page, &wakes.later);
    page.paragraph(CORRECTED);
    if let Some(split) = &wakes.split {
        page.section("Where their lateness went");
        print(page, split);
        page.paragraph(SPLIT);
    }
    wakes.told.iter().for_each(|said| page.item(said));
}

fn print(page: &mut Page, table: &Table) {
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}
