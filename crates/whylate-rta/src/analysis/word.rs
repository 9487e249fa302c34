//! A task in one word of the command line: execution time and period, then clauses apart by commas.
//!
//! `3ms 8ms, jitter 1ms, deadline 6ms, blocking 200us, priority 50, timer HR, reserve 3.1ms 8ms, name
//! audio`. The execution time may be a distribution, whose largest value counts. It becomes a thread of a
//! set, so that what is analysed can be run.

use whylate_model::Nanos;

use crate::call::{Call, CallError, pieces};
use crate::flag;
use crate::task_set::Thread;

/// The largest real-time priority that is given to threads: 99 is the kernel's own.
const MOST_URGENT: u32 = 98;

/// What a word says of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The thread that would run it.
    pub thread: Thread,
    /// Release jitter.
    pub jitter: Nanos,
    /// Blocking by less urgent tasks, beside what its steps show.
    pub blocking: Nanos,
    /// A timer was given.
    pub timed: bool,
    /// Its priority, where one is given.
    pub priority: Option<u32>,
}

/// Why a word is no task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// Not of the grammar.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Without an execution time or a period.
    #[error("`{0}` is not a task: write execution time and period, such as 3ms 8ms")]
    NoTimes(String),
    /// A clause that there is not.
    #[error(
        "`{0}` is no clause of a task: write jitter, deadline, blocking, priority, timer, reserve or \
         name"
    )]
    UnknownClause(String),
    /// A clause stands twice.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// Not a priority.
    #[error("`{0}` is no priority from 1 to {MOST_URGENT}; larger is more urgent")]
    Priority(String),
    /// What a thread is given as well.
    #[error(transparent)]
    Flag(#[from] flag::FlagError),
}

/// Reads a task; `number` names one that has no name.
pub fn parse(word: &str, number: usize) -> Result<Word, WordError> {
    let clauses = pieces(word, |c| c == ',')?;
    let first = clauses.first().map_or("", String::as_str);
    let amounts = pieces(first, char::is_whitespace)?;
    let [execution, period] = amounts.as_slice() else {
        return Err(WordError::NoTimes(first.to_owned()));
    };
    let mut of_thread = vec![format!("PERIODIC {execution} {period}")];
    let (mut jitter, mut blocking, mut priority) = (Nanos(0), Nanos(0), None);
    let mut given = Vec::new();
    for clause in &clauses[1..] {
        let call = Call::parse(clause)?;
        let key = call.name.to_ascii_lowercase();
        if given.contains(&key) {
            return Err(WordError::Twice(key));
        }
        match key.as_str() {
            "jitter" => jitter = time(&call, "jitter <time>")?,
            "blocking" => blocking = time(&call, "blocking <time>")?,
            "priority" => priority = Some(urgency(&call)?),
            "deadline" | "timer" | "reserve" | "name" => of_thread.push(clause.clone()),
            _ => return Err(WordError::UnknownClause(call.name)),
        }
        given.push(key);
    }
    let thread = flag::threads(&of_thread.join(", "), number)?;
    let thread = thread.into_iter().next().ok_or_else(|| WordError::NoTimes(first.to_owned()))?;
    // A period that is none is better told now than when tasks are made.
    thread.workload.time(1, "period", "<execution time> <period>")?;
    let timed = given.iter().any(|key| key == "timer");
    Ok(Word { thread, jitter, blocking, timed, priority })
}

/// A time that may be nothing.
fn time(call: &Call, usage: &'static str) -> Result<Nanos, CallError> {
    call.takes(1, usage)?;
    let text = call.argument(0, "time", usage)?;
    text.parse::<Nanos>().map_err(|error| call.refused("time", error.to_string()))
}

fn urgency(call: &Call) -> Result<u32, WordError> {
    call.takes(1, "priority <number>")?;
    let text = call.argument(0, "number", "priority <number>")?;
    match text.parse() {
        Ok(priority @ 1..=MOST_URGENT) => Ok(priority),
        _ => Err(WordError::Priority(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_clause_is_understood() {
        let word = "uniform(2ms, 3ms) 8ms, jitter 1ms, deadline 6ms, blocking 200us, priority 50, \
                    timer grid(10ms), reserve 3.1ms 8ms, name audio";
        let word = parse(word, 4).unwrap();
        assert_eq!(word.thread.workload.to_string(), "PERIODIC uniform(2ms, 3ms) 8ms");
        assert_eq!((word.jitter, word.blocking), (Nanos(1_000_000), Nanos(200_000)));
        assert_eq!((word.priority, word.thread.name.as_str()), (Some(50), "audio"));
        assert_eq!((word.timed, word.thread.timer.to_string()), (true, "grid 10ms".to_owned()));
        assert_eq!(word.thread.deadline, Some(Nanos(6_000_000)));
        assert_eq!(word.thread.reservation.unwrap().amount, Nanos(3_100_000));
        let bare = parse("3ms 8ms", 7).unwrap();
        assert_eq!((bare.thread.name.as_str(), bare.jitter, bare.priority), ("7", Nanos(0), None));
        assert_eq!(parse("3ms 8ms, jitter 0ms", 0).unwrap().jitter, Nanos(0));
    }

    #[test]
    fn what_is_no_task_is_refused_with_what_to_write() {
        for (word, said) in [
            ("", "not a task"),
            ("3ms", "not a task"),
            ("3ms 8ms 9ms", "not a task"),
            ("3ms 8", "no unit"),
            ("3ms 0ms", "zero"),
            ("3ms 8ms, colour red", "no clause"),
            ("3ms 8ms, jitter 1ms, jitter 2ms", "twice"),
            ("3ms 8ms, jitter", "lacks its time"),
            ("3ms 8ms, jitter -1ms", "not a duration"),
            ("3ms 8ms, deadline 0ms", "zero"),
            ("3ms 8ms, priority 0", "no priority"),
            ("3ms 8ms, priority 99", "no priority"),
            ("3ms 8ms, reserve 3ms", "lacks its period"),
            ("3ms 8ms, cpus 1", "no clause"),
        ] {
            let error = parse(word, 0).unwrap_err().to_string();
            assert!(error.contains(said), "{word}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_word_panics(word in ".{0,80}") {
            let _ = parse(&word, 0);
        }
    }
}
