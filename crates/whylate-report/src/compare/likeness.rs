//! Are two series measurements of the same thing?
//!
//! A number is a distance between two vantage points by a clock, under a definition. Where one of
//! these differs, so does what is measured, and a difference of the numbers says nothing. Between
//! two readings of the counter lies the loop with its work: another loop, or other work, is another
//! distance. Not so the counting of every delta: its cost is part of the period, which is taken off.
//!
//! A round trip is that of messages of one size, by one way, in one pattern, at one rate: a server that
//! was asked twice as often is another one, and curves of different rates are not compared.

use std::collections::BTreeMap;

use whylate_model::Printable;
use whylate_model::difference::Difference;
use whylate_model::flow::{Direction, Flow};
use whylate_model::run::{GapSummary, Run};
use whylate_model::series::{Definition, Series};

/// Achieved rates that differ by a larger share are not those of one load.
const SAME_RATE: f64 = 0.01;

/// A series, with what decides whether another is like it.
#[derive(Debug, Clone)]
pub(crate) struct Measurement<'a> {
    /// The series.
    pub(crate) series: &'a Series,
    /// Its gap measurement, where it is one.
    pub(crate) gaps: Option<&'a GapSummary>,
    /// The settings of its run.
    pub(crate) settings: &'a BTreeMap<String, String>,
    /// The messages behind it, where it is of a flow.
    pub(crate) traffic: Option<&'a Traffic>,
}

/// The messages of a flow, as far as their times depend on them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Traffic {
    /// Names and values of what was asked for.
    fields: Vec<(&'static str, String)>,
    /// Messages a second that left; none for a closed loop, whose rate is its result.
    per_second: Option<f64>,
}

impl Traffic {
    /// What is behind the series of that name; none where no flow has it.
    pub(crate) fn of(run: &Run, series: &str) -> Option<Self> {
        run.flows.iter().find(|flow| flow.has_series(series)).map(Self::of_flow)
    }

    fn of_flow(flow: &Flow) -> Self {
        let (way, asked) = (&flow.way, &flow.asked);
        let direction = match asked.direction {
            Direction::There => "there",
            Direction::Back => "back",
        };
        let most = asked.most_under_way.map_or_else(|| "any".to_owned(), |most| most.to_string());
        let replies = match &way.across {
            Some(ports) => format!("none: from {} to {} of one client", ports.out, ports.back),
            None if asked.one_way => "none".to_owned(),
            None => "asked for".to_owned(),
        };
        let fields = vec![
            ("way", way.backend.clone()),
            ("waiting", way.wait.clone()),
            ("protocol", way.protocol.clone()),
            ("bytes", asked.bytes.to_string()),
            ("arrivals", asked.arrivals.clone()),
            ("direction", direction.to_owned()),
            ("requests under way at most", most),
            ("replies", replies),
        ];
        // Of the rate that was asked for, the share that left in time: how many a random process
        // intends in so long is chance, and no difference of the two.
        let share = flow.departures.in_time as f64 / flow.departures.intended.max(1) as f64;
        Self { fields, per_second: asked.per_second.map(|rate| rate * share) }
    }

    /// The same whatever was achieved: recordings of one question add up, held or not.
    pub(crate) fn whatever_rate(self) -> Self {
        Self { per_second: None, ..self }
    }

    fn pairs(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let both = self.fields.iter().zip(&other.fields);
        let mut pairs: Vec<_> =
            both.map(|((name, a), (_, b))| (*name, a.clone(), b.clone())).collect();
        if let Some((a, b)) = self.per_second.zip(other.per_second)
            && (a - b).abs() > SAME_RATE * a.max(b)
        {
            pairs.push(("achieved rate", format!("{a:.6}/s"), format!("{b:.6}/s")));
        }
        pairs
    }
}

