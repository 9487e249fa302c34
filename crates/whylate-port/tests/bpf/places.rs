//! Namespaces of a test's own, joined by virtual links.

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use rustix::mount::{UnmountFlags, unmount};
use whylate_sys::interface::{self, Interface};
use whylate_sys::namespace;

use crate::skip;

/// A network namespace, gone with this.
pub(crate) struct Place {
    _directory: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("net");
        std::fs::write(&path, "").unwrap();
        if let Err(refusal) = namespace::make_network(&path) {
            return skip(&refusal);
        }
        Some(Self { _directory: directory, path })
    }

    /// With two interfaces that are the ends of one link.
    pub(crate) fn with_link() -> Option<Self> {
        let place = Self::new()?;
        let words = [
            "link set lo up",
            "link add near type veth peer name far",
            "link set near up",
            "link set far up",
        ];
        if words.iter().all(|words| place.ip(words)) {
            return Some(place);
        }
        skip(&"no `ip`, or it makes no virtual links here")
    }

    /// Runs `ip` inside.
    pub(crate) fn ip(&self, words: &str) -> bool {
        self.inside(|| {
            let output = Command::new("ip").args(words.split_whitespace()).output();
            output.is_ok_and(|output| output.status.success())
        })
    }

    /// Does something on a thread of its own inside.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let there = || {
                namespace::enter_network(&self.path).expect("it was made a moment ago");
                work()
            };
            scope.spawn(there).join().unwrap()
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        let _ = std::fs::remove_file(&self.path);
    }
}

/// An interface of the calling thread's namespace.
pub(crate) fn interface(name: &str) -> Interface {
    interface::named(name).unwrap().unwrap()
}
