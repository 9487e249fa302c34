//! AF_PACKET: whole frames by rings shared with the kernel.
//!
//! [packet(7)](https://man7.org/linux/man-pages/man7/packet.7.html). Capability: `CAP_NET_RAW`. The
//! kernel's own stack sees all frames as well. Sending passes by the queueing discipline, and frames
//! that this host sends are not received. A VLAN tag that the kernel took out comes beside the frame.
//!
//! Several queues are several sockets that share out the frames by the queue they came by
//! (`PACKET_FANOUT`); what is sent goes by the first.

mod lane;
mod ring;
pub mod sender;
pub mod tap;

use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::error::PortError;
use crate::frame::{Tag, TagKind};
use crate::frames::{
    Amount, Arrival, BURST, Burst, Copies, Counted, Drops, Frames, FramesFacts, Ring, Rings,
};
use crate::link::{Link, LinkOptions, Queueing, is_of_link};
use crate::port::Setup;
use crate::waiting::Wait;
use crate::waiting::frames::RingWait;
use crate::waiting::spin::Patience;

use lane::{Hears, Lane, Size};

pub(crate) const BACKEND: &str = "af_packet";
const WAITS: &str = "block, poll, epoll or spin";
/// Whether the interface is still there is asked after so many looks that found nothing.
const LOOKS: u32 = 1 << 16;
const QUEUED: &str = "frames are sent by way of the queueing discipline: no bypass here";
/// Sockets at most.
const MOST_QUEUES: usize = 64;

/// Frames by packet sockets.
#[derive(Debug)]
pub struct Packet<C> {
    lanes: Vec<Lane>,
    /// The frames of the last burst: socket and slot.
    taken: Vec<(usize, usize)>,
    /// The socket that is looked at first: a full one does not keep the others waiting.
    first: usize,
    waiting: RingWait,
    /// Looks since the interface was asked after.
    looks: u32,
    setup: Setup<C>,
    size: Size,
    link: Link,
    facts: FramesFacts,
    /// For the half that only sends. Made in the namespace that the port was opened in.
    twin: Mutex<Option<Lane>>,
}

impl<C: Counter> Packet<C> {
    pub(crate) fn open(
        link: Link,
        options: &LinkOptions,
        setup: Setup<C>,
    ) -> Result<Self, PortError> {
        if setup.wait == Wait::BusyPoll {
            let (wait, choose) = (setup.wait, WAITS);
            return Err(PortError::WaitUnfit { backend: BACKEND, wait, choose });
        }
        let in_order = |(at, queue): (usize, &u32)| *queue as usize == at;
        if options.queues.len() > MOST_QUEUES || !options.queues.iter().enumerate().all(in_order) {
            let asked = options.queues.first().copied().unwrap_or(0);
            let why = "packet sockets share out all queues in order: name them 0, 1, 2, 64 at most";
            return Err(PortError::RingUnfit { what: "a list of queues", asked, why });
        }
        let size = Size::new(&link, options)?;
        let mut lanes: Vec<Lane> = Vec::with_capacity(options.queues.len().max(1));
        for queue in 0..options.queues.len().max(1) as u32 {
            let lane = Lane::open(&link, size, queue, Hears::Everything)?;
            if options.queues.len() > 1 {
                lane.share(lanes.first())?;
            }
            lanes.push(lane);
        }
        // What came before all of them shared was seen by several.
        if lanes.len() > 1 {
            lanes.iter_mut().for_each(Lane::empty);
        }
        let sockets = lanes.iter().map(Lane::socket);
        let waiting = RingWait::ready(setup.wait, sockets, (BACKEND, WAITS))?;
        let room = link.longest(options.tags).min(size.room());
        let bypasses_qdisc = lanes[0].bypasses_qdisc();
        let refused_bypass = size.queueing == Queueing::Bypassed && !bypasses_qdisc;
        let facts = FramesFacts {
            backend: BACKEND,
            interface: link.name.clone(),
            index: link.index,
            mac: link.mac,
            mtu: link.mtu,
            queues: options.queues.clone(),
            rings: Rings { receive: size.frames, send: size.frames, fill: 0, completion: 0 },
            buffer: size.buffer,
            room,
            copies: Copies::Kernel,
            attachment: None,
            tells_wakeups: false,
            bypasses_qdisc,
            instead: if refused_bypass { vec![QUEUED.to_owned()] } else { Vec::new() },
            wait: setup.wait,
        };
        let taken = Vec::with_capacity(BURST);
        let twin = Mutex::new(None);
        Ok(Self { lanes, taken, first: 0, waiting, looks: 0, setup, size, link, facts, twin })
    }

    /// Can be divided, once.
    pub(crate) fn divisible(self) -> Result<Self, PortError> {
        let twin = Lane::open(&self.link, self.size, 0, Hears::Nothing)?;
        Ok(Self { twin: Mutex::new(Some(twin)), ..self })
    }

    fn stamp(&mut self) -> Ticks {
        self.setup.counter.read_ordered().0
    }

