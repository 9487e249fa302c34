//! The open loop: requests leave when they are intended, whatever came of those before.
//!
//! Three histograms tell what that does: service, response and lateness ([`Latencies`]). A client
//! that falls behind sends late and says so; what it could not send at all is in the response, as
//! a value of which only a lower bound is known; so is what was not answered within the timeout.
//!
//! With [`OpenLoop::most_under_way`] of 1 it is the client that waits for each reply, on a
//! schedule: the one whose service times hide what its response times show.
//!
//! Guarantees: every intended request is in the response histogram, and in the account once it was
//! sent; memory depends on rate and timeout, not on the duration; what was sent when is never read
//! from the wire.

mod departures;
mod flight;
mod hot;
mod ledger;
#[cfg(test)]
mod proofs;
mod receiver;
mod sender;
mod split;

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::{Port, PortError, PortFacts};

use crate::closed_loop::{MAX_DURATION, MAX_TIMEOUT, MIN_TIMEOUT};
use crate::conversation::Scale;
use crate::error::NetError;
use crate::message::{FAREWELL_BYTES, ReflectorReport};
use crate::protocol::{Phase, Protocol};
use crate::schedule::Plan;
use crate::sequence::Accounting;

pub use crate::closed_loop::Ended;
pub use departures::Departures;
pub use ledger::{GivenUp, Latencies, Watch};

use flight::Flight;
use hot::Guard;
use ledger::Ledger;
use receiver::{Looked, Receiver, Waiting};
use sender::Sender;

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
/// Shorter intervals are taken as this: each has histograms.
const MIN_INTERVAL: Nanos = Nanos(1_000_000);

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
    /// Time before the measurement, with requests by the same plan, discarded.
    pub warmup: Nanos,
    /// Time measured.
    pub duration: Nanos,
    /// Length of the intervals that have histograms of their own; 1 ms at least.
    pub interval: Nanos,
    /// Frequency of the counter.
    pub rate: Hertz,
}

/// What an open loop leaves behind.
#[derive(Debug)]
pub struct OpenOutcome {
    /// Latencies of all intended requests.
    pub latencies: Latencies,
    /// The same by parts of the pattern, labelled by the plan's [`parts`].
    ///
    /// [`parts`]: crate::schedule::Arrivals::parts
    pub parts: Vec<Latencies>,
    /// Values of which only a lower bound is known.
    pub given_up: GivenUp,
    /// Requests under way when the port failed: in no histogram.
    pub abandoned: u64,
    /// What left, and when.
    pub departures: Departures,
    /// What became of every request and every message.
    pub accounting: Accounting,
    /// The beginning of the measured schedule; none when it was not reached.
    pub began: Option<Ticks>,
    /// When sending ended.
    pub ended: Option<Ticks>,
    /// Why the measurement ended.
    pub why: Ended,
    /// The port.
    pub port: PortFacts,
    /// The protocol.
    pub protocol: &'static str,
    /// The other end's own account, where its protocol has one and it arrived.
    pub account: Option<ReflectorReport>,
}

impl OpenOutcome {
    /// Does every intended request have its place, in the histograms and in the account?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let (all, left) = (&self.latencies, self.departures.sent);
        self.accounting.adds_up()
            && self.accounting.sent == left
            && all.service.len() + self.abandoned == left
            && all.response.len() + self.abandoned == self.departures.intended
            && all.lateness.len() == all.response.len()
            && left + self.given_up.never_sent == self.departures.intended
    }
}

impl OpenLoop {
    /// Refuses settings that cannot be measured.
    pub fn check(&self, protocol: &dyn Protocol) -> Result<(), NetError> {
        self.plan.check()?;
        let sizes = protocol.sizes();
        if !sizes.contains(&self.bytes) {
            let (protocol, least, most) = (protocol.name(), *sizes.start(), *sizes.end());
            return Err(NetError::SizeOf { bytes: self.bytes, protocol, least, most });
        }
        if !(MIN_TIMEOUT..=MAX_TIMEOUT).contains(&self.timeout) {
            return Err(NetError::Timeout(self.timeout));
        }
        if self.duration.0 == 0 || self.duration > MAX_DURATION || self.warmup > MAX_DURATION {
            return Err(NetError::Time { duration: self.duration, warmup: self.warmup });
        }
        Ok(())
    }

