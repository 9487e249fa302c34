//! A bed with several ports that send to one: the fan-in of a bridge of the kernel, or of Open vSwitch.
//!
//! The client's namespace has a link for each source, each in a network of its own; the server's has one
//! link with an address in each of these networks; a bridge or a switch in the device joins them all, and
//! its port to the server is made narrow by the kernel's queue of that link. Every end knows the hardware
//! address that it sends to, so that no question for one competes with the traffic, and what the bridge or
//! the switch has not learned yet is handed to the server alone.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use whylate_host::bed::{self, Role};
use whylate_host::journal::Journal;
use whylate_model::lab::{BedKind, BedNotes};
use whylate_sys::ethtool;
use whylate_sys::nanosleep::{Clock, clock_ns};

use super::bed::inside;
use super::ip::{self, ip};
use super::make::{self, Borrowed};
use super::{ovs, status};
use crate::error::NetError;

/// Sources at most: more hold each other up on any machine.
pub const MOST_SOURCES: u32 = 16;
/// Networks of the sources are 198.18.N.0/24 from here on.
const FIRST_NETWORK: u8 = 100;
/// The server's hardware address, and the first five bytes of the sources'.
const SERVER: &str = "02:00:00:00:00:02";
const SOURCE: &str = "02:00:00:00:01";
/// The device's port to the server.
const TO: &str = "to-server";
/// Frames that wait at the narrow port at most.
const WAITING: u64 = 64;
/// The kernel's timers are looked at as often as this at least: what passes between two looks must be let
/// through at once.
const LEAST_HZ: u64 = 100;

/// What joins the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// A bridge of the kernel.
    Bridge,
    /// Open vSwitch.
    Ovs,
}

/// How the one port is made narrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrow {
    /// Bits of layer 2 a second that it takes.
    pub bits_per_second: u64,
    /// Bytes of the frames.
    pub frame_bytes: u32,
    /// It serves the sources by these weights; empty: in the order in which frames come.
    pub weights: Vec<u32>,
}

/// What the addresses of a source are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Its own.
    pub own: Ipv4Addr,
    /// The server's, in its network.
    pub server: Ipv4Addr,
}

impl Source {
    /// Of the source with this number, from 0.
    #[must_use]
    pub fn of(number: u32) -> Self {
        let network = FIRST_NETWORK + u8::try_from(number % MOST_SOURCES).unwrap_or(0);
        let at = |host| Ipv4Addr::new(198, 18, network, host);
        Self { own: at(1), server: at(2) }
    }

    /// Its interface in the client's namespace.
    #[must_use]
    pub fn interface(number: u32) -> String {
        format!("source{number}")
    }
}

/// Sets up such a bed with so many sources, for as long as what is returned lives.
///
/// # Errors
/// Without root, `ip` and `tc`, or without Open vSwitch where that is to join them; where there is a bed of
/// this name.
pub fn borrow_fan_in(
    journal: &Journal,
    name: &str,
    joining: Joining,
    sources: u32,
    narrow: &Narrow,
) -> Result<Borrowed, NetError> {
    if !ip::is_installed("tc") {
        return Err(NetError::NoProgram { what: "a fan-in", program: "tc", package: "iproute2" });
    }
    if joining == Joining::Ovs {
        ovs::needed()?;
    }
    let borrowed = make::borrow_empty(journal, name)?;
    let what = join(name, joining, sources, narrow)?;
    let datapath =
        format!("{what} with {sources} ports to one that takes {} bit/s", narrow.bits_per_second);
    let since_ns = clock_ns(Clock::Realtime);
    let kind = match joining {
        Joining::Bridge => BedKind::Bridge,
        Joining::Ovs => BedKind::Ovs,
    };
    let notes = BedNotes { kind, datapath, since_ns, queues: None, tap: None };
    status::note(name, &notes)?;
    Ok(borrowed)
}

