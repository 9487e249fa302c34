//! Missed deadlines of a thread: what a run knows of them, and the sentence that it makes.
//!
//! A sentence says only what follows from the facts of its run; the facts of a run are collected in
//! one place, so that every sentence can be held against planted ones.

use crate::spelled::in_unit;
use whylate_model::execution::{StoredJob, Verdict};
use whylate_model::paper::{Here, Row, Unit};
use whylate_model::threads::ThreadSummary;
use whylate_model::{CpuId, Nanos};
use whylate_record::set::SetRecorded;
use whylate_stats::outcomes::Outcomes;

use crate::beside::{Other, sentence};
use crate::host::{Taken, missed_without};
use crate::rows::{Filled, misses, row};

/// Causes that are told.
const MOST_CAUSES: usize = 3;
/// The host is behind misses where without it so much of them is gone.
const MOSTLY: f64 = 0.5;

/// What a run knows of the missed deadlines of a thread.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    /// The share of missed ones, of all that were judged.
    pub(crate) here: Here,
    /// Missed ones.
    pub(crate) missed: u64,
    /// What they are named after, most frequent first.
    pub(crate) causes: Vec<(String, u64)>,
    /// What the host took; none where that is not known.
    pub(crate) host: Option<OfHost>,
    /// What interrupts, softirqs, faults, signals and the kernel's ways in and out took of a job; none
    /// without a job.
    pub(crate) interrupts: Option<Spread>,
    /// How late jobs were released that did not wait for the one before; none without one.
    pub(crate) released: Option<Spread>,
    /// Of the jobs that were done, those charged with more than a reservation.
    pub(crate) charged: Option<Charged>,
}

/// What the host took, and what would be left without.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfHost {
    pub(crate) taken: Taken,
    /// The share of missed ones without what it took.
    pub(crate) without: Here,
    /// Missed ones without.
    pub(crate) still_missed: u64,
}

/// The middle and the end of some times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) median: Nanos,
    pub(crate) most: Nanos,
}

/// Jobs and their reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charged {
    /// What is reserved.
    pub(crate) budget: Nanos,
    /// Jobs that took more of it than there is, with what the host and interrupts took.
    pub(crate) over: u64,
    /// Of these, jobs that the host alone drove over it.
    pub(crate) by_host: u64,
    /// All that were done.
    pub(crate) jobs: u64,
    /// The kernel's own count of overruns, where it was asked.
    pub(crate) overruns: Option<u64>,
}

impl Facts {
    /// Of one thread of a part on one CPU; none where none of its deadlines was judged.
    pub(crate) fn of(
        set: &SetRecorded,
        jobs: &[StoredJob],
        index: usize,
        (cpu, budget): (CpuId, Option<Nanos>),
    ) -> Option<Self> {
        let run = &set.recorded.run;
        let thread = run.threads.get(index)?;
        let here = misses(thread)?;
        let own: Vec<&StoredJob> =
            jobs.iter().filter(|job| usize::from(job.thread) == index).collect();
        // A run knows all of its jobs, or nothing is made of some of them.
        let judged = here.n.unwrap_or_default();
        let all = own.len() as u64 == judged;
        let host = Taken::of(set, cpu).zip(set.host.as_ref()).filter(|_| all);
        let host = host.map(|(taken, stretches)| {
            let here: Vec<_> = stretches.iter().copied().filter(|of| of.cpu == cpu).collect();
            OfHost::of(taken, &missed_without(&own, &here, budget))
        });
        let done = || own.iter().filter(|job| job.done.is_some());
        let traced = run.evidence.trace.is_some();
        let interrupts = done().map(|job| job.interrupts);
        Some(Self {
            missed: thread.deadlines.as_ref().map_or(0, |of| of.misses),
            here,
            causes: causes(thread),
            host,
            interrupts: Spread::of(interrupts.collect()).filter(|_| traced),
            released: Spread::of(releases(&own, traced, set)),
            charged: budget.filter(|_| traced).map(|budget| {
                let with = |job: &StoredJob| job.received.0 + job.interrupts.0 + job.host.0;
                let over = done().filter(|job| with(job) > budget.0);
                let by_host =
                    over.clone().filter(|job| job.received.0 + job.interrupts.0 <= budget.0);
                Charged {
                    budget,
                    over: over.count() as u64,
                    by_host: by_host.count() as u64,
                    jobs: done().count() as u64,
                    overruns: thread.overruns,
                }
            }),
        })
    }