    /// Takes what there is.
    #[inline]
    fn look(&mut self) -> Option<Burst> {
        let count = self.lanes.len();
        for step in 0..count {
            let place = self.first + step;
            let place = if place < count { place } else { place - count };
            while self.taken.len() < BURST {
                let Some(slot) = self.lanes[place].take() else { break };
                self.taken.push((place, slot));
            }
        }
        if self.taken.is_empty() {
            return None;
        }
        self.first = if self.first + 1 < count { self.first + 1 } else { 0 };
        // After all of them were seen: none is stamped before it was there.
        let at = self.stamp();
        Some(Burst { count: self.taken.len(), at })
    }

    /// Is the interface still there? A ring does not tell.
    #[cold]
    fn check(&self) -> Result<(), PortError> {
        for lane in &self.lanes {
            match rustix::net::sockopt::socket_error(lane.socket()) {
                Ok(Ok(())) => (),
                Ok(Err(errno)) | Err(errno) => return Err(self.failed(errno)),
            }
        }
        Ok(())
    }

    #[cold]
    fn failed(&self, errno: Errno) -> PortError {
        if is_of_link(errno) {
            return self.link.lost(errno);
        }
        PortError::Receive { backend: BACKEND, errno }
    }

    fn kick(&mut self) -> Result<(), PortError> {
        let lane = &mut self.lanes[0];
        match lane.kick() {
            Ok(()) => Ok(()),
            Err(errno) if is_of_link(errno) => Err(self.link.lost(errno)),
            Err(Errno::MSGSIZE) => {
                let bytes = self.facts.room;
                Err(PortError::MtuTooSmall { bytes, mtu: Some(self.link.mtu) })
            }
            Err(errno) => Err(PortError::Send { backend: BACKEND, bytes: self.facts.room, errno }),
        }
    }
}

impl<C: Counter + Clone + 'static> Frames for Packet<C> {
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        for (lane, slot) in self.taken.drain(..) {
            self.lanes[lane].give_back(slot);
        }
        if let Some(burst) = self.look() {
            return Ok(burst);
        }
        if self.lanes[0].is_unsent() {
            self.kick()?;
        }
        if limit.0 > 0 && !self.waiting.looks() {
            self.waiting.sleep(limit).map_err(|errno| self.failed(errno))?;
            if let Some(burst) = self.look() {
                return Ok(burst);
            }
            self.check()?;
            return Ok(Burst { count: 0, at: self.stamp() });
        }
        let mut patience = Patience::new(limit, self.setup.rate);
        loop {
            self.looks += 1;
            if self.looks == LOOKS {
                self.looks = 0;
                self.check()?;
            }
            let at = self.stamp();
            if patience.is_over(at) {
                return Ok(Burst { count: 0, at });
            }
            std::hint::spin_loop();
            if self.lanes[0].is_unsent() {
                self.kick()?;
            }
            if let Some(burst) = self.look() {
                return Ok(burst);
            }
        }
    }

    fn frame(&self, at: usize) -> Arrival<'_> {
        let (lane, slot) = self.taken[at];
        let lane = &self.lanes[lane];
        let header = lane.received().header(slot);
        let has = |bit: u32| header.tp_status & bit != 0;
        let stripped = has(libc::TP_STATUS_VLAN_VALID).then(|| {
            let known = has(libc::TP_STATUS_VLAN_TPID_VALID);
            let kind = TagKind::of(header.tp_vlan_tpid).filter(|_| known);
            Tag { kind: kind.unwrap_or(TagKind::Customer), control: header.tp_vlan_tci }
        });
        let kernel = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let (from, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        Arrival {
            bytes: lane.received().bytes(slot, from, length),
            stripped,
            kernel: (kernel > 0).then_some(Nanos(kernel)),
            queue: lane.queue(),
        }
    }

    #[inline]
    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        if length > self.facts.room {
            return None;
        }
        self.lanes[0].put(length)
    }

    #[inline]
    fn flush(&mut self) -> Result<Ticks, PortError> {
        let at = self.stamp();
        self.lanes[0].hand_over();
        self.kick()?;
        Ok(at)
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        self.kick()?;
        Ok(self.stamp())
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        let mut all = Vec::with_capacity(self.lanes.len() + 1);
        for lane in &mut self.lanes {
            let count = lane.dropped().map_err(|errno| PortError::Option {
                backend: BACKEND,
                what: "statistics",
                errno,
            })?;
            let (queue, counter) = (lane.queue(), "tp_drops");
            all.push(Drops { queue, ring: Ring::Receive, counter, count, of: Counted::Frames });
        }
        let count = self.lanes[0].refused().frames;
        let counter = "TP_STATUS_WRONG_FORMAT";
        all.push(Drops { queue: 0, ring: Ring::Send, counter, count, of: Counted::Frames });
        Ok(all)
    }

    fn waiting(&mut self) -> Amount {
        self.lanes[0].waiting()
    }

    fn taken_back(&self) -> Amount {
        self.lanes[0].refused()
    }

    fn divide(&self) -> Result<Box<dyn Frames>, PortError> {
        let twin = self.twin.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lane = twin.ok_or(PortError::NotDivisible { backend: BACKEND })?;
        Ok(Box::new(Self {
            lanes: vec![lane],
            taken: Vec::new(),
            first: 0,
            waiting: RingWait::Look,
            looks: 0,
            setup: self.setup.clone(),
            size: self.size,
            link: self.link.clone(),
            facts: self.facts.clone(),
            twin: Mutex::new(None),
        }))
    }
}
