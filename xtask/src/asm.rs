//! Prints the assembly of a hot function, as the release build has it: one of a file `hot.rs`, or one of
//! the shim to DPDK by its whole name, which a build with the feature `dpdk` has.

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
    let (wanted, shim) = (format!("hot::{name}"), format!("<{name}>:"));
    let mut found = false;
    for function in text.split("\n\n") {
        let title = function.lines().next().unwrap_or("");
        if title.contains(&wanted) || title.ends_with(&shim) {
            found = true;
            println!("{function}\n");
        }
    }
    if !found {
        bail!("no function {wanted} or {name} in {}", binary.display());
    }
    Ok(())
}
