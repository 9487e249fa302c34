//! A cgroup of whylate's own: made, filled with threads, emptied and removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use whylate_model::Pid;
use whylate_model::warning::Warning;

use super::cgroup::{Hierarchy, Reach, Version, hierarchies};
use super::changes::Changes;
use crate::error::HostError;
use crate::files::{text, trimmed, under};
use crate::journal::Undo;

/// Where a group is made, and what of a process can enter it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The cgroup above.
    pub(super) parent: PathBuf,
    pub(super) kind: Kind,
    root: PathBuf,
    mount: PathBuf,
}

/// The version of the hierarchy, and what it moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Version 1: single threads.
    One,
    /// Version 2, a threaded group below the root, where this process is: single threads.
    TwoThreaded,
    /// Version 2: the whole process.
    TwoProcess,
}

/// Which cgroup is the parent of groups made in a hierarchy of version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    /// The root: for what concerns the whole machine.
    Root,
    /// The cgroup of this process, whose limits go on to hold.
    Home,
}

impl Place {
    /// Looks for the hierarchy that has `controller`, version 1 first: there a controller that it
    /// has is absent from version 2.
    pub(super) fn find(
        root: &Path,
        controller: &'static str,
        below: Below,
    ) -> Result<Self, HostError> {
        let own = text(&under(root, "/proc/thread-self/cgroup")).unwrap_or_default();
        let found = hierarchies(root);
        let first = found.iter().find(|hierarchy| match &hierarchy.version {
            Version::One(options) => options.split(',').any(|option| option == controller),
            Version::Two => false,
        });
        if let Some(first) = first {
            let home = first.home(&own).filter(|home| home.is_dir());
            let parent = match (below, home) {
                (Below::Home, Some(home)) => home,
                _ => first.mount.clone(),
            };
            let (root, mount) = (root.to_owned(), first.mount.clone());
            return Ok(Self { parent, kind: Kind::One, root, mount });
        }
        let second = found.iter().find(|hierarchy| {
            let offered = trimmed(&hierarchy.mount.join("cgroup.controllers")).unwrap_or_default();
            hierarchy.version == Version::Two
                && offered.split_whitespace().any(|one| one == controller)
        });
        let Some(second) = second else {
            let looked: Vec<String> =
                found.iter().map(|one| one.mount.display().to_string()).collect();
            let looked = if looked.is_empty() { "none".to_owned() } else { looked.join(", ") };
            return Err(HostError::NoController { controller, looked });
        };
        let at_root = second.home(&own).is_some_and(|home| home == second.mount);
        let kind = if at_root { Kind::TwoThreaded } else { Kind::TwoProcess };
        let (root, mount) = (root.to_owned(), second.mount.clone());
        Ok(Self { parent: mount.clone(), kind, root, mount })
    }

    /// Where process `pid`, whosever it is, is now in this hierarchy.
    pub(super) fn home_of_process(&self, pid: Pid) -> Option<PathBuf> {
        self.home_by(&format!("/proc/{pid}/cgroup"))
    }

    /// Where thread `tid` of this process is now in this hierarchy.
    fn home_of(&self, tid: Pid) -> Option<PathBuf> {
        self.home_by(&format!("/proc/self/task/{tid}/cgroup"))
    }

    fn home_by(&self, file: &str) -> Option<PathBuf> {
        let own = text(&under(&self.root, file)).ok()?;
        let all = hierarchies(&self.root);
        let mine = all.into_iter().find(|one: &Hierarchy| one.mount == self.mount)?;
        mine.home(&own)
    }
}

impl Kind {
    fn reach(self) -> Reach {
        match self {
            Self::One => Reach::Task,
            Self::TwoThreaded => Reach::Thread,
            Self::TwoProcess => Reach::Process,
        }
    }
}

/// A cgroup that was made; emptied by [`Group::evacuate`], removed by the changes it was announced
/// in.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) dir: PathBuf,
    place: Place,
    /// Who entered, and from where.
    homes: Mutex<Vec<(Pid, PathBuf)>>,
}

const OWNER: &str = "be its owner or root";

