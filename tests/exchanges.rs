//! Flows of requests that were answered, given up, refused, abandoned or never sent: their account and their
//! series, as the ledger of a client has them.

use proptest::collection::vec;
use proptest::prelude::*;
use whylate_model::Nanos;
use whylate_model::flow::{Departures, Flow, OtherEnd, Packets};
use whylate_model::run::Run;
use whylate_model::series::{Censored, Definition, Series};
use whylate_stats::Histogram;

use crate::drawn::{Logged, added_up};
use crate::program;

/// How long a reply is waited for.
const TIMEOUT: u64 = 5_000_000;
/// How long before its end a run intended what it had no time left to send.
const TOO_LATE: u64 = 3_000_000;

/// A flow to be.
#[derive(Debug, Clone)]
pub(crate) struct DrawnFlow {
    /// Lateness and service time of what was answered in time, by blocks of time.
    answered: Vec<Vec<(u64, u64)>>,
    /// Lateness of what was given up: never answered, answered later, answered after the drain.
    given_up: [Vec<u64>; 3],
    /// Under way at a failure, refused by the kernel, never sent.
    odd: [u64; 3],
    /// Messages twice, of others, beside the measured requests.
    messages: [u64; 3],
    /// The other end told what it answered.
    told: bool,
}

pub(crate) fn any_flow() -> impl Strategy<Value = DrawnFlow> {
    let lateness = || prop_oneof![4 => 0..3_000_u64, 1 => 0..2 * TIMEOUT];
    let service = prop_oneof![4 => 1_000..90_000_u64, 1 => 1_000..TIMEOUT];
    let answered = vec(vec((lateness(), service), 0..60), 0..14);
    let few = || vec(lateness(), 0..4);
    let count = || prop_oneof![2 => Just(0), 1 => 0..40_u64];
    let counts = || [count(), count(), count()];
    (answered, [few(), few(), few()], counts(), counts(), any::<bool>()).prop_map(
        |(answered, given_up, odd, messages, told)| DrawnFlow {
            answered,
            given_up,
            odd,
            messages,
            told,
        },
    )
}

/// The times of requests of one block of time.
#[derive(Default)]
struct Times {
    service: Vec<u64>,
    response: Vec<u64>,
    lateness: Vec<u64>,
}

/// Lower bounds of what is not known.
#[derive(Default)]
struct Bounds {
    service: Option<u64>,
    response: Option<u64>,
    lateness: Option<u64>,
}

impl DrawnFlow {
    fn times(&self) -> (Vec<Times>, Bounds) {
        let mut blocks: Vec<Times> = Vec::new();
        for answered in &self.answered {
            blocks.push(Times {
                service: answered.iter().map(|(_, service)| *service).collect(),
                response: answered.iter().map(|(late, service)| late + service).collect(),
                lateness: answered.iter().map(|(late, _)| *late).collect(),
            });
        }
        let (mut last, mut bounds) = (Times::default(), Bounds::default());
        let lower =
            |bound: &mut Option<u64>, to: u64| *bound = Some(bound.map_or(to, |of| of.min(to)));
        for late in self.given_up.iter().flatten() {
            last.service.push(TIMEOUT);
            last.response.push(late + TIMEOUT);
            last.lateness.push(*late);
            lower(&mut bounds.service, TIMEOUT);
            lower(&mut bounds.response, late + TIMEOUT);
        }
        let [_, refused, never_sent] = self.odd;
        for (count, late) in [(refused, TIMEOUT), (never_sent, TOO_LATE)] {
            for _ in 0..count {
                last.response.push(late);
                last.lateness.push(late);
                lower(&mut bounds.response, late);
                lower(&mut bounds.lateness, late);
            }
        }
        blocks.push(last);
        (blocks, bounds)
    }

    fn packets(&self) -> Packets {
        let answered = self.answered.iter().flatten().count() as u64;
        let [lost, later, late] = [0, 1, 2].map(|of| self.given_up[of].len() as u64);
        let [abandoned, refused, never_sent] = self.odd;
        let [duplicates, foreign, unplaced] = self.messages;
        let received = answered + later;
        Packets {
            sent: received + late + lost + abandoned,
            received,
            late,
            lost: lost + abandoned,
            duplicates,
            reordered: duplicates.min(received),
            foreign,
            unplaced,
            arrived: received + late + duplicates + foreign + unplaced,
            given_up: lost + later + late,
            never_sent,
            refused,
            abandoned,
            unaccounted: 0,
        }
    }
}

