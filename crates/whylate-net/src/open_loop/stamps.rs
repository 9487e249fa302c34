//! The kernel's stamps of each request and its reply, one record each, on their way from the measuring
//! thread to whoever joins them with the rest of the request.
//!
//! A port numbers the messages that it sends and receives. All that were sent before the measurement are
//! the warm-up's, and the first one after it is request 0; whose reply a received message was is known
//! when it is taken in. Stamps of the warm-up are taken and thrown away, and with them those of a system
//! that has stamped nothing yet. With the farewell taking ends.
//!
//! Guarantees: the measuring thread never waits and allocates nothing; a stamp of a measured request or of
//! its reply becomes a record or is counted ([`Untold`]), however many replies come in a row; no record is
//! changed.

use whylate_model::Nanos;
use whylate_port::{Port, PortError, Stamp, StampKind};
use whylate_threads::ring::{self, Consumer, Producer, WORDS};

/// Received messages that are remembered with the requests that they answer. When so many have come since
/// stamps were taken last, they are taken: a socket keeps 1 024 stamps of receptions, and a message has two
/// at most.
const REPLIES: usize = 256;
/// Where a record has a kind of stamps: it says of which kinds none was asked for.
const NOT_ASKED: u64 = StampKind::COUNT as u64;
/// A message that is the first reply to no measured request.
const NOBODY: u64 = u64::MAX;

/// A stamp of a request, or of its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// Its number: that of [`Settled`](super::settled::Settled).
    pub request: u64,
    /// What happened: to the request where it is of a sending, to the reply where of a reception.
    pub kind: StampKind,
    /// When: since 1970 by the system's clock, or by the card's own.
    pub at: Nanos,
}

/// Stamps of measured requests that no record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Untold {
    /// Their records found no room on the way from the measuring thread.
    pub no_room: u64,
    /// They were of replies that had come so long before that it was forgotten whose they are.
    pub forgotten: u64,
    /// Late replies that came after stamps had been taken for the last time.
    pub late_replies: u64,
}

/// The measuring thread's end.
pub struct Stamping {
    ring: Producer,
    /// What the records do not tell.
    pub untold: Untold,
    /// The number of the message that is request 0; none during the warm-up.
    first: Option<u64>,
    /// Stamps are taken no more.
    over: bool,
    /// Received messages and the requests that they answer.
    replies: [(u64, u64); REPLIES],
    /// Messages received since stamps were taken last.
    untaken: usize,
}

/// The end of whoever takes the records in.
pub struct Stampings {
    ring: Consumer,
}

/// Both ends. To be called on the thread that measures, so that the pages lie on its NUMA node.
#[must_use]
pub fn between() -> (Stamping, Stampings) {
    let (producer, consumer) = ring::ring();
    let replies = [(NOBODY, NOBODY); REPLIES];
    let (untold, first, over, untaken) = (Untold::default(), None, false, 0);
    let stamping = Stamping { ring: producer, untold, first, over, replies, untaken };
    (stamping, Stampings { ring: consumer })
}

impl Stamping {
    /// The warm-up is over: what is sent from now on is measured.
    pub(super) fn begin<P: Port + ?Sized>(&mut self, port: &P) {
        self.first = port.numbers().map(|(sent, _)| sent);
    }

    /// What is sent from now on is no request any more, and no stamp is taken.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    /// A message was received: the first reply to this measured request, where it is one. Takes stamps
    /// where otherwise it would be forgotten whose they are.
    #[inline]
    pub(super) fn received<P: Port + ?Sized>(
        &mut self,
        port: &mut P,
        answers: Option<u64>,
    ) -> Result<(), PortError> {
        if self.over {
            self.untold.late_replies += u64::from(answers.is_some());
            return Ok(());
        }
        let Some(message) = port.numbers().and_then(|(_, received)| received.checked_sub(1)) else {
            return Ok(());
        };
        self.replies[(message % REPLIES as u64) as usize] = (message, answers.unwrap_or(NOBODY));
        self.untaken += 1;
        if self.untaken < REPLIES { Ok(()) } else { self.take_in_time(port) }
    }

    #[cold]
    fn take_in_time<P: Port + ?Sized>(&mut self, port: &mut P) -> Result<(), PortError> {
        self.take(port).map(|_| ())
    }

    /// Takes what has come. Gives how many stamps there were.
    #[inline]
    pub(super) fn take<P: Port + ?Sized>(&mut self, port: &mut P) -> Result<u64, PortError> {
        self.untaken = 0;
        let mut came = 0;
        port.take_stamps(&mut |stamp| {
            came += 1;
            self.push(stamp);
        })?;
        port.take_not_asked(&mut |message, kinds| self.not_asked(message, kinds));
        Ok(came)
    }

