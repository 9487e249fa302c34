//! Flows of several recordings as one: counts add up, and what does not add up is absent.
//!
//! Times are in the series, whose histograms are added. Medians of the other ends, claims of causes and
//! files of odd messages are of one recording each, and stay that; distances of distribution functions
//! are left to the recordings.

use whylate_model::breakdown::Breakdown;
use whylate_model::flow::{Asked, Departures, Flow, OfRecording, Pacing, Process, ProcessVerdict};
use whylate_model::identity::{Component, Identity};
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::tail::Tail;
use whylate_model::{Hertz, Nanos};

use super::breakdown;
use crate::trusted;

/// The flows so far.
#[derive(Debug, Default)]
pub(super) struct Sums {
    flows: Vec<Summed>,
    /// Series are added up across rates: those of which less left in time than of another are one.
    across_rates: bool,
}

#[derive(Debug)]
struct Summed {
    flow: Flow,
    /// Time over which departures were counted; none when a recording does not tell.
    seconds: Option<f64>,
    /// What does not add up.
    recordings: Vec<OfRecording>,
}

impl Sums {
    /// Of flows whose series may differ in these.
    pub(super) fn across(across: &[Component]) -> Self {
        Self { flows: Vec::new(), across_rates: across.contains(&Component::Rate) }
    }

    /// Adds the flows of a recording, or of a sum, that was read from this directory.
    pub(super) fn add(&mut self, run: &Run, directory: &str) {
        for flow in &run.flows {
            let recordings = recordings(flow, directory);
            let across_rates = self.across_rates;
            let known =
                self.flows.iter_mut().find(|summed| alike(&summed.flow, flow, across_rates));
            if let Some(summed) = known {
                summed.add(flow, run.clock.hz);
                summed.recordings.extend(recordings);
            } else {
                let seconds = seconds(flow);
                let mut flow = flow.clone();
                flow.breakdown = taken_apart(&flow, run.clock.hz);
                self.flows.push(Summed { flow, seconds, recordings });
            }
        }
    }

    /// The flows of the sum, whose late departures are those of `series`.
    pub(super) fn finish(self, series: &[Series]) -> Vec<Flow> {
        self.flows.into_iter().map(|summed| summed.finish(series)).collect()
    }
}

/// Is it the same question by the same way? What decides of its series decides of the flow, though two questions
/// stay two where their series are added up. How much of one rate each held is told by the sum.
fn alike(one: &Flow, other: &Flow, across_rates: bool) -> bool {
    let identity = |flow: &Flow| {
        let mut flow = flow.clone();
        if across_rates {
            flow.departures.in_time = flow.departures.intended;
        }
        Identity::of_flow(&flow)
    };
    one.name == other.name && identity(one).differences(&identity(other)).is_empty()
}

/// What was asked in both: what is no part of what a flow is may differ, and is then absent.
fn in_common(sum: &Asked, more: &Asked) -> Asked {
    Asked {
        frame_bytes: sum.frame_bytes.filter(|_| sum.frame_bytes == more.frame_bytes),
        timeout: sum.timeout.filter(|_| sum.timeout == more.timeout),
        repeats_after: sum.repeats_after.filter(|_| sum.repeats_after == more.repeats_after),
        ..sum.clone()
    }
}

/// What of a flow does not add up: of a recording its own, of a sum that of all its recordings.
fn recordings(flow: &Flow, directory: &str) -> Vec<OfRecording> {
    if !flow.recordings.is_empty() {
        return flow.recordings.clone();
    }
    let claimed = |tail: &Tail| {
        let causes = tail.claimed().cloned().collect();
        Tail { causes, ..tail.clone() }
    };
    vec![OfRecording {
        directory: directory.to_owned(),
        other_end: flow.other_end,
        tail: flow.tail.as_ref().map(claimed),
        anomalies: flow.anomalies.clone(),
    }]
}

