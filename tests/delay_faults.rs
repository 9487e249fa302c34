//! What goes wrong with a delay line: ports that cannot be, more than there is room for, a kill under
//! load. Nothing outside of the namespaces is touched.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use whylate_model::warning::Warning;
use whylate_sys::ethtool;
use whylate_sys::signal::send_to_process;

use crate::between::Bed;
use crate::delaying::{Delaying, Orders, closes, to_its_end};
use crate::forward::{end, next, tagged};
use crate::needs;
use crate::program::{self, said, two_at_once, until};
use crate::requests::SIGKILL;

const BACKENDS: [&str; 2] = ["packet", "xdp"];
const SERVER: &str = "198.18.0.2:7000";

#[test]
fn ports_that_are_one_looped_or_taken_are_refused_by_name() {
    let _alone = program::alone();
    let Some(bed) = Bed::new() else { return };
    bed.between.ip("link add one type veth peer name two");
    bed.between.ip("link set dev one up");
    bed.between.ip("link set dev two up");
    let refused = |words: &str, status: i32, expected: &str| {
        let output = to_its_end(&bed, &format!("{words} --duration 1s"));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(status), "{words}: {said}");
        assert!(said.contains(expected), "{words}: {said}");
    };
    for backend in needs::offered(BACKENDS) {
        refused(&format!("a a --port {backend}"), 2, "is named twice");
        refused(&format!("one two --port {backend}"), 1, "comes back by");
        refused(&format!("two one --port {backend}"), 1, "comes back by");
        refused(&format!("a nosuchport --port {backend}"), 1, "nosuchport");
        let first = Delaying::new(&bed, &format!("--port {backend}"));
        refused(&format!("a b --port {backend}"), 1, "is a port of another");
        // The other way round they are the same.
        refused(&format!("b a --port {backend}"), 1, "is a port of another");
        drop(first);
        let output = to_its_end(&bed, &format!("b a --port {backend} --duration 20ms"));
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    }
    refused("a b --port udp", 2, "--proxy");
    refused("a b --wait epoll", 2, "does not sleep");
}

#[test]
fn what_finds_no_room_is_counted_and_a_delay_beyond_the_room_is_refused_with_it() {
    // A virtual link holds 256 by itself.
    const BURST: u64 = 100;
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let refused =
            to_its_end(&bed, &format!("a b --port {backend} --delay 10ms --capacity 100"));
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).contains("100 frames"), "{}", said(&refused));
        // As little room as there may be, and bursts that nobody announced, until one did not find it.
        let home = tempfile::tempdir().unwrap();
        let control = home.path().join("control");
        let room = "--delay 40ms --capacity 64 --fastest 1kpps";
        let words = format!("--port {backend} {room} --control {}", control.display());
        let delaying = Delaying::new(&bed, &words);
        let mut orders = Orders::at(&control);
        let mut shown = |count: &str| {
            let shown: serde_json::Value = serde_json::from_str(&orders.give("show")).unwrap();
            shown["there"]["counts"][count].as_u64().unwrap_or(0)
        };
        let (client, server) = bed.sockets();
        server.set_nonblocking(true).unwrap();
        let (mut sent, mut came) = (0_u64, 0_u64);
        let mut take = || {
            while server.recv(&mut [0; 64]).is_ok() {
                came += 1;
            }
            came
        };
        until("something finds no room", || {
            for _ in 0..BURST {
                client.send_to(&sent.to_le_bytes(), SERVER).unwrap();
                sent += 1;
            }
            until("the burst is there", || (shown("received") == sent).then_some(()));
            take();
            (shown("overflow") > 0).then_some(())
        });
        until("what found room has left", || (take() >= 64).then_some(()));
        let line = delaying.stop();
        closes(&line);
        let counts = line.directions[0].counts;
        let drops = line.ends[0].drops.iter().filter(|of| of.frames);
        let before: u64 = drops.map(|of| of.count).sum();
        let came = until("all that passed has come", || {
            let came = take();
            (came >= counts.passed_on).then_some(came)
        });
        assert_eq!(counts.received + before, sent, "{backend}: {line:?}");
        assert_eq!(counts.passed_on, came, "{backend}: {line:?}");
        assert!(counts.overflow > 0 && came >= 64, "{backend}: {line:?}");
        let told = line.warnings.iter().any(|of| match of {
            Warning::DelayOverflow { frames, .. } => *frames == counts.overflow,
            _ => false,
        });
        assert!(told, "{:?}", line.warnings);
    });
}

