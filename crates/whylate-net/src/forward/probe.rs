//! Are the two ports joined outside? A frame is sent by each, and both are listened to.
//!
//! The frame is a broadcast of an EtherType for local experiments (IEEE 802, 0x88B5) with a random
//! number: bridges carry it everywhere, hosts pass over it. What else comes meanwhile is dropped: the
//! forwarder has not begun. It is looked at all the same: what joins the ports may hold back what is of no
//! kind it knows, and then a host that is heard at both, or one port's own address at the other, tells.
//!
//! What looks at the ports for other reasons may hand over what comes meanwhile ([`Probing::take`]): the time in
//! which a probe may be under way passes then, too.

use std::collections::BTreeSet;

use whylate_model::{Hertz, Nanos, Ticks};
use whylate_port::frame::{ETHERNET, Mac};
use whylate_port::frames::{Burst, Frames};
use whylate_port::{End, PortError};

use crate::Cookie;
use crate::conversation::Scale;

/// For experiments of who runs the network.
const KIND: [u8; 2] = [0x88, 0xb5];
/// What a probe begins with, behind the header.
const MARK: &[u8; 16] = b"whylate forward\n";
/// The shortest frame without check sequence.
const SHORTEST: usize = 60;
/// How long a probe may be under way.
const PATIENCE: Nanos = Nanos(200_000_000);
/// How long both ports are looked at last. While this thread had no CPU for all the time of a probe, nobody
/// looked, and what hands frames over may have had none either.
const LOOKED: Nanos = Nanos(20_000_000);
/// What of the time between two looks counts as looking, at most.
const LOOK: Nanos = Nanos(1_000_000);
/// Looks at most: a counter that does not move does not hold this up for ever.
const MOST_LOOKS: u64 = 1 << 32;

/// Hosts that are remembered at each end; of more nothing is known.
const MOST_HOSTS: usize = 256;

/// How the ports are joined outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    /// A probe was sent by one and came back by the other, or both heard their own.
    Probe {
        /// The port that it was sent by.
        out: usize,
        /// The one that it came by.
        back: usize,
    },
    /// This host's frames come by both, or one port's own come by the other.
    Host(Mac),
}

/// Where the frames that came meanwhile are from, by the end that they came by.
struct Hosts {
    own: [Mac; 2],
    heard: [BTreeSet<[u8; 6]>; 2],
}

impl Hosts {
    fn new(own: [Mac; 2]) -> Self {
        Self { own, heard: [BTreeSet::new(), BTreeSet::new()] }
    }

    /// Takes a frame that came by this end; its host, where that is at the other end, too.
    fn take(&mut self, at: usize, frame: &[u8]) -> Option<Mac> {
        let from: [u8; 6] = frame.get(6..12)?.try_into().ok()?;
        let mac = Mac(from);
        if mac.is_group() || mac == Mac::default() {
            return None;
        }
        // Links that were given one address say nothing by it.
        let of_the_other = self.own[1 - at] == mac && self.own[at] != mac;
        if of_the_other || self.heard[1 - at].contains(&from) {
            return Some(mac);
        }
        if self.heard[at].len() < MOST_HOSTS {
            self.heard[at].insert(from);
        }
        None
    }
}

/// Two ends that can be sent by and listened to.
pub(crate) trait Pair {
    /// Room at the way out of one of them, 0 or 1.
    fn out(&mut self, at: usize) -> &mut dyn Frames;
    /// The way in.
    fn receiving(&mut self, at: usize) -> &mut dyn Frames;
    /// Both ways in at once.
    fn both(&mut self) -> [&mut dyn Frames; 2];
}

impl Pair for [End; 2] {
    fn out(&mut self, at: usize) -> &mut dyn Frames {
        self[at].out()
    }

    fn receiving(&mut self, at: usize) -> &mut dyn Frames {
        &mut *self[at].receiving
    }

    fn both(&mut self) -> [&mut dyn Frames; 2] {
        let [first, second] = self;
        [&mut *first.receiving, &mut *second.receiving]
    }
}

/// Probes that are under way.
pub(crate) struct Probing {
    token: Cookie,
    hosts: Hosts,
    /// Of each end: did it hear its own?
    echoes: [bool; 2],
    /// A probe that came back.
    came: Option<Joined>,
    /// A host that was heard at both; a probe that is still under way says more.
    seen_at_both: Option<Mac>,
    /// When no probe is under way any more.
    end: Ticks,
    scale: Scale,
}

impl Probing {
    /// Sends a probe by each port.
    pub(crate) fn begin(pair: &mut dyn Pair, rate: Hertz) -> Result<Self, PortError> {
        let token = Cookie::fresh();
        let own = [0, 1].map(|at| pair.out(at).facts().mac);
        let mut left = Ticks(0);
        for at in [0, 1] {
            left = send(pair.out(at), token, at as u8)?;
        }
        let scale = Scale::new(rate);
        Ok(Self {
            token,
            hosts: Hosts::new(own),
            echoes: [false; 2],
            came: None,
            seen_at_both: None,
            end: left + scale.ticks(PATIENCE),
            scale,
        })
    }

