//! "Inferring Scheduling Behavior with Hourglass", repeated: what its rows say whatever the host does.

use std::path::PathBuf;
use std::process::Output;

use tempfile::TempDir;
use whylate_model::paper::{Here, Paper, Row, Scenario, Unit};

use crate::program::{self, said, whylate};

/// All of its places but for that of the timers, which has a figure of its own.
pub const PLACES: [&str; 6] = ["Figure 3", "5.1", "5.2", "5.3", "5.4", "5.6"];
pub const TIMERS: &str = "5.5";
/// Switches of 5.1, as the paper has them.
pub const TEN_THREADS: [&str; 2] = ["involuntary, ten threads", "by yielding, ten threads"];
/// Parts of 5.4.
pub const BESIDE_THE_NETWORK: [&str; 2] =
    ["4 in 5ms beside the network", "8 in 10ms beside the network"];

/// Some of it or all, shortened.
pub struct Repeated {
    pub paper: Paper,
    pub directory: PathBuf,
    pub output: Output,
    _home: TempDir,
}

impl Repeated {
    /// Repeats these places, with more words of the command line.
    pub fn new(words: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("paper");
        let mut command = whylate(["paper", "hourglass2002", "--quick", "--seed", "5"]);
        let output = command.args(words).arg("-o").arg(&directory).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
        let paper = Paper::read(&directory).unwrap().unwrap();
        let runs = paper.scenarios.iter().flat_map(|of| &of.runs);
        runs.for_each(|run| program::closes(&program::read(&directory.join(run))));
        Self { paper, directory, output, _home: home }
    }

    pub fn scenario(&self, place: &str) -> &Scenario {
        let mut scenarios = self.paper.scenarios.iter();
        scenarios.find(|of| of.place == place).unwrap_or_else(|| panic!("{place}"))
    }
}

/// The row with these words.
pub fn row<'a>(scenario: &'a Scenario, words: &[&str]) -> &'a Row {
    let named = |what: &str| words.iter().all(|word| what.contains(word));
    scenario.rows.iter().find(|row| named(&row.what)).unwrap_or_else(|| panic!("{words:?}"))
}

/// This host's figure of a row.
pub fn here<'a>(scenario: &'a Scenario, words: &[&str]) -> &'a Here {
    let row = row(scenario, words);
    row.here.as_ref().unwrap_or_else(|| panic!("{row:?}: {:?}", scenario.notes))
}

/// The figure without time that has no kernel event, where that is another one.
pub fn without_host(scenario: &Scenario, words: &[&str]) -> f64 {
    let row = row(scenario, words);
    row.without_host.as_ref().or(row.here.as_ref()).unwrap().value
}

/// Each of these places has rows with their figures or why not, the runs that they are of, and what repeats it.
pub fn every_row_is_told(repeated: &Repeated, expected: &[&str]) {
    let places: Vec<&str> = repeated.paper.scenarios.iter().map(|of| of.place.as_str()).collect();
    assert_eq!(places, expected);
    let text = said(&repeated.output);
    let (first, last, all) = (expected[0], expected[expected.len() - 1], expected.len());
    for words in [
        &format!("{all} experiments: about"),
        &format!("1 of {all}, {first}:"),
        &format!("{all} of {all}, {last}:"),
        "left)",
    ] {
        assert!(text.contains(words), "its time is told before it begins: {words}: {text}");
    }
    for scenario in &repeated.paper.scenarios {
        let place = &scenario.place;
        let failed: Vec<_> = scenario.notes.iter().filter(|of| of.contains("not done")).collect();
        assert!(failed.is_empty(), "{place}: {failed:?}");
        assert!(scenario.rows.iter().any(|row| row.paper.is_some()), "{place}");
        for row in &scenario.rows {
            assert!(!row.why.is_empty(), "{place}: {row:?}");
            check(place, row);
        }
        assert_eq!(scenario.commands.len(), scenario.runs.len(), "each with what repeats it");
        for run in &scenario.runs {
            let run = repeated.directory.join(run);
            assert!(run.join("run.json").is_file(), "{}", run.display());
            assert!(run.join("report.html").is_file(), "{}", run.display());
        }
    }
}

/// What holds of every row, whatever the host did meanwhile.
fn check(place: &str, row: &Row) {
    let Some(here) = &row.here else {
        // A switch that costs nothing to be told, or a working set that was not tried.
        let told = ["did not lie together", "good pairs", "not tried", "not measured"];
        let told = told.iter().any(|words| row.why.contains(words));
        return assert!(told, "{place}: without a figure the row says why: {row:?}");
    };
    if let Some((low, high)) = here.interval {
        // Parts of a time and the whole of it are cut at instants that differ by a gap.
        let slack = 0.01 * here.value.abs();
        assert!(low <= here.value + slack && here.value <= high + slack, "{place}: {row:?}");
    } else {
        // The shortest of all has none, and what is computed; others are too few for one.
        let few = here.n.is_none_or(|n| n < 40);
        assert!(few || row.what.contains("the fastest"), "{place}: {row:?}");
    }
    let host = row.why.contains("mostly time without a kernel event");
    if let Some(without) = &row.without_host {
        assert!(without.value < here.value, "{place}: {row:?}");
        assert!(!host || without.value <= here.value / 2.0 + 1e-9, "{place}: {row:?}");
    } else {
        assert!(!host, "{place}: {row:?}");
    }
}