/// Where its requests spent their time, as a sum has it.
fn taken_apart(flow: &Flow, rate: Hertz) -> Option<Box<Breakdown>> {
    let of = flow.breakdown.as_deref()?;
    Some(Box::new(breakdown::of_recording(of, rate)))
}

fn seconds(flow: &Flow) -> Option<f64> {
    let per_second = flow.departures.per_second.filter(|rate| *rate > 0.0)?;
    Some(flow.departures.in_time as f64 / per_second)
}

impl Summed {
    fn add(&mut self, flow: &Flow, rate: Hertz) {
        self.seconds = self.seconds.zip(seconds(flow)).map(|(sum, more)| sum + more);
        self.flow.asked = in_common(&self.flow.asked, &flow.asked);
        let (sum, more) = (&mut self.flow.departures, &flow.departures);
        for (sum, more) in [
            (&mut sum.intended, more.intended),
            (&mut sum.sent, more.sent),
            (&mut sum.in_time, more.in_time),
        ] {
            *sum = sum.saturating_add(more);
        }
        sum.process.verdict = worse(sum.process.verdict, more.process.verdict);
        sum.process.distribution = None;
        let (one, other) = (&sum.process, &more.process);
        let both = one.beyond_tolerance.zip(other.beyond_tolerance);
        let both = both.filter(|_| one.tolerance == other.tolerance);
        sum.process.beyond_tolerance = both.map(|(one, other)| one.and(other));
        sum.pacing = sum.pacing.take().zip(more.pacing.as_ref()).map(add_pacing);
        self.flow.packets.add(&flow.packets);
        "of several recordings".clone_into(&mut self.flow.way.path);
        (self.flow.other_end, self.flow.began, self.flow.ended) = (None, None, None);
        (self.flow.anomalies, self.flow.way.socket) = (None, None);
        (self.flow.way.frames, self.flow.way.costs) = (None, None);
        self.flow.way.resolved_in = None;
        self.flow.tail = None;
        self.flow.trust = trusted::less(self.flow.trust.take(), flow.trust.clone());
        let both = self.flow.breakdown.take().zip(taken_apart(flow, rate));
        self.flow.breakdown =
            both.and_then(|(sum, more)| breakdown::add(*sum, *more).map(Box::new));
    }

    fn finish(self, series: &[Series]) -> Flow {
        let Self { mut flow, seconds, recordings } = self;
        if recordings.len() > 1 {
            flow.recordings = recordings;
        }
        let Departures { in_time, process, .. } = &flow.departures;
        let process = Process { lateness_p999: flow.lateness_p999(series), ..process.clone() };
        let per_second = seconds.map(|seconds| *in_time as f64 / seconds);
        flow.departures = Departures { per_second, process, ..flow.departures.clone() };
        // The series know how many recordings were calibrated, and those of flows that stayed apart.
        let times = flow.response.as_ref().or(flow.service.as_ref());
        let of_times = series.iter().find(|of| Some(&of.name) == times);
        flow.trust = of_times.and_then(|of| of.trust.clone()).or(flow.trust);
        flow
    }
}

