//! Accounting by sequence set: what became of every request, and of every message that arrived.
//!
//! Requests are numbered from 0 without a hole. A window of bits says which of the latest requests
//! have been answered; the few that leave the window unanswered are kept by number. So the account
//! is exact in constant memory, until more than 65 536 requests older than the window are
//! unanswered: an answer to one that was forgotten is `unplaced`, not guessed.
//!
//! The counts add up, at any time after the end:
//!
//! - requests: sent = received + late + lost
//! - messages: arrived = received + late + duplicates + foreign + unplaced

use std::collections::BTreeSet;

/// Latest requests that the window knows: 8 KiB of bits.
const WINDOW: u64 = 1 << 16;
/// Unanswered requests kept beyond the window.
const STRAGGLERS: usize = 1 << 16;

/// What became of requests and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accounting {
    /// Requests sent.
    pub sent: u64,
    /// Requests whose first answer arrived by the end of the drain, in time or not.
    pub received: u64,
    /// Requests whose first answer arrived after the drain.
    pub late: u64,
    /// Requests that were never answered.
    pub lost: u64,
    /// Answers to a request that had been answered.
    pub duplicates: u64,
    /// Of the received ones, those that arrived after the answer to a later request (RFC 4737).
    pub reordered: u64,
    /// Messages that are not well-formed or not ours.
    pub foreign: u64,
    /// Well-formed answers of ours to no request of this account: of the warm-up, never sent, or
    /// too old to tell.
    pub unplaced: u64,
    /// Messages that arrived.
    pub arrived: u64,
}

impl Accounting {
    /// Do the counts add up?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let messages = self.received + self.late + self.duplicates + self.foreign + self.unplaced;
        self.sent == self.received + self.late + self.lost
            && self.arrived == messages
            && self.reordered <= self.received
    }
}

/// What an answer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The first answer to its request.
    First,
    /// Its request had been answered.
    Duplicate,
    /// It belongs to no request of this account.
    Unplaced,
}

/// The set of requests and answers.
#[derive(Debug, Clone)]
pub struct SequenceSet {
    answered: Vec<u64>,
    window: u64,
    stragglers: BTreeSet<u64>,
    stragglers_max: usize,
    /// Unanswered requests below this number have been forgotten.
    forgotten_below: u64,
    /// One more than the largest number answered.
    next_expected: u64,
    drained: bool,
    counts: Accounting,
}

impl Default for SequenceSet {
    fn default() -> Self {
        Self::with_bounds(WINDOW, STRAGGLERS)
    }
}

impl SequenceSet {
    fn with_bounds(window: u64, stragglers_max: usize) -> Self {
        Self {
            answered: vec![0; window.div_ceil(64) as usize],
            window,
            stragglers: BTreeSet::new(),
            stragglers_max,
            forgotten_below: 0,
            next_expected: 0,
            drained: false,
            counts: Accounting::default(),
        }
    }

    /// The set of whoever receives messages and learns of their sending only by their numbers. What
    /// is older than the window is not told apart any more.
    #[must_use]
    pub fn of_receiver() -> Self {
        Self::with_bounds(WINDOW, 0)
    }

    /// A message with this number has come, and so all before it have been sent.
    #[inline]
    pub fn heard(&mut self, sequence: u64) -> Arrival {
        if sequence == u64::MAX {
            // No sender gets there; after it there is no next one.
            self.unplaced();
            return Arrival::Unplaced;
        }
        if sequence.saturating_sub(self.counts.sent) >= self.window {
            // A jump over the whole window: nothing in it is known any more.
            self.answered.fill(0);
            self.counts.sent = sequence;
        }
        while self.counts.sent <= sequence {
            self.sent();
        }
        self.arrived(sequence)
    }

    /// The number of the next request.
    #[must_use]
    #[inline]
    pub fn next(&self) -> u64 {
        self.counts.sent
    }

    /// The next request has been sent.
    #[inline]
    pub fn sent(&mut self) {
        let sequence = self.counts.sent;
        self.counts.sent += 1;
        if let Some(leaving) = sequence.checked_sub(self.window)
            && !self.is_answered(leaving)
        {
            self.keep(leaving);
        }
        let (word, bit) = self.place(sequence);
        self.answered[word] &= !bit;
    }

    /// A well-formed answer of ours has arrived.
    #[inline]
    pub fn arrived(&mut self, sequence: u64) -> Arrival {
        let arrival = self.judge(sequence);
        self.counts.arrived += 1;
        match arrival {
            Arrival::Duplicate => self.counts.duplicates += 1,
            Arrival::Unplaced => self.counts.unplaced += 1,
            Arrival::First if self.drained => self.counts.late += 1,
            Arrival::First => {
                self.counts.received += 1;
                self.counts.reordered += u64::from(sequence < self.next_expected);
                self.next_expected = self.next_expected.max(sequence + 1);
            }
        }
        arrival
    }

    /// A message that is not ours has arrived.
    pub fn foreign(&mut self) {
        self.counts.arrived += 1;
        self.counts.foreign += 1;
    }

    /// A message of ours that answers no request of this account has arrived.
    pub fn unplaced(&mut self) {
        self.counts.arrived += 1;
        self.counts.unplaced += 1;
    }

    /// The drain is over: whatever is answered from now on is late.
    pub fn drained(&mut self) {
        self.drained = true;
    }

    /// One more than the largest number answered.
    #[must_use]
    #[inline]
    pub fn expected(&self) -> u64 {
        self.next_expected
    }

