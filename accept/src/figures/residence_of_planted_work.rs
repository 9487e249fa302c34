//! Work that is planted for each frame is found again in how long a forwarder keeps it.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::between::{closes, there_and_back};
use crate::needed;
use crate::plant;

/// Frames of each way.
const FRAMES: u32 = 300;
/// 0.9 to 1.5 of the 50 us that are planted.
const AGAIN: Bound = Bound::Within(45_000.0, 75_000.0);

pub(crate) const FIGURE: Figure = Figure {
    name: "residence_of_planted_work",
    method: "least residence of 300 frames with 50 us of work for each, less that of as many without",
    rows: &[
        Row { claim: "what 50 us of work add by packet", unit: "ns", bound: AGAIN },
        Row { claim: "what 50 us of work add by xdp", unit: "ns", bound: AGAIN },
        Row { claim: "ticks of work are more with it", unit: "share", bound: Bound::Always },
    ],
    rounds: 6,
    seconds: 3.2,
    most_taken: None,
    needs: || needed::as_root(&["ip"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let bed = plant::links()?;
    let sockets = bed.sockets();
    let measured = |backend: &str, work: &str| {
        let forwarding = bed.forward(&format!("--port {backend} --work {work}"));
        there_and_back(&sockets, FRAMES);
        let told = forwarding.stop();
        closes(&told);
        let there = &told.directions[0];
        (there.residence.as_ref().unwrap().min.0, there.ticks.as_ref().unwrap().all.work)
    };
    let (mut readings, mut more) = (Vec::new(), 0);
    for backend in ["packet", "xdp"] {
        let (idle, idle_ticks) = measured(backend, "0s");
        let (busy, busy_ticks) = measured(backend, "50us");
        readings.push(Reading::Value(busy as f64 - idle as f64));
        more += u64::from(busy_ticks > idle_ticks);
    }
    readings.push(Reading::Share { hits: more, of: 2 });
    Ok(readings)
}
