//! What netem of this kernel makes of a delay, so that it stands beside what the line says of itself.
//!
//! In a network namespace that goes with the thread that measures: datagrams over loopback under
//! `tc qdisc add dev lo root netem delay`, first of nothing, then of the delay. Nothing outside of it is
//! touched: where netem's module would have to be loaded it is not asked for (`netem/kernel.rs`). A kernel
//! without netem says so. Bounded in time.

mod kernel;

use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use whylate_clock::{Calibrator, Counter, HardwareCounter};
use whylate_model::calibration::{Emulator, SignedQuantile};
use whylate_model::delay::DelayBase;
use whylate_model::{Hertz, Nanos, Printable};
use whylate_net::delay::Amount;
use whylate_stats::Histogram;
use whylate_stats::order::{SignedHistogram, limits};
use whylate_stats::quantile::PERCENTS;
use whylate_sys::namespace;

use super::{DelayRequest, What};
use crate::child::Program;
use crate::progress::Progress;

/// Datagrams of each measurement: as many as p99 needs for an interval, and a few.
const DATAGRAMS: u32 = 400;
/// Longer delays take too long to be measured so often.
const LONGEST: Nanos = Nanos(10_000_000);
/// Where no constant delay is asked for.
const USUAL: Nanos = Nanos(100_000);
/// How long one may take beyond its delay.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long all of one measurement may take: twice what the longest delay makes of it.
const MOST: Nanos = Nanos(2 * LONGEST.0 * DATAGRAMS as u64);
/// How long `ip` and `tc` may take.
const MOST_OF_A_PROGRAM: Duration = Duration::from_secs(5);
/// What lies below and above a 95 % interval, each.
const TAIL: f64 = 0.025;

/// Says what netem makes of the delay that a line is asked for, and gives it; none where that was not asked.
pub(super) fn said(request: &DelayRequest, progress: &mut dyn Progress) -> Option<Emulator> {
    let beside = beside(request)?;
    progress.say(&told(&beside));
    Some(beside)
}

fn beside(request: &DelayRequest) -> Option<Emulator> {
    let What::Frames(_) = &request.what else { return None };
    let constant = request.laws().iter().find_map(|law| match law.delay {
        Amount::Constant(delay) if fits(delay) => Some(delay),
        _ => None,
    });
    request.netem.then(|| emulator(constant.unwrap_or(USUAL)))
}

/// What netem of this kernel makes of this delay, or of a usual one in place of a longer one, or why that is
/// not known.
pub(crate) fn emulator(wanted: Nanos) -> Emulator {
    let delay = if fits(wanted) { wanted } else { USUAL };
    emulator_from(delay, netem(delay))
}

/// What was measured of it at this delay, or why nothing was.
fn emulator_from(delay: Nanos, found: Result<SignedHistogram, String>) -> Emulator {
    let name = "netem".to_owned();
    match found {
        Ok(errors) => {
            let (n, errors) = (u64::from(DATAGRAMS), quantiles(&errors));
            Emulator { name, delay, errors, n, missing: None }
        }
        Err(why) => Emulator { name, delay, errors: Vec::new(), n: 0, missing: Some(why) },
    }
}

/// What a line says of itself, as it stands beside another emulator.
pub(crate) fn own_error(base: &DelayBase) -> Emulator {
    let at = |percent, value: Nanos| SignedQuantile {
        percent,
        value_ns: Some(value.0 as f64),
        low_ns: None,
        high_ns: None,
        n_eff: base.frames as f64,
    };
    Emulator {
        name: "the delay line".to_owned(),
        delay: base.at,
        errors: vec![at(50.0, base.error_median), at(99.0, base.error)],
        n: base.frames,
        missing: None,
    }
}

