//! Files are read, refused with their place, and written back.

use proptest::prelude::*;
use whylate_model::CpuId;

use super::*;
use crate::call::Call;
use crate::demand::{Demand, no_tables};
use crate::task_set::{ReservationKind, ReservationScheduler};

const SET: &str = r#"format_version = 1
duration = "5s"
seed = 7

[[thread]]
name = "audio"
cpus = "2-3"
workload = "PERIODIC steps 8ms"
timer = "HR"
priority = "fifo(50)"
reservation = { kind = "hard", amount = "3.1ms", period = "8ms" }
deadline = "6ms"
steps = ["lock bus", "run normal(2ms,0.1ms)", "unlock bus", "push out"]

[[thread]]
name = "worker"
count = 2
workload = "CPU_PERIODIC steps 9ms"
start = "1s"
finish = "4s"
steps = ["pop out", "barrier all", "sleep 1ms", "yield"]

[[mutex]]
name = "bus"
protocol = "protect(60)"

[[barrier]]
name = "all"
threads = 2

[[queue]]
name = "out"
capacity = 8
"#;

fn parsed(text: &str) -> Result<File, FileError> {
    parse(text, &no_tables)
}

#[test]
fn every_field_of_a_file_arrives() {
    let file = parsed(SET).unwrap();
    assert_eq!((file.duration, file.seed), (Some(Nanos(5_000_000_000)), Some(7)));
    let names: Vec<&str> = file.set.threads.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["audio", "worker-0", "worker-1"]);
    let expected = Thread {
        cpus: Some(vec![CpuId(2), CpuId(3)]),
        workload: "PERIODIC steps 8ms".parse().unwrap(),
        timer: Call::bare("HR"),
        priority: "fifo(50)".parse().unwrap(),
        reservation: Some(Reservation {
            kind: ReservationKind::Hard,
            amount: Nanos(3_100_000),
            period: Nanos(8_000_000),
            scheduler: ReservationScheduler::Deadline,
        }),
        deadline: Some(Nanos(6_000_000)),
        steps: vec![
            Step::Lock("bus".to_owned()),
            Step::Run(Demand::Normal { mean: Nanos(2_000_000), sd: Nanos(100_000) }),
            Step::Unlock("bus".to_owned()),
            Step::Push("out".to_owned()),
        ],
        ..Thread::new("audio")
    };
    assert_eq!(file.set.threads[0], expected);
    let worker = &file.set.threads[2];
    assert_eq!((worker.start, worker.finish), (Nanos::SECOND, Some(Nanos(4_000_000_000))));
    assert_eq!(
        (worker.priority.to_string(), worker.timer.to_string()),
        ("NORMAL".into(), "NATIVE".into())
    );
    let protocol = Protocol::Protect { ceiling: 60 };
    assert_eq!(file.set.resources[0], Resource::Mutex { name: "bus".to_owned(), protocol });
    assert_eq!(file.set.resources.len(), 3);
}

#[test]
fn a_file_reads_back_as_it_is_written() {
    let file = parsed(SET).unwrap();
    assert_eq!(parsed(&file.to_toml().unwrap()).unwrap(), file);
}

/// Threads that signal and post to each other.
const SIGNALS: &str = r#"format_version = 1

[[thread]]
name = "waits"
workload = "PERIODIC steps 8ms"
steps = ["lock m", "wait ready m", "signal ready", "unlock m", "sem_wait room", "run 1ms"]

[[thread]]
name = "signals"
workload = "PERIODIC steps 8ms"
steps = ["run 1ms", "lock m", "signal ready", "broadcast ready", "sync ready m", "unlock m", "sem_post room"]

[[mutex]]
name = "m"

[[condition]]
name = "ready"

[[semaphore]]
name = "room"
value = 2
"#;

#[test]
fn conditions_and_semaphores_arrive_and_read_back() {
    let file = parsed(SIGNALS).unwrap();
    let (condition, mutex) = ("ready".to_owned(), "m".to_owned());
    assert_eq!(file.set.threads[0].steps[1], Step::Wait { condition, mutex });
    let room = Resource::Semaphore { name: "room".to_owned(), value: 2 };
    assert_eq!(file.set.resources[2], room);
    assert_eq!(parsed(&file.to_toml().unwrap()).unwrap(), file);
    for (old, new, words) in [
        ("\"wait ready m\"", "\"wait ready\"", ["line 6, column 20", "lacks its mutex"]),
        ("\"lock m\", \"wait", "\"wait", ["line 3, column 1", "does not hold it"]),
        ("\"wait ready m\"", "\"wait m m\"", ["line 3, column 1", "`m` as a condition"]),
        (
            "\"signal ready\", \"broadcast ready\", \"sync ready m\", ",
            "",
            ["line 3", "no other thread"],
        ),
        ("name = \"room\"", "name = \"rooms\"", ["line 3", "the semaphore `room`"]),
    ] {
        assert!(SIGNALS.contains(old), "{old}");
        let error = parsed(&SIGNALS.replacen(old, new, 1)).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{new}: {error}");
    }
    let unposted = SIGNALS.replace(", \"sem_post room\"", "");
    assert!(parsed(&unposted).is_ok(), "it begins with two");
    let unposted = unposted.replace("value = 2", "value = 0");
    assert!(parsed(&unposted).unwrap_err().to_string().contains("no other thread posts"));
}

