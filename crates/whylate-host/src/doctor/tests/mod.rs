//! Planted trees: a host without a fault, each pitfall alone, all together, and hostile files.

mod clean;
mod collected;
mod guest;
mod hostile;
mod planted;

use std::path::Path;

use whylate_model::doctor::{Diagnosis, Level};

use super::{Live, Request, examine};
use crate::cpus::CpuSpec;
use crate::last_run::{LastRun, Recall};
use crate::tree::Tree;

/// A host in a tree, with what no tree holds.
struct Patient {
    tree: Tree,
    live: Live,
    /// The host of the last recording; none for the host as it is now.
    last: Option<LastRun>,
}

impl Patient {
    fn root(&self) -> &Path {
        self.tree.root()
    }

    /// Writes a file anew.
    fn set(&self, path: &str, text: &str) {
        self.tree.file(path, text);
    }

    /// Changes one thing in a file that others may have changed already.
    fn edit(&self, path: &str, from: &str, to: &str) {
        let file = crate::files::under(self.root(), path);
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{path} holds no `{from}`");
        self.set(path, &text.replace(from, to));
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(crate::files::under(self.root(), path)).unwrap();
    }

    /// Looks while a file holds something else, which is put back.
    fn while_file_holds<T>(&self, file: &str, bytes: &[u8], look: impl FnOnce(&Self) -> T) -> T {
        let path = crate::files::under(self.root(), file);
        let before = std::fs::read(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let seen = look(self);
        std::fs::write(&path, before).unwrap();
        seen
    }

    fn examine(&self) -> Diagnosis {
        let spec: CpuSpec = "2-3".parse().unwrap();
        let now = || LastRun::of(&crate::fingerprint::read(self.root()), Path::new("/runs/last"));
        let last = Recall::Last(Box::new(self.last.clone().unwrap_or_else(now)));
        let request = Request {
            root: self.root(),
            cpus: Some(&spec),
            live: Some(&self.live),
            last: Some(&last),
        };
        examine(&request).unwrap()
    }

    /// Checks that are not fine, with their level and what they found.
    fn complaints(&self) -> Vec<(String, Level, String)> {
        let symptoms = self.examine().symptoms.into_iter();
        let not_fine = symptoms.filter(|symptom| symptom.level != Level::Fine);
        not_fine.map(|symptom| (symptom.check, symptom.level, symptom.finding)).collect()
    }

    /// Those that claim to know of a fault.
    fn claims(&self) -> Vec<(String, Level, String)> {
        let mut complaints = self.complaints();
        complaints.retain(|(_, level, _)| *level > Level::Unknown);
        complaints
    }
}
