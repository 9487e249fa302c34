//! Workloads as people write them, and what is refused of them.

use proptest::prelude::*;
use whylate_model::{CpuId, Nanos};

use super::*;
use crate::call::Call;
use crate::demand::Demand;
use crate::task_set::{
    Phase, Protocol, Reservation, ReservationKind, ReservationScheduler, Resource, Step, Thread,
    TimerMode,
};

const US: u64 = 1_000;

/// A workload of one task with these events.
fn one(events: &str) -> String {
    format!("{{\n\"tasks\" : {{\n\"a\" : {{ {events} }}\n}} }}")
}

fn steps(events: &str) -> Vec<Step> {
    let read = parse(&one(events)).unwrap_or_else(|error| panic!("{events}: {error}"));
    read.set.threads[0].program.clone().unwrap().phases.remove(0).steps
}

fn run(us: u64) -> Step {
    Step::Run(Demand::Fixed(Nanos(us * US)))
}

fn timer(name: &str, us: u64, mode: TimerMode) -> Step {
    Step::Timer { name: name.to_owned(), period: Nanos(us * US), mode }
}

#[test]
fn every_event_is_a_step_in_the_order_of_the_file() {
    let text = r#"{ "tasks" : {
        "a" : { "loop" : -1,
            "run" : 10, run1 : 20, "run_2":30, "runtime0" : 40, "sleep" : 50, "sleep" : 0,
            "lock" : "m", "wait" : { "ref" : "c", "mutex" : "m" },
            "sync" : { "ref" : "c", "mutex" : "m" }, "signal" : "c", "broad" : "c", "unlock" : "m",
            "suspend", "suspend" : "a", "resume" : "b", "barrier1" : "x", "yield" : "",
            "mem" : 1000, "iorun" : 2000, "sem_post" : "s", "sem_wait" : "t", "fork" : "c",
            "timer" : { "ref" : "unique", "period" : 60 },
            "timer" : { "ref" : "tick", "period" : 70, "mode" : "absolute" },
        },
        "b" : { "suspend" : "b", "resume" : "a", "run" : 1, "barrier" : "x", "signal" : "c",
                "sem_post" : "t" },
        "c" : { "instance" : 0, "loop" : 1, "run" : 5 },
    } }"#;
    let set = parse(text).unwrap().set;
    let names: Vec<&str> = set.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names[..3], ["a", "b", "c-fork0"]);
    assert_eq!(names.len(), 2 + 16, "a loop without end forks without end");
    let program = set.threads[0].program.as_ref().unwrap();
    let about = |make: fn(String) -> Step, name: &str| make(name.to_owned());
    let (condition, mutex) = ("c".to_owned(), "m".to_owned());
    let expected = [
        run(10),
        run(20),
        run(30),
        Step::Runtime(Nanos(40 * US)),
        Step::Sleep(Nanos(50 * US)),
        about(Step::Lock, "m"),
        Step::Wait { condition: condition.clone(), mutex: mutex.clone() },
        Step::Sync { condition, mutex },
        about(Step::Signal, "c"),
        about(Step::Broadcast, "c"),
        about(Step::Unlock, "m"),
        about(Step::Suspend, "a"),
        about(Step::Suspend, "a"),
        about(Step::Resume, "b"),
        about(Step::Barrier, "x"),
        Step::Yield,
        Step::Mem(1_000),
        Step::IoRun(2_000),
        about(Step::SemPost, "s"),
        about(Step::SemWait, "t"),
        about(Step::Fork, "c.fork"),
        timer("unique@a", 60, TimerMode::Relative),
        timer("tick", 70, TimerMode::Absolute),
    ];
    assert_eq!(program.phases[0].steps, expected);
    assert_eq!((program.repeat, program.phases[0].repeat), (None, Some(1)));
    assert_eq!((program.buffer, program.device.as_str()), (4 << 20, "/dev/null"));
    assert_eq!(set.resource("x"), Some(&Resource::Barrier { name: "x".to_owned(), threads: 2 }));
    let forked = set.threads[2].program.as_ref().unwrap();
    assert_eq!((forked.forked_by.as_deref(), forked.repeat), (Some("c.fork"), Some(1)));
}