    /// Requests without an answer so far.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.counts.sent - self.counts.received - self.counts.late
    }

    /// The counts so far; what has no answer yet counts as lost.
    #[must_use]
    pub fn counts(&self) -> Accounting {
        Accounting { lost: self.unanswered(), ..self.counts }
    }

    #[inline]
    fn judge(&mut self, sequence: u64) -> Arrival {
        if sequence >= self.counts.sent {
            return Arrival::Unplaced;
        }
        if self.counts.sent - sequence <= self.window {
            if self.is_answered(sequence) {
                return Arrival::Duplicate;
            }
            let (word, bit) = self.place(sequence);
            self.answered[word] |= bit;
            return Arrival::First;
        }
        if self.stragglers.remove(&sequence) {
            return Arrival::First;
        }
        if sequence < self.forgotten_below { Arrival::Unplaced } else { Arrival::Duplicate }
    }

    /// Keeps the number of an unanswered request; forgets the oldest when there are too many.
    fn keep(&mut self, sequence: u64) {
        self.stragglers.insert(sequence);
        if self.stragglers.len() > self.stragglers_max
            && let Some(oldest) = self.stragglers.pop_first()
        {
            self.forgotten_below = oldest + 1;
        }
    }

    #[inline]
    fn is_answered(&self, sequence: u64) -> bool {
        let (word, bit) = self.place(sequence);
        self.answered[word] & bit != 0
    }

    #[inline]
    fn place(&self, sequence: u64) -> (usize, u64) {
        let slot = sequence % self.window;
        ((slot / 64) as usize, 1 << (slot % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The same account, kept the simple way in unbounded memory.
    #[derive(Default)]
    struct Oracle {
        answered: HashSet<u64>,
        largest: Option<u64>,
        counts: Accounting,
        drained: bool,
    }

    impl Oracle {
        fn arrived(&mut self, sequence: u64) {
            self.counts.arrived += 1;
            if sequence >= self.counts.sent {
                self.counts.unplaced += 1;
            } else if !self.answered.insert(sequence) {
                self.counts.duplicates += 1;
            } else if self.drained {
                self.counts.late += 1;
            } else {
                self.counts.received += 1;
                self.counts.reordered += u64::from(Some(sequence) < self.largest);
                self.largest = self.largest.max(Some(sequence));
            }
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Send(u16),
        /// An answer to a request this far back, or this far ahead.
        Arrive(i32),
        Foreign,
        Drained,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1_u16..40).prop_map(Step::Send),
            20 => (-3_i32..500).prop_map(Step::Arrive),
            1 => Just(Step::Foreign),
        ];
        (proptest::collection::vec(step.clone(), 0..300), proptest::collection::vec(step, 0..30))
            .prop_map(|(mut before, after)| {
                before.push(Step::Drained);
                before.extend(after.into_iter().filter(|step| !matches!(step, Step::Send(_))));
                before
            })
    }

    proptest! {
        #[test]
        fn counts_add_up_and_equal_those_of_an_unbounded_account(steps in steps()) {
            // A window of 64 and 16 384 stragglers: beyond the window most of the time, never
            // beyond the stragglers.
            let mut set = SequenceSet::with_bounds(64, 1 << 14);
            let mut oracle = Oracle::default();
            for step in steps {
                match step {
                    Step::Send(count) => {
                        for _ in 0..count {
                            prop_assert_eq!(set.next(), oracle.counts.sent);
                            set.sent();
                            oracle.counts.sent += 1;
                        }
                    }
                    Step::Arrive(back) => {
                        let sequence = oracle.counts.sent.saturating_add_signed(-i64::from(back));
                        set.arrived(sequence);
                        oracle.arrived(sequence);
                    }
                    Step::Foreign => {
                        set.foreign();
                        oracle.counts.arrived += 1;
                        oracle.counts.foreign += 1;
                    }
                    Step::Drained => {
                        set.drained();
                        oracle.drained = true;
                    }
                }
                let mut expected = oracle.counts;
                expected.lost = expected.sent - expected.received - expected.late;
                prop_assert_eq!(set.counts(), expected);
                prop_assert!(set.counts().adds_up());
            }
        }

        #[test]
        fn counts_add_up_even_when_stragglers_are_forgotten(
            sends in 100_u64..2_000,
            answers in proptest::collection::vec(0_u64..2_000, 0..600),
        ) {
            let mut set = SequenceSet::with_bounds(64, 16);
            for _ in 0..sends {
                set.sent();
            }
            for sequence in answers {
                set.arrived(sequence);
                prop_assert!(set.counts().adds_up());
            }
        }
    }

    #[test]
    fn a_forgotten_request_is_unplaced_and_a_kept_one_is_received() {
        let mut set = SequenceSet::with_bounds(64, 2);
        for _ in 0..70 {
            set.sent();
        }
        // 0 to 5 have left the window, 4 and 5 are kept.
        assert_eq!(set.arrived(0), Arrival::Unplaced);
        assert_eq!(set.arrived(5), Arrival::First);
        assert_eq!(set.arrived(5), Arrival::Duplicate);
        assert_eq!(set.arrived(70), Arrival::Unplaced);
        assert!(set.counts().adds_up());
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_requests() {
        let mut set = SequenceSet::default();
        for _ in 0..500_000 {
            set.sent();
        }
        assert_eq!(set.stragglers.len(), STRAGGLERS);
        assert_eq!(set.answered.len() as u64 * 64, WINDOW);
    }
}
