//! Settings that stand in words in older runs: those of version 1, and some of version 2.
//!
//! Words become a value where this reads the same, to the letter: what was rounded stays what it was.

use serde_json::{Map, Value};

use crate::run::Run;
use crate::settings::{Placed, Placement, Policy, Setting, Settings};
use crate::text::CpuList;
use crate::units::CpuId;

/// What the words of a setting said; none where they said something else.
type Read = fn(&str) -> Option<Setting>;

/// Settings that are values now, by what they were called; where a run has several of one, ` of ` and whose it
/// is follow.
const VALUES: [(&str, Read); 8] = [
    ("client", placed),
    ("cpu", cpu),
    ("delay line", placed),
    ("forwarder", placed),
    ("housekeeping", cpu),
    ("placement", placement),
    ("policy", policies),
    ("server", placed),
];

/// Of a run of version 2, what stands in words there and is a value now.
pub(super) fn settle(run: &mut Run) {
    let of_origins = run.origins.iter_mut().map(|origin| &mut origin.settings);
    std::iter::once(&mut run.settings).chain(of_origins).for_each(read);
}

/// The same of settings by themselves.
pub fn read(settings: &mut Settings) {
    for (name, setting) in settings {
        if let Setting::Words(words) = setting
            && let Some(value) = of_name(name, words)
        {
            *setting = value;
        }
    }
}

/// Of a run of version 1, whose settings are words without a kind.
pub(super) fn upgrade(fields: &mut Map<String, Value>) {
    let settings = fields.get_mut("settings").and_then(Value::as_object_mut);
    for (name, value) in settings.into_iter().flatten() {
        let setting = value.as_str().map(|words| of_version_one(name, words));
        if let Some(typed) = setting.and_then(|setting| serde_json::to_value(setting).ok()) {
            *value = typed;
        }
    }
}

fn of_version_one(name: &str, words: &str) -> Setting {
    of_name(name, words).unwrap_or_else(|| {
        let number = words.parse::<u64>().ok().filter(|number| number.to_string() == words);
        match (words, number) {
            ("yes", _) => Setting::On(true),
            ("no", _) => Setting::On(false),
            // A number of no CPU is none of anything else.
            (_, Some(number)) if !is_cpu(name) => Setting::Count(number),
            _ => Setting::Words(words.to_owned()),
        }
    })
}

fn is_cpu(name: &str) -> bool {
    matches!(name, "cpu" | "housekeeping")
}

fn of_name(name: &str, words: &str) -> Option<Setting> {
    let is = |(of, _): &&(&str, Read)| {
        let rest = name.strip_prefix(of);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" of "))
    };
    let (_, read) = VALUES.iter().find(is)?;
    read(words).filter(|setting| setting.to_string() == words)
}

fn cpu(words: &str) -> Option<Setting> {
    Some(Setting::Cpus(vec![CpuId(words.parse().ok()?)]))
}

/// `CPU 2 and 3, SCHED_FIFO 80`.
fn placed(words: &str) -> Option<Setting> {
    let (place, policy) = words.split_once(", ")?;
    let cpus: Option<Vec<CpuId>> = if place == "any CPU" {
        Some(Vec::new())
    } else {
        let cpus = place.strip_prefix("CPU ")?.split(" and ");
        cpus.map(|cpu| cpu.parse().ok().map(CpuId)).collect()
    };
    let policy = match policy {
        "ordinary" => Policy::Ordinary,
        fifo => self::policy(fifo)?,
    };
    Some(Placed { cpus: cpus?, policy }.into())
}

/// `SCHED_FIFO 50`, `SCHED_OTHER`.
fn policy(words: &str) -> Option<Policy> {
    match words.strip_prefix("SCHED_FIFO ") {
        Some(priority) => Some(Policy::Fifo { priority: priority.parse().ok()? }),
        None => (words == "SCHED_OTHER").then_some(Policy::Ordinary),
    }
}

fn policies(words: &str) -> Option<Setting> {
    let all: Option<Vec<Policy>> = words.split(", ").map(policy).collect();
    Some(all?.into())
}

