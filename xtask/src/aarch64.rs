//! Cross-builds for aarch64 and runs the unit tests under qemu-user; or only lints it.
//!
//! Unit tests only: qemu-user emulates the processor, not the kernel interfaces that measuring
//! needs, such as rseq and the schedulers' ways.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// Crates whose unit tests run there.
const TESTED: [&str; 9] = [
    "whylate-stats",
    "whylate-model",
    "whylate-sys",
    "whylate-clock",
    "whylate-host",
    "whylate-trace",
    "whylate-gap",
    "whylate-cause",
    "whylate-breakdown",
];

pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let only_check = match options {
        [] => false,
        ["--check"] => true,
        _ => bail!("usage: cargo xtask aarch64 [--check]"),
    };
    let compiler = ("aarch64-linux-gnu-gcc", "package gcc-aarch64-linux-gnu");
    let emulator = ("qemu-aarch64", "package qemu-user");
    let tools = if only_check { vec![compiler] } else { vec![compiler, emulator] };
    for (tool, remedy) in tools {
        if !available(tool) {
            if std::env::var_os("CI").is_some() {
                bail!("{tool} is missing: install {remedy}");
            }
            println!("aarch64: skipped: {tool} is missing ({remedy})");
            return Ok(());
        }
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    if only_check {
        let mut lint = Command::new(&cargo);
        lint.current_dir(root).args(["clippy", "--locked", "--target", TARGET]);
        lint.args(["-p", "whylate", "-p", "whylate-load", "--", "-D", "warnings"]);
        return succeed(&mut lint);
    }
    let mut build = Command::new(&cargo);
    build.current_dir(root).args(["build", "--locked", "--target", TARGET, "-p", "whylate"]);
    succeed(&mut build)?;
    let mut test = Command::new(&cargo);
    test.current_dir(root).args(["test", "--locked", "--target", TARGET, "--lib"]);
    for name in TESTED {
        test.args(["-p", name]);
    }
    test.env("WHYLATE_TESTS_REQUIRE", "nothing").env("WHYLATE_EMULATED", "qemu-user");
    succeed(&mut test)
}

fn available(tool: &str) -> bool {
    let quiet =
        Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
