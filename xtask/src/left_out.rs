//! Tests that were left out, and tests that claimed nothing, of a whole suite: said once more behind all others.
//!
//! Each says so as it runs, in one line among thousands, which nobody reads, and passes. Whoever runs a suite gives
//! them a file in which those lines are kept; it stays in `target`. Of one test that says the same twice, as at a
//! second try, one line counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::suite::{NO_CLAIM, SKIPPED};

/// The file of the suites that run here.
pub(crate) fn file(root: &Path) -> PathBuf {
    root.join("target/left-out.txt")
}

/// Forgets those of an earlier suite.
pub(crate) fn begin(root: &Path) {
    let _ = std::fs::remove_file(file(root));
}

/// How many there were and why, each reason once; nothing where there were none.
pub(crate) fn told(root: &Path) -> String {
    listed(&std::fs::read_to_string(file(root)).unwrap_or_default())
}

fn listed(lines: &str) -> String {
    let [skipped, no_claim] = [SKIPPED, NO_CLAIM].map(|kind| Left::read(lines, kind));
    if skipped.tests.is_empty() && no_claim.tests.is_empty() {
        return String::new();
    }
    let counts = (skipped.tests.len(), no_claim.tests.len());
    let reasons = [(SKIPPED, skipped), (NO_CLAIM, no_claim)];
    let reasons = reasons.iter().flat_map(|(kind, left)| left.lines(kind));
    format!(
        "{} tests skipped, {} without a claim:{}",
        counts.0,
        counts.1,
        reasons.collect::<String>()
    )
}

/// Those of one kind.
struct Left<'a> {
    tests: BTreeSet<&'a str>,
    /// Tests by their reason.
    reasons: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Left<'a> {
    /// Of lines as tests write them: kind, reason and, behind a tab, the name of the test, where it has one.
    fn read(lines: &'a str, kind: &str) -> Self {
        let mut left = Self { tests: BTreeSet::new(), reasons: BTreeMap::new() };
        let of_kind = |line: &'a str| line.strip_prefix(kind)?.strip_prefix(": ");
        for line in lines.lines().filter_map(of_kind) {
            let (reason, test) = line.rsplit_once('\t').unwrap_or((line, ""));
            left.tests.insert(if test.is_empty() { reason } else { test });
            left.reasons.entry(reason).or_default().insert(test);
        }
        left
    }

    /// Each reason with the first of its tests.
    fn lines(&self, kind: &str) -> impl Iterator<Item = String> {
        self.reasons.iter().map(move |(reason, tests)| {
            let first = tests.iter().find(|test| !test.is_empty());
            let first = first.map_or_else(String::new, |test| format!(" ({test})"));
            let more = match tests.len() {
                0 | 1 => String::new(),
                all => format!(" and {} more", all - 1),
            };
            format!("\n  {kind}: {reason}{first}{more}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{begin, file, listed, told};

    const LINES: &str = "skipped: no IPv6\tframes::one\nskipped: no IPv6\tframes::two\n\
        no claim: the host took (nearly) all of it\tdisturbed::a\nskipped: no IPv6\tframes::one\n\
        skipped: no bridges here\tframes::one\nskipped: a thread without a name\t\nof another kind: no\ta\n";

    #[test]
    fn tests_that_were_left_out_or_claimed_nothing_are_counted_once_with_each_reason_once() {
        assert_eq!(
            listed(LINES),
            "3 tests skipped, 1 without a claim:\n  skipped: a thread without a name\n  \
             skipped: no IPv6 (frames::one) and 1 more\n  skipped: no bridges here (frames::one)\n  \
             no claim: the host took (nearly) all of it (disturbed::a)"
        );
        let claimless = "no claim: its clock was not set\tclock_step::a\n";
        let text = "0 tests skipped, 1 without a claim:\n  no claim: its clock was not set (clock_step::a)";
        assert_eq!(listed(claimless), text);
        assert_eq!(listed(""), "");
    }

    #[test]
    fn those_of_an_earlier_suite_are_forgotten() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("target")).unwrap();
        std::fs::write(file(root.path()), LINES).unwrap();
        assert!(told(root.path()).starts_with("3 tests skipped"));
        begin(root.path());
        assert_eq!(told(root.path()), "");
    }
}
