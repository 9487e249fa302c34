//! Flows in tables and sentences, from planted flows: losses, ends, sums and shares.

use super::*;
use whylate_model::Nanos;
use whylate_model::flow::Across;

#[test]
fn losses_are_located_by_what_the_other_end_answered_unless_duplicates_hide_it() {
    let packets = Packets { sent: 100, received: 90, lost: 10, ..Packets::default() };
    assert_eq!(where_lost(&packets, 93), Some((7, 3)));
    assert_eq!(where_lost(&packets, 101), None, "it answered more than was sent");
    assert_eq!(where_lost(&packets, 80), None, "it answered less than came back");
    assert_eq!(where_lost(&Packets { duplicates: 1, ..packets }, 93), None);
    assert_eq!(where_lost(&Packets { received: 100, lost: 0, ..packets }, 100), None);
}

#[test]
fn where_the_other_end_gave_no_account_it_is_said_that_losses_are_not_located() {
    use crate::merge::flows::tests::flow;
    let mut of = flow(1_000, ProcessVerdict::Held);
    of.recordings.clear();
    assert!(!remarks_of(&of).iter().any(|said| said.starts_with("losses are not located")));
    of.other_end = None;
    let said =
        remarks_of(&of).into_iter().filter(|said| said.starts_with("losses are not located"));
    assert_eq!(said.count(), 1);
}

#[test]
fn the_shortest_frames_of_a_full_link_are_told_at_both_layers() {
    use crate::merge::flows::tests::flow;
    let mut full = flow(1_000, ProcessVerdict::Held);
    (full.asked.frame_bytes, full.departures.per_second) = (Some(64), Some(1e9 / 672.0));
    let said = size(&full);
    assert!(said.ends_with("in frames of 64 bytes: 761.9 Mbit/s at L2, 1000.0 at L1"), "{said}");
}

#[test]
fn a_message_that_no_frame_holds_is_told_in_the_frames_that_carry_it() {
    use crate::merge::flows::tests::flow;
    let said = |backend: &str, bytes, frame, mtu| {
        let mut of = flow(1_000, ProcessVerdict::Held);
        backend.clone_into(&mut of.way.backend);
        (of.asked.bytes, of.asked.frame_bytes) = (bytes, Some(frame));
        of.way.socket = Some(Socket { mtu, ..Socket::default() });
        size(&of)
    };
    // 9008 bytes behind IP, 1480 in each: 6 x 1518, and 128 + 38.
    let ipv4 = said("udp over ipv4", 9_000, 9_046, Some(1_500));
    assert_eq!(
        ipv4,
        "9000 bytes each way, each in 7 fragments (MTU 1500), frames of 9274 bytes together: \
         74.2 Mbit/s at L2, 75.3 at L1"
    );
    // 1448 in each with a header of its own: 6 x 1514, and 320 + 66.
    let ipv6 = said("udp over ipv6", 9_000, 9_066, Some(1_500));
    assert!(ipv6.contains("7 fragments") && ipv6.contains("9470 bytes together"), "{ipv6}");
    let tcp = said("tcp over ipv4", 9_000, 9_070, Some(1_500));
    assert!(tcp.contains("7 segments (MTU 1500)") && tcp.contains("9490 bytes"), "{tcp}");
    // The last of them is no shorter than a frame can be.
    let least = said("udp over ipv4", 1_480, 1_526, Some(1_500));
    assert!(least.contains("2 fragments (MTU 1500), frames of 1582 bytes"), "{least}");
    let fits = said("udp over ipv4", 1_472, 1_518, Some(1_500));
    assert!(fits.contains("in frames of 1518 bytes"), "{fits}");
    let loopback = said("udp over ipv4", 9_000, 9_046, Some(65_536));
    assert!(loopback.contains("in frames of 9046 bytes: 72.4 Mbit/s"), "{loopback}");
    let unknown = said("udp over ipv4", 9_000, 9_046, None);
    assert!(unknown.contains("in 1 frame or several") && !unknown.contains("L2"), "{unknown}");
}

#[test]
fn a_sum_says_what_each_recording_says_for_itself() {
    use crate::merge::flows::tests::flow;
    let mut sum = flow(2_000, ProcessVerdict::Held);
    let end = sum.other_end.take().unwrap();
    let of = |directory: &str, residence_median, residence_max| OfRecording {
        directory: directory.to_owned(),
        other_end: Some(OtherEnd { residence_median, residence_max, ..end }),
        tail: None,
        anomalies: None,
    };
    sum.recordings =
        vec![of("run-1", Nanos(160), Nanos(8_000)), of("run-2", Nanos(170), Nanos(9_000))];
    let said = of_recordings(&sum);
    assert!(said[0].contains("held a request for 90ns at least and 9.00us at most"), "{said:?}");
    assert!(said[1].starts_with("run-1: ") && said[1].contains("160ns in the median"), "{said:?}");
    assert!(said[2].starts_with("run-2: ") && said[2].contains("170ns"), "{said:?}");
    assert!(of_recordings(&flow(10, ProcessVerdict::Held)).is_empty());
}

