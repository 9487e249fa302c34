//! The packets of two captures, each with its like: a pure function of what was seen when.
//!
//! A packet that holds what no other one within the window holds is matched with certainty. Of several
//! with the same content nobody knows which is which: they are counted, in order, and give no time. What
//! one side saw before the other began to capture, or after it ended, is not judged.

use std::collections::HashMap;

use whylate_model::Nanos;

/// A packet as one side saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) at: u64,
    pub(super) digest: u128,
    pub(super) pair: u64,
}

/// A way through the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Seen before the box first.
    There,
    /// Seen behind it first.
    Back,
}

/// What became of the packets of one way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OfWay {
    /// When it went in, and how long after it came out, both in nanoseconds: matched with certainty.
    pub(super) times: Vec<(u64, u64)>,
    /// Matched, but not told from others with the same content: without times.
    pub(super) ambiguous: u64,
    /// Went in, and never came out.
    pub(super) lost: u64,
    /// Came out more often than they went in.
    pub(super) duplicates: u64,
    /// Came out, and never went in.
    pub(super) only_out: u64,
    /// Came out before they went in, against the others of their kind: the clocks do not agree.
    pub(super) backwards: u64,
    /// Came out after a packet that had gone in later.
    pub(super) reordered: u64,
}

/// Two captures, matched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Matched {
    pub(super) there: OfWay,
    pub(super) back: OfWay,
    /// Seen on one side while the other one did not capture.
    pub(super) unjudged: u64,
}

/// One content, as both sides saw it within one window.
#[derive(Default)]
struct Group {
    before: Vec<u32>,
    behind: Vec<u32>,
}

/// Who goes which way: how often each pair of hosts was seen there first, and how often the other way.
#[derive(Default)]
struct Ways(HashMap<u64, (u64, u64)>);

impl Ways {
    fn note(&mut self, pair: u64, way: Way) {
        let counts = self.0.entry(pair).or_default();
        match way {
            Way::There => counts.0 += 1,
            Way::Back => counts.1 += 1,
        }
    }

    /// The way that most of them went; none of a pair of which nothing was matched.
    fn of(&self, pair: u64) -> Option<Way> {
        let (there, back) = *self.0.get(&pair)?;
        Some(if there >= back { Way::There } else { Way::Back })
    }
}

impl Matched {
    fn way(&mut self, way: Way) -> &mut OfWay {
        match way {
            Way::There => &mut self.there,
            Way::Back => &mut self.back,
        }
    }
}

/// Matches what was seen before the box with what was seen behind it. Packets with the same content that
/// were seen further apart than the window are different ones.
pub(super) fn matched(before: &[Seen], behind: &[Seen], window: Nanos) -> Matched {
    let groups = groups(before, behind, window);
    let mut ways = Ways::default();
    for group in &groups {
        if let ([first], [then]) = (&group.before[..], &group.behind[..]) {
            let (first, then) = (before[*first as usize], behind[*then as usize]);
            if first.at != then.at {
                ways.note(first.pair, if first.at < then.at { Way::There } else { Way::Back });
            }
        }
    }
    let (common, mut matched) = (Common::of(before, behind), Matched::default());
    for group in groups {
        count(&mut matched, &group, (before, behind), &ways, common);
    }
    for of in [&mut matched.there, &mut matched.back] {
        of.times.sort_unstable();
        of.reordered = reordered(&of.times);
    }
    matched
}

/// When both sides captured.
#[derive(Debug, Clone, Copy)]
struct Common {
    from: u64,
    to: u64,
}

impl Common {
    fn of(before: &[Seen], behind: &[Seen]) -> Self {
        let first = |side: &[Seen]| side.iter().map(|seen| seen.at).min().unwrap_or(u64::MAX);
        let last = |side: &[Seen]| side.iter().map(|seen| seen.at).max().unwrap_or(0);
        Self { from: first(before).max(first(behind)), to: last(before).min(last(behind)) }
    }

