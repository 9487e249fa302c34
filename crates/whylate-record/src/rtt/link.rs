//! What a flow over whole frames can do, and what its two ends have in common.

use std::net::SocketAddr;

use whylate_net::lab::{Bed, Role};
use whylate_net::schedule::Arrivals;
use whylate_port::bpf::Wanted;
use whylate_port::open::{Target as Place, Transport};
use whylate_port::{Copying, LinkOptions, Options, Queueing, Wait, Waking};

use super::ends::Target;
use super::request::FlowRequest;
use crate::RecordError;

/// Refuses what a flow over whole frames cannot do, with what to do instead.
pub(super) fn check(
    flow: &FlowRequest,
    options: &Options,
    from: Option<SocketAddr>,
) -> Result<(), RecordError> {
    match refusal(flow, options, from) {
        None => Ok(()),
        Some(reason) => Err(RecordError::Flow { flow: flow.name.clone(), reason }),
    }
}

fn refusal(flow: &FlowRequest, options: &Options, from: Option<SocketAddr>) -> Option<String> {
    let (port, wait) = (flow.transport, flow.wait);
    // What two ports of one client can do is their own matter.
    if let Target::Across(_) = flow.target {
        return None;
    }
    if let (Some(from), Target::At(Place::Address(to))) = (from, &flow.target)
        && from.is_ipv4() != to.is_ipv4()
    {
        return Some(format!("{from} and {to} are of different versions of IP"));
    }
    if !port.carries_frames() {
        return None;
    }
    match (port, wait) {
        (_, Wait::IoUring) => {
            return Some(format!(
                "{port} receives from rings without system calls, which io-uring would wait for: use \
                 --wait spin"
            ));
        }
        (Transport::Packet, Wait::BusyPoll) => {
            return Some(
                "busy-poll has no effect on the rings of a packet socket: use --wait spin, block, poll \
                 or epoll"
                    .to_owned(),
            );
        }
        (Transport::Dpdk, wait) if wait != Wait::Spin => {
            return Some(
                "a DPDK device is polled and cannot be waited for: use --wait spin".to_owned(),
            );
        }
        // A socket of AF_XDP has one ring for either direction and one program: no second one.
        (Transport::Xdp, wait) if wait.sleeps() && flow.arrivals != Arrivals::Closed => {
            return Some(format!(
                "with {wait} one thread sleeps for replies while another sends on time, and an xdp \
                 socket cannot be shared by two threads: use --wait spin or --wait busy-poll, \
                 --arrivals closed, or --transport packet"
            ));
        }
        _ => (),
    }
    match &flow.target {
        Target::Own { bed: None, .. } => Some(format!(
            "{port} sends Ethernet frames, and loopback carries none: use --bed lab (whylate lab up), \
             or a target with --interface NAME"
        )),
        Target::Own { .. } if port == Transport::Dpdk => Some(
            "a device of DPDK leads to whoever is at its other end, and not into a bed: name a target \
             (whylate reflect there)"
                .to_owned(),
        ),
        Target::At(_) if port == Transport::Dpdk => from.is_none().then(|| {
            "the kernel has no address for a device of DPDK: give it one with --from".to_owned()
        }),
        Target::At(_) if options.interface.is_none() && from.is_none() => Some(format!(
            "{port} sends frames by one interface: name it (--interface NAME), or its address (--from \
             ADDRESS)"
        )),
        _ => None,
    }
}

/// The client's own address where none was given: that of its part of a bed, by which its interface is
/// known.
pub(super) fn own_address(flow: &FlowRequest, role: Option<Role>) -> Option<SocketAddr> {
    let role = role.filter(|_| flow.transport.carries_frames())?;
    Some(SocketAddr::new(Bed::address(role).into(), 0))
}

