//! Where journals lie, and that nobody else can put one there.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use whylate_model::Pid;

/// More files than this in one directory are not looked at: one process has one file.
const MAX_FILES: usize = 4096;

/// The name of a journal: `PID-STARTTIME.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileName {
    pub(crate) pid: Pid,
    pub(crate) start_time: u64,
}

impl FileName {
    pub(super) fn of(record: &super::Record) -> Self {
        Self { pid: record.pid, start_time: record.start_time }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (pid, start_time) = name.strip_suffix(".json")?.split_once('-')?;
        let parsed = Self { pid: Pid(pid.parse().ok()?), start_time: start_time.parse().ok()? };
        // One spelling only: no signs, no leading zeros.
        (parsed.pid.0 > 0 && parsed.to_string() == name).then_some(parsed)
    }

    /// What the file is called until it is whole.
    pub(crate) fn unfinished(self) -> String {
        format!("{self}.new")
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}.json", self.pid, self.start_time)
    }
}

/// Directories for the journals of this user, best first. All are looked at on recovery, for an
/// earlier process may have found another one usable.
pub(crate) fn candidates() -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    let mut found = Vec::new();
    if user.is_root() {
        found.push(PathBuf::from("/run/whylate"));
    } else if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR") {
        let runtime = PathBuf::from(runtime);
        if runtime.is_absolute() {
            found.push(runtime.join("whylate"));
        }
    }
    found.push(PathBuf::from(format!("/tmp/whylate-{}", user.as_raw())));
    found
}

/// Opens a journal directory; with `make` it is made where it is missing. It is no symbolic link,
/// belongs to this user, and is closed to everybody else.
pub(crate) fn open(path: &Path, make: bool) -> io::Result<File> {
    if make {
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&directory)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        let why = format!("it belongs to user {}, not to this one", stat.st_uid);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&directory, Mode::RWXU)?;
    }
    Ok(File::from(directory))
}

/// Names in a journal directory, at most [`MAX_FILES`] of them.
pub(crate) fn names(directory: &File) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | ".."));
        names.extend(name.map(str::to_owned));
        if names.len() >= MAX_FILES {
            break;
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn names_have_one_spelling() {
        let name = FileName { pid: Pid(12), start_time: 345 };
        assert_eq!(name.to_string(), "12-345.json");
        assert_eq!(FileName::parse("12-345.json"), Some(name));
        for other in
            ["012-345.json", "+12-345.json", "-12-345.json", "12-345", "12.json", "0-1.json"]
        {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
    }

    #[test]
    fn directory_is_made_private_and_closed_when_found_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("whylate");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert!(open(&path, false).is_err());
        open(&path, true).unwrap();
        assert_eq!(mode(&path), 0o700);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        open(&path, true).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn links_and_files_are_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert!(open(&link, true).is_err());
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(open(&file, true).is_err());
    }

    #[test]
    fn directory_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            // Everybody but root sees one: the root of the file system is root's.
            assert!(open(Path::new("/"), false).is_err());
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("whylate");
        open(&path, true).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let error = open(&path, true).unwrap_err().to_string();
        assert!(error.contains("user 65534"), "{error}");
    }
}
