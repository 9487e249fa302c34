//! A thread that keeps busy by the clock, beside one that wants all of the CPU.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::program::{self, recorded};
use crate::{needs, rt_app_rows};

pub(crate) const FIGURE: Figure = Figure {
    name: "busy_beside_hog",
    method: "two equals on one CPU for 2 s: one busy for stretches of the clock, and a hog",
    rows: &[
        Row {
            claim: "of what both had, the busy thread's share",
            unit: "share",
            bound: Bound::Within(0.45, 0.55),
        },
        Row {
            claim: "received of its busy time, and lost of all: from 1",
            unit: "share",
            bound: Bound::AtMost(0.02),
        },
        Row {
            claim: "received no more than the kernel counts within 1 %",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row {
            claim: "what it lost over what the hog had",
            unit: "ratio",
            bound: Bound::AtLeast(0.95),
        },
        Row {
            claim: "steps end late by what they did not have",
            unit: "rounds",
            bound: Bound::Always,
        },
    ],
    rounds: 7,
    seconds: 2.8,
    most_taken: Some(0.05),
    needs: accept::figure::anywhere,
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let (file, cpu) = (program::file("rt-app/busy.json"), needs::last_cpu());
    let run = recorded(&format!("threads {} --cpus {cpu} --duration 2s", file.display())).run;
    let [busy, hog] = run.threads.as_slice() else { panic!("two threads") };
    let phase = &busy.phases[0];
    let of = phase.runtime.unwrap();
    let (lasted, received) = (of.lasted_ns.unwrap(), of.received_ns.unwrap());
    // Nearly all of its time is inside these steps, so what the whole thread lost is what they
    // did: two counts that know nothing of each other.
    let (had, lost) = (busy.received.0 as f64, busy.lost.0 as f64);
    let apart = (1.0 - received / lasted - lost / (lost + had)).abs();
    // Its kernel's clock stands while the hog runs.
    let kernel = busy.cpu_time.unwrap().kernel.0 as f64;
    let all = received * phase.passes as f64;
    let ends = rt_app_rows::ends_as_it_should(phase);
    Ok(vec![
        Reading::Value(had / (had + hog.received.0 as f64)),
        Reading::Value(apart),
        Reading::held(all <= kernel * 1.01 + lasted),
        Reading::Value(lost / hog.received.0 as f64),
        Reading::held(ends == Some(true)),
    ])
}
