//! Which host this is: under a hypervisor, and the one of the last run?

use whylate_model::doctor::Subject;
use whylate_model::host::Difference;

use super::exam::{Check, Exam, Outcome, Tally, listed, quoted};
use super::view::seen;
use crate::last_run::Recall;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "hypervisor",
        subject: Subject::Identity,
        why: "under a hypervisor time goes missing without any event in this kernel, and \
              neighbours change from run to run",
        look: hypervisor,
    },
    Check {
        name: "steal",
        subject: Subject::Identity,
        why: "the hypervisor itself says that it gave these CPUs to others",
        look: steal,
    },
    Check {
        name: "host-changed",
        subject: Subject::Identity,
        why: "a kernel, a microcode or a setting that changed overnight changes the numbers, and \
              the run before it is no baseline any more",
        look: changed,
    },
];

fn hypervisor(exam: &Exam<'_>) -> Outcome {
    let text = match exam.view.table("/proc/cpuinfo") {
        Ok(text) => text,
        Err(missing) => return Outcome::missing("whether a hypervisor lies below", &missing),
    };
    let flags = text.lines().find(|line| line.starts_with("flags"));
    let flagged =
        flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    if let Some(name) = &exam.host.hypervisor {
        return Outcome::spoils(format!("this is a virtual machine ({name})"))
            .seen(seen("/proc/cpuinfo", if flagged { "flag hypervisor" } else { "no such flag" }))
            .advise("give the guest whole cores: pin its virtual CPUs, one to each, where the hypervisor runs")
            .advise("repeat runs over hours, and compare whole sets of them, never single runs");
    }
    // CPUID 1, ecx bit 31: set by every hypervisor that does not hide itself.
    let named = ["/sys/class/dmi/id/sys_vendor", "/proc/device-tree/model"];
    let firmware = named.iter().find_map(|path| exam.view.text(path).ok());
    match (flags, firmware) {
        (Some(_), _) => Outcome::fine("no hypervisor shows itself")
            .seen(seen("/proc/cpuinfo", "no flag hypervisor")),
        (None, Some(said)) => Outcome::fine("no hypervisor shows itself").seen(said.evidence),
        (None, None) => Outcome::unknown("whether a hypervisor lies below is not known")
            .seen(seen("/proc/cpuinfo", "no line of flags"))
            .seen(seen("/sys/class/dmi/id/sys_vendor", "absent")),
    }
}

/// A share that cannot be the rounding of a tick.
const MUCH: f64 = 0.001;

fn steal(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let text = match exam.view.table("/proc/stat") {
        Ok(text) => text,
        Err(missing) => return Outcome::missing("how much time was stolen", &missing),
    };
    let mut tally = Tally::default();
    let mut most = 0.0_f64;
    for cpu in &exam.cpus {
        let Some((stolen, all)) = stolen(&text, cpu.0) else {
            tally.missing.push(seen("/proc/stat", &format!("no steal of CPU {cpu}")));
            continue;
        };
        let share = stolen as f64 / all.max(1) as f64;
        tally.evidence.push(seen("/proc/stat", &format!("cpu{cpu}: {stolen} of {all} ticks")));
        if stolen > 0 {
            most = most.max(share);
            tally.bad.push(format!("CPU {cpu} {:.3} %", share * 100.0));
        }
    }
    if tally.bad.is_empty() && tally.missing.is_empty() && exam.host.hypervisor.is_some() {
        return Outcome::unknown(
            "whether time was stolen is not known: the hypervisor says of none, and one that \
             keeps no account of it says the same",
        )
        .all_seen(tally.evidence);
    }
    tally.conclude("how much time was stolen", "no time was stolen since boot", |bad| {
        let finding = format!("time stolen since boot: {}", listed(bad, 6));
        let outcome = if most >= MUCH { Outcome::spoils(finding) } else { Outcome::note(finding) };
        outcome.advise("ask for dedicated cores, or move to a machine that is not shared")
    })
}

/// Ticks of `cpuN` that were stolen, and all of them: user nice system idle iowait irq softirq
/// steal (proc_stat(5)). Guest time is in user time already.
fn stolen(text: &str, cpu: u32) -> Option<(u64, u64)> {
    let name = format!("cpu{cpu}");
    let mut words = text
        .lines()
        .map(str::split_whitespace)
        .find_map(|mut words| (words.next() == Some(name.as_str())).then_some(words))?;
    let ticks: Option<Vec<u64>> = words.by_ref().take(8).map(|word| word.parse().ok()).collect();
    let ticks = ticks.filter(|ticks| ticks.len() == 8)?;
    Some((ticks[7], ticks.iter().fold(0_u64, |sum, tick| sum.saturating_add(*tick))))
}

/// What cannot change without the numbers of a run meaning something else; of the rest, a setting
/// may matter or not.
const WEIGHTY: [&str; 8] = [
    "architecture",
    "processor",
    "microcode",
    "hypervisor",
    "kernel",
    "kernel build",
    "CPUs online",
    "command line",
];

fn changed(exam: &Exam<'_>) -> Outcome {
    const WHAT: &str = "whether the machine changed since the last recording is not known";
    let last = match exam.last {
        None => {
            return Outcome::unknown(format!(
                "{WHAT}: what was recorded on the collected machine is not kept here; name a run of \
                 it with --diff"
            ));
        }
        Some(Recall::Nothing { path }) => {
            return Outcome::unknown(format!("{WHAT}: none is remembered"))
                .seen(seen(path, "absent"));
        }
        Some(Recall::Unreadable { path, why }) => {
            return Outcome::unknown(format!("{WHAT}: what is remembered of it cannot be read"))
                .seen(seen(path, why))
                .advise("it is for the user who recorded:")
                .run(format!("ls -ld {}", quoted(path)));
        }
        Some(Recall::Rubbish { path, why }) => {
            return Outcome::unknown(format!("{WHAT}: what is remembered of it is damaged"))
                .seen(seen(path, why))
                .run(format!("rm {}", quoted(path)));
        }
        Some(Recall::Last(last)) => last,
    };
    let differences = last.host.differences(&exam.host);
    let source = format!("the last recording, {}", last.run);
    if differences.is_empty() {
        let whose = if exam.host.hypervisor.is_some() { " that this guest sees" } else { "" };
        return Outcome::fine(format!("nothing{whose} changed since the last recording"))
            .seen(seen(&source, "the same machine"));
    }
    let told: Vec<String> = differences.iter().map(words).collect();
    let weighty = differences.iter().any(|one| WEIGHTY.contains(&one.name.as_str()));
    let finding = format!("since the last recording: {}", listed(&told, 6));
    let outcome = if weighty { Outcome::spoils(finding) } else { Outcome::note(finding) };
    outcome
        .all_seen(
            differences.iter().map(|one| {
                seen(&source, &format!("{}: {}, now {}", one.name, one.left, one.right))
            }),
        )
        .advise("record a new baseline before you compare")
}

fn words(difference: &Difference) -> String {
    let Difference { name, left, right } = difference;
    format!("{name} from {left} to {right}")
}
