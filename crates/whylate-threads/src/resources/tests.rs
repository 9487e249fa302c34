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
fn a_wait_ends_when_there_is_nothing_to_wait_for() {
    let over: &dyn Fn() -> bool = &|| true;
    Barrier::of(2).wait(over).unwrap();
    Queue::of(1).pop(over).unwrap();
    Baton::among(2).wait(1, over).unwrap();
}
