//! The order of the layers: a crate imports only from rows above its own.

use std::path::Path;

use anyhow::{Context, Result};

/// The rows of ARCHITECTURE.md, top to bottom.
pub(crate) const PRODUCT: [&str; 19] = [
    "whylate-stats",
    "whylate-model",
    "whylate-sys",
    "whylate-clock",
    "whylate-host",
    "whylate-trace",
    "whylate-gap",
    "whylate-cause",
    "whylate-breakdown",
    "whylate-rta",
    "whylate-threads",
    "whylate-port",
    "whylate-dpdk",
    "whylate-net",
    "whylate-load",
    "whylate-record",
    "whylate-report",
    "whylate-papers",
    "whylate",
];
/// The rows below: nothing of the product imports them.
const OF_TESTS: [&str; 2] = ["whylate-suite", "whylate-testing"];

/// Crates that never touch the outside world, so that they replay any recorded run.
const PURE: [&str; 4] = ["whylate-stats", "whylate-trace", "whylate-cause", "whylate-breakdown"];
const OUTSIDE: [&str; 5] = ["std::fs", "std::net", "std::process", "rustix::", "libc::"];

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let order: Vec<&str> = PRODUCT.into_iter().chain(OF_TESTS).collect();
    for (row, name) in order.iter().enumerate() {
        let manifest = root.join("crates").join(name).join("Cargo.toml");
        let text =
            std::fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
        let normal = text.split("[dev-dependencies]").next().unwrap_or("");
        for line in normal.lines() {
            let Some(imported) = line.split(['.', ' ', '=']).next() else { continue };
            let Some(imported_row) = order.iter().position(|known| *known == imported) else {
                continue;
            };
            if imported_row >= row && !line.starts_with("name") {
                faults.push(format!("{name} imports {imported}, which stands below it"));
            }
        }
    }
    for entry in std::fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !order.contains(&name.as_str()) {
            faults.push(format!("{name} has no row in the order of layers"));
        }
    }
    for name in PURE {
        for path in crate::files(&root.join("crates").join(name).join("src"), "rs")? {
            if path.components().any(|part| part.as_os_str() == "tests") {
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            let code = text.split("#[cfg(test)]").next().unwrap_or("");
            let outside = OUTSIDE.iter().filter(|word| code.contains(**word));
            faults.extend(outside.map(|word| format!("{} uses {word}", path.display())));
        }
    }
    Ok(faults)
}