/// What is said of it before a line begins.
fn told(of: &Emulator) -> String {
    let off = |percent: f64| {
        let at = of.errors.iter().find(|at| (at.percent - percent).abs() < 1e-9);
        let ns = at?.value_ns?;
        let time = Nanos(ns.abs().round() as u64);
        Some(if ns < 0.0 { format!("-{time}") } else { time.to_string() })
    };
    let Some((median, p99)) = off(50.0).zip(off(99.0)) else {
        let why = of.missing.as_deref().unwrap_or("too few datagrams came");
        return format!("netem: not beside it ({})", Printable(why));
    };
    format!(
        "netem of this kernel at {}: off by {median} in the median of {} datagrams, by {p99} at p99",
        of.delay, of.n
    )
}

fn fits(delay: Nanos) -> bool {
    delay > Nanos(0) && delay <= LONGEST
}

fn quantiles(errors: &SignedHistogram) -> Vec<SignedQuantile> {
    let at = |percent: f64| {
        let of = limits(errors, percent, f64::from(DATAGRAMS), TAIL);
        SignedQuantile {
            percent,
            value_ns: of.value,
            low_ns: of.low,
            high_ns: of.high,
            n_eff: of.n_eff,
        }
    };
    PERCENTS.map(at).into_iter().filter(|at| at.value_ns.is_some()).collect()
}

/// How far datagrams are off this delay; why that cannot be measured otherwise.
fn netem(at: Nanos) -> Result<SignedHistogram, String> {
    kernel::already(Path::new("/"))?;
    let measuring = thread::Builder::new().name("netem".to_owned()).spawn(move || {
        namespace::leave_network().map_err(|error| error.to_string())?;
        measured(at)
    });
    let measuring = measuring.map_err(|error| error.to_string())?;
    measuring.join().unwrap_or_else(|_| Err("its measurement failed".to_owned()))
}

/// In the calling thread's namespace, which is thrown away.
fn measured(at: Nanos) -> Result<SignedHistogram, String> {
    let mut counter = HardwareCounter::open().map_err(|error| error.to_string())?;
    let calibration = Calibrator::of_this_host(counter).quick();
    let rate = calibration.map_err(|error| error.to_string())?.hz;
    errors_of(at, &mut run_words, &mut || times(&mut counter, rate))
}

/// Sets the discipline up, of nothing at first, and takes the times of datagrams under either: how far they are
/// off the delay beyond what they take without one.
fn errors_of(
    at: Nanos,
    tell: &mut dyn FnMut(&str) -> Result<(), String>,
    times: &mut dyn FnMut() -> Result<Vec<Nanos>, String>,
) -> Result<SignedHistogram, String> {
    tell("ip link set lo up")?;
    tell("tc qdisc add dev lo root netem delay 0ns limit 1000")
        .map_err(|why| format!("this kernel has none, or tc is missing: {why}"))?;
    let base: Histogram = times()?.into_iter().map(|of| of.0).collect();
    let base = base.value_at(50.0).unwrap_or(0);
    tell(&format!("tc qdisc change dev lo root netem delay {}ns limit 1000", at.0))?;
    let expected = base.saturating_add(at.0);
    let mut errors = SignedHistogram::new();
    for taken in times()? {
        // Above zero it was held back for too long, below it for too short a time.
        errors.record(taken.0.cast_signed().saturating_sub(expected.cast_signed()));
    }
    Ok(errors)
}

/// Runs a program with its words, the first of which it is.
fn run_words(words: &str) -> Result<(), String> {
    let (program, words) = words.split_once(' ').unwrap_or((words, ""));
    run(program, words)
}

