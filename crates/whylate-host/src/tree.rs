//! What tests share: trees of `/proc` and `/sys` made by hand, and how a test is skipped.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::files::under;

/// Says that a test could not be done here, and why.
pub(crate) fn skip(reason: &dyn std::fmt::Display) {
    eprintln!("skipped: {reason}");
}

/// A root directory that goes away with its value.
pub(crate) struct Tree(TempDir);

impl Tree {
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, absolute: &str, text: &str) -> &Self {
        self.bytes(absolute, text.as_bytes())
    }

    pub(crate) fn bytes(&self, absolute: &str, bytes: &[u8]) -> &Self {
        let path = under(self.root(), absolute);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    /// Four cores of two threads on two nodes; cpu 7 offline, core 2 isolated.
    pub(crate) fn smt_host() -> Self {
        let tree = Self::empty();
        let cpu = "/sys/devices/system/cpu";
        tree.file(&format!("{cpu}/possible"), "0-127\n")
            .file(&format!("{cpu}/present"), "0-7\n")
            .file(&format!("{cpu}/online"), "0-6\n")
            .file(&format!("{cpu}/offline"), "7\n")
            .file(&format!("{cpu}/isolated"), "2,6\n")
            .file("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n")
            .file("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
        for number in 0..7_u32 {
            let core = number % 4;
            let list = if core == 3 { "3\n".to_owned() } else { format!("{core},{}\n", core + 4) };
            tree.file(&format!("{cpu}/cpu{number}/topology/core_cpus_list"), &list);
        }
        tree
    }
}
