//! Takes figures, round after round, and goes on where an interrupted one was.

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::conditions::Counters;
use crate::figure::Figure;
use crate::journal::{Journal, Outcome, Taken};
use crate::table::Entry;

/// About how long it takes to ask what a figure needs, which is done once, in seconds.
const ASKED: f64 = 0.3;
/// Rounds that take so many times as long as is stated, and this many seconds more, are told: the plan of all
/// figures is not true.
const LONGER: (f64, f64) = (1.25, 0.5);

/// Who takes a round, and asks what it needs. An error ends everything, and the round is not set down.
pub trait Taker {
    /// What is missing here for a figure.
    fn needs(&self, figure: &Figure) -> Result<Result<(), String>>;
    /// What comes of one round.
    fn round(&self, figure: &Figure, number: usize) -> Result<Outcome>;
}

/// Takes these figures and tells what each row of them came to; `told` is given all rows so far after each
/// figure.
///
/// Rounds that the journal has are not taken again.
pub fn take(
    figures: &[&Figure],
    journal: &mut Journal,
    taker: &dyn Taker,
    told: &dyn Fn(&[Entry]) -> Result<()>,
) -> Result<Vec<Entry>> {
    let seconds = planned(figures, |name, round| journal.find(name, round).is_some());
    eprintln!("{} figures, planned to take {:.0} min", figures.len(), (seconds / 60.0).ceil());
    let bar = ProgressBar::new(seconds.ceil() as u64);
    bar.set_style(ProgressStyle::with_template("{wide_bar} {percent}% {msg}")?);
    let mut entries = Vec::new();
    for figure in figures {
        bar.set_message(figure.name);
        let rows = one(figure, journal, taker, &bar)?;
        bar.suspend(|| rows.iter().for_each(|entry| println!("{entry}")));
        entries.extend(rows);
        told(&entries)?;
    }
    bar.finish_and_clear();
    Ok(entries)
}

/// About how many seconds it takes to take these figures, without the rounds that are there.
pub fn planned(figures: &[&Figure], is_there: impl Fn(&str, usize) -> bool) -> f64 {
    let missing =
        |figure: &Figure| (0..figure.rounds).filter(|of| !is_there(figure.name, *of)).count();
    figures.iter().map(|of| ASKED + of.seconds * missing(of) as f64).sum()
}

/// That rounds of a figure take longer than is stated, in the median.
fn longer_than_planned(figure: &Figure, rounds: &[Taken]) -> Option<String> {
    let mut took: Vec<f64> = rounds.iter().map(|of| of.conditions.took_ms / 1e3).collect();
    took.sort_by(f64::total_cmp);
    let took = *took.get(took.len() / 2)?;
    let Figure { name, seconds, .. } = figure;
    let is_longer = took > LONGER.0 * seconds + LONGER.1;
    is_longer.then(|| format!("{name}: a round took {took:.1} s, {seconds} s are planned"))
}

/// One figure. One whose round hung is not met whatever the others would say, and they would take long.
fn one(
    figure: &Figure,
    journal: &mut Journal,
    taker: &dyn Taker,
    bar: &ProgressBar,
) -> Result<Vec<Entry>> {
    if let Err(why) = taker.needs(figure)? {
        return Ok(Entry::not_taken(figure, &why));
    }
    let mut rounds = Vec::new();
    for number in 0..figure.rounds {
        if journal.find(figure.name, number).is_none() {
            let then = Counters::now();
            let outcome = taker.round(figure, number)?;
            let conditions = Counters::now().since(&then);
            let outcome = counted(figure, outcome, conditions.taken());
            journal.set_down(figure.name, number, outcome, conditions)?;
            bar.inc(figure.seconds.round() as u64);
        }
        let round = journal.find(figure.name, number);
        rounds.extend(round.cloned());
        if round.is_some_and(|round| matches!(round.outcome, Outcome::Hung(_))) {
            break;
        }
    }
    if let Some(longer) = longer_than_planned(figure, &rounds) {
        bar.suspend(|| eprintln!("{longer}"));
    }
    Ok(Entry::of(figure, &rounds.iter().collect::<Vec<_>>()))
}