/// Words for a reflector of ours, so that both ends are of one kind. Addresses and queues are the
/// client's alone.
pub(super) fn words(of: &LinkOptions, transport: Transport) -> Vec<String> {
    let mut words = Vec::new();
    let option = |name: &str, value: String| [name.to_owned(), value];
    if of.tags.count() > 0 {
        words.extend(option("--vlan", of.tags.to_string()));
    }
    if let Some(frames) = of.ring {
        words.extend(option("--ring", frames.to_string()));
    }
    if let Some(bytes) = of.buffer {
        words.extend(option("--frame-buffer", bytes.to_string()));
    }
    if transport == Transport::Packet {
        words.extend((of.queueing == Queueing::Asked).then(|| "--qdisc".to_owned()));
        return words;
    }
    match of.copying {
        Copying::Auto => (),
        Copying::Copy => words.extend(option("--copying", "copy".to_owned())),
        Copying::ZeroCopy => words.extend(option("--copying", "zero-copy".to_owned())),
    }
    if let Wanted::Only(mode) = of.attaching {
        words.extend(option("--attach", mode.to_string()));
    }
    words.extend((of.waking == Waking::Always).then(|| "--no-need-wakeup".to_owned()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::CpuId;
    use whylate_model::flow::Direction;
    use whylate_net::Speaks;
    use whylate_port::bpf::Mode;

    fn flow(transport: Transport, wait: Wait, target: Target) -> FlowRequest {
        FlowRequest {
            name: "rtt".to_owned(),
            cpu: CpuId(0),
            fifo: None,
            target,
            direction: Direction::There,
            transport,
            protocol: "raw".parse::<Speaks>().unwrap(),
            wait,
            bytes: 64,
            arrivals: Arrivals::Constant,
            replayed: None,
            per_second: 1e3,
            most_under_way: None,
            one_way: false,
            resolved_in: None,
        }
    }

    fn there() -> Target {
        Target::At(Place::Address("198.18.0.2:11111".parse().unwrap()))
    }

    #[test]
    fn waits_that_a_port_of_frames_cannot_do_are_refused_with_what_it_can() {
        let options = Options { interface: Some("near".to_owned()), ..Options::default() };
        let told = |transport, wait| refusal(&flow(transport, wait, there()), &options, None);
        for wait in [Wait::Block, Wait::Poll, Wait::Epoll] {
            let xdp = told(Transport::Xdp, wait).unwrap();
            assert!(
                xdp.contains(&wait.to_string()) && xdp.contains("--wait spin or --wait busy-poll"),
                "{xdp}"
            );
            assert_eq!(told(Transport::Packet, wait), None);
            // One request at a time needs one thread.
            let closed =
                FlowRequest { arrivals: Arrivals::Closed, ..flow(Transport::Xdp, wait, there()) };
            assert_eq!(refusal(&closed, &options, None), None);
        }
        assert!(told(Transport::Packet, Wait::BusyPoll).unwrap().contains("spin"));
        for port in [Transport::Packet, Transport::Xdp] {
            assert!(told(port, Wait::IoUring).unwrap().contains("io-uring"));
            assert_eq!(told(port, Wait::Spin), None);
        }
        assert_eq!(told(Transport::Xdp, Wait::BusyPoll), None);
        assert_eq!(told(Transport::Udp, Wait::IoUring), None);
    }

    #[test]
    fn frames_need_an_interface_or_an_address_of_one_and_a_target_that_they_reach() {
        let none = Options::default();
        let bare = flow(Transport::Packet, Wait::Spin, there());
        assert!(refusal(&bare, &none, None).unwrap().contains("--interface"));
        let own: SocketAddr = "198.18.0.1:0".parse().unwrap();
        assert_eq!(refusal(&bare, &none, Some(own)), None);
        let six: SocketAddr = "[fd00::1]:0".parse().unwrap();
        assert!(refusal(&bare, &none, Some(six)).unwrap().contains("versions of IP"));
        let loopback = Target::Own { cpu: CpuId(1), bed: None };
        let over = flow(Transport::Xdp, Wait::Spin, loopback);
        assert!(refusal(&over, &none, None).unwrap().contains("whylate lab up"));
        assert_eq!(own_address(&over, Some(Role::Client)), Some(own));
        assert_eq!(
            own_address(&flow(Transport::Udp, Wait::Spin, there()), Some(Role::Client)),
            None
        );
    }

    #[test]
    fn the_other_end_is_told_what_both_have_in_common_and_no_more() {
        for port in [Transport::Packet, Transport::Xdp] {
            assert_eq!(words(&LinkOptions::default(), port), Vec::<String>::new());
        }
        let all = LinkOptions {
            queues: vec![3],
            tags: "100.7".parse().unwrap(),
            ring: Some(128),
            buffer: Some(4_096),
            copying: Copying::Copy,
            attaching: Wanted::Only(Mode::Generic),
            waking: Waking::Always,
            queueing: Queueing::Asked,
            ..LinkOptions::default()
        };
        let both = "--vlan 100.7 --ring 128 --frame-buffer 4096";
        let xdp = format!("{both} --copying copy --attach generic --no-need-wakeup");
        assert_eq!(words(&all, Transport::Xdp).join(" "), xdp);
        assert_eq!(words(&all, Transport::Packet).join(" "), format!("{both} --qdisc"));
    }
}