#[test]
fn the_time_that_a_name_took_is_told_of_its_flow() {
    use crate::merge::flows::tests::flow;
    let mut named = flow(1_000, ProcessVerdict::Held);
    let told = |flow: &Flow| remarks_of(flow).iter().any(|said| said.contains("resolved in"));
    assert!(!told(&named));
    named.way.resolved_in = Some(Nanos(1_500_000));
    assert!(told(&named));
}

#[test]
fn an_answer_and_parts_beyond_trust_say_so() {
    use crate::trusted::tests::calibrated;
    let said = answer(&calibrated(Some(99.0)));
    assert!(
        said.contains("300us at p99.99, beyond what its calibration lets be trusted"),
        "{said}"
    );
    assert!(!answer(&calibrated(Some(99.99))).contains("beyond"));
    let mut run = calibrated(Some(99.0));
    let response = "rtt-response".to_owned();
    run.flows[0].parts = vec![whylate_model::flow::Part { label: "all".to_owned(), response }];
    let cells = &parts(&run).unwrap().rows[0];
    assert_eq!(cells[2..], ["12.0us", "20.0us", "~60.0us"]);
}

#[test]
fn requests_that_were_under_way_at_a_failure_are_lost_once() {
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;
    let mut dead = flow(1_000, ProcessVerdict::Held);
    // Of the 100 lost ones.
    dead.packets.abandoned = 20;
    let mut run = Run { flows: vec![dead], ..recorded() };
    run.series[0].name = "rtt-response".to_owned();
    let said = answer(&run);
    assert!(said.contains("100 lost"), "{said}");
}

#[test]
fn requests_that_were_given_up_or_never_sent_are_in_the_answer() {
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;
    let mut slow = flow(1_000, ProcessVerdict::Held);
    slow.asked.timeout = Nanos(100_000_000);
    (slow.packets.lost, slow.packets.given_up, slow.packets.never_sent) = (0, 230, 4_000);
    let mut run = Run { flows: vec![slow], ..recorded() };
    run.series[0].name = "rtt-response".to_owned();
    let said = answer(&run);
    assert!(
        said.ends_with("none lost, 230 given up after 100ms and answered later, 4,000 never sent."),
        "{said}"
    );
    // What was lost was given up, too, and is told once.
    let packets = &mut run.flows[0].packets;
    (packets.lost, packets.given_up, packets.never_sent) = (100, 100, 0);
    assert!(answer(&run).ends_with("100 lost."), "{}", answer(&run));
}

#[test]
fn how_late_the_p999_left_is_what_the_series_shows_and_no_more() {
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;
    let mut late = flow(1_000, ProcessVerdict::Disturbed);
    late.lateness = Some("rtt-lateness".to_owned());
    late.departures.process.lateness_p999 = Some(Nanos(8_530_000));
    let mut run = Run { flows: vec![late], ..recorded() };
    run.series[0].name = "rtt-lateness".to_owned();
    for quantile in &mut run.series[0].quantiles {
        quantile.value = (quantile.percent < 99.0).then_some(Nanos(1_000));
    }
    assert_eq!(departures(&run).rows[0][5], "-");
}

#[test]
fn messages_that_their_sender_hears_are_told_one_way_between_two_ports_and_nobody_answers() {
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;
    let mut heard = flow(1_000, ProcessVerdict::Held);
    let (out, back) = ("client0".to_owned(), "server0".to_owned());
    heard.way.across = Some(Across { out, back, one_thread: true });
    heard.service = Some("there-service".to_owned());
    heard.other_end = None;
    let remarks = remarks_of(&heard).join("; ");
    assert!(remarks.contains("leaves by client0 and comes back by server0"), "{remarks}");
    assert!(!remarks.contains("each way") && !remarks.contains("server's end"), "{remarks}");
    let mut run = Run { flows: vec![heard], ..recorded() };
    run.series[0].name = "there-service".to_owned();
    let said = answer(&run);
    assert!(said.contains("one way from client0 to server0"), "{said}");
    assert_eq!(times(&run), TIMES_ACROSS);
    run.series.clear();
    assert!(answer(&run).contains("too few came to server0"), "{}", answer(&run));
}
