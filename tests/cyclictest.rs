//! Wake-ups beside those of cyclictest, and cyclictest beside itself.
//!
//! How much two recordings of one thing differ on this machine is not known beforehand: rounds are
//! added until cyclictest agrees with itself closely enough, or there is no time left, and then no
//! claim is made.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use whylate_host::procfs::Steal;
use whylate_model::CpuId;
use whylate_stats::ratio::Ratio;
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::needs;
use crate::program::{self, record_ending};

/// The priority that `wake` uses by itself; cyclictest is given the same.
pub(crate) const PRIORITY: u8 = 95;
/// Wake-ups of a recording, and the time between two.
const WAKES: u64 = 4_000;
const PERIOD_US: u64 = 500;
/// Half of the control's interval at most, for a claim.
const CLOSE: f64 = 0.03;
/// Fewer rounds say nothing of their spread.
const FEWEST: usize = 4;
/// Rounds are added so long, unless `WHYLATE_TESTS_PAIRS` asks for a number of them.
const BUDGET: Duration = Duration::from_secs(40);
const PAIRS: &str = "WHYLATE_TESTS_PAIRS";
/// What a claim says: within ten per cent.
const SAME: (f64, f64) = (0.9, 1.1);

/// Lateness of each wake-up by cyclictest, in nanoseconds.
pub(crate) fn samples(cpu: CpuId, period_us: u64, wakes: u64) -> Vec<u64> {
    let cpu = cpu.to_string();
    let output = Command::new("cyclictest")
        .args(["-N", "-m", "-q", "-v", "-t", "1", "-i", &period_us.to_string(), "-a", &cpu, "-p"])
        .args([PRIORITY.to_string(), "-l".to_owned(), wakes.to_string()])
        .output()
        .unwrap();
    // Lines of a sample: thread, number, nanoseconds.
    let lines = String::from_utf8(output.stdout).unwrap();
    let late = lines.lines().filter_map(|line| {
        let mut fields = line.split(':').map(|field| field.trim().parse::<u64>());
        match (fields.next()?, fields.next()?, fields.next()?) {
            (Ok(0), Ok(_), Ok(late)) => Some(late),
            _ => None,
        }
    });
    late.collect()
}

/// Median and 99th percentile.
type Quantiles = [f64; 2];

fn theirs(cpu: CpuId) -> Quantiles {
    let mut late = samples(cpu, PERIOD_US, WAKES);
    assert!(late.len() as u64 >= WAKES * 9 / 10, "cyclictest gave {} samples", late.len());
    late.sort_unstable();
    [50, 99].map(|percent| late[late.len() * percent / 100] as f64)
}

fn ours(cpu: CpuId, seed: usize) -> Quantiles {
    let length = Duration::from_micros(WAKES * PERIOD_US).as_millis();
    let words = format!(
        "wake --cpus {cpu} --period {PERIOD_US}us --duration {length}ms --no-trace --seed {seed}"
    );
    let recorded = record_ending(&words, &[0, 4]);
    let series = recorded.run.series.iter().find(|series| series.name == "wake-HR").unwrap();
    [50.0, 99.0].map(|wanted| {
        let found = series.quantiles.iter().find(|of| (of.percent - wanted).abs() < 1e-9);
        found.and_then(|quantile| quantile.value).map_or(f64::NAN, |value| value.0 as f64)
    })
}

/// A round of which the hypervisor took more than this is excluded, by what the kernel counts: a
/// p99 is of one wake-up in a hundred.
const STOLEN: f64 = 0.005;

/// One round: cyclictest, whylate, cyclictest. None where the hypervisor took the CPU in it: the same
/// rule for both.
fn round(cpu: CpuId, number: usize) -> Option<[Quantiles; 3]> {
    let steal = || Steal::read(Path::new("/")).ok();
    let (before, begun) = (steal(), clock_ns(Clock::Monotonic));
    let all = [theirs(cpu), ours(cpu, number), theirs(cpu)];
    let taken = before.zip(steal()).and_then(|(before, after)| before.delta_ns(&after, &[cpu]));
    let length = (clock_ns(Clock::Monotonic) - begun) as f64;
    (taken.unwrap_or(0.0) <= STOLEN * length).then_some(all)
}

