//! A port without a kernel: a peer inside the port, time that moves only when it is used, and
//! faults planted message by message. For proofs: what was planted is known exactly.
//!
//! The counter of this port counts nanoseconds ([`RATE`]). A message takes [`SEND_NS`] to send; an
//! answer is received at the instant planned for it, or when the receiver looks, if that is later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use whylate_clock::Counter;
use whylate_model::{CpuId, Hertz, Nanos, Ticks};

use crate::error::PortError;
use crate::facts::{PortFacts, StampFacts};
use crate::port::{Port, Received, Wait};

/// The frequency of this port's counter.
pub const RATE: Hertz = Hertz(1e9);
/// What sending a message takes.
pub const SEND_NS: u64 = 100;
/// What reading [`MemoryCounter`] takes.
pub const READ_NS: u64 = 10;
const BACKEND: &str = "memory";
const MAX_MESSAGE: usize = 65_507;

/// Decides what happens to a message: is called with each, in the order sent.
pub trait Peer: Send {
    /// Plans the answers to one message, as many as it likes: none for a loss, two for a duplicate.
    fn take(&mut self, message: &[u8], network: &mut Network);
}

impl<F: FnMut(&[u8], &mut Network) + Send> Peer for F {
    fn take(&mut self, message: &[u8], network: &mut Network) {
        self(message, network);
    }
}

/// What is under way to the receiver.
#[derive(Debug, Default)]
pub struct Network {
    clock: Arc<AtomicU64>,
    arrivals: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    planned: u64,
    dead: bool,
}

impl Network {
    /// Lets `message` arrive `after` the sending that is being planned for. Messages planned for
    /// one instant arrive in the order planned.
    pub fn arrive(&mut self, after: Nanos, message: Vec<u8>) {
        self.planned += 1;
        let arrival = self.now().saturating_add(after.0);
        self.arrivals.push(Reverse((arrival, self.planned, message)));
    }

    /// The port's time, in nanoseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    fn set_now(&self, now: u64) {
        self.clock.store(now, Ordering::Relaxed);
    }

    /// From now on nobody is at the other end; what is under way is lost.
    pub fn die(&mut self) {
        self.dead = true;
        self.arrivals.clear();
    }
}

/// The counter of a [`MemoryPort`]: it counts the port's nanoseconds, and a reading takes
/// [`READ_NS`] of them.
#[derive(Debug, Clone)]
pub struct MemoryCounter(Arc<AtomicU64>);

impl MemoryCounter {
    /// Whoever uses the port does not run for so long.
    pub fn stop_for(&self, length: Nanos) {
        self.0.fetch_add(length.0, Ordering::Relaxed);
    }
}

impl Counter for MemoryCounter {
    const KIND: &'static str = "simulated";

    fn read(&mut self) -> Ticks {
        Ticks(self.0.fetch_add(READ_NS, Ordering::Relaxed))
    }

    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        (self.read(), CpuId(0))
    }

    fn cpu(&mut self) -> CpuId {
        CpuId(0)
    }
}

/// A port to a [`Peer`] inside it.
#[derive(Debug)]
pub struct MemoryPort<P> {
    peer: P,
    network: Network,
    facts: PortFacts,
}

impl<P: Peer> MemoryPort<P> {
    /// A port to this peer, at time 0.
    pub fn new(peer: P) -> Self {
        let stamps = StampFacts {
            source: "simulated nanoseconds".to_owned(),
            resolution_ns: 1.0,
            read_cost_min_ns: 0.0,
            read_cost_median_ns: 0.0,
            precision_ns: 0.0,
        };
        let path = "one process".to_owned();
        let (backend, wait, max_message) = (BACKEND, Wait::Spin, MAX_MESSAGE);
        let (socket, frames) = (None, None);
        let facts = PortFacts { backend, path, wait, stamps, max_message, socket, frames };
        Self { peer, network: Network::default(), facts }
    }

    /// The counter that this port stamps by.
    #[must_use]
    pub fn counter(&self) -> MemoryCounter {
        MemoryCounter(Arc::clone(&self.network.clock))
    }
}

