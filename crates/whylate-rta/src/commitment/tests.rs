//! What sets ask for, against sums made by hand.

use super::*;
use crate::demand::no_tables;
use crate::{file, rtapp};

const TWO: [CpuId; 2] = [CpuId(0), CpuId(1)];

fn of(set: &TaskSet, cpus: &[CpuId], seconds: u64) -> Commitment {
    commitment(set, cpus, Nanos(seconds * Nanos::SECOND.0), &no_tables)
}

fn threads(text: &str) -> TaskSet {
    file::parse(&format!("format_version = 1\n{text}"), &no_tables).unwrap().set
}

fn workload(tasks: &str) -> TaskSet {
    rtapp::parse(&format!("{{ \"tasks\" : {{ {tasks} }} }}")).unwrap().set
}

/// Where more is asked for than there is: CPUs, what is asked in percent, when in ms, by how many.
fn told(found: &Commitment) -> Vec<(Vec<u32>, u64, u64, usize)> {
    let row = |of: &Excess| {
        let cpus = of.cpus.iter().map(|cpu| cpu.0).collect();
        (cpus, (of.asked * 100.0).round() as u64, of.from.0 / 1_000_000, of.askers.len())
    };
    found.excesses.iter().map(row).collect()
}

/// A periodic thread of a file.
fn periodic(name: &str, amount: &str, more: &str) -> String {
    format!("[[thread]]\nname = \"{name}\"\nworkload = \"PERIODIC {amount}\"\n{more}\n")
}

#[test]
fn a_cpu_that_is_exactly_full_is_not_accused_and_a_nanosecond_more_is() {
    let thirds = |last: &str| {
        let each = [("a", "1ms 3ms"), ("b", "1ms 3ms"), ("c", last)];
        threads(&each.map(|(name, amount)| periodic(name, amount, "")).concat())
    };
    assert!(told(&of(&thirds("1ms 3ms"), &TWO[..1], 1)).is_empty());
    let found = of(&thirds("1000001ns 3ms"), &TWO[..1], 1);
    assert_eq!(told(&found), [(vec![0], 100, 0, 3)]);
    assert_eq!(found.excesses[0].askers[0].0, 2, "the largest share first");
    assert!(told(&of(&thirds("1000001ns 3ms"), &TWO, 1)).is_empty(), "two CPUs have room");
}

#[test]
fn threads_that_are_bound_to_cpus_are_held_against_those() {
    let bound = |name, amount, cpus| periodic(name, amount, &format!("cpus = \"{cpus}\""));
    let set = threads(&[bound("a", "6ms 10ms", "0"), bound("b", "5ms 10ms", "0")].concat());
    assert_eq!(told(&of(&set, &TWO, 1)), [(vec![0], 110, 0, 2)]);
    // None alone is too much for its CPUs: 0-1 and 1-2 together are, with what is bound to 1.
    let set = threads(
        &[
            bound("a", "9ms 10ms", "0,1"),
            bound("b", "9ms 10ms", "0,1"),
            bound("c", "9ms 10ms", "1,2"),
            bound("d", "9ms 10ms", "1,2"),
        ]
        .concat(),
    );
    assert_eq!(told(&of(&set, &TWO, 1)), [(vec![0, 1, 2], 360, 0, 4)]);
}

#[test]
fn a_thread_has_one_cpu_at_a_time_however_many_it_may_use() {
    let set = threads(&periodic("a", "5ms 4ms", ""));
    assert_eq!(told(&of(&set, &TWO, 1)), [(vec![0, 1], 125, 0, 1)]);
    assert_eq!(told(&of(&set, &TWO[..1], 1)), [(vec![0], 125, 0, 1)], "and is told once");
}

#[test]
fn threads_that_do_not_run_at_the_same_time_ask_for_nothing_together() {
    let set = |start| {
        let first = periodic("a", "6ms 10ms", "finish = \"2s\"");
        threads(&(first + &periodic("b", "6ms 10ms", &format!("start = \"{start}\""))))
    };
    assert!(told(&of(&set("2s"), &TWO[..1], 10)).is_empty());
    assert_eq!(told(&of(&set("1s"), &TWO[..1], 10)), [(vec![0], 120, 1_000, 2)]);
    assert!(told(&of(&set("1s"), &TWO[..1], 1)).is_empty(), "the run ends before");
}

