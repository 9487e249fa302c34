//! Flows in tables and sentences, from planted flows: losses, ends, sums and shares.

use super::*;
use whylate_model::Nanos;
use whylate_model::flow::Across;

/// What became of the requests of the first flow.
fn accounted(run: &Run, what: &str) -> String {
    let account = account(run);
    account.rows.iter().find(|row| row[0] == what).unwrap()[1].to_string()
}

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
    assert_eq!(
        size(&flow(1_000, ProcessVerdict::Held)),
        "64 bytes each way, in frames of 110 bytes: 0.88 Mbit/s at L2, 1.04 Mbit/s at L1"
    );
    let mut full = flow(1_000, ProcessVerdict::Held);
    (full.asked.frame_bytes, full.departures.per_second) = (Some(64), Some(1e9 / 672.0));
    let said = size(&full);
    assert!(said.ends_with("in frames of 64 bytes: 762 Mbit/s at L2, 1.00 Gbit/s at L1"), "{said}");
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
        "9,000 bytes each way, each in 7 fragments (MTU 1,500), frames of 9,274 bytes together: 74.2 Mbit/s at L2, 75.3 Mbit/s at L1"
    );
    // 1448 in each with a header of its own: 6 x 1514, and 320 + 66.
    let ipv6 = said("udp over ipv6", 9_000, 9_066, Some(1_500));
    assert!(ipv6.contains("7 fragments") && ipv6.contains("9,470 bytes together"), "{ipv6}");
    let tcp = said("tcp over ipv4", 9_000, 9_070, Some(1_500));
    assert!(tcp.contains("7 segments (MTU 1,500)") && tcp.contains("9,490 bytes"), "{tcp}");
    // The last of them is no shorter than a frame can be.
    let least = said("udp over ipv4", 1_480, 1_526, Some(1_500));
    assert!(least.contains("2 fragments (MTU 1,500), frames of 1,582 bytes"), "{least}");
    let fits = said("udp over ipv4", 1_472, 1_518, Some(1_500));
    assert!(fits.contains("in frames of 1,518 bytes"), "{fits}");
    let loopback = said("udp over ipv4", 9_000, 9_046, Some(65_536));
    assert!(loopback.contains("in frames of 9,046 bytes: 72.4 Mbit/s"), "{loopback}");
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
    assert!(said[0].contains("held a request for 90 ns at least and 9 µs at most"), "{said:?}");
    assert!(said[1].starts_with("run-1: ") && said[1].contains("160 ns in the median"), "{said:?}");
    assert!(said[2].starts_with("run-2: ") && said[2].contains("170 ns"), "{said:?}");
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
fn parts_beyond_trust_are_marked() {
    use crate::trusted::tests::calibrated;
    let mut run = calibrated(Some(99.0));
    let response = "rtt-response".to_owned();
    run.flows[0].parts = vec![whylate_model::flow::Part { label: "all".to_owned(), response }];
    let cells = &parts(&run).unwrap().rows[0];
    assert_eq!(cells[2..], ["12 µs", "20 µs", "~60 µs"]);
}

#[test]
fn requests_that_were_under_way_at_a_failure_are_lost_once() {
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;
    let mut dead = flow(1_000, ProcessVerdict::Held);
    // Of the 100 lost ones.
    dead.packets.abandoned = 20;
    let run = Run { flows: vec![dead], ..recorded() };
    assert_eq!(accounted(&run, "lost"), "100");
}

#[test]
fn requests_that_were_given_up_or_never_sent_are_told_apart_from_those_that_were_lost() {
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;
    let mut slow = flow(1_000, ProcessVerdict::Held);
    slow.asked.timeout = Some(Nanos(100_000_000));
    (slow.packets.lost, slow.packets.given_up, slow.packets.never_sent) = (0, 230, 4_000);
    let mut run = Run { flows: vec![slow], ..recorded() };
    let told = |run: &Run| ["lost", "answered later", "never sent"].map(|row| accounted(run, row));
    assert_eq!(told(&run), ["0", "230", "4,000"]);
    // What was lost was given up, too, and is told once.
    let packets = &mut run.flows[0].packets;
    (packets.lost, packets.given_up, packets.never_sent) = (100, 100, 0);
    assert_eq!(told(&run), ["100", "0", "0"]);
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
    assert_eq!(departures(&run).rows[0][5], "≥76.0 µs");
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
    assert_eq!(times(&run), TIMES_ACROSS);
}

/// A run of one flow whose series of this name has these percentiles.
fn timed(flow: Flow, series: &str, percentiles: &[(f64, u64)]) -> Run {
    let mut run = Run { flows: vec![flow], ..crate::timeline::tests::recorded() };
    series.clone_into(&mut run.series[0].name);
    for of in &mut run.series[0].quantiles {
        let found = percentiles.iter().find(|(percent, _)| (of.percent - percent).abs() < 1e-9);
        of.value = found.map(|(_, ns)| Nanos(*ns));
    }
    run
}

