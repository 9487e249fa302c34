//! What a series is decides whether `compare` and `merge` take two for one: on run directories whose content
//! is known, of every kind.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use whylate_model::directory::RunDir;
use whylate_model::flow::Flow;
use whylate_model::load::LoadFacts;
use whylate_model::run::Run;
use whylate_model::settings::{Placed, Policy};
use whylate_model::{CpuId, Nanos};

use crate::directories::{Planted, latencies, merge};
use crate::program;

/// A change of a flow: what it is in, how it reads, what it does.
type Change = (&'static str, &'static str, fn(&mut Flow));

/// A change of a run, and what it is in.
type OfRun = (&'static str, fn(&mut Run));

const CHANGES: [Change; 7] = [
    ("rate", "2000/s", |flow| flow.asked.per_second = Some(2_000.0)),
    ("rate", "1000/s asked for, of which 700/s left in time", |flow| {
        flow.departures.in_time = flow.departures.intended * 7 / 10;
    }),
    ("size", "1400 bytes", |flow| flow.asked.bytes = 1_400),
    ("transport", "tcp over ipv4", |flow| "tcp over ipv4".clone_into(&mut flow.way.backend)),
    ("waiting", "block", |flow| "block".clone_into(&mut flow.way.wait)),
    ("outstanding", "at most 1", |flow| flow.asked.most_under_way = Some(1)),
    ("arrivals", "poisson", |flow| "poisson".clone_into(&mut flow.asked.arrivals)),
];

/// Requests of 64 bytes, 1000 a second, by UDP.
fn flow() -> Flow {
    let packets = json!({"sent": 30_000, "received": 30_000, "late": 0, "lost": 0, "abandoned": 0,
        "duplicates": 0, "reordered": 0, "foreign": 0, "unplaced": 0, "arrived": 30_000,
        "given_up": 0, "never_sent": 0, "refused": 0, "unaccounted": 0});
    let flow = json!({
        "name": "rtt",
        "way": {"backend": "udp over ipv4", "path": "127.0.0.1:1 -> 127.0.0.1:2", "wait": "spin",
            "protocol": "raw", "stamps": "tsc", "resolution_ns": 1.0, "read_cost_min_ns": 20.0,
            "read_cost_median_ns": 20.0, "precision_ns": 10.0},
        "asked": {"arrivals": "constant", "per_s": 1000.0, "bytes": 64, "frame_bytes": 110,
            "timeout_ns": 1_000_000_000, "most_under_way": null},
        "departures": {"intended": 30_000, "sent": 30_000, "in_time": 30_000, "per_s": 1000.0,
            "gaps": null, "process": {"verdict": "held", "lateness_p999_ns": null,
            "tolerance_ns": 50_000, "distribution": null}},
        "packets": packets, "service": "rtt-service", "response": null, "lateness": null,
        "other_end": null, "began_ticks": null, "ended_ticks": null,
    });
    serde_json::from_value(flow).unwrap()
}

/// A recording of round trips whose flow was changed so.
fn requests(home: &Path, name: &str, second: u64, change: fn(&mut Flow)) -> PathBuf {
    let values = latencies(second + 1, 30, 20_000.0);
    let mut run = Planted::new("host", second).series("rtt-service", "the client", &values);
    let mut flow = flow();
    change(&mut flow);
    run.run.flows.push(flow);
    let client = Placed { cpus: vec![CpuId((second % 2) as u32)], policy: Policy::Ordinary };
    run.run.settings.insert("client".to_owned(), client.into());
    run.write(home, name)
}

fn compared(words: &[&str], directories: [&Path; 2]) -> (Option<i32>, Value, String) {
    let words = [&["compare"], words].concat();
    let output = program::whylate(&words).args(directories).output().unwrap();
    let shape = ["--format", "json"];
    let json = program::whylate([&words[..], &shape].concat()).args(directories).output().unwrap();
    let json = serde_json::from_slice(&json.stdout).unwrap_or(Value::Null);
    let text = program::said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), json, text)
}

