//! Ports of whole frames, programs in the kernel, and what packets cost, in sentences that the terminal
//! and the page share.

use whylate_model::frames::{Copies, Frames, Program, Taken, TurnCosts};

use crate::numbers::{Value, count};

/// What is to be said of a port of whole frames.
pub(crate) fn said(of: &Frames) -> Vec<String> {
    let mut said = vec![way(of), rings(of)];
    said.extend(seen(of));
    said.push(dropped(of));
    said
}

/// By which interface, past what, and who copies.
fn way(of: &Frames) -> String {
    let copies = match of.copies {
        Copies::Copy => "the kernel copies each (copy)",
        Copies::ZeroCopy => "nobody copies them (zero-copy)",
        Copies::Driver => "a driver in this process copies them",
    };
    let taken = match of.taken {
        None if of.copies == Copies::Copy => "the kernel sees them as well",
        None => "the kernel never has them",
        Some(Taken::Native) => "a program takes them in the driver (native)",
        Some(Taken::Generic) => "a program takes them behind the driver (generic)",
    };
    let queued = if of.bypasses_qdisc { "past" } else { "through" };
    let (interface, mac) = (&of.interface, &of.mac);
    format!(
        "frames of interface {interface} ({mac}), MTU {}: {copies}, {taken}; they are sent {queued} the \
         queueing discipline",
        count(of.mtu.into())
    )
}

fn rings(of: &Frames) -> String {
    let queues = match of.queues.as_slice() {
        [] => "of all queues".to_owned(),
        [queue] => format!("of queue {queue}"),
        several => {
            let numbers: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("of each of the queues {}", numbers.join(", "))
        }
    };
    let waking = match (of.taken, of.need_wakeup) {
        (None, _) => "",
        (Some(_), true) => "; the kernel says when it has to be woken (need-wakeup)",
        (Some(_), false) => "; the kernel is woken for each frame",
    };
    format!(
        "rings {queues}: {} frames to receive, {} to send, buffers of {} bytes, frames of {} at most\
         {waking}",
        count(of.receive_ring.into()),
        count(of.send_ring.into()),
        count(of.buffer.into()),
        count(of.room)
    )
}

/// What the frames were that came.
fn seen(of: &Frames) -> Option<String> {
    let seen = of.seen.as_ref()?;
    let kinds = seen.kinds().into_iter().filter(|(_, frames)| *frames > 0);
    let kinds: Vec<String> = kinds.map(|(what, n)| format!("{} {what}", count(n))).collect();
    let checked = [
        (seen.unverified, "without a checksum"),
        (seen.left_to_card, "with a checksum that was left to a network card"),
    ];
    let checked = checked.into_iter().filter(|(n, _)| *n > 0);
    let checked: Vec<String> = checked.map(|(n, how)| format!("{} {how}", count(n))).collect();
    let checked = match checked.as_slice() {
        [] => String::new(),
        some => format!("; of the messages {}", some.join(" and ")),
    };
    let all = count(seen.all());
    Some(if kinds.is_empty() {
        "no frame came".to_owned()
    } else {
        format!("{all} frames came: {}{checked}", kinds.join(", "))
    })
}

/// What was dropped before the port saw it, by ring.
fn dropped(of: &Frames) -> String {
    if of.seen.is_none() {
        return "what its rings dropped is not known".to_owned();
    }
    let places = of.drops.iter().map(|drops| {
        let what = if drops.frames { "frames" } else { "times" };
        format!(
            "{} {what} by the {} ring of queue {} ({})",
            count(drops.count),
            drops.ring,
            drops.queue,
            drops.counter
        )
    });
    let places: Vec<String> = places.collect();
    match places.as_slice() {
        [] => "its rings dropped nothing".to_owned(),
        some => format!("dropped: {}", some.join(", ")),
    }
}

/// What packets cost.
pub(crate) fn costs(of: &TurnCosts) -> String {
    let TurnCosts { look, receive, send } = of;
    format!(
        "a packet costs the client {} ticks ({}) to send and {} ({}) to take in, an empty poll {} ({}): \
         typical iterations of its loop",
        count(send.ticks),
        Value::from(send.time),
        count(receive.ticks),
        Value::from(receive.time),
        count(look.ticks),
        Value::from(look.time)
    )
}

