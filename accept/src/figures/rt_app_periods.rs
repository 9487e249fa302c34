//! Run time and period of a feasible workload.

use std::path::Path;

use accept::figure::{Bound, Figure, Reading, Round, Row};

use super::rt_app_examples::{Rows, Theirs};
use crate::program::{self, recorded};
use crate::{needs, rt_app_rows};

/// How long rt-app runs the file.
const SECONDS: u64 = 3;

pub(crate) const FIGURE: Figure = Figure {
    name: "rt_app_periods",
    method: "a workload whose run times and periods are known, by whylate and by rt-app",
    rows: &[
        Row { claim: "run times within 1 % of the file's", unit: "share", bound: Bound::Always },
        Row {
            claim: "periods and lengths within 1 %, or accounted for",
            unit: "share",
            bound: Bound::Always,
        },
        Row { claim: "some are within 1 %", unit: "rounds", bound: Bound::Always },
        Row { claim: "rt-app's run times over the file's", unit: "ratio", bound: Bound::Told },
        Row { claim: "rt-app's periods over the file's", unit: "ratio", bound: Bound::Told },
    ],
    rounds: 3,
    seconds: 7.0,
    most_taken: Some(0.05),
    needs: needs::can_be_root,
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let file = program::file("rt-app/periods.json");
    let recorded = recorded(&format!("threads {}", file.display()));
    let shares = rt_app_rows::shares(&recorded.directory, &recorded.run);
    let (mut rows, mut theirs) = (Rows::default(), Theirs::default());
    rows.add("periods.json", &recorded.run, &shares, false);
    theirs.add(Path::new(&file), SECONDS);
    let some = rows.within.any();
    let [run, period] = theirs.readings();
    Ok(vec![rows.run_times.reading(), rows.accounted.reading(), Reading::held(some), run, period])
}