#[test]
fn phases_policies_and_places_arrive() {
    let text = r#"{ "tasks" : {
        "a" : { "policy" : "SCHED_FIFO", "priority" : 40, "cpus" : [2, 0, 2], "delay" : 1500,
                "loop" : 3, "instance" : 2,
                "phases" : { "p" : { "loop" : 4, "cpus" : [1], "run" : 1000,
                                     "timer" : { "ref" : "unique", "period" : 9000 } },
                             "p" : { "run" : 2000, "timer" : { "ref" : "t", "period" : 9000 } } } },
        "b" : { "policy" : "SCHED_DEADLINE", "dl-runtime" : 1000, "dl-period" : 10000,
                "dl-deadline" : 8000, "run" : 900, "timer" : { "ref" : "u", "period" : 10000 } },
        "c" : { "policy" : "SCHED_RR", "run" : 1 },
        "d" : { "priority" : -5, "run" : 1 }, "e" : { "policy" : "SCHED_IDLE", "run" : 1 },
        "f" : { "run" : 1 } },
      "global" : { "duration" : 2, "default_policy" : "SCHED_BATCH", "pi_enabled" : true,
                   "mem_buffer_size" : 1024, "io_device" : "/tmp/x" } }"#;
    let read = parse(text).unwrap();
    assert_eq!(read.duration, Some(Nanos(2_000_000_000)));
    let threads = &read.set.threads;
    let a = &threads[1];
    assert_eq!((a.name.as_str(), a.start), ("a-1", Nanos(1_500 * US)));
    assert_eq!(a.cpus, Some(vec![CpuId(0), CpuId(2)]));
    assert_eq!(a.all_cpus(), Some(vec![CpuId(0), CpuId(1), CpuId(2)]));
    let program = a.program.as_ref().unwrap();
    assert_eq!(
        (program.repeat, program.buffer, program.device.as_str()),
        (Some(3), 1_024, "/tmp/x")
    );
    let phase = |repeat, cpus, time, period, timer_name: &str| Phase {
        name: "p".to_owned(),
        repeat,
        cpus,
        steps: vec![run(time), timer(timer_name, period, TimerMode::Relative)],
    };
    let first = phase(Some(4), Some(vec![CpuId(1)]), 1_000, 9_000, "unique@a-1");
    assert_eq!(program.phases, [first, phase(Some(1), None, 2_000, 9_000, "t")]);
    let b = &threads[2];
    let (kind, scheduler) = (ReservationKind::Hard, ReservationScheduler::Deadline);
    let (amount, period) = (Nanos(1_000 * US), Nanos(10_000 * US));
    assert_eq!(b.reservation, Some(Reservation { kind, amount, period, scheduler }));
    assert_eq!(b.deadline, Some(Nanos(8_000 * US)));
    let priorities: Vec<String> = threads.iter().map(|t| t.priority.to_string()).collect();
    assert_eq!(
        priorities,
        ["fifo 40", "fifo 40", "NORMAL", "rr 10", "batch -5", "IDLE", "batch 0"]
    );
    assert!(threads.iter().all(|thread| thread.workload == Call::bare("PROGRAM")));
}

#[test]
fn names_that_rt_app_keeps_apart_are_told_apart() {
    let text = r#"{ "tasks" : {
        "a" : { "suspend" : "n", "lock" : "n", "sync" : { "ref" : "n", "mutex" : "n" },
                "unlock" : "n", "run" : 1 },
        "b" : { "resume" : "n", "run" : 1, "lock" : "n", "signal" : "n", "unlock" : "n" } },
      "global" : { "pi_enabled" : true } }"#;
    let resources = parse(text).unwrap().set.resources;
    let mutex = Resource::Mutex { name: "n.mutex".to_owned(), protocol: Protocol::Inherit };
    // A thread that is suspended on a name is one that waits for the condition of that name.
    assert_eq!(resources, [Resource::Condition { name: "n".to_owned() }, mutex]);
}

#[test]
fn what_has_no_effect_is_taken_and_said_with_its_place() {
    let text = "{ \"global\" : { \"calibration\" : \"CPU0\",\n \"ftrace\" : \"main,task\", \"frag\" : 1,\n \
                \"lock_pages\" : true, \"log_size\" : 2 },\n \"resources\" : { \"m\" : { \"type\" : \
                \"mutex\" } },\n \"tasks\" : { \"a\" : { \"run\" : 1, \"timer\" : { \"ref\" : \"t\", \
                \"period\" : 0 } } } }";
    let notes = parse(text).unwrap().notes;
    let said: Vec<(usize, &str)> =
        notes.iter().map(|n| (n.at.line, n.text.split('`').nth(1).unwrap())).collect();
    let expected = [
        (1, "calibration"),
        (2, "ftrace"),
        (2, "frag"),
        (3, "lock_pages"),
        (3, "log_size"),
        (4, "resources"),
        (5, "t"),
    ];
    assert_eq!(said, expected);
    assert!(notes[0].text.contains("counted, not calibrated"));
}

