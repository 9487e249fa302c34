//! First screens of requests that were taken apart.

use whylate_model::breakdown::PartShare;
use whylate_model::run::Run;

use super::{assert_fits, shown, style};
use crate::breakdown::tests::{planted, run, watching};

fn screen(run: &Run) -> String {
    let screen = shown(run, style());
    assert_fits(&screen);
    screen
}

#[test]
fn a_process_that_was_watched_is_told_with_the_parts_that_took_most() {
    let watched = screen(&watching(planted(2_000)));
    assert!(
        watched.contains("2,000 requests of ser\\u{1b}ver took 10 µs in the mean"),
        "{watched}"
    );
    insta::assert_snapshot!("watch", watched);
    let mut of = planted(2_000);
    of.all.parts = std::iter::repeat_n(of.all.parts, 9).flatten().collect::<Vec<PartShare>>();
    assert!(screen(&watching(of)).contains("more: --full"));
    let mut of = planted(2_000);
    (of.slow, of.all.parts) = (None, Vec::new());
    assert!(screen(&watching(of)).contains("None of them was taken apart."));
}

#[test]
fn a_flow_that_was_taken_apart_keeps_its_answer_and_has_the_parts_below() {
    let screen = screen(&run(planted(1_000)));
    assert!(screen.contains("\nOf 10 µs in the mean, 50% is the server (request).\n"), "{screen}");
    assert!(screen.contains("\npart of a request"), "{screen}");
}

#[test]
fn a_process_that_nobody_asked_is_told_so_with_what_to_do_and_nothing_limits_its_trust() {
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
        "Trust: good.\n",
        "whylate watch 7000 --duration 1m  while clients ask it",
    ] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
}
