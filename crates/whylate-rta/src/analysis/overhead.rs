//! What the operating system takes: switching to each job and back, and its tick.
//!
//! Each job costs two context switches, one to it and one away from it; whoever it interrupts is
//! resumed by the second. The tick is a task of its own above all others. Both come from a
//! measurement of the host that is spoken of.

use whylate_model::Nanos;

use super::error::AnalysisError;
use super::task::{Releases, Task};

/// Switches that each job costs: to it and away from it.
const SWITCHES: u64 = 2;
/// Name of the tick among tasks.
const TICK: &str = "tick";

/// What the operating system takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overheads {
    /// One context switch.
    pub switch: Nanos,
    /// Each tick costs so much, every so often.
    pub tick: Option<(Nanos, Nanos)>,
}

/// Tasks with what the operating system takes for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The tasks, in their order, with their switches.
    pub tasks: Vec<Task>,
    /// The tick, more urgent than all of them.
    pub tick: Option<Task>,
}

impl Overheads {
    /// Reads `switch=3us,tick=15us/4ms`, or one of the two.
    pub fn parse(word: &str) -> Result<Self, AnalysisError> {
        let wrong = |reason: String| AnalysisError::Overhead { word: word.to_owned(), reason };
        let time = |text: &str| match text.trim().parse::<Nanos>() {
            Ok(Nanos(0)) => Err(wrong(format!("`{text}` is nothing"))),
            Ok(time) => Ok(time),
            Err(error) => Err(wrong(error.to_string())),
        };
        let (mut switch, mut tick) = (None, None);
        for part in word.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(wrong(format!("`{part}` has no `=`")));
            };
            match key.trim() {
                "switch" if switch.is_none() => switch = Some(time(value)?),
                "tick" if tick.is_none() => {
                    let Some((cost, period)) = value.split_once('/') else {
                        return Err(wrong(format!("`{value}` is no cost in each period")));
                    };
                    tick = Some((time(cost)?, time(period)?));
                }
                "switch" | "tick" => return Err(wrong(format!("`{key}` stands twice"))),
                _ => return Err(wrong(format!("`{key}` is neither switch nor tick"))),
            }
        }
        Ok(Self { switch: switch.unwrap_or_default(), tick })
    }

    /// The tasks with what is taken for them.
    pub fn added_to(&self, tasks: &[Task]) -> Result<Loaded, AnalysisError> {
        let mut loaded = Loaded { tasks: tasks.to_vec(), tick: None };
        for task in &mut loaded.tasks {
            let switches = self.switch.0.checked_mul(SWITCHES);
            let execution = switches.and_then(|more| task.execution.0.checked_add(more));
            task.execution = Nanos(execution.ok_or_else(|| task.overflow())?);
        }
        if let Some((cost, period)) = self.tick {
            let most = tasks.iter().map(|task| task.priority).max().unwrap_or_default();
            let tick = Task::new(TICK, cost, period);
            let priority = most.checked_add(1).ok_or_else(|| tick.overflow())?;
            loaded.tick = Some(Task { priority, releases: Releases::Periodic, ..tick });
        }
        Ok(loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_costs_two_switches_and_the_tick_is_more_urgent_than_all() {
        let overheads = Overheads::parse("switch=3us, tick=15us/4ms").unwrap();
        let task = Task { priority: 7, ..Task::new("a", Nanos(3_000_000), Nanos(8_000_000)) };
        let loaded = overheads.added_to(&[task]).unwrap();
        assert_eq!(loaded.tasks[0].execution, Nanos(3_006_000));
        let tick = loaded.tick.unwrap();
        assert_eq!((tick.execution.0, tick.period.0, tick.priority), (15_000, 4_000_000, 8));
    }

    #[test]
    fn one_of_the_two_is_enough_and_what_is_neither_is_refused() {
        assert_eq!(Overheads::parse("switch=3us").unwrap().tick, None);
        assert_eq!(Overheads::parse("tick=1us/1ms").unwrap().switch, Nanos(0));
        for (word, said) in [
            ("", "no `=`"),
            ("3us", "no `=`"),
            ("switch=3", "no unit"),
            ("switch=0us", "nothing"),
            ("tick=15us", "no cost in each period"),
            ("tick=15us/0ms", "nothing"),
            ("switch=1us,switch=2us", "twice"),
            ("cache=3us", "neither"),
        ] {
            let error = Overheads::parse(word).unwrap_err().to_string();
            assert!(error.contains(said), "{word}: {error}");
        }
    }

    #[test]
    fn costs_that_do_not_fit_are_an_error() {
        let all = Overheads { switch: Nanos(u64::MAX), tick: None };
        let task = Task { priority: u32::MAX, ..Task::new("a", Nanos(1), Nanos(2)) };
        assert!(all.added_to(std::slice::from_ref(&task)).is_err());
        let tick = Overheads { switch: Nanos(0), tick: Some((Nanos(1), Nanos(2))) };
        assert!(tick.added_to(&[task]).is_err());
    }
}
