//! How close each backend comes to the truth, on a terminal.

use whylate_model::calibration::Calibration;
use whylate_model::run::Run;

use super::Style;
use super::text::Page;
use crate::calibration::{
    EMULATED, HOW, TITLE, answer, emulators, errors, limits, line, missing, planted, rates,
    readings, remarks, slopes, told,
};
use crate::svg::Table;

/// All of it.
#[must_use]
pub fn render(of: &Calibration, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(TITLE);
    page.paragraph(&answer(of));
    body(&mut page, of);
    page.finish()
}

/// The same in the report of a run, which has the answer at its head.
pub(super) fn sections(page: &mut Page, run: &Run) {
    let Some(of) = run.calibration.as_deref() else { return };
    page.section(TITLE);
    body(page, of);
    if let Some(of) = run.calibration_parts.as_deref() {
        for table in [rates(of), slopes(of), planted(of)].into_iter().flatten() {
            print(page, &table);
        }
        for said in &told(of) {
            page.item(said);
        }
    }
}

fn body(page: &mut Page, of: &Calibration) {
    page.paragraph(&line(of));
    let both = limits(of);
    if !both.rows.is_empty() {
        print(page, &both);
        page.paragraph(HOW);
    }
    for backend in &of.backends {
        print(page, &errors(backend, of.tolerance));
        for said in &remarks(backend) {
            page.item(said);
        }
        if let Some(table) = readings(backend) {
            print(page, &table);
        }
    }
    if let Some(table) = emulators(of) {
        print(page, &table);
        page.paragraph(EMULATED);
    }
    for said in &missing(of) {
        page.note(said);
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
    use crate::calibration::tests::{calibration, halving};

    #[test]
    fn a_calibration_fits_on_80_columns_with_all_that_it_found() {
        let mut of = calibration();
        let mut foreign = of.backends[0].clone();
        "sockperf".clone_into(&mut foreign.backend);
        foreign.foreign = Some(halving());
        of.backends.push(foreign);
        let text = render(&of, Style::default());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "packet spin may be trusted within 1.00us up to p99",
            "The truth is what the delay line wrote down of each frame (af_packet, set to 10us)",
            "Trusted within 1.00us up to",
            "packet spin: errors, n = 300 000",
            "HALVES what it measured",
            "sockperf at each setting of the line",
            "! dpdk was not calibrated: no huge pages",
            "the delay line 10.0us 100 000 +31ns +240ns -",
            "! netem was not measured: this kernel has no netem",
        ] {
            assert!(flat.contains(words), "no `{words}` in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_calibration_reads_as_recorded() {
        insta::assert_snapshot!(render(&calibration(), Style::default()));
    }
}
