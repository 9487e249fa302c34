//! Pieces of a gap while they are being worked out, and laying one thing over others.
//!
//! Guarantee: [`lay`] keeps pieces ordered and adjacent and their sum unchanged.

use whylate_model::Ticks;
use whylate_model::cause::{Cause, Sender};

/// One piece of a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) claim: Claim,
    /// The frame or the stint of a thread that it belongs to; pieces of one are merged.
    pub(crate) id: u32,
}

/// Who claims a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nobody: the measuring thread itself, as far as the events say.
    Residual,
    /// This cause.
    Named(Cause, Option<Sender>),
}

/// Lays `[from, to)` with `claim` over the pieces that `over` accepts. Pieces must be ordered.
pub(crate) fn lay(
    pieces: &mut Vec<Piece>,
    (from, to): (Ticks, Ticks),
    (claim, id): (&Claim, u32),
    over: impl Fn(&Claim) -> bool,
) {
    let first = pieces.partition_point(|piece| piece.end <= from);
    let last = pieces.partition_point(|piece| piece.start < to);
    if from >= to || first >= last {
        return;
    }
    let mut laid = Vec::with_capacity(last - first + 2);
    for piece in &pieces[first..last] {
        if !over(&piece.claim) {
            laid.push(piece.clone());
            continue;
        }
        let (start, end) = (piece.start.max(from), piece.end.min(to));
        if piece.start < start {
            laid.push(Piece { end: start, ..piece.clone() });
        }
        if start < end {
            laid.push(Piece { start, end, claim: claim.clone(), id });
        }
        if end < piece.end {
            laid.push(Piece { start: end, ..piece.clone() });
        }
    }
    pieces.splice(first..last, laid);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: u64, end: u64, claim: Claim) -> Piece {
        Piece { start: Ticks(start), end: Ticks(end), claim, id: 0 }
    }

    #[test]
    fn a_claim_splits_what_it_is_laid_over_and_spares_what_it_may_not_cover() {
        let mut pieces = vec![
            piece(0, 10, Claim::Residual),
            piece(10, 20, Claim::Named(Cause::PageFault, None)),
            piece(20, 30, Claim::Residual),
        ];
        let nmi = Claim::Named(Cause::Nmi, None);
        lay(&mut pieces, (Ticks(5), Ticks(25)), (&nmi, 1), |claim| *claim == Claim::Residual);
        let edges: Vec<_> = pieces.iter().map(|p| (p.start.0, p.end.0, p.id)).collect();
        assert_eq!(edges, [(0, 5, 0), (5, 10, 1), (10, 20, 0), (20, 25, 1), (25, 30, 0)]);
    }

    #[test]
    fn nothing_is_laid_over_no_time_and_beside_the_pieces() {
        let pieces = vec![piece(0, 10, Claim::Residual), piece(10, 20, Claim::Residual)];
        let nmi = Claim::Named(Cause::Nmi, None);
        for (from, to) in [(5, 5), (7, 4), (20, 30)] {
            let mut laid = pieces.clone();
            lay(&mut laid, (Ticks(from), Ticks(to)), (&nmi, 1), |_| true);
            assert_eq!(laid, pieces, "{from} to {to}");
        }
        let mut laid = pieces.clone();
        lay(&mut laid, (Ticks(10), Ticks(20)), (&nmi, 1), |_| true);
        assert_eq!(laid, [pieces[0].clone(), Piece { claim: nmi, id: 1, ..pieces[1].clone() }]);
    }
}
