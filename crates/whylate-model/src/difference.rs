//! What differs between two hosts, or between one host on two days.
//!
//! Numbers of two runs are comparable as far as their hosts are. What is not known on one side
//! only is a difference that says so, because nobody can tell that it is none; what is not known
//! on either side is passed over. Nothing here judges which difference matters.

use serde::{Deserialize, Serialize};

use crate::host::{Fingerprint, Knob};
use crate::text::{CpuList, Printable};

/// What stands for a value that could not be read.
pub const UNKNOWN: &str = "unknown";

/// What the name of a machine is called among its differences.
pub const HOST_NAME: &str = "host name";

/// Memory is the same up to this share: kernels keep a little more or less of it at each start.
const MEMORY_TOLERANCE: f64 = 0.01;

/// One thing that is not the same on two hosts. All three are fit to print on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// What it is: `kernel`, `microcode`, or the name of a knob such as `thp`.
    pub name: String,
    /// Its value on the one side; `unknown` where it could not be read.
    pub left: String,
    /// Its value on the other side; `unknown` where it could not be read.
    pub right: String,
}

impl Fingerprint {
    /// What differs from `other`, identity first, then knobs by name. `self` is the left side.
    ///
    /// Of two command lines only the words are told that the other one lacks. A knob that one side
    /// has no record of, as when another version or another architecture made the run, is unknown
    /// there.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |name: &str, left: Option<String>, right: Option<String>| {
            if left != right {
                let shown = |side: Option<String>| {
                    side.map_or(UNKNOWN.to_owned(), |value| Printable(&value).to_string())
                };
                let name = Printable(name).to_string();
                found.push(Difference { name, left: shown(left), right: shown(right) });
            }
        };
        for (name, of) in IDENTITY {
            compare(name, of(self), of(other));
        }
        if !same_memory(self.memory_bytes, other.memory_bytes) {
            compare("memory", memory(self.memory_bytes), memory(other.memory_bytes));
        }
        let (left, right) = command_lines(&self.command_line, &other.command_line);
        compare("command line", left, right);

        let mut names: Vec<&String> = self.knobs.keys().chain(other.knobs.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            compare(name, known(self.knobs.get(name)), known(other.knobs.get(name)));
        }
        found
    }
}

/// One field of a fingerprint; `None` where it is not known.
type Field = fn(&Fingerprint) -> Option<String>;

const IDENTITY: [(&str, Field); 9] = [
    (HOST_NAME, |host| text(&host.hostname)),
    ("architecture", |host| text(&host.architecture)),
    ("processor", |host| text(&host.cpu_model)),
    ("microcode", |host| known(Some(&host.microcode))),
    ("hypervisor", |host| Some(host.hypervisor.clone().unwrap_or_else(|| "none seen".to_owned()))),
    ("kernel", |host| text(&host.kernel)),
    ("kernel build", |host| text(&host.kernel_build)),
    ("CPUs online", |host| {
        (!host.cpus_online.is_empty()).then(|| CpuList(&host.cpus_online).to_string())
    }),
    ("CPUs isolated", |host| Some(CpuList(&host.cpus_isolated).to_string())),
];

fn text(field: &str) -> Option<String> {
    (!field.is_empty()).then(|| field.to_owned())
}

fn known(knob: Option<&Knob>) -> Option<String> {
    match knob {
        Some(Knob::Value(value)) => Some(value.clone()),
        Some(Knob::Unknown) | None => None,
    }
}

fn same_memory(left: u64, right: u64) -> bool {
    let most = left.max(right) as f64;
    left.abs_diff(right) as f64 <= most * MEMORY_TOLERANCE
}

fn memory(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| format!("{} MiB", bytes >> 20))
}

