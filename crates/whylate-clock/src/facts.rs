//! What a run records about its clock.
//!
//! [`Observer::start`] measures what can be measured before a run; [`Observer::so_far`] gives the
//! facts as known by then, for a checkpoint in the middle of it and for its end;
//! [`Observer::finish`] measures the offsets between CPUs again and takes the last anchor.

use whylate_model::run::{Anchor, ClockFacts, CpuOffset};
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};

use crate::calibrate::Calibration;
use crate::cost::{self, ReadCost};
use crate::{ClockError, Counter, anchor, offset};

/// What recording costs, where the run measured it: median.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RecordingCost {
    /// Of one gap.
    pub gap: Option<Nanos>,
    /// Of one sample.
    pub sample: Option<Nanos>,
}

/// The facts about a run's clock, as far as they are known.
#[derive(Debug)]
pub struct Observer {
    kind: &'static str,
    epoch: Ticks,
    anchors: Vec<Anchor>,
    read_cost: ReadCost,
    resolution: TicksDelta,
    offsets: Vec<CpuOffset>,
    problems: Vec<ClockError>,
}

impl Observer {
    /// Takes the first anchor and measures read cost, resolution, and the offset of each of `cpus`
    /// against the first of them. CPUs that could not be compared are in [`Observer::problems`].
    ///
    /// Takes some milliseconds for each CPU, and half a second for one that is kept busy by
    /// something else. No measurement should be under way on these CPUs.
    pub fn start<C>(counter: &mut C, cpus: &[CpuId]) -> Self
    where
        C: Counter + Clone + 'static,
    {
        let read_cost = cost::read_cost(counter);
        let resolution = cost::resolution_ticks(counter);
        let mut problems = Vec::new();
        let mut offsets = Vec::new();
        if let Some((&reference, others)) = cpus.split_first() {
            for &cpu in others.iter().filter(|&&cpu| cpu != reference) {
                match offset::measure(counter, reference, cpu) {
                    Ok(offset) => offsets.push(offset),
                    Err(error) => problems.push(error),
                }
            }
        }
        let anchor = anchor::take(counter);
        let epoch = anchor.ticks;
        let anchors = vec![anchor];
        Self { kind: C::KIND, epoch, anchors, read_cost, resolution, offsets, problems }
    }

    /// The reading that the tables of the run count from: that of the first anchor.
    #[must_use]
    pub fn epoch(&self) -> Ticks {
        self.epoch
    }

    /// The offsets between CPUs.
    #[must_use]
    pub fn offsets(&self) -> &[CpuOffset] {
        &self.offsets
    }

    /// What could not be measured, for the run's warnings.
    #[must_use]
    pub fn problems(&self) -> &[ClockError] {
        &self.problems
    }

    /// Takes another anchor: for long runs, in which the wall clock is slewed.
    pub fn take_anchor<C: Counter>(&mut self, counter: &mut C) {
        self.anchors.push(anchor::take(counter));
    }

    /// The facts as known by now.
    #[must_use]
    pub fn so_far(&self, calibration: &Calibration, recording: RecordingCost) -> ClockFacts {
        let hz = calibration.hz;
        let resolution_ns = ns(self.resolution.0 as f64, hz);
        // A reading stands for any time until the counter's next step.
        let anchors = self.anchors.iter();
        let anchors = anchors.map(|a| Anchor { bound_ns: a.bound_ns + resolution_ns, ..*a });
        ClockFacts {
            counter: self.kind.to_owned(),
            hz,
            hz_bound_ppm: calibration.bound_ppm,
            sources: calibration.sources.clone(),
            drift: calibration.drift,
            jitter_ns: Some(calibration.jitter.at_most_ns),
            epoch: self.epoch,
            anchors: anchors.collect(),
            read_cost_min_ns: ns(self.read_cost.min_ticks, hz),
            read_cost_median_ns: ns(self.read_cost.median_ticks, hz),
            resolution_ns,
            cross_cpu: self.offsets.clone(),
            gap_recording_ns: recording.gap.map(|cost| cost.0 as f64),
            sample_recording_ns: recording.sample.map(|cost| cost.0 as f64),
        }
    }