#[test]
fn what_is_not_supported_is_refused_by_name_and_position() {
    for (events, column, words) in [
        ("\"util_min\" : 5, \"run\" : 1", 9, ["`util_min` is not supported", "utilisation"]),
        ("\"run\" : 1, \"taskgroup\" : \"/x\"", 20, ["`taskgroup` is not supported", "group"]),
        ("\"nodes_membind\" : [0]", 9, ["`nodes_membind` is not supported", "numactl"]),
        ("\"memrun1\" : 5", 9, ["`memrun1` is not supported", "`mem`"]),
        ("\"exec\" : 5000", 9, ["`exec` is not supported", "before 1.0"]),
        ("\"jump\" : 5", 9, ["no key `jump`", "sem_wait"]),
    ] {
        let error = parse(&one(events)).unwrap_err().to_string();
        let place = format!("line 3, column {column}: ");
        assert!(error.starts_with(&place), "{events}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{events}: {error}");
    }
    let error =
        parse("{ \"tasks\" : {}, \"global\" : { \"speed\" : 1 } }").unwrap_err().to_string();
    assert!(error.contains("column 30: there is no key `speed`"), "{error}");
}

#[test]
fn wrong_types_and_hostile_sizes_are_refused_with_what_stands_there() {
    for (events, words) in [
        ("\"run\" : \"10\"", ["column 17", "`run` is a whole number, not text"]),
        ("\"run\" : 1.5", ["column 17", "not a number with a fraction"]),
        ("\"run\"", ["column 9", "not nothing"]),
        ("\"run\" : -1", ["column 17", "from 0 to 3600000000"]),
        ("\"run\" : 99999999999", ["column 17", "`run` is 99999999999"]),
        ("\"loop\" : 0, \"run\" : 1", ["column 18", "or -1 for no end"]),
        ("\"loop\" : 9999999999, \"run\" : 1", ["column 18", "to 1000000000"]),
        ("\"instance\" : 100000, \"run\" : 1", ["column 22", "to 1024"]),
        ("\"instance\" : 0, \"run\" : 1", ["column 22", "no thread at all"]),
        ("\"lock\" : 5", ["column 18", "`lock` is text in quotes"]),
        ("\"lock\" : \"\"", ["column 18", "`lock` is empty"]),
        ("\"wait\" : \"c\"", ["column 18", "`wait` is an object"]),
        ("\"wait\" : { \"ref\" : \"c\" }", ["column 18", "lacks its `mutex`"]),
        ("\"timer\" : { \"ref\" : \"c\", \"x\" : 1 }", ["column 34", "no key `x`"]),
        ("\"timer\" : { \"ref\" : \"c\" }", ["column 19", "lacks its `period`"]),
        (
            "\"timer\" : { \"ref\" : \"c\", \"period\" : 1, \"mode\" : \"x\" }",
            ["column 57", "relative or absolute"],
        ),
        ("\"cpus\" : [], \"run\" : 1", ["column 18", "names no CPU"]),
        ("\"cpus\" : [8192], \"run\" : 1", ["column 19", "to 8191"]),
        ("\"cpus\" : 1, \"run\" : 1", ["column 18", "a list such as"]),
        ("\"policy\" : \"FIFO\", \"run\" : 1", ["column 20", "SCHED_FIFO"]),
        ("\"priority\" : 20, \"run\" : 1", ["column 22", "from -20 to 19"]),
        ("\"policy\" : \"SCHED_DEADLINE\", \"run\" : 1", ["column 1", "needs `dl-runtime`"]),
        ("\"mem\" : 99999999999", ["column 17", "to 1073741824"]),
        ("\"delay\" : 1, \"delay\" : 2, \"run\" : 1", ["column 22", "a second time"]),
        (
            "\"phases\" : { \"p\" : { \"run\" : 1 } }, \"run\" : 1",
            ["column 45", "stand in the phases"],
        ),
        ("\"phases\" : {}", ["column 20", "0 phases"]),
        ("\"fork\" : \"b\"", ["column 9", "no task `b`"]),
        ("\"fork\" : \"a\", \"run\" : 1", ["column 9", "forks itself"]),
        ("\"signal\" : \"c\"", ["column 1", "neither run, sleep"]),
        ("\"lock\" : \"m\", \"run\" : 1", ["column 1", "still holds m"]),
        (
            "\"wait\" : { \"ref\" : \"c\", \"mutex\" : \"m\" }, \"signal\" : \"c\"",
            ["column 1", "does not hold it"],
        ),
        ("\"suspend\" : \"x\", \"run\" : 1", ["column 1", "no other thread signals or resumes"]),
        ("\"sem_wait\" : \"x\", \"run\" : 1", ["column 1", "no other thread posts"]),
        ("\"barrier\" : \"x\", \"barrier\" : \"x\"", ["column 26", "stands twice"]),
    ] {
        let error = parse(&one(events)).unwrap_err().to_string();
        let placed = format!("line 3, {}: ", words[0]);
        assert!(error.starts_with(&placed) && error.contains(words[1]), "{events}: {error}");
    }
    let many: Vec<String> = (0..257).map(|n| format!("\"p{n}\":{{\"run\":1}}")).collect();
    let error =
        parse(&one(&format!("\"phases\" : {{ {} }}", many.join(",")))).unwrap_err().to_string();
    assert!(error.contains("257 phases"), "{error}");
    let events = "\"run\" : 1, ".repeat(257);
    assert!(parse(&one(&events)).unwrap_err().to_string().contains("256 events"));
    for text in ["[]", "{}", "{ \"tasks\" : 5 }", "{ \"tasks\" : {}, \"tasks\" : {} }"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_ring_of_forks_is_refused_and_a_chain_is_not() {
    let tasks = |c: &str| {
        format!(
            r#"{{ "tasks" : {{ "a" : {{ "loop" : 2, "fork" : "b", "run" : 1 }},
               "b" : {{ "instance" : 0, "loop" : 1, "fork" : {{ "ref" : "c" }}, "run" : 1 }},
               "c" : {{ "instance" : 0, "loop" : 1, {c} "run" : 1 }} }} }}"#
        )
    };
    let set = parse(&tasks("")).unwrap().set;
    let names: Vec<&str> = set.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["a", "b-fork0", "b-fork1", "c-fork0"]);
    let error = parse(&tasks("\"fork\" : \"a\",")).unwrap_err().to_string();
    assert!(error.contains("line 1, column 35") && error.contains("by way of `b`"), "{error}");
}

