//! What stamps come, found out by sending: the kernel takes a wish without saying whether it can be kept.
//!
//! Each kind is asked for alone, by a port of its own. Its first packets are thrown away, because a
//! system that has stamped nothing yet stamps them with nothing; then each that comes is counted, with
//! what taking it costs and the smallest distance of two that differ.
//!
//! Kinds are those of `SO_TIMESTAMPING`. What a BPF program is called for when a socket is stamped
//! (`BPF_SOCK_OPS_TSTAMP_*`, Linux 6.15, TCP alone) is neither probed nor used: it tells nothing of our
//! own sockets that the error queue does not, and of others' the tracepoints tell.

use std::path::Path;
use std::thread;
use std::time::Duration;

use whylate_clock::Counter;
use whylate_model::breakdown::Probed;
use whylate_model::{Hertz, Nanos};
use whylate_port::{Port, PortError, PortFacts, Received, StampKind, StampWish};

use crate::conversation::Scale;
use crate::error::NetError;
use crate::protocol::{Phase, Protocol};

/// Packets that are thrown away.
const WARM_UP: u64 = 8;
/// Packets that are counted.
const PACKETS: u64 = 64;
/// After the first ones the system is left alone for so long: stamping begins in the background.
const SETTLE: Duration = Duration::from_millis(1);
/// An answer is waited for so long, and after the last packet its stamps.
const ANSWER: Nanos = Nanos(20_000_000);
/// Looks for the last stamps: not each one is worth a system call to a port.
const LAST_LOOKS: u32 = 64;
/// So many packets without an answer, and no more are waited for.
const PATIENCE: u64 = 3;
/// The longest message that comes back.
const LONGEST: usize = 1 << 16;

/// Who is sent to, and what.
pub struct Probing<'a, C> {
    /// Opens a port to the other end, which answers.
    pub open: &'a mut dyn FnMut() -> Result<Box<dyn Port>, PortError>,
    /// Makes requests that are not measured.
    pub protocol: &'a dyn Protocol,
    /// Their size.
    pub bytes: usize,
    /// The counter, and its frequency.
    pub counter: C,
    /// Its frequency.
    pub rate: Hertz,
}

/// Sends packets for each kind of stamp that is wished for, and says what came of it, in the order of
/// [`StampKind::ALL`]. Takes a fraction of a second where the other end answers, and some ten seconds at
/// most.
///
/// # Errors
/// A port could not be opened or used.
pub fn probe<C: Counter>(
    mut probing: Probing<'_, C>,
    wish: &StampWish,
) -> Result<Vec<Probed>, NetError> {
    let wished = StampKind::ALL.into_iter().filter(|kind| wish.has(*kind));
    wished.map(|kind| probing.one(kind)).collect()
}

/// What is wished for where one kind alone is.
fn alone(kind: StampKind) -> StampWish {
    let nothing = StampWish::NOTHING;
    match kind {
        StampKind::Sched => StampWish { sched: true, ..nothing },
        StampKind::Software => StampWish { software: true, ..nothing },
        StampKind::Hardware => StampWish { hardware: true, ..nothing },
        StampKind::Ack => StampWish { ack: true, ..nothing },
        StampKind::Completion => StampWish { completion: true, ..nothing },
        StampKind::ReceivedSoftware => StampWish { receive: true, ..nothing },
        StampKind::ReceivedHardware => StampWish { receive: true, hardware: true, ..nothing },
    }
}

/// What came so far.
#[derive(Default)]
struct Came {
    times: Vec<u64>,
    /// What taking one cost, in ticks.
    costs: Vec<u64>,
}