#[test]
fn requests_that_differ_in_rate_size_transport_or_mode_are_refused_and_allowed_by_name() {
    let home = tempfile::tempdir().unwrap();
    let base = requests(home.path(), "base", 0, |_| ());
    let same = requests(home.path(), "same", 61, |_| ());
    let (code, found, said) = compared(&[], [&base, &same]);
    assert_eq!((code, &found["pairs"][0]["result"]["outcome"]), (Some(0), &json!("compared")));
    assert!(!said.contains("NOT ALIKE"), "{said}");
    for (number, (name, value, change)) in CHANGES.into_iter().enumerate() {
        let other =
            requests(home.path(), &format!("other-{number}"), 100 + 2 * number as u64, change);
        let (code, found, said) = compared(&[], [&base, &other]);
        assert_eq!(code, Some(1), "{said}");
        let result = &found["pairs"][0]["result"];
        assert_eq!(
            (&result["outcome"], &result["fields"][0]["name"]),
            (&json!("unlike"), &json!(name))
        );
        assert!(said.contains(&format!("NOT ALIKE in `{name}`")) && said.contains(value), "{said}");
        assert!(said.contains(&format!("--across {name}")), "{said}");
        // A limit on it cannot be judged.
        let (code, ..) = compared(&["--limit", "p50=+10%"], [&base, &other]);
        assert_eq!(code, Some(4), "{name}");

        let (code, found, said) = compared(&["--across", name], [&base, &other]);
        let result = &found["pairs"][0]["result"];
        assert_eq!((code, &result["outcome"]), (Some(0), &json!("compared")), "{said}");
        assert_eq!(result["across"][0]["name"], name);
        assert!(
            said.contains(&format!("across `{name}`, as asked")) && said.contains(value),
            "{said}"
        );
        // What was not named is refused as before.
        let wrong = if name == "size" { "rate" } else { "size" };
        assert_eq!(compared(&["--across", wrong], [&base, &other]).0, Some(1));
    }
}

#[test]
fn requests_by_another_transport_or_at_another_rate_are_not_merged() {
    let home = tempfile::tempdir().unwrap();
    let base = requests(home.path(), "base", 0, |_| ());
    for (number, (name, value, change)) in CHANGES.into_iter().enumerate() {
        let other =
            requests(home.path(), &format!("other-{number}"), 100 + 2 * number as u64, change);
        let into = home.path().join(format!("sum-{number}"));
        let directories = [base.clone(), other];
        let output = merge(&[], &directories, &into);
        let said = program::said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("`{name}`")) && said.contains(value), "{said}");
        assert!(said.contains(&format!("--across {name}")) && !into.exists(), "{said}");
        let output = merge(&["--across", name], &directories, &into);
        assert_eq!(output.status.code(), Some(0), "{}", program::said(&output));
        let sum = program::read(&into);
        assert_eq!(sum.series[0].n, 2 * 30 * 200);
        // The sum of two is neither of them.
        assert_eq!(compared(&[], [&base, &into]).0, Some(1), "{name}");
    }
    let both = requests(home.path(), "both", 200, |flow| {
        "tcp over ipv4".clone_into(&mut flow.way.backend);
        "block".clone_into(&mut flow.way.wait);
    });
    let output = merge(&["--across", "waiting"], &[base, both], &home.path().join("sum"));
    assert_eq!(output.status.code(), Some(1));
    assert!(!program::said(&output).contains("`waiting`"), "{}", program::said(&output));
}

/// Two recordings of gaps of CPU 1, the second of which was changed.
fn gaps(home: &Path, change: fn(&mut Run)) -> [PathBuf; 2] {
    let plant = |name: &str, second: u64, change: fn(&mut Run)| {
        let values = latencies(second + 1, 30, 2_000.0);
        let mut run = Planted::new("host", second).gaps(1, Nanos(100), &values);
        change(&mut run.run);
        run.write(home, name)
    };
    [plant("one", 0, |_| ()), plant("other", 60, change)]
}

