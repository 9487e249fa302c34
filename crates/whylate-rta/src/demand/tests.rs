//! Every form is read, refused and drawn as it should be.

use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, LogNormal, Normal};

use super::*;

const FRAMES: &str = "# sizes of frames\n\n3ms # I\n 1ms\n2ms\n";

fn frames(name: &str) -> Result<String, String> {
    match name {
        "frames.txt" => Ok(FRAMES.to_owned()),
        "bytes.txt" => Ok("1500\n9000\n".to_owned()),
        "empty.txt" => Ok("# nothing\n".to_owned()),
        "wrong.txt" => Ok("1ms\n2\n".to_owned()),
        "zero.txt" => Ok("1ms\n\n0ms\n".to_owned()),
        "long.txt" => Ok("1ms\n".repeat(MOST_ROWS + 1)),
        "secret.txt" => Ok(format!("{}\n", "x".repeat(41))),
        _ => Err("no such file".to_owned()),
    }
}

fn parse(text: &str) -> Demand {
    Demand::parse(text, &frames).unwrap()
}

const ALL: [&str; 8] = [
    "3ms",
    "uniform(2ms,4ms)",
    "normal(3ms,200us)",
    "lognormal(3ms,0.25)",
    "bimodal(2ms,9ms,5%)",
    "bimodal(2ms,9ms,0%)",
    "table(frames.txt)",
    "table(bytes.txt,0.5ns)",
];

#[test]
fn every_form_reads_back_as_it_prints() {
    for text in ALL {
        let demand = parse(text);
        assert_eq!(demand.to_string(), text);
        assert_eq!(parse(&demand.to_string()), demand);
    }
    assert_eq!(parse("normal(3ms, 0.2ms)").to_string(), "normal(3ms,200us)");
    assert_eq!(parse("UNIFORM 2ms 4ms"), parse("uniform(2ms,4ms)"));
}