#[test]
fn a_set_with_phases_cannot_be_written_as_toml() {
    let mut file = parsed(SET).unwrap();
    file.set.threads[0].program = Some(crate::task_set::Program::default());
    assert!(file.to_toml().unwrap_err().to_string().contains("audio has phases"));
}

#[test]
fn a_seed_beyond_toml_is_refused_and_does_not_panic() {
    let file = File { seed: Some(u64::MAX), ..parsed(SET).unwrap() };
    assert!(file.to_toml().unwrap_err().to_string().contains("below 2^63"));
}

/// `SET` with one place changed.
fn with(old: &str, new: &str) -> String {
    assert!(SET.contains(old), "{old}");
    SET.replacen(old, new, 1)
}

#[test]
fn every_error_names_line_column_and_what_to_write() {
    for (old, new, words) in [
        ("format_version = 1\n", "", ["line 1", "begin with format_version = 1"]),
        ("version = 1", "version = 0", ["line 1, column 1", "write 1"]),
        ("\"5s\"", "\"5\"", ["line 2, column 12", "no unit"]),
        ("\"5s\"", "\"0s\"", ["line 2, column 12", "zero"]),
        ("\"5s\"", "5", ["line 2, column 12", "expected a string"]),
        ("seed = 7", "seed = -7", ["line 3, column 8", "u64"]),
        ("timer =", "tiemr =", ["line 9, column 1", "unknown field `tiemr`"]),
        ("name = \"audio\"", "", ["line 5", "missing field `name`"]),
        ("\"2-3\"", "\"3-2\"", ["line 7, column 8", "smaller CPU first"]),
        ("\"PERIODIC steps 8ms\"", "\"a)b\"", ["line 8, column 12", "parenthesis"]),
        ("3.1ms", "9ms", ["line 5, column 1", "asks for 9ms in each 8ms"]),
        ("kind = \"hard\"", "kind = \"firm\"", ["line 11", "unknown variant `firm`"]),
        ("run normal(2ms,0.1ms)", "run normal(2ms,1ms)", ["line 13, column 22", "quarter"]),
        ("lock bus", "lok bus", ["line 13, column 10", "no step"]),
        ("push out", "push in", ["line 5, column 1", "the queue `in`"]),
        ("count = 2", "count = 0", ["line 17, column 9", "no thread at all"]),
        ("count = 2", "count = 4000000000", ["line 15, column 1", "4000000001 threads"]),
        ("start = \"1s\"", "start = \"5s\"", ["line 15, column 1", "starts at the end"]),
        ("protect(60)", "protect(99)", ["line 23, column 1", "1 to 98"]),
        ("protect(60)", "ceiling", ["line 25, column 12", "protect(50)"]),
        ("threads = 2", "threads = 3", ["line 27, column 1", "write threads = 2"]),
        ("capacity = 8", "capacity = 0", ["line 31, column 1", "1 to 65536"]),
        ("[[queue]]", "[[queue]", ["line 31", "]"]),
    ] {
        let error = parsed(&with(old, new)).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{new}: {error}");
    }
}

#[test]
fn a_newer_format_is_named_before_its_unknown_fields() {
    let error = parsed("format_version = 2\n[[process]]\n").unwrap_err().to_string();
    assert!(error.contains("format version 2") && error.contains("update whylate"), "{error}");
}

