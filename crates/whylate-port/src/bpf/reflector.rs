//! The program that answers messages inside the kernel, before its network stack has seen them.
//!
//! A request that is a whole message of the protocol, in a datagram of its own to a port and address
//! that are meant, goes back the way it came: addresses of Ethernet and IP and the ports change places,
//! VLAN tags stay, the kind becomes that of the answer, and the hop limit is [`HOPS`]. What asks for no
//! reply is counted and dropped. Everything else passes to the host unchanged: a reflector there, on
//! the same port, gives the account at the end, of which a program could not write a word.
//!
//! **Checksums.** Swapped addresses leave them as they were; what changes (kind, hop limit) is worked
//! into them (RFC 1624). A sender's kernel may leave the checksum of UDP to an interface that has none
//! to finish (veth, some virtual machines), and then it holds the sum of the pseudo-header alone. Such
//! a message cannot be told from one whose checksum happens to be that sum, 1 of 65 536. Over IPv4 and
//! in the driver it is answered without a checksum, which is right for both; elsewhere it is left to
//! the host, which knows, as [`Verdict::Unfinished`].
//!
//! **Residence.** The counter that messages are stamped by cannot be read in a program, and the kernel's
//! clock there (`bpf_ktime_get_ns`) would see the few instructions of the program and nothing of the
//! driver, of the queue before it and of sending behind it: a residence by it would be of something
//! else, and a histogram of it no account of what a request waits for here. So none is measured, and
//! messages carry none: a round trip over this reflector holds its whole residence. The account that
//! the host's reflector gives is of the messages that the host answered.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use whylate_sys::bpf::{self, CounterMap, Tried};

use crate::bpf::LICENSE;
use crate::bpf::asm::Alu::{And, Rsh, Sub, Xor};
use crate::bpf::asm::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9};
use crate::bpf::asm::Size::{B1, B2, B4};
use crate::bpf::asm::Test::{Eq, Ge, Gt, Lt, Ne, Set};
use crate::bpf::asm::Width::{W32, W64};
use crate::bpf::asm::{AsmError, Assembler, Label, Reg};
use crate::bpf::attach::{self, Attached, InterfaceRef, Mode, Wanted};
use crate::bpf::error::BpfError;
use crate::bpf::headers::{
    self, DROP, Draft, IPV4, IPV4_HEADER, IPV6, SEND_BACK, UDP, UDP_HEADER, as_it_lies, ethernet,
    network,
};
use crate::bpf::take::Messages;
use crate::bpf::verdict::{Counts, Verdict};

/// Routers that an answer may pass.
pub const HOPS: u8 = 64;

/// Where version, kind and length stand in a message.
const VERSION_AT: i16 = 4;
const KIND_AT: i16 = 5;
const LENGTH_AT: i16 = 6;
/// Bytes up to there.
const SHORTEST: u16 = 8;
/// Kinds of messages at most, so that a program stays a program.
const MOST_KINDS: usize = 32;

/// What a program knows of a protocol: four bytes that begin each message, its version, its kind, and
/// in two bytes, in the order of the network, its length, which is that of the datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireForm {
    /// The beginning.
    pub magic: [u8; 4],
    /// The version that is answered.
    pub version: u8,
    /// Bytes of the shortest message that begins so.
    pub shortest: u16,
    /// What shorter ones are.
    pub compact: Compact,
    /// What is done with each kind; a kind that is not here makes a message a foreign one.
    pub kinds: Vec<(u8, Treatment)>,
}

/// Messages of a protocol that are shorter than others: of the same versions and kinds, which stand in the
/// same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compact {
    /// Their beginning.
    pub magic: [u8; 4],
    /// Bytes of the shortest; at least 8, and fewer than any other message has.
    pub shortest: u16,
}

/// What is done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It goes back with this kind, as a measured one.
    Answer(u8),
    /// It goes back with this kind, and belongs to no measurement.
    AnswerBeside(u8),
    /// It is counted and dropped, as a measured one.
    Count,
    /// It is counted and dropped, and belongs to no measurement.
    CountBeside,
    /// It is left to the host.
    Leave,
}

