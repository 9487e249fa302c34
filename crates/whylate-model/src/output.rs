//! Files that a user asks for by name: pages, logs, results for other programs.
//!
//! Only a regular file, or a name that is not there yet, is replaced, and then as a whole. Anything else
//! that has the name (a device, a pipe, a link to something) stays what it is: it is opened and written to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files::write_new;

/// Writes `content` under the name that a user gave.
///
/// # Errors
/// It cannot be written; of a regular file the old content is then still there.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let kind = match std::fs::symlink_metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return replace(path, content),
        found => found?.file_type(),
    };
    if kind.is_file() {
        replace(path, content)
    } else if kind.is_symlink() {
        File::create(path)?.write_all(content)
    } else {
        // Without O_CREAT, which the kernel refuses for pipes of others in shared directories.
        OpenOptions::new().write(true).open(path)?.write_all(content)
    }
}

/// Makes a directory that a user named, whose parent must be there: a mistyped path is not made.
///
/// # Errors
/// It cannot be made, or its parent is not there, and the message says how to make that.
pub fn make_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path).map_err(|why| match path.parent() {
        Some(parent) if why.kind() == io::ErrorKind::NotFound => io::Error::new(
            why.kind(),
            format!(
                "there is no directory {parent}: make it first, with `mkdir -p {parent}`, or name \
                 another",
                parent = parent.display()
            ),
        ),
        _ => why,
    })
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = beside(path);
    write_new(&unfinished, content).and_then(|()| std::fs::rename(&unfinished, path)).inspect_err(
        |_| {
            // What is left of it is worthless and takes up room on what may be a full disk.
            let _ = std::fs::remove_file(&unfinished);
        },
    )
}

/// A name that no other process writes to at the same time.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    use whylate_suite::{absent, missing};

    use super::*;

    #[test]
    fn a_new_name_and_a_regular_file_are_replaced_as_a_whole() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("page.html");
        for content in ["a long page", "short"] {
            write(&path, content.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "something lies beside it");
    }

    #[test]
    fn a_pipe_is_written_to_and_stays_a_pipe() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || std::fs::read_to_string(path).unwrap()
        });
        write(&path, b"through the pipe").unwrap();
        assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "through the pipe");
    }

    #[test]
    fn a_link_stays_and_what_it_names_is_written() {
        let home = tempfile::tempdir().unwrap();
        let (link, file) = (home.path().join("link"), home.path().join("file"));
        symlink(&file, &link).unwrap();
        for content in ["into a new file", "over it"] {
            write(&link, content.as_bytes()).unwrap();
            assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        }
    }

    /// The kernel's numbers of `null` and `full`, as nodes of our own.
    #[test]
    fn a_device_is_written_to_and_stays_a_device() {
        let home = tempfile::tempdir().unwrap();
        for (name, minor, is_full) in [("null", 3, false), ("full", 7, true)] {
            let path = home.path().join(name);
            let device = makedev(1, minor);
            if let Err(why) = mknodat(CWD, &path, FileType::CharacterDevice, Mode::RWXU, device) {
                return missing(&format!("a device node needs root: {why}"));
            }
            match OpenOptions::new().write(true).open(&path) {
                Ok(_) => {}
                Err(why) => return absent(&format!("no devices on this file system: {why}")),
            }
            let written = write(&path, b"a page");
            assert_eq!(
                written.err().map(|why| why.kind()),
                is_full.then_some(io::ErrorKind::StorageFull)
            );
            assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_char_device());
        }
    }

    #[test]
    fn a_directory_is_no_output_and_stays() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        assert_eq!(write(&inside, b"x").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        let mut nothing = String::new();
        assert!(File::open(&inside).unwrap().read_to_string(&mut nothing).is_err());
    }

    #[test]
    fn a_directory_is_made_where_its_parent_is_and_nowhere_else() {
        let home = tempfile::tempdir().unwrap();
        make_directory(&home.path().join("run")).unwrap();
        let why = make_directory(&home.path().join("no/such/run")).unwrap_err().to_string();
        assert!(why.contains("mkdir -p") && why.contains("no/such"), "{why}");
        assert!(!home.path().join("no").exists());
    }
}
