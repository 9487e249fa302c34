//! How far a measurement is, on stderr: one line that is rewritten on a terminal; off it, a line where a long
//! part begins and for each heartbeat.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use whylate_model::Nanos;
use whylate_record::progress::{Progress, Step};

use crate::out::say;

/// Columns of the line on a terminal: a terminal of 80 does not wrap it.
const COLUMNS: usize = 79;
/// Of these, what is measured, and the bar.
const WHAT: usize = 28;
const BAR: usize = 20;
/// Off a terminal, a part that is over sooner than this has no line.
const LONG: Nanos = Nanos(10 * Nanos::SECOND.0);
/// Time between two lines off a terminal.
const HEARTBEAT: Nanos = Nanos(60 * Nanos::SECOND.0);

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
    /// With a heartbeat each minute off a terminal.
    #[must_use]
    pub(crate) fn usual() -> Self {
        Self::new(HEARTBEAT)
    }

    /// One line on a terminal, otherwise a line for each long part and each `heartbeat`.
    #[must_use]
    pub(crate) fn new(heartbeat: Nanos) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
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
            bar.set_message(line(step));
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

/// A step on a terminal.
fn line(step: &Step) -> String {
    let (done, all) = seconds(step);
    let full = BAR * done as usize / (all as usize).max(1);
    let head = if full < BAR { ">" } else { "" };
    let bar = format!("{}{head}", "=".repeat(full));
    let what: String = step.what.chars().take(WHAT).collect();
    let text = format!("{what}  [{bar:BAR$}]  {done}/{all} s   {}", step.so_far);
    text.trim_end().chars().take(COLUMNS).collect()
}

impl Lines {
    fn new(heartbeat: Nanos) -> Self {
        Self { heartbeat, what: None, last_beat: Nanos(0) }
    }

    /// The line for this step: for the first one of each long part, and then for each heartbeat.
    fn of(&mut self, step: &Step) -> Option<String> {
        if step.duration < LONG {
            return None;
        }
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
    fn a_part_of_less_than_ten_seconds_has_no_line() {
        let mut lines = Lines::new(Nanos(Nanos::SECOND.0));
        for elapsed in 0..10 {
            let short = Step { duration: Nanos(LONG.0 - 1), ..step("warm-up", elapsed, "") };
            assert_eq!(lines.of(&short), None);
        }
        assert!(lines.of(&Step { duration: LONG, ..step("gaps", 0, "") }).is_some());
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

    #[test]
    fn a_terminal_has_one_line_of_at_most_79_columns() {
        let half = line(&step("gaps on CPU 1", 15, "15,911 stalls"));
        assert_eq!(half, "gaps on CPU 1  [==========>         ]  15/30 s   15,911 stalls");
        assert_eq!(line(&step("gaps", 30, "")), "gaps  [====================]  30/30 s");
        let nothing = Step { duration: Nanos(0), ..step("reading", 0, "") };
        assert_eq!(line(&nothing), "reading  [>                   ]  0/0 s");
        let long = line(&step(&"what is measured ".repeat(9), 7, &"so far ".repeat(30)));
        assert_eq!(long.chars().count(), COLUMNS);
    }
}
