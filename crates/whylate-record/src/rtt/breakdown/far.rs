//! What became of the stamps of the other end's sockets, kind by kind.
//!
//! The reflector tells of each measured request that it answered, and of the stamps that its sockets were
//! given for it. Each request that it told of is one for which a stamp of each kind was asked for.
//!
//! Guarantees: of each kind, what was asked for came or is missing; memory does not grow with the run.

use std::collections::BTreeMap;

use whylate_model::breakdown;
use whylate_port::StampKind;

/// Requests whose stamps may still come.
const MOST_OPEN: usize = 1 << 16;
/// What a reflector's sockets are asked for.
const ASKED: [StampKind; 3] = [StampKind::Sched, StampKind::Software, StampKind::ReceivedSoftware];

/// Counts the stamps of the other end.
#[derive(Debug, Clone, Default)]
pub(super) struct FarStamps {
    /// Of requests that were told of: which kinds came, a bit each.
    open: BTreeMap<u64, u8>,
    requests: u64,
    came: [Came; StampKind::COUNT],
}

#[derive(Debug, Clone, Copy, Default)]
struct Came {
    once: u64,
    twice: u64,
    unknown: u64,
}

impl FarStamps {
    /// A request was told of.
    pub(super) fn asked(&mut self, request: u64) {
        if self.open.contains_key(&request) {
            return;
        }
        if self.open.len() >= MOST_OPEN {
            // The lowest number is the oldest: what comes for it now is nobody's.
            self.open.pop_first();
        }
        self.open.insert(request, 0);
        self.requests += 1;
    }

    /// A stamp of a request was told.
    pub(super) fn came(&mut self, request: u64, kind: StampKind) {
        let counts = &mut self.came[kind.index()];
        let bit = 1 << kind.index();
        match self.open.get_mut(&request) {
            None => counts.unknown += 1,
            Some(kinds) if *kinds & bit != 0 => counts.twice += 1,
            Some(kinds) => {
                *kinds |= bit;
                counts.once += 1;
            }
        }
    }

    /// Of each kind that is asked for; nothing where no request was told of.
    pub(super) fn counted(&self) -> Vec<breakdown::FarStamps> {
        let of = |kind: StampKind| {
            let Came { once, twice, unknown } = self.came[kind.index()];
            breakdown::FarStamps {
                stamp: kind.word().to_owned(),
                asked: self.requests,
                came: once,
                missing: self.requests - once,
                twice,
                unknown,
            }
        };
        if self.requests == 0 { Vec::new() } else { ASKED.into_iter().map(of).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_at_the_other_end_what_was_asked_for_came_or_is_missing() {
        let mut far = FarStamps::default();
        assert!(far.counted().is_empty());
        for request in 0..10 {
            far.asked(request);
            far.came(request, StampKind::ReceivedSoftware);
            if request % 2 == 0 {
                far.came(request, StampKind::Software);
            }
        }
        // Told of twice; stamped twice; nobody's.
        far.asked(3);
        far.came(4, StampKind::Software);
        far.came(77, StampKind::Software);
        let counted = far.counted();
        let told: Vec<_> =
            counted.iter().map(|of| (&*of.stamp, of.asked, of.came, of.missing)).collect();
        assert_eq!(
            told,
            [("tx sched", 10, 0, 10), ("tx software", 10, 5, 5), ("rx software", 10, 10, 0)]
        );
        assert_eq!((counted[1].twice, counted[1].unknown), (1, 1));
        assert!(counted.iter().all(breakdown::FarStamps::adds_up));
    }

    #[test]
    fn of_requests_that_were_told_of_long_ago_what_comes_is_nobodys_and_the_account_closes() {
        let mut far = FarStamps::default();
        let most = MOST_OPEN as u64;
        for request in 0..most + 3 {
            far.asked(request);
        }
        assert_eq!(far.open.len(), MOST_OPEN);
        far.came(0, StampKind::Sched);
        far.came(most, StampKind::Sched);
        let counted = far.counted();
        assert_eq!((counted[0].asked, counted[0].came, counted[0].unknown), (most + 3, 1, 1));
        assert!(counted.iter().all(breakdown::FarStamps::adds_up));
    }
}
