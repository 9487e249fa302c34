//! Two ports between which a thread carries frames, and what becomes of them. One that is down for a while
//! is counted, one that is gone ends it; what their rings dropped is asked for now and then; and the time is
//! cut into intervals. Nothing here is done for a frame.

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks, TicksDelta};
use whylate_port::frames::{Amount, Drops, Frames};
use whylate_port::{BusyPolling, PortError};

use super::counters::exists;
use super::hot::Room;
use super::run::Why;
use super::way::Failure;
use crate::conversation::Scale;

/// Length of an interval, where none is asked for.
const INTERVAL: Nanos = Nanos::SECOND;
/// Intervals between two questions to the kernel what its rings dropped, which take some microseconds.
const ASK_EVERY: u64 = 10;
/// How often rings are urged on at the end: one that is stuck holds nobody up.
const LAST_URGES: u32 = 64;

/// Two ports.
#[derive(Debug)]
pub(crate) struct Ports<F> {
    /// The one that frames of the thread's first direction come by.
    pub(crate) first: F,
    /// The one that they leave by.
    pub(crate) second: F,
    /// What they came to, in the user's order.
    of: [Port; 2],
    /// Where the first one stands in it.
    from: usize,
    /// Frames that the rings had given up before: of no account.
    before: [Amount; 2],
    /// Signs that follow each other within this time are of one outage.
    pause: TicksDelta,
}

/// What a port came to.
#[derive(Debug, Clone, Default)]
struct Port {
    /// Number of its interface.
    interface: u32,
    /// How often it was down.
    downs: u64,
    /// When the last sign of it came.
    last: Option<Ticks>,
    /// It may have been deleted.
    suspect: bool,
    /// What the kernel told last of its rings.
    drops: Vec<Drops>,
}

impl<F: Frames> Ports<F> {
    /// Two ports of which the first is this one in the user's order, as the numbers of their interfaces are.
    pub(crate) fn new(
        (first, second): (F, F),
        from: usize,
        interfaces: [u32; 2],
        scale: Scale,
    ) -> Self {
        let of = interfaces.map(|interface| Port { interface, ..Port::default() });
        let before = [second.taken_back(), first.taken_back()];
        Self { first, second, of, from, before, pause: scale.ticks(INTERVAL) }
    }

    /// The longest frames from the first to the second, and back.
    pub(crate) fn rooms(&self) -> [Room; 2] {
        let (first, second) = (self.first.facts(), self.second.facts());
        [Room::between(first, second), Room::between(second, first)]
    }

    /// What a failure in a direction comes to: why it is over, or a count. That the kernel refused to send is
    /// counted by `refused`.
    #[cold]
    pub(crate) fn failed(
        &mut self,
        direction: usize,
        failure: Failure,
        now: Ticks,
        refused: impl FnOnce(&PortError),
    ) -> Option<Why> {
        let port = if failure.receiving { direction } else { 1 - direction };
        match failure.error {
            error if error.is_link_lost() && !error.is_link_deleted() => {
                let of = &mut self.of[port];
                if of.last.is_none_or(|last| now.since(last) > self.pause) {
                    of.downs += 1;
                }
                (of.last, of.suspect) = (Some(now), true);
                None
            }
            error @ (PortError::MtuTooSmall { .. } | PortError::Send { .. }) => {
                refused(&error);
                None
            }
            error => Some(Why::Lost { port, why: error.to_string() }),
        }
    }

    /// Was a port deleted that seemed to be down only? A ring that nobody sends to does not tell.
    pub(crate) fn gone(&mut self) -> Option<Why> {
        for (port, of) in self.of.iter_mut().enumerate() {
            if std::mem::take(&mut of.suspect) && !exists(of.interface) {
                let why = "its interface was deleted during the run".to_owned();
                return Some(Why::Lost { port, why });
            }
        }
        None
    }

    /// Asks the kernel what its rings dropped, where that is due as this interval closes.
    pub(crate) fn ask_now_and_then(&mut self, interval: u64) {
        if interval.is_multiple_of(ASK_EVERY) {
            self.ask();
        }
    }

