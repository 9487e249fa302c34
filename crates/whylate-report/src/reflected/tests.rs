//! What a reflector did is told, with what its sample cannot show left out.

use whylate_model::Nanos;
use whylate_model::reflect::{
    REFLECTED_VERSION, ReflectedClient, ReflectedConnections, ReflectedEnd, Residence,
    ResidencePercentile,
};

use super::*;
use crate::terminal::{Style, full_of_account};

fn full(of: &Reflected) -> String {
    full_of_account(of, Style::default())
}

fn percentile(percent: f64, value: Option<u64>) -> ResidencePercentile {
    let value = value.map(Nanos);
    ResidencePercentile { percent, value, low: None }
}

pub(crate) fn reflected() -> Reflected {
    Reflected {
        format_version: REFLECTED_VERSION,
        protocol: "raw".to_owned(),
        backend: "tcp over ipv4".to_owned(),
        listening: "127.0.0.1:11111".to_owned(),
        wait: "busy-poll".to_owned(),
        busy_polling: Some("of the receiving queue 7 (NAPI id)".to_owned()),
        socket: None,
        frames: None,
        program: None,
        cpu: None,
        since_ns: 951_827_696_000_000_000,
        lasted: Nanos(2_000_000_000),
        ended: ReflectedEnd::Idle,
        answered: 300,
        warm_ups: 20,
        one_way: 0,
        unasked: 0,
        foreign: 3,
        other_version: 0,
        unsent: 1,
        first_unsent: Some("did not take it\u{1b}[31m".to_owned()),
        connections: Some(ReflectedConnections {
            accepted: 2,
            turned_away: 0,
            broken: 1,
            cut: 0,
            stuck: 0,
        }),
        residence: Some(Residence {
            samples: 300,
            resolution_ns: 9.6,
            frequency_bound_ppm: 0.123,
            min: Nanos(800),
            percentiles: vec![
                percentile(50.0, Some(900)),
                percentile(99.0, None),
                percentile(99.9, None),
            ],
            max: Nanos(4_000),
        }),
        clients: vec![ReflectedClient {
            cookie: None,
            from: Some("127.0.0.1:4321".to_owned()),
            answered: 300,
            warm_ups: 20,
            one_way: None,
            finished: true,
            median: Some(Nanos(900)),
            max: Some(Nanos(4_000)),
        }],
        clients_replaced: 0,
        without_account: 5,
        warnings: Vec::new(),
    }
}

#[test]
fn what_a_reflector_did_is_told_with_what_the_sample_cannot_show_left_out() {
    let text = full(&reflected());
    for words in [
        "Reflected raw by tcp over ipv4 at 127.0.0.1:11111",
        "until its idle timeout",
        "queue 7",
        "connections closed: no message",
        "900 ns",
        "≥900 ns",
        "Resolution 10 ns",
        "What a request waited in the socket",
        "127.0.0.1:4321",
        "5 requests are in nobody's account",
    ] {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn one_that_answered_nothing_says_so() {
    let none = reflected();
    let nothing = Reflected { answered: 0, residence: None, clients: Vec::new(), ..none };
    let text = full(&nothing);
    assert!(text.contains("No measured request was answered."), "{text}");
}
