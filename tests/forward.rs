//! `whylate forward` between hosts of network namespaces: what passes is counted, no frame stays shorter
//! than its planted work, what a saturated one loses is located, and what cannot be forwarded between is
//! refused.
//! Nothing outside of the namespaces is touched.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use whylate_clock::HardwareCounter;
use whylate_model::forward::{Forward, ForwardEnd};
use whylate_model::run::{RunState, Verdict};
use whylate_model::series::Definition;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid};
use whylate_port::{End, LinkOptions, Setup, Threads, Transport, Wait};
use whylate_sys::ethtool;
use whylate_sys::signal::send_to_process;

use crate::between::{Bed, Place, checkpoint, closes, flood, settled, there_and_back};
use crate::needs;
use crate::program::{self, said, two_at_once, until};
use crate::requests::{SIGKILL, flow, logged, lowest, series};

const BACKENDS: [&str; 2] = ["packet", "xdp"];

/// What every account holds of ports that never were down.
pub(crate) fn closes_with_times(of: &Forward) {
    closes(of);
    for direction in &of.directions {
        let stayed = direction.residence.as_ref().map_or(0, |residence| residence.samples);
        assert!(
            of.stamps == "off" || stayed == direction.forwarded + direction.waiting,
            "{direction:?}"
        );
    }
}

/// The last CPU, and the first and the last where there are two.
pub(crate) fn cpus() -> Vec<String> {
    let cpus = whylate_sys::affinity::get();
    let last = cpus.last().copied().unwrap_or(CpuId(0));
    let mut words = vec![format!("--cpus {last}")];
    if cpus.len() > 1 {
        words.push(format!("--cpus {},{last}", cpus[0]));
    }
    words
}

#[test]
fn ordinary_hosts_talk_through_each_backend_and_every_frame_is_counted() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        for words in cpus() {
            let Some(bed) = Bed::new() else { return };
            let forwarding = bed.forward(&format!("--port {backend} {words}"));
            there_and_back(&bed.sockets(), 300);
            let told = forwarding.stop();
            closes_with_times(&told);
            assert_eq!(told.ended, ForwardEnd::Stopped);
            assert_eq!(told.threads.len(), words.split(',').count(), "{told:?}");
            for direction in &told.directions {
                let counts = (direction.received, direction.forwarded);
                assert_eq!(counts, (300, 300), "{backend} {words}: {told:?}");
                let ticks = direction.ticks.as_ref().unwrap();
                assert_eq!(ticks.all.frames, 300);
                let sized: u64 = ticks.by_burst.iter().map(|of| of.frames).sum();
                assert_eq!(sized, 300);
                assert!(
                    ticks.all.receive > 0.0 && ticks.all.work > 0.0 && ticks.all.transmit > 0.0
                );
                let kernel = direction.kernel_residence.as_ref().map_or(0, |of| of.samples);
                let expected = if backend == "packet" { 300 } else { 0 };
                assert_eq!(kernel + direction.kernel_stamps_unfit, expected, "{direction:?}");
            }
            for port in &told.ports {
                let lost: u64 = port.drops.iter().filter(|of| of.frames).map(|of| of.count).sum();
                assert_eq!(lost, 0, "{port:?}");
                let counted = port.interface_counts.expect("the interface is there");
                assert!(counted.received >= 300, "{port:?}");
                // A virtual link hands over tags as its sender left them, and AF_XDP shows none beside.
                let warned = port.instead.iter().any(|said| said.contains("txvlan off"));
                assert_eq!(warned, backend == "xdp", "{port:?}");
            }
            let busy = told.threads[0].busy.unwrap();
            assert!(busy > 0.0 && busy <= 1.0, "{told:?}");
            assert!(told.stamping.unwrap().per_burst_ns > 0.0);
        }
    });
}

/// A frame with a customer's tag, its bytes behind it counted from `fill` on.
pub(crate) fn tagged(fill: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0x60, 7, 0x88, 0xb5];
    frame.extend((0..46).map(|at: u8| at.wrapping_add(fill)));
    frame
}

/// All that an interface inside hears.
pub(crate) fn end(place: &Place, interface: &str) -> End {
    let counter = HardwareCounter::open().unwrap();
    let setup = Setup { counter, rate: Hertz(2e9), wait: Wait::Spin };
    let options = LinkOptions::default();
    let open = || End::open(Transport::Packet, interface, &options, Threads::One, setup);
    place.inside(open).unwrap()
}

