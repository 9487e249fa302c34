//! What a report says of what was done, whatever it was: the same on a terminal and on a page, in one order. A new
//! kind has its line here.

use whylate_model::run::Run;

use crate::breakdown::{Pictures, Taken};
use crate::doc::{Section, Where};
use crate::{
    breakdown, calibration, delay, device, flows, forward, loads, prediction, reflected, threads,
    wake,
};

/// The sections of a run, those of a set of threads last.
pub(crate) fn of(run: &Run, to: Where, pictures: impl Fn(&Taken) -> Pictures) -> Vec<Section> {
    let requests = flows::section(run).into_iter().chain(breakdown::sections(run, pictures));
    let others = [
        reflected::section(run),
        forward::section(run),
        delay::section(run),
        calibration::section(run, to),
        device::section(run, to),
        wake::section(run),
        loads::section(run),
        prediction::section(run),
        threads::section(run),
    ];
    requests.chain(others.into_iter().flatten()).collect()
}
