//! The least time in which work gets done that others interrupt: a fixed point, searched from below
//! with a bound on the steps.

use super::task::Task;

/// Terms that a search may still evaluate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// How many.
    pub(super) left: u64,
}

/// Why a search ended without its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// A number did not fit.
    Overflow,
    /// The work was used up.
    Spent,
}

/// What jobs of `task` ask for that arrive within `window` when the first comes as late and the
/// others as early as they can.
pub(super) fn request(task: &Task, window: u64) -> Option<u64> {
    let arrivals = window.checked_add(task.jitter.0)?.div_ceil(task.period.0);
    arrivals.checked_mul(task.execution.0)
}

/// The least `w` with `w = base + sum of requests(w)`, searched upwards from `from`, which must not
/// lie above it.
pub(super) fn fixed_point(
    base: u64,
    from: u64,
    others: &[&Task],
    work: &mut Work,
) -> Result<u64, Halt> {
    let mut window = from.max(base);
    loop {
        let terms = others.len() as u64 + 1;
        work.left = work.left.checked_sub(terms).ok_or(Halt::Spent)?;
        let asked = others.iter().try_fold(base, |sum, task| {
            request(task, window).and_then(|asked| sum.checked_add(asked)).ok_or(Halt::Overflow)
        })?;
        if asked <= window {
            return Ok(window);
        }
        window = asked;
    }
}
