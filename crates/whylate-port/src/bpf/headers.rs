//! Instructions that find their way through the headers of a frame.
//!
//! The programs share registers: R6 is the context (and later the verdict), R7 the frame, R8 its end,
//! R9 the header of IP, R5 that of UDP; R0 to R4 are for the moment. Each access to the frame stands
//! behind a comparison with its end, or the kernel's verifier refuses the program.
//!
//! Numbers are compared as they lie in the frame: the constants are turned once, here, and not the
//! frame's bytes each time.

use std::net::IpAddr;

use whylate_sys::bpf::{CounterMap, Instruction};

use crate::bpf::asm::Alu::{And, Lsh, Rsh};
use crate::bpf::asm::Reg::{R0, R1, R2, R5, R6, R7, R8, R9, R10};
use crate::bpf::asm::Size::{B1, B2, B4, B8};
use crate::bpf::asm::Test::{Eq, Gt, Lt, Ne};
use crate::bpf::asm::Width::{W32, W64};
use crate::bpf::asm::{AsmError, Assembler, Label, Reg};
use crate::bpf::take::{self, Messages};
use crate::bpf::verdict::Verdict;

/// `XDP_DROP`.
pub(super) const DROP: i32 = 1;
/// `XDP_PASS`.
pub(super) const PASS: i32 = 2;
/// `XDP_TX`.
pub(super) const SEND_BACK: i32 = 3;

/// Bytes of the header of Ethernet.
const ETHERNET: i32 = 14;
/// Where the kind of the content stands in it.
const ETHERNET_KIND: i16 = 12;
/// Bytes of a VLAN tag.
const TAG: i32 = 4;
/// VLAN tags that are looked behind.
const MOST_TAGS: usize = 2;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const ARP: u16 = 0x0806;

/// Bytes of the header of IPv4 without options.
pub(super) const IPV4_HEADER: i32 = 20;
/// Bytes of the header of IPv6.
pub(super) const IPV6_HEADER: i32 = 40;
/// Bytes of the header of UDP.
pub(super) const UDP_HEADER: i32 = 8;
pub(super) const UDP: i32 = 17;
const ICMPV6: i32 = 58;
/// More fragments follow, or this one is not the first.
const FRAGMENT: u16 = 0x3fff;
/// Extension headers of IPv6 (IANA), but for the one that says that nothing follows.
const EXTENSIONS: [i32; 9] = [0, 43, 44, 50, 51, 60, 135, 139, 140];

const MAP_LOOKUP_ELEM: i32 = 1;

/// A constant as it lies in a frame.
pub(super) fn network(number: u16) -> i32 {
    i32::from(number.to_be())
}

/// A program that is being written: instructions, and the ways out that they use.
pub(super) struct Draft {
    pub(super) asm: Assembler,
    /// Ways out to the host, each with its verdict. Only those that are used stand in the program: the
    /// verifier refuses what cannot be reached.
    ways_out: Vec<(Verdict, Label)>,
    /// Counts and returns: R6 is the verdict, R7 what is returned.
    count: Label,
}

impl Draft {
    /// A program that has the frame in R7 and its end in R8.
    pub(super) fn new() -> Self {
        let mut asm = Assembler::new();
        let count = asm.label();
        asm.mov(R6, R1);
        asm.load(B4, R7, R6, 0);
        asm.load(B4, R8, R6, 4);
        Self { asm, ways_out: Vec::new(), count }
    }

    /// A program that looks at no frame.
    pub(super) fn blind() -> Self {
        let mut asm = Assembler::new();
        let count = asm.label();
        asm.mov(R6, R1);
        Self { asm, ways_out: Vec::new(), count }
    }

    /// Where a frame is left to the host with this verdict.
    pub(super) fn leave(&mut self, verdict: Verdict) -> Label {
        if let Some((_, label)) = self.ways_out.iter().find(|(known, _)| *known == verdict) {
            return *label;
        }
        let label = self.asm.label();
        self.ways_out.push((verdict, label));
        label
    }

    /// Where R6 is counted and R7 returned.
    pub(super) fn count(&self) -> Label {
        self.count
    }

    /// Ends the program here with verdict and action.
    pub(super) fn conclude(&mut self, verdict: Verdict, action: i32) {
        self.asm.mov(R6, i32::from(verdict as u8));
        self.asm.mov(R7, action);
        self.asm.jump(self.count);
    }

    /// Goes to `short` unless the frame has `bytes` bytes from `from` on.
    pub(super) fn need(&mut self, from: Reg, bytes: i32) {
        let short = self.leave(Verdict::Short);
        self.asm.mov(R2, from);
        self.asm.add(R2, bytes);
        self.asm.jump_if(W64, Gt, R2, R8, short);
    }

    /// The whole program.
    pub(super) fn finish(mut self, counters: &CounterMap) -> Result<Vec<Instruction>, AsmError> {
        for (verdict, label) in std::mem::take(&mut self.ways_out) {
            self.asm.bind(label);
            self.conclude(verdict, PASS);
        }
        let asm = &mut self.asm;
        let out = asm.label();
        asm.bind(self.count);
        asm.store(B4, R10, -4, R6);
        asm.mov(R2, R10);
        asm.add(R2, -4);
        asm.load_map(R1, counters);
        asm.call(MAP_LOOKUP_ELEM);
        asm.jump_if(W64, Eq, R0, 0, out);
        // Nobody else adds to the counter of this CPU while a program runs on it.
        asm.load(B8, R1, R0, 0);
        asm.add(R1, 1);
        asm.store(B8, R0, 0, R1);
        asm.bind(out);
        asm.mov(R0, R7);
        asm.exit();
        self.asm.finish()
    }
}

