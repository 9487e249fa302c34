//! Which change of one task alone lets all deadlines be met.

use whylate_model::Nanos;
use whylate_model::prediction::{PredictedTask, Prediction};

/// What to change, in these words for a time and a name; none where nothing is known to be enough. With each number
/// as it stands there all deadlines are met: an execution time is rounded down, a period up.
pub(crate) fn told(
    of: &Prediction,
    time: fn(Nanos) -> String,
    name: fn(&PredictedTask) -> String,
) -> Option<String> {
    let found = of.fits?;
    let task = of.tasks.get(found.task as usize)?;
    let execution = found.execution.map(|most| {
        let [most, now] = [down(most), task.execution].map(time);
        format!("at most {most} of execution for {} (now {now})", name(task))
    });
    let whose = if execution.is_some() { String::new() } else { format!(" for {}", name(task)) };
    let period = found.period.map(|least| {
        let [least, now] = [up(least), task.period].map(time);
        format!("a period of at least {least}{whose} (now {now})")
    });
    let enough: Vec<String> = execution.into_iter().chain(period).collect();
    Some(format!("it fits with {}", enough.join(", or with ")))
}

/// The longest time of three digits that is no longer.
fn down(time: Nanos) -> Nanos {
    Nanos(time.0 - time.0 % last_digit(time))
}

/// The shortest time of three digits that is no shorter.
fn up(time: Nanos) -> Nanos {
    let digit = last_digit(time);
    Nanos(time.0.div_ceil(digit).saturating_mul(digit))
}

/// What the last of three digits counts.
fn last_digit(time: Nanos) -> u64 {
    10_u64.pow(time.0.max(100).ilog10() - 2)
}
