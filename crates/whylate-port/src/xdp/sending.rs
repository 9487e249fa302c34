//! What sends by a socket of AF_XDP: its ring, the buffers that are under way, and those that are free.
//!
//! Apart from what receives, so that another thread may have it: the two share the socket, of which each
//! uses rings of its own, and no buffer.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};
use rustix::net::{SendFlags, send};
use whylate_model::Nanos;

use crate::bpf::stamps::wall_of_atomic;
use crate::frames::{Amount, SentStamp, StampedBy};
use crate::link::Waking;
use crate::xdp::queue::Size;
use crate::xdp::ring::{Consumer, Producer};
use crate::xdp::umem::Umem;

/// The kernel sends some frames a call and then comes back: calls in a row at most, so that a ring
/// that is stuck does not hold up its sender.
const MOST_CALLS: u32 = 1 << 10;

/// Bytes in front of a frame that is sent: `struct xsk_tx_metadata`, of which the first word asks, and the
/// second one tells when it left.
pub(super) const SENT_METADATA: u32 = 24;
/// `XDP_TXMD_FLAGS_TIMESTAMP`.
const TELL_TIME: u64 = 1;
/// `XDP_TX_METADATA`: the bytes in front of the frame are those.
const HAS_METADATA: u32 = 1 << 1;

/// When frames left, until somebody asks.
#[derive(Debug)]
struct Sent {
    /// The numbers of the frames that are on their way, by buffer.
    numbers: Vec<u64>,
    /// The number of the next one.
    next: u64,
    told: VecDeque<(u64, u64)>,
    untold: u64,
    lost: u64,
    /// The card stamps, by its own clock.
    by_card: bool,
    ahead_s: i64,
}

/// The sending side of a socket.
#[derive(Debug)]
pub(super) struct Sending {
    socket: Arc<OwnedFd>,
    size: Size,
    completion: Consumer<u64>,
    ring: Producer<XdpDesc>,
    /// Buffers for sending that nobody uses.
    free: Vec<u64>,
    /// Handed over, and the kernel may have to be called once more.
    unsent: bool,
    /// It is called without being asked whether it has to be.
    waking: Waking,
    umem: Umem,
    /// None where the kernel does not tell when frames leave.
    sent: Option<Sent>,
    /// Why not, where it was asked.
    refused: Option<String>,
}

impl Sent {
    fn by(&self) -> StampedBy {
        if self.by_card { StampedBy::Card } else { StampedBy::Kernel }
    }
}

impl Sending {
    #[expect(clippy::too_many_arguments, reason = "its parts, made by one caller")]
    pub(super) fn new(
        socket: Arc<OwnedFd>,
        size: Size,
        completion: Consumer<u64>,
        ring: Producer<XdpDesc>,
        free: Vec<u64>,
        umem: Umem,
        waking: Waking,
        refused: Option<String>,
    ) -> Self {
        let sent = (size.front > 0).then(|| Sent {
            numbers: vec![0; size.frames as usize],
            next: 0,
            told: VecDeque::with_capacity(2 * size.frames as usize),
            untold: 0,
            lost: 0,
            by_card: false,
            ahead_s: 0,
        });
        let unsent = false;
        Self { socket, size, completion, ring, free, unsent, waking, umem, sent, refused }
    }

    /// What is known only once the socket has its queue: whose stamps they are, and what atomic time, by
    /// which the kernel's are, is ahead of the wall clock.
    pub(super) fn told_by(&mut self, card: bool, ahead_s: i64) {
        if let Some(sent) = &mut self.sent {
            (sent.by_card, sent.ahead_s) = (card, ahead_s);
        }
    }

    /// Who stamps what is sent; else why nobody does, where it was asked.
    pub(super) fn stamps(&self) -> (Option<StampedBy>, Option<&String>) {
        let by = self.sent.as_ref().map(Sent::by);
        (by, self.refused.as_ref())
    }

    /// Frames put so far, where it is told when they have left.
    #[inline]
    pub(super) fn put_so_far(&self) -> u64 {
        self.sent.as_ref().map_or(0, |sent| sent.next)
    }

    /// Frames of which nobody told when they left, and stamps that found no room.
    pub(super) fn unstamped(&self) -> (u64, u64) {
        self.sent.as_ref().map_or((0, 0), |sent| (sent.untold, sent.lost))
    }

