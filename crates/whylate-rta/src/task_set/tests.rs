//! Sets that work pass; each that cannot work is refused by name.

use super::*;

fn thread(name: &str, steps: &[&str]) -> Thread {
    let steps: Vec<Step> = steps.iter().map(|text| step(text)).collect();
    let workload = if steps.is_empty() { "CPU" } else { "PERIODIC steps 8ms" };
    Thread { workload: workload.parse().unwrap(), steps, ..Thread::new(name) }
}

fn step(text: &str) -> Step {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let name = rest.to_owned();
    match verb {
        "run" => Step::Run(Demand::Fixed(Nanos(1_000))),
        "lock" => Step::Lock(name),
        "unlock" => Step::Unlock(name),
        "barrier" => Step::Barrier(name),
        "push" => Step::Push(name),
        "pop" => Step::Pop(name),
        "yield" => Step::Yield,
        _ => panic!("{text}"),
    }
}

fn mutex(name: &str) -> Resource {
    Resource::Mutex { name: name.to_owned(), protocol: Protocol::None }
}

fn barrier(name: &str, threads: u32) -> Resource {
    Resource::Barrier { name: name.to_owned(), threads }
}

fn queue(name: &str) -> Resource {
    Resource::Queue { name: name.to_owned(), capacity: 4 }
}

fn set(threads: &[Thread], resources: &[Resource]) -> TaskSet {
    TaskSet { threads: threads.to_vec(), resources: resources.to_vec() }
}

fn refusal(threads: &[Thread], resources: &[Resource]) -> String {
    set(threads, resources).check().unwrap_err().to_string()
}

fn reserving(amount: u64, period: u64) -> Thread {
    let reservation = Reservation {
        kind: ReservationKind::Hard,
        amount: Nanos(amount),
        period: Nanos(period),
        scheduler: ReservationScheduler::Deadline,
    };
    Thread { reservation: Some(reservation), ..Thread::new("video") }
}

#[test]
fn a_set_that_works_passes() {
    let work = ["lock m", "run", "unlock m", "barrier b", "push q"];
    let take = ["pop q", "barrier b", "lock m", "run", "unlock m"];
    let resources = [mutex("m"), barrier("b", 2), queue("q")];
    assert_eq!(set(&[thread("a", &work), thread("b", &take)], &resources).check(), Ok(()));
    assert_eq!(set(&[thread("a", &[]), reserving(3, 8)], &[]).check(), Ok(()));
}

