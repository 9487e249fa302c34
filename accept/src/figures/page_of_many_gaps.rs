//! The page of eleven million gaps beside a reader of the same files that makes nothing of them.

use std::path::Path;
use std::process::Command;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::program::{peak_kib, whylate};
use crate::{needs, planted};

const GAPS: u64 = 11_000_000;
/// Reads three columns of all segments of the folder that it is given, and says how many rows they have.
const PYARROW: &str = "import glob, sys, pyarrow.parquet as parquet
files = sorted(glob.glob(sys.argv[1] + '/gaps-*.parquet'))
columns = ['start', 'end', 'cause']
print(sum(parquet.read_table(file, columns=columns).num_rows for file in files))";

pub(crate) const FIGURE: Figure = Figure {
    name: "page_of_many_gaps",
    method: "report --html of a run of 11 000 000 planted gaps, with the digests of all its files checked, between \
             two times that pyarrow reads three columns of the same files",
    rows: &[
        Row { claim: "time of the page over pyarrow's", unit: "ratio", bound: Bound::AtMost(2.0) },
        Row { claim: "peak memory", unit: "MB", bound: Bound::AtMost(100.0) },
        Row { claim: "made in", unit: "s", bound: Bound::AtMost(10.0) },
    ],
    rounds: 8,
    seconds: 20.0,
    most_taken: None,
    needs: || {
        needs::can_run("python3")?;
        let there = Command::new("python3").args(["-c", "import pyarrow.parquet"]).output();
        let is_there = there.is_ok_and(|output| output.status.success());
        is_there
            .then_some(())
            .ok_or_else(|| "pyarrow is not installed (pip install pyarrow)".to_owned())
    },
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let home = tempfile::tempdir().unwrap();
    let (directory, page) = (home.path().join("run"), home.path().join("report.html"));
    planted::run(&directory, GAPS);
    // What was just written is in memory for both.
    read_by_pyarrow(&directory);
    let peer = seconds_of(|| read_by_pyarrow(&directory));
    let mut peak = 0;
    let ours = seconds_of(|| {
        let mut report = whylate(["report", "--html"]);
        report.arg(&page).arg(&directory);
        peak = peak_kib(report);
    });
    let again = seconds_of(|| read_by_pyarrow(&directory));
    let megabytes = (peak * 1024) as f64 / 1e6;
    let beside = Reading::Beside { peer, ours, again };
    Ok(vec![beside, Reading::Value(megabytes), Reading::Value(ours)])
}

fn read_by_pyarrow(directory: &Path) {
    let output = Command::new("python3").args(["-c", PYARROW]).arg(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), GAPS.to_string());
}

/// How long it takes, by a clock that nobody sets.
fn seconds_of(what: impl FnOnce()) -> f64 {
    let before = clock_ns(Clock::MonotonicRaw);
    what();
    (clock_ns(Clock::MonotonicRaw) - before) as f64 / 1e9
}