    fn has(&self, at: u64) -> bool {
        (self.from..=self.to).contains(&at)
    }
}

/// Packets of the same content, those of each window apart.
fn groups(before: &[Seen], behind: &[Seen], window: Nanos) -> Vec<Group> {
    let mut all: Vec<(u128, u64, bool, u32)> = Vec::with_capacity(before.len() + behind.len());
    for (side, seen) in [(false, before), (true, behind)] {
        all.extend((0_u32..).zip(seen).map(|(index, of)| (of.digest, of.at, side, index)));
    }
    all.sort_unstable();
    let (mut groups, mut last): (Vec<Group>, Option<(u128, u64)>) = (Vec::new(), None);
    for (digest, at, is_behind, index) in all {
        let same = last.is_some_and(|(of, then)| of == digest && at - then <= window.0);
        if !same {
            groups.push(Group::default());
        }
        last = Some((digest, at));
        if let Some(group) = groups.last_mut() {
            if is_behind { group.behind.push(index) } else { group.before.push(index) }
        }
    }
    groups
}

fn count(
    into: &mut Matched,
    group: &Group,
    (before, behind): (&[Seen], &[Seen]),
    ways: &Ways,
    common: Common,
) {
    let firsts = || group.before.iter().map(|index| before[*index as usize]);
    let thens = || group.behind.iter().map(|index| behind[*index as usize]);
    let Some(any) = firsts().chain(thens()).next() else { return };
    // Of a pair of which nothing was matched, the side that saw it is the side it came in by.
    let only_behind = group.before.is_empty();
    let way = ways.of(any.pair).unwrap_or(if only_behind { Way::Back } else { Way::There });
    let (inside, outside): (Vec<Seen>, Vec<Seen>) = match way {
        Way::There => (firsts().collect(), thens().collect()),
        Way::Back => (thens().collect(), firsts().collect()),
    };
    let unjudged = |seen: &[Seen]| seen.iter().filter(|of| !common.has(of.at)).count() as u64;
    match (&inside[..], &outside[..]) {
        ([first], [then]) => {
            let of = into.way(way);
            match then.at.checked_sub(first.at) {
                Some(took) => of.times.push((first.at, took)),
                None => of.backwards += 1,
            }
        }
        (lost, []) => {
            let beyond = unjudged(lost);
            into.unjudged += beyond;
            into.way(way).lost += lost.len() as u64 - beyond;
        }
        ([], only) => {
            let beyond = unjudged(only);
            into.unjudged += beyond;
            into.way(way).only_out += only.len() as u64 - beyond;
        }
        ([first], several) => {
            // It went in once: the first that came out is it, and the others are copies.
            let then = several.iter().map(|of| of.at).find(|at| *at >= first.at);
            let of = into.way(way);
            match then {
                Some(then) => of.times.push((first.at, then - first.at)),
                None => of.backwards += 1,
            }
            of.duplicates += several.len() as u64 - 1;
        }
        (several, came) => {
            let (went, came) = (several.len() as u64, came.len() as u64);
            let of = into.way(way);
            of.ambiguous += went.min(came);
            of.lost += went.saturating_sub(came);
            of.duplicates += came.saturating_sub(went);
        }
    }
}

