//! Ports: where they sit, how wide their way in is, and what they do to packets.
//!
//! A port is an entry of `/sys/class/net` with a device: bridges, tunnels and loopback have none.
//! Settings that sysfs does not show come from the kernel where it runs, and from command dumps in
//! a collected tree.

use std::collections::BTreeMap;

use whylate_model::doctor::Subject;
use whylate_model::{CpuId, CpuList};
use whylate_sys::ethtool::{Coalescing, Offloads};

use super::exam::{Check, Exam, Outcome, Tally, listed, quoted};
use super::pcie;
use super::view::{Look, Missing, View, seen};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "nic-node",
        subject: Subject::Network,
        why: "a packet that enters at the other socket crosses between the sockets, both ways",
        look: node,
    },
    Check {
        name: "nic-pcie-width",
        subject: Subject::Network,
        why: "ports faster than the slot they sit in queue packets in the adapter, or drop them",
        look: pcie::width,
    },
    Check {
        name: "pcie-power",
        subject: Subject::Network,
        why: "a link that sleeps between packets takes microseconds to wake for the next",
        look: pcie::power,
    },
    Check {
        name: "nic-coalescing",
        subject: Subject::Network,
        why: "the port holds a packet back this long, to announce several with one interrupt",
        look: coalescing,
    },
    Check {
        name: "nic-offloads",
        subject: Subject::Network,
        why: "packets are merged or cut between the wire and the stamp: sizes, counts and times \
              are not those on the wire",
        look: offloads,
    },
    Check {
        name: "network-drops",
        subject: Subject::Network,
        why: "packets that the kernel dropped since boot say that a queue or a CPU was too small \
              for the load",
        look: drops,
    },
    Check {
        name: "icmp-rate-limit",
        subject: Subject::Network,
        why: "a ping that the kernel does not answer, or answers at a limited rate, measures the \
              limit",
        look: icmp,
    },
];

/// Fastest port that is taken for one, in Mb/s: 1.6 Tb/s is the fastest Ethernet there is.
const MAX_MBITS: u64 = 1_600_000;

/// Names of the ports.
pub(super) fn ports(view: &View) -> Vec<String> {
    let names = view.names("/sys/class/net").into_iter();
    names.filter(|name| view.exists(&format!("/sys/class/net/{name}/device"))).collect()
}

/// What to say where there is no port.
fn no_port(exam: &Exam<'_>) -> Option<Outcome> {
    if !ports(&exam.view).is_empty() {
        return None;
    }
    let evidence = seen("/sys/class/net/*/device", "absent");
    Some(if exam.view.names("/sys/class/net").is_empty() {
        Outcome::unknown("which ports there are is not known").seen(evidence)
    } else {
        Outcome::fine_anywhere("this machine has no port with a device").seen(evidence)
    })
}

/// Speed of a port in Mb/s. One that is down, and most virtual ones, say -1 or nothing.
pub(super) fn speed(view: &View, port: &str) -> Look<u64> {
    view.look(&format!("/sys/class/net/{port}/speed"), |text| {
        text.parse().ok().filter(|mbits| (1..=MAX_MBITS).contains(mbits))
    })
}

/// The fastest port and its speed in bits per second.
pub(super) fn fastest_port(exam: &Exam<'_>) -> Option<(String, u64)> {
    let speeds = ports(&exam.view).into_iter().filter_map(|port| {
        let mbits = speed(&exam.view, &port).ok()?.value;
        Some((port, mbits * 1_000_000))
    });
    speeds.max_by_key(|(_, bits)| *bits)
}

fn node(exam: &Exam<'_>) -> Outcome {
    const WHAT: &str = "on which memory node the ports sit";
    if let Some(outcome) = exam.no_cpus().or_else(|| no_port(exam)) {
        return outcome;
    }
    let Some(topology) = exam.topology.as_ref().filter(|topology| !topology.nodes().is_empty())
    else {
        return Outcome::unknown(format!("{WHAT} is not known: nor which nodes there are"))
            .seen(seen("/sys/devices/system/node", "absent or not understood"));
    };
    if topology.nodes().len() == 1 {
        return Outcome::fine("all CPUs and ports are on one memory node")
            .seen(seen("/sys/devices/system/node", "node0 alone"));
    }
    let mut tally = Tally::default();
    let mut near: Vec<CpuId> = Vec::new();
    for port in ports(&exam.view) {
        let path = format!("/sys/class/net/{port}/device/numa_node");
        // Documentation/ABI/testing/sysfs-bus-pci: -1 is a device of no known node.
        let number = exam.view.look(&path, |text| {
            text.parse::<u32>().ok().filter(|node| topology.nodes().contains_key(node))
        });
        let Some(number) = tally.take(number) else { continue };
        let off = |cpu: &CpuId| topology.node_of(*cpu).is_some_and(|node| node != number);
        let far: Vec<CpuId> = exam.cpus.iter().copied().filter(off).collect();
        if !far.is_empty() {
            tally.bad.push(format!("{port} is on node {number}, CPU {} is not", CpuList(&far)));
            near.extend(topology.nodes().get(&number).into_iter().flatten());
        }
    }
    tally.conclude(WHAT, format!("the ports are on the node of {}", exam.measured()), |bad| {
        Outcome::spoils(listed(bad, 4)).advise(format!(
            "measure the network on the port's own node: --cpus, of {}",
            CpuList(&near)
        ))
    })
}

