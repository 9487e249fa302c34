//! How long, how often, how fast: the paper's protocol, and what of it this host holds.

use whylate_model::Nanos;
use whylate_model::paper::Scenario;
use whylate_net::schedule::{Layer, Rate};

use crate::bench::Bench;

/// Bytes of a message: what the shortest frame holds, and so the shortest message.
pub(super) const MESSAGE: u32 = 18;
/// Bytes of its frame, check sequence included: Ethernet 14, IPv4 20, UDP 8, check sequence 4.
const FRAME: u32 = MESSAGE + 46;
/// Frames a second, each way, that every tool here can hold on two CPUs of a virtual machine.
const PER_SECOND: u32 = 10_000;
/// A curve ends where fewer samples than this lie at or above it.
pub(super) const FEWEST_ABOVE: u64 = 1;
/// Tools whose rates lie further apart are not set beside each other, as a share.
pub(super) const RATES_APART: f64 = 0.01;

/// How it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Protocol {
    pub(super) runs: u32,
    pub(super) warmup: Nanos,
    pub(super) duration: Nanos,
    quick: bool,
}

impl Protocol {
    pub(super) const USUAL: Self = Self {
        runs: 5,
        warmup: Nanos(30 * Nanos::SECOND.0),
        duration: Nanos(120 * Nanos::SECOND.0),
        quick: false,
    };
    pub(super) const QUICK: Self =
        Self { runs: 2, warmup: Nanos::SECOND, duration: Nanos(3 * Nanos::SECOND.0), quick: true };

    pub(super) fn of(bench: &Bench<'_>) -> Self {
        if bench.quick() { Self::QUICK } else { Self::USUAL }
    }

    /// The words of a recording that are the same for all tools.
    pub(super) fn words(self) -> String {
        let seconds = |time: Nanos| time.0 / Nanos::SECOND.0;
        format!(
            "--rate {PER_SECOND}pps --size {MESSAGE} --duration {}s --warmup {}s --no-trace",
            seconds(self.duration),
            seconds(self.warmup)
        )
    }

    /// Messages a second that all flows of a recording together ask for.
    pub(super) fn asked_per_second() -> f64 {
        f64::from(2 * PER_SECOND)
    }

    /// What it is, and what of it is not the paper's.
    pub(super) fn note(self, scenario: &mut Scenario) {
        let per_second = f64::from(PER_SECOND);
        let bits = |layer| Rate::bits_per_second(per_second, FRAME, layer) / 1e6;
        scenario.notes.push(format!(
            "two flows, one each way, at a constant rate of {PER_SECOND} frames a second each: {:.2} Mbit/s \
             on the wire (L1), {:.2} Mbit/s of frames (L2), where the paper has 1 Gbit/s each; {FRAME} bytes \
             a frame, as in the paper",
            bits(Layer::L1),
            bits(Layer::L2)
        ));
        let told = |of: Self| {
            let seconds = |time: Nanos| time.0 / Nanos::SECOND.0;
            format!(
                "{} runs of {} s after {} s of warm-up",
                of.runs,
                seconds(of.duration),
                seconds(of.warmup)
            )
        };
        let own = told(self);
        scenario.notes.push(if self.quick {
            format!("--quick: {own}, in place of {} as in the paper", told(Self::USUAL))
        } else {
            format!("{own}, as in the paper, in turns: each round measures everything once")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_quick_shortens_is_said_and_rates_are_told_in_frames_and_at_both_layers() {
        let mut scenario = crate::empty("x", "y");
        Protocol::QUICK.note(&mut scenario);
        let notes = scenario.notes.join("\n");
        assert!(notes.contains("10000 frames a second"), "{notes}");
        // 10 000 frames of 64 bytes, and of 84 with preamble, delimiter and gap.
        assert!(notes.contains("6.72 Mbit/s on the wire (L1), 5.12 Mbit/s of frames"), "{notes}");
        assert!(notes.contains("64 bytes a frame, as in the paper"), "{notes}");
        let short =
            "--quick: 2 runs of 3 s after 1 s of warm-up, in place of 5 runs of 120 s after 30 s";
        assert!(notes.contains(short), "{notes}");
        let usual = Protocol::USUAL.words();
        assert!(usual.contains("--duration 120s --warmup 30s"), "{usual}");
    }
}
