//! What to do about the CPU that whylate's own work has, by what the command that made a run understands.

use crate::run::Run;

/// The measuring commands that take a CPU for whylate's own work by `--housekeeping`; the check-up, which has no name,
/// does as well.
pub const WITH_HOUSEKEEPING: [&str; 8] =
    ["device", "gaps", "rta", "rtt", "switch-cost", "threads", "wake", "watch"];

/// Those whose `--cpus` takes several that are measured.
const WITH_SEVERAL_CPUS: [&str; 3] = ["gaps", "threads", "wake"];

/// What a command understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Options {
    /// `--housekeeping`.
    housekeeping: bool,
    /// It was given several CPUs to measure, of which one could be left out.
    several_cpus: bool,
}

impl Options {
    /// Those of the command that recorded it, or the first recording of a sum.
    pub(crate) fn of(run: &Run) -> Self {
        let first = run.origins.first();
        Self::of_words(first.map_or(&run.command_line, |origin| &origin.command_line))
    }

    fn of_words(words: &[String]) -> Self {
        let Some(first) = words.get(1) else {
            // The check-up needs no word; where nothing is known, nothing is advised.
            return Self { housekeeping: !words.is_empty(), several_cpus: false };
        };
        // Options of the check-up stand where other commands have their name.
        let housekeeping = first.starts_with('-') || WITH_HOUSEKEEPING.contains(&first.as_str());
        let takes_several = WITH_SEVERAL_CPUS.contains(&first.as_str());
        let several_cpus = takes_several && cpus(words).is_some_and(is_list);
        Self { housekeeping, several_cpus }
    }

    pub(crate) fn records_dropped(self) -> &'static str {
        if self.housekeeping {
            "Sums and histograms hold; the list of stalls and their causes is incomplete. Raise \
             --threshold, or give whylate's own work a CPU with --housekeeping."
        } else {
            "Sums and histograms hold; the list of stalls and their causes is incomplete. Record again on \
             a machine with less other work."
        }
    }

    pub(crate) fn jobs_unrecorded(self) -> &'static str {
        if self.housekeeping {
            "Hits, misses and latencies are those of the others. Use longer periods, fewer \
             threads at once, or a CPU for --housekeeping."
        } else {
            "Hits, misses and latencies are those of the others. Use longer periods, or fewer threads at \
             once."
        }
    }

    pub(crate) fn trace_lost(self) -> &'static str {
        if self.housekeeping {
            "Causes of stalls on this CPU may be missing or wrong while events were lost. Record \
             for a shorter time, under less load, or with a CPU for --housekeeping."
        } else {
            "Causes of stalls on this CPU may be missing or wrong while events were lost. Record \
             for a shorter time, or under less load."
        }
    }

    pub(crate) fn causes_incomplete(self) -> &'static str {
        match self {
            Self { housekeeping: true, several_cpus: true } => {
                "Such stalls are called `trace lost`, and senders may be missing. Give the drain a \
                 CPU of its own with --housekeeping, or measure fewer CPUs at once."
            }
            Self { housekeeping: true, several_cpus: false } => {
                "Such stalls are called `trace lost`, and senders may be missing. Give the drain a \
                 CPU of its own with --housekeeping."
            }
            Self { housekeeping: false, .. } => {
                "Such stalls are called `trace lost`, and senders may be missing. Record again on a machine \
                 with less other work."
            }
        }
    }

    /// Each of the CPUs that may be used is measured, so that none can be named for it.
    pub(crate) fn no_housekeeping_cpu(self) -> &'static str {
        if self.several_cpus {
            "whylate's own work is in what was measured. Leave one CPU out of --cpus."
        } else {
            "whylate's own work is in what was measured. Leave one of its CPUs unmeasured."
        }
    }

    pub(crate) fn own_threads_in_the_way(self) -> &'static str {
        if self.housekeeping {
            "That is an effect of the measurement and nothing of the system's. Give whylate's own \
             work a CPU with --housekeeping, each flow CPUs of its own, or leave the trace out \
             (--no-trace)."
        } else {
            "That is an effect of the measurement and nothing of the system's. Measure on a machine with \
             more CPUs."
        }
    }
}

/// What the last `--cpus` of a command line takes.
fn cpus(words: &[String]) -> Option<&str> {
    let at = |at: usize| {
        let word = words[at].as_str();
        let rest = word.strip_prefix("--cpus").or_else(|| word.strip_prefix("--cpu"))?;
        match rest.strip_prefix('=') {
            None if rest.is_empty() => words.get(at + 1).map(String::as_str),
            given => given,
        }
    };
    (1..words.len()).rev().find_map(at)
}

/// Is it more than one CPU?
fn is_list(cpus: &str) -> bool {
    cpus.parse::<u32>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_advised_is_what_the_command_understands() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let Options { housekeeping, several_cpus } = Options::of_words(&words);
            (housekeeping, several_cpus)
        };
        for (line, expected) in [
            ("whylate", (true, false)),
            ("/usr/bin/whylate --cpus 1", (true, false)),
            ("whylate gaps --cpus 0-1 -o r", (true, true)),
            ("whylate gaps --cpus=all", (true, true)),
            ("whylate gaps --cpu 0,1", (true, true)),
            ("whylate gaps --cpus 1", (true, false)),
            ("whylate wake", (true, false)),
            ("whylate rtt --cpus 0-1", (true, false)),
            ("whylate paper pam2017 --cpus 1", (false, false)),
            ("whylate calibrate", (false, false)),
            ("whylate hourglass -d 5s", (false, false)),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
        assert_eq!(Options::of_words(&[]), Options::default());
        let all = |of: Options| {
            let advice = [
                of.records_dropped(),
                of.jobs_unrecorded(),
                of.trace_lost(),
                of.causes_incomplete(),
                of.no_housekeeping_cpu(),
                of.own_threads_in_the_way(),
            ];
            advice.join(" ")
        };
        let none = all(Options::default());
        assert!(!none.contains("--"), "{none}");
        let one = Options { housekeeping: true, several_cpus: false };
        assert!(
            all(one).contains("--housekeeping") && !all(one).contains("--cpus"),
            "{}",
            all(one)
        );
        assert!(!one.no_housekeeping_cpu().contains("--"), "each CPU is measured");
        let several = Options { several_cpus: true, ..one }.no_housekeeping_cpu();
        assert!(several.ends_with("Leave one CPU out of --cpus."), "{several}");
    }
}
