//! Opening the two ports of a forwarder, and what keeps them from being one.

use whylate_clock::Counter;
use whylate_model::forward::InterfaceCounts;
use whylate_model::{Hertz, Nanos};
use whylate_port::device::DeviceName;
use whylate_port::frames::{Frames, FramesFacts};
use whylate_port::{End, LinkOptions, PortError, Setup, Threads, Transport, Wait};
use whylate_sys::{ethtool, interface};

use super::claim::{Claim, interfaces_of_card, things};
use super::counters::counters;
use super::error::ForwardError;
use super::probe::{self, Joined};
use super::run::{Forwarder, Settings};
use super::sockets;
use super::stamps::{Cost, RingStamps, Stamps, cost};
use crate::error::NetError;

/// The driver of DPDK that takes frames by AF_XDP.
const OF_DPDK: &str = "net_af_xdp";

/// A thread that may sleep does so for so long at most: it sees that it is to end, and the end of an interval,
/// no later.
const NAP: Nanos = Nanos(10_000_000);

/// What is to be forwarded, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What carries the frames.
    pub transport: Transport,
    /// The two interfaces by their names; over UDP where clients reach it, and the server's address.
    pub interfaces: [String; 2],
    /// What is asked of both.
    pub link: LinkOptions,
    /// How to look for frames: without sleeping, but over UDP.
    pub wait: Wait,
    /// One thread for both directions, or one each.
    pub threads: Threads,
    /// What is stamped.
    pub stamps: Stamps,
    /// Busy work for each frame.
    pub work: Nanos,
    /// Length of the intervals that its times are told in.
    pub interval: Nanos,
    /// Ends after so long; none when it is told to.
    pub duration: Option<Nanos>,
}

/// A forwarder that has not begun. Frames come already, and wait in the rings.
pub struct Opened<C> {
    /// Its threads' work: one of both directions, or one of each.
    pub forwarders: Vec<Forwarder<C, Box<dyn Frames>>>,
    /// What the ports are.
    pub facts: [FramesFacts; 2],
    /// What the interfaces had counted before; none where that cannot be read.
    pub before: [Option<InterfaceCounts>; 2],
    /// What the stamps cost; none without.
    pub cost: Option<Cost>,
    /// Keeps the interfaces listening, and others away, for as long as this lives.
    pub hold: Hold,
}

/// Keeps the interfaces listening, and other forwarders away from them.
#[derive(Debug)]
pub struct Hold {
    _claims: Vec<Claim>,
    _heard: [whylate_port::end::Heard; 2],
}

/// Opens both ports in the calling thread's network namespace. Measures what stamps cost on the CPU
/// that it is on.
///
/// # Errors
/// A port cannot be had, both are one, they are joined outside, or another forwarder has one of them.
pub fn open<C: Counter + Clone + 'static>(
    plan: &Plan,
    mut counter: C,
    rate: Hertz,
) -> Result<Opened<C>, NetError> {
    let datagrams = plan.transport == Transport::Udp;
    if plan.wait.sleeps() && !datagrams {
        let (backend, wait) = ("a forwarder", plan.wait);
        return Err(PortError::WaitUnfit { backend, wait, choose: "spin or busy-poll" }.into());
    }
    // An address is claimed by the socket that is bound to it.
    let claims = if datagrams { Vec::new() } else { claims(plan.transport, &plan.interfaces)? };
    // Before the ports are there: frames that come meanwhile would fill the rings.
    let rings = RingStamps {
        kernel: plan.transport == Transport::Packet,
        // With work on purpose bursts are told apart, and read, whether they are stamped or not.
        own: plan.transport == Transport::Dpdk && plan.work == Nanos(0),
    };
    let cost = cost(&mut counter, rate, plan.stamps, rings);
    let setup = Setup { counter: counter.clone(), rate, wait: plan.wait };
    let ends = if datagrams {
        sockets::between(&plan.interfaces, plan.threads, &setup)?
    } else {
        apart(plan.transport, &plan.interfaces, &plan.link, plan.threads, &setup)?
    };
    let facts = told(plan.transport, &plan.interfaces, &ends);
    let interfaces = [facts[0].index, facts[1].index];
    let Plan { stamps, work, interval, duration, .. } = *plan;
    let nap = if plan.wait.sleeps() { NAP } else { Nanos(0) };
    let settings = Settings { stamps, work, interval, duration, rate, nap, interfaces };
    let [a, b] = ends;
    let forwarders = match (a.sending, b.sending) {
        (Some(to_a), Some(to_b)) => vec![
            Forwarder::new((a.receiving, to_b), &[0], counter.clone(), settings),
            Forwarder::new((b.receiving, to_a), &[1], counter, settings),
        ],
        _ => vec![Forwarder::new((a.receiving, b.receiving), &[0, 1], counter, settings)],
    };
    let before = interfaces.map(counters);
    let hold = Hold::new(claims, [a.heard, b.heard]);
    Ok(Opened { forwarders, facts, before, cost, hold })
}

impl Hold {
    pub(crate) fn new(claims: Vec<Claim>, heard: [whylate_port::end::Heard; 2]) -> Self {
        Self { _claims: claims, _heard: heard }
    }
}

