//! Trees of files that a disk load reads: which are ours, and how one goes.
//!
//! A journal that was tampered with must not make a privileged process remove anything else: a tree
//! lies one level below a directory for temporary files, has our name and our owner, and links are
//! not followed out of it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use crate::journal::Outcome;

/// How names of trees begin; the process id and a number follow.
pub(crate) const PREFIX: &str = "whylate-load-";

/// Is this a path that whylate gives to a tree?
pub(crate) fn is_own(path: &Path) -> bool {
    let plain =
        path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let numbers = |rest: &str| {
        rest.split_once('-').is_some_and(|(pid, number)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits(pid) && digits(number)
        })
    };
    let name = path.file_name().and_then(OsStr::to_str);
    path.is_absolute()
        && plain
        && name.and_then(|name| name.strip_prefix(PREFIX)).is_some_and(numbers)
}

/// Removes the tree, as far as it was made; what is not ours is left alone.
pub(crate) fn remove(path: &Path) -> Outcome {
    if !is_own(path) {
        return Outcome::Failed { why: format!("{} is no tree of whylate's", path.display()) };
    }
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::Gone,
        Err(error) => return Outcome::Failed { why: error.to_string() },
        Ok(found) if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() => {
            let why = format!("{} is no directory of this user", path.display());
            return Outcome::Failed { why };
        }
        Ok(_) => {}
    }
    match std::fs::remove_dir_all(path) {
        Ok(()) => Outcome::Restored,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Outcome::Gone,
        Err(error) => Outcome::Failed { why: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trees_with_our_name_are_removed() {
        for other in [
            "/tmp",
            "/tmp/whylate-load-",
            "/tmp/whylate-load-1",
            "/tmp/whylate-load-1-",
            "/tmp/whylate-load-1-2/..",
            "/tmp/whylate-load-1-2/../etc",
            "whylate-load-1-2",
            "/tmp/whylate-load-a-b",
        ] {
            assert!(!is_own(Path::new(other)), "{other}");
            assert!(!remove(Path::new(other)).settled(), "{other}");
        }
        assert!(is_own(Path::new("/tmp/whylate-load-1-2")));
    }

    #[test]
    fn a_link_in_the_place_of_a_tree_leads_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let precious = home.path().join("precious");
        std::fs::create_dir(&precious).unwrap();
        std::fs::write(precious.join("file"), "kept").unwrap();
        let link = home.path().join("whylate-load-1-2");
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(!remove(&link).settled());
        assert!(precious.join("file").exists());
    }
}
