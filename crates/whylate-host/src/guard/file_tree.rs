//! A tree of small files for a disk load to read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use whylate_model::warning::Warning;

use super::Guard;
use super::changes::Changes;
use crate::error::HostError;
use crate::file_tree::PREFIX;
use crate::journal::{Journal, Undo};

/// Files in one directory: a walk that opens directories does so often, too.
const FILES_IN_A_DIRECTORY: u32 = 64;
/// A file system is left at least as much again as the tree takes.
const ROOM: u64 = 2;

/// How many files a tree has, and how large each is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeShape {
    /// Files.
    pub files: u32,
    /// Bytes of each.
    pub bytes: u32,
}

/// Files that exist while this does. They are announced in the journal first, so that the next
/// start removes what a killed process left.
#[derive(Debug)]
pub struct FileTree {
    path: PathBuf,
    shape: TreeShape,
    changes: Changes,
}

impl FileTree {
    /// Makes the tree in `place`, a directory for temporary files, and has it written to the disk,
    /// so that its pages can be dropped from memory.
    pub fn make(journal: &Journal, place: &Path, shape: TreeShape) -> Result<Self, HostError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| HostError::Tree { path, source }
        };
        let place = std::fs::canonicalize(place).map_err(failed(place))?;
        let path = place.join(format!("{PREFIX}{}-{number}", journal.owner()));
        let wanted = u64::from(shape.files) * u64::from(shape.bytes.max(4096));
        let free = whylate_sys::disk::free_bytes(&place)?;
        if free / ROOM < wanted {
            return Err(HostError::NoRoomForTree { path: place, wanted, free });
        }
        let mut changes = Changes::new(journal);
        changes.announce(vec![Undo::RemoveTree { path: path.display().to_string() }])?;
        // From here on the guard removes what there is.
        let tree = Self { path, shape, changes };
        tree.fill().map_err(failed(&tree.path))?;
        Ok(tree)
    }

    /// Its top directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fill(&self) -> std::io::Result<()> {
        // Private: nobody else reads or plants anything there.
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&self.path)?;
        let content: Vec<u8> = (0..self.shape.bytes).map(|n| n as u8).collect();
        for number in 0..self.shape.files {
            let directory = self.path.join(format!("{:05}", number / FILES_IN_A_DIRECTORY));
            if number.is_multiple_of(FILES_IN_A_DIRECTORY) {
                std::fs::create_dir(&directory)?;
            }
            std::fs::write(directory.join(format!("{number:06}")), &content)?;
        }
        rustix::fs::syncfs(File::open(&self.path)?)?;
        Ok(())
    }
}

impl Guard for FileTree {
    fn describe(&self) -> Vec<String> {
        let TreeShape { files, bytes } = self.shape;
        vec![format!("{files} files of {bytes} bytes made in {}", self.path.display())]
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: TreeShape = TreeShape { files: 130, bytes: 100 };

    #[test]
    fn a_tree_is_there_while_its_guard_is_and_the_journal_knows_it_first() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&home.path().join("journals")).unwrap();
        let tree = FileTree::make(&journal, home.path(), SHAPE).unwrap();
        let path = tree.path().to_owned();
        assert_eq!(journal.entries().len(), 1);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 3);
        assert_eq!(std::fs::read(path.join("00002/000129")).unwrap().len(), 100);
        drop(tree);
        assert!(!path.exists());
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn a_tree_larger_than_the_disk_is_refused_before_a_file_is_made() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&home.path().join("journals")).unwrap();
        let shape = TreeShape { files: u32::MAX, bytes: u32::MAX };
        let error = FileTree::make(&journal, home.path(), shape).unwrap_err();
        assert!(matches!(error, HostError::NoRoomForTree { .. }), "{error}");
        assert_eq!(journal.entries(), []);
    }
}
