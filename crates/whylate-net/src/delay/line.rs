//! The thread of a delay line: turn after turn, until it is told to end, its time is over, or a port is
//! gone.

use whylate_clock::Counter;
use whylate_model::delay::{DelayChange, DelayCounts};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::frames::{Drops, Frames};
use whylate_port::{BusyPolling, PortError};

use super::capacity::Capacity;
use super::error::DelayError;
use super::fifo::Fifo;
use super::lane::{Hand, Lane};
use super::law::Law;
use super::mark::Tells;
use super::truth::TruthWriter;
use crate::conversation::Scale;
use crate::forward::ports::{Intervals, Ports};
use crate::forward::way::Failure;
use crate::forward::{Halt, Why};
use crate::schedule::Rate;

/// Between two questions whether there is an order.
const ORDERS_EVERY: Nanos = Nanos(1_000_000);

/// What a running line is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Frames that come from now on are held back by this law.
    Set {
        /// Of one direction, 0 or 1; none: of both.
        direction: Option<usize>,
        /// The law.
        law: Law,
    },
    /// It is to end.
    Stop,
}

/// Whoever tells a running line what to do. Is asked on the line's own thread, between two looks at its
/// rings, at most once a millisecond: it must neither wait nor take long.
pub trait Orders {
    /// The next order, where there is one.
    fn next(&mut self) -> Option<Order>;

    /// What became of the last [`Order::Set`]: when it began to hold, since the line began, or why it does
    /// not. What was set before goes on in that case.
    fn answer(&mut self, _of: Result<Nanos, DelayError>) {}
}

/// Nobody tells it anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOrders;

impl Orders for NoOrders {
    fn next(&mut self) -> Option<Order> {
        None
    }
}

/// What one direction came to.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneAccount {
    /// What became of its frames. What waits now is in `waiting_at_the_end`, and so they always close.
    pub counts: DelayCounts,
    /// Bytes received, without check sequences.
    pub received_bytes: u64,
    /// Bytes handed over, duplicates among them.
    pub passed_bytes: u64,
    /// By which law frames are held back now, in words.
    pub law: String,
    /// Occasions on which the kernel refused to send.
    pub refusals: u64,
    /// Why the first time.
    pub first_refusal: Option<String>,
}

/// What a line has done until now.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// From the first port to the second, and back.
    pub directions: [LaneAccount; 2],
    /// What the rings of each port dropped until the kernel was asked last: with the first interval, every
    /// tenth after it, and the end. Empty where a port did not tell.
    pub drops: [Vec<Drops>; 2],
    /// How often each port went down.
    pub downs: [u64; 2],
    /// Looks at rings.
    pub looks: u64,
    /// Those that found nothing.
    pub in_vain: u64,
    /// Since it began.
    pub elapsed: TicksDelta,
    /// Whether busy-polling did anything.
    pub busy_polling: BusyPolling,
}

/// What is told as an interval closes.
#[derive(Debug)]
pub struct Told<'a> {
    /// The interval, from 0.
    pub index: u64,
    /// The directions. Whoever takes their times leaves empty ones behind.
    pub lanes: &'a mut [Lane; 2],
    /// What was done until now.
    pub account: Account,
    /// Settings that were changed in this interval.
    pub changes: Vec<DelayChange>,
}

/// Is called on the line's thread as an interval closes.
pub type Watch<'a> = dyn FnMut(Told<'_>) + Send + 'a;

/// What a line is made of beside its ports.
pub(super) struct Settings {
    pub(super) laws: [Law; 2],
    pub(super) capacity: Capacity,
    /// Their memory, taken before the ports are there: frames that come meanwhile would fill the rings.
    pub(super) queues: [Fifo; 2],
    /// How fast frames may come.
    pub(super) fastest: Rate,
    pub(super) tells: [Tells; 2],
    pub(super) truths: Option<TruthWriter>,
    pub(super) duration: Option<Nanos>,
    pub(super) rate: Hertz,
    /// Numbers of the interfaces, in the user's order.
    pub(super) interfaces: [u32; 2],
}

/// Both directions and the ports between which they lead.
#[derive(Debug)]
pub struct Line<C, F> {
    pub(super) ports: Ports<F>,
    pub(super) lanes: [Lane; 2],
    laws: [Law; 2],
    capacity: Capacity,
    fastest: Rate,
    changes: Vec<DelayChange>,
    pub(super) hand: Hand<C>,
    rate: Hertz,
    scale: Scale,
    begin: Ticks,
    duration: Option<TicksDelta>,
}

impl<C: Counter, F: Frames> Line<C, F> {
    /// A line between two ports.
    pub(super) fn new(ports: (F, F), counter: C, settings: Settings) -> Self {
        let Settings { laws, capacity, queues, fastest, tells, truths, duration, rate, interfaces } =
            settings;
        let scale = Scale::new(rate);
        let ports = Ports::new(ports, 0, interfaces, scale);
        let [there, back] = ports.rooms();
        let [tells_there, tells_back] = tells;
        let [queue_there, queue_back] = queues;
        let lanes = [
            Lane::new(0, there, queue_there, tells_there, rate),
            Lane::new(1, back, queue_back, tells_back, rate),
        ];
        let begin = Ticks(0);
        Self {
            ports,
            lanes,
            laws,
            capacity,
            fastest,
            changes: Vec::new(),
            hand: Hand { counter, last: begin, looks: 0, in_vain: 0, truths },
            rate,
            scale,
            begin,
            duration: duration.map(|time| scale.ticks(time)),
        }
    }

