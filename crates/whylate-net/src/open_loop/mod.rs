//! The open loop: requests leave when they are intended, whatever came of those before.
//!
//! Three histograms tell what that does: service, response and lateness ([`Latencies`]). A client
//! that falls behind sends late and says so; what it could not send at all is in the response, as
//! a value of which only a lower bound is known; so is what was not answered within the timeout.
//!
//! With [`OpenLoop::most_under_way`] of 1 it is the client that waits for each reply, on a
//! schedule: the one whose service times hide what its response times show.
//!
//! A closed loop ([`Closed`](crate::schedule::Arrivals::Closed)) intends nothing: its next request leaves after the reply, and it
//! has service times alone.
//!
//! Guarantees: every intended request is in the response histogram, and in the account once it was
//! sent; memory depends on rate and timeout, not on the duration; what was sent when is never read
//! from the wire.

pub mod anomalies;
mod closed;
mod departures;
pub mod duo;
#[cfg(test)]
mod duo_proofs;
mod flight;
mod hot;
mod ledger;
#[cfg(test)]
mod odd_proofs;
mod outcome;
mod pacing;
#[cfg(test)]
mod pacing_proofs;
#[cfg(test)]
mod proofs;
mod receiver;
mod sender;
pub mod settled;
mod split;
pub mod stalls;
pub mod stamps;
#[cfg(test)]
mod stamps_proofs;
#[cfg(test)]
mod untold_proofs;

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::{Port, PortError};

use crate::closed_loop::{MAX_DURATION, MAX_TIMEOUT, MIN_TIMEOUT};
use crate::conversation::Scale;
use crate::error::{NetError, other_protocol};
use crate::message::{FAREWELL_BYTES, VERSION};
use crate::protocol::{Phase, Protocol};
use crate::schedule::Plan;

pub use crate::closed_loop::Ended;
pub use departures::Departures;
pub use ledger::{GivenUp, Latencies, Watch};
pub use outcome::OpenOutcome;
pub use pacing::Interrupted;

use flight::Flight;
use hot::Guard;
use ledger::Ledger;
use outcome::{Course, OfPort};
use pacing::Pacing;
use receiver::{Looked, Receiver, Waiting};
use sender::Sender;
use settled::Settling;
use stalls::Stalling;
use stamps::Stamping;

/// A greeting is repeated this often while the other end starts.
const GREET_EVERY: Nanos = Nanos(20_000_000);
/// Another end that has not answered after this time will not.
const GREET_LIMIT: Nanos = Nanos(5_000_000_000);
/// From the decision to begin to the first intended instant.
const LEAD: Nanos = Nanos(1_000_000);
/// Looks whose cost is measured for the guard; odd.
const LOOKS: usize = 101;
/// A farewell is sent this often, each time waiting for [`FAREWELL_WAIT`].
const FAREWELLS: u32 = 3;
const FAREWELL_WAIT: Nanos = Nanos(100_000_000);
/// A port that sleeps waits no longer than this, so that requests are given up and a stop is noticed.
const LOOK: Nanos = Nanos(20_000_000);
/// Greetings of this version that stay without an answer before one of an older version is tried.
const GREETINGS: u64 = 10;
/// Shorter intervals are taken as this: each has histograms.
const MIN_INTERVAL: Nanos = Nanos(1_000_000);
/// In the end, stamps that have not come are waited for so long.
const LAST_STAMPS: Nanos = Nanos(5_000_000);

/// Who is told what while the measurement goes on. All of it happens on the measuring thread.
pub struct Tell<'a> {
    /// Is called with each interval as it closes.
    pub intervals: &'a mut Watch<'a>,
    /// Takes a record of every measured request.
    pub requests: Option<&'a mut Settling>,
    /// Is told who the client's threads are, and when they were kept from running.
    pub stalls: Option<&'a mut Stalling>,
    /// Takes the kernel's stamps of every measured request, of a port that was asked for them
    /// ([`Port::stamp`]).
    pub stamps: Option<&'a mut Stamping>,
}

impl<'a> Tell<'a> {
    /// Intervals alone.
    pub fn intervals(watch: &'a mut Watch<'a>) -> Self {
        Self { intervals: watch, requests: None, stalls: None, stamps: None }
    }

    /// Taken apart and put together again: only so is it known for one call alone.
    fn for_this_call<'b>(self) -> Tell<'b>
    where
        'a: 'b,
    {
        Tell {
            intervals: self.intervals,
            requests: self.requests,
            stalls: self.stalls,
            stamps: self.stamps,
        }
    }
}