impl WireForm {
    fn check(&self) -> Result<(), BpfError> {
        let unfit = |why: &str| Err(BpfError::Unfit { what: "a protocol", why: why.to_owned() });
        if self.compact.shortest < SHORTEST {
            return unfit("the length of a message ends at its 8th byte");
        }
        if self.compact.shortest >= self.shortest || self.compact.magic == self.magic {
            return unfit("its compact messages are not told from others");
        }
        if self.kinds.len() > MOST_KINDS {
            return unfit("it has more than 32 kinds of messages");
        }
        let answers = |kind: &(u8, Treatment)| {
            matches!(kind.1, Treatment::Answer(_) | Treatment::AnswerBeside(_))
        };
        if !self.kinds.iter().any(answers) {
            return unfit("it answers nothing");
        }
        Ok(())
    }
}

/// The loaded program with its counters.
#[derive(Debug)]
pub struct Reflector {
    program: OwnedFd,
    counters: CounterMap,
}

impl Reflector {
    /// Loads the program as it is right for a mode. It does nothing until it is attached.
    pub fn load(messages: &Messages, form: &WireForm, mode: Mode) -> Result<Self, BpfError> {
        messages.check()?;
        form.check()?;
        if let Some(address) = messages.neighbours.first() {
            let why = format!("nobody answers for {address} behind a reflector but the host");
            return Err(BpfError::Unfit { what: "neighbours", why });
        }
        let counters = CounterMap::new(c"whylate_counts", Verdict::ALL.len() as u32)?;
        let instructions = instructions(messages, form, mode, &counters)?;
        let program = bpf::load_xdp(c"whylate_reflect", LICENSE, &instructions)?;
        Ok(Self { program, counters })
    }

    /// Loads the program and attaches it to an interface: from then on it answers.
    pub fn attach(
        interface: InterfaceRef<'_>,
        messages: &Messages,
        form: &WireForm,
        wanted: Wanted,
    ) -> Result<Attached<Self>, BpfError> {
        attach::attach(interface, wanted, |mode| Self::load(messages, form, mode))
    }

    /// What it has counted so far.
    pub fn counts(&self) -> Result<Counts, BpfError> {
        Ok(Counts::new(self.counters.read()?))
    }

    /// Runs it once on a frame as if that had come; it is counted as any other.
    pub fn try_on(&self, frame: &[u8]) -> Result<Tried, BpfError> {
        Ok(bpf::try_on(&self.program, frame)?)
    }
}

impl AsFd for Reflector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// Which version of IP a message came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ip {
    V4,
    V6,
}

impl Ip {
    /// Where the length stands, and how much of it is not the datagram's.
    fn length(self) -> (i16, i32) {
        match self {
            Self::V4 => (2, IPV4_HEADER),
            Self::V6 => (4, 0),
        }
    }

    /// Where the source stands, and how many words of four bytes it has; the destination follows.
    fn source(self) -> (i16, i16) {
        match self {
            Self::V4 => (12, 1),
            Self::V6 => (8, 4),
        }
    }
}

fn instructions(
    messages: &Messages,
    form: &WireForm,
    mode: Mode,
    counters: &CounterMap,
) -> Result<Vec<bpf::Instruction>, AsmError> {
    let mut draft = Draft::new();
    let [v4, v6] = std::array::from_fn(|_| draft.asm.label());
    let passed = draft.leave(Verdict::Passed);
    ethernet(&mut draft);
    for (wanted, kind, label) in [(messages.wants_v4(), IPV4, v4), (messages.wants_v6(), IPV6, v6)]
    {
        if wanted {
            draft.asm.jump_if(W64, Eq, R1, network(kind), label);
        }
    }
    draft.asm.jump(passed);
    if messages.wants_v4() {
        draft.asm.bind(v4);
        headers::ipv4(&mut draft, messages, false);
        reflect(&mut draft, form, mode, Ip::V4);
    }
    if messages.wants_v6() {
        draft.asm.bind(v6);
        headers::ipv6(&mut draft, messages, None);
        reflect(&mut draft, form, mode, Ip::V6);
    }
    draft.finish(counters)
}

