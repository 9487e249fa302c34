//! The sources of a fan-in and what takes in what they send.
//!
//! Each source is a thread with a socket on its own link, which sends at random distances of a known mean (a
//! Poisson process) and catches up where it was held up. In a bed these are datagrams, and the receiver counts
//! by the address that one came from; between real ports they are frames, which say who sent them. Both say of
//! which measurement they are. All count within the same stretch of time of one clock, which begins when the
//! queue before the narrow port has been filled: what waited in it then comes, too, and was not sent within.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use whylate_model::{CpuId, Nanos};
use whylate_net::lab::{Bed, Role, Source};
use whylate_port::PortError;
use whylate_port::frame::Mac;
use whylate_port::packet::sender::FrameSender;
use whylate_port::packet::tap::{TapRing, Tapped};
use whylate_stats::rng::Rng;
use whylate_sys::affinity;
use whylate_sys::nanosleep::{Clock, clock_ns, sleep_until};

use super::super::outcome::DeviceError;
use super::{RealPorts, ours};

/// The port that all sources send to.
const PORT: u16 = 4022;
/// Bytes of a frame around the payload of a datagram: Ethernet with its check sequence, IPv4, UDP.
const AROUND: u32 = 14 + 4 + 20 + 8;
/// A receiver that hears nothing looks again after so long.
const LOOK: Duration = Duration::from_millis(20);
/// Sources begin so long from now: all of them are ready by then.
const AHEAD: Nanos = Nanos(50_000_000);

/// Where the ports are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way<'a> {
    /// In a bed of ours.
    Bed(&'a Bed),
    /// Interfaces of this network namespace, with something real between them.
    Ports(&'a RealPorts),
}

/// Sends what is due; whether it left.
type Leave = Box<dyn FnMut() -> bool>;

/// Traffic from several ports to one.
pub(super) struct Flood<'a> {
    pub(super) way: Way<'a>,
    /// CPUs for its threads.
    pub(super) allowed: &'a [CpuId],
    /// Numbers of the sources.
    pub(super) ports: &'a [u32],
    /// Frames a second of each of them.
    pub(super) per_second: &'a [f64],
    pub(super) frame_bytes: u32,
    /// Nothing is counted for so long.
    pub(super) filling: Nanos,
    /// And everything from then on for so long.
    pub(super) duration: Nanos,
    pub(super) seed: u64,
}

/// Frames of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Came {
    /// Of each source, in their order.
    pub(super) counted: Vec<Counted>,
    /// What the receiver's socket had no room for.
    pub(super) missed_by_the_sink: u64,
}

/// When things are counted, by the monotonic clock.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    begin: u64,
    from: u64,
    to: u64,
}

