//! Words become options with their values; what they mean is for the rest.

use whylate_model::Nanos;

use super::HourglassError;
use crate::call::Call;

/// Options of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Option_ {
    Count,
    Duration,
    Raw,
    Print,
    Thread,
    All,
    Records,
    Priority,
    Hard,
    Soft,
    Workload,
    Timer,
    Start,
    Finish,
    Cpus,
    Output,
    Seed,
    Threshold,
}

/// Options, how each is written with its values, and how many those are.
const TABLE: [(Option_, &str, &str, usize); 20] = [
    (Option_::Count, "-n", "-n THREADS", 1),
    (Option_::Duration, "-d", "-d TIME", 1),
    (Option_::Raw, "-c", "-c", 0),
    (Option_::Thread, "-t", "-t NUMBER", 1),
    (Option_::All, "-a", "-a", 0),
    (Option_::Records, "-e", "-e RECORDS", 1),
    (Option_::Priority, "-p", "-p PRIORITY", 1),
    (Option_::Hard, "-rh", "-rh AMOUNT PERIOD", 2),
    (Option_::Soft, "-rs", "-rs AMOUNT PERIOD", 2),
    (Option_::Workload, "-w", "-w WORKLOAD, such as -w PERIODIC 3ms 8ms", usize::MAX),
    (Option_::Timer, "-i", "-i TIMER", 1),
    (Option_::Start, "-s", "-s TIME", 1),
    (Option_::Finish, "-f", "-f TIME", 1),
    (Option_::Cpus, "--cpus", "--cpus LIST", 1),
    (Option_::Output, "-o", "-o DIRECTORY", 1),
    (Option_::Output, "--out", "--out DIRECTORY", 1),
    (Option_::Output, "--output", "--output DIRECTORY", 1),
    (Option_::Print, "--raw", "--raw", 0),
    (Option_::Seed, "--seed", "--seed NUMBER", 1),
    (Option_::Threshold, "--threshold", "--threshold paper|auto|TIME", 1),
];

impl Option_ {
    pub(super) fn is_of_a_thread(self) -> bool {
        matches!(
            self,
            Self::Priority
                | Self::Hard
                | Self::Soft
                | Self::Workload
                | Self::Timer
                | Self::Start
                | Self::Finish
        )
    }

    /// As it is written.
    pub(super) fn name(self) -> &'static str {
        TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }
}

/// An option with its values.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) option: Option_,
    /// As many as the option takes; for a workload at least one.
    pub(super) values: Vec<String>,
}

impl Given {
    /// Value `index` as a time.
    pub(super) fn time(&self, index: usize) -> Result<Nanos, HourglassError> {
        let time = self.values[index].parse::<Nanos>();
        time.map_err(|error| self.wrong(error.to_string()))
    }

    /// Value `index` as a time above zero.
    pub(super) fn time_above_zero(&self, index: usize) -> Result<Nanos, HourglassError> {
        match self.time(index)? {
            Nanos(0) => {
                Err(self
                    .wrong("the time must be above zero: write it as 60s, 1.5ms or 87us".into()))
            }
            time => Ok(time),
        }
    }

    /// The values as a name with arguments.
    pub(super) fn call(&self) -> Result<Call, HourglassError> {
        let option = self.option.name();
        Call::parse(&self.values.join(" ")).map_err(|error| HourglassError::Call { option, error })
    }

    pub(super) fn wrong(&self, reason: String) -> HourglassError {
        HourglassError::Value { option: self.option.name(), reason }
    }
}

/// Cuts a command line into options.
pub(super) fn given(words: &[String]) -> Result<Vec<Given>, HourglassError> {
    let mut options = Vec::new();
    let mut words = words.iter().peekable();
    let mut before = None;
    while let Some(word) = words.next() {
        let Some(&(option, name, usage, takes)) = TABLE.iter().find(|row| row.1 == word) else {
            return Err(if is_option(word) {
                HourglassError::Unknown(word.clone())
            } else {
                HourglassError::Stray { word: word.clone(), option: before }
            });
        };
        let mut values = Vec::new();
        while values.len() < takes
            && let Some(value) = words.next_if(|word| !is_option(word))
        {
            values.push(value.clone());
        }
        let least = takes.min(if option == Option_::Workload { 1 } else { takes });
        if values.len() < least || (takes == 1 && values[0].is_empty()) {
            return Err(HourglassError::Missing { option: name, usage });
        }
        options.push(Given { option, values });
        before = Some(usage);
    }
    Ok(options)
}

/// Does the word begin like an option: with `-` and a letter, or with `--`?
fn is_option(word: &str) -> bool {
    let rest = word.strip_prefix('-');
    rest.is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_alphabetic()))
}
