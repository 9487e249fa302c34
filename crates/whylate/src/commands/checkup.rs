//! `whylate` without a command: the one-minute check-up.

use anyhow::Result;
use whylate_model::{CpuId, CpuList, Nanos};
use whylate_record::RecordError;
use whylate_record::checkup::{Request, Times, record};

use super::{Beginning, Exit, Refused, begin, conclude, gaps};
use crate::cli::Checkup;
use crate::progress::Shown;
use crate::stopping::Stopping;

pub(super) fn run(options: &Checkup) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    let measured = gaps::measured(options.cpus.as_deref())?;
    let housekeeping = gaps::housekeeping(options.common.housekeeping.as_deref())?;
    let cpu = one_of(options.cpus.as_deref(), &measured)?;
    let program = std::env::current_exe().map_err(RecordError::NoProgram)?;
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request {
        cpu,
        times: times(options.common.quick, options.warmup),
        housekeeping,
        hold_idle_states: !options.common.no_dma_latency,
        trace: !options.common.no_trace,
        seed,
        command_line: whylate_record::command_line(),
        program,
    };
    let recorded = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, &options.common, &stopping)
}

/// How long each part takes, with the warm-up that was asked for.
fn times(quick: bool, warmup: Option<Nanos>) -> Times {
    let usual = if quick { Times::quick() } else { Times::minute() };
    Times { warmup: warmup.unwrap_or(usual.warmup), ..usual }
}

/// The CPU to check up: the one that was named, or the last of those that could be.
fn one_of(words: Option<&str>, measured: &[CpuId]) -> Result<CpuId> {
    match (words, measured) {
        (Some(words), [_, _, ..]) => Err(Refused::because(format!(
            "--cpus {words} names {} CPUs ({}), and the check-up is of one: name one of them, or \
             measure them all with `whylate gaps --cpus {words}`",
            measured.len(),
            CpuList(measured)
        ))),
        (_, [.., last]) => Ok(*last),
        (_, []) => Err(Refused::because("no CPU to check up: name one with --cpus")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_of_the_check_up_is_as_asked_and_nothing_else_changes_with_it() {
        let asked = Nanos(3 * Nanos::SECOND.0);
        for quick in [false, true] {
            let (usual, with) = (times(quick, None), times(quick, Some(asked)));
            assert_ne!(usual.warmup, asked);
            assert_eq!(with, Times { warmup: asked, ..usual });
        }
    }

    #[test]
    fn more_cpus_than_one_are_refused_and_none_is_left_out_silently() {
        let ids = |list: &[u32]| list.iter().copied().map(CpuId).collect::<Vec<_>>();
        assert_eq!(one_of(Some("3"), &ids(&[3])).unwrap(), CpuId(3));
        assert_eq!(one_of(None, &ids(&[1, 2, 3])).unwrap(), CpuId(3), "nobody named any");
        let refused = one_of(Some("0-1"), &ids(&[0, 1])).unwrap_err().to_string();
        for word in ["--cpus 0-1", "2 CPUs", "whylate gaps --cpus 0-1"] {
            assert!(refused.contains(word), "{refused}");
        }
        assert!(one_of(None, &[]).unwrap_err().to_string().contains("--cpus"));
    }
}
