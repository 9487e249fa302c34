//! One socket of AF_XDP on one queue, with its memory and its four rings.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{
    self, set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpOptionsFlags, XdpUmemReg,
    XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv};

use crate::bpf::stamps::{self, METADATA, Stamped};
use crate::error::PortError;
use crate::frames::{BURST, Counted, Drops, Ring};
use crate::link::{Copying, FrameStamping, Link, LinkOptions, Waking};
use crate::raw;
use crate::xdp::BACKEND;
use crate::xdp::ring::{Consumer, Producer};
use crate::xdp::sending::{SENT_METADATA, Sending};
use crate::xdp::umem::Umem;

/// What the kernel keeps free before a frame that it received.
const HEADROOM: u32 = 256;
/// Frames in a ring where nothing else was asked for.
const USUAL_FRAMES: u32 = 2_048;
const FEWEST_FRAMES: u32 = 64;
const MOST_FRAMES: u32 = 1 << 15;
/// The kernel tells of what is sent, in front of it (`XDP_UMEM_TX_METADATA_LEN`).
const WITH_SENT_METADATA: u32 = 1 << 2;
/// A socket that was closed leaves its queue a little later: how often and how far apart it is tried.
const TRIES: u32 = 300;
const BETWEEN: Duration = Duration::from_millis(10);

/// How large rings and buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) buffer: u32,
    pub(super) frames: u32,
    /// Kept free in front of a frame that is sent, for what the kernel tells of it.
    pub(super) front: u32,
}

impl Size {
    /// As asked for, or fit for the interface. Buffers are 2048 or 4096 bytes: the kernel takes no
    /// others that a page holds whole.
    pub(super) fn new(link: &Link, options: &LinkOptions) -> Result<Self, PortError> {
        let needed = HEADROOM + link.longest_arrival() as u32;
        let buffer = match options.buffer {
            Some(asked) if !matches!(asked, 2_048 | 4_096) => {
                let why = "AF_XDP has buffers of 2048 or 4096 bytes";
                return Err(PortError::RingUnfit { what: "a buffer", asked, why });
            }
            Some(bytes) => bytes,
            None if needed <= 2_048 => 2_048,
            None => 4_096,
        };
        if buffer < needed {
            let (interface, mtu) = (link.name.clone(), link.mtu);
            let advice =
                "ask for buffers of 4096, or lower the MTU (`ip link set dev NAME mtu 3498`)";
            return Err(PortError::BufferTooSmall {
                interface,
                mtu,
                bytes: buffer,
                needed,
                advice,
            });
        }
        let frames = options.ring.unwrap_or(USUAL_FRAMES);
        if !frames.is_power_of_two() || !(FEWEST_FRAMES..=MOST_FRAMES).contains(&frames) {
            let why = "it holds a power of two of frames, from 64 to 32768";
            return Err(PortError::RingUnfit { what: "a ring", asked: frames, why });
        }
        Ok(Self { buffer, frames, front: 0 })
    }

    /// The longest frame that can be sent.
    pub(super) fn room(self) -> usize {
        (self.buffer - self.front) as usize
    }

    /// Entries of the fill ring: twice as many as there are buffers for it. The kernel shows a frame
    /// before it says that it has taken the buffer's entry, and what comes back has to find room.
    pub(super) fn fill(self) -> u32 {
        2 * self.frames
    }
}

/// A socket on one queue: what receives.
///
/// The first half of the buffers is for receiving, the other for sending; a buffer never changes
/// sides, so that neither direction can starve the other.
#[derive(Debug)]
pub(super) struct Queue {
    socket: Arc<OwnedFd>,
    number: u32,
    size: Size,
    fill: Producer<u64>,
    received: Consumer<XdpDesc>,
    zero_copy: bool,
    /// Frames come with stamps in front of them.
    stamped: bool,
    umem: Umem,
}