/// Joins everything; says what does.
fn join(
    name: &str,
    joining: Joining,
    sources: u32,
    narrow: &Narrow,
) -> Result<&'static str, NetError> {
    let device = bed::namespace(name, Role::Device);
    let on = |role, words: &str| ip(name, role, words);
    on(Role::Server, &format!("link add server0 type veth peer name {TO} netns {device}"))?;
    on(Role::Device, &format!("link set {TO} addrgenmode none up"))?;
    on(Role::Server, &format!("link set server0 address {SERVER} addrgenmode none up"))?;
    let mut others = Vec::new();
    for number in 0..sources {
        let (link, other) = (Source::interface(number), format!("from-{number}"));
        let Source { own, server } = Source::of(number);
        let address = format!("{SOURCE}:{number:02x}");
        on(Role::Client, &format!("link add {link} type veth peer name {other} netns {device}"))?;
        on(Role::Device, &format!("link set {other} addrgenmode none up"))?;
        on(Role::Client, &format!("link set {link} address {address} addrgenmode none up"))?;
        on(Role::Client, &format!("addr add {own}/24 dev {link}"))?;
        on(Role::Server, &format!("addr add {server}/24 dev server0"))?;
        on(Role::Client, &format!("neigh add {server} lladdr {SERVER} dev {link} nud permanent"))?;
        on(Role::Server, &format!("neigh add {own} lladdr {address} dev server0 nud permanent"))?;
        // What is left to a card is finished by nobody here.
        inside(name, Role::Client, || Ok(ethtool::make_checksums_early(&link)?))?;
        others.push(other);
    }
    let what = match joining {
        Joining::Bridge => bridge(name, &others)?,
        Joining::Ovs => {
            let kernel = Path::new("/sys/module/openvswitch").exists();
            ovs::start_fan_in(name, kernel, &others, (TO, SERVER))?;
            if kernel {
                "Open vSwitch, forwarding in the kernel,"
            } else {
                "Open vSwitch, forwarding in its own process,"
            }
        }
    };
    for words in narrowing(sources, narrow) {
        tc(name, &words)?;
    }
    Ok(what)
}

/// A bridge of the kernel between the links of the device.
fn bridge(name: &str, others: &[String]) -> Result<&'static str, NetError> {
    let on = |words: &str| ip(name, Role::Device, words);
    on("link add bridge0 type bridge")?;
    on("link set bridge0 addrgenmode none up")?;
    on(&format!("link set {TO} master bridge0"))?;
    for other in others {
        on(&format!("link set {other} master bridge0"))?;
        on(&format!("link set {other} type bridge_slave flood off"))?;
    }
    Ok("a bridge of the kernel")
}

/// What `tc` is told of the port to the server.
fn narrowing(sources: u32, narrow: &Narrow) -> Vec<String> {
    let Narrow { bits_per_second: bits, frame_bytes, weights } = narrow;
    let frame = u64::from(*frame_bytes);
    if weights.is_empty() {
        let burst = (bits / 8 / LEAST_HZ).max(4 * frame);
        let limit = WAITING * frame;
        return vec![format!(
            "qdisc add dev to-server root tbf rate {bits}bit burst {burst} limit {limit}"
        )];
    }
    let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let mut all = vec![
        "qdisc add dev to-server root handle 1: htb default 0".to_owned(),
        format!("class add dev to-server parent 1: classid 1:1 htb rate {bits}bit ceil {bits}bit"),
    ];
    for (number, weight) in (0..sources).zip(weights) {
        let (class, own) = (0x10 + number, Source::of(number).own);
        let share = (bits * u64::from(*weight) / sum.max(1)).max(1_000);
        let quantum = frame * u64::from(*weight);
        all.push(format!(
            "class add dev to-server parent 1:1 classid 1:{class:x} htb rate {share}bit ceil {bits}bit \
             quantum {quantum}"
        ));
        all.push(format!(
            "qdisc add dev to-server parent 1:{class:x} handle {class:x}: pfifo limit {WAITING}"
        ));
        all.push(format!(
            "filter add dev to-server parent 1: protocol ip prio 1 u32 match ip src {own}/32 flowid \
             1:{class:x}"
        ));
    }
    all
}

fn tc(name: &str, words: &str) -> Result<String, NetError> {
    let mut command = Command::new("tc");
    command.args(["-n", &bed::namespace(name, Role::Device)]).args(words.split_whitespace());
    ip::run(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_port_lets_a_burst_through_and_weights_share_all_of_it() {
        let plain = Narrow { bits_per_second: 20_000_000, frame_bytes: 512, weights: Vec::new() };
        let words = narrowing(3, &plain);
        assert_eq!(
            words,
            ["qdisc add dev to-server root tbf rate 20000000bit burst 25000 limit 32768"]
        );
        let weighted = Narrow { weights: vec![3, 1], ..plain };
        let words = narrowing(2, &weighted).join("\n");
        assert!(words.contains("classid 1:10 htb rate 15000000bit ceil 20000000bit"), "{words}");
        assert!(words.contains("classid 1:11 htb rate 5000000bit ceil 20000000bit"), "{words}");
        assert!(words.contains("match ip src 198.18.101.1/32 flowid 1:11"), "{words}");
    }

    #[test]
    fn each_source_has_a_network_of_its_own() {
        let all: Vec<Source> = (0..MOST_SOURCES).map(Source::of).collect();
        for (number, one) in all.iter().enumerate() {
            assert_eq!(one.own.octets()[..3], one.server.octets()[..3]);
            let same = all.iter().filter(|other| other.own.octets()[2] == one.own.octets()[2]);
            assert_eq!(same.count(), 1, "source {number}");
        }
    }
}
