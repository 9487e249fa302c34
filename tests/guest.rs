//! A network card that stamps, in a guest: the kernel's own driver of an igb card (82576) that QEMU emulates,
//! with a clock of its own and one register for the stamps of what is sent.
//!
//! Two cards are joined by a wire, and the other end has its own in a namespace. The guest's processor is
//! emulated, so no time is judged: that stamps come, what is counted, and what sums up.

use whylate_model::breakdown::{Breakdown, PartShare, Point, Source, Station};
use whylate_model::run::Run;

use crate::requests::flow;
use crate::{needs, program};

use crate::machine::{self, breakdown, counted, probed, wire};

/// The probe sees what the card has: stamps of what is sent, and none of ordinary messages that come.
fn the_probe_says_what_the_card_stamps(of: &Breakdown) {
    let sent = probed(of, "tx hardware");
    assert!(sent.accepted && sent.delivered > 0 && sent.delivered <= sent.sent, "{sent:?}");
    let received = probed(of, "rx hardware");
    assert!(received.accepted && received.sent > 0 && received.delivered == 0, "{received:?}");
    assert!(received.reason.as_ref().is_some_and(|why| why.contains("PTP")), "{received:?}");
}

/// Each that was asked for came or is missing; of the card no more are asked for than it has room for.
fn counts_close(run: &Run) {
    let (of, packets) = (breakdown(run), &flow(run).packets);
    for stamps in &of.stamps {
        assert!(stamps.adds_up() && stamps.skipped <= stamps.missing, "{stamps:?}");
        assert_eq!(stamps.unknown, 0, "{stamps:?}");
    }
    let (software, card) = (counted(of, "tx software"), counted(of, "tx hardware"));
    assert!(software.asked >= packets.sent && card.asked <= software.asked, "{:?}", of.stamps);
    assert!(software.came > 0 && card.came > 0, "{:?}", of.stamps);
}

/// The card's stamps lie between the driver's and the reply's, by its own clock, which began at another
/// time than the system's: they have a bound, and are one end of parts.
fn the_cards_stamps_are_parts(of: &Breakdown) {
    let facts = wire(of);
    assert_eq!(facts.source, Source::Hardware, "{facts:?}");
    assert_eq!(facts.came + facts.missing + facts.not_asked, of.requests, "{facts:?}");
    assert!(facts.came > 0 && facts.bound.0 > 0, "{facts:?}");
    let to_wire = |part: &&PartShare| part.part.to == facts.point;
    let parts: Vec<_> = of.all.parts.iter().filter(to_wire).collect();
    let requests: u64 = parts.iter().map(|part| part.requests).sum();
    assert_eq!(requests, facts.came - facts.contradicted, "{parts:#?}");
    assert!(parts.iter().any(|part| part.part.from == Point::there(Station::Driver)), "{parts:#?}");
}

/// The parts sum to the whole.
fn parts_sum(of: &Breakdown) {
    assert!(of.requests > 0, "{of:?}");
    let sum: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((sum + of.all.residual_ns - of.all.total_mean_ns).abs() < 1.0, "{:?}", of.all);
}

#[test]
fn a_cards_stamps_come_by_its_own_driver_and_counts_close_and_parts_sum_to_the_total() {
    let _alone = program::alone();
    if let Err(why) = machine::is_there() {
        if machine::is_none_of_this_system() {
            return needs::absent(&why);
        }
        return needs::missing(&why);
    }
    if !machine::PROGRAMS.iter().all(|name| needs::program(name).is_some()) {
        return;
    }
    for run in &machine::runs().unwrap_or_default() {
        the_probe_says_what_the_card_stamps(breakdown(run));
        counts_close(run);
        the_cards_stamps_are_parts(breakdown(run));
        parts_sum(breakdown(run));
    }
}
