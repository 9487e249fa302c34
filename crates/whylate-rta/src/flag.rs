//! A thread in one word of the command line: clauses apart by commas, the workload first.
//!
//! `PERIODIC 3ms 8ms, timer HR, priority RTMED, cpus 1, reserve hard 3.1ms 8ms, deadline 6ms, start
//! 1s, finish 9s, name audio, count 3`. Commas inside parentheses belong to their clause.

use whylate_model::Nanos;

use crate::call::{Call, CallError, pieces};
use crate::task_set::{Reservation, ReservationKind, ReservationScheduler, Thread};

/// Threads that one flag may stand for.
const MOST_ALIKE: usize = crate::task_set::MOST_THREADS;

/// Why a word is no thread.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// Not of the grammar.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A clause that there is not.
    #[error(
        "`{0}` is no clause of a thread: write timer, priority, cpus, reserve, deadline, start, \
         finish, name or count"
    )]
    UnknownClause(String),
    /// A clause stands twice.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// What a clause says is not what stands there.
    #[error("{clause}: {reason}")]
    Wrong {
        /// Which clause.
        clause: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The threads that a word stands for, of which there is one unless `count` says otherwise; `number`
/// is that of the first, which names threads that have no name.
pub fn threads(word: &str, number: usize) -> Result<Vec<Thread>, FlagError> {
    let clauses = pieces(word, |c| c == ',')?;
    let mut clauses = clauses.iter();
    let mut thread = Thread::new(number.to_string());
    thread.workload = Call::parse(clauses.next().map_or("", String::as_str))?;
    let (mut count, mut named, mut given) = (1, false, Vec::new());
    for clause in clauses {
        let call = Call::parse(clause)?;
        let mut key = call.name.to_ascii_lowercase();
        if key == "sched" {
            "priority".clone_into(&mut key);
        }
        if given.contains(&key) {
            return Err(FlagError::Twice(key));
        }
        match key.as_str() {
            "timer" => thread.timer = rest(&call)?,
            "priority" => thread.priority = rest(&call)?,
            "cpus" => thread.cpus = Some(cpus(&call)?),
            "reserve" => thread.reservation = Some(reservation(&call)?),
            "deadline" => thread.deadline = Some(time(&call)?),
            "start" => thread.start = time(&call)?,
            "finish" => thread.finish = Some(time(&call)?),
            "name" => {
                call.argument(0, "name", "name <name>")?.clone_into(&mut thread.name);
                named = true;
            }
            "count" => count = number_of(&call)?,
            _ => return Err(FlagError::UnknownClause(call.name)),
        }
        given.push(key);
    }
    if count == 1 {
        return Ok(vec![thread]);
    }
    let name = |index: usize| {
        if named { format!("{}-{index}", thread.name) } else { (number + index).to_string() }
    };
    Ok((0..count).map(|index| Thread { name: name(index), ..thread.clone() }).collect())
}

/// What stands behind the clause's name, as a call of its own.
fn rest(clause: &Call) -> Result<Call, CallError> {
    Call::parse(&clause.arguments.join(" "))
}

fn time(clause: &Call) -> Result<Nanos, CallError> {
    clause.takes(1, "<clause> <time>")?;
    clause.time(0, "time", "<clause> <time>")
}

fn wrong(clause: &Call, reason: impl Into<String>) -> FlagError {
    FlagError::Wrong { clause: clause.to_string(), reason: reason.into() }
}

fn cpus(clause: &Call) -> Result<Vec<whylate_model::CpuId>, FlagError> {
    let words = clause.arguments.join(",");
    crate::words::cpu_list(&words).map_err(|reason| wrong(clause, reason))
}

fn number_of(clause: &Call) -> Result<usize, FlagError> {
    let text = clause.argument(0, "count", "count <number>")?;
    match text.parse() {
        Ok(count @ 1..=MOST_ALIKE) => Ok(count),
        _ => Err(wrong(clause, format!("`{text}` is not a number from 1 to {MOST_ALIKE}"))),
    }
}

fn reservation(clause: &Call) -> Result<Reservation, FlagError> {
    const USAGE: &str = "reserve [hard|soft|quota] <amount> <period>";
    let (kind, scheduler, from) = match clause.arguments.first().map(String::as_str) {
        Some("hard") => (ReservationKind::Hard, ReservationScheduler::Deadline, 1),
        Some("soft") => (ReservationKind::Soft, ReservationScheduler::Deadline, 1),
        Some("quota") => (ReservationKind::Hard, ReservationScheduler::Quota, 1),
        _ => (ReservationKind::Hard, ReservationScheduler::Deadline, 0),
    };
    clause.takes(from + 2, USAGE)?;
    let amount = clause.time(from, "amount", USAGE)?;
    let period = clause.time(from + 1, "period", USAGE)?;
    Ok(Reservation { kind, amount, period, scheduler })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whylate_model::CpuId;

    use super::*;

    #[test]
    fn every_clause_is_understood() {
        let word = "PERIODIC uniform(2ms,4ms) 8ms, timer grid(10ms), priority RTMED, cpus 0-1, \
                    reserve soft 3.1ms 8ms, deadline 6ms, start 1s, finish 9s, name audio, count 2";
        let threads = threads(word, 4).unwrap();
        assert_eq!(threads.len(), 2);
        let thread = &threads[1];
        assert_eq!(thread.name, "audio-1");
        assert_eq!(thread.workload.to_string(), "PERIODIC uniform(2ms,4ms) 8ms");
        assert_eq!(thread.timer, Call::parse("grid(10ms)").unwrap());
        assert_eq!(thread.cpus, Some(vec![CpuId(0), CpuId(1)]));
        assert_eq!(thread.deadline, Some(Nanos(6_000_000)));
        assert_eq!((thread.start.0, thread.finish), (1_000_000_000, Some(Nanos(9_000_000_000))));
        let reservation = thread.reservation.unwrap();
        assert_eq!(reservation.kind, ReservationKind::Soft);
        assert_eq!(reservation.amount, Nanos(3_100_000));
    }

    #[test]
    fn a_bare_workload_is_a_thread_named_by_its_number() {
        let threads = threads("CPU", 7).unwrap();
        assert_eq!((threads.len(), threads[0].name.as_str()), (1, "7"));
    }

    #[test]
    fn what_is_no_thread_is_refused_with_its_reason() {
        for (word, said) in [
            ("", "a name is missing"),
            ("CPU, colour red", "no clause"),
            ("CPU, start 1s, start 2s", "twice"),
            ("CPU, start 1", "no unit"),
            ("CPU, count 0", "not a number"),
            ("CPU, count 10000", "not a number"),
            ("CPU, cpus x", "cpus"),
            ("CPU, reserve 3ms", "lacks its period"),
        ] {
            let error = threads(word, 0).unwrap_err().to_string();
            assert!(error.contains(said), "{word}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_word_panics(word in ".{0,80}") {
            let _ = threads(&word, 0);
        }
    }
}
