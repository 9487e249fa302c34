//! A client that is late on purpose, to see whether a calibration finds it.
//!
//! Of messages that the client hears itself, those that are drawn by their numbers are handed over later than
//! they came, and their reception is stamped only then, by a reading of the same counter. A short time is
//! spent spinning. Over a long one other messages are handed over meanwhile: no neighbour is late with it. How
//! late each was, by the counter, is kept. Everything else goes through untouched.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use whylate_clock::Counter;
use whylate_model::flow::PlantedLate;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_net::Protocol;
use whylate_net::protocol::Phase;
use whylate_port::{BusyPolling, FrameCounts, IncomingFacts, Port, PortError, PortFacts, Received};
use whylate_stats::Histogram;

use crate::calibrate::planted::Tail;

/// What is planted and no longer than this is spun away; what is longer waits beside other messages.
const SPUN: Nanos = Nanos(20_000);
/// Readings behind what one takes.
const READINGS: u32 = 64;

/// How late messages really were, ticks.
type Sizes = Arc<Mutex<Histogram>>;

/// Which messages are late, and by how much.
pub(super) struct Planting {
    pub(super) tail: Tail,
    pub(super) seed: u64,
    /// Reads a message's number.
    pub(super) protocol: Box<dyn Protocol>,
    /// Bytes of a message.
    pub(super) bytes: usize,
    pub(super) rate: Hertz,
}

/// A message that is handed over later.
struct Held {
    message: Vec<u8>,
    /// As long as it was when it came, cut or not.
    length: usize,
    came: Ticks,
}

/// A port whose receptions are late.
struct Late<C> {
    port: Box<dyn Port>,
    counter: C,
    planting: Planting,
    by: TicksDelta,
    is_spun: bool,
    /// A spin ends at the first reading that is not before its end, half a reading behind it in the mean:
    /// it is asked to end as much earlier.
    early: TicksDelta,
    /// In the order in which they came, and so in that in which they are due.
    held: VecDeque<Held>,
    sizes: Sizes,
}

/// What was planted, while its port is in use and afterwards.
pub(super) struct Planted {
    what: String,
    sizes: Sizes,
    rate: Hertz,
}

/// Makes a port late.
pub(super) fn plant<C: Counter + Clone + 'static>(
    port: Box<dyn Port>,
    planting: Planting,
    counter: C,
) -> (Box<dyn Port>, Planted) {
    let (rate, sizes) = (planting.rate, Sizes::default());
    let what = format!("stamps of receptions are late on purpose, {}", planting.tail);
    let planted = Planted { what, sizes: Arc::clone(&sizes), rate };
    let (by, is_spun) = (planting.tail.by.to_ticks(rate), planting.tail.by <= SPUN);
    let early = TicksDelta(reading(counter.clone()).0 / 2);
    let held = VecDeque::new();
    (Box::new(Late { port, counter, planting, by, is_spun, early, held, sizes }), planted)
}

/// What a reading takes at least.
fn reading(mut counter: impl Counter) -> TicksDelta {
    let mut before = counter.read_ordered().0;
    let mut least = u64::MAX;
    for _ in 0..READINGS {
        let now = counter.read_ordered().0;
        least = least.min(now.0.saturating_sub(before.0));
        before = now;
    }
    TicksDelta(least)
}

impl Planted {
    /// What it is, in words.
    pub(super) fn what(&self) -> String {
        self.what.clone()
    }

    /// How many messages were late, and by how much.
    pub(super) fn told(&self) -> PlantedLate {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let median_ns = sizes.value_at(50.0).map_or(0.0, |ticks| ticks as f64 * 1e9 / self.rate.0);
        PlantedLate { messages: sizes.len(), median_ns }
    }
}

impl<C: Counter> Late<C> {
    fn now(&mut self) -> Ticks {
        self.counter.read_ordered().0
    }

    /// Is this message one of those that are late?
    fn is_in(&self, message: &[u8]) -> bool {
        let Planting { tail, seed, protocol, bytes, .. } = &self.planting;
        let heard = protocol.heard(message, *bytes);
        heard.is_some_and(|(phase, number)| phase == Phase::Measured && tail.is_in(number, *seed))
    }

    /// A message that came then has this stamp.
    fn is_stamped(&self, came: Ticks, at: Ticks) {
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.record(at.0.saturating_sub(came.0));
    }

    /// Lets the time go by; the reading that ended it is the stamp.
    fn spin(&mut self, came: Ticks) -> Ticks {
        let until = came.0.saturating_add(self.by.0).saturating_sub(self.early.0);
        loop {
            let now = self.now();
            if now.0 >= until {
                return now;
            }
        }
    }

