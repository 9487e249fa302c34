//! How far a measurement is, on stderr: one line that is rewritten on a terminal; off it, a line where a long
//! part begins and for each heartbeat. Numbers are written as in reports.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use whylate_model::{Nanos, thousands_apart};
use whylate_record::progress::{Progress, Step};
use whylate_report::{Letters, respelled};

use crate::commands::letters;
use crate::out::say;

/// What a set of threads is called by what records it.
const THREADS: &str = "threads";
/// Columns of the line at most, and on a terminal that does not say how many it has: one of 80 does not wrap it.
const COLUMNS: usize = 79;
/// Of these, what is measured, and the bar.
const WHAT: usize = 28;
const BAR: usize = 20;
/// Between two of its parts.
const APART: usize = 2;
/// Off a terminal, a part that is over sooner than this has no line.
const LONG: Nanos = Nanos(10 * Nanos::SECOND.0);
/// Time between two lines off a terminal.
const HEARTBEAT: Nanos = Nanos(60 * Nanos::SECOND.0);

/// Shows the steps of a recording.
pub(crate) struct Shown {
    bar: Option<ProgressBar>,
    lines: Lines,
    letters: Letters,
    /// What the threads of a set are for, where the user asked for that and not for threads.
    what: Option<&'static str>,
}

/// Which steps are worth a line.
struct Lines {
    heartbeat: Nanos,
    what: Option<String>,
    last_beat: Nanos,
    letters: Letters,
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
        let letters = letters();
        Self { bar, lines: Lines::new(heartbeat, letters), letters, what: None }
    }

    /// The same of what the user asked for.
    #[must_use]
    pub(crate) fn of(mut self, what: &'static str) -> Self {
        self.what = Some(what);
        self
    }
}

/// A step of what was asked for.
fn named(step: &Step, what: Option<&str>) -> Step {
    let what = what.filter(|_| step.what == THREADS).unwrap_or(&step.what);
    Step { what: what.to_owned(), ..step.clone() }
}

impl Progress for Shown {
    fn step(&mut self, step: &Step) {
        let step = &named(step, self.what);
        if let Some(bar) = &self.bar {
            bar.set_message(line(step, columns(), self.letters));
        } else if let Some(line) = self.lines.of(step) {
            say!("{line}");
        }
    }

    fn say(&mut self, text: &str) {
        let text = respelled(text, self.letters);
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

/// Columns of a line that the terminal does not wrap: it may be made wider or narrower at any time.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { COLUMNS } else { COLUMNS.min(columns - 1) }
}

/// A step on a terminal: how far it is, and as much else as there is room for. No number is cut.
fn line(step: &Step, columns: usize, letters: Letters) -> String {
    let (done, all) = seconds(step);
    let time = format!("{}/{} s", thousands_apart(done), thousands_apart(all));
    let full = BAR * done as usize / (all as usize).max(1);
    let head = if full < BAR { ">" } else { "" };
    let bar = format!("[{:BAR$}]  ", format!("{}{head}", "=".repeat(full)));
    let room = columns.saturating_sub(APART + time.len());
    let what: String = step.what.chars().take(WHAT.min(room)).collect();
    let mut text = format!("{what}  {bar}{time}");
    if text.chars().count() > columns {
        text = format!("{what}  {time}");
    }
    let mut before = "   ";
    for found in respelled(&step.so_far, letters).split(", ").filter(|found| !found.is_empty()) {
        if text.chars().count() + before.len() + found.chars().count() > columns {
            break;
        }
        text.extend([before, found]);
        before = ", ";
    }
    text
}

impl Lines {
    fn new(heartbeat: Nanos, letters: Letters) -> Self {
        Self { heartbeat, what: None, last_beat: Nanos(0), letters }
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
            let duration = respelled(&step.duration.to_string(), self.letters);
            return Some(format!("{}: {duration}", step.what));
        }
        let (done, all) = seconds(step);
        let [done, all] = [done, all].map(thousands_apart);
        let comma = if step.so_far.is_empty() { "" } else { ", " };
        let so_far = respelled(&step.so_far, self.letters);
        Some(format!("{}: {done} of {all} s{comma}{so_far}", step.what))
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

    fn lines(heartbeat_s: u64) -> Lines {
        Lines::new(Nanos(heartbeat_s * Nanos::SECOND.0), Letters::Unicode)
    }

    fn on_80(step: &Step) -> String {
        line(step, COLUMNS, Letters::Unicode)
    }

