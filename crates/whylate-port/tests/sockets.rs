//! The socket ports over real sockets: pairs in one process, on 127.0.0.1 and ::1 only.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::{Hertz, Nanos};
use whylate_port::udp::{self, Family};
use whylate_port::{
    BusyPolling, Port, PortError, Received, Setup, Udp, UnixDatagram, Wait, inherited, unix,
};
use whylate_suite::{absent, missing};

const MS: u64 = 1_000_000;
const LIMIT: Nanos = Nanos(60_000 * MS);

type Ends = (OwnedFd, OwnedFd);

fn counter() -> Option<HardwareCounter> {
    HardwareCounter::open().inspect_err(missing).ok()
}

/// The rate only bounds waits here: right within a factor of a few is enough.
fn setup(counter: HardwareCounter, wait: Wait) -> Setup<HardwareCounter> {
    Setup { counter, rate: Hertz(1e9), wait }
}

/// Every way to wait there is on this host.
fn waits() -> Vec<Wait> {
    let Some(counter) = counter() else { return Vec::new() };
    let opens = |wait: &Wait| {
        let (end, _) = unix::pair().expect("sockets can be made");
        match inherited::open(end, setup(counter, *wait)) {
            Ok(_) => true,
            Err(reason @ (PortError::Wait { .. } | PortError::BusyPollDenied { .. })) => {
                absent(&reason);
                false
            }
            Err(error) => panic!("{error}"),
        }
    };
    Wait::ALL.into_iter().filter(opens).collect()
}

/// Every backend there is on this host.
fn pairs() -> Vec<(&'static str, Ends)> {
    let mut pairs = vec![
        ("unix datagram", unix::pair().expect("sockets can be made")),
        ("udp over ipv4", udp::loopback_pair(Family::V4).expect("sockets can be made")),
    ];
    match udp::loopback_pair(Family::V6) {
        Ok(ends) => pairs.push(("udp over ipv6", ends)),
        Err(reason) => absent(&reason),
    }
    pairs
}

#[test]
fn messages_come_whole_unchanged_and_stamped_in_order_by_every_backend_and_wait() {
    let Some(mut counter) = counter() else { return };
    for wait in waits() {
        for (backend, (here, there)) in pairs() {
            let mut here = inherited::open(here, setup(counter, wait)).unwrap();
            let mut there = inherited::open(there, setup(counter, wait)).unwrap();
            assert_eq!(here.facts().backend, backend);
            assert_eq!(here.facts().wait, wait);
            for length in [0, 1, 64, 9_000, 65_507] {
                let message: Vec<u8> = (0..length).map(|i| i as u8).collect();
                let mut buffer = vec![0; 70_000];
                let before = counter.read_ordered().0;
                let sent = here.send(&message).unwrap();
                let got = there.receive(&mut buffer, LIMIT).unwrap();
                let after = counter.read_ordered().0;
                let Received::Message { length: came, at } = got else { panic!("{got:?}") };
                assert_eq!(&buffer[..came], message, "{backend} {wait} {length}");
                assert!(before <= sent && sent <= at && at <= after);
            }
        }
    }
}

#[test]
fn a_wait_without_a_message_ends_and_says_so() {
    let Some(mut counter) = counter() else { return };
    for wait in waits() {
        for (backend, (here, _there)) in pairs() {
            let mut port = inherited::open(here, setup(counter, wait)).unwrap();
            for limit in [0, 1, 3 * MS] {
                let before = counter.read_ordered().0;
                let got = port.receive(&mut [0; 64], Nanos(limit)).unwrap();
                let Received::Nothing { at } = got else { panic!("{backend} {got:?}") };
                assert!(at > before);
                // The setup's rate is 1 GHz, so with spinning the limit is known in ticks.
                let spins = matches!(wait, Wait::Spin | Wait::BusyPoll);
                assert!(!spins || at.since(before).0 >= limit);
            }
        }
    }
}

