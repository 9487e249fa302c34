//! Rings that are full, ports that fail, settings that are changed, and the end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;
use whylate_model::Nanos;
use whylate_model::delay::{DelayChange, Fate};
use whylate_port::{LinkOptions, PortError, Transport, Wait};

use super::{Sums, capacity, constant, line_of, nothing};
use crate::delay::capacity::Capacity;
use crate::delay::error::DelayError;
use crate::delay::law::Law;
use crate::delay::line::{Account, Line, NoOrders, Order, Orders, Told};
use crate::delay::open::Plan;
use crate::forward::memory::{Memory, Shared, came};
use crate::forward::{Halt, Why};

fn pair() -> (Shared, Memory, Memory) {
    let clock = Shared::default();
    let (mut a, mut b) = (Memory::new(&clock, 1), Memory::new(&clock, 2));
    (a.pause, b.pause) = (100, 100);
    (clock, a, b)
}

/// Runs until it ends; says why, what was told last, and what was changed.
fn ran(
    line: &mut Line<Shared, Memory>,
    stop: &AtomicBool,
    orders: &mut dyn Orders,
) -> (Why, Account, Vec<DelayChange>) {
    let (mut last, mut changes) = (None, Vec::new());
    let mut watch = |told: Told<'_>| {
        changes.extend(told.changes);
        last = Some(told.account);
    };
    let why = line.run(&Halt::new(stop), orders, &mut watch);
    let account = last.expect("one is told at the end");
    (why, account, changes)
}

/// Orders that come after so many questions.
struct After {
    orders: VecDeque<(u32, Order)>,
    asked: u32,
    answers: Vec<Result<Nanos, DelayError>>,
}

impl After {
    fn new(orders: impl IntoIterator<Item = (u32, Order)>) -> Self {
        Self { orders: orders.into_iter().collect(), asked: 0, answers: Vec::new() }
    }
}

impl Orders for After {
    fn next(&mut self) -> Option<Order> {
        self.asked += 1;
        let due = self.orders.front().is_some_and(|(after, _)| *after <= self.asked);
        if due { self.orders.pop_front().map(|(_, order)| order) } else { None }
    }

    fn answer(&mut self, of: Result<Nanos, DelayError>) {
        self.answers.push(of);
    }
}

#[test]
fn a_ring_that_is_full_is_handed_over_first_and_drops_what_it_still_has_no_room_for() {
    let (clock, mut a, mut b) = pair();
    a.coming = VecDeque::from([Ok(vec![came(60, 1); 50])]);
    b.slots = 20;
    let sent = Arc::clone(&b.sent);
    let (mut line, _truths) = line_of((a, b), &clock, &constant(0), capacity(64), nothing());
    line.begin();
    for _ in 0..2 {
        assert_eq!(line.round(), None);
    }
    // Two batches a turn, of what the ring has room for.
    let counts = line.account().directions[0].counts;
    assert_eq!((counts.passed_on, counts.ring_full, counts.waiting_at_the_end), (50, 0, 0));
    assert_eq!(sent.lock().unwrap().len(), 50);

    let (clock, mut a, mut b) = pair();
    a.coming = VecDeque::from([Ok(vec![came(60, 1); 50])]);
    b.slots = 0;
    let law = Law { duplicate: 1.0, ..constant(0) };
    let (mut line, mut truths) = line_of((a, b), &clock, &law, capacity(64), nothing());
    let mut sums = Sums::default();
    line.begin();
    assert_eq!(line.round(), None);
    let counts = line.account().directions[0].counts;
    assert_eq!((counts.passed_on, counts.ring_full, counts.duplicates_lost), (0, 50, 50));
    line.finish();
    truths.drain(|truth| {
        assert_eq!((truth.fate, truth.departure), (Fate::RingFull, None));
        sums.take(&truth);
    });
    sums.check(&line);
}

#[test]
fn what_the_kernel_refuses_is_counted_and_the_line_goes_on() {
    let (clock, mut a, mut b) = pair();
    a.coming = (0..5).map(|_| Ok(vec![came(60, 1); 2])).collect();
    let refused = || PortError::Send { backend: "memory", bytes: 60, errno: Errno::INVAL };
    b.refusing = VecDeque::from([refused(), refused()]);
    let stop = Arc::new(AtomicBool::new(false));
    a.last = Some(Arc::clone(&stop));
    let sent = Arc::clone(&b.sent);
    let (mut line, mut truths) = line_of((a, b), &clock, &constant(0), capacity(64), nothing());
    let (why, account, _) = ran(&mut line, &stop, &mut NoOrders);
    let there = &account.directions[0];
    assert_eq!((why, there.refusals), (Why::Stopped, 2));
    assert!(there.first_refusal.as_ref().is_some_and(|why| why.contains("cannot send 60")));
    assert_eq!((there.counts.refused, there.counts.passed_on), (4, 6));
    assert_eq!(sent.lock().unwrap().len(), 6);
    let mut sums = Sums::default();
    truths.drain(|truth| sums.take(&truth));
    sums.check(&line);
}

#[test]
fn a_link_that_is_down_for_a_while_is_counted_and_one_that_is_deleted_ends_it_with_what_waits_told()
{
    let (clock, mut a, b) = pair();
    let (down, deleted) = (a.lost("went down"), a.lost("was deleted"));
    a.coming = VecDeque::from([
        Ok(vec![came(60, 1)]),
        Err(down),
        Ok(vec![came(60, 2)]),
        Err(deleted),
        Ok(vec![came(60, 3)]),
    ]);
    let law = constant(1_000_000);
    let (mut line, mut truths) = line_of((a, b), &clock, &law, capacity(64), nothing());
    let (why, account, _) = ran(&mut line, &AtomicBool::new(false), &mut NoOrders);
    assert!(matches!(&why, Why::Lost { port: 0, why } if why.contains("was deleted")), "{why:?}");
    assert_eq!(account.downs, [1, 0]);
    let counts = account.directions[0].counts;
    assert_eq!((counts.received, counts.waiting_at_the_end), (2, 2));
    let mut sums = Sums::default();
    truths.drain(|truth| {
        assert_eq!((truth.fate, truth.departure), (Fate::Waiting, None));
        sums.take(&truth);
    });
    sums.check(&line);
}

