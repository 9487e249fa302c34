//! Being inside a cgroup for the length of a measurement.
//!
//! A thread begins in the cgroup of the thread that makes it. So the calling thread enters, makes
//! the measuring threads, and goes back ([`InsideCgroup::threads_are_made`]): its own work then
//! counts elsewhere. Version 1 and threaded cgroups of version 2 allow that; elsewhere version 2
//! moves whole processes, and the process stays inside until the guard goes.
//!
//! Nothing is written to the journal: a killed process leaves the cgroup with its life.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use whylate_model::warning::Warning;

use super::{Guard, listed};
use crate::error::HostError;
use crate::files::{text, trimmed, under};
use crate::topology;

/// What a cgroup file takes for the thread or process that writes.
const MYSELF: &str = "0";

/// Membership in a cgroup, of the hierarchies in which it exists.
#[derive(Debug)]
pub struct InsideCgroup {
    stays: Vec<Stay>,
}

/// One hierarchy.
#[derive(Debug)]
struct Stay {
    inside: PathBuf,
    home: PathBuf,
    reach: Reach,
}

/// What a move takes along; also the file it is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Version 1: one thread.
    Task,
    /// Version 2, threaded: one thread.
    Thread,
    /// Version 2: the process.
    Process,
}

/// A mounted hierarchy.
pub(super) struct Hierarchy {
    pub(super) mount: PathBuf,
    pub(super) version: Version,
}

/// Which kind of hierarchy, and which of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// With the controllers that tell it from the others.
    One(String),
    Two,
}

impl InsideCgroup {
    /// Moves the calling thread into the cgroup: a path below the mounts, or a directory.
    pub fn enter(root: &Path, path: &Path) -> Result<Self, HostError> {
        let own = text(&under(root, "/proc/thread-self/cgroup")).unwrap_or_default();
        let mut inside = Self { stays: Vec::new() };
        let mut looked = Vec::new();
        for hierarchy in hierarchies(root) {
            let place = if path.starts_with(&hierarchy.mount) {
                path.to_owned()
            } else {
                under(&hierarchy.mount, &path.to_string_lossy())
            };
            let home = hierarchy.home(&own).filter(|home| home.is_dir());
            looked.push(place.display().to_string());
            match home {
                Some(home) if place.is_dir() && place != home => {
                    let reach = enter_one(&place, &hierarchy.version)?;
                    inside.stays.push(Stay { inside: place, home, reach });
                }
                _ => {}
            }
        }
        if inside.stays.is_empty() && !looked.iter().any(|place| Path::new(place).is_dir()) {
            let path = path.display().to_string();
            return Err(HostError::CgroupNotFound { path, looked: looked.join(", ") });
        }
        Ok(inside)
    }

    /// The threads that belong inside have begun: the calling thread goes back where it can go
    /// alone.
    pub fn threads_are_made(&mut self) -> Vec<Warning> {
        self.leave(|stay| stay.reach != Reach::Process)
    }

    /// Is the whole process inside, the thread that does the housekeeping with it?
    #[must_use]
    pub fn holds_the_process(&self) -> bool {
        self.stays.iter().any(|stay| stay.reach == Reach::Process)
    }

    fn leave(&mut self, which: impl Fn(&Stay) -> bool) -> Vec<Warning> {
        let (leaving, staying) = self.stays.drain(..).partition(which);
        self.stays = staying;
        let leaving: Vec<Stay> = leaving;
        leaving.into_iter().filter_map(|stay| stay.go_home().err()).collect()
    }
}

impl Guard for InsideCgroup {
    fn describe(&self) -> Vec<String> {
        let places: Vec<String> =
            self.stays.iter().map(|stay| stay.inside.display().to_string()).collect();
        match places.len() {
            0 => Vec::new(),
            _ => vec![format!("measuring inside {}", listed(&places))],
        }
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.leave(|_| true)
    }
}

impl Drop for InsideCgroup {
    fn drop(&mut self) {
        for warning in self.restore() {
            super::say(warning);
        }
    }
}

impl Stay {
    fn go_home(&self) -> Result<(), Warning> {
        let file = self.home.join(self.reach.file());
        fs::write(&file, MYSELF).map_err(|error| Warning::Guard {
            what: format!(
                "still in cgroup {}: cannot go back by {}: {error}",
                self.inside.display(),
                file.display()
            ),
        })
    }
}

impl Reach {
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Task => "tasks",
            Self::Thread => "cgroup.threads",
            Self::Process => "cgroup.procs",
        }
    }
}

