//! Which cause took another share of the time on the other side.
//!
//! From the single gaps of both sides, in blocks of time: the shares of each cause are those of the gaps named
//! after it. The cause that is named is one of several, so its interval is one of as many that hold together: by
//! itself it would be that of whatever chance moved furthest. Of those whose intervals leave out that nothing changed
//! it is the one that changed most: where the largest change is one that scatters, a smaller one may be shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use whylate_model::cause::{Cause, STORED_NO_EVENT};
use whylate_model::run::Run;
use whylate_model::{Nanos, Ticks};
use whylate_stats::difference::{self, RESAMPLES};

use super::load::Loaded;
use super::pair::{SEED, number};
use super::{NumberDifference, Verdict};
use crate::merge::above::{rows, tables};

/// Blocks of time that each recording is cut into.
const BLOCKS: usize = 60;
/// Causes that are looked at, from the largest change on: each takes its resamples.
const MOST_CAUSES: usize = 64;
/// Gaps of one side that are looked at.
const MOST_GAPS: u64 = 20_000_000;

/// What the causes of lost time say of the difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum CauseChange {
    /// Of the causes whose share of the elapsed time is shown to have changed, the one that changed most.
    Shown {
        /// Which, as it reads in reports.
        cause: String,
        /// What the first screen of a side calls it, where one knows it.
        #[serde(skip)]
        class: Option<String>,
        /// No other cause changed more in the mean. Where one did, its own change is not shown.
        is_largest: bool,
        /// Its share; its interval holds together with those of all other causes.
        share: NumberDifference,
    },
    /// Of no cause is it shown that its share changed.
    NotShown,
    /// The single gaps do not tell.
    NotKnown {
        /// Why.
        reason: String,
    },
}

impl CauseChange {
    /// With the name that reports have for the cause, and what the first screens of these runs, as shown, call it.
    fn with_names(self, no_event: &str, runs: &[Run]) -> Self {
        match self {
            Self::Shown { cause, share, is_largest, .. } => {
                let shown = |run: &Run| run.shown_cause(&cause);
                let differs = |name: &String| *name != cause;
                let cause = match cause.as_str() {
                    STORED_NO_EVENT => no_event.to_owned(),
                    _ => runs.iter().map(shown).find(differs).unwrap_or_else(|| cause.clone()),
                };
                let class = runs.iter().find_map(|run| crate::first::class_named(&cause, run));
                Self::Shown { cause, class, is_largest, share }
            }
            other => other,
        }
    }
}

/// Shares of the time by cause, block by block, one list for each recording.
#[derive(Default)]
struct Blocks(Vec<BTreeMap<String, Vec<f64>>>);

/// What the causes of a series of gaps say; none where a side has no such series.
pub(super) fn changed(
    a: (&[Loaded], &str),
    b: (&[Loaded], &str),
    floor: Nanos,
) -> Option<CauseChange> {
    let is_gap = |(side, name): (&[Loaded], &str)| side.iter().all(|run| run.gaps(name).is_some());
    if !is_gap(a) || !is_gap(b) {
        return None;
    }
    // One name on both sides, whatever each side's steal time bears out: time without an event is one cause.
    let runs = || a.0.iter().chain(b.0).map(|loaded| &loaded.run);
    let borne_out = runs().all(|run| run.no_event() == Cause::Hypervisor);
    let no_event = if borne_out { Cause::Hypervisor } else { Cause::Host }.to_string();
    let read = |(side, name)| Blocks::read(side, name, floor);
    Some(match (read(a), read(b)) {
        (Ok(before), Ok(after)) => {
            let runs: Vec<Run> = runs().map(Run::as_shown).collect();
            most(&before, &after).with_names(&no_event, &runs)
        }
        (Err(reason), _) | (_, Err(reason)) => CauseChange::NotKnown { reason },
    })
}

fn most(before: &Blocks, after: &Blocks) -> CauseChange {
    let names: BTreeSet<&String> = before.names().chain(after.names()).collect();
    let change = |name: &str| {
        let found = [before, after].map(|side| mean(&side.of(name)));
        (found[1] - found[0]).abs()
    };
    let among = names.len();
    let mut names: Vec<(&String, f64)> =
        names.into_iter().map(|name| (name, change(name))).collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown = |(at, (name, _)): (usize, (&String, f64))| {
        let (x, y) = (before.of(name), after.of(name));
        let found = difference::of_means_among(&x, &y, 1.0, among, SEED, RESAMPLES)?;
        let share = found.headline().is_bounded().then(|| number(&x, &y, found))?;
        let is_shown = share.verdict != Verdict::NoDifferenceShown;
        let (cause, class, is_largest) = (name.clone(), None, at == 0);
        is_shown.then_some(CauseChange::Shown { cause, class, is_largest, share })
    };
    names.into_iter().enumerate().take(MOST_CAUSES).find_map(shown).unwrap_or(CauseChange::NotShown)
}

fn mean(side: &[Vec<f64>]) -> f64 {
    let blocks = side.concat();
    blocks.iter().sum::<f64>() / (blocks.len() as f64).max(1.0)
}

