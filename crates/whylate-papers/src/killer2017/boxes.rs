//! What is measured through: a delay line, whose truth is known, and a forwarder with a log of its own.

use whylate_model::Nanos;
use whylate_model::delay::DelayBase;
use whylate_model::paper::Scenario;
use whylate_net::lab::OPEN_PORTS;

use super::site::Site;
use crate::PaperError;
use crate::bench::Bench;
use crate::tool::Beside;

/// The mean latency of the paper's switch.
pub(super) const PAPERS_DELAY: Nanos = Nanos(2_260);
/// A line that cannot hold the paper's holds a delay of whole steps.
const STEP: u64 = 1_000;

/// The words of a delay line in a bed: of each frame it keeps how long it stayed, summed up.
fn line_words(site: &Site, delay: Nanos) -> String {
    let [first, second] = OPEN_PORTS;
    format!(
        "delay {first} {second} --bed {} --transport packet --delay {}ns --cpus {} --truth off --no-netem",
        site.bed().name(),
        delay.0,
        site.other
    )
}

/// Puts a delay line between the ends.
pub(super) fn line(
    bench: &mut Bench<'_>,
    site: &Site,
    part: &str,
    delay: Nanos,
    scenario: &mut Scenario,
) -> Result<Beside, PaperError> {
    bench.beside(part, &line_words(site, delay), "delaying between", scenario)
}

/// Puts a forwarder between the ends.
pub(super) fn forwarder(
    bench: &mut Bench<'_>,
    site: &Site,
    part: &str,
    scenario: &mut Scenario,
) -> Result<Beside, PaperError> {
    let [first, second] = OPEN_PORTS;
    let words = format!(
        "forward {first} {second} --bed {} --transport packet --cpus {}",
        site.bed().name(),
        site.other
    );
    bench.beside(part, &words, "forwarding between", scenario)
}

/// The delay that a line on this host can hold, the paper's if it can; what it is, is said.
pub(super) fn delay_held(
    bench: &mut Bench<'_>,
    site: &Site,
    part: &str,
    scenario: &mut Scenario,
) -> Result<Nanos, PaperError> {
    let words = format!("{} --duration 500ms", line_words(site, PAPERS_DELAY));
    let (_, run) = bench.tool(part, &words, scenario)?;
    let base = run.delay.as_ref().map(|line| line.base).ok_or(PaperError::Nothing("the line"))?;
    let delay = held(&base);
    let why = if delay == PAPERS_DELAY {
        format!(
            "the mean of the paper's switch, which this line holds: its own delay is {}",
            base.base
        )
    } else {
        format!(
            "in place of the paper's {PAPERS_DELAY}: this line's own delay is {} and its error {}, so that it \
             could not hold less",
            base.base, base.error
        )
    };
    scenario.notes.push(format!("the delay line holds each frame for {delay}, {why}"));
    Ok(delay)
}

/// The paper's where the line's own delay and error leave room for it, else twice what they take.
fn held(base: &DelayBase) -> Nanos {
    let own = base.base.0 + base.error.0;
    if own <= PAPERS_DELAY.0 { PAPERS_DELAY } else { Nanos((2 * own).div_ceil(STEP) * STEP) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_hold_the_papers_delay_holds_twice_its_own() {
        let base = |base, error| DelayBase {
            base: Nanos(base),
            error: Nanos(error),
            error_median: Nanos(error),
            error_max: Nanos(error),
            at: Nanos(10_000),
            frames: 1,
            resolution: Nanos(1),
        };
        assert_eq!(held(&base(1_000, 300)), PAPERS_DELAY);
        assert_eq!(held(&base(1_960, 300)), PAPERS_DELAY);
        assert_eq!(held(&base(1_960, 301)), Nanos(5_000));
        assert_eq!(held(&base(7_000, 500)), Nanos(15_000));
    }
}
