//! Are the series of two sides, of a sum, one? What they differ in, and what of that was allowed.

use whylate_model::difference::Difference;
use whylate_model::identity::{Component, Identity};

/// In what series differ.
#[derive(Debug, Default)]
pub(crate) struct Unlikeness {
    /// In what nobody allowed: they are not added up, and not held against each other.
    pub(crate) refused: Vec<(Component, Difference)>,
    /// In what was allowed by name.
    pub(crate) allowed: Vec<Difference>,
}

/// Sets the identity of a series against another's.
pub(crate) fn unlike(one: &Identity, other: &Identity, across: &[Component]) -> Unlikeness {
    let mut found = Unlikeness::default();
    for (component, difference) in one.differences(other) {
        if across.contains(&component) {
            found.allowed.push(difference);
        } else {
            found.refused.push((component, difference));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use whylate_model::flow::{Across, Direction, Flow, ProcessVerdict};
    use whylate_model::run::Run;

    use super::*;
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;

    const SERIES: &str = "rtt-response";

    /// A run of one flow.
    fn of_flow(flow: Flow) -> Run {
        let mut run = Run { flows: vec![flow], ..recorded() };
        run.gaps.clear();
        SERIES.clone_into(&mut run.series[0].name);
        run
    }

    /// Names of what a run of one flow and a changed one differ in.
    fn differing(change: impl FnOnce(&mut Flow)) -> Vec<String> {
        let before = flow(1_000, ProcessVerdict::Held);
        let mut after = before.clone();
        change(&mut after);
        names(&of_flow(before), &of_flow(after), SERIES)
    }

    fn names(one: &Run, other: &Run, series: &str) -> Vec<String> {
        let of = |run| Identity::of(run, series).expect("it has the series");
        let found = unlike(&of(one), &of(other), &[]);
        found.refused.into_iter().map(|(_, field)| field.name).collect()
    }

    #[test]
    fn round_trips_of_another_rate_size_or_way_are_not_alike() {
        let none: [&str; 0] = [];
        assert_eq!(differing(|_| ()), none);
        assert_eq!(differing(|flow| flow.asked.bytes = 512), ["size"]);
        assert_eq!(differing(|flow| flow.asked.arrivals = "poisson".to_owned()), ["arrivals"]);
        assert_eq!(differing(|flow| flow.asked.direction = Direction::Back), ["direction"]);
        assert_eq!(differing(|flow| flow.way.backend = "tcp over ipv4".to_owned()), ["transport"]);
        assert_eq!(differing(|flow| flow.way.wait = "block".to_owned()), ["waiting"]);
        let ports = Across { out: "a".to_owned(), back: "b".to_owned(), one_thread: true };
        assert_eq!(differing(|flow| flow.way.across = Some(ports.clone())), ["replies"]);
        assert_eq!(differing(|flow| flow.asked.per_second = Some(1_020.0)), ["rate"]);
        assert_eq!(differing(|flow| flow.asked.per_second = Some(1_009.0)), none);
        // A closed loop has no rate of its own to be held against one that was asked for.
        assert_eq!(differing(|flow| flow.asked.per_second = None), ["rate"]);
        // It was asked for the same, and 3 of 100 did not leave in time.
        assert_eq!(differing(|flow| flow.departures.in_time = 970), ["rate"]);
        assert_eq!(differing(|flow| flow.departures.in_time = 995), none);
        assert_eq!(differing(|flow| flow.asked.most_under_way = Some(1)), ["outstanding"]);
    }

    #[test]
    fn what_is_allowed_by_name_is_told_and_the_rest_is_refused() {
        let mut other = flow(1_000, ProcessVerdict::Held);
        (other.asked.bytes, other.asked.per_second) = (512, Some(2_000.0));
        let of = |flow| Identity::of(&of_flow(flow), SERIES).expect("it has the series");
        let (one, other) = (of(flow(1_000, ProcessVerdict::Held)), of(other));
        let found = unlike(&one, &other, &[Component::Rate]);
        let [refused] = &found.refused[..] else { panic!("{found:?}") };
        assert_eq!((refused.0, refused.1.left.as_str()), (Component::Size, "64 bytes"));
        let [allowed] = &found.allowed[..] else { panic!("{found:?}") };
        assert_eq!((allowed.left.as_str(), allowed.right.as_str()), ("1000/s", "2000/s"));
    }

    #[test]
    fn parts_of_requests_of_another_rate_or_way_are_not_alike() {
        use crate::breakdown::tests::{planted, run};
        let part = "rtt-part-request-sent-queued";
        let mut one = run(planted(1_000));
        part.clone_into(&mut one.series[0].name);
        let mut other = one.clone();
        other.flows[0].way.wait = "block".to_owned();
        assert_eq!(names(&one, &other, part), ["waiting"]);
        // Without its flow nobody knows by which way they went.
        other.flows.clear();
        assert!(names(&one, &other, part).contains(&"transport".to_owned()));
    }

    #[test]
    fn what_is_not_recorded_is_as_nothing_but_itself() {
        let with = of_flow(flow(10, ProcessVerdict::Held));
        let without = Run { flows: Vec::new(), ..with.clone() };
        let of = |run| Identity::of(run, SERIES).expect("it has the series");
        let found = unlike(&of(&with), &of(&without), &[]);
        assert!(found.refused.len() > 5, "{found:?}");
        for (_, difference) in &found.refused {
            assert_eq!(difference.right, whylate_model::identity::NOT_RECORDED);
        }
        assert!(unlike(&of(&without), &of(&without), &[]).refused.is_empty());
        assert_eq!(Identity::of(&with, "gap-cpu1"), None, "there is no such series");
    }
}