    /// Measures on the calling thread, until the schedule is over or `stop` is set. Calls `watch`
    /// with each interval as it closes. `counter` is the one that the port stamps by.
    pub fn run<P: Port + ?Sized, C: Counter + Clone>(
        &self,
        port: &mut P,
        counter: &mut C,
        protocol: &dyn Protocol,
        stop: &AtomicBool,
        watch: &mut Watch<'_>,
    ) -> Result<OpenOutcome, NetError> {
        self.check(protocol)?;
        let facts = port.facts().clone();
        let ready = match self.prepare(port, counter, protocol, stop)? {
            Ready::Yes(guard) => Ok(guard),
            Ready::Ended(why) => Err(why),
        };
        let now = counter.read_ordered().0;
        let scale = Scale::new(self.rate);
        let begin = Ticks(now.0 + scale.ticks(LEAD).0);
        let flight = Flight::new(self.plan.mean_rate(), self.timeout);
        let parts = self.plan.arrivals.parts().len();
        let ledger = Ledger::new(self.rate, begin, self.interval.max(MIN_INTERVAL), parts, watch);
        let waiting = Waiting { phase: Phase::Measured, timeout: self.timeout, scale };
        let mut receiver = Receiver::new(protocol, self.bytes, waiting, &flight, ledger);
        let mut sender =
            Sender::new(self, protocol, Phase::Measured, &flight, begin, self.duration);
        let measured = ready.is_ok();
        let (why, ended) = match ready {
            Err(why) => (why, None),
            Ok(guard) => {
                // What is late catches up for as long as it would be waited for.
                let until = begin.0 + scale.ticks(self.duration).0 + scale.ticks(self.timeout).0;
                let until = Ticks(until);
                let why =
                    go(port, counter, scale, (&mut sender, &mut receiver), guard, until, stop);
                (why, Some(counter.read_ordered().0))
            }
        };
        let mut abandoned = 0;
        if let (Ended::Failed(_), _) | (_, None) = (&why, ended) {
            abandoned = receiver.abandon();
        } else if drain(port, counter, &mut receiver).is_err() {
            abandoned = receiver.abandon();
        } else {
            farewell(port, counter, scale, protocol, &mut receiver);
        }
        if let (Ended::Duration, Some(ended)) = (&why, ended) {
            let ledger = &mut receiver.ledger;
            sender.rest(|intended, part| ledger.never_sent(intended, part, ended));
        }
        receiver.ledger.close();
        Ok(OpenOutcome {
            latencies: receiver.ledger.all,
            parts: receiver.ledger.parts,
            given_up: receiver.ledger.given_up,
            abandoned,
            departures: sender.departures,
            accounting: receiver.set.counts(),
            began: measured.then_some(begin),
            ended,
            why,
            port: facts,
            protocol: protocol.name(),
            account: receiver.account,
        })
    }

    /// Greets, warms up, and measures what a look costs.
    fn prepare<P: Port + ?Sized, C: Counter + Clone>(
        &self,
        port: &mut P,
        counter: &mut C,
        protocol: &dyn Protocol,
        stop: &AtomicBool,
    ) -> Result<Ready, NetError> {
        let scale = Scale::new(self.rate);
        let flight = Flight::new(self.plan.mean_rate(), self.timeout);
        let mut nobody = |_, latencies: &mut Latencies| latencies.clear();
        let begin = counter.read_ordered().0;
        let ledger = Ledger::new(self.rate, begin, self.duration, 0, &mut nobody);
        let waiting = Waiting { phase: Phase::WarmUp, timeout: self.timeout, scale };
        let mut receiver = Receiver::new(protocol, self.bytes, waiting, &flight, ledger);
        if !self.greet(port, counter, protocol, &mut receiver, stop)? {
            return Ok(Ready::Ended(Ended::Stopped));
        }
        let guard = guard(port, counter, &mut receiver).map_err(NetError::Port)?;
        if self.warmup.0 == 0 {
            return Ok(Ready::Yes(guard));
        }
        let begin = Ticks(counter.read_ordered().0.0 + scale.ticks(LEAD).0);
        let until = Ticks(begin.0 + scale.ticks(self.warmup).0);
        let mut sender = Sender::new(self, protocol, Phase::WarmUp, &flight, begin, self.warmup);
        Ok(match go(port, counter, scale, (&mut sender, &mut receiver), guard, until, stop) {
            Ended::Duration | Ended::Requests => Ready::Yes(guard),
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
            let sent = counter.read_ordered().0;
            let mut now = sent;
            while scale.nanos(sent, now) < GREET_EVERY {
                if receiver.look(port, GREET_EVERY)? == Looked::WarmUp {
                    return Ok(true);
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
                return Err(NetError::NoReflector { backend, path, limit });
            }
        }
        Ok(false)
    }
}

/// Whether the measurement can begin.
enum Ready {
    Yes(Guard),
    Ended(Ended),
}

/// Sends and receives as the port waits: on one thread where it spins, on two where it sleeps.
fn go<P: Port + ?Sized, C: Counter + Clone>(
    port: &mut P,
    counter: &mut C,
    scale: Scale,
    (sender, receiver): (&mut Sender<'_>, &mut Receiver<'_>),
    guard: Guard,
    until: Ticks,
    stop: &AtomicBool,
) -> Ended {
    if !port.facts().wait.sleeps() {
        return hot::pump(port, counter, sender, receiver, guard, until, stop);
    }
    match port.duplicate() {
        Ok(mut sending) => {
            let ports = (port, &mut *sending as &mut dyn Port);
            split::pump(ports, counter, scale, sender, receiver, until, stop)
        }
        Err(error) => Ended::Failed(error),
    }
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

/// Takes in what is still under way, until it has come or is given up.
fn drain<P: Port + ?Sized, C: Counter>(
    port: &mut P,
    counter: &mut C,
    receiver: &mut Receiver<'_>,
) -> Result<(), PortError> {
    while receiver.is_waiting() {
        receiver.look(port, Nanos(0))?;
        receiver.give_up(counter.read_ordered().0);
    }
    Ok(())
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
    let mut message = vec![0; FAREWELL_BYTES];
    if !protocol.farewell(&mut message) {
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
