//! Ratios against a peer, with the peer against itself as their control.
//!
//! How much two recordings of one thing differ on this machine is not known beforehand. So a round
//! is peer, whylate, peer; rounds are added until the peer agrees with itself closely enough, or
//! there is no time left, and then no claim is made. Where a number of rounds is asked for there are at least
//! so many. What ends them is the peer against itself alone: whoever stopped when the ratio looks well would
//! choose what comes out.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use whylate_host::procfs::Steal;
use whylate_model::CpuId;
use whylate_stats::ratio::Ratio;
use whylate_sys::nanosleep::{Clock, clock_ns};

/// Half of the control's interval at most, for a claim.
const CLOSE: f64 = 0.03;
/// Fewer rounds say nothing of their spread.
const FEWEST: usize = 4;
/// So many rounds that count are made at least where that is asked for.
const PAIRS: &str = "WHYLATE_TESTS_PAIRS";
/// More are added to them until the peer agrees with itself closely enough, but no longer than this.
const LONGEST: Duration = Duration::from_secs(240);
/// With so many, what is promised has to be shown where the control is narrow. With fewer it may be left
/// open, which is said.
const ENOUGH: usize = 20;
/// A round of which the hypervisor took more than this is excluded, by what the kernel counts: a
/// p99 is of one wake-up or packet in a hundred.
const STOLEN: f64 = 0.005;

/// Peer, whylate, peer again: the same quantiles of each.
pub(crate) type Round<const N: usize> = [[f64; N]; 3];

/// Rounds that are asked for; none where a test only shows that the comparison works.
pub(crate) fn wanted() -> Option<usize> {
    std::env::var(PAIRS).ok().and_then(|pairs| pairs.parse().ok())
}

/// What is compared with whom.
pub(crate) struct Against<'a, const N: usize> {
    pub(crate) peer: &'a str,
    /// Names of the quantiles.
    pub(crate) names: [&'a str; N],
    /// Rounds are added so long, unless a number of them is asked for.
    pub(crate) budget: Duration,
    /// But so many are made, however long they take: with two the ratio has an interval.
    pub(crate) least: usize,
    /// What the hypervisor takes from these spoils a round.
    pub(crate) cpus: &'a [CpuId],
}

/// What the rounds say of one quantile.
pub(crate) struct Claim {
    pub(crate) ratio: Ratio,
    /// Everything there is to say of it.
    pub(crate) said: String,
}

impl Claim {
    /// Holds it against what is promised, see [`Promise::hold`], and tells whether that is shown.
    pub(crate) fn keeps(&self, promise: Promise) -> bool {
        let Ratio { interval, pairs, .. } = self.ratio;
        promise.hold((interval.low, interval.high), pairs, &self.said)
    }
}

/// On which side of a limit a ratio is to be, or between which two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Promise {
    AtLeast(f64),
    AtMost(f64),
    /// The lower limit and the upper one; both belong to it.
    Within(f64, f64),
}

/// What an interval says of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// All of it is on the right side.
    Shown,
    /// All of it is on the wrong one.
    Refuted,
    /// A limit is inside.
    Open,
}

impl Promise {
    /// Says what the interval of so many pairs tells, and answers whether it shows what is promised. Fails
    /// where it lies on the wrong side, and of [`ENOUGH`] pairs also where it does not lie on the right one.
    pub(crate) fn hold(self, interval: (f64, f64), pairs: usize, said: &str) -> bool {
        let verdict = self.judge(interval);
        match verdict {
            Verdict::Shown => say(&format!("shown, {self}: {said}")),
            Verdict::Refuted => panic!("{self} was promised: {said}"),
            Verdict::Open => {
                assert!(pairs < ENOUGH, "{self} was promised and is not shown: {said}");
                say(&format!("no claim, {self} is neither shown nor refuted: {said}"));
            }
        }
        verdict == Verdict::Shown
    }

