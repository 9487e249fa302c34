//! What is asked of ports of whole frames: the same words for all who use them.

use std::net::IpAddr;

use clap::{Args, ValueEnum};
use whylate_port::bpf::{Mode, Wanted};
use whylate_port::frame::{Mac, Tags};
use whylate_port::{Copying, LinkOptions, Queueing, Transport, Waking};

use super::SocketOptions;
use super::dpdk::DeviceArgs;
use crate::parse;

/// Ports that have rings.
const RINGS: &[Transport] = &[Transport::Packet, Transport::Xdp, Transport::Dpdk];
/// The one whose program is led by sockets.
const XDP: &[Transport] = &[Transport::Xdp];
const PACKET: &[Transport] = &[Transport::Packet];
/// Why ports of sockets have none of it.
const OF_FRAMES: &str = "is for whole frames (--transport packet, xdp or dpdk)";

/// Options of a port of whole frames (packet, xdp, dpdk); what was used instead is reported.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Whole frames (packet, xdp, dpdk)")]
pub(crate) struct LinkArgs {
    /// Own hardware address for frames [default: the interface's]
    #[arg(help = "Own hardware address for frames", long_help, long, value_name = "ADDRESS")]
    pub(crate) mac: Option<Mac>,
    /// The router, where the other end is on another link
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) next_hop: Option<IpAddr>,
    /// Tag frames for this network (802.1Q), 1 to 4094, or OUTER.INNER, and receive no others
    #[arg(help = "Tag frames: 1 to 4094, or OUTER.INNER", long_help, long, value_name = "ID")]
    pub(crate) vlan: Option<Tags>,
    /// Queues of the interface to use, such as 0,1 [default: 0 with xdp, all with packet]
    #[arg(
        help = "Queues of the interface to use, such as 0,1",
        long_help,
        long,
        value_name = "LIST",
        value_delimiter = ','
    )]
    pub(crate) queues: Vec<u32>,
    /// Frames in each ring [default: 2048, fewer where frames are long]
    #[arg(help = "Frames in each ring [2048]", long_help, long, value_name = "FRAMES")]
    pub(crate) ring: Option<u32>,
    /// Size of the buffer for one frame [default: what the MTU needs]
    #[arg(
        help = "Size of the buffer for one frame",
        long_help,
        long,
        value_name = "SIZE",
        value_parser = parse::size
    )]
    pub(crate) frame_buffer: Option<u64>,
    /// Who copies frames of xdp: auto (nobody where the driver supports it, otherwise the kernel),
    /// copy (the kernel) or zero-copy (nobody; an error where that is not supported) [default:
    /// auto]
    #[arg(
        help = "Who copies frames of xdp [auto]",
        long_help,
        long,
        value_name = "WHO",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) copying: Option<Copier>,
    /// Where the program of xdp runs: auto (in the driver, otherwise behind it), native (in the
    /// driver) or generic (behind it) [default: auto]
    #[arg(
        help = "Where the program of xdp runs [auto]",
        long_help,
        long,
        value_name = "WHERE",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) attach: Option<Attach>,
    /// Wake the kernel for each frame of xdp, without asking whether that is necessary
    /// (need-wakeup)
    #[arg(help = "Wake the kernel for each frame of xdp", long_help, long)]
    pub(crate) no_need_wakeup: bool,
    /// Send frames of packet through the queueing discipline, as sockets do, instead of past it
    #[arg(help = "Send frames of packet through the queueing discipline", long_help, long)]
    pub(crate) qdisc: bool,
    /// The DPDK device
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// Who copies frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Copier {
    /// Nobody where the driver can do without, else the kernel.
    Auto,
    /// The kernel.
    Copy,
    /// Nobody.
    ZeroCopy,
}

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attach {
    /// In the driver, else behind it.
    Auto,
    /// In the driver.
    Native,
    /// In the network stack.
    Generic,
}

