//! `whylate device` with boxes of this machine: counts add up, every part has its turn, what cannot be
//! measured is refused by name, and nothing stays behind. Nothing outside of beds is touched.

mod boxes;
mod configured;
mod fan_in;
mod interference;

use std::path::{Path, PathBuf};
use std::process::Output;
use whylate_testing::{hogs, narrow};

use whylate_model::device::{Device, DeviceAtSize, Forwarding, ForwardingKind, PacketPoint};
use whylate_model::flow::Direction;
use whylate_model::run::Run;
use whylate_model::series::Definition;
use whylate_model::{CpuId, Pid};
use whylate_sys::signal::send_to_process;

use crate::between::{Bed, SIGINT};
use crate::needs;
use crate::program::{self, Recorded, recorded, said, until, whylate};
use crate::requests::{SIGKILL, logged, lowest, series};

/// One size of frames, once. Bounds need three rounds.
const SHORT: &str =
    "--sizes 128 --rate 1kpps --rounds 1 --duration 100ms --warmup 20ms --no-throughput";

/// In as many rounds as bounds need.
const BOUNDED: &str =
    "--sizes 128 --rate 1kpps --rounds 3 --duration 100ms --warmup 20ms --no-throughput";

/// May this machine have beds, and a CPU for the client beside that of the box?
fn possible() -> bool {
    needs::root() && needs::program("ip").is_some() && needs::cpus(2).is_some()
}

fn device(recorded: &Recorded) -> &Device {
    recorded.run.device.as_deref().expect("a device")
}

/// Runs it to its end, whatever that is.
fn ended(words: &str) -> Output {
    whylate(words.split_whitespace()).output().unwrap()
}

/// Names of namespaces of beds that a process of this id set up.
fn beds_of(pid: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = [format!("whylate-device-{pid}-"), format!("whylate-fan-{pid}-")];
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        names.iter().any(|begin| name.starts_with(begin.as_str()))
    };
    entries.map(|entry| entry.path()).filter(ours).collect()
}

/// What every size of every box holds.
fn adds_up(of: &DeviceAtSize) {
    assert_eq!(of.sent, of.received + of.lost, "{of:?}");
    assert!(of.n > 0 && of.n <= of.received, "{of:?}");
    assert_eq!(of.point, PacketPoint::EndToEnd);
    let median = lowest(&of.measured);
    assert!(of.min.is_some_and(|min| median.is_none_or(|median| min <= median)), "{of:?}");
    for bounds in &of.bounds {
        if let (Some(low), Some(high)) = (bounds.low_ns, bounds.high_ns) {
            assert!(low <= high, "{bounds:?} of {of:?}");
        }
    }
}

/// Nothing is missing: only where a shared machine sent at another rate, had a part of it fail, or somebody moved
/// a knob, there are no bounds, and that is said.
fn has_bounds_or_says_why(at: &DeviceAtSize) {
    assert!(!at.bounds.is_empty() || at.no_bounds.is_some(), "{at:?}");
    let whys = at.no_bounds.iter().flat_map(|whys| whys.split("; "));
    assert!(whys.into_iter().all(|why| why.trim().len() > 10), "{at:?}");
}

