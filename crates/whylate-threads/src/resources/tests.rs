//! What threads share keeps its promises between real threads.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const NEVER: &dyn Fn() -> bool = &|| false;

#[test]
fn a_barrier_lets_nobody_into_the_next_round_before_all_have_come() {
    let (barrier, rounds) = (Barrier::of(3), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..200 {
                    assert!(rounds.load(Ordering::SeqCst) >= 3 * round);
                    rounds.fetch_add(1, Ordering::SeqCst);
                    barrier.wait(NEVER).unwrap();
                }
            });
        }
    });
    assert_eq!(rounds.load(Ordering::SeqCst), 600);
}

#[test]
fn a_queue_hands_over_every_item_and_never_holds_more_than_it_can() {
    let (queue, held) = (Queue::of(2), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2_000 {
                queue.push(NEVER).unwrap();
                held.fetch_add(1, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            for _ in 0..2_000 {
                queue.pop(NEVER).unwrap();
                held.fetch_sub(1, Ordering::SeqCst);
            }
        });
    });
    assert_eq!(held.load(Ordering::SeqCst), 0);
    assert!(!queue.try_pop().unwrap());
    assert!(queue.try_push().unwrap() && queue.try_push().unwrap() && !queue.try_push().unwrap());
}

#[test]
fn a_baton_goes_round_and_past_those_that_left() {
    let baton = Baton::among(3);
    let places: Vec<u32> = (0..3).map(|_| baton.join()).collect();
    assert_eq!(places, [0, 1, 2]);
    baton.wait(0, NEVER).unwrap();
    baton.leave(1).unwrap();
    baton.pass(0).unwrap();
    baton.wait(2, NEVER).unwrap();
    baton.leave(2).unwrap();
    baton.wait(0, NEVER).unwrap();
    baton.pass(0).unwrap();
    baton.wait(0, NEVER).unwrap();
}

#[test]
fn each_signal_lets_one_waiting_thread_go_on_and_one_too_early_is_lost() {
    let (condition, through) = (Condition::default(), AtomicU64::new(0));
    condition.signal().unwrap();
    std::thread::scope(|scope| {
        // The places are drawn before anybody signals, in a known order.
        let places: Vec<Place> = (0..3).map(|_| condition.draw()).collect();
        let (condition, through) = (&condition, &through);
        let mut threads = places.into_iter().map(|place| {
            scope.spawn(move || {
                condition.wait(place, NEVER).unwrap();
                through.fetch_add(1, Ordering::SeqCst)
            })
        });
        let (first, second, third) = (threads.next(), threads.next(), threads.next());
        assert_eq!(through.load(Ordering::SeqCst), 0, "the signal before them was lost");
        condition.signal().unwrap();
        assert_eq!(first.unwrap().join().unwrap(), 0, "the one that waited longest is the first");
        assert_eq!(through.load(Ordering::SeqCst), 1);
        condition.broadcast().unwrap();
        second.unwrap().join().unwrap();
        third.unwrap().join().unwrap();
    });
    assert_eq!(through.load(Ordering::SeqCst), 3);
}

#[test]
fn who_signals_and_waits_in_one_is_found_waiting_and_does_not_call_itself() {
    let condition = Condition::default();
    let is_called = |place| {
        let asked = std::cell::Cell::new(false);
        let over = || {
            asked.set(true);
            true
        };
        condition.wait(place, &over).unwrap();
        !asked.get()
    };
    let first = condition.signal_and_draw().unwrap();
    assert!(!is_called(first));
    let second = condition.signal_and_draw().unwrap();
    assert!(is_called(first) && !is_called(second));
    condition.broadcast().unwrap();
    assert!(is_called(second));
}

#[test]
fn a_semaphore_gives_out_what_was_put_in_and_no_more() {
    let (semaphore, taken) = (Semaphore::of(5), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    semaphore.wait(NEVER).unwrap();
                    taken.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| (0..1_995).for_each(|_| semaphore.post().unwrap()));
    });
    assert_eq!(taken.load(Ordering::SeqCst), 2_000);
    assert!(!semaphore.try_wait());
}

#[test]
fn a_wait_ends_when_there_is_nothing_to_wait_for() {
    let over: &dyn Fn() -> bool = &|| true;
    Barrier::of(2).wait(over).unwrap();
    Queue::of(1).pop(over).unwrap();
    Baton::among(2).wait(1, over).unwrap();
    let condition = Condition::default();
    condition.wait(condition.draw(), over).unwrap();
    Semaphore::default().wait(over).unwrap();
}
