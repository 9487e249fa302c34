//! What is known of each point that was looked for.

use whylate_model::breakdown::{Point, PointFacts, Source};

use super::{Bounds, Certainty};
use crate::Met;
use crate::meet::rank;

#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// In the order in which they were expected; what came besides, behind.
    all: Vec<PointFacts>,
    /// So many of them were expected.
    expected: usize,
}

impl Facts {
    pub(super) fn new(expected: &[(Point, Source)], bounds: &Bounds) -> Self {
        let mut all: Vec<PointFacts> = Vec::new();
        for (point, source) in expected {
            if !all.iter().any(|facts| (facts.point, facts.source) == (*point, *source)) {
                all.push(unknown(*point, *source, bounds.of(*source)));
            }
        }
        let expected = all.len();
        Self { all, expected }
    }

    /// Counts what came of a request, of which these points were not asked for.
    pub(super) fn count(&mut self, met: &Met, not_asked: &[(Point, Source)], bounds: &Bounds) {
        let expected = self.expected;
        for facts in &mut self.all[..expected] {
            let beside = |(point, _, source): &(Point, _, Source)| {
                (*point, *source) == (facts.point, facts.source)
            };
            let used = met.instants.get(facts.point).is_some_and(|(_, by)| by == facts.source);
            let came = used || met.beside.iter().any(beside);
            let asked = !not_asked.contains(&(facts.point, facts.source));
            facts.came += u64::from(came);
            facts.missing += u64::from(!came && asked);
            facts.not_asked += u64::from(!came && !asked);
        }
        let told = met.instants.known().chain(met.beside.iter().copied());
        for (point, _, source) in told {
            let place = self.place(point, source, bounds);
            self.all[place].came += u64::from(place >= expected);
        }
        for point in &met.twice {
            if let Some((_, source)) = met.instants.get(*point) {
                let place = self.place(*point, source, bounds);
                self.all[place].twice += 1;
            }
        }
    }

    /// How sure a source is by now.
    pub(super) fn sure(&mut self, source: Source, certainty: Certainty) {
        for facts in self.all.iter_mut().filter(|facts| facts.source == source) {
            (facts.resolution, facts.bound) = (certainty.resolution, certainty.bound);
        }
    }

    pub(super) fn unordered(&mut self, points: &[(Point, Source)], bounds: &Bounds) {
        for (point, source) in points {
            let place = self.place(*point, *source, bounds);
            self.all[place].unordered += 1;
        }
    }

    pub(super) fn contradicted(&mut self, points: &[(Point, Source)], bounds: &Bounds) {
        for (point, source) in points {
            let place = self.place(*point, *source, bounds);
            self.all[place].contradicted += 1;
        }
    }

    /// The source of a point that is used first: of those that told it in any request, where one did.
    pub(super) fn first_source(&self, point: Point) -> Option<Source> {
        let of_point = self.all.iter().filter(|facts| facts.point == point);
        let first = of_point.min_by_key(|facts| (facts.came == 0, rank(facts.source)));
        first.map(|facts| facts.source)
    }

    pub(super) fn finish(mut self) -> Vec<PointFacts> {
        // Sources of one point stand in the order in which they are used.
        self.all.sort_by_key(|facts| (facts.point, rank(facts.source)));
        self.all
    }

    fn place(&mut self, point: Point, source: Source, bounds: &Bounds) -> usize {
        let of = |facts: &PointFacts| (facts.point, facts.source) == (point, source);
        self.all.iter().position(of).unwrap_or_else(|| {
            self.all.push(unknown(point, source, bounds.of(source)));
            self.all.len() - 1
        })
    }
}

fn unknown(point: Point, source: Source, certainty: Certainty) -> PointFacts {
    let Certainty { resolution, bound } = certainty;
    PointFacts {
        point,
        source,
        came: 0,
        missing: 0,
        not_asked: 0,
        twice: 0,
        unordered: 0,
        contradicted: 0,
        resolution,
        bound,
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::Ticks;
    use whylate_model::breakdown::Station;

    use super::*;
    use crate::meet::choose;

    #[test]
    fn a_series_names_the_source_that_was_used_in_whatever_order_they_were_expected() {
        let point = Point::there(Station::Queued);
        let bounds = Bounds::default();
        for one in Source::ALL {
            for other in Source::ALL.into_iter().filter(|other| *other != one) {
                let mut facts = Facts::new(&[(point, one), (point, other)], &bounds);
                let met = choose(0, vec![(point, Ticks(5), one), (point, Ticks(6), other)]);
                facts.count(&met, &[], &bounds);
                let used = met.instants.get(point).map(|(_, source)| source);
                assert!(used.is_some());
                assert_eq!(facts.first_source(point), used, "{one:?} {other:?}");
                assert_eq!(facts.finish().first().map(|facts| facts.source), used);
            }
        }
    }

    #[test]
    fn a_source_that_was_expected_and_never_told_a_point_gives_its_name_to_no_series() {
        let point = Point::there(Station::Queued);
        let bounds = Bounds::default();
        let expected = [(point, Source::Trace), (point, Source::Software)];
        let mut facts = Facts::new(&expected, &bounds);
        assert_eq!(facts.first_source(point), Some(Source::Trace), "as long as neither told it");
        facts.count(&choose(0, vec![(point, Ticks(5), Source::Software)]), &[], &bounds);
        assert_eq!(facts.first_source(point), Some(Source::Software));
        facts.count(&choose(1, vec![(point, Ticks(5), Source::Trace)]), &[], &bounds);
        assert_eq!(facts.first_source(point), Some(Source::Trace));
        assert_eq!(facts.first_source(Point::back(Station::Queued)), None);
    }
}