/// What a log has of each series of the flow.
pub(crate) fn logged(of: &DrawnFlow) -> Vec<Logged> {
    let (times, _) = of.times();
    let one = |name: &str, pick: fn(&Times) -> &[u64]| {
        let blocks = times.iter().map(|of| pick(of).iter().copied().collect());
        (format!("rtt-{name}"), blocks.collect())
    };
    vec![
        one("service", |of| &of.service),
        one("response", |of| &of.response),
        one("send-lateness", |of| &of.lateness),
    ]
}

/// The flow and its series, in the run.
pub(crate) fn put(of: &DrawnFlow, run: &mut Run) {
    let (times, bounds) = of.times();
    let one = |name: &str, definition, above, pick: fn(&Times) -> &[u64]| {
        let blocks: Vec<Histogram> =
            times.iter().map(|of| pick(of).iter().copied().collect()).collect();
        series(name, definition, &blocks, above)
    };
    let all = [
        one("service", Definition::RoundTrip, bounds.service, |of| &of.service),
        one("response", Definition::Response, bounds.response, |of| &of.response),
        one("send lateness", Definition::SendLateness, bounds.lateness, |of| &of.lateness),
    ];
    let [service, response, lateness] =
        [0, 1, 2].map(|at| all[at].as_ref().map(|series| series.name.clone()));
    run.series.extend(all.into_iter().flatten());
    let packets = of.packets();
    let kept = program::read(&program::file("runs/rtt")).flows.swap_remove(0);
    let intended = packets.sent + packets.refused + packets.never_sent;
    run.flows.push(Flow {
        departures: Departures {
            intended,
            sent: packets.sent,
            in_time: packets.sent,
            gaps: None,
            pacing: None,
            ..kept.departures
        },
        service,
        response,
        lateness,
        other_end: kept
            .other_end
            .filter(|_| of.told)
            .map(|other| OtherEnd { answered: packets.received + packets.late, ..other }),
        tail: None,
        packets,
        ..kept
    });
}

fn series(
    label: &str,
    definition: Definition,
    blocks: &[Histogram],
    above: Option<u64>,
) -> Option<Series> {
    let name = format!("rtt-{}", label.replace(' ', "-"));
    let between = ["intended send", "after the receiving system call"];
    let (mut series, all) = added_up([&name, label], between, definition, blocks);
    if all.is_empty() {
        return None;
    }
    if let Some(above) = above.map(Nanos) {
        series.censor(&all, Censored { count: all.count_at_least(above.0), above });
    }
    Some(series)
}

/// Each request that was intended has its place in the account and in the series, and the text says how many
/// were sent and lost.
pub(crate) fn holds(run: &Run, text: &str) {
    for flow in &run.flows {
        let packets = &flow.packets;
        assert!(packets.add_up(), "{packets:?}");
        assert!(packets.reordered <= packets.received, "{packets:?}");
        let n = |name: &Option<String>| {
            let of = run.series.iter().find(|series| Some(&series.name) == name.as_ref());
            of.map_or(0, |series| series.n)
        };
        assert_eq!(n(&flow.service) + packets.abandoned, packets.sent, "{packets:?}");
        let intended = packets.sent + packets.refused + packets.never_sent;
        assert_eq!(n(&flow.response) + packets.abandoned, intended, "{packets:?}");
        assert_eq!((n(&flow.lateness), intended), (n(&flow.response), flow.departures.intended));
        let response = run.series.iter().find(|of| Some(&of.name) == flow.response.as_ref());
        if response.is_some_and(|of| of.at(50.0).is_some()) {
            let text: Vec<&str> = text.split_whitespace().collect();
            // A count has its thousands apart.
            let text = text.join(" ").replace(',', "");
            let lost = if packets.lost == 0 { "none".to_owned() } else { packets.lost.to_string() };
            let late = packets.answered_too_late();
            let late = (late > 0).then(|| format!(" {late} answered after the timeout"));
            let told = format!("{lost} lost{}", late.unwrap_or_default());
            assert!(text.contains(&told), "{told}: {text}");
        }
    }
}