#[test]
fn laws_that_cannot_be_kept_are_refused_with_the_reason() {
    let _alone = program::alone();
    let Some(bed) = Bed::new() else { return };
    for (words, expected) in [
        ("--delay soon", "is not a delay"),
        ("--delay 20us,30us,40us", "is not a delay"),
        ("--delay 11s", "longer than"),
        ("--delay uniform:5us..1us", "shorter"),
        ("--delay schedule:/nowhere", "/nowhere"),
        ("--delay 1us --jitter 2us", "--jitter"),
        ("--loss 1.5", "is no share"),
        ("--rate fast", "is not a rate"),
    ] {
        let output = to_its_end(&bed, &format!("a b --duration 1s {words}"));
        assert_eq!(output.status.code(), Some(2), "{words}: {}", said(&output));
        assert!(said(&output).contains(expected), "{words}: {}", said(&output));
    }
}

#[test]
fn a_line_killed_under_load_costs_messages_and_holds_nobody_up() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let home = tempfile::tempdir().unwrap();
        let control = home.path().join("control");
        let words = format!("--port {backend} --delay 1ms --control {}", control.display());
        let delaying = Delaying::new(&bed, &words);
        let (client, server) = bed.sockets();
        server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // Where nobody carries it, the kernel still takes it.
                    let number = sent.load(Ordering::Relaxed);
                    client.send_to(&number.to_le_bytes(), SERVER).unwrap();
                    sent.store(number + 1, Ordering::Relaxed);
                    thread::sleep(Duration::from_micros(100));
                }
            });
            let mut came = 0_u64;
            until("messages come", || {
                came += (0..200).filter(|_| server.recv(&mut [0; 8]).is_ok()).count() as u64;
                (came >= 500).then_some(())
            });
            send_to_process(delaying.pid(), SIGKILL).unwrap();
            drop(delaying);
            let then = sent.load(Ordering::Relaxed);
            until("more is sent", || (sent.load(Ordering::Relaxed) > then + 100).then_some(()));
            // What was under way comes or does not, and then nothing does.
            while server.recv(&mut [0; 8]).is_ok() {
                came += 1;
            }
            over.store(true, Ordering::Relaxed);
            let sent = sent.load(Ordering::Relaxed);
            assert!(came < sent, "{came} of {sent} came");
        });
        assert!(control.exists(), "nobody could take it away");
        let again = Delaying::new(&bed, &words);
        let mut orders = Orders::at(&control);
        assert!(orders.give("delay 10us").starts_with("set: "), "the stale file was replaced");
        let number = until("messages pass again", || {
            client.send_to(b"again", SERVER).unwrap();
            let mut bytes = [0; 8];
            let length = server.recv(&mut bytes).ok()?;
            (&bytes[..length] == b"again").then_some(length)
        });
        assert_eq!(number, 5);
        closes(&again.stop());
        assert!(!control.exists());
    });
}

#[test]
fn a_place_that_is_no_socket_or_in_use_takes_no_orders_and_stays() {
    let _alone = program::alone();
    let Some(bed) = Bed::new() else { return };
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("notes");
    std::fs::write(&file, "mine").unwrap();
    let words = format!("a b --duration 1s --control {}", file.display());
    let output = to_its_end(&bed, &words);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("no socket"), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let control = home.path().join("control");
    let first = Delaying::new(&bed, &format!("--control {}", control.display()));
    bed.between.ip("link add one type veth peer name two");
    let words = format!("one two --duration 1s --control {}", control.display());
    let output = to_its_end(&bed, &words);
    assert!(said(&output).contains("another process takes orders"), "{}", said(&output));
    assert!(Orders::at(&control).give("show").starts_with('{'), "the first one still does");
    closes(&first.stop());
}

