//! Servers of which it is planted what each of their threads read and sent.

use whylate_model::breakdown::{Point, Source, Station};
use whylate_model::event::Protocol;
use whylate_model::{Pid, Ticks};

use super::Watching;
use crate::follow::Passage;
use crate::met::Met;
use crate::planted::{DATAGRAM, Message, PATIENCE, pieces};

/// A message from outside that thread `reader` reads from `socket` at that moment.
fn asked(socket: u64, reader: i32, read: u64) -> Passage {
    let m = Message { at: read - DATAGRAM.read, socket, reader, ..DATAGRAM };
    Passage { sender: None, sent: None, queued: None, driver: None, ..m.passage() }
}

/// A message that thread `sender` sends by `socket` at that moment, to the outside.
fn answer(socket: u64, sender: i32, at: u64) -> Passage {
    Passage {
        sender: Some(Pid(sender)),
        sending_socket: Some(socket),
        protocol: Some(Protocol::Udp),
        call: at,
        sent: Some(Ticks(at)),
        queued: Some(Ticks(at + 20)),
        driver: Some(Ticks(at + 30)),
        ..Passage::default()
    }
}

fn pairs(met: &[Met]) -> Vec<(u64, u64)> {
    let at = |met: &Met, point| met.instants.get(point).unwrap().0.0;
    let read = Point::there(Station::Read);
    met.iter().map(|met| (at(met, read), at(met, Point::back(Station::Sent)))).collect()
}

fn watch(threads: &[i32], passages: &[Passage]) -> (Vec<Met>, Watching) {
    let mut watching = Watching::new(threads.iter().map(|pid| Pid(*pid)).collect(), PATIENCE);
    for passage in passages {
        watching.passage(*passage);
    }
    let met = watching.finish();
    (met, watching)
}

#[test]
fn what_a_thread_sends_answers_what_it_read_with_every_instant_of_both() {
    let passages = [
        asked(0xb0, 20, 1_000),
        answer(0xb0, 20, 1_100),
        asked(0xb0, 20, 2_000),
        answer(0xb0, 20, 2_500),
        answer(0xb0, 99, 2_600),
    ];
    let (met, watching) = watch(&[20], &passages);
    assert_eq!(pairs(&met), [(1_000, 1_100), (2_000, 2_500)]);
    assert_eq!((met[0].number, met[1].number), (0, 1));
    let known: Vec<_> = met[0].instants.known().map(|(point, at, _)| (point, at.0)).collect();
    let expected = [
        (Point::there(Station::Arrived), 900),
        (Point::there(Station::Delivered), 910),
        (Point::there(Station::Woken), 920),
        (Point::there(Station::Running), 970),
        (Point::there(Station::Read), 1_000),
        (Point::back(Station::Sent), 1_100),
        (Point::back(Station::Queued), 1_120),
        (Point::back(Station::Driver), 1_130),
    ];
    assert_eq!(known, expected);
    assert!(met[0].instants.known().all(|(_, _, source)| source == Source::Trace));
    assert_eq!((watching.counts().answered, watching.counts().by_order), (2, 0));
    // By another socket of the thread: nothing but the order tells.
    let (met, watching) = watch(&[20], &[asked(0xb0, 20, 1_000), answer(0xee, 20, 1_100)]);
    assert_eq!(pairs(&met), [(1_000, 1_100)]);
    assert_eq!((watching.counts().answered, watching.counts().by_order), (1, 1));
}

#[test]
fn connections_that_one_thread_serves_in_turns_answer_each_for_itself() {
    let tcp = |passage: Passage| Passage { protocol: Some(Protocol::Tcp), ..passage };
    let passages = [
        tcp(asked(0xb0, 20, 1_000)),
        tcp(asked(0xb1, 20, 1_050)),
        tcp(answer(0xb0, 20, 1_100)),
        tcp(answer(0xb1, 20, 1_150)),
        // A question to somebody else, by a connection that nothing was read from.
        tcp(asked(0xb1, 20, 2_000)),
        tcp(answer(0xcc, 20, 2_050)),
        tcp(answer(0xb1, 20, 2_100)),
    ];
    let (met, watching) = watch(&[20], &passages);
    assert_eq!(pairs(&met), [(1_000, 1_100), (1_050, 1_150), (2_000, 2_100)]);
    assert_eq!((watching.counts().answered, watching.counts().unasked), (3, 1));
}

#[test]
fn threads_that_share_a_socket_answer_what_each_read_and_one_may_answer_for_another() {
    let passages = [
        asked(0xb0, 20, 1_000),
        asked(0xb0, 21, 1_050),
        answer(0xb0, 21, 1_100),
        answer(0xb0, 20, 1_150),
    ];
    let (mut met, _) = watch(&[20, 21], &passages);
    met.sort_by_key(|met| met.instants.get(Point::there(Station::Read)));
    assert_eq!(pairs(&met), [(1_000, 1_150), (1_050, 1_100)]);
    // One reads, another answers.
    let passages = [asked(0xb0, 20, 1_000), answer(0xb0, 22, 1_100)];
    let (met, watching) = watch(&[20, 22], &passages);
    assert_eq!(pairs(&met), [(1_000, 1_100)]);
    assert_eq!(watching.counts().by_another_thread, 1);
}

