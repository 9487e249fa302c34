//! The instants of one request.

use whylate_model::Ticks;
use whylate_model::breakdown::{Point, Source};

/// When a request passed its points, each by the source that is used for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instants {
    at: [Option<(Ticks, Source)>; Point::COUNT],
}

impl Default for Instants {
    fn default() -> Self {
        Self { at: [None; Point::COUNT] }
    }
}

impl Instants {
    /// Keeps an instant where none is known yet. Gives back whether it was kept.
    pub fn set(&mut self, point: Point, at: Ticks, source: Source) -> bool {
        let place = &mut self.at[point.index()];
        let free = place.is_none();
        if free {
            *place = Some((at, source));
        }
        free
    }

    /// Forgets an instant.
    pub fn forget(&mut self, point: Point) {
        self.at[point.index()] = None;
    }

    /// When the point was passed, and who says so.
    #[must_use]
    pub fn get(&self, point: Point) -> Option<(Ticks, Source)> {
        self.at[point.index()]
    }

    /// Those that are known, in the order of the way.
    pub fn known(&self) -> impl Iterator<Item = (Point, Ticks, Source)> + '_ {
        self.at.iter().enumerate().filter_map(|(index, known)| {
            let (at, source) = (*known)?;
            Some((Point::at(index)?, at, source))
        })
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::breakdown::Station;

    use super::*;

    #[test]
    fn the_first_instant_of_a_point_stays_and_they_come_in_the_order_of_the_way() {
        let mut instants = Instants::default();
        let (read, sent) = (Point::back(Station::Read), Point::there(Station::Sent));
        assert!(instants.set(read, Ticks(9), Source::Own));
        assert!(instants.set(sent, Ticks(1), Source::Own));
        assert!(!instants.set(sent, Ticks(2), Source::Trace));
        let known: Vec<_> = instants.known().map(|(point, at, _)| (point, at.0)).collect();
        assert_eq!(known, [(sent, 1), (read, 9)]);
    }
}
