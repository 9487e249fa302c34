//! When a server had each measured request and answered it, told to whoever started it through memory
//! that both have in common.
//!
//! A record of four words each, with the number of the request: the server's own readings of the
//! counter, and the kernel's stamps of its socket where those were asked for. A ring with one writer and
//! one reader; the writer never waits, and what finds no room is counted.
//!
//! The memory is left to the server as an open descriptor, by a word on its command line
//! ([`Visits::leave`]).

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::io::{FdFlags, fcntl_setfd};
use whylate_model::{Nanos, Ticks};
use whylate_port::{Port, PortError, Stamp, StampKind};
use whylate_sys::shared_memory::SharedMemory;

use crate::error::NetError;

/// Records that find room: 2 MiB; with four stamps a request, 100 000 requests a second fill it in an
/// eighth of a second.
pub const ROOM: u64 = 1 << 16;
/// Words of a record.
const WORDS: usize = 4;
/// Words of the ring's own, on cache lines of their own.
const HEAD: usize = 0;
const TAIL: usize = 16;
const MISSED: usize = 32;
const RECORDS: usize = 64;
/// The first word of a reading; a stamp has its kind plus one.
const VISIT: u64 = 0;
/// Answers whose numbers are remembered until their stamps have come.
const REMEMBERED: usize = 1 << 12;
/// No message or request has this number.
const NOBODY: u64 = u64::MAX;

/// A request at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// The request's number.
    pub sequence: u64,
    /// The reading after the call that brought it.
    pub received: Ticks,
    /// The reading before the call that sent its answer.
    pub sent: Ticks,
}

/// What a server tells of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldVisit {
    /// Its own readings.
    Visit(Visit),
    /// A stamp of the kernel: of the request where it is of a reception, of its answer where of a sending.
    Stamp {
        /// The request's number.
        sequence: u64,
        /// What happened.
        kind: StampKind,
        /// When: since 1970 by the system's clock, or by the card's own.
        at: Nanos,
    },
}

/// The end of whoever started the server.
#[derive(Debug)]
pub struct Visits {
    memory: SharedMemory,
    tail: u64,
    /// Records that were none of ours.
    pub garbled: u64,
}

/// The server's end.
#[derive(Debug)]
pub struct Visiting {
    memory: SharedMemory,
    head: u64,
    tail_seen: u64,
    missed: u64,
    /// Numbers of received messages and of answers, and of the requests that they are.
    received: Vec<(u64, u64)>,
    sent: Vec<(u64, u64)>,
}

/// While this lives, processes that are started have the memory open.
#[derive(Debug)]
pub struct Left<'a>(&'a Visits);

impl Visits {
    /// A memory that is empty.
    pub fn new() -> Result<Self, NetError> {
        let memory = SharedMemory::new(RECORDS + ROOM as usize * WORDS)?;
        Ok(Self { memory, tail: 0, garbled: 0 })
    }

    /// Leaves the memory open to the next process that is started.
    pub fn leave(&self) -> Result<Left<'_>, NetError> {
        self.close_when_started(FdFlags::empty())?;
        Ok(Left(self))
    }

    fn close_when_started(&self, flags: FdFlags) -> Result<(), NetError> {
        let failed = |errno: rustix::io::Errno| NetError::Pipe { source: errno.into() };
        fcntl_setfd(self.memory.descriptor(), flags).map_err(failed)
    }

    /// Hands over everything that has been told so far, in the order of telling.
    pub fn drain(&mut self, mut each: impl FnMut(ToldVisit)) {
        let data = self.memory.data();
        let head = data[HEAD].load(Ordering::Acquire);
        // Whoever writes there may be anybody: no more is read than there can be.
        let until = head.min(self.tail.saturating_add(ROOM));
        while self.tail < until {
            let at = place(self.tail);
            let words = std::array::from_fn(|word| data[at + word].load(Ordering::Relaxed));
            match ToldVisit::of(words) {
                Some(told) => each(told),
                None => self.garbled += 1,
            }
            self.tail += 1;
        }
        data[TAIL].store(self.tail, Ordering::Release);
    }

    /// Records that found no room.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.memory.data()[MISSED].load(Ordering::Relaxed)
    }
}

impl Left<'_> {
    /// The word by which the started process finds it ([`Visiting::inherited`]).
    #[must_use]
    pub fn word(&self) -> PathBuf {
        let fd = self.0.memory.descriptor().as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{fd}"))
    }
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        // It fails of no descriptor that is open.
        let _ = self.0.close_when_started(FdFlags::CLOEXEC);
    }
}

impl Visiting {
    /// The memory that this process was left.
    pub fn inherited(word: &Path) -> Result<Self, NetError> {
        let opened = OpenOptions::new().read(true).write(true).open(word);
        let file = opened.map_err(|source| NetError::Pipe { source })?;
        let memory = SharedMemory::inherited(file.into())?;
        if memory.data().len() < RECORDS + ROOM as usize * WORDS {
            let source = std::io::Error::other("the shared memory is too small");
            return Err(NetError::Pipe { source });
        }
        let (head, tail_seen) = (0, 0);
        let [received, sent] = [(); 2].map(|()| vec![(NOBODY, NOBODY); REMEMBERED]);
        Ok(Self { memory, head, tail_seen, missed: 0, received, sent })
    }

