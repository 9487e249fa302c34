//! Paths of Unix sockets that go with their sockets.

use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, bind};

use crate::error::PortError;

/// Names of directories that are tried at most: others may be there from killed processes.
const TRIES: u32 = 1_000;
/// Tells the directories of one process apart.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A path that a socket is bound to, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Bound {
    path: PathBuf,
    /// Device and inode: another's socket at the same path is left alone.
    id: Option<(u64, u64)>,
    /// A directory that was made for it.
    directory: Option<PathBuf>,
}

impl Bound {
    /// A socket was bound to this path.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), id: id(path), directory: None }
    }

    /// Binds a socket to a path that nobody else can reach but by being told.
    pub(crate) fn private(socket: &OwnedFd) -> Result<Self, PortError> {
        let directory = directory()?;
        let path = directory.join("client");
        let address = SocketAddrUnix::new(&path);
        let bound = address.and_then(|address| bind(socket, &address));
        let bound = bound.map(|()| Self {
            id: id(&path),
            path: path.clone(),
            directory: Some(directory.clone()),
        });
        bound.map_err(|errno| {
            // Nothing is in it yet.
            let _ = std::fs::remove_dir(&directory);
            PortError::Path { what: "make a socket at", path, errno }
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.id.is_some() && id(&self.path) == self.id {
            let _ = std::fs::remove_file(&self.path);
        }
        if let Some(directory) = &self.directory {
            let _ = std::fs::remove_dir(directory);
        }
    }
}

fn id(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// A new directory of ours alone.
fn directory() -> Result<PathBuf, PortError> {
    let base = std::env::temp_dir();
    let mut why = Errno::EXIST;
    for _ in 0..TRIES {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("whylate-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) => why = Errno::from_io_error(&error).unwrap_or(Errno::IO),
        }
        if why != Errno::EXIST {
            break;
        }
    }
    Err(PortError::Path { what: "make a directory in", path: base, errno: why })
}
