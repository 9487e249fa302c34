//! From counts to causes: which of them strike slow requests oftener than ordinary ones, and oftener
//! than chance.
//!
//! A long window meets more of everything, whatever made it long: a tick lies in it by chance. So a
//! cause is held against two others: the ordinary requests (METHOD's lift), and windows as long as the
//! slow requests' that lie at other times. It is claimed only where both ratios lie above
//! [`LIFT_LEAST`] with their whole intervals, and where at least [`EPISODES_LEAST`] distinct episodes
//! struck slow requests: one stall of a second slows a thousand requests and is one event.
//!
//! Intervals are percentile ends of a bootstrap over blocks of time, and over pairs of neighbouring
//! blocks, whichever is wider; all causes tried hold together with 95 % (Bonferroni).

use std::collections::BTreeMap;

use whylate_model::cause::Cause;
use whylate_model::tail::{End, Lift, Tail, TailCause, TailVerdict};
use whylate_stats::rng::Rng;

use super::Scope;
use super::counts::{Bin, Cells, Counts, bin, least};
use super::join::Key;

/// A ratio that is no more than this is nobody's concern.
pub const LIFT_LEAST: f64 = 2.0;
/// Distinct episodes that must have struck slow requests.
pub const EPISODES_LEAST: u64 = 5;
/// Slow requests without which nothing is said.
const SLOW_LEAST: u64 = 10;
/// Windows elsewhere without which nothing is said of chance.
const ELSEWHERE_LEAST: u64 = 20;
/// The percentile from which on requests are slow, and the one where there are [`MANY`].
const USUAL: f64 = 99.0;
const USUAL_OF_MANY: f64 = 99.9;
const MANY: u64 = 100_000;
/// Draws of the bootstrap.
const DRAWS: usize = 2_000;
/// Error of all intervals together.
const ERROR: f64 = 0.05;
/// Fewer groups of blocks than this say too little of how they differ.
const FEWEST_GROUPS: usize = 15;
/// Causes that are told.
const MOST_TOLD: usize = 16;

/// Where the slow requests begin, and what strikes one.
#[derive(Debug, Clone, Copy)]
struct Slow {
    from: Bin,
    strike: Bin,
}

/// Counts of one block, or of several.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    slow: f64,
    ordinary: f64,
    elsewhere: f64,
}

/// What came of the counts. How the ends were looked at is not known here.
pub(super) fn judge(
    counts: &Counts,
    causes: &[(End, Cause)],
    percent: Option<f64>,
    scope: Scope,
) -> Tail {
    let usual = if counts.requests() >= MANY { USUAL_OF_MANY } else { USUAL };
    let percent = percent.unwrap_or(usual);
    let median = counts.quantile(0.5);
    let from = slow_from(counts, percent);
    let strike = bin_from((least(from) - least(median)).0.div_ceil(2));
    let slow = Slow { from, strike };
    let time = |bin: Bin| least(bin).to_nanos(scope.rate);
    let mut tail = Tail {
        percent,
        slow_from: time(from),
        median: time(median),
        strike: time(strike),
        requests: counts.requests(),
        slow: counts.from(from),
        not_explained: 0,
        left_aside: 0,
        by_whylate: 0,
        ends: Vec::new(),
        causes: Vec::new(),
        causes_left_out: 0,
        tried: 0,
        blocks: counts.blocks.len() as u64,
        episodes_least: EPISODES_LEAST,
        lift_least: LIFT_LEAST,
        verdict: TailVerdict::TooFew,
    };
    let struck = counts.blocks.iter().flat_map(|block| &block.most);
    let struck = struck.filter(|((response, most), _)| *response >= from && *most >= strike);
    tail.not_explained = tail.slow.saturating_sub(struck.map(|(_, count)| count).sum());
    if tail.slow < SLOW_LEAST || from <= median {
        return tail;
    }
    let episodes = by_key(&counts.episodes, |response| response >= slow.from, slow.strike);
    let bases: Vec<Sums> = counts.blocks.iter().map(|block| bases(block, slow)).collect();
    let tried: Vec<Key> = episodes
        .iter()
        .filter(|(key, count)| {
            **count >= EPISODES_LEAST && claimable(&causes[usize::from(key.0)].1)
        })
        .map(|(key, _)| *key)
        .collect();
    tail.tried = tried.len() as u64;
    let draws = Draws::new(counts.blocks.len(), scope.seed);
    for (index, (end, cause)) in causes.iter().enumerate() {
        let key = Key(index as u16);
        let of = Of::count(counts, key, slow);
        if of.total().slow < 1.0 {
            continue;
        }
        let mut told = of.told(&bases, *end, cause.clone());
        told.episodes = episodes.get(&key).copied().unwrap_or(0);
        told.took = time(of.took);
        if tried.contains(&key) {
            let lifts = draws.lifts(&of.blocks, &bases, tried.len());
            told.lift = Some(lifts.0);
            told.over_chance = told.by_chance.map(|_| lifts.1);
            let above = |lift: Option<Lift>| lift.is_some_and(|lift| lift.low > LIFT_LEAST);
            told.claimed = above(told.lift) && above(told.over_chance);
        }
        tail.causes.push(told);
    }
    tail.causes.sort_by_key(|cause| std::cmp::Reverse((cause.claimed, cause.slow)));
    tail.causes_left_out = tail.causes.len().saturating_sub(MOST_TOLD) as u64;
    tail.causes.truncate(MOST_TOLD);
    tail.verdict = match (tail.claimed().count(), tail.tried) {
        (0, 0) => TailVerdict::NothingStruck,
        (0, _) => TailVerdict::NoneStands,
        _ => TailVerdict::Claimed,
    };
    tail
}

