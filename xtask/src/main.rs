//! Checks and chores of this repository.
//!
//! `cargo xtask check` keeps what the compiler cannot: the order of the layers, where unsafe may
//! stand, what a hot path may not do, that live tests have a limit, and that the documents name things
//! that exist. `cargo xtask test` runs all tests, one suite at a time on a machine, and names those that
//! pass only at the second try; before, it mends what killed tests left, as `cargo xtask mend` does, and
//! with `--beside COMMAND..` it runs that with the least weight while the live tests run. With `--dpdk` it
//! runs those over DPDK alone. `cargo xtask soak` runs live tests again and again under planted noise.
//! `cargo xtask aarch64` cross-builds and runs the unit tests under qemu-user, with `--check` it compiles
//! alone. `cargo xtask asm NAME` prints the assembly of a hot function. `cargo xtask keep NAME` records a run
//! anew that tests read.
//! `cargo xtask lines [CRATE..]` counts lines of code.

mod aarch64;
mod all_tests;
mod asm;
mod clocked;
mod documents;
mod keep;
mod layers;
mod layout;
mod left_out;
mod limits;
mod lines;
mod mend;
mod packages;
mod phrases;
mod processes;
mod product;
mod promises;
mod room;
mod soak;
mod twice;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use whylate_suite as suite;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["check"] => check(),
        ["test"] => all_tests::run(&root(), &[]),
        ["test", "--beside", command @ ..] => all_tests::run(&root(), command),
        ["test", "--dpdk"] => all_tests::over_dpdk(&root()),
        ["mend"] => mend::run(&root()),
        ["soak", names @ ..] => soak::run(&root(), names),
        // What soak starts itself.
        ["noise", kind, seed] => soak::make_noise(kind, seed),
        ["alone", name] => soak::alone(&root(), name),
        ["aarch64", options @ ..] => aarch64::run(&root(), options),
        ["keep", name] => keep::run(&root(), name),
        ["asm", name] => asm::print(&root(), name),
        ["lines", names @ ..] => lines::print(&root(), names),
        _ => Err(anyhow::anyhow!(
            "usage: cargo xtask check | test [--beside COMMAND.. | --dpdk] | mend | soak [--killed] [NAME..] | aarch64 [--check] | \
             asm NAME | keep NAME | lines [CRATE..]"
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<()> {
    let root = root();
    let mut faults = layers::check(&root)?;
    faults.extend(layout::check(&root)?);
    faults.extend(limits::check(&root)?);
    faults.extend(packages::check(&root)?);
    faults.extend(promises::check(&root)?);
    faults.extend(documents::check(&root)?);
    faults.extend(phrases::check(&root)?);
    for fault in &faults {
        eprintln!("{fault}");
    }
    if !faults.is_empty() {
        bail!("{} faults", faults.len());
    }
    println!("layers, layout, limits, packages, promises, documents and phrases hold");
    Ok(())
}

/// The repository's root: the folder above this crate.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// Every file below `folder` with this extension, build output left out.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