    /// Ends it after so long.
    #[cfg(test)]
    pub(super) fn end_after(&mut self, time: Nanos) {
        self.duration = Some(self.scale.ticks(time));
    }

    /// Holds frames back until it is to end. `watch` is told at the end, too, with an account.
    pub fn run(&mut self, halt: &Halt<'_>, orders: &mut dyn Orders, watch: &mut Watch<'_>) -> Why {
        self.begin();
        let between = self.scale.ticks(ORDERS_EVERY);
        let mut intervals = Intervals::new(self.begin, self.duration, self.scale);
        let mut next_order = self.begin + between;
        let why = loop {
            if let Some(why) = self.round() {
                break why;
            }
            if self.hand.last >= next_order {
                next_order = self.hand.last + between;
                if self.obey(orders) {
                    break Why::Stopped;
                }
            }
            if self.hand.last >= intervals.end {
                let now = self.hand.last;
                if intervals.are_over(now) {
                    break Why::Duration;
                }
                self.ports.ask_now_and_then(intervals.index);
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
        halt.set();
        self.finish();
        self.tell(intervals.index, watch);
        why
    }

    /// From here on its laws hold.
    pub(super) fn begin(&mut self) {
        self.begin = self.hand.counter.read();
        self.hand.last = self.begin;
        for (lane, law) in self.lanes.iter_mut().zip(&self.laws) {
            lane.set(law, self.begin, self.rate);
        }
    }

    /// Nothing leaves any more.
    pub(super) fn finish(&mut self) {
        self.hand.last = self.ports.finish(&mut self.hand.counter);
        for lane in &mut self.lanes {
            lane.finish(&mut self.hand.truths);
        }
    }

    /// A look at each port that frames come by; why it is over, where it is.
    #[inline]
    pub(super) fn round(&mut self) -> Option<Why> {
        let Self { ports: Ports { first, second, .. }, lanes: [there, back], hand, .. } = self;
        if let Err(failure) = there.turn(first, second, hand) {
            return self.failed(0, failure);
        }
        match back.turn(second, first, hand) {
            Ok(()) => None,
            Err(failure) => self.failed(1, failure),
        }
    }

    /// What a failure comes to: an end, or a count.
    #[cold]
    fn failed(&mut self, lane: usize, failure: Failure) -> Option<Why> {
        let now = self.hand.counter.read();
        self.hand.last = now;
        let refused = |error: &PortError| self.lanes[lane].refused(error);
        self.ports.failed(lane, failure, now, refused)
    }

    /// Does what it is told; true where it is to end.
    #[cold]
    fn obey(&mut self, orders: &mut dyn Orders) -> bool {
        match orders.next() {
            None => false,
            Some(Order::Stop) => true,
            Some(Order::Set { direction, law }) => {
                orders.answer(self.set(direction, &law));
                false
            }
        }
    }

    /// Sets a law; says when, since it began.
    pub(super) fn set(&mut self, direction: Option<usize>, law: &Law) -> Result<Nanos, DelayError> {
        if let Some(direction) = direction.filter(|direction| *direction > 1) {
            return Err(DelayError::NoDirection(direction));
        }
        law.check()?;
        self.capacity.holds(law, self.fastest)?;
        let now = self.hand.counter.read();
        self.hand.last = now;
        let at = self.scale.nanos(self.begin, now);
        for lane in &mut self.lanes {
            if direction.is_none_or(|direction| direction == usize::from(lane.direction)) {
                lane.set(law, now, self.rate);
                let (direction, law) = (lane.direction, lane.law.clone());
                self.changes.push(DelayChange { at, direction, law });
            }
        }
        Ok(at)
    }

    fn tell(&mut self, index: u64, watch: &mut Watch<'_>) {
        let account = self.account();
        let changes = std::mem::take(&mut self.changes);
        watch(Told { index, lanes: &mut self.lanes, account, changes });
    }

    pub(super) fn account(&self) -> Account {
        let of = |lane: &Lane| LaneAccount {
            counts: lane.counts(),
            received_bytes: lane.received_bytes,
            passed_bytes: lane.passed_bytes,
            law: lane.law.clone(),
            refusals: lane.refusals,
            first_refusal: lane.first_refusal.clone(),
        };
        let [there, back] = &self.lanes;
        Account {
            directions: [of(there), of(back)],
            drops: self.ports.drops(),
            downs: self.ports.downs(),
            looks: self.hand.looks,
            in_vain: self.hand.in_vain,
            elapsed: self.hand.last.since(self.begin),
            busy_polling: self.ports.first.busy_polling(),
        }
    }
}
