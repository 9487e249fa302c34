//! What the programs must do with a frame, said a second time: in plain Rust, from the documents of the
//! protocols, knowing nothing of instructions.

use std::net::IpAddr;

use whylate_port::bpf::{Messages, Mode, Treatment, Verdict, WireForm};

use crate::frames::{folded, sum};

/// A datagram of UDP that is meant.
struct Datagram<'a> {
    /// Where the header of IP begins in the frame.
    ip: usize,
    /// Where the header of UDP begins.
    udp: usize,
    v4: bool,
    frame: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> usize {
    (usize::from(bytes[at]) << 8) | usize::from(bytes[at + 1])
}

/// What an Ethernet frame carries, behind two tags at most.
fn content(frame: &[u8]) -> Result<(usize, usize), Verdict> {
    let mut at = 14;
    for _ in 0..2 {
        if frame.len() < at {
            return Err(Verdict::Short);
        }
        if !matches!(word(frame, at - 2), 0x8100 | 0x88a8) {
            break;
        }
        at += 4;
    }
    if frame.len() < at { Err(Verdict::Short) } else { Ok((word(frame, at - 2), at)) }
}

fn address(bytes: &[u8]) -> IpAddr {
    match <[u8; 4]>::try_from(bytes) {
        Ok(octets) => octets.into(),
        Err(_) => <[u8; 16]>::try_from(bytes).unwrap().into(),
    }
}

fn meant(messages: &Messages, to: IpAddr, port: usize) -> bool {
    messages.ports.iter().any(|&one| usize::from(one) == port)
        && (messages.addresses.is_empty() || messages.addresses.contains(&to))
}

/// The datagram in a frame, or why it is left to the host.
fn datagram<'a>(
    frame: &'a [u8],
    messages: &Messages,
    options: bool,
) -> Result<Datagram<'a>, Verdict> {
    let (kind, ip) = content(frame)?;
    let any = messages.addresses.is_empty();
    let family = |v4: bool| any || messages.addresses.iter().any(|one| one.is_ipv4() == v4);
    let (v4, header) = match kind {
        0x0800 if family(true) => (true, 20),
        0x86dd if family(false) => (false, 40),
        _ => return Err(Verdict::Passed),
    };
    let packet = &frame[ip..];
    if packet.len() < header {
        return Err(Verdict::Short);
    }
    let (length, to) = if v4 {
        let length = usize::from(packet[0] & 15) * 4;
        if packet[0] >> 4 != 4 || length < 20 || packet[9] != 17 {
            return Err(Verdict::Passed);
        }
        if word(packet, 6) & 0x3fff != 0 {
            return Err(Verdict::Fragment);
        }
        if length > 20 && !options {
            return Err(Verdict::Options);
        }
        (length, address(&packet[16..20]))
    } else {
        match (packet[0] >> 4, packet[6]) {
            (6, 17) => {}
            (6, 0 | 43 | 44 | 50 | 51 | 60 | 135 | 139 | 140) => return Err(Verdict::Options),
            _ => return Err(Verdict::Passed),
        }
        (40, address(&packet[24..40]))
    };
    let udp = packet.get(length..).filter(|udp| udp.len() >= 8).ok_or(Verdict::Short)?;
    if !meant(messages, to, word(udp, 2)) {
        return Err(Verdict::Passed);
    }
    Ok(Datagram { ip, udp: ip + length, v4, frame })
}

/// Is a frame about neighbours of one of the addresses?
fn about_neighbours(frame: &[u8], messages: &Messages) -> Option<Result<(), Verdict>> {
    let (kind, at) = content(frame).ok()?;
    let has = |v4: bool| messages.neighbours.iter().any(|one| one.is_ipv4() == v4);
    let ours = |bytes: &[u8]| {
        let found = messages.neighbours.contains(&address(bytes));
        if found { Ok(()) } else { Err(Verdict::Passed) }
    };
    let packet = &frame[at..];
    if kind == 0x0806 && has(true) {
        if packet.len() < 28 {
            return Some(Err(Verdict::Short));
        }
        let over_ethernet = packet[..6] == [0, 1, 8, 0, 6, 4];
        return Some(if over_ethernet { ours(&packet[24..28]) } else { Err(Verdict::Passed) });
    }
    if kind != 0x86dd || !has(false) || packet.len() < 40 {
        return None;
    }
    if packet[0] >> 4 != 6 || packet[6] != 58 {
        return None;
    }
    let icmp = &packet[40..];
    let kind = match icmp {
        [kind, _, _, _, _, _, _, _, ..] => *kind,
        _ => return Some(Err(Verdict::Short)),
    };
    Some(match kind {
        135 | 136 if icmp.len() < 24 => Err(Verdict::Short),
        135 => ours(&icmp[8..24]),
        136 => ours(&packet[24..40]),
        _ => Err(Verdict::Passed),
    })
}

