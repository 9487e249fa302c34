//! First screens of requests that were taken apart.

use whylate_model::Nanos;
use whylate_model::breakdown::{Breakdown, Part, PartShare, Point, Station};
use whylate_model::run::Run;

use super::super::spent::label;
use super::{assert_fits, made_by, shown, style};
use crate::breakdown::tests::{planted, run, watching};

fn screen(run: &Run) -> String {
    let command = match run.watched {
        Some(_) => "whylate watch 7000 --duration 1s",
        None => "whylate rtt --breakdown --duration 1s",
    };
    let screen = shown(&made_by(command, run.clone()), style());
    assert_fits(&screen);
    screen
}

#[test]
fn a_process_that_was_watched_is_told_with_the_parts_that_took_most() {
    let watched = screen(&watching(planted(2_000)));
    assert!(watched.contains("2,000 requests of ser\\u{1b}ver took 10 µs on average"), "{watched}");
    insta::assert_snapshot!("watch", watched);
    let mut of = planted(2_000);
    let ninth =
        |of: PartShare| PartShare { mean_ns: of.mean_ns / 9.0, share: of.share / 9.0, ..of };
    let parts = std::iter::repeat_n(of.all.parts, 9).flatten();
    of.all.parts = parts.map(ninth).collect();
    assert!(screen(&watching(of)).contains("more: --full"));
    let mut of = planted(2_000);
    (of.slow, of.all.parts) = (None, Vec::new());
    assert!(screen(&watching(of)).contains("None of them was taken apart."));
}

/// The percentile above which slow requests lie may be withheld: it stands in no sentence, and one is no several.
#[test]
fn slow_requests_are_told_by_their_number_and_their_own_times() {
    let mut of = planted(2_000);
    let told = |of: &Breakdown| screen(&watching(of.clone())).replace('\n', " ");
    let several = "The 2 slowest requests of 2,000 took 90 µs or more, 100 µs on average: 92% is";
    assert!(told(&of).contains(several), "{}", told(&of));
    of.slow.as_mut().unwrap().composition.requests = 1;
    let one = "The slowest request of 2,000 took 100 µs: 92% is";
    assert!(told(&of).contains(one), "{}", told(&of));
    assert!(!told(&of).contains("p99.9"), "{}", told(&of));
    of.slow.as_mut().unwrap().composition.requests = 0;
    assert!(!told(&of).contains("slowest request"), "{}", told(&of));
}

#[test]
fn a_process_that_was_watched_is_told_how_often_its_clients_asked_and_from_where_to_where() {
    let mut run = watching(planted(2_000));
    let rate = "requests/s, as the clients sent them; from arrival at this machine to the reply leaving it.";
    let told = |run: &Run| screen(run).replace('\n', " ");
    run.watched.as_mut().unwrap().lasted = None;
    assert!(!told(&run).contains("requests/s"), "older runs do not know it: {}", told(&run));
    run.watched.as_mut().unwrap().lasted = Some(Nanos(4_000_000_000));
    assert!(told(&run).contains(&format!("500 {rate}")), "{}", told(&run));
    run.watched.as_mut().unwrap().lasted = Some(Nanos(0));
    assert!(!told(&run).contains("requests/s"), "{}", told(&run));
}

#[test]
fn a_process_that_was_watched_is_told_with_its_percentiles_and_bounds_where_the_sample_has_no_more()
{
    let mut run = crate::kept::kept("watch").1;
    let said = shown(&run, style());
    let first = "374 requests of python3: p50 8.02 µs, p99 85.4 µs, worst 97.6 µs; mean 11.0 µs.";
    assert_eq!(said.lines().nth(1), Some(first), "{said}");
    let whole = run.series.iter_mut().find(|of| of.name == "watched-whole").unwrap();
    let p99 = whole.quantiles.iter_mut().find(|of| (of.percent - 99.0).abs() < 1e-9).unwrap();
    (p99.value, p99.low) = (None, Some(whylate_model::Nanos(50_900)));
    let said = shown(&run, style());
    assert!(said.contains(": p50 8.02 µs, p99 ≥50.9 µs, worst 97.6 µs; mean"), "{said}");
    // A run without the series of the whole knows the mean.
    run.series.retain(|of| of.name != "watched-whole");
    let said = shown(&run, style());
    assert!(said.contains("\n374 requests of python3 took 11.0 µs on average.\n"), "{said}");
}

/// In its column a name has 30 letters.
#[test]
fn no_part_of_a_request_is_cut_in_its_column() {
    let points = Station::ALL.into_iter().map(Point::there);
    let points: Vec<Point> = points.chain(Station::ALL.into_iter().map(Point::back)).collect();
    let mut parts = 0;
    for (from, to) in points.iter().flat_map(|from| points.iter().map(move |to| (*from, *to))) {
        if from < to {
            let part = label(Part { from, to });
            assert!(!part.is_empty() && part.chars().count() <= 30, "{part}");
            parts += 1;
        }
    }
    assert_eq!(parts, 276);
    let long = Part { from: Point::there(Station::Sent), to: Point::there(Station::Read) };
    assert_eq!(label(long), "send path to read");
    let short = Part { from: Point::there(Station::Arrived), to: Point::there(Station::Read) };
    assert_eq!(label(short), "receive path, wake-up, read");
}

#[test]
fn a_flow_that_was_taken_apart_keeps_its_answer_and_has_the_parts_below() {
    let screen = screen(&run(planted(1_000)));
    assert!(screen.contains("\nOf 10 µs on average, 50% is the server (request).\n"), "{screen}");
    assert!(screen.contains("\npart of a request"), "{screen}");
}

#[test]
fn a_process_that_nobody_asked_is_told_so_with_what_to_do_and_its_trust_is_poor() {
    let mut of = planted(0);
    (of.requests, of.slow, of.all.parts) = (0, None, Vec::new());
    let mut run = watching(of);
    run.warnings.clear();
    run.coverage = None;
    run.evidence.steal_ns = None;
    let screen = screen(&run);
    for said in [
        "No request of ser\\u{1b}ver was seen.\n",
        "None of its threads read a message and sent one after it meanwhile.\n",
        "Trust: poor. Watch it while clients ask it, or another process.\n",
        "whylate watch 7000 --duration 1m  while clients ask it",
    ] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
}
