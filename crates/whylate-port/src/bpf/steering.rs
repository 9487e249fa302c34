//! The program that hands frames to sockets of AF_XDP, and leaves all others to the host.
//!
//! A message goes to the socket of the queue that it came by; where that queue has none, to the host.
//! Needs Linux 5.3, with which a redirection can name what is to happen otherwise.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use whylate_sys::Errno;
use whylate_sys::bpf::{self, CounterMap, SocketMap, Tried};

use crate::bpf::asm::Reg::{R0, R1, R2, R3, R5, R6, R7, R9};
use crate::bpf::asm::Size::{B1, B2, B4};
use crate::bpf::asm::Test::{Eq, Ne};
use crate::bpf::asm::Width::{W32, W64};
use crate::bpf::asm::{Alu, AsmError, Label};
use crate::bpf::attach::{self, Attached, InterfaceRef, Wanted};
use crate::bpf::error::BpfError;
use crate::bpf::headers::{
    self, ARP, Draft, IPV4, IPV6, IPV6_HEADER, PASS, as_it_lies, ethernet, network,
};
use crate::bpf::stamps::{self, Stamper};
use crate::bpf::take::{self, Messages, Take};
use crate::bpf::verdict::{Counts, Verdict};
use crate::bpf::{LICENSE, LICENSE_OF_CALLERS, Mode};

const REDIRECT_MAP: i32 = 51;
/// `XDP_REDIRECT`.
const REDIRECTED: i32 = 4;
/// Where the receiving queue stands in `struct xdp_md`.
const QUEUE: i16 = 16;

/// Bytes of a packet of ARP about IPv4 over Ethernet.
const ARP_BYTES: i32 = 28;
/// Where it says whom it is for.
const ARP_TARGET: i16 = 24;
/// Bytes of ICMPv6 that say what it is.
const ICMPV6_HEADER: i32 = 8;
/// Bytes of a neighbour's solicitation or advertisement with its target.
const NEIGHBOUR_BYTES: i32 = 24;
const SOLICITATION: i32 = 135;
const ADVERTISEMENT: i32 = 136;

/// The loaded program with its maps.
#[derive(Debug)]
pub struct Steering {
    program: OwnedFd,
    sockets: SocketMap,
    counters: CounterMap,
    stamping: Stamping,
}

/// Who stamps what a program takes, and why not somebody better.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamping {
    /// None where nobody does.
    pub by: Option<Stamper>,
    /// What was not to be had.
    pub instead: Vec<String>,
}

impl Steering {
    /// Loads the program for an interface of so many receiving queues. It does nothing until it is
    /// attached.
    pub fn load(take: &Take, queues: u32) -> Result<Self, BpfError> {
        Self::load_with(take, queues, None, 0)
    }

    /// The same, and each frame that it takes has its stamps in front of it; `interface` is the index of
    /// the only one that it will run at, where its card is asked.
    fn load_with(
        take: &Take,
        queues: u32,
        by: Option<Stamper>,
        interface: u32,
    ) -> Result<Self, BpfError> {
        if let Take::Messages(messages) = take {
            messages.check()?;
        }
        let sockets = SocketMap::new(c"whylate_sockets", queues)?;
        let counters = CounterMap::new(c"whylate_counts", Verdict::ALL.len() as u32)?;
        let instructions = match take {
            Take::Everything => everything(&sockets, &counters, by),
            Take::Messages(messages) => messages_of(messages, &sockets, &counters, by),
        }?;
        let name = c"whylate_steer";
        let program = match by {
            Some(Stamper::Card { .. }) => {
                bpf::load_xdp_for(interface, name, LICENSE_OF_CALLERS, &instructions)
            }
            Some(Stamper::Program) | None => bpf::load_xdp(name, LICENSE, &instructions),
        }?;
        let stamping = Stamping { by, instead: Vec::new() };
        Ok(Self { program, sockets, counters, stamping })
    }