    /// Of this message these kinds were not asked for, a bit each.
    #[inline]
    fn not_asked(&mut self, message: u64, kinds: u8) {
        let Some(request) = self.first.and_then(|first| message.checked_sub(first)) else { return };
        self.tell([request, NOT_ASKED, u64::from(kinds), 0]);
    }

    #[inline]
    fn push(&mut self, stamp: Stamp) {
        let Some(first) = self.first else { return };
        let request = if stamp.kind.is_received() {
            let (message, request) = self.replies[(stamp.message % REPLIES as u64) as usize];
            if message != stamp.message {
                self.untold.forgotten += 1;
                return;
            }
            (request != NOBODY).then_some(request)
        } else {
            stamp.message.checked_sub(first)
        };
        if let Some(request) = request {
            self.tell(Stamped { request, kind: stamp.kind, at: stamp.at }.words());
        }
    }

    #[inline]
    fn tell(&mut self, words: [u64; WORDS]) {
        if !self.ring.push(words) {
            self.untold.no_room += 1;
        }
    }
}

impl Stampings {
    /// Takes everything that has come so far, in the order of coming.
    pub fn drain(&mut self, each: impl FnMut(Stamped)) {
        self.drain_told(each, |_, _| ());
    }

    /// The same, with the requests of which less was asked for than is wished: their numbers, and the kinds
    /// that were not asked for, a bit each.
    pub fn drain_told(
        &mut self,
        mut each: impl FnMut(Stamped),
        mut not_asked: impl FnMut(u64, u8),
    ) {
        self.ring.drain(|words| {
            if let Some(stamped) = Stamped::of(words) {
                each(stamped);
            } else if let [request, NOT_ASKED, kinds, _] = words {
                not_asked(request, kinds as u8);
            }
        });
    }
}

impl Stamped {
    fn words(self) -> [u64; WORDS] {
        [self.request, self.kind.index() as u64, self.at.0, 0]
    }

    fn of([request, kind, at, _]: [u64; WORDS]) -> Option<Self> {
        let kind = *StampKind::ALL.get(usize::try_from(kind).ok()?)?;
        Some(Self { request, kind, at: Nanos(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_out_as_they_went_in_under_the_numbers_of_their_requests() {
        let (mut stamping, mut stampings) = between();
        let stamp = |message, kind| Stamp { message, kind, at: Nanos(message + 1) };
        stamping.push(stamp(3, StampKind::Sched));
        stamping.first = Some(4);
        stamping.replies[5] = (5, 1);
        for message in [3, 4, 6] {
            stamping.push(stamp(message, StampKind::Software));
        }
        stamping.push(stamp(5, StampKind::ReceivedSoftware));
        stamping.push(stamp(5 + REPLIES as u64, StampKind::ReceivedSoftware));
        let mut taken = Vec::new();
        stampings.drain(|stamped| taken.push(stamped));
        let of = |request, kind, at| Stamped { request, kind, at: Nanos(at) };
        let expected = [
            of(0, StampKind::Software, 5),
            of(2, StampKind::Software, 7),
            of(1, StampKind::ReceivedSoftware, 6),
        ];
        assert_eq!(taken, expected, "none of the warm-up's");
        let forgotten = Untold { forgotten: 1, ..Untold::default() };
        assert_eq!(stamping.untold, forgotten, "whose the last one was");
    }

    #[test]
    fn what_was_not_asked_for_comes_out_apart_under_the_numbers_of_the_requests() {
        let (mut stamping, mut stampings) = between();
        stamping.not_asked(3, 1);
        stamping.first = Some(4);
        stamping.not_asked(3, 1);
        stamping.not_asked(6, 0b101);
        stamping.push(Stamp { message: 5, kind: StampKind::Sched, at: Nanos(9) });
        let (mut stamps, mut others) = (0, Vec::new());
        stampings.drain_told(|_| stamps += 1, |request, kinds| others.push((request, kinds)));
        assert_eq!((stamps, &others[..]), (1, &[(2, 0b101)][..]), "none of the warm-up's");
    }

    #[test]
    fn stamps_without_room_are_counted() {
        let (mut stamping, mut stampings) = between();
        stamping.first = Some(0);
        let stamp = Stamp { message: 0, kind: StampKind::Ack, at: Nanos(1) };
        for _ in 0..ring::CAPACITY + 7 {
            stamping.push(stamp);
        }
        let mut count = 0;
        stampings.drain(|_| count += 1);
        assert_eq!((count, stamping.untold.no_room), (ring::CAPACITY, 7));
    }
}
