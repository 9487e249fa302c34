//! Stamps of frames as those of the messages in them.
//!
//! A host puts frames of its own between its messages, and takes others for none: messages are numbered
//! apart, from 0, those sent and those received.

use std::collections::VecDeque;

use whylate_model::Nanos;

use crate::frames::{FrameStamps, SentStamp, StampedBy};
use crate::stamps::{Stamp, StampCounts, StampKind, StampWish};

/// Messages under way, and stamps that nobody took, at most: as many as the largest ring holds.
const MOST: usize = 1 << 15;

/// What a stamp says of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageStage {
    /// It came, by the program that takes frames; wall clock.
    Came,
    /// It came, by the card's own clock.
    CameByCard,
    /// It has left, and the kernel let go of it; wall clock.
    Left,
    /// It has left, by the card's own clock.
    LeftByCard,
}

impl MessageStage {
    /// What that is among the stamps of a port's messages. What the kernel tells of a frame that has left
    /// is that it is done with it: it lies not on the frame's way.
    fn kind(self) -> StampKind {
        match self {
            Self::Came => StampKind::ReceivedSoftware,
            Self::CameByCard => StampKind::ReceivedHardware,
            Self::Left => StampKind::Completion,
            Self::LeftByCard => StampKind::Hardware,
        }
    }
}

/// Is this kind made of such frames?
fn is_made(of: &FrameStamps, kind: StampKind) -> bool {
    match kind {
        StampKind::ReceivedSoftware => of.received,
        StampKind::ReceivedHardware => of.received_by_card,
        StampKind::Completion => of.sent == Some(StampedBy::Kernel),
        StampKind::Hardware => of.sent == Some(StampedBy::Card),
        StampKind::Sched | StampKind::Software | StampKind::Ack => false,
    }
}

/// When a message came or left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageStamp {
    /// Its number among those received, or among those sent.
    pub message: u64,
    /// What of it.
    pub stage: MessageStage,
    /// When.
    pub at: Nanos,
}

/// Which message is in which frame, and what was stamped.
#[derive(Debug, Default)]
pub(super) struct MessageStamps {
    /// Is anything stamped?
    on: bool,
    sent: u64,
    received: u64,
    /// Frames that messages were sent in, and their numbers, in order.
    under_way: VecDeque<(u64, u64)>,
    told: VecDeque<MessageStamp>,
    lost: u64,
    /// What is handed over as stamps of a port; none where nobody asked.
    wish: Option<StampWish>,
    delivered: [u64; StampKind::COUNT],
}

impl MessageStamps {
    pub(super) fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Messages sent and received so far, where they are stamped.
    pub(super) fn numbers(&self) -> Option<(u64, u64)> {
        self.on.then_some((self.sent, self.received))
    }

    /// Stamps that were lost because nobody took them.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Asks for stamps of messages; else why none of them is made. A kind that is asked for beside one
    /// that is made is missing.
    pub(super) fn ask(&mut self, wish: &StampWish, of: &FrameStamps) -> Result<(), String> {
        let made = |kind: &StampKind| wish.has(*kind) && is_made(of, *kind);
        if self.on && StampKind::ALL.iter().any(made) {
            self.wish = Some(*wish);
            return Ok(());
        }
        Err(if of.instead.is_empty() {
            "nobody makes any".to_owned()
        } else {
            of.instead.join("; ")
        })
    }

    /// Hands over those that were asked for.
    pub(super) fn take_wished(&mut self, each: &mut dyn FnMut(Stamp)) {
        let Some(wish) = self.wish else { return };
        for MessageStamp { message, stage, at } in self.told.drain(..) {
            let kind = stage.kind();
            if wish.has(kind) {
                self.delivered[kind.index()] += 1;
                each(Stamp { message, kind, at });
            }
        }
    }