/// The next frame of this test's own as it was sent: a tag that the kernel took out is in its place.
pub(crate) fn next(end: &mut End) -> Option<Vec<u8>> {
    for _ in 0..6_000 {
        let burst = end.receiving.receive(Nanos(10_000_000)).unwrap();
        for at in 0..burst.count {
            let arrival = end.receiving.frame(at);
            let mut bytes = arrival.bytes.to_vec();
            if let Some(tag) = arrival.stripped {
                bytes.splice(12..12, tag.bytes());
            }
            if bytes.windows(2).any(|two| two == [0x88, 0xb5]) {
                return Some(bytes);
            }
        }
    }
    None
}

#[test]
fn a_tagged_frame_keeps_its_tag_through_each_backend_and_the_driver_is_as_before_afterwards() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let told = |port: &str| ethtool::keeps_tags_beside(port).unwrap();
        let beside = || bed.between.inside(|| ["a", "b"].map(told));
        let before = beside();
        let forwarding = bed.forward(&format!("--port {backend}"));
        // By packet the kernel tells the tag beside the frame.
        let expected = if backend == "xdp" { [false; 2] } else { before };
        assert_eq!(beside(), expected, "{backend}");
        let mut ends = [end(&bed.client, "client0"), end(&bed.server, "server0")];
        for number in 0..20 {
            let frame = tagged(number);
            let (from, to) = (usize::from(number % 2), usize::from(1 - number % 2));
            let out = ends[from].out();
            out.put(frame.len()).expect("the ring is empty").copy_from_slice(&frame);
            out.flush().unwrap();
            assert_eq!(next(&mut ends[to]), Some(frame), "{backend}");
        }
        let told = forwarding.stop();
        closes_with_times(&told);
        for direction in &told.directions {
            assert_eq!((direction.received, direction.forwarded), (10, 10), "{told:?}");
            assert_eq!(direction.forwarded_bytes, 10 * tagged(0).len() as u64, "{told:?}");
        }
        for (port, kept_beside) in told.ports.iter().zip(before) {
            let said = port.instead.iter().any(|said| said.contains("is off until this ends"));
            assert_eq!(said, backend == "xdp" && kept_beside, "{port:?}");
        }
        assert_eq!(beside(), before, "{backend}");
    });
}

#[test]
fn an_interface_that_was_renamed_meanwhile_is_put_back_as_well() {
    let _alone = program::alone();
    if needs::lacks("xdp") {
        return;
    }
    let Some(bed) = Bed::new() else { return };
    let told = |port: &str| bed.between.inside(|| ethtool::keeps_tags_beside(port).unwrap());
    let before = told("a");
    let forwarding = bed.forward("--port xdp");
    assert!(!told("a"));
    // Kernels from 6.3 on rename an interface that is up.
    let renamed = bed.between.try_ip("link set dev a name other");
    forwarding.stop();
    if !renamed {
        return needs::absent("an interface that is up is not renamed by this kernel");
    }
    assert_eq!(told("other"), before);
}

#[test]
fn hosts_find_each_other_through_a_forwarder_and_each_request_and_reply_is_in_its_account() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::asking() else { return };
        let forwarding = bed.forward(&format!("--port {backend}"));
        let recorded = bed.asked("--rate 500pps --duration 200ms");
        let told = forwarding.stop();
        closes_with_times(&told);
        let packets = flow(&recorded.run).packets;
        assert!(packets.received > 0 && packets.add_up(), "{packets:?}");
        let [there, back] = &told.directions[..] else { panic!("{told:?}") };
        let forwarded = (there.forwarded, back.forwarded);
        let enough = forwarded.0 >= packets.received && forwarded.1 >= packets.received;
        assert!(enough, "{backend}: {packets:?} {told:?}");
    });
}

#[test]
fn no_frame_stays_shorter_than_the_work_that_is_planted_for_it() {
    const WORK: u64 = 50_000;
    /// As exactly as the rate of the counter is known.
    const LEAST: u64 = WORK - WORK / 1_000;
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let forwarding = bed.forward(&format!("--port {backend} --work 50us"));
        there_and_back(&bed.sockets(), 100);
        let told = forwarding.stop();
        closes_with_times(&told);
        for direction in &told.directions {
            let stayed = direction.residence.as_ref().unwrap();
            assert!(stayed.samples == 100 && stayed.min.0 >= LEAST, "{backend}: {stayed:?}");
            let ticks = direction.ticks.as_ref().unwrap().all.work;
            assert!(ticks >= told.ticks_hz * LEAST as f64 / 1e9, "{backend}: {ticks} {told:?}");
        }
    });
}