/// What is not known is no cause, and what the measurement does itself is none of the system's.
fn claimable(cause: &Cause) -> bool {
    !matches!(cause, Cause::TraceLost | Cause::Whylate)
}

/// The lowest bin from which on there are no more requests than are slow; with one bin more where that
/// would be none.
fn slow_from(counts: &Counts, percent: f64) -> Bin {
    let slow = (counts.requests() as f64 * (1.0 - percent / 100.0)).ceil() as u64;
    let mut from = counts.quantile(percent / 100.0);
    if counts.from(from) > slow && counts.from(from + 1) > 0 {
        from += 1;
    }
    from
}

/// The lowest bin whose times are all at least this.
fn bin_from(ticks: u64) -> Bin {
    let at = bin(whylate_model::TicksDelta(ticks));
    at + Bin::from(least(at).0 < ticks)
}

fn bases(block: &super::counts::Block, slow: Slow) -> Sums {
    let from = usize::from(slow.from);
    let sum = |counts: &[u32]| counts.iter().map(|count| f64::from(*count)).sum();
    Sums {
        slow: sum(&block.requests[from..]),
        ordinary: sum(&block.requests[..from]),
        elsewhere: sum(&block.elsewhere[from..]),
    }
}

/// Counts by cause, of cells whose response is of this kind and whose overlap strikes.
fn by_key(cells: &Cells, of: impl Fn(Bin) -> bool, strike: Bin) -> BTreeMap<Key, u64> {
    let mut sums = BTreeMap::new();
    for ((key, response, overlap), count) in cells {
        if of(*response) && *overlap >= strike {
            *sums.entry(*key).or_default() += count;
        }
    }
    sums
}

/// How one cause struck, by block.
struct Of {
    blocks: Vec<Sums>,
    took: Bin,
}

impl Of {
    fn count(counts: &Counts, key: Key, slow: Slow) -> Self {
        let mut took = BTreeMap::<Bin, u64>::new();
        let all = (key, 0, 0)..=(key, Bin::MAX, Bin::MAX);
        let blocks = counts.blocks.iter().map(|block| {
            let mut sums = Sums::default();
            for ((_, response, overlap), count) in block.struck.range(all.clone()) {
                if *overlap < slow.strike {
                    continue;
                }
                if *response >= slow.from {
                    sums.slow += *count as f64;
                    *took.entry(*overlap).or_default() += count;
                } else {
                    sums.ordinary += *count as f64;
                }
            }
            for ((_, response, overlap), count) in block.chance.range(all.clone()) {
                if *response >= slow.from && *overlap >= slow.strike {
                    sums.elsewhere += *count as f64;
                }
            }
            sums
        });
        let blocks: Vec<Sums> = blocks.collect();
        let half = took.values().sum::<u64>().div_ceil(2);
        let mut below = 0;
        let middle = took.iter().find(|(_, count)| {
            below += **count;
            below >= half
        });
        let took = middle.map_or(0, |(bin, _)| *bin);
        Self { blocks, took }
    }

