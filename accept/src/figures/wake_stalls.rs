//! Planted stalls as `wake` counts and names them, and as cyclictest does.

use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_clock::{Counter, HardwareCounter};
use whylate_model::cause::Cause;
use whylate_model::wake::WakeStage;
use whylate_model::{Nanos, Ticks};

use crate::needed;
use crate::needs;
use crate::peers::cyclictest;
use crate::program::recorded;
use crate::stalls::{STALL, Stalls};

const PERIOD: Nanos = Nanos(1_000_000);
/// Between two stalls.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) const FIGURE: Figure = Figure {
    name: "wake_stalls",
    method: "stalls of 10 ms, 200 ms apart, over 3 s of wake --period 1ms and 2 s of cyclictest",
    rows: &[
        Row {
            claim: "as measured each stall is one wake-up, named after it",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row {
            claim: "late samples of cyclictest over stalls",
            unit: "ratio",
            bound: Bound::Within(0.75, 1.5),
        },
        Row {
            claim: "late activations of wake over stalls",
            unit: "ratio",
            bound: Bound::AtLeast(10.0),
        },
    ],
    rounds: 7,
    seconds: 6.0,
    most_taken: Some(0.05),
    needs: || needed::traced(&["cyclictest"]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let (cpu, seed) = (needs::last_cpu(), round.number);
    let stalls = Stalls::on(cpu, PAUSE);
    let run = recorded(&format!("wake --cpus {cpu} --duration 3s --seed {seed}")).run;
    let (thread, of) = (&run.threads[0], &run.wakes[0]);
    // Two periods inside the schedule, so that each activation of a stall is due in it.
    let edge = Nanos(2 * PERIOD.0).to_ticks(run.clock.hz);
    let planted = stalls.between(thread.start + edge, Ticks(thread.end.0 - edge.0));
    if planted < 8 {
        return Err(format!("{planted} stalls in 3 s"));
    }
    let later = of.later.iter().find(|later| later.than == PERIOD).unwrap();
    let is_stall = |cause: &Cause| matches!(cause, Cause::Thread { comm, .. } if comm == "stall");
    let named = of.causes.iter().filter(|of| is_stall(&of.cause));
    let named: u64 = named.map(|of| of.later[0]).sum();
    let of_others = later.raw.saturating_sub(named);
    // But for those that the host or others had made late already, and two at the edges.
    let each = named + of_others >= planted && named <= planted + 2;
    let others = of.split.iter().find(|part| part.stage == WakeStage::OtherThread).unwrap();
    let taken = others.total_ns >= named as f64 * 0.8 * STALL.0 as f64;

    let mut counter = HardwareCounter::open().unwrap();
    let begun = counter.read();
    let samples = cyclictest::samples(cpu, PERIOD.0 / 1_000, 2_000);
    let beside = stalls.between(begun, counter.read());
    if beside < 5 {
        return Err(format!("{beside} stalls beside cyclictest"));
    }
    let late = samples.iter().filter(|late| **late > PERIOD.0).count();
    let activations = later.raw + of.skipped.unwrap();
    Ok(vec![
        Reading::held(each && taken),
        Reading::Value(late as f64 / beside as f64),
        Reading::Value(activations as f64 / planted as f64),
    ])
}