    fn judge(self, (low, high): (f64, f64)) -> Verdict {
        let (shown, refuted) = match self {
            Self::AtLeast(limit) => (low >= limit, high < limit),
            Self::AtMost(limit) => (high <= limit, low > limit),
            Self::Within(least, most) => (low >= least && high <= most, high < least || low > most),
        };
        match (shown, refuted) {
            (true, _) => Verdict::Shown,
            (false, true) => Verdict::Refuted,
            (false, false) => Verdict::Open,
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(limit) => write!(f, "at least {limit}"),
            Self::AtMost(limit) => write!(f, "at most {limit}"),
            Self::Within(least, most) => write!(f, "from {least} to {most}"),
        }
    }
}

/// Rounds that count, and how many do not.
pub(crate) struct Rounds<const N: usize> {
    pub(crate) rounds: Vec<Round<N>>,
    pub(crate) excluded: usize,
}

impl<const N: usize> Against<'_, N> {
    /// Makes rounds, and tells what they say of each quantile: none where no claim is made.
    pub(crate) fn claims(&self, round: impl FnMut(usize) -> Round<N>) -> [Option<Claim>; N] {
        let Rounds { rounds, excluded } = self.rounds(round);
        let most = STOLEN * 100.0;
        let n = rounds.len();
        say(&format!("{n} rounds; {excluded} more excluded, of which the host took over {most}%"));
        std::array::from_fn(|of| {
            let name = self.names[of];
            let Some((control, ratio)) = compared(&rounds, of) else {
                say(&format!("{name}: no claim, {n} pairs"));
                return None;
            };
            let said = format!(
                "{name}: whylate over {peer} {:.3} ({:.3} .. {:.3}), {peer} over itself {:.3} +-{:.3}",
                ratio.mean,
                ratio.interval.low,
                ratio.interval.high,
                control.mean,
                control.half_width(),
                peer = self.peer,
            );
            if !is_close(&rounds, of) {
                let (width, pairs) = (control.half_width(), control.pairs);
                say(&format!("no claim, control +-{width:.3} after {pairs} pairs; {said}"));
                return None;
            }
            say(&said);
            Some(Claim { ratio, said })
        })
    }

    /// One round after the other; those of which the hypervisor took the CPUs do not count, whoever
    /// had them.
    fn rounds(&self, mut round: impl FnMut(usize) -> Round<N>) -> Rounds<N> {
        let wanted = wanted();
        let begun = clock_ns(Clock::Monotonic);
        let passed = || Duration::from_nanos(clock_ns(Clock::Monotonic) - begun);
        let mut made = Rounds { rounds: Vec::new(), excluded: 0 };
        let mut longest = Duration::ZERO;
        loop {
            let done = made.rounds.len() + made.excluded;
            let close = || (0..N).all(|of| is_close(&made.rounds, of));
            let is_over = match wanted {
                Some(pairs) => {
                    made.rounds.len() >= pairs && close() || passed() + longest > LONGEST
                }
                None => done >= self.least && (passed() + longest > self.budget || close()),
            };
            if is_over {
                return made;
            }
            let before = passed();
            let steal = || Steal::read(Path::new("/")).ok();
            let stolen = steal();
            let found = round(done);
            let length = passed().saturating_sub(before);
            let taken = stolen
                .zip(steal())
                .and_then(|(before, after)| before.delta_ns(&after, self.cpus))
                .unwrap_or(0.0);
            if taken <= STOLEN * length.as_nanos() as f64 {
                made.rounds.push(found);
            } else {
                made.excluded += 1;
            }
            longest = longest.max(length);
        }
    }
}

/// What the rounds say of one quantile: the peer over itself, and whylate over the peer.
pub(crate) fn compared<const N: usize>(
    rounds: &[Round<N>],
    quantile: usize,
) -> Option<(Ratio, Ratio)> {
    let [control, ratio] =
        [|of: [f64; 3]| (of[0], of[2]), |of: [f64; 3]| ((of[0] * of[2]).sqrt(), of[1])].map(
            |pair| {
                let pairs: Vec<(f64, f64)> =
                    rounds.iter().map(|round| pair(round.map(|of| of[quantile]))).collect();
                Ratio::of_pairs(&pairs, 1)
            },
        );
    control.zip(ratio)
}