#[test]
fn a_bridge_is_told_in_both_ways_at_every_size_with_rounds_in_an_order_of_their_own() {
    let _alone = program::alone();
    if !possible() {
        return;
    }
    let words = "device --box bridge --sizes 64,1518 --rate 1kpps --rounds 2 --duration 100ms \
                 --warmup 20ms --trials 3 --trial 100ms --seed 7";
    let recorded = recorded(words);
    let of = device(&recorded);
    assert_eq!((of.name.as_str(), of.backend.as_str()), ("bridge", "packet spin"));
    let told: Vec<(u32, Direction)> =
        of.sizes.iter().map(|at| (at.frame_bytes, at.direction)).collect();
    assert_eq!(told.len(), 4);
    // The shortest frame of Ethernet holds a message: each size is the one that was asked for.
    for bytes in [64, 1_518] {
        for direction in [Direction::There, Direction::Back] {
            assert!(told.contains(&(bytes, direction)), "{told:?}");
        }
    }
    for at in &of.sizes {
        adds_up(at);
        assert_eq!(at.runs, 2);
        assert!(at.residence.is_none() && at.error_min_ns.is_some(), "{at:?}");
        let why = at.no_bounds.as_deref().unwrap_or_default();
        assert!(why.contains("2 runs, and 3 are needed to see how runs differ"), "{at:?}");
        let way = if at.direction == Direction::Back { "back" } else { "there" };
        let name = format!("box-{}-{way}", at.frame_bytes);
        let series = series(&recorded.run, &name).expect("its series");
        assert_eq!((series.definition, series.n), (Definition::OneWay, at.n));
        assert_eq!(logged(&recorded.directory, &name).len(), at.n);
    }
    // A bare link, a delay line and the bridge at two sizes, once in each round.
    assert_eq!(of.order.len(), 2);
    for round in &of.order {
        let mut turns = round.clone();
        turns.sort_unstable();
        turns.dedup();
        assert_eq!((round.len(), turns.len()), (6, 6), "{round:?}");
    }
    assert_ne!(of.order[0], of.order[1]);
    assert!(of.error.is_some(), "{:?}", of.notes);
    // Links of memory have no speed to judge by.
    assert!(of.forwarding.iter().all(is_of_memory));
    assert_eq!(of.forwarding.len(), 2);
    assert_eq!(of.throughput.len(), 2);
    for one in &of.throughput {
        assert!(one.trials.len() <= 3, "{one:?}");
        // A host that keeps the client from any rate leaves none to search below.
        let most = one.client_pps.expect("what the client can by itself");
        assert!(most <= 0.0 || !one.trials.is_empty(), "{one:?}");
    }
    let text = said(&recorded.output);
    for words in ["What bridge does to latency", "Throughput without loss"] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    assert!(!text.contains("Time in the box"), "without bounds: {text}");
    let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    assert!(
        page.contains("What bridge does to latency") && page.contains("Throughput without loss")
    );
}

#[test]
fn no_frame_stays_shorter_in_a_delay_line_as_the_box_than_it_was_set_to() {
    let _alone = program::alone();
    if !possible() {
        return;
    }
    let recorded = recorded(&format!("device --box delay:50us {BOUNDED}"));
    for at in &device(&recorded).sizes {
        adds_up(at);
        has_bounds_or_says_why(at);
        let log = at.residence.as_ref().expect("its log");
        assert!(lowest(&log.quantiles).is_none_or(|median| median.0 >= 50_000), "{at:?}");
        // Only frames that were measured are in it.
        assert!(log.n <= at.received, "{at:?}");
    }
}

#[test]
fn configurations_are_measured_in_turns_and_what_cannot_be_had_is_named() {
    let _alone = program::alone();
    if !possible() {
        return;
    }
    let words = format!("device --box forward:packet {SHORT} --config unchanged,local");
    let recorded = recorded(&words);
    let of = device(&recorded);
    let names: Vec<&str> = of.configurations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["unchanged", "local"]);
    for name in names {
        let own: Vec<&DeviceAtSize> =
            of.sizes.iter().filter(|at| at.configuration.as_deref() == Some(name)).collect();
        assert_eq!(own.len(), 2, "both ways");
        for at in own {
            adds_up(at);
            // What everything else takes was measured under each of them.
            assert!(at.error_min_ns.is_some() && !at.error_quantiles.is_empty(), "{at:?}");
            has_bounds_or_says_why(at);
            assert!(at.residence.is_some(), "its log: {at:?}");
        }
        for round in &of.order {
            for what in ["forward:packet", "bare link", "delay line"] {
                let turn = format!("{what} {name} 128");
                assert!(round.contains(&turn), "no `{turn}` in {round:?}");
            }
        }
    }
    assert!(of.order.len() == 1 && of.order.iter().all(|round| round.len() == 6));
    assert!(!of.bought.is_empty());
    for one in &of.bought {
        assert_eq!((one.configuration.as_str(), one.against.as_str()), ("local", "unchanged"));
    }
    let nodes = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let nodes = nodes.filter(|entry| entry.file_name().to_string_lossy().starts_with("node"));
    if nodes.count() <= 1 {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        let words =
            format!("device --box bridge --config remote --no-throughput -o {}", run.display());
        let refused = ended(&words);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).contains("remote") && !run.exists(), "{}", said(&refused));
    }
}

