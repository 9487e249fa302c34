//! Clocks, watchdogs and services of the kernel.

use whylate_model::doctor::Subject;
use whylate_model::{CpuList, Printable};

use super::exam::{Check, Exam, Outcome, listed};
use super::view::{Missing, seen};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "clocksource",
        subject: Subject::Kernel,
        why: "clock_gettime by another source than the cycle counter costs up to microseconds, \
              and the kernel has usually dropped the counter for being unsteady",
        look: clocksource,
    },
    Check {
        name: "cycle-counter",
        subject: Subject::Kernel,
        why: "a counter that changes its rate or stops in idle states measures no time",
        look: counter,
    },
    Check {
        name: "nmi-watchdog",
        subject: Subject::Kernel,
        why: "it takes a performance counter on each CPU and interrupts every few seconds, even \
              where interrupts are off",
        look: nmi_watchdog,
    },
    Check {
        name: "lockup-watchdog",
        subject: Subject::Kernel,
        why: "it runs a timer and wakes a thread of the highest priority on each CPU of its mask \
              every few seconds",
        look: lockup_watchdog,
    },
    Check {
        name: "audit",
        subject: Subject::Kernel,
        why: "with auditing every system call takes the slow way in and out",
        look: audit,
    },
    Check {
        name: "mitigations",
        subject: Subject::Kernel,
        why: "they are paid at every entry into the kernel, and a microcode update changes them: \
              numbers with and without are not comparable",
        look: mitigations,
    },
    Check {
        name: "microcode",
        subject: Subject::Kernel,
        why: "an erratum that is mended, or not, changes what instructions cost",
        look: microcode,
    },
];

fn clocksource(exam: &Exam<'_>) -> Outcome {
    const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
    let said = match exam.view.text(&format!("{DIR}/current_clocksource")) {
        Ok(said) => said,
        Err(missing) => return Outcome::missing("the clock source", &missing),
    };
    let available = exam.view.text(&format!("{DIR}/available_clocksource"));
    let offers = |name: &str| {
        available.as_ref().is_ok_and(|list| list.value.split_whitespace().any(|one| one == name))
    };
    let name = said.value.clone();
    match name.as_str() {
        "tsc" | "arch_sys_counter" => {
            Outcome::fine(format!("the kernel's clock source is {name}")).seen(said.evidence)
        }
        "kvm-clock" | "xen" | "hyperv_clocksource_tsc_page" => {
            let outcome = Outcome::note(format!(
                "the kernel's clock source is {name}, a clock that the hypervisor keeps"
            ))
            .seen(said.evidence);
            if offers("tsc") {
                outcome.run(format!("echo tsc > {DIR}/current_clocksource"))
            } else {
                outcome
            }
        }
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" | "hyperv_clocksource_msr" => {
            let outcome =
                Outcome::spoils(format!("the kernel's clock source is {name}")).seen(said.evidence);
            if offers("tsc") {
                outcome.run(format!("echo tsc > {DIR}/current_clocksource"))
            } else {
                outcome.advise("find out why:").run("dmesg | grep -i -e tsc -e clocksource")
            }
        }
        _ => Outcome::unknown("what the clock source costs is not known: no such source is known")
            .seen(said.evidence),
    }
}

fn counter(exam: &Exam<'_>) -> Outcome {
    let text = match exam.view.table("/proc/cpuinfo") {
        Ok(text) => text,
        Err(missing) => return Outcome::missing("what the cycle counter promises", &missing),
    };
    let Some(flags) = field(&text, "flags").next() else {
        return if field(&text, "CPU implementer").next().is_some() {
            // Arm ARM, the Generic Timer: a system counter of fixed frequency, always on.
            Outcome::fine("the architecture promises a steady counter")
                .seen(seen("/proc/cpuinfo", "an Arm processor"))
        } else {
            Outcome::unknown("what the cycle counter promises is not known: no flags")
                .seen(seen("/proc/cpuinfo", "no line of flags"))
        };
    };
    let lacking: Vec<String> = ["constant_tsc", "nonstop_tsc"]
        .into_iter()
        .filter(|flag| !flags.split_whitespace().any(|word| word == *flag))
        .map(str::to_owned)
        .collect();
    if lacking.is_empty() {
        return Outcome::fine("the cycle counter is steady and does not stop")
            .seen(seen("/proc/cpuinfo", "constant_tsc nonstop_tsc"));
    }
    Outcome::spoils(format!("the processor does not promise {}", lacking.join(" and ")))
        .seen(seen("/proc/cpuinfo", &format!("flags without {}", lacking.join(", "))))
        .advise(
            "measure on another machine; on a guest, have the hypervisor pass the flags (invtsc)",
        )
}

