//! Switches and CPU time of threads as they count them, beside the kernel's own counts.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needs;
use crate::program::recorded;

/// Of a thread that had less CPU time, in nanoseconds, the reading of the clocks is a good part.
const ENOUGH: u64 = 100_000_000;
/// How far the two accounts of CPU time may lie apart.
const APART: f64 = 0.002;

const WORDS: [&str; 3] = [
    "-n 3 -a -w CPU",
    "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 17ms 33ms",
    "-n 4 -a -w CPU_YIELD 0.9ms",
];

pub(crate) const FIGURE: Figure = Figure {
    name: "hourglass_beside_kernel",
    method: "three sets of the paper for 1 s each, thread by thread",
    rows: &[
        Row {
            claim: "threads whose switches by the trace are the kernel's",
            unit: "share",
            bound: Bound::Always,
        },
        Row {
            claim: "threads whose CPU time is the kernel's within 0.2 %",
            unit: "share",
            bound: Bound::Always,
        },
        Row {
            claim: "gaps that evidence B names as the trace does",
            unit: "share",
            bound: Bound::AtLeast(100.0 / 101.0),
        },
    ],
    rounds: 4,
    seconds: 5.3,
    most_taken: Some(0.05),
    needs: || {
        needs::can_be_root()?;
        needs::can_trace()
    },
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let (mut switches, mut times, mut names) = ((0, 0), (0, 0), (0, 0));
    for words in WORDS {
        let words = format!("hourglass -d 1s --seed {} {words}", round.number);
        let run = recorded(&words).run;
        for thread in &run.threads {
            let of = &thread.switches;
            switches.0 += u64::from(of.traced == Some(of.voluntary + of.involuntary));
            switches.1 += 1;
            let time = thread.cpu_time.unwrap();
            if time.kernel.0 > ENOUGH {
                times.0 += u64::from(time.agrees(APART));
                times.1 += 1;
            }
        }
        let validation = run.validation.as_ref().unwrap();
        let right = validation.switch_as_switch + validation.none_as_none;
        names.0 += right;
        names.1 += right + validation.switch_as_none + validation.none_as_switch;
    }
    let share = |(hits, of)| Reading::Share { hits, of };
    Ok(vec![share(switches), share(times), share(names)])
}
