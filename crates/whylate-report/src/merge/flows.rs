//! Flows of several recordings as one: counts add up, and what does not add up is absent.
//!
//! Times are in the series, whose histograms are added. Medians of the other ends, and distances of
//! distribution functions, are of one recording each: no sum has them.

use whylate_model::flow::{Departures, Flow, Packets, Process, ProcessVerdict};
use whylate_model::run::Run;
use whylate_model::series::Series;

/// The flows so far.
#[derive(Debug, Default)]
pub(super) struct Sums {
    flows: Vec<Summed>,
}

#[derive(Debug)]
struct Summed {
    flow: Flow,
    /// Time over which departures were counted; none when a recording does not tell.
    seconds: Option<f64>,
}

impl Sums {
    /// Adds the flows of a recording.
    pub(super) fn add(&mut self, run: &Run) {
        for flow in &run.flows {
            match self.flows.iter_mut().find(|summed| alike(&summed.flow, flow)) {
                Some(summed) => summed.add(flow),
                None => self.flows.push(Summed { flow: flow.clone(), seconds: seconds(flow) }),
            }
        }
    }

    /// The flows of the sum, whose late departures are those of `series`.
    pub(super) fn finish(self, series: &[Series]) -> Vec<Flow> {
        self.flows.into_iter().map(|summed| summed.finish(series)).collect()
    }
}

/// Is it the same question by the same way?
fn alike(one: &Flow, other: &Flow) -> bool {
    let way = |flow: &Flow| {
        let way = &flow.way;
        (way.backend.clone(), way.wait.clone(), way.protocol.clone())
    };
    one.name == other.name && one.asked == other.asked && way(one) == way(other)
}

fn seconds(flow: &Flow) -> Option<f64> {
    let per_second = flow.departures.per_second.filter(|rate| *rate > 0.0)?;
    Some(flow.departures.in_time as f64 / per_second)
}

impl Summed {
    fn add(&mut self, flow: &Flow) {
        self.seconds = self.seconds.zip(seconds(flow)).map(|(sum, more)| sum + more);
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
        add_packets(&mut self.flow.packets, &flow.packets);
        "of several recordings".clone_into(&mut self.flow.way.path);
        (self.flow.other_end, self.flow.began, self.flow.ended) = (None, None, None);
    }

    fn finish(self, series: &[Series]) -> Flow {
        let Self { mut flow, seconds } = self;
        let late = series.iter().find(|series| Some(&series.name) == flow.lateness.as_ref());
        let p999 = late.and_then(|late| {
            late.quantiles.iter().find(|quantile| (quantile.percent - 99.9).abs() < 1e-9)?.value
        });
        let Departures { in_time, process, .. } = &flow.departures;
        let process = Process { lateness_p999: p999, ..process.clone() };
        let per_second = seconds.map(|seconds| *in_time as f64 / seconds);
        flow.departures = Departures { per_second, process, ..flow.departures.clone() };
        flow
    }
}

fn worse(one: ProcessVerdict, other: ProcessVerdict) -> ProcessVerdict {
    use ProcessVerdict::{ClosedLoop, Disturbed, Held, Saturated};
    let rank = |verdict| match verdict {
        ClosedLoop => 0,
        Held => 1,
        Disturbed => 2,
        Saturated => 3,
    };
    if rank(other) > rank(one) { other } else { one }
}

fn add_packets(sum: &mut Packets, more: &Packets) {
    for (sum, more) in [
        (&mut sum.sent, more.sent),
        (&mut sum.received, more.received),
        (&mut sum.late, more.late),
        (&mut sum.lost, more.lost),
        (&mut sum.duplicates, more.duplicates),
        (&mut sum.reordered, more.reordered),
        (&mut sum.foreign, more.foreign),
        (&mut sum.unplaced, more.unplaced),
        (&mut sum.arrived, more.arrived),
        (&mut sum.given_up, more.given_up),
        (&mut sum.never_sent, more.never_sent),
        (&mut sum.refused, more.refused),
        (&mut sum.abandoned, more.abandoned),
    ] {
        *sum = sum.saturating_add(more);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::Nanos;
    use whylate_model::flow::{Asked, OtherEnd, Way};

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
        let process =
            Process { verdict, lateness_p999: None, tolerance: Nanos(50_000), distribution: None };
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
            },
            asked: Asked {
                arrivals: "constant".to_owned(),
                per_second: Some(1e3),
                bytes: 64,
                frame_bytes: Some(110),
                timeout: Nanos::SECOND,
                most_under_way: None,
            },
            departures: Departures {
                intended: sent,
                sent,
                in_time: sent,
                per_second: Some(1e3),
                gaps: None,
                process,
            },
            packets,
            service: "rtt-service".to_owned(),
            response: Some("rtt-response".to_owned()),
            lateness: Some("rtt-lateness".to_owned()),
            parts: Vec::new(),
            other_end: Some(OtherEnd {
                answered: received,
                foreign: 0,
                residence_min: Nanos(90),
                residence_median: Nanos(160),
                residence_max: Nanos(8_000),
            }),
            began: None,
            ended: None,
        }
    }

    #[test]
    fn flows_of_one_question_add_up_and_others_stay_apart() {
        let with = |flow: Flow| Run { flows: vec![flow], ..recorded() };
        let mut sums = Sums::default();
        sums.add(&with(flow(1_000, ProcessVerdict::Held)));
        sums.add(&with(flow(3_000, ProcessVerdict::Saturated)));
        let mut other = flow(500, ProcessVerdict::Held);
        other.asked.bytes = 512;
        sums.add(&with(other.clone()));
        let [sum, apart] = &sums.finish(&[])[..] else { panic!("two questions") };
        assert_eq!((sum.packets.sent, sum.packets.lost), (4_000, 400));
        assert!(sum.packets.add_up(), "{:?}", sum.packets);
        assert_eq!(sum.departures.process.verdict, ProcessVerdict::Saturated);
        let per_second = sum.departures.per_second.unwrap();
        assert!((per_second - 1e3).abs() < 1e-6, "{per_second}");
        assert_eq!(sum.other_end, None, "medians do not add up");
        assert_eq!(*apart, other);
    }
}
