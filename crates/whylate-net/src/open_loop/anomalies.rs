//! The first odd messages of each kind, kept as they came.
//!
//! Guarantees: the room is there before anything is measured and nothing is allocated afterwards; what
//! finds no room is in the account all the same. A lost request needs none of its bytes: it is made
//! again from its number.

use std::fmt;

use whylate_model::Ticks;

use crate::protocol::{Phase, Protocol};

/// Messages kept of each kind.
pub const KEPT_OF_EACH: usize = 64;
/// Bytes kept of each message.
pub const KEPT_BYTES: usize = 256;

/// In what a message is odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// A reply to a request that had been answered.
    Duplicate,
    /// The first reply to a request that had been given up, or after the drain.
    Late,
    /// A reply after that to a later request.
    Reordered,
    /// Not well-formed, or for somebody else.
    Foreign,
    /// A request without a reply.
    Lost,
}

impl Odd {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Duplicate, Self::Late, Self::Reordered, Self::Foreign, Self::Lost];
}

/// One odd message.
#[derive(Clone)]
pub struct Anomaly {
    /// In what.
    pub odd: Odd,
    /// Number of the request it belongs to, where it belongs to one.
    pub number: Option<u64>,
    /// When it came; of a lost request, when it left.
    pub at: Ticks,
    /// When its request left, where that is still known.
    pub sent: Option<Ticks>,
    /// Of a duplicate, when the first reply came, where that is still known.
    pub first: Option<Ticks>,
    /// Of a reordered one, the largest number answered before it.
    pub after: Option<u64>,
    /// Bytes that the message had.
    pub length: usize,
    pub(super) kept: usize,
    pub(super) bytes: [u8; KEPT_BYTES],
}

impl Anomaly {
    /// Of this kind and at this tick; nothing else is known yet.
    pub(super) fn new(odd: Odd, number: Option<u64>, at: Ticks) -> Self {
        let (sent, first, after) = (None, None, None);
        let (length, kept, bytes) = (0, 0, [0; KEPT_BYTES]);
        Self { odd, number, at, sent, first, after, length, kept, bytes }
    }

    /// The first bytes of the message.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.bytes[..self.kept]
    }

    fn keep(&mut self, message: &[u8], length: usize) {
        self.kept = message.len().min(length).min(KEPT_BYTES);
        self.bytes[..self.kept].copy_from_slice(&message[..self.kept]);
        self.length = length;
    }
}

impl fmt::Debug for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} at {} of {} bytes", self.odd, self.number, self.at.0, self.length)
    }
}

/// The odd messages that were kept.
#[derive(Debug, Default)]
pub struct Anomalies {
    kept: [Vec<Anomaly>; Odd::ALL.len()],
    /// Messages that found no room.
    pub left_out: u64,
}

impl Anomalies {
    /// Room for all, touched.
    pub(super) fn touched() -> Self {
        let kept = Odd::ALL.map(|odd| {
            let mut room = vec![Anomaly::new(odd, None, Ticks(u64::MAX)); KEPT_OF_EACH];
            room.clear();
            room
        });
        Self { kept, left_out: 0 }
    }

    /// Keeps a message of which so many bytes are at hand, where there is room.
    #[cold]
    pub(super) fn keep(&mut self, mut anomaly: Anomaly, message: &[u8], length: usize) {
        let kept = &mut self.kept[anomaly.odd as usize];
        if kept.len() < KEPT_OF_EACH && kept.len() < kept.capacity() {
            anomaly.keep(message, length);
            kept.push(anomaly);
        } else {
            self.left_out += 1;
        }
    }

    /// A request that was taken for lost was answered after all.
    #[cold]
    pub(super) fn found(&mut self, number: u64) {
        self.kept[Odd::Lost as usize].retain(|lost| lost.number != Some(number));
    }

    /// Makes the lost requests again, as they left.
    pub(super) fn restore(&mut self, protocol: &dyn Protocol, bytes: usize) {
        let mut request = vec![0; bytes];
        protocol.prepare(&mut request);
        for lost in &mut self.kept[Odd::Lost as usize] {
            if let Some(number) = lost.number {
                protocol.number(Phase::Measured, number, &mut request);
                lost.keep(&request, bytes);
            }
        }
    }

    /// All of them, in the order of their instants.
    #[must_use]
    pub fn in_order(&self) -> Vec<&Anomaly> {
        let mut all: Vec<&Anomaly> = self.kept.iter().flatten().collect();
        all.sort_by_key(|anomaly| anomaly.at);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Cookie, Header};
    use crate::protocol::Raw;

    #[test]
    fn the_first_of_each_kind_are_kept_in_room_that_never_grows() {
        let mut anomalies = Anomalies::touched();
        let room: Vec<(*const Anomaly, usize)> =
            anomalies.kept.iter().map(|kind| (kind.as_ptr(), kind.capacity())).collect();
        for number in 0..1_000 {
            for odd in Odd::ALL {
                let anomaly = Anomaly::new(odd, Some(number), Ticks(2_000 - number));
                anomalies.keep(anomaly, &[number as u8; 300], 1_400);
            }
        }
        let after: Vec<(*const Anomaly, usize)> =
            anomalies.kept.iter().map(|kind| (kind.as_ptr(), kind.capacity())).collect();
        assert_eq!(room, after);
        let all = anomalies.in_order();
        assert_eq!(all.len(), KEPT_OF_EACH * Odd::ALL.len());
        assert_eq!(anomalies.left_out, 5 * 1_000 - all.len() as u64);
        assert_eq!((all[0].number, all[0].length), (Some(63), 1_400));
        assert_eq!(all[0].message(), [63; KEPT_BYTES]);
    }

    #[test]
    fn what_was_found_is_lost_no_more_and_what_is_lost_is_as_it_left() {
        let mut anomalies = Anomalies::touched();
        for number in [4, 5, 6] {
            anomalies.keep(Anomaly::new(Odd::Lost, Some(number), Ticks(number)), &[], 0);
        }
        anomalies.found(5);
        anomalies.restore(&Raw::new(Cookie(9)), 40);
        let lost: Vec<u64> = anomalies
            .in_order()
            .iter()
            .map(|lost| Header::parse(lost.message()).unwrap().sequence)
            .collect();
        assert_eq!(lost, [4, 6]);
    }
}