#[test]
fn the_examples_are_workloads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut read_ones = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let file = read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(file.notes.is_empty(), "{:?}", file.notes);
            read_ones += 1;
        }
    }
    assert!(read_ones > 0);
    assert!(read(std::path::Path::new("/dev/zero")).is_err());
}

#[test]
fn locks_are_followed_from_phase_to_phase() {
    let phases = |first: &str, second: &str| {
        one(&format!("\"phases\" : {{ \"p\" : {{ {first} }}, \"q\" : {{ {second} }} }}"))
    };
    assert!(parse(&phases("\"lock\":\"m\",\"run\":1", "\"run\":1,\"unlock\":\"m\"")).is_ok());
    let twice = phases("\"loop\":2,\"lock\":\"m\",\"run\":1", "\"unlock\":\"m\",\"run\":1");
    assert!(parse(&twice).unwrap_err().to_string().contains("locks m while it holds it"));
}

#[test]
fn an_event_without_amount_is_no_step() {
    assert_eq!(steps("\"run\" : 5, \"sleep\" : 0, \"mem\" : 0, \"run\" : 0"), [run(5)]);
    assert_eq!(Thread::new("a").all_cpus(), None);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_damage_panics(
        at in 0..ALL.len(),
        length in 0..30usize,
        patch in "[\\[\\]\"{}:,a-z0-9 -]{0,8}",
    ) {
        let end = (at + length).min(ALL.len());
        if let Ok(read) = parse(&format!("{}{patch}{}", &ALL[..at], &ALL[end..])) {
            prop_assert!(read.set.check().is_ok());
        }
    }
}

const ALL: &str = r#"{"tasks":{"a":{"loop":-1,"instance":2,"phases":{"p":{"loop":2,"lock":"m","wait":{"ref":"c","mutex":"m"},"unlock":"m","run":5,"fork":"b"},"q":{"cpus":[1],"timer":{"ref":"unique","period":5}}}},"b":{"policy":"SCHED_DEADLINE","dl-runtime":5,"dl-period":9,"signal":"c","run":1}},"global":{"duration":5,"calibration":100}}"#;