impl LinkArgs {
    /// What it is to the ports.
    pub(crate) fn of_port(&self) -> LinkOptions {
        LinkOptions {
            queues: self.queues.clone(),
            tags: self.vlan.unwrap_or_default(),
            mac: self.mac,
            next_hop: self.next_hop,
            ring: self.ring,
            // A size that no buffer can have is refused as the largest of all.
            buffer: self.frame_buffer.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX)),
            copying: match self.copying {
                None | Some(Copier::Auto) => Copying::Auto,
                Some(Copier::Copy) => Copying::Copy,
                Some(Copier::ZeroCopy) => Copying::ZeroCopy,
            },
            attaching: self.wanted(),
            waking: if self.no_need_wakeup { Waking::Always } else { Waking::WhenNeeded },
            queueing: if self.qdisc { Queueing::Asked } else { Queueing::Bypassed },
            device: self.device.of_port(),
            // Asked by what takes stamps in, which sets it.
            ..LinkOptions::default()
        }
    }

    /// Where a program is to run.
    pub(crate) fn wanted(&self) -> Wanted {
        match self.attach {
            None | Some(Attach::Auto) => Wanted::Any,
            Some(Attach::Native) => Wanted::Only(Mode::Native),
            Some(Attach::Generic) => Wanted::Only(Mode::Generic),
        }
    }

    /// Each option: whether it is given, its name, and why ports with rings that have no use for it
    /// have none.
    fn given(&self) -> [(bool, &'static str, &'static [Transport], &'static str); 10] {
        let copied = "the kernel copies each frame of a packet socket";
        let program = "a packet socket has no program";
        [
            (self.mac.is_some(), "--mac", RINGS, ""),
            (self.next_hop.is_some(), "--next-hop", RINGS, ""),
            (self.vlan.is_some(), "--vlan", RINGS, ""),
            (!self.queues.is_empty(), "--queues", RINGS, ""),
            (self.ring.is_some(), "--ring", RINGS, ""),
            (self.frame_buffer.is_some(), "--frame-buffer", RINGS, ""),
            (self.copying.is_some(), "--copying", XDP, copied),
            (self.attach.is_some(), "--attach", XDP, program),
            (
                self.no_need_wakeup,
                "--no-need-wakeup",
                XDP,
                "the kernel is always woken for a packet socket",
            ),
            (self.qdisc, "--qdisc", PACKET, "xdp always sends past the queueing discipline"),
        ]
    }

    /// The first option that none of these ports has a use for, and why.
    pub(crate) fn refused(&self, ports: &[Transport]) -> Option<String> {
        let frames = ports.iter().any(|port| port.carries_frames());
        let of_rings = self.given().into_iter().find_map(|(given, name, useful, why)| {
            let useless = given && !ports.iter().any(|port| useful.contains(port));
            let why = if frames { why.to_owned() } else { format!("{name} {OF_FRAMES}") };
            useless.then(|| format!("{why}: leave {name} out"))
        });
        of_rings.or_else(|| self.device.refused(ports))
    }

    /// The first option that a program which answers by itself has no use for, and why.
    pub(crate) fn refused_by_program(&self) -> Option<String> {
        let other = |name: &str| !matches!(name, "--attach");
        let given =
            |(given, name, _, _): (bool, &'static str, &'static [Transport], &'static str)| {
                (given && other(name)).then_some(name)
            };
        if let Some(refusal) = self.device.refused(&[]) {
            return Some(refusal);
        }
        let name = self.given().into_iter().find_map(given)?;
        let why = if name == "--vlan" {
            "xdp-tx answers in each VLAN that a request comes by"
        } else {
            "xdp-tx has neither rings nor an address of its own"
        };
        Some(format!("{why}: leave {name} out"))
    }
}

/// The first option of sockets that ports of frames have no use for, where there are no others.
pub(crate) fn refused_of_socket(options: &SocketOptions, ports: &[Transport]) -> Option<String> {
    if !ports.iter().all(|port| port.carries_frames()) {
        return None;
    }
    let rings = "a port of whole frames has rings, not socket buffers (--ring)";
    let given = [
        (options.receive_buffer.is_some(), "--receive-buffer", rings),
        (options.send_buffer.is_some(), "--send-buffer", rings),
        (
            options.dont_fragment,
            "--dont-fragment",
            "a port of whole frames does not fragment messages",
        ),
    ];
    let (_, name, why) = given.into_iter().find(|(given, _, _)| *given)?;
    Some(format!("{why}: leave {name} out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_frames_are_refused_where_nobody_has_a_use_for_them() {
        let refused = |of: &LinkArgs, ports: &[Transport]| of.refused(ports).unwrap_or_default();
        let (udp, packet, xdp) = (Transport::Udp, Transport::Packet, Transport::Xdp);
        let ring = LinkArgs { ring: Some(64), ..LinkArgs::default() };
        assert!(refused(&ring, &[udp]).contains("packet, xdp"));
        assert!(refused(&ring, &[udp]).contains("--ring"));
        for ports in [&[packet][..], &[xdp], &[udp, xdp]] {
            assert_eq!(refused(&ring, ports), "");
        }
        let copy = LinkArgs { copying: Some(Copier::Copy), ..LinkArgs::default() };
        assert!(refused(&copy, &[packet]).contains("--copying"));
        assert_eq!(refused(&copy, &[packet, xdp]), "");
        let qdisc = LinkArgs { qdisc: true, ..LinkArgs::default() };
        assert!(refused(&qdisc, &[xdp]).contains("past the queueing discipline"));
        assert_eq!(refused(&LinkArgs::default(), &[udp]), "");
        let attach = LinkArgs { attach: Some(Attach::Native), ..LinkArgs::default() };
        assert_eq!(attach.refused_by_program(), None);
        assert!(ring.refused_by_program().unwrap().contains("--ring"));
        let vlan = LinkArgs { vlan: "7".parse().ok(), ..LinkArgs::default() };
        assert!(vlan.refused_by_program().unwrap().contains("each VLAN"));
        let room = SocketOptions { receive_buffer: Some(1), ..SocketOptions::default() };
        assert!(refused_of_socket(&room, &[xdp]).unwrap().contains("--receive-buffer"));
        assert_eq!(refused_of_socket(&room, &[xdp, udp]), None);
    }

    #[test]
    fn words_become_what_ports_are_asked() {
        let asked = LinkArgs {
            vlan: "100.7".parse().ok(),
            queues: vec![1],
            frame_buffer: Some(1 << 40),
            copying: Some(Copier::ZeroCopy),
            attach: Some(Attach::Generic),
            no_need_wakeup: true,
            ..LinkArgs::default()
        };
        let of = asked.of_port();
        assert_eq!((of.tags.to_string().as_str(), of.buffer), ("100.7", Some(u32::MAX)));
        assert_eq!((of.copying, of.attaching), (Copying::ZeroCopy, Wanted::Only(Mode::Generic)));
        assert_eq!((of.waking, of.queueing), (Waking::Always, Queueing::Bypassed));
        assert_eq!(LinkArgs::default().of_port(), LinkOptions::default());
    }
}
