//! The kernel's trace files.
//!
//! [`Documentation/trace/ftrace.rst`](https://docs.kernel.org/trace/ftrace.html),
//! [`Documentation/trace/ring-buffer-map.rst`](https://docs.kernel.org/trace/ring-buffer-map.html).
//! Capability: the mode of the mount decides, as a rule root alone; mounting it privately needs
//! `CAP_SYS_ADMIN`.
//!
//! Every file is reached from an open folder, so that where (and whether) tracefs is mounted does
//! not matter after [`Tracefs::open`]. Names are relative and cannot leave the folder. Nothing is
//! undone here: who creates an instance removes it.

mod folder;
mod place;
mod raw_pipe;

use std::fmt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use whylate_model::CpuId;

use crate::SysError;
use folder::Folder;
pub use raw_pipe::RawPipe;

/// Mounts the trace files for all to see.
const MOUNT: &str = "mount -t tracefs nodev /sys/kernel/tracing";

/// Where the trace files were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Mounted, for all to see.
    Mounted(PathBuf),
    /// Mounted for this process alone and attached to no path; gone when it is closed.
    Private,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted(path) => write!(f, "{}", path.display()),
            Self::Private => f.write_str("tracefs"),
        }
    }
}

/// Why there is no way to the trace files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TracefsRefusal {
    /// It is mounted, but not for us.
    Denied {
        /// Where.
        path: PathBuf,
        /// What the kernel answered.
        errno: Errno,
    },
    /// It is mounted nowhere, and this process may not mount it.
    MayNotMount,
    /// It is mounted nowhere, and this kernel cannot mount without a path (before Linux 5.2).
    CannotMountPrivately,
    /// This kernel has no tracefs.
    NotBuilt,
    /// A step of mounting failed.
    MountFailed {
        /// The call.
        call: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
}

impl TracefsRefusal {
    /// The kernel's answer.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Denied { errno, .. } | Self::MountFailed { errno, .. } => Some(*errno),
            Self::MayNotMount => Some(Errno::PERM),
            Self::CannotMountPrivately => Some(Errno::NOSYS),
            Self::NotBuilt => Some(Errno::NODEV),
        }
    }
}

impl TracefsRefusal {
    /// Why, without what to try.
    #[must_use]
    pub fn reason(&self) -> String {
        let unusable = "no mount of it can be used, and";
        match self {
            Self::Denied { path, errno } => format!("{}: {errno}", path.display()),
            Self::MayNotMount => format!("{unusable} a private one needs CAP_SYS_ADMIN"),
            Self::CannotMountPrivately => format!("{unusable} this kernel has no private ones"),
            Self::NotBuilt => "this kernel was built without it (CONFIG_TRACING)".to_owned(),
            Self::MountFailed { call, errno } => {
                format!("{unusable} a private one failed in {call}: {errno}")
            }
        }
    }

    /// What to try.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Denied { path, .. } => format!(
                "run as root (CAP_SYS_ADMIN), or let your group read and write it: mount -o \
                 remount,gid=GROUP,mode=770 {}",
                path.display()
            ),
            Self::MayNotMount => format!("run as root, or have it mounted: {MOUNT}"),
            Self::CannotMountPrivately | Self::MountFailed { .. } => format!("as root: {MOUNT}"),
            Self::NotBuilt => "use another kernel".to_owned(),
        }
    }
}

impl fmt::Display for TracefsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason(), self.remedy())
    }
}

/// The trace files of the machine.
#[derive(Debug)]
pub struct Tracefs {
    root: Folder,
    place: Place,
}

impl Tracefs {
    /// Opens tracefs where it is mounted writable, else mounts it for this process alone, else
    /// takes a mount that is read-only.
    ///
    /// The private mount is attached to no path and changes nothing that another process can see.
    pub fn open() -> Result<Self, SysError> {
        place::find().map(Self::at).map_err(SysError::Tracefs)
    }

    /// Mounts tracefs for this process alone, wherever else it is mounted.
    pub fn open_private() -> Result<Self, SysError> {
        place::mount_privately().map(Self::at).map_err(SysError::Tracefs)
    }

    fn at((folder, place): (rustix::fd::OwnedFd, Place)) -> Self {
        Self { root: Folder::new(folder, place.to_string()), place }
    }

