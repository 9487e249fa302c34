//! Figures as SVG, by a writer of our own.
//!
//! A figure is complete by itself: title, axes, units, the number of samples and the resolution are
//! in the picture, and its table is beside it. Colours are classes that [`STYLE`] gives values for
//! light and dark; a colour is never the only sign. Nothing from outside is written unescaped, and
//! a value that is not finite is not drawn.
//!
//! Figures do no statistics: they draw the shares and intervals they are given.

pub mod backends;
pub mod blocks;
pub mod bounds;
pub mod ccdf;
pub mod cdf;
pub mod composition;
pub mod error_curve;
pub mod execution;
pub mod gap;
pub mod journey;
pub mod shares;
pub mod switches;
pub mod timeline;

mod axis;
mod path;
mod tail_axis;
pub mod working_sets;
mod writer;

use crate::doc::Table;
pub(crate) use axis::resolution_label;
pub(crate) use writer::escaped;

/// Colours and fonts of all figures, for the `<style>` of the page that holds them.
pub const STYLE: &str = include_str!("../../assets/figures.css");

/// Colours that mean a series or a cause; figures with more use grey for the rest.
pub const COLOURS: usize = 8;

/// A picture and the numbers in it.
#[derive(Debug, Clone)]
pub struct Figure {
    /// An `<svg>` element.
    pub svg: String,
    /// What the picture shows, in numbers.
    pub(crate) table: Table,
}
