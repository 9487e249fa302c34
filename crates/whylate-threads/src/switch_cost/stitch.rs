//! The stretches of all runners of one CPU on one line.
//!
//! Pure: stretches in, switches and lost time out.

use whylate_model::{Ticks, TicksDelta};

/// A stretch of CPU time without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Whose.
    pub runner: u32,
    /// First reading.
    pub first: Ticks,
    /// Last reading.
    pub last: Ticks,
}

/// Where one stretch ends and the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// Who ran before.
    pub from: u32,
    /// Who ran afterwards.
    pub to: u32,
    /// Last reading before.
    pub at: Ticks,
    /// First reading afterwards.
    pub until: Ticks,
    /// Who runs afterwards had not run in this trial before: it was on its way into it.
    pub arrival: bool,
}

impl Break {
    /// How long nobody ran.
    #[must_use]
    pub fn length(&self) -> TicksDelta {
        self.until.since(self.at)
    }

    /// Did another runner go on?
    #[must_use]
    pub fn changes_hands(&self) -> bool {
        self.from != self.to
    }

    /// Did another runner go on that was in the trial already? What one that only arrives does
    /// before its first reading is none of the switch.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.changes_hands() && !self.arrival
    }
}

/// Two runners had the CPU at once: then it was not one CPU, or not one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "two runners had the CPU at the same time (counter {at:?}): an affinity was changed, or the \
     counter is not the same for all"
)]
pub struct Overlap {
    /// Where.
    pub at: Ticks,
}

/// The line of one trial.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    stretches: Vec<Stretch>,
    end: Option<Ticks>,
}

impl Line {
    /// Lays the stretches of each runner on one line. What begins at `end` or later is not of the
    /// trial: there runners leave, and leaving is no switch.
    ///
    /// A runner does not notice a break of `unseen` and less. So a turn that short may lie inside the
    /// stretch of another one, and is left out: nobody knows when the CPU changed hands.
    pub fn of(
        by_runner: impl IntoIterator<Item = (u32, Vec<(Ticks, Ticks)>)>,
        end: Ticks,
        unseen: TicksDelta,
    ) -> Result<Self, Overlap> {
        let mut all: Vec<Stretch> = Vec::new();
        for (runner, readings) in by_runner {
            let own = readings.into_iter().filter(|(first, _)| *first < end);
            all.extend(own.map(|(first, last)| Stretch { runner, first, last }));
        }
        all.sort_by_key(|stretch| (stretch.first, stretch.last));
        let mut stretches: Vec<Stretch> = Vec::with_capacity(all.len());
        for next in all {
            match stretches.last() {
                Some(before) if next.first < before.last => {
                    let is_inside = next.last < before.last;
                    if !is_inside || next.last.since(next.first) > unseen {
                        return Err(Overlap { at: next.first });
                    }
                }
                _ => stretches.push(next),
            }
        }
        Ok(Self { stretches, end: Some(end) })
    }

    /// All breaks, in the order of time. None follows a stretch that reached the end of the trial.
    pub fn breaks(&self) -> impl Iterator<Item = Break> + '_ {
        let end = self.end.unwrap_or(Ticks(u64::MAX));
        let mut seen: u64 = self.stretches.first().map_or(0, |first| bit(first.runner));
        self.stretches.windows(2).filter(move |pair| pair[0].last < end).map(move |pair| {
            let to = pair[1].runner;
            let arrival = seen & bit(to) == 0;
            seen |= bit(to);
            Break { from: pair[0].runner, to, at: pair[0].last, until: pair[1].first, arrival }
        })
    }

    /// The breaks between two runners that were in the trial before.
    pub fn switches(&self) -> impl Iterator<Item = Break> + '_ {
        self.breaks().filter(Break::is_switch)
    }

    /// How often the CPU went from one runner to another, arrivals included.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.breaks().filter(Break::changes_hands).count()
    }

    /// How long each runner kept the CPU, of turns that began and ended with a switch. What the host
    /// or an interrupt took meanwhile is in them.
    #[must_use]
    pub fn turns(&self) -> Vec<TicksDelta> {
        let changes: Vec<Break> = self.breaks().filter(Break::changes_hands).collect();
        changes.windows(2).map(|pair| pair[1].at.since(pair[0].until)).collect()
    }

    /// From the first reading of all to the last.
    #[must_use]
    pub fn over(&self) -> TicksDelta {
        let first = self.stretches.first().map(|stretch| stretch.first);
        let last = self.stretches.iter().map(|stretch| stretch.last).max();
        first.zip(last).map_or(TicksDelta(0), |(first, last)| last.since(first))
    }

    /// Time between `begin` and the end of the trial in which nobody ran for longer than `longest`
    /// at once: no switch takes as long, so others had the CPU, or the host. Which is not known here.
    #[must_use]
    pub fn taken(&self, begin: Ticks, longest: TicksDelta) -> TicksDelta {
        let first = self.stretches.first().map(|stretch| stretch.first);
        let last = self.stretches.iter().map(|stretch| stretch.last).max();
        // A stop that lies over the begin or over the end of the trial leaves no break.
        let head = first.map(|first| first.since(begin));
        let tail = last.zip(self.end).map(|(last, end)| end.since(last));
        let breaks = self.breaks().map(|of| of.length()).chain(head).chain(tail);
        breaks.filter(|length| *length > longest).fold(TicksDelta(0), |sum, length| sum + length)
    }

    /// Stretches on it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stretches.len()
    }

    /// Did nobody run?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }
}

