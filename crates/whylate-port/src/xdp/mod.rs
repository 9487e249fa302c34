//! AF_XDP: whole frames past the kernel's network stack.
//!
//! [AF_XDP](https://docs.kernel.org/networking/af_xdp.html). Capabilities: `CAP_NET_RAW` for the
//! sockets, those of [`bpf`](crate::bpf) for the program that leads frames to them. The kernel's stack
//! does not see what is taken; everything else passes to it unchanged.
//!
//! One socket a queue, each with memory and rings of its own; what is sent goes by the first. A frame
//! that comes by a queue without a socket passes to the kernel, and the program counts it.
//!
//! Rings are our own (`ring.rs`): the libraries at hand (`xdp`, `xdpilone`) leave the orderings, the
//! drops by ring and the way to wait out of reach, and these are what is measured and reported here.

mod outgoing;
mod queue;
mod ring;
mod sending;
mod umem;

use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::xdp::XdpDesc;
use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_sys::socket_options;

use crate::bpf::stamps;
use crate::bpf::{Attached, Mode, Stamper, Steering, Take, Verdict};
use crate::error::PortError;
use crate::frames::{
    Amount, Arrival, BURST, Burst, Copies, Counted, Drops, FrameStamps, Frames, FramesFacts, Ring,
    Rings, SentStamp,
};
use crate::interface;
use crate::link::{Copying, FrameStamping, Link, LinkOptions, Waking, is_of_link};
use crate::port::Setup;
use crate::waiting::frames::RingWait;
use crate::waiting::spin::Patience;
use crate::waiting::{BusyPolling, Wait, busy_poll};

use outgoing::Outgoing;
use queue::{Queue, Size};
use sending::Sending;

pub(crate) const BACKEND: &str = "af_xdp";
const WAITS: &str = "block, poll, epoll, busy-poll or spin";
/// Whether the interface is still there is asked after so many looks that found nothing.
const LOOKS: u32 = 1 << 16;
/// Sockets at most.
const MOST_QUEUES: usize = 64;
/// Frames that one look takes from the card at most where it busy-polls: a burst.
const BUDGET: u16 = BURST as u16;

/// Frames by sockets of AF_XDP.
#[derive(Debug)]
pub struct Xdp<C> {
    queues: Vec<Queue>,
    /// What sends by the first queue; none where another thread has it.
    sending: Option<Sending>,
    /// For the half that only sends.
    twin: Mutex<Option<Sending>>,
    /// The frames of the last burst: place of the queue, and where the frame lies.
    taken: Vec<(usize, XdpDesc)>,
    /// The queue that is looked at first: a full one does not keep the others waiting.
    first: usize,
    waiting: RingWait,
    busy_polls: bool,
    /// Looks since the interface was asked after.
    looks: u32,
    /// What atomic time, by which programs stamp, was ahead of the wall clock when it was opened.
    ahead_s: i64,
    setup: Setup<C>,
    link: Link,
    facts: FramesFacts,
    steering: Attached<Steering>,
}

impl<C: Counter> Xdp<C> {
    /// Attaches the program that leads what `take` says to the sockets, and opens them.
    pub(crate) fn open(
        link: Link,
        options: &LinkOptions,
        take: &Take,
        setup: Setup<C>,
    ) -> Result<Self, PortError> {
        let numbers = numbers(&options.queues)?;
        let size = Size::new(&link, options)?;
        let mut queues = Vec::with_capacity(numbers.len());
        let mut first = None;
        for number in &numbers {
            let (queue, sending) = Queue::open(&link, options, size, *number)?;
            queues.push(queue);
            first.get_or_insert(sending);
        }
        let sockets = queues.iter().map(Queue::socket);
        let waiting = RingWait::ready(setup.wait, sockets, (BACKEND, WAITS))?;
        let busy_polls = setup.wait == Wait::BusyPoll;
        for queue in queues.iter().filter(|_| busy_polls) {
            busy_poll::ask(queue.socket(), BACKEND)?;
            let failed =
                |errno| PortError::Option { backend: BACKEND, what: "busy polling budget", errno };
            socket_options::set_busy_poll_budget(queue.socket(), BUDGET).map_err(failed)?;
        }
        let most = numbers.iter().max().map_or(1, |most| most + 1);
        let found = interface::named(&link.name)?;
        // Last: from here on frames are taken from the kernel, and there is somebody to take them.
        let steering = match options.stamping {
            FrameStamping::Off => Steering::attach((&found).into(), take, most, options.attaching),
            FrameStamping::Asked => {
                Steering::attach_stamping((&found).into(), take, most, options.attaching)
            }
        }?;
        for queue in &queues {
            steering.program().give(queue.number(), queue.as_fd())?;
        }
        let zero_copy = queues.iter().all(Queue::is_zero_copy);
        let (size, ahead_s) = (queues.first().map_or(size, Queue::size), stamps::ahead());
        if let (Some(sending), Some(queue)) = (&mut first, queues.first()) {
            sending.told_by(queue.is_zero_copy(), ahead_s);
        }
        let facts = FramesFacts {
            backend: BACKEND,
            interface: link.name.clone(),
            index: link.index,
            mac: link.mac,
            mtu: link.mtu,
            queues: numbers,
            rings: Rings {
                receive: size.frames,
                send: size.frames,
                fill: size.fill(),
                completion: size.frames,
            },
            buffer: size.buffer,
            room: link.longest(options.tags).min(size.room()),
            copies: if zero_copy { Copies::Nobody } else { Copies::Kernel },
            attachment: Some(steering.facts().mode),
            tells_wakeups: options.waking == Waking::WhenNeeded,
            bypasses_qdisc: true,
            instead: instead(&link, options.copying, zero_copy, &steering),
            wait: setup.wait,
        };
        let taken = Vec::with_capacity(BURST);
        Ok(Self {
            queues,
            sending: first,
            twin: Mutex::new(None),
            taken,
            first: 0,
            waiting,
            busy_polls,
            looks: 0,
            ahead_s,
            setup,
            link,
            facts,
            steering,
        })
    }