#[test]
fn fields_that_cannot_be_are_named() {
    let ends = |start, finish| Thread {
        start: Nanos(start),
        finish: Some(Nanos(finish)),
        ..Thread::new("video")
    };
    let on = |cpus: &[u32]| Thread {
        cpus: Some(cpus.iter().copied().map(CpuId).collect()),
        ..Thread::new("video")
    };
    for (thread, words) in [
        (reserving(9_000_000, 8_000_000), ["video", "asks for 9ms in each 8ms"]),
        (reserving(0, 8_000_000), ["video", "the reserved amount"]),
        (reserving(3, 0), ["video", "the reservation's period"]),
        (Thread { deadline: Some(Nanos(0)), ..Thread::new("video") }, ["video", "the deadline"]),
        (ends(2_000_000_000, 1_000_000_000), ["video", "finishes at 1s and starts at 2s"]),
        (ends(0, 0), ["video", "finish later"]),
        (on(&[]), ["video", "no CPU"]),
        (on(&[1, 8_192]), ["video", "CPU 8192"]),
        (Thread { name: String::new(), ..Thread::new("") }, ["thread ``", "empty"]),
        (Thread::new("red\u{1b}[31m"), ["\\u{1b}", "print"]),
        (Thread::new("x".repeat(49)), ["thread `x", "longer than 48"]),
    ] {
        let error = refusal(&[thread], &[]);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn a_thousand_threads_are_the_most_and_the_reason_is_said() {
    let threads = |count: usize| (0..count).map(|i| Thread::new(i.to_string())).collect();
    let set = |count| TaskSet { threads: threads(count), resources: Vec::new() };
    assert_eq!(set(1_024).check(), Ok(()));
    let error = set(10_000).check().unwrap_err().to_string();
    assert!(error.contains("10000 threads") && error.contains("locked in memory"), "{error}");
    assert!(error.contains("2500 MiB"), "{error}");
    assert_eq!(set(0).check(), Err(TaskSetError::NoThreads));
}

#[test]
fn names_are_unique_and_lead_somewhere() {
    let run = |steps: &[&str]| [thread("a", steps)];
    let m = [mutex("m")];
    for (threads, resources, word) in [
        (vec![thread("a", &[]), thread("a", &[])], vec![], "thread `a` is there twice"),
        (run(&["run"]).to_vec(), vec![mutex("m"), queue("m")], "queue `m` is there twice"),
        (run(&["lock n", "run", "unlock n"]).to_vec(), m.to_vec(), "declare it as [[mutex]]"),
        (run(&["barrier m"]).to_vec(), m.to_vec(), "uses `m` as a barrier, and it is a mutex"),
        (run(&["pop q"]).to_vec(), m.to_vec(), "the queue `q`"),
    ] {
        let error = refusal(&threads, &resources);
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn steps_and_workload_belong_together() {
    let unused = Thread { workload: Call::bare("CPU"), ..thread("a", &["run"]) };
    assert!(refusal(&[unused], &[]).contains("`PERIODIC steps 8ms`"));
    let none = Thread { workload: "PERIODIC steps 8ms".parse().unwrap(), ..Thread::new("a") };
    assert!(refusal(&[none], &[]).contains("it has none"));
    let idle = thread("a", &["lock m", "unlock m"]);
    assert!(refusal(&[idle], &[mutex("m")]).contains("add a `run` step"));
    let long = thread("a", &["run"; 257]);
    assert!(refusal(&[long], &[]).contains("257 steps"));
    let asleep = Thread { steps: vec![Step::Sleep(Nanos(0))], ..thread("a", &["run"]) };
    assert!(refusal(&[asleep], &[]).contains("a sleep of thread a is zero"));
}

#[test]
fn locks_are_taken_and_given_back_in_one_job() {
    for (steps, word) in [
        (vec!["lock m", "run"], "still holds m"),
        (vec!["run", "unlock m"], "without holding it"),
        (vec!["lock m", "lock m", "run", "unlock m"], "wait for itself"),
        (vec!["lock m", "unlock m", "unlock m", "run"], "without holding it"),
    ] {
        let error = refusal(&[thread("a", &steps)], &[mutex("m")]);
        assert!(error.contains(word), "{steps:?}: {error}");
    }
}

#[test]
fn barriers_and_queues_without_their_others_are_refused() {
    let ring = [thread("a", &["run", "barrier b"]), thread("b", &["barrier b", "run"])];
    assert!(refusal(&ring, &[barrier("b", 3)]).contains("for 3 threads, and 2 use it"));
    assert!(refusal(&ring, &[barrier("b", 2), barrier("c", 1)]).contains("`barrier c` to steps"));
    let filled = [thread("a", &["run", "push q"])];
    let error = refusal(&filled, &[queue("q")]);
    assert!(error.contains("only filled") && error.contains("a thread that empties"), "{error}");
    let emptied = refusal(&[thread("a", &["pop q"])], &[queue("q")]);
    assert!(emptied.contains("only emptied") && emptied.contains("a thread that fills"));
    for capacity in [0, 65_537] {
        let queue = Resource::Queue { name: "q".to_owned(), capacity };
        assert!(refusal(&[thread("a", &[])], &[queue]).contains("1 to 65536"));
    }
    for ceiling in [0, 99] {
        let protocol = Protocol::Protect { ceiling };
        let mutex = Resource::Mutex { name: "m".to_owned(), protocol };
        assert!(refusal(&[thread("a", &[])], &[mutex]).contains("1 to 98"));
    }
}

#[test]
fn a_lock_held_at_a_barrier_that_another_needs_to_get_there_is_refused() {
    let holds = thread("a", &["lock m", "barrier b", "unlock m"]);
    let resources = [mutex("m"), barrier("b", 2)];
    let before = thread("b", &["lock m", "run", "unlock m", "barrier b"]);
    let error = refusal(&[holds.clone(), before], &resources);
    assert!(error.contains("barrier b with m locked, and thread b"), "{error}");
    // What follows the barrier is on the way to the next job's.
    let after = thread("b", &["barrier b", "lock m", "run", "unlock m"]);
    assert!(refusal(&[holds.clone(), after], &resources).contains("thread b"));
    // Two barriers a job: the mutex is held at the first and needed on the way to the second.
    let twice = thread("a", &["lock m", "barrier b", "unlock m", "barrier b"]);
    let between = thread("b", &["barrier b", "lock m", "run", "unlock m", "barrier b"]);
    assert_eq!(set(&[twice, between], &resources).check(), Ok(()));
    // Nobody else needs it.
    let other = thread("b", &["run", "barrier b"]);
    assert_eq!(set(&[holds, other], &resources).check(), Ok(()));
}

#[test]
fn two_orders_of_locking_are_refused_unless_ceilings_forbid_them() {
    let nested = |outer: &str, inner: &str| {
        let words = [
            format!("lock {outer}"),
            format!("lock {inner}"),
            "run".to_owned(),
            format!("unlock {inner}"),
            format!("unlock {outer}"),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        thread(&format!("{outer}{inner}"), &words)
    };
    let mutexes = [mutex("x"), mutex("y"), mutex("z")];
    let chain = [nested("x", "y"), nested("y", "z"), nested("x", "z")];
    assert_eq!(set(&chain, &mutexes).check(), Ok(()));
    let ring = [nested("x", "y"), nested("y", "z"), nested("z", "x")];
    assert!(refusal(&ring, &mutexes).contains("in one order everywhere"));
    let protect = |name: &str| Resource::Mutex {
        name: name.to_owned(),
        protocol: Protocol::Protect { ceiling: 90 },
    };
    let pair = [nested("x", "y"), nested("y", "x")];
    assert_eq!(set(&pair, &[protect("x"), protect("y")]).check(), Ok(()));
    assert!(set(&pair, &[protect("x"), mutex("y")]).check().is_err());
}
