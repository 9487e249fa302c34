//! Where a driver hands over the VLAN tags of frames, put back.

use whylate_sys::{Errno, SysError, ethtool};

use super::Outcome;

/// Has the driver of an interface hand over tags as before: whylate had it do otherwise, and it can do no
/// third thing.
pub(super) fn restore(interface: &str, beside: bool) -> Outcome {
    put_back(
        beside,
        || ethtool::keeps_tags_beside(interface),
        |beside| ethtool::set_tags_beside(interface, beside),
    )
}

fn put_back(
    before: bool,
    now: impl Fn() -> Result<bool, SysError>,
    set: impl FnOnce(bool) -> Result<(), SysError>,
) -> Outcome {
    match now() {
        Ok(now) if now == before => return Outcome::AsBefore,
        Ok(_) => {}
        Err(refusal) if refusal.errno() == Some(Errno::NODEV) => return Outcome::Gone,
        Err(refusal) => return Outcome::Failed { why: refusal.to_string() },
    }
    if let Err(refusal) = set(before) {
        return Outcome::Failed { why: refusal.to_string() };
    }
    match now() {
        Ok(now) if now == before => Outcome::Restored,
        Ok(_) => Outcome::Failed { why: "it does not keep it".to_owned() },
        Err(refusal) => Outcome::Failed { why: refusal.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_driver_hands_over_tags_as_before_and_one_that_does_not_keep_it_is_told() {
        let beside = Cell::new(false);
        let back = |keeps: bool| {
            put_back(
                true,
                || Ok(beside.get()),
                |wanted| {
                    beside.set(wanted && keeps);
                    Ok(())
                },
            )
        };
        assert!(!back(false).settled());
        assert_eq!(back(true), Outcome::Restored);
        assert!(beside.get());
        assert_eq!(back(true), Outcome::AsBefore);
    }

    #[test]
    fn an_interface_that_is_gone_has_taken_it_along() {
        match restore("nosuchport", true) {
            Outcome::Failed { why } => crate::tree::skip(&why),
            outcome => assert_eq!(outcome, Outcome::Gone),
        }
    }
}
