//! What a reader of a port's numbers must know: whose clock, how fine, how dear, how steady.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use whylate_clock::{Counter, cost};
use whylate_model::Hertz;
use whylate_sys::socket_options;

use crate::frames::FramesFacts;
use crate::interface;
use crate::port::Wait;
use crate::queues::{IncomingFacts, Queues};

/// Pairs of stamps taken in a row: their distance is the cost of one, and a constant.
const PAIRS: usize = 10_001;

/// A port's own description.
#[derive(Debug, Clone, PartialEq)]
pub struct PortFacts {
    /// `unix datagram`, `udp over ipv4`, `udp over ipv6`, `tcp over ipv4`, `tcp over ipv6`,
    /// `several sockets`, `memory`, `af_packet`, `af_xdp`, `dpdk`.
    pub backend: &'static str,
    /// From where to where, as far as addresses tell: `127.0.0.1:4021 -> 127.0.0.1:4022`.
    pub path: String,
    /// How it waits.
    pub wait: Wait,
    /// How it stamps.
    pub stamps: StampFacts,
    /// The longest message in bytes.
    pub max_message: usize,
    /// What the kernel gave; none where no socket is used.
    pub socket: Option<SocketFacts>,
    /// Of a port over whole frames: rings, queues, who copies.
    pub frames: Option<FramesFacts>,
}

/// What the kernel gave a socket, read back after it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketFacts {
    /// Its own address; empty where it has none.
    pub local: String,
    /// The other end's; none of a server.
    pub remote: Option<String>,
    /// The interface that has the own address; none where several may be used.
    pub interface: Option<String>,
    /// The longest packet of IP that the interface sends, in bytes.
    pub mtu: Option<u32>,
    /// Room for what was received and not read yet, in bytes as the kernel counts them: twice what
    /// was asked for, because it counts its own bookkeeping.
    pub receive_buffer: Option<u64>,
    /// The same for what was sent and is still here.
    pub send_buffer: Option<u64>,
    /// Is a message that does not fit the path's MTU refused rather than cut into fragments? None of
    /// sockets without IP.
    pub whole_packets: Option<bool>,
    /// The byte of IP for type of service or traffic class; none of sockets without IP.
    pub traffic_class: Option<u8>,
    /// How many routers a packet may pass; none of sockets without IP.
    pub hops: Option<u8>,
    /// Microseconds that one look polls the receiving queue itself; 0 is not at all.
    pub busy_poll_us: Option<u32>,
    /// Queues of the interface, where it tells.
    pub queues: Option<Queues>,
    /// Where the last message came in, once that was asked.
    pub incoming: IncomingFacts,
}

impl SocketFacts {
    /// Reads them back.
    pub(crate) fn of(socket: &OwnedFd, local: String, remote: Option<String>) -> Self {
        let bytes = |size: rustix::io::Result<usize>| size.ok().map(|size| size as u64);
        let address: Option<SocketAddr> = local.parse().ok();
        let interface = address.and_then(|address| interface::having(address.ip()));
        let to = remote.as_ref().and_then(|remote| remote.parse().ok()).or(address);
        let ip = to.map(|to| IpFacts::of(socket, to)).unwrap_or_default();
        let mtu = interface.as_ref().and_then(|interface| interface.mtu);
        let queues = interface.as_ref().and_then(|interface| Queues::of(&interface.name));
        Self {
            local,
            remote,
            interface: interface.map(|interface| interface.name),
            mtu,
            receive_buffer: bytes(sockopt::socket_recv_buffer_size(socket)),
            send_buffer: bytes(sockopt::socket_send_buffer_size(socket)),
            whole_packets: ip.whole_packets,
            traffic_class: ip.traffic_class,
            hops: ip.hops,
            busy_poll_us: None,
            queues,
            incoming: IncomingFacts::default(),
        }
        .waited_for(socket)
    }

    /// With what a way to wait asked of the socket.
    pub(crate) fn waited_for(self, socket: &OwnedFd) -> Self {
        Self { busy_poll_us: socket_options::busy_poll(socket).ok(), ..self }
    }
}

/// What the kernel says of a socket's packets.
#[derive(Default)]
struct IpFacts {
    whole_packets: Option<bool>,
    traffic_class: Option<u8>,
    hops: Option<u8>,
}

impl IpFacts {
    fn of(socket: &OwnedFd, to: SocketAddr) -> Self {
        let byte = |number: rustix::io::Result<u32>| u8::try_from(number.ok()?).ok();
        let group = to.ip().is_multicast();
        if to.is_ipv4() {
            let whole = sockopt::ip_mtu_discover(socket).ok();
            return Self {
                whole_packets: whole.map(|how| how == Ipv4PathMtuDiscovery::DO),
                traffic_class: sockopt::ip_tos(socket).ok(),
                hops: byte(if group {
                    sockopt::ip_multicast_ttl(socket)
                } else {
                    sockopt::ip_ttl(socket)
                }),
            };
        }
        let whole = sockopt::ipv6_mtu_discover(socket).ok();
        Self {
            whole_packets: whole.map(|how| how == Ipv6PathMtuDiscovery::DO),
            traffic_class: byte(sockopt::ipv6_tclass(socket)),
            hops: if group {
                byte(sockopt::ipv6_multicast_hops(socket))
            } else {
                sockopt::ipv6_unicast_hops(socket).ok()
            },
        }
    }
}

/// How a port stamps, measured when it was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct StampFacts {
    /// Who stamps, by which clock, and where: the vantage point.
    pub source: String,
    /// Smallest step that the clock shows.
    pub resolution_ns: f64,
    /// Cost of a stamp: smallest.
    pub read_cost_min_ns: f64,
    /// Cost of a stamp: median.
    pub read_cost_median_ns: f64,
    /// Spread of repeated measurements of a constant, the cost of a stamp: p99 minus p1.
    pub precision_ns: f64,
}

impl StampFacts {
    /// Measures stamps that are readings of `counter` around the system call.
    pub fn of_counter<C: Counter>(counter: &mut C, rate: Hertz) -> Self {
        let resolution = cost::resolution_ticks(counter);
        let mut distances: Vec<u64> = (0..PAIRS)
            .map(|_| {
                let (first, _) = counter.read_ordered();
                let (second, _) = counter.read_ordered();
                second.since(first).0
            })
            .collect();
        distances.sort_unstable();
        let ns = |ticks: u64| ticks as f64 * 1e9 / rate.0;
        Self {
            source: format!("{} read around the system call", C::KIND),
            resolution_ns: ns(resolution.0),
            read_cost_min_ns: ns(distances[0]),
            read_cost_median_ns: ns(distances[PAIRS / 2]),
            precision_ns: ns(distances[PAIRS * 99 / 100] - distances[PAIRS / 100]),
        }
    }
    /// The same where rings are read in memory instead.
    pub(crate) fn at_ring(self, kind: &str) -> Self {
        let source = format!("{kind} read before a frame is handed over, and when one is seen");
        Self { source, ..self }
    }
}
