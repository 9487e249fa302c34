//! How many frames a second a delay line carries at a microsecond of delay, beside what `whylate forward`
//! does on the same links and CPU.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::between::{Bed, closes as forwarded_closes};
use crate::delaying::{Delaying, closes};
use crate::needed;
use crate::needs;
use crate::plant;
use crate::plant::flood::{SETTLED, flooded, passes};

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "ratio", bound: Bound::AtLeast(0.9) }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "delay_beside_forward",
    method: "64-byte frames as fast as trafgen sends them, by `whylate forward`, `delay` and `forward` again",
    rows: &[
        row("frames a second at 1 us over those of the forwarder, by packet"),
        row("frames a second at 1 us over those of the forwarder, by xdp"),
    ],
    rounds: 4,
    seconds: 12.2,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip", "timeout", "trafgen"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let bed = plant::links()?;
    let of = |port: &str| {
        let (peer, ours, again) =
            (forwarded(&bed, port), delayed(&bed, port), forwarded(&bed, port));
        Reading::Beside { peer, ours, again }
    };
    Ok(vec![of("packet"), of("xdp")])
}

/// What `whylate forward` carries as it usually runs.
fn forwarded(bed: &Bed, port: &str) -> f64 {
    let cpu = needs::last_cpu();
    let forwarding = bed.forward(&format!("--port {port} --cpus {cpu} --duration 60s"));
    passes(bed, || None);
    let carried = flooded(bed);
    forwarded_closes(&forwarding.stop());
    std::thread::sleep(SETTLED);
    carried.rate
}

/// What `whylate delay` carries at this delay.
fn delayed(bed: &Bed, port: &str) -> f64 {
    let cpu = needs::last_cpu();
    let delaying =
        Delaying::new(bed, &format!("--port {port} --cpu {cpu} --delay 1us --duration 60s"));
    passes(bed, || None);
    let carried = flooded(bed);
    let line = delaying.stop();
    closes(&line);
    let passed = line.directions[0].counts.passed_on;
    assert!(passed >= carried.arrived, "{} arrived: {line:?}", carried.arrived);
    std::thread::sleep(SETTLED);
    carried.rate
}