#[test]
fn the_schedule_is_told_as_asked_as_left_and_how_much_left_by_the_end() {
    use crate::merge::flows::tests::flow;
    let mut of = flow(1_000, ProcessVerdict::Saturated);
    of.departures.in_time = 750;
    of.departures.per_second = Some(750.0);
    let run = timed(of, "rtt-lateness", &[(99.9, 8_000)]);
    let cells = &departures(&run).rows[0];
    assert_eq!(cells[1..], ["constant", "1,000/s", "750/s", "75%", "8 µs", "SATURATED"]);
    let mut none = run.clone();
    (none.flows[0].departures.intended, none.flows[0].asked.per_second) = (0, None);
    assert_eq!(departures(&none).rows[0][2..5], ["–", "750/s", "–"]);
    let verdicts = [
        (ProcessVerdict::Held, "held"),
        (ProcessVerdict::Disturbed, "disturbed"),
        (ProcessVerdict::TooFew, "too few to tell"),
        (ProcessVerdict::ClosedLoop, "closed loop"),
    ];
    for (of, word) in verdicts {
        assert_eq!(verdict(of), word);
    }
    assert_eq!(ways(&run).rows[0][3..], ["9.8 ns", "20 ns", "20 ns", "10.2 ns"]);
    let account = account(&run);
    let column: Vec<String> = account.rows.iter().map(|row| row[1].to_string()).collect();
    let expected = [
        "1,000", "900", "0", "100", "0", "0", "0", "0", "0", "0", "0", "901", "0", "0", "1", "10%",
    ];
    assert_eq!(column, expected);
    let mut late = run.clone();
    late.flows[0].packets.given_up = 130;
    let account = self::account(&late);
    let row = account.rows.iter().find(|row| row[0] == "answered later").unwrap();
    assert_eq!(row[1], "30", "given up, and not among the lost");
}

#[test]
fn where_requests_were_lost_is_told_with_what_the_other_end_says() {
    use crate::merge::flows::tests::flow;
    let mut of = flow(1_000, ProcessVerdict::Held);
    of.other_end.as_mut().unwrap().answered = 930;
    let said = remarks_of(&of).join("; ");
    assert!(
        said.contains(
            "of those lost, 70 were on their way there or not read, and 30 on their way back"
        ),
        "{said}"
    );
    assert!(
        said.ends_with(
            "the other end answered 930 and rejected 0 foreign messages; it held a request for 90 ns at least, \
             160 ns in the median, 8 µs at most"
        ),
        "{said}"
    );
    assert!(said.contains("given up after 1 s") && said.contains("64 bytes each way"), "{said}");
    of.asked.most_under_way = Some(4);
    of.asked.direction = Direction::Back;
    of.asked.repeats_after = Some(Nanos(2_000));
    let said = remarks_of(&of).join("; ");
    for told in [
        "at most 4 in flight: the client waits for replies",
        "sent from the server's end of the bed",
        "the arrivals began again from the first after each 2 µs",
    ] {
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn a_socket_is_told_by_what_the_kernel_gave_it() {
    let of = Socket {
        interface: Some("lo".to_owned()),
        mtu: Some(1_500),
        receive_buffer: Some(212_992),
        send_buffer: Some(4_096),
        traffic_class: Some(0xb8),
        hops: Some(64),
        whole_packets: Some(true),
        ..Socket::default()
    };
    assert_eq!(
        socket("the socket", &of).unwrap(),
        "the socket: interface lo, MTU 1,500, 212,992 bytes to receive, 4,096 to send, DSCP 46, 64 \
         hops, packets are not fragmented"
    );
    let cut = Socket { whole_packets: Some(false), ..Socket::default() };
    assert_eq!(socket("it", &cut).unwrap(), "it: packets may be fragmented");
    assert_eq!(socket("it", &Socket::default()), None);
}

#[test]
fn of_several_flows_one_that_is_heard_decides_how_times_are_read() {
    use crate::merge::flows::tests::flow;
    let run = timed(flow(1_000, ProcessVerdict::Held), "rtt-response", &[(50.0, 12_000)]);
    let mut two = run.clone();
    two.flows.push(flow(7, ProcessVerdict::Held));
    assert!(section(&two).is_some());
    assert!(section(&Run { flows: Vec::new(), ..run.clone() }).is_none());
    let response = "rtt-response".to_owned();
    two.flows[0].parts = vec![whylate_model::flow::Part { label: "all".to_owned(), response }];
    assert_eq!(
        (times(&two), parts(&two).unwrap().caption.as_str()),
        (TIMES, "Response times by part")
    );
    let (out, back) = ("a".to_owned(), "b".to_owned());
    two.flows[1].way.across = Some(Across { out, back, one_thread: false });
    let caption = parts(&two).unwrap().caption;
    assert_eq!((times(&two), caption.as_str()), (TIMES_ACROSS, "One way, as intended, by part"));
    let said = remarks(&two).join("; ");
    assert!(said.contains("one clock, and threads of its own for both"), "{said}");
    assert_eq!(said.matches("127.0.0.1:1").count(), 2, "a line for each flow: {said}");
}

#[test]
fn of_requests_given_up_those_that_were_lost_otherwise_are_not_taken_off() {
    use crate::merge::flows::tests::flow;
    let mut of = flow(1_000, ProcessVerdict::ClosedLoop);
    // Of 100 lost ones 20 were in flight when the run failed, and 80 given up like 10 that came late.
    (of.packets.abandoned, of.packets.given_up) = (20, 90);
    assert_eq!(of.packets.answered_too_late(), 10);
    let closed = remarks_of(&of).iter().any(|said| said.ends_with("it has no response times"));
    assert!(
        closed
            && !remarks_of(&flow(1, ProcessVerdict::Held)).iter().any(|of| of.contains("closed"))
    );
}

#[test]
fn one_recording_has_no_sum_and_one_that_says_nothing_is_told_so() {
    use crate::merge::flows::tests::flow;
    let mut of = flow(1_000, ProcessVerdict::Held);
    let none =
        OfRecording { directory: "run-1".to_owned(), other_end: None, tail: None, anomalies: None };
    let told =
        OfRecording { other_end: of.other_end, directory: "run-2".to_owned(), ..none.clone() };
    of.recordings = vec![none, told];
    let held = "the other end held a request for 160 ns in the median";
    assert_eq!(
        of_recordings(&of),
        ["run-1: nothing of its own".to_owned(), format!("run-2: {held}")]
    );
}
