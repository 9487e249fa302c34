//! The server: answers many clients until it is told to end.
//!
//! Every well-formed request is answered, whoever sent it; one client's farewell ends nothing but its
//! own account. An answer is never longer than its request, so a server cannot be used to send more
//! to a third party than was sent to it.
//!
//! Guarantees: memory has an end whatever is sent ([`accounts`]); whatever is not answered is
//! counted; a client that does not read, dies or talks nonsense costs the others nothing.

pub mod accounts;
pub mod frames;
mod intervals;
pub mod sink;
pub mod stalls;
#[cfg(test)]
mod tests;
mod told;
pub mod visits;

use whylate_model::{Hertz, Nanos, Ticks};
use whylate_port::{
    BusyPolling, Connections, FrameCounts, Port, PortError, PortFacts, Received, StampCounts,
};
use whylate_stats::histogram::Histogram;

use crate::error::NetError;
use crate::message::MAX_BYTES;
use crate::protocol::{Answer, Phase, Protocol};
use crate::reflect::ReflectEnd;
use crate::turns::Did;

use accounts::Accounts;
use stalls::Telling;
use visits::{Visit, Visiting};

pub use intervals::{Intervals, Times, Watch};
pub use told::{Circumstances, told_socket};

/// Whether to go on is asked at least this often.
const LOOK: Nanos = Nanos(100_000_000);
/// Errors of receiving in a row: one client's is no reason to end, a socket that is broken is.
const MOST_ERRORS: u32 = 1_000;

/// How to serve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Serve {
    /// Ends after so long without any message.
    pub idle: Nanos,
    /// Ends when the first client says that it has finished.
    pub once: bool,
    /// Frequency of the port's counter.
    pub rate: Hertz,
}

/// What a server did.
#[derive(Debug)]
pub struct Served {
    /// Measured requests answered.
    pub answered: u64,
    /// Requests of warm-ups, and greetings, answered.
    pub warm_ups: u64,
    /// Measured messages that ask for no answer, and are counted by client.
    pub one_way: u64,
    /// Messages of the protocol that ask for no answer.
    pub unasked: u64,
    /// Messages that were not well-formed, and not answered.
    pub foreign: u64,
    /// Messages of another version of the protocol, not answered: the version that came last, and how
    /// many there were.
    pub other_version: Option<(u8, u64)>,
    /// Answers that could not be sent.
    pub unsent: u64,
    /// Why the first of them could not.
    pub first_unsent: Option<String>,
    /// Residence of measured requests, in ticks of the port's counter: from the stamp of the
    /// reception to the one of the sending.
    pub residence: Histogram,
    /// By client.
    pub accounts: Accounts,
    /// What became of connections.
    pub connections: Connections,
    /// Whether busy-polling did anything.
    pub busy_polling: BusyPolling,
    /// The port.
    pub port: PortFacts,
    /// Why it ended.
    pub why: ReflectEnd,
    /// What became of the interface, where that ended it.
    pub lost: Option<String>,
    /// Of a port of whole frames: what became of those that came.
    pub frames: Option<FrameCounts>,
    /// Of a stamped port: what became of its stamps.
    pub stamps: Option<StampCounts>,
}

/// Answers requests until `go_on` says no, nothing comes for the idle limit, or, with `once`, a client
/// has finished. `go_on` is asked after every message and at least ten times a second.
///
/// # Errors
/// The port failed for good.
pub fn serve<P: Port + ?Sized>(
    port: &mut P,
    protocol: &dyn Protocol,
    settings: Serve,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Served, NetError> {
    serve_telling(port, protocol, settings, go_on, Tell::default())
}

/// Who is told what while a server goes on; all of it happens on the serving thread.
#[derive(Default)]
pub struct Tell<'a> {
    /// Is told when a server that spins was kept from running.
    pub stalls: Option<Telling>,
    /// Are told of residence and of distances of receptions, interval by interval.
    pub intervals: Option<Intervals<'a>>,
    /// Is told of every measured request, and of the stamps of a port that was asked for them.
    pub visits: Option<Visiting>,
}