fn worse(one: ProcessVerdict, other: ProcessVerdict) -> ProcessVerdict {
    use ProcessVerdict::{ClosedLoop, Disturbed, Held, Saturated, TooFew};
    let rank = |verdict| match verdict {
        ClosedLoop => 0,
        Held => 1,
        TooFew => 2,
        Disturbed => 3,
        Saturated => 4,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// What a turn may take is found out by each recording for itself: the sum has the largest.
fn add_pacing((sum, more): (Pacing, &Pacing)) -> Pacing {
    let named = sum.named.zip(more.named.as_ref()).map(|(mut sum, more)| {
        sum.add(more);
        sum
    });
    Pacing {
        long_turns: sum.long_turns.saturating_add(more.long_turns),
        took: Nanos(sum.took.0.saturating_add(more.took.0)),
        named,
        looking: sum.looking.max(more.looking),
        sending: sum.sending.max(more.sending),
        excluded: sum.excluded.saturating_add(more.excluded),
        of: sum.of.saturating_add(more.of),
        lateness: sum.lateness.or_else(|| more.lateness.clone()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::flow::{Direction, Kept, OtherEnd, OutOf, Packets, Way};

    use super::*;
    use crate::timeline::tests::recorded;

    /// A flow of this many requests, one in ten of them lost.
    pub(crate) fn flow(sent: u64, verdict: ProcessVerdict) -> Flow {
        let lost = sent / 10;
        let received = sent - lost;
        let packets = Packets {
            sent,
            received,
            lost,
            arrived: received + 1,
            unplaced: 1,
            ..Packets::default()
        };
        let process = Process {
            verdict,
            lateness_p999: None,
            tolerance: Nanos(50_000),
            beyond_tolerance: Some(OutOf { count: 3, of: sent }),
            distribution: None,
        };
        Flow {
            name: "rtt".to_owned(),
            way: Way {
                backend: "udp over ipv4".to_owned(),
                path: "127.0.0.1:1 -> 127.0.0.1:2".to_owned(),
                wait: "spin".to_owned(),
                protocol: "raw".to_owned(),
                stamps: "tsc read around the system call".to_owned(),
                resolution_ns: 9.8,
                read_cost_min_ns: 20.0,
                read_cost_median_ns: 20.0,
                precision_ns: 10.2,
                socket: None,
                frames: None,
                costs: None,
                resolved_in: None,
                across: None,
            },
            asked: Asked {
                arrivals: "constant".to_owned(),
                per_second: Some(1e3),
                bytes: 64,
                frame_bytes: Some(110),
                timeout: Some(Nanos::SECOND),
                most_under_way: None,
                one_way: false,
                direction: Direction::There,
                repeats_after: None,
            },
            departures: Departures {
                intended: sent,
                sent,
                in_time: sent,
                per_second: Some(1e3),
                gaps: None,
                process,
                pacing: Some(Pacing {
                    long_turns: sent / 100,
                    took: Nanos(sent * 1_000),
                    named: None,
                    looking: Nanos(3_000),
                    sending: Nanos(9_000),
                    excluded: sent / 50,
                    of: sent,
                    lateness: Some("rtt-lateness-uninterrupted".to_owned()),
                }),
            },
            packets,
            service: Some("rtt-service".to_owned()),
            response: Some("rtt-response".to_owned()),
            lateness: Some("rtt-lateness".to_owned()),
            parts: Vec::new(),
            anomalies: None,
            other_end: Some(OtherEnd {
                answered: received,
                foreign: 0,
                residence_min: Nanos(90),
                residence_median: Nanos(160),
                residence_max: Nanos(8_000),
                receptions: None,
            }),
            began: None,
            ended: None,
            planted: None,
            tail: None,
            breakdown: None,
            trust: None,
            recordings: Vec::new(),
        }
    }

    #[test]
    fn a_sum_is_trusted_as_far_as_the_least_of_its_recordings() {
        use whylate_model::calibration::Trust;

        use crate::trusted::tests::trust;
        let with = |limit: Option<f64>, stale: Option<&str>| {
            let trust = Trust { stale: stale.map(str::to_owned), ..trust(limit) };
            let flow = Flow { trust: Some(trust), ..flow(1_000, ProcessVerdict::Held) };
            Run { flows: vec![flow], ..recorded() }
        };
        let sum = |runs: &[Run]| {
            let mut sums = Sums::default();
            for run in runs {
                sums.add(run, "run");
            }
            sums.finish(&[]).remove(0).trust
        };
        let (far, near) = (with(Some(99.99), Some("kernel")), with(Some(99.0), None));
        let both = sum(&[far.clone(), near]).unwrap();
        assert_eq!((both.limit_percent, both.stale.as_deref()), (Some(99.0), Some("kernel")));
        assert_eq!(sum(&[far.clone(), with(None, None)]).unwrap().limit_percent, None);
        // What one of them may not be trusted for is in the sum, too, whatever is known of the others.
        let unknown = Run { flows: vec![flow(1_000, ProcessVerdict::Held)], ..recorded() };
        for both in [[far.clone(), unknown.clone()], [unknown.clone(), far]] {
            assert_eq!(sum(&both).unwrap().limit_percent, Some(99.99));
        }
        assert_eq!(sum(&[unknown.clone(), unknown]), None);
        let stale = |what| with(Some(99.0), Some(what));
        let of_equals = sum(&[stale("first"), stale("second")]).unwrap();
        assert_eq!(of_equals.stale.as_deref(), Some("first"));
    }

    /// The flows of the sum of two recordings with these.
    fn summed(first: &Flow, second: &Flow, across: &[Component]) -> Vec<Flow> {
        let mut sums = Sums::across(across);
        for (flow, name) in [(first, "run-1"), (second, "run-2")] {
            sums.add(&Run { flows: vec![flow.clone()], ..recorded() }, name);
        }
        sums.finish(&[])
    }

    #[test]
    fn flows_whose_series_add_up_are_one_and_what_they_differ_in_besides_is_absent() {
        let one = flow(1_000, ProcessVerdict::Held);
        let mut other = flow(2_000, ProcessVerdict::Held);
        other.asked.timeout = Some(Nanos(5_000_000));
        other.asked.frame_bytes = None;
        other.asked.repeats_after = Some(Nanos(7));
        for pair in [[&one, &other], [&other, &one]] {
            let [sum] = &summed(pair[0], pair[1], &[])[..] else { panic!("one flow") };
            let Asked { timeout, frame_bytes, repeats_after, .. } = &sum.asked;
            assert_eq!((timeout, frame_bytes, repeats_after), (&None, &None, &None));
            assert_eq!((sum.packets.sent, sum.departures.intended), (3_000, 3_000));
            // The sum is what each of its recordings is.
            assert_eq!(Identity::of_flow(sum).differences(&Identity::of_flow(&one)), []);
        }
        let [sum] = &summed(&one, &one, &[])[..] else { panic!("one flow") };
        assert_eq!((sum.asked.timeout, sum.asked.frame_bytes), (Some(Nanos::SECOND), Some(110)));
    }

    #[test]
    fn flows_that_differ_in_one_thing_that_they_are_stay_apart() {
        let one = flow(1_000, ProcessVerdict::Held);
        let changes: [fn(&mut Flow); 11] = [
            |of| of.name = "load".to_owned(),
            |of| of.way.backend = "tcp over ipv4".to_owned(),
            |of| of.way.wait = "block".to_owned(),
            |of| of.way.protocol = "memcached".to_owned(),
            |of| of.asked.bytes = 512,
            |of| of.asked.arrivals = "poisson".to_owned(),
            |of| of.asked.per_second = Some(2e3),
            |of| of.asked.most_under_way = Some(1),
            |of| of.asked.direction = Direction::Back,
            |of| of.asked.one_way = true,
            // A client that fell behind sent at another rate than it was asked for.
            |of| of.departures.in_time /= 2,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut other = one.clone();
            change(&mut other);
            assert_eq!(summed(&one, &other, &[]).len(), 2, "change {number}");
        }
    }

    #[test]
    fn flows_of_one_rate_of_which_less_left_in_time_are_one_across_rates() {
        let one = flow(1_000, ProcessVerdict::Held);
        let mut behind = flow(2_000, ProcessVerdict::Disturbed);
        behind.departures.in_time = 1_000;
        assert_eq!(summed(&one, &behind, &[]).len(), 2);
        assert_eq!(summed(&one, &behind, &[Component::Size]).len(), 2);
        let [sum] = &summed(&one, &behind, &[Component::Rate])[..] else { panic!("one flow") };
        let Departures { intended, in_time, process, .. } = &sum.departures;
        assert_eq!((*intended, *in_time), (3_000, 2_000));
        assert_eq!(process.verdict, ProcessVerdict::Disturbed);
        // Another rate was asked for: the sum of two is neither of them.
        behind.asked.per_second = Some(2e3);
        assert_eq!(summed(&one, &behind, &[Component::Rate]).len(), 2);
    }

    #[test]
    fn flows_of_one_question_add_up_and_others_stay_apart() {
        let with = |flow: Flow| Run { flows: vec![flow], ..recorded() };
        let mut sums = Sums::default();
        let mut second = flow(3_000, ProcessVerdict::Saturated);
        second.other_end.as_mut().unwrap().residence_median = Nanos(9_000);
        let pacing = second.departures.pacing.as_mut().unwrap();
        (pacing.looking, pacing.sending) = (Nanos(2_000), Nanos(10_000));
        second.anomalies =
            Some(Kept { file: "anomalies.pcapng".to_owned(), messages: 300, left_out: 0 });
        sums.add(&with(flow(1_000, ProcessVerdict::Held)), "run-1");
        sums.add(&with(second), "run-2");
        let mut other = flow(500, ProcessVerdict::Held);
        other.asked.bytes = 512;
        // A hundredth more is the same rate, as it is of the series.
        let mut faster = flow(1_000, ProcessVerdict::Held);
        faster.asked.per_second = Some(1_004.0);
        let mut near = Sums::default();
        near.add(&with(flow(1_000, ProcessVerdict::Held)), "run-1");
        near.add(&with(faster), "run-2");
        assert_eq!(near.finish(&[]).len(), 1);
        let mut stricter = flow(1_000, ProcessVerdict::Held);
        stricter.departures.process.tolerance = Nanos(20_000);
        let mut differ = Sums::default();
        differ.add(&with(flow(1_000, ProcessVerdict::Held)), "run-1");
        differ.add(&with(stricter), "run-2");
        let differ = differ.finish(&[]);
        let beyond = |flow: &Flow| flow.departures.process.beyond_tolerance;
        assert_eq!(
            (differ.len(), beyond(&differ[0])),
            (1, None),
            "beyond either of two tolerances"
        );
        sums.add(&with(other.clone()), "run-3");
        let [sum, apart] = &sums.finish(&[])[..] else { panic!("two questions") };
        assert_eq!((sum.packets.sent, sum.packets.lost), (4_000, 400));
        assert!(sum.packets.add_up(), "{:?}", sum.packets);
        assert_eq!(sum.departures.process.verdict, ProcessVerdict::Saturated);
        assert_eq!(beyond(sum), Some(OutOf { count: 6, of: 4_000 }));
        let pacing = sum.departures.pacing.as_ref().unwrap();
        assert_eq!((pacing.long_turns, pacing.excluded, pacing.of), (40, 80, 4_000));
        assert_eq!((pacing.took, pacing.share()), (Nanos(4_000_000), Some(0.02)));
        assert_eq!((pacing.looking, pacing.sending), (Nanos(3_000), Nanos(10_000)));
        let per_second = sum.departures.per_second.unwrap();
        assert!((per_second - 1e3).abs() < 1e-6, "{per_second}");
        assert_eq!(sum.other_end, None, "medians do not add up");
        let each: Vec<_> = sum
            .recordings
            .iter()
            .map(|of| (&*of.directory, of.other_end.unwrap().residence_median, &of.anomalies))
            .collect();
        assert_eq!(each[0], ("run-1", Nanos(160), &None));
        assert_eq!((each[1].0, each[1].1, each.len()), ("run-2", Nanos(9_000), 2));
        assert_eq!(each[1].2.as_ref().unwrap().messages, 300);
        // A sum of sums has them all.
        let mut again = Sums::default();
        again.add(&with(sum.clone()), "sum");
        again.add(&with(flow(10, ProcessVerdict::Held)), "run-4");
        let [all] = &again.finish(&[])[..] else { panic!("one question") };
        let names: Vec<&str> = all.recordings.iter().map(|of| &*of.directory).collect();
        assert_eq!(names, ["run-1", "run-2", "run-4"]);
        assert_eq!(*apart, other);
    }
}