    /// The first of those that are held, where its time has come.
    fn due(&mut self, buffer: &mut [u8]) -> Option<Received> {
        let until = self.held.front()?.came.0.saturating_add(self.by.0);
        let at = self.now();
        if at.0 < until {
            return None;
        }
        let Held { message, length, came } = self.held.pop_front()?;
        self.is_stamped(came, at);
        let whole = message.len().min(buffer.len());
        buffer[..whole].copy_from_slice(&message[..whole]);
        Some(Received::Message { length, at })
    }

    /// A wait is no longer than until the first of those that are held is due.
    fn limited(&mut self, limit: Nanos) -> Nanos {
        let Some(came) = self.held.front().map(|held| held.came) else { return limit };
        let left = came.0.saturating_add(self.by.0).saturating_sub(self.now().0);
        limit.min(TicksDelta(left).to_nanos(self.planting.rate))
    }
}

impl<C: Counter> Port for Late<C> {
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        self.port.send(message)
    }

    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        if let Some(late) = self.due(buffer) {
            return Ok(late);
        }
        let limit = self.limited(limit);
        let got = self.port.receive(buffer, limit)?;
        let Received::Message { length, at: came } = got else { return Ok(got) };
        let message = &buffer[..length.min(buffer.len())];
        if !self.is_in(message) {
            return Ok(got);
        }
        if self.is_spun {
            let at = self.spin(came);
            self.is_stamped(came, at);
            return Ok(Received::Message { length, at });
        }
        self.held.push_back(Held { message: message.to_vec(), length, came });
        Ok(Received::Nothing { at: came })
    }

    fn facts(&self) -> &PortFacts {
        self.port.facts()
    }

    fn duplicate(&self) -> Result<Box<dyn Port>, PortError> {
        self.port.duplicate()
    }

    fn busy_polling(&self) -> BusyPolling {
        self.port.busy_polling()
    }

    fn incoming(&self) -> IncomingFacts {
        self.port.incoming()
    }

    fn frame_counts(&mut self) -> Result<Option<FrameCounts>, PortError> {
        self.port.frame_counts()
    }
}

#[cfg(test)]
mod tests {
    use whylate_net::{Cookie, Speaks};
    use whylate_port::MemoryPort;
    use whylate_port::memory::{Network, RATE, READ_NS};

    use super::*;

    const BYTES: usize = 64;
    const MESSAGES: u64 = 40;
    const SEED: u64 = 3;

    /// Numbers of messages that are all there at once, in the order in which they were handed over, and what
    /// is said of those that were late.
    fn heard(tail: Tail) -> (Vec<u64>, PlantedLate) {
        let memory = MemoryPort::new(|message: &[u8], network: &mut Network| {
            network.arrive(Nanos(100), message.to_vec());
        });
        let counter = memory.counter();
        let speaks = || Speaks::Raw.through(Cookie(7));
        let planting = Planting { tail, seed: SEED, protocol: speaks(), bytes: BYTES, rate: RATE };
        let (mut port, planted) = plant(Box::new(memory), planting, counter);
        let (protocol, mut message) = (speaks(), vec![0; BYTES]);
        protocol.prepare(&mut message);
        for number in 0..MESSAGES {
            protocol.number(Phase::Measured, number, &mut message);
            port.send(&message).unwrap();
        }
        let mut came = Vec::new();
        for _ in 0..1_000_000 {
            if let Received::Message { length, .. } = port.receive(&mut message, Nanos(0)).unwrap()
            {
                came.push(protocol.heard(&message[..length], BYTES).unwrap().1);
            }
            if came.len() == MESSAGES as usize {
                break;
            }
        }
        (came, planted.told())
    }

    #[test]
    fn the_drawn_messages_are_late_by_what_was_asked_and_hold_up_others_only_while_one_spins() {
        for by in [Nanos(500), Nanos(2_000_000)] {
            let tail = Tail { one_in: 10, by };
            let (came, told) = heard(tail);
            let (late, prompt): (Vec<u64>, Vec<u64>) =
                (0..MESSAGES).partition(|number| tail.is_in(*number, SEED));
            let expected: Vec<u64> = if by <= SPUN {
                (0..MESSAGES).collect()
            } else {
                [&prompt[..], &late[..]].concat()
            };
            assert_eq!(came, expected, "{by}");
            assert_eq!((late.len(), told.messages), (4, 4));
            // By a bin of the histogram, and two readings.
            let off = (told.median_ns - by.0 as f64).abs();
            assert!(off <= 2.0 * READ_NS as f64 + 0.01 * by.0 as f64, "{by}: {told:?}");
        }
    }

    #[test]
    fn a_run_says_what_was_planted_and_one_without_says_nothing() {
        for one_in in [10, 1_000] {
            let tail = Tail { one_in, by: Nanos(500) };
            let (_, told) = heard(tail);
            let planted = (0..MESSAGES).filter(|number| tail.is_in(*number, SEED)).count();
            assert_eq!(told.messages, planted as u64, "one in {one_in}");
            assert_eq!(told.median_ns > 0.0, planted > 0, "one in {one_in}: {told:?}");
        }
    }
}
