//! What was sent by a socket and asked for stamps: written by the half of a port that sends, read by
//! the half that takes stamps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::StampKind;

/// Messages that are remembered: what comes for an older one is of nobody. At 100 000 messages a second
/// a stamp may take 40 ms.
pub(super) const ROOM: u64 = 1 << 12;
/// The kernel refused it.
const REFUSED: u64 = u64::MAX;

/// Messages of a client's port, which two halves may share.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    sent: AtomicU64,
}

impl Numbers {
    /// The number of the message that is about to be sent.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.sent.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// Messages of one socket that asked for stamps, each with its place: 0, 1, 2, ...
#[derive(Debug)]
pub(super) struct Sent {
    /// The first place.
    base: u64,
    asked: AtomicU64,
    /// Of those: the kernel did not take them.
    refused: AtomicU64,
    /// The place that the kernel's id 0 belongs to, where it counts itself.
    first: AtomicU64,
    /// Bytes written so far.
    bytes: AtomicU64,
    /// Asked of the card, and stamped by it.
    hardware_asked: AtomicU64,
    hardware_came: AtomicU64,
    slots: Box<[Slot]>,
    /// Messages that were sent and asked for less than is wished: so many notes were made of them, and
    /// the last ones.
    noted: AtomicU64,
    notes: Box<[Note]>,
    /// Messages of which no stamp was asked for, and those of which only the card's was not.
    sampled_out: AtomicU64,
    hardware_busy: AtomicU64,
}

/// What was not asked for of a message: kinds, a bit each by [`super::StampKind::index`].
#[derive(Debug, Default)]
struct Note {
    message: AtomicU64,
    kinds: AtomicU64,
}

/// How much less than is wished a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Less {
    /// Nothing at all: it is none of the sample.
    Everything,
    /// No stamp of the card, which has no room for one more.
    Hardware,
}

#[derive(Debug, Default)]
struct Slot {
    message: AtomicU64,
    /// Bytes up to its end.
    end: AtomicU64,
    /// The card is asked for a stamp of it, too.
    by_card: AtomicBool,
}

impl Sent {
    pub(super) fn new() -> Self {
        Self::starting_at(0)
    }

    /// As if so many messages had been asked for.
    pub(super) fn starting_at(asked: u64) -> Self {
        Self {
            base: asked,
            asked: AtomicU64::new(asked),
            refused: AtomicU64::new(0),
            first: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            hardware_asked: AtomicU64::new(0),
            hardware_came: AtomicU64::new(0),
            slots: (0..ROOM).map(|_| Slot::default()).collect(),
            noted: AtomicU64::new(0),
            notes: (0..ROOM).map(|_| Note::default()).collect(),
            sampled_out: AtomicU64::new(0),
            hardware_busy: AtomicU64::new(0),
        }
    }

    fn slot(&self, place: u64) -> &Slot {
        &self.slots[(place & (ROOM - 1)) as usize]
    }

    /// The place of a message that is about to be sent and asks for stamps; its last byte is the one
    /// before `end`, and the card is asked or has no room for one more. To be called before it is sent,
    /// so that its stamps find it.
    #[inline]
    pub(super) fn ask(&self, message: u64, end: u64, by_card: bool) -> u64 {
        let place = self.asked.load(Ordering::Relaxed);
        let slot = self.slot(place);
        slot.message.store(message, Ordering::Relaxed);
        slot.end.store(end, Ordering::Relaxed);
        slot.by_card.store(by_card, Ordering::Relaxed);
        if by_card {
            self.hardware_asked.fetch_add(1, Ordering::Relaxed);
        }
        self.asked.store(place + 1, Ordering::Release);
        place
    }

    /// The message of this place was not sent.
    #[cold]
    pub(super) fn refuse(&self, place: u64) {
        let slot = self.slot(place);
        slot.message.store(REFUSED, Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed);
        let by_card = slot.by_card.load(Ordering::Relaxed);
        self.hardware_asked.fetch_sub(u64::from(by_card), Ordering::Relaxed);
    }