impl<C: Counter> Probing<'_, C> {
    fn one(&mut self, kind: StampKind) -> Result<Probed, NetError> {
        let mut port = (self.open)()?;
        let mut probed = Probed {
            stamp: kind.word().to_owned(),
            accepted: true,
            sent: 0,
            delivered: 0,
            step: None,
            read_cost: None,
            reason: None,
        };
        match port.stamp(&alone(kind)) {
            Ok(()) => {}
            Err(
                error @ (PortError::StampsRefused { .. }
                | PortError::StampsNotHere { .. }
                | PortError::FramesNotStamped { .. }
                | PortError::WaitUnfit { .. }),
            ) => {
                probed.accepted = false;
                probed.reason = Some(error.to_string());
                return Ok(probed);
            }
            Err(error) => return Err(error.into()),
        }
        let mut unanswered = 0;
        let mut nobody = Came::default();
        for number in 0..WARM_UP {
            self.exchange(&mut *port, kind, number, (0, &mut unanswered), &mut nobody)?;
        }
        thread::sleep(SETTLE);
        self.take(&mut *port, kind, 0, &mut nobody)?;
        let first = port.numbers().map_or(0, |(sent, received)| of(kind, sent, received));
        let mut came = Came::default();
        for number in WARM_UP..WARM_UP + PACKETS {
            self.exchange(&mut *port, kind, number, (first, &mut unanswered), &mut came)?;
        }
        thread::sleep(Duration::from_nanos(ANSWER.0));
        for _ in 0..LAST_LOOKS {
            self.take(&mut *port, kind, first, &mut came)?;
        }
        let last = port.numbers().map_or(0, |(sent, received)| of(kind, sent, received));
        probed.sent = last.saturating_sub(first);
        probed.delivered = came.times.len() as u64;
        probed.step = step(&mut came.times);
        probed.read_cost = median(&mut came.costs)
            .map(|ticks| Nanos((ticks as f64 * 1e9 / self.rate.0).round() as u64));
        if probed.delivered < probed.sent || probed.sent == 0 {
            probed.reason = Some(reason(kind, port.facts(), &probed));
        }
        Ok(probed)
    }

    /// Sends one packet, waits for its answer, and takes the stamps that have come.
    fn exchange(
        &mut self,
        port: &mut dyn Port,
        kind: StampKind,
        number: u64,
        (first, unanswered): (u64, &mut u64),
        came: &mut Came,
    ) -> Result<(), NetError> {
        let mut request = vec![0; self.bytes];
        self.protocol.prepare(&mut request);
        self.protocol.number(Phase::WarmUp, number, &mut request);
        match port.send(&request) {
            // Nobody listens there: what was sent is stamped all the same.
            Ok(_) | Err(PortError::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let scale = Scale::new(self.rate);
        let began = self.counter.read_ordered().0;
        let mut buffer = vec![0; LONGEST];
        let mut answered = *unanswered >= PATIENCE;
        while !answered && scale.nanos(began, self.counter.read_ordered().0) < ANSWER {
            match port.receive(&mut buffer, ANSWER) {
                Ok(Received::Message { .. }) => {
                    (answered, *unanswered) = (true, 0);
                }
                // A stamp ends a wait, too, and is taken so that it ends no other.
                Ok(Received::Nothing { .. }) => self.take(port, kind, first, came)?,
                Err(PortError::Refused { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        *unanswered += u64::from(!answered);
        self.take(port, kind, first, came)
    }

    fn take(
        &mut self,
        port: &mut dyn Port,
        kind: StampKind,
        first: u64,
        came: &mut Came,
    ) -> Result<(), NetError> {
        let before = (came.times.len(), self.counter.read_ordered().0);
        port.take_stamps(&mut |stamp| {
            if stamp.kind == kind && stamp.message >= first {
                came.times.push(stamp.at.0);
            }
        })?;
        let took = self.counter.read_ordered().0.since(before.1).0;
        let stamps = came.times.len() - before.0;
        if stamps > 0 {
            came.costs.push(took / stamps as u64);
        }
        Ok(())
    }
}

fn of(kind: StampKind, sent: u64, received: u64) -> u64 {
    if kind.is_received() { received } else { sent }
}

/// The smallest distance of two that differ.
fn step(times: &mut [u64]) -> Option<Nanos> {
    times.sort_unstable();
    let distances = times.windows(2).map(|pair| pair[1] - pair[0]);
    distances.filter(|distance| *distance > 0).min().map(Nanos)
}

fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Why there are too few of them, as far as that can be known.
fn reason(kind: StampKind, facts: &PortFacts, probed: &Probed) -> String {
    let interface = facts.socket.as_ref().and_then(|socket| socket.interface.as_deref());
    match kind {
        _ if probed.sent == 0 && kind.is_received() => "nobody answered".to_owned(),
        StampKind::Hardware | StampKind::ReceivedHardware if probed.delivered == 0 => {
            match interface {
                Some(name) if !has_clock(Path::new("/sys"), name) => {
                    format!("not present: {name} has no clock of its own")
                }
                Some(_) => "the card has a clock; is it told to stamp?".to_owned(),
                None => "not present: no single interface, and so no card's clock".to_owned(),
            }
        }
        StampKind::Ack if facts.backend.starts_with("udp") => {
            "only TCP is told what the other end has".to_owned()
        }
        StampKind::Completion if probed.delivered == 0 => {
            "the driver tells none when a packet is out".to_owned()
        }
        _ if probed.delivered == 0 => "none came".to_owned(),
        _ => format!("{} of {} never came", probed.sent - probed.delivered, probed.sent),
    }
}

/// Has the card a clock that stamps?
fn has_clock(system: &Path, interface: &str) -> bool {
    let clocks = system.join("class/net").join(interface).join("device/ptp");
    clocks.read_dir().is_ok_and(|mut clocks| clocks.next().is_some())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use whylate_clock::HardwareCounter;
    use whylate_model::Ticks;
    use whylate_port::memory::{self, Network};
    use whylate_port::{
        Client, MemoryPort, Options, Server, Setup, Stamp, Target, Transport, Wait,
    };
    use whylate_suite::{absent, missing};

    use super::*;
    use crate::message::Cookie;
    use crate::protocol::Raw;
    use crate::serve::{Serve, serve};

    const RATE: Hertz = Hertz(1e9);
    const EVERYTHING: StampWish = StampWish {
        sched: true,
        software: true,
        hardware: true,
        ack: true,
        completion: true,
        receive: true,
        every: 1,
    };

    fn probed(transport: Transport) -> Option<Vec<Probed>> {
        let counter = HardwareCounter::open().inspect_err(missing).ok()?;
        let raw = Raw::new(Cookie(3));
        let setup = |wait| Setup { counter, rate: RATE, wait };
        let (target, options) =
            (Target::Address("127.0.0.1:0".parse().unwrap()), Options::default());
        let server = Server { transport, target, options: options.clone() };
        let mut port = server.open(setup(Wait::Epoll), raw.framing()).unwrap();
        let local = port.facts().socket.clone().unwrap().local;
        let target = Target::Address(local.parse().unwrap());
        let client = Client { transport, target, from: None, options };
        let done = AtomicBool::new(false);
        let settings = Serve { idle: Nanos(20_000_000_000), once: false, rate: RATE };
        thread::scope(|scope| {
            scope.spawn(|| {
                serve(&mut port, &Raw::new(Cookie(0)), settings, &mut || {
                    !done.load(Ordering::Relaxed)
                })
            });
            let mut open = || client.open(setup(Wait::Block), raw.framing());
            let probing =
                Probing { open: &mut open, protocol: &raw, bytes: 64, counter, rate: RATE };
            let probed = probe(probing, &EVERYTHING);
            done.store(true, Ordering::Relaxed);
            match probed {
                Ok(probed) => Some(probed),
                Err(error) => panic!("{error}"),
            }
        })
    }

    #[test]
    fn loopback_delivers_every_stamp_of_software_and_says_why_there_is_none_of_hardware() {
        for transport in [Transport::Udp, Transport::Tcp] {
            // On a machine that has other things to do a stamp or an answer may be late: not each time.
            let mut tries = 0..100;
            loop {
                let Some(probed) = probed(transport) else { return };
                let of = |word: &str| probed.iter().find(|one| one.stamp == word).unwrap();
                if !of("tx software").accepted {
                    return absent(&format!("{:?}", of("tx software").reason));
                }
                for one in &probed {
                    account_for_themselves(one);
                }
                let mut expected = vec!["tx sched", "tx software", "rx software"];
                if transport == Transport::Tcp {
                    expected.push("tx ack");
                } else {
                    let acknowledged = of("tx ack");
                    assert_eq!(acknowledged.delivered, 0, "{acknowledged:?}");
                    assert!(acknowledged.reason.as_ref().unwrap().contains("TCP"));
                }
                let all = |one: &Probed| (one.sent, one.delivered) == (PACKETS, PACKETS);
                let every_stamp = expected.iter().all(|word| all(of(word)));
                let answered = of("rx hardware").sent > 0;
                if every_stamp && answered {
                    break;
                }
                assert!(tries.next().is_some(), "{transport}: never all of them: {probed:?}");
            }
        }
    }

    /// What holds of each kind, however many of its stamps came.
    fn account_for_themselves(one: &Probed) {
        assert!(one.delivered <= one.sent && one.sent <= PACKETS, "{one:?}");
        let all = one.sent > 0 && one.delivered == one.sent;
        assert_eq!(one.reason.is_none(), all, "{one:?}");
        assert_eq!(one.read_cost.is_some(), one.delivered > 0, "{one:?}");
        assert!(one.step.is_none_or(|step| step > Nanos(0)), "{one:?}");
        if one.delivered == PACKETS {
            assert!(one.step.is_some(), "{one:?}");
        }
        if one.stamp.ends_with("hardware") {
            assert_eq!(one.delivered, 0, "{one:?}");
            let why = if one.sent > 0 { "not present" } else { "nobody answered" };
            assert!(one.reason.as_ref().unwrap().starts_with(why), "{one:?}");
        }
    }

    /// A port on a system that has stamped nothing yet: the first stamps have no time, and never come.
    struct Fresh<P> {
        port: MemoryPort<P>,
        without: u64,
        sent: u64,
        received: u64,
        came: Vec<Stamp>,
    }

    impl<P: memory::Peer> Fresh<P> {
        fn stamped(&mut self, kind: StampKind, message: u64) {
            if message >= self.without {
                self.came.push(Stamp { message, kind, at: Nanos(1_000 * message) });
            }
        }
    }

    impl<P: memory::Peer> Port for Fresh<P> {
        fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
            self.stamped(StampKind::Software, self.sent);
            self.sent += 1;
            self.port.send(message)
        }

        fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
            let received = self.port.receive(buffer, limit)?;
            if matches!(received, Received::Message { .. }) {
                self.stamped(StampKind::ReceivedSoftware, self.received);
                self.received += 1;
            }
            Ok(received)
        }

        fn facts(&self) -> &PortFacts {
            self.port.facts()
        }

        fn stamp(&mut self, _wish: &StampWish) -> Result<(), PortError> {
            Ok(())
        }

        fn take_stamps(&mut self, each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
            self.came.drain(..).for_each(each);
            Ok(())
        }

        fn numbers(&self) -> Option<(u64, u64)> {
            Some((self.sent, self.received))
        }
    }

    #[test]
    fn stamps_that_a_fresh_system_makes_without_a_time_are_thrown_away_and_none_of_those_counted() {
        let raw = Raw::new(Cookie(3));
        let echo = |message: &[u8], network: &mut Network| {
            network.arrive(Nanos(900), message.to_vec());
        };
        for (without, delivered) in [(WARM_UP, PACKETS), (WARM_UP + 1, PACKETS - 1)] {
            let mut open = || -> Result<Box<dyn Port>, PortError> {
                let (port, came) = (MemoryPort::new(echo), Vec::new());
                Ok(Box::new(Fresh { port, without, sent: 0, received: 0, came }))
            };
            let counter = MemoryPort::new(echo).counter();
            let probing =
                Probing { open: &mut open, protocol: &raw, bytes: 64, counter, rate: memory::RATE };
            let wish = StampWish { software: true, receive: true, ..StampWish::NOTHING };
            let probed = probe(probing, &wish).unwrap();
            assert_eq!(probed.len(), 2, "{probed:?}");
            for one in &probed {
                assert_eq!((one.sent, one.delivered), (PACKETS, delivered), "{one:?}");
                assert_eq!(one.reason.is_none(), delivered == PACKETS, "{one:?}");
                assert_eq!(one.step, Some(Nanos(1_000)), "{one:?}");
            }
        }
    }

    #[test]
    fn steps_are_those_of_stamps_that_differ_and_cards_have_clocks_where_the_system_names_one() {
        assert_eq!(step(&mut [50, 10, 10, 30]), Some(Nanos(20)));
        assert_eq!((step(&mut [10, 10]), step(&mut [])), (None, None));
        assert_eq!((median(&mut []), median(&mut [9, 1, 5])), (None, Some(5)));
        let system = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(system.path().join("class/net/nic0/device/ptp/ptp0")).unwrap();
        std::fs::create_dir_all(system.path().join("class/net/nic1/device")).unwrap();
        assert!(has_clock(system.path(), "nic0") && !has_clock(system.path(), "nic1"));
    }
}