/// The words of either command line that the other one lacks; both whole where they hold the same
/// words in another order or number.
fn command_lines(left: &str, right: &str) -> (Option<String>, Option<String>) {
    if left == right || left.is_empty() || right.is_empty() {
        return (text(left), text(right));
    }
    let only = |these: &str, those: &str| {
        let lacking = |word: &&str| !those.split_whitespace().any(|other| other == *word);
        these.split_whitespace().filter(lacking).collect::<Vec<_>>().join(" ")
    };
    let (only_left, only_right) = (only(left, right), only(right, left));
    if only_left.is_empty() && only_right.is_empty() {
        return (text(left), text(right));
    }
    let shown =
        |words: String| Some(if words.is_empty() { "nothing more".to_owned() } else { words });
    (shown(only_left), shown(only_right))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::CpuId;

    fn host() -> Fingerprint {
        let value = |text: &str| Knob::Value(text.to_owned());
        Fingerprint {
            hostname: "box".to_owned(),
            kernel: "6.12.1".to_owned(),
            kernel_build: "#1 SMP".to_owned(),
            architecture: "x86_64".to_owned(),
            command_line: "quiet isolcpus=2-3 nohz_full=2-3".to_owned(),
            cpu_model: "Some Xeon".to_owned(),
            microcode: value("0x2b"),
            hypervisor: None,
            cpus_online: (0..4).map(CpuId).collect(),
            cpus_isolated: vec![CpuId(2), CpuId(3)],
            memory_bytes: 16 << 30,
            knobs: [("thp".to_owned(), value("never")), ("turbo".to_owned(), Knob::Unknown)].into(),
        }
    }

    fn told(left: &Fingerprint, right: &Fingerprint) -> Vec<String> {
        let line = |d: Difference| format!("{}: {} | {}", d.name, d.left, d.right);
        left.differences(right).into_iter().map(line).collect()
    }

    #[test]
    fn host_does_not_differ_from_itself() {
        assert_eq!(host().differences(&host()), []);
        assert_eq!(Fingerprint::default().differences(&Fingerprint::default()), []);
    }

    #[test]
    fn memory_is_the_same_up_to_a_hundredth_of_the_larger() {
        let with = |memory_bytes| Fingerprint { memory_bytes, ..host() };
        for (left, right, same) in
            [(9_900, 10_000, true), (10_000, 9_900, true), (9_899, 10_000, false)]
        {
            let told = told(&with(left << 20), &with(right << 20));
            assert_eq!(told.is_empty(), same, "{told:?}");
        }
    }

    #[test]
    fn a_command_line_that_one_side_does_not_tell_is_unknown_there() {
        let none = Fingerprint { command_line: String::new(), ..host() };
        let whole = host().command_line;
        assert_eq!(told(&none, &host()), [format!("command line: unknown | {whole}")]);
        assert_eq!(told(&host(), &none), [format!("command line: {whole} | unknown")]);
    }

    #[test]
    fn every_field_that_changed_is_named_with_both_values() {
        let mut later = host();
        later.hostname = "other".to_owned();
        later.kernel = "6.12.2".to_owned();
        later.kernel_build = "#2 SMP".to_owned();
        later.architecture = "aarch64".to_owned();
        later.cpu_model = "Neoverse-N1".to_owned();
        later.microcode = Knob::Value("0x2c".to_owned());
        later.hypervisor = Some("KVM".to_owned());
        later.cpus_online.pop();
        later.cpus_isolated.clear();
        later.memory_bytes = 8 << 30;
        later.command_line = "quiet nohz_full=3".to_owned();
        later.knobs.insert("thp".to_owned(), Knob::Value("always".to_owned()));
        assert_eq!(
            told(&host(), &later),
            [
                "host name: box | other",
                "architecture: x86_64 | aarch64",
                "processor: Some Xeon | Neoverse-N1",
                "microcode: 0x2b | 0x2c",
                "hypervisor: none seen | KVM",
                "kernel: 6.12.1 | 6.12.2",
                "kernel build: #1 SMP | #2 SMP",
                "CPUs online: 0-3 | 0-2",
                "CPUs isolated: 2-3 | none",
                "memory: 16384 MiB | 8192 MiB",
                "command line: isolcpus=2-3 nohz_full=2-3 | nohz_full=3",
                "thp: never | always",
            ]
        );
    }

    #[test]
    fn unknown_against_a_value_is_a_difference_and_unknown_on_both_sides_is_none() {
        let mut later = host();
        later.knobs.insert("turbo".to_owned(), Knob::Value("on".to_owned()));
        later.knobs.remove("thp");
        later.microcode = Knob::Unknown;
        later.kernel.clear();
        later.memory_bytes = 0;
        assert_eq!(
            told(&host(), &later),
            [
                "microcode: 0x2b | unknown",
                "kernel: 6.12.1 | unknown",
                "memory: 16384 MiB | unknown",
                "thp: never | unknown",
                "turbo: unknown | on",
            ]
        );
        later = host();
        later.knobs.remove("turbo");
        assert_eq!(told(&host(), &later), [] as [&str; 0]);
    }

    #[test]
    fn command_lines_in_another_order_are_told_whole() {
        let mut later = host();
        later.command_line = "isolcpus=2-3 quiet nohz_full=2-3".to_owned();
        assert_eq!(
            told(&host(), &later),
            ["command line: quiet isolcpus=2-3 nohz_full=2-3 | isolcpus=2-3 quiet nohz_full=2-3"]
        );
        later.command_line = "quiet isolcpus=2-3 nohz_full=2-3 mitigations=off".to_owned();
        assert_eq!(told(&host(), &later), ["command line: nothing more | mitigations=off"]);
    }

    #[test]
    fn memory_that_one_kernel_keeps_for_itself_is_no_difference() {
        let mut later = host();
        later.memory_bytes -= 40 << 20;
        assert_eq!(told(&host(), &later), [] as [&str; 0]);
    }

    #[test]
    fn values_of_a_foreign_run_reach_no_terminal_unescaped() {
        let mut later = host();
        later.knobs.insert("thp\u{1b}[31m".to_owned(), Knob::Value("x\u{202e}\n".to_owned()));
        for difference in host().differences(&later) {
            for text in [difference.name, difference.left, difference.right] {
                assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn differences_are_the_same_read_from_the_other_side(
            left in prop::collection::btree_map("[a-c]", prop::option::of("[x-z]"), 0..4),
            right in prop::collection::btree_map("[a-c]", prop::option::of("[x-z]"), 0..4),
        ) {
            let with = |knobs: std::collections::BTreeMap<String, Option<String>>| Fingerprint {
                knobs: knobs
                    .into_iter()
                    .map(|(name, value)| (name, value.map_or(Knob::Unknown, Knob::Value)))
                    .collect(),
                ..host()
            };
            let (left, right) = (with(left), with(right));
            let turned = right.differences(&left).into_iter().map(|d| Difference {
                name: d.name,
                left: d.right,
                right: d.left,
            });
            prop_assert_eq!(left.differences(&right), turned.collect::<Vec<_>>());
        }
    }
}
