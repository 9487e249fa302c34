//! Unit tests as programs of another processor, which QEMU emulates.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::cargo::succeeds;
use crate::needs::can_run;

pub(crate) const FIGURE: Figure = Figure {
    name: "aarch64_under_qemu",
    method: "cargo xtask aarch64: what is built for aarch64, and its unit tests under qemu-user",
    rows: &[Row { claim: "they build and pass", unit: "rounds", bound: Bound::Always }],
    rounds: 1,
    seconds: 600.0,
    most_taken: None,
    needs: || {
        can_run("aarch64-linux-gnu-gcc")?;
        can_run("qemu-aarch64")
    },
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    Ok(vec![Reading::held(succeeds("xtask aarch64", &[]))])
}