    /// A row of a paper's table, with the sentence of `clauses` before what is known of every thread.
    pub(crate) fn row(&self, what: &str, clauses: impl IntoIterator<Item = Option<String>>) -> Row {
        let ends = [self.of_the_host(), Some(self.named())];
        let mut row = row(what, sentence(clauses.into_iter().chain(ends))).here(self.here.clone());
        let of = self.host.as_ref().filter(|of| of.still_missed != self.missed);
        row.without_host = of.map(|of| of.without.clone());
        row
    }

    /// How the share stands to another one.
    pub(crate) fn beside(&self, other: Option<&Other>) -> Option<String> {
        Some(other?.told(&self.here))
    }

    /// What the misses are named after; that there was none is said, too.
    pub(crate) fn named(&self) -> String {
        let causes = self.causes.iter().take(MOST_CAUSES);
        let causes: Vec<String> =
            causes.map(|(cause, misses)| format!("{cause} ({misses})")).collect();
        match (self.missed, causes.as_slice()) {
            (0, _) => "no deadline was missed".to_owned(),
            (missed, []) => format!("what made {missed} of them late is not known"),
            (_, causes) => format!("missed because of {}", causes.join(", ")),
        }
    }

    /// Time without a kernel event, and what that cost.
    pub(crate) fn of_the_host(&self) -> Option<String> {
        let Some(OfHost { taken, still_missed, .. }) = &self.host else {
            return (self.missed > 0)
                .then(|| "how much time has no kernel event is not known".to_owned());
        };
        if taken.stretches == 0 {
            return Some("no time without a kernel event was seen".to_owned());
        }
        let (share, longest) = (in_unit(taken.share, Unit::Share), taken.longest);
        // It is seen only while a thread has the CPU.
        let took =
            format!("{share} of the time or more has no kernel event, at most {longest} at once");
        let (missed, judged) = (self.missed, self.here.n.unwrap_or_default());
        // Which share that is, with its interval, stands in the row below the figure.
        let left = || format!("without that time {still_missed} of {judged} would be missed");
        let gone = missed.saturating_sub(*still_missed) as f64;
        Some(match missed {
            0 => format!("{took}, which cost no deadline"),
            _ if *still_missed >= missed => format!("{took}: no miss is for that alone"),
            _ if gone >= MOSTLY * missed as f64 => {
                format!("mostly time without a kernel event: {took}, and {}", left())
            }
            _ => format!("{took}; {}", left()),
        })
    }
}

impl OfHost {
    fn of(taken: Taken, missed: &[bool]) -> Self {
        let mut outcomes = Outcomes::default();
        for of in missed {
            outcomes.add(*of);
        }
        let (still_missed, judged) = outcomes.counts();
        let without = Here {
            value: still_missed as f64 / (judged as f64).max(1.0),
            unit: Unit::Share,
            interval: Some(outcomes.interval()),
            n: Some(judged),
        };
        Self { taken, without, still_missed }
    }
}

impl Spread {
    pub(crate) fn of(mut times: Vec<Nanos>) -> Option<Self> {
        times.sort_unstable();
        Some(Self { median: *times.get(times.len() / 2)?, most: *times.last()? })
    }
}

fn causes(thread: &ThreadSummary) -> Vec<(String, u64)> {
    let causes = thread.deadlines.iter().flat_map(|of| &of.causes);
    causes.map(|of| (of.cause.to_string(), of.misses)).collect()
}