impl Flood<'_> {
    /// Sends and counts; ends at its time, or when it is to stop.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<Came, DeviceError> {
        let begin = clock_ns(Clock::Monotonic) + AHEAD.0;
        let from = begin + self.filling.0;
        let stretch = Stretch { begin, from, to: from + self.duration.0 };
        let failed = |_| DeviceError::FanIn("a thread of it failed".to_owned());
        thread::scope(|scope| {
            let sink = scope.spawn(move || match self.way {
                Way::Bed(bed) => self.receive(bed, stretch, stop),
                Way::Ports(ports) => self.hear(ports, stretch, stop),
            });
            let sources: Vec<_> = (0..self.ports.len())
                .map(|place| scope.spawn(move || self.send(place, stretch, stop)))
                .collect();
            let mut sent = Vec::with_capacity(sources.len());
            for source in sources {
                sent.push(source.join().map_err(failed)?);
            }
            let (received, missed_by_the_sink) = sink.join().map_err(failed)??;
            let mut counted = Vec::with_capacity(sent.len());
            for (sent, received) in sent.into_iter().zip(received) {
                counted.push(Counted { sent: sent?, received });
            }
            Ok(Came { counted, missed_by_the_sink })
        })
    }

    fn socket(&self, bed: &Bed, role: Role, own: SocketAddrV4) -> Result<UdpSocket, DeviceError> {
        let failed = |why: String| DeviceError::FanIn(format!("a socket at {own}: {why}"));
        affinity::set(self.allowed).map_err(|error| failed(error.to_string()))?;
        bed.enter(role).map_err(|error| failed(error.to_string()))?;
        UdpSocket::bind(own).map_err(|error| failed(error.to_string()))
    }

    /// What a source of a bed sends, which waits for no room.
    fn datagrams(&self, bed: &Bed, place: usize) -> Result<Leave, DeviceError> {
        let Source { own, server } = Source::of(self.ports[place]);
        let socket = self.socket(bed, Role::Client, SocketAddrV4::new(own, 0))?;
        let at = SocketAddrV4::new(server, PORT);
        let failed = |error: std::io::Error| DeviceError::FanIn(format!("{own} to {at}: {error}"));
        socket.connect(at).map_err(failed)?;
        // One that waits for room would send at the rate of the narrow port.
        socket.set_nonblocking(true).map_err(failed)?;
        let bytes = self.frame_bytes.saturating_sub(AROUND) as usize;
        let datagram = ours::datagram(self.seed, bytes);
        Ok(Box::new(move || socket.send(&datagram).is_ok()))
    }

    /// The same of a real port.
    fn frames(&self, ports: &RealPorts, place: usize) -> Result<Leave, DeviceError> {
        self.stay()?;
        let number = self.ports[place];
        let from = ports.from.get(number as usize).map_or("", String::as_str);
        let failed = |error: PortError| DeviceError::FanIn(format!("{from}: {error}"));
        let sender = FrameSender::open(from).map_err(failed)?;
        let to = FrameSender::open(&ports.to).map_err(failed)?.mac();
        let frame = ours::frame(to, sender.mac(), self.seed, place as u32, self.frame_bytes);
        // One that cannot be sent is one that did not leave: an interface that went away sends nothing.
        Ok(Box::new(move || sender.send(&frame).unwrap_or(false)))
    }

    /// This thread keeps off the CPUs that are measured.
    fn stay(&self) -> Result<(), DeviceError> {
        affinity::set(self.allowed).map_err(|error| DeviceError::FanIn(error.to_string()))
    }

    /// Frames that left within the stretch.
    fn send(&self, place: usize, stretch: Stretch, stop: &AtomicBool) -> Result<u64, DeviceError> {
        let mut leave = match self.way {
            Way::Bed(bed) => self.datagrams(bed, place)?,
            Way::Ports(ports) => self.frames(ports, place)?,
        };
        let mut rng = Rng::stream(self.seed, place as u64);
        let (mean_ns, mut due) = (1e9 / self.per_second[place], stretch.begin as f64);
        let mut sent = 0;
        loop {
            due += rng.exponential(mean_ns);
            let at = due as u64;
            if at >= stretch.to || stop.load(Ordering::Relaxed) {
                return Ok(sent);
            }
            if clock_ns(Clock::Monotonic) < at {
                // An interrupted sleep is one that ends early: the frame leaves early, too.
                let _ = sleep_until(Clock::Monotonic, at);
            }
            let left = leave();
            let now = clock_ns(Clock::Monotonic);
            if now >= stretch.to {
                return Ok(sent);
            }
            // What the kernel did not take never was in the queue.
            sent += u64::from(now >= stretch.from && left);
        }
    }

    /// Frames that came within the stretch, of each source, and those that found no room.
    fn receive(
        &self,
        bed: &Bed,
        stretch: Stretch,
        stop: &AtomicBool,
    ) -> Result<(Vec<u64>, u64), DeviceError> {
        let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
        let socket = self.socket(bed, Role::Server, anywhere)?;
        socket
            .set_read_timeout(Some(LOOK))
            .map_err(|error| DeviceError::FanIn(error.to_string()))?;
        let addresses: Vec<Ipv4Addr> =
            self.ports.iter().map(|port| Source::of(*port).own).collect();
        let (mut counts, mut buffer) = (vec![0_u64; addresses.len()], [0; 2_048]);
        let before = dropped();
        while !stop.load(Ordering::Relaxed) {
            let came = socket.recv_from(&mut buffer);
            let now = clock_ns(Clock::Monotonic);
            if now >= stretch.to {
                break;
            }
            match came {
                Ok((length, from)) if now >= stretch.from => {
                    if !ours::is_of(&buffer[..length], self.seed) {
                        continue;
                    }
                    let place = addresses.iter().position(|own| from.ip() == *own);
                    if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
                        *count += 1;
                    }
                }
                Err(error)
                    if !matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    return Err(DeviceError::FanIn(format!("it cannot receive: {error}")));
                }
                _ => {}
            }
        }
        Ok((counts, dropped().saturating_sub(before)))
    }

    /// The same at a real port.
    fn hear(
        &self,
        ports: &RealPorts,
        stretch: Stretch,
        stop: &AtomicBool,
    ) -> Result<(Vec<u64>, u64), DeviceError> {
        self.stay()?;
        let failed = |error: PortError| DeviceError::FanIn(format!("{}: {error}", ports.to));
        let mut ring = TapRing::open(&ports.to).map_err(failed)?;
        let own = FrameSender::open(&ports.to).map_err(failed)?;
        // What lies between learns where this port is, and need not ask all others. No place has this number.
        let here = ours::frame(Mac::BROADCAST, own.mac(), self.seed, u32::MAX, self.frame_bytes);
        own.send(&here).map_err(failed)?;
        let mut counts = vec![0_u64; self.ports.len()];
        while clock_ns(Clock::Monotonic) < stretch.to && !stop.load(Ordering::Relaxed) {
            let mut count = |frame: &Tapped<'_>| {
                let now = clock_ns(Clock::Monotonic);
                if frame.outgoing || now < stretch.from || now >= stretch.to {
                    return;
                }
                if let Some(place) = ours::place_of(frame.bytes, self.seed)
                    && let Some(count) = counts.get_mut(place)
                {
                    *count += 1;
                }
            };
            ring.take(Nanos(LOOK.as_nanos() as u64), &mut count).map_err(failed)?;
        }
        Ok((counts, ring.dropped().map_err(failed)?))
    }
}

/// Datagrams that sockets at our port of this namespace had no room for, as the kernel counts them.
fn dropped() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap_or_default();
    dropped_in(&table)
}

fn dropped_in(table: &str) -> u64 {
    let port = format!(":{PORT:04X}");
    let rows = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1)?;
        local.ends_with(&port).then(|| fields.next_back()?.parse::<u64>().ok()).flatten()
    });
    rows.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_those_of_our_port_alone() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid timeout \
                     inode ref pointer drops\n\
                     1: 00000000:0FB6 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 0 17\n\
                     2: 00000000:0FB7 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 0 9\n";
        assert_eq!(PORT, 0x0fb6);
        assert_eq!(dropped_in(table), 17);
        assert_eq!(dropped_in(""), 0);
    }
}
