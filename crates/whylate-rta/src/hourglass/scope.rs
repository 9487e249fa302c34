//! Which threads an option is for: `-t` names one, `-a` all.

use std::collections::HashSet;

use super::HourglassError;
use super::options::{Given, Option_};
use crate::task_set::{Reservation, ReservationKind, ReservationScheduler, Thread};

/// Whom the options that follow are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum For {
    All,
    One(usize),
}

/// The threads, and whom the next option is for.
pub(super) struct Scope {
    threads: Vec<Thread>,
    now: Option<For>,
    /// What was given, and for whom.
    seen: HashSet<(For, Option_)>,
}

impl Scope {
    pub(super) fn new(count: usize) -> Self {
        let threads = (0..count).map(|number| Thread::new(number.to_string())).collect();
        Self { threads, now: None, seen: HashSet::new() }
    }

    /// `-t`.
    pub(super) fn one(&mut self, index: &str) -> Result<(), HourglassError> {
        let count = self.threads.len();
        match index.parse::<usize>() {
            Ok(number) if number < count => {
                self.now = Some(For::One(number));
                Ok(())
            }
            _ => Err(HourglassError::NoSuchThread { index: index.to_owned(), count }),
        }
    }

    /// `-a`.
    pub(super) fn all(&mut self) {
        self.now = Some(For::All);
    }

    pub(super) fn threads(self) -> Vec<Thread> {
        self.threads
    }

    /// An option of a thread.
    pub(super) fn take(&mut self, given: &Given) -> Result<(), HourglassError> {
        let option = given.option;
        let Some(now) = self.now else { return Err(HourglassError::NoScope(option.name())) };
        let place = || match now {
            For::All => " for all threads".to_owned(),
            For::One(number) => format!(" for thread {number}"),
        };
        if !self.seen.insert((now, option)) {
            return Err(HourglassError::Twice { option: option.name(), place: place() });
        }
        let both = |option| self.seen.contains(&(now, option));
        if both(Option_::Hard) && both(Option_::Soft) {
            return Err(HourglassError::TwoReservations(place()));
        }
        let set = setting(given)?;
        match now {
            For::All => self.threads.iter_mut().for_each(set),
            For::One(number) => set(&mut self.threads[number]),
        }
        Ok(())
    }
}

type Setting = Box<dyn Fn(&mut Thread)>;

/// What an option changes in a thread.
fn setting(given: &Given) -> Result<Setting, HourglassError> {
    Ok(match given.option {
        Option_::Priority => {
            let call = given.call()?;
            Box::new(move |thread| thread.priority = call.clone())
        }
        Option_::Timer => {
            let call = given.call()?;
            Box::new(move |thread| thread.timer = call.clone())
        }
        Option_::Workload => {
            let call = given.call()?;
            Box::new(move |thread| thread.workload = call.clone())
        }
        Option_::Start => {
            let time = given.time(0)?;
            Box::new(move |thread| thread.start = time)
        }
        Option_::Finish => {
            let time = given.time_above_zero(0)?;
            Box::new(move |thread| thread.finish = Some(time))
        }
        option => {
            let reservation = Reservation {
                kind: match option {
                    Option_::Soft => ReservationKind::Soft,
                    _ => ReservationKind::Hard,
                },
                amount: given.time_above_zero(0)?,
                period: given.time_above_zero(1)?,
                scheduler: ReservationScheduler::default(),
            };
            Box::new(move |thread| thread.reservation = Some(reservation))
        }
    })
}