/// Values of the lines `name : value` of `/proc/cpuinfo`.
fn field<'a>(cpuinfo: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    cpuinfo.lines().filter_map(move |line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn nmi_watchdog(exam: &Exam<'_>) -> Outcome {
    const FILE: &str = "/proc/sys/kernel/nmi_watchdog";
    match flag(exam, FILE) {
        Err(missing) => Outcome::missing("whether the NMI watchdog runs", &missing),
        Ok((false, evidence)) => Outcome::fine("the NMI watchdog is off").seen(evidence),
        Ok((true, evidence)) => Outcome::note("the NMI watchdog is on")
            .seen(evidence)
            .run("sysctl kernel.nmi_watchdog=0"),
    }
}

type Flag = Result<(bool, whylate_model::doctor::Evidence), Missing>;

fn flag(exam: &Exam<'_>, path: &str) -> Flag {
    let said = exam.view.look(path, |text| match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    })?;
    Ok((said.value, said.evidence))
}

fn lockup_watchdog(exam: &Exam<'_>) -> Outcome {
    // Documentation/admin-guide/lockup-watchdogs.rst
    const FILE: &str = "/proc/sys/kernel/soft_watchdog";
    const MASK: &str = "/proc/sys/kernel/watchdog_cpumask";
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let on = match flag(exam, FILE) {
        Ok((on, evidence)) if on => evidence,
        Ok((_, evidence)) => return Outcome::fine("the lockup watchdog is off").seen(evidence),
        Err(missing) => return Outcome::missing("whether the lockup watchdog runs", &missing),
    };
    let mask = match exam.view.cpu_list(MASK) {
        Ok(mask) => mask,
        Err(missing) => {
            return Outcome::missing("which CPUs the lockup watchdog watches", &missing).seen(on);
        }
    };
    let here = exam.measured_of(&mask.value);
    if here.is_empty() {
        return Outcome::fine(format!("the lockup watchdog keeps off {}", exam.measured()))
            .all_seen([on, mask.evidence]);
    }
    let elsewhere = exam.elsewhere();
    let narrowed = if elsewhere.is_empty() {
        "sysctl kernel.soft_watchdog=0".to_owned()
    } else {
        format!("sysctl kernel.watchdog_cpumask={}", CpuList(&elsewhere))
    };
    Outcome::note(format!("the lockup watchdog watches CPU {}", CpuList(&here)))
        .all_seen([on, mask.evidence])
        .run(narrowed)
}

fn audit(exam: &Exam<'_>) -> Outcome {
    const DUMP: &str = "/commands/auditctl-s.txt";
    if let Some(evidence) = exam.not_built("CONFIG_AUDIT") {
        return Outcome::fine("auditing is not built into this kernel").seen(evidence);
    }
    // Documentation/admin-guide/kernel-parameters.txt: 0 also cannot be enabled until reboot.
    if let Some(asked @ ("0" | "off")) = exam.parameter("audit") {
        return Outcome::fine("auditing is off since boot")
            .seen(seen("/proc/cmdline", &format!("audit={asked}")));
    }
    let on = |evidence| {
        let outcome = Outcome::note("auditing is on").seen(evidence).run("auditctl -e 0");
        outcome.advise("for good, boot with: audit=0")
    };
    let enabled = exam.view.look(DUMP, |text| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("enabled "))?;
        line.trim().parse::<u32>().ok().filter(|enabled| *enabled <= 2)
    });
    match enabled {
        Ok(said) if said.value == 0 => {
            return Outcome::fine("auditing is off").seen(seen(DUMP, "enabled 0"));
        }
        Ok(said) => return on(seen(DUMP, &format!("enabled {}", said.value))),
        Err(_) => {}
    }
    match exam.processes.iter().find(|process| process.name == "auditd") {
        Some(daemon) => on(seen(&format!("/proc/{}/status", daemon.id), "Name: auditd")),
        None => Outcome::unknown(
            "whether auditing is on is not known: no auditd runs, and only auditctl -s tells",
        )
        .seen(seen(DUMP, "absent or not understood")),
    }
}