#[test]
fn a_message_that_is_too_long_is_refused_with_its_length_and_the_limit() {
    let Some(counter) = counter() else { return };
    for (_, (here, _there)) in pairs() {
        let mut port = inherited::open(here, setup(counter, Wait::Spin)).unwrap();
        let text = port.send(&vec![0; 65_508]).unwrap_err().to_string();
        assert!(text.contains("65508") && text.contains("65507"), "{text}");
    }
}

#[test]
fn a_message_longer_than_the_buffer_is_cut_and_its_length_told() {
    let Some(counter) = counter() else { return };
    for (backend, (here, there)) in pairs() {
        let mut here = inherited::open(here, setup(counter, Wait::Block)).unwrap();
        let mut there = inherited::open(there, setup(counter, Wait::Block)).unwrap();
        here.send(&[7; 100]).unwrap();
        let mut buffer = [0; 64];
        let got = there.receive(&mut buffer, LIMIT).unwrap();
        assert!(matches!(got, Received::Message { length: 100, .. }), "{backend} {got:?}");
        assert_eq!(buffer, [7; 64]);
    }
}

#[test]
fn a_closed_other_end_is_told_as_gone_when_sent_to() {
    let Some(counter) = counter() else { return };
    for (backend, (here, there)) in pairs() {
        let mut port = inherited::open(here, setup(counter, Wait::Spin)).unwrap();
        drop(there);
        // UDP learns of it from the host's answer, which the kernel gives so many in a second.
        let gone = (0..60_000).any(|_| {
            let sent = port.send(b"anyone?").map(drop);
            let got = sent.and_then(|()| port.receive(&mut [0; 64], Nanos(MS)).map(drop));
            got.is_err_and(|error| error.is_peer_gone())
        });
        assert!(gone, "{backend}");
    }
}

#[test]
fn a_queue_that_nobody_reads_ends_the_sending_with_an_error_and_never_hangs() {
    let Some(counter) = counter() else { return };
    let (here, _there) = unix::pair().unwrap();
    let mut port = UnixDatagram::open(here, setup(counter, Wait::Block)).unwrap();
    let error = (0..100_000).find_map(|_| port.send(&[0; 1024]).err()).unwrap();
    assert!(matches!(error, PortError::SendTimedOut { .. }), "{error}");
}

#[test]
fn a_sender_waits_while_the_other_end_catches_up() {
    const COUNT: usize = 200;
    let Some(counter) = counter() else { return };
    let (here, there) = unix::pair().unwrap();
    let mut here = UnixDatagram::open(here, setup(counter, Wait::Block)).unwrap();
    let mut there = UnixDatagram::open(there, setup(counter, Wait::Block)).unwrap();
    thread::scope(|scope| {
        // On a busy machine the other end may take longer than one sending waits.
        let mut is_sent = move || {
            let mut tries = (0..60).map(|_| here.send(&[1; 64]));
            tries
                .find(|sent| !matches!(sent, Err(PortError::SendTimedOut { .. })))
                .is_some_and(|sent| sent.is_ok())
        };
        let sender = scope.spawn(move || (0..COUNT).all(|_| is_sent()));
        // The kernel's queue for a Unix datagram socket is far shorter than what is sent.
        thread::sleep(Duration::from_millis(20));
        let came = (0..COUNT)
            .map(|_| there.receive(&mut [0; 64], LIMIT))
            .take_while(|got| matches!(got, Ok(Received::Message { .. })))
            .count();
        assert_eq!(came, COUNT);
        assert!(sender.join().unwrap());
    });
}

#[test]
fn udp_takes_nothing_from_a_stranger() {
    let Some(counter) = counter() else { return };
    let (here, _there) = udp::loopback_pair(Family::V4).unwrap();
    let mut port = Udp::open(here, setup(counter, Wait::Block)).unwrap();
    let own = port.facts().path.split(" -> ").next().unwrap().to_owned();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(b"let me in", own).unwrap();
    let got = port.receive(&mut [0; 64], Nanos(20 * MS)).unwrap();
    assert!(matches!(got, Received::Nothing { .. }), "{got:?}");
}