    /// Takes what came by this port, until a probe came back. One that comes late tells as much.
    #[inline]
    pub(crate) fn take(&mut self, at: usize, port: &dyn Frames, burst: Burst) {
        if self.came.is_some() {
            return;
        }
        for frame in 0..burst.count {
            let bytes = port.frame(frame).bytes;
            match sender(bytes, self.token).map(usize::from) {
                Some(out) if out != at => self.came = Some(Joined::Probe { out, back: at }),
                Some(_) => self.echoes[at] = true,
                None => self.seen_at_both = self.hosts.take(at, bytes).or(self.seen_at_both),
            }
        }
        // What comes back to both goes round as well.
        if self.echoes == [true, true] && self.came.is_none() {
            self.came = Some(Joined::Probe { out: 0, back: 0 });
        }
    }

    /// How frames go round by the ports; none where they do not. Looks until no probe can be under way, and for
    /// some time in any case.
    pub(crate) fn end(mut self, pair: &mut dyn Pair) -> Result<Option<Joined>, PortError> {
        let [enough, most] = [LOOKED, LOOK].map(|of| self.scale.ticks(of));
        let (mut looked, mut last) = (0, None);
        for _ in 0..MOST_LOOKS {
            let mut now = Ticks(0);
            for at in [0, 1] {
                let port = pair.receiving(at);
                let burst = port.receive(Nanos(0))?;
                now = burst.at;
                self.take(at, port, burst);
            }
            looked += last.replace(now).map_or(0, |last| now.since(last).min(most).0);
            if self.came.is_some() || (now >= self.end && looked >= enough.0) {
                break;
            }
        }
        Ok(self.came.or(self.seen_at_both.map(Joined::Host)))
    }
}

/// How frames go round by the ports; none where they do not.
pub(super) fn looped(pair: &mut dyn Pair, rate: Hertz) -> Result<Option<Joined>, PortError> {
    Probing::begin(pair, rate)?.end(pair)
}

/// When it left.
fn send(out: &mut dyn Frames, token: Cookie, at: u8) -> Result<Ticks, PortError> {
    let from = out.facts().mac;
    let frame = written(from, token, at);
    // A ring that was opened a moment ago has room.
    if let Some(room) = out.put(frame.len()) {
        room.copy_from_slice(&frame);
    }
    out.flush()?;
    out.urge()
}

fn written(from: Mac, token: Cookie, at: u8) -> [u8; SHORTEST] {
    let mut frame = [0; SHORTEST];
    frame[..6].copy_from_slice(&Mac::BROADCAST.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..ETHERNET].copy_from_slice(&KIND);
    frame[ETHERNET..ETHERNET + 16].copy_from_slice(MARK);
    frame[ETHERNET + 16..ETHERNET + 24].copy_from_slice(&token.0.to_be_bytes());
    frame[ETHERNET + 24] = at;
    frame
}

/// Which of our ends sent this frame; none where another host did, or another forwarder.
fn sender(frame: &[u8], token: Cookie) -> Option<u8> {
    let at = *frame.get(ETHERNET + 24)?;
    let ours = frame[12..ETHERNET] == KIND
        && frame[ETHERNET..ETHERNET + 16] == MARK[..]
        && frame[ETHERNET + 16..ETHERNET + 24] == token.0.to_be_bytes();
    (ours && at < 2).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_at_both_ends_where_its_frames_or_a_ports_own_come_by_the_other() {
        let own = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
        let from = |mac: Mac| written(mac, Cookie(1), 0);
        let mut hosts = Hosts::new(own);
        let [near, far] = [Mac([2, 0, 0, 0, 1, 1]), Mac([2, 0, 0, 0, 1, 2])];
        assert_eq!(hosts.take(0, &from(near)), None);
        assert_eq!(hosts.take(1, &from(far)), None);
        assert_eq!(hosts.take(0, &from(near)), None, "again where it was");
        assert_eq!(hosts.take(1, &from(near)), Some(near));
        assert_eq!(hosts.take(0, &from(own[0])), None, "an echo of its own");
        assert_eq!(hosts.take(1, &from(own[0])), Some(own[0]));
        // What is no host's, and what is no frame.
        for _ in 0..2 {
            assert_eq!(hosts.take(0, &from(Mac::BROADCAST)), None);
            assert_eq!(hosts.take(1, &from(Mac::BROADCAST)), None);
            assert_eq!(hosts.take(0, &[0; 11]), None);
        }
        let mut same = Hosts::new([own[0]; 2]);
        assert_eq!(same.take(1, &from(own[0])), None, "both have one address");
    }

    #[test]
    fn a_probe_is_known_by_its_number_and_nothing_else_is_taken_for_one() {
        let token = Cookie(0x0102_0304_0506_0708);
        let frame = written(Mac([2; 6]), token, 1);
        assert_eq!(sender(&frame, token), Some(1));
        assert_eq!(sender(&frame, Cookie(7)), None);
        for length in 0..ETHERNET + 25 {
            assert_eq!(sender(&frame[..length], token), None);
        }
        for place in (12..ETHERNET + 24).chain([ETHERNET + 24]) {
            let mut changed = frame;
            changed[place] ^= 0x82;
            assert_eq!(sender(&changed, token), None, "{place}");
        }
    }
}