/// Where a program in the kernel ran.
pub(crate) fn program(of: &Program) -> String {
    let place = match of.taken {
        Taken::Native => "in the driver (native)",
        Taken::Generic => "behind the driver (generic)",
    };
    let held = if of.held_by_process {
        "it went with its process"
    } else {
        "this kernel does not tie it to its process"
    };
    format!(
        "A program of the kernel answered: {}, number {}, on interface {}, {place}; {held}. No residence \
         is known, and whose requests they were is not either.",
        of.name, of.id, of.interface
    )
}

/// What a program did with frames.
pub(crate) fn judged(of: &Program) -> Vec<Vec<String>> {
    let row =
        |of: &whylate_model::frames::Judged| vec![format!("frames {}", of.what), count(of.frames)];
    of.frames.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::Nanos;
    use whylate_model::frames::{Cost, Drops, Judged, Seen};

    fn frames() -> Frames {
        Frames {
            interface: "eth0".to_owned(),
            mac: "02:00:00:00:00:01".to_owned(),
            mtu: 1_500,
            queues: vec![0, 1],
            receive_ring: 2_048,
            send_ring: 2_048,
            buffer: 2_048,
            room: 1_518,
            copies: Copies::Copy,
            taken: Some(Taken::Generic),
            need_wakeup: true,
            bypasses_qdisc: true,
            instead: Vec::new(),
            seen: Some(Seen { messages: 7, stranger: 2, unverified: 1, ..Seen::default() }),
            drops: vec![Drops {
                queue: 1,
                ring: "receive".to_owned(),
                counter: "rx_ring_full".to_owned(),
                count: 5,
                frames: true,
            }],
        }
    }

    #[test]
    fn a_port_of_frames_is_told_with_its_rings_and_what_they_dropped() {
        let told = said(&frames()).join(". ");
        for words in [
            "eth0",
            "(copy)",
            "(generic)",
            "queues 0, 1",
            "2,048 frames to receive",
            "need-wakeup",
            "9 frames came: 7 messages, 2 from strangers; of the messages 1 without a checksum",
            "dropped: 5 frames by the receive ring of queue 1 (rx_ring_full)",
        ] {
            assert!(told.contains(words), "no `{words}` in {told}");
        }
        let packet = Frames {
            taken: None,
            copies: Copies::Copy,
            bypasses_qdisc: false,
            queues: Vec::new(),
            seen: Some(Seen::default()),
            drops: Vec::new(),
            ..frames()
        };
        let told = said(&packet).join(". ");
        for words in ["the kernel sees them as well", "(copy)", "through the", "no frame came"] {
            assert!(told.contains(words), "no `{words}` in {told}");
        }
        assert!(told.contains("its rings dropped nothing") && !told.contains("wake"), "{told}");
        let past = said(&Frames { copies: Copies::Driver, ..packet.clone() }).join(". ");
        assert!(past.contains("the kernel never has them"), "{past}");
        let unknown = said(&Frames { seen: None, ..packet }).join(". ");
        assert!(unknown.contains("not known") && !unknown.contains("nothing"), "{unknown}");
    }

    #[test]
    fn costs_and_programs_are_told_with_their_units() {
        let cost = |ticks, ns| Cost { ticks, time: Nanos(ns) };
        let turns = TurnCosts { look: cost(50, 25), receive: cost(400, 200), send: cost(900, 450) };
        assert!(costs(&turns).starts_with("a packet costs the client 900 ticks (450 ns) to send"));
        let of = Program {
            interface: "eth0".to_owned(),
            taken: Taken::Native,
            native_refused: None,
            held_by_process: true,
            id: 77,
            name: "whylate_reflect".to_owned(),
            frames: vec![Judged { what: "answered".to_owned(), frames: 5 }],
        };
        assert!(program(&of).contains("number 77, on interface eth0, in the driver (native)"));
        assert_eq!(judged(&of), [["frames answered", "5"].map(str::to_owned).to_vec()]);
    }
}
