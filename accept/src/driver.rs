//! Takes figures, round after round, and goes on where an interrupted one was.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::conditions::Counters;
use crate::figure::{Figure, Reading, Round};
use crate::journal::{Journal, Outcome};
use crate::table::Entry;

/// No round takes so long; one that does hangs, and everything ends with it.
const LONGEST_ROUND: Duration = Duration::from_secs(600);

/// Takes these figures and tells what each row of them came to.
///
/// `of` is what they are taken of, the commit and the machine: rounds of the same are not taken again.
pub fn take(figures: &[&Figure], journal: &Path, of: &str) -> Result<Vec<Entry>> {
    let mut journal = Journal::open(journal, of)?;
    let seconds: f64 = figures.iter().map(|figure| figure.seconds * figure.rounds as f64).sum();
    eprintln!("{} figures, about {:.0} min", figures.len(), (seconds / 60.0).ceil());
    let bar = ProgressBar::new(seconds.ceil() as u64);
    bar.set_style(ProgressStyle::with_template("{wide_bar} {percent}% {msg}")?);
    let mut entries = Vec::new();
    for figure in figures {
        bar.set_message(figure.name);
        if let Err(why) = (figure.needs)() {
            entries.extend(Entry::not_taken(figure, &why));
            continue;
        }
        for number in 0..figure.rounds {
            if journal.find(figure.name, number).is_none() {
                round(figure, number, &mut journal)?;
            }
            bar.inc(figure.seconds.round() as u64);
        }
        let rounds = (0..figure.rounds).filter_map(|of| journal.find(figure.name, of));
        entries.extend(Entry::of(figure, &rounds.collect::<Vec<_>>()));
    }
    bar.finish_and_clear();
    Ok(entries)
}

/// Takes one round and sets it down, whatever came of it.
fn round(figure: &Figure, number: usize, journal: &mut Journal) -> Result<()> {
    let then = Counters::now();
    let (ended, end) = mpsc::channel::<()>();
    let hung = format!("{}, round {number}: it hangs", figure.name);
    std::thread::spawn(move || {
        if end.recv_timeout(LONGEST_ROUND) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{hung}");
            std::process::exit(1);
        }
    });
    let taken = std::panic::catch_unwind(AssertUnwindSafe(|| (figure.round)(Round { number })));
    drop(ended);
    let conditions = Counters::now().since(&then);
    let outcome = match taken {
        Err(panic) => Outcome::Failed(said(panic.as_ref())),
        Ok(taken) => counted(figure, taken, conditions.taken()),
    };
    journal.set_down(figure.name, number, outcome, conditions)
}

/// A round counts unless it says why not, or too much was taken of it, by what was decided beforehand.
fn counted(figure: &Figure, taken: Result<Vec<Reading>, String>, share: f64) -> Outcome {
    match (taken, figure.most_taken) {
        (Err(why), _) => Outcome::LeftOut(why),
        (Ok(readings), _) if readings.len() != figure.rows.len() => {
            Outcome::Failed(format!("{} readings for {} rows", readings.len(), figure.rows.len()))
        }
        (Ok(_), Some(most)) if share > most => Outcome::LeftOut(format!(
            "{:.1} % of the CPUs were taken, more than {:.1} %",
            100.0 * share,
            100.0 * most
        )),
        (Ok(readings), _) => Outcome::Readings(readings),
    }
}

/// What a panic said, on one line.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{counted, take};
    use crate::figure::{Bound, Figure, Reading, Round, Row, anywhere};
    use crate::journal::Outcome;
    use crate::table::Entry;

    static TAKEN: AtomicUsize = AtomicUsize::new(0);

    fn planted(round: Round) -> Result<Vec<Reading>, String> {
        TAKEN.fetch_add(1, Ordering::Relaxed);
        match round.number {
            2 => Err("planted to be left out".to_owned()),
            number => Ok(vec![Reading::Value(number as f64), Reading::held(number < 6)]),
        }
    }

    const ROWS: [Row; 2] = [
        Row { claim: "numbers", unit: "rounds", bound: Bound::AtMost(7.0) },
        Row { claim: "below six", unit: "share", bound: Bound::Always },
    ];

    const FIGURE: Figure = Figure {
        name: "planted",
        method: "numbers of the rounds",
        rows: &ROWS,
        rounds: 8,
        seconds: 0.0,
        most_taken: None,
        needs: anywhere,
        round: planted,
    };

    fn verdicts(entries: &[Entry]) -> Vec<&'static str> {
        entries.iter().map(|entry| entry.judged.verdict.word()).collect()
    }

    #[test]
    fn rounds_that_were_taken_are_not_taken_again_and_those_left_out_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("rounds");
        let entries = take(&[&FIGURE], &journal, "this").unwrap();
        assert_eq!(TAKEN.load(Ordering::Relaxed), 8);
        assert_eq!(verdicts(&entries), ["met", "not met"]);
        assert_eq!((entries[0].rounds, entries[0].left_out.len()), (7, 1));
        assert_eq!(take(&[&FIGURE], &journal, "this").unwrap(), entries);
        assert_eq!(TAKEN.load(Ordering::Relaxed), 8, "taken again");
    }

    #[test]
    fn a_round_that_panics_has_its_figure_not_met_and_what_a_machine_lacks_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("rounds");
        let panics = Figure {
            name: "panics",
            rounds: 2,
            round: |round| {
                assert!(round.number == 0, "a sum\n that does not hold");
                Ok(vec![Reading::Value(1.0), Reading::held(true)])
            },
            ..FIGURE
        };
        let lacks = Figure { name: "lacks", needs: || Err("no such card".to_owned()), ..FIGURE };
        let entries = take(&[&panics, &lacks], &journal, "this").unwrap();
        assert_eq!(verdicts(&entries), ["not met", "not met", "not shown", "not shown"]);
        let why: Vec<_> = entries.iter().filter_map(|entry| entry.judged.verdict.why()).collect();
        assert_eq!(why[0], "a round failed: a sum that does not hold");
        assert_eq!(why[2..], ["no such card"; 2]);
    }

    #[test]
    fn a_round_of_which_too_much_was_taken_or_with_another_number_of_readings_does_not_count() {
        let strict = Figure { most_taken: Some(0.1), ..FIGURE };
        let two = || Ok(vec![Reading::Value(1.0), Reading::held(true)]);
        assert!(matches!(counted(&strict, two(), 0.1), Outcome::Readings(_)));
        let left_out = counted(&strict, two(), 0.123);
        let why = "12.3 % of the CPUs were taken, more than 10.0 %".to_owned();
        assert_eq!(left_out, Outcome::LeftOut(why));
        assert!(matches!(counted(&FIGURE, two(), 0.9), Outcome::Readings(_)));
        assert!(matches!(counted(&FIGURE, Ok(Vec::new()), 0.0), Outcome::Failed(_)));
    }
}