/// What ports answered, or why they did not.
pub(super) type Asked<T> = BTreeMap<String, Result<T, String>>;

/// Times a port holds packets back, as read.
pub(super) struct Held {
    rx_usecs: u64,
    tx_usecs: u64,
    adaptive: bool,
}

impl Held {
    pub(super) fn words(&self) -> String {
        let adaptive = if self.adaptive { ", adaptive" } else { "" };
        format!("rx {} us, tx {} us{adaptive}", self.rx_usecs, self.tx_usecs)
    }
}

/// More than this no driver takes.
const MAX_USECS: u64 = 1_000_000;

fn coalescing(exam: &Exam<'_>) -> Outcome {
    if let Some(outcome) = no_port(exam) {
        return outcome;
    }
    let mut tally = Tally::default();
    let mut remedies = Vec::new();
    for port in ports(&exam.view) {
        let asked = exam.live.map(|live| &live.coalescing);
        let Some(held) = tally.take(held(&exam.view, asked, &port)) else { continue };
        if held.rx_usecs > 0 || held.tx_usecs > 0 || held.adaptive {
            tally.bad.push(format!("{port} holds back {}", held.words()));
            let off = if held.adaptive { "adaptive-rx off adaptive-tx off " } else { "" };
            remedies.push(format!("ethtool -C {} {off}rx-usecs 0 tx-usecs 0", quoted(&port)));
        }
    }
    let fine = "no port holds packets back";
    tally.conclude("how long ports hold packets back", fine, |bad| {
        remedies.into_iter().take(4).fold(Outcome::spoils(listed(bad, 4)), Outcome::run)
    })
}

/// From the kernel where it was asked, else from the dump of a tree.
pub(super) fn held(view: &View, asked: Option<&Asked<Coalescing>>, port: &str) -> Look<Held> {
    let source = format!("/commands/ethtool-c-{port}.txt");
    if let Some(asked) = asked {
        let call = format!("ioctl(SIOCETHTOOL, ETHTOOL_GCOALESCE) on {port}");
        return match asked.get(port) {
            Some(Ok(said)) => Ok(super::view::Said {
                value: Held {
                    rx_usecs: u64::from(said.rx_usecs),
                    tx_usecs: u64::from(said.tx_usecs),
                    adaptive: said.adaptive_rx || said.adaptive_tx,
                },
                evidence: seen(
                    &call,
                    &format!("rx-usecs {}, tx-usecs {}", said.rx_usecs, said.tx_usecs),
                ),
            }),
            Some(Err(why)) => Err(Missing { absent: false, evidence: seen(&call, why) }),
            None => Err(Missing { absent: true, evidence: seen(&call, "not asked") }),
        };
    }
    let text = view.table(&source)?;
    let number = |name| dumped(&text, name).and_then(|word| word.parse::<u64>().ok());
    let number = |name| number(name).filter(|usecs| *usecs <= MAX_USECS);
    let (Some(rx_usecs), Some(tx_usecs)) = (number("rx-usecs:"), number("tx-usecs:")) else {
        let evidence =
            seen(&source, &format!("`{}`, which is not understood", seen("", &text).said));
        return Err(Missing { absent: false, evidence });
    };
    // `Adaptive RX: off  TX: off`, capitals and all.
    let line = text.lines().find(|line| line.trim_start().starts_with("Adaptive RX:"));
    let adaptive = line.is_some_and(|line| line.split_whitespace().any(|word| word == "on"));
    let evidence = seen(&source, &format!("rx-usecs {rx_usecs}, tx-usecs {tx_usecs}"));
    Ok(super::view::Said { value: Held { rx_usecs, tx_usecs, adaptive }, evidence })
}

/// The first word after a name at the beginning of a line of a command's output.
fn dumped<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
    rest.split_whitespace().next()
}

/// Names of offloads as ethtool prints them.
const OFFLOADS: [(&str, &str); 4] = [
    ("gro", "generic-receive-offload:"),
    ("lro", "large-receive-offload:"),
    ("tso", "tcp-segmentation-offload:"),
    ("gso", "generic-segmentation-offload:"),
];

fn offloads(exam: &Exam<'_>) -> Outcome {
    if let Some(outcome) = no_port(exam) {
        return outcome;
    }
    let mut tally = Tally::default();
    let mut remedies = Vec::new();
    for port in ports(&exam.view) {
        let asked = exam.live.map(|live| &live.offloads);
        let Some(on) = tally.take(offloads_of(&exam.view, asked, &port)) else { continue };
        if !on.is_empty() {
            tally.bad.push(format!("{port} has {} on", on.join(", ")));
            let off: Vec<String> = on.iter().map(|name| format!("{name} off")).collect();
            remedies.push(format!("ethtool -K {} {}", quoted(&port), off.join(" ")));
        }
    }
    let fine = "no port merges or cuts packets";
    tally.conclude("what ports do to packets", fine, |bad| {
        remedies.into_iter().take(4).fold(Outcome::note(listed(bad, 4)), Outcome::run)
    })
}

