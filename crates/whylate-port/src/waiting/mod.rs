//! Ways to wait for a message, one file each.
//!
//! A way knows a socket and a limit, and nothing of messages. Every wait is bounded.

pub(crate) mod block;
pub(crate) mod busy_poll;
pub(crate) mod epoll;
pub(crate) mod frames;
pub(crate) mod io_uring;
pub(crate) mod poll;
pub(crate) mod spin;

use std::fmt;
use std::os::fd::OwnedFd;
use std::str::FromStr;

use whylate_sys::ring_receive::RingReceive;

use crate::error::PortError;

pub use busy_poll::BusyPolling;
pub use spin::Patience;

/// How a port waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Sleeps in the receiving system call until a message wakes it: the CPU is free, and each
    /// message pays for a wake-up. For one socket only.
    Block,
    /// Sleeps in `ppoll`, then receives: a wake-up and a second system call for each message, and a
    /// look at every socket of the set.
    Poll,
    /// Sleeps in `epoll_pwait2`, then receives: a wake-up and a second system call for each message,
    /// however many sockets there are.
    Epoll,
    /// Asks again and again without sleeping, and has the kernel look at the receiving queue of the
    /// network port each time: no interrupt either, and a CPU of its own. Does nothing more than
    /// `Spin` where messages come through no such queue, as on loopback.
    BusyPoll,
    /// Asks again and again without sleeping: no wake-up, and a CPU of its own.
    Spin,
    /// Hands reception and time-out to `io_uring` in one system call and sleeps in it: a wake-up for
    /// each message. For one socket only.
    IoUring,
}

impl Wait {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Block, Self::Poll, Self::Epoll, Self::BusyPoll, Self::Spin, Self::IoUring];

    /// Does the thread sleep until a message comes?
    #[must_use]
    pub fn sleeps(self) -> bool {
        !matches!(self, Self::Spin | Self::BusyPoll)
    }

    /// Can it wait for several sockets at once?
    #[must_use]
    pub fn takes_many_sockets(self) -> bool {
        !matches!(self, Self::Block | Self::IoUring)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Block => "block",
            Self::Poll => "poll",
            Self::Epoll => "epoll",
            Self::BusyPoll => "busy-poll",
            Self::Spin => "spin",
            Self::IoUring => "io-uring",
        })
    }
}

impl FromStr for Wait {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let known = Self::ALL.into_iter().find(|wait| wait.to_string() == text);
        known.ok_or_else(|| PortError::UnknownWait(text.to_owned()))
    }
}

/// What a way to wait keeps between two waits for one socket.
#[derive(Debug)]
pub(crate) enum Waiting {
    Block(block::Timeout),
    Poll(poll::Watched),
    Epoll(epoll::Watched),
    Look,
    Ring(Box<RingReceive>),
}

impl Waiting {
    /// Makes a way ready for this socket.
    pub(crate) fn ready(
        wait: Wait,
        socket: &OwnedFd,
        backend: &'static str,
    ) -> Result<Self, PortError> {
        Ok(match wait {
            Wait::Block => Self::Block(block::Timeout::default()),
            Wait::Poll => Self::Poll(poll::Watched::new(socket)),
            Wait::Epoll => Self::Epoll(epoll::Watched::new(socket)?),
            Wait::BusyPoll => {
                busy_poll::ask(socket, backend)?;
                Self::Look
            }
            Wait::Spin => Self::Look,
            Wait::IoUring => Self::Ring(Box::new(io_uring::open()?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_wait_are_parsed_and_unknown_ones_named_with_those_there_are() {
        for wait in Wait::ALL {
            assert_eq!(wait.to_string().parse::<Wait>().unwrap(), wait);
        }
        let told = "nap".parse::<Wait>().unwrap_err().to_string();
        assert!(told.contains("nap"), "{told}");
        for wait in Wait::ALL {
            assert!(told.contains(&wait.to_string()), "{told}");
        }
    }
}
