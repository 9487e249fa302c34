//! What the kernel does to memory behind a program's back.

use whylate_model::doctor::Subject;

use super::exam::{Check, Exam, Outcome};
use super::view::{Missing, seen};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "transparent-hugepages",
        subject: Subject::Memory,
        why: "khugepaged and page faults move and clear 2 MiB at a time, and each change sends \
              interrupts to the CPUs that use the memory",
        look: hugepages,
    },
    Check {
        name: "same-page-merging",
        subject: Subject::Memory,
        why: "a thread of the kernel reads memory and makes equal pages one: the next write to \
              such a page faults",
        look: merging,
    },
    Check {
        name: "numa-balancing",
        subject: Subject::Memory,
        why: "the kernel unmaps pages to see who uses them: page faults in a program that has \
              touched everything beforehand",
        look: numa_balancing,
    },
    Check {
        name: "swap",
        subject: Subject::Memory,
        why: "memory that is not locked can be written out, and its next use waits for a disk",
        look: swap,
    },
];

/// What follows where the file is missing: nothing, unless the kernel is known to lack the feature.
fn without(exam: &Exam<'_>, option: &str, what: &str, missing: &Missing) -> Outcome {
    match exam.not_built(option) {
        Some(evidence) if missing.absent => {
            Outcome::fine(format!("{what}: not built into this kernel")).seen(evidence)
        }
        _ => Outcome::missing(what, missing),
    }
}

fn hugepages(exam: &Exam<'_>) -> Outcome {
    const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let said = match exam.view.chosen(FILE) {
        Ok(said) => said,
        Err(missing) => {
            return without(exam, "CONFIG_TRANSPARENT_HUGEPAGE", "the use of huge pages", &missing);
        }
    };
    // Documentation/admin-guide/mm/transhuge.rst
    match said.value.as_str() {
        "always" => Outcome::spoils("transparent huge pages are given to every program")
            .seen(said.evidence)
            .run(format!("echo madvise > {FILE}")),
        "madvise" => Outcome::fine("huge pages go only to programs that ask").seen(said.evidence),
        "never" => Outcome::fine("transparent huge pages are off").seen(said.evidence),
        _ => Outcome::unknown("the use of huge pages is not known: no such mode is known")
            .seen(said.evidence),
    }
}

fn merging(exam: &Exam<'_>) -> Outcome {
    const FILE: &str = "/sys/kernel/mm/ksm/run";
    // Documentation/admin-guide/mm/ksm.rst: 0 stopped, 1 running, 2 stopped and all unmerged.
    match exam.view.number(FILE) {
        Err(missing) => without(exam, "CONFIG_KSM", "same-page merging", &missing),
        Ok(said) => match said.value {
            0 | 2 => Outcome::fine("same-page merging is stopped").seen(said.evidence),
            1 => Outcome::spoils("same-page merging runs")
                .seen(said.evidence)
                .run(format!("echo 2 > {FILE}"))
                .advise("and stop what starts it:")
                .run("systemctl disable --now ksmtuned ksm"),
            _ => Outcome::unknown("whether same-page merging runs is not known: no such state")
                .seen(said.evidence),
        },
    }
}

fn numa_balancing(exam: &Exam<'_>) -> Outcome {
    const FILE: &str = "/proc/sys/kernel/numa_balancing";
    // Documentation/admin-guide/sysctl/kernel.rst: 0 off, 1 normal, 2 tiering, or both.
    match exam.view.number(FILE) {
        Err(missing) => {
            without(exam, "CONFIG_NUMA_BALANCING", "automatic NUMA balancing", &missing)
        }
        Ok(said) => match said.value {
            0 => Outcome::fine("automatic NUMA balancing is off").seen(said.evidence),
            1..=3 => Outcome::spoils("automatic NUMA balancing is on")
                .seen(said.evidence)
                .run("sysctl kernel.numa_balancing=0"),
            _ => Outcome::unknown("whether NUMA balancing is on is not known: no such mode")
                .seen(said.evidence),
        },
    }
}

/// A line of `/proc/swaps`.
struct Area {
    name: String,
    used_kib: u64,
}

fn swap(exam: &Exam<'_>) -> Outcome {
    let text = match exam.view.table("/proc/swaps") {
        Ok(text) => text,
        Err(missing) => return without(exam, "CONFIG_SWAP", "swap", &missing),
    };
    let mut lines = text.lines();
    let header = lines.next().is_some_and(|line| line.starts_with("Filename"));
    let areas: Option<Vec<Area>> = lines.map(area).collect();
    let Some(areas) = areas.filter(|_| header) else {
        return Outcome::unknown(
            "whether there is swap is not known: /proc/swaps is not understood",
        )
        .seen(seen("/proc/swaps", &text));
    };
    let Some(first) = areas.first() else {
        return Outcome::fine("there is no swap").seen(seen("/proc/swaps", "no area"));
    };
    let used: u64 = areas.iter().map(|area| area.used_kib).fold(0, u64::saturating_add);
    let evidence = seen("/proc/swaps", &format!("{}, {used} KiB used", first.name));
    let outcome = if used > 0 {
        Outcome::spoils(format!("{} MiB of memory are swapped out", used.div_ceil(1024)))
    } else {
        Outcome::note(format!("swap is on ({} areas) and unused", areas.len()))
    };
    outcome.seen(evidence).run("swapoff -a")
}

/// `/dev/dm-1 partition 8388604 0 -2`; blanks in names are written as `\040`.
fn area(line: &str) -> Option<Area> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [name, _kind, size, used, _priority] = fields[..] else { return None };
    let (size, used): (u64, u64) = (size.parse().ok()?, used.parse().ok()?);
    (used <= size).then(|| Area { name: name.to_owned(), used_kib: used })
}