impl Blocks {
    fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter().flat_map(BTreeMap::keys)
    }

    /// The blocks of a cause, of each recording.
    fn of(&self, name: &str) -> Vec<Vec<f64>> {
        let blocks = |of: &BTreeMap<String, Vec<f64>>| {
            of.get(name).cloned().unwrap_or_else(|| vec![0.0; BLOCKS])
        };
        self.0.iter().map(blocks).collect()
    }

    fn read(side: &[Loaded], name: &str, floor: Nanos) -> Result<Self, String> {
        let mut all = Self::default();
        for loaded in side {
            let missing = || format!("the tables of {} do not hold all of its stalls", loaded.name);
            let counted = loaded.gaps(name).map_or(0, |gaps| gaps.gaps);
            if counted > MOST_GAPS {
                return Err(format!("{} has too many stalls to look at each", loaded.name));
            }
            let found = all.recordings(loaded, name, floor).ok_or_else(missing)?;
            if found < counted {
                return Err(missing());
            }
        }
        Ok(all)
    }

    /// Adds the recordings of a run; gives how many gaps their tables hold, none where a length is not known.
    fn recordings(&mut self, loaded: &Loaded, name: &str, floor: Nanos) -> Option<u64> {
        let run: &Run = &loaded.run;
        let mut found = 0;
        for (index, (rate, series, listed)) in tables(run).into_iter().enumerate() {
            if !series.iter().any(|series| series == name) {
                continue;
            }
            let origin = run.is_merged().then_some(index as u32);
            let elapsed = loaded.elapsed(name, origin)?;
            let width = (elapsed.0 as f64 / BLOCKS as f64).max(1.0);
            let period_ns = loaded.period_ns(name);
            let mut begin: Option<Ticks> = None;
            let mut shares: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for stored in listed.iter().flat_map(|one| rows(loaded.directory(), one)) {
                if series.get(usize::from(stored.thread)).is_none_or(|series| series != name) {
                    continue;
                }
                found += 1;
                let begin = *begin.get_or_insert(stored.gap.start);
                let length = stored.gap.length().to_nanos(rate);
                if length < floor {
                    continue;
                }
                let at = stored.gap.start.since(begin).to_nanos(rate).0 as f64 / width;
                let cause = stored.cause.as_deref().unwrap_or("not attributed").to_owned();
                let blocks = shares.entry(cause).or_insert_with(|| vec![0.0; BLOCKS]);
                blocks[(at as usize).min(BLOCKS - 1)] +=
                    (length.0 as f64 - period_ns).max(0.0) / width;
            }
            self.0.push(shares);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording in which these causes took such a share of each block, a little more in every third.
    fn recording(causes: &[(&str, f64)]) -> Blocks {
        let wave = |share: f64| {
            (0..BLOCKS).map(|at| share * if at % 3 == 0 { 1.2 } else { 1.0 }).collect()
        };
        let of = causes.iter().map(|(name, share)| ((*name).to_owned(), wave(*share)));
        Blocks(vec![of.collect()])
    }

    #[test]
    fn the_cause_whose_share_changed_most_is_named_with_its_interval() {
        let quiet = recording(&[("interrupt local_timer", 0.02), ("softirq rcu", 0.001)]);
        let hog = ("thread hog (ordinary)", 0.5);
        let loaded = recording(&[("interrupt local_timer", 0.03), hog]);
        let CauseChange::Shown { cause, share, .. } = most(&quiet, &loaded) else {
            panic!("{:?}", most(&quiet, &loaded))
        };
        let (low, high) = share.difference.interval;
        assert_eq!((cause.as_str(), share.verdict), (hog.0, Verdict::ALower));
        assert!(low > 0.4 && high < 0.7 && share.before == 0.0, "{share:?}");
        let CauseChange::Shown { share, .. } = most(&loaded, &quiet) else { panic!("no change") };
        assert_eq!(share.verdict, Verdict::AHigher);
    }

    #[test]
    fn a_smaller_change_is_named_where_the_largest_is_that_of_one_burst() {
        let mut after = recording(&[("interrupt local_timer", 0.03)]);
        let mut burst = vec![0.0; BLOCKS];
        // More in the mean than the timer changed, and all of it at once.
        burst[7] = 0.9;
        after.0[0].insert("thread hog (ordinary)".to_owned(), burst);
        let before = recording(&[("interrupt local_timer", 0.02)]);
        let found = most(&before, &after);
        let CauseChange::Shown { cause, share, is_largest, .. } = found else {
            panic!("{found:?}")
        };
        assert_eq!((&*cause, share.verdict), ("interrupt local_timer", Verdict::ALower));
        assert!(!is_largest, "the hog changed more");
        assert!(share.difference.interval.0 > 0.0, "{share:?}");
        // The one that changed most is named where both are shown.
        let steady =
            recording(&[("interrupt local_timer", 0.03), ("thread hog (ordinary)", 0.015)]);
        let CauseChange::Shown { cause, is_largest, .. } = most(&before, &steady) else {
            panic!("no change")
        };
        assert_eq!((&*cause, is_largest), ("thread hog (ordinary)", true));
    }

    #[test]
    fn a_cause_is_called_as_on_the_first_screen_of_the_run_that_has_it() {
        let runs = [crate::kept::kept("gaps").1.as_shown()];
        let (quiet, loaded) = (recording(&[]), recording(&[("interrupt local_timer", 0.3)]));
        let found = most(&quiet, &loaded).with_names("", &runs);
        let CauseChange::Shown { class, cause, .. } = found else { panic!("{found:?}") };
        assert_eq!((&*cause, class.as_deref()), ("timer tick", Some("timer tick")));
        let found = most(&quiet, &recording(&[("thread of nobody (ordinary)", 0.3)]));
        let found = found.with_names("", &runs);
        let CauseChange::Shown { class, cause, .. } = found else { panic!("{found:?}") };
        assert_eq!((&*cause, class), ("task of nobody (normal)", None));
    }

    #[test]
    fn causes_that_took_the_same_are_not_said_to_have_changed() {
        let one = recording(&[("interrupt local_timer", 0.02), ("softirq rcu", 0.001)]);
        assert_eq!(most(&one, &one), CauseChange::NotShown);
        assert_eq!(most(&Blocks::default(), &Blocks::default()), CauseChange::NotShown);
    }
}
