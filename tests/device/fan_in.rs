//! Shares of a fan-in of Open vSwitch, and of ports that the user names: weights that are planted in what joins
//! them are found again, in every subset of the ports.

use std::process::Command;

use whylate_model::device::{Device, FanIn};
use whylate_model::flow::Direction;

use super::{MEASURED, adds_up, device, possible};
use crate::between::Bed;
use crate::needs;
use crate::program::{self, record_ending, said, whylate};

/// How far a share may lie from what was planted.
const WITHIN: f64 = 0.05;
/// Weights of three ports that are named, which share 10 Mbit/s.
const WEIGHTS: [u32; 3] = [3, 1, 1];

/// Shares of the sources are those of their weights, add up, and more was sent than came.
fn is_shared_by(one: &FanIn, weights: &[u32]) {
    assert_eq!(one.sources.len(), weights.len(), "{one:?}");
    let all: u32 = weights.iter().sum();
    for (source, weight) in one.sources.iter().zip(weights) {
        let planted = f64::from(*weight) / f64::from(all);
        assert!((source.share - planted).abs() < WITHIN, "{planted} is planted: {one:?}");
        let (low, high) = (source.low.unwrap(), source.high.unwrap());
        assert!(low <= source.share && source.share <= high, "{source:?}");
    }
    let received: u64 = one.sources.iter().map(|source| source.received).sum();
    let sent: u64 = one.sources.iter().map(|source| source.sent).sum();
    assert!(received == one.received && received > 100 && received < sent, "{one:?}");
}

#[test]
#[ignore = "live figure: to accept"]
fn shares_of_a_fan_in_of_open_vswitch_are_those_of_planted_weights() {
    let _alone = program::alone();
    let programs = ["tc", "ovs-vswitchd", "ovs-ofctl"];
    if !possible() || !programs.into_iter().all(|name| needs::program(name).is_some()) {
        return;
    }
    let words = "device --box ovs --sizes 128 --rate 1kpps --rounds 3 --duration 500ms --warmup 50ms \
                 --no-throughput --fan-in 3 --fan-in-takes 10Mbit/s@L2 --fan-in-weights 3,1,1";
    let recorded = record_ending(words, &MEASURED);
    let of = device(&recorded);
    assert_eq!(of.name, "ovs");
    of.sizes.iter().for_each(adds_up);
    let ways: Vec<Direction> = of.sizes.iter().map(|at| at.direction).collect();
    assert!(ways.len() == 2 && ways.contains(&Direction::There), "{ways:?}");
    assert!(ways.contains(&Direction::Back), "{ways:?}");
    in_every_subset(of);
    let said_of =
        |one: &FanIn| one.takes.as_ref().is_some_and(|takes| takes.contains("by weights"));
    assert!(of.fan_in.iter().all(|one| one.to == "server0" && said_of(one)), "{:?}", of.fan_in);
}

/// Three pairs and all of them, each by the weights of those that send.
fn in_every_subset(of: &Device) {
    let [a, b, c] = WEIGHTS;
    let planted: [&[u32]; 4] = [&[a, b], &[a, c], &[b, c], &[a, b, c]];
    assert_eq!(of.fan_in.len(), planted.len(), "{:?}", of.fan_in);
    for (one, weights) in of.fan_in.iter().zip(planted) {
        is_shared_by(one, weights);
    }
}

