//! Kernel stamps of a server's messages, over all of its sockets.

use rustix::io::Errno;
use whylate_sys::timestamping::{self, Flags};

use super::connection::Connection;
use super::{Listening, Serving};
use crate::error::PortError;
use crate::open::Transport;
use crate::stamps::{SocketStamps, Stamp, StampCounts, StampWish};

/// What a stamped server keeps beside what its sockets keep.
#[derive(Debug)]
pub(super) struct Stamping {
    wish: StampWish,
    /// Answers that it was given to send, by any socket.
    pub(super) sent: u64,
    /// Messages that it received, by any socket.
    pub(super) received: u64,
    /// Of connections that have been closed.
    closed: StampCounts,
}

impl<C> Serving<C> {
    /// Asks for stamps by every socket that carries messages, now and when connections are made. Where one
    /// of them has none, none is asked for.
    pub(super) fn ask_for_stamps(&mut self, wish: &StampWish) -> Result<(), PortError> {
        if let Err(refused) = self.ask_listening(wish) {
            for one in &mut self.listening {
                if one.stamps.take().is_some() {
                    // What it was asked for a moment ago it can be asked to leave.
                    let _ = timestamping::set(&one.fd, Flags::default());
                }
            }
            return Err(refused);
        }
        let (sent, received, closed) = (0, 0, StampCounts::default());
        self.stamping = Some(Box::new(Stamping { wish: *wish, sent, received, closed }));
        Ok(())
    }

    fn ask_listening(&mut self, wish: &StampWish) -> Result<(), PortError> {
        for Listening { fd, transport, backend, stamps, .. } in &mut self.listening {
            match transport {
                Transport::Udp => {
                    let kernel = self.facts.socket.as_ref();
                    let asked = SocketStamps::ask(fd, wish, false, kernel, backend)?;
                    *stamps = Some(Box::new(asked));
                }
                Transport::Tcp => {}
                _ => return Err(PortError::StampsNotHere { backend }),
            }
        }
        Ok(())
    }

    /// A connection was made. One that cannot be stamped is served without, and counted.
    pub(super) fn stamp_connection(&mut self, connection: &mut Connection, backend: &'static str) {
        if let Some(stamping) = &self.stamping {
            let kernel = self.facts.socket.as_ref();
            let asked = SocketStamps::ask(connection.fd(), &stamping.wish, true, kernel, backend);
            connection.stamps = asked.ok().map(Box::new);
            self.counts.unstamped += u64::from(connection.stamps.is_none());
        }
    }

    /// A connection is closed: what never came of it never will.
    pub(super) fn end_stamps(&mut self, connection: &Connection) {
        if let (Some(stamping), Some(stamps)) = (&mut self.stamping, &connection.stamps) {
            stamping.closed = stamping.closed.with(&stamps.counts());
        }
    }

    /// The number of the answer that is about to be sent.
    pub(super) fn next_answer(&mut self) -> u64 {
        self.stamping.as_mut().map_or(0, |stamping| {
            stamping.sent += 1;
            stamping.sent - 1
        })
    }

    pub(super) fn hand_over_stamps(
        &mut self,
        each: &mut dyn FnMut(Stamp),
    ) -> Result<(), PortError> {
        if self.stamping.is_none() {
            return Ok(());
        }
        let mut failed = None;
        let own = self.listening.iter_mut().map(|one| (&one.fd, &mut one.stamps));
        let open = self.connections.iter_mut().flatten().map(Connection::parts);
        for (fd, stamps) in own.chain(open) {
            if let Some(Err(errno)) = stamps.as_mut().map(|stamps| stamps.take(fd, &mut *each)) {
                failed = Some(errno);
            }
        }
        // One client's error is none of the others': the server goes on.
        match failed {
            Some(errno @ (Errno::BADF | Errno::NOTSOCK | Errno::INVAL)) => {
                Err(PortError::Receive { backend: self.facts.backend, errno })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn counts_of_stamps(&self) -> Option<StampCounts> {
        let stamping = self.stamping.as_ref()?;
        let own = self.listening.iter().filter_map(|one| one.stamps.as_ref());
        let open = self.connections.iter().flatten().filter_map(|one| one.stamps.as_ref());
        Some(own.chain(open).fold(stamping.closed, |all, one| all.with(&one.counts())))
    }
}