    /// What became of those that were asked for.
    pub(super) fn counts(&self) -> Option<StampCounts> {
        let wish = self.wish?;
        let mut counts = StampCounts { crowded_out: self.lost, ..StampCounts::default() };
        for kind in StampKind::ALL.into_iter().filter(|kind| wish.has(*kind)) {
            counts.wished[kind.index()] = true;
            let of = &mut counts.kinds[kind.index()];
            of.expected = if kind.is_received() { self.received } else { self.sent };
            of.delivered = self.delivered[kind.index()];
        }
        Some(counts)
    }

    /// A message was put; `frames` have been put with it.
    #[inline]
    pub(super) fn put(&mut self, frames: u64) {
        if !self.on {
            return;
        }
        if self.under_way.len() == MOST {
            self.under_way.pop_front();
        }
        self.under_way.push_back((frames.saturating_sub(1), self.sent));
        self.sent += 1;
    }

    /// A message came, in a frame with these stamps.
    #[inline]
    pub(super) fn came(&mut self, kernel: Option<Nanos>, card: Option<Nanos>) {
        if !self.on {
            return;
        }
        let message = self.received;
        self.received += 1;
        for (stage, at) in [(MessageStage::Came, kernel), (MessageStage::CameByCard, card)] {
            if let Some(at) = at {
                self.keep(MessageStamp { message, stage, at });
            }
        }
    }

    /// A frame has left.
    pub(super) fn left(&mut self, stamp: SentStamp) {
        // Those before it nobody tells of any more.
        while self.under_way.front().is_some_and(|(frame, _)| *frame < stamp.number) {
            self.under_way.pop_front();
        }
        let Some((_, message)) = self.under_way.front().filter(|(frame, _)| *frame == stamp.number)
        else {
            // One of the host's own.
            return;
        };
        let stage = match stamp.by {
            StampedBy::Kernel => MessageStage::Left,
            StampedBy::Card => MessageStage::LeftByCard,
        };
        self.keep(MessageStamp { message: *message, stage, at: stamp.at });
        self.under_way.pop_front();
    }

    /// What was stamped since the last time.
    pub(super) fn take(&mut self, each: &mut dyn FnMut(MessageStamp)) {
        self.told.drain(..).for_each(each);
    }

