//! The trait that every backend implements.

use std::fmt;
use std::str::FromStr;

use whylate_model::{Hertz, Nanos, Ticks};

use crate::error::PortError;
use crate::facts::PortFacts;

/// Sends and receives whole messages, and stamps them.
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
}

/// How a wait for a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A message came.
    Message {
        /// Its length; more than the buffer holds when its end was cut off.
        length: usize,
        /// The stamp of the reception: for a socket the counter's reading immediately after the
        /// system call that brought the message.
        at: Ticks,
    },
    /// Nothing came within the limit, or a signal cut the wait short: `at` tells which.
    Nothing {
        /// The counter's reading when the port gave up.
        at: Ticks,
    },
}

/// How a port waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Sleeps in the receiving system call until a message wakes it: the CPU is free, and each
    /// message pays for a wake-up.
    Block,
    /// Asks again and again without sleeping: no wake-up, and a CPU of its own.
    Spin,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Block => "block",
            Self::Spin => "spin",
        })
    }
}

impl FromStr for Wait {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        match text {
            "block" => Ok(Self::Block),
            "spin" => Ok(Self::Spin),
            other => Err(PortError::UnknownWait(other.to_owned())),
        }
    }
}

/// What a socket port needs beside its socket.
#[derive(Debug, Clone, Copy)]
pub struct Setup<C> {
    /// Stamps messages and, with [`Wait::Spin`], bounds waits.
    pub counter: C,
    /// The counter's frequency, for limits and facts; stamps stay raw.
    pub rate: Hertz,
    /// How the port waits.
    pub wait: Wait,
}
