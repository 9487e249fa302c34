//! Wake-ups beside those of cyclictest, and cyclictest beside itself.
//!
//! A quantile is shown to be the same where all of the ratio's interval lies within ten per cent. An
//! interval beyond that fails. Where one reaches across a limit, or cyclictest does not agree with itself,
//! nothing is claimed: a few rounds say so, and where a claim must be made the test fails.

use std::process::Command;
use std::time::Duration;

use whylate_model::CpuId;

use crate::needs;
use crate::pairs::{Against, Promise};
use crate::program::{self, record_ending};

/// The priority that `wake` uses by itself; cyclictest is given the same.
pub(crate) const PRIORITY: u8 = 95;
/// Wake-ups of a recording, and the time between two.
const WAKES: u64 = 4_000;
const PERIOD_US: u64 = 500;
/// Rounds are added so long, unless a number of them is asked for.
const BUDGET: Duration = Duration::from_secs(40);
/// What is promised of whylate's lateness over cyclictest's: the same within ten per cent.
const SAME: Promise = Promise::Within(0.9, 1.1);
const NAMES: [&str; 2] = ["p50", "p99"];

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

#[test]
#[ignore = "live figure: to accept"]
fn p50_and_p99_are_those_of_cyclictest_where_it_agrees_with_itself() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let cpu = cpus[cpus.len() - 1];
    if !needs::root() || needs::program("cyclictest").is_none() {
        return;
    }
    let of = Against { peer: "cyclictest", names: NAMES, budget: BUDGET, least: 1, cpus: &[cpu] };
    let claims = of.claims(|number| [theirs(cpu), ours(cpu, number), theirs(cpu)]);
    for (name, claim) in NAMES.into_iter().zip(claims) {
        match claim {
            None => needs::spoilt(&format!("cyclictest does not agree with itself on its {name}")),
            Some(claim) if claim.keeps(SAME) => {}
            Some(claim) => needs::spoilt(&format!("{SAME} is not shown: {}", claim.said)),
        }
    }
}
