//! Threads that can be analysed become tasks; each that cannot is refused by name.

use super::*;
use crate::demand::no_tables;
use crate::flag;
use crate::task_set::{Protocol, Resource};

/// Threads in the words of a flag, with steps apart by `|`.
fn set(threads: &[(&str, &str)], mutexes: &[(&str, Protocol)]) -> TaskSet {
    let mut set = TaskSet::default();
    for (number, (word, steps)) in threads.iter().enumerate() {
        let mut thread = flag::threads(word, number).unwrap().remove(0);
        let steps = steps.split('|').map(str::trim).filter(|step| !step.is_empty());
        thread.steps = steps.map(|step| Step::parse(step, &no_tables).unwrap()).collect();
        set.threads.push(thread);
    }
    let mutex = |(name, protocol): &(&str, _)| Resource::Mutex {
        name: (*name).to_owned(),
        protocol: *protocol,
    };
    set.resources = mutexes.iter().map(mutex).collect();
    set
}

fn of(set: &TaskSet, policy: Policy, priorities: &[Option<u32>]) -> Result<OfSet, NotAnalysed> {
    tasks(set, &Taken { policy, priorities, tables: &no_tables })
}

fn by_priority(set: &TaskSet, priorities: &[u32]) -> Result<OfSet, NotAnalysed> {
    let priorities: Vec<_> = priorities.iter().copied().map(Some).collect();
    of(set, Policy::FixedPriority, &priorities)
}

fn blocking(of_set: &OfSet) -> Vec<u64> {
    of_set.tasks.iter().map(|task| task.blocking.0 / 1_000_000).collect()
}

#[test]
fn threads_become_tasks_with_the_most_they_ask_for() {
    let set = set(
        &[
            ("PERIODIC uniform(2ms,4ms) 8ms, deadline 6ms, name a", ""),
            ("LAT 5ms, name b", ""),
            ("PERIODIC steps 20ms, name c", "run 1ms | yield | run normal(4ms,1ms)"),
            ("CPU_PERIODIC 5ms 50ms, name d", ""),
            ("CPU, name e", ""),
        ],
        &[],
    );
    let priorities = [Some(9), Some(8), Some(7), Some(1), None];
    let found = of(&set, Policy::FixedPriority, &priorities).unwrap();
    let times: Vec<_> = found
        .tasks
        .iter()
        .map(|task| (task.execution.0, task.period.0, task.deadline.0, task.releases))
        .collect();
    let ms = 1_000_000;
    assert_eq!(
        times,
        [
            (4 * ms, 8 * ms, 6 * ms, Releases::Periodic),
            (1, 5 * ms, 5 * ms, Releases::Periodic),
            (9 * ms, 20 * ms, 20 * ms, Releases::Periodic),
            (5 * ms, 50 * ms, 50 * ms, Releases::AfterTheLast),
        ]
    );
    assert_eq!((found.left_out, found.cut), (vec!["e".to_owned()], vec!["c".to_owned()]));
    assert_eq!(found.threads, [0, 1, 2, 3]);
}

#[test]
fn what_cannot_be_analysed_is_refused_by_name_and_reason() {
    let fixed = Policy::FixedPriority;
    for (word, steps, policy, said) in [
        ("CPU", "", fixed, "no period"),
        ("CPU_YIELD 1ms", "", fixed, "no period"),
        ("PERIODIC steps 8ms", "run 1ms | barrier b", fixed, "`barrier b` is bound"),
        ("PERIODIC steps 8ms", "run 1ms | pop q", fixed, "`pop q` is bound"),
        ("PERIODIC steps 8ms", "run 1ms | sleep 1ms", fixed, "`sleep 1ms` is bound"),
        ("PERIODIC 3ms 8ms, cpus 0-1", "", fixed, "2 CPUs"),
        ("PERIODIC 3ms 8ms, reserve 3ms 8ms", "", fixed, "--policy cbs"),
        ("PERIODIC 3ms 8ms", "", Policy::Reservations, "no reservation"),
        ("PERIODIC 3ms 8ms, reserve quota 3ms 8ms", "", Policy::Reservations, "quota"),
        ("PERIODIC 3ms", "", fixed, "lacks its period"),
        ("PERIODIC table(x) 8ms", "", fixed, "tables cannot be read"),
        ("PERIODIC steps 8ms", "lock m | run 1ms | unlock m", Policy::EarliestDeadline, "mutex m"),
    ] {
        let set = set(&[(&format!("{word}, name one"), steps)], &[("m", Protocol::Inherit)]);
        let error = of(&set, policy, &[Some(5)]).unwrap_err().to_string();
        assert!(error.starts_with("thread one cannot") && error.contains(said), "{word}: {error}");
    }
}

#[test]
fn threads_of_two_cpus_and_one_that_never_blocks_above_others_are_refused() {
    let apart = set(&[("PERIODIC 1ms 8ms, cpus 0", ""), ("PERIODIC 1ms 8ms, cpus 1", "")], &[]);
    let error = by_priority(&apart, &[1, 2]).unwrap_err();
    assert_eq!(error.reason, Reason::AnotherCpu { own: CpuId(1), other: CpuId(0) });
    let endless = set(&[("CPU_PERIODIC 1ms 8ms", ""), ("PERIODIC 1ms 8ms", "")], &[]);
    let error = by_priority(&endless, &[2, 1]).unwrap_err();
    assert!(matches!(error.reason, Reason::NeverBlocks(_)));
    assert!(by_priority(&endless, &[1, 2]).is_ok());
}

