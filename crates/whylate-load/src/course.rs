//! How a load went on: how far it was by when.
//!
//! Of constant size whatever its length: when there are too many points every other one goes, and
//! from then on they lie twice as far apart.

use whylate_model::Nanos;
use whylate_model::load::LoadPoint;

/// Points that are kept: more cannot be told apart in a figure.
const MOST: usize = 240;

/// Points, in their order.
#[derive(Debug, Default)]
pub(crate) struct Course {
    points: Vec<LoadPoint>,
    /// No two of them are nearer.
    apart: Nanos,
}

impl Course {
    /// The measurement begins: what was before is no part of it.
    pub(crate) fn begins(&mut self) {
        *self = Self::default();
    }

    /// Keeps a point, unless it is too near to the one before or says nothing new.
    pub(crate) fn add(&mut self, point: LoadPoint) {
        let last = self.points.last().copied().unwrap_or_default();
        if point.time <= last.time || point.time.0 - last.time.0 < self.apart.0 {
            return;
        }
        self.points.push(point);
        if self.points.len() >= MOST {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            let apart = point.time.0 / MOST as u64;
            self.apart = Nanos(self.apart.0.saturating_mul(2).max(apart));
        }
    }

    /// What was kept so far.
    pub(crate) fn points(&self) -> Vec<LoadPoint> {
        self.points.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time: u64) -> LoadPoint {
        LoadPoint { time: Nanos(time), amount: 3 * time }
    }

    #[test]
    fn a_long_course_is_thinned_evenly_and_keeps_its_sums() {
        let mut course = Course::default();
        for time in 1..=100_000 {
            course.add(point(time));
            course.add(point(time));
            assert!(course.points.len() < MOST);
        }
        let points = course.points();
        assert!(points.len() >= MOST / 2 - 1, "{}", points.len());
        assert!(points.iter().all(|point| point.amount == 3 * point.time.0));
        let apart: Vec<u64> =
            points.windows(2).map(|pair| pair[1].time.0 - pair[0].time.0).collect();
        let (least, most) = (apart.iter().min().unwrap(), apart.iter().max().unwrap());
        assert!(*most <= 2 * least, "{least} to {most}");
        assert!(points.last().unwrap().time.0 > 99_000);
    }

    #[test]
    fn what_was_before_the_measurement_is_no_part_of_it() {
        let mut course = Course::default();
        course.add(point(5));
        course.begins();
        course.add(LoadPoint::default());
        assert_eq!(course.points(), []);
        course.add(point(2));
        assert_eq!(course.points(), [point(2)]);
    }
}
