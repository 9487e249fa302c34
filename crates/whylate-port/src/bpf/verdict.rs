//! What became of each frame, counted by the program itself.

use std::fmt;

/// What a program did with a frame. The numbers are those of its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Verdict {
    /// Handed to the socket of its queue. One that the socket has no room for is dropped behind the
    /// program, and counted by the socket (`XDP_STATISTICS`).
    Handed,
    /// The same, about neighbours: who has an address of the socket's own, or who answered it.
    Neighbour,
    /// For the socket, but by a queue that has none: left to the host.
    NoSocket,
    /// A measured request, answered.
    Answered,
    /// Any other request, answered: a greeting, the warm-up.
    AnsweredBeside,
    /// A measured message that asks for no reply: dropped.
    OneWay,
    /// The same, of the warm-up.
    OneWayBeside,
    /// A message that a program cannot answer, such as one that asks for the account: left to the host.
    Account,
    /// A message whose checksum its sender left to an interface that never made it: left to the host,
    /// which knows that, and answers it where somebody listens there.
    Unfinished,
    /// To the address and port, and no message of the protocol: left to the host.
    Foreign,
    /// It ends before its headers do, or before its message does: left to the host.
    Short,
    /// A fragment of IPv4, which has no ports, or not the whole message: left to the host.
    Fragment,
    /// IPv6 with extension headers, or IPv4 with options where those are not answered: left to the
    /// host.
    Options,
    /// Anything else: left to the host.
    Passed,
}

impl Verdict {
    /// All of them, by their numbers.
    pub const ALL: [Self; 14] = [
        Self::Handed,
        Self::Neighbour,
        Self::NoSocket,
        Self::Answered,
        Self::AnsweredBeside,
        Self::OneWay,
        Self::OneWayBeside,
        Self::Account,
        Self::Unfinished,
        Self::Foreign,
        Self::Short,
        Self::Fragment,
        Self::Options,
        Self::Passed,
    ];

    /// The words for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Handed => "handed to the socket",
            Self::Neighbour => "about neighbours, handed to the socket",
            Self::NoSocket => "by a queue without a socket",
            Self::Answered => "answered",
            Self::AnsweredBeside => "answered beside the measurement",
            Self::OneWay => "one-way",
            Self::OneWayBeside => "one-way beside the measurement",
            Self::Account => "asking for the account",
            Self::Unfinished => "without a finished checksum",
            Self::Foreign => "no message",
            Self::Short => "too short",
            Self::Fragment => "fragments",
            Self::Options => "with options or extension headers",
            Self::Passed => "not for this port",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a program has counted so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// By verdict, then by CPU.
    counters: Vec<Vec<u64>>,
}

impl Counts {
    /// Of counters in the order of [`Verdict::ALL`].
    pub(super) fn new(counters: Vec<Vec<u64>>) -> Self {
        Self { counters }
    }

    /// Frames with this verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.by_cpu(verdict).iter().sum()
    }

    /// Frames with this verdict by the number of the CPU that ran the program; CPUs after the last one
    /// that had any are left out.
    #[must_use]
    pub fn by_cpu(&self, verdict: Verdict) -> &[u64] {
        self.counters.get(verdict as usize).map_or(&[], Vec::as_slice)
    }

    /// Frames that the program saw.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.counters.iter().flatten().sum()
    }

    /// The verdicts that occurred, each with its frames.
    pub fn occurred(&self) -> impl Iterator<Item = (Verdict, u64)> + '_ {
        Verdict::ALL.into_iter().map(|verdict| (verdict, self.of(verdict))).filter(|(_, n)| *n > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_the_numbers_of_their_counters_and_words_of_their_own() {
        for (number, verdict) in Verdict::ALL.into_iter().enumerate() {
            assert_eq!(verdict as usize, number);
            let same = Verdict::ALL.into_iter().filter(|other| other.name() == verdict.name());
            assert_eq!(same.count(), 1, "{verdict}");
        }
    }

    #[test]
    fn counts_are_sums_over_cpus_and_verdicts() {
        let mut counters = vec![Vec::new(); Verdict::ALL.len()];
        counters[Verdict::Answered as usize] = vec![5, 0, 7];
        counters[Verdict::Passed as usize] = vec![0, 1];
        let counts = Counts::new(counters);
        assert_eq!((counts.of(Verdict::Answered), counts.of(Verdict::Short)), (12, 0));
        assert_eq!(counts.by_cpu(Verdict::Answered), [5, 0, 7]);
        assert_eq!(counts.seen(), 13);
        let occurred: Vec<_> = counts.occurred().collect();
        assert_eq!(occurred, [(Verdict::Answered, 12), (Verdict::Passed, 1)]);
    }
}
