//! Prints the assembly of a hot function, as the release build has it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

pub(crate) fn print(root: &Path, name: &str) -> Result<()> {
    let binary = root.join("target/release/whylate");
    let output = Command::new("objdump")
        .args(["--disassemble", "--demangle", "--no-show-raw-insn", "-Mintel"])
        .arg(&binary)
        .output()
        .context("objdump (package binutils) could not be run")?;
    if !output.status.success() {
        bail!("objdump failed on {}: run `cargo build --release` first", binary.display());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let wanted = format!("hot::{name}");
    let mut found = false;
    for function in text.split("\n\n") {
        let title = function.lines().next().unwrap_or("");
        if title.contains(&wanted) {
            found = true;
            println!("{function}\n");
        }
    }
    if !found {
        bail!("no function {wanted} in {}", binary.display());
    }
    Ok(())
}
