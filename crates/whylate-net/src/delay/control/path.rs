//! The file of a control socket: made for its owner alone, and gone with the listener.
//!
//! A file that a killed process left is taken away; one that somebody listens at, and one that is no
//! socket, is left as it is and refused.

use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use super::error::ControlError;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 8;
/// Read and written by whoever started it.
const MODE: u32 = 0o600;

/// The file, removed when this is dropped.
#[derive(Debug)]
pub(super) struct Bound {
    path: PathBuf,
    /// Device and inode: another's socket at the same path is left alone.
    id: Option<(u64, u64)>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.id.is_some() && id(&self.path) == self.id {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`, without ever waiting.
pub(super) fn listening(path: &Path) -> Result<(UnixListener, Bound), ControlError> {
    let failed =
        |errno: Errno| ControlError::Socket { path: path.to_owned(), source: errno.into() };
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    take_away_what_is_stale(path, &address)?;
    let socket = socket().map_err(failed)?;
    bind(&socket, &address).map_err(failed)?;
    let bound = Bound { path: path.to_owned(), id: id(path) };
    // Nobody is let in before it listens.
    let own = std::fs::set_permissions(path, std::fs::Permissions::from_mode(MODE));
    own.map_err(|source| ControlError::Socket { path: path.to_owned(), source })?;
    listen(&socket, BACKLOG).map_err(failed)?;
    Ok((UnixListener::from(socket), bound))
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn take_away_what_is_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), ControlError> {
    let Ok(there) = path.symlink_metadata() else { return Ok(()) };
    if !there.file_type().is_socket() {
        return Err(ControlError::NoSocket(path.to_owned()));
    }
    // One that is too busy to answer is there as well: this does not wait for it.
    match socket().and_then(|socket| connect(&socket, address)) {
        Err(Errno::CONNREFUSED) => {
            let removed = std::fs::remove_file(path);
            removed.map_err(|source| ControlError::Socket { path: path.to_owned(), source })
        }
        Err(Errno::NOENT) => Ok(()),
        _ => Err(ControlError::InUse(path.to_owned())),
    }
}

fn id(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_file_is_taken_away_and_what_is_in_use_or_no_socket_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("control");
        let (listener, bound) = listening(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, MODE);
        assert!(matches!(listening(&path), Err(ControlError::InUse(_))));
        // As a killed process leaves it: the file is there, and nobody listens.
        drop(listener);
        std::mem::forget(bound);
        assert!(path.exists());
        let (listener, bound) = listening(&path).unwrap();
        drop((listener, bound));
        assert!(!path.exists(), "it goes with its owner");
        std::fs::write(&path, "words").unwrap();
        assert!(matches!(listening(&path), Err(ControlError::NoSocket(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "words");
        let long = home.path().join("x".repeat(200));
        assert!(matches!(listening(&long), Err(ControlError::Socket { .. })));
    }

    #[test]
    fn the_file_of_another_at_the_same_path_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("control");
        let (listener, bound) = listening(&path).unwrap();
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        let (_other, _its) = listening(&path).unwrap();
        // An inode may be used again at once: then nothing can be told apart.
        let same = id(&path) == bound.id;
        drop(bound);
        assert!(same || path.exists());
    }
}
