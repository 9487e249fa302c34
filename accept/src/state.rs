//! What is measured, and where: the state of the sources and the machine.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What can change a figure: all but the tables that say what figures came to.
const MEASURED: [&str; 3] = ["--", ".", ":(exclude)acceptance"];
/// Letters of the digest of what was not committed.
const DIGEST: usize = 10;

/// The commit that is measured; behind a `+` a digest of all by which the tree differs from it, so that two
/// states of one commit are not taken for one.
pub fn commit(root: &Path) -> Result<String> {
    let commit = git(root, &["rev-parse", "--short", "HEAD"], &[])?;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let of = |words: &[&str]| git(root, &[words, &MEASURED].concat(), &[]);
    let mut changed = of(&["diff", "--binary", "--no-ext-diff", "--no-color", "HEAD"])?;
    let others = of(&["ls-files", "-z", "--others", "--exclude-standard"])?;
    for name in others.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        changed.extend([name, b"\0"].concat());
        // A link is told by its name.
        let path = root.join(std::ffi::OsStr::from_bytes(name));
        changed.extend(std::fs::read(path).unwrap_or_default());
    }
    if changed.is_empty() {
        return Ok(commit);
    }
    let digest = git(root, &["hash-object", "--stdin"], &changed)?;
    let digest = String::from_utf8_lossy(&digest);
    Ok(format!("{commit}+{}", digest.get(..DIGEST).context("git tells no digest")?))
}

/// What git prints, given these bytes.
fn git(root: &Path, words: &[&str], given: &[u8]) -> Result<Vec<u8>> {
    let mut command = Command::new("git");
    command.args(words).current_dir(root).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("git tells what is measured, and cannot be run")?;
    let input = child.stdin.take().context("no pipe to git")?;
    let (sent, output) = std::thread::scope(|scope| {
        let sent = scope.spawn(move || { input }.write_all(given));
        (sent.join(), child.wait_with_output())
    });
    let output = output?;
    if !output.status.success() || !matches!(sent, Ok(Ok(()))) {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("git {} says not what is measured: {}", words.join(" "), said.trim());
    }
    Ok(output.stdout)
}

/// Today, as dates of tables are: of the whole world.
pub(crate) fn day() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%F"]).output().context("date cannot be run")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The machine in a few words: CPU, how many, kernel.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let text = read("/proc/cpuinfo");
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown CPU", |(_, name)| name.trim());
    let cpus = text.lines().filter(|line| line.starts_with("processor")).count();
    let guest = if text.contains(" hypervisor ") { ", virtual" } else { "" };
    format!("{model} ({cpus} CPUs{guest}), Linux {}", read("/proc/sys/kernel/osrelease").trim())
}
