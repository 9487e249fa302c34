//! Does a switch cost more beyond the first-level cache?
//!
//! Where the hypervisor pages its guest's memory there is no answer: on such a machine a thread that read 80 MiB over
//! and over was stopped some 800 times a second, one that read 8 MiB some 300 times, each time for about 130 us and
//! without a fault of the guest. Ten runners are then stopped for longer than one, by more than what a pair of trials
//! may differ by, and each round is left out with that reason.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needs;
use crate::program::recorded;

pub(crate) const FIGURE: Figure = Figure {
    name: "working_set_growth",
    method: "penalties of 16 KiB and 8 MiB, 6 pairs of trials of 60 ms each",
    rows: &[Row {
        claim: "8 MiB cost more than 16 KiB by",
        unit: "ns",
        bound: Bound::AtLeast(0.0),
    }],
    rounds: 6,
    seconds: 5.0,
    most_taken: None,
    needs: needs::can_be_root,
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let words = format!(
        "switch-cost --indirect --sizes 16KiB,8MiB --trials 6 --trial 60ms --no-trace \
         --no-dma-latency --seed {}",
        round.number
    );
    let cost = recorded(&words).run.switch_cost.unwrap();
    let growth = cost.growth.as_ref().expect("two sizes stand beside each other");
    let [beyond] = growth.beyond.as_slice() else { panic!("{growth:?}") };
    assert_eq!(beyond.bytes, 8 << 20);
    let Some(more) = beyond.more else {
        return Err(beyond.reason.clone().expect("what is not known has a reason"));
    };
    let (low, high) = more.interval_ns;
    if low > 0.0 {
        assert!(more.grows() && beyond.reason.is_none(), "{beyond:?}");
    } else {
        // What filling the caches again takes must show where pairs scatter by half of that at most.
        let large = cost.indirect.iter().find(|row| row.bytes == beyond.bytes).unwrap();
        let expected = large.passes.expect("passes were timed").difference_ns;
        let width = (high - low) / 2.0;
        if width > expected / 2.0 {
            return Err(format!(
                "pairs scatter by {width:.0} ns, refilling takes {expected:.0} ns"
            ));
        }
    }
    Ok(vec![Reading::Value(more.mean_ns)])
}
