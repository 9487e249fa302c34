//! Every program that a test runs is installed by name: `install-test-tools.sh` knows its package.
//!
//! Sees names that stand as words in the call (`needs::program("tc")`, `Command::new("tc")`), or in its list
//! (`needed::two_ends(&["ip", "tc"])`), in tests of the whole tool, figures, all of the crates and this crate: what
//! the product runs, its tests run. A program in a variable, or within a script, is asked for by a word somewhere
//! else, which its author must see to.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

const SCRIPT: &str = "xtask/install-test-tools.sh";
/// Calls in which the first word is a program.
const CALLS: [&str; 4] = ["needs::program(\"", "can_run(\"", "is_installed(\"", "Command::new(\""];

/// Calls in which every word of a list is one.
const LISTS: [&str; 3] = ["as_root(&[", "two_ends(&[", "traced(&["];

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let script = std::fs::read_to_string(root.join(SCRIPT)).context(SCRIPT)?;
    let known = known(&script);
    let mut faults = Vec::new();
    for folder in ["tests", "accept", "crates", "xtask"] {
        for path in crate::files(&root.join(folder), "rs")? {
            let text = std::fs::read_to_string(&path)?;
            let shown = path.strip_prefix(root).unwrap_or(&path).display();
            let unknown = asked(&text).into_iter().filter(|name| !known.contains(name));
            faults.extend(
                unknown.map(|name| format!("{shown} runs {name}, which {SCRIPT} does not install")),
            );
        }
    }
    Ok(faults)
}

/// Programs of the script's list.
fn known(script: &str) -> BTreeSet<&str> {
    let list = script.split("\nprograms=\"").nth(1).and_then(|rest| rest.split('"').next());
    list.unwrap_or("").lines().filter_map(|line| line.split_whitespace().next()).collect()
}

/// Programs that a file of tests runs; one by its path is none of a package.
fn asked<'a>(text: &'a str) -> BTreeSet<&'a str> {
    let of = |call| text.split(call).skip(1).filter_map(|rest: &str| rest.split('"').next());
    let list = |call| text.split(call).skip(1).filter_map(|rest: &str| rest.split(']').next());
    let words = |list: &'a str| list.split('"').skip(1).step_by(2);
    let listed = LISTS.into_iter().flat_map(list).flat_map(words);
    CALLS.into_iter().flat_map(of).chain(listed).filter(|name| is_name(name)).collect()
}

