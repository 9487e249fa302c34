//! Records a run anew that is kept in `tests/runs/`: as it is recorded, and so short that it is small.
//!
//! Nothing is cut from a longer one: series, log, tables and what the run says of them are of one recording. Its
//! host has another name and no kernel command line while it is recorded, in namespaces of its own, with loopback
//! alone. What tests expect of it is written with it, and is to be read: `git diff`. Only `selftest-2` is
//! recorded so, and what `xtask/keep/` has a script for; the others are of versions that nobody has any more.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

/// What records each of the others, by name.
const SCRIPTS: &str = "xtask/keep";
/// Where runs are kept.
const KEPT: &str = "tests/runs";
/// The self-test among them.
const SELFTEST: &str = "selftest-2";
/// Bytes of all of its files: git keeps every one that there ever was.
const MOST: u64 = 300_000;
/// Of the interruptions of each kind one of so many: some twenty. Where the host itself had much to do in it, a
/// shorter one follows.
const PARTS: [u32; 4] = [20, 30, 45, 70];
/// What is written of the recording beside its tables and is not read again.
const PAGE: &str = "report.html";
/// As the host is called, and what the kernel was started with.
const NAMED: &str = "echo example > /proc/sys/kernel/hostname && mount --bind \"$1\" /proc/cmdline && \
                     ip link set lo up && shift && exec \"$@\"";

/// Records one of them.
pub(crate) fn run(root: &Path, name: &str) -> Result<()> {
    let bench = Bench::new(root)?;
    if name == SELFTEST {
        bench.selftest()?;
    } else {
        let script = root.join(SCRIPTS).join(format!("{name}.sh"));
        let script =
            std::fs::read_to_string(&script).with_context(|| script.display().to_string())?;
        println!("the recording ended with {}", bench.recorded(&["sh", "-uc", &script])?);
    }
    let run = bench.folder.join(name);
    let bytes = bytes(&run)?;
    if bytes > MOST {
        bail!("{bytes} bytes are too many: the machine is too busy");
    }
    println!("{bytes} bytes");
    put(root, name, &run)
}

/// Where it is recorded, and by what.
struct Bench {
    folder: PathBuf,
    /// The folder of the program, before all others: a run holds the words of its command, and no path.
    path: String,
}

impl Bench {
    fn new(root: &Path) -> Result<Self> {
        let path =
            format!("{}:{}", built(root)?.display(), std::env::var("PATH").unwrap_or_default());
        let folder = root.join("target/keep");
        // Nothing of another recording is left.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("state"))
            .with_context(|| folder.display().to_string())?;
        std::os::unix::fs::symlink(root.join("examples"), folder.join("examples"))?;
        std::fs::write(folder.join("cmdline"), "quiet\n")?;
        Ok(Self { folder, path })
    }

    fn recorded(&self, words: &[&str]) -> Result<ExitStatus> {
        let mut command = Command::new("unshare");
        command.args(["--uts", "--mount", "--net", "sh", "-c", NAMED, "sh"]);
        command.arg(self.folder.join("cmdline")).args(words).env("PATH", &self.path);
        command.env("XDG_STATE_HOME", self.folder.join("state")).current_dir(&self.folder);
        command.status().context("unshare")
    }

    fn selftest(&self) -> Result<()> {
        let run = self.folder.join(SELFTEST);
        for part in PARTS {
            let _ = std::fs::remove_dir_all(&run);
            let script = format!(
                "whylate gaps --selftest --selftest-part {part} --cpus {} --warmup 200ms --seed 1 --worst 5 -o st",
                last_cpu()?
            );
            let status = self.recorded(&["sh", "-uc", &script])?;
            std::fs::rename(self.folder.join("st"), &run).context("nothing was recorded")?;
            // Names that were wrong on a busy machine are a part of it.
            if !matches!(status.code(), Some(0 | 4)) {
                bail!("the recording ended with {status}");
            }
            if bytes(&run)? < MOST {
                return Ok(());
            }
        }
        bail!("none of them is below {MOST} bytes: the machine is too busy")
    }
}

/// In the place of the one that is kept, with what tests expect of it.
fn put(root: &Path, name: &str, run: &Path) -> Result<()> {
    let kept = root.join(KEPT).join(name);
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

/// What is kept of a recording: neither its page nor the runs of its parts, which stand below it.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<PathBuf> = entries.map(|of| Ok(of?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.is_file() && !path.ends_with(PAGE));
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
        std::fs::write(folder.path().join(PAGE), [0; 5]).unwrap();
        std::fs::create_dir(folder.path().join("parts")).unwrap();
        assert_eq!(bytes(folder.path()).unwrap(), 15);
        assert_eq!(files(folder.path()).unwrap().len(), 2);
    }
}
