//! The section of a calibration: limits of trust, and the errors of each backend.

use whylate_model::calibration::{CalibratedBackend, Calibration};
use whylate_model::run::Run;

use super::{
    EMULATED, HOW, TITLE, curves, emulators, errors, limits, line, missing, planted, rates,
    readings, remarks, slopes, told,
};
use crate::doc::{Block, Picture, Section, Where};
use crate::svg::{Figure, error_curve};

/// Backends with a figure; the tables have the others' numbers.
const MOST_FIGURES: usize = 24;

/// How the figures are to be read.
const CURVE: &str = "Right: the percentile, each nine of the tail as wide as the one before. Up: the error; \
     within the tolerance, which is shaded, on an even scale, beyond it by decades. Bars: 95% intervals. \
     Dashed upright: up to where a curve may be trusted.";

/// The section; none for a run of something else.
pub(crate) fn section(run: &Run, to: Where) -> Option<Section> {
    let mut blocks = blocks(run.calibration.as_deref()?, to);
    if let Some(of) = run.calibration_parts.as_deref() {
        blocks.extend([rates(of), slopes(of), planted(of)].into_iter().flatten().map(Block::Table));
        blocks.extend(Block::items(told(of)));
    }
    Some(Section::new("calibrated", TITLE, blocks).headed())
}

/// What it says, with figures on the page.
fn blocks(of: &Calibration, to: Where) -> Vec<Block> {
    let mut blocks = vec![Block::Text(line(of))];
    let limits = limits(of);
    if !limits.rows.is_empty() {
        blocks.extend(Block::explained(limits, HOW));
    }
    for (at, one) in of.backends.iter().enumerate() {
        if to == Where::Page {
            blocks.push(Block::Heading(one.backend.clone()));
            let drawn = (at < MOST_FIGURES).then(|| figure(of, one).svg);
            blocks.extend(drawn.map(|svg| Block::Figure(Picture::still(svg, CURVE))));
        }
        blocks.push(Block::Table(errors(one, of.tolerance)));
        blocks.extend(Block::items(remarks(one)));
        blocks.extend(readings(one).map(Block::Table));
    }
    blocks.extend(emulators(of).into_iter().flat_map(|table| Block::explained(table, EMULATED)));
    blocks.extend(missing(of).into_iter().map(Block::Note));
    blocks
}

/// The errors of a backend over the percentile, with their table.
pub(crate) fn figure(of: &Calibration, one: &CalibratedBackend) -> Figure {
    let title = format!("Error of {} at each percentile", one.backend);
    let table = errors(one, of.tolerance);
    error_curve::figure(&curves(one), of.tolerance.0 as f64, &title, table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::tests::{calibration, halving};
    use crate::doc::Document;
    use crate::render::terminal::write;
    use crate::terminal::Style;

    fn text(of: &Calibration) -> String {
        write(&Document::new(TITLE).with(blocks(of, Where::Terminal)), Style::default())
    }

    #[test]
    fn a_calibration_fits_on_80_columns_with_all_that_it_found() {
        let mut of = calibration();
        let mut foreign = of.backends[0].clone();
        "sockperf".clone_into(&mut foreign.backend);
        foreign.foreign = Some(halving());
        of.backends.push(foreign);
        let text = text(&of);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "The truth is what the delay line wrote down of each frame (af_packet, set to 10 µs)",
            "Trusted within 1 µs up to",
            "packet spin: errors, n = 300,000",
            "HALVES what it measured",
            "sockperf at each setting of the line",
            "! dpdk was not calibrated: no huge pages",
            "the delay line 10 µs 100,000 +31 ns +240 ns –",
            "! netem was not measured: this kernel has no netem",
        ] {
            assert!(flat.contains(words), "no `{words}` in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_calibration_reads_as_recorded() {
        insta::assert_snapshot!(text(&calibration()));
    }
}
