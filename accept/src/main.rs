//! `make accept`: takes the live figures, or those whose names hold one of the words given.
//!
//! Rounds that were taken of the same commit on the same machine are kept in `target/accept/` and not taken
//! again; `--fresh` begins anew, `--list` tells what there is, `--table` takes nothing and brings the table in step with the figures.

#![expect(clippy::unwrap_used, reason = "a round that panics has failed, as it should")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use accept::figure::Figure;
use accept::{driver, table};
use anyhow::{Context, Result, bail};

#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/between.rs"]
mod between;
#[path = "../../tests/borne_out.rs"]
mod borne_out;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/chromium.rs"]
mod chromium;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/delaying.rs"]
mod delaying;
#[cfg(feature = "dpdk")]
mod dpdk;
#[path = "../../tests/elsewhere.rs"]
mod elsewhere;
#[path = "../../tests/exponential.rs"]
mod exponential;
mod figures;
#[path = "../../tests/foreign.rs"]
mod foreign;
mod guest;
#[path = "../../tests/hog.rs"]
mod hog;
#[path = "../../tests/device/hogs.rs"]
mod hogs;
#[path = "../../tests/hourglass2002.rs"]
mod hourglass2002;
#[path = "../../tests/looked.rs"]
mod looked;
#[path = "../../tests/misses.rs"]
mod misses;
#[path = "../../tests/device/narrow.rs"]
mod narrow;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/needs.rs"]
mod needs;
#[path = "../../tests/one_end.rs"]
mod one_end;
mod over_dpdk;
#[allow(dead_code, reason = "shared with the tests over DPDK, and used by the feature dpdk alone")]
#[path = "../../crates/whylate-dpdk/tests/peer.rs"]
mod peer;
mod peers;
#[expect(dead_code, reason = "shared with the tests of ports")]
#[path = "../../crates/whylate-port/tests/frames/place.rs"]
mod place;
mod plant;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/program.rs"]
mod program;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/requests.rs"]
mod requests;
#[path = "../../tests/rt_app_peer.rs"]
mod rt_app_peer;
#[path = "../../tests/rt_app_rows.rs"]
mod rt_app_rows;
#[path = "../../tests/runaway.rs"]
mod runaway;
#[path = "../../tests/segments.rs"]
mod segments;
mod site;
#[path = "../../tests/softirq.rs"]
mod softirq;
#[path = "../../tests/stalls.rs"]
mod stalls;
#[path = "../../tests/told.rs"]
mod told;
#[path = "../../crates/whylate/tests/dpdk/tool.rs"]
mod tool;
#[path = "../../tests/device/trials.rs"]
mod trials;
#[path = "../../tests/two_cpus.rs"]
mod two_cpus;
#[path = "../../tests/watching.rs"]
mod watching;
#[path = "../../crates/whylate/tests/dpdk/ways.rs"]
mod ways;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("accept: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let (options, names): (Vec<String>, Vec<String>) =
        words.partition(|word| word.starts_with("--"));
    if let Some(other) =
        options.iter().find(|of| !matches!(of.as_str(), "--fresh" | "--list" | "--table"))
    {
        bail!("{other} is not known: usage: accept [--list | --table] [--fresh] [NAME..]");
    }
    let wanted = |figure: &Figure| {
        names.is_empty() || names.iter().any(|of| figure.name.contains(of.as_str()))
    };
    let chosen: Vec<&Figure> = figures::ALL.iter().copied().filter(|of| wanted(of)).collect();
    if chosen.is_empty() {
        bail!("no figure is named so; --list tells which there are");
    }
    if options.iter().any(|of| of == "--list") {
        for figure in chosen {
            println!(
                "{:<40} {:>3} x {:>4} s  {}",
                figure.name, figure.rounds, figure.seconds, figure.method
            );
        }
        return Ok(());
    }
    let root = root();
    let (acceptance, day) = (root.join("acceptance"), day()?);
    if options.iter().any(|of| of == "--table") {
        println!("{}", table::write(&acceptance, &day, "", &[], figures::ALL)?.display());
        return Ok(());
    }
    if !Path::new(env!("CARGO_BIN_EXE_whylate")).is_file() {
        bail!("{} is not there: cargo build --release", env!("CARGO_BIN_EXE_whylate"));
    }
    let folder = root.join("target/accept");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let journal = folder.join("rounds.jsonl");
    if options.iter().any(|of| of == "--fresh") && journal.exists() {
        std::fs::remove_file(&journal).with_context(|| journal.display().to_string())?;
    }
    let (commit, machine) = (commit(&root)?, machine());
    let entries = driver::take(&chosen, &journal, &format!("{commit} on {machine}"))?;
    let taken = format!("{day}, {commit}, {machine}");
    let path = table::write(&acceptance, &day, &taken, &entries, figures::ALL)?;
    for entry in &entries {
        println!("{:<40} {:<40} {}", entry.figure, entry.claim, entry.judged.verdict.word());
    }
    println!("{}", path.display());
    Ok(())
}

/// The repository's root: the folder above this package.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// What a program says on its first line.
fn first_line(program: &str, words: &[&str], folder: &Path) -> Result<String> {
    let output = Command::new(program)
        .args(words)
        .current_dir(folder)
        .output()
        .with_context(|| format!("{program} could not be run"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// The commit that is measured, with a `+` where the tree differs from it.
fn commit(root: &Path) -> Result<String> {
    let commit = first_line("git", &["rev-parse", "--short", "HEAD"], root)?;
    let changed = first_line("git", &["status", "--porcelain", "--", "crates", "accept"], root)?;
    Ok(if changed.is_empty() { commit } else { commit + "+" })
}

fn day() -> Result<String> {
    first_line("date", &["-u", "+%F"], Path::new("/"))
}

/// The machine in a few words: CPU, how many, kernel.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let text = read("/proc/cpuinfo");
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown CPU", |(_, name)| name.trim());
    let cpus = text.lines().filter(|line| line.starts_with("processor")).count();
    let guest = if text.contains(" hypervisor ") { ", virtual" } else { "" };
    format!("{model} ({cpus} CPUs{guest}), Linux {}", read("/proc/sys/kernel/osrelease").trim())
}
