//! Files of a run directory: opened as plain files only, replaced as a whole or not at all.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::ModelError;

/// What a file is called until it is whole.
pub(crate) const UNFINISHED: &str = "tmp";

/// Opens `path` for reading if it is a plain file.
///
/// A link could lead out of the directory, a pipe would never end to be opened, and a device never
/// ends to be read: a run directory that somebody else made may hold any of these.
pub(crate) fn open_plain(path: &Path) -> Result<File, ModelError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::LOOP) => {
            return Err(ModelError::NotAPlainFile { path: path.to_owned() });
        }
        Err(errno) => return Err(ModelError::read(path, errno.into())),
    };
    let metadata = file.metadata().map_err(|why| ModelError::read(path, why))?;
    if metadata.is_file() {
        Ok(file)
    } else {
        Err(ModelError::NotAPlainFile { path: path.to_owned() })
    }
}

/// Reads a plain file of at most `limit` bytes.
pub(crate) fn read_plain(path: &Path, limit: u64) -> Result<Vec<u8>, ModelError> {
    let file = open_plain(path)?;
    let bytes = file.metadata().map_err(|why| ModelError::read(path, why))?.len();
    if bytes > limit {
        return Err(ModelError::TooLarge { path: path.to_owned(), bytes, limit });
    }
    let mut content = Vec::with_capacity(bytes as usize);
    // The file may grow while it is read.
    file.take(limit).read_to_end(&mut content).map_err(|why| ModelError::read(path, why))?;
    Ok(content)
}

/// Puts `content` at `path` so that a reader, at any time and after any crash, finds either all of
/// it or what was there before.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), ModelError> {
    let unfinished = unfinished_name(path);
    let bytes = Some(content.len() as u64);
    let failed = |why| ModelError::Write { path: path.to_owned(), bytes, why };
    let written = write_new(&unfinished, content);
    if let Err(why) = written.and_then(|()| std::fs::rename(&unfinished, path)) {
        // What is left of it is worthless and takes up room on what may be a full disk.
        let _ = std::fs::remove_file(&unfinished);
        return Err(failed(why));
    }
    sync_directory(path.parent().unwrap_or(Path::new("."))).map_err(failed)
}

/// Writes a file that does not exist yet, down to the disk.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// A file of so many bytes in the directory that has no name and goes with its value; none where
/// the file system does not promise room.
pub(crate) fn nameless(directory: &Path, bytes: u64) -> Option<File> {
    let path = directory.join(format!("reserve.{UNFINISHED}"));
    let file = File::create_new(&path).ok()?;
    std::fs::remove_file(&path).ok()?;
    let room = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes);
    room.is_ok().then_some(file)
}

/// Makes names in the directory last.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        // Some file systems cannot do this to a directory, and need not.
        Err(why) if why.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

fn unfinished_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(UNFINISHED);
    PathBuf::from(name)
}
