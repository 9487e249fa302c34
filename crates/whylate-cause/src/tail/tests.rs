//! What is kept of a run while its requests come.

use whylate_model::cause::PriorityClass;

use super::*;

const MS: u64 = 1_000_000;

/// From one second on, a tick of half a nanosecond.
fn scope(duration_ms: u64) -> Scope {
    Scope {
        lanes: 2,
        start: Ticks(2_000 * MS),
        duration: Nanos(duration_ms * MS),
        longest: Nanos(100 * MS),
        rate: Hertz(2e9),
        seed: 1,
    }
}

fn window(from: u64, length: u64) -> Window {
    Window { from: Ticks(from), to: Ticks(from + length) }
}

fn thread(name: &str) -> Cause {
    Cause::Thread { comm: name.to_owned(), class: PriorityClass::RealTime }
}

fn taken(from: u64, to: u64, cause: Cause) -> [Taken; 1] {
    [Taken { from: Ticks(from), to: Ticks(to), cause }]
}

#[test]
fn a_run_is_cut_into_forty_blocks_unless_these_are_too_short() {
    let of = |duration_ms| {
        let looking = Looking::new(scope(duration_ms));
        (looking.counts.blocks.len(), looking.block.0 / MS, looking.farthest / MS)
    };
    // In ticks, of which a nanosecond has two.
    assert_eq!(of(4_000), (40, 200, 1_000));
    assert_eq!(of(100), (4, 50, 25));
    assert_eq!(of(10), (1, 50, 2));
    assert_eq!(of(60_000), (40, 3_000, 2_000));
    assert_eq!(Looking::new(scope(4_000)).keep, TicksDelta(4_400 * MS));
    let looking = Looking::new(scope(4_000));
    let block = |from| looking.block_of(window(2_000 * MS + from, 1));
    assert_eq!([0, 200 * MS - 1, 200 * MS, 900 * MS].map(block), [0, 0, 1, 4]);
}

#[test]
fn interruptions_are_counted_by_thread_and_those_of_which_nothing_was_taken_are_none() {
    let mut looking = Looking::new(scope(100));
    let start = 2_000 * MS;
    looking.interruption(0, End::Client, &taken(start, start + 5, Cause::Host));
    looking.interruption(0, End::Client, &taken(start + 10, start + 15, Cause::Host));
    looking.interruption(1, End::Other, &[]);
    looking.interruption(7, End::Other, &taken(start, start + 5, Cause::Host));
    assert_eq!([0, 1, 7].map(|lane| looking.interruptions(lane)), [2, 0, 0]);
}

#[test]
fn causes_have_a_number_for_each_end_and_names_beyond_their_limit_have_one_together() {
    let mut looking = Looking::new(scope(100));
    assert_eq!(looking.key(End::Client, &thread("a")), Key(0));
    assert_eq!(looking.key(End::Other, &thread("a")), Key(1));
    assert_eq!(looking.key(End::Other, &thread("b")), Key(2));
    assert_eq!(looking.key(End::Client, &thread("a")), Key(0));
    for number in 3..MOST_CAUSES {
        let key = looking.key(End::Other, &thread(&format!("t{number}")));
        assert_eq!(usize::from(key.0), number);
    }
    let others = Key(MOST_CAUSES as u16);
    assert_eq!(looking.key(End::Other, &thread("late")), others);
    assert_eq!(looking.key(End::Other, &thread("later")), others);
    assert_eq!(looking.causes[MOST_CAUSES], (End::Other, naming::without_name(&thread("late"))));
    assert_eq!(looking.key(End::Other, &thread("b")), Key(2));
}

#[test]
fn requests_without_length_and_those_of_an_unknown_time_are_left_aside_and_counted() {
    let start = 2_000 * MS;
    let mut looking = Looking::new(scope(100));
    looking.request(window(start, 0));
    looking.request(Window { from: Ticks(start + 9), to: Ticks(start) });
    looking.request(window(start - 10, 20));
    looking.request(window(start, 20));
    // One of two interruptions at once came too late.
    looking.interruption(0, End::Client, &taken(start + 50, start + 60, Cause::Host));
    looking.interruption(0, End::Client, &taken(start + 50, start + 60, Cause::Host));
    let tail = looking.finish(None);
    assert_eq!((tail.requests, tail.left_aside), (1, 4));
    let mut full = Looking::new(scope(100));
    full.request(window(start, 20));
    full.counts.fill();
    let tail = full.finish(None);
    assert_eq!((tail.requests, tail.left_aside), (0, 1));
}

#[test]
fn a_request_that_may_be_slow_is_held_against_four_windows_of_its_length_at_earlier_times() {
    let start = 2_000 * MS;
    let at = start + 300 * MS;
    let mut looking = Looking::new(scope(400));
    looking.interruption(0, End::Client, &taken(at, at + 10_000, Cause::Host));
    looking.interruption(1, End::Other, &taken(start, at - 20_000, thread("all the time")));
    looking.request(window(at, 10_000));
    // Of windows before the first intended send nothing is known.
    looking.request(window(start, 10_000));
    looking.complete(Ticks(at + 10_000));
    let sum = |of: fn(&counts::Block) -> u64| looking.counts.blocks.iter().map(of).sum::<u64>();
    assert_eq!(sum(|block| block.elsewhere.iter().map(|n| u64::from(*n)).sum()), 4);
    let keys: Vec<_> = looking.counts.blocks.iter().flat_map(|block| block.chance.keys()).collect();
    assert!(keys.iter().all(|(key, ..)| *key == Key(1)), "its own interruption lies in none");
}
