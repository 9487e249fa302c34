//! Where the experiments are: a bed for their time, and both ends on CPUs of their own.

use std::num::NonZeroU32;

use whylate_host::journal::Journal;
use whylate_model::lab::BedKind;
use whylate_model::paper::Scenario;
use whylate_model::{CpuId, Nanos};
use whylate_net::NetError;
use whylate_net::lab::{self, Borrowed};

use crate::PaperError;
use crate::bench::{Bench, Times};

/// The bed's name, as the commands that repeat a part have it.
const BED: &str = super::NAME;
/// Discarded before each recording.
const WARMUP: &str = "--warmup 500ms";

/// The place of an experiment; its bed goes with it.
pub(super) struct Site {
    bed: Option<Borrowed>,
    client: CpuId,
    other: Option<CpuId>,
}

impl Site {
    /// Sets it up, and notes what it is. Without the right to make a bed both ends talk over loopback.
    pub(super) fn set_up(
        bench: &mut Bench<'_>,
        scenario: &mut Scenario,
    ) -> Result<Self, PaperError> {
        bench.go_on()?;
        let bed = match lab::borrow(&Journal::open()?, BED, BedKind::Direct, NonZeroU32::MIN) {
            Ok(bed) => Some(bed),
            Err(error @ NetError::NoPrivilege(_)) => {
                scenario.notes.push(format!("over loopback in place of a bed: {error}"));
                None
            }
            Err(error) => return Err(error.into()),
        };
        if bed.is_some() {
            scenario.notes.push(format!(
                "both ends are namespaces of this machine, joined by a virtual link: its bed is made by \
                 `whylate lab up --name {BED}`, and was taken down afterwards"
            ));
        }
        let (client, other) = (bench.cpu(), bench.another_cpu());
        if other.is_none() {
            scenario.notes.push(format!("both ends share CPU {client}: there is no other"));
        }
        Ok(Self { bed, client, other })
    }

    /// The words of a recording here: a closed loop or another pattern, for so long.
    pub(super) fn words(&self, bench: &Bench<'_>, pattern: &str, times: Times) -> String {
        let seed = bench.seed();
        let time = bench.time(times);
        words(
            (self.bed.as_ref().map(|of| of.bed().name()), self.client, self.other),
            pattern,
            (time, seed),
        )
    }
}

fn words(
    (bed, client, other): (Option<&str>, CpuId, Option<CpuId>),
    pattern: &str,
    (time, seed): (Nanos, u64),
) -> String {
    let bed = bed.map_or_else(String::new, |bed| format!(" --bed {bed}"));
    let other = other.map_or_else(String::new, |other| format!(" --reflector-cpus {other}"));
    let words = format!("rtt {pattern}{bed} --cpus {client}{other}");
    let seconds = time.0 / Nanos::SECOND.0;
    format!("{words} --duration {seconds}s {WARMUP} --seed {seed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_names_its_bed_its_cpus_its_time_and_its_seed() {
        let time = (Nanos(3 * Nanos::SECOND.0), 7);
        let bedded = words((Some("x"), CpuId(1), Some(CpuId(0))), "--arrivals closed", time);
        assert_eq!(
            bedded,
            "rtt --arrivals closed --bed x --cpus 1 --reflector-cpus 0 --duration 3s --warmup 500ms --seed 7"
        );
        let alone = words((None, CpuId(0), None), "--arrivals closed", time);
        assert_eq!(alone, "rtt --arrivals closed --cpus 0 --duration 3s --warmup 500ms --seed 7");
    }
}
