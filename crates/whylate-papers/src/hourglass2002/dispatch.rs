//! 5.3: how late a timer wakes a real-time thread while files and the network keep the machine busy.
//! Table 1.

use whylate_load::Kind;
use whylate_model::Nanos;
use whylate_model::paper::Scenario;
use whylate_model::wake::LATER_THAN;
use whylate_threads::timers;

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::rows::{Filled, later as late, row};

const TIMES: Times = Times { usual: 60, quick: 5 };
/// Samples later than each length, of some 65 000, for plain Linux 2.4.17.
const TABLE_1: [u64; 4] = [284, 56, 45, 1];
/// The least and the most that any system of the table had.
const SYSTEMS: [(u64, u64); 4] = [(0, 284), (0, 112), (0, 112), (0, 1)];

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    // The paper's timer, where this machine has one.
    let rtc = timers::named(&whylate_rta::Call::bare("RTC"));
    let timer = match rtc {
        Ok(_) => "RTC",
        Err(error) => {
            scenario.notes.push(format!("HR in place of the paper's timer: {error}"));
            "HR"
        }
    };
    let words = format!("-n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i {timer}");
    scenario.notes.push(
        "files of this machine and TCP over loopback; the paper searched trees that were mounted by \
         NFS from this machine and from another"
            .to_owned(),
    );
    for (part, name, load) in [
        ("5.3-idle", "idle", vec![]),
        ("5.3", "with files and network", vec![Kind::DISK, Kind::NET]),
    ] {
        let contended = !load.is_empty();
        let set = bench.hourglass(part, &words, TIMES, &load, scenario)?;
        let run = &set.recorded.run;
        let Some(wakes) = run.wakes.first() else { continue };
        let latencies: Vec<Nanos> = set.latencies.iter().map(|(_, _, late)| *late).collect();
        for (index, later) in wakes.later.iter().enumerate() {
            let (least, most) = SYSTEMS[index.min(LATER_THAN.len() - 1)];
            let what = format!("wake-ups later than {}, {name}", later.than);
            let here = late(&latencies, later.than, later.raw, wakes.woken);
            let mut row = row(what, "the same wake-ups, counted beyond a longer time").here(here);
            if contended {
                row.paper = Some(format!(
                    "{} of 65 000 (Linux 2.4.17; {least} to {most} by system)",
                    TABLE_1[index.min(TABLE_1.len() - 1)]
                ));
            }
            if index == 0 {
                row.why = named(wakes);
            }
            scenario.rows.push(row);
        }
        scenario.notes.extend(
            run.loads
                .iter()
                .map(|load| format!("load: {}: {} {}", load.what, load.amount, load.unit)),
        );
    }
    Ok(())
}

/// What the wake-ups are named after.
fn named(wakes: &whylate_model::wake::WakeSummary) -> String {
    let latest =
        wakes.latest.first().map(|wake| format!("the latest by {}: {}", wake.late, wake.cause));
    let most = wakes.causes.first().map(|of| format!("most are named after {}", of.cause));
    [most, latest].into_iter().flatten().collect::<Vec<_>>().join("; ")
}
