//! Does a switch cost more beyond the first-level cache?

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
    let Some(more) = beyond.more else { return Err(format!("{:?}", beyond.reason)) };
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