    #[test]
    fn each_new_part_is_announced_once() {
        let mut lines = lines(10);
        let of = |lines: &mut Lines, what| lines.of(&step(what, 0, ""));
        assert_eq!(of(&mut lines, "gaps").unwrap(), "gaps: 30 s");
        assert_eq!(of(&mut lines, "gaps"), None);
        // All of these begin at 0 s, too.
        assert_eq!(of(&mut lines, "timer wake-ups").unwrap(), "timer wake-ups: 30 s");
        assert_eq!(of(&mut lines, "message, same core").unwrap(), "message, same core: 30 s");
        assert_eq!(of(&mut lines, "message, same core"), None);
    }

    #[test]
    fn threads_that_wait_for_timers_are_told_as_the_wake_ups_that_were_asked_for() {
        let said = |what, of| lines(10).of(&named(&step(what, 0, ""), of)).unwrap();
        assert_eq!(said("threads", Some("wake-ups")), "wake-ups: 30 s");
        assert_eq!(said("warm-up", Some("wake-ups")), "warm-up: 30 s");
        assert_eq!(said("threads", None), "threads: 30 s");
    }

    #[test]
    fn a_part_of_less_than_ten_seconds_has_no_line() {
        let mut lines = lines(1);
        for elapsed in 0..10 {
            let short = Step { duration: Nanos(LONG.0 - 1), ..step("warm-up", elapsed, "") };
            assert_eq!(lines.of(&short), None);
        }
        assert!(lines.of(&Step { duration: LONG, ..step("gaps", 0, "") }).is_some());
    }

    #[test]
    fn a_heartbeat_says_how_far_it_is_and_has_no_comma_for_nothing() {
        let mut lines = lines(10);
        let found = |at| if at > 15 { "7000 stalls, longest 1.50us" } else { "" };
        let said: Vec<String> =
            (0..=25).filter_map(|at| lines.of(&step("gaps", at, found(at)))).collect();
        let last = "gaps: 20 of 30 s, 7,000 stalls, longest 1.5 µs";
        assert_eq!(said, ["gaps: 30 s", "gaps: 10 of 30 s", last]);
    }

    #[test]
    fn a_part_that_follows_a_longer_one_beats_from_its_own_start() {
        let mut lines = lines(10);
        for at in 0..=25 {
            lines.of(&step("gaps", at, ""));
        }
        let said: Vec<String> = (0..=12).filter_map(|at| lines.of(&step("UDP", at, ""))).collect();
        assert_eq!(said, ["UDP: 30 s", "UDP: 10 of 30 s"]);
    }

    #[test]
    fn a_terminal_has_one_line_of_at_most_79_columns() {
        let half = on_80(&step("gaps on CPU 1", 15, "15911 stalls"));
        assert_eq!(half, "gaps on CPU 1  [==========>         ]  15/30 s   15,911 stalls");
        assert_eq!(on_80(&step("gaps", 30, "")), "gaps  [====================]  30/30 s");
        let nothing = Step { duration: Nanos(0), ..step("reading", 0, "") };
        assert_eq!(on_80(&nothing), "reading  [>                   ]  0/0 s");
        let long = on_80(&step(&"what is measured ".repeat(9), 7, &"so far, ".repeat(30)));
        assert!((COLUMNS - 8..=COLUMNS).contains(&long.chars().count()), "{long}");
    }

    #[test]
    fn a_narrow_terminal_has_no_bar_and_no_number_is_cut() {
        let found = "15911 stalls, longest 104ms";
        for (columns, said) in [
            (69, "gaps on CPU 1  [==========>         ]  15/30 s   15,911 stalls"),
            (79, "gaps on CPU 1  [==========>         ]  15/30 s   15,911 stalls, longest 104 ms"),
            (40, "gaps on CPU 1  15/30 s   15,911 stalls"),
            (30, "gaps on CPU 1  15/30 s"),
        ] {
            let half = step("gaps on CPU 1", 15, found);
            assert_eq!(line(&half, columns, Letters::Unicode), said);
        }
        // Whatever is measured, and however long it takes.
        let days = Step { duration: Nanos(259_200 * Nanos::SECOND.0), ..step("", 200_000, found) };
        for what in ["gaps", "message, other core", &"what is measured ".repeat(9)] {
            for so_far in ["", found, &"x".repeat(90)] {
                let (what, so_far) = (what.to_owned(), so_far.to_owned());
                let told = line(&Step { what, so_far, ..days.clone() }, 39, Letters::Unicode);
                assert!(told.chars().count() < 40, "{told:?}");
                assert!(told.contains("200,000/259,200 s"), "{told:?}");
            }
        }
    }
}
