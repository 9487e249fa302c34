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

#[test]
fn a_page_that_cannot_be_written_is_one_line_and_a_status() {
    let run = program::file("runs/gaps");
    let output =
        program::whylate(["report", "--html", "/proc/report.html"]).arg(run).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/proc/report.html") && said.lines().count() == 1, "{said}");
}

#[test]
fn the_page_of_many_gaps_stays_within_its_bounds() {
    let dense: fn(&Path, u64) = planted::run;
    for (name, plant) in [("dense", dense), ("long", two_cpus::run)] {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        plant(&directory, GAPS);
        let page = home.path().join("report.html");
        let mut report = program::whylate(["report", "--html"]);
        report.arg(&page).arg(&directory);
        let peak_kib = program::peak_kib(report);
        let bytes = std::fs::metadata(&page).unwrap().len();
        println!("{name}, {GAPS} gaps: {bytes} bytes, {} MiB", peak_kib / 1024);
        assert!(bytes < MOST_BYTES, "{name}: {bytes} bytes");
        assert!(peak_kib < MOST_MEMORY_KIB, "{name}: {peak_kib} KiB");
    }
}