/// `device --box between` inside a namespace, as of cards that cables join; what it said, and where its run is.
fn tried_between(bed: &Bed, home: &Path, more: &str) -> (Output, PathBuf) {
    let directory = home.join(if more.is_empty() { "without" } else { "with" });
    let words =
        format!("device --box between --interfaces i0,i1 --loopback l0,l1 {SHORT} --seed 5");
    let mut command = whylate(words.split_whitespace().chain(more.split_whitespace()));
    command.arg("-o").arg(&directory);
    (bed.between.inside(move || command.output()).unwrap(), directory)
}

fn between(bed: &Bed, home: &Path, more: &str) -> Run {
    let (output, directory) = tried_between(bed, home, more);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{more}: {}", said(&output));
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    run
}

/// Nothing is said of cut-through over what has no speed.
fn is_of_memory(one: &Forwarding) -> bool {
    one.kind == ForwardingKind::NotTold && one.link_bps.is_none()
}

/// Joins i0 and i1 by a bridge, l0 and l1 by a cable, n0 to the line's port a0 and f0 to b0. False where there
/// are no bridges.
fn cabled(bed: &Bed) -> bool {
    for (one, other) in [("i0", "x0"), ("x1", "i1"), ("l0", "l1"), ("n0", "a0"), ("b0", "f0")] {
        bed.between.ip(&format!("link add {one} type veth peer name {other}"));
        bed.between.ip(&format!("link set {one} up"));
        bed.between.ip(&format!("link set {other} up"));
    }
    if !bed.between.try_ip("link add br0 type bridge") {
        needs::absent("no bridges here");
        return false;
    }
    for words in ["link set x0 master br0", "link set x1 master br0", "link set br0 up"] {
        bed.between.ip(words);
    }
    true
}

#[test]
fn a_line_whose_ports_are_named_in_the_other_order_is_refused_with_the_order_and_nothing_is_left() {
    let _alone = program::alone();
    if !possible() {
        return;
    }
    let Some(bed) = Bed::asking() else { return };
    if !cabled(&bed) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (output, directory) = tried_between(&bed, home.path(), "--line n0,b0,a0,f0");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for words in ["left by n0 came to the delay line by a0", "--line n0,a0,b0,f0"] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{text}");
    }
    assert!(!directory.exists(), "nothing was measured, and something is left");
}

