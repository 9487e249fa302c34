//! How long a network card holds packets back to announce several at once.

use whylate_model::warning::Warning;
use whylate_sys::ethtool;

use super::Guard;
use super::changes::Changes;
use crate::error::HostError;
use crate::journal::{Journal, Undo};

/// A card that holds nothing back, until the guard goes.
#[derive(Debug)]
pub struct NoCoalescing {
    changes: Changes,
    interface: String,
    before: [u32; 2],
    now: [u32; 2],
}

impl NoCoalescing {
    /// Has the card announce each packet at once, and reads back what it says.
    pub fn of(journal: &Journal, interface: &str) -> Result<Self, HostError> {
        let read = || ethtool::coalescing(interface).map(|now| [now.rx_usecs, now.tx_usecs]);
        let mut changes = Changes::new(journal);
        let interface = interface.to_owned();
        let before = read()?;
        let asked = [0, 0];
        if before == asked {
            return Ok(Self { changes, interface, before, now: before });
        }
        let undo_of =
            |ours| Undo::SetCoalescing { interface: interface.clone(), usecs: before, ours };
        let undo = undo_of(asked);
        changes.announce(vec![undo.clone()])?;
        if let Err(refusal) = ethtool::set_coalescing(&interface, asked[0], asked[1]) {
            changes.withdraw(|made| *made == undo)?;
            return Err(refusal.into());
        }
        let now = read()?;
        if now != asked {
            changes.announce(vec![undo_of(now)])?;
            changes.withdraw(|made| *made == undo)?;
            return Err(HostError::KnobNotKept {
                knob: format!("coalescing of {interface}"),
                asked: in_words(asked),
                got: in_words(now),
            });
        }
        Ok(Self { changes, interface, before, now })
    }

    /// What it said before, and says now.
    #[must_use]
    pub fn read_back(&self) -> (String, String) {
        (in_words(self.before), in_words(self.now))
    }
}

/// Microseconds after a received packet and after a sent one.
fn in_words([rx, tx]: [u32; 2]) -> String {
    format!("rx {rx} us, tx {tx} us")
}

impl Guard for NoCoalescing {
    fn describe(&self) -> Vec<String> {
        let (before, now) = self.read_back();
        vec![format!("coalescing of {}: {before} -> {now}", self.interface)]
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_holds_nothing_back_or_is_not_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        for interface in ["lo", "nosuchport"] {
            let error = NoCoalescing::of(&journal, interface).unwrap_err().to_string();
            assert!(error.contains(interface), "{error}");
            assert_eq!(journal.entries(), []);
        }
        assert_eq!(in_words([3, 0]), "rx 3 us, tx 0 us");
    }
}
