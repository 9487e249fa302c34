//! How far a measurement is, on stderr: a bar on a terminal; off it, a line for each new part and a
//! heartbeat.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use whylate_model::Nanos;
use whylate_record::progress::{Progress, Step};

use crate::out::say;

/// Shows the steps of a recording.
pub(crate) struct Shown {
    bar: Option<ProgressBar>,
    lines: Lines,
}

/// Which steps are worth a line.
struct Lines {
    heartbeat: Nanos,
    what: Option<String>,
    last_beat: Nanos,
}

impl Shown {
    /// A bar on a terminal, otherwise a line for each part and each `heartbeat`.
    #[must_use]
    pub(crate) fn new(heartbeat: Nanos) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
            if let Ok(style) =
                ProgressStyle::with_template("{msg:28} {bar:30} {pos}/{len}s {prefix}")
            {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, lines: Lines::new(heartbeat) }
    }
}

impl Progress for Shown {
    fn step(&mut self, step: &Step) {
        if let Some(bar) = &self.bar {
            let (done, all) = seconds(step);
            bar.set_length(all);
            bar.set_position(done);
            bar.set_message(step.what.clone());
            bar.set_prefix(step.so_far.clone());
        } else if let Some(line) = self.lines.of(step) {
            say!("{line}");
        }
    }

    fn say(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say!("{text}")),
            None => say!("{text}"),
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Lines {
    fn new(heartbeat: Nanos) -> Self {
        Self { heartbeat, what: None, last_beat: Nanos(0) }
    }

    /// The line for this step: for the first one of each part, and then for each heartbeat.
    fn of(&mut self, step: &Step) -> Option<String> {
        let again = step.elapsed < self.last_beat;
        let is_new = again || self.what.as_ref() != Some(&step.what);
        if !is_new && step.elapsed.0 < self.last_beat.0.saturating_add(self.heartbeat.0) {
            return None;
        }
        self.last_beat = step.elapsed;
        if is_new {
            self.what = Some(step.what.clone());
            return Some(format!("{}: {}", step.what, step.duration));
        }
        let (done, all) = seconds(step);
        let comma = if step.so_far.is_empty() { "" } else { ", " };
        Some(format!("{}: {done}s of {all}s{comma}{}", step.what, step.so_far))
    }
}

/// Whole seconds done and in all.
fn seconds(step: &Step) -> (u64, u64) {
    let all = step.duration.0.div_ceil(Nanos::SECOND.0);
    ((step.elapsed.0 / Nanos::SECOND.0).min(all), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(what: &str, elapsed_s: u64, so_far: &str) -> Step {
        Step {
            what: what.to_owned(),
            elapsed: Nanos(elapsed_s * Nanos::SECOND.0),
            duration: Nanos(30 * Nanos::SECOND.0),
            so_far: so_far.to_owned(),
        }
    }

    #[test]
    fn each_new_part_is_announced_once() {
        let mut lines = Lines::new(Nanos(10 * Nanos::SECOND.0));
        let of = |lines: &mut Lines, what| lines.of(&step(what, 0, ""));
        assert_eq!(of(&mut lines, "gaps").unwrap(), "gaps: 30.0s");
        assert_eq!(of(&mut lines, "gaps"), None);
        // All of these begin at 0s, too.
        assert_eq!(of(&mut lines, "timer wake-ups").unwrap(), "timer wake-ups: 30.0s");
        assert_eq!(of(&mut lines, "message, same core").unwrap(), "message, same core: 30.0s");
        assert_eq!(of(&mut lines, "message, same core"), None);
    }

    #[test]
    fn a_heartbeat_says_how_far_it_is_and_has_no_comma_for_nothing() {
        let mut lines = Lines::new(Nanos(10 * Nanos::SECOND.0));
        let said: Vec<String> = (0..=25)
            .filter_map(|at| lines.of(&step("gaps", at, if at > 15 { "7 gaps" } else { "" })))
            .collect();
        assert_eq!(said, ["gaps: 30.0s", "gaps: 10s of 30s", "gaps: 20s of 30s, 7 gaps"]);
    }

    #[test]
    fn a_part_that_follows_a_longer_one_beats_from_its_own_start() {
        let mut lines = Lines::new(Nanos(10 * Nanos::SECOND.0));
        for at in 0..=25 {
            lines.of(&step("gaps", at, ""));
        }
        let said: Vec<String> = (0..=12).filter_map(|at| lines.of(&step("UDP", at, ""))).collect();
        assert_eq!(said, ["UDP: 30.0s", "UDP: 10s of 30s"]);
    }
}