/// Opens both ports, and looks whether they are joined outside.
fn apart<C: Counter + Clone + 'static>(
    transport: Transport,
    interfaces: &[String; 2],
    link: &LinkOptions,
    threads: Threads,
    setup: &Setup<C>,
) -> Result<[End; 2], NetError> {
    let mut ends = both(transport, interfaces, link, threads, setup)?;
    refuse(probe::looped(&mut ends, setup.rate)?, interfaces)?;
    Ok(ends)
}

/// Opens both ports.
pub(crate) fn both<C: Counter + Clone + 'static>(
    transport: Transport,
    interfaces: &[String; 2],
    link: &LinkOptions,
    threads: Threads,
    setup: &Setup<C>,
) -> Result<[End; 2], NetError> {
    let end = |name: &str| End::open(transport, name, link, threads, setup.clone());
    End::prepare(transport, interfaces, link)?;
    Ok([end(&interfaces[0])?, end(&interfaces[1])?])
}

/// Ports that are joined outside are refused.
pub(crate) fn refuse(joined: Option<Joined>, interfaces: &[String; 2]) -> Result<(), NetError> {
    let name = |at: usize| interfaces[at].clone();
    match joined {
        None => Ok(()),
        Some(Joined::Probe { out, back }) => {
            Err(ForwardError::Looped { out: name(out), back: name(back) }.into())
        }
        Some(Joined::Host(host)) => {
            Err(ForwardError::HeardByBoth { host, first: name(0), second: name(1) }.into())
        }
    }
}

/// What the ports are, and what frames that come by them lose.
pub(crate) fn told(
    transport: Transport,
    interfaces: &[String; 2],
    ends: &[End; 2],
) -> [FramesFacts; 2] {
    let mut facts = [ends[0].facts().clone(), ends[1].facts().clone()];
    for (of, name) in facts.iter_mut().zip(interfaces) {
        let interface = taken_from_driver(transport, name);
        of.instead.extend(interface.and_then(|name| loses_tags(&name)));
    }
    facts
}

/// The interface of a port that takes frames from the kernel's driver itself (AF_XDP, also as a device of
/// DPDK), by the port's name; none of any other. Such a port sees nothing that a driver keeps beside a
/// frame.
#[must_use]
pub fn taken_from_driver(transport: Transport, name: &str) -> Option<String> {
    match transport {
        Transport::Xdp => Some(name.to_owned()),
        Transport::Dpdk if name.starts_with(OF_DPDK) => {
            DeviceName::of(name).argument("iface").map(str::to_owned)
        }
        _ => None,
    }
}

/// Why frames that come by this interface may lose their outer tag by AF_XDP; none where they do not, and
/// of a driver that does not say.
fn loses_tags(name: &str) -> Option<String> {
    // What its sender leaves beside a frame, a virtual link hands over as it is, whatever it was told.
    if ethtool::driver(name).is_ok_and(|driver| driver == "veth") {
        return Some(format!(
            "`{name}` is an end of a virtual link: VLAN tags that a sender at its other end leaves beside \
             frames AF_XDP does not show, and they are lost (`ethtool -K NAME txvlan off` there)"
        ));
    }
    let beside = ethtool::keeps_tags_beside(name).unwrap_or(false);
    beside.then(|| {
        format!(
            "`{name}` may keep VLAN tags beside frames (rx-vlan-offload is on), where AF_XDP does not show \
             them: such frames leave without their outer tag (`ethtool -K {name} rxvlan off`)"
        )
    })
}

/// Claims both ports, by what they are.
pub(crate) fn claims(
    transport: Transport,
    [first, second]: &[String; 2],
) -> Result<Vec<Claim>, NetError> {
    let all = interface::all()?;
    let index_of = |name: &str| all.iter().find(|one| one.name == name).map(|one| one.index);
    let of = |name: &str| things(transport, name, &index_of, &interfaces_of_card);
    // One that is not there is nothing and cannot be claimed; opening it tells why.
    let (of_first, of_second) = (of(first), of(second));
    if first == second || of_first.iter().any(|thing| of_second.contains(thing)) {
        let (first, second) = (first.clone(), second.clone());
        return Err(ForwardError::SameInterface { first, second }.into());
    }
    let there = of_first.iter().map(|thing| (thing, first));
    let there = there.chain(of_second.iter().map(|thing| (thing, second)));
    Ok(there.map(|(thing, name)| Claim::of_thing(thing, name)).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_take_frames_from_a_driver_have_its_interface_and_no_others_do() {
        let of = taken_from_driver;
        assert_eq!(of(Transport::Xdp, "eth1"), Some("eth1".to_owned()));
        assert_eq!(of(Transport::Packet, "eth1"), None);
        let device = "net_af_xdp1,force_copy=1,iface=eth2";
        assert_eq!(of(Transport::Dpdk, device), Some("eth2".to_owned()));
        for device in ["net_af_packet0,iface=eth2", "0000:03:00.0", "net_null0"] {
            assert_eq!(of(Transport::Dpdk, device), None, "{device}");
        }
    }
}