    /// Tells when frames have left.
    pub(super) fn take_sent(&mut self, each: &mut dyn FnMut(SentStamp)) {
        if self.sent.is_none() {
            return;
        }
        self.reap();
        let Some(sent) = &mut self.sent else { return };
        let (by, ahead_s) = (sent.by(), sent.ahead_s);
        for (number, ns) in sent.told.drain(..) {
            let at = match by {
                StampedBy::Kernel => wall_of_atomic(ns, ahead_s),
                StampedBy::Card => Nanos(ns),
            };
            each(SentStamp { number, by, at });
        }
    }

    /// Room for a frame that is to be sent.
    #[inline]
    pub(super) fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        if length > self.size.room() {
            return None;
        }
        if self.free.is_empty() {
            self.reap();
        }
        let addr = *self.free.last()?;
        let front = u64::from(self.size.front);
        let options = match front {
            0 => XdpDescOptions::empty(),
            _ => XdpDescOptions::from_bits_retain(HAS_METADATA),
        };
        let frame = XdpDesc { addr: addr + front, len: length as u32, options };
        if !self.ring.push(frame) {
            return None;
        }
        self.free.pop();
        if self.sent.is_some() {
            self.ask_when(addr);
        }
        self.umem.room(addr + front, length as u32)
    }

    /// Asks when the frame in this buffer leaves.
    fn ask_when(&mut self, buffer: u64) {
        let place = self.place(buffer);
        let Some(sent) = &mut self.sent else { return };
        if let Some(number) = place.and_then(|place| sent.numbers.get_mut(place)) {
            *number = sent.next;
        }
        sent.next += 1;
        if let Some(front) = self.umem.room(buffer, SENT_METADATA) {
            let (flags, rest) = front.split_at_mut(8);
            flags.copy_from_slice(&TELL_TIME.to_ne_bytes());
            rest.fill(0);
        }
    }

    /// What the kernel wrote in front of a frame that has left.
    fn note(&mut self, buffer: u64) {
        let place = self.place(buffer);
        let Some(sent) = &mut self.sent else { return };
        let told = self.umem.frame(buffer, SENT_METADATA).and_then(|front| front.get(8..16));
        let ns = told.and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes);
        let number = place.and_then(|place| sent.numbers.get(place)).copied();
        match number {
            Some(number) if ns != 0 => {
                if sent.told.len() < sent.told.capacity() {
                    sent.told.push_back((number, ns));
                } else {
                    sent.lost += 1;
                }
            }
            _ => sent.untold += 1,
        }
    }

    /// Which of the buffers for sending one is that begins there.
    fn place(&self, buffer: u64) -> Option<usize> {
        let place = (buffer / u64::from(self.size.buffer)).checked_sub(u64::from(self.size.frames));
        place.map(|place| place as usize)
    }

    /// Hands over what was put.
    #[inline]
    pub(super) fn hand_over(&mut self) {
        self.ring.submit();
        self.unsent = true;
    }

    /// Calls the kernel where it waits to be called, until all was taken or nothing moves.
    #[inline]
    pub(super) fn kick(&mut self) -> Result<(), Errno> {
        if !self.unsent {
            return Ok(());
        }
        for _ in 0..MOST_CALLS {
            if self.waking == Waking::Always || self.ring.needs_wakeup() {
                let before = self.ring.under_way();
                match send(&*self.socket, &[], SendFlags::DONTWAIT) {
                    Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => (),
                    Err(errno) => return Err(errno),
                }
                let left = self.ring.under_way();
                self.unsent = left > 0;
                if left == 0 || left >= before {
                    return Ok(());
                }
            } else {
                // A driver is at work by itself.
                self.unsent = self.ring.under_way() > 0;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Was something handed over that the kernel has not taken?
    pub(super) fn is_unsent(&self) -> bool {
        self.unsent
    }

    /// Frames that the kernel has not taken out of the ring.
    pub(super) fn waiting(&mut self) -> Amount {
        self.ring.not_taken().map(|frame| frame.len as usize).collect()
    }

    /// Takes back the buffers of what has left.
    #[inline]
    pub(super) fn reap(&mut self) {
        let first = u64::from(self.size.frames) * u64::from(self.size.buffer);
        let mut any = false;
        while self.free.len() < self.size.frames as usize {
            let Some(addr) = self.completion.pop() else { break };
            any = true;
            // What was never ours to send with is not taken for a buffer.
            if addr >= first && addr < 2 * first {
                let buffer = addr & !(u64::from(self.size.buffer) - 1);
                if self.sent.is_some() {
                    self.note(buffer);
                }
                self.free.push(buffer);
            }
        }
        if any {
            self.completion.release();
        }
    }
}