/// Does the peer agree with itself so closely that a claim may be made?
pub(crate) fn is_close<const N: usize>(rounds: &[Round<N>], quantile: usize) -> bool {
    let control = compared(rounds, quantile);
    rounds.len() >= FEWEST && control.is_some_and(|(control, _)| control.half_width() <= CLOSE)
}

/// Tells it whoever holds what tests print. Not by a macro: the harness would keep to itself that
/// there is no claim.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[test]
fn a_claim_is_made_only_where_the_control_is_narrow() {
    // Planted: whylate twice as late, its peer the same to 1 % or to 40 %.
    let round = |noise: f64| {
        move |index: u32| {
            let off = 1.0 + noise * f64::from(index % 5) / 5.0;
            [[1_000.0; 2], [2_000.0; 2], [1_000.0 * off; 2]]
        }
    };
    let quiet: Vec<Round<2>> = (0..12).map(round(0.01)).collect();
    let noisy: Vec<Round<2>> = (0..12).map(round(0.8)).collect();
    assert!(is_close(&quiet, 0) && !is_close(&noisy, 0));
    let (control, ratio) = compared(&quiet, 1).unwrap();
    assert!((control.mean - 1.0).abs() < 0.01 && !ratio.overlaps(0.9, 1.1), "{ratio:?}");
    let twice = Claim { ratio, said: "planted".to_owned() };
    assert!(twice.keeps(Promise::Within(1.9, 2.1)));
    assert!(std::panic::catch_unwind(|| twice.keeps(Promise::Within(0.9, 1.1))).is_err());
    assert!(compared(&quiet[..1], 0).is_none() && !is_close(&quiet[..3], 0));
}

#[test]
fn what_is_promised_is_shown_refuted_or_left_open_and_with_many_pairs_open_is_not_enough() {
    let (least, most) = (Promise::AtLeast(0.9), Promise::AtMost(0.9));
    let within = Promise::Within(0.9, 1.1);
    for (interval, expected) in [
        ((0.9, 1.1), [Verdict::Shown, Verdict::Open, Verdict::Shown]),
        ((0.91, 1.1), [Verdict::Shown, Verdict::Refuted, Verdict::Shown]),
        ((0.7, 0.9), [Verdict::Open, Verdict::Shown, Verdict::Open]),
        ((0.7, 0.89), [Verdict::Refuted, Verdict::Shown, Verdict::Refuted]),
        ((0.8, 1.0), [Verdict::Open, Verdict::Open, Verdict::Open]),
        ((1.0, 1.2), [Verdict::Shown, Verdict::Refuted, Verdict::Open]),
        ((1.11, 1.2), [Verdict::Shown, Verdict::Refuted, Verdict::Refuted]),
        ((0.8, 1.2), [Verdict::Open, Verdict::Open, Verdict::Open]),
        ((f64::NAN, f64::NAN), [Verdict::Open, Verdict::Open, Verdict::Open]),
    ] {
        let found = [least, most, within].map(|promise| promise.judge(interval));
        assert_eq!(found, expected, "{interval:?}");
    }
    let fails = |interval, pairs| {
        std::panic::catch_unwind(|| least.hold(interval, pairs, "planted")).is_err()
    };
    assert!(!fails((0.95, 1.1), ENOUGH) && !fails((0.8, 1.0), ENOUGH - 1));
    assert!(least.hold((0.95, 1.1), 2, "planted") && !least.hold((0.8, 1.0), 2, "planted"));
    assert!(fails((0.8, 1.0), ENOUGH) && fails((0.7, 0.8), 2));
    let named = [least, most, within].map(|promise| promise.to_string());
    assert_eq!(named, ["at least 0.9", "at most 0.9", "from 0.9 to 1.1"]);
}