/// How late the jobs were released that found their thread asleep: by the time that waking it took
/// where the trace tells, else by its first reading.
fn releases(jobs: &[&StoredJob], traced: bool, set: &SetRecorded) -> Vec<Nanos> {
    let hz = set.recorded.run.clock.hz;
    let mut before = None;
    let mut late = Vec::new();
    for job in jobs {
        let asleep = before.is_none_or(|done| done <= job.release);
        if job.verdict != Verdict::Skipped && asleep {
            let woke = job.woke.map(|woke| woke.since(job.release).to_nanos(hz));
            late.extend(woke.map(|woke| if traced { job.waking.min(woke) } else { woke }));
        }
        before = job.done.or(before);
    }
    late
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn here(missed: u64, judged: u64) -> Here {
        let (missed, all) = (missed as f64, judged as f64);
        let interval = Some(whylate_stats::share::interval(missed, all));
        Here { value: missed / all, unit: Unit::Share, interval, n: Some(judged) }
    }

    pub(crate) fn facts(missed: u64, judged: u64) -> Facts {
        Facts {
            here: here(missed, judged),
            missed,
            causes: Vec::new(),
            host: None,
            interrupts: None,
            released: None,
            charged: None,
        }
    }

    fn of_host(share: f64, still_missed: u64, judged: u64) -> OfHost {
        let taken = Taken { share, stretches: u64::from(share > 0.0), longest: Nanos(9_000_000) };
        OfHost { taken, without: here(still_missed, judged), still_missed }
    }

    #[test]
    fn what_is_said_of_the_host_follows_from_what_it_took() {
        for (missed, host, words, never) in [
            (40, Some(of_host(0.03, 3, 400)), "mostly time without a kernel event: 3.0", "cost no"),
            (40, Some(of_host(0.03, 30, 400)), "without that time 30 of 400", "mostly"),
            (40, Some(of_host(0.03, 40, 400)), "no miss is for that alone", "mostly"),
            (0, Some(of_host(0.03, 0, 400)), "which cost no deadline", "mostly"),
            (40, Some(of_host(0.0, 40, 400)), "no time without a kernel event", "mostly"),
            (40, None, "is not known", "took"),
        ] {
            let facts = Facts { host, ..facts(missed, 400) };
            let said = facts.of_the_host().unwrap();
            assert!(said.contains(words), "{words}: {said}");
            let never = never == "took" || !said.contains(never);
            assert!(never, "{said}");
        }
        assert_eq!(facts(0, 400).of_the_host(), None, "nothing to explain");
    }

    #[test]
    fn the_number_without_the_host_stands_in_the_row_where_it_is_another_one() {
        let with = Facts { host: Some(of_host(0.03, 3, 400)), ..facts(40, 400) };
        let row = with.row("missed", []);
        assert!((row.without_host.unwrap().value - 3.0 / 400.0).abs() < 1e-12);
        assert!(row.why.contains("3 of 400"), "{}", row.why);
        let same = Facts { host: Some(of_host(0.03, 40, 400)), ..facts(40, 400) };
        assert_eq!(same.row("missed", []).without_host, None);
    }

    #[test]
    fn misses_without_a_name_are_not_called_none() {
        assert_eq!(facts(0, 10).named(), "no deadline was missed");
        assert!(facts(3, 10).named().contains("not known"));
        let causes = vec![("host".to_owned(), 2), ("other".to_owned(), 1)];
        let named = Facts { causes, ..facts(3, 10) }.named();
        assert_eq!(named, "missed because of host (2), other (1)");
    }

    #[test]
    fn a_row_says_how_it_stands_to_the_paper_and_to_its_control() {
        let (paper, control) =
            (Other::counted(142, 285), Other::measured("control 1", &here(3, 400)));
        let few = facts(5, 400);
        let told = few.beside(Some(&paper)).unwrap();
        assert!(told.starts_with("less than the paper's 142 of 285"), "{told}");
        let told = few.beside(control.as_ref()).unwrap();
        assert!(told.starts_with("no difference from control 1"), "{told}");
        assert_eq!(few.beside(None), None);
    }
}