#[test]
fn what_a_saturated_forwarder_loses_is_located_and_adds_up_to_what_was_offered() {
    const OFFERED: u64 = 1_000;
    const ROOM: u64 = 64;
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let forwarding = bed.forward(&format!("--port {backend} --work 1ms --ring {ROOM}"));
        let (client, server) = bed.sockets();
        // However slowly they are sent here: it takes none of them meanwhile.
        forwarding.standing_still(|| flood(&client, OFFERED));
        let (marks, came) = settled((&client, &server), "198.18.0.2:7000".parse().unwrap());
        let told = forwarding.stop();
        closes_with_times(&told);
        let there = &told.directions[0];
        let drops = told.ports[0].drops.iter().filter(|of| of.frames);
        let located: u64 = drops.map(|of| of.count).sum();
        let by_link = bed.client.dropped_by_link("client0");
        assert_eq!(there.received + located + by_link, OFFERED + marks, "{backend}: {told:?}");
        assert_eq!(there.forwarded, came, "{backend}: {told:?}");
        assert!(located > OFFERED / 10 && came >= ROOM / 2, "{backend}: {by_link} {told:?}");
        let places: Vec<&str> = told.ports[0]
            .drops
            .iter()
            .filter(|of| of.count > 0)
            .map(|of| of.ring.as_str())
            .collect();
        assert!(places.iter().all(|ring| ["receive", "fill"].contains(ring)), "{places:?}");
        // What was not lost stayed for its work at least.
        assert!(there.residence.as_ref().unwrap().min >= Nanos(999_000), "{told:?}");
    });
}

#[test]
fn a_port_of_two_queues_forwards_what_comes_by_either_and_one_of_a_single_queue_misses_the_other() {
    const HOSTS: u64 = 32;
    let _alone = program::alone();
    if needs::lacks("xdp") {
        return;
    }
    let Some(bed) = Bed::of_two_queues() else { return };
    let bind = || UdpSocket::bind("198.18.0.1:0").unwrap();
    let clients: Vec<UdpSocket> = (0..HOSTS).map(|_| bed.client.inside(bind)).collect();
    let (_, server) = bed.sockets();
    for queues in [&[0_u32, 1][..], &[0]] {
        let patience = Duration::from_secs(if queues.len() == 2 { 60 } else { 3 });
        server.set_read_timeout(Some(patience)).unwrap();
        let words: Vec<String> = queues.iter().map(u32::to_string).collect();
        let forwarding = bed.forward(&format!("--port xdp --queues {}", words.join(",")));
        let mut delivered = 0;
        for client in &clients {
            // The kernel gives each flow one of the link's queues.
            client.send_to(b"either", "198.18.0.2:7000").unwrap();
        }
        while delivered < HOSTS && server.recv(&mut [0; 64]).is_ok() {
            delivered += 1;
        }
        let told = forwarding.stop();
        server.set_nonblocking(true).unwrap();
        while server.recv(&mut [0; 64]).is_ok() {
            delivered += 1;
        }
        server.set_nonblocking(false).unwrap();
        closes_with_times(&told);
        assert_eq!(told.ports[0].queues, queues, "{told:?}");
        assert_eq!(told.directions[0].forwarded, delivered, "{told:?}");
        let all = delivered == HOSTS;
        assert_eq!(all, queues.len() == 2, "{delivered} of {HOSTS} came: {told:?}");
        assert!(delivered > 0, "{told:?}");
    }
}

#[test]
fn a_driver_without_programs_is_forwarded_behind_and_that_is_told_with_the_reason() {
    let _alone = program::alone();
    if needs::lacks("xdp") {
        return;
    }
    let Some(bed) = Bed::new() else { return };
    // One end of a link makes a bridge carry frames.
    for words in [
        "link add quiet type bridge",
        "link add behind type veth peer name beyond",
        "link set behind master quiet",
        "link set quiet up",
        "link set behind up",
        "link set beyond up",
    ] {
        bed.between.ip(words);
    }
    let words = "a quiet --port xdp --duration 100ms --no-dma-latency --format json";
    let output = bed.forward_to_its_end(words);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let told: Forward = serde_json::from_slice(&output.stdout).unwrap();
    program::doubted(output.status.code(), &told.warnings, &[]);
    let attached = |port: usize| told.ports[port].attachment.as_deref();
    assert_eq!((attached(0), attached(1)), (Some("native"), Some("generic")), "{told:?}");
    let because = |said: &String| said.contains("behind the driver of `quiet` (generic): ");
    assert!(told.ports[1].instead.iter().any(because), "{told:?}");
}