    /// So many bytes were written; how many there are now.
    pub(super) fn written(&self, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// These bytes, counted for the message at this place, were not written.
    #[cold]
    pub(super) fn not_written(&self, place: u64, bytes: u64) {
        let now = self.bytes.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        self.slot(place).end.store(now, Ordering::Relaxed);
    }

    /// These bytes were counted and not written.
    #[cold]
    pub(super) fn take_back(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The kernel counts from 0 again.
    #[cold]
    pub(super) fn count_anew(&self) {
        self.first.store(self.asked(), Ordering::Relaxed);
    }

    pub(super) fn first(&self) -> u64 {
        self.first.load(Ordering::Relaxed)
    }

    /// Places given so far.
    #[inline]
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Messages that were sent and asked for stamps.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.asked() - self.base - self.refused.load(Ordering::Relaxed)
    }

    /// The first place that is remembered.
    pub(super) fn oldest(&self) -> u64 {
        // The place of the one before may be taken at this very moment.
        (self.asked() + 1).saturating_sub(ROOM).max(self.base)
    }

    /// The message of a place; none of one that was never given, is forgotten, or was not sent.
    pub(super) fn message(&self, place: u64) -> Option<u64> {
        let known = (self.oldest()..self.asked()).contains(&place);
        let message = known.then(|| self.slot(place).message.load(Ordering::Relaxed));
        message.filter(|message| *message != REFUSED)
    }

    /// The first place that is remembered whose end is not before this one.
    pub(super) fn ending_at(&self, end: u64) -> Option<(u64, u64)> {
        let (mut low, asked) = (self.oldest(), self.asked());
        let mut high = asked;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.slot(middle).end.load(Ordering::Relaxed) < end {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < asked).then(|| (low, self.slot(low).end.load(Ordering::Relaxed)))
    }

    /// A message was sent that asked for so much less than is wished: for none of these kinds.
    pub(super) fn note(&self, message: u64, less: Less, kinds: u8) {
        let counts = match less {
            Less::Everything => &self.sampled_out,
            Less::Hardware => &self.hardware_busy,
        };
        counts.fetch_add(1, Ordering::Relaxed);
        let place = self.noted.load(Ordering::Relaxed);
        let note = &self.notes[(place & (ROOM - 1)) as usize];
        note.message.store(message, Ordering::Relaxed);
        note.kinds.store(u64::from(kinds), Ordering::Relaxed);
        self.noted.store(place + 1, Ordering::Release);
    }

    /// Hands over the notes from this one on, as far as they are remembered; the number of the next one.
    pub(super) fn notes(&self, from: u64, each: &mut dyn FnMut(u64, u8)) -> u64 {
        let next = self.noted.load(Ordering::Acquire);
        // The place of the oldest may be taken at this very moment.
        for place in from.max((next + 1).saturating_sub(ROOM))..next {
            let note = &self.notes[(place & (ROOM - 1)) as usize];
            each(note.message.load(Ordering::Relaxed), note.kinds.load(Ordering::Relaxed) as u8);
        }
        next
    }

    /// Messages that were sent and asked for no stamp, and those that asked for all but the card's.
    pub(super) fn not_asked(&self) -> (u64, u64) {
        (self.sampled_out.load(Ordering::Relaxed), self.hardware_busy.load(Ordering::Relaxed))
    }

    /// Was a stamp of this kind asked for the message of this place? The card is asked where it has room;
    /// the others are asked for each that was sent.
    pub(super) fn is_asked(&self, place: u64, kind: StampKind) -> bool {
        let asked = kind != StampKind::Hardware || self.slot(place).by_card.load(Ordering::Relaxed);
        asked && self.message(place).is_some()
    }

    pub(super) fn hardware_came(&self) {
        self.hardware_came.fetch_add(1, Ordering::Relaxed);
    }

    /// Asked of the card so far, and of those waiting for their stamp.
    pub(super) fn hardware(&self) -> (u64, u64) {
        let asked = self.hardware_asked.load(Ordering::Relaxed);
        (asked, asked.saturating_sub(self.hardware_came.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_is_noted_once_and_the_last_notes_are_remembered() {
        let sent = Sent::new();
        sent.note(3, Less::Everything, 0b11);
        sent.note(4, Less::Hardware, 0b100);
        let mut told = Vec::new();
        let next = sent.notes(0, &mut |message, kinds| told.push((message, kinds)));
        assert_eq!((next, &told[..]), (2, &[(3, 0b11), (4, 0b100)][..]));
        assert_eq!(sent.notes(next, &mut |_, _| panic!("told before")), 2);
        for message in 5..ROOM + 20 {
            sent.note(message, Less::Everything, 1);
        }
        told.clear();
        sent.notes(next, &mut |message, kinds| told.push((message, kinds)));
        assert_eq!(told.len() as u64, ROOM - 1);
        assert_eq!(told.last(), Some(&(ROOM + 19, 1)));
        assert_eq!(sent.not_asked(), (ROOM + 16, 1));
    }

    #[test]
    fn messages_are_found_by_their_places_while_they_are_remembered() {
        let sent = Sent::new();
        for message in 0..ROOM + 10 {
            assert_eq!(sent.ask(2 * message, 0, false), message);
        }
        assert_eq!(sent.message(9), None, "forgotten");
        assert_eq!(sent.message(ROOM + 9), Some(2 * ROOM + 18));
        assert_eq!(sent.message(ROOM + 10), None, "not sent yet");
        sent.refuse(ROOM + 9);
        assert_eq!((sent.message(ROOM + 9), sent.taken()), (None, ROOM + 9));
    }

    #[test]
    fn the_card_is_asked_of_some_and_of_none_that_the_kernel_refused() {
        let sent = Sent::new();
        for message in 0..6 {
            sent.ask(message, 0, message % 3 == 0);
        }
        sent.refuse(0);
        assert_eq!(sent.hardware(), (1, 1));
        let of = |kind| (0..7).filter(|place| sent.is_asked(*place, kind)).collect::<Vec<_>>();
        assert_eq!((of(StampKind::Hardware), of(StampKind::Sched)), (vec![3], vec![1, 2, 3, 4, 5]));
        // Another message takes the place of one that is forgotten.
        for message in 6..ROOM + 4 {
            sent.ask(message, 0, false);
        }
        assert!(!sent.is_asked(ROOM + 3, StampKind::Hardware));
    }

    #[test]
    fn messages_of_a_stream_are_found_by_their_last_bytes() {
        let sent = Sent::new();
        assert_eq!(sent.ending_at(1), None);
        for message in 0..5 {
            let end = sent.written(100);
            sent.ask(message, end, false);
        }
        assert_eq!((sent.ending_at(1), sent.ending_at(100)), (Some((0, 100)), Some((0, 100))));
        assert_eq!((sent.ending_at(301), sent.ending_at(501)), (Some((3, 400)), None));
        let refused = sent.ask(5, sent.written(300), false);
        sent.not_written(refused, 300);
        sent.ask(6, sent.written(100), false);
        assert_eq!((sent.ending_at(500), sent.ending_at(600)), (Some((4, 500)), Some((6, 600))));
    }
}
