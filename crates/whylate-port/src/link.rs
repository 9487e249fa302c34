//! The interface that frames go by: what is asked of it, and what became of it in the run.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use whylate_sys::interface::Interface;

use crate::bpf::Wanted;
use crate::device::Device;
use crate::error::PortError;
use crate::frame::{ETHERNET, Mac, TAG, Tags};
use crate::interface::named;

/// What became of an interface that does not come back.
pub const DELETED: &str = "was deleted";

/// The kernel takes an interface down before it deletes it, and lets what is on its way end in between.
const LOOKS_AFTER_DOWN: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What is asked of a port of whole frames; the default is what fits most machines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkOptions {
    /// The interface's queues to use; none is queue 0, or all of them where the backend gets all.
    pub queues: Vec<u32>,
    /// The networks that frames are tagged with.
    pub tags: Tags,
    /// The port's own hardware address, instead of the interface's.
    pub mac: Option<Mac>,
    /// Who takes packets on the way to the other end, where that is on another link.
    pub next_hop: Option<IpAddr>,
    /// Frames in each ring.
    pub ring: Option<u32>,
    /// Bytes of a buffer.
    pub buffer: Option<u32>,
    /// Who is to copy frames.
    pub copying: Copying,
    /// Where a program is to be attached.
    pub attaching: Wanted,
    /// Whether the kernel has to be woken without asking (AF_XDP).
    pub waking: Waking,
    /// Whether frames queue like anybody's (AF_PACKET).
    pub queueing: Queueing,
    /// Whether frames are stamped on their way (AF_XDP).
    pub stamping: FrameStamping,
    /// The device of DPDK, which has no interface of the kernel.
    pub device: Device,
}

/// Whether frames are stamped on their way, by whoever can (AF_XDP's metadata).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FrameStamping {
    /// Nobody stamps.
    #[default]
    Off,
    /// As far as card, driver and kernel have stamps; [`FrameStamps`](crate::frames::FrameStamps) tells.
    Asked,
}

/// When the kernel is woken to send (AF_XDP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Waking {
    /// When it says that it has to be (need-wakeup).
    #[default]
    WhenNeeded,
    /// Each time.
    Always,
}

/// What frames that are sent pass (AF_PACKET).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Queueing {
    /// By the queueing discipline, where the kernel lets them.
    #[default]
    Bypassed,
    /// Through it, like everybody's.
    Asked,
}

/// Who is to copy frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Copying {
    /// Nobody where the driver can do without, else the kernel.
    #[default]
    Auto,
    /// The kernel.
    Copy,
    /// Nobody, or there is no port.
    ZeroCopy,
}

/// An interface that is fit for frames.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) mac: Mac,
    pub(crate) mtu: u32,
    pub(crate) addresses: Vec<IpAddr>,
    /// Asks what became of it, in the namespace it was opened in: a port may be used from another.
    pub(crate) probe: Option<Arc<OwnedFd>>,
}

impl Link {
    /// The interface of this name; refused by name where it cannot carry frames.
    pub(crate) fn named(name: &str) -> Result<Self, PortError> {
        let found = named(name)?;
        if !found.up {
            return Err(PortError::InterfaceDown { name: found.name });
        }
        let Interface { name, index, hardware, addresses, mtu, .. } = found;
        let (Some(mac), Some(mtu)) = (hardware, mtu) else {
            return Err(PortError::NotEthernet { name });
        };
        let probe = probe().map(Arc::new);
        Ok(Self { name, index, mac: Mac(mac), mtu, addresses, probe })
    }

    /// The longest frame that it sends, in bytes; `tags` are in it. The kernel lets one tag of a
    /// customer go beyond the MTU, and no other.
    pub(crate) fn longest(&self, tags: Tags) -> usize {
        let customer = tags.iter().next().is_some_and(|tag| tag.kind.number() == 0x8100);
        self.mtu as usize + ETHERNET + if customer { TAG } else { 0 }
    }

    /// The longest frame that can come: two tags may be on it.
    pub(crate) fn longest_arrival(&self) -> usize {
        self.mtu as usize + ETHERNET + 2 * TAG
    }

    /// What became of it, after the kernel refused with `errno`; waits for what tells a deletion from a
    /// link that only went down.
    #[cold]
    pub(crate) fn lost(&self, errno: Errno) -> PortError {
        for _ in 0..LOOKS_AFTER_DOWN {
            if self.name_now().is_none() {
                break;
            }
            thread::sleep(LOOK_AGAIN);
        }
        let what = match self.name_now() {
            None => DELETED,
            Some(now) if now != self.name => "was renamed and switched off",
            Some(_) => "went down",
        };
        PortError::LinkLost { name: self.name.clone(), what, errno }
    }

    /// The name that it has now; none where it is gone.
    fn name_now(&self) -> Option<String> {
        index_to_name(self.probe.as_deref()?, self.index).ok()
    }
}

/// Says that the interface is not there, or not up, or not any more.
pub(crate) fn is_of_link(errno: Errno) -> bool {
    matches!(errno, Errno::NETDOWN | Errno::NXIO | Errno::NODEV)
}

fn probe() -> Option<OwnedFd> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()
}