/// How long datagrams take, one after the other. Looks without sleeping.
fn times(counter: &mut HardwareCounter, rate: Hertz) -> Result<Vec<Nanos>, String> {
    let sockets = || -> std::io::Result<(UdpSocket, UdpSocket)> {
        let receiver = UdpSocket::bind(("127.0.0.1", 0))?;
        receiver.set_nonblocking(true)?;
        let sender = UdpSocket::bind(("127.0.0.1", 0))?;
        sender.connect(receiver.local_addr()?)?;
        Ok((sender, receiver))
    };
    let (sender, receiver) = sockets().map_err(|error| error.to_string())?;
    let most = Nanos(PATIENCE.as_nanos() as u64).to_ticks(rate);
    let most_of_all = MOST.to_ticks(rate);
    let mut taken = Vec::with_capacity(DATAGRAMS as usize);
    let begun = counter.read();
    for number in 0..DATAGRAMS {
        let sent = counter.read();
        if sent.since(begun) > most_of_all {
            return Err(format!("{number} of {DATAGRAMS} datagrams took longer than {MOST}"));
        }
        sender.send(&number.to_le_bytes()).map_err(|error| error.to_string())?;
        loop {
            let came = receiver.recv(&mut [0; 8]).is_ok();
            let now = counter.read();
            if came {
                taken.push(now.since(sent).to_nanos(rate));
                break;
            }
            if now.since(sent) > most {
                return Err("a datagram did not come back".to_owned());
            }
        }
    }
    Ok(taken)
}