/// Short names of the offloads that are on.
pub(super) fn offloads_of(
    view: &View,
    asked: Option<&Asked<Offloads>>,
    port: &str,
) -> Look<Vec<&'static str>> {
    let states: BTreeMap<&str, bool>;
    let source;
    if let Some(asked) = asked {
        source = format!("ioctl(SIOCETHTOOL) on {port}");
        let said = match asked.get(port) {
            Some(Ok(said)) => said,
            Some(Err(why)) => {
                return Err(Missing { absent: false, evidence: seen(&source, why) });
            }
            None => return Err(Missing { absent: true, evidence: seen(&source, "not asked") }),
        };
        let told = [("gro", said.gro), ("lro", said.lro), ("tso", said.tso), ("gso", said.gso)];
        states = told.into_iter().filter_map(|(name, on)| Some((name, on?))).collect();
    } else {
        source = format!("/commands/ethtool-k-{port}.txt");
        let text = view.table(&source)?;
        let state = |line| match dumped(&text, line) {
            Some("on") => Some(true),
            Some("off") => Some(false),
            _ => None,
        };
        states = OFFLOADS.iter().filter_map(|(name, line)| Some((*name, state(line)?))).collect();
        if !states.contains_key("gro") {
            let said = format!("`{}`, which is not understood", seen("", &text).said);
            return Err(Missing { absent: false, evidence: seen(&source, &said) });
        }
    }
    let words: Vec<String> = states
        .iter()
        .map(|(name, on)| format!("{name} {}", if *on { "on" } else { "off" }))
        .collect();
    let of_states = |name: &&str| states.get(name) == Some(&true);
    let on = OFFLOADS.iter().map(|(name, _)| *name).filter(of_states).collect();
    Ok(super::view::Said { value: on, evidence: seen(&source, &words.join(", ")) })
}

fn drops(exam: &Exam<'_>) -> Outcome {
    const FILE: &str = "/proc/net/softnet_stat";
    let text = match exam.view.table(FILE) {
        Ok(text) => text,
        Err(missing) => return Outcome::missing("whether packets were dropped", &missing),
    };
    // A line per online CPU; the second word counts what did not fit into its backlog queue
    // (net/core/net-procfs.c).
    let dropped = text.lines().map(|line| {
        let word = line.split_whitespace().nth(1)?;
        u64::from_str_radix(word, 16).ok().filter(|_| word.len() == 8)
    });
    let Some(dropped) = dropped.collect::<Option<Vec<u64>>>().filter(|all| !all.is_empty()) else {
        return Outcome::unknown("whether packets were dropped is not known: not understood")
            .seen(seen(FILE, &text));
    };
    let total: u64 = dropped.iter().sum();
    let evidence = seen(FILE, &format!("{total} dropped on {} CPUs", dropped.len()));
    if total == 0 {
        return Outcome::fine("no packet found a backlog queue full since boot").seen(evidence);
    }
    Outcome::note(format!("{total} packets found a backlog queue full since boot"))
        .seen(evidence)
        .run("sysctl net.core.netdev_max_backlog=10000")
}

const NO_ICMP: &str = "whylate itself uses no ICMP";

/// The bit of echo replies in the mask of limited types.
const ECHO_REPLY: u64 = 1;

fn icmp(exam: &Exam<'_>) -> Outcome {
    const DIR: &str = "/proc/sys/net/ipv4";
    let number = |name: &str| exam.view.number(&format!("{DIR}/{name}"));
    // Documentation/networking/ip-sysctl.rst
    let (ignored, limit, mask) =
        match (number("icmp_echo_ignore_all"), number("icmp_ratelimit"), number("icmp_ratemask")) {
            (Ok(ignored), Ok(limit), Ok(mask)) => (ignored, limit, mask),
            (Err(missing), ..) | (_, Err(missing), _) | (.., Err(missing)) => {
                return Outcome::missing("whether pings are throttled", &missing);
            }
        };
    if ignored.value > 0 {
        return Outcome::note("this machine answers no ping")
            .seen(ignored.evidence)
            .run("sysctl net.ipv4.icmp_echo_ignore_all=0")
            .advise(NO_ICMP);
    }
    if limit.value > 0 && mask.value & ECHO_REPLY != 0 {
        return Outcome::note(format!(
            "this machine answers at most one ping in {} ms to each address",
            limit.value
        ))
        .all_seen([limit.evidence, mask.evidence])
        .run(format!("sysctl net.ipv4.icmp_ratemask={}", mask.value & !ECHO_REPLY))
        .advise(NO_ICMP);
    }
    Outcome::fine("answers to pings are not throttled by this machine")
        .all_seen([ignored.evidence, mask.evidence])
}
