//! Is there room for what tests write? A full disk is said at once, in place of a hundred strange failures.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What is needed in a place.
#[derive(Clone, Copy)]
pub(crate) struct Needed {
    mb: u64,
    files: u64,
    advice: &'static str,
}

/// Runs, captures and profiles of browsers.
pub(crate) const TEMPORARY: Needed =
    Needed { mb: 1_024, files: 10_000, advice: "empty it, or name another place by TMPDIR" };
/// What is compiled, beside what is there already: a program of tests of each crate.
const TARGET: Needed = Needed { mb: 2_048, files: 10_000, advice: "`cargo clean` makes room" };

/// Temporary files of compilers, the lock of a suite, journals of runs.
const BESIDE: Needed = Needed { mb: 64, files: 1_000, advice: "empty it" };

/// Fails with the reason where there is no room for what is compiled, or for what lies in `/tmp` whatever folder
/// tests have for themselves.
pub(crate) fn check_before_compiling(root: &Path) -> Result<()> {
    check(Path::new("/tmp"), BESIDE)?;
    check(&std::env::temp_dir(), BESIDE)?;
    check(&root.join("target"), TARGET)
}

/// Fails with the reason where a place has no room.
pub(crate) fn check(place: &Path, needed: Needed) -> Result<()> {
    // What does not exist yet comes to lie where its parents are.
    let there = place.ancestors().find(|of| of.exists()).context("no place for files")?;
    let mb = left(there, "-Pk")?.map(|kib| kib / 1_024);
    let files = left(there, "-Pi")?;
    match lacks(mb, files, needed) {
        None => Ok(()),
        Some(what) => {
            bail!("no room for the tests: {} has {what}; {}", place.display(), needed.advice)
        }
    }
}

fn lacks(mb: Option<u64>, files: Option<u64>, needed: Needed) -> Option<String> {
    match (mb, files) {
        (Some(mb), _) if mb < needed.mb => {
            Some(format!("{mb} MB left, and {} are needed", needed.mb))
        }
        (_, Some(files)) if files < needed.files => {
            Some(format!("room for {files} files, and {} are needed", needed.files))
        }
        _ => None,
    }
}

fn left(place: &Path, option: &str) -> Result<Option<u64>> {
    let mut df = Command::new("df");
    df.env("LC_ALL", "C").arg(option).arg(place);
    let output = df.output().with_context(|| format!("{df:?}"))?;
    Ok(available(&String::from_utf8_lossy(&output.stdout)))
}

/// Of `df -P`; none where the file system counts none.
fn available(printed: &str) -> Option<u64> {
    let words: Vec<&str> = printed.lines().nth(1)?.split_whitespace().collect();
    let total: u64 = words.get(1)?.parse().ok()?;
    words.get(3)?.parse().ok().filter(|_| total > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: Needed = Needed { mb: 10, files: 5, advice: "go" };

    #[test]
    fn what_df_prints_is_read_and_what_a_file_system_does_not_count_is_not() {
        let head = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n";
        let counted = format!("{head}/dev/vda         263940688 52625732  42617152      56% /\n");
        assert_eq!(available(&counted), Some(42_617_152));
        assert_eq!(available(&format!("{head}btrfs 0 0 0 - /tmp\n")), None);
        assert_eq!(available(""), None);
    }

    /// Runs where `/tmp` is a file system of 1 MB.
    #[test]
    #[ignore = "it runs in a process of its own, as the next test starts it"]
    fn there_is_no_room() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let error = check_before_compiling(&root).err().map(|error| error.to_string());
        assert!(
            error
                .as_ref()
                .is_some_and(|text| text.contains("no room for the tests: /tmp has 1 MB")
                    || text.contains("no room for the tests: /tmp has 0 MB")),
            "{error:?}"
        );
    }

    #[test]
    fn a_full_tmp_is_named_before_anything_is_compiled_whatever_folder_the_tests_have() {
        let mounts = |words: &str, then: &str| {
            let mut unshare = Command::new("unshare");
            let script = format!("mount -t tmpfs -o size=1m none /tmp && {then}");
            unshare.args(words.split(' ')).args(["sh", "-c", &script]);
            unshare
        };
        let can = |words: &&str| mounts(words, "true").output().is_ok_and(|of| of.status.success());
        let Some(words) = ["-m", "-Urm"].into_iter().find(can) else {
            return crate::suite::absent("no file system can be mounted here");
        };
        let mut child = mounts(words, "exec \"$PROGRAM\" --ignored --exact $NAME");
        child.env("PROGRAM", std::env::current_exe().unwrap_or_default());
        child.env("NAME", "room::tests::there_is_no_room").env("TMPDIR", "/dev/shm");
        let output = child.output();
        let said = output.as_ref().map(|of| String::from_utf8_lossy(&of.stdout).into_owned());
        let passed = said.as_ref().is_ok_and(|said| said.contains("1 passed"));
        assert!(passed, "{output:?}");
    }

    #[test]
    fn a_full_place_is_named_as_that() {
        assert_eq!(lacks(Some(10), Some(5), NEEDED), None);
        assert_eq!(lacks(None, None, NEEDED), None);
        assert_eq!(
            lacks(Some(9), None, NEEDED).unwrap_or_default(),
            "9 MB left, and 10 are needed"
        );
        let files = lacks(Some(10), Some(4), NEEDED).unwrap_or_default();
        assert_eq!(files, "room for 4 files, and 5 are needed");
        let most = Needed { mb: u64::MAX, ..NEEDED };
        let error = check(Path::new("/tmp/never/was"), most).err().map(|error| error.to_string());
        assert!(
            error.is_some_and(|text| text.contains("no room for the tests: /tmp/never/was has"))
        );
    }
}
