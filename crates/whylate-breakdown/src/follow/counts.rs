//! What came, and what became of it.

use std::collections::BTreeMap;

/// Reasons for drops that are told apart; the rest is one.
const MOST_REASONS: usize = 64;

/// What a [`Follower`](super::Follower) saw, and why it left out what it left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FollowCounts {
    /// Events that have to do with messages, with those below.
    pub events: u64,
    /// Of CPUs that were not named.
    pub elsewhere: u64,
    /// Stamped before an event of the same CPU that came before: taken to be at its time.
    pub out_of_order: u64,
    /// Came after the mark that said that all up to there had come; not used.
    pub late: u64,
    /// Dropped for want of room; a loss like the kernel's.
    pub no_room: u64,
    /// Times that a CPU's events were lost.
    pub losses: u64,
    /// Events that came while those of a CPU were lost; not used.
    pub blind: u64,
    /// Messages whose way was begun.
    pub messages: u64,
    /// Of these: came from outside.
    pub from_outside: u64,
    /// Read by a thread.
    pub read: u64,
    /// Left this host.
    pub left: u64,
    /// Frames of TCP without data.
    pub acknowledgements: u64,
    /// Dropped on the way, by the kernel's word.
    pub dropped: BTreeMap<String, u64>,
    /// Ended on the way without a word: nobody of this host was to read them.
    pub consumed: u64,
    /// Their buffer began another way before they were delivered.
    pub reused: u64,
    /// On the way for longer than the patience.
    pub expired: u64,
    /// Given up because events were lost, or because their socket was out of step.
    pub given_up: u64,
    /// Read or gone, and not given out: events were lost while their sender's call went on.
    pub untold: u64,
    /// There was no room for another message, socket or thread.
    pub crowded: u64,
    /// Still under way.
    pub open: u64,
    /// Interfaces beyond the first that messages were queued at.
    pub hops: u64,
    /// Given to a driver without having been queued: segments that the kernel cut.
    pub cut: u64,
    /// Deliveries of messages that were not seen to arrive.
    pub delivered_unseen: u64,
    /// Reads of messages that were not seen to be delivered.
    pub read_unseen: u64,
    /// Sockets whose queue was not what had been seen of it.
    pub out_of_step: u64,
    /// Reads from sockets that were not trusted.
    pub untrusted: u64,
    /// Sockets whose queue was found again.
    pub found_again: u64,
    /// Reads that took several pieces of a stream.
    pub merged: u64,
    /// Pieces of a stream that took several reads.
    pub split: u64,
}

impl FollowCounts {
    pub(super) fn drop_for(&mut self, reason: &str) {
        let reason = if reason.is_empty() { "no reason told" } else { reason };
        if let Some(count) = self.dropped.get_mut(reason) {
            *count += 1;
        } else if self.dropped.len() < MOST_REASONS {
            self.dropped.insert(reason.to_owned(), 1);
        } else {
            *self.dropped.entry("others".to_owned()).or_default() += 1;
        }
    }

    /// Messages whose way ended or goes on: as many as were begun.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        let dropped: u64 = self.dropped.values().sum();
        let ended = self.read + self.left + self.acknowledgements + dropped + self.consumed;
        ended + self.reused + self.expired + self.given_up + self.open
    }
}
