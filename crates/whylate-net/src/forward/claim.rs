//! One forwarder for each port: an interface of a network namespace, a card, one end of shared memory.
//!
//! [unix(7)](https://man7.org/linux/man-pages/man7/unix.7.html), abstract socket addresses. A socket
//! with a name that nobody else can have in the same network namespace: the kernel gives it up with
//! the process, however that ends, and nothing is left on a disk. Capability: none.
//!
//! A port is claimed by what it is, not by what it is called: an interface is one whether sockets or a
//! driver of DPDK take it, and a card is one however its place is written. What only one process can see
//! (devices of DPDK in its own memory) is claimed by nobody. Forwarders in different network namespaces do
//! not see each other's claims: of a card the kernel's driver tells the second one.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use whylate_port::Transport;
use whylate_port::device::DeviceName;

use super::error::ForwardError;

/// Where the kernel tells which interfaces a card has.
const CARDS: &str = "/sys/bus/pci/devices";
/// Bytes of a name that are taken as they are: the kernel has room for 107.
const LONGEST: usize = 64;

/// What a port is, whatever it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    /// An interface of this network namespace, by its number.
    Interface(u32),
    /// Anything else, by words that are its own.
    Other(String),
}

impl Thing {
    fn words(&self) -> String {
        match self {
            Self::Interface(index) => format!("whylate-forward-{index}"),
            Self::Other(words) if words.len() <= LONGEST => format!("whylate-forward-{words}"),
            Self::Other(words) => format!("whylate-forward-{:016x}", digest(words)),
        }
    }
}

