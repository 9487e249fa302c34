//! Shares of the lost time by cause, as bars.

use super::axis::Axis;
use super::writer::{GLYPH, Svg, WIDTH};
use super::{COLOURS, Figure};
use crate::doc::Table;
use crate::numbers::percent;

/// Height of a bar with the space below it.
const ROW: f64 = 38.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = WIDTH - 8.0;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Whose share.
    pub label: String,
    /// Between 0 and 1.
    pub share: f64,
    /// Its colour among [`COLOURS`]; none for grey.
    pub colour: Option<usize>,
}

/// Bars, in the order they are given.
#[must_use]
pub fn figure(shares: &[Share], title: &str, of: &str) -> Figure {
    let height = ROW * shares.len().max(1) as f64 + 2.0;
    let words: Vec<String> =
        shares.iter().map(|bar| format!("{}: {}", bar.label, percent(bar.share))).collect();
    let mut svg = Svg::new(height, title, &words.join("; "));
    if shares.is_empty() {
        svg.words((WIDTH / 2.0, ROW / 2.0 + 4.0), "note mid", "Nothing to draw: no time was lost.");
    }
    let largest = shares.iter().map(|bar| bar.share).fold(0.0, f64::max);
    let axis = Axis::linear((0.0, largest), (LEFT, RIGHT));
    for (row, bar) in shares.iter().enumerate() {
        let y = ROW * row as f64 + 4.0;
        svg.open("g", &[]);
        svg.titled(&words[row]);
        svg.rect(&class(bar.colour), (LEFT, y + 18.0), (axis.at(bar.share) - LEFT, 8.0));
        svg.words((LEFT, y + 13.0), "legend", &numbered(bar.colour, &bar.label));
        svg.words((RIGHT, y + 13.0), "legend end", &percent(bar.share));
        svg.close();
    }
    let rows = shares.iter().map(|bar| [bar.label.clone(), percent(bar.share)]);
    let table = Table::new(title, &["cause", of]).with(rows);
    Figure { svg: svg.finish(), table }
}

/// The class that fills with a colour or with grey.
pub(super) fn class(colour: Option<usize>) -> String {
    match colour {
        Some(colour) => format!("f{}", colour % COLOURS),
        None => "rest".to_owned(),
    }
}

/// A piece of a strip with as much of its name as it has room for, or the number that stands beside its colour.
pub(super) fn piece(
    svg: &mut Svg,
    (from, to): (f64, f64),
    (top, height): (f64, f64),
    (colour, label): (Option<usize>, &str),
    words: &str,
) {
    let middle = (f64::midpoint(from, to), top + height / 2.0 + 4.0);
    svg.open("g", &[]);
    svg.titled(words);
    svg.rect(&class(colour), (from, top), ((to - from).max(0.5), height));
    if to - from > (label.chars().count() as f64 + 1.0) * GLYPH {
        svg.words(middle, "inside mid", label);
    } else if let Some(number) = colour.filter(|_| to - from > 4.0 * GLYPH) {
        svg.words(middle, "inside mid", &format!("[{}]", number + 1));
    }
    svg.close();
}

/// A name with the number that stands beside its colour everywhere: `2 softirq timer`.
pub(crate) fn numbered(colour: Option<usize>, label: &str) -> String {
    match colour {
        Some(colour) => format!("[{}] {label}", colour + 1),
        None => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_shares_and_carry_number_and_name() {
        let share = |label: &str, share, colour| Share { label: label.to_owned(), share, colour };
        let bars = [share("hypervisor", 0.5, Some(0)), share("<b>", 0.25, None)];
        let figure = figure(&bars, "Lost time by cause", "of the lost time");
        insta::assert_snapshot!(figure.svg.replace("><", ">\n<"));
        assert_eq!(figure.table.rows, [["hypervisor", "50%"], ["<b>", "25%"]]);
    }

    #[test]
    fn nothing_lost_is_said() {
        assert!(figure(&[], "", "").svg.contains("no time was lost"));
        let nothing = Share { label: String::new(), share: f64::NAN, colour: None };
        assert!(!figure(&[nothing], "", "").svg.contains("NaN\""));
    }
}
