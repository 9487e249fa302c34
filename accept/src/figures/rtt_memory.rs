//! The memory of a recording of requests is that of rate and timeout, and does not grow with its length.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needs;
use crate::program::{peak_kib_ending, read, whylate};
use crate::requests::flow;

pub(crate) const FIGURE: Figure = Figure {
    name: "rtt_memory",
    method: "peak memory of 25 000 requests over that of 5 000, at 10 000 a second",
    rows: &[
        Row {
            claim: "peak memory of 5 times the requests",
            unit: "ratio",
            bound: Bound::AtMost(1.2),
        },
        Row { claim: "9 000 requests a second were sent", unit: "share", bound: Bound::Always },
    ],
    rounds: 6,
    seconds: 4.6,
    most_taken: None,
    needs: || needs::can_use(2),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let home = tempfile::tempdir().unwrap();
    let mut sent_enough = true;
    let mut peak = |halves: u64| {
        let directory = home.path().join(format!("run-{halves}"));
        let ms = 500 * halves;
        let words = format!("rtt --rate 10kpps --duration {ms}ms --warmup 100ms --no-mlock");
        let mut command = whylate(words.split_whitespace());
        command.arg("-o").arg(&directory).stderr(std::process::Stdio::null());
        // A host that stops this machine may keep it from its rate.
        let kib = peak_kib_ending(command, &[0, 4]);
        sent_enough &= flow(&read(&directory)).packets.sent > 4_500 * halves;
        kib as f64
    };
    let (short, long) = (peak(1), peak(5));
    Ok(vec![Reading::Value(long / short), Reading::held(sent_enough)])
}
