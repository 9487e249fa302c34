//! Requests that are taken apart while their server misbehaves: closes in the middle, puts several
//! replies into one segment, or one into two. Requests that share a segment of TCP because the link is slow,
//! and such as are longer than a segment.

use whylate_model::breakdown::{Breakdown, CountedStamps, Point, Source, Station};
use whylate_model::run::Run;
use whylate_model::warning::Warning;

use crate::needs;
use crate::program::{self, Recorded, recorded, said};
use crate::requests::flow;
use crate::segments::{
    AT_ONCE, NEVER, against, of_several_segments, of_several_segments_by_both, over_a_slow_link,
    stamps_of_sendings,
};

fn breakdown(run: &Run) -> &Breakdown {
    flow(run).breakdown.as_deref().expect("requests were taken apart")
}

/// Whatever the server did: the parts sum to the whole, no more requests were taken apart than were
/// answered, and a point that did not come is missing.
fn sound(recorded: &Recorded) {
    let of = breakdown(&recorded.run);
    let packets = &flow(&recorded.run).packets;
    let answered = packets.received + packets.late;
    assert!(of.requests > 0 && of.requests <= answered, "{} of {answered}", of.requests);
    let parts: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((parts + of.all.residual_ns - of.all.total_mean_ns).abs() <= 1.0, "{:#?}", of.all);
    assert!(of.all.residual_ns.abs() <= 1.0, "{:#?}", of.all);
    for facts in &of.points {
        assert!(
            facts.came <= of.requests
                && facts.came + facts.missing + facts.not_asked <= of.requests,
            "{facts:?}"
        );
    }
}

#[test]
fn a_server_that_closes_in_the_middle_leaves_the_parts_of_what_it_answered() {
    let _alone = program::alone();
    let Some(recorded) = against("answer", 300, "--rate 500pps --duration 20s") else { return };
    sound(&recorded);
    let of = breakdown(&recorded.run);
    assert!(of.requests < 300, "{}", of.requests);
    let early = |warning: &Warning| matches!(warning, Warning::PartEndedEarly { .. });
    let text = said(&recorded.output);
    assert!(recorded.run.warnings.iter().any(early), "{text}");
    let left: u64 = of.left_out.iter().map(|left| left.requests).sum();
    let packets = &flow(&recorded.run).packets;
    assert_eq!(of.requests + left, packets.sent + packets.refused + packets.never_sent, "{of:#?}");
}

#[test]
fn replies_that_come_in_one_segment_or_in_two_are_parts_that_sum_to_the_whole() {
    let _alone = program::alone();
    for (how, words) in [
        ("merge", "--arrivals burst(8) --rate 400pps --duration 500ms"),
        ("split", "--rate 200pps --duration 500ms"),
    ] {
        let Some(recorded) = against(how, NEVER, words) else { return };
        sound(&recorded);
        let packets = &flow(&recorded.run).packets;
        let of = breakdown(&recorded.run);
        let left: u64 = of.left_out.iter().map(|left| left.requests).sum();
        let all = packets.sent + packets.refused + packets.never_sent;
        assert_eq!(of.requests + left, all, "{how}: {packets:?} {of:#?}");
        let stamps = of.stamps.iter().find(|stamps| stamps.stamp == "rx software");
        let stamps = stamps.expect("it was asked for");
        assert!(stamps.adds_up(), "{how}: {stamps:?}");
    }
}

/// The report's table has the counts of this kind, how many were merged and how many cut among them. Of
/// fewer than a thousand messages: the numbers are as they are.
fn report_says(recorded: &Recorded, of: &CountedStamps) {
    let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
    let table = text.split("Stamps of the measurement").nth(1).unwrap_or_else(|| panic!("{text}"));
    let counts = [
        of.asked, of.came, of.missing, of.skipped, of.twice, of.unknown, of.zero, of.merged,
        of.split,
    ];
    let row = counts.map(|count| count.to_string()).join(" ");
    assert!(of.asked < 1_000 && table.contains(&row), "no `{row}` in {table}");
}

/// Runs made at most where the host may spoil one.
const TRIES: usize = 3;

