//! The server: answers many clients until it is told to end.
//!
//! Every well-formed request is answered, whoever sent it; one client's farewell ends nothing but its
//! own account. An answer is never longer than its request, so a server cannot be used to send more
//! to a third party than was sent to it.
//!
//! Guarantees: memory has an end whatever is sent ([`accounts`]); whatever is not answered is
//! counted; a client that does not read, dies or talks nonsense costs the others nothing.

pub mod accounts;
#[cfg(test)]
mod tests;
mod told;

use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::{BusyPolling, Connections, Port, PortError, PortFacts, Received};
use whylate_stats::histogram::Histogram;

use crate::error::NetError;
use crate::message::MAX_BYTES;
use crate::protocol::{Answer, Phase, Protocol};
use crate::reflect::ReflectEnd;

use accounts::Accounts;

pub use told::Circumstances;

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
    /// Messages of the protocol that ask for no answer.
    pub unasked: u64,
    /// Messages that were not well-formed, and not answered.
    pub foreign: u64,
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
    let ticks = |time: Nanos| TicksDelta((time.0 as f64 * settings.rate.0 / 1e9) as u64);
    let mut buffer = vec![0; MAX_BYTES];
    let mut served = Served::of(port.facts().clone(), ticks(accounts::SILENT));
    let mut heard: Option<Ticks> = None;
    let mut errors = 0;
    let idle = ticks(settings.idle);
    loop {
        match port.receive(&mut buffer, LOOK) {
            Ok(Received::Message { length, at }) => {
                errors = 0;
                heard = Some(at);
                let finished = served.take(port, protocol, &mut buffer, (length, at));
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
            Err(error) => return Err(error.into()),
        }
        if !go_on() {
            break;
        }
    }
    served.connections = port.connections();
    served.busy_polling = port.busy_polling();
    Ok(served)
}

impl Served {
    fn of(port: PortFacts, silent: TicksDelta) -> Self {
        Self {
            answered: 0,
            warm_ups: 0,
            unasked: 0,
            foreign: 0,
            unsent: 0,
            first_unsent: None,
            residence: Histogram::new(),
            accounts: Accounts::new(silent),
            connections: Connections::default(),
            busy_polling: BusyPolling::NotAsked,
            port,
            why: ReflectEnd::Stopped,
        }
    }

    /// Deals with one message; says whether a client has finished with it.
    #[inline]
    fn take<P: Port + ?Sized>(
        &mut self,
        port: &mut P,
        protocol: &dyn Protocol,
        buffer: &mut [u8],
        (length, at): (usize, Ticks),
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
            Answer::Nothing => {
                self.unasked += 1;
                false
            }
            Answer::Foreign => {
                self.foreign += 1;
                false
            }
        }
    }

    #[cold]
    fn not_sent(&mut self, error: &PortError) {
        self.unsent += 1;
        self.first_unsent.get_or_insert_with(|| error.to_string());
    }
}