    /// The best that kernel and driver take: with stamps of the card, with the program's own, or with
    /// none, and why.
    fn load_stamping(
        interface: InterfaceRef<'_>,
        take: &Take,
        queues: u32,
        mode: Mode,
    ) -> Result<Self, BpfError> {
        let mut instead = Vec::new();
        let of_card = match mode {
            Mode::Native => Stamper::of_card(),
            Mode::Generic => Err("in the network stack no driver is asked".to_owned()),
        };
        let of_card = of_card.and_then(|by| {
            Self::load_with(take, queues, Some(by), interface.index).map_err(|refusal| {
                match &refusal {
                    BpfError::Sys(sys) if sys.errno() == Some(Errno::OPNOTSUPP) => {
                        format!("the driver of `{}` has no stamps for programs", interface.name)
                    }
                    _ => refusal.to_string(),
                }
            })
        });
        match of_card {
            Ok(loaded) => return Ok(loaded),
            Err(why) => instead.push(format!("no stamps of a card: {why}")),
        }
        match Self::load_with(take, queues, Some(Stamper::Program), 0) {
            Ok(loaded) => {
                return Ok(Self { stamping: Stamping { instead, ..loaded.stamping }, ..loaded });
            }
            Err(refusal) => instead.push(format!("no stamps of a program: {refusal}")),
        }
        let loaded = Self::load(take, queues)?;
        Ok(Self { stamping: Stamping { by: None, instead }, ..loaded })
    }

    /// Like [`Self::attach`], with stamps in front of what it takes, as far as kernel and driver have
    /// any: [`Self::stamping`] tells.
    pub fn attach_stamping(
        interface: InterfaceRef<'_>,
        take: &Take,
        queues: u32,
        wanted: Wanted,
    ) -> Result<Attached<Self>, BpfError> {
        attach::attach(interface, wanted, |mode| Self::load_stamping(interface, take, queues, mode))
    }

    /// Who stamps what it takes.
    #[must_use]
    pub fn stamping(&self) -> &Stamping {
        &self.stamping
    }

    /// Loads the program and attaches it to an interface: from then on what it takes goes to the
    /// sockets that are given to it.
    pub fn attach(
        interface: InterfaceRef<'_>,
        take: &Take,
        queues: u32,
        wanted: Wanted,
    ) -> Result<Attached<Self>, BpfError> {
        attach::attach(interface, wanted, |_| Self::load(take, queues))
    }

    /// Hands what is taken from `queue` to `socket`, which must be one of AF_XDP, and stays with the
    /// program until it is closed.
    pub fn give(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), BpfError> {
        Ok(self.sockets.set(queue, socket)?)
    }

    /// What it has counted so far.
    pub fn counts(&self) -> Result<Counts, BpfError> {
        Ok(Counts::new(self.counters.read()?))
    }

    /// Runs it once on a frame as if that had come by the first queue; it is counted as any other.
    pub fn try_on(&self, frame: &[u8]) -> Result<Tried, BpfError> {
        Ok(bpf::try_on(&self.program, frame)?)
    }
}

