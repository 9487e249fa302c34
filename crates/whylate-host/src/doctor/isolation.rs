//! Who else may use the CPUs to be measured: the other thread of the core, the scheduler, the tick,
//! callbacks, the kernel's own work.

use whylate_model::doctor::Subject;
use whylate_model::{CpuId, CpuList};

use super::exam::{Check, Exam, Outcome, Tally, listed};
use super::view::{Look, seen};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "smt-siblings",
        subject: Subject::Isolation,
        why: "two threads of a core share its pipelines and caches: what runs on the one slows \
              the other down, and no event in the kernel tells",
        look: smt_siblings,
    },
    Check {
        name: "isolated-cpus",
        subject: Subject::Isolation,
        why: "on a CPU that is not isolated the scheduler may put any task at any time, and \
              balances load across it",
        look: isolated,
    },
    Check {
        name: "nohz-full",
        subject: Subject::Isolation,
        why: "the tick interrupts a busy thread HZ times a second, whatever its priority",
        look: nohz_full,
    },
    Check {
        name: "rcu-callbacks",
        subject: Subject::Isolation,
        why: "callbacks of other CPUs' making run in softirq on the measured one, in bursts",
        look: rcu_callbacks,
    },
    Check {
        name: "kernel-work",
        subject: Subject::Isolation,
        why: "work that the kernel has not bound to a CPU, writeback among it, may run on any CPU \
              of this mask",
        look: kernel_work,
    },
];

const CPU: &str = "/sys/devices/system/cpu";

fn smt_siblings(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    // Documentation/admin-guide/cputopology.rst, and Documentation/ABI/testing/
    // sysfs-devices-system-cpu: `active` is 1 when siblings are online.
    if let Ok(active) = exam.view.number(&format!("{CPU}/smt/active"))
        && active.value == 0
    {
        return Outcome::fine("no core has a second thread online").seen(active.evidence);
    }
    let mut tally = Tally::default();
    let mut idle_threads: Vec<CpuId> = Vec::new();
    let mut both_measured = false;
    for &cpu in &exam.cpus {
        let Some(core) = tally.take(core_of(exam, cpu)) else { continue };
        let others: Vec<CpuId> = core.into_iter().filter(|other| *other != cpu).collect();
        if others.is_empty() {
            continue;
        }
        tally.bad.push(format!("CPU {cpu} shares its core with CPU {}", CpuList(&others)));
        for other in others {
            if exam.is_measured(other) {
                both_measured = true;
            } else if !idle_threads.contains(&other) {
                idle_threads.push(other);
            }
        }
    }
    tally.conclude("who shares a core", "no measured CPU shares its core", |bad| {
        let mut outcome = Outcome::spoils(listed(bad, 4));
        for other in idle_threads {
            outcome = outcome.run(format!("echo 0 > {CPU}/cpu{other}/online"));
        }
        if both_measured {
            outcome = outcome.advise("measure one thread of each core only: choose by --cpus");
        }
        outcome.advise("or for the whole machine:").run(format!("echo off > {CPU}/smt/control"))
    })
}

fn core_of(exam: &Exam<'_>, cpu: CpuId) -> Look<Vec<CpuId>> {
    let topology = format!("{CPU}/cpu{cpu}/topology");
    // The name up to Linux 5.2.
    let older = || exam.view.cpu_list(&format!("{topology}/thread_siblings_list"));
    match exam.view.cpu_list(&format!("{topology}/core_cpus_list")) {
        Err(missing) if missing.absent => older(),
        look => look,
    }
}

fn isolated(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let file = match exam.view.cpu_list(&format!("{CPU}/isolated")) {
        Ok(file) => file,
        Err(missing) => return Outcome::missing("which CPUs are isolated", &missing),
    };
    let Some(topology) = &exam.topology else {
        return Outcome::unknown("which CPUs are isolated is not known: nor which there are")
            .seen(file.evidence);
    };
    // Isolated partitions of cpusets are in the topology, too.
    let shared = exam.measured_beside(topology.isolated());
    if shared.is_empty() {
        return Outcome::fine(format!("{}: isolated", exam.measured())).seen(file.evidence);
    }
    let asked = exam.parameter("isolcpus");
    let though = match asked {
        Some(list) => format!(", though the command line asks for isolcpus={list}"),
        None => String::new(),
    };
    let list = CpuList(&exam.cpus).to_string();
    let are = if shared.len() == 1 { "is" } else { "are" };
    Outcome::spoils(format!("CPU {} {are} not isolated{though}", CpuList(&shared)))
        .seen(file.evidence)
        .advise(format!("boot with: isolcpus=managed_irq,domain,{list}"))
        .advise("for one recording: whylate gaps --move-tasks moves what can be moved, and back")
}

