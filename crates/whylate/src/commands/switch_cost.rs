//! `whylate switch-cost`.

use anyhow::Result;
use whylate_model::Nanos;
use whylate_record::RecordError;
use whylate_record::progress::Progress;
use whylate_record::switch_cost::{Indirect, Request, record};

use super::gaps::{housekeeping, one_cpu};
use super::switch_runner::WORDS;
use super::{Beginning, Exit, begin, conclude};
use crate::cli::SwitchCost;
use crate::out::say;
use crate::parse::Turn;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// Kinds of switches: three ways of threads, and of processes.
const KINDS: u64 = 6;
/// How long each kind of switch is measured.
const ROW: Nanos = Nanos(4 * Nanos::SECOND.0);
const QUICK_ROW: Nanos = Nanos(Nanos::SECOND.0);
/// How long a trial is, with a quantum of ours and with those of the kernel, which are longer.
const TRIAL: (Nanos, Nanos) = (Nanos(Nanos::SECOND.0 / 5), Nanos::SECOND);
const QUICK_TRIAL: (Nanos, Nanos) = (Nanos(Nanos::SECOND.0 / 20), Nanos(Nanos::SECOND.0 / 2));
/// Good pairs; those of a quick run are the paper's number.
const TRIALS: u32 = 20;
const QUICK_TRIALS: u32 = 15;

pub(super) fn run(options: &SwitchCost) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    let request = request(options)?;
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request { seed, ..request };
    progress.say(&how_long(&request));
    let recorded = match record(&request, directory, &stopping.stop, &mut progress) {
        Ok(recorded) => recorded,
        Err(error @ (RecordError::WorkingSet { .. } | RecordError::TrialTooLong { .. })) => {
            say!("error: {error}");
            return Ok(Exit::CouldNotMeasure);
        }
        Err(error) => return Err(error.into()),
    };
    drop(progress);
    conclude(&recorded, &path, &options.common, &stopping)
}

/// How long it takes at least, as far as that is known before the caches are looked at.
fn how_long(request: &Request) -> String {
    let direct = request.direct.map(|each| {
        let all = Nanos(each.0.saturating_mul(KINDS));
        format!("direct cost: {all} ({KINDS} kinds of switches, {each} each)")
    });
    let indirect = request.indirect.as_ref().map(|of| {
        let trials = u64::from(of.trials).saturating_mul(2);
        let each = Nanos(of.length.0.saturating_mul(trials));
        format!("cost through the caches: {each} or more for each working set")
    });
    direct.into_iter().chain(indirect).collect::<Vec<_>>().join("; ")
}

fn request(options: &SwitchCost) -> Result<Request> {
    let cpu = one_cpu(options.cpus.as_deref(), "switches are of one")?;
    let quick = options.common.quick;
    let row = options.duration.unwrap_or(if quick { QUICK_ROW } else { ROW });
    let lengths = if quick { QUICK_TRIAL } else { TRIAL };
    let trial = match options.quantum {
        Turn::Of(_) => lengths.0,
        Turn::Kernel => lengths.1,
    };
    let indirect = Indirect {
        sizes: options.sizes.clone(),
        quantum: match options.quantum {
            Turn::Of(quantum) => Some(quantum),
            Turn::Kernel => None,
        },
        trials: options.trials.unwrap_or(if quick { QUICK_TRIALS } else { TRIALS }),
        length: options.trial_time.unwrap_or(trial),
    };
    Ok(Request {
        cpu,
        direct: (!options.indirect).then_some(row),
        indirect: (!options.direct).then_some(indirect),
        housekeeping: housekeeping(options.common.housekeeping.as_deref())?,
        lock_memory: false,
        hold_idle_states: !options.common.no_dma_latency,
        trace: !options.common.no_trace,
        runner_words: WORDS.map(Into::into).to_vec(),
        seed: options.common.seed.unwrap_or_default(),
        command_line: whylate_record::command_line(),
        question: format!("What does a context switch cost on CPU {cpu}?"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::asked;
    use super::*;
    use crate::cli::Command;

    #[test]
    fn how_long_a_recording_takes_is_told_as_a_whole() {
        let told = |line: &str| match asked(line) {
            Command::SwitchCost(options) => how_long(&request(&options).unwrap()),
            _ => String::new(),
        };
        let direct = "direct cost: 24.0s (6 kinds of switches, 4.00s each)";
        let caches = "cost through the caches: 8.00s or more for each working set";
        assert_eq!(told("switch-cost"), format!("{direct}; {caches}"));
        assert_eq!(told("switch-cost --direct"), direct);
        assert_eq!(told("switch-cost --indirect"), caches);
    }

    #[test]
    fn trials_that_are_asked_for_are_made_with_quick_too() {
        let trials = |line: &str| match asked(line) {
            Command::SwitchCost(options) => {
                request(&options).unwrap().indirect.map(|indirect| indirect.trials)
            }
            _ => None,
        };
        assert_eq!(trials("switch-cost"), Some(20));
        assert_eq!(trials("switch-cost --quick"), Some(15));
        for line in ["switch-cost --trials 50", "switch-cost --quick --trials 50"] {
            assert_eq!(trials(line), Some(50), "{line}");
        }
        assert_eq!(trials("switch-cost --direct"), None);
    }
}