impl AsFd for Steering {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

type Instructions = Vec<bpf::Instruction>;

fn everything(
    sockets: &SocketMap,
    counters: &CounterMap,
    stamper: Option<Stamper>,
) -> Result<Instructions, AsmError> {
    let mut draft = Draft::blind();
    hand_over(&mut draft, Verdict::Handed, sockets, stamper);
    draft.finish(counters)
}

fn messages_of(
    messages: &Messages,
    sockets: &SocketMap,
    counters: &CounterMap,
    stamper: Option<Stamper>,
) -> Result<Instructions, AsmError> {
    let mut draft = Draft::new();
    let [v4, v6, arp, icmp, message, neighbour] = std::array::from_fn(|_| draft.asm.label());
    let passed = draft.leave(Verdict::Passed);
    let owns_v4 = take::v4(&messages.neighbours).next().is_some();
    let owns_v6 = take::v6(&messages.neighbours).next().is_some();
    ethernet(&mut draft);
    let kinds =
        [(messages.wants_v4(), IPV4, v4), (messages.wants_v6(), IPV6, v6), (owns_v4, ARP, arp)];
    for (_, kind, label) in kinds.into_iter().filter(|(wanted, ..)| *wanted) {
        draft.asm.jump_if(W64, Eq, R1, network(kind), label);
    }
    draft.asm.jump(passed);
    if messages.wants_v4() {
        draft.asm.bind(v4);
        headers::ipv4(&mut draft, messages, true);
        draft.asm.jump(message);
    }
    if messages.wants_v6() {
        draft.asm.bind(v6);
        headers::ipv6(&mut draft, messages, owns_v6.then_some(icmp));
        draft.asm.jump(message);
    }
    if owns_v4 {
        draft.asm.bind(arp);
        about_v4(&mut draft, messages, neighbour);
    }
    if owns_v6 {
        draft.asm.bind(icmp);
        about_v6(&mut draft, messages, neighbour);
    }
    if owns_v4 || owns_v6 {
        draft.asm.bind(neighbour);
        hand_over(&mut draft, Verdict::Neighbour, sockets, None);
    }
    draft.asm.bind(message);
    hand_over(&mut draft, Verdict::Handed, sockets, stamper);
    draft.finish(counters)
}

/// Questions of ARP about the addresses, and answers to them.
fn about_v4(draft: &mut Draft, messages: &Messages, found: Label) {
    let passed = draft.leave(Verdict::Passed);
    draft.need(R9, ARP_BYTES);
    let asm = &mut draft.asm;
    // Ethernet and IPv4, and the lengths of their addresses.
    asm.load(B4, R1, R9, 0);
    asm.jump_if(W32, Ne, R1, as_it_lies([0, 1, 8, 0]), passed);
    asm.load(B2, R1, R9, 4);
    asm.jump_if(W64, Ne, R1, network(0x0604), passed);
    asm.load(B4, R1, R9, ARP_TARGET);
    for address in take::v4(&messages.neighbours) {
        asm.jump_if(W32, Eq, R1, as_it_lies(address.octets()), found);
    }
    asm.jump(passed);
}

/// Solicitations for the addresses, and advertisements to them.
fn about_v6(draft: &mut Draft, messages: &Messages, found: Label) {
    let passed = draft.leave(Verdict::Passed);
    draft.asm.mov(R5, R9);
    draft.asm.add(R5, IPV6_HEADER);
    draft.need(R5, ICMPV6_HEADER);
    let [solicited, neighbour] = std::array::from_fn(|_| draft.asm.label());
    draft.asm.load(B1, R1, R5, 0);
    draft.asm.jump_if(W64, Eq, R1, SOLICITATION, neighbour);
    draft.asm.jump_if(W64, Ne, R1, ADVERTISEMENT, passed);
    draft.asm.bind(neighbour);
    draft.asm.mov(R3, R1);
    draft.need(R5, NEIGHBOUR_BYTES);
    draft.asm.jump_if(W64, Eq, R3, SOLICITATION, solicited);
    headers::addresses(draft, R9, 24, &messages.neighbours, found);
    draft.asm.jump(passed);
    draft.asm.bind(solicited);
    headers::addresses(draft, R5, 8, &messages.neighbours, found);
    draft.asm.jump(passed);
}

/// Ends the program: to the socket of the queue, or to the host where there is none. Stamps come last:
/// what is left to the host carries none.
fn hand_over(draft: &mut Draft, verdict: Verdict, sockets: &SocketMap, stamper: Option<Stamper>) {
    let count = draft.count();
    let asm = &mut draft.asm;
    if let Some(stamper) = stamper {
        stamps::stamp(asm, stamper);
    }
    asm.load(B4, R2, R6, QUEUE);
    asm.mov(R6, i32::from(verdict as u8));
    asm.load_map(R1, sockets);
    asm.mov(R3, PASS);
    asm.call(REDIRECT_MAP);
    asm.alu(W32, Alu::Mov, R7, R0);
    asm.jump_if(W64, Eq, R7, REDIRECTED, count);
    asm.mov(R6, i32::from(Verdict::NoSocket as u8));
    asm.jump(count);
}