fn nohz_full(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let rate = match exam.knob("hz") {
        Some(hz) => format!("{hz} times a second"),
        None => "at the kernel's HZ, which is not known".to_owned(),
    };
    let list = CpuList(&exam.cpus).to_string();
    match exam.view.cpu_list(&format!("{CPU}/nohz_full")) {
        Ok(said) => {
            let ticking = exam.measured_beside(&said.value);
            if ticking.is_empty() {
                return Outcome::fine(format!("{}: no tick when busy", exam.measured()))
                    .seen(said.evidence);
            }
            Outcome::note(format!("the tick interrupts CPU {} {rate}", CpuList(&ticking)))
                .seen(said.evidence)
                .advise(format!("boot with: nohz_full={list}"))
        }
        // The file is there exactly where the option is built in: drivers/base/cpu.c.
        Err(missing) => match exam.not_built("CONFIG_NO_HZ_FULL") {
            Some(evidence) => Outcome::note(format!(
                "the tick interrupts {} {rate}; this kernel is built without NO_HZ_FULL",
                exam.measured()
            ))
            .seen(evidence)
            .advise("run a kernel with CONFIG_NO_HZ_FULL, and boot it with nohz_full="),
            None => Outcome::missing("whether the tick stops on a busy CPU", &missing),
        },
    }
}

fn rcu_callbacks(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let list = CpuList(&exam.cpus).to_string();
    let remedy = format!("boot with: rcu_nocbs={list}");
    if exam.command_line.is_none() {
        return Outcome::unknown("where RCU callbacks run is not known: no /proc/cmdline");
    }
    let asked = exam.parameter("rcu_nocbs");
    if let Some(evidence) = exam.not_built("CONFIG_RCU_NOCB_CPU") {
        return Outcome::note(format!("RCU callbacks run on {}", exam.measured()))
            .seen(evidence)
            .advise("run a kernel with CONFIG_RCU_NOCB_CPU, and boot it with rcu_nocbs=");
    }
    // Documentation/admin-guide/kernel-parameters.txt: CPUs of nohz_full= have their callbacks
    // offloaded as well.
    let nohz = exam.view.cpu_list(&format!("{CPU}/nohz_full")).map(|said| said.value);
    let mut offloaded = nohz.unwrap_or_default();
    let evidence = match asked {
        Some("all") => {
            return Outcome::fine("RCU callbacks of all CPUs are offloaded")
                .seen(seen("/proc/cmdline", "rcu_nocbs=all"));
        }
        Some(words) => {
            let evidence = seen("/proc/cmdline", &format!("rcu_nocbs={words}"));
            match super::view::cpu_list(words) {
                Some(more) => offloaded.extend(more),
                None => {
                    return Outcome::unknown(format!(
                        "where RCU callbacks run is not known: the list `{}` is not understood",
                        evidence.said
                    ))
                    .seen(evidence);
                }
            }
            evidence
        }
        None => seen("/proc/cmdline", "no rcu_nocbs="),
    };
    let by_default = exam.option("CONFIG_RCU_NOCB_CPU_DEFAULT_ALL") == Some("y");
    let here = exam.measured_beside(&offloaded);
    if here.is_empty() || (by_default && asked.is_none()) {
        Outcome::fine(format!("RCU callbacks of {} are offloaded", exam.measured())).seen(evidence)
    } else {
        Outcome::note(format!("RCU callbacks run on CPU {}", CpuList(&here)))
            .seen(evidence)
            .advise(remedy)
    }
}

/// Masks of unbound work, and what takes it.
const WORK: [&str; 2] =
    ["/sys/devices/virtual/workqueue/cpumask", "/sys/devices/virtual/workqueue/writeback/cpumask"];

fn kernel_work(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let mut tally = Tally::default();
    let mut remedies = Vec::new();
    for path in WORK {
        let Some(mask) = tally.take(exam.view.cpu_mask(path)) else { continue };
        let here = exam.measured_of(&mask);
        if !here.is_empty() {
            tally.bad.push(format!("{path} holds CPU {}", CpuList(&here)));
            remedies.push(format!("echo {} > {path}", mask_of(&exam.elsewhere())));
        }
    }
    let fine = format!("unbound kernel work keeps off {}", exam.measured());
    let nowhere = exam.elsewhere().is_empty();
    tally.conclude("where unbound kernel work runs", fine, |bad| {
        let mut outcome = Outcome::note(listed(bad, 2));
        if nowhere {
            return outcome.advise("measure fewer CPUs: none is left for the kernel's work");
        }
        for line in remedies {
            outcome = outcome.run(line);
        }
        outcome
    })
}

/// A mask as the kernel reads it: groups of 32 bits in hexadecimal, the highest first.
pub(super) fn mask_of(cpus: &[CpuId]) -> String {
    let highest = cpus.iter().map(|cpu| cpu.0 / 32).max().unwrap_or(0);
    let words = (0..=highest).rev().map(|place| {
        let bits = cpus.iter().filter(|cpu| cpu.0 / 32 == place);
        bits.fold(0_u32, |word, cpu| word | 1 << (cpu.0 % 32))
    });
    let groups = words.enumerate().map(|(index, word)| match index {
        0 => format!("{word:x}"),
        _ => format!("{word:08x}"),
    });
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::view::cpu_mask;

    #[test]
    fn masks_read_back_as_the_cpus_they_were_made_of() {
        for list in [vec![0], vec![0, 31, 32], vec![5, 64, 100], vec![]] {
            let cpus: Vec<CpuId> = list.into_iter().map(CpuId).collect();
            assert_eq!(cpu_mask(&mask_of(&cpus)), Some(cpus));
        }
    }
}
