//! A thread that forwards: turn after turn, until it is told to end, its time is over, or a port is
//! gone.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::frames::{Drops, Frames};
use whylate_port::{BusyPolling, PortError};

use super::hot::Counts;
use super::ports::{Intervals, Ports};
use super::stamps::{Parts, Stamps};
use super::way::{Failure, Hand, Way};
use crate::conversation::Scale;

/// Whether threads are to go on.
#[derive(Debug)]
pub struct Halt<'a> {
    asked: &'a AtomicBool,
    over: AtomicBool,
}

impl<'a> Halt<'a> {
    /// Is set when `asked` is, or when one of the threads has ended.
    #[must_use]
    pub fn new(asked: &'a AtomicBool) -> Self {
        Self { asked, over: AtomicBool::new(false) }
    }

    /// Ends all of them.
    pub fn set(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Ends all of them when this is dropped: with the thread that has it, however it ends.
    #[must_use]
    pub fn ends_with(&self) -> Ending<'_> {
        Ending(self)
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.asked.load(Ordering::Relaxed) || self.over.load(Ordering::Relaxed)
    }
}

/// Ends all threads when it is dropped.
#[derive(Debug)]
pub struct Ending<'a>(&'a Halt<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Why a thread ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It was told to.
    Stopped,
    /// Its time was over.
    Duration,
    /// A port is gone, or failed for good.
    Lost {
        /// Which: 0 is the first.
        port: usize,
        /// What happened.
        why: String,
    },
}

/// What one direction came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionAccount {
    /// Which: 0 leads from the first port to the second.
    pub direction: usize,
    /// What became of its frames.
    pub counts: Counts,
    /// Ticks by the size of the burst.
    pub parts: Parts,
    /// Stamps of the kernel that cannot be right.
    pub unfit: u64,
    /// Occasions on which the kernel refused to send.
    pub refusals: u64,
    /// Why the first time.
    pub first_refusal: Option<String>,
}

/// What a thread has done until now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its directions.
    pub directions: Vec<DirectionAccount>,
    /// What the rings of each port dropped until the kernel was asked last, as far as this thread has
    /// them: as the first second begins, every ten seconds after it, and at the end. Empty where a port did not
    /// tell.
    pub drops: [Vec<Drops>; 2],
    /// How often each port went down.
    pub downs: [u64; 2],
    /// Looks at rings.
    pub looks: u64,
    /// Those that found nothing.
    pub in_vain: u64,
    /// Since it began.
    pub elapsed: TicksDelta,
    /// Whether busy-polling did anything, at each port as far as this thread has it.
    pub busy_polling: [BusyPolling; 2],
}

/// What is told as an interval closes.
#[derive(Debug)]
pub struct Told<'a> {
    /// The interval, from 0.
    pub index: u64,
    /// The directions. Whoever takes their times leaves empty ones behind.
    pub ways: &'a mut [Way],
    /// Which direction each of them is.
    pub directions: &'a [usize],
    /// What was done until now.
    pub account: Account,
}

/// Is called on the forwarding thread as an interval closes.
pub type Watch<'a> = dyn FnMut(Told<'_>) + Send + 'a;

/// The directions of one thread and the ports between which they lead.
#[derive(Debug)]
pub struct Forwarder<C, F> {
    ports: Ports<F>,
    /// From the first port to the second, then perhaps back.
    ways: Vec<Way>,
    directions: Vec<usize>,
    hand: Hand<C>,
    scale: Scale,
    begin: Ticks,
    nap: Nanos,
    interval: Nanos,
    duration: Option<TicksDelta>,
}

/// What all threads of a forwarder are told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) stamps: Stamps,
    pub(super) work: Nanos,
    pub(super) interval: Nanos,
    pub(super) duration: Option<Nanos>,
    pub(super) rate: Hertz,
    /// How long it sleeps at most where nothing came by any port; 0 does not sleep.
    pub(super) nap: Nanos,
    /// Numbers of the interfaces, in the user's order.
    pub(super) interfaces: [u32; 2],
}

impl<C: Counter, F: Frames> Forwarder<C, F> {
    /// A thread for these directions: the first of them leads from `first` to `second`, another one
    /// back.
    pub(super) fn new(ports: (F, F), directions: &[usize], counter: C, settings: Settings) -> Self {
        let Settings { stamps, work, interval, duration, rate, nap, interfaces } = settings;
        let scale = Scale::new(rate);
        let first = directions.first().copied().unwrap_or(0);
        let ports = Ports::new(ports, first, interfaces, scale);
        let rooms = ports.rooms().into_iter().take(directions.len());
        let ways = rooms.map(|room| Way::new(room, stamps, rate)).collect();
        let (last, work) = (Ticks(0), scale.ticks(work));
        Self {
            ports,
            ways,
            directions: directions.to_vec(),
            hand: Hand { counter, last, work, looks: 0, in_vain: 0 },
            scale,
            begin: last,
            nap,
            interval,
            duration: duration.map(|time| scale.ticks(time)),
        }
    }

