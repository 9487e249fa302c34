//! What network cards are told to stamp.
//!
//! A card stamps what it was told to (`SIOCSHWTSTAMP`), for everybody on the machine, until it is told
//! something else. A daemon that disciplines clocks may need what was there before, so it is only added to,
//! and put back.

use whylate_model::warning::Warning;
use whylate_sys::hardware_stamps::{self, Configuration, Stampable};

use super::Guard;
use super::changes::Changes;
use crate::error::HostError;
use crate::journal::{Journal, Undo};

/// A card that stamps ordinary messages, until the guard goes.
#[derive(Debug)]
pub struct HardwareStamps {
    changes: Changes,
    can: Stampable,
    before: Option<Configuration>,
    now: Option<Configuration>,
}

impl HardwareStamps {
    /// Has the card of this interface stamp what it can of ordinary messages. One without hardware is
    /// left alone: [`HardwareStamps::can`] says what it has.
    pub fn ask(journal: &Journal, interface: &str) -> Result<Self, HostError> {
        let can = hardware_stamps::stampable(interface)?;
        let before =
            if can.has_hardware() { hardware_stamps::configuration(interface)? } else { None };
        let mut changes = Changes::new(journal);
        let Some(found) = before else { return Ok(Self { changes, can, before, now: None }) };
        let wanted = Configuration::for_messages(&can, found);
        if wanted == found {
            return Ok(Self { changes, can, before, now: before });
        }
        let undo = |ours: Configuration| Undo::SetHardwareStamps {
            interface: interface.to_owned(),
            sending: found.sending,
            filter: found.filter,
            ours_sending: ours.sending,
            ours_filter: ours.filter,
        };
        changes.announce(vec![undo(wanted)])?;
        let now = match hardware_stamps::configure(interface, wanted) {
            Ok(now) => now,
            Err(refusal) => {
                changes.withdraw(|_| true)?;
                return Err(refusal.into());
            }
        };
        if now != wanted {
            // The driver does more than it was told: that is what is found when it is put back.
            changes.announce(vec![undo(now)])?;
            changes.withdraw(|made| *made == undo(wanted))?;
        }
        Ok(Self { changes, can, before, now: Some(now) })
    }

    /// What the interface can stamp.
    #[must_use]
    pub fn can(&self) -> &Stampable {
        &self.can
    }

    /// Does the card stamp something else than it did before?
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.before != self.now
    }

    /// What its card stamps now; none where it has none.
    #[must_use]
    pub fn now(&self) -> Option<Configuration> {
        self.now
    }
}

impl Guard for HardwareStamps {
    fn describe(&self) -> Vec<String> {
        let name = &self.can.interface;
        vec![match (self.before, self.now) {
            (Some(before), Some(now)) if before != now => {
                format!("card of {name} stamps: {before} -> {now}")
            }
            (_, Some(now)) => format!("card of {name} stamps already: {now}"),
            _ => self.can.to_string(),
        }]
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn an_interface_without_hardware_is_left_alone_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let guard = match HardwareStamps::ask(&journal, "lo") {
            Ok(guard) => guard,
            Err(error) => return tree::skip(&error),
        };
        assert_eq!((guard.now(), guard.is_changed()), (None, false));
        assert!(guard.describe()[0].contains("hardware: not present"), "{:?}", guard.describe());
        assert_eq!(journal.entries(), []);
    }

    #[test]
    fn an_interface_that_is_not_there_is_named_and_nothing_is_announced() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let error = HardwareStamps::ask(&journal, "nosuchport").unwrap_err();
        assert!(error.to_string().contains("nosuchport"), "{error}");
        assert_eq!(journal.entries(), []);
    }
}
