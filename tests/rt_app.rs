//! Workloads of rt-app: the files that its package ships, and small ones whose counts are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whylate_model::CpuId;
use whylate_model::run::Run;
use whylate_model::threads::{PhaseSummary, ThreadSummary};
use whylate_model::warning::Warning;
use whylate_sys::affinity;

use crate::needs;
use crate::program::{self, recorded, said, two_at_once, whylate};
use crate::rt_app_rows::{numbers, of_phases};

/// Where the package puts its examples.
const SHIPPED: &str = "/usr/share/doc/rt-app/examples";

fn own(name: &str) -> String {
    program::file("rt-app").join(format!("{name}.json")).display().to_string()
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

/// The same, for a test that runs them; none where it cannot.
fn examples() -> Option<Vec<PathBuf>> {
    let files = shipped();
    if files.is_empty() {
        needs::missing("the examples of the package rt-app are not installed");
        return None;
    }
    needs::root().then_some(files)
}

fn phases(run: &Run) -> impl Iterator<Item = (&str, &PhaseSummary)> {
    of_phases(run).map(|(thread, phase)| (thread.name.as_str(), phase))
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
    let Some(files) = examples() else { return };
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    two_at_once(&files, runs_or_is_refused);
}

fn runs_or_is_refused(file: &Path) {
    let shown = file.display().to_string();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    // The only one that is busy by the clock shows it in a whole pass.
    let duration = if shown.contains("example7") { "1s" } else { "100ms" };
    let output = whylate(["threads", &shown, "--duration", duration, "-o"])
        .arg(&directory)
        .output()
        .unwrap();
    let text = said(&output);
    if shown.contains("/merge/") {
        // Fragments, some in the grammar of an older version.
        assert_eq!(output.status.code(), Some(2), "{shown}: {text}");
        let named = text.contains("there is no `tasks`") || text.contains("`exec` is not");
        assert!(named && text.contains(": line "), "{shown}: {text}");
        return;
    }
    if output.status.code() == Some(1) {
        assert!(shown.contains("example8"), "{shown}: {text}");
        names_a_cpu_that_is_not_here(file, &text);
        return;
    }
    assert!(matches!(output.status.code(), Some(0 | 4)), "{shown}: {text}");
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    for thread in &run.threads {
        assert!(!thread.phases.is_empty(), "{shown}, {}", thread.name);
    }
    // Whatever a pass gets late, it gets what its `run` events ask for.
    for (thread, phase) in phases(&run).filter(|(_, phase)| phase.run_asked.0 > 0) {
        let Some(received) = phase.run_ns else { continue };
        // Below it by what converting ticks to nanoseconds rounds off, and no more.
        let asked = phase.run_asked.0 as f64;
        assert!(received >= asked - 1.0, "{shown}, {thread}: {phase:?}");
    }
    let asks =
        of_phases(&run).filter(|(thread, phase)| is_busy_by_the_clock(thread, phase)).count();
    assert_eq!(asks > 0, shown.contains("example7"), "{shown}");
    run.threads.iter().for_each(steps_add_up);
}

/// Of the CPUs that the file names one that this machine has not is told, and where it stands.
fn names_a_cpu_that_is_not_here(file: &Path, told: &str) {
    let words: Vec<&str> = told.split_whitespace().collect();
    let behind = |word: &str| {
        let at = words.iter().position(|one| *one == word).unwrap_or_else(|| panic!("{told}"));
        words[at + 1].trim_end_matches([',', ':']).parse::<usize>().unwrap()
    };
    let (line, column, cpu) = (behind("line"), behind("column"), behind("CPU"));
    assert!(told.contains(&format!(": CPU {cpu} is not online here")), "{told}");
    assert!(!affinity::get().contains(&CpuId(cpu as u32)), "{told}");
    let written = std::fs::read_to_string(file).unwrap();
    let there = written.lines().nth(line - 1).and_then(|text| text.get(column - 1..)).unwrap();
    assert!(there.starts_with(&cpu.to_string()), "{told}: {there}");
}

/// Both truths of `runtime`: how long its steps lasted, and what they received of that. Does the phase have any?
/// Nothing is told of one that a busy machine left without a whole pass.
fn is_busy_by_the_clock(thread: &ThreadSummary, phase: &PhaseSummary) -> bool {
    let Some(of) = phase.runtime else { return false };
    let (Some(lasted), Some(received)) = (of.lasted_ns, of.received_ns) else {
        assert_eq!(phase.passes, 0, "{phase:?}");
        return true;
    };
    let (asked, name) = (of.asked.0 as f64, &thread.name);
    assert!(lasted >= asked - 1.0, "{name} was busy for less than it asks for: {phase:?}");
    assert!(received <= lasted, "{name}: {phase:?}");
    // Three steps of the file at most.
    assert!(of.longest_over.0 as f64 >= (lasted - asked) / 3.0 - 1.0, "{name}: {phase:?}");
    true
}

/// What steps received is what passes received, and with the rest it is what the thread did.
fn steps_add_up(thread: &ThreadSummary) {
    let steps = thread.steps.unwrap();
    let sum = steps.run.0 + steps.runtime.0 + steps.other.0;
    assert_eq!(sum, thread.received.0, "{}: {steps:?}", thread.name);
    let of = |mean: fn(&PhaseSummary) -> Option<f64>| -> f64 {
        thread.phases.iter().map(|of| mean(of).unwrap_or(0.0) * of.passes as f64).sum()
    };
    let (run, runtime) = (of(|of| of.run_ns), of(|of| of.runtime?.received_ns));
    // Whole nanoseconds on one side.
    let near = |a: f64, b: u64| (a - b as f64).abs() < 2.0 + a * 1e-9;
    assert!(near(run, steps.run.0) && near(runtime, steps.runtime.0), "{}: {steps:?}", thread.name);
}

#[test]
fn a_thread_that_keeps_busy_beside_a_hog_is_told_by_the_clock_and_by_what_it_received() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(1) else { return };
    let cpu = cpus[cpus.len() - 1];
    let recorded = recorded(&format!("threads {} --cpus {cpu} --duration 300ms", own("busy")));
    let [busy, hog] = recorded.run.threads.as_slice() else { panic!("two threads") };
    assert!(is_busy_by_the_clock(busy, &busy.phases[0]));
    [busy, hog].into_iter().for_each(steps_add_up);
    let text = said(&recorded.output);
    assert!(text.contains("What steps received"), "{text}");
    assert!(text.contains("Busy by the clock") || busy.phases[0].passes == 0, "{text}");
}