/// What the rounds say of one quantile: cyclictest over itself, and whylate over cyclictest.
fn compared(rounds: &[[Quantiles; 3]], quantile: usize) -> Option<(Ratio, Ratio)> {
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

fn is_close(rounds: &[[Quantiles; 3]], quantile: usize) -> bool {
    compared(rounds, quantile).is_some_and(|(control, _)| control.half_width() <= CLOSE)
}

#[test]
fn p50_and_p99_are_those_of_cyclictest_where_it_agrees_with_itself() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let cpu = cpus[cpus.len() - 1];
    if !needs::root() || needs::program("cyclictest").is_none() {
        return;
    }
    let wanted: Option<usize> = std::env::var(PAIRS).ok().and_then(|pairs| pairs.parse().ok());
    let begun = clock_ns(Clock::Monotonic);
    let passed = || Duration::from_nanos(clock_ns(Clock::Monotonic) - begun);
    let (mut rounds, mut excluded, mut longest) = (Vec::new(), 0, Duration::ZERO);
    loop {
        let done = rounds.len() + excluded;
        let time_is_up = match wanted {
            Some(pairs) => done >= pairs,
            None => passed() + longest > BUDGET,
        };
        let close = rounds.len() >= FEWEST && (0..2).all(|of| is_close(&rounds, of));
        if time_is_up || close {
            break;
        }
        let before = passed();
        match round(cpu, done) {
            Some(found) => rounds.push(found),
            None => excluded += 1,
        }
        longest = longest.max(passed().saturating_sub(before));
    }
    // Not by a macro: the harness would keep to itself that there is no claim.
    let say = |text: String| {
        let _ = writeln!(std::io::stderr(), "{text}");
    };
    let most = STOLEN * 100.0;
    let n = rounds.len();
    say(format!("{n} rounds; {excluded} more excluded, of which the host took over {most}%"));
    for (of, name) in ["p50", "p99"].into_iter().enumerate() {
        let Some((control, ratio)) = compared(&rounds, of) else {
            say(format!("{name}: no claim, {} pairs", rounds.len()));
            continue;
        };
        let said = format!(
            "whylate over cyclictest {:.3} ({:.3} .. {:.3}), cyclictest over itself {:.3} +-{:.3}",
            ratio.mean,
            ratio.interval.low,
            ratio.interval.high,
            control.mean,
            control.half_width()
        );
        if rounds.len() < FEWEST || !is_close(&rounds, of) {
            let (width, pairs) = (control.half_width(), control.pairs);
            say(format!("{name}: no claim, control +-{width:.3} after {pairs} pairs; {said}"));
            continue;
        }
        say(format!("{name}: {said}"));
        assert!(ratio.overlaps(SAME.0, SAME.1), "{name}: {said}");
    }
}

#[test]
fn a_claim_is_made_only_where_the_control_is_narrow() {
    // Planted: whylate twice as late, cyclictest the same to 1 % or to 40 %.
    let round = |noise: f64| {
        move |index: u32| {
            let off = 1.0 + noise * f64::from(index % 5) / 5.0;
            [[1_000.0; 2], [2_000.0; 2], [1_000.0 * off; 2]]
        }
    };
    let quiet: Vec<[Quantiles; 3]> = (0..12).map(round(0.01)).collect();
    let noisy: Vec<[Quantiles; 3]> = (0..12).map(round(0.8)).collect();
    assert!(is_close(&quiet, 0) && !is_close(&noisy, 0));
    let (control, ratio) = compared(&quiet, 1).unwrap();
    assert!((control.mean - 1.0).abs() < 0.01 && !ratio.overlaps(SAME.0, SAME.1), "{ratio:?}");
    assert!(compared(&quiet[..1], 0).is_none());
}