#[test]
fn requests_without_a_reply_are_counted_and_batches_are_paired_only_where_they_are_whole() {
    let batch = [
        asked(0xb0, 20, 1_000),
        asked(0xb0, 20, 1_001),
        answer(0xb0, 20, 1_100),
        answer(0xb0, 20, 1_110),
        // Of these three nobody can say which was answered.
        asked(0xb0, 20, 2_000),
        asked(0xb0, 20, 2_001),
        asked(0xb0, 20, 2_002),
        answer(0xb0, 20, 2_100),
        answer(0xb0, 20, 2_110),
        // And this one was not.
        asked(0xb0, 20, 3_000),
    ];
    let (met, watching) = watch(&[20], &batch);
    assert_eq!(pairs(&met), [(1_000, 1_100), (1_001, 1_110)]);
    let counts = watching.counts();
    assert_eq!((counts.read, counts.answered, counts.ambiguous, counts.unanswered), (6, 2, 3, 1));
    let told = crate::pairs::of_watching(&counts, &crate::FollowCounts::default());
    assert!(told.adds_up(), "{told:?}");
    assert_eq!((told.by_socket, told.by_order), (2, 0));
    // A second message after the answer answers nothing.
    let passages = [asked(0xb0, 20, 1_000), answer(0xb0, 20, 1_100), answer(0xb0, 20, 1_200)];
    let (met, watching) = watch(&[20], &passages);
    assert_eq!((pairs(&met), watching.counts().unasked), (vec![(1_000, 1_100)], 1));
}

#[test]
fn pieces_of_a_streams_message_are_one_and_messages_may_come_in_any_order() {
    let piece = |read| {
        let sender = Some(Pid(10));
        Passage { protocol: Some(Protocol::Tcp), sender, call: 5, ..asked(0xb0, 20, read) }
    };
    let part = |at| Passage { protocol: Some(Protocol::Tcp), call: 9, ..answer(0xb0, 20, at) };
    let (met, watching) = watch(&[20], &[part(1_110), piece(1_050), part(1_100), piece(1_000)]);
    // Read when its last piece was, sent when the first of the answer was.
    assert_eq!(pairs(&met), [(1_050, 1_100)]);
    assert_eq!((watching.counts().read, watching.counts().unasked), (1, 0));
}

#[test]
fn a_thread_that_was_forgotten_is_nobodys_and_its_number_may_be_another_processs() {
    let mut watching = Watching::new(vec![Pid(20), Pid(21)], PATIENCE);
    watching.passage(asked(0xb0, 20, 1_000));
    watching.passage(answer(0xb0, 20, 1_100));
    watching.forget(Pid(20));
    watching.passage(asked(0xb0, 20, 2_000));
    watching.passage(answer(0xb0, 20, 2_100));
    watching.passage(asked(0xb1, 21, 3_000));
    watching.passage(answer(0xb1, 21, 3_100));
    assert_eq!(pairs(&watching.finish()), [(1_000, 1_100), (3_000, 3_100)]);
    assert_eq!(watching.counts().read, 2);
}

#[test]
fn requests_are_given_out_as_soon_as_they_are_known_and_none_before() {
    let mut watching = Watching::new(vec![Pid(20)], PATIENCE);
    watching.passage(answer(0xb0, 20, 1_100));
    assert_eq!(watching.complete(Ticks(900)), []);
    watching.passage(asked(0xb0, 20, 1_000));
    assert_eq!(watching.complete(Ticks(1_100)), []);
    assert_eq!(pairs(&watching.complete(Ticks(1_101))), [(1_000, 1_100)]);
    // What comes when all before it had come is counted.
    watching.passage(answer(0xb0, 20, 1_050));
    assert_eq!(watching.counts().late, 1);
}

#[test]
fn a_request_of_several_pieces_arrived_with_its_last_and_so_was_its_reply_sent() {
    let [there, back] = pieces();
    for reversed in [false, true] {
        let mut all: Vec<Passage> = there.iter().chain(&back).copied().collect();
        if reversed {
            all.reverse();
        }
        let (met, watching) = watch(&[20], &all);
        assert_eq!((met.len(), watching.counts().read, watching.counts().answered), (1, 1, 1));
        let known: Vec<_> = met[0].instants.known().map(|(point, at, _)| (point, at.0)).collect();
        let expected = [
            (Point::there(Station::Arrived), 1_100),
            (Point::there(Station::Delivered), 1_105),
            (Point::there(Station::Woken), 1_160),
            (Point::there(Station::Running), 1_180),
            (Point::there(Station::Read), 1_200),
            (Point::back(Station::Sent), 1_300),
            (Point::back(Station::Queued), 1_340),
            (Point::back(Station::Driver), 1_345),
        ];
        assert_eq!(known, expected);
    }
}