#[test]
fn requests_that_leave_in_one_segment_have_its_stamps_together_and_are_told_as_merged() {
    let _alone = program::alone();
    // More are written at once than may be under way: some share a segment, unless the host kept the client from
    // writing them at once.
    let share = |recorded: &Recorded| {
        let of = breakdown(&recorded.run);
        stamps_of_sendings(of).iter().all(|stamps| stamps.merged > 0)
    };
    let mut recorded = None;
    for _ in 0..TRIES {
        let Some(one) = over_a_slow_link() else { return };
        sound(&one);
        let done = share(&one);
        recorded = Some(one);
        if done {
            break;
        }
    }
    let recorded = recorded.unwrap();
    let of = breakdown(&recorded.run);
    for stamps in stamps_of_sendings(of) {
        assert!(stamps.merged > 0, "{stamps:?}");
        assert!(stamps.merged < stamps.came, "a segment's last one is its own: {stamps:?}");
        assert_eq!(stamps.unknown, 0, "{stamps:?}");
        report_says(&recorded, stamps);
    }
}

/// Bytes of the client's socket, which its error queue shares: room for the stamps of a few requests.
const ROOM: u32 = 4_096;

#[test]
fn stamps_that_find_no_room_in_the_error_queue_are_missing_and_told_and_the_rest_is_taken_apart() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    // Who spins sends what is due before it takes the stamps of it.
    let recorded = recorded(&format!(
        "rtt --wait spin --no-trace --breakdown=stamps,told --receive-buffer {ROOM} \
         --arrivals burst({AT_ONCE}) --rate 640pps --duration 1s --warmup 100ms --timeout 100ms"
    ));
    sound(&recorded);
    let of = breakdown(&recorded.run);
    for stamp in ["tx sched", "tx software"] {
        let stamps = of.stamps.iter().find(|stamps| stamps.stamp == stamp).expect("asked for");
        assert!(stamps.adds_up(), "{stamps:?}");
        assert!(stamps.came > 0 && stamps.skipped > 0, "{stamps:?}");
        assert!(stamps.skipped <= stamps.missing, "{stamps:?}");
        assert_eq!((stamps.twice, stamps.unknown, stamps.zero), (0, 0, 0), "{stamps:?}");
        report_says(&recorded, stamps);
    }
}

/// Segments of a long request.
const SEGMENTS: u64 = 3;

#[test]
fn a_request_of_several_segments_has_the_stamps_of_its_last_and_no_part_is_taken_for_the_whole() {
    let _alone = program::alone();
    let Some(recorded) = of_several_segments() else { return };
    sound(&recorded);
    let of = breakdown(&recorded.run);
    let tap = of.tap.as_deref().expect("the bed has a tap");
    assert!(tap.counts.paired > 0, "{tap:?}");
    let frames = 2 * SEGMENTS * tap.counts.paired;
    assert!(tap.packets >= frames, "they were not cut: {} frames, {tap:?}", tap.packets);
    for stamps in stamps_of_sendings(of) {
        // Of what is written at once the last segment alone is stamped.
        assert_eq!((stamps.split, stamps.unknown), (0, 0), "{stamps:?}");
        assert!(stamps.came > 0, "{stamps:?}");
        report_says(&recorded, stamps);
    }
}

#[test]
fn a_request_of_several_segments_passes_with_its_last_by_the_trace_as_by_stamps() {
    let _alone = program::alone();
    if needs::tracefs().is_none() {
        return;
    }
    let Some(recorded) = of_several_segments_by_both() else { return };
    sound(&recorded);
    let of = breakdown(&recorded.run);
    // The stamps are those of the last segment: between one's events and another's lie microseconds.
    for station in [Station::Queued, Station::Driver] {
        let point = Point::there(station);
        let by_both = of.agreements.iter().find(|agreement| {
            let sources = [agreement.told.used, agreement.told.beside];
            agreement.point == point && sources == [Source::Trace, Source::Software]
        });
        let told = &by_both.unwrap_or_else(|| panic!("{point}: {:#?}", of.agreements)).told;
        assert!(told.requests > 0 && told.requests <= of.requests, "{told:?}");
        assert!([told.agree, told.in_order, told.requests].is_sorted(), "{told:?}");
    }
}