impl Group {
    /// Makes `whylate-OWNER-TAG` at `place`, with `controller` enabled for it.
    pub(super) fn make(
        changes: &mut Changes,
        place: &Place,
        name: &str,
        controller: &'static str,
    ) -> Result<Self, HostError> {
        if place.kind != Kind::One {
            enable(changes, &place.parent, controller)?;
        }
        let dir = place.parent.join(name);
        let undo = Undo::RemoveDir { path: dir.display().to_string() };
        changes.announce(vec![undo.clone()])?;
        if let Err(source) = fs::create_dir(&dir) {
            // Left by a process that had this id before: empty, it goes; else it is in use.
            let again = fs::remove_dir(&dir).and_then(|()| fs::create_dir(&dir));
            if source.kind() != io::ErrorKind::AlreadyExists || again.is_err() {
                changes.withdraw(|made| *made == undo)?;
                let value = "a new cgroup".to_owned();
                let remedy = "run as root, or have the cgroup above delegated to you";
                return Err(HostError::Setting { path: dir, value, source, remedy });
            }
        }
        let group = Self { dir, place: place.clone(), homes: Mutex::default() };
        if place.kind == Kind::TwoThreaded {
            group.write("cgroup.type", "threaded", "its parent does not take threaded children")?;
        }
        Ok(group)
    }

    /// Writes one of its files. They go with it, so the journal need not know.
    pub(super) fn write(
        &self,
        file: &str,
        value: &str,
        remedy: &'static str,
    ) -> Result<(), HostError> {
        let path = self.dir.join(file);
        fs::write(&path, value).map_err(|source| HostError::Setting {
            path,
            value: value.to_owned(),
            source,
            remedy,
        })
    }

    /// Moves a thread of this process in (version 2 outside its root: the whole process).
    pub(super) fn adopt(&self, tid: Pid, remedy: &'static str) -> Result<(), HostError> {
        let home = self.place.home_of(tid).unwrap_or_else(|| self.place.parent.clone());
        let reach = self.place.kind.reach();
        let who = match reach {
            Reach::Process => whylate_sys::process::pid(),
            Reach::Task | Reach::Thread => tid,
        };
        let file = self.dir.join(reach.file());
        fs::write(&file, who.to_string()).map_err(|source| {
            let remedy =
                if source.kind() == io::ErrorKind::PermissionDenied { OWNER } else { remedy };
            HostError::NotAdopted { task: who, path: self.dir.clone(), source, remedy }
        })?;
        if home != self.dir {
            self.homes().push((who, home));
        }
        Ok(())
    }

    /// Where thread `tid` of this process is now.
    #[cfg(test)]
    pub(super) fn place_of(&self, tid: Pid) -> Option<PathBuf> {
        self.place.home_of(tid)
    }

    /// Does a thread that enters take the whole process along?
    pub(super) fn moves_the_process(&self) -> bool {
        self.place.kind == Kind::TwoProcess
    }

    /// Moves everybody out: to where they came from, and who began inside to the cgroup above.
    pub(super) fn evacuate(&self) -> Vec<Warning> {
        let file = self.place.kind.reach().file();
        let mut stuck = Vec::new();
        let homes = std::mem::take(&mut *self.homes());
        let inside = text(&self.dir.join(file)).unwrap_or_default();
        for tid in inside.lines().filter_map(|line| line.trim().parse().ok().map(Pid)) {
            let home = homes.iter().find(|(who, _)| *who == tid).map(|(_, home)| home);
            let to = home.unwrap_or(&self.place.parent).join(file);
            if let Err(error) = fs::write(&to, tid.to_string())
                && !crate::kernel::is_gone(&error)
            {
                stuck.push(format!("{tid} ({error})"));
            }
        }
        if stuck.is_empty() {
            return Vec::new();
        }
        let (dir, tasks) = (self.dir.display(), super::listed(&stuck));
        vec![Warning::Guard { what: format!("cgroup {dir}: cannot move out tasks {tasks}") }]
    }

    fn homes(&self) -> MutexGuard<'_, Vec<(Pid, PathBuf)>> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands a controller on to the children of a cgroup of version 2.
fn enable(changes: &mut Changes, parent: &Path, controller: &'static str) -> Result<(), HostError> {
    let path = parent.join("cgroup.subtree_control");
    let handed_on = trimmed(&path).unwrap_or_default();
    if handed_on.split_whitespace().any(|one| one == controller) {
        return Ok(());
    }
    let undo = Undo::DisableController {
        path: path.display().to_string(),
        controller: controller.to_owned(),
    };
    changes.announce(vec![undo.clone()])?;
    let value = format!("+{controller}");
    fs::write(&path, &value).or_else(|source| {
        changes.withdraw(|made| *made == undo)?;
        let remedy = "run as root, outside a container that keeps the controller to itself";
        Err(HostError::Setting { path, value, source, remedy })
    })
}
