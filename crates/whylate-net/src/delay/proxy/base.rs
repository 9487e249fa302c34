//! What a proxy adds by itself: messages of its own through sockets of its own, before the first client's.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use whylate_clock::Counter;
use whylate_clock::cost::resolution_ticks;
use whylate_model::delay::DelayBase;
use whylate_model::{Hertz, Nanos};
use whylate_stats::Histogram;
use whylate_sys::nanosleep::{Clock, clock_ns};

use super::error::ProxyError;
use super::line::Teller;
use super::run::{Proxy, ProxyPlan};
use super::words::{ProxyKind, ProxyWay};
use crate::delay::law::Law;

/// Messages of each measurement.
const MESSAGES: u64 = 200;
/// The delay at which its error is measured.
const AT: Nanos = Nanos(100_000);
/// How long one message may take: one that is lost ends the measurement.
const PATIENCE: Nanos = Nanos(2 * Nanos::SECOND.0);
/// Bytes of a message.
const BYTES: usize = 64;

/// The two ends of the measurement, on the calling thread.
enum Ends {
    Udp { client: UdpSocket, server: UdpSocket },
    Tcp { client: TcpStream, listener: TcpListener, server: Option<TcpStream> },
}

/// Measures, by a proxy of the same kind that waits in the same way.
pub(super) fn measured<C: Counter>(
    plan: &ProxyPlan,
    mut counter: C,
    rate: Hertz,
) -> Result<DelayBase, ProxyError> {
    let resolution = resolution_ticks(&mut counter).to_nanos(rate).max(Nanos(1));
    let own: IpAddr = match plan.way.listen {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let at = SocketAddr::new(own, 0);
    let failed = |source| ProxyError::Socket { what: "measure its own delay at", at, source };
    let (mut proxy, mut ends) = both(plan, counter, rate, at)?;
    let mut messages = |proxy: &mut Proxy<C>| -> std::io::Result<()> {
        (0..MESSAGES).try_for_each(|_| one(proxy, &mut ends))
    };
    messages(&mut proxy).map_err(failed)?;
    let idle = proxy.taken_times().residence;
    proxy.set_for_itself(&Law::constant(AT));
    messages(&mut proxy).map_err(failed)?;
    let late = proxy.taken_times().lateness;
    let of = |histogram: &Histogram, percent| Nanos(histogram.value_at(percent).unwrap_or(0));
    Ok(DelayBase {
        base: of(&idle, 50.0),
        error: of(&late, 99.0).max(resolution),
        error_median: of(&late, 50.0),
        error_max: Nanos(late.max().unwrap_or(0)),
        at: AT,
        frames: late.len(),
        resolution,
    })
}

/// A proxy and both ends.
fn both<C: Counter>(
    plan: &ProxyPlan,
    counter: C,
    rate: Hertz,
    at: SocketAddr,
) -> Result<(Proxy<C>, Ends), ProxyError> {
    let failed = |source| ProxyError::Socket { what: "measure its own delay at", at, source };
    let open = |to: SocketAddr| {
        let way = ProxyWay { kind: plan.way.kind, listen: at, to };
        let laws = [Law::default(), Law::default()];
        let own = ProxyPlan { way, laws, truths: None, ..plan.clone() };
        let tells = [0, 1].map(|_| -> crate::delay::Tells { Box::new(|_| None) });
        Proxy::open(&own, counter, rate, tells, Teller::new(None))
    };
    let reached = |proxy: &Proxy<C>| {
        proxy.local().ok_or_else(|| failed(std::io::Error::from(ErrorKind::AddrNotAvailable)))
    };
    match plan.way.kind {
        ProxyKind::Udp => {
            let server = UdpSocket::bind(at).map_err(failed)?;
            let proxy = open(server.local_addr().map_err(failed)?)?;
            let to = reached(&proxy)?;
            let client = UdpSocket::bind(at).and_then(|client| {
                client.connect(to)?;
                server.set_nonblocking(true)?;
                Ok(client)
            });
            Ok((proxy, Ends::Udp { client: client.map_err(failed)?, server }))
        }
        ProxyKind::Tcp => {
            let listener = TcpListener::bind(at).map_err(failed)?;
            let proxy = open(listener.local_addr().map_err(failed)?)?;
            let to = reached(&proxy)?;
            let client = TcpStream::connect(to).and_then(|client| {
                client.set_nodelay(true)?;
                listener.set_nonblocking(true)?;
                Ok(client)
            });
            let client = client.map_err(failed)?;
            Ok((proxy, Ends::Tcp { client, listener, server: None }))
        }
    }
}

/// Sends one message through, and looks until it has come.
fn one<C: Counter>(proxy: &mut Proxy<C>, ends: &mut Ends) -> std::io::Result<()> {
    let mut buffer = [0x5a; BYTES];
    match ends {
        Ends::Udp { client, .. } => client.send(&buffer).map(|_| ())?,
        Ends::Tcp { client, .. } => client.write_all(&buffer)?,
    }
    let mut missing = BYTES;
    let end = clock_ns(Clock::Monotonic) + PATIENCE.0;
    while clock_ns(Clock::Monotonic) < end {
        proxy.turn(None).map_err(std::io::Error::other)?;
        let came = match ends {
            Ends::Udp { server, .. } => server.recv(&mut buffer),
            Ends::Tcp { listener, server: server @ None, .. } => {
                *server = accepted(listener)?;
                continue;
            }
            Ends::Tcp { server: Some(server), .. } => server.read(&mut buffer),
        };
        match came {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) if length >= missing => return Ok(()),
            Ok(length) => missing -= length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::TimedOut.into())
}

/// The proxy's connection, once it is there.
fn accepted(listener: &TcpListener) -> std::io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true)?;
            Ok(Some(stream))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