    fn total(&self) -> Sums {
        total(&self.blocks)
    }

    fn told(&self, bases: &[Sums], end: End, cause: Cause) -> TailCause {
        let (struck, all) = (self.total(), total(bases));
        let enough = all.elsewhere >= ELSEWHERE_LEAST as f64;
        TailCause {
            end,
            cause,
            episodes: 0,
            slow: struck.slow as u64,
            of_slow: struck.slow / all.slow.max(1.0),
            of_ordinary: struck.ordinary / all.ordinary.max(1.0),
            by_chance: enough.then(|| struck.elsewhere / all.elsewhere),
            lift: None,
            over_chance: None,
            took: whylate_model::Nanos(0),
            claimed: false,
        }
    }
}

fn total(blocks: &[Sums]) -> Sums {
    blocks.iter().fold(Sums::default(), Sums::and)
}

impl Sums {
    fn and(mut self, other: &Self) -> Self {
        self.slow += other.slow;
        self.ordinary += other.ordinary;
        self.elsewhere += other.elsewhere;
        self
    }

    /// How much oftener the slow ones were struck than the ordinary ones, and than those elsewhere.
    fn lifts(struck: Self, all: Self) -> (f64, f64) {
        // Half a request each, so that none is never and all is never always.
        let share = |struck: f64, all: f64| (struck + 0.5) / (all + 1.0);
        let slow = share(struck.slow, all.slow);
        (slow / share(struck.ordinary, all.ordinary), slow / share(struck.elsewhere, all.elsewhere))
    }
}

/// Blocks drawn with replacement, the same for every cause.
struct Draws {
    blocks: usize,
    seed: u64,
}

impl Draws {
    fn new(blocks: usize, seed: u64) -> Self {
        Self { blocks, seed }
    }

    /// Both lifts of a cause with intervals that hold for `tried` causes together.
    fn lifts(&self, struck: &[Sums], all: &[Sums], tried: usize) -> (Lift, Lift) {
        let (ratio, over) = Sums::lifts(total(struck), total(all));
        let mut lifts = [ratio, over].map(|ratio| Lift { ratio, low: ratio, high: ratio });
        let mut width = 1;
        while width == 1 || self.blocks / width >= FEWEST_GROUPS {
            let grouped =
                |blocks: &[Sums]| -> Vec<Sums> { blocks.chunks(width).map(total).collect() };
            let ends = self.ends(&grouped(struck), &grouped(all), tried);
            for (lift, (low, high)) in lifts.iter_mut().zip(ends) {
                (lift.low, lift.high) = (lift.low.min(low), lift.high.max(high));
            }
            width *= 2;
        }
        let [lift, over] = lifts;
        (lift, over)
    }

