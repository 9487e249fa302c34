//! Ends of another version: each is named as that, and neither waits in silence or counts garbage.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use whylate_model::warning::Warning;
use whylate_net::protocol::Phase;
use whylate_net::{Cookie, Protocol, Raw};

use crate::program::{self, said, until, whylate};
use crate::reflect::Started;

/// Where the header has the version and the kind.
const VERSION: usize = 4;
const KIND: usize = 5;

#[test]
fn a_reflector_of_an_older_version_is_named_as_such() {
    let _alone = program::alone();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let at = socket.local_addr().unwrap().to_string();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    // It answers messages of version 1 alone, and all others are garbage to it.
    let old = thread::spawn(move || {
        let (mut message, mut garbage) = ([0; 2_048], 0);
        while !stopped.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut message) else { continue };
            if message[..4] == *b"wlat" && message[VERSION] == 1 {
                message[KIND] += 1;
                let _ = socket.send_to(&message[..length], from);
            } else {
                garbage += 1;
            }
        }
        garbage
    });
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = ["rtt", &at, "--duration", "100ms", "--warmup", "10ms", "-o"];
    let output = whylate(words).arg(&directory).output().unwrap();
    stop.store(true, Ordering::Relaxed);
    assert!(old.join().unwrap() > 0, "it was greeted by this version first");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("speaks version 1 of whylate's messages"), "{text}");
    assert!(text.contains("the same version of whylate at both ends") && !directory.exists());
}

#[test]
fn messages_of_an_older_version_are_counted_as_that_and_not_as_garbage() {
    let _alone = program::alone();
    let started = Started::new("--listen 127.0.0.1:0");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (raw, mut message) = (Raw::new(Cookie(5)), [0; 64]);
    for number in 0..40 {
        raw.number(Phase::WarmUp, number, &mut message);
        if number % 4 == 0 {
            message[0] = b'x';
        } else {
            message[VERSION] = 1;
        }
        socket.send_to(&message, started.at()).unwrap();
        message[0] = b'w';
    }
    let at: SocketAddr = started.at().parse().unwrap();
    // Those that it has taken from its socket it counts before it looks whether it is to stop.
    until("all of them were taken", || (waiting(at)? == 0).then_some(()));
    let told = started.stop();
    assert_eq!((told.other_version, told.foreign, told.warm_ups), (30, 10, 0), "{told:?}");
    let named = Warning::OtherVersion { version: 1, messages: 30 };
    assert!(told.warnings.contains(&named), "{:?}", told.warnings);
}

/// Bytes that wait in the socket of an address of version 4, as the kernel tells them.
fn waiting(at: SocketAddr) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/udp").ok()?;
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let port = fields.get(1)?.split_once(':')?.1;
        let here = u16::from_str_radix(port, 16) == Ok(at.port());
        let (_, received) = fields.get(4)?.split_once(':')?;
        u64::from_str_radix(received, 16).ok().filter(|_| here)
    })
}