    fn keep(&mut self, stamp: MessageStamp) {
        if self.told.len() < MOST {
            self.told.push_back(stamp);
        } else {
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(stamps: &mut MessageStamps) -> Vec<(u64, MessageStage, u64)> {
        let mut all = Vec::new();
        stamps.take(&mut |stamp| all.push((stamp.message, stamp.stage, stamp.at.0)));
        all
    }

    fn left(number: u64, at: u64) -> SentStamp {
        SentStamp { number, by: StampedBy::Kernel, at: Nanos(at) }
    }

    #[test]
    fn a_stamp_of_a_frame_is_one_of_the_message_in_it_and_of_no_other() {
        let mut stamps = MessageStamps::new(true);
        // A question for an address was frame 0, an answer to one frame 2.
        for frames in [2, 4, 5] {
            stamps.put(frames);
        }
        for (frame, at) in [(0, 10), (1, 11), (2, 12), (4, 14)] {
            stamps.left(left(frame, at));
        }
        stamps.came(Some(Nanos(20)), None);
        stamps.came(None, Some(Nanos(7)));
        let expected = [
            (0, MessageStage::Left, 11),
            // Of frame 3, which was message 1, nobody told.
            (2, MessageStage::Left, 14),
            (0, MessageStage::Came, 20),
            (1, MessageStage::CameByCard, 7),
        ];
        assert_eq!(taken(&mut stamps), expected);
        assert_eq!((stamps.numbers(), stamps.lost()), (Some((3, 2)), 0));
        assert_eq!(taken(&mut stamps), []);
    }

    #[test]
    fn what_nobody_takes_fills_no_memory_and_what_is_not_asked_is_not_kept() {
        let mut stamps = MessageStamps::new(true);
        for message in 0..2 * MOST as u64 {
            stamps.put(message + 1);
            stamps.came(Some(Nanos(1)), None);
        }
        assert_eq!(stamps.under_way.len(), MOST);
        assert_eq!((taken(&mut stamps).len(), stamps.lost()), (MOST, MOST as u64));
        let mut off = MessageStamps::new(false);
        off.put(1);
        off.came(Some(Nanos(1)), None);
        assert_eq!((taken(&mut off).len(), off.numbers()), (0, None));
    }

    #[test]
    fn what_is_asked_for_is_handed_over_and_counted_and_what_nobody_makes_is_refused_with_the_reason()
     {
        let made =
            FrameStamps { received: true, sent: Some(StampedBy::Kernel), ..FrameStamps::default() };
        let wish =
            StampWish { completion: true, hardware: true, receive: true, ..StampWish::NOTHING };
        let mut stamps = MessageStamps::new(true);
        assert_eq!(stamps.counts(), None);
        stamps.ask(&wish, &made).unwrap();
        for frames in [1, 2, 3] {
            stamps.put(frames);
        }
        stamps.left(left(0, 10));
        stamps.left(left(2, 12));
        stamps.came(Some(Nanos(20)), None);
        let mut taken = Vec::new();
        stamps.take_wished(&mut |stamp| taken.push((stamp.message, stamp.kind, stamp.at.0)));
        let (out, came) = (StampKind::Completion, StampKind::ReceivedSoftware);
        assert_eq!(taken, [(0, out, 10), (2, out, 12), (0, came, 20)]);
        let counts = stamps.counts().unwrap();
        let of = |kind| {
            let of = counts.of(kind);
            (of.expected, of.delivered, of.missing())
        };
        assert_eq!((of(out), of(came)), ((3, 2, 1), (1, 1, 0)));
        // Asked for and made by nobody: missing.
        assert_eq!(
            (of(StampKind::Hardware), of(StampKind::ReceivedHardware)),
            ((3, 0, 3), (1, 0, 1))
        );
        assert_eq!(of(StampKind::Sched), (0, 0, 0));
        let why = vec!["no stamps of a card: none".to_owned(), "too old".to_owned()];
        let none = FrameStamps { instead: why, ..FrameStamps::default() };
        let refusal = MessageStamps::new(true).ask(&wish, &none).unwrap_err();
        assert_eq!(refusal, "no stamps of a card: none; too old");
        let socket = StampWish { sched: true, software: true, ..StampWish::NOTHING };
        assert_eq!(stamps.ask(&socket, &made).unwrap_err(), "nobody makes any");
        assert!(MessageStamps::new(false).ask(&wish, &made).is_err());
    }

    #[test]
    fn what_a_card_stamps_of_frames_both_ways_is_handed_over_as_its_own_beside_the_programs() {
        let made = FrameStamps {
            received: true,
            received_by_card: true,
            sent: Some(StampedBy::Card),
            ..FrameStamps::default()
        };
        let wish = StampWish { hardware: true, receive: true, ..StampWish::NOTHING };
        let mut stamps = MessageStamps::new(true);
        stamps.ask(&wish, &made).unwrap();
        for frames in [1, 2, 3] {
            stamps.put(frames);
        }
        for (number, at) in [(0, 10), (1, 11)] {
            stamps.left(SentStamp { number, by: StampedBy::Card, at: Nanos(at) });
        }
        stamps.came(Some(Nanos(20)), Some(Nanos(7)));
        stamps.came(Some(Nanos(21)), None);
        let mut taken = Vec::new();
        stamps.take_wished(&mut |stamp| taken.push((stamp.message, stamp.kind, stamp.at.0)));
        let (out, took) = (StampKind::Hardware, StampKind::ReceivedSoftware);
        let came = StampKind::ReceivedHardware;
        let expected = [(0, out, 10), (1, out, 11), (0, took, 20), (0, came, 7), (1, took, 21)];
        assert_eq!(taken, expected);
        let counts = stamps.counts().unwrap();
        let of = |kind| {
            let of = counts.of(kind);
            (of.expected, of.delivered, of.missing())
        };
        assert_eq!([of(out), of(took), of(came)], [(3, 2, 1), (2, 2, 0), (2, 1, 1)]);
        assert_eq!(of(StampKind::Completion), (0, 0, 0), "the card's is no word of the kernel");
    }
}