    fn ends(&self, struck: &[Sums], all: &[Sums], tried: usize) -> [(f64, f64); 2] {
        let blocks = struck.len();
        if blocks < 2 {
            return [(0.0, f64::INFINITY); 2];
        }
        let mut rng = Rng::stream(self.seed, blocks as u64);
        let mut drawn = [Vec::with_capacity(DRAWS), Vec::with_capacity(DRAWS)];
        for _ in 0..DRAWS {
            let (mut of, mut base) = (Sums::default(), Sums::default());
            for _ in 0..blocks {
                let at = rng.below(blocks as u64) as usize;
                (of, base) = (of.and(&struck[at]), base.and(&all[at]));
            }
            let (lift, over) = Sums::lifts(of, base);
            drawn[0].push(lift);
            drawn[1].push(over);
        }
        drawn.map(|mut values| {
            values.sort_unstable_by(f64::total_cmp);
            let outside = (ERROR / 2.0 / tried.max(1) as f64 * DRAWS as f64) as usize;
            (values[outside], values[DRAWS - 1 - outside])
        })
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

    use super::super::join::{Hit, Over};
    use super::*;

    const SCOPE: Scope = Scope {
        lanes: 1,
        start: Ticks(0),
        duration: Nanos(1),
        longest: Nanos(1),
        rate: Hertz(1e9),
        seed: 1,
    };

    fn counts(blocks: usize, responses: impl IntoIterator<Item = u64>) -> Counts {
        let mut counts = Counts::new(blocks);
        responses.into_iter().for_each(|ticks| counts.request(0, TicksDelta(ticks), &[]));
        counts
    }

    #[test]
    fn slow_are_no_more_than_the_share_asked_for_where_times_can_tell_them_apart() {
        assert_eq!(slow_from(&counts(1, 1..=10), 90.0), 10);
        assert_eq!(slow_from(&counts(1, 1..=10), 95.0), 10);
        assert_eq!(slow_from(&counts(1, 1..=10), 85.0), 9);
        assert_eq!(slow_from(&counts(1, 1..=10), 80.0), 9);
        // Twelve lie in the bin of the percentile and above it, nine above it.
        assert_eq!(slow_from(&counts(1, 1..=100), 90.0), bin(TicksDelta(92)));
        assert_eq!(slow_from(&counts(1, [20; 100]), 90.0), 20);
    }

    #[test]
    fn the_bin_of_a_strike_holds_nothing_below_it() {
        assert_eq!([31, 32, 33, 34].map(bin_from), [31, 32, 33, 33]);
    }

    #[test]
    fn a_cause_is_counted_where_it_strikes_and_took_what_the_middle_one_of_the_slow_lost() {
        let mut counts = Counts::new(2);
        let cells = |of: &[(u16, Bin, Bin, u64)]| -> Cells {
            of.iter().map(|(key, response, took, n)| ((Key(*key), *response, *took), *n)).collect()
        };
        counts.blocks[0].struck =
            cells(&[(1, 20, 5, 2), (1, 19, 5, 4), (1, 20, 4, 8), (2, 20, 9, 9)]);
        counts.blocks[1].struck = cells(&[(0, 20, 9, 9), (1, 25, 7, 1), (1, 0, 6, 3)]);
        counts.blocks[1].chance =
            cells(&[(1, 20, 5, 3), (1, 19, 5, 5), (1, 20, 4, 7), (2, 20, 5, 9)]);
        let slow = Slow { from: 20, strike: 5 };
        let of = Of::count(&counts, Key(1), slow);
        let sums = |of: &Sums| [of.slow, of.ordinary, of.elsewhere].map(|sum| sum as u64);
        assert_eq!(of.blocks.iter().map(sums).collect::<Vec<_>>(), [[2, 4, 0], [1, 3, 3]]);
        assert_eq!((sums(&of.total()), of.took), ([3, 7, 3], 5));
        counts.blocks[1].struck.insert((Key(1), 25, 7), 3);
        assert_eq!(Of::count(&counts, Key(1), slow).took, 7);
        let all = by_key(&counts.blocks[0].struck, |response| response >= 20, 5);
        assert_eq!(all, BTreeMap::from([(Key(1), 2), (Key(2), 9)]));
    }

    #[test]
    fn shares_are_of_what_could_have_been_struck_and_of_chance_only_where_enough_was_looked_at() {
        let struck = Sums { slow: 9.0, ordinary: 3.0, elsewhere: 5.0 };
        let of = Of { blocks: vec![struck], took: 0 };
        let told = |elsewhere| {
            let all = Sums { slow: 18.0, ordinary: 12.0, elsewhere };
            let told = of.told(&[all], End::Other, Cause::Host);
            (told.slow, told.of_slow, told.of_ordinary, told.by_chance)
        };
        assert_eq!(told(20.0), (9, 0.5, 0.25, Some(0.25)));
        assert_eq!(told(19.0), (9, 0.5, 0.25, None));
    }

    #[test]
    fn a_lift_is_a_ratio_of_shares_with_half_a_request_more_struck_and_one_more_in_all() {
        let struck = Sums { slow: 9.5, ordinary: 0.0, elsewhere: 1.5 };
        let all = Sums { slow: 19.0, ordinary: 99.0, elsewhere: 19.0 };
        let (lift, over) = Sums::lifts(struck, all);
        assert!((lift - 100.0).abs() < 1e-9 && (over - 5.0).abs() < 1e-9, "{lift} {over}");
    }

    fn of_slow(slow: f64) -> Sums {
        Sums { slow, ordinary: 1.0, elsewhere: 1.0 }
    }

    #[test]
    fn one_block_says_nothing_of_an_interval_and_blocks_that_are_alike_leave_it_no_width() {
        let all = [of_slow(9.0), of_slow(9.0)];
        let draws = |blocks| Draws::new(blocks, 1);
        let (lift, _) = draws(1).lifts(&[of_slow(3.0)], &all[..1], 1);
        assert_eq!((lift.low, lift.high), (0.0, f64::INFINITY));
        let (lift, over) = draws(2).lifts(&[of_slow(3.0); 2], &all, 1);
        for of in [lift, over] {
            assert!(
                (of.low - of.ratio).abs() < 1e-9 && (of.high - of.ratio).abs() < 1e-9,
                "{of:?}"
            );
        }
    }

    #[test]
    fn an_interval_is_as_wide_as_that_over_pairs_of_blocks_where_there_are_fifteen_of_them() {
        // Pairs of neighbours are alike, and differ from the next pair.
        let struck: Vec<Sums> = (0..30).map(|at| of_slow(f64::from(at / 2 % 2 * 8))).collect();
        let all = [of_slow(9.0); 30];
        let draws = Draws::new(30, 1);
        let [single, _] = draws.ends(&struck, &all, 1);
        let (lift, _) = draws.lifts(&struck, &all, 1);
        assert!(lift.low < single.0 && lift.high > single.1, "{lift:?} {single:?}");
        let draws = Draws::new(29, 1);
        let [single, _] = draws.ends(&struck[..29], &all[..29], 1);
        let (lift, _) = draws.lifts(&struck[..29], &all[..29], 1);
        assert_eq!((lift.low, lift.high), single);
        // The more causes are tried the wider is that of each.
        let [of_many, _] = draws.ends(&struck[..29], &all[..29], 25);
        assert!(of_many.0 < single.0 && of_many.1 > single.1, "{of_many:?} {single:?}");
    }

    /// Twenty blocks that are alike: a slow request each, which all causes but the last strike, and 99
    /// others.
    fn planted(causes: u16, episodes: &[u64]) -> Counts {
        let hit = |key, overlap| Hit { key: Key(key), overlap: TicksDelta(overlap) };
        let mut counts = Counts::new(20);
        let slow: Vec<Hit> = (0..causes - 1).map(|key| hit(key, 20)).collect();
        for block in 0..20 {
            counts.request(block, TicksDelta(40), &slow);
            for other in 0..99 {
                let mut hits = vec![hit(1, 5), hit(causes - 1, 5)];
                if other == 0 {
                    hits.push(hit(0, 5));
                }
                counts.request(block, TicksDelta(10), &hits);
            }
            (0..4).for_each(|_| counts.elsewhere(block, TicksDelta(40), &[hit(2, 20)]));
        }
        for (key, count) in (0..).zip(episodes) {
            let over = Over { key: Key(key), window: TicksDelta(40), overlap: TicksDelta(20) };
            (0..*count).for_each(|_| counts.over(over));
        }
        counts
    }

    fn thread(name: &str) -> (End, Cause) {
        let class = whylate_model::cause::PriorityClass::RealTime;
        (End::Other, Cause::Thread { comm: name.to_owned(), class })
    }

    #[test]
    fn a_cause_is_claimed_where_it_strikes_oftener_than_in_others_and_than_by_chance() {
        let lost = (End::Other, Cause::TraceLost);
        let causes = [
            thread("oftener"),
            thread("in all"),
            thread("by chance"),
            lost,
            thread("rare"),
            thread("of others"),
        ];
        let tail = judge(&planted(6, &[20, 20, 5, 20, 4]), &causes, None, SCOPE);
        let told: Vec<_> = tail
            .causes
            .iter()
            .map(|of| (&of.cause, of.episodes, of.slow, of.lift.is_some(), of.claimed))
            .collect();
        let row = |at: usize, episodes, lift, claimed| (&causes[at].1, episodes, 20, lift, claimed);
        let expected = [
            row(0, 20, true, true),
            row(1, 20, true, false),
            row(2, 5, true, false),
            row(3, 20, false, false),
            row(4, 4, false, false),
        ];
        assert_eq!(told, expected);
        assert_eq!((tail.tried, tail.verdict), (3, TailVerdict::Claimed));
        assert_eq!((tail.requests, tail.slow, tail.not_explained), (2_000, 20, 0));
        assert_eq!((tail.percent, tail.median, tail.causes[0].took), (99.0, Nanos(10), Nanos(20)));
        let none = judge(&planted(6, &[4, 20, 5, 20, 4]), &causes, None, SCOPE);
        assert_eq!((none.tried, none.verdict), (2, TailVerdict::NoneStands));
        let nothing = judge(&planted(6, &[4; 5]), &causes, None, SCOPE);
        assert_eq!((nothing.tried, nothing.verdict), (0, TailVerdict::NothingStruck));
    }

    #[test]
    fn of_many_causes_those_that_struck_most_are_told_and_the_others_counted() {
        let causes: Vec<_> = (0..20).map(|at| thread(&format!("t{at}"))).collect();
        let tail = judge(&planted(20, &[]), &causes, None, SCOPE);
        assert_eq!((tail.causes.len(), tail.causes_left_out), (16, 3));
    }

    #[test]
    fn ten_requests_are_slow_at_least_and_slower_than_the_middle_one() {
        let verdict = |slow: usize, times: u64| {
            let responses = [vec![10; 1_000 - slow], vec![10 * times; slow]].concat();
            let tail = judge(&counts(1, responses), &[], None, SCOPE);
            (tail.slow, tail.not_explained, tail.verdict)
        };
        assert_eq!(verdict(10, 4), (10, 10, TailVerdict::NothingStruck));
        assert_eq!(verdict(9, 4), (9, 9, TailVerdict::TooFew));
        assert_eq!(verdict(10, 1), (1_000, 1_000, TailVerdict::TooFew));
    }

    #[test]
    fn the_percentile_from_which_on_requests_are_slow_is_the_usual_one_or_what_was_asked() {
        let percent = |requests: u64, asked| {
            judge(&counts(1, (0..requests).map(|at| at % 7)), &[], asked, SCOPE).percent
        };
        assert_eq!(percent(MANY - 1, None).to_string(), "99");
        assert_eq!(percent(MANY, None).to_string(), "99.9");
        assert_eq!(percent(10, Some(90.0)).to_string(), "90");
    }

    #[test]
    fn requests_as_slow_as_the_least_slow_and_struck_as_much_as_the_least_struck_count() {
        let hit = |key, overlap| Hit { key: Key(key), overlap: TicksDelta(overlap) };
        let mut counts = Counts::new(1);
        (0..990).for_each(|_| counts.request(0, TicksDelta(10), &[hit(0, 5)]));
        let (both, struck, grazed) = ([hit(0, 1), hit(1, 1)], [hit(0, 1)], [hit(0, 0)]);
        let of_slow: [&[Hit]; 10] =
            [&both, &struck, &struck, &struck, &grazed, &grazed, &grazed, &[], &[], &[]];
        for hits in of_slow {
            counts.request(0, TicksDelta(11), hits);
        }
        let over = Over { key: Key(0), window: TicksDelta(11), overlap: TicksDelta(1) };
        (0..5).for_each(|_| counts.over(over));
        let tail = judge(&counts, &[thread("four times"), thread("once")], None, SCOPE);
        assert_eq!((tail.slow, tail.slow_from, tail.strike), (10, Nanos(11), Nanos(1)));
        assert_eq!((tail.not_explained, tail.tried), (6, 1));
        assert_eq!(tail.causes.iter().map(|of| of.slow).collect::<Vec<_>>(), [4, 1]);
    }
}
