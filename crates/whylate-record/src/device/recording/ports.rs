//! A first look at the delay line beside a real box: do the client's frames come to its first port?
//!
//! Frames that go both ways look alike by whichever port they come, and would be set beside the truth of
//! those of the other way. So some are sent one way, and counted by port.

use whylate_model::Nanos;
use whylate_model::directory::RunDir;

use super::super::outcome::DeviceError;
use super::super::plan::Slot;
use super::super::question::LineBetween;
use super::super::words::Client;
use super::Recording;
use crate::RecordError;
use crate::calibrate::rates::are_ports_swapped;

/// How long it is looked, and how many frames a second: some hundreds in all.
const LOOK: Nanos = Nanos(200_000_000);
const PER_SECOND: f64 = 2_000.0;

impl Recording<'_> {
    /// Refuses a line whose ports are named in the other order. A line that does not work at all is told of
    /// when it is measured.
    pub(super) fn look_at_line(&mut self) -> Result<(), RecordError> {
        let (question, slot) = (self.question, Slot::Line(0));
        let Some(line) = &question.line else { return Ok(()) };
        let Some(frame_bytes) = self.sizes().first().copied() else { return Ok(()) };
        if self.is_stopped() {
            return Ok(());
        }
        let place = self.next_place("ports-of-the-line")?;
        let client = Client {
            through: self.places.through(slot)?,
            frame_bytes,
            per_second: PER_SECOND,
            duration: LOOK,
            warmup: LOOK,
            both_ways: false,
            logged: false,
            seed: question.seed,
        };
        let words = client.words(question);
        let took = Nanos(2 * LOOK.0);
        let Ok(standing) = self.stand(slot, &place, took) else { return Ok(()) };
        // That nothing comes through says as much as what does.
        let _ = self.run_client(slot, &standing, &words, &place.join("client"), took);
        let Ok(Some(own)) = standing.end() else { return Ok(()) };
        let run = RunDir::open(own)?.read_run()?;
        let received = [0, 1].map(|way: usize| {
            let of = run.delay.as_deref().and_then(|line| line.directions.get(way));
            of.map_or(0, |of| of.counts.received)
        });
        if are_ports_swapped(received) {
            // What cannot be removed stays: that the ports are swapped is what the user is told.
            let _ = std::fs::remove_dir_all(&self.parts);
            return Err(DeviceError::Refused(swapped(line, received)).into());
        }
        Ok(())
    }
}

/// What is wrong, and what to write instead.
fn swapped(line: &LineBetween, [there, back]: [u64; 2]) -> String {
    let LineBetween { client: [near, far], ports: [a, b] } = line;
    format!(
        "{back} of the frames that left by {near} came to the delay line by {b}, and {there} by {a}: its ports \
         are swapped, or cables are; with these cables write --line {near},{b},{a},{far}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swapped_line_is_told_with_both_counts_and_the_words_for_it() {
        let names = |one: &str, other: &str| [one.to_owned(), other.to_owned()];
        let line = LineBetween { client: names("n0", "f0"), ports: names("b0", "a0") };
        let told = swapped(&line, [3, 800]);
        assert!(told.starts_with("800 of the frames that left by n0 came"), "{told}");
        assert!(told.contains("by a0, and 3 by b0"), "{told}");
        assert!(told.ends_with("--line n0,a0,b0,f0"), "{told}");
    }
}
