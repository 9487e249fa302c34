//! How many requests left late, which older runs tell in the words of a warning alone.

use crate::flow::OutOf;
use crate::run::Run;
use crate::units::Nanos;
use crate::warning::Warning;

/// What stands between the counts and the tolerance there.
const LATER: &str = " left later than the tolerance of ";

/// Counts what a warning counts, where its flow does not.
pub(super) fn settle(run: &mut Run) {
    for warning in &run.warnings {
        if let Warning::DeparturesDisturbed { flow: name, how } = warning
            && let Some(flow) = run.flows.iter_mut().find(|flow| flow.name == *name)
        {
            let process = &mut flow.departures.process;
            let told = || how.split("; ").find_map(|words| told(words, process.tolerance));
            process.beyond_tolerance = process.beyond_tolerance.or_else(told);
        }
    }
}

/// `41 of 5000 left later than the tolerance of 20.0us, or never`.
fn told(words: &str, tolerance: Nanos) -> Option<OutOf> {
    let (counts, of_words) = words.split_once(LATER)?;
    let (count, of) = counts.split_once(" of ")?;
    let of_words: Nanos = of_words.strip_suffix(", or never")?.parse().ok()?;
    let share = OutOf { count: count.parse().ok()?, of: of.parse().ok()? };
    (of_words == tolerance && share.count <= share.of && share.count > 0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_where_the_words_say_nothing_else() {
        let tolerance = Nanos(20_000);
        let words = "41 of 5000 left later than the tolerance of 20.0us, or never";
        assert_eq!(told(words, tolerance), Some(OutOf { count: 41, of: 5_000 }));
        assert_eq!(told(words, Nanos(50_000)), None, "it is another tolerance");
        for words in [
            "how late the p99.9 left is not known",
            "1 of 0 left later than the tolerance of 20.0us, or never",
            "0 of 7 left later than the tolerance of 20.0us, or never",
            "x of 7 left later than the tolerance of 20.0us, or never",
            "1 of 7 left later than the tolerance of 20.0us",
            "the p99.9 left 1.2ms late, tolerance 20.0us",
        ] {
            assert_eq!(told(words, tolerance), None, "{words}");
        }
    }
}
