//! What a box does to latency, on a terminal.

use whylate_model::device::Device;

use super::Style;
use crate::device::{answer, blocks, title};
use crate::doc::Where;
use crate::render::terminal::Page;

/// All of it.
#[must_use]
pub fn render(of: &Device, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(&title(of));
    page.paragraph(&answer(of).to_string());
    page.blocks(&blocks(of, Where::Terminal));
    page.finish()
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
    fn a_device_reads_as_recorded() {
        insta::assert_snapshot!(render(&device(), Style::default()));
    }
}
