//! Requests of which it is planted what became of each.

use whylate_model::breakdown::{Point, Source, Station};
use whylate_model::{Pid, Ticks};

use super::{Meeting, Met};
use crate::follow::Passage;
use crate::planted::{DATAGRAM, Message, PATIENCE, pieces};

const SENT: Point = Point::there(Station::Sent);
const QUEUED: Point = Point::there(Station::Queued);
const READ_BY_SERVER: Point = Point::there(Station::Read);
const ARRIVED_BACK: Point = Point::back(Station::Arrived);
const READ: Point = Point::back(Station::Read);

/// Request and reply of an exchange that begins there, and the client's readings.
fn exchange(number: u64, at: u64) -> ([Message; 2], (u64, u64)) {
    let there = Message { at, skb: 2 * number, ..DATAGRAM };
    let back = there.back(at + 300, 2 * number + 1);
    ([there, back], (at - 10, at + 300 + back.read + 10))
}

fn passage(message: &Message, call: u64) -> Passage {
    Passage { call, ..message.passage() }
}

fn at(met: &Met, point: Point) -> Option<(u64, Source)> {
    met.instants.get(point).map(|(at, source)| (at.0, source))
}

#[test]
fn requests_get_the_messages_of_both_ways_and_the_readings_of_their_client() {
    let mut meeting = Meeting::new(vec![Pid(10)], None, PATIENCE);
    for number in 0..5 {
        let (messages, (sent, read)) = exchange(number, 1_000 + 1_000 * number);
        meeting.request(number, Some(Ticks(sent - 5)), Ticks(sent), Ticks(read));
        for message in &messages {
            meeting.passage(passage(message, number));
        }
    }
    // Somebody else's.
    meeting.passage(Passage { sender: Some(Pid(77)), reader: Some(Pid(78)), ..DATAGRAM.passage() });
    let met = meeting.complete(Ticks(1 << 40));
    assert_eq!(met.iter().map(|met| met.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for met in &met {
        let start = 1_000 + 1_000 * met.number;
        assert_eq!(at(met, Point::there(Station::Intended)), Some((start - 15, Source::Own)));
        assert_eq!(at(met, SENT), Some((start - 10, Source::Own)));
        assert_eq!(at(met, QUEUED), Some((start + 20, Source::Trace)));
        assert_eq!(at(met, READ_BY_SERVER), Some((start + 150, Source::Trace)));
        assert_eq!(at(met, ARRIVED_BACK), Some((start + 350, Source::Trace)));
        assert_eq!(at(met, READ), Some((start + 460, Source::Own)));
        // Queued, driver, arrived, delivered, woken, running on both ways; the rest by three.
        assert_eq!(met.instants.known().count(), 12 + 5);
        let beside =
            [(SENT, Ticks(start), Source::Trace), (READ, Ticks(start + 450), Source::Trace)];
        assert_eq!(met.beside, beside);
        assert_eq!(met.twice, []);
    }
    let counts = meeting.counts();
    assert_eq!((counts.with_request, counts.with_reply, counts.turns.answered), (5, 5, 5));
    assert_eq!((counts.by_socket, counts.by_order), (5, 0), "each by the server's socket");
}

#[test]
fn several_requests_under_way_get_their_own_replies_also_where_a_batch_is_read() {
    // The server reads three, then answers three; the client reads them all at once.
    let mut meeting = Meeting::new(vec![Pid(10)], Some(vec![Pid(20)]), PATIENCE);
    for number in 0..3 {
        let there = Message { at: 1_000 + 50 * number, read: 900 - 40 * number, ..DATAGRAM };
        let back = DATAGRAM.back(3_000 + 10 * number, 100 + number);
        let back = Message { read: 400, ..back };
        meeting.passage(passage(&back, number));
        meeting.passage(passage(&there, number));
        meeting.request(number, None, Ticks(there.at - 5), Ticks(4_000));
    }
    let met = meeting.finish();
    assert_eq!(met.len(), 3);
    for met in met {
        assert_eq!(at(&met, QUEUED), Some((1_020 + 50 * met.number, Source::Trace)));
        assert_eq!(at(&met, ARRIVED_BACK), Some((3_050 + 10 * met.number, Source::Trace)));
    }
}

#[test]
fn a_request_that_was_lost_takes_nothing_from_the_next() {
    let mut meeting = Meeting::new(vec![Pid(10)], None, PATIENCE);
    for number in 0..4 {
        let (messages, (sent, read)) = exchange(number, 1_000 + 1_000 * number);
        meeting.passage(passage(&messages[0], number));
        if number != 1 {
            meeting.passage(passage(&messages[1], number));
            meeting.request(number, None, Ticks(sent), Ticks(read));
        }
    }
    let met = meeting.finish();
    assert_eq!(met.iter().map(|met| met.number).collect::<Vec<_>>(), [0, 2, 3]);
    for met in &met {
        assert_eq!(at(met, ARRIVED_BACK), Some((1_350 + 1_000 * met.number, Source::Trace)));
    }
    // The second was read and not answered before the third was read: nobody can say more.
    assert_eq!(meeting.counts().turns.answered + meeting.counts().turns.ambiguous, 4);
}

#[test]
fn what_nobody_saw_is_counted_and_the_readings_stay() {
    let mut meeting = Meeting::new(vec![Pid(10)], None, PATIENCE);
    let (messages, (sent, read)) = exchange(0, 1_000);
    meeting.request(0, None, Ticks(sent), Ticks(read));
    let (_, (sent, read)) = exchange(1, 2_000);
    meeting.request(1, None, Ticks(sent), Ticks(read));
    meeting.passage(passage(&messages[0], 0));
    let met = meeting.finish();
    let counts = meeting.counts();
    assert_eq!((counts.requests, counts.with_request, counts.with_reply), (2, 1, 0));
    assert_eq!((counts.not_seen, counts.reply_not_seen), (1, 2));
    assert_eq!(at(&met[0], QUEUED), Some((1_020, Source::Trace)));
    assert_eq!(met[1].instants.known().count(), 2);
}

#[test]
fn a_reply_that_answers_another_request_contradicts_and_neither_way_is_used() {
    let mut meeting = Meeting::new(vec![Pid(10)], None, PATIENCE);
    let (messages, (sent, _)) = exchange(0, 1_000);
    for message in &messages {
        meeting.passage(passage(message, 0));
    }
    // The client says it had its reply before that was read.
    meeting.request(0, None, Ticks(sent), Ticks(1_200));
    let met = meeting.finish();
    assert_eq!(meeting.counts().contradicted, 1);
    assert_eq!(met[0].instants.known().count(), 2);
}

#[test]
fn of_two_foreign_replies_in_one_window_none_is_taken_while_others_are_under_way() {
    let mut meeting = Meeting::new(vec![Pid(10)], None, PATIENCE);
    let foreign = |at: u64, skb| {
        let back = DATAGRAM.back(at, skb).passage();
        Passage { sender: None, sent: None, queued: None, driver: None, sender_cpu: None, ..back }
    };
    let left = |at: u64, call| Passage {
        socket: None,
        reader: None,
        arrived: None,
        delivered: None,
        woken: None,
        running: None,
        read: None,
        reader_cpu: None,
        ..passage(&Message { at, ..DATAGRAM }, call)
    };
    for (number, at) in [(0, 1_000), (1, 1_100)] {
        meeting.passage(left(at, number));
        meeting.passage(foreign(2_000 + 10 * number, number));
        meeting.request(number, None, Ticks(at - 5), Ticks(2_500));
    }
    // One alone, with one reply.
    meeting.passage(left(5_000, 2));
    meeting.passage(foreign(6_000, 2));
    meeting.request(2, None, Ticks(4_990), Ticks(6_500));
    let met = meeting.finish();
    let counts = meeting.counts();
    assert_eq!((counts.ambiguous, counts.with_request, counts.with_reply), (2, 3, 1));
    assert_eq!((counts.by_socket, counts.by_order), (0, 1), "nobody of this machine answered");
    assert_eq!(at(&met[2], ARRIVED_BACK), Some((6_050, Source::Trace)));
    assert_eq!(at(&met[0], ARRIVED_BACK), None);
}

#[test]
fn stamps_and_told_readings_stand_beside_the_trace_and_a_second_stamp_is_twice() {
    let mut meeting = Meeting::new(vec![Pid(10)], None, PATIENCE);
    let (messages, (sent, read)) = exchange(7, 1_000);
    // A stamp may come before the request is announced.
    meeting.instant(7, QUEUED, Ticks(1_021), Source::Software);
    meeting.instant(7, QUEUED, Ticks(1_022), Source::Software);
    meeting.request(7, None, Ticks(sent), Ticks(read));
    for message in &messages {
        meeting.passage(passage(message, 0));
    }
    meeting.instant(7, READ_BY_SERVER, Ticks(1_155), Source::Told);
    let tap = Point::there(Station::Tap);
    meeting.instant(7, tap, Ticks(1_040), Source::Tap);
    let met = meeting.finish();
    assert_eq!(at(&met[0], QUEUED), Some((1_020, Source::Trace)));
    assert_eq!(at(&met[0], READ_BY_SERVER), Some((1_155, Source::Told)));
    assert_eq!(at(&met[0], tap), Some((1_040, Source::Tap)));
    assert!(met[0].beside.contains(&(QUEUED, Ticks(1_021), Source::Software)));
    assert!(met[0].beside.contains(&(READ_BY_SERVER, Ticks(1_150), Source::Trace)));
    assert_eq!(met[0].twice, [QUEUED]);
}

#[test]
fn a_message_of_several_pieces_passes_each_point_with_its_last_in_whatever_order_they_come() {
    let [there, back] = pieces();
    let mut all: Vec<Passage> = there.iter().chain(&back).copied().collect();
    for _ in 0..all.len() {
        all.rotate_left(1);
        for reversed in [false, true] {
            if reversed {
                all.reverse();
            }
            let mut meeting = Meeting::new(vec![Pid(10)], None, PATIENCE);
            meeting.request(0, None, Ticks(990), Ticks(1_480));
            for piece in &all {
                meeting.passage(*piece);
            }
            let met = meeting.finish();
            let passed = |leg: fn(Station) -> Point, station| {
                met[0].instants.get(leg(station)).map(|(at, _)| at.0)
            };
            for (station, request, reply) in [
                (Station::Queued, 1_040, Some(1_340)),
                (Station::Driver, 1_045, Some(1_345)),
                (Station::Arrived, 1_100, Some(1_380)),
                (Station::Delivered, 1_105, Some(1_390)),
                (Station::Woken, 1_160, None),
                (Station::Running, 1_180, None),
            ] {
                assert_eq!(passed(Point::there, station), Some(request), "{station:?} {all:?}");
                assert_eq!(passed(Point::back, station), reply, "{station:?} {all:?}");
            }
            assert_eq!(at(&met[0], READ_BY_SERVER), Some((1_200, Source::Trace)));
            let counts = meeting.counts();
            assert_eq!((counts.with_request, counts.with_reply, counts.by_socket), (1, 1, 1));
            assert_eq!((counts.ambiguous, counts.contradicted), (0, 0));
        }
    }
}

#[test]
fn a_point_that_one_piece_was_not_seen_to_pass_is_not_known_of_the_message() {
    let [mut there, back] = pieces();
    there[1].driver = None;
    let mut meeting = Meeting::new(vec![Pid(10)], None, PATIENCE);
    meeting.request(0, None, Ticks(990), Ticks(1_480));
    for piece in there.iter().chain(&back) {
        meeting.passage(*piece);
    }
    let met = meeting.finish();
    assert_eq!(at(&met[0], Point::there(Station::Driver)), None);
    assert_eq!(at(&met[0], QUEUED), Some((1_040, Source::Trace)));
}