    /// Where it was found.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The text of a file; never waits. See [`write`](Self::write) for `rel`.
    pub fn read(&self, rel: &str) -> Result<String, SysError> {
        self.root.read(rel)
    }

    /// Writes `text` in one call, adding to what files that are lists hold already. `rel` is
    /// relative, such as `events/sched/sched_switch/enable`.
    pub fn write(&self, rel: &str, text: &str) -> Result<(), SysError> {
        self.root.write(rel, text)
    }

    /// Empties a file that is a list or a buffer: `set_event`, `trace`.
    pub fn clear(&self, rel: &str) -> Result<(), SysError> {
        self.root.clear(rel)
    }

    /// Whether there is such a file or folder.
    #[must_use]
    pub fn exists(&self, rel: &str) -> bool {
        self.root.exists(rel)
    }

    /// Creates a trace instance: a set of buffers and events beside those of the machine. The
    /// caller removes it.
    pub fn create_instance(&self, name: &str) -> Result<Instance, SysError> {
        let rel = instance_path(name)?;
        rustix::fs::mkdirat(self.root.fd(), &rel, Mode::RWXU).map_err(|errno| {
            let advice = match errno {
                Errno::EXIST => "one of that name exists: remove it or choose another name",
                Errno::NOMEM => "its buffers did not fit into memory: remove other instances",
                _ => folder::advice(errno),
            };
            SysError::advised("mkdirat", format!("create {}", self.root.path(&rel)), errno, advice)
        })?;
        self.open_instance(name).inspect_err(|_| {
            // An instance that nobody holds would stay for ever.
            let _ = self.remove_instance(name);
        })
    }

    /// Opens an instance that exists.
    pub fn open_instance(&self, name: &str) -> Result<Instance, SysError> {
        let folder = self.root.folder(&instance_path(name)?)?;
        Ok(Instance { folder, name: name.to_owned() })
    }

    /// The names of all instances, sorted.
    pub fn instances(&self) -> Result<Vec<String>, SysError> {
        self.root.list("instances")
    }

    /// Removes an instance with its buffers; the kernel refuses while one of its pipes is open.
    pub fn remove_instance(&self, name: &str) -> Result<(), SysError> {
        let rel = instance_path(name)?;
        rustix::fs::unlinkat(self.root.fd(), &rel, AtFlags::REMOVEDIR).map_err(|errno| {
            let advice = match errno {
                Errno::BUSY => "some process has one of its files open: close it first",
                Errno::NOENT => "there is no such instance",
                _ => folder::advice(errno),
            };
            SysError::advised("unlinkat", format!("remove {}", self.root.path(&rel)), errno, advice)
        })
    }
}

/// A trace instance. Dropping it leaves the instance in the kernel.
#[derive(Debug)]
pub struct Instance {
    folder: Folder,
    name: String,
}

impl Instance {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text of a file of the instance; never waits.
    pub fn read(&self, rel: &str) -> Result<String, SysError> {
        self.folder.read(rel)
    }

    /// Writes `text` to a file of the instance, as [`Tracefs::write`] does.
    pub fn write(&self, rel: &str, text: &str) -> Result<(), SysError> {
        self.folder.write(rel, text)
    }

    /// Empties a file of the instance that is a list or a buffer.
    pub fn clear(&self, rel: &str) -> Result<(), SysError> {
        self.folder.clear(rel)
    }

    /// Whether there is such a file or folder.
    #[must_use]
    pub fn exists(&self, rel: &str) -> bool {
        self.folder.exists(rel)
    }

    /// The binary pages of one CPU. While it is open the instance cannot be removed.
    pub fn raw_pipe(&self, cpu: CpuId) -> Result<RawPipe, SysError> {
        RawPipe::open(&self.folder, cpu)
    }
}

/// `instances/NAME`, where NAME is one component.
fn instance_path(name: &str) -> Result<String, SysError> {
    if name.is_empty() || name.contains('/') || name == "." || name == ".." {
        let why = "a name is not empty and has no `/`";
        return Err(SysError::invalid(format!("use a trace instance named `{name}`"), why));
    }
    Ok(format!("instances/{name}"))
}

#[cfg(test)]
mod tests;
