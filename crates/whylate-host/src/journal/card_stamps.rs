//! What a network card is told to stamp, put back.

use whylate_sys::hardware_stamps::{self, Configuration};
use whylate_sys::{Errno, SysError};

use super::Outcome;

/// A card that is told what to stamp.
trait Stamps {
    fn now(&self) -> Result<Option<Configuration>, SysError>;
    fn set(&self, wanted: Configuration) -> Result<Configuration, SysError>;
}

/// The card of the interface of this name.
struct Card<'a>(&'a str);

impl Stamps for Card<'_> {
    fn now(&self) -> Result<Option<Configuration>, SysError> {
        hardware_stamps::configuration(self.0)
    }

    fn set(&self, wanted: Configuration) -> Result<Configuration, SysError> {
        hardware_stamps::configure(self.0, wanted)
    }
}

/// Has the card of an interface stamp what it did before, where it does what whylate told it.
pub(super) fn restore(interface: &str, before: Configuration, ours: Configuration) -> Outcome {
    put_back(&Card(interface), before, ours)
}

fn put_back(card: &impl Stamps, before: Configuration, ours: Configuration) -> Outcome {
    match card.now() {
        Ok(Some(now)) if now == before => return Outcome::AsBefore,
        Ok(Some(now)) if now != ours => return Outcome::ChangedSince { now: now.to_string() },
        Ok(Some(_)) => {}
        Ok(None) => return Outcome::Gone,
        Err(refusal) if refusal.errno() == Some(Errno::NODEV) => return Outcome::Gone,
        Err(refusal) => return Outcome::Failed { why: refusal.to_string() },
    }
    match card.set(before) {
        Ok(now) if now == before => Outcome::Restored,
        Ok(now) => Outcome::Failed { why: format!("the card stamps ({now}) instead") },
        Err(refusal) => Outcome::Failed { why: refusal.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A card that keeps what it is told, or something else.
    struct Mock {
        now: Cell<Option<Configuration>>,
        instead: Option<Configuration>,
    }

    impl Stamps for Mock {
        fn now(&self) -> Result<Option<Configuration>, SysError> {
            Ok(self.now.get())
        }

        fn set(&self, wanted: Configuration) -> Result<Configuration, SysError> {
            let kept = self.instead.unwrap_or(wanted);
            self.now.set(Some(kept));
            Ok(kept)
        }
    }

    fn does(sending: u32, filter: u32) -> Configuration {
        Configuration { sending, filter }
    }

    fn card(now: Option<Configuration>) -> Mock {
        Mock { now: Cell::new(now), instead: None }
    }

    #[test]
    fn a_card_stamps_what_it_did_before_unless_somebody_else_told_it_otherwise() {
        let (before, ours) = (does(0, 12), does(1, 1));
        let found = card(Some(ours));
        assert_eq!(put_back(&found, before, ours), Outcome::Restored);
        assert_eq!(found.now.get(), Some(before));
        assert_eq!(put_back(&found, before, ours), Outcome::AsBefore);
        let theirs = card(Some(does(1, 12)));
        let outcome = put_back(&theirs, before, ours);
        assert!(matches!(outcome, Outcome::ChangedSince { now } if now.contains("ptpv2-event")));
        assert_eq!(theirs.now.get(), Some(does(1, 12)), "left alone");
        assert_eq!(put_back(&card(None), before, ours), Outcome::Gone);
        let stubborn = Mock { instead: Some(does(1, 14)), ..card(Some(ours)) };
        assert!(!put_back(&stubborn, before, ours).settled());
    }

    #[test]
    fn an_interface_that_is_gone_has_taken_it_along() {
        match restore("nosuchport", does(0, 0), does(1, 1)) {
            Outcome::Failed { why } => crate::tree::skip(&why),
            outcome => assert_eq!(outcome, Outcome::Gone),
        }
    }
}
