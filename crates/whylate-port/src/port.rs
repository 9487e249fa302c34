//! The trait that every backend implements.

use whylate_model::{Hertz, Nanos, Ticks};

use crate::error::PortError;
use crate::facts::PortFacts;
use crate::host::FrameCounts;
use crate::peer::Peer;
use crate::queues::IncomingFacts;
use crate::stamps::{Stamp, StampCounts, StampWish};
use crate::waiting::BusyPolling;

pub use crate::waiting::Wait;

/// A message that the kernel does not take for this long is not taken at all: the other end's
/// queue is full and nobody reads it.
pub(crate) const SEND_LIMIT: Nanos = Nanos(1_000_000_000);

/// Sends and receives whole messages, and stamps them.
///
/// A client's port sends to its server. A server's port sends to whoever sent the last message that
/// it received, and never waits for one that does not read.
pub trait Port: Send {
    /// Sends one message. Gives the stamp of the sending: for a socket the counter's reading
    /// immediately before the system call.
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError>;

    /// Waits for one message, for `limit` at most; a limit of 0 looks once.
    ///
    /// The kernel may let a blocking wait go on some milliseconds beyond its limit. That the other
    /// end is gone may show only when the next message is sent.
    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError>;

    /// What a reader of this port's numbers must know.
    fn facts(&self) -> &PortFacts;

    /// A second port on the same socket, so that one thread can receive while another sends. Only
    /// one of the two may receive. Not for servers, nor for ports without a socket.
    fn duplicate(&self) -> Result<Box<dyn Port>, PortError> {
        Err(PortError::NotDivisible { backend: self.facts().backend })
    }

    /// Of a server's port: who sent the last message received.
    fn peer(&self) -> Option<&Peer> {
        None
    }

    /// Whether busy-polling does anything, by the messages received so far.
    fn busy_polling(&self) -> BusyPolling {
        BusyPolling::NotAsked
    }

    /// Where the last message came in, as far as the kernel tells.
    fn incoming(&self) -> IncomingFacts {
        IncomingFacts::default()
    }

    /// Of a server's port: what became of connections.
    fn connections(&self) -> Connections {
        Connections::default()
    }

    /// Of a port over whole frames: what became of those it received, and what was dropped before it.
    fn frame_counts(&mut self) -> Result<Option<FrameCounts>, PortError> {
        Ok(None)
    }

    /// Asks for the kernel's stamps of messages. To be called before the port is divided, and before
    /// what is to be stamped is sent; once.
    ///
    /// # Errors
    /// The backend has none, or the kernel does not know a kind that was asked for.
    fn stamp(&mut self, _wish: &StampWish) -> Result<(), PortError> {
        Err(PortError::StampsNotHere { backend: self.facts().backend })
    }

    /// Hands over the stamps that have come since: of receptions all, of sendings a bounded number. Never
    /// waits. Of a divided port only the half that receives may be asked.
    ///
    /// # Errors
    /// The socket could not be read, or the network said something that nobody has been told yet.
    fn take_stamps(&mut self, _each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
        Ok(())
    }

    /// Hands over the messages that were sent since and of which less was asked for than is wished, because
    /// they are none of the sample or a card had no room for one more: the number of each, and the kinds
    /// that were not asked for, a bit each ([`StampKind::bit`](crate::StampKind::bit)). Of a divided port
    /// only the half that receives may be asked.
    fn take_not_asked(&mut self, _each: &mut dyn FnMut(u64, u8)) {}

    /// What became of the stamps; none where none were asked for.
    fn stamp_counts(&self) -> Option<StampCounts> {
        None
    }

    /// Messages that a stamped port was given to send, and that it received, so far.
    fn numbers(&self) -> Option<(u64, u64)> {
        None
    }
}

impl<P: Port + ?Sized> Port for Box<P> {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        (**self).send(message)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        (**self).receive(buffer, limit)
    }

    fn facts(&self) -> &PortFacts {
        (**self).facts()
    }

    fn duplicate(&self) -> Result<Box<dyn Port>, PortError> {
        (**self).duplicate()
    }

    #[inline]
    fn peer(&self) -> Option<&Peer> {
        (**self).peer()
    }

    fn busy_polling(&self) -> BusyPolling {
        (**self).busy_polling()
    }

    fn incoming(&self) -> IncomingFacts {
        (**self).incoming()
    }

    fn connections(&self) -> Connections {
        (**self).connections()
    }

    fn frame_counts(&mut self) -> Result<Option<FrameCounts>, PortError> {
        (**self).frame_counts()
    }

    fn stamp(&mut self, wish: &StampWish) -> Result<(), PortError> {
        (**self).stamp(wish)
    }

    fn take_stamps(&mut self, each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
        (**self).take_stamps(each)
    }

    fn take_not_asked(&mut self, each: &mut dyn FnMut(u64, u8)) {
        (**self).take_not_asked(each);
    }

    fn stamp_counts(&self) -> Option<StampCounts> {
        (**self).stamp_counts()
    }

    fn numbers(&self) -> Option<(u64, u64)> {
        (**self).numbers()
    }
}

/// How a wait for a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A message came.
    Message {
        /// Its length; more than the buffer holds when its end was cut off.
        length: usize,
        /// The stamp of the reception: for a socket the counter's reading immediately after the
        /// system call that brought the message. Of messages that one call brought from a stream,
        /// each has the stamp of that call.
        at: Ticks,
    },
    /// Nothing came within the limit, or a signal cut the wait short: `at` tells which.
    Nothing {
        /// The counter's reading when the port gave up.
        at: Ticks,
    },
}

/// What became of the connections of a server; all zero where there are none to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connections {
    /// Taken.
    pub accepted: u64,
    /// Turned away: as many were open as a port has room for.
    pub turned_away: u64,
    /// Closed because no message began like what came.
    pub broken: u64,
    /// Closed by the client, or with it, in the middle of a message.
    pub cut: u64,
    /// Closed because an answer was taken in part only: the client does not read.
    pub stuck: u64,
    /// Open now.
    pub open: u64,
    /// Of those accepted: the kernel refused the stamps that were asked for, and they are served without.
    pub unstamped: u64,
}

/// What a socket port needs beside its socket.
#[derive(Debug, Clone, Copy)]
pub struct Setup<C> {
    /// Stamps messages and, where a wait spins, bounds it.
    pub counter: C,
    /// The counter's frequency, for limits and facts; stamps stay raw.
    pub rate: Hertz,
    /// How the port waits.
    pub wait: Wait,
}
