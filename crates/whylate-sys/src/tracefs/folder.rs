//! Files reached from an open folder by relative names that cannot leave it.

use std::path::{Component, Path};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::SysError;

/// The longest text that is read: `available_filter_functions` has some 5 MiB, and the text of a
/// full buffer must not fill memory.
const LONGEST_TEXT: usize = 64 << 20;
/// What one read asks for. Some files answer once and are then at their end, whatever was asked
/// for: `events/header_page` and its like are far shorter than this.
const CHUNK: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    /// How errors call it.
    label: String,
}

impl Folder {
    pub(super) fn new(fd: OwnedFd, label: String) -> Self {
        Self { fd, label }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn path(&self, rel: &str) -> String {
        format!("{}/{rel}", self.label)
    }

    pub(super) fn read(&self, rel: &str) -> Result<String, SysError> {
        let what = || format!("read {}", self.path(rel));
        let file = self.open(rel, OFlags::RDONLY | OFlags::NONBLOCK, "read")?;
        let mut bytes = Vec::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            match rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut chunk[..])) {
                Ok(0) => break,
                Ok(length) => bytes.extend_from_slice(&chunk[..length]),
                Err(errno) => {
                    return Err(SysError::advised("read", what(), errno, advice(errno)));
                }
            }
            if bytes.len() > LONGEST_TEXT {
                return Err(SysError::invalid(what(), "it is longer than 64 MiB"));
            }
        }
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// One call, for the kernel takes a value whole or not at all.
    pub(super) fn write(&self, rel: &str, text: &str) -> Result<(), SysError> {
        let what = || format!("write `{}` to {}", text.trim_end(), self.path(rel));
        let file = self.open(rel, OFlags::WRONLY, "write")?;
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, text.as_bytes()))
            .map_err(|errno| SysError::advised("write", what(), errno, advice(errno)))?;
        if written < text.len() {
            let why = format!("the kernel took {written} of {} bytes", text.len());
            return Err(SysError::invalid(what(), why));
        }
        Ok(())
    }

    pub(super) fn clear(&self, rel: &str) -> Result<(), SysError> {
        self.open(rel, OFlags::WRONLY | OFlags::TRUNC, "clear").map(drop)
    }

    pub(super) fn exists(&self, rel: &str) -> bool {
        is_inside(rel) && rustix::fs::statat(&self.fd, rel, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    pub(super) fn folder(&self, rel: &str) -> Result<Self, SysError> {
        let fd = self.open(rel, OFlags::RDONLY | OFlags::DIRECTORY, "open")?;
        Ok(Self::new(fd, self.path(rel)))
    }

    /// The folders in folder `rel`, sorted.
    pub(super) fn list(&self, rel: &str) -> Result<Vec<String>, SysError> {
        let fail = |errno| {
            SysError::advised("getdents", format!("list {}", self.path(rel)), errno, advice(errno))
        };
        let folder = self.open(rel, OFlags::RDONLY | OFlags::DIRECTORY, "list")?;
        let mut names = Vec::new();
        for entry in Dir::new(folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_string_lossy();
            if entry.file_type() == FileType::Directory && name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn open(&self, rel: &str, flags: OFlags, verb: &str) -> Result<OwnedFd, SysError> {
        let what = || format!("{verb} {}", self.path(rel));
        if !is_inside(rel) {
            return Err(SysError::invalid(what(), "the name must be relative and without `..`"));
        }
        rustix::fs::openat(&self.fd, rel, flags | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| SysError::advised("openat", what(), errno, advice(errno)))
    }
}

/// What to try where the trace files refuse.
pub(super) fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT => "this kernel has no such file",
        Errno::ACCESS => "run as root, or give your group the rights on tracefs",
        Errno::PERM => "kernel lockdown or a sandbox forbids it",
        Errno::INVAL => "the kernel does not take this value",
        Errno::BUSY => "another tracer is using it",
        Errno::ROFS => "tracefs is mounted read-only here: have it mounted writable",
        Errno::AGAIN => "it has nothing to read now",
        _ => "",
    }
}

fn is_inside(rel: &str) -> bool {
    !rel.is_empty() && Path::new(rel).components().all(|part| matches!(part, Component::Normal(_)))
}
