//! Rounds that were taken, one a line, so that whoever is interrupted goes on where that was.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::conditions::Conditions;
use crate::figure::Reading;

/// A round that was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// What it was taken of: commit and machine.
    pub of: String,
    /// Name of the figure.
    pub figure: String,
    /// Number of the round.
    pub round: usize,
    /// What came of it.
    pub outcome: Outcome,
    /// What the machine was like.
    pub conditions: Conditions,
}

/// What came of a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A reading for each row.
    Readings(Vec<Reading>),
    /// It does not count, and why.
    LeftOut(String),
    /// It ended in the middle of what must hold, and of what; or its process did.
    Failed(String),
    /// It had to be ended: it has failed, and more rounds of its figure are not tried.
    Hung(String),
}

/// A file of them.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    of: String,
    taken: Vec<Taken>,
}

impl Journal {
    /// Opens it, with those rounds that were taken of the same commit on the same machine. A last line that
    /// was cut is left out.
    pub fn open(path: &Path, of: &str) -> Result<Self> {
        let mut text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            text.truncate(whole);
            std::fs::write(path, &text).with_context(|| path.display().to_string())?;
        }
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Taken>(line).ok());
        let taken = lines.filter(|taken| taken.of == of).collect();
        Ok(Self { path: path.to_owned(), of: of.to_owned(), taken })
    }

    /// The round of a figure, if it was taken.
    #[must_use]
    pub fn find(&self, figure: &str, round: usize) -> Option<&Taken> {
        self.taken.iter().rev().find(|taken| taken.figure == figure && taken.round == round)
    }

    /// Sets a round down, at once.
    pub fn set_down(
        &mut self,
        figure: &str,
        round: usize,
        outcome: Outcome,
        conditions: Conditions,
    ) -> Result<()> {
        let (of, figure) = (self.of.clone(), figure.to_owned());
        let taken = Taken { of, figure, round, outcome, conditions };
        let line = format!("{}\n", serde_json::to_string(&taken)?);
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .with_context(|| self.path.display().to_string())?;
        self.taken.push(taken);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Journal, Outcome};
    use crate::conditions::Conditions;
    use crate::figure::Reading;

    const QUIET: Conditions =
        Conditions { took_ms: 1.0, cpus: 2, steal_ms: 0.0, foreign_ms: 0.0, pressure_ms: None };

    #[test]
    fn whoever_opens_it_again_finds_the_rounds_of_the_same_commit_and_machine_and_no_cut_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds");
        let readings = Outcome::Readings(vec![Reading::Value(2.5), Reading::held(true)]);
        let mut journal = Journal::open(&path, "abc on this").unwrap();
        journal.set_down("one", 0, readings.clone(), QUIET).unwrap();
        journal.set_down("one", 1, Outcome::LeftOut("steal".into()), QUIET).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{}", &text[..20])).unwrap();

        let mut journal = Journal::open(&path, "abc on this").unwrap();
        let again = &journal;
        assert_eq!(again.find("one", 0).unwrap().outcome, readings);
        assert_eq!(again.find("one", 1).unwrap().outcome, Outcome::LeftOut("steal".into()));
        assert!(again.find("one", 2).is_none() && again.find("two", 0).is_none());
        journal.set_down("two", 0, readings.clone(), QUIET).unwrap();
        assert!(Journal::open(&path, "abc on this").unwrap().find("two", 0).is_some());
        let other = Journal::open(&path, "abc on that").unwrap();
        assert!(other.find("one", 0).is_none());
    }
}
