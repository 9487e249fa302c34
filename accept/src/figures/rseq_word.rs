//! How often the word of restartable sequences stays as it was where nothing else runs.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::rseq::RseqArea;

/// So often the word is armed, and looked at so much later.
const LOOKS: u64 = 200_000;
const LATER_NS: u64 = 5_000;

pub(crate) const FIGURE: Figure = Figure {
    name: "rseq_word",
    method: "200 000 looks at the word of a thread that spins for 5 us after arming it",
    rows: &[Row {
        claim: "looks that find the word as it was armed",
        unit: "share",
        bound: Bound::AtLeast(0.5),
    }],
    rounds: 6,
    seconds: 1.2,
    most_taken: Some(0.05),
    needs: || RseqArea::of_thread().map(drop).map_err(|refusal| refusal.to_string()),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let area = RseqArea::of_thread().unwrap();
    let kept = (0..LOOKS).filter(|_| {
        area.arm();
        let end = clock_ns(Clock::Monotonic) + LATER_NS;
        while clock_ns(Clock::Monotonic) < end {}
        area.is_set()
    });
    Ok(vec![Reading::Share { hits: kept.count() as u64, of: LOOKS }])
}
