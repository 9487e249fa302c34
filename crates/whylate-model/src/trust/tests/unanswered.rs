//! Requests that nobody answered, or not before they were given up.

use super::*;
use crate::series::Censored;

#[test]
fn unanswered_requests_limit_trust_and_more_than_the_headline_bears_make_it_poor() {
    for (lost, one_way, expected) in [
        (0, false, None),
        (1, false, Some((Level::Limited, "1 of 1000 requests of rtt got no reply (0.1%)"))),
        (10, false, Some((Level::Limited, "10 of 1000 requests of rtt got no reply (1.0%)"))),
        (11, false, Some((Level::Poor, "11 of 1000 requests of rtt got no reply (1.1%)"))),
        (895, false, Some((Level::Poor, "895 of 1000 requests of rtt got no reply (90%)"))),
        (895, true, None),
    ] {
        let mut run = requests();
        let flow = &mut run.flows[0];
        flow.asked.one_way = one_way;
        flow.packets = Packets { sent: 1_000, received: 1_000 - lost, lost, ..Packets::default() };
        let expected: Vec<_> =
            expected.into_iter().map(|(level, what)| (level, what.to_owned())).collect();
        assert_eq!(said(&run), expected, "{lost}");
    }
}

#[test]
fn requests_answered_after_the_timeout_count_with_those_that_got_no_reply() {
    let mut run = requests();
    let received = Packets { sent: 1_000, received: 1_000, ..Packets::default() };
    run.flows[0].packets = Packets { given_up: 230, ..received };
    let told = "230 of 1000 requests of rtt were answered after the timeout (23%)";
    assert_eq!(said(&run), [(Level::Poor, told.to_owned())]);
    // That p99 lies among them is no fault of a sample that is large enough for one.
    let name = run.flows[0].response.clone();
    let whole = clean(include_str!("../../../../../tests/runs/rtt/run.json"));
    run.series = whole.series.into_iter().filter(|of| Some(&of.name) == name.as_ref()).collect();
    let response = &mut run.series[0];
    response.n = 1_000;
    response.censored = Some(Censored { count: 230, above: Nanos::SECOND });
    for of in response.quantiles.iter_mut().filter(|of| of.percent > 90.0) {
        (of.value, of.high, of.n_eff) = (None, None, 1_000.0);
    }
    assert_eq!(said(&run), [(Level::Poor, told.to_owned())]);
    // Of requests that were never sent it does not say why.
    let unbounded = "1000 samples of response time do not bound p99";
    let mut unsent = run.clone();
    unsent.flows[0].packets = Packets { never_sent: 230, ..received };
    assert_eq!(said(&unsent), [(Level::Limited, unbounded.to_owned())]);
    // Neither alone is more than a headline bears; together they are.
    run.flows[0].packets = Packets { given_up: 12, lost: 6, received: 994, ..received };
    let both = ["got no reply (0.6%)", "were answered after the timeout (0.6%)"];
    let both = both.map(|what| (Level::Poor, format!("6 of 1000 requests of rtt {what}")));
    assert_eq!(said(&run), both);
}

#[test]
fn requests_that_a_backend_lost_are_told_of_it() {
    let mut run = clean(include_str!("../../../../../tests/runs/backends/run.json"));
    let before = said(&run);
    let rows = &mut run.backends.as_mut().unwrap().rows;
    let name = rows[2].backend.clone();
    let packets = &mut rows[2].measured.as_mut().unwrap().packets;
    *packets = Packets { sent: 1_000, received: 105, lost: 895, ..Packets::default() };
    let told = (Level::Poor, format!("895 of 1000 requests of {name} got no reply (90%)"));
    let new: Vec<_> = said(&run).into_iter().filter(|of| !before.contains(of)).collect();
    assert_eq!(new, [told]);
}
