//! One round, in a process of its own: what it says, or how it ended without a word.

use std::any::Any;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::driver::Taker;
use crate::figure::{Figure, Reading, Round};
use crate::interrupt::Interrupted;
use crate::journal::Outcome;
use crate::process::{self, Ended};
use whylate_suite as suite;

/// First words of the command lines by which this program asks itself: `--needs NAME FILE` and
/// `--round NAME NUMBER FILE`.
pub(crate) const NEEDS: &str = "--needs";
pub(crate) const ROUND: &str = "--round";

/// What a round comes to in this process, and whatever is wrong with its readings.
#[must_use]
pub fn taken(figure: &Figure, number: usize) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| (figure.round)(Round { number }))) {
        Err(panic) => Outcome::Failed(said(panic.as_ref())),
        Ok(Err(why)) => Outcome::LeftOut(why),
        Ok(Ok(readings)) => judged(figure, readings),
    }
}

/// Readings that can be judged.
fn judged(figure: &Figure, readings: Vec<Reading>) -> Outcome {
    if readings.len() != figure.rows.len() {
        let (found, wanted) = (readings.len(), figure.rows.len());
        return Outcome::Failed(format!("{found} readings for {wanted} rows"));
    }
    let fault =
        figure.rows.iter().zip(&readings).find_map(|(row, reading)| {
            reading.fault().map(|fault| format!("{}: {fault}", row.claim))
        });
    fault.map_or(Outcome::Readings(readings), Outcome::Failed)
}

/// What a figure lacks here, found out in this process.
pub fn needed(figure: &Figure) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| (figure.needs)())).unwrap_or_else(|panic| {
        Err(format!("what it needs is not known: {}", said(panic.as_ref())))
    })
}

/// What a panic said, on one line.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Answers the process that asked, and ends with it.
pub(crate) fn answer(figure: &Figure, number: Option<usize>, file: &Path) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match number {
        None => write(file, &needed(figure)),
        Some(number) => write(file, &taken(figure, number)),
    }
}

/// All of it or nothing.
fn write(file: &Path, answer: &impl Serialize) -> Result<()> {
    let begun = file.with_extension("begun");
    std::fs::write(&begun, serde_json::to_string(answer)?)
        .and_then(|()| std::fs::rename(&begun, file))
        .with_context(|| file.display().to_string())
}

/// Takes rounds in processes of their own.
#[derive(Debug)]
pub struct Apart {
    /// The program that answers: this one.
    pub program: PathBuf,
    /// What is set in its environment beside what is set here.
    pub environment: Vec<(&'static str, OsString)>,
    /// A folder for its answers.
    pub folder: PathBuf,
    /// No round hangs before.
    pub least_deadline: Duration,
    /// The root folder of the machine, whose settings are put back after a round that said nothing.
    pub machine: PathBuf,
}

/// What came of asking.
enum Asked<T> {
    Said(T),
    Died(ExitStatus),
    Hung(Ended),
}

impl Apart {
    fn ask<T: DeserializeOwned>(&self, words: &[&str], limit: Duration) -> Result<Asked<T>> {
        let file = self.folder.join("answer.json");
        if file.exists() {
            std::fs::remove_file(&file).with_context(|| file.display().to_string())?;
        }
        let mut command = Command::new(&self.program);
        command.args(words).arg(&file).stdout(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let ended = process::run(&mut command, limit)?;
        if !ended.left.is_empty() && ended.status.is_some() {
            eprintln!("{}: left and ended: {}", words[1..].join(" "), ended.left.join(", "));
        }
        // What was answered was answered, whatever became of the process then.
        if let Ok(text) = std::fs::read_to_string(&file) {
            return Ok(Asked::Said(serde_json::from_str(&text)?));
        }
        suite::mend(&self.machine);
        if ended.interrupted {
            bail!(Interrupted(shown("what it had has ended:", &ended.left)));
        }
        match ended.status {
            None => Ok(Asked::Hung(ended)),
            // They are sent to a whole group, and mean all of it.
            Some(status) if matches!(status.signal(), Some(1 | 2 | 15)) => {
                bail!(Interrupted(status.to_string()))
            }
            Some(status) => Ok(Asked::Died(status)),
        }
    }
}

impl Taker for Apart {
    fn needs(&self, figure: &Figure) -> Result<Result<(), String>> {
        Ok(match self.ask(&[NEEDS, figure.name], self.least_deadline)? {
            Asked::Said(answer) => answer,
            Asked::Died(status) => Err(format!("what it needs is not known: {status}")),
            Asked::Hung(_) => Err("what it needs is not known: asking does not end".to_owned()),
        })
    }