fn mitigations(exam: &Exam<'_>) -> Outcome {
    const DIR: &str = "/sys/devices/system/cpu/vulnerabilities";
    let (mut mitigated, mut open, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let names = exam.view.names(DIR);
    for name in &names {
        let shown = Printable(name).to_string();
        match exam.view.text(&format!("{DIR}/{name}")) {
            // Documentation/ABI/testing/sysfs-devices-system-cpu
            Ok(said) if said.value.starts_with("Not affected") => {}
            Ok(said) if said.value.starts_with("Mitigation") => mitigated.push(shown),
            Ok(said) if said.value.contains("Mitigation") => mitigated.push(shown),
            Ok(said) if said.value.starts_with("Vulnerable") => open.push(shown),
            Ok(said) => missing.push(said.evidence),
            Err(why) => missing.push(why.evidence),
        }
    }
    if names.is_empty() {
        return Outcome::unknown("which mitigations are in force is not known")
            .seen(seen(DIR, "absent"));
    }
    let evidence = seen(
        DIR,
        &format!("{} mitigated, {} vulnerable, of {}", mitigated.len(), open.len(), names.len()),
    );
    if mitigated.is_empty() && open.is_empty() {
        if let Some(first) = missing.first() {
            let why = format!(
                "which mitigations are in force is not known: {} is {}",
                first.source, first.said
            );
            return Outcome::unknown(why).all_seen(missing);
        }
        return Outcome::fine("the processor is not affected by what this kernel knows")
            .seen(evidence);
    }
    let mut told = Vec::new();
    if !mitigated.is_empty() {
        told.push(format!("mitigations are in force for {}", mitigated.join(", ")));
    }
    if !open.is_empty() {
        told.push(format!("the processor is vulnerable to {}", open.join(", ")));
    }
    let outcome = Outcome::note(listed(&told, 2)).seen(evidence).all_seen(missing);
    if mitigated.is_empty() {
        outcome.advise("update the microcode and the kernel, and measure again afterwards")
    } else {
        outcome.advise(
            "compare only runs with the same ones; mitigations=off at boot is for machines that \
             run no foreign code",
        )
    }
}

fn microcode(exam: &Exam<'_>) -> Outcome {
    const WHAT: &str = "the microcode";
    let text = match exam.view.table("/proc/cpuinfo") {
        Ok(text) => text,
        Err(missing) => return Outcome::missing(WHAT, &missing),
    };
    let mut revisions: Vec<u64> = Vec::new();
    for said in field(&text, "microcode") {
        let digits = said.strip_prefix("0x").unwrap_or(said);
        let Ok(revision) = u64::from_str_radix(digits, 16) else {
            return Outcome::unknown("the microcode is not known: its revision is no number")
                .seen(seen("/proc/cpuinfo", said));
        };
        revisions.push(revision);
    }
    revisions.sort_unstable();
    revisions.dedup();
    let told: Vec<String> = revisions.iter().map(|revision| format!("{revision:#x}")).collect();
    let evidence = seen("/proc/cpuinfo", &format!("microcode {}", told.join(", ")));
    match revisions[..] {
        [] => Outcome::unknown("the microcode is not known: the processor shows no revision")
            .seen(seen("/proc/cpuinfo", "no line of microcode")),
        // What hypervisors show instead of the host's.
        [0 | 1 | 0xffff_ffff] => {
            Outcome::unknown("the microcode is not known: the hypervisor does not show it")
                .seen(evidence)
        }
        [_] => old_microcode(exam, &told).seen(evidence),
        _ => Outcome::spoils(format!("the CPUs have different microcode: {}", told.join(", ")))
            .seen(evidence)
            .advise("update the firmware or the microcode package, and reboot"),
    }
}

/// Linux 6.16 and later compare the revision with a list of their own.
fn old_microcode(exam: &Exam<'_>, told: &[String]) -> Outcome {
    const FILE: &str = "/sys/devices/system/cpu/vulnerabilities/old_microcode";
    match exam.view.text(FILE) {
        Ok(said) if said.value.starts_with("Vulnerable") => Outcome::note(format!(
            "microcode {} is older than what this kernel knows",
            told.join(", ")
        ))
        .seen(said.evidence)
        .advise("update the firmware or the microcode package, and reboot"),
        _ => Outcome::fine(format!("all CPUs have microcode {}", told.join(", "))),
    }
}