/// An open-loop measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenLoop {
    /// When requests are intended.
    pub plan: Plan,
    /// Size of requests and replies.
    pub bytes: usize,
    /// A request without a reply so long after it left is given up.
    pub timeout: Nanos,
    /// Requests under way at most; none bounds them by rate and timeout alone.
    pub most_under_way: Option<u64>,
    /// Nothing asks for a reply: only departures are measured, and the other end counts.
    pub one_way: bool,
    /// Time before the measurement, with requests by the same plan, discarded.
    pub warmup: Nanos,
    /// Time measured.
    pub duration: Nanos,
    /// Length of the intervals that have histograms of their own; 1 ms at least.
    pub interval: Nanos,
    /// Frequency of the counter.
    pub rate: Hertz,
}

impl OpenLoop {
    /// Refuses settings that cannot be measured.
    pub fn check(&self, protocol: &dyn Protocol) -> Result<(), NetError> {
        self.plan.check()?;
        let sizes = protocol.sizes();
        if !sizes.contains(&self.bytes) {
            let (protocol, least, most) = (protocol.name(), *sizes.start(), *sizes.end());
            let frames = smallest_frames(least);
            return Err(NetError::SizeOf { bytes: self.bytes, protocol, least, most, frames });
        }
        let mut request = vec![0; self.bytes];
        protocol.prepare(&mut request);
        if self.one_way && !protocol.one_way(&mut request) {
            return Err(NetError::AsksForReplies { protocol: protocol.name() });
        }
        if self.one_way && self.plan.is_closed() {
            return Err(NetError::NothingToWaitFor);
        }
        if !(MIN_TIMEOUT..=MAX_TIMEOUT).contains(&self.timeout) {
            return Err(NetError::Timeout(self.timeout));
        }
        if self.duration.0 == 0 || self.duration > MAX_DURATION || self.warmup > MAX_DURATION {
            return Err(NetError::Time { duration: self.duration, warmup: self.warmup });
        }
        Ok(())
    }

    /// Measures on the calling thread, until the schedule is over or `stop` is set. `counter` is the
    /// one that the port stamps by.
    pub fn run<P: Port + ?Sized, C: Counter + Clone>(
        &self,
        port: &mut P,
        counter: &mut C,
        protocol: &dyn Protocol,
        stop: &AtomicBool,
        mut tell: Tell<'_>,
    ) -> Result<OpenOutcome, NetError> {
        self.check(protocol)?;
        let facts = port.facts().clone();
        let mut half = None;
        let stamps = tell.stamps.as_deref_mut();
        let ready = match self.prepare((port, &mut half), counter, protocol, stamps, stop)? {
            Ready::Yes(guard, pacing) => Ok((guard, pacing)),
            Ready::Ended(why) => Err(why),
        };
        let now = counter.read_ordered().0;
        let scale = Scale::new(self.rate);
        let begin = Ticks(now.0 + scale.ticks(LEAD).0);
        let flight = Flight::new(self.plan.mean_rate(), self.timeout);
        let mut receiver = self.receiver(protocol, &flight, begin, tell.for_this_call());
        receiver.begin_stamps(port);
        let reached = ready.is_ok().then_some(begin);
        let pacing = ready.as_ref().map_or_else(|_| Pacing::new(self.rate), |(_, pacing)| *pacing);
        let (phase, time) = (Phase::Measured, (begin, self.duration));
        let mut sender = Sender::new(self, (protocol, phase), &flight, time, pacing);
        let (why, ended) = match ready {
            Err(why) => (why, None),
            Ok((guard, _)) => {
                receiver.ledger.thread(now);
                let until = self.until(begin);
                let (port, ends) = ((&mut *port, &mut half), (&mut sender, &mut receiver));
                let why = go(port, counter, scale, ends, guard, until, stop);
                (why, Some(counter.read_ordered().0))
            }
        };
        let mut abandoned = 0;
        if let (Ended::Failed(_), _) | (_, None) = (&why, ended) {
            abandoned = receiver.abandon();
        } else if drain(port, counter, &mut receiver).is_err() {
            abandoned = receiver.abandon();
        } else {
            last_stamps(port, counter, scale, &mut receiver);
            farewell(port, counter, scale, protocol, &mut receiver);
        }
        let of_port = OfPort::of(port, facts);
        let course = Course { began: reached, ended, why, abandoned };
        Ok(self.conclude(protocol, (sender, receiver), course, of_port))
    }