#[test]
fn facts_are_measured_when_the_port_is_opened() {
    let Some(counter) = counter() else { return };
    for (_, (here, _there)) in pairs() {
        let port = inherited::open(here, setup(counter, Wait::Spin)).unwrap();
        let stamps = &port.facts().stamps;
        assert!(stamps.resolution_ns > 0.0 && stamps.resolution_ns.is_finite());
        assert!(stamps.read_cost_min_ns <= stamps.read_cost_median_ns);
        assert!(stamps.read_cost_median_ns > 0.0 && stamps.precision_ns >= 0.0);
        assert!(stamps.source.contains(HardwareCounter::KIND), "{}", stamps.source);
    }
}

#[test]
fn a_descriptor_of_another_kind_is_refused_with_what_it_is() {
    let Some(counter) = counter() else { return };
    let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let stream: OwnedFd = std::os::unix::net::UnixStream::pair().unwrap().0.into();
    let unconnected: OwnedFd = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
    for (fd, word) in [(file, "no socket"), (stream, "another type"), (unconnected, "peer")] {
        let error = inherited::open(fd, setup(counter, Wait::Spin)).err().unwrap();
        assert!(error.to_string().contains(word), "{error}");
    }
    let unix = unix::pair().unwrap().0;
    assert!(Udp::open(unix, setup(counter, Wait::Spin)).is_err());
}

#[test]
fn one_thread_sends_while_another_waits_on_the_same_socket() {
    let Some(counter) = counter() else { return };
    for (backend, (here, there)) in pairs() {
        let mut receiver = inherited::open(here, setup(counter, Wait::Block)).unwrap();
        let mut there = inherited::open(there, setup(counter, Wait::Block)).unwrap();
        let mut sender = receiver.duplicate().unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(move || receiver.receive(&mut [0; 64], LIMIT).unwrap());
            thread::sleep(Duration::from_millis(5));
            sender.send(b"there?").unwrap();
            let came = there.receive(&mut [0; 64], LIMIT).unwrap();
            assert!(matches!(came, Received::Message { length: 6, .. }), "{backend} {came:?}");
            there.send(b"yes").unwrap();
            let back = waiting.join().unwrap();
            assert!(matches!(back, Received::Message { length: 3, .. }), "{backend} {back:?}");
        });
    }
}

#[test]
fn what_the_kernel_gave_is_read_back() {
    let Some(counter) = counter() else { return };
    let (here, _there) = udp::loopback_pair(Family::V4).unwrap();
    let port = inherited::open(here, setup(counter, Wait::Spin)).unwrap();
    let facts = port.facts().socket.clone().expect("a socket has facts");
    assert!(facts.local.starts_with("127.0.0.1:"), "{facts:?}");
    assert!(facts.remote.as_ref().is_some_and(|to| to.starts_with("127.0.0.1:")), "{facts:?}");
    assert_eq!(facts.interface.as_deref(), Some("lo"));
    assert!(facts.mtu.is_some_and(|mtu| mtu >= 1_500), "{facts:?}");
    assert!(facts.receive_buffer.is_some_and(|bytes| bytes > 0), "{facts:?}");
    assert_eq!(port.busy_polling(), BusyPolling::NotAsked);
}

#[test]
fn busy_polling_on_loopback_says_that_there_is_no_queue_to_poll() {
    let Some(counter) = counter() else { return };
    if !waits().contains(&Wait::BusyPoll) {
        return;
    }
    let (here, there) = udp::loopback_pair(Family::V4).unwrap();
    let mut here = inherited::open(here, setup(counter, Wait::BusyPoll)).unwrap();
    let mut there = inherited::open(there, setup(counter, Wait::Block)).unwrap();
    there.send(b"x").unwrap();
    here.receive(&mut [0; 8], LIMIT).unwrap();
    assert_eq!(here.busy_polling(), BusyPolling::NoQueue);
    assert!(here.facts().socket.as_ref().is_some_and(|facts| facts.busy_poll_us > Some(0)));
}