    /// Nothing is carried any more: what a ring still has may leave, as far as it does when the kernel is
    /// urged a few times. Says when that was.
    pub(crate) fn finish<C: Counter>(&mut self, counter: &mut C) -> Ticks {
        for _ in 0..LAST_URGES {
            let _ = (self.first.urge(), self.second.urge());
            if self.waiting() == [Amount::default(); 2] {
                break;
            }
        }
        let now = counter.read();
        self.ask();
        now
    }

    /// Sleeps until something may have come by a port that frames of this thread come by, for so long at
    /// most. What a ring still has may leave before.
    pub(crate) fn sleep(&mut self, limit: Nanos) -> Result<(), PortError> {
        if self.waiting() != [Amount::default(); 2] {
            // What is taken back for that, its ring knows.
            let _ = (self.first.urge(), self.second.urge());
        }
        self.first.sleep(limit)
    }

    /// Frames that have not left the ring of the second port, which those of the first direction leave by,
    /// and of the first one.
    pub(crate) fn waiting(&mut self) -> [Amount; 2] {
        [self.second.waiting(), self.first.waiting()]
    }

    /// Frames that were taken back from the ring of the second port, and of the first one, since this began.
    pub(crate) fn taken_back(&self) -> [Amount; 2] {
        let [there, back] = [self.second.taken_back(), self.first.taken_back()];
        [there.since(self.before[0]), back.since(self.before[1])]
    }

    fn ask(&mut self) {
        let told = [(self.from, self.first.drops()), (1 - self.from, self.second.drops())];
        for (port, told) in told {
            // A port that is gone may not tell any more: what it told stays.
            if let Ok(drops) = told {
                self.of[port].drops = drops;
            }
        }
    }

    /// What the rings of each dropped until the kernel was asked last.
    pub(crate) fn drops(&self) -> [Vec<Drops>; 2] {
        self.of.each_ref().map(|of| of.drops.clone())
    }

    /// Whether busy-polling does anything at each, in the user's order. What only sends is not polled.
    pub(crate) fn busy_polling(&self) -> [BusyPolling; 2] {
        let mut of = [self.first.busy_polling(), self.second.busy_polling()];
        if self.from == 1 {
            of.reverse();
        }
        of
    }

    /// How often each was down.
    pub(crate) fn downs(&self) -> [u64; 2] {
        self.of.each_ref().map(|of| of.downs)
    }
}

/// The time that frames are carried, interval by interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intervals {
    begin: Ticks,
    length: TicksDelta,
    /// So many are a second.
    in_a_second: u64,
    /// When the last one is over.
    deadline: Option<Ticks>,
    /// The open one, from 0.
    pub(crate) index: u64,
    /// When it is over.
    pub(crate) end: Ticks,
}

impl Intervals {
    /// Opens the first one, of so much time in all.
    pub(crate) fn new(begin: Ticks, duration: Option<TicksDelta>, scale: Scale) -> Self {
        Self::of_length(INTERVAL, begin, duration, scale)
    }

    /// The same in intervals of this length.
    pub(crate) fn of_length(
        length: Nanos,
        begin: Ticks,
        duration: Option<TicksDelta>,
        scale: Scale,
    ) -> Self {
        let in_a_second = (INTERVAL.0 / length.0.max(1)).max(1);
        let (length, deadline) = (scale.ticks(length), duration.map(|time| begin + time));
        let mut first = Self { begin, length, in_a_second, deadline, index: 0, end: begin };
        first.open(begin);
        first
    }

    /// The number of the second that the open interval begins; none within one.
    pub(crate) fn second(&self) -> Option<u64> {
        let begins = self.index.is_multiple_of(self.in_a_second);
        begins.then(|| self.index / self.in_a_second)
    }

    /// Is the time over?
    pub(crate) fn are_over(&self, now: Ticks) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Opens the one that `now` lies in.
    pub(crate) fn open(&mut self, now: Ticks) {
        self.index = now.since(self.begin).0 / self.length.0.max(1);
        let end = self.begin + TicksDelta(self.length.0.saturating_mul(self.index + 1));
        self.end = self.deadline.map_or(end, |deadline| deadline.min(end));
    }
}
