//! What is known of one request, from all vantage points.

use whylate_model::Ticks;
use whylate_model::breakdown::{Point, Source};

use crate::Instants;

/// The points of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// Its number in the order of sending.
    pub number: u64,
    /// When it passed its points, each by the source that is used.
    pub instants: Instants,
    /// What other sources say of the same points.
    pub beside: Vec<(Point, Ticks, Source)>,
    /// Points that came twice by one source; the first is used.
    pub twice: Vec<Point>,
}
