//! Frames by one device of DPDK.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use whylate_clock::{Counter, HardwareCounter};
use whylate_model::{Nanos, Ticks};
use whylate_port::device::Device;
use whylate_port::frames::{Amount, Arrival, Burst, Counted, Drops, Frames, FramesFacts, Ring};
use whylate_port::passing::{self, Carried, Failure, Room};
use whylate_port::waiting::Patience;
use whylate_port::{LinkOptions, PortError, Setup, Threads};

use crate::beneath::Beneath;
use crate::device::{self, BACKEND, Opened};
use crate::eal::{Hold, prepare};
use crate::raw::{Counts, HALVES, Outgoing, PASSED, Port, Received};

/// Whether the link is still up is asked after so many looks that found nothing.
const LOOKS: u32 = 1 << 16;

/// Frames by a device of DPDK, or one half of it.
#[derive(Debug)]
pub struct Dpdk<C> {
    /// None of a half that only sends.
    received: Option<Received>,
    /// None where another thread has it.
    sending: Option<Outgoing>,
    /// For the half that only sends.
    twin: Mutex<Option<Outgoing>>,
    port: Arc<Port>,
    /// The interface of the kernel that it takes its frames from, where it has one.
    beneath: Option<Arc<Beneath>>,
    /// Looks since the link was asked after.
    looks: u32,
    /// The link was up at some time: that it goes down is an end, that it is not there yet is none.
    was_up: bool,
    /// Frames given up when the link went down.
    given_up: Amount,
    /// How often the pool had no buffer for a frame that was to be sent.
    no_room: u64,
    /// Frames are passed on to another device as they are: nobody asks for their bytes.
    passes: bool,
    /// The thread that passes them on was given its caches.
    joined: bool,
    before: Counts,
    /// What the device counts as not sent.
    not_sent: Counted,
    setup: Setup<C>,
    facts: FramesFacts,
    hold: Arc<Hold>,
}

/// Opens a device as `what` says, which waits by spinning.
pub fn open<C: Counter>(what: &LinkOptions, setup: Setup<C>) -> Result<Dpdk<C>, PortError> {
    opened(what, 1, setup)
}

/// Opens a device with two sending queues, so that it can be divided; refused where it has one.
pub fn open_halves<C: Counter>(what: &LinkOptions, setup: Setup<C>) -> Result<Dpdk<C>, PortError> {
    opened(what, HALVES as u16, setup)
}

/// Opens a device with one sending queue, which goes to the other half when it is divided: each thread has
/// a ring of its own, and any device will do. From here on it only receives.
pub fn open_divisible<C: Counter>(
    what: &LinkOptions,
    setup: Setup<C>,
) -> Result<Dpdk<C>, PortError> {
    let mut whole = opened(what, 1, setup)?;
    whole.twin = Mutex::new(whole.sending.take());
    Ok(whole)
}

/// From now on ports of whylate open devices of DPDK.
pub fn register() {
    fn opener(
        what: &LinkOptions,
        threads: Threads,
        setup: Setup<HardwareCounter>,
    ) -> Result<Box<dyn Frames>, PortError> {
        let port = match threads {
            Threads::One => open(what, setup)?,
            Threads::Two => open_divisible(what, setup)?,
        };
        Ok(Box::new(port))
    }
    fn preparer(devices: &[&Device]) -> Result<(), PortError> {
        prepare(devices).map(drop).map_err(device::refused)
    }
    whylate_port::device::register(opener);
    whylate_port::device::register_preparer(preparer);
}

fn opened<C: Counter>(
    what: &LinkOptions,
    queues: u16,
    setup: Setup<C>,
) -> Result<Dpdk<C>, PortError> {
    let Opened { port, facts, hold, up, beneath, not_sent } =
        device::open(what, queues, setup.wait)?;
    let (Some(received), Some(sending)) = (port.received(), port.sending(0)) else {
        unreachable!("invariant: the port was made a moment ago, and nobody has its rings");
    };
    let before = port.counts().map_err(statistics)?;
    Ok(Dpdk {
        received: Some(received),
        sending: Some(sending),
        twin: Mutex::new(None),
        port,
        beneath: beneath.map(Arc::new),
        looks: 0,
        was_up: up,
        given_up: Amount::default(),
        no_room: 0,
        passes: false,
        joined: false,
        before,
        not_sent,
        setup,
        facts,
        hold: Arc::new(hold),
    })
}

fn statistics(errno: Errno) -> PortError {
    PortError::Option { backend: BACKEND, what: "statistics", errno }
}

impl<C: Counter> Dpdk<C> {
    /// Gives the calling thread caches of buffers, which it keeps until it ends. Without them
    /// everything works, and takes longer. True where it has them.
    #[must_use]
    pub fn join_thread() -> bool {
        device::join()
    }

    /// Buffers that are free now: in the pool and in the caches of threads.
    #[must_use]
    pub fn free_buffers(&self) -> u32 {
        self.port.free_buffers()
    }