/// Fields in which the two are not alike; empty when they can be compared.
pub(crate) fn unlike(one: &Measurement<'_>, other: &Measurement<'_>) -> Vec<Difference> {
    let (a, b) = (one.series, other.series);
    let (a_gaps, b_gaps) = (one.gaps, other.gaps);
    let (a_settings, b_settings) = (one.settings, other.settings);
    let kind = |gaps: Option<&GapSummary>| gaps.map(|gaps| gaps.loop_kind.to_string());
    let mut fields = vec![
        ("from", a.from.clone(), b.from.clone()),
        ("to", a.to.clone(), b.to.clone()),
        ("definition", a.definition.to_string(), b.definition.to_string()),
        ("clock", a.clock.clone(), b.clock.clone()),
    ];
    if matches!(a.definition, Definition::Gap | Definition::ReadDelta) {
        let loops = kind(a_gaps).zip(kind(b_gaps));
        let set = |name: &str| a_settings.get(name).cloned().zip(b_settings.get(name).cloned());
        fields.extend(loops.or_else(|| set("loop")).map(|(a, b)| ("loop", a, b)));
        fields.extend(set("work").map(|(a, b)| ("work", a, b)));
    }
    if let (Some(a), Some(b)) = (a.censored, b.censored) {
        fields.push(("timeout", a.above.to_string(), b.above.to_string()));
    }
    if let Some((a, b)) = one.traffic.zip(other.traffic) {
        fields.extend(a.pairs(b));
    }
    let print = |text: String| Printable(&text).to_string();
    fields
        .into_iter()
        .filter(|(_, left, right)| left != right)
        .map(|(name, left, right)| Difference {
            name: name.to_owned(),
            left: print(left),
            right: print(right),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;
    use whylate_model::flow::{Across, ProcessVerdict};

    /// Names of the fields in which a run of one flow and a changed one differ.
    fn differing(change: impl FnOnce(&mut Flow)) -> Vec<String> {
        let before = flow(1_000, ProcessVerdict::Held);
        let mut after = before.clone();
        change(&mut after);
        let with = |flow| Run { flows: vec![flow], ..recorded() };
        let (one, other) = (with(before), with(after));
        let of = |run| Traffic::of(run, "rtt-response").expect("a flow has it");
        let (a, b) = (of(&one), of(&other));
        let series = &one.series[0];
        let measured = |traffic| Measurement {
            series,
            gaps: None,
            settings: &one.settings,
            traffic: Some(traffic),
        };
        let fields = unlike(&measured(&a), &measured(&b));
        fields.into_iter().map(|field| field.name).collect()
    }

    #[test]
    fn round_trips_of_another_rate_size_or_way_are_not_alike() {
        let none: [&str; 0] = [];
        assert_eq!(differing(|_| ()), none);
        assert_eq!(differing(|flow| flow.asked.bytes = 512), ["bytes"]);
        assert_eq!(differing(|flow| flow.asked.arrivals = "poisson".to_owned()), ["arrivals"]);
        assert_eq!(differing(|flow| flow.asked.direction = Direction::Back), ["direction"]);
        assert_eq!(differing(|flow| flow.way.backend = "tcp over ipv4".to_owned()), ["way"]);
        assert_eq!(differing(|flow| flow.way.wait = "block".to_owned()), ["waiting"]);
        let ports = Across { out: "a".to_owned(), back: "b".to_owned(), one_thread: true };
        assert_eq!(differing(|flow| flow.way.across = Some(ports.clone())), ["replies"]);
        assert_eq!(differing(|flow| flow.asked.per_second = Some(1_020.0)), ["achieved rate"]);
        assert_eq!(differing(|flow| flow.asked.per_second = Some(1_009.0)), none);
        // It was asked for the same, and 3 of 100 did not leave in time.
        assert_eq!(differing(|flow| flow.departures.in_time = 970), ["achieved rate"]);
        assert_eq!(differing(|flow| flow.departures.in_time = 995), none);
        let most = differing(|flow| flow.asked.most_under_way = Some(1));
        assert_eq!(most, ["requests under way at most"]);
    }

    #[test]
    fn parts_of_requests_of_another_rate_or_way_are_not_alike() {
        use crate::breakdown::tests::{planted, run};
        let mut one = run(planted(1_000));
        let part = "rtt-part-request-sent-queued";
        let of = |run: &Run| Traffic::of(run, part).expect("the part is the flow's");
        let before = of(&one);
        one.flows[0].way.wait = "block".to_owned();
        assert!(before != of(&one) && Traffic::of(&one, "rtt-whole").is_some());
        one.flows[0].breakdown = None;
        assert_eq!(Traffic::of(&one, part), None);
    }

    #[test]
    fn what_no_flow_has_is_held_against_no_flow() {
        let run = Run { flows: vec![flow(10, ProcessVerdict::Held)], ..recorded() };
        assert_eq!(Traffic::of(&run, "gap-cpu1"), None);
        let of = Traffic::of(&run, "rtt-lateness-uninterrupted").expect("it is the flow's, too");
        assert_eq!(of.clone().whatever_rate().per_second, None);
        assert_eq!(of.per_second, Some(1e3));
    }
}
