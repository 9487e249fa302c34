//! Three ports that a bridge joins to a fourth, which takes 10 Mbit/s and serves them by weights: what a user
//! may have between interfaces that are named.

use std::path::Path;
use std::process::{Command, Output};

use crate::between::Bed;
use crate::program::whylate;

/// Weights of `s0` to `s2`.
pub const WEIGHTS: [u32; 3] = [3, 1, 1];
/// Where they send, and from where.
pub const PORTS: &str = "--fan-in-from s0,s1,s2 --fan-in-to d0";

/// `whylate device` between them, of which each measurement takes so long; its run is in this directory.
pub fn measured(bed: &Bed, (words, length): (&str, &str), directory: &Path) -> Output {
    let usual = format!(
        "device --box between --interfaces s0,d0 --sizes 128 --rate 1kpps --duration {length} \
         --warmup 50ms --no-throughput --seed 5"
    );
    let mut command = whylate(usual.split_whitespace().chain(words.split_whitespace()));
    command.arg("-o").arg(directory);
    bed.between.inside(move || command.output()).unwrap()
}

fn tc(bed: &Bed, words: &str) {
    let run = || Command::new("tc").args(words.split_whitespace()).output().unwrap();
    let output = bed.between.inside(run);
    assert!(output.status.success(), "tc {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// `s0` to `s2` and `d0`, each with its cable to a bridge whose port to `d0` takes 10 Mbit/s and serves the
/// others by weights. False where there are no bridges.
pub fn bridge(bed: &Bed) -> bool {
    if !bed.between.try_ip("link add br0 type bridge") {
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