    /// Is the link up?
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.port.is_up()
    }

    #[inline]
    fn stamp(&mut self) -> Ticks {
        self.setup.counter.read_ordered().0
    }

    /// The rings of a whole device, for passing frames on.
    pub(crate) fn rings(&mut self) -> Option<(&mut Received, &mut Outgoing)> {
        Some((self.received.as_mut()?, self.sending.as_mut()?))
    }

    /// Gives back what the last burst has.
    pub(crate) fn end_burst(&mut self) {
        if let Some(received) = &mut self.received {
            received.release();
        }
    }

    /// Is the link still up? A ring does not tell: it is empty, or full.
    #[cold]
    fn check(&mut self) -> Result<(), PortError> {
        let lost = self.beneath.as_deref().and_then(Beneath::lost);
        let up = lost.is_none() && self.port.is_up();
        self.was_up |= up;
        if up || !self.was_up {
            return Ok(());
        }
        let more = self.sending.as_mut().map(Outgoing::give_up).unwrap_or_default();
        self.given_up.frames += more.frames;
        self.given_up.bytes += more.bytes;
        let name = self.facts.interface.clone();
        let down = PortError::LinkLost { name, what: "went down", errno: Errno::NETDOWN };
        Err(lost.unwrap_or(down))
    }

    /// Gives the thread that passes frames on its caches: without them each buffer is taken from a ring
    /// that all threads share, and put back there by itself.
    #[inline]
    fn settle(&mut self) {
        if !self.joined {
            self.joined = true;
            let _ = Self::join_thread();
        }
    }

    /// Sends what could not be sent before.
    #[inline]
    fn send_waiting(&mut self) {
        if let Some(sending) = &mut self.sending
            && sending.waiting() > 0
        {
            sending.send();
        }
    }

    /// A look in vain: now and then the link is asked after.
    #[inline]
    fn in_vain(&mut self) -> Result<(), PortError> {
        self.looks += 1;
        if self.looks >= LOOKS {
            self.looks = 0;
            self.check()?;
        }
        Ok(())
    }
}