/// Does with the datagram at R5 what its kind asks for, and ends the program.
fn reflect(draft: &mut Draft, form: &WireForm, mode: Mode, ip: Ip) {
    whole_message(draft, form, ip);
    let back = draft.asm.label();
    by_kind(draft, form, back);
    draft.asm.bind(back);
    checksum(draft, mode, ip);
    // The kind of the answer.
    draft.asm.store(B1, R5, UDP_HEADER as i16 + KIND_AT, R2);
    turn_round(&mut draft.asm, ip);
    match ip {
        Ip::V4 => {
            let asm = &mut draft.asm;
            asm.load(B2, R0, R9, 8);
            asm.load(B2, R1, R9, 10);
            // The byte beside the hop limit says that this is UDP.
            asm.alu(W64, Xor, R0, 0xffff);
            asm.alu(W64, Xor, R1, 0xffff);
            asm.add(R1, R0);
            asm.add(R1, i32::from(u16::from_ne_bytes([HOPS, UDP as u8])));
            fold(asm, R1, R4, 2);
            asm.alu(W64, Xor, R1, 0xffff);
            asm.store(B2, R9, 10, R1);
            asm.store(B1, R9, 8, i32::from(HOPS));
        }
        Ip::V6 => draft.asm.store(B1, R9, 7, i32::from(HOPS)),
    }
    let count = draft.count();
    draft.asm.mov(R7, SEND_BACK);
    draft.asm.jump(count);
}

/// Goes on where the datagram is one whole message, from one host to one host, and all of it is there.
fn whole_message(draft: &mut Draft, form: &WireForm, ip: Ip) {
    let foreign = draft.leave(Verdict::Foreign);
    let short = draft.leave(Verdict::Short);
    let shortest = UDP_HEADER + i32::from(form.compact.shortest);
    let asm = &mut draft.asm;
    // The bit of groups, in either address of Ethernet.
    for at in [0, 6] {
        asm.load(B1, R1, R7, at);
        asm.jump_if(W64, Set, R1, 1, foreign);
    }
    asm.load(B2, R4, R5, 4);
    asm.host_order_16(R4);
    // The verifier forgets how large a number can be when its bytes change places.
    asm.alu(W64, And, R4, 0xffff);
    asm.jump_if(W64, Lt, R4, shortest, foreign);
    let (at, header) = ip.length();
    asm.load(B2, R1, R9, at);
    asm.host_order_16(R1);
    asm.alu(W64, Sub, R1, header);
    asm.jump_if(W64, Ne, R1, R4, foreign);
    asm.mov(R2, R5);
    asm.add(R2, R4);
    asm.jump_if(W64, Gt, R2, R8, short);
    // The same for the part that is looked at, in a way that the verifier understands.
    draft.need(R5, shortest);
    let asm = &mut draft.asm;
    let message = UDP_HEADER as i16;
    let [compact, told] = std::array::from_fn(|_| asm.label());
    let long = UDP_HEADER + i32::from(form.shortest);
    asm.load(B4, R1, R5, message);
    asm.jump_if(W32, Eq, R1, as_it_lies(form.compact.magic), compact);
    asm.jump_if(W32, Ne, R1, as_it_lies(form.magic), foreign);
    asm.jump_if(W64, Lt, R4, long, foreign);
    asm.jump(told);
    asm.bind(compact);
    asm.jump_if(W64, Ge, R4, long, foreign);
    asm.bind(told);
    asm.load(B1, R1, R5, message + VERSION_AT);
    asm.jump_if(W64, Ne, R1, i32::from(form.version), foreign);
    asm.load(B2, R1, R5, message + LENGTH_AT);
    asm.host_order_16(R1);
    asm.add(R1, UDP_HEADER);
    asm.jump_if(W64, Ne, R1, R4, foreign);
    if ip == Ip::V6 {
        // Over IPv6 there must be a checksum.
        asm.load(B2, R1, R5, 6);
        asm.jump_if(W64, Eq, R1, 0, foreign);
    }
}

/// Ends the program for messages that are not answered. Others go to `back`, with the kind of the
/// answer in R2, what changes in the checksum in R3, and the verdict in R6.
fn by_kind(draft: &mut Draft, form: &WireForm, back: Label) {
    let foreign = draft.leave(Verdict::Foreign);
    draft.asm.load(B1, R1, R5, UDP_HEADER as i16 + KIND_AT);
    let labels: Vec<Label> = form.kinds.iter().map(|_| draft.asm.label()).collect();
    for ((kind, _), label) in form.kinds.iter().zip(&labels) {
        draft.asm.jump_if(W64, Eq, R1, i32::from(*kind), *label);
    }
    draft.asm.jump(foreign);
    for ((kind, treatment), label) in form.kinds.iter().zip(labels) {
        draft.asm.bind(label);
        let (answer, verdict) = match *treatment {
            Treatment::Answer(answer) => (answer, Verdict::Answered),
            Treatment::AnswerBeside(answer) => (answer, Verdict::AnsweredBeside),
            Treatment::Count => {
                draft.conclude(Verdict::OneWay, DROP);
                continue;
            }
            Treatment::CountBeside => {
                draft.conclude(Verdict::OneWayBeside, DROP);
                continue;
            }
            Treatment::Leave => {
                let account = draft.leave(Verdict::Account);
                draft.asm.jump(account);
                continue;
            }
        };
        let word = |kind| u16::from_ne_bytes([form.version, kind]);
        let change = i32::from(!word(*kind)) + i32::from(word(answer));
        draft.asm.mov(R2, i32::from(answer));
        draft.asm.mov(R3, change);
        draft.asm.mov(R6, i32::from(verdict as u8));
        draft.asm.jump(back);
    }
}