    /// Forwards until it is to end. `watch` is told at the end, too, with an account. However this ends,
    /// by a panic too, the other threads are told to.
    pub fn run(&mut self, halt: &Halt<'_>, watch: &mut Watch<'_>) -> Why {
        let ending = halt.ends_with();
        self.begin = self.hand.counter.read();
        self.hand.last = self.begin;
        let mut intervals =
            Intervals::of_length(self.interval, self.begin, self.duration, self.scale);
        let why = loop {
            if let Some(why) = self.round() {
                break why;
            }
            if self.hand.last >= intervals.end {
                let now = self.hand.last;
                if intervals.are_over(now) {
                    break Why::Duration;
                }
                if let Some(second) = intervals.second() {
                    self.ports.ask_now_and_then(second);
                }
                self.tell(intervals.index, watch);
                if let Some(gone) = self.ports.gone() {
                    break gone;
                }
                intervals.open(now);
            }
            if halt.is_set() {
                break Why::Stopped;
            }
        };
        drop(ending);
        self.hand.last = self.ports.finish(&mut self.hand.counter);
        self.take_back();
        for (way, waiting) in self.ways.iter_mut().zip(self.ports.waiting()) {
            way.counts.end_with(waiting);
        }
        self.tell(intervals.index, watch);
        why
    }

    /// A look at each port that frames come by. What fails in one direction is no reason for the other to
    /// go without its turn; of two ends the first one's reason is told.
    #[inline]
    fn round(&mut self) -> Option<Why> {
        let in_vain = self.hand.in_vain;
        let there = self.turn_there().and_then(|failure| self.failed(0, failure));
        let back = self.turn_back().and_then(|failure| self.failed(1, failure));
        let ended = there.or(back);
        let silent = self.hand.in_vain - in_vain == self.ways.len() as u64;
        if self.nap > Nanos(0) && silent && ended.is_none() { self.sleep() } else { ended }
    }

    /// Nothing came by any port: sleeps until something does. What follows is counted from its end.
    fn sleep(&mut self) -> Option<Why> {
        let slept = self.ports.sleep(self.nap).map_err(Failure::receiving);
        let ended = slept.err().and_then(|failure| self.failed(0, failure));
        self.hand.last = self.hand.counter.read();
        ended
    }

    /// A turn of the first direction.
    #[inline]
    fn turn_there(&mut self) -> Option<Failure> {
        let Self { ports: Ports { first, second, .. }, ways, hand, .. } = self;
        ways.first_mut()?.turn(first, second, hand).err()
    }

    /// A turn of the other one, where this thread has it.
    #[inline]
    fn turn_back(&mut self) -> Option<Failure> {
        let Self { ports: Ports { first, second, .. }, ways, hand, .. } = self;
        ways.get_mut(1)?.turn(second, first, hand).err()
    }

    /// What a failure comes to: an end, or a count.
    #[cold]
    fn failed(&mut self, way: usize, failure: Failure) -> Option<Why> {
        let now = self.hand.counter.read();
        self.hand.last = now;
        let refused = |error: &PortError| self.ways[way].refused(error);
        self.ports.failed(self.directions[way], failure, now, refused)
    }

    /// What a ring has given up since it was handed over has not been forwarded.
    fn take_back(&mut self) {
        for (way, all) in self.ways.iter_mut().zip(self.ports.taken_back()) {
            way.counts.take_back(all);
        }
    }

    fn tell(&mut self, index: u64, watch: &mut Watch<'_>) {
        self.take_back();
        let account = self.account();
        watch(Told { index, ways: &mut self.ways, directions: &self.directions, account });
    }

    fn account(&self) -> Account {
        let of = |(way, direction): (&Way, &usize)| DirectionAccount {
            direction: *direction,
            counts: way.counts,
            parts: way.stamped.parts,
            unfit: way.stamped.unfit,
            refusals: way.refusals,
            first_refusal: way.first_refusal.clone(),
        };
        let directions = self.ways.iter().zip(&self.directions).map(of).collect();
        Account {
            directions,
            drops: self.ports.drops(),
            downs: self.ports.downs(),
            looks: self.hand.looks,
            in_vain: self.hand.in_vain,
            elapsed: self.hand.last.since(self.begin),
            busy_polling: self.ports.busy_polling(),
        }
    }
}
