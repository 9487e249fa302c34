//! How far a measurement is, on stderr: a bar on a terminal, a heartbeat line off it.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use whylate_model::Nanos;
use whylate_record::progress::{Progress, Step};

/// Shows the steps of a recording.
pub(crate) struct Shown {
    bar: Option<ProgressBar>,
    heartbeat: Nanos,
    last_beat: Nanos,
}

impl Shown {
    /// A bar on a terminal, otherwise a line each `heartbeat`.
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
        Self { bar, heartbeat, last_beat: Nanos(0) }
    }
}

impl Progress for Shown {
    fn step(&mut self, step: &Step) {
        let (done, all) =
            (step.elapsed.0 / Nanos::SECOND.0, step.duration.0.div_ceil(Nanos::SECOND.0));
        if let Some(bar) = &self.bar {
            bar.set_length(all);
            bar.set_position(done.min(all));
            bar.set_message(step.what.clone());
            bar.set_prefix(step.so_far.clone());
        } else if step.elapsed.0 >= self.last_beat.0 + self.heartbeat.0
            || step.elapsed.0 < self.last_beat.0
        {
            self.last_beat = step.elapsed;
            anstream::eprintln!("{}: {done}s of {all}s, {}", step.what, step.so_far);
        }
    }

    fn say(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| anstream::eprintln!("{text}")),
            None => anstream::eprintln!("{text}"),
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
