//! `whylate delay --proxy`: datagrams and streams held back through ordinary sockets of loopback, by a user
//! without rights.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use whylate_model::delay::{DelayLine, Truth};
use whylate_sys::signal::send_to_process;

use crate::delaying::{Delaying, Orders, closes, truths};
use crate::needs;
use crate::program::{self, as_used, said, until, whylate};
use crate::requests::SIGKILL;

const PATIENCE: Duration = Duration::from_secs(60);
const WAITS: [&str; 2] = ["spin", "poll"];

/// A proxy of a user without rights, where tests are run by root; its words have no spaces in them.
fn proxy(words: &str) -> Delaying {
    let plain = format!("--format json --no-dma-latency {words}");
    let setpriv = if needs::root() { needs::program("setpriv") } else { None };
    let mut command = match setpriv {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            command.arg(program::path()).arg("delay");
            command.env("NO_COLOR", "1").env("XDG_STATE_HOME", "/nonexistent");
            command
        }
        None => as_used(["delay"]),
    };
    command.args(plain.split_whitespace());
    Delaying::started(command)
}

/// Where clients reach it, as it says.
fn reached(proxy: &Delaying) -> SocketAddr {
    let (_, rest) = proxy.said.split_once("delaying between ").unwrap();
    rest.split_once(" and ").unwrap().0.parse().unwrap()
}

/// A directory that a user without rights may write to.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    if needs::root() {
        std::os::unix::fs::chown(home.path(), Some(65_534), Some(65_534)).unwrap();
    }
    home
}

fn socket(to: Option<SocketAddr>) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    if let Some(to) = to {
        socket.connect(to).unwrap();
    }
    socket
}

fn held_at_least(directory: &Path, ns: u64, count: usize) {
    let hz = program::read(directory).clock.hz;
    let all = truths(directory);
    assert_eq!(all.len(), count);
    for truth in all {
        let Truth { arrival, due, departure, .. } = truth;
        let held = due.since(arrival).to_nanos(hz).0;
        assert!(held + 1 >= ns && departure.is_some_and(|at| at >= due), "{truth:?}");
    }
}

fn received(line: &DelayLine) -> [u64; 2] {
    [0, 1].map(|way| line.directions[way].counts.received)
}