#[test]
fn without_the_capability_no_frame_is_held_back_and_it_is_named() {
    let _alone = program::alone();
    let Some(setpriv) = needs::program("setpriv") else { return };
    let Some(bed) = Bed::new() else { return };
    for backend in needs::offered(BACKENDS) {
        let mut command = std::process::Command::new(&setpriv);
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(program::path())
            .args(["delay", "a", "b", "--no-netem", "--port", backend])
            .env("NO_COLOR", "1");
        let output = bed.between.inside(move || command.output()).unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("CAP_NET_RAW"), "{}", said(&output));
    }
}

#[test]
fn a_line_over_xdp_has_the_drivers_leave_tags_in_frames_and_puts_them_back() {
    let _alone = program::alone();
    if needs::lacks("xdp") {
        return;
    }
    let Some(bed) = Bed::new() else { return };
    let told = |port: &str| ethtool::keeps_tags_beside(port).unwrap();
    let beside = || bed.between.inside(|| ["a", "b"].map(told));
    let before = beside();
    for kept in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        let output = if kept { format!("-o {}", run.display()) } else { String::new() };
        let delaying = Delaying::new(&bed, &format!("--port xdp {output}"));
        assert_eq!(beside(), [false; 2]);
        let mut ends = [end(&bed.client, "client0"), end(&bed.server, "server0")];
        for number in 0..20 {
            let frame = tagged(number);
            let (from, to) = (usize::from(number % 2), usize::from(1 - number % 2));
            let out = ends[from].out();
            out.put(frame.len()).expect("the ring is empty").copy_from_slice(&frame);
            out.flush().unwrap();
            assert_eq!(next(&mut ends[to]), Some(frame), "{number}");
        }
        let line = delaying.stop();
        closes(&line);
        for (port, kept_beside) in line.ends.iter().zip(before) {
            let said = port.instead.iter().any(|said| said.contains("is off until this ends"));
            assert_eq!(said, kept_beside, "{port:?}");
        }
        assert_eq!(beside(), before);
    }
}

/// Bytes of a stream of the kernel, and how long nothing of it may come.
const STREAM: usize = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn streams_of_the_kernel_come_whole_where_senders_cut_them_and_a_line_says_at_its_start_how() {
    let _alone = program::alone();
    let Some(bed) = Bed::new() else { return };
    let output = to_its_end(&bed, "a b --port packet --duration 1s");
    for words in ["`a` is an end of a virtual link", "`b` is an end of a virtual link", "tso off"] {
        assert!(said(&output).contains(words), "no `{words}`: {}", said(&output));
    }
    for (place, link) in [(&bed.client, "client0"), (&bed.server, "server0")] {
        // Without checksums of the link there are no uncut segments either.
        place.inside(|| ethtool::make_checksums_early(link)).unwrap();
    }
    let sent: Vec<u8> = (0..STREAM).map(|at| (at % 251) as u8).collect();
    for backend in needs::offered(BACKENDS) {
        let delaying = Delaying::new(&bed, &format!("--port {backend} --delay 10us"));
        let listener = bed.server.inside(|| TcpListener::bind("198.18.0.2:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&address, PATIENCE);
        let mut client = bed.client.inside(connect).unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let came = thread::scope(|scope| {
            let sending = scope.spawn(|| {
                client.write_all(&sent).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
            });
            let mut came = Vec::new();
            server.read_to_end(&mut came).unwrap();
            sending.join().unwrap();
            came
        });
        assert!(came == sent, "{backend}: {} of {STREAM} bytes came, or others", came.len());
        let line = delaying.stop();
        closes(&line);
        assert!(line.directions.iter().all(|of| of.counts.too_long == 0), "{line:?}");
    }
}