/// Runners of a board are fewer than its bits.
fn bit(runner: u32) -> u64 {
    1_u64.checked_shl(runner).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every break was noticed.
    const NONE: TicksDelta = TicksDelta(0);

    fn of(runner: u32, readings: &[(u64, u64)]) -> (u32, Vec<(Ticks, Ticks)>) {
        let readings = readings.iter().map(|(first, last)| (Ticks(*first), Ticks(*last)));
        (runner, readings.collect())
    }

    #[test]
    fn planted_switches_are_found_with_their_exact_times() {
        let line = Line::of(
            [of(0, &[(0, 100), (210, 300)]), of(1, &[(107, 150), (155, 205), (312, 400)])],
            Ticks(1_000),
            NONE,
        )
        .unwrap();
        let switches: Vec<(u32, u32, u64)> =
            line.switches().map(|of| (of.from, of.to, of.length().0)).collect();
        assert_eq!(switches, [(1, 0, 5), (0, 1, 12)], "1 arrives with the first");
        assert_eq!((line.changes(), line.breaks().count()), (3, 4), "one goes on by itself");
        assert_eq!(line.turns(), [TicksDelta(98), TicksDelta(90)]);
        assert_eq!(line.over(), TicksDelta(400));
    }

    #[test]
    fn the_way_into_a_trial_is_no_switch_and_ends_a_turn_all_the_same() {
        // Each arrives over 40 and more, and is switched to in 5.
        let line = Line::of(
            [
                of(0, &[(0, 100), (305, 400)]),
                of(1, &[(140, 200), (405, 500)]),
                of(2, &[(250, 300), (505, 600)]),
            ],
            Ticks(1_000),
            NONE,
        )
        .unwrap();
        assert!(line.switches().all(|of| of.length() == TicksDelta(5)), "{line:?}");
        assert_eq!((line.switches().count(), line.changes()), (3, 5));
        assert_eq!(line.turns(), [60, 50, 95, 95].map(TicksDelta));
        // Long breaks are looked for in arrivals, too.
        assert_eq!(line.taken(Ticks(0), TicksDelta(45)), TicksDelta(50 + 400));
    }

    #[test]
    fn leaving_at_the_end_of_a_trial_is_no_switch() {
        let line = Line::of(
            [of(0, &[(0, 1_001)]), of(1, &[(990, 991), (1_050, 1_060)])],
            Ticks(1_000),
            NONE,
        );
        assert_eq!(line, Err(Overlap { at: Ticks(990) }));
        let line =
            Line::of([of(0, &[(0, 1_001)]), of(1, &[(1_050, 1_060)])], Ticks(1_000), NONE).unwrap();
        assert_eq!((line.switches().count(), line.len()), (0, 1));
    }

    #[test]
    fn a_turn_inside_a_break_that_the_other_did_not_notice_is_no_overlap() {
        let line = |inner: (u64, u64), unseen| {
            let others = [of(0, &[(0, 500), (620, 700)]), of(1, &[inner, (510, 600)])];
            Line::of(others, Ticks(1_000), TicksDelta(unseen))
        };
        let noticed = line((200, 230), 30).unwrap();
        assert_eq!((noticed.len(), noticed.changes()), (3, 2), "it is left out");
        assert_eq!(line((200, 231), 30), Err(Overlap { at: Ticks(200) }), "too long to be missed");
        assert_eq!(line((490, 505), 30), Err(Overlap { at: Ticks(490) }), "it ends outside");
    }

    #[test]
    fn only_breaks_that_no_switch_explains_count() {
        let readings = [(0, 100), (105, 200), (900, 1_000), (1_021, 1_100)];
        let line = Line::of([of(0, &readings)], Ticks(1_101), NONE).unwrap();
        assert_eq!(line.taken(Ticks(0), TicksDelta(20)), TicksDelta(721));
        assert_eq!(line.taken(Ticks(0), TicksDelta(700)), TicksDelta(0));
    }

    #[test]
    fn a_stop_over_an_end_of_a_trial_counts_too() {
        let line = Line::of([of(0, &[(300, 400), (405, 700)])], Ticks(1_000), NONE).unwrap();
        assert_eq!(line.taken(Ticks(0), TicksDelta(20)), TicksDelta(600));
        let whole = Line::of([of(0, &[(1, 400), (405, 1_002)])], Ticks(1_000), NONE).unwrap();
        assert_eq!(whole.taken(Ticks(0), TicksDelta(20)), TicksDelta(0));
    }

    #[test]
    fn a_trial_in_which_nobody_ran_is_empty() {
        let line = Line::of([of(0, &[])], Ticks(10), NONE).unwrap();
        assert!(line.is_empty() && line.turns().is_empty());
        assert_eq!(
            (line.over(), line.taken(Ticks(0), TicksDelta(0))),
            (TicksDelta(0), TicksDelta(0))
        );
    }
}