fn run(program: &str, words: &str) -> Result<(), String> {
    let words = words.split_whitespace().map(str::to_owned).collect();
    // Nobody tells it to end: it has its time.
    let ended =
        Program::foreign(program, words).run(&AtomicBool::new(false), Some(MOST_OF_A_PROGRAM));
    let ended = ended.map_err(|error| error.to_string())?;
    if ended.status.success() {
        return Ok(());
    }
    if ended.killed {
        return Err(format!("{program} did not end within {} s", MOST_OF_A_PROGRAM.as_secs()));
    }
    let said: String = ended.stderr.trim().chars().take(200).collect();
    Err(if said.is_empty() { format!("{program} ended with {}", ended.status) } else { said })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn netem_of_this_kernel_is_measured_or_told_to_be_missing_and_nothing_outside_is_touched() {
        let namespace = || std::fs::metadata("/proc/self/ns/net").unwrap().ino();
        let before = namespace();
        let of = emulator(USUAL);
        assert_eq!((of.name.as_str(), of.delay), ("netem", USUAL));
        let value = |percent: f64| {
            let at = of.errors.iter().find(|at| (at.percent - percent).abs() < 1e-9);
            at.and_then(|at| at.value_ns)
        };
        match &of.missing {
            None => {
                assert_eq!(of.n, u64::from(DATAGRAMS));
                assert!(value(50.0).unwrap() <= value(99.0).unwrap(), "{of:?}");
                assert!(told(&of).contains("in the median of 400 datagrams"), "{}", told(&of));
            }
            Some(why) => {
                assert!(!why.trim().is_empty() && of.errors.is_empty() && of.n == 0);
                assert!(told(&of).starts_with("netem: not beside it"), "{}", told(&of));
            }
        }
        assert_eq!(namespace(), before);
    }

    #[test]
    fn a_kernel_with_netem_is_told_its_delay_and_what_it_makes_of_it_stands_beside_the_line() {
        // 7us back to back; then 100us and 65us too much, as a kernel with a timer of its own does, 1 in 50
        // of them 900us.
        let mut told_to: Vec<String> = Vec::new();
        let mut rounds = 0_u64;
        let errors = errors_of(
            Nanos(100_000),
            &mut |words| {
                told_to.push(words.to_owned());
                Ok(())
            },
            &mut || {
                rounds += 1;
                let late = |n: u32| if n.is_multiple_of(50) { 900_000 } else { 65_000 };
                let under = |n: u32| if rounds == 1 { 7_000 } else { 107_000 + late(n) };
                Ok((0..DATAGRAMS).map(|n| Nanos(under(n))).collect())
            },
        );
        assert_eq!(
            told_to,
            [
                "ip link set lo up",
                "tc qdisc add dev lo root netem delay 0ns limit 1000",
                "tc qdisc change dev lo root netem delay 100000ns limit 1000",
            ]
        );
        let of = emulator_from(Nanos(100_000), errors);
        assert_eq!((of.missing.as_deref(), of.n), (None, u64::from(DATAGRAMS)));
        let value = |percent: f64| {
            let at = of.errors.iter().find(|at| (at.percent - percent).abs() < 1e-9);
            at.and_then(|at| at.value_ns).unwrap()
        };
        assert!((value(50.0) - 65_000.0).abs() < 650.0, "{of:?}");
        assert!((value(99.0) - 900_000.0).abs() < 9_000.0, "{of:?}");
        assert!(told(&of).starts_with("netem of this kernel at 100"), "{}", told(&of));
        assert!(told(&of).contains("in the median of 400 datagrams"), "{}", told(&of));
        // One that refuses the discipline is told with what it said, and nothing is measured.
        let mut is_measured = false;
        let refused = errors_of(
            Nanos(100_000),
            &mut |words| {
                let unknown = || "Error: Specified qdisc kind is unknown.".to_owned();
                if words.starts_with("tc") { Err(unknown()) } else { Ok(()) }
            },
            &mut || {
                is_measured = true;
                Ok(Vec::new())
            },
        );
        assert!(!is_measured);
        let of = emulator_from(Nanos(100_000), refused);
        assert!(of.missing.as_ref().is_some_and(|why| why.contains("kind is unknown")), "{of:?}");
        assert!(of.errors.is_empty() && of.n == 0);
    }

    #[test]
    fn a_program_that_fails_is_told_by_what_it_said_or_else_by_how_it_ended() {
        assert_eq!(run("true", ""), Ok(()));
        assert_eq!(run("false", ""), Err("false ended with exit status: 1".to_owned()));
        let said = run("ls", "/nowhere/at/all").unwrap_err();
        assert!(said.contains("/nowhere/at/all"), "{said}");
    }

    #[test]
    fn quantiles_that_the_datagrams_support_are_told_with_their_sign_and_no_others() {
        let mut errors = SignedHistogram::new();
        for number in 0..i64::from(DATAGRAMS) {
            errors.record(if number < 40 { -2_000 } else { 1_000 });
        }
        let of = quantiles(&errors);
        let percents: Vec<String> = of.iter().map(|at| at.percent.to_string()).collect();
        assert_eq!(percents, ["50", "90", "99"]);
        let median = of[0].value_ns.unwrap();
        assert!((median - 1_000.0).abs() <= 2.0, "{median}");
        let late = told(&Emulator { errors: of, ..emulator_of(-500.0) });
        assert!(late.contains("off by 1.00us in the median"), "{late}");
        let early = told(&emulator_of(-500.0));
        assert!(early.contains("off by -500ns in the median"), "{early}");
    }

    fn emulator_of(ns: f64) -> Emulator {
        let at = |percent| SignedQuantile {
            percent,
            value_ns: Some(ns),
            low_ns: None,
            high_ns: None,
            n_eff: 400.0,
        };
        let errors = vec![at(50.0), at(99.0)];
        Emulator { name: "netem".to_owned(), delay: USUAL, errors, n: 400, missing: None }
    }

    #[test]
    fn a_line_stands_beside_it_with_what_it_says_of_itself() {
        let of = own_error(&DelayBase {
            base: Nanos(61),
            error: Nanos(90),
            error_median: Nanos(31),
            error_max: Nanos(5_000),
            at: Nanos(10_000),
            frames: 4_000,
            resolution: Nanos(10),
        });
        assert_eq!((of.delay, of.n, of.missing), (Nanos(10_000), 4_000, None));
        let values: Vec<_> = of.errors.iter().map(|at| (at.percent, at.value_ns)).collect();
        assert_eq!(values, [(50.0, Some(31.0)), (99.0, Some(90.0))]);
    }
}