/// Looks behind Ethernet and VLAN tags: then R9 is what the frame carries, and R1 says what that is.
pub(super) fn ethernet(draft: &mut Draft) {
    draft.need(R7, ETHERNET);
    let asm = &mut draft.asm;
    asm.load(B2, R1, R7, ETHERNET_KIND);
    asm.mov(R9, R7);
    asm.add(R9, ETHERNET);
    let inside = asm.label();
    for _ in 0..MOST_TAGS {
        let tagged = draft.asm.label();
        draft.asm.jump_if(W64, Eq, R1, network(VLAN), tagged);
        draft.asm.jump_if(W64, Ne, R1, network(SERVICE_VLAN), inside);
        draft.asm.bind(tagged);
        draft.need(R9, TAG);
        draft.asm.load(B2, R1, R9, 2);
        draft.asm.add(R9, TAG);
    }
    draft.asm.bind(inside);
}

/// Looks at a header of IPv4 and at the one of UDP behind it; goes on where the message is meant. With
/// `options`, the header may be longer than it must.
pub(super) fn ipv4(draft: &mut Draft, messages: &Messages, options: bool) {
    let passed = draft.leave(Verdict::Passed);
    let fragment = draft.leave(Verdict::Fragment);
    draft.need(R9, IPV4_HEADER);
    let asm = &mut draft.asm;
    asm.load(B1, R1, R9, 0);
    asm.mov(R2, R1);
    asm.alu(W64, Rsh, R2, 4);
    asm.jump_if(W64, Ne, R2, 4, passed);
    asm.alu(W64, And, R1, 15);
    asm.alu(W64, Lsh, R1, 2);
    asm.jump_if(W64, Lt, R1, IPV4_HEADER, passed);
    asm.load(B1, R2, R9, 9);
    asm.jump_if(W64, Ne, R2, UDP, passed);
    asm.load(B2, R2, R9, 6);
    asm.alu(W64, And, R2, network(FRAGMENT));
    asm.jump_if(W64, Ne, R2, 0, fragment);
    asm.mov(R5, R9);
    if options {
        asm.add(R5, R1);
    } else {
        let longer = draft.leave(Verdict::Options);
        draft.asm.jump_if(W64, Ne, R1, IPV4_HEADER, longer);
        draft.asm.add(R5, IPV4_HEADER);
    }
    udp(draft, messages);
    if take::v4(&messages.addresses).next().is_some() {
        let asm = &mut draft.asm;
        let ours = asm.label();
        asm.load(B4, R1, R9, 16);
        for address in take::v4(&messages.addresses) {
            asm.jump_if(W32, Eq, R1, as_it_lies(address.octets()), ours);
        }
        asm.jump(passed);
        asm.bind(ours);
    }
}

/// The same for IPv6. What is about neighbours goes to `neighbours`, where that is wanted.
pub(super) fn ipv6(draft: &mut Draft, messages: &Messages, neighbours: Option<Label>) {
    let passed = draft.leave(Verdict::Passed);
    let extended = draft.leave(Verdict::Options);
    draft.need(R9, IPV6_HEADER);
    let asm = &mut draft.asm;
    asm.load(B1, R1, R9, 0);
    asm.alu(W64, Rsh, R1, 4);
    asm.jump_if(W64, Ne, R1, 6, passed);
    asm.load(B1, R1, R9, 6);
    let datagram = asm.label();
    asm.jump_if(W64, Eq, R1, UDP, datagram);
    if let Some(neighbours) = neighbours {
        asm.jump_if(W64, Eq, R1, ICMPV6, neighbours);
    }
    for extension in EXTENSIONS {
        asm.jump_if(W64, Eq, R1, extension, extended);
    }
    asm.jump(passed);
    asm.bind(datagram);
    asm.mov(R5, R9);
    asm.add(R5, IPV6_HEADER);
    udp(draft, messages);
    if take::v6(&messages.addresses).next().is_some() {
        let ours = draft.asm.label();
        addresses(draft, R9, 24, &messages.addresses, ours);
        draft.asm.jump(passed);
        draft.asm.bind(ours);
    }
}

/// Goes to `found` if one of the addresses of IPv6 stands at this place.
pub(super) fn addresses(
    draft: &mut Draft,
    base: Reg,
    offset: i16,
    wanted: &[IpAddr],
    found: Label,
) {
    let asm = &mut draft.asm;
    for address in take::v6(wanted) {
        let next = asm.label();
        let octets = address.octets();
        for (word, at) in octets.as_chunks::<4>().0.iter().zip((offset..).step_by(4)) {
            asm.load(B4, R1, base, at);
            asm.jump_if(W32, Ne, R1, as_it_lies(*word), next);
        }
        asm.jump(found);
        asm.bind(next);
    }
}

/// Four bytes as a register holds them that were loaded from a frame. To be compared by 32 bits: the
/// sign of a constant would be extended.
pub(super) fn as_it_lies(bytes: [u8; 4]) -> i32 {
    i32::from_ne_bytes(bytes)
}

/// Looks at the header of UDP in R5; goes on where its port is meant.
fn udp(draft: &mut Draft, messages: &Messages) {
    let passed = draft.leave(Verdict::Passed);
    draft.need(R5, UDP_HEADER);
    let asm = &mut draft.asm;
    let meant = asm.label();
    asm.load(B2, R1, R5, 2);
    for &port in &messages.ports {
        asm.jump_if(W64, Eq, R1, network(port), meant);
    }
    asm.jump(passed);
    asm.bind(meant);
}