/// Works the change in R3 into the checksum of UDP. Keeps R2 and R6.
fn checksum(draft: &mut Draft, mode: Mode, ip: Ip) {
    let asm = &mut draft.asm;
    let [none, complete, done] = std::array::from_fn(|_| asm.label());
    asm.load(B2, R1, R5, 6);
    if ip == Ip::V4 {
        // Its sender made none.
        asm.jump_if(W64, Eq, R1, 0, done);
    }
    // The sum of the pseudo-header, as a sender leaves it that does not finish.
    let (at, words) = ip.source();
    asm.mov(R0, network(UDP as u16));
    asm.load(B2, R4, R5, 4);
    asm.add(R0, R4);
    for at in (at..at + 8 * words).step_by(4) {
        asm.load(B4, R4, R9, at);
        asm.add(R0, R4);
    }
    fold(asm, R0, R4, 3);
    if ip == Ip::V4 && mode == Mode::Native {
        asm.jump_if(W64, Eq, R0, R1, none);
    } else {
        let unfinished = draft.leave(Verdict::Unfinished);
        draft.asm.jump_if(W64, Eq, R0, R1, unfinished);
    }
    let asm = &mut draft.asm;
    asm.alu(W64, Xor, R1, 0xffff);
    asm.add(R1, R3);
    fold(asm, R1, R4, 2);
    asm.alu(W64, Xor, R1, 0xffff);
    // Zero would say that there is none.
    asm.jump_if(W64, Ne, R1, 0, complete);
    asm.mov(R1, 0xffff);
    asm.bind(complete);
    asm.store(B2, R5, 6, R1);
    if ip == Ip::V4 && mode == Mode::Native {
        asm.jump(done);
        asm.bind(none);
        asm.store(B2, R5, 6, 0);
    }
    asm.bind(done);
}

/// Adds the carries of a sum to its lower 16 bits, so many times.
fn fold(asm: &mut Assembler, sum: Reg, moment: Reg, times: usize) {
    for _ in 0..times {
        asm.mov(moment, sum);
        asm.alu(W64, Rsh, moment, 16);
        asm.alu(W64, And, sum, 0xffff);
        asm.add(sum, moment);
    }
}

/// Sends the frame back where it came from.
fn turn_round(asm: &mut Assembler, ip: Ip) {
    let mut swap = |size, base, one: i16, other: i16| {
        asm.load(size, R0, base, one);
        asm.load(size, R1, base, other);
        asm.store(size, base, one, R1);
        asm.store(size, base, other, R0);
    };
    swap(B4, R7, 0, 6);
    swap(B2, R7, 4, 10);
    let (source, words) = ip.source();
    for word in 0..words {
        swap(B4, R9, source + 4 * word, source + 4 * (words + word));
    }
    swap(B2, R5, 0, 2);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_no_program_can_be_made_for_is_refused() {
        let form = |shortest, kinds: Vec<(u8, Treatment)>| WireForm {
            magic: *b"test",
            version: 1,
            shortest: 24,
            compact: Compact { magic: *b"tesc", shortest },
            kinds,
        };
        let told = |form: WireForm| form.check().unwrap_err().to_string();
        let answers = vec![(1, Treatment::Answer(2)), (3, Treatment::Count)];
        assert!(form(8, answers.clone()).check().is_ok());
        assert!(told(form(7, answers.clone())).contains("8th byte"));
        assert!(told(form(24, answers.clone())).contains("not told from others"));
        let mut alike = form(8, answers);
        alike.compact.magic = alike.magic;
        assert!(told(alike).contains("not told from others"));
        assert!(told(form(8, vec![(1, Treatment::Count)])).contains("answers nothing"));
        let many = (0..33).map(|kind| (kind, Treatment::Answer(77))).collect();
        assert!(told(form(8, many)).contains("more than 32"));
    }
}