/// 5.1: costs beside the paper's, from its own command lines.
pub fn switches(scenario: &Scenario) {
    for words in ["-n 10 -a -p NORMAL -w CPU --cpus", "-n 10 -a -p NORMAL -w CPU_YIELD 0.9ms"] {
        assert!(scenario.commands.iter().any(|of| of.contains(words)), "{:?}", scenario.commands);
    }
    for kind in TEN_THREADS {
        let fastest = here(scenario, &["the fastest", kind]);
        let expected = row(scenario, &["cost of a switch", kind]);
        assert!(here(scenario, &["cost of a switch", kind]).value >= fastest.value, "{expected:?}");
        assert!(expected.why.contains("cycles of its 850 MHz"), "{expected:?}");
        assert!(told_apart(&expected.why), "{expected:?}");
    }
    for kind in ["hand-off, threads", "yield, processes", "involuntary, threads"] {
        let why = &row(scenario, &["cost of a switch", kind]).why;
        assert!(told_apart(why) && why.contains("repetitions"), "{why}");
    }
}

/// Switches with more in them are a share of all, or there is no cost that they could exceed.
fn told_apart(why: &str) -> bool {
    why.contains("contaminated by more than the switch") != why.contains("did not lie together")
}

/// 5.2: working sets beyond the last cache, or why not.
pub fn working_sets(repeated: &Repeated) {
    let scenario = repeated.scenario("5.2");
    let run = program::read(&repeated.directory.join("5.2"));
    let cost = run.switch_cost.unwrap();
    assert_eq!(cost.indirect.len(), scenario.rows.len());
    let largest = cost.indirect.iter().map(|of| of.bytes).max().unwrap();
    if let Some(last) = cost.caches.last() {
        assert_eq!(largest, 2 * last.bytes, "{:?}", cost.caches);
    }
    for (of, row) in cost.indirect.iter().zip(&scenario.rows) {
        assert_eq!(of.penalty.is_some(), row.here.is_some(), "{of:?}");
        let stands = ["all ten", "into no cache", "no caches"];
        assert!(stands.iter().any(|words| row.why.contains(words)), "{row:?}");
        // What reading it again takes is told of every set that was tried.
        assert_eq!(of.refill.is_some(), row.why.contains("GB/s"), "{row:?}");
        assert!(of.tried > 0 || row.why.contains("not tried"), "{row:?}");
    }
}

/// 5.3: wake-ups that were late, counted beyond each length.
pub fn late_wake_ups(scenario: &Scenario) {
    for name in ["idle", "with files and network"] {
        let lengths = ["1.00ms,", "5.00ms,", "10.0ms,", "50.0ms,"];
        let of = |figure: &dyn Fn(&[&str]) -> f64| -> Vec<f64> {
            lengths.iter().map(|length| figure(&["later than", length, name])).collect()
        };
        let with = of(&|words| here(scenario, words).value);
        let without = of(&|words| without_host(scenario, words));
        for counts in [&with, &without] {
            assert!(counts.windows(2).all(|pair| pair[0] >= pair[1]), "{name}: {counts:?}");
        }
        for (length, count) in lengths.iter().zip(&with) {
            let row = row(scenario, &["later than", length, name]);
            let named = row.why.contains("late because of") || row.why.contains("not known");
            let none = row.why.contains("was so late");
            assert_eq!(*count > 0.5, named && !none, "{row:?}");
            let other = name != "idle" && row.why.contains("the idle machine");
            assert_eq!(name != "idle", other, "beside its control: {row:?}");
            assert_eq!(name != "idle", row.paper.is_some(), "{row:?}");
        }
    }
    assert!(scenario.notes.iter().any(|note| note.starts_with("load: ")), "{:?}", scenario.notes);
}

/// 5.4: deadlines and throughput, each beside its control.
pub fn beside_the_network(scenario: &Scenario) {
    let alone = here(scenario, &["control 2"]);
    assert_eq!(alone.unit, Unit::BitsPerSecond);
    for part in BESIDE_THE_NETWORK {
        let missed = row(scenario, &["missed deadlines", part]);
        assert!(missed.why.contains("control 1"), "{missed:?}");
        assert!(missed.why.contains("interrupts and the kernel's own time took"), "{missed:?}");
        let received = row(scenario, &["throughput", part]);
        assert!(received.why.contains("of control 2, where the thread leaves"), "{received:?}");
    }
    // A real-time clock, or the note that there is none.
    let rtc = scenario.commands.iter().any(|command| command.contains("RTC"));
    let noted = scenario.notes.iter().any(|note| note.contains("in place of the paper's timer"));
    assert!(rtc != noted, "{:?} {:?}", scenario.commands, scenario.notes);
}

/// 5.6: reservations, with what jobs were charged.
pub fn reservations(scenario: &Scenario) {
    for task in ["task 0", "task 1"] {
        let exact = row(scenario, &[task, "exactly what is needed"]);
        let spare = row(scenario, &[task, "0.1ms to spare"]);
        for row in [exact, spare] {
            assert!(row.why.contains("reserved") && row.why.contains("jobs ("), "{row:?}");
        }
        assert!(spare.why.contains("the run with exactly what is needed"), "{spare:?}");
    }
}
