//! How long a network card holds packets back, put back.

use whylate_sys::{Errno, SysError, ethtool};

use super::Outcome;

/// Has the card of an interface hold packets back as before, where it does what whylate told it.
/// Microseconds after a received packet, and after a sent one.
pub(super) fn restore(interface: &str, before: [u32; 2], ours: [u32; 2]) -> Outcome {
    put_back(
        before,
        ours,
        || ethtool::coalescing(interface).map(|now| [now.rx_usecs, now.tx_usecs]),
        |[rx, tx]| ethtool::set_coalescing(interface, rx, tx),
    )
}

fn put_back(
    before: [u32; 2],
    ours: [u32; 2],
    now: impl Fn() -> Result<[u32; 2], SysError>,
    set: impl FnOnce([u32; 2]) -> Result<(), SysError>,
) -> Outcome {
    match now() {
        Ok(now) if now == before => return Outcome::AsBefore,
        Ok(now) if now != ours => {
            return Outcome::ChangedSince { now: format!("rx {} us, tx {} us", now[0], now[1]) };
        }
        Ok(_) => {}
        Err(refusal) if refusal.errno() == Some(Errno::NODEV) => return Outcome::Gone,
        Err(refusal) => return Outcome::Failed { why: refusal.to_string() },
    }
    if let Err(refusal) = set(before) {
        return Outcome::Failed { why: refusal.to_string() };
    }
    match now() {
        Ok(now) if now == before => Outcome::Restored,
        Ok(now) => Outcome::Failed { why: format!("it reads back rx {}, tx {}", now[0], now[1]) },
        Err(refusal) => Outcome::Failed { why: refusal.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_card_holds_back_as_before_unless_somebody_else_told_it_otherwise() {
        let card = Cell::new([0, 0]);
        let back = |keeps: bool| {
            put_back(
                [50, 60],
                [0, 0],
                || Ok(card.get()),
                |wanted| {
                    card.set(if keeps { wanted } else { [1, 1] });
                    Ok(())
                },
            )
        };
        assert_eq!(back(true), Outcome::Restored);
        assert_eq!(card.get(), [50, 60]);
        assert_eq!(back(true), Outcome::AsBefore);
        card.set([7, 0]);
        assert!(matches!(back(true), Outcome::ChangedSince { .. }));
        card.set([0, 0]);
        assert!(!back(false).settled());
    }

    #[test]
    fn an_interface_that_is_gone_has_taken_it_along() {
        match restore("nosuchport", [1, 1], [0, 0]) {
            Outcome::Failed { why } => crate::tree::skip(&why),
            outcome => assert_eq!(outcome, Outcome::Gone),
        }
    }
}