    /// Measures the offsets again and takes the last anchor: what is known from here on is of the whole
    /// run. The measurement must have ended: each CPU is kept busy for some milliseconds.
    pub fn finish<C>(&mut self, counter: &mut C)
    where
        C: Counter + Clone + 'static,
    {
        self.take_anchor(counter);
        for known in &mut self.offsets {
            match offset::repeat(counter, known) {
                Ok(again) => *known = again,
                Err(error) => self.problems.push(error),
            }
        }
    }
}

fn ns(ticks: f64, rate: Hertz) -> f64 {
    ticks * 1e9 / rate.0
}

#[cfg(test)]
mod tests {
    use whylate_sys::affinity;

    use super::*;
    use crate::calibrate::Calibrator;
    use crate::mock::MockCounter;
    use crate::testing;

    /// Reads again while something else keeps the CPUs from being compared, and nothing worse does.
    fn patiently<T>(mut read: impl FnMut() -> (Observer, T)) -> (Observer, T) {
        let is_busy = |problem: &ClockError| matches!(problem, ClockError::Busy { .. });
        let mut found = read();
        for _ in 1..60 {
            let problems = found.0.problems();
            if problems.is_empty() || !problems.iter().all(is_busy) {
                break;
            }
            found = read();
        }
        found
    }

    #[test]
    fn costs_are_converted_at_the_frequency_found() {
        let mut counter = MockCounter::new(Hertz(2.5e9)).with_period(&[25]);
        let observer = Observer::start(&mut counter, &[CpuId(0)]);
        let clock = counter.raw_clock();
        let calibration = Calibrator::start(counter, clock).quick().unwrap();
        let recording = RecordingCost { gap: Some(Nanos(70)), sample: None };
        let facts = observer.so_far(&calibration, recording);
        assert_eq!(facts.counter, "mock");
        assert!((facts.read_cost_median_ns - 10.0).abs() < 1e-3, "{facts:?}");
        assert!((facts.resolution_ns - 10.0).abs() < 1e-3, "{facts:?}");
        assert_eq!((facts.gap_recording_ns, facts.sample_recording_ns), (Some(70.0), None));
        assert!(facts.cross_cpu.is_empty() && observer.problems().is_empty());
    }

    #[test]
    fn the_facts_of_this_host_hold_together() {
        let Some((mut counter, cpus)) = testing::hardware_on_two_cpus() else { return };
        let (observer, facts) = patiently(|| {
            let mut calibrator = Calibrator::of_this_host(counter);
            let mut observer = Observer::start(&mut counter, &cpus);
            let calibration = calibrator.quick().unwrap();
            observer.finish(&mut counter);
            let facts = observer.so_far(&calibration, RecordingCost::default());
            (observer, facts)
        });
        eprintln!("{facts:#?}");
        assert!(observer.problems().is_empty(), "{:?}", observer.problems());
        let [first, last] = facts.anchors[..] else { panic!("{facts:?}") };
        assert_eq!(facts.epoch, first.ticks);
        assert!(first.ticks < last.ticks && first.raw_ns < last.raw_ns);
        assert!(facts.read_cost_min_ns > 0.0);
        assert!(facts.read_cost_min_ns <= facts.read_cost_median_ns);
        assert!(facts.resolution_ns > 0.0);
        let [offset] = &facts.cross_cpu[..] else { panic!("{facts:?}") };
        assert_eq!([offset.reference, offset.cpu], cpus);
        assert!(offset.offset_ticks_at_end.is_some());

        // The raw clock passed between the anchors is the counter's at the frequency found.
        let ticks = last.ticks.since(first.ticks).0 as f64;
        let raw = (last.raw_ns - first.raw_ns) as f64;
        let bound = first.bound_ns + last.bound_ns + raw * facts.hz_bound_ppm / 1e6;
        assert!((ns(ticks, facts.hz) - raw).abs() <= bound, "{facts:?}");
    }

    #[test]
    fn a_cpu_that_cannot_be_compared_is_a_problem_and_no_failure() {
        let Some(mut counter) = testing::hardware() else { return };
        let cpus = [affinity::get()[0], CpuId(100_000)];
        let (observer, ()) = patiently(|| (Observer::start(&mut counter, &cpus), ()));
        assert!(observer.offsets().is_empty());
        assert!(matches!(observer.problems(), [ClockError::Affinity { cpu: CpuId(100_000), .. }]));
    }
}
