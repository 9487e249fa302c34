//! Do bounds hold what a box itself wrote down, undisturbed and while something takes its CPU, and do they lie
//! around what a delay line was set to?

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::CpuId;
use whylate_model::device::{Device, DeviceAtSize};
use whylate_sys::affinity;

use crate::hogs::{FRAMES, Hog, disturbed};
use crate::needed;
use crate::needs;
use crate::program::record_ending;
use crate::trials::Trials;

const WORDS: &str = "device --rounds 3 --warmup 50ms --no-throughput";
/// Twenty trials, both ways of ten sizes.
const UNDISTURBED: &str = "--box forward:xdp --rate 5kpps --duration 200ms \
                           --sizes 64,128,256,384,512,768,1024,1280,1400,1518";
/// Ten trials of a box whose time is so short that bounds from below are hardly ever above zero.
const SHORT: &str =
    "--box forward:packet --rate 2kpps --duration 300ms --sizes 64,256,512,1024,1518";
/// Eight trials of one whose time is long enough for bounds from below, and whose log is as well known.
const LONG: &str = "--box delay:100us --rate 2kpps --duration 300ms --sizes 64,512,1024,1518";
/// A delay line, whose median is what it was set to.
const LINE: &str = "--box delay:50us --rate 2kpps --duration 300ms --sizes 128,1024";
/// Fewer bursts are no interference.
const FEWEST_BURSTS: u64 = 1_000;
/// With a confidence of 95 %.
const CONFIDENT: Bound = Bound::AtLeast(0.95);

pub(crate) const FIGURE: Figure = Figure {
    name: "device_bounds",
    method: "bounds of a forwarder and of a delay line, each size and way a trial, against their own logs: \
             undisturbed, and beside bursts of 100 us on their CPU by the clock and by their own frames",
    rows: &[
        Row { claim: "trials held, of those that claim bounds", unit: "share", bound: CONFIDENT },
        Row { claim: "runs that miss no more than chance", unit: "share", bound: Bound::Always },
        Row { claim: "trials that claim bounds", unit: "share", bound: Bound::AtLeast(0.75) },
        Row { claim: "of 100 us two-sided", unit: "share", bound: Bound::AtLeast(0.375) },
        Row { claim: "logs of what was measured alone", unit: "share", bound: Bound::Always },
        Row { claim: "logs with 80 % of it", unit: "share", bound: Bound::Always },
        Row { claim: "medians of 50 us inside their bounds", unit: "share", bound: Bound::Always },
        Row { claim: "runs with a bound around 50 us", unit: "rounds", bound: Bound::Always },
        Row { claim: "runs with half the bursts by frames", unit: "rounds", bound: Bound::Always },
    ],
    rounds: 2,
    seconds: 290.0,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip"]),
    round,
};

/// What the runs of a round come to together.
#[derive(Default)]
struct Sum {
    trials: Trials,
    /// Runs, and those that miss no more than chance has it.
    runs: [u64; 2],
    /// Logs, those of what was measured alone, and those with 80 % of it.
    logs: [u64; 3],
}

impl Sum {
    fn take(&mut self, of: &Device) -> Trials {
        for at in &of.sizes {
            assert_eq!(at.sent, at.received + at.lost, "{at:?}");
            let log = at.residence.as_ref().expect("its log").n;
            self.logs[0] += 1;
            self.logs[1] += u64::from(log <= at.sent);
            self.logs[2] += u64::from(log * 10 >= at.received * 8);
        }
        let mut trials = Trials::default();
        trials.take(of);
        self.trials.add(trials);
        self.runs[0] += 1;
        self.runs[1] += u64::from(trials.miss_by_chance_alone());
        trials
    }
}

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let cpus = affinity::get();
    let seats = (cpus[0], needs::last_cpu());
    let mut sum = Sum::default();
    sum.take(&undisturbed(UNDISTURBED));
    sum.take(&beside(Hog::ByTheClock, SHORT, seats)?.0);
    let (by_frames, bursts) = beside(Hog::ByFrames, SHORT, seats)?;
    sum.take(&by_frames);
    let long = sum.take(&beside(Hog::ByTheClock, LONG, seats)?.0);
    let all = sum.trials.claimed.of + sum.trials.unclaimed;
    let line = undisturbed(LINE);
    let around: Vec<bool> = line.sizes.iter().filter_map(is_around).collect();
    let share = |hits: u64, of: u64| Reading::Share { hits, of };
    let inside = around.iter().filter(|inside| **inside).count() as u64;
    // Each is seen at both links, in the line's place as well.
    let passed: u64 = by_frames.sizes.iter().map(|at| at.received).sum();
    Ok(vec![
        share(sum.trials.claimed.held, sum.trials.claimed.of),
        share(sum.runs[1], sum.runs[0]),
        share(sum.trials.claimed.of, all),
        share(long.two_sided.of, long.claimed.of + long.unclaimed),
        share(sum.logs[1], sum.logs[0]),
        share(sum.logs[2], sum.logs[0]),
        share(inside, around.len() as u64),
        Reading::held(inside > 0),
        Reading::held(bursts >= passed / FRAMES),
    ])
}

/// Is the median that the line wrote down inside its bounds? None without any.
fn is_around(at: &DeviceAtSize) -> Option<bool> {
    assert!(at.residence.as_ref().is_some_and(|log| log.n <= at.received), "{at:?}");
    at.contained(50.0)
}

fn undisturbed(words: &str) -> Device {
    *record_ending(&format!("{WORDS} {words}"), &[0, 4]).run.device.expect("a device")
}

fn beside(hog: Hog, words: &str, seats: (CpuId, CpuId)) -> Result<(Device, u64), String> {
    let (run, bursts) = disturbed(&format!("{WORDS} {words}"), hog, seats);
    if bursts < FEWEST_BURSTS {
        return Err(format!("{bursts} bursts {hog:?} are no interference"));
    }
    Ok((*run.device.expect("a device"), bursts))
}