    /// Can be divided, once: from then on it only receives.
    pub(crate) fn divisible(mut self) -> Self {
        self.twin = Mutex::new(self.sending.take());
        self
    }

    fn stamp(&mut self) -> Ticks {
        self.setup.counter.read_ordered().0
    }

    /// Takes what there is.
    #[inline]
    fn look(&mut self) -> Option<Burst> {
        let count = self.queues.len();
        for step in 0..count {
            let place = self.first + step;
            let place = if place < count { place } else { place - count };
            self.queues[place].take(place, &mut self.taken);
        }
        if self.taken.is_empty() {
            return None;
        }
        self.first = if self.first + 1 < count { self.first + 1 } else { 0 };
        // After all of them were seen: none is stamped before it was there.
        let at = self.stamp();
        Some(Burst { count: self.taken.len(), at })
    }

    /// Gives the buffers of the last burst back.
    #[inline]
    fn give_back(&mut self) -> Result<(), PortError> {
        if self.taken.is_empty() {
            return Ok(());
        }
        for (place, frame) in self.taken.drain(..) {
            self.queues[place].give_back(frame);
        }
        for at in 0..self.queues.len() {
            self.queues[at].refill().map_err(|errno| self.failed(errno))?;
        }
        Ok(())
    }

    /// Is the interface still there? A ring does not tell. Looks at the card's queue as well.
    #[cold]
    fn check(&self) -> Result<(), PortError> {
        for queue in &self.queues {
            match rustix::net::sockopt::socket_error(queue.socket()) {
                Ok(Ok(())) => (),
                Ok(Err(errno)) | Err(errno) => return Err(self.failed(errno)),
            }
            queue.call_receiving().map_err(|errno| self.failed(errno))?;
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

    /// Sends what could not be sent before, and has the card's queue looked at where that was asked.
    #[inline]
    fn turn(&mut self) -> Result<(), PortError> {
        if self.sending.as_ref().is_some_and(Sending::is_unsent) {
            self.kick()?;
        }
        if self.busy_polls {
            for queue in &self.queues {
                queue.call_receiving().map_err(|errno| self.failed(errno))?;
            }
        }
        Ok(())
    }

    #[inline]
    fn kick(&mut self) -> Result<(), PortError> {
        let Some(sending) = &mut self.sending else { return Ok(()) };
        sending.kick().map_err(|errno| not_sent(&self.link, &self.facts, errno))
    }
}

impl<C: Counter + Clone + 'static> Frames for Xdp<C> {
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        self.give_back()?;
        if let Some(burst) = self.look() {
            return Ok(burst);
        }
        self.turn()?;
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
            if let Some(burst) = self.look() {
                return Ok(burst);
            }
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
            self.turn()?;
        }
    }

    fn frame(&self, at: usize) -> Arrival<'_> {
        let (place, frame) = self.taken[at];
        let queue = &self.queues[place];
        let (bytes, number) = (queue.frame(frame), queue.number());
        let kernel = queue.stamps(frame, self.ahead_s).program;
        Arrival { bytes, stripped: None, kernel, queue: number }
    }

    #[inline]
    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        if length > self.facts.room {
            return None;
        }
        self.sending.as_mut()?.put(length)
    }

    #[inline]
    fn flush(&mut self) -> Result<Ticks, PortError> {
        let at = self.stamp();
        if let Some(sending) = &mut self.sending {
            sending.hand_over();
        }
        self.kick()?;
        Ok(at)
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        self.kick()?;
        if let Some(sending) = &mut self.sending {
            sending.reap();
        }
        Ok(self.stamp())
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        let mut all = Vec::with_capacity(self.queues.len() * 5 + 1);
        for queue in &self.queues {
            let counted = queue.drops().map_err(|errno| PortError::Option {
                backend: BACKEND,
                what: "statistics",
                errno,
            })?;
            all.extend(counted);
        }
        let (queue, ring) = (self.queues[0].number(), Ring::Receive);
        let count = self.steering.program().counts()?.of(Verdict::NoSocket);
        // These are not lost: the kernel has them.
        let of = Counted::Occasions;
        all.push(Drops { queue, ring, counter: "no_socket", count, of });
        Ok(all)
    }

    fn waiting(&mut self) -> Amount {
        self.sending.as_mut().map(Sending::waiting).unwrap_or_default()
    }

    fn busy_polling(&self) -> BusyPolling {
        match self.setup.wait {
            Wait::BusyPoll => busy_poll::outcome(self.queues[0].socket()),
            _ => BusyPolling::NotAsked,
        }
    }

    fn stamps(&self) -> FrameStamps {
        let of_sent = self.sending.as_ref().map(outgoing::sent_stamps).unwrap_or_default();
        let stamping = self.steering.program().stamping();
        let instead = stamping.instead.iter().cloned().chain(of_sent.instead).collect();
        FrameStamps {
            received: stamping.by.is_some(),
            received_by_card: matches!(stamping.by, Some(Stamper::Card { .. })),
            instead,
            ..of_sent
        }
    }

    fn card_stamp(&self, at: usize) -> Option<Nanos> {
        let (place, frame) = self.taken[at];
        self.queues[place].stamps(frame, self.ahead_s).card
    }

    #[inline]
    fn put_so_far(&self) -> u64 {
        self.sending.as_ref().map_or(0, Sending::put_so_far)
    }

    fn take_sent(&mut self, each: &mut dyn FnMut(SentStamp)) {
        if let Some(sending) = &mut self.sending {
            sending.take_sent(each);
        }
    }

    fn divide(&self) -> Result<Box<dyn Frames>, PortError> {
        let twin = self.twin.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sending = twin.ok_or(PortError::NotDivisible { backend: BACKEND })?;
        let (setup, link, facts) = (self.setup.clone(), self.link.clone(), self.facts.clone());
        Ok(Box::new(Outgoing::new(sending, setup, link, facts)))
    }
}

