//! Which settings may stand in words, and why nothing else says them.

use super::{Setting, Settings};
use crate::units::Nanos;

/// A setting that may stand in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InWords {
    /// Its name; where a run has several of it, ` of ` and whose it is follow.
    pub name: &'static str,
    /// Which words.
    pub may: May,
    /// Why it is words.
    pub why: &'static str,
}

/// Words that a setting may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// Whatever they are: the user's, the machine's, a formula, or sentences.
    Given,
    /// Those of this program, none of which is a value.
    Told,
    /// These alone, where there is no value.
    Only(&'static str),
}

/// All of them.
pub const IN_WORDS: &[InWords] = &[
    InWords { name: "arrivals", may: May::Given, why: "a pattern, or its formula" },
    InWords { name: "bed", may: May::Given, why: "the name of a bed, and which end of it" },
    InWords { name: "before the box", may: May::Given, why: "the path of a file" },
    InWords { name: "behind the box", may: May::Given, why: "the path of a file" },
    InWords { name: "box", may: May::Given, why: "as it was asked for: a kind, or a law" },
    InWords { name: "capture", may: May::Given, why: "the path of a file" },
    InWords { name: "carried by", may: May::Told, why: "the name of a port" },
    InWords { name: "client by", may: May::Told, why: "the name of a port, and how it waits" },
    InWords { name: "delay line by", may: May::Told, why: "the name of a port" },
    InWords {
        name: "duration",
        may: May::Only("until it was told to end"),
        why: "no time was given",
    },
    InWords { name: "format before the box", may: May::Told, why: "the name of a format" },
    InWords { name: "format behind the box", may: May::Told, why: "the name of a format" },
    InWords { name: "law at the start, back", may: May::Given, why: "a formula" },
    InWords { name: "law at the start, there", may: May::Given, why: "a formula" },
    InWords { name: "listening at", may: May::Given, why: "an address" },
    InWords { name: "load", may: May::Given, why: "formulas, and the name of a bed" },
    InWords { name: "looked at by", may: May::Told, why: "the name of a way" },
    InWords { name: "loop", may: May::Told, why: "the name of a loop" },
    InWords { name: "not compared", may: May::Told, why: "names of parts of a packet" },
    InWords { name: "notes", may: May::Given, why: "sentences about what was asked" },
    InWords { name: "other end", may: May::Given, why: "an address, or the names of ports" },
    InWords { name: "ports", may: May::Given, why: "names of interfaces" },
    InWords { name: "protocol", may: May::Told, why: "the name of a protocol" },
    InWords { name: "quantum", may: May::Only("the kernel's"), why: "none was asked for" },
    InWords {
        name: "server",
        may: May::Only("a program in the kernel (xdp-tx)"),
        why: "it is no thread",
    },
    InWords { name: "stamps", may: May::Told, why: "the name of a clock, and where it is read" },
    InWords { name: "threshold", may: May::Given, why: "the rule by which it is found" },
    InWords {
        name: "times are",
        may: May::Only("of each backend in each round"),
        why: "what the times beside it are of",
    },
    InWords { name: "waiting by", may: May::Told, why: "the name of a way to wait" },
    InWords {
        name: "way",
        may: May::Only("that of each backend in turns"),
        why: "there are several",
    },
    InWords { name: "work", may: May::Told, why: "the name of what a loop does" },
];

/// Names of settings in words that are in the list of none, or whose words are a value.
#[must_use]
pub fn unfit(settings: &Settings) -> Vec<&str> {
    let in_words = settings.iter().filter_map(|(name, setting)| match setting {
        Setting::Words(words) => Some((name.as_str(), words.as_str())),
        _ => None,
    });
    in_words.filter(|(name, words)| !may_be(name, words)).map(|(name, _)| name).collect()
}

fn may_be(name: &str, words: &str) -> bool {
    let is = |of: &&InWords| {
        let rest = name.strip_prefix(of.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" of "))
    };
    IN_WORDS.iter().find(is).is_some_and(|of| match of.may {
        May::Given => true,
        May::Told => !is_value(words),
        May::Only(these) => words == these,
    })
}

/// Do these words say a number, a time, a CPU, a policy, or whether something is in force?
fn is_value(words: &str) -> bool {
    let is_number = |word: &str| word.parse::<f64>().is_ok() || word.parse::<Nanos>().is_ok();
    let mut cpus = words.split("CPU ").skip(1);
    matches!(words, "yes" | "no" | "none" | "left out" | "ordinary")
        || words.split([' ', ',']).next().is_some_and(is_number)
        || cpus.any(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
        || words.contains("SCHED_")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_setting_in_words_is_in_a_closed_list_with_its_reason_and_holds_no_value() {
        let names: BTreeSet<&str> = IN_WORDS.iter().map(|of| of.name).collect();
        assert_eq!(names.len(), IN_WORDS.len(), "each once");
        assert!(IN_WORDS.iter().all(|of| !of.why.is_empty()));
        for (name, words, fits) in [
            ("loop", "chain", true),
            ("threshold", "max(100ns, 8 x p99.9 of the warm-up)", true),
            ("other end of load", "198.18.0.2:4021", true),
            ("capture", "7", true),
            ("duration", "until it was told to end", true),
            // Not in the list.
            ("client", "CPU 1, ordinary", false),
            ("move tasks", "moved 0 tasks", false),
            ("loops", "chain", false),
            ("other ending", "here", false),
            // In the list, and a value.
            ("duration", "1.60s", false),
            ("server", "CPU 1, SCHED_FIFO 50", false),
            ("work", "4096 bytes", false),
            ("loop", "yes", false),
            ("carried by", "udp on CPU 3", false),
            ("waiting by", "50us", false),
            ("protocol", "SCHED_OTHER", false),
            ("stamps", "1.5", false),
        ] {
            let settings = Settings::from([(name.to_owned(), words.into())]);
            let found = unfit(&settings);
            assert_eq!(found.is_empty(), fits, "{name}: {words}");
            assert!(found.iter().all(|of| *of == name));
        }
        let values = [("client", 1_u64.into()), ("loop", true.into())];
        let values = values.map(|(name, value): (&str, Setting)| (name.to_owned(), value));
        assert!(unfit(&Settings::from(values)).is_empty());
    }
}