/// `pinned to 1-3`, `2 floating on 0-3,5`.
fn placement(words: &str) -> Option<Setting> {
    let placement = if let Some(cpus) = words.strip_prefix("pinned to ") {
        Placement::Pinned { cpus: listed(cpus)? }
    } else {
        let (threads, cpus) = words.split_once(" floating on ")?;
        Placement::Floating { threads: threads.parse().ok()?, cpus: listed(cpus)? }
    };
    Some(placement.into())
}

/// More CPUs than this are no list of a machine.
const MOST_CPUS: usize = 1 << 16;

/// CPUs as [`CpuList`] writes them.
fn listed(words: &str) -> Option<Vec<CpuId>> {
    let mut cpus = Vec::new();
    for run in words.split(',') {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last.checked_sub(first)? as usize >= MOST_CPUS - cpus.len() {
            return None;
        }
        cpus.extend((first..=last).map(CpuId));
    }
    (CpuList(&cpus).to_string() == words).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(name: &str, words: &str) -> Setting {
        let mut settings = Settings::from([(name.to_owned(), words.into())]);
        read(&mut settings);
        settings.remove(name).expect("it keeps its name")
    }

    #[test]
    fn what_was_stored_in_words_reads_as_it_did_and_is_a_value_where_that_is_exact() {
        let cases = [
            ("hold idle states", "yes", Setting::On(true)),
            ("move tasks", "no", Setting::On(false)),
            ("competitors", "3", Setting::Count(3)),
            ("housekeeping", "0", Setting::Cpus(vec![CpuId(0)])),
            ("housekeeping", "none left", "none left".into()),
            // It was rounded to three digits.
            ("duration", "1.60s", "1.60s".into()),
            ("records", "007", "007".into()),
            ("cpu", "99999999999", "99999999999".into()),
            ("placement", "pinned to 1-4294967295", "pinned to 1-4294967295".into()),
        ];
        for (name, words, expected) in cases {
            let setting = of_version_one(name, words);
            assert_eq!(setting, expected, "{name}");
            assert_eq!(setting.to_string(), words, "{name}");
        }
    }

    #[test]
    fn words_of_either_version_that_are_values_now_are_read_as_these_and_others_stay() {
        let fifo = |priority| Policy::Fifo { priority };
        let placed = |cpus: &[u32], policy| {
            Setting::Thread(Placed { cpus: cpus.iter().copied().map(CpuId).collect(), policy })
        };
        let pinned = Placement::Pinned { cpus: vec![CpuId(1), CpuId(2), CpuId(5)] };
        let floating = Placement::Floating { threads: 2, cpus: vec![CpuId(0)] };
        let cases = [
            ("client", "CPU 1, ordinary", placed(&[1], Policy::Ordinary)),
            ("client of load", "CPU 12, SCHED_FIFO 50", placed(&[12], fifo(50))),
            ("server", "any CPU, ordinary", placed(&[], Policy::Ordinary)),
            ("forwarder", "CPU 2 and 3, SCHED_FIFO 80", placed(&[2, 3], fifo(80))),
            ("delay line", "any CPU, SCHED_FIFO 1", placed(&[], fifo(1))),
            ("policy", "SCHED_OTHER", vec![Policy::Ordinary].into()),
            ("policy", "SCHED_FIFO 50, SCHED_OTHER", vec![fifo(50), Policy::Ordinary].into()),
            ("placement", "pinned to 1-2,5", pinned.into()),
            ("placement", "2 floating on 0", floating.into()),
        ];
        for (name, words, expected) in cases {
            assert_eq!(expected.to_string(), words, "it is shown as it was");
            assert_eq!(read_of(name, words), expected, "{name}");
            assert_eq!(of_version_one(name, words), expected, "{name}");
        }
        for (name, words) in [
            ("client", "CPU 1"),
            ("client", "CPU 01, ordinary"),
            ("client", "packet spin, CPU 1"),
            ("clients", "CPU 1, ordinary"),
            ("server", "a program in the kernel (xdp-tx)"),
            ("policy", "SCHED_FIFO 500"),
            ("placement", "pinned to 3-1"),
            ("placement", "pinned to 1,2"),
            ("placement", "pinned to none"),
            ("move tasks", "moved 0 tasks and 2 kernel threads off cpus 1"),
        ] {
            assert_eq!(read_of(name, words), words.into(), "{name}");
            assert_eq!(of_version_one(name, words), words.into(), "{name}");
        }
    }
}
