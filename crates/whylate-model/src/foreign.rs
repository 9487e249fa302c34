//! Threads of other processes that had a measured CPU, and which processes those were.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::cause::{Cause, PriorityClass, shown_name};
use crate::run::Run;
use crate::units::Pid;

/// A thread that had a measured CPU and is neither one of the set nor one of whylate's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignThread {
    /// Its name when it had the CPU.
    pub comm: String,
    /// Its thread id.
    pub tid: Pid,
    /// Its process; none where the thread had ended, or had another name, before it was looked at.
    pub process: Option<ForeignProcess>,
}

/// The process of a thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignProcess {
    /// Its id.
    pub pid: Pid,
    /// Its name: that of its first thread.
    pub name: String,
}

impl Run {
    /// Names of threads as reports show them, where the name of the process says more.
    #[must_use]
    pub fn foreign_names(&self) -> BTreeMap<String, String> {
        let mut processes: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
        for of in &self.foreign_threads {
            let process = of.process.as_ref().map(|process| process.name.as_str());
            processes.entry(&of.comm).or_default().insert(process);
        }
        let shown = processes.into_iter().filter_map(|(comm, names)| {
            let known: Vec<&str> = names.iter().flatten().copied().collect();
            let of = match known.as_slice() {
                [] => return None,
                [name] if *name == comm => return None,
                [name] => (*name).to_owned(),
                [first, second] => format!("{first} and {second}"),
                more => format!("{} processes", more.len()),
            };
            // Of those that ended before they were looked at nobody knows.
            let others = if names.contains(&None) { ", or of others" } else { "" };
            Some((comm.to_owned(), format!("{comm} of {of}{others}")))
        });
        shown.collect()
    }

    /// What reports call a cause that is stored so, other than time without a kernel event.
    #[must_use]
    pub fn shown_cause(&self, stored: &str) -> String {
        let threads = self.shown_threads();
        let plain = || shown_name(stored, self.ticks()).into_owned();
        threads.get(stored).cloned().unwrap_or_else(plain)
    }

    /// What tables of gaps call threads, and what reports call them, where the name of the process says more.
    #[must_use]
    pub fn shown_threads(&self) -> BTreeMap<String, String> {
        const CLASSES: [PriorityClass; 4] = [
            PriorityClass::Deadline,
            PriorityClass::RealTime,
            PriorityClass::Ordinary,
            PriorityClass::Idle,
        ];
        let named = |comm: &str, class| Cause::Thread { comm: comm.to_owned(), class };
        let foreign = self.foreign_names();
        let of_each = foreign.iter().flat_map(|(comm, shown)| {
            CLASSES.map(|class| (named(comm, class).stored(), named(shown, class).to_string()))
        });
        of_each.collect()
    }
}