#[test]
fn a_recorded_forwarder_leaves_a_run_that_a_report_opens_also_where_it_was_killed() {
    let _alone = program::alone();
    for killed in [false, true] {
        let Some(bed) = Bed::new() else { return };
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let words = format!("-o {}", directory.display());
        let forwarding = bed.forward(&words);
        there_and_back(&bed.sockets(), 200);
        if killed {
            let all = |of: &Forward| of.directions.iter().all(|of| of.forwarded == 200);
            until("a checkpoint has all of it", || checkpoint(&directory).filter(all));
            send_to_process(Pid(forwarding.child.id() as i32), SIGKILL).unwrap();
            drop(forwarding);
        } else {
            let told = forwarding.stop();
            assert_eq!(told.directions[0].forwarded, 200);
        }
        let run = program::read(&directory);
        let forward = run.forward.as_deref().expect("what it did");
        closes_with_times(forward);
        let (state, ended) = if killed {
            (RunState::Running, ForwardEnd::GoingOn)
        } else {
            (RunState::Complete, ForwardEnd::Stopped)
        };
        assert_eq!((run.state, forward.ended), (state, ended));
        for name in ["forward-residence-0", "forward-residence-1", "forward-kernel-0"] {
            let of = series(&run, name).expect(name);
            // The wall clock, which the kernel stamps by, may have been set meanwhile.
            let unfit = forward.directions[0].kernel_stamps_unfit
                * u64::from(name.starts_with("forward-kernel"));
            assert_eq!((of.definition, of.n), (Definition::Residence, 200 - unfit), "{name}");
            assert_eq!(logged(&directory, name).len(), of.n);
            assert!(of.n == 0 || lowest(&of.quantiles).is_none_or(|median| median.0 > 0), "{of:?}");
        }
        let text = said(&program::reported(&directory, &[]));
        for words in ["What was forwarded", "a to b", "residence", "Ticks of the counter"] {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
        if !killed {
            let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
            assert!(page.contains("What was forwarded") && page.contains("transmit"));
        }
        // The kernel gave the ports up with the process.
        let again = bed.forward_to_its_end("a b --duration 20ms --no-dma-latency");
        assert!(matches!(again.status.code(), Some(0 | 4)), "{}", said(&again));
    }
}

#[test]
fn ports_that_cannot_be_forwarded_between_are_refused_by_name() {
    let _alone = program::alone();
    let Some(bed) = Bed::new() else { return };
    bed.between.ip("link add one type veth peer name two");
    bed.between.ip("link set dev one up");
    bed.between.ip("link set dev two up");
    let refused = |words: &str, expected: &str| {
        let output = bed.forward_to_its_end(&format!("{words} --duration 1s --no-dma-latency"));
        let said = said(&output);
        let status = if words.starts_with("a a ") { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(status), "{words}: {said}");
        assert!(said.contains(expected), "{words}: {said}");
    };
    for backend in needs::offered(BACKENDS) {
        refused(&format!("a a --port {backend}"), "is named twice");
        refused(&format!("one two --port {backend}"), "comes back by");
        refused(&format!("a nosuchport --port {backend}"), "nosuchport");
        let first = bed.forward(&format!("--port {backend}"));
        refused(&format!("a b --port {backend}"), "a port of another forwarder");
        refused(&format!("b one --port {backend}"), "`b` is a port of another forwarder");
        drop(first);
        let output = bed.forward_to_its_end(&format!("a b --port {backend} --duration 20ms"));
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    }
}

#[test]
fn without_the_capability_nothing_is_forwarded_and_it_is_named() {
    let _alone = program::alone();
    let Some(setpriv) = needs::program("setpriv") else { return };
    let Some(bed) = Bed::new() else { return };
    let nobody = "--reuid 65534 --regid 65534 --clear-groups";
    let without = "--inh-caps -all --bounding-set -bpf,-sys_admin";
    for (backend, words, named) in [
        ("packet", nobody, "CAP_NET_RAW"),
        ("xdp", nobody, "CAP_NET_RAW"),
        ("xdp", without, "CAP_BPF"),
    ] {
        if needs::lacks(backend) {
            continue;
        }
        let mut command = Command::new(&setpriv);
        command
            .args(words.split_whitespace())
            .arg(program::path())
            .args(["forward", "a", "b", "--port", backend])
            .env("NO_COLOR", "1");
        let output = bed.between.inside(move || command.output()).unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(named), "{backend}: {}", said(&output));
    }
}