impl Hierarchy {
    /// Where `/proc/thread-self/cgroup` says that the thread is.
    pub(super) fn home(&self, own: &str) -> Option<PathBuf> {
        let path = own.lines().find_map(|line| {
            let (id, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_here = match &self.version {
                Version::Two => id == "0" && controllers.is_empty(),
                Version::One(options) => {
                    let mut names = controllers.split(',').filter(|name| !name.is_empty());
                    !controllers.is_empty()
                        && names.all(|name| options.split(',').any(|option| option == name))
                }
            };
            is_here.then_some(path)
        })?;
        Some(under(&self.mount, path))
    }
}

pub(super) fn hierarchies(root: &Path) -> Vec<Hierarchy> {
    let mounts = topology::mounts(root).into_iter();
    let of = |(kind, point, options): (String, String, String)| {
        let version = match kind.as_str() {
            "cgroup2" => Version::Two,
            "cgroup" => Version::One(options),
            _ => return None,
        };
        Some(Hierarchy { mount: under(root, &point), version })
    };
    mounts.filter_map(of).collect()
}

/// Moves the calling thread, or where only that is possible its process.
fn enter_one(place: &Path, version: &Version) -> Result<Reach, HostError> {
    let threaded = || trimmed(&place.join("cgroup.type")).is_some_and(|kind| kind == "threaded");
    let ways: &[Reach] = match version {
        Version::One(_) => &[Reach::Task],
        Version::Two if threaded() => &[Reach::Thread, Reach::Process],
        Version::Two => &[Reach::Process],
    };
    let mut refused = None;
    for reach in ways {
        let path = place.join(reach.file());
        match fs::write(&path, MYSELF) {
            Ok(()) => return Ok(*reach),
            Err(source) => refused = Some((path, source)),
        }
    }
    let (path, source) =
        refused.unwrap_or_else(|| (place.to_owned(), io::Error::from(io::ErrorKind::Unsupported)));
    Err(HostError::Setting {
        path,
        value: MYSELF.to_owned(),
        source,
        remedy: "be its owner or root; a cpuset also needs `cpuset.cpus` and, in version 1, \
                 `cpuset.mems`",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    const MOUNTS: &str = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n\
                          cgroup /sys/fs/cgroup/cpuset cgroup rw,nosuid,cpuset 0 0\n\
                          cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
    const OWN: &str = "9:cpuset:/\n4:cpu,cpuacct:/mine\n0::/user\n";

    /// The cgroup `lab` in some hierarchies, and where this thread is at home.
    fn host(lab_in: &[&str]) -> Tree {
        let tree = Tree::empty();
        tree.file("/proc/self/mounts", MOUNTS)
            .file("/proc/mounts", MOUNTS)
            .file("/proc/thread-self/cgroup", OWN)
            .file("/sys/fs/cgroup/cpu/mine/tasks", "")
            .file("/sys/fs/cgroup/cpuset/tasks", "")
            .file("/sys/fs/cgroup/unified/user/cgroup.procs", "")
            .file("/sys/fs/cgroup/unified/user/cgroup.threads", "");
        for hierarchy in lab_in {
            tree.file(&format!("/sys/fs/cgroup/{hierarchy}/lab/tasks"), "")
                .file(&format!("/sys/fs/cgroup/{hierarchy}/lab/cgroup.procs"), "")
                .file(&format!("/sys/fs/cgroup/{hierarchy}/lab/cgroup.threads"), "");
        }
        tree
    }

    fn written(tree: &Tree, file: &str) -> bool {
        fs::read_to_string(under(tree.root(), &format!("/sys/fs/cgroup/{file}"))).unwrap() == MYSELF
    }

    #[test]
    fn a_thread_enters_every_hierarchy_that_has_the_cgroup_and_goes_back() {
        let tree = host(&["cpu", "cpuset"]);
        let mut inside = InsideCgroup::enter(tree.root(), Path::new("/lab")).unwrap();
        assert!(written(&tree, "cpu/lab/tasks") && written(&tree, "cpuset/lab/tasks"));
        assert!(!written(&tree, "cpu/mine/tasks") && !inside.holds_the_process());
        assert_eq!(inside.threads_are_made(), []);
        assert!(written(&tree, "cpu/mine/tasks") && written(&tree, "cpuset/tasks"));
    }

    #[test]
    fn a_directory_is_entered_in_its_own_hierarchy_only() {
        let tree = host(&["cpu", "cpuset"]);
        let place = under(tree.root(), "/sys/fs/cgroup/cpuset/lab");
        drop(InsideCgroup::enter(tree.root(), &place).unwrap());
        assert!(written(&tree, "cpuset/lab/tasks") && !written(&tree, "cpu/lab/tasks"));
        assert!(written(&tree, "cpuset/tasks"), "the guard goes back");
    }

    #[test]
    fn version_two_takes_the_process_along_unless_the_cgroup_is_threaded() {
        let tree = host(&["unified"]);
        let mut inside = InsideCgroup::enter(tree.root(), Path::new("lab")).unwrap();
        assert!(inside.holds_the_process());
        assert_eq!(inside.threads_are_made(), []);
        assert!(!written(&tree, "unified/user/cgroup.procs"), "the process stays");
        drop(inside);
        assert!(written(&tree, "unified/user/cgroup.procs"));

        let tree = host(&["unified"]);
        tree.file("/sys/fs/cgroup/unified/lab/cgroup.type", "threaded\n");
        let mut inside = InsideCgroup::enter(tree.root(), Path::new("lab")).unwrap();
        assert!(!inside.holds_the_process());
        assert_eq!(inside.threads_are_made(), []);
        assert!(written(&tree, "unified/user/cgroup.threads"));
    }

    #[test]
    fn a_cgroup_that_is_nowhere_is_named_with_where_it_was_looked_for() {
        let tree = host(&[]);
        let error = InsideCgroup::enter(tree.root(), Path::new("/lab")).unwrap_err().to_string();
        assert!(error.contains("`/lab`") && error.contains("cpuset/lab"), "{error}");
    }
}
