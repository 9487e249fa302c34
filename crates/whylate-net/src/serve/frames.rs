//! Ports of whole frames and programs in the kernel, as they are told and stored.

use whylate_model::frames::{Copies, Drops, Frames, Judged, Program, Seen, Taken};
use whylate_model::warning::Warning;
use whylate_port::bpf::{Counts, HeldBy, Mode, ProgramFacts};
use whylate_port::frames::{Copies as Copied, Counted};
use whylate_port::{FrameCounts, FramesFacts, HostCounts};

/// What a port of whole frames was, and what it saw, where that is known.
#[must_use]
pub fn told_frames(facts: &FramesFacts, counts: Option<&FrameCounts>) -> Frames {
    Frames {
        interface: facts.interface.clone(),
        mac: facts.mac.to_string(),
        mtu: facts.mtu,
        queues: facts.queues.clone(),
        receive_ring: facts.rings.receive,
        send_ring: facts.rings.send,
        buffer: facts.buffer,
        room: facts.room as u64,
        copies: match facts.copies {
            Copied::Kernel | Copied::Sockets => Copies::Copy,
            Copied::Nobody => Copies::ZeroCopy,
            Copied::Driver => Copies::Driver,
        },
        taken: facts.attachment.map(taken),
        need_wakeup: facts.tells_wakeups,
        bypasses_qdisc: facts.bypasses_qdisc,
        instead: facts.instead.clone(),
        seen: counts.map(|counts| seen(&counts.host)),
        drops: counts.map(drops).unwrap_or_default(),
    }
}

/// What a program in the kernel was, and what it did.
#[must_use]
pub fn told_program(facts: &ProgramFacts, counts: &Counts) -> Program {
    let judged = |(verdict, frames): (whylate_port::bpf::Verdict, u64)| Judged {
        what: verdict.to_string(),
        frames,
    };
    Program {
        interface: facts.interface.clone(),
        taken: taken(facts.mode),
        native_refused: facts.native_refused.clone(),
        held_by_process: facts.held_by == HeldBy::Link,
        id: facts.id,
        name: facts.name.clone(),
        frames: counts.occurred().map(judged).collect(),
    }
}

/// What was asked for and not to be had, as warnings about a flow or server.
pub fn not_to_be_had<'a>(part: &'a str, of: &'a Frames) -> impl Iterator<Item = Warning> + 'a {
    of.instead
        .iter()
        .map(move |instead| Warning::NotToBeHad { part: part.to_owned(), instead: instead.clone() })
}

fn taken(mode: Mode) -> Taken {
    match mode {
        Mode::Native => Taken::Native,
        Mode::Generic => Taken::Generic,
    }
}

fn seen(of: &HostCounts) -> Seen {
    Seen {
        messages: of.messages,
        answered: of.answered,
        not_answered: of.not_answered,
        resolution: of.resolution,
        other_network: of.other_network,
        other_address: of.other_address,
        other_port: of.other_port,
        stranger: of.stranger,
        other_protocol: of.other_protocol,
        fragments: of.fragments,
        damaged: of.damaged,
        unverified: of.unverified,
        left_to_card: of.left_to_card,
    }
}

fn drops(counts: &FrameCounts) -> Vec<Drops> {
    let told = |drops: &whylate_port::frames::Drops| Drops {
        queue: drops.queue,
        ring: drops.ring.to_string(),
        counter: drops.counter.to_owned(),
        count: drops.count,
        frames: drops.of == Counted::Frames,
    };
    counts.drops.iter().filter(|drops| drops.count > 0).map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_that_a_host_counts_is_told_once() {
        let mut next = 0;
        let mut number = || {
            next += 1;
            1_u64 << next
        };
        let host = HostCounts {
            messages: number(),
            answered: number(),
            not_answered: number(),
            resolution: number(),
            other_network: number(),
            other_address: number(),
            other_port: number(),
            stranger: number(),
            other_protocol: number(),
            fragments: number(),
            damaged: number(),
            unverified: 3,
            left_to_card: 5,
        };
        let told = seen(&host);
        assert_eq!(told.all(), host.all());
        assert_eq!((told.messages, told.stranger), (host.messages, host.stranger));
        assert_eq!((told.unverified, told.left_to_card), (3, 5));
    }
}
