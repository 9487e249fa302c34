//! `gaps` beside Debian's oslat, interleaved on one CPU, with ratios and the control of oslat
//! against itself.
//!
//! Never absolute times: both run in turn under the same host state, pair by pair, and each ratio
//! stands beside the ratio that the same procedure finds between two runs of the same program.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Pairs are added until the control's half-width is at most this, or [`Size::most_pairs`].
const HALF_WIDTH: f64 = 0.03;

/// Both look for the same gaps in turn, on a host whose noise comes in bursts: fewer than half of
/// the peer's, in the median of the pairs, means that ours does not see them.
const FOUND_AT_LEAST: f64 = 0.5;

struct Size {
    seconds: u32,
    least_pairs: usize,
    most_pairs: usize,
}

/// What both programs say about one run.
struct Reading {
    /// Elapsed time over iterations.
    iteration_ns: f64,
    /// Gaps of 2 us and more per second.
    gaps_per_second: f64,
    longest_us: f64,
}

pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let (size, profile) = match options {
        [] => (Size { seconds: 4, least_pairs: 5, most_pairs: 20 }, "release"),
        ["--test"] => (Size { seconds: 1, least_pairs: 3, most_pairs: 3 }, "debug"),
        _ => bail!("usage: cargo xtask bench [--test]"),
    };
    if profile == "debug" && !installed("oslat") {
        if std::env::var_os("CI").is_some() {
            bail!("oslat is missing: install package rt-tests");
        }
        println!("bench: skipped: oslat is missing (package rt-tests)");
        return Ok(());
    }
    let program = root.join("target").join(profile).join("whylate");
    let cpus = std::thread::available_parallelism()?.get();
    if cpus < 2 {
        bail!("needs two CPUs: one to measure on and one to stay away on");
    }
    let cpu = cpus - 1;
    let folder = std::env::temp_dir().join(format!("whylate-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = pairs(&program, &folder, cpu, &size);
    std::fs::remove_dir_all(&folder)?;
    let rows = result?;
    print(cpu, &size, &rows);
    let found = summary(&rows, |row| row.ours.gaps_per_second / row.peer.gaps_per_second).median;
    if found.is_nan() || found < FOUND_AT_LEAST {
        bail!(
            "gaps found {found:.3} times as many gaps as oslat: at least {FOUND_AT_LEAST} expected"
        );
    }
    Ok(())
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

struct Row {
    ours: Reading,
    peer: Reading,
    control: Reading,
}

fn pairs(program: &Path, folder: &Path, cpu: usize, size: &Size) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    while rows.len() < size.most_pairs {
        let ours = whylate(program, folder, cpu, size.seconds, rows.len())?;
        let peer = oslat(folder, cpu, size.seconds)?;
        let control = oslat(folder, cpu, size.seconds)?;
        rows.push(Row { ours, peer, control });
        let spread = summary(&rows, |row| row.control.iteration_ns / row.peer.iteration_ns);
        if rows.len() >= size.least_pairs && spread.half_width <= HALF_WIDTH {
            break;
        }
    }
    Ok(rows)
}

fn whylate(
    program: &Path,
    folder: &Path,
    cpu: usize,
    seconds: u32,
    turn: usize,
) -> Result<Reading> {
    let run = folder.join(format!("run-{turn}"));
    let output = Command::new(program)
        .args(["gaps", "--no-trace", "--format", "json"])
        .args(["--cpus", &cpu.to_string(), "--duration", &format!("{seconds}s")])
        .arg("--output")
        .arg(&run)
        .stderr(Stdio::null())
        .output()
        .with_context(|| format!("{} could not be run: build it first", program.display()))?;
    let parsed: Value = serde_json::from_slice(&output.stdout).context("whylate's JSON")?;
    let gaps = &parsed["gaps"][0];
    let number = |value: &Value| value.as_f64().context("a number in whylate's JSON");
    let elapsed_ticks = number(&gaps["end"])? - number(&gaps["start"])?;
    let elapsed_ns = elapsed_ticks * 1e9 / number(&parsed["clock"]["hz"])?;
    let log = gaps["rates"].as_array().context("rates")?;
    let two_us = log.iter().find(|rate| rate["at_least"] == 2_000).context("rate of 2 us")?;
    let longest = number(&parsed["series"][0]["max"]).unwrap_or(0.0) / 1e3;
    Ok(Reading {
        iteration_ns: elapsed_ns / number(&gaps["iterations"])?,
        gaps_per_second: number(&two_us["per_second"])?,
        longest_us: longest,
    })
}

fn oslat(folder: &Path, cpu: usize, seconds: u32) -> Result<Reading> {
    let json = folder.join("oslat.json");
    let status = Command::new("oslat")
        .args(["--cpu-list", &cpu.to_string(), "--cpu-main-thread", "0", "--quiet", "--zero-omit"])
        .args(["--bucket-size", "1024", "--duration", &seconds.to_string()])
        .arg(format!("--json={}", json.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("oslat could not be run: install package rt-tests")?;
    if !status.success() {
        bail!("oslat ended with {status}");
    }
    let parsed: Value = serde_json::from_str(&std::fs::read_to_string(&json)?)?;
    let thread = &parsed["thread"]["0"];
    let seconds = thread["duration"].as_f64().context("oslat's duration")?;
    let buckets = thread["histogram"].as_object().context("oslat's histogram")?;
    let counts = buckets.iter().filter_map(|(us, count)| Some((us.parse().ok()?, count.as_f64()?)));
    let counts: Vec<(u64, f64)> = counts.collect();
    let iterations: f64 = counts.iter().map(|(_, count)| count).sum();
    // Bucket k holds iterations of k-1 to k us.
    let long: f64 = counts.iter().filter(|(us, _)| *us >= 3).map(|(_, count)| count).sum();
    Ok(Reading {
        iteration_ns: seconds * 1e9 / iterations,
        gaps_per_second: long / seconds,
        longest_us: thread["max"].as_f64().unwrap_or(0.0),
    })
}

struct Summary {
    median: f64,
    half_width: f64,
}

/// Median of the pairwise ratios, and half the width of their middle half as a rough bound that
/// needs no distribution.
fn summary(rows: &[Row], ratio: impl Fn(&Row) -> f64) -> Summary {
    let mut ratios: Vec<f64> = rows.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
    Summary { median: at(0.5), half_width: (at(0.75) - at(0.25)) / 2.0 }
}

type Pick = fn(&Reading) -> f64;

fn print(cpu: usize, size: &Size, rows: &[Row]) {
    println!(
        "gaps beside oslat on CPU {cpu}: {} pairs of {}s, interleaved; ratios, median +- half of \
         the middle half",
        rows.len(),
        size.seconds
    );
    let figures: [(&str, Pick); 3] = [
        ("loop iteration", |reading| reading.iteration_ns),
        ("gaps of 2us and more per second", |reading| reading.gaps_per_second),
        ("longest gap", |reading| reading.longest_us),
    ];
    println!("{:<34} {:>18} {:>22}", "", "whylate / oslat", "oslat / oslat (control)");
    for (name, pick) in figures {
        let ours = summary(rows, |row| pick(&row.ours) / pick(&row.peer));
        let control = summary(rows, |row| pick(&row.control) / pick(&row.peer));
        let claim = if control.half_width <= HALF_WIDTH { "" } else { "  no claim" };
        println!(
            "{name:<34} {:>9.3} +- {:<5.3} {:>12.3} +- {:<5.3}{claim}",
            ours.median, ours.half_width, control.median, control.half_width
        );
    }
}