/// As [`serve`], and tells what it is to tell meanwhile.
///
/// # Errors
/// The port failed for good.
pub fn serve_telling<P: Port + ?Sized>(
    port: &mut P,
    protocol: &dyn Protocol,
    settings: Serve,
    go_on: &mut dyn FnMut() -> bool,
    tell: Tell<'_>,
) -> Result<Served, NetError> {
    let Tell { stalls: mut telling, mut intervals, mut visits } = tell;
    // A turn is a single look where turns are judged.
    let limit = if telling.is_some() { Nanos(0) } else { LOOK };
    let (mut did, mut last) = (Did::Look, None);
    let mut buffer = vec![0; MAX_BYTES];
    let mut served = Served::of(port.facts().clone(), settings.rate);
    let mut heard: Option<Ticks> = None;
    let mut errors = 0;
    let idle = settings.idle.to_ticks(settings.rate);
    loop {
        let received = port.receive(&mut buffer, limit);
        if let (Some(telling), Ok(of)) = (&mut telling, &received) {
            let (at, doing) = match *of {
                Received::Message { at, .. } => (at, Did::Send),
                Received::Nothing { at } => (at, Did::Look),
            };
            telling.turn(at, if did == Did::Send { did } else { doing });
            (did, last) = (doing, Some(at));
        }
        if let (Some(intervals), Ok(of)) = (&mut intervals, &received) {
            let (Received::Message { at, .. } | Received::Nothing { at }) = *of;
            if intervals.is_over(at) {
                served.connections = port.connections();
                intervals.close(at, &served);
            }
        }
        match received {
            Ok(Received::Message { length, at }) => {
                errors = 0;
                heard = Some(at);
                let came = (&mut buffer[..], length, at);
                let finished = served.take(port, protocol, came, (&mut intervals, &mut visits));
                if finished && settings.once {
                    served.why = ReflectEnd::ToldTo;
                    break;
                }
            }
            Ok(Received::Nothing { at }) => {
                if at.since(*heard.get_or_insert(at)) >= idle {
                    served.why = ReflectEnd::Idle;
                    break;
                }
            }
            Err(
                PortError::PeerGone { .. } | PortError::Refused { .. } | PortError::NoRoute { .. },
            ) if errors < MOST_ERRORS => {
                errors += 1;
            }
            // What was answered until then is no less true for it.
            Err(error) if error.is_link_lost() => {
                served.why = ReflectEnd::LinkLost;
                served.lost = Some(error.to_string());
                break;
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(visits) = &mut visits {
            // What the network says of one client is no reason to end, and is said again by receiving.
            let _ = visits.take_stamps(port);
        }
        if !go_on() {
            break;
        }
    }
    if let Some(telling) = telling {
        telling.finish(last);
    }
    served.connections = port.connections();
    served.busy_polling = port.busy_polling();
    served.frames = port.frame_counts().ok().flatten();
    served.stamps = port.stamp_counts();
    if let Some(socket) = &mut served.port.socket {
        socket.incoming = port.incoming();
    }
    if let Some(intervals) = intervals {
        intervals.finish(&served);
    }
    Ok(served)
}

impl Served {
    fn of(port: PortFacts, rate: Hertz) -> Self {
        Self {
            answered: 0,
            warm_ups: 0,
            one_way: 0,
            unasked: 0,
            foreign: 0,
            other_version: None,
            unsent: 0,
            first_unsent: None,
            residence: Histogram::new(),
            accounts: Accounts::new(rate),
            connections: Connections::default(),
            busy_polling: BusyPolling::NotAsked,
            port,
            why: ReflectEnd::Stopped,
            lost: None,
            frames: None,
            stamps: None,
        }
    }

    /// Deals with one message; says whether a client has finished with it.
    #[inline]
    fn take<P: Port + ?Sized>(
        &mut self,
        port: &mut P,
        protocol: &dyn Protocol,
        (buffer, length, at): (&mut [u8], usize, Ticks),
        (intervals, visits): (&mut Option<Intervals<'_>>, &mut Option<Visiting>),
    ) -> bool {
        // Longer than any message that is ours.
        let Some(message) = buffer.get_mut(..length) else {
            self.foreign += 1;
            return false;
        };
        match protocol.answer(message) {
            Answer::Reply(phase) => {
                let sent = port.send(message);
                let flow = protocol.flow(message);
                match sent {
                    Ok(sent) if phase == Phase::Measured => {
                        let residence = sent.since(at).0;
                        self.answered += 1;
                        self.residence.record(residence);
                        if let (Some(visits), Some(sequence)) = (visits, protocol.sequence(message))
                        {
                            visits.answered(port, Visit { sequence, received: at, sent });
                        }
                        if let Some(intervals) = intervals {
                            intervals.answered(at, sent);
                        }
                        self.accounts.answered(flow, port.peer(), at, Some(residence));
                    }
                    Ok(_) => {
                        self.warm_ups += 1;
                        self.accounts.answered(flow, port.peer(), at, None);
                    }
                    Err(error) => self.not_sent(&error),
                }
                false
            }
            Answer::Farewell => {
                let flow = protocol.flow(message);
                let Some(report) = self.accounts.finish(flow, port.peer(), self.foreign) else {
                    return false;
                };
                if let Some(length) = protocol.account(report, message)
                    && let Err(error) = port.send(&message[..length])
                {
                    self.not_sent(&error);
                }
                true
            }
            Answer::OneWay(phase, number) => {
                let number = (phase == Phase::Measured).then_some(number);
                match number {
                    Some(_) => self.one_way += 1,
                    None => self.warm_ups += 1,
                }
                let flow = protocol.flow(message);
                let before = self.accounts.counted(flow, port.peer(), at, number);
                if let (Some(before), Some(intervals)) = (before, intervals) {
                    intervals.received(before, at);
                }
                false
            }
            Answer::Nothing => {
                self.unasked += 1;
                false
            }
            Answer::Foreign => {
                self.foreign(protocol, message);
                false
            }
        }
    }

    #[cold]
    fn foreign(&mut self, protocol: &dyn Protocol, message: &[u8]) {
        match protocol.other_version(message) {
            Some(version) => {
                let so_far = self.other_version.map_or(0, |(_, messages)| messages);
                self.other_version = Some((version, so_far + 1));
            }
            None => self.foreign += 1,
        }
    }

    #[cold]
    fn not_sent(&mut self, error: &PortError) {
        self.unsent += 1;
        self.first_unsent.get_or_insert_with(|| error.to_string());
    }
}
