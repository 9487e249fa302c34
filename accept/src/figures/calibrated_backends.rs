//! Whether the medians of calibrated backends follow what a delay line was set to.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needed;
use crate::program::record_ending;

const BACKENDS: [&str; 3] = ["udp spin", "packet spin", "xdp spin"];

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "calibrated_backends",
    method: "4 000 messages a second through a line at 20, 100 and 300 us, by three backends",
    rows: &[
        row("the median rises by 0.9 to 1.1 of what was set, by udp spin"),
        row("the median rises by 0.9 to 1.1 of what was set, by packet spin"),
        row("the median rises by 0.9 to 1.1 of what was set, by xdp spin"),
        row("backends with more than 1 000 messages at the first delay"),
        row("backends with an error of the median, or worth fewer than 100 messages"),
    ],
    rounds: 2,
    seconds: 19.0,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let words = format!(
        "calibrate --backends udp:spin,packet:spin,xdp:spin --delays 20us,100us,300us --rate 4kpps \
         --runs 1 --duration 300ms --warmup 100ms --seed {}",
        5 + round.number
    );
    let run = record_ending(&words, &[0, 4]).run;
    let (calibration, parts) =
        run.calibration.as_deref().zip(run.calibration_parts.as_deref()).expect("a calibration");
    let mut readings = Vec::new();
    let (mut many, mut known) = (0, 0);
    for name in BACKENDS {
        let slope = parts.slopes.iter().find(|of| of.backend == name).expect("it was calibrated");
        let slope = slope.slope.as_ref().expect("three delays").value;
        readings.push(Reading::held((0.9..1.1).contains(&slope)));
        let one = calibration.of(name).expect("it was calibrated");
        // Where the host made runs that differ, they are worth too little for a median.
        let median = &one.errors_raw[0];
        many += u64::from(one.n > 1_000);
        known += u64::from(median.error_ns.is_some() || median.n_eff < 100.0);
    }
    let of = BACKENDS.len() as u64;
    readings.extend([many, known].map(|hits| Reading::Share { hits, of }));
    Ok(readings)
}
