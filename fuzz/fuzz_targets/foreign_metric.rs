//! Any text as what a client of somebody else prints, and its first line as a pattern: percentiles that
//! rise with values that can be, or nothing; a pattern that is none has a reason that is safe to print.
//!
//! Good seeds: `percentile (?P<percent>[0-9.]+) = (?P<value>[0-9.]+)` and, below it, a line such as
//! `percentile 99.9 = 12.5`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_record::calibrate::foreign::{Metric, Unit};

/// A pattern that takes more than any tool prints.
const ANY: &str = "(?P<percent>[^ ]*) (?P<value>[^ ]*)";

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (pattern, printed) = text.split_once('\n').unwrap_or((&text, ""));
    for pattern in [pattern, ANY] {
        match Metric::new(pattern, Unit::Us) {
            Ok(metric) => check(&metric.find(printed)),
            Err(why) => assert!(!why.chars().any(char::is_control), "{why:?}"),
        }
    }
});

fn check(found: &[(f64, f64)]) {
    assert!(found.is_sorted_by(|one, next| one.0 < next.0), "{found:?}");
    for (percent, value) in found {
        assert!(*percent > 0.0 && *percent < 100.0, "{found:?}");
        assert!(value.is_finite() && *value >= 0.0, "{found:?}");
    }
}
