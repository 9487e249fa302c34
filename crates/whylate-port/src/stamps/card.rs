//! The registers of a card in which stamps of what it sends are made, shared by all sockets of this
//! process that send by it.
//!
//! A card that has few of them stamps no message while all are taken, and says nothing. So a socket asks it
//! only where one is free, whoever took the others. A stamp that does not come would keep its register for
//! ever: after as many messages without room they are all taken to be free again. What another process asks
//! of the same card is not seen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::matching::GIVEN_UP_AFTER;

/// Cards by the names of their interfaces. Two of one name in two network namespaces are taken for one: each
/// is asked for less than it could, and none for more.
static CARDS: Mutex<BTreeMap<String, Weak<Card>>> = Mutex::new(BTreeMap::new());

/// A card with few registers.
#[derive(Debug)]
pub(super) struct Card {
    room: u64,
    /// Registers that are taken.
    taken: AtomicU64,
    /// Messages of any socket since a register was taken.
    since: AtomicU64,
    /// So often what waited was given up.
    given_up: AtomicU64,
}

/// What one socket has of a card's registers.
#[derive(Debug)]
pub(super) struct Share {
    card: Arc<Card>,
    /// Registers that it holds, since what waited was given up so often.
    own: AtomicU64,
    given_up: AtomicU64,
}

impl Card {
    /// One with room for so many stamps that are still to be made.
    pub(super) fn with_room(room: u64) -> Arc<Self> {
        let (taken, since, given_up) = Default::default();
        Arc::new(Self { room, taken, since, given_up })
    }

    /// The card of this interface, which has so many registers: the same one for each socket.
    pub(super) fn of(interface: &str, room: u64) -> Arc<Self> {
        let mut cards = CARDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(card) = cards.get(interface).and_then(Weak::upgrade) {
            return card;
        }
        cards.retain(|_, card| card.strong_count() > 0);
        let card = Self::with_room(room);
        cards.insert(interface.to_owned(), Arc::downgrade(&card));
        card
    }

    fn give_back(&self, registers: u64) {
        let less = |taken: u64| Some(taken.saturating_sub(registers));
        let _ = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

impl Share {
    pub(super) fn of(card: Arc<Card>) -> Self {
        let given_up = AtomicU64::new(card.given_up.load(Ordering::Relaxed));
        Self { card, own: AtomicU64::new(0), given_up }
    }

    /// Takes a register for the next message; false where the card has no room for one more.
    #[inline]
    pub(super) fn take(&self) -> bool {
        let card = &*self.card;
        let since = card.since.fetch_add(1, Ordering::Relaxed) + 1;
        let more = |taken: u64| (taken < card.room).then_some(taken + 1);
        let free = card.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if !free {
            if since <= GIVEN_UP_AFTER {
                return false;
            }
            // Those that wait do not come.
            card.given_up.fetch_add(1, Ordering::Relaxed);
            card.taken.store(1, Ordering::Relaxed);
        }
        card.since.store(0, Ordering::Relaxed);
        self.renew();
        self.own.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// A stamp of this socket came, or its message was not sent after all. One that was given up has no
    /// register any more.
    #[inline]
    pub(super) fn free(&self) {
        self.renew();
        let less = |own: u64| own.checked_sub(1);
        if self.own.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            self.card.give_back(1);
        }
    }

    /// What was given up is nobody's.
    fn renew(&self) {
        let now = self.card.given_up.load(Ordering::Relaxed);
        if self.given_up.swap(now, Ordering::Relaxed) != now {
            self.own.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    /// A socket that is closed waits for nothing.
    fn drop(&mut self) {
        self.renew();
        self.card.give_back(self.own.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_one_card_share_its_registers_and_give_them_back() {
        let card = Card::with_room(4);
        let [one, other] = [(); 2].map(|()| Share::of(Arc::clone(&card)));
        let taken: Vec<bool> = (0..3).flat_map(|_| [one.take(), other.take()]).collect();
        assert_eq!(taken, [true, true, true, true, false, false]);
        one.free();
        assert!(other.take() && !one.take());
        // What it held is free again.
        drop(other);
        assert!(one.take() && one.take() && one.take() && !one.take());
        let more = Share::of(Arc::clone(&card));
        more.free();
        assert!(!more.take(), "it had none to give back");
    }

    #[test]
    fn what_never_comes_is_given_up_once_for_all_sockets_and_frees_nothing_later() {
        let card = Card::with_room(1);
        let [one, other] = [(); 2].map(|()| Share::of(Arc::clone(&card)));
        assert!(one.take());
        let refused = (0..GIVEN_UP_AFTER).filter(|_| !other.take()).count() as u64;
        assert_eq!(refused, GIVEN_UP_AFTER);
        assert!(other.take(), "it is given up");
        one.free();
        assert!(!one.take(), "the register is the other's by now");
        other.free();
        assert!(one.take());
    }

    #[test]
    fn an_interface_has_one_card_and_another_has_its_own() {
        let [one, same] = [(); 2].map(|()| Card::of("card-of-a-test", 1));
        assert!(Arc::ptr_eq(&one, &same));
        assert!(!Arc::ptr_eq(&one, &Card::of("another-of-a-test", 1)));
        drop((one, same));
        assert_eq!(Card::of("card-of-a-test", 4).room, 4, "nobody had it any more");
    }
}