#[test]
fn frames_leave_by_their_time_while_nothing_comes_by_a_port_that_is_down() {
    let (clock, mut a, b) = pair();
    a.coming = VecDeque::from([Ok(vec![came(60, 1)])]);
    for _ in 0..100 {
        let down = a.lost("went down");
        a.coming.push_back(Err(down));
    }
    let (mut line, _truths) = line_of((a, b), &clock, &constant(1_000), capacity(64), nothing());
    line.begin();
    for _ in 0..20 {
        assert_eq!(line.round(), None);
    }
    assert_eq!(line.account().directions[0].counts.passed_on, 1);
    assert!(line.lanes[0].times.lateness.max() <= Some(300));
}

#[test]
fn settings_that_are_changed_hold_from_then_on_and_what_waits_leaves_when_it_was_to() {
    let (clock, mut a, mut b) = pair();
    // One frame in a millisecond, both ways.
    (a.pause, b.pause) = (500_000, 500_000);
    a.coming = (0..10).map(|_| Ok(vec![came(60, 1)])).collect();
    b.coming = (0..10).map(|_| Ok(vec![came(60, 2)])).collect();
    let long = Law::constant(Nanos(3_000_000));
    let beyond = Law::constant(Nanos(200_000_000));
    let mut orders = After::new([
        (3, Order::Set { direction: Some(0), law: long.clone() }),
        (5, Order::Set { direction: None, law: beyond }),
        (6, Order::Set { direction: Some(2), law: long.clone() }),
        (7, Order::Set { direction: None, law: Law { loss: 2.0, ..long } }),
        (30, Order::Stop),
    ]);
    let (mut line, mut truths) =
        line_of((a, b), &clock, &constant(10_000), capacity(4_096), nothing());
    let (why, account, changes) = ran(&mut line, &AtomicBool::new(false), &mut orders);
    assert_eq!(why, Why::Stopped);
    let [there, back] = &account.directions;
    assert_eq!((&*there.law, &*back.law), ("3ms", "10us"));
    assert_eq!((there.counts.passed_on, back.counts.passed_on), (10, 10));
    let [Ok(at), Err(beyond), Err(nowhere), Err(share)] = &orders.answers[..] else {
        panic!("{:?}", orders.answers)
    };
    assert_eq!(changes, [DelayChange { at: *at, direction: 0, law: "3ms".to_owned() }]);
    let told = beyond.to_string();
    assert!(told.contains("200ms") && told.contains("4096 frames"), "{told}");
    assert_eq!(*nowhere, DelayError::NoDirection(2));
    assert!(matches!(share, DelayError::Law(_)), "{share}");
    let mut sums = Sums::default();
    let (mut short, mut longer) = (0, 0);
    truths.drain(|truth| {
        sums.take(&truth);
        match truth.due.0 - truth.arrival.0 {
            10_000 => short += 1,
            3_000_000 => longer += u32::from(truth.direction == 0),
            other => panic!("{other}"),
        }
    });
    sums.check(&line);
    assert_eq!(short + longer, 20);
    assert!((5..=8).contains(&longer), "{longer}");
}

#[test]
fn a_line_ends_when_its_time_is_over_and_tells_every_interval() {
    let (clock, mut a, b) = pair();
    a.pause = 1_000_000;
    let (mut line, _truths) = line_of((a, b), &clock, &constant(0), capacity(64), nothing());
    line.end_after(Nanos(3_500_000_000));
    let mut told = Vec::new();
    let mut watch = |of: Told<'_>| told.push(of.index);
    let stop = AtomicBool::new(false);
    let why = line.run(&Halt::new(&stop), &mut NoOrders, &mut watch);
    assert_eq!((why, told), (Why::Duration, vec![0, 1, 2, 3]));
}

#[test]
fn a_plan_whose_delay_is_beyond_its_capacity_is_refused_with_the_capacity_before_a_port_is_opened()
{
    let plan = |delay: u64, capacity: Option<Capacity>| Plan {
        transport: Transport::Packet,
        interfaces: ["nowhere0".to_owned(), "nowhere1".to_owned()],
        link: LinkOptions::default(),
        wait: Wait::Spin,
        laws: [constant(delay), constant(0)],
        fastest: "1Mpps".parse().unwrap(),
        capacity,
        truths: None,
        duration: None,
    };
    // What is derived from the delay holds it.
    for delay in [0, 1_000, 10_000_000, 100_000_000] {
        assert!(plan(delay, None).capacity().is_ok(), "{delay}");
    }
    let small = capacity(1_000);
    assert_eq!(plan(100_000, Some(small)).capacity(), Ok(small));
    let refused = plan(10_000_000, Some(small)).capacity().unwrap_err().to_string();
    assert!(refused.contains("10.0ms") && refused.contains("the 1000 frames"), "{refused}");
    assert!(plan(10_000, Some(Capacity { frames: 1, bytes: 1 })).capacity().is_err());
    let error = crate::delay::open(
        &plan(10_000_000, Some(small)),
        Shared::default(),
        crate::forward::memory::RATE,
        nothing(),
    );
    let refused = error.map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("the 1000 frames"), "{refused}");
}
