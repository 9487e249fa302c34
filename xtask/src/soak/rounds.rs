//! Runs that were made, one a line: a soak that is ended goes on where it was.
//!
//! They count for the same files, tests and machine only. Where files differ from what is committed nothing is
//! set down: no name says what was run.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Course, git, machine};
use crate::twice::Failure;

/// Below the root of the project.
const FILE: &str = "target/soak.jsonl";

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) is_good: bool,
    pub(super) passed: usize,
    pub(super) failures: Vec<Failure>,
    pub(super) took: Duration,
    /// The noise, and how often it stopped a child of the tests.
    pub(super) noise: Option<(String, u64)>,
}

/// The file of them.
pub(super) struct Rounds {
    path: PathBuf,
    /// Files and machine, where they have a name.
    of: Option<String>,
    /// By course and number.
    made: BTreeMap<(String, usize), Made>,
}

impl Rounds {
    /// With those of the same files on the same machine.
    pub(super) fn open(root: &Path) -> Result<Self> {
        let is_committed = git(root, &["status", "--porcelain"])?.is_empty();
        let tree = git(root, &["rev-parse", "HEAD^{tree}"])?;
        let of = is_committed.then(|| format!("{tree} on {}", machine()));
        Self::read(root.join(FILE), of)
    }

    /// A line that was cut is left out.
    fn read(path: PathBuf, of: Option<String>) -> Result<Self> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let same = lines.filter(|line| of.as_deref().is_some_and(|of| line["of"] == *of));
        let made = same.filter_map(|line| parsed(&line)).collect();
        Ok(Self { path, of, made })
    }

    pub(super) fn is_resumable(&self) -> bool {
        self.of.is_some()
    }

    pub(super) fn count(&self) -> usize {
        self.made.len()
    }

    pub(super) fn find(&self, course: &str, run: usize) -> Option<&Made> {
        self.made.get(&(course.to_owned(), run))
    }

    /// Sets a run down, at once.
    pub(super) fn set_down(&mut self, course: &str, run: usize, made: Made) -> Result<()> {
        if let Some(of) = &self.of {
            // A cut line before it is ended by the first of these.
            let line = format!("\n{}\n", written(of, course, run, &made));
            let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path);
            file.and_then(|mut file| file.write_all(line.as_bytes()))
                .with_context(|| self.path.display().to_string())?;
        }
        self.made.insert((course.to_owned(), run), made);
        Ok(())
    }
}

impl Course {
    pub(super) fn add(&mut self, made: Made) {
        self.passed += made.passed;
        self.bad += usize::from(!made.is_good);
        self.took += made.took;
        if let Some((noise, stops)) = made.noise {
            self.noise = noise;
            self.stops += stops;
        }
        if !made.is_good && made.failures.is_empty() {
            let entry = self.failures.entry("(no test is named)".to_owned()).or_default();
            entry.0 += 1;
        }
        for failure in made.failures {
            self.failures.entry(failure.name).or_insert((0, failure.said)).0 += 1;
        }
    }
}

fn written(of: &str, course: &str, run: usize, made: &Made) -> Value {
    let failure = |of: &Failure| json!({ "name": of.name, "said": of.said });
    json!({
        "of": of,
        "course": course,
        "run": run,
        "is_good": made.is_good,
        "passed": made.passed,
        "failures": made.failures.iter().map(failure).collect::<Vec<_>>(),
        "took_s": made.took.as_secs(),
        "noise": made.noise.as_ref().map(|(noise, _)| noise),
        "stops": made.noise.as_ref().map(|(_, stops)| stops),
    })
}

fn parsed(line: &Value) -> Option<((String, usize), Made)> {
    let text = |value: &Value| Some(value.as_str()?.to_owned());
    let failure = |of: &Value| {
        let said = of["said"].as_array()?.iter().map(text).collect::<Option<Vec<_>>>()?;
        Some(Failure { name: text(&of["name"])?, said })
    };
    let noise = match &line["noise"] {
        Value::Null => None,
        noise => Some((text(noise)?, line["stops"].as_u64()?)),
    };
    let made = Made {
        is_good: line["is_good"].as_bool()?,
        passed: usize::try_from(line["passed"].as_u64()?).ok()?,
        failures: line["failures"].as_array()?.iter().map(failure).collect::<Option<Vec<_>>>()?,
        took: Duration::from_secs(line["took_s"].as_u64()?),
        noise,
    };
    let run = usize::try_from(line["run"].as_u64()?).ok()?;
    Some(((text(&line["course"])?, run), made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_opens_it_again_finds_the_runs_of_the_same_files_and_machine_and_no_cut_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soak.jsonl");
        let open = |of: &str| Rounds::read(path.clone(), Some(of.to_owned())).unwrap();
        let good = Made {
            is_good: true,
            passed: 9,
            failures: Vec::new(),
            took: Duration::from_secs(60),
            noise: Some(("a hog".to_owned(), 3)),
        };
        let failure = Failure { name: "a::b".to_owned(), said: vec!["one".into(), "two".into()] };
        let bad = Made { is_good: false, failures: vec![failure], noise: None, ..good.clone() };
        let mut rounds = open("abc on this");
        rounds.set_down("all", 1, good.clone()).unwrap();
        rounds.set_down("idle", 1, bad.clone()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{}", &text[..40])).unwrap();

        let mut again = open("abc on this");
        assert_eq!((again.count(), again.find("all", 1)), (2, Some(&good)));
        assert_eq!(again.find("idle", 1), Some(&bad));
        assert_eq!(again.find("all", 2), None);
        again.set_down("all", 2, bad.clone()).unwrap();
        assert_eq!(open("abc on this").find("all", 2), Some(&bad));
        assert_eq!(open("abc on that").count(), 0);
    }

    #[test]
    fn of_files_that_are_not_committed_nothing_is_set_down() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soak.jsonl");
        let mut rounds = Rounds::read(path.clone(), None).unwrap();
        let took = Duration::from_secs(1);
        let made = Made { is_good: true, passed: 1, failures: Vec::new(), took, noise: None };
        rounds.set_down("all", 1, made).unwrap();
        assert!(!rounds.is_resumable() && !path.exists());
    }
}