/// What is no such word is a path, or text of this file about such calls.
fn is_name(word: &str) -> bool {
    let may_be_in_one = |of: char| of.is_ascii_alphanumeric() || "-_.+".contains(of);
    !word.is_empty() && word.chars().all(may_be_in_one)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_list_is_read_and_the_calls_are_found() {
        let script = "#!/bin/sh\nset -u\nprograms=\"\nip iproute2\ntc iproute2\n\"\nmissing() {\n";
        assert_eq!(known(script).into_iter().collect::<Vec<_>>(), ["ip", "tc"]);
        let text = concat!(
            "let Some(ip) = needs::program(\"i",
            "p\") else { return };\n",
            "Command::new(\"t",
            "c\").arg(\"x\"); needs::can_run(\"cc\")?; Command::new(\"/bin/a\")",
            "two_ends(&[])?; needed::traced(&[\"perl\", \"awk\"])",
        );
        assert_eq!(asked(text).into_iter().collect::<Vec<_>>(), ["awk", "cc", "ip", "perl", "tc"]);
    }

    /// Programs of this machine that the scripts are made of.
    const REAL: [&str; 8] = ["cat", "dirname", "head", "mkdir", "rm", "sort", "timeout", "tr"];

    /// A folder of programs of which the scripts find no other: real ones, and these.
    fn programs(folder: &Path, own: &[(&str, &str)]) -> Result<()> {
        std::fs::create_dir(folder)?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        for name in REAL {
            let found = std::env::split_paths(&path).map(|place| place.join(name));
            let found = found.into_iter().find(|file| file.is_file()).context(name)?;
            std::os::unix::fs::symlink(found, folder.join(name))?;
        }
        own.iter().try_for_each(|(name, script)| executable(&folder.join(name), script))
    }

    fn executable(file: &Path, script: &str) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(file, format!("#!/bin/sh\n{script}\n"))?;
        Ok(std::fs::set_permissions(file, PermissionsExt::from_mode(0o755))?)
    }

    /// A folder of programs of which none installs anything, the script, and the file in which what was tried stands.
    fn without_packages(home: &Path) -> Result<[PathBuf; 3]> {
        let paths = ["bin", "install-test-tools.sh", "log"].map(|of| home.join(of));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        std::fs::copy(root.join(SCRIPT), &paths[1])?;
        executable(&home.join("get-guest.sh"), "exit 0")?;
        let refuses = "echo \"$@\" >> \"$LOG\"; exit 100";
        programs(&paths[0], &[("apt-get", refuses), ("id", "echo 0"), ("sleep", "exit 0")])?;
        Ok(paths)
    }

    #[test]
    fn what_cannot_be_installed_is_tried_three_times_and_is_an_error_by_name_where_ci_is_set()
    -> Result<()> {
        let home = tempfile::tempdir()?;
        let [bin, script, log] = without_packages(home.path())?;
        for (ci, status) in [(Some("true"), 1), (None, 0)] {
            let mut command = std::process::Command::new("/bin/sh");
            command.arg(&script).env_remove("CI").envs(ci.map(|value| ("CI", value)));
            let output = command.env("PATH", &bin).env("LOG", &log).output()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(status), "{ci:?}: {said}");
            let left = said.lines().find_map(|line| line.strip_prefix("not to be had: "));
            let left: Vec<&str> = left.unwrap_or_default().split_whitespace().collect();
            assert!(left.contains(&"rt-tests") && left.contains(&"chromium"), "{ci:?}: {said}");
            // What is there is not asked for.
            assert!(!left.contains(&"libc6"), "{ci:?}: {said}");
            let tried = std::fs::read_to_string(&log)?;
            assert_eq!(tried.lines().filter(|line| line.starts_with("update")).count(), 3);
            // Somebody else may install at this moment.
            let waits = |line: &&str| line.contains(" -o DPkg::Lock::Timeout=600 ");
            let installs = || tried.lines().filter(|line| line.starts_with("install"));
            assert!(installs().count() > 3 && installs().all(|line| waits(&line)), "{tried}");
            // By itself as well, where all at once are not to be had.
            assert!(tried.lines().any(|line| line.ends_with("Retries=3 rt-tests")), "{tried}");
            std::fs::remove_file(&log)?;
        }
        Ok(())
    }

    #[test]
    fn a_full_place_of_temporary_files_is_named_before_anything_is_installed() -> Result<()> {
        let home = tempfile::tempdir()?;
        let [bin, script, log] = without_packages(home.path())?;
        // What is left of each place, and the place that is named.
        let [enough, full] = ["9 9 65536 9%", "9 9 65535 9%"]
            .map(|row| format!("echo head; echo \"none {row} $2\""));
        let of_temporary = format!("case $2 in /tmp) {enough} ;; *) {full} ;; esac");
        let said = |place: &str, mb: u32| {
            format!(
                "no room for the tests: {place} has {mb} MB left, and 64 are needed; empty it\n"
            )
        };
        for (df, named) in [
            (full.as_str(), Some(said("/tmp", 63))),
            ("echo head; echo none 999 9 1024 9% $2", Some(said("/tmp", 1))),
            (of_temporary.as_str(), Some(said("/other", 63))),
            (enough.as_str(), None),
            // What counts nothing has no such limit.
            ("echo head; echo none 0 0 0 - $2", None),
            ("echo head; echo none 9 9 - - $2", None),
            ("exit 1", None),
        ] {
            executable(&bin.join("df"), df)?;
            std::fs::write(&log, "")?;
            let mut command = std::process::Command::new("/bin/sh");
            command.arg(&script).env_remove("CI").env("PATH", &bin).env("TMPDIR", "/other");
            let output = command.env("LOG", &log).output()?;
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            let (status, tried) = (output.status.code(), std::fs::read_to_string(&log)?);
            match named {
                Some(said) => {
                    assert_eq!((status, told, tried.as_str()), (Some(1), said, ""), "{df}");
                }
                None => assert!(status == Some(0) && !tried.is_empty(), "{df}: {told}"),
            }
        }
        Ok(())
    }

    #[test]
    fn a_guest_that_cannot_be_fetched_is_tried_three_times_and_is_an_error_where_ci_is_set()
    -> Result<()> {
        let home = tempfile::tempdir()?;
        let [bin, into, log] = ["bin", "guest", "log"].map(|of| home.path().join(of));
        // A mirror that nobody reaches.
        let mirror = "echo \"$@\" >> \"$LOG\"; case \"$1\" in indextargets) echo http://none ;; *) exit 100 ;; esac";
        let of_debian = [("apt-get", mirror), ("id", "echo 0"), ("sleep", "exit 0")];
        programs(&bin, &of_debian)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("get-guest.sh");
        let run = |ci: Option<&str>, kind: &str| -> Result<(Option<i32>, String)> {
            executable(&bin.join("dpkg"), &format!("echo {kind}"))?;
            std::fs::write(&log, "")?;
            let mut command = std::process::Command::new("/bin/sh");
            command.arg(&script).arg(&into).env_remove("CI").envs(ci.map(|value| ("CI", value)));
            let output = command.env("PATH", &bin).env("LOG", &log).output()?;
            Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
        };
        let read = |file: &str| std::fs::read_to_string(into.join(file)).unwrap_or_default();
        for (ci, status) in [(Some("true"), 1), (None, 0)] {
            let why = "bookworm-backports cannot be reached\n";
            let said = format!("no guest with a card that stamps: {why}");
            assert_eq!(run(ci, "amd64")?, (Some(status), said), "{ci:?}");
            assert_eq!((read("not-fetched"), read("why-not")), (why.to_owned(), String::new()));
            let tried = std::fs::read_to_string(&log)?;
            assert_eq!(
                tried.lines().filter(|line| line.ends_with(" update")).count(),
                3,
                "{tried}"
            );
        }
        // A system that has no such guest is no error, in CI neither.
        let why = "its packages are those of amd64\n";
        let said = format!("no guest with a card that stamps: {why}");
        assert_eq!(run(Some("true"), "arm64")?, (Some(0), said));
        assert_eq!((read("not-fetched"), read("why-not")), (String::new(), why.to_owned()));
        Ok(())
    }

    /// Looks for a minute.
    fn until(mut look: impl FnMut() -> bool) -> bool {
        (0..3_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            look()
        })
    }

    #[test]
    fn a_guest_that_another_suite_fetches_is_waited_for_and_not_removed() -> Result<()> {
        use std::process::{Command, Stdio};

        let home = tempfile::tempdir()?;
        let of_home = |name: &str| home.path().join(name);
        let [bin, into, lock, log] = ["bin", "guest", "guest.lock", "log"].map(of_home);
        let [held, asked, fetched] = ["held", "asked", "fetched"].map(of_home);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let flock = std::env::split_paths(&path).map(|place| place.join("flock"));
        let Some(flock) = flock.into_iter().find(|file| file.is_file()) else {
            crate::suite::missing("flock is not installed");
            return Ok(());
        };
        // It tells that the lock is asked for.
        let asks = format!(": > \"$ASKED\"; exec {} \"$@\"", flock.display());
        let own =
            [("apt-get", "echo \"$@\" >> \"$LOG\""), ("flock", asks.as_str()), ("id", "echo 0")];
        programs(&bin, &own)?;
        executable(&bin.join("dpkg"), "echo amd64")?;
        std::fs::write(&log, "")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("get-guest.sh");
        let run = || {
            let mut command = Command::new("/bin/sh");
            command.arg(&script).arg(&into).env("PATH", &bin).env("LOG", &log);
            command.env("ASKED", &asked).env("CI", "true").stderr(Stdio::piped());
            command
        };
        // Another suite, which is in the middle of it; for a minute at most.
        let script_of_other = "mkdir \"$0\"; : > \"$1\"; n=0; until [ -e \"$2\" ] || [ $n = 600 ]; do sleep 0.1; \
                       n=$((n + 1)); done; : > \"$0/ready\"";
        let mut other = Command::new(&flock);
        other.arg(&lock).args(["sh", "-c", script_of_other]).args([&into, &held, &fetched]);
        let mut other = other.spawn()?;
        assert!(until(|| held.exists()), "the lock cannot be had");
        let mut second = run().spawn()?;
        let waits = until(|| asked.exists() || second.try_wait().is_ok_and(|end| end.is_some()));
        std::fs::write(&fetched, "")?;
        other.wait()?;
        let output = second.wait_with_output()?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(waits && asked.exists(), "it waited for nobody: {told}");
        assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
        assert!(into.join("ready").exists());
        assert_eq!(std::fs::read_to_string(&log)?, "");
        // Where nothing can be locked it does what it did: this system has none.
        std::fs::remove_file(&lock)?;
        std::fs::create_dir(&lock)?;
        std::fs::remove_file(into.join("ready"))?;
        executable(&bin.join("dpkg"), "echo arm64")?;
        let output = run().output()?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let none = "no guest with a card that stamps: its packages are those of amd64\n";
        assert_eq!((output.status.code(), told.as_str()), (Some(0), none));
        Ok(())
    }

    #[test]
    fn a_program_that_is_not_installed_is_a_fault() -> Result<()> {
        let root = tempfile::tempdir()?;
        let places = ["tests", "accept", "crates/a/tests", "crates/a/src", "xtask/src"];
        for folder in places {
            std::fs::create_dir_all(root.path().join(folder))?;
        }
        std::fs::write(root.path().join(SCRIPT), "\nprograms=\"\nip iproute2\n\"\n")?;
        let run = |name: &str| format!("Command::new(\"{name}\")");
        for place in places {
            let file = root.path().join(place).join("a.rs");
            std::fs::write(&file, run("ip"))?;
            assert_eq!(check(root.path())?, [""; 0]);
            std::fs::write(&file, run("tc"))?;
            let fault = format!("{place}/a.rs runs tc, which {SCRIPT} does not install");
            assert_eq!(check(root.path())?, [fault]);
            std::fs::remove_file(file)?;
        }
        Ok(())
    }
}