    /// A measured request was answered: the message that the port received last, by the one that it sent
    /// last.
    #[inline]
    pub(super) fn answered<P: Port + ?Sized>(&mut self, port: &P, visit: Visit) {
        self.push(ToldVisit::Visit(visit));
        if let Some((sent, received)) = port.numbers() {
            remember(&mut self.received, received, visit.sequence);
            remember(&mut self.sent, sent, visit.sequence);
        }
    }

    /// Tells the stamps that have come.
    pub(super) fn take_stamps<P: Port + ?Sized>(&mut self, port: &mut P) -> Result<(), PortError> {
        port.take_stamps(&mut |stamp| {
            let Stamp { message, kind, at } = stamp;
            let of = if kind.is_received() { &self.received } else { &self.sent };
            let (number, sequence) = of[(message % REMEMBERED as u64) as usize];
            if number == message {
                self.push(ToldVisit::Stamp { sequence, kind, at });
            }
        })
    }

    #[inline]
    fn push(&mut self, told: ToldVisit) {
        let data = self.memory.data();
        if self.head.wrapping_sub(self.tail_seen) >= ROOM {
            self.tail_seen = data[TAIL].load(Ordering::Acquire);
            if self.head.wrapping_sub(self.tail_seen) >= ROOM {
                self.missed += 1;
                data[MISSED].store(self.missed, Ordering::Relaxed);
                return;
            }
        }
        let at = place(self.head);
        for (cell, word) in data[at..at + WORDS].iter().zip(told.words()) {
            cell.store(word, Ordering::Relaxed);
        }
        self.head += 1;
        data[HEAD].store(self.head, Ordering::Release);
    }
}

/// The last of so many messages is of this request.
#[inline]
fn remember(of: &mut [(u64, u64)], messages: u64, sequence: u64) {
    if let Some(last) = messages.checked_sub(1) {
        of[(last % REMEMBERED as u64) as usize] = (last, sequence);
    }
}

fn place(record: u64) -> usize {
    RECORDS + (record % ROOM) as usize * WORDS
}

impl ToldVisit {
    fn words(self) -> [u64; WORDS] {
        match self {
            Self::Visit(Visit { sequence, received, sent }) => {
                [VISIT, sequence, received.0, sent.0]
            }
            Self::Stamp { sequence, kind, at } => [kind.index() as u64 + 1, sequence, at.0, 0],
        }
    }

    fn of([kind, sequence, first, second]: [u64; WORDS]) -> Option<Self> {
        let Some(kind) = kind.checked_sub(1) else {
            let (received, sent) = (Ticks(first), Ticks(second));
            return Some(Self::Visit(Visit { sequence, received, sent }));
        };
        let kind = *StampKind::ALL.get(usize::try_from(kind).ok()?)?;
        Some(Self::Stamp { sequence, kind, at: Nanos(first) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> (Visits, Visiting) {
        let visits = Visits::new().unwrap();
        let visiting = Visiting::inherited(&visits.leave().unwrap().word()).unwrap();
        (visits, visiting)
    }

    #[test]
    fn what_is_told_by_one_mapping_is_read_by_the_other_and_what_finds_no_room_is_counted() {
        let (mut visits, mut visiting) = both();
        let visit = |sequence| {
            ToldVisit::Visit(Visit { sequence, received: Ticks(sequence + 1), sent: Ticks(9) })
        };
        let stamp = ToldVisit::Stamp { sequence: 7, kind: StampKind::ALL[6], at: Nanos(u64::MAX) };
        let mut taken = Vec::new();
        for round in 0..3 {
            visiting.push(visit(round));
            visiting.push(stamp);
            visits.drain(|told| taken.push(told));
            assert_eq!(taken.split_off(0), [visit(round), stamp]);
        }
        for sequence in 0..ROOM + 5 {
            visiting.push(visit(sequence));
        }
        visits.drain(|told| taken.push(told));
        assert_eq!((taken.len() as u64, visits.missed()), (ROOM, 5));
        assert_eq!((taken.first(), taken.last()), (Some(&visit(0)), Some(&visit(ROOM - 1))));
    }

    #[test]
    fn what_another_wrote_there_is_counted_and_no_more_is_read_than_there_can_be() {
        let (mut visits, visiting) = both();
        let data = visiting.memory.data();
        data[RECORDS].store(99, Ordering::Relaxed);
        data[HEAD].store(u64::MAX, Ordering::Release);
        let mut count = 0;
        visits.drain(|_| count += 1);
        assert_eq!((count, visits.garbled), (ROOM - 1, 1));
    }

    #[test]
    fn only_a_memory_of_this_size_is_taken() {
        assert!(Visiting::inherited(Path::new("/dev/null")).is_err());
        let small = SharedMemory::new(16).unwrap();
        let word = format!("/proc/self/fd/{}", small.descriptor().as_raw_fd());
        assert!(Visiting::inherited(Path::new(&word)).is_err());
    }
}
