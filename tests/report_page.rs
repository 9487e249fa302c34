//! The report as a page: written by each recording, again on demand, and within its bounds.

use std::path::Path;

use whylate_model::segments::StoredGap;

use crate::{planted, program, two_cpus};

/// Gaps of each planted run.
const GAPS: u64 = 10_000_000;
/// Most bytes of a page.
const MOST_BYTES: u64 = 500_000;
/// Most memory for a page, in KiB: far less than that many gaps take when all are held.
const MOST_MEMORY_KIB: u64 = 128 << 10;
const _: () = assert!(MOST_MEMORY_KIB * 1024 < GAPS / 2 * size_of::<StoredGap>() as u64);
/// Most time for the page, by a release build.
const MOST_SECONDS: f64 = 10.0;

#[test]
fn a_recording_leaves_its_page_and_report_writes_the_same() {
    let _alone = program::alone();
    let recorded = program::record("gaps --duration 2s --warmup 200ms", 0);
    let left = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    assert!(left.contains(&escaped(&whylate_report::answer(&recorded.run))));
    let again = recorded.directory.join("again.html");
    let output = program::whylate(["report"])
        .arg(&recorded.directory)
        .arg("--html")
        .arg(&again)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", program::said(&output));
    assert_eq!(std::fs::read_to_string(&again).unwrap(), left);
    let printed = program::whylate(["report", "--html", "-"]).arg(&recorded.directory).output();
    assert_eq!(String::from_utf8(printed.unwrap().stdout).unwrap(), left);
}

#[test]
fn a_set_of_threads_leaves_its_page_by_either_command() {
    let _alone = program::alone();
    for words in [
        "threads --thread CPU --thread CPU --duration 300ms",
        "hourglass -n 2 -d 300ms -a -p NORMAL -w CPU",
    ] {
        let recorded = program::record(words, 0);
        let left = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
        assert!(left.contains(&escaped(&whylate_report::answer(&recorded.run))), "{words}");
        for id in ["threads", "trace", "switches"] {
            assert!(left.contains(&format!("<section id=\"{id}\">")), "{words}: no {id}");
        }
        let output = program::whylate(["report", "--html", "-"]).arg(&recorded.directory).output();
        assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), left, "{words}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_one_line_and_a_status() {
    let _alone = program::alone();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("runs/gaps");
    let output =
        program::whylate(["report", "--html", "/proc/report.html"]).arg(run).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/proc/report.html") && said.lines().count() == 1, "{said}");
}

#[test]
fn the_page_of_many_gaps_stays_within_its_bounds() {
    let _alone = program::alone();
    let dense: fn(&Path, u64) = planted::run;
    for (name, plant) in [("dense", dense), ("long", two_cpus::run)] {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        plant(&directory, GAPS);
        let page = home.path().join("report.html");
        let mut report = program::whylate(["report"]);
        report.arg(&directory).arg("--html").arg(&page);
        let before = Uptime::now();
        let peak_kib = program::peak_kib(report);
        let seconds = before.seconds_until_now();
        let bytes = std::fs::metadata(&page).unwrap().len();
        println!("{name}, {GAPS} gaps: {bytes} bytes, {seconds:.1} s, {} MiB", peak_kib / 1024);
        assert!(bytes < MOST_BYTES, "{name}: {bytes} bytes");
        assert!(peak_kib < MOST_MEMORY_KIB, "{name}: {peak_kib} KiB");
        if !cfg!(debug_assertions) {
            assert!(seconds < MOST_SECONDS, "{name}: {seconds} s");
        }
    }
}

/// The machine's own seconds since it started, to a hundredth.
struct Uptime(f64);

impl Uptime {
    fn now() -> Self {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        Self(uptime.split_whitespace().next().unwrap().parse().unwrap())
    }

    fn seconds_until_now(&self) -> f64 {
        Self::now().0 - self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('\'', "&#39;").replace('"', "&quot;").replace('>', "&gt;")
}