impl<C: Counter + Clone + 'static> Frames for Dpdk<C> {
    #[inline]
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        let (rate, passes) = (self.setup.rate, self.passes);
        let mut patience = None;
        loop {
            self.send_waiting();
            let look = |received: &mut Received| {
                if passes { received.look_bare(PASSED) } else { received.look() }
            };
            let count = self.received.as_mut().map_or(0, look);
            // After all of them were seen: none is stamped before it was there.
            let at = self.stamp();
            if count > 0 {
                return Ok(Burst { count, at });
            }
            self.in_vain()?;
            if patience.get_or_insert_with(|| Patience::new(limit, rate)).is_over(at) {
                return Ok(Burst { count: 0, at });
            }
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn frame(&self, at: usize) -> Arrival<'_> {
        let Some(received) = &self.received else {
            unreachable!("invariant: a half that only sends has no bursts, so nobody asks");
        };
        let Carried { bytes, stripped } = received.frame(at);
        Arrival { bytes, stripped, kernel: None, queue: 0 }
    }

    #[inline]
    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        if length > self.facts.room {
            return None;
        }
        let sending = self.sending.as_mut()?;
        let full = sending.waiting() == crate::raw::SLOTS;
        let room = sending.put(length);
        if room.is_none() && !full {
            self.no_room += 1;
        }
        room
    }

    #[inline]
    fn flush(&mut self) -> Result<Ticks, PortError> {
        let at = self.stamp();
        if let Some(sending) = &mut self.sending {
            sending.send();
        }
        Ok(at)
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        if self.sending.as_mut().map_or(0, Outgoing::send) == 0 {
            self.in_vain()?;
        }
        Ok(self.stamp())
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        let row = |ring, counter, count, of| Drops { queue: 0, ring, counter, count, of };
        let (frames, occasions) = (Counted::Frames, Counted::Occasions);
        let mut all = vec![
            row(Ring::Send, "link_down", self.given_up.frames, frames),
            row(Ring::Send, "pool_empty", self.no_room, occasions),
        ];
        // What the device counts is of both halves: the one that receives tells it.
        if let Some(received) = &self.received {
            let (now, before) = (self.port.counts().map_err(statistics)?, self.before);
            let since = |pick: fn(&Counts) -> u64| pick(&now).saturating_sub(pick(&before));
            all.extend([
                row(Ring::Receive, "imissed", since(|counts| counts.missed), frames),
                row(Ring::Receive, "ierrors", since(|counts| counts.bad), frames),
                row(Ring::Receive, "in_pieces", received.lost_in_pieces(), frames),
                row(Ring::Receive, "rx_nombuf", since(|counts| counts.no_buffer), occasions),
                row(Ring::Send, "oerrors", since(|counts| counts.not_sent), self.not_sent),
            ]);
        }
        Ok(all)
    }

    /// What a device's own ring has, it has taken.
    fn waiting(&mut self) -> Amount {
        self.sending.as_ref().map(Outgoing::amount).unwrap_or_default()
    }

    fn taken_back(&self) -> Amount {
        self.given_up
    }

    /// To another device the buffers themselves go.
    fn carry(
        &mut self,
        frames: usize,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut passing::Counts,
    ) -> u64 {
        let other = to.as_any().and_then(<dyn Any>::downcast_mut::<Self>);
        let other = other.and_then(|other| other.sending.as_mut());
        if let (Some(received), Some(other)) = (self.received.as_mut(), other) {
            let leaving = other.take_over(received, room, counts);
            self.passes = true;
            self.settle();
            return leaving;
        }
        passing::hot::gather(self, frames, to, room, counts)
    }

    fn pass(
        &mut self,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut passing::Counts,
    ) -> Result<usize, Failure> {
        let Some(other) = to.as_any().and_then(<dyn Any>::downcast_mut::<Self>) else {
            return passing::hot::pass(self, to, room, counts);
        };
        self.settle();
        self.send_waiting();
        let Some(sending) = &mut other.sending else { return Ok(0) };
        let pass = |received: &mut Received| received.pass_on(sending, room, counts);
        let count = self.received.as_mut().map_or(0, pass);
        if count == 0 {
            self.in_vain().map_err(Failure::receiving)?;
        }
        Ok(count)
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn divide(&self) -> Result<Box<dyn Frames>, PortError> {
        let twin = self.twin.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sending = twin.or_else(|| self.port.sending(1));
        let sending = sending.ok_or(PortError::NotDivisible { backend: BACKEND })?;
        Ok(Box::new(Self {
            received: None,
            sending: Some(sending),
            twin: Mutex::new(None),
            port: Arc::clone(&self.port),
            beneath: self.beneath.clone(),
            looks: 0,
            was_up: self.was_up,
            given_up: Amount::default(),
            no_room: 0,
            passes: false,
            joined: false,
            before: self.before,
            not_sent: self.not_sent,
            setup: self.setup.clone(),
            facts: self.facts.clone(),
            hold: Arc::clone(&self.hold),
        }))
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::Hertz;
    use whylate_port::Wait;
    use whylate_port::device::{DeviceName, Pages};

    use super::*;

    fn opened(words: &str) -> Dpdk<HardwareCounter> {
        let name = Some(DeviceName::Virtual(words.to_owned()));
        let device = Device { name, memory_mb: Some(128), pages: Pages::Ordinary };
        let counter = HardwareCounter::open().unwrap();
        // Nothing here is a time.
        let setup = Setup { counter, rate: Hertz(2e9), wait: Wait::Spin };
        open(&LinkOptions { device, ..LinkOptions::default() }, setup).unwrap()
    }

    /// Sends a frame of 1400 bytes in two pieces, one of 3000, which no buffer holds, and one of 60 in one.
    fn send_pieces(by: &mut Dpdk<HardwareCounter>) {
        for bytes in [700, 1_500] {
            for _ in 0..2 {
                by.put(bytes).unwrap().fill(7);
            }
            by.sending.as_mut().unwrap().chain_last();
            by.flush().unwrap();
        }
        by.put(60).unwrap().fill(7);
        by.flush().unwrap();
    }

    fn lengths(of: &mut Dpdk<HardwareCounter>) -> Vec<usize> {
        let count = of.receive(Nanos(0)).unwrap().count;
        (0..count).map(|at| of.frame(at).bytes.len()).collect()
    }

    fn lost(of: &mut Dpdk<HardwareCounter>) -> u64 {
        let drops = of.drops().unwrap();
        drops.iter().find(|drops| drops.counter == "in_pieces").map_or(0, |drops| drops.count)
    }

    #[test]
    fn frames_in_pieces_are_joined_and_those_that_cannot_be_are_lost_by_name() {
        let (mut near, mut far) = (opened("net_ring1"), opened("net_ring2"));
        // Whoever looks at them.
        send_pieces(&mut near);
        assert_eq!(lengths(&mut near), [1_400, 60]);
        assert_eq!(lost(&mut near), 1);
        // Whoever passes them on, in one call and in two.
        let room = Room::between(near.facts(), far.facts());
        let mut counts = passing::Counts::default();
        for number in 1..=2 {
            send_pieces(&mut near);
            if number == 1 {
                near.pass(&mut far, room, &mut counts).unwrap();
            } else {
                let frames = near.receive(Nanos(0)).unwrap().count;
                near.carry(frames, &mut far, room, &mut counts);
                far.flush().unwrap();
            }
            assert_eq!((counts.received, counts.forwarded), (2 * number, 2 * number));
            assert!(counts.closes(), "{counts:?}");
            assert_eq!((lost(&mut near), lost(&mut far)), (1 + number, 0));
            assert_eq!(lengths(&mut far), [1_400, 60]);
        }
    }
}