impl<P: Peer> Port for MemoryPort<P> {
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        if self.network.dead {
            return Err(PortError::PeerGone { backend: BACKEND });
        }
        let bytes = message.len();
        if bytes > MAX_MESSAGE {
            return Err(PortError::TooLong { backend: BACKEND, bytes, max: MAX_MESSAGE });
        }
        let at = Ticks(self.network.now());
        self.peer.take(message, &mut self.network);
        self.network.set_now(at.0 + SEND_NS);
        Ok(at)
    }

    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let network = &mut self.network;
        if network.dead {
            return Err(PortError::PeerGone { backend: BACKEND });
        }
        let deadline = network.now().saturating_add(limit.0);
        let in_time = |first: &Reverse<(u64, u64, Vec<u8>)>| first.0.0 <= deadline;
        if !network.arrivals.peek().is_some_and(in_time) {
            network.set_now(deadline);
            return Ok(Received::Nothing { at: Ticks(deadline) });
        }
        let Some(Reverse((arrival, _, message))) = network.arrivals.pop() else {
            unreachable!("invariant: one was seen a moment ago");
        };
        network.set_now(network.now().max(arrival));
        let kept = message.len().min(buffer.len());
        buffer[..kept].copy_from_slice(&message[..kept]);
        Ok(Received::Message { length: message.len(), at: Ticks(network.now()) })
    }

    fn facts(&self) -> &PortFacts {
        &self.facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_arrive_when_planned_and_in_the_order_planned() {
        let mut port = MemoryPort::new(|message: &[u8], network: &mut Network| {
            network.arrive(Nanos(900), message.to_vec());
            network.arrive(Nanos(300), b"first".to_vec());
            network.arrive(Nanos(900), b"third".to_vec());
        });
        let mut buffer = [0; 5];
        let sent = port.send(b"again").unwrap();
        for (text, after) in [(b"first", 300), (b"again", 900), (b"third", 900)] {
            let got = port.receive(&mut buffer, Nanos(10_000)).unwrap();
            assert_eq!(got, Received::Message { length: 5, at: Ticks(sent.0 + after) });
            assert_eq!(&buffer, text);
        }
        let got = port.receive(&mut buffer, Nanos(50)).unwrap();
        assert_eq!(got, Received::Nothing { at: Ticks(sent.0 + 950) });
    }

    #[test]
    fn a_message_that_came_before_the_receiver_looked_is_stamped_when_it_looks() {
        let mut port = MemoryPort::new(|message: &[u8], network: &mut Network| {
            network.arrive(Nanos(30), message.to_vec());
        });
        let sent = port.send(b"early").unwrap();
        let got = port.receive(&mut [0; 8], Nanos(0)).unwrap();
        assert_eq!(got, Received::Message { length: 5, at: Ticks(sent.0 + SEND_NS) });
    }

    #[test]
    fn a_message_larger_than_the_buffer_is_cut_and_its_length_told() {
        let mut port = MemoryPort::new(|message: &[u8], network: &mut Network| {
            network.arrive(Nanos(0), message.to_vec());
        });
        port.send(b"abcdef").unwrap();
        let mut buffer = [0; 4];
        let got = port.receive(&mut buffer, Nanos(0)).unwrap();
        assert!(matches!(got, Received::Message { length: 6, .. }));
        assert_eq!(&buffer, b"abcd");
    }

    #[test]
    fn a_dead_peer_is_told_apart_from_a_silent_one() {
        let mut port = MemoryPort::new(|_: &[u8], network: &mut Network| network.die());
        let mut buffer = [0; 4];
        assert!(matches!(port.receive(&mut buffer, Nanos(9)), Ok(Received::Nothing { .. })));
        port.send(b"x").unwrap();
        assert!(port.receive(&mut buffer, Nanos(9)).unwrap_err().is_peer_gone());
        assert!(port.send(b"x").unwrap_err().is_peer_gone());
    }
}
