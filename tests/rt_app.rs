//! Workloads of rt-app: the files that its package ships, and small ones whose counts are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use whylate_model::run::{Closure, Run};
use whylate_model::threads::PhaseSummary;

use crate::needs;
use crate::program::{self, said, whylate};

/// Where the package puts its examples.
const SHIPPED: &str = "/usr/share/doc/rt-app/examples";
/// How far the means of a feasible workload may lie from what the file asks for.
const WITHIN: f64 = 0.01;

fn own(name: &str) -> String {
    format!("{}/rt-app/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the package, in order of their names.
fn shipped() -> Vec<PathBuf> {
    fn below(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                below(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    below(Path::new(SHIPPED), &mut files);
    files.sort();
    files
}

fn phases(run: &Run) -> impl Iterator<Item = (&str, &PhaseSummary)> {
    run.threads.iter().flat_map(|t| t.phases.iter().map(|phase| (t.name.as_str(), phase)))
}

/// Passes by thread and phase; threads to be forked count as one.
fn passes(run: &Run) -> BTreeMap<String, u64> {
    let mut passes = BTreeMap::new();
    for (thread, phase) in phases(run) {
        let thread = thread.split("-fork").next().unwrap();
        *passes.entry(format!("{thread}/{}", phase.name)).or_default() += phase.passes;
    }
    passes
}

#[test]
fn every_shipped_example_runs_or_is_refused_by_name_and_position() {
    let _alone = program::alone();
    let files = shipped();
    if files.is_empty() {
        return needs::missing("the examples of the package rt-app are not installed");
    }
    if !needs::root() {
        return;
    }
    for file in files {
        let shown = file.display().to_string();
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let output = whylate(["threads", &shown, "--duration", "700ms", "-o"])
            .arg(&directory)
            .output()
            .unwrap();
        let text = said(&output);
        if shown.contains("/merge/") {
            // Fragments, some in the grammar of an older version.
            assert_eq!(output.status.code(), Some(2), "{shown}: {text}");
            let named = text.contains("there is no `tasks`") || text.contains("`exec` is not");
            assert!(named && text.contains(": line "), "{shown}: {text}");
            continue;
        }
        if output.status.code() == Some(1) {
            assert!(shown.contains("example8") && text.contains("CPU 2"), "{shown}: {text}");
            continue;
        }
        assert!(matches!(output.status.code(), Some(0 | 4)), "{shown}: {text}");
        let run = program::read(&directory);
        for thread in &run.threads {
            assert_eq!(thread.closure, Closure::Holds, "{shown}, {}", thread.name);
            assert!(!thread.phases.is_empty(), "{shown}, {}", thread.name);
        }
        // Whatever a pass gets late, it gets what its `run` events ask for.
        for (thread, phase) in phases(&run).filter(|(_, phase)| phase.run_asked.0 > 0) {
            let Some(received) = phase.run_ns else { continue };
            let asked = phase.run_asked.0 as f64;
            let busy_by_the_clock = shown.contains("example7");
            // Below it by what converting ticks to nanoseconds rounds off, and no more.
            let right = (asked - 1.0..asked * (1.0 + WITHIN)).contains(&received);
            assert!(right || busy_by_the_clock, "{shown}, {thread}: {phase:?}");
        }
    }
}

#[test]
fn every_event_is_done_as_often_as_the_file_says() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    for (name, expected) in [
        ("semaphores", vec![("asks/asks", 100), ("answers/answers", 100)]),
        (
            "conditions",
            vec![
                ("waits/waits", 20),
                ("all-0/all", 4),
                ("all-1/all", 4),
                ("all-2/all", 4),
                ("signals/signal", 20),
                ("signals/broadcast", 4),
            ],
        ),
        ("sync", vec![("caller/caller", 30), ("called/called", 30)]),
        ("suspend", vec![("sleeper/sleeper", 25), ("waker/waker", 25)]),
        ("barriers", vec![("quick-0/quick", 30), ("quick-1/quick", 30), ("slow/slow", 30)]),
        ("forks", vec![("parent/parent", 6), ("child/child", 12)]),
        ("loops", vec![("nested/three", 12), ("nested/two", 8), ("nested/once", 4)]),
    ] {
        let recorded = program::record_ending(&format!("threads {}", own(name)), &[0, 4]);
        let passes = passes(&recorded.run);
        for (phase, count) in expected {
            assert_eq!(passes.get(phase), Some(&count), "{name}: {passes:?}");
        }
        for thread in &recorded.run.threads {
            assert_eq!(thread.closure, Closure::Holds, "{name}, {}", thread.name);
        }
    }
}

#[test]
fn a_task_runs_where_each_of_its_phases_says() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let recorded = program::record_ending(&format!("threads {}", own("places")), &[0, 4]);
    let passes = passes(&recorded.run);
    assert_eq!((passes["moves/here"], passes["moves/there"]), (10, 10));
    let elapsed: Vec<u32> = recorded.run.threads[0].cpus.iter().map(|cpu| cpu.0).collect();
    assert_eq!(elapsed, [0, 1]);
}

#[test]
fn run_time_and_period_are_those_of_the_file_and_beside_those_of_rt_app() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let rt_app = needs::program("rt-app");
    for round in 0..2 {
        let recorded = program::record_ending(&format!("threads {}", own("periods")), &[0, 4]);
        for (thread, phase) in phases(&recorded.run) {
            let (asked, period) = (phase.run_asked.0 as f64, phase.period_asked.unwrap().0 as f64);
            let (received, between) = (phase.run_ns.unwrap(), phase.period_ns.unwrap());
            println!(
                "round {round}, {thread}: run {received:.0} of {asked} ns, period {between:.0} of \
                 {period} ns, {} passes",
                phase.passes
            );
            assert!((received / asked - 1.0).abs() < WITHIN, "{thread}: {phase:?}");
            assert!((between / period - 1.0).abs() < WITHIN, "{thread}: {phase:?}");
            assert!(phase.passes > 100, "{thread}: {phase:?}");
        }
        if let Some(rt_app) = &rt_app {
            beside(rt_app);
        }
    }
}

/// Runs rt-app on the same file and prints what its own log says.
fn beside(rt_app: &Path) {
    let home = tempfile::tempdir().unwrap();
    let status =
        Command::new(rt_app).arg(own("periods")).current_dir(home.path()).output().unwrap();
    if !status.status.success() {
        println!("rt-app does not run the file: {}", said(&status));
        return;
    }
    for entry in std::fs::read_dir(home.path()).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let rows: Vec<Vec<f64>> = text.lines().filter_map(numbers).collect();
        let mean = |column: usize| {
            rows.iter().map(|row| row[column]).sum::<f64>() / rows.len().max(1) as f64
        };
        println!(
            "  rt-app, {}: run {:.0} of {:.0} us, period {:.0} of {:.0} us, {} passes",
            entry.file_name().display(),
            mean(2),
            mean(8),
            mean(3),
            mean(9),
            rows.len()
        );
    }
}