/// Of packets in the order in which they went in, those that came out after a later one (RFC 4737: its
/// number is below the highest before it).
fn reordered(times: &[(u64, u64)]) -> u64 {
    let mut came: Vec<(u64, usize)> =
        times.iter().enumerate().map(|(number, (at, took))| (at + took, number)).collect();
    came.sort_unstable();
    let (mut highest, mut count) = (0, 0);
    for (_, number) in came {
        if number < highest {
            count += 1;
        }
        highest = highest.max(number);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Nanos = Nanos(1_000_000);

    fn seen(at: u64, digest: u128, pair: u64) -> Seen {
        Seen { at, digest, pair }
    }

    /// A thousand packets a microsecond apart, from host 7 to another.
    fn stream() -> Vec<Seen> {
        (0..1_000).map(|n| seen(n * 1_000, u128::from(n), 7)).collect()
    }

    fn later(of: &[Seen], by: u64) -> Vec<Seen> {
        of.iter().map(|one| Seen { at: one.at + by, ..*one }).collect()
    }

    #[test]
    fn a_planted_latency_is_found_for_each_packet_in_both_ways() {
        let there = stream();
        let back: Vec<Seen> =
            (0..500).map(|n| seen(n * 2_000 + 17, 10_000 + u128::from(n), 8)).collect();
        let before: Vec<Seen> = [there.clone(), later(&back, 3_000)].concat();
        let behind: Vec<Seen> = [later(&there, 2_500), back.clone()].concat();
        let found = matched(&before, &behind, WINDOW);
        assert_eq!(found.there.times.len(), 1_000);
        assert!(found.there.times.iter().all(|(_, took)| *took == 2_500));
        assert_eq!(found.back.times.len(), 500);
        assert!(found.back.times.iter().all(|(_, took)| *took == 3_000));
        for of in [&found.there, &found.back] {
            assert_eq!((of.lost, of.duplicates, of.only_out, of.reordered), (0, 0, 0, 0));
        }
        assert_eq!(found.unjudged, 0);
    }

    #[test]
    fn planted_losses_and_duplicates_are_counted_exactly() {
        let before = stream();
        let mut behind: Vec<Seen> = later(&before, 2_500);
        // Every tenth but the last is gone, and seven are there twice.
        behind.retain(|of| of.digest % 10 != 3);
        let copies: Vec<Seen> =
            behind.iter().take(7).map(|of| Seen { at: of.at + 400, ..*of }).collect();
        behind.extend(copies);
        behind.push(seen(500_000, 77_777, 7));
        let found = matched(&before, &behind, WINDOW);
        assert_eq!((found.there.lost, found.there.duplicates, found.there.only_out), (100, 7, 1));
        assert_eq!(found.there.times.len(), 900);
        assert!(found.there.times.iter().all(|(_, took)| *took == 2_500));
        assert_eq!(found.back, OfWay::default());
    }

    #[test]
    fn packets_with_the_same_content_give_no_time_within_the_window_and_do_beyond_it() {
        let before: Vec<Seen> = (0..10).map(|n| seen(n * 1_000, 5, 7)).collect();
        let found = matched(&before, &later(&before, 300), WINDOW);
        assert_eq!((found.there.times.len(), found.there.ambiguous), (0, 10));
        let apart: Vec<Seen> = (0..10).map(|n| seen(n * 10_000_000, 5, 7)).collect();
        let found = matched(&apart, &later(&apart, 300), WINDOW);
        assert_eq!((found.there.times.len(), found.there.ambiguous), (10, 0));
    }

    #[test]
    fn what_one_side_saw_while_the_other_did_not_capture_is_not_judged() {
        let before = stream();
        let behind: Vec<Seen> = later(&before, 100).into_iter().skip(200).take(300).collect();
        let found = matched(&before, &behind, WINDOW);
        assert_eq!((found.there.times.len(), found.there.lost), (300, 0));
        assert_eq!(found.unjudged, 700);
    }

    #[test]
    fn a_reordered_packet_is_found_and_a_clock_that_goes_ahead_is_told() {
        let before = stream();
        let mut behind = later(&before, 100);
        behind[10].at += 5_500;
        assert_eq!(matched(&before, &behind, WINDOW).there.reordered, 1);
        let mut ahead = later(&before, 100);
        ahead[10].at = before[10].at - 40;
        let found = matched(&before, &ahead, WINDOW);
        assert_eq!((found.there.backwards, found.there.times.len()), (1, 999));
    }
}
