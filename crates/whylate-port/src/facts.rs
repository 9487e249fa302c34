//! What a reader of a port's numbers must know: whose clock, how fine, how dear, how steady.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::sockopt;
use whylate_clock::{Counter, cost};
use whylate_model::Hertz;
use whylate_sys::socket_options;

use crate::interface;
use crate::port::Wait;

/// Pairs of stamps taken in a row: their distance is the cost of one, and a constant.
const PAIRS: usize = 10_001;

/// A port's own description.
#[derive(Debug, Clone, PartialEq)]
pub struct PortFacts {
    /// `unix datagram`, `udp over ipv4`, `udp over ipv6`, `tcp over ipv4`, `tcp over ipv6`,
    /// `several sockets`, `memory`.
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
    /// Microseconds that one look polls the receiving queue itself; 0 is not at all.
    pub busy_poll_us: Option<u32>,
}

impl SocketFacts {
    /// Reads them back.
    pub(crate) fn of(socket: &OwnedFd, local: String, remote: Option<String>) -> Self {
        let bytes = |size: rustix::io::Result<usize>| size.ok().map(|size| size as u64);
        let address: Option<SocketAddr> = local.parse().ok();
        let interface = address.and_then(|address| interface::having(address.ip()));
        let mtu = interface.as_ref().and_then(|interface| interface.mtu);
        Self {
            local,
            remote,
            interface: interface.map(|interface| interface.name),
            mtu,
            receive_buffer: bytes(sockopt::socket_recv_buffer_size(socket)),
            send_buffer: bytes(sockopt::socket_send_buffer_size(socket)),
            busy_poll_us: None,
        }
        .waited_for(socket)
    }

    /// With what a way to wait asked of the socket.
    pub(crate) fn waited_for(self, socket: &OwnedFd) -> Self {
        Self { busy_poll_us: socket_options::busy_poll(socket).ok(), ..self }
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
}
