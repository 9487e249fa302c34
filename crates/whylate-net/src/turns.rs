//! Turns of a loop that never sleeps: which of them took so long that the thread was interrupted, as
//! far as its own readings can tell. Who took the time, or that its own call was slow, they cannot.
//!
//! A turn that looks in vain takes about as long as the last ones, and so does one that sends or takes
//! something in. What takes several times as long as such a turn is an interruption. The usual lengths
//! are followed by steps, without a division: a median that may wander. A little more than usual is
//! the thread's own system call and no interruption.
//!
//! How long a look takes is much the same everywhere; what a send takes is not. So the first turns of
//! those kinds are learned from, and judged by nobody.

use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

/// However quick the turns are, a shorter one is none: entering the kernel and leaving it again takes
/// so long.
const LEAST: Nanos = Nanos(3_000);
/// What the usual length is at first.
const FIRST: Nanos = Nanos(1_000);
/// So many usual turns that look in vain are an interruption.
const USUAL: u64 = 4;
/// A turn that sends or takes in is allowed so many of its own usual lengths beside.
const USUAL_WORK: u64 = 2;
/// Turns of a kind that are learned from; odd, for their median.
const LEARNED: usize = 5;

/// What a loop did in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// Nothing but look.
    Look,
    /// It took something in.
    Take,
    /// It sent something.
    Send,
}

/// Follows the turns of a loop.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    before: Option<Ticks>,
    least: u64,
    step: u64,
    look: u64,
    take: Usual,
    send: Usual,
}

/// The usual length of a kind of turns, once it is known.
#[derive(Debug, Clone, Copy, Default)]
struct Usual {
    ticks: u64,
    first: [u64; LEARNED],
    seen: usize,
}

impl Turns {
    /// Of a loop that reads a counter of this rate.
    #[must_use]
    pub fn new(rate: Hertz) -> Self {
        let ticks = |time: Nanos| time.to_ticks(rate).0.max(1);
        let (look, usual) = (ticks(FIRST), Usual::default());
        let step = (look / 64).max(1);
        Self { before: None, least: ticks(LEAST), step, look, take: usual, send: usual }
    }

    /// A turn ended at `now`, in which the loop did this: since when, where it was interrupted in it.
    #[inline]
    pub fn ended(&mut self, now: Ticks, did: Did) -> Option<Ticks> {
        let before = self.before.replace(now)?;
        let took = now.since(before).0;
        let look = self.look_limit();
        let (usual, limit) = match did {
            Did::Look => (&mut self.look, look),
            Did::Take | Did::Send => {
                let of = if did == Did::Take { &mut self.take } else { &mut self.send };
                if of.seen < LEARNED {
                    of.learn(took);
                    return None;
                }
                let limit = look + USUAL_WORK * of.ticks;
                (&mut of.ticks, limit)
            }
        };
        if took > *usual {
            *usual += self.step;
        } else {
            *usual = usual.saturating_sub(self.step);
        }
        (took > limit).then_some(before)
    }

    /// What the loop does until its next turn ends is its own and judged by nobody.
    #[inline]
    pub fn pause(&mut self) {
        self.before = None;
    }

    /// How long a turn of this kind usually takes.
    #[must_use]
    pub fn usual(&self, did: Did) -> TicksDelta {
        TicksDelta(match did {
            Did::Look => self.look,
            Did::Take => self.take.ticks,
            Did::Send => self.send.ticks,
        })
    }

    /// What a turn that looks, and one that sends, may take by now.
    #[must_use]
    pub fn limits(&self) -> [TicksDelta; 2] {
        let look = self.look_limit();
        [TicksDelta(look), TicksDelta(look + USUAL_WORK * self.send.ticks)]
    }

    #[inline]
    fn look_limit(&self) -> u64 {
        self.least.max(USUAL * self.look)
    }
}

impl Usual {
    #[cold]
    fn learn(&mut self, took: u64) {
        self.first[self.seen] = took;
        self.seen += 1;
        let mut known = self.first;
        let known = &mut known[..self.seen];
        known.sort_unstable();
        self.ticks = known[known.len() / 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of these lengths, a tick a nanosecond; which of them were interruptions.
    fn interruptions(turns: impl IntoIterator<Item = (u64, Did)>) -> (Vec<usize>, Turns) {
        let mut of = Turns::new(Hertz(1e9));
        let mut now = Ticks(1_000);
        assert_eq!(of.ended(now, Did::Look), None);
        let mut found = Vec::new();
        for (index, (took, did)) in turns.into_iter().enumerate() {
            let before = now;
            now = now + TicksDelta(took);
            if let Some(since) = of.ended(now, did) {
                assert_eq!(since, before);
                found.push(index);
            }
        }
        (found, of)
    }

    #[test]
    fn long_turns_are_interruptions_and_sends_that_take_as_long_as_ever_are_not() {
        let turns = (0..4_000).map(|index| match index {
            2_000 => (9_000, Did::Look),
            _ if index % 5 == 0 => (8_000 + index % 64, Did::Send),
            _ => (600 + index % 32, Did::Look),
        });
        let (found, of) = interruptions(turns);
        assert_eq!(found, [2_000]);
        let [look, work] = of.limits();
        assert_eq!(look.0, 3_000);
        assert!((17_000..22_000).contains(&work.0), "{work:?}");
    }

    #[test]
    fn turns_that_send_and_turns_that_take_in_are_judged_by_their_own_lengths() {
        let turns = (0..4_000).map(|index| match index {
            // As long as any send, and far too long for a message that came.
            2_000 => (20_000, Did::Take),
            // Of those that are learned from, one was interrupted.
            9 => (5_000_000, Did::Send),
            _ if index % 3 == 0 => (20_000 + index % 64, Did::Send),
            _ if index % 3 == 1 => (2_000 + index % 16, Did::Take),
            _ => (600, Did::Look),
        });
        let (found, of) = interruptions(turns);
        assert_eq!(found, [2_000]);
        let usual = [Did::Look, Did::Take, Did::Send].map(|did| of.usual(did).0);
        let expected = [500..700, 1_900..2_200, 19_000..21_000];
        assert!(expected.iter().zip(usual).all(|(of, usual)| of.contains(&usual)), "{usual:?}");
    }

    #[test]
    fn the_usual_length_follows_a_slow_machine() {
        let (found, of) = interruptions((0..4_000).map(|_| (2_500, Did::Look)));
        assert_eq!(found, Vec::<usize>::new());
        assert!((9_500..10_500).contains(&of.limits()[0].0), "{:?}", of.limits());
    }
}