#[test]
fn gaps_beside_load_or_on_a_cpu_that_is_kept_from_others_are_other_gaps() {
    fn busy(run: &mut Run) {
        let (load, what) = ("net".to_owned(), "TCP bulk over loopback".to_owned());
        let facts = json!({"load": load, "what": what, "amount": 9, "unit": "bytes", "time_ns": 1,
            "ended_early": false});
        run.loads.push(serde_json::from_value::<LoadFacts>(facts).unwrap());
    }
    let cases: [OfRun; 3] = [
        ("load", busy),
        ("load", |run| {
            run.settings.insert("competitors".to_owned(), 1_u64.into());
        }),
        ("cpu-role", |run| run.host.cpus_isolated = vec![CpuId(1)]),
    ];
    for (name, change) in cases {
        let home = tempfile::tempdir().unwrap();
        let both = gaps(home.path(), change);
        let [one, other] = [both[0].as_path(), both[1].as_path()];
        let (code, _, said) = compared(&[], [one, other]);
        assert!(code == Some(1) && said.contains(&format!("NOT ALIKE in `{name}`")), "{said}");
        assert_eq!(compared(&["--across", name], [one, other]).0, Some(0));
        let output = merge(&[], &both, &home.path().join("sum"));
        assert!(program::said(&output).contains(&format!("--across {name}")));
    }
    // The machine is no part of it, and is named.
    let home = tempfile::tempdir().unwrap();
    let [one, other] = gaps(home.path(), |run| {
        run.host.kernel = "7.1".to_owned();
        run.tool_version = "9.9.9".to_owned();
    });
    let (code, _, said) = compared(&[], [&one, &other]);
    assert!(code == Some(0) && said.contains("7.1") && said.contains("9.9.9"), "{said}");
}

#[test]
fn series_of_unlike_names_are_told_and_paired_by_name() {
    let home = tempfile::tempdir().unwrap();
    let plant = |name: &str, cpu: u32| {
        let values = latencies(u64::from(cpu) + 1, 30, 2_000.0);
        let run = Planted::new("host", 60 * u64::from(cpu)).gaps(cpu, Nanos(100), &values);
        run.write(home.path(), name)
    };
    let (one, other) = (plant("one", 1), plant("zero", 0));
    let (code, found, said) = compared(&[], [&one, &other]);
    assert_eq!(
        (code, &found["cautions"][0]["caution"]),
        (Some(1), &json!("other_names")),
        "{said}"
    );
    assert!(
        said.contains("the names differ") && said.contains("--series gap-cpu1=gap-cpu0"),
        "{said}"
    );
    let (code, _, said) = compared(&["--series", "gap-cpu1=gap-cpu0"], [&one, &other]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("gap-cpu1 of A against gap-cpu0 of B, as --series pairs them"), "{said}");
}

#[test]
fn a_thread_beside_other_threads_or_by_another_timer_is_another() {
    let home = tempfile::tempdir().unwrap();
    let copy = |name: &str, change: fn(&mut Run)| {
        let to = home.path().join(name);
        std::fs::create_dir(&to).unwrap();
        for entry in std::fs::read_dir(program::file("runs/threads")).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
        let mut run = program::read(&to);
        run.seed += name.len() as u64;
        change(&mut run);
        RunDir::open(&to).unwrap().write_run(&run).unwrap();
        to
    };
    let one = copy("one", |_| ());
    let more = copy("more+", |run| run.threads[2].workload = "PERIODIC 1ms 9ms".to_owned());
    let timer = copy("timer++", |run| run.threads[0].timer = "timerfd absolute".to_owned());
    let (code, _, said) = compared(&[], [&one, &more]);
    assert!(code == Some(1) && said.contains("NOT ALIKE in `tasks`"), "{said}");
    assert!(said.contains("PERIODIC 1ms 9ms (SCHED_OTHER nice 0)"), "{said}");
    // The timer is that of its own thread: those of the others are alike.
    let (code, found, said) = compared(&[], [&one, &timer]);
    assert!(code == Some(0) && said.contains("NOT ALIKE in `timer`"), "{said}");
    for pair in found["pairs"].as_array().unwrap() {
        let of_it = pair["series"].as_str().unwrap().ends_with("-audio");
        let wanted = if of_it { "unlike" } else { "compared" };
        assert_eq!(pair["result"]["outcome"], wanted, "{pair}");
    }
}

#[test]
fn what_says_which_number_it_is_cannot_be_passed_over() {
    for (word, told) in
        [("definition", "--side-by-side"), ("colour", "write clock, loop"), ("", "rate")]
    {
        let output = program::whylate(["compare", "a", "b", "--across", word]).output().unwrap();
        let said = program::said(&output);
        assert!(output.status.code() == Some(2) && said.contains(told), "{said}");
    }
}