    /// Takes in what comes of measured requests.
    fn receiver<'a>(
        &self,
        protocol: &'a dyn Protocol,
        flight: &'a Flight,
        begin: Ticks,
        tell: Tell<'a>,
    ) -> Receiver<'a> {
        let parts = self.plan.arrivals.parts().len();
        let interval = self.interval.max(MIN_INTERVAL);
        let mut ledger = Ledger::new(self.rate, begin, interval, parts, tell);
        ledger.one_way = self.one_way;
        ledger.closed = self.plan.is_closed();
        let waiting = self.waiting(Phase::Measured);
        Receiver::new(protocol, self.bytes, waiting, flight, ledger)
    }

    /// Takes in what comes before that.
    fn warming_up<'a>(
        &self,
        protocol: &'a dyn Protocol,
        flight: &'a Flight,
        begin: Ticks,
        tell: Tell<'a>,
    ) -> Receiver<'a> {
        let ledger = Ledger::new(self.rate, begin, self.duration, 0, tell);
        Receiver::new(protocol, self.bytes, self.waiting(Phase::WarmUp), flight, ledger)
    }

    /// What is late catches up for as long as it would be waited for.
    fn until(&self, begin: Ticks) -> Ticks {
        let scale = Scale::new(self.rate);
        Ticks(begin.0 + scale.ticks(self.duration).0 + scale.ticks(self.timeout).0)
    }

    fn waiting(&self, phase: Phase) -> Waiting {
        let scale = Scale::new(self.rate);
        Waiting { phase, timeout: self.timeout, one_way: self.one_way, scale }
    }

    /// Greets, warms up, and measures what a look costs.
    fn prepare<P: Port + ?Sized, C: Counter + Clone>(
        &self,
        (port, half): (&mut P, &mut Half),
        counter: &mut C,
        protocol: &dyn Protocol,
        stamps: Option<&mut Stamping>,
        stop: &AtomicBool,
    ) -> Result<Ready, NetError> {
        let scale = Scale::new(self.rate);
        let flight = Flight::new(self.plan.mean_rate(), self.timeout);
        let mut nobody = |_, latencies: &mut Latencies| latencies.clear();
        let begin = counter.read_ordered().0;
        // Stamps of the warm-up are nobody's, and must not lie where replies are to find room.
        let tell = Tell { stamps, ..Tell::intervals(&mut nobody) };
        let mut receiver = self.warming_up(protocol, &flight, begin, tell);
        if !self.greet(port, counter, protocol, &mut receiver, stop)? {
            return Ok(Ready::Ended(Ended::Stopped));
        }
        let guard = guard(port, counter, &mut receiver).map_err(NetError::Port)?;
        let pacing = Pacing::new(self.rate);
        if self.warmup.0 == 0 {
            return Ok(Ready::Yes(guard, pacing));
        }
        let begin = Ticks(counter.read_ordered().0.0 + scale.ticks(LEAD).0);
        let until = Ticks(begin.0 + scale.ticks(self.warmup).0);
        let (phase, time) = (Phase::WarmUp, (begin, self.warmup));
        let mut sender = Sender::new(self, (protocol, phase), &flight, time, pacing);
        let ends = (&mut sender, &mut receiver);
        Ok(match go((port, half), counter, scale, ends, guard, until, stop) {
            Ended::Duration | Ended::Requests => Ready::Yes(guard, sender.pacing.next_phase()),
            other => Ready::Ended(other),
        })
    }

    /// Sends requests of the warm-up until one is answered; false when the run is to stop.
    fn greet<P: Port + ?Sized, C: Counter + Clone>(
        &self,
        port: &mut P,
        counter: &mut C,
        protocol: &dyn Protocol,
        receiver: &mut Receiver<'_>,
        stop: &AtomicBool,
    ) -> Result<bool, NetError> {
        let scale = Scale::new(self.rate);
        let mut request = vec![0; self.bytes];
        protocol.prepare(&mut request);
        let first = counter.read_ordered().0;
        for number in 0.. {
            protocol.number(Phase::WarmUp, number, &mut request);
            port.send(&request)?;
            if number % GREETINGS == GREETINGS - 1 && protocol.older(&mut request) {
                port.send(&request)?;
            }
            let sent = counter.read_ordered().0;
            let mut now = sent;
            while scale.nanos(sent, now) < GREET_EVERY {
                if receiver.look(port, GREET_EVERY)? == Looked::WarmUp {
                    return Ok(true);
                }
                let facts = port.facts();
                // What comes back as it left is of whatever version was asked for.
                if receiver.returned {
                    return Err(NetError::returned(&facts.path, protocol.name()));
                }
                if let Some(version) = receiver.other_version {
                    let path = facts.path.clone();
                    return Err(NetError::OtherVersion { path, version, ours: VERSION });
                }
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                now = counter.read_ordered().0;
            }
            let limit = scale.nanos(first, now);
            if limit >= GREET_LIMIT {
                let facts = port.facts();
                let (backend, path) = (facts.backend, facts.path.clone());
                let advice = other_protocol(protocol.name());
                return Err(NetError::NoReflector { backend, path, limit, advice });
            }
        }
        Ok(false)
    }
}

