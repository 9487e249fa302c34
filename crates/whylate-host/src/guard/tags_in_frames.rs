//! Where a driver hands over the outer VLAN tags of frames that it receives: beside them, or in them.
//!
//! What takes frames from the driver itself, as AF_XDP does, sees no tag that is beside the frame.

use whylate_model::warning::Warning;
use whylate_sys::{ethtool, interface};

use super::Guard;
use super::changes::Changes;
use crate::error::HostError;
use crate::journal::{Journal, Undo};

/// A driver that leaves tags in frames, until the guard goes.
#[derive(Debug)]
pub struct TagsInFrames {
    changes: Changes,
    interface: String,
    /// Its number, which it keeps when it is renamed.
    index: Option<u32>,
    /// It kept them beside frames before.
    changed: bool,
}

impl TagsInFrames {
    /// Has the driver of this interface leave tags in frames, and reads back what it says. One that does
    /// so already is left alone.
    ///
    /// # Errors
    /// The driver does not tell, or does not keep what it is told; nothing is changed then.
    pub fn of(journal: &Journal, interface: &str) -> Result<Self, HostError> {
        let changes = Changes::new(journal);
        let index = index_of(interface);
        let interface = interface.to_owned();
        let was_beside = ethtool::keeps_tags_beside(&interface)?;
        let mut guard = Self { changes, interface, index, changed: was_beside };
        if !was_beside {
            return Ok(guard);
        }
        guard.changes.announce(vec![undo_of(&guard.interface)])?;
        if let Err(refusal) = ethtool::set_tags_beside(&guard.interface, false) {
            guard.changes.withdraw(|_| true)?;
            guard.changed = false;
            return Err(refusal.into());
        }
        if ethtool::keeps_tags_beside(&guard.interface)? {
            return Err(HostError::KnobNotKept {
                knob: format!("rx-vlan-offload of {}", guard.interface),
                asked: "off".to_owned(),
                got: "on".to_owned(),
            });
        }
        Ok(guard)
    }

    /// Was there something to change?
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// An interface that was renamed meanwhile is put back by its name of now.
    fn follow(&mut self) -> Result<(), HostError> {
        let all = interface::all().unwrap_or_default();
        let now = all.into_iter().find(|one| Some(one.index) == self.index).map(|one| one.name);
        let Some(now) = now.filter(|now| self.changed && *now != self.interface) else {
            return Ok(());
        };
        let before = undo_of(&self.interface);
        self.changes.announce(vec![undo_of(&now)])?;
        self.interface = now;
        self.changes.withdraw(|made| *made == before)
    }
}

fn index_of(name: &str) -> Option<u32> {
    let all = interface::all().ok()?;
    all.into_iter().find(|one| one.name == name).map(|one| one.index)
}

fn undo_of(interface: &str) -> Undo {
    Undo::SetTagsBeside { interface: interface.to_owned(), beside: true }
}

impl Guard for TagsInFrames {
    fn describe(&self) -> Vec<String> {
        let said = format!("rx-vlan-offload of {}: on -> off", self.interface);
        if self.changed { vec![said] } else { Vec::new() }
    }

    fn restore(&mut self) -> Vec<Warning> {
        let lost = self.follow().err();
        let mut warnings = self.changes.restore();
        self.changed = false;
        warnings.extend(lost.map(|error| Warning::Guard { what: error.to_string() }));
        warnings
    }
}

impl Drop for TagsInFrames {
    /// What was announced goes back with the changes themselves.
    fn drop(&mut self) {
        if let Err(error) = self.follow() {
            super::say(format_args!("whylate: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_keeps_no_tags_beside_frames_or_is_not_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        match TagsInFrames::of(&journal, "lo") {
            Ok(mut guard) => {
                assert!(!guard.is_changed() && guard.describe().is_empty());
                assert_eq!(guard.restore(), []);
            }
            Err(refusal) => crate::tree::skip(&refusal),
        }
        let error = TagsInFrames::of(&journal, "nosuchport").unwrap_err().to_string();
        assert!(error.contains("nosuchport"), "{error}");
        assert_eq!(journal.entries(), []);
    }
}
