//! What limits the trust in the runs of a side, told once for all of them.

use whylate_model::run::RunState;
use whylate_model::trust::{Level, Trust};

use super::load::Loaded;
use super::{Caution, Side};

/// The caution of a side of which runs are limited; none where none is. What is poor is told run by run, and so is
/// what did not end.
pub(super) fn caution(side: Side, runs: &[Loaded]) -> Option<Caution> {
    let ended = runs.iter().filter(|loaded| loaded.run.state != RunState::Running);
    let trusts = ended.map(|loaded| Trust::of(&loaded.run));
    let limited: Vec<Trust> = trusts.filter(|trust| trust.level() == Level::Limited).collect();
    let mut reasons: Vec<String> = Vec::new();
    for reason in limited.iter().flat_map(|trust| &trust.reasons) {
        if !reasons.iter().any(|known| kind(known) == kind(&reason.what)) {
            reasons.push(reason.what.clone());
        }
    }
    let (limited, of) = (limited.len(), runs.len());
    (limited > 0).then_some(Caution::Limited { side, runs: limited, of, reasons })
}

/// A reason without its numbers: of five runs each has its own.
fn kind(reason: &str) -> String {
    let is_number = |of: char| of.is_ascii_digit() || ['.', ',', '<', '%', '+', '-'].contains(&of);
    let words = reason.split_whitespace().filter(|word| !word.chars().all(is_number));
    // A time stands beside its unit, which its length decides.
    let words = words.map(|word| word.trim_start_matches(is_number));
    let is_unit = |word: &&str| ["ns", "us", "ms", "s", "min", "h"].contains(word);
    words.filter(|word| !is_unit(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::compare::{Request, compare};

    #[test]
    fn a_comparison_as_json_says_how_far_it_may_be_trusted() {
        let [before, after] =
            ["before", "after"].map(|side| vec![Path::new(crate::kept::RUNS).join(side)]);
        let found = compare(&Request { before, after, ..Request::default() }).unwrap().comparison;
        let printed: serde_json::Value = serde_json::from_str(&found.to_json().unwrap()).unwrap();
        let trust = found.trust();
        assert!(!trust.reasons.is_empty());
        assert_eq!(printed["trust"]["level"], trust.level().name());
        let told = printed["trust"]["reasons"].as_array().unwrap();
        let told: Vec<&str> = told.iter().map(|of| of["what"].as_str().unwrap()).collect();
        let reasons: Vec<&str> = trust.reasons.iter().map(|of| of.what.as_str()).collect();
        assert_eq!(told, reasons);
    }

    #[test]
    fn reasons_that_differ_in_their_numbers_alone_are_of_one_kind() {
        for (one, other, same) in [
            (
                "47% of the lost time has no kernel event",
                "<0.1% of the lost time has no kernel event",
                true,
            ),
            (
                "the CPU was shared: the hypervisor reported 10ms of steal",
                "the CPU was shared: the hypervisor reported 1.20s of steal",
                true,
            ),
            ("300 samples of a do not bound p99", "1200 samples of a do not bound p99", true),
            (
                "90 jobs of thread a give its miss rate only to +-11 points",
                "70 jobs of thread a give its miss rate only to +-12 points",
                true,
            ),
            ("300 samples of a do not bound p99", "300 samples of b do not bound p99", false),
            (
                "47% of the lost time has no kernel event",
                "47% of the lost time is IRQ entry/exit, which no event covers",
                false,
            ),
        ] {
            assert_eq!(kind(one) == kind(other), same, "{one}; {other}");
        }
    }
}