/// The frames around the smallest message, each with its check sequence; none is shorter than Ethernet's.
fn smallest_frames(message: usize) -> String {
    const ETHERNET: usize = 14 + 4;
    const SHORTEST: usize = 64;
    const UDP: usize = 8;
    let [four, four_with_tag, six, six_with_tag] = [20, 20 + 4, 40, 40 + 4]
        .map(|around: usize| (message + UDP + around + ETHERNET).max(SHORTEST));
    format!(
        "over UDP {message} are a frame of {four} bytes with IPv4, {four_with_tag} with a VLAN tag as \
         well, {six} with IPv6, and {six_with_tag} with both"
    )
}

/// Whether the measurement can begin.
enum Ready {
    Yes(Guard, Pacing),
    Ended(Ended),
}

/// What sends on a thread of its own, from the first time that it is needed: some ports can be divided
/// only once.
type Half = Option<Box<dyn Port>>;

/// Sends and receives as the port waits: on one thread where it spins, on two where it sleeps. A closed
/// loop needs one.
fn go<P: Port + ?Sized, C: Counter + Clone>(
    (port, half): (&mut P, &mut Half),
    counter: &mut C,
    scale: Scale,
    (sender, receiver): (&mut Sender<'_>, &mut Receiver<'_>),
    guard: Guard,
    until: Ticks,
    stop: &AtomicBool,
) -> Ended {
    if sender.is_closed() {
        return closed::pump(port, counter, sender, receiver, stop);
    }
    if !port.facts().wait.sleeps() {
        return hot::pump(port, counter, sender, receiver, guard, until, stop);
    }
    let sending: &mut dyn Port = match half.take().map_or_else(|| port.duplicate(), Ok) {
        Ok(sending) => &mut **half.insert(sending),
        Err(error) => return Ended::Failed(error),
    };
    split::pump((port, sending), counter, scale, sender, receiver, until, stop)
}

/// Twice the median cost of a look that finds nothing.
fn guard<P: Port + ?Sized, C: Counter>(
    port: &mut P,
    counter: &mut C,
    receiver: &mut Receiver<'_>,
) -> Result<Guard, PortError> {
    let mut costs = [0; LOOKS];
    for cost in &mut costs {
        let before = counter.read_ordered().0;
        receiver.look(port, Nanos(0))?;
        *cost = counter.read_ordered().0.since(before).0;
    }
    costs.sort_unstable();
    Ok(Guard(TicksDelta(2 * costs[LOOKS / 2])))
}

/// Takes in what is still under way, until it has come or is given up. Stamps are taken when nothing has
/// come: they must not wait as long as a reply is waited for.
fn drain<P: Port + ?Sized, C: Counter>(
    port: &mut P,
    counter: &mut C,
    receiver: &mut Receiver<'_>,
) -> Result<(), PortError> {
    while receiver.is_waiting() {
        if receiver.look(port, Nanos(0))? == Looked::Nothing {
            receiver.take_stamps(port)?;
        }
        receiver.give_up(counter.read_ordered().0);
    }
    Ok(())
}

/// Takes the stamps that are still to come, for a while.
fn last_stamps<P: Port + ?Sized, C: Counter>(
    port: &mut P,
    counter: &mut C,
    scale: Scale,
    receiver: &mut Receiver<'_>,
) {
    if !receiver.has_stamps() {
        return;
    }
    let began = counter.read_ordered().0;
    while scale.nanos(began, counter.read_ordered().0) < LAST_STAMPS {
        if receiver.take_stamps(port).is_err() {
            return;
        }
    }
}

/// Asks for the other end's account. Replies that come meanwhile are late.
fn farewell<P: Port + ?Sized, C: Counter>(
    port: &mut P,
    counter: &mut C,
    scale: Scale,
    protocol: &dyn Protocol,
    receiver: &mut Receiver<'_>,
) {
    receiver.set.drained();
    receiver.end_stamps();
    let mut message = vec![0; FAREWELL_BYTES];
    if !protocol.farewell(receiver.bytes(), &mut message) {
        return;
    }
    for _ in 0..FAREWELLS {
        if port.send(&message).is_err() {
            return;
        }
        let sent = counter.read_ordered().0;
        while scale.nanos(sent, counter.read_ordered().0) < FAREWELL_WAIT {
            if receiver.look(port, Nanos(0)).is_err() || receiver.account.is_some() {
                return;
            }
        }
    }
}