#[test]
fn names_in_errors_do_not_reach_the_terminal_raw() {
    let error = parsed(&with("audio", "a\\u001b[31m")).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}') && error.contains("\\u{1b}"), "{error:?}");
    let error = parsed(&with("lock bus", "a\\u001b[31m")).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn the_size_is_limited() {
    assert!(matches!(parsed(&"#".repeat(LONGEST_FILE + 1)), Err(FileError::TooLarge)));
    assert!(parsed("format_version = 1").unwrap_err().to_string().contains("no thread"));
    let deep = format!("format_version = {}1{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(parsed(&deep).is_err());
}

#[test]
fn the_examples_are_task_sets() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let file = read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(parse(&file.to_toml().unwrap(), &|_| table_of(folder)).unwrap(), file);
            names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let expected = [
        "audio-video",
        "barrier",
        "priority-inheritance",
        "priority-inversion",
        "producer-consumer",
        "reservations",
    ];
    assert_eq!(names, expected);
}

fn table_of(folder: &str) -> Result<String, String> {
    table(&format!("{folder}/frames.txt"))
}

#[test]
fn committed_schema_of_the_file_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/task-set.schema.json");
    let made = schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == made, "run `UPDATE_SCHEMA=1 cargo test -p whylate-rta schema`");
}

prop_compose! {
    fn a_time()(ns in 1..3_600_000_000_000u64) -> Nanos {
        Nanos(ns)
    }
}

prop_compose! {
    fn a_demand()(
        which in 0..4,
        low in 4..1_000_000_000u64,
        more in 0..1_000_000_000u64,
        long in 1e-3..100.0f64,
    ) -> Demand {
        let (low, high) = (Nanos(low), Nanos(low + more));
        match which {
            0 => Demand::Fixed(low),
            1 => Demand::Uniform { low, high },
            2 => Demand::Normal { mean: high, sd: Nanos(high.0 / 4) },
            _ => Demand::Bimodal { short: low, long: high, long_percent: long },
        }
    }
}

prop_compose! {
    fn a_thread(number: usize)(
        demands in prop::collection::vec(a_demand(), 0..4),
        cpus in prop::option::of(prop::collection::btree_set(0..8_192u32, 1..5)),
        start in 0..1_000_000_000u64,
        length in prop::option::of(a_time()),
        deadline in prop::option::of(a_time()),
        reserved in prop::option::of((a_time(), any::<bool>(), any::<bool>())),
        name in "[a-zA-Z_.+äß-]{1,20}",
    ) -> Thread {
        let mut steps: Vec<Step> = demands.into_iter().map(Step::Run).collect();
        let workload = if steps.is_empty() { "CPU" } else { "PERIODIC steps 8ms" };
        if !steps.is_empty() {
            steps.insert(0, Step::Lock("m".to_owned()));
            steps.push(Step::Unlock("m".to_owned()));
            steps.push(Step::Barrier(format!("b{number}")));
        }
        Thread {
            cpus: cpus.map(|cpus| cpus.into_iter().map(CpuId).collect()),
            workload: workload.parse().unwrap(),
            start: Nanos(start),
            finish: length.map(|length| Nanos(start + length.0)),
            deadline,
            reservation: reserved.map(|(amount, hard, quota)| Reservation {
                kind: if hard { ReservationKind::Hard } else { ReservationKind::Soft },
                amount,
                period: Nanos(amount.0 * 2),
                scheduler: if quota {
                    ReservationScheduler::Quota
                } else {
                    ReservationScheduler::Deadline
                },
            }),
            steps,
            ..Thread::new(format!("{name}{number}"))
        }
    }
}

proptest! {
    #[test]
    fn any_set_reads_back_as_it_is_written(
        a in a_thread(0),
        b in a_thread(1),
        seed: Option<u32>,
        duration in a_time(),
        protocol in 0..3usize,
    ) {
        let protocol =
            [Protocol::None, Protocol::Inherit, Protocol::Protect { ceiling: 9 }][protocol];
        let mut resources = vec![Resource::Mutex { name: "m".to_owned(), protocol }];
        for (number, thread) in [&a, &b].into_iter().enumerate() {
            if !thread.steps.is_empty() {
                resources.push(Resource::Barrier { name: format!("b{number}"), threads: 1 });
            }
        }
        let set = TaskSet { threads: vec![a, b], resources };
        prop_assert_eq!(set.check(), Ok(()));
        let duration = Nanos(duration.0 + 1_000_000_000);
        let file = File { set, duration: Some(duration), seed: seed.map(u64::from) };
        prop_assert_eq!(parsed(&file.to_toml().unwrap()).unwrap(), file);
    }

    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = parsed(&text);
    }

    #[test]
    fn no_damage_panics(
        at in 0..SET.len(),
        length in 0..40usize,
        patch in "[\\[\\]\"=a-z0-9.\n(),#{}-]{0,12}",
    ) {
        let end = (at + length).min(SET.len());
        let _ = parsed(&format!("{}{patch}{}", &SET[..at], &SET[end..]));
    }
}
