//! The half of a port over AF_XDP that only sends.
//!
//! What was dropped at the socket, the half that receives tells: one socket has one account.

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::error::PortError;
use crate::frames::{Amount, Arrival, Burst, Drops, FrameStamps, Frames, FramesFacts, SentStamp};
use crate::link::Link;
use crate::port::Setup;
use crate::waiting::spin::Patience;
use crate::xdp::not_sent;
use crate::xdp::sending::Sending;

/// What is known of the stamps of what is sent.
pub(super) fn sent_stamps(sending: &Sending) -> FrameStamps {
    let ((sent, refused), (untold, lost)) = (sending.stamps(), sending.unstamped());
    let instead = refused.into_iter().cloned().collect();
    FrameStamps { sent, untold, lost, instead, ..FrameStamps::default() }
}

/// Sends what another thread receives elsewhere.
#[derive(Debug)]
pub(super) struct Outgoing<C> {
    sending: Sending,
    setup: Setup<C>,
    link: Link,
    facts: FramesFacts,
}

impl<C: Counter> Outgoing<C> {
    pub(super) fn new(sending: Sending, setup: Setup<C>, link: Link, facts: FramesFacts) -> Self {
        Self { sending, setup, link, facts }
    }

    fn stamp(&mut self) -> Ticks {
        self.setup.counter.read_ordered().0
    }

    #[inline]
    fn kick(&mut self) -> Result<(), PortError> {
        self.sending.kick().map_err(|errno| not_sent(&self.link, &self.facts, errno))
    }
}

impl<C: Counter> Frames for Outgoing<C> {
    /// Nothing ever comes.
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        let mut patience = Patience::new(limit, self.setup.rate);
        loop {
            if self.sending.is_unsent() {
                self.kick()?;
            }
            let at = self.stamp();
            if patience.is_over(at) {
                return Ok(Burst { count: 0, at });
            }
            std::hint::spin_loop();
        }
    }

    fn frame(&self, _: usize) -> Arrival<'_> {
        Arrival { bytes: &[], stripped: None, kernel: None, queue: 0 }
    }

    #[inline]
    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        if length > self.facts.room {
            return None;
        }
        self.sending.put(length)
    }

    #[inline]
    fn flush(&mut self) -> Result<Ticks, PortError> {
        let at = self.stamp();
        self.sending.hand_over();
        self.kick()?;
        Ok(at)
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        self.kick()?;
        self.sending.reap();
        Ok(self.stamp())
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        Ok(Vec::new())
    }

    fn waiting(&mut self) -> Amount {
        self.sending.waiting()
    }

    fn stamps(&self) -> FrameStamps {
        sent_stamps(&self.sending)
    }

    #[inline]
    fn put_so_far(&self) -> u64 {
        self.sending.put_so_far()
    }

    fn take_sent(&mut self, each: &mut dyn FnMut(SentStamp)) {
        self.sending.take_sent(each);
    }
}
