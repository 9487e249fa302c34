//! The section of a box between two ports: latency, bounds of the time in it, how it forwards, who got
//! what of a port that several send to.

use whylate_model::device::{Device, DeviceAtSize};
use whylate_model::run::Run;

use super::{
    BOUGHT, BOUNDS, CARRIED, SHARES, band, bought, bounds, captured_ways, captures, carried,
    checked, circumstances, configured, fan_in, forwarding, latencies, name, reasons, title,
};
use crate::configuration;
use crate::doc::{Block, Picture, Section, Table, Where};
use crate::svg::{self, Figure};

/// Figures of a section: a row of the tables has the others' numbers.
const MOST_FIGURES: usize = 8;
/// Rows of a table.
const MOST_ROWS: usize = 128;
/// Tables of ports that share one: 16 ports have 20, the last of which is of all of them.
const MOST_TABLES: usize = 24;

/// How the figures are to be read.
const CURVE: &str = "Right: the percentile, each nine of the tail as wide as the one before. Shaded: where the \
     time in the box lies, all percentiles together with 95% confidence; a bar alone bounds one side.";

/// The section; none for a run of something else.
pub(crate) fn section(run: &Run, to: Where) -> Option<Section> {
    let of = run.device.as_deref()?;
    Some(Section::new("device", title(of), blocks(of, to)).headed())
}

/// What it says, with figures on the page.
fn blocks(of: &Device, to: Where) -> Vec<Block> {
    let table = |table: Table| table.most(MOST_ROWS);
    let read = |of: Option<Table>, how: &str| {
        of.into_iter().flat_map(|of| Block::explained(table(of), how)).collect::<Vec<_>>()
    };
    let mut blocks = vec![Block::Items(circumstances(of))];
    blocks.extend(Block::items(configured(of)));
    blocks.extend(of.configurations.iter().flat_map(configuration::tables).map(Block::Table));
    blocks.extend(of.captures.as_ref().map(|of| Block::Text(captures(of))));
    blocks.extend(captured_ways(of).map(table).map(Block::Table));
    blocks.push(Block::Table(table(latencies(of))));
    blocks.extend(read(bounds(of), BOUNDS));
    blocks.extend(Block::items(checked(of)));
    if to == Where::Page {
        blocks.extend(figures(of));
    }
    blocks.extend(read(bought(of), BOUGHT));
    blocks.extend(read(carried(of), CARRIED));
    if let Some(forwarding) = forwarding(of) {
        blocks.push(Block::Table(table(forwarding)));
        blocks.extend(Block::items(reasons(of)));
    }
    let shared = fan_in(of);
    if !shared.is_empty() {
        blocks.extend(shared.into_iter().take(MOST_TABLES).map(table).map(Block::Table));
        blocks.push(Block::How(SHARES.to_owned()));
    }
    blocks
}

fn figures(of: &Device) -> Vec<Block> {
    let bounded = of.sizes.iter().filter(|one| !one.bounds.is_empty());
    let how = format!("{CURVE}{}", undrawn(of));
    let one = |one: &DeviceAtSize| {
        [Block::Heading(name(one)), Block::Figure(Picture::still(figure(one).svg, &how))]
    };
    bounded.take(MOST_FIGURES).flat_map(one).collect()
}

/// What the tables have and no figure.
fn undrawn(of: &Device) -> String {
    let bounded = of.sizes.iter().filter(|one| !one.bounds.is_empty()).count();
    match bounded.saturating_sub(MOST_FIGURES) {
        0 => String::new(),
        1 => " One more has its bounds in the table alone.".to_owned(),
        more => format!(" {more} more have their bounds in the table alone."),
    }
}

/// The bounds of a size in one direction over the percentile.
pub(crate) fn figure(of: &DeviceAtSize) -> Figure {
    let band = band(of);
    let title = format!("Time in the box, {}", band.name);
    svg::bounds::figure(&band, &title, Table::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::device;
    use crate::doc::Document;
    use crate::render::terminal::write;
    use crate::terminal::Style;

    #[test]
    fn sizes_that_are_not_drawn_are_counted_and_all_ports_together_have_their_table() {
        let mut of = device();
        let bounded = of.sizes.iter().find(|one| !one.bounds.is_empty()).cloned().unwrap();
        of.sizes = vec![bounded.clone(); MOST_FIGURES];
        assert_eq!((figures(&of).len(), undrawn(&of).as_str()), (2 * MOST_FIGURES, ""));
        of.sizes.extend([bounded.clone(), bounded]);
        assert_eq!(figures(&of).len(), 2 * MOST_FIGURES);
        assert_eq!(undrawn(&of), " 2 more have their bounds in the table alone.");
        // 6 pairs, a subset of each size from 3 to 15, and all 16.
        let one = of.fan_in[0].clone();
        of.fan_in = vec![one; 6 + 13 + 1];
        assert!(fan_in(&of).len() <= MOST_TABLES);
    }

    fn text(of: &Device) -> String {
        write(&Document::new(title(of)).with(blocks(of, Where::Terminal)), Style::default())
    }

    #[test]
    fn a_device_fits_on_80_columns_with_all_that_was_found() {
        let text = text(&device());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "What bridge does to latency",
            "a bridge of the kernel in a namespace; measured by packet spin",
            "percentiles through the delay line (af_packet, 10 µs), the smallest back to back",
            "end of the packet to its end",
            "remote was refused: this machine has one NUMA node",
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
    fn what_a_configuration_set_and_what_was_missing_stands_with_the_box() {
        let applied = crate::configuration::tests::applied();
        let text = text(&Device { configurations: vec![applied], ..device() });
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in
            ["3 knobs read back", "reads back", "(only read)", "aspm /sys/module/pcie_aspm"]
        {
            assert!(flat.contains(words), "no `{words}` in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_device_reads_as_recorded() {
        insta::assert_snapshot!(text(&device()));
    }
}