#[test]
fn what_is_no_execution_time_is_refused_with_what_to_write() {
    for (text, word) in [
        ("", "name is missing"),
        ("3", "no unit"),
        ("0ms", "the time must be above zero"),
        ("-3ms", "not a duration"),
        ("3ms 4ms", "too many"),
        ("3 ms", "too many"),
        ("2h", "at most an hour"),
        ("often", "is no execution time"),
        ("uniform(2ms)", "lacks its high"),
        ("uniform(4ms,2ms)", "smaller time first"),
        ("uniform(0ms,2ms)", "the time must be above zero"),
        ("uniform(1ms,2ms,3ms)", "too many"),
        ("normal(3ms,1ms)", "quarter of the mean"),
        ("normal(3ms,0ms)", "the time must be above zero"),
        ("lognormal(3ms,0)", "above 0"),
        ("lognormal(3ms,NaN)", "above 0"),
        ("lognormal(3ms,9)", "up to 2"),
        ("lognormal(50m,2)", "at most an hour"),
        ("bimodal(2ms,9ms,5)", "in percent"),
        ("bimodal(2ms,9ms,101%)", "outside 0% to 100%"),
        ("bimodal(2ms,9ms,-1%)", "outside 0% to 100%"),
        ("bimodal(2ms,9ms,NaN%)", "outside 0% to 100%"),
        ("bimodal(9ms,2ms,5%)", "smaller time first"),
        ("table()", "lacks its file"),
        ("table(gone.txt)", "no such file"),
        ("table(empty.txt)", "no rows"),
        ("table(wrong.txt)", "line 2"),
        ("table(zero.txt)", "line 3"),
        ("table(long.txt)", "more than 1000000 rows"),
        ("table(secret.txt)", "41 characters"),
        ("table(frames.txt,12ns)", "no plain number"),
        ("table(bytes.txt,12)", "no time above zero"),
        ("table(bytes.txt,0ns)", "no time above zero"),
        ("table(bytes.txt,9s)", "at most an hour"),
        ("table(bytes.txt,0.00001ns)", "no time at all"),
    ] {
        let error = Demand::parse(text, &frames).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

#[test]
fn a_table_is_replayed_in_order_and_from_the_beginning_again() {
    let mut sampler = parse("table(frames.txt)").sampler(1);
    let drawn: Vec<u64> = (0..5).map(|_| sampler.draw().0 / 1_000_000).collect();
    assert_eq!(drawn, [3, 1, 2, 3, 1]);
    let bytes = parse("table(bytes.txt,0.5ns)");
    assert_eq!((bytes.ceiling(), bytes.mean()), (Nanos(4_500), 2_625.0));
}

#[test]
fn one_seed_is_one_sequence() {
    for text in ALL {
        let sequence = |seed| {
            let mut sampler = parse(text).sampler(seed);
            (0..50).map(|_| sampler.draw()).collect::<Vec<_>>()
        };
        assert_eq!(sequence(7), sequence(7), "{text}");
        let random = !text.starts_with("table") && !text.starts_with('3') && !text.contains(",0%");
        assert_eq!(sequence(7) != sequence(8), random, "{text}");
    }
}

/// The distance of Kolmogorov and Smirnov between what is drawn and a distribution.
fn distance(demand: &Demand, seed: u64, n: usize, below: impl Fn(f64) -> f64) -> f64 {
    let mut sampler = demand.sampler(seed);
    let mut drawn: Vec<u64> = (0..n).map(|_| sampler.draw().0).collect();
    drawn.sort_unstable();
    let steps = drawn.iter().enumerate().map(|(i, &value)| {
        let p = below(value as f64);
        (p - i as f64 / n as f64).abs().max((p - (i + 1) as f64 / n as f64).abs())
    });
    steps.fold(0.0, f64::max)
}

#[test]
fn what_is_drawn_follows_the_distribution() {
    const N: usize = 50_000;
    // Passed by 999 of 1000 samples of the right distribution; the seeds are fixed.
    let critical = 1.95 / (N as f64).sqrt();
    let cut = |p: f64| {
        let tail = Normal::standard().cdf(-WIDEST);
        ((p - tail) / (1.0 - 2.0 * tail)).clamp(0.0, 1.0)
    };
    let (normal, log_normal) =
        (Normal::new(3e6, 2e5).unwrap(), LogNormal::new(3e6f64.ln(), 0.25).unwrap());
    for seed in 1..=5 {
        let uniform = |x: f64| ((x - 2e6) / 2e6).clamp(0.0, 1.0);
        assert!(distance(&parse("uniform(2ms,4ms)"), seed, N, uniform) < critical);
        let below = |x: f64| cut(normal.cdf(x));
        assert!(distance(&parse("normal(3ms,200us)"), seed, N, below) < critical);
        // The test sees a distribution that is wrong by a twentieth of its spread.
        assert!(distance(&parse("normal(3010us,200us)"), seed, N, below) > critical);
        let below = |x: f64| cut(log_normal.cdf(x));
        assert!(distance(&parse("lognormal(3ms,0.25)"), seed, N, below) < critical);
    }
}

#[test]
fn the_share_of_long_jobs_is_the_one_asked_for() {
    let mut sampler = parse("bimodal(2ms,9ms,5%)").sampler(3);
    let long = (0..100_000).filter(|_| sampler.draw() == Nanos(9_000_000)).count();
    // 4 standard deviations of Bin(100000, 0.05).
    assert!(long.abs_diff(5_000) < 276, "{long}");
}

#[test]
fn mean_and_quantiles_are_those_of_what_is_drawn() {
    for text in ALL {
        let demand = parse(text);
        let mut sampler = demand.sampler(11);
        let n = 99_999;
        let mut drawn: Vec<u64> = (0..n).map(|_| sampler.draw().0).collect();
        let mean = drawn.iter().sum::<u64>() as f64 / f64::from(n);
        assert!((mean / demand.mean() - 1.0).abs() < 0.005, "{text}: {mean} {}", demand.mean());
        drawn.sort_unstable();
        for p in [0.5, 0.9, 0.99] {
            let got = drawn[(p * f64::from(n)) as usize] as f64;
            let said = demand.quantile(p).0 as f64;
            assert!((got / said - 1.0).abs() < 0.01, "{text} at {p}: {got} {said}");
        }
    }
}

#[test]
fn the_wide_log_normal_is_cut_and_its_mean_is_that_of_the_cut_one() {
    let demand = parse("lognormal(100us,2)");
    assert_eq!(demand.worst(), None);
    let multiple = demand.ceiling().0 as f64 / 100_000.0;
    assert!((multiple - (WIDEST * 2.0).exp()).abs() < 0.01, "{multiple}");
    // By the midpoint rule over the quantiles.
    let steps = 200_000;
    let sum: f64 =
        (0..steps).map(|i| demand.quantile((f64::from(i) + 0.5) / f64::from(steps)).0 as f64).sum();
    assert!((sum / f64::from(steps) / demand.mean() - 1.0).abs() < 1e-3);
}

#[test]
fn the_worst_case_is_known_where_there_is_one() {
    for (text, worst) in [
        ("3ms", Some(3_000)),
        ("uniform(2ms,4ms)", Some(4_000)),
        ("bimodal(2ms,9ms,5%)", Some(9_000)),
        ("bimodal(2ms,9ms,0%)", Some(2_000)),
        ("table(frames.txt)", Some(3_000)),
        ("normal(3ms,200us)", None),
        ("lognormal(3ms,0.25)", None),
    ] {
        assert_eq!(parse(text).worst(), worst.map(|us: u64| Nanos(us * 1_000)), "{text}");
    }
    assert_eq!(parse("normal(3ms,200us)").ceiling(), Nanos(3_800_000));
}

proptest! {
    #[test]
    fn no_job_asks_for_nothing_or_for_more_than_the_ceiling(
        which in 0..4,
        a in 1..5_000_000u64,
        b in 1..5_000_000u64,
        seed: u64,
    ) {
        let (low, high) = (Nanos(a.min(b)), Nanos(a.max(b)));
        let demand = match which {
            0 => Demand::Uniform { low, high },
            1 => Demand::Normal { mean: high, sd: Nanos((low.0.min(high.0 / 4)).max(1)) },
            2 => Demand::LogNormal { median: low, sigma: a as f64 / 2_500_000.0 + 1e-3 },
            _ => Demand::Bimodal { short: low, long: high, long_percent: 3.0 },
        };
        let mut sampler = demand.sampler(seed);
        for _ in 0..100 {
            let drawn = sampler.draw();
            prop_assert!(drawn > Nanos(0) && drawn <= demand.ceiling());
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,40}", known in 0..5usize, rest in "[-0-9a-z.,%() ]{0,30}") {
        let names = ["uniform(", "normal(", "lognormal(", "bimodal(", "table("];
        let _ = Demand::parse(&text, &frames);
        let _ = Demand::parse(&format!("{}{rest})", names[known]), &frames);
    }
}
