//! How close each backend comes to the truth, on a terminal.

use whylate_model::calibration::Calibration;

use super::Style;
use crate::calibration::{TITLE, answer, blocks};
use crate::doc::Where;
use crate::render::terminal::Page;

/// All of it.
#[must_use]
pub fn render(of: &Calibration, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(TITLE);
    page.paragraph(&answer(of).to_string());
    page.blocks(&blocks(of, Where::Terminal));
    page.finish()
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
            "packet spin: errors, n = 300,000",
            "HALVES what it measured",
            "sockperf at each setting of the line",
            "! dpdk was not calibrated: no huge pages",
            "the delay line 10.0us 100,000 +31ns +240ns -",
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