    fn round(&self, figure: &Figure, number: usize) -> Result<Outcome> {
        let limit = figure.deadline(self.least_deadline);
        let asked = self.ask(&[ROUND, figure.name, &number.to_string()], limit)?;
        Ok(match asked {
            Asked::Said(outcome) => outcome,
            Asked::Died(status) => Outcome::Failed(format!("its process ended: {status}")),
            Asked::Hung(ended) => Outcome::Hung(hung(&ended, limit)),
        })
    }
}

/// Of a round that had to be ended.
fn hung(ended: &Ended, limit: Duration) -> String {
    let mut text = format!("no end within {} s", limit.as_secs());
    text.push_str(&shown("; ended with", &ended.left));
    text.push_str(&shown("; still there:", &ended.remain));
    text
}

/// Names, where there are some, with a word about them.
fn shown(what: &str, names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!("{what} {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{hung, judged, needed, taken};
    use crate::figure::{Bound, Figure, Reading, Row, anywhere};
    use crate::journal::Outcome;
    use crate::process::Ended;
    use std::time::Duration;

    const ROWS: [Row; 2] = [
        Row { claim: "numbers", unit: "rounds", bound: Bound::AtMost(7.0) },
        Row { claim: "below six", unit: "share", bound: Bound::Always },
    ];

    const FIGURE: Figure = Figure {
        name: "planted",
        method: "planted",
        rows: &ROWS,
        rounds: 8,
        seconds: 50.0,
        most_taken: None,
        needs: anywhere,
        round: |_| Err("planted to be left out".to_owned()),
    };

    #[test]
    fn a_round_with_another_number_of_readings_or_one_that_is_no_number_has_failed() {
        let with = |reading: Reading| judged(&FIGURE, vec![reading, Reading::held(true)]);
        let failed = |why: &str| Outcome::Failed(why.to_owned());
        assert!(matches!(with(Reading::Value(-1.0)), Outcome::Readings(_)));
        assert!(matches!(with(Reading::Absent(String::new())), Outcome::Readings(_)));
        assert_eq!(with(Reading::Value(f64::NAN)), failed("numbers: NaN is no number"));
        assert_eq!(with(Reading::Value(f64::INFINITY)), failed("numbers: inf is no number"));
        assert_eq!(with(Reading::Share { hits: 3, of: 2 }), failed("numbers: 3 of 2"));
        let beside = |ours| with(Reading::Beside { peer: 1.0, ours, again: 2.0 });
        assert!(matches!(beside(0.0), Outcome::Readings(_)));
        let why = "numbers: -1 between 1 and 2 are no numbers to compare";
        assert_eq!(beside(-1.0), failed(why));
        assert!(matches!(beside(f64::NAN), Outcome::Failed(_)));
        assert_eq!(judged(&FIGURE, Vec::new()), failed("0 readings for 2 rows"));
    }

    #[test]
    fn what_a_panic_says_stands_on_one_line() {
        let panics = Figure {
            needs: || panic!("a link\n is gone"),
            round: |round| panic!("{} sums\n that do not hold", round.number),
            ..FIGURE
        };
        assert_eq!(taken(&panics, 3), Outcome::Failed("3 sums that do not hold".to_owned()));
        let why = "what it needs is not known: a link is gone".to_owned();
        assert_eq!(needed(&panics), Err(why));
        assert_eq!(taken(&FIGURE, 0), Outcome::LeftOut("planted to be left out".to_owned()));
    }

    #[test]
    fn a_round_hangs_after_five_times_its_seconds_and_some_minutes_at_least() {
        let least = Duration::from_secs(180);
        assert_eq!(FIGURE.deadline(least), Duration::from_secs(250));
        assert_eq!(Figure { seconds: 9.0, ..FIGURE }.deadline(least), least);
        let over = Ended { status: None, interrupted: false, left: vec![], remain: vec![] };
        let ended = Ended { left: vec!["a".into(), "b".into()], ..over };
        assert_eq!(hung(&ended, least), "no end within 180 s; ended with a, b");
        let ended = Ended { left: vec![], remain: vec!["disk".into()], ..ended };
        assert_eq!(hung(&ended, least), "no end within 180 s; still there: disk");
    }
}