#[test]
fn more_than_the_cpus_have_is_said_before_the_run_and_kept_with_it() {
    let _alone = program::alone();
    let example = Path::new(SHIPPED).join("tutorial/example3.json");
    let example = example.display().to_string();
    let feasible = own("periods");
    let cpu = needs::last_cpu().to_string();
    let (heavy, light) = ("PERIODIC 5ms 8ms, name a", "PERIODIC 4ms 8ms, name b");
    let hourglass = "hourglass -d 100ms -n 2 -t 0 -p RTMED -w PERIODIC 5ms 8ms -t 1 -p RTLOW -w \
                     PERIODIC 4ms 8ms";
    let hourglass: Vec<&str> = hourglass.split_whitespace().collect();
    for (words, expected) in [
        (
            vec![
                "threads",
                "--cpus",
                &cpu,
                "--duration",
                "100ms",
                "--thread",
                heavy,
                "--thread",
                light,
            ],
            Some(2),
        ),
        (hourglass, Some(2)),
        (vec!["threads", &example, "--cpus", &cpu, "--duration", "100ms"], Some(12)),
        (vec!["threads", &feasible, "--cpus", &cpu, "--duration", "100ms"], None),
    ] {
        if words.contains(&example.as_str()) && shipped().is_empty() {
            needs::missing("the examples of the package rt-app are not installed");
            continue;
        }
        let recorded = program::recorded_words(&words);
        let found = recorded.run.warnings.iter().find_map(|warning| match warning {
            Warning::Overcommitted { asked, most, others, .. } => {
                Some((*asked, most.len() as u64 + others, warning.to_string()))
            }
            _ => None,
        });
        let Some(count) = expected else {
            assert_eq!(found, None, "{words:?}");
            continue;
        };
        let (asked, threads, told) = found.unwrap_or_else(|| panic!("{words:?}"));
        assert!(asked > 1.0 && threads == count, "{told}");
        let text = String::from_utf8_lossy(&recorded.output.stderr).into_owned();
        let told = whylate_report::respelled(&told, whylate_report::Letters::Unicode);
        let said = text.find(&told).unwrap_or_else(|| panic!("{told} is not in {text}"));
        // Before anything of the run itself is told.
        assert!(text[..said].trim().lines().all(|line| line.starts_with("line ")), "{text}");
        // Hourglass prints its trace alone.
        let report = String::from_utf8_lossy(&recorded.output.stdout).into_owned();
        assert!(words[0] == "hourglass" || report.contains("threads ask for"), "{report}");
    }
}

#[test]
fn every_event_is_done_as_often_as_the_file_says() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let files = [
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
    ];
    let done = |(name, expected): &(&str, Vec<(&str, u64)>)| {
        let recorded = recorded(&format!("threads {}", own(name)));
        let passes = passes(&recorded.run);
        for (phase, count) in expected {
            assert_eq!(passes.get(*phase), Some(count), "{name}: {passes:?}");
        }
    };
    two_at_once(&files.iter().collect::<Vec<_>>(), done);
}

#[test]
fn a_task_runs_where_each_of_its_phases_says() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    let [here, there] = [&cpus[0], &cpus[1]]
        .map(|cpu| format!(r#"{{ "cpus" : [{cpu}], "run" : 2000, "sleep" : 1000 }}"#));
    let places = format!(
        r#"{{
            "tasks" : {{ "moves" : {{
                "loop" : 10,
                "phases" : {{ "here" : {here}, "there" : {there} }}
            }} }},
            "global" : {{ "duration" : 20 }}
        }}"#
    );
    std::fs::write(file.path(), places).unwrap();
    let recorded = program::recorded(&format!("threads {}", file.path().display()));
    let passes = passes(&recorded.run);
    assert_eq!((passes["moves/here"], passes["moves/there"]), (10, 10));
    assert_eq!(recorded.run.threads[0].cpus, cpus[..2]);
}

#[test]
fn a_log_has_the_columns_of_rt_app_and_a_row_for_each_pass() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let logs = home.path().join("logs");
    let words = format!("threads {} --rt-app-log {}", own("loops"), logs.display());
    let recorded = program::recorded(&words);
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