#[test]
fn an_interface_that_is_deleted_ends_it_with_what_was_measured_and_one_that_was_down_does_not() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let words = format!("--port {backend} -o {}", directory.display());
        let mut forwarding = bed.forward(&words);
        let sockets = bed.sockets();
        there_and_back(&sockets, 100);
        bed.between.ip("link set dev b down");
        // What comes now cannot leave.
        sockets.0.send_to(b"into the void", "198.18.0.2:7000").unwrap();
        let noticed = |of: &Forward| of.ports[1].downs > 0;
        until("a checkpoint has it", || checkpoint(&directory).filter(noticed));
        bed.between.ip("link set dev b up");
        let carried = || {
            sockets.1.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            sockets.0.send_to(b"again", "198.18.0.2:7000").unwrap();
            let mut buffer = [0; 64];
            let length = sockets.1.recv(&mut buffer).ok()?;
            (&buffer[..length] == b"again").then_some(())
        };
        until("frames pass again", carried);
        // With one end of it the other one goes.
        bed.server.ip("link delete server0");
        let told = forwarding.end(4);
        closes(&told);
        assert_eq!((told.ended, told.ports[1].downs > 0), (ForwardEnd::PortLost, true), "{told:?}");
        assert!(told.directions[0].forwarded >= 101, "{told:?}");
        assert!(
            told.warnings
                .iter()
                .any(|of| matches!(of, Warning::LinkDown { interface, .. } if interface == "b"))
        );
        let run = program::read(&directory);
        let lost = run.warnings.iter().find_map(|of| match of {
            Warning::PartEndedEarly { part, reason } => Some((part.as_str(), reason.as_str())),
            _ => None,
        });
        let (part, reason) = lost.expect("a warning of it");
        assert!(part.contains("forwarding by b") && reason.contains("deleted"), "{part}: {reason}");
        assert!(matches!(run.verdict, Verdict::Untrustworthy { .. }), "{:?}", run.verdict);
        assert_eq!(series(&run, "forward-residence-1").map(|of| of.n), Some(100));
    });
}

#[test]
fn a_renamed_interface_costs_nothing_and_frames_too_long_for_the_other_side_are_counted() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        bed.between.ip("link set dev b mtu 1000");
        let forwarding = bed.forward(&format!("--port {backend}"));
        let sockets = bed.sockets();
        // Kernels from 6.3 on rename an interface that is up.
        let renamed = bed.between.try_ip("link set dev a name other");
        there_and_back(&sockets, 50);
        sockets.0.send_to(&[7; 1_200], "198.18.0.2:7000").unwrap();
        there_and_back(&sockets, 50);
        let told = forwarding.stop();
        closes_with_times(&told);
        assert_eq!((told.directions[0].too_long, told.directions[0].forwarded), (1, 100));
        let unequal = |of: &Warning| matches!(of, Warning::UnequalMtus { smaller_mtu: 1_000, .. });
        assert!(told.warnings.iter().any(unequal), "{told:?}");
        assert!(told.ports[0].interface_counts.is_some(), "{:?}", told.ports[0]);
        if !renamed {
            needs::absent("an interface that is up is not renamed by this kernel");
        }
    });
}

#[test]
fn without_stamps_counts_alone_remain_and_samples_are_few() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let sockets = bed.sockets();
        let told = |stamps: &str| {
            let forwarding = bed.forward(&format!("--port {backend} --stamps {stamps}"));
            there_and_back(&sockets, 200);
            forwarding.stop()
        };
        let off = told("off");
        assert!(off.stamping.is_none() && off.threads[0].busy.is_none());
        for direction in &off.directions {
            assert!(direction.closes() && direction.forwarded == 200);
            assert!(direction.residence.is_none() && direction.ticks.is_none());
        }
        let sampled = told("sampled:10");
        for direction in &sampled.directions {
            let residence = direction.residence.as_ref().unwrap();
            // One message at a time is a burst of one.
            assert_eq!((direction.forwarded, residence.samples), (200, 20), "{direction:?}");
            assert_eq!(direction.ticks.as_ref().unwrap().all.frames, 200);
        }
    });
}