impl Queue {
    /// Takes the queue: what receives by it, and what sends.
    pub(super) fn open(
        link: &Link,
        options: &LinkOptions,
        mut size: Size,
        number: u32,
    ) -> Result<(Self, Sending), PortError> {
        let (family, flags) = (AddressFamily::XDP, SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(family, SocketType::RAW, flags, None)
            .map_err(|errno| raw::refused(BACKEND, errno))?;
        let umem = Umem::new(2 * size.frames, size.buffer).map_err(memory_refused)?;
        let stamped = options.stamping == FrameStamping::Asked;
        let refused = register(&socket, &umem, &mut size, stamped)?;
        let count = size.frames;
        let ring = |what| move |errno| ring_refused(what, errno);
        set_xdp_umem_fill_ring_size(&socket, size.fill()).map_err(ring("fill ring"))?;
        set_xdp_umem_completion_ring_size(&socket, count).map_err(ring("completion ring"))?;
        set_xdp_rx_ring_size(&socket, count).map_err(ring("receiving ring"))?;
        set_xdp_tx_ring_size(&socket, count).map_err(ring("sending ring"))?;
        let at = sockopt::xdp_mmap_offsets(&socket).map_err(ring("rings' offsets"))?;
        let fill = Producer::map(&socket, XDP_UMEM_PGOFF_FILL_RING, &at.fr, size.fill());
        let completion = Consumer::map(&socket, XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, count);
        let received = Consumer::map(&socket, XDP_PGOFF_RX_RING, &at.rx, count);
        let sending = Producer::map(&socket, XDP_PGOFF_TX_RING, &at.tx, count);
        let buffers = move |from: u32| {
            (from..from + count).map(move |buffer| u64::from(buffer) * u64::from(size.buffer))
        };
        let socket = Arc::new(socket);
        let (umem, rest) = umem.split(count as usize * size.buffer as usize);
        let sending = Sending::new(
            Arc::clone(&socket),
            size,
            completion.map_err(ring("completion ring"))?,
            sending.map_err(ring("sending ring"))?,
            buffers(count).collect(),
            rest,
            options.waking,
            refused,
        );
        let mut queue = Self {
            fill: fill.map_err(ring("fill ring"))?,
            received: received.map_err(ring("receiving ring"))?,
            zero_copy: false,
            stamped,
            socket,
            number,
            size,
            umem,
        };
        for buffer in buffers(0) {
            let taken = queue.fill.push(buffer);
            debug_assert!(taken, "the ring has an entry for each of them");
        }
        queue.fill.submit();
        queue.bind(link, options)?;
        Ok((queue, sending))
    }

    /// Takes the queue. Without a wish the kernel tries to do without copies, and copies where the
    /// driver cannot; afterwards it says which.
    fn bind(&mut self, link: &Link, options: &LinkOptions) -> Result<(), PortError> {
        let copying = options.copying;
        let address = SocketAddrXdp::new(wish(options), link.index, self.number);
        let mut tries = 0;
        while let Err(errno) = rustix::net::bind(&*self.socket, &address) {
            tries += 1;
            if errno != Errno::BUSY || tries == TRIES {
                return Err(bind_refused(link, self.number, copying, errno));
            }
            std::thread::sleep(BETWEEN);
        }
        self.zero_copy = does_without_copies(sockopt::xdp_options(&*self.socket));
        Ok(())
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Sizes, as the kernel took them.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    pub(super) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Takes what was received, into `taken`, up to a burst in all.
    #[inline]
    pub(super) fn take(&mut self, place: usize, taken: &mut Vec<(usize, XdpDesc)>) {
        let before = taken.len();
        while taken.len() < BURST {
            let Some(frame) = self.received.pop() else { break };
            taken.push((place, frame));
        }
        if taken.len() > before {
            // The entries were copied; the buffers are ours until they are in the fill ring again.
            self.received.release();
        }
    }

    /// A frame that was taken; empty where its descriptor lies outside of the memory.
    #[inline]
    pub(super) fn frame(&self, frame: XdpDesc) -> &[u8] {
        self.umem.frame(frame.addr, frame.len).unwrap_or_default()
    }

    /// The stamps in front of a frame that was taken. `ahead_s` is what atomic time is ahead of the wall
    /// clock.
    #[inline]
    pub(super) fn stamps(&self, frame: XdpDesc, ahead_s: i64) -> Stamped {
        if !self.stamped {
            return Stamped::default();
        }
        self.stamps_before(frame, ahead_s)
    }

    fn stamps_before(&self, frame: XdpDesc, ahead_s: i64) -> Stamped {
        let front = frame.addr.checked_sub(u64::from(METADATA));
        let front = front.and_then(|at| self.umem.frame(at, METADATA));
        stamps::read(front.unwrap_or_default(), ahead_s)
    }

    /// Puts the buffer of a frame that was taken back among the empty ones.
    #[inline]
    pub(super) fn give_back(&mut self, frame: XdpDesc) {
        if self.stamped
            && let Some(front) = frame.addr.checked_sub(u64::from(METADATA))
            && let Some(front) = self.umem.room(front, METADATA)
        {
            // What is there next time was written for the next frame.
            front.fill(0);
        }
        // The frame lies somewhere in its buffer. There is room: see [`Size::fill`].
        let taken = self.fill.push(frame.addr & !(u64::from(self.size.buffer) - 1));
        debug_assert!(taken, "the ring has an entry for each of them");
    }

    /// Shows the kernel the empty buffers, and wakes it where it waits for them.
    #[inline]
    pub(super) fn refill(&mut self) -> Result<(), Errno> {
        self.fill.submit();
        // Only drivers that do without copies say that they wait.
        if self.zero_copy && self.fill.needs_wakeup() {
            return self.call_receiving();
        }
        Ok(())
    }

    /// Has the kernel look at the card's queue, where it busy-polls or waits for buffers. Tells as
    /// well that the interface is gone.
    pub(super) fn call_receiving(&self) -> Result<(), Errno> {
        match recv(&*self.socket, &mut [0_u8; 0][..], RecvFlags::DONTWAIT) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::BUSY) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// What the kernel dropped, by ring.
    pub(super) fn drops(&self) -> Result<impl Iterator<Item = Drops>, Errno> {
        let counted = sockopt::xdp_statistics(&*self.socket)?;
        let queue = self.number;
        // A frame for which the fill ring had no buffer is one of `rx_dropped`.
        let all = [
            (Ring::Receive, "rx_dropped", Some(counted.rx_dropped), Counted::Frames),
            (Ring::Receive, "rx_ring_full", counted.rx_ring_full, Counted::Frames),
            (
                Ring::Fill,
                "rx_fill_ring_empty_descs",
                counted.rx_fill_ring_empty_descs,
                Counted::Occasions,
            ),
            (Ring::Fill, "rx_invalid_descs", Some(counted.rx_invalid_descs), Counted::Occasions),
            (Ring::Send, "tx_invalid_descs", Some(counted.tx_invalid_descs), Counted::Frames),
        ];
        Ok(all.into_iter().filter_map(move |(ring, counter, count, of)| {
            count.map(|count| Drops { queue, ring, counter, count, of })
        }))
    }
}

/// Gives the kernel the memory: with room in front of what is sent for what it tells of that, where it is
/// asked to tell and knows how; else why not.
fn register(
    socket: &OwnedFd,
    umem: &Umem,
    size: &mut Size,
    stamped: bool,
) -> Result<Option<String>, PortError> {
    let plain = XdpUmemReg {
        addr: umem.address(),
        len: umem.bytes() as u64,
        chunk_size: size.buffer,
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    let mut refused = None;
    if stamped {
        let flags = XdpUmemRegFlags::from_bits_retain(WITH_SENT_METADATA);
        let telling = XdpUmemReg { flags, tx_metadata_len: SENT_METADATA, ..plain };
        match set_xdp_umem_reg(socket, telling) {
            Ok(()) => {
                size.front = SENT_METADATA;
                return Ok(None);
            }
            Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => {
                refused = Some(format!(
                    "no stamps of what is sent: this kernel tells nothing of it, which came with \
                     Linux 6.11 ({errno})"
                ));
            }
            Err(errno) => return Err(memory_refused(errno)),
        }
    }
    set_xdp_umem_reg(socket, plain).map_err(memory_refused)?;
    Ok(refused)
}

fn memory_refused(errno: Errno) -> PortError {
    let advice = "run `ulimit -l unlimited` or give CAP_IPC_LOCK, or ask for smaller rings";
    PortError::Ring { backend: BACKEND, what: "memory for frames", errno, advice }
}

fn ring_refused(what: &'static str, errno: Errno) -> PortError {
    let advice = "ask for a smaller one; the kernel has no memory for it";
    PortError::Ring { backend: BACKEND, what, errno, advice }
}

/// What the kernel is asked as a queue is taken.
fn wish(options: &LinkOptions) -> SocketAddrXdpFlags {
    let copies = match options.copying {
        Copying::Auto => SocketAddrXdpFlags::empty(),
        Copying::Copy => SocketAddrXdpFlags::XDP_COPY,
        Copying::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
    };
    match options.waking {
        Waking::WhenNeeded => SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP | copies,
        Waking::Always => copies,
    }
}

/// Whether the kernel and the driver do without copies, by what the kernel answers. One that does not
/// answer copies: nothing is claimed that nobody said.
fn does_without_copies(answer: Result<XdpOptionsFlags, Errno>) -> bool {
    answer.is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
}

fn bind_refused(link: &Link, queue: u32, copying: Copying, errno: Errno) -> PortError {
    let why = match (errno, copying) {
        (Errno::BUSY, _) => "another socket has it: end its process, or choose another queue",
        (Errno::INVAL, _) => "the interface has no such queue (`ethtool -l`)",
        (Errno::OPNOTSUPP, Copying::ZeroCopy) => {
            "its driver cannot do without copies: let it copy, or leave the choice"
        }
        (Errno::NETDOWN | Errno::NODEV, _) => return link.lost(errno),
        (Errno::PERM | Errno::ACCESS, _) => return PortError::FramesDenied { backend: BACKEND },
        _ => "the kernel refuses",
    };
    PortError::Queue { interface: link.name.clone(), queue, why, errno }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Mac;

    fn link(mtu: u32) -> Link {
        let (name, mac, addresses) = ("near".into(), Mac([2; 6]), Vec::new());
        Link { name, index: 2, mac, mtu, addresses, probe: None }
    }

    #[test]
    fn buffers_hold_the_longest_frame_or_are_refused_with_what_it_needs() {
        let chosen = |mtu| Size::new(&link(mtu), &LinkOptions::default());
        assert_eq!(chosen(1_500).unwrap(), Size { buffer: 2_048, frames: 2_048, front: 0 });
        // The last one that 2048 hold: 256 of headroom, 14 of Ethernet, 8 of tags.
        assert_eq!(chosen(1_770).unwrap().buffer, 2_048);
        assert_eq!(chosen(1_771).unwrap().buffer, 4_096);
        let error = chosen(9_000).unwrap_err();
        assert!(matches!(error, PortError::BufferTooSmall { needed: 9_278, bytes: 4_096, .. }));
        assert!(error.to_string().contains("MTU of 9000"), "{error}");
        let small = LinkOptions { buffer: Some(2_048), ..LinkOptions::default() };
        assert!(matches!(
            Size::new(&link(3_000), &small),
            Err(PortError::BufferTooSmall { bytes: 2_048, .. })
        ));
    }

    #[test]
    fn what_is_asked_of_the_kernel_and_what_it_answers_of_copies_and_wakeups_is_read_as_it_is() {
        let flags = |copying, waking| wish(&LinkOptions { copying, waking, ..Default::default() });
        let wakes = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        for (copying, expected) in [
            (Copying::Auto, SocketAddrXdpFlags::empty()),
            (Copying::Copy, SocketAddrXdpFlags::XDP_COPY),
            (Copying::ZeroCopy, SocketAddrXdpFlags::XDP_ZEROCOPY),
        ] {
            assert_eq!(flags(copying, Waking::Always).bits(), expected.bits(), "{copying:?}");
            let both = (expected | wakes).bits();
            assert_eq!(flags(copying, Waking::WhenNeeded).bits(), both, "{copying:?}");
        }
        assert!(does_without_copies(Ok(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY)));
        assert!(!does_without_copies(Ok(XdpOptionsFlags::empty())));
        assert!(!does_without_copies(Err(Errno::NOPROTOOPT)));
        let refused = |copying, errno| bind_refused(&link(1_500), 3, copying, errno).to_string();
        let without = refused(Copying::ZeroCopy, Errno::OPNOTSUPP);
        assert!(without.contains("cannot do without copies"), "{without}");
        let other = refused(Copying::Auto, Errno::OPNOTSUPP);
        assert!(other.contains("the kernel refuses"), "{other}");
    }

    #[test]
    fn rings_and_buffers_that_cannot_be_are_refused_by_name() {
        for (buffer, ring) in [(Some(3_000), None), (None, Some(100)), (None, Some(32))] {
            let options = LinkOptions { ring, buffer, ..LinkOptions::default() };
            let error = Size::new(&link(1_500), &options).unwrap_err();
            assert!(matches!(error, PortError::RingUnfit { .. }), "{error}");
        }
    }
}
