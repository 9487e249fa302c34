//! Records the self-test anew that is kept in `tests/runs/`: as it is recorded, and so short that it is small.
//!
//! Nothing is cut from a longer one: series, log, tables and what the run says of them are of one recording. Its
//! host has another name and no kernel command line while it is recorded, in namespaces of its own. What tests
//! expect of it is written with it, and is to be read: `git diff`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Where it lies.
const KEPT: &str = "tests/runs/selftest-2";
/// Bytes of all of its files: git keeps every one that there ever was.
const MOST: u64 = 300_000;
/// Of the interruptions of each kind one of so many: some twenty. Where the host itself had much to do in it, a
/// shorter one follows.
const PARTS: [u32; 4] = [20, 30, 45, 70];
/// What is written of the recording beside its tables and is not read again.
const PAGE: &str = "report.html";
/// As the host is called, and what the kernel was started with.
const NAMED: &str = "echo example > /proc/sys/kernel/hostname && mount --bind \"$1\" /proc/cmdline && shift && exec \"$@\"";

pub(crate) fn selftest(root: &Path) -> Result<()> {
    // By its name: the run holds the words of its command, and no path of the machine.
    let path = format!("{}:{}", built(root)?.display(), std::env::var("PATH").unwrap_or_default());
    let folder = root.join("target/keep");
    let quiet = folder.join("cmdline");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    std::fs::write(&quiet, "quiet\n").with_context(|| quiet.display().to_string())?;
    for part in PARTS {
        let run = folder.join("selftest");
        let _ = std::fs::remove_dir_all(&run);
        let mut command = Command::new("unshare");
        command.args(["--uts", "--mount", "sh", "-c", NAMED, "sh"]).arg(&quiet).arg("whylate");
        command.env("PATH", &path);
        command.args(["gaps", "--selftest", "--selftest-part", &part.to_string(), "--cpus"]);
        command.args([
            &last_cpu()?,
            "--warmup",
            "200ms",
            "--seed",
            "1",
            "--worst",
            "5",
            "-o",
            "st",
        ]);
        let status = command.current_dir(&folder).status().context("unshare")?;
        std::fs::rename(folder.join("st"), &run).context("nothing was recorded")?;
        // Names that were wrong on a busy machine are a part of it.
        if !matches!(status.code(), Some(0 | 4)) {
            bail!("the recording ended with {status}");
        }
        let _ = std::fs::remove_file(run.join(PAGE));
        let bytes = bytes(&run)?;
        println!("one of {part} of each kind: {bytes} bytes");
        if bytes < MOST {
            return put(root, &run);
        }
    }
    bail!("none of them is below {MOST} bytes: the machine is too busy")
}

/// In the place of the one that is kept, with what tests expect of it.
fn put(root: &Path, run: &Path) -> Result<()> {
    let kept = root.join(KEPT);
    if kept.exists() {
        std::fs::remove_dir_all(&kept).with_context(|| kept.display().to_string())?;
    }
    std::fs::create_dir_all(&kept)?;
    for file in files(run)? {
        let name = file.file_name().context("a file has a name")?;
        std::fs::copy(&file, kept.join(name)).with_context(|| file.display().to_string())?;
    }
    for words in [
        ["-p", "whylate-record", "--lib", "scoring::recorded"],
        ["-p", "whylate-report", "--lib", "kept::"],
        ["-p", "whylate", "--test=pure", "kept::"],
    ] {
        let mut command = Command::new(env!("CARGO"));
        command.arg("test").args(words).current_dir(root);
        let status = command.env("UPDATE_RECORDED", "1").env("INSTA_UPDATE", "always").status();
        if !status.context("cargo")?.success() {
            bail!("the recording does not hold what every run holds: take it again");
        }
    }
    println!("{}: read `git diff` before it is committed", kept.display());
    Ok(())
}

/// The folder of the program, as it is tested.
fn built(root: &Path) -> Result<PathBuf> {
    let words = ["build", "--locked", "-p", "whylate", "--bin", "whylate"];
    let status = Command::new(env!("CARGO")).args(words).current_dir(root).status();
    if !status.context("cargo")?.success() {
        bail!("it does not compile");
    }
    Ok(root.join("target/debug"))
}

/// The last CPU that this process may use.
fn last_cpu() -> Result<String> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    last_of(&status).context("the kernel does not say which CPUs there are")
}

fn last_of(status: &str) -> Option<String> {
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let last = allowed.trim().rsplit([',', '-']).next()?;
    last.parse::<u32>().ok().map(|cpu| cpu.to_string())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<PathBuf> = entries.map(|of| Ok(of?.path())).collect::<Result<_>>()?;
    files.sort();
    Ok(files)
}

fn bytes(folder: &Path) -> Result<u64> {
    files(folder)?.iter().map(|file| Ok(file.metadata()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cpu_is_the_last_of_those_that_may_be_used() {
        let of = |list: &str| last_of(&format!("Name:\tx\nCpus_allowed_list:\t{list}\nMems:\t0\n"));
        assert_eq!(of("0-1").as_deref(), Some("1"));
        assert_eq!(of("0").as_deref(), Some("0"));
        assert_eq!(of("0-3,8,12-13").as_deref(), Some("13"));
        assert_eq!(of(""), None);
        assert_eq!(last_of("Name:\tx\n"), None);
    }

    #[test]
    fn the_size_of_a_recording_is_that_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), [0; 10]).unwrap();
        std::fs::write(folder.path().join("b"), [0; 5]).unwrap();
        assert_eq!(bytes(folder.path()).unwrap(), 15);
        assert_eq!(files(folder.path()).unwrap().len(), 2);
    }
}
