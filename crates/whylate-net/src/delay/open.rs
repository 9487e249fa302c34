//! Opening the two ports of a delay line, and what it is before the first frame.

use whylate_clock::Counter;
use whylate_model::delay::DelayBase;
use whylate_model::forward::InterfaceCounts;
use whylate_model::{Hertz, Nanos};
use whylate_port::frames::{Frames, FramesFacts};
use whylate_port::{LinkOptions, PortError, Setup, Threads, Transport, Wait};

use super::base;
use super::capacity::Capacity;
use super::error::DelayError;
use super::fifo::Fifo;
use super::law::Law;
use super::line::{Line, Settings};
use super::mark::Tells;
use super::truth::{TruthReader, truths};
use crate::error::NetError;
use crate::forward::open::{both, claims, refuse, told};
use crate::forward::{Hold, counters};
use crate::schedule::Rate;

/// What is to be held back, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What carries the frames.
    pub transport: Transport,
    /// The two interfaces by their names.
    pub interfaces: [String; 2],
    /// What is asked of both.
    pub link: LinkOptions,
    /// How to look for frames: without sleeping.
    pub wait: Wait,
    /// From the first interface to the second, and back.
    pub laws: [Law; 2],
    /// How fast frames may come: with the longest delay it says how many wait.
    pub fastest: Rate,
    /// How much each direction can hold back; none derives it from `laws` and `fastest`.
    pub capacity: Option<Capacity>,
    /// Truths that wait to be written down at most ([`TRUTH_ROOM`](super::TRUTH_ROOM)); none where none are
    /// wanted.
    pub truths: Option<usize>,
    /// Ends after so long; none when it is told to.
    pub duration: Option<Nanos>,
}

impl Plan {
    /// How much each direction can hold back.
    ///
    /// # Errors
    /// A law that cannot be kept, or that needs more than there is.
    pub fn capacity(&self) -> Result<Capacity, DelayError> {
        for law in &self.laws {
            law.check()?;
        }
        let longest = self.laws.iter().map(Law::longest).max().unwrap_or_default();
        let capacity = self.capacity.unwrap_or_else(|| Capacity::of(longest, self.fastest));
        capacity.check()?;
        for law in &self.laws {
            capacity.holds(law, self.fastest)?;
        }
        Ok(capacity)
    }
}

/// A line that has not begun. Frames come already, and wait in the rings.
pub struct Opened<C> {
    /// Its thread's work.
    pub line: Line<C, Box<dyn Frames>>,
    /// The truths, for another thread; none where none are wanted.
    pub truths: Option<TruthReader>,
    /// What it adds by itself.
    pub base: DelayBase,
    /// How much each direction can hold back.
    pub capacity: Capacity,
    /// What the ports are.
    pub facts: [FramesFacts; 2],
    /// What the interfaces had counted before; none where that cannot be read.
    pub before: [Option<InterfaceCounts>; 2],
    /// Keeps the interfaces listening, and others away, for as long as this lives.
    pub hold: Hold,
}

/// Opens both ports in the calling thread's network namespace. Takes the line's memory and measures its
/// base on the CPU that the thread is on.
///
/// # Errors
/// A law cannot be kept or needs more than the capacity, a port cannot be had, both are one, they are
/// joined outside, or a forwarder or another line has one of them.
pub fn open<C: Counter + Clone + 'static>(
    plan: &Plan,
    counter: C,
    rate: Hertz,
    tells: [Tells; 2],
) -> Result<Opened<C>, NetError> {
    if plan.wait.sleeps() {
        let (backend, wait) = ("a delay line", plan.wait);
        return Err(PortError::WaitUnfit { backend, wait, choose: "spin or busy-poll" }.into());
    }
    let capacity = plan.capacity()?;
    let claims = claims(plan.transport, &plan.interfaces)?;
    let (writer, reader) = plan.truths.map(truths).unzip();
    let queues = [Fifo::new(capacity), Fifo::new(capacity)];
    let setup = Setup { counter: counter.clone(), rate, wait: plan.wait };
    let mut ends = both(plan.transport, &plan.interfaces, &plan.link, Threads::One, &setup)?;
    let measured = base::measure_apart(counter.clone(), rate, &mut ends, plan.truths.is_some());
    let (base, joined) = measured?;
    refuse(joined, &plan.interfaces)?;
    let facts = told(plan.transport, &plan.interfaces, &ends);
    let interfaces = [facts[0].index, facts[1].index];
    let settings = Settings {
        laws: plan.laws.clone(),
        capacity,
        queues,
        fastest: plan.fastest,
        tells,
        truths: writer,
        duration: plan.duration,
        rate,
        interfaces,
    };
    let [a, b] = ends;
    let line = Line::new((a.receiving, b.receiving), counter, settings);
    let before = interfaces.map(counters);
    let hold = Hold::new(claims, [a.heard, b.heard]);
    Ok(Opened { line, truths: reader, base, capacity, facts, before, hold })
}
