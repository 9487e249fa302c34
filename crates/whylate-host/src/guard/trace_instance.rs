//! A private set of trace buffers.

use whylate_model::warning::Warning;
use whylate_sys::tracefs::{Instance, Tracefs};

use super::Guard;
use super::changes::Changes;
use crate::error::HostError;
use crate::journal::{Journal, Undo, is_own_instance};

/// A trace instance `whylate-PID-TAG`: events switched on in it do not show in anybody else's trace.
/// It goes with the guard; close its pipes first, for the kernel keeps an instance that is read.
#[derive(Debug)]
pub struct TraceInstance {
    // Before the changes: fields are dropped in this order.
    instance: Instance,
    changes: Changes,
}

impl TraceInstance {
    /// Creates the instance. `tag` tells several of one process apart.
    ///
    /// # Panics
    /// When `tag` has other characters than letters, digits, `-` and `_`.
    pub fn create(journal: &Journal, tracefs: &Tracefs, tag: &str) -> Result<Self, HostError> {
        let name = format!("whylate-{}-{tag}", journal.owner());
        assert!(is_own_instance(&name), "invariant: tags are plain words, chosen in the code");
        let mut changes = Changes::new(journal);
        // Left by a process that had this id before and whose journal was lost. Should it live in
        // another container after all, the kernel keeps the instance while its pipes are open.
        if tracefs.exists(&format!("instances/{name}")) {
            tracefs.remove_instance(&name)?;
        }
        changes.announce(vec![Undo::RemoveTraceInstance { name: name.clone() }])?;
        match tracefs.create_instance(&name) {
            Ok(instance) => Ok(Self { instance, changes }),
            Err(error) => {
                changes.withdraw(|_| true)?;
                Err(error.into())
            }
        }
    }

    /// The instance.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }
}

impl Guard for TraceInstance {
    fn describe(&self) -> Vec<String> {
        vec![format!("private trace instance {} created", self.instance.name())]
    }

    fn restore(&mut self) -> Vec<Warning> {
        // Events off first: then removing does not wait for ones in flight.
        let _ = self.instance.write("tracing_on", "0");
        self.changes.restore()
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        let _ = self.instance.write("tracing_on", "0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bed() -> Option<(tempfile::TempDir, Journal, Tracefs)> {
        let tracefs = match Tracefs::open() {
            Ok(tracefs) => tracefs,
            Err(error) => {
                crate::tree::skip(&error);
                return None;
            }
        };
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        Some((dir, journal, tracefs))
    }

    #[test]
    fn instance_is_there_while_the_guard_is() {
        let Some((_dir, journal, tracefs)) = bed() else { return };
        let guard = TraceInstance::create(&journal, &tracefs, "there").unwrap();
        let name = guard.instance().name().to_owned();
        assert_eq!(name, format!("whylate-{}-there", std::process::id()));
        assert!(tracefs.instances().unwrap().contains(&name));
        assert_eq!(journal.entries().len(), 1);
        assert!(guard.describe()[0].contains(&name));
        drop(guard);
        assert!(!tracefs.instances().unwrap().contains(&name));
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn instance_that_is_read_a_moment_longer_is_removed_all_the_same() {
        let Some((_dir, journal, tracefs)) = bed() else { return };
        let mut guard = TraceInstance::create(&journal, &tracefs, "busy").unwrap();
        let name = guard.instance().name().to_owned();
        let pipe = guard.instance().raw_pipe(whylate_sys::affinity::current()).unwrap();
        let reader = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(pipe);
        });
        let told = guard.restore();
        let still_read = !reader.is_finished();
        reader.join().unwrap();
        if still_read && !told.is_empty() {
            tracefs.remove_instance(&name).unwrap();
            return crate::tree::skip(&"the reader got no CPU to close its pipe in time");
        }
        assert_eq!(told, []);
        assert!(!tracefs.instances().unwrap().contains(&name));
    }

    #[test]
    fn instance_that_stays_busy_is_told_and_stays_in_the_journal() {
        let Some((_dir, journal, tracefs)) = bed() else { return };
        let mut guard = TraceInstance::create(&journal, &tracefs, "held").unwrap();
        let name = guard.instance().name().to_owned();
        let pipe = guard.instance().raw_pipe(whylate_sys::affinity::current()).unwrap();
        let warnings = guard.restore();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(format!("{warnings:?}").contains(&name), "{warnings:?}");
        assert_eq!(journal.entries().len(), 1);
        drop(pipe);
        tracefs.remove_instance(&name).unwrap();
    }

    #[test]
    fn instance_that_a_lost_journal_forgot_does_not_stop_the_next() {
        let Some((_dir, journal, tracefs)) = bed() else { return };
        let name = format!("whylate-{}-lost", std::process::id());
        tracefs.create_instance(&name).unwrap();
        let guard = TraceInstance::create(&journal, &tracefs, "lost").unwrap();
        drop(guard);
        assert!(!tracefs.instances().unwrap().contains(&name));
    }
}