#[test]
fn reservations_count_for_their_threads_and_what_takes_the_rest_for_nothing() {
    let reserved = |name: &str, workload: &str, more: &str| {
        format!("[[thread]]\nname = \"{name}\"\nworkload = \"{workload}\"\n{more}\n")
    };
    let hard = r#"reservation = { kind = "hard", amount = "6ms", period = "10ms" }"#;
    let set =
        threads(&[reserved("a", "CPU", hard), reserved("b", "PERIODIC 9ms 10ms", hard)].concat());
    assert_eq!(told(&of(&set, &TWO[..1], 1)), [(vec![0], 120, 0, 2)]);
    let soft = r#"reservation = { kind = "soft", amount = "3ms", period = "10ms" }"#;
    let set =
        threads(&[reserved("a", "PERIODIC 9ms 10ms", soft), reserved("b", "CPU", soft)].concat());
    assert_eq!(told(&of(&set, &TWO[..1], 1)), [(vec![0], 120, 0, 2)], "what it asks beyond it");
    let set = threads(&[reserved("a", "CPU", ""), reserved("b", "CPU", "")].concat());
    let found = of(&set, &TWO[..1], 1);
    assert!(told(&found).is_empty() && found.unknown.is_empty());
    let set = threads(&reserved("a", "CPU_PERIODIC 9ms 8ms", ""));
    assert_eq!(told(&of(&set, &TWO[..1], 1)), [(vec![0], 113, 0, 1)]);
}

#[test]
fn phases_of_a_program_count_when_it_is_their_turn() {
    // The third example of rt-app's tutorial: 12 threads go from 10 % to 90 %.
    let set = workload(
        r#""t" : { "instance" : 12, "loop" : 1, "phases" : {
            "light" : { "loop" : 10, "run" : 3000, "timer" : { "ref" : "unique", "period" : 30000 } },
            "heavy" : { "loop" : 10, "run" : 27000,
                        "timer" : { "ref" : "unique", "period" : 30000 } } } }"#,
    );
    let found = of(&set, &TWO, 10);
    assert_eq!(told(&found), [(vec![0, 1], 1080, 300, 12)]);
    assert!(found.unknown.is_empty(), "{found:?}");
    // They are never heavy at the same time.
    let set = workload(
        r#""a" : { "loop" : -1, "phases" : {
            "light" : { "loop" : 10, "run" : 100, "timer" : { "ref" : "t", "period" : 1000 } },
            "heavy" : { "loop" : 10, "run" : 900, "timer" : { "ref" : "t", "period" : 1000 } } } },
           "b" : { "loop" : -1, "phases" : {
            "heavy" : { "loop" : 10, "run" : 900, "timer" : { "ref" : "u", "period" : 1000 } },
            "light" : { "loop" : 10, "run" : 100, "timer" : { "ref" : "u", "period" : 1000 } } } }"#,
    );
    let found = of(&set, &TWO[..1], 1);
    assert_eq!((told(&found), &found.unknown), (Vec::new(), &Vec::new()));
}

#[test]
fn what_is_run_in_one_phase_counts_against_the_timer_of_another() {
    let set = |run| {
        workload(&format!(
            r#""t" : {{ "loop" : 10, "phases" : {{
                "sleeping" : {{ "timer" : {{ "ref" : "tick", "period" : 1200000 }} }},
                "running" : {{ "loop" : 3, "run" : {run}, "runtime" : {run} }} }} }}"#
        ))
    };
    assert!(told(&of(&set(150_000), &TWO[..1], 60)).is_empty());
    assert_eq!(told(&of(&set(210_000), &TWO[..1], 60)), [(vec![0], 105, 1_200, 1)]);
}

#[test]
fn what_hangs_on_other_threads_is_not_guessed_and_told_apart() {
    let set = workload(
        r#""waits" : { "loop" : -1, "suspend" : "waits", "run" : 9000,
                       "timer" : { "ref" : "t", "period" : 5000 } },
           "untimed" : { "loop" : -1, "run" : 9000, "resume" : "waits", "sleep" : 1 },
           "wakes" : { "loop" : -1, "resume" : "waits",
                            "timer" : { "ref" : "u", "period" : 5000 } }"#,
    );
    let found = of(&set, &TWO[..1], 1);
    assert_eq!((told(&found), found.unknown), (Vec::new(), vec![0, 1]));
}

#[test]
fn hostile_programs_are_followed_only_so_far() {
    // A turn of a microsecond that is never like the one before, for an hour.
    let phases: Vec<String> = (0..200)
        .map(|n| {
            let timer = r#""timer" : { "ref" : "t", "period" : 1 }"#;
            format!(r#""p{n}" : {{ "loop" : 1000000000, "run" : {}, {timer} }}"#, n % 7)
        })
        .collect();
    let set = workload(&format!(
        r#""t" : {{ "instance" : 500, "loop" : 1000000000, "phases" : {{ {} }} }}"#,
        phases.join(",")
    ));
    let found = of(&set, &TWO, 3_600);
    assert!(!found.excesses.is_empty());
    let phases: Vec<String> = (0..200)
        .map(|n| {
            let timer = r#""timer" : { "ref" : "t", "period" : 1 }"#;
            format!(r#""p{n}" : {{ "run" : {}, {timer} }}"#, n % 7)
        })
        .collect();
    let set = workload(&format!(
        r#""t" : {{ "instance" : 500, "loop" : -1, "phases" : {{ {} }} }}"#,
        phases.join(",")
    ));
    assert_eq!(of(&set, &TWO, 3_600).unknown.len(), 500, "not to the end");
}