/// A number for words that are too long (FNV-1a): the same in all processes.
fn digest(words: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    words.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What the port of this name is; nothing where nobody else could have it, or it is not there.
/// `index_of` knows the interfaces here, `of_card` those of a card.
pub(crate) fn things(
    transport: Transport,
    name: &str,
    index_of: &dyn Fn(&str) -> Option<u32>,
    of_card: &dyn Fn(&str) -> Vec<String>,
) -> Vec<Thing> {
    let interface = |name: &str| index_of(name).map(Thing::Interface);
    if transport != Transport::Dpdk {
        return interface(name).into_iter().collect();
    }
    let device = DeviceName::of(name);
    if let Some(place) = device.place() {
        let interfaces = of_card(&place).into_iter().filter_map(|name| interface(&name));
        return interfaces.chain([Thing::Other(format!("card-{place}"))]).collect();
    }
    let driver = name.split(',').next().unwrap_or_default();
    let driver = driver.trim_end_matches(|sign: char| sign.is_ascii_digit());
    let argument = |key| device.argument(key).unwrap_or_default();
    let other = |words: String| vec![Thing::Other(words)];
    match driver {
        "net_af_packet" | "net_af_xdp" | "net_pcap" => {
            let keys = ["iface", "rx_iface", "tx_iface"];
            let named = keys.into_iter().filter_map(|key| interface(device.argument(key)?));
            let mut all: Vec<Thing> = named.collect();
            all.dedup();
            all
        }
        "net_memif" => {
            // The two ends of one memory are two ports.
            let serves = matches!(argument("role"), "server" | "master");
            let end = if serves { "server" } else { "client" };
            other(format!("memif-{end}-{}-{}", argument("id"), argument("socket")))
        }
        "net_vhost" => other(format!("vhost-{}", argument("iface"))),
        "net_virtio_user" | "virtio_user" => other(format!("virtio-{}", argument("path"))),
        "net_tap" => device.argument("iface").map_or_else(Vec::new, |name| {
            interface(name).map_or_else(|| other(format!("tap-{name}")), |of| vec![of])
        }),
        // In this process's memory alone.
        _ => Vec::new(),
    }
}

/// The interfaces that the kernel has of a card; none where another driver has it.
pub(crate) fn interfaces_of_card(place: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(format!("{CARDS}/{place}/net")) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The right to forward by a port, for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    _socket: UnixDatagram,
}

impl Claim {
    /// Claims the interface with this number in the calling thread's network namespace. Its name is for
    /// messages.
    ///
    /// # Errors
    /// Another forwarder has it.
    pub fn of(index: u32, interface: &str) -> Result<Self, ForwardError> {
        Self::of_thing(&Thing::Interface(index), interface)
    }

    /// The same of whatever the port is.
    pub(crate) fn of_thing(thing: &Thing, interface: &str) -> Result<Self, ForwardError> {
        let name = thing.words();
        let bound = SocketAddr::from_abstract_name(name.as_bytes())
            .and_then(|address| UnixDatagram::bind_addr(&address));
        let interface = interface.to_owned();
        match bound {
            Ok(socket) => Ok(Self { _socket: socket }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                Err(ForwardError::Held { interface })
            }
            Err(error) => Err(ForwardError::Claim { interface, error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_claimed_once_and_is_free_when_its_forwarder_ends() {
        // No interface has such a number.
        let index = u32::MAX - std::process::id();
        let first = Claim::of(index, "eth7").unwrap();
        let refused = Claim::of(index, "eth7").unwrap_err();
        assert!(matches!(refused, ForwardError::Held { .. }), "{refused}");
        assert!(refused.to_string().contains("`eth7` is a port of another forwarder"));
        assert!(Claim::of(index - 1, "eth8").is_ok());
        drop(first);
        assert!(Claim::of(index, "eth7").is_ok());
    }

    #[test]
    fn a_port_is_what_it_is_whatever_it_is_called() {
        let index_of = |name: &str| match name {
            "eth1" => Some(3),
            "eth2" => Some(4),
            _ => None,
        };
        let of_card = |place: &str| match place {
            "0000:03:00.0" => vec!["eth1".to_owned()],
            _ => Vec::new(),
        };
        let of = |transport, name| things(transport, name, &index_of, &of_card);
        let dpdk = |name| of(Transport::Dpdk, name);
        let eth1 = [Thing::Interface(3)];
        assert_eq!(of(Transport::Xdp, "eth1"), eth1);
        assert_eq!(of(Transport::Packet, "gone"), []);
        for name in [
            "net_af_xdp0,iface=eth1",
            "net_af_packet7,iface=eth1,qdisc_bypass=1",
            "net_pcap1,rx_iface=eth1,tx_iface=eth1",
            "net_tap0,iface=eth1",
        ] {
            assert_eq!(dpdk(name), eth1, "{name}");
        }
        // A card of which the kernel has an interface is both.
        for name in ["0000:03:00.0", "03:00.0", "03:00.0,arg=1"] {
            let card = Thing::Other("card-0000:03:00.0".to_owned());
            assert_eq!(dpdk(name), [Thing::Interface(3), card], "{name}");
        }
        assert_eq!(dpdk("0000:AF:00.1"), [Thing::Other("card-0000:af:00.1".to_owned())]);
        // Numbers of devices say nothing, and the two ends of shared memory are two ports.
        let server = dpdk("net_memif0,role=server,id=1,socket=/run/m");
        assert_eq!(server, dpdk("net_memif9,id=1,socket=/run/m,role=server"));
        assert_ne!(server, dpdk("net_memif0,role=client,id=1,socket=/run/m"));
        assert_ne!(server, dpdk("net_memif0,role=server,id=2,socket=/run/m"));
        assert_ne!(dpdk("net_vhost0,iface=/run/v"), dpdk("net_virtio_user0,path=/run/v"));
        for name in ["net_null0", "net_ring0", "net_tap0"] {
            assert_eq!(dpdk(name), [], "{name}");
        }
    }

    #[test]
    fn a_device_is_claimed_once_also_where_its_words_are_long() {
        let path = format!("vhost-/run/{}/{}", std::process::id(), "v".repeat(200));
        let (thing, beside) = (Thing::Other(path.clone()), Thing::Other(format!("{path}w")));
        let first = Claim::of_thing(&thing, "net_vhost0").unwrap();
        let refused = Claim::of_thing(&thing, "net_vhost1").unwrap_err();
        assert!(matches!(refused, ForwardError::Held { .. }), "{refused}");
        assert!(Claim::of_thing(&beside, "net_vhost2").is_ok());
        drop(first);
        assert!(Claim::of_thing(&thing, "net_vhost1").is_ok());
    }
}