/// What a steering program finds in a frame, its queue having a socket.
pub(crate) fn steered(frame: &[u8], messages: &Messages) -> Verdict {
    match about_neighbours(frame, messages) {
        Some(Ok(())) => return Verdict::Neighbour,
        Some(Err(verdict)) => return verdict,
        None => {}
    }
    datagram(frame, messages, true).map_or_else(|verdict| verdict, |_| Verdict::Handed)
}

/// What a reflector does with a frame: the verdict, what it returns, and the frame as it leaves it,
/// with the two checksums as they were.
pub(crate) struct Reflected {
    pub(crate) verdict: Verdict,
    pub(crate) returned: u32,
    pub(crate) frame: Vec<u8>,
}

pub(crate) fn reflected(
    frame: &[u8],
    messages: &Messages,
    form: &WireForm,
    mode: Mode,
) -> Reflected {
    let left = |verdict| Reflected { verdict, returned: 2, frame: frame.to_vec() };
    let found = match datagram(frame, messages, false) {
        Ok(found) => found,
        Err(verdict) => return left(verdict),
    };
    let treatment = match treatment(&found, form) {
        Ok(treatment) => treatment,
        Err(verdict) => return left(verdict),
    };
    let (answer, verdict) = match treatment {
        Treatment::Answer(answer) => (answer, Verdict::Answered),
        Treatment::AnswerBeside(answer) => (answer, Verdict::AnsweredBeside),
        Treatment::Leave => return left(Verdict::Account),
        Treatment::Count => return Reflected { returned: 1, ..left(Verdict::OneWay) },
        Treatment::CountBeside => return Reflected { returned: 1, ..left(Verdict::OneWayBeside) },
    };
    let Datagram { ip, udp, v4, .. } = found;
    let unfinished = word(frame, udp + 6) == usize::from(folded(pseudo(&found)));
    if unfinished && !(v4 && mode == Mode::Native) {
        return left(Verdict::Unfinished);
    }
    let mut frame = frame.to_vec();
    let mut swap = |one: usize, other: usize, bytes: usize| {
        for at in 0..bytes {
            frame.swap(one + at, other + at);
        }
    };
    swap(0, 6, 6);
    swap(udp, udp + 2, 2);
    if v4 {
        swap(ip + 12, ip + 16, 4);
    } else {
        swap(ip + 8, ip + 24, 16);
    }
    frame[ip + if v4 { 8 } else { 7 }] = 64;
    frame[udp + 8 + 5] = answer;
    if unfinished {
        frame[udp + 6..udp + 8].fill(0);
    }
    Reflected { verdict, returned: 3, frame }
}

fn treatment(found: &Datagram<'_>, form: &WireForm) -> Result<Treatment, Verdict> {
    let (packet, udp) = (&found.frame[found.ip..], &found.frame[found.udp..]);
    if (found.frame[0] | found.frame[6]) & 1 != 0 {
        return Err(Verdict::Foreign);
    }
    let length = word(udp, 4);
    let told = if found.v4 { word(packet, 2).checked_sub(20) } else { Some(word(packet, 4)) };
    if length < 8 + usize::from(form.compact.shortest) || told != Some(length) {
        return Err(Verdict::Foreign);
    }
    let message = udp.get(8..length).ok_or(Verdict::Short)?;
    let is_compact = message.len() < usize::from(form.shortest);
    let magic = if is_compact { form.compact.magic } else { form.magic };
    let right = message[..4] == magic
        && message[4] == form.version
        && word(message, 6) == message.len()
        && (found.v4 || word(udp, 6) != 0);
    let known = form.kinds.iter().find(|(kind, _)| *kind == message[5]);
    known.filter(|_| right).map(|(_, treatment)| *treatment).ok_or(Verdict::Foreign)
}

fn pseudo(found: &Datagram<'_>) -> u64 {
    let packet = &found.frame[found.ip..];
    let addresses = if found.v4 { &packet[12..20] } else { &packet[8..40] };
    sum(addresses) + 17 + word(found.frame, found.udp + 4) as u64
}

/// Where the checksums of IPv4 and UDP stand in a frame that was answered.
pub(crate) fn checksums(frame: &[u8]) -> (Option<usize>, usize) {
    let (kind, ip) = content(frame).unwrap();
    if kind == 0x0800 { (Some(ip + 10), ip + 26) } else { (None, ip + 46) }
}

/// The sums that the checksums of an answered frame belong to: of IPv4's header, and of UDP with its
/// pseudo-header. Both are multiples of 65 535 where the checksums are right.
pub(crate) fn sums(frame: &[u8]) -> (Option<u64>, u64) {
    let (kind, ip) = content(frame).unwrap();
    let v4 = kind == 0x0800;
    let udp = ip + if v4 { 20 } else { 40 };
    let found = Datagram { ip, udp, v4, frame };
    let length = word(frame, udp + 4);
    (v4.then(|| sum(&frame[ip..ip + 20])), pseudo(&found) + sum(&frame[udp..udp + length]))
}