#[test]
fn a_busy_wait_starves_what_is_no_more_urgent_and_is_refused_by_name() {
    let two = set(
        &[
            ("PERIODIC 1ms 8ms, timer spin, name busy", ""),
            ("PERIODIC 1ms 33ms, timer HR, name low", ""),
        ],
        &[],
    );
    for priorities in [[9, 1], [5, 5]] {
        let error = by_priority(&two, &priorities).unwrap_err();
        let reason = Reason::SpinsAbove("low".to_owned());
        assert_eq!((error.thread.as_str(), &error.reason), ("busy", &reason));
        let said = error.to_string();
        assert!(said.contains("thread busy") && said.contains("thread low"), "{said}");
    }
    // Below all others it takes nobody's time, and its own jobs find it awake.
    let found = by_priority(&two, &[1, 9]).unwrap();
    assert_eq!((found.tasks.len(), found.tasks[0].execution), (2, Nanos(1_000_000)));
    let error = of(&two, Policy::EarliestDeadline, &[None, None]).unwrap_err();
    assert_eq!((error.thread.as_str(), error.reason), ("busy", Reason::SpinsBetween));
    let alone = set(&[("PERIODIC 1ms 8ms, timer spin", "")], &[]);
    assert!(of(&alone, Policy::EarliestDeadline, &[None]).is_ok());
    let reserved = set(&[("PERIODIC 1ms 8ms, timer spin, reserve 2ms 8ms", "")], &[]);
    let error = of(&reserved, Policy::Reservations, &[None]).unwrap_err();
    assert_eq!(error.reason, Reason::SpinsBudget);
    // What never blocks never waits: its timer is none of its time.
    let endless = set(&[("CPU_PERIODIC 1ms 8ms, timer spin", ""), ("PERIODIC 1ms 8ms", "")], &[]);
    assert!(by_priority(&endless, &[1, 2]).is_ok());
}

/// Three threads, of which the outer two share a mutex.
fn inversion(protocol: Protocol) -> TaskSet {
    set(
        &[
            ("PERIODIC steps 20ms, name urgent", "run 1ms | lock bus | run 1ms | unlock bus"),
            ("PERIODIC 4ms 25ms, name middle", ""),
            ("PERIODIC steps 50ms, name low", "lock bus | run 3ms | unlock bus | run 2ms"),
        ],
        &[("bus", protocol)],
    )
}

#[test]
fn a_shared_mutex_blocks_for_the_longest_less_urgent_section() {
    for protocol in [Protocol::Inherit, Protocol::Protect { ceiling: 30 }] {
        let found = by_priority(&inversion(protocol), &[30, 20, 10]).unwrap();
        assert_eq!(blocking(&found), [3, 3, 0], "{protocol}");
    }
    // A ceiling above all users delays what does not use it, too.
    let high = by_priority(&inversion(Protocol::Protect { ceiling: 98 }), &[30, 40, 10]).unwrap();
    assert_eq!(blocking(&high), [3, 3, 0]);
    // With inheritance it does not.
    let inherit = by_priority(&inversion(Protocol::Inherit), &[30, 40, 10]).unwrap();
    assert_eq!(blocking(&inherit), [3, 0, 0]);
}

#[test]
fn a_mutex_without_a_protocol_and_a_ceiling_too_low_are_refused() {
    let error = by_priority(&inversion(Protocol::None), &[30, 20, 10]).unwrap_err();
    assert_eq!(error.thread, "urgent");
    assert_eq!(error.reason, Reason::Inversion { mutex: "bus".into(), holder: "low".into() });
    assert!(by_priority(&inversion(Protocol::None), &[10, 20, 10]).is_ok());
    let low = by_priority(&inversion(Protocol::Protect { ceiling: 29 }), &[30, 20, 10]);
    assert!(matches!(low.unwrap_err().reason, Reason::Ceiling { ceiling: 29, priority: 30, .. }));
    // A thread that shares its time holds it as well.
    let shared =
        of(&inversion(Protocol::Inherit), Policy::FixedPriority, &[Some(30), Some(20), None]);
    let shared = shared.unwrap();
    assert_eq!((blocking(&shared), shared.left_out), (vec![3, 3], vec!["low".to_owned()]));
}

#[test]
fn inheritance_is_bounded_by_threads_and_by_mutexes_and_nesting_by_threads_alone() {
    let many = set(
        &[
            (
                "PERIODIC steps 99ms, name top",
                "lock a | run 1ms | unlock a | lock b | run 1ms | unlock b",
            ),
            ("PERIODIC steps 99ms", "lock a | run 5ms | unlock a"),
            ("PERIODIC steps 99ms", "lock a | run 6ms | unlock a"),
            ("PERIODIC steps 99ms", "lock b | run 7ms | unlock b"),
        ],
        &[("a", Protocol::Inherit), ("b", Protocol::Inherit)],
    );
    // By thread 5 + 6 + 7, by mutex 6 + 7.
    assert_eq!(blocking(&by_priority(&many, &[4, 3, 2, 1]).unwrap())[0], 13);
    let nested = set(
        &[
            ("PERIODIC steps 99ms, name top", "lock a | run 1ms | unlock a"),
            ("PERIODIC steps 99ms", "lock b | run 2ms | lock a | run 3ms | unlock a | unlock b"),
            ("PERIODIC steps 99ms", "lock b | run 4ms | unlock b"),
        ],
        &[("a", Protocol::Inherit), ("b", Protocol::Inherit)],
    );
    // The section of `b` holds `a` inside: all 5 count for the top. The last one's `b` is wanted by
    // the middle one only.
    assert_eq!(blocking(&by_priority(&nested, &[3, 2, 1]).unwrap()), [5, 4, 0]);
}
