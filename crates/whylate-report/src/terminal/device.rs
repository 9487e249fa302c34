//! What a box does to latency, on a terminal.

use whylate_model::device::Device;
use whylate_model::run::Run;

use super::Style;
use super::text::Page;
use crate::device::{
    BOUGHT, BOUNDS, CARRIED, SHARES, answer, bought, bounds, captured_ways, captures, carried,
    checked, circumstances, configured, fan_in, forwarding, latencies, reasons, title,
};
use crate::svg::Table;

/// All of it.
#[must_use]
pub fn render(of: &Device, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(&title(of));
    page.paragraph(&answer(of));
    body(&mut page, of);
    page.finish()
}

/// The same in the report of a run, which has the answer at its head.
pub(super) fn sections(page: &mut Page, run: &Run) {
    let Some(of) = run.device.as_deref() else { return };
    page.section(&title(of));
    body(page, of);
}

fn body(page: &mut Page, of: &Device) {
    for said in &circumstances(of) {
        page.item(said);
    }
    for said in &configured(of) {
        page.item(said);
    }
    if let Some(of) = &of.captures {
        page.paragraph(&captures(of));
    }
    if let Some(table) = captured_ways(of) {
        print(page, &table);
    }
    let through = latencies(of);
    if !through.rows.is_empty() {
        print(page, &through);
    }
    if let Some(table) = bounds(of) {
        print(page, &table);
        page.paragraph(BOUNDS);
    }
    for said in &checked(of) {
        page.item(said);
    }
    for (table, how) in [(bought(of), BOUGHT), (carried(of), CARRIED)] {
        if let Some(table) = table {
            print(page, &table);
            page.paragraph(how);
        }
    }
    if let Some(table) = forwarding(of) {
        print(page, &table);
        for said in &reasons(of) {
            page.item(said);
        }
    }
    let shared = fan_in(of);
    for table in &shared {
        print(page, table);
    }
    if !shared.is_empty() {
        page.paragraph(SHARES);
    }
}

fn print(page: &mut Page, table: &Table) {
    page.section(&table.caption);
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::device;

    #[test]
    fn a_device_fits_on_80_columns_with_all_that_was_found() {
        let text = render(&device(), Style::default());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "What bridge does to latency",
            "It is store-and-forward.",
            "a bridge of the kernel in a namespace; measured by packet spin",
            "percentiles through the delay line (af_packet, 10us), the smallest back to back",
            "end of the packet to its end",
            "remote was refused: this host has one NUMA node",
            "Time in the box",
            "3 of 4 bounds hold what the box itself wrote down",
            "2 ports into p4",
            "Jain's index",
        ] {
            assert!(flat.contains(words), "no `{words}` in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_device_reads_as_recorded() {
        insta::assert_snapshot!(render(&device(), Style::default()));
    }
}
