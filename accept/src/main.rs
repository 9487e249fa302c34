//! `make accept`: takes the live figures, or those whose names hold one of the words given.
//!
//! Rounds that were taken of the same commit on the same machine are kept in `target/accept/` and not taken
//! again; `--fresh` begins anew, `--list` tells what there is.

#![expect(clippy::unwrap_used, reason = "a round that panics has failed, as it should")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use accept::figure::Figure;
use accept::{driver, table};
use anyhow::{Context, Result, bail};

#[path = "../../tests/borne_out.rs"]
mod borne_out;
#[path = "../../tests/elsewhere.rs"]
mod elsewhere;
mod figures;
#[path = "../../tests/foreign.rs"]
mod foreign;
#[path = "../../tests/hog.rs"]
mod hog;
#[path = "../../tests/looked.rs"]
mod looked;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/needs.rs"]
mod needs;
#[path = "../../tests/one_end.rs"]
mod one_end;
mod peers;
mod plant;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/program.rs"]
mod program;
#[expect(dead_code, reason = "shared with the tests of the whole tool")]
#[path = "../../tests/requests.rs"]
mod requests;
#[path = "../../tests/segments.rs"]
mod segments;
#[path = "../../tests/softirq.rs"]
mod softirq;
#[path = "../../tests/watching.rs"]
mod watching;

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
    if let Some(other) = options.iter().find(|of| !matches!(of.as_str(), "--fresh" | "--list")) {
        bail!("{other} is not known: usage: accept [--list] [--fresh] [NAME..]");
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
    if !Path::new(env!("CARGO_BIN_EXE_whylate")).is_file() {
        bail!("{} is not there: cargo build --release", env!("CARGO_BIN_EXE_whylate"));
    }
    let folder = root.join("target/accept");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let journal = folder.join("rounds.jsonl");
    if options.iter().any(|of| of == "--fresh") && journal.exists() {
        std::fs::remove_file(&journal).with_context(|| journal.display().to_string())?;
    }
    let (commit, day, machine) = (commit(&root)?, day()?, machine());
    let entries = driver::take(&chosen, &journal, &format!("{commit} on {machine}"))?;
    let taken = format!("{day}, {commit}, {machine}");
    let path = table::write(&root.join("acceptance"), &day, &taken, &entries, figures::ALL)?;
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