#[test]
fn datagrams_of_several_clients_come_back_to_each_by_a_proxy_without_rights() {
    const MESSAGES: u64 = 50;
    let _alone = program::alone();
    for wait in WAITS {
        let server = socket(None);
        let at = server.local_addr().unwrap();
        let home = home();
        let directory = home.path().join("run");
        let words = format!("--proxy udp:127.0.0.1:0={at} --wait {wait} --delay 1ms,2ms");
        let proxy = proxy(&format!("{words} -o {}", directory.display()));
        let to = reached(&proxy);
        let echo = thread::spawn(move || {
            let mut buffer = [0; 2_048];
            let mut peers = BTreeSet::new();
            for _ in 0..3 * MESSAGES {
                let (length, from) = server.recv_from(&mut buffer).unwrap();
                peers.insert(from);
                server.send_to(&buffer[..length], from).unwrap();
            }
            peers.len()
        });
        let clients: Vec<_> = (0..3_u64)
            .map(|client| {
                thread::spawn(move || {
                    let socket = socket(Some(to));
                    for number in 0..MESSAGES {
                        let message = vec![(client * 7 + number) as u8; 1 + (number as usize * 29)];
                        socket.send(&message).unwrap();
                        let mut back = [0; 2_048];
                        let length = socket.recv(&mut back).unwrap();
                        assert_eq!(&back[..length], &message[..], "client {client}");
                    }
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        assert_eq!(echo.join().unwrap(), 3, "a socket towards the server for each");
        let line = proxy.stop();
        closes(&line);
        assert_eq!((line.transport.as_str(), received(&line)), ("proxy udp", [3 * MESSAGES; 2]));
        assert!(line.ends.is_empty() && line.base.frames > 0, "{line:?}");
        held_at_least(&directory, 1_000_000, 6 * MESSAGES as usize);
        let least = |way: usize| line.directions[way].residence.clone().unwrap().min.0;
        assert!(least(0) >= 999_999 && least(1) >= 1_999_999, "{line:?}");
    }
}

#[test]
fn losses_and_duplicates_of_a_proxy_are_exactly_those_that_come_out() {
    const MESSAGES: u64 = 2_000;
    const UNDER_WAY: u64 = 100;
    let _alone = program::alone();
    let server = socket(None);
    let at = server.local_addr().unwrap();
    let laws = "--delay 1ms --loss 0.1 --duplicate 0.1 --reorder 0.1 --seed 3";
    let home = home();
    let control = home.path().join("control");
    let words = format!("--proxy udp:127.0.0.1:0={at} {laws} --control {}", control.display());
    let proxy = proxy(&words);
    let client = socket(Some(reached(&proxy)));
    server.set_read_timeout(Some(Duration::from_millis(4))).unwrap();
    let (mut seen, mut again, mut late, mut next) = (BTreeSet::new(), 0_u64, 0_u64, 0_u64);
    let mut take = || {
        let mut bytes = [0; 8];
        while server.recv(&mut bytes).is_ok() {
            let number = u64::from_le_bytes(bytes);
            if seen.insert(number) {
                late += u64::from(number < next);
                next = next.max(number + 1);
            } else {
                again += 1;
            }
        }
        (seen.len() as u64, again, late, next)
    };
    // So many are under way at most that there is room for all of them.
    let (mut sent, mut next) = (0, 0);
    until("all are sent", || {
        while sent < MESSAGES && sent < next + UNDER_WAY {
            client.send(&u64::to_le_bytes(sent)).unwrap();
            sent += 1;
        }
        next = take().3;
        (sent == MESSAGES).then_some(())
    });
    // Of the last ones some are lost: what is not held back any more is not under way either.
    let mut orders = Orders::at(&control);
    until("it holds none of them", || orders.has_passed_on(MESSAGES).then_some(()));
    let line = proxy.stop();
    closes(&line);
    let of = line.directions[0].counts;
    let (seen, again, late) = until("all that passed has come", || {
        let (seen, again, late, _) = take();
        (seen + again >= of.passed_on + of.duplicated).then_some((seen, again, late))
    });
    let counts = line.directions[0].counts;
    assert_eq!(counts.received, MESSAGES, "{counts:?}");
    assert_eq!(counts.passed_on, seen, "{counts:?}");
    assert_eq!((counts.duplicated, counts.reordered), (again, late), "{counts:?}");
    assert!(counts.lost_on_purpose > 100 && again > 100 && late > 0, "{counts:?}");
}

#[test]
fn streams_come_whole_after_their_delay_and_one_that_is_not_read_is_not_lost() {
    const BYTES: usize = 8 << 20;
    let _alone = program::alone();
    for wait in WAITS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let home = home();
        let directory = home.path().join("run");
        let words = format!("--proxy tcp:127.0.0.1:0={at} --wait {wait} --delay 1ms");
        let proxy = proxy(&format!("{words} -o {}", directory.display()));
        let to = reached(&proxy);
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            // Whatever finds no room waits at the client meanwhile.
            thread::sleep(Duration::from_millis(300));
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
            all.len()
        });
        let mut client = TcpStream::connect(to).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        let sent: Vec<u8> = (0..BYTES).map(|at| (at * 31 / 7) as u8).collect();
        let mut writing = client.try_clone().unwrap();
        let message = sent.clone();
        let writer = thread::spawn(move || {
            writing.write_all(&message).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        client.read_to_end(&mut back).unwrap();
        writer.join().unwrap();
        assert_eq!(server.join().unwrap(), BYTES);
        assert!(back == sent, "{} bytes came back", back.len());
        let line = proxy.stop();
        closes(&line);
        for of in &line.directions {
            assert_eq!(of.passed_bytes, BYTES as u64, "{of:?}");
            assert_eq!(of.counts.passed_on, of.counts.received, "{of:?}");
        }
        // What found no room in the log, because its thread did not get its CPU, is counted.
        let missed = line.truths.as_ref().map_or(0, |log| log.missed);
        let logged = received(&line).iter().sum::<u64>() - missed;
        held_at_least(&directory, 1_000_000, logged as usize);
    }
}

#[test]
fn a_server_that_is_not_there_ends_the_clients_connection_and_the_proxy_goes_on() {
    let _alone = program::alone();
    // A port that is bound and not listened at is nobody's, and nobody else's either.
    let server = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&server, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let listener = TcpListener::from(server);
    let at = listener.local_addr().unwrap();
    let proxy = proxy(&format!("--proxy tcp:127.0.0.1:0={at} --delay 1ms"));
    let to = reached(&proxy);
    let mut client = TcpStream::connect(to).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // Closed or reset, and not left to wait.
    let ended = client.read(&mut [0; 8]);
    assert!(matches!(ended, Ok(0)) || ended.is_err_and(|error| error.raw_os_error() == Some(104)));
    rustix::net::listen(&listener, 8).unwrap();
    let mut client = TcpStream::connect(to).unwrap();
    client.write_all(b"hello").unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    closes(&proxy.stop());
}

#[test]
fn a_proxy_takes_orders_and_one_that_is_killed_leaves_nobody_waiting() {
    let _alone = program::alone();
    let home = home();
    let control = home.path().join("control");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let words = format!("--proxy tcp:127.0.0.1:0={at} --control {}", control.display());
    let running = proxy(&words);
    let mut orders = Orders::at(&control);
    assert!(orders.give("delay back 1ms").starts_with("set: back 1ms"));
    let refused = orders.give("loss 0.1");
    assert!(refused.contains("would break a stream"), "{refused}");
    // A stream that finds no room waits outside.
    assert!(orders.give("delay there 3s").starts_with("set: there 3"));
    assert!(orders.give("delay there 0s").starts_with("set: there 0"));
    let mut client = TcpStream::connect(reached(&running)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"hello").unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    send_to_process(running.pid(), SIGKILL).unwrap();
    drop(running);
    for end in [&mut client, &mut stream] {
        let ended = end.read(&mut [0; 8]);
        assert!(matches!(ended, Ok(0)) || ended.is_err_and(|e| e.raw_os_error() == Some(104)));
    }
    let mut again = proxy(&words);
    let mut orders = Orders::at(&control);
    assert_eq!(orders.give("stop"), "stopping");
    closes(&again.end());
    assert!(!control.exists());
}

#[test]
fn what_a_proxy_cannot_do_is_refused_with_the_reason() {
    let _alone = program::alone();
    let taken = socket(None);
    let at = taken.local_addr().unwrap();
    let cases = [
        ("--proxy sctp:127.0.0.1:1=127.0.0.1:2".to_owned(), 2, "is no way of a proxy"),
        ("--proxy udp:127.0.0.1:7=127.0.0.1:7".to_owned(), 2, "sends to itself"),
        (
            "--proxy tcp:127.0.0.1:0=127.0.0.1:2 --loss 0.1".to_owned(),
            2,
            "would break a TCP stream",
        ),
        ("--proxy udp:127.0.0.1:0=127.0.0.1:2 --wait epoll".to_owned(), 1, "by spin or by poll"),
        ("--proxy udp:127.0.0.1:0=127.0.0.1:2 --delay 2s".to_owned(), 1, "65536 messages"),
        (
            "--proxy udp:127.0.0.1:0=127.0.0.1:2 --delay 1ms,40ms --fastest 2Mpps".to_owned(),
            1,
            "65536 messages",
        ),
        (format!("--proxy udp:{at}=127.0.0.1:2"), 1, "cannot listen at"),
        ("--proxy udp:127.0.0.1:0=127.0.0.1:2 --bed lab".to_owned(), 2, "--bed"),
    ];
    for (words, status, expected) in cases {
        let mut command = whylate(["delay", "--no-dma-latency", "--duration", "1s"]);
        let output = command.args(words.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{words}: {}", said(&output));
        let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(expected), "{words}: {text}");
    }
}