/// Readings count unless too much was taken of the round, by what was decided beforehand.
fn counted(figure: &Figure, outcome: Outcome, share: f64) -> Outcome {
    match (outcome, figure.most_taken) {
        (Outcome::Readings(_), Some(most)) if share > most => Outcome::LeftOut(format!(
            "{:.1} % of the CPUs were taken, more than {:.1} %",
            100.0 * share,
            100.0 * most
        )),
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::path::Path;

    use anyhow::{Result, bail};

    use super::{ASKED, Taker, counted, longer_than_planned, planned, take};
    use crate::conditions::Conditions;
    use crate::figure::{Bound, Figure, Reading, Round, Row, anywhere};
    use crate::journal::{Journal, Outcome, Taken};
    use crate::round;
    use crate::table::Entry;

    fn planted(round: Round) -> Result<Vec<Reading>, String> {
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

    /// Takes rounds in this process.
    #[derive(Default)]
    struct Here {
        taken: Cell<usize>,
        hangs_at: Option<usize>,
        interrupted_at: Option<usize>,
    }

    impl Taker for Here {
        fn needs(&self, figure: &Figure) -> Result<Result<(), String>> {
            Ok(round::needed(figure))
        }

        fn round(&self, figure: &Figure, number: usize) -> Result<Outcome> {
            self.taken.set(self.taken.get() + 1);
            if self.interrupted_at == Some(number) {
                bail!("interrupted");
            }
            if self.hangs_at == Some(number) {
                return Ok(Outcome::Hung("no end within 1 s".to_owned()));
            }
            Ok(round::taken(figure, number))
        }
    }

    fn verdicts(entries: &[Entry]) -> Vec<&'static str> {
        entries.iter().map(|entry| entry.judged.verdict.word()).collect()
    }

    fn by(taker: &Here, figures: &[&Figure], path: &Path, of: &str) -> Result<Vec<Entry>> {
        take(figures, &mut Journal::open(path, of)?, taker, &|_| Ok(()))
    }

    #[test]
    fn rounds_that_were_taken_are_not_taken_again_and_those_left_out_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (path, here) = (folder.path().join("rounds"), Here::default());
        let entries = by(&here, &[&FIGURE], &path, "this").unwrap();
        assert_eq!(here.taken.get(), 8);
        assert_eq!(verdicts(&entries), ["met", "not met"]);
        assert_eq!((entries[0].rounds, entries[0].left_out.len()), (7, 1));
        assert_eq!(by(&here, &[&FIGURE], &path, "this").unwrap(), entries);
        assert_eq!(here.taken.get(), 8, "taken again");
        by(&here, &[&FIGURE], &path, "this+another").unwrap();
        assert_eq!(here.taken.get(), 16, "another state's were used");
    }

    #[test]
    fn a_round_that_panics_has_its_figure_not_met_and_what_a_machine_lacks_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
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
        let figures = [&panics, &lacks];
        let entries = by(&Here::default(), &figures, &folder.path().join("rounds"), "").unwrap();
        assert_eq!(verdicts(&entries), ["not met", "not met", "not shown", "not shown"]);
        let why: Vec<_> = entries.iter().filter_map(|entry| entry.judged.verdict.why()).collect();
        assert_eq!(why[0], "1 of 2 rounds failed: a sum that does not hold");
        assert_eq!(why[2..], ["no such card"; 2]);
    }

    #[test]
    fn after_a_round_that_hangs_its_figure_is_not_met_the_others_are_taken_and_none_hangs_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds");
        let other = Figure { name: "other", rounds: 3, ..FIGURE };
        let here = Here { hangs_at: Some(4), ..Here::default() };
        let entries = by(&here, &[&FIGURE, &other], &path, "").unwrap();
        assert_eq!(here.taken.get(), 5 + 3);
        assert_eq!(verdicts(&entries[..2]), ["not met"; 2]);
        let why = entries[0].judged.verdict.why();
        assert_eq!(why, Some("1 of 5 rounds failed: no end within 1 s"));
        assert_eq!(entries[2].rounds, 2);
        assert_eq!(by(&here, &[&FIGURE, &other], &path, "").unwrap(), entries);
        assert_eq!(here.taken.get(), 5 + 3, "tried again");
    }

    #[test]
    fn whoever_is_interrupted_has_told_of_the_figures_before_and_takes_that_round_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds");
        let other = Figure { name: "other", rounds: 3, ..FIGURE };
        let here = Here { interrupted_at: Some(5), ..Here::default() };
        let told = RefCell::new(Vec::new());
        let tell = |entries: &[Entry]| {
            told.borrow_mut().push(entries.len());
            Ok(())
        };
        let ended = take(&[&other, &FIGURE], &mut Journal::open(&path, "").unwrap(), &here, &tell);
        assert!(ended.is_err());
        assert_eq!(*told.borrow(), [2]);
        assert_eq!(here.taken.get(), 3 + 6);
        let here = Here::default();
        take(&[&other, &FIGURE], &mut Journal::open(&path, "").unwrap(), &here, &tell).unwrap();
        assert_eq!(here.taken.get(), 3);
        assert_eq!(*told.borrow(), [2, 2, 4]);
    }

    #[test]
    fn what_is_planned_are_the_rounds_that_are_missing_and_those_that_take_longer_are_told() {
        let (short, long) =
            (Figure { seconds: 1.5, ..FIGURE }, Figure { seconds: 4.0, rounds: 2, ..FIGURE });
        let of = |there: usize| planned(&[&short, &long], |_, round| round < there);
        for (there, rounds) in [(0, 8.0 * 1.5 + 2.0 * 4.0), (2, 6.0 * 1.5), (8, 0.0)] {
            assert!((of(there) - 2.0 * ASKED - rounds).abs() < 1e-9, "{there}: {}", of(there));
        }
        let rounds = |took: &[f64]| -> Vec<Taken> {
            let taken = |(round, took): (usize, &f64)| {
                let conditions = Conditions {
                    took_ms: took * 1e3,
                    cpus: 2,
                    steal_ms: 0.0,
                    foreign_ms: 0.0,
                    pressure_ms: None,
                };
                let (of, figure) = (String::new(), "planted".to_owned());
                Taken { of, figure, round, outcome: Outcome::LeftOut(String::new()), conditions }
            };
            took.iter().enumerate().map(taken).collect()
        };
        let told = |took: &[f64]| longer_than_planned(&long, &rounds(took));
        assert_eq!(
            (told(&[]), told(&[5.4, 5.5, 5.5]), told(&[4.0, 4.0, 50.0])),
            (None, None, None)
        );
        let longer = "planted: a round took 5.6 s, 4 s are planned".to_owned();
        assert_eq!(told(&[3.0, 5.6, 9.0]), Some(longer));
    }

    #[test]
    fn a_round_of_which_too_much_was_taken_does_not_count() {
        let strict = Figure { most_taken: Some(0.1), ..FIGURE };
        let two = || Outcome::Readings(vec![Reading::Value(1.0), Reading::held(true)]);
        assert!(matches!(counted(&strict, two(), 0.1), Outcome::Readings(_)));
        let left_out = counted(&strict, two(), 0.123);
        let why = "12.3 % of the CPUs were taken, more than 10.0 %".to_owned();
        assert_eq!(left_out, Outcome::LeftOut(why));
        assert!(matches!(counted(&FIGURE, two(), 0.9), Outcome::Readings(_)));
        // What failed has failed on a busy machine, too.
        let failed = || Outcome::Failed("a sum".to_owned());
        assert_eq!(counted(&strict, failed(), 0.9), failed());
    }
}