/// The eleven columns of a row; none for a comment.
fn numbers(line: &str) -> Option<Vec<f64>> {
    let row: Option<Vec<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    row.filter(|row| row.len() == 11)
}

#[test]
fn a_log_has_the_columns_of_rt_app_and_a_row_for_each_pass() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let logs = home.path().join("logs");
    let words = format!("threads {} --rt-app-log {}", own("loops"), logs.display());
    let recorded = program::record_ending(&words, &[0, 4]);
    let text = std::fs::read_to_string(logs.join("whylate-nested-0.log")).unwrap();
    let rows: Vec<Vec<f64>> = text.lines().filter_map(numbers).collect();
    assert_eq!(rows.len() as u64, passes(&recorded.run).values().sum::<u64>());
    let head = text.lines().find(|line| line.starts_with("#idx")).unwrap();
    assert_eq!(
        head.trim_start_matches('#').split_whitespace().collect::<Vec<_>>(),
        [
            "idx",
            "perf",
            "run",
            "period",
            "start",
            "end",
            "rel_st",
            "slack",
            "c_duration",
            "c_period",
            "wu_lat"
        ]
    );
    let configured: Vec<(f64, f64)> = rows.iter().map(|row| (row[8], row[9])).collect();
    let once = [(200.0, 0.0), (200.0, 0.0), (200.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 9000.0)];
    assert_eq!(configured, once.repeat(4));
    for pair in rows.windows(2) {
        assert!(
            (pair[0][5] - pair[1][4]).abs() < 1.5,
            "a pass begins where the last ended: {pair:?}"
        );
        assert!(pair[0][1] == 0.0, "perf is not known: {pair:?}");
    }
}