fn tc(bed: &Bed, words: &str) {
    let run = || Command::new("tc").args(words.split_whitespace()).output().unwrap();
    let output = bed.between.inside(run);
    assert!(output.status.success(), "tc {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// `s0` to `s2` and `d0`, each with its cable to a bridge whose port to `d0` takes 10 Mbit/s and serves the
/// others by weights. Says why not where it cannot be.
fn narrow_bridge(bed: &Bed) -> bool {
    if !bed.between.try_ip("link add br0 type bridge") {
        needs::missing("no bridges here");
        return false;
    }
    bed.between.ip("link set br0 up");
    for (at, name) in ["s0", "s1", "s2", "d0"].into_iter().enumerate() {
        let other = format!("x-{name}");
        let mac = mac(at);
        bed.between.ip(&format!("link add {name} address {mac} type veth peer name {other}"));
        bed.between.ip(&format!("link set {other} master br0"));
        bed.between.ip(&format!("link set {other} up"));
        bed.between.ip(&format!("link set {name} up"));
    }
    tc(bed, "qdisc add dev x-d0 root handle 1: htb default 0");
    tc(bed, "class add dev x-d0 parent 1: classid 1:1 htb rate 10mbit ceil 10mbit");
    for (at, weight) in WEIGHTS.into_iter().enumerate() {
        let (rate, quantum, mac) = (2 * weight, 512 * weight, mac(at));
        let class = format!("1:1{at}");
        tc(
            bed,
            &format!(
                "class add dev x-d0 parent 1:1 classid {class} htb rate {rate}mbit ceil 10mbit quantum \
                 {quantum}"
            ),
        );
        tc(bed, &format!("qdisc add dev x-d0 parent {class} handle 1{at}: pfifo limit 64"));
        tc(
            bed,
            &format!(
                "filter add dev x-d0 parent 1: protocol all prio 1 u32 match ether src {mac} flowid {class}"
            ),
        );
    }
    true
}

fn mac(at: usize) -> String {
    format!("02:00:00:00:02:{at:02x}")
}

#[test]
#[ignore = "live figure: to accept"]
fn shares_between_ports_that_are_named_are_those_of_what_joins_them() {
    let _alone = program::alone();
    if !possible() || needs::program("tc").is_none() {
        return;
    }
    let Some(bed) = Bed::asking() else { return };
    if !narrow_bridge(&bed) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let run = |name: &str, words: &str| {
        let directory = home.path().join(name);
        let usual = "device --box between --interfaces s0,d0 --sizes 128 --rate 1kpps --rounds 3 --duration 500ms \
                     --warmup 50ms --no-throughput --seed 5";
        let mut command = whylate(usual.split_whitespace().chain(words.split_whitespace()));
        command.arg("-o").arg(&directory);
        let output = bed.between.inside(move || command.output()).unwrap();
        (output, directory)
    };
    let ports = "--fan-in-from s0,s1,s2 --fan-in-to d0";
    let (output, directory) = run("narrow", &format!("{ports} --fan-in-takes 10Mbit/s@L2"));
    assert!(MEASURED.contains(&output.status.code().unwrap_or(-1)), "{}", said(&output));
    let of = program::read(&directory).device.expect("a device");
    in_every_subset(&of);
    for one in &of.fan_in {
        assert_eq!(
            (one.to.as_str(), one.takes.as_ref()),
            ("d0", None),
            "nobody of ours made it narrow"
        );
        assert!(
            one.sources.iter().all(|source| ["s0", "s1", "s2"].contains(&source.from.as_str()))
        );
    }
    assert!(!of.notes.iter().any(|note| note.contains("took all")), "{:?}", of.notes);

    // Less than it takes: all of it comes, and shares are of what was sent.
    let words = format!("{ports} --fan-in-takes 2Mbit/s@L2 --fan-in-sends 2,1,1");
    let (output, directory) = run("wide", &words);
    assert!(MEASURED.contains(&output.status.code().unwrap_or(-1)), "{}", said(&output));
    let of = program::read(&directory).device.expect("a device");
    assert!(of.notes.iter().any(|note| note.contains("d0 took all")), "{:?}", of.notes);
    let all = of.fan_in.last().unwrap();
    assert!((all.sources[0].share - 0.5).abs() < 0.1, "{all:?}");

    let (output, directory) = run("none", "--fan-in-from s0,never-was --fan-in-to d0");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("no interface `never-was`"), "{}", said(&output));
    assert!(!directory.exists(), "nothing was measured, and something is left");
}