/// Why nothing could be sent.
#[cold]
fn not_sent(link: &Link, facts: &FramesFacts, errno: Errno) -> PortError {
    if is_of_link(errno) {
        return link.lost(errno);
    }
    PortError::Send { backend: BACKEND, bytes: facts.room, errno }
}

/// The queues to be used: those asked for, each once; or the first.
fn numbers(asked: &[u32]) -> Result<Vec<u32>, PortError> {
    let mut numbers = if asked.is_empty() { vec![0] } else { asked.to_vec() };
    let count = numbers.len();
    let first = numbers[0];
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() < count || count > MOST_QUEUES {
        let (what, why) = ("a list of queues", "each is named once, and 64 at most");
        return Err(PortError::RingUnfit { what, asked: first, why });
    }
    Ok(if asked.is_empty() { numbers } else { asked.to_vec() })
}

/// What was not to be had where the choice was left to us.
fn instead(
    link: &Link,
    copying: Copying,
    zero_copy: bool,
    steering: &Attached<Steering>,
) -> Vec<String> {
    let mut said = Vec::new();
    if let (Mode::Generic, Some(why)) =
        (steering.facts().mode, steering.facts().native_refused.as_ref())
    {
        said.push(format!(
            "the program runs behind the driver of `{}` (generic): {why}",
            link.name
        ));
    }
    if copying == Copying::Auto && !zero_copy {
        let name = &link.name;
        said.push(format!("the kernel copies frames: the driver of `{name}` does no zero-copy"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_taken_in_the_order_asked_and_each_once() {
        assert_eq!(numbers(&[]).unwrap(), [0]);
        assert_eq!(numbers(&[3, 1]).unwrap(), [3, 1]);
        assert!(numbers(&[1, 1]).is_err());
        assert!(numbers(&(0..65).collect::<Vec<_>>()).is_err());
    }
}