#[test]
fn something_between_two_interfaces_has_lower_bounds_by_a_line_on_others_and_else_the_way_to_them()
{
    let _alone = program::alone();
    if !possible() {
        return;
    }
    let Some(bed) = Bed::asking() else { return };
    if !cabled(&bed) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let run = between(&bed, home.path(), "");
    let of = run.device.expect("a device");
    assert!(of.error.is_none() && of.sizes.len() == 2, "{of:?}");
    for at in &of.sizes {
        adds_up(at);
        assert!(
            at.no_bounds.as_ref().is_some_and(|why| why.contains("--line NEAR,A,B,FAR")),
            "{at:?}"
        );
        assert!(at.bounds.iter().all(|of| of.low_ns.is_none()), "{at:?}");
    }
    let run = between(&bed, home.path(), "--line n0,a0,b0,f0");
    let of = run.device.expect("a device");
    // Ends of virtual links tell 10 Gbit/s, and are memory.
    assert!(
        of.forwarding.len() == 2 && of.forwarding.iter().all(is_of_memory),
        "{:?}",
        of.forwarding
    );
    let by = of.error.as_ref().map(|error| error.quantiles_by.as_str()).unwrap_or_default();
    assert!(by.ends_with("between a0 and b0, from n0 to f0"), "{by}");
    for at in &of.sizes {
        adds_up(at);
        has_bounds_or_says_why(at);
        assert!(at.error_min_ns.is_some() && !at.error_quantiles.is_empty(), "{at:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_by_name() {
    let _alone = program::alone();
    let cpu = whylate_sys::affinity::get().last().copied().unwrap_or(CpuId(0));
    for (words, expected) in [
        ("device".to_owned(), "--box"),
        ("device --box hub".to_owned(), "`hub` is not a box"),
        ("device --box bridge --sizes 63".to_owned(), "63 bytes"),
        ("device --box bridge --sizes 1519".to_owned(), "1519 bytes"),
        ("device --box between".to_owned(), "--interfaces A,B"),
        ("device --box between --interfaces a,a".to_owned(), "is named twice"),
        ("device --box bridge --interfaces a,b".to_owned(), "a test network of its own"),
        ("device --box bridge --interfaces a".to_owned(), "two names"),
        ("device --box bridge --line a,b,c,d".to_owned(), "--line is for --box between"),
        ("device --box between --interfaces a,b --line c,d".to_owned(), "four names"),
        ("device --box between --interfaces a,b --line b,c,d,e".to_owned(), "is named twice"),
        ("device --box forward:xdp --fan-in 3".to_owned(), "has two ports"),
        ("device --box bridge --fan-in 1".to_owned(), "2 to 16 ports"),
        ("device --box bridge --fan-in 2 --fan-in-weights 1,0".to_owned(), "above zero"),
        ("device --box bridge --port tcp".to_owned(), "packet, xdp or udp"),
        (format!("device --box bridge --cpus {cpu} --box-cpu {cpu}"), "both client and box"),
    ] {
        let output = ended(&words);
        assert_eq!(output.status.code(), Some(2), "{words}: {}", said(&output));
        assert!(said(&output).contains(expected), "{words}: {}", said(&output));
    }
    // With a single CPU that is what is said first.
    if needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut command = whylate(["device", "--box", "testpmd", "-o"]);
    command.arg(home.path().join("run")).env("PATH", "/nonexistent");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("needs dpdk-testpmd"), "{}", said(&output));
    assert!(!home.path().join("run").exists(), "nothing was measured, and something is left");
}

/// Processes whose command lines name a directory.
pub(crate) fn naming(directory: &Path) -> Vec<Pid> {
    let name = directory.display().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let named = processes.filter_map(|process| {
        let words = std::fs::read(process.path().join("cmdline")).ok()?;
        let pid = process.file_name().to_str()?.parse().ok()?;
        String::from_utf8_lossy(&words).contains(&name).then_some(Pid(pid))
    });
    named.collect()
}

/// Starts one that would take minutes, and waits until its beds are there.
fn started(home: &Path) -> program::Started {
    let mut command = whylate(["device", "--box", "forward:packet", "--rounds", "50", "-o"]);
    command.arg(home.join("run"));
    let started = program::Started::new(command);
    until("its beds are there and something is measured", || {
        let measures = home.join("run/parts").read_dir().ok()?.count() > 1;
        (measures && beds_of(started.0.id()).len() >= 6).then_some(())
    });
    started
}

#[test]
fn one_that_is_stopped_leaves_no_bed_and_no_process_and_one_that_was_killed_is_mended() {
    let _alone = program::alone();
    if !possible() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut stopped = started(home.path());
    let pid = stopped.0.id();
    send_to_process(Pid(pid as i32), SIGINT).unwrap();
    assert!(stopped.status().is_some_and(|status| [0, 1, 4].contains(&status)));
    assert_eq!(beds_of(pid), Vec::<PathBuf>::new());
    assert_eq!(naming(home.path()), Vec::<Pid>::new());
    drop(stopped);

    let home = tempfile::tempdir().unwrap();
    let mut killed = started(home.path());
    let pid = killed.0.id();
    send_to_process(Pid(pid as i32), SIGKILL).unwrap();
    let _ = killed.status();
    until("its processes have ended by themselves", || {
        naming(home.path()).is_empty().then_some(())
    });
    // The next start of anything that sets beds up or takes them down.
    let _ = ended("lab down --name never-was");
    assert_eq!(beds_of(pid), Vec::<PathBuf>::new());
}
