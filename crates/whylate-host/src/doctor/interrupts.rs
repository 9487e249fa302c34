//! Where interrupts and received packets go.

use whylate_model::doctor::Subject;
use whylate_model::{CpuId, CpuList, Printable};

use super::exam::{Check, Exam, Outcome, Tally, listed, quoted};
use super::isolation::mask_of;
use super::view::{Said, seen};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "interrupt-affinity",
        subject: Subject::Interrupts,
        why: "each interrupt takes the CPU from the measured thread for a microsecond to tens of \
              them, and its softirq often for longer",
        look: affinity,
    },
    Check {
        name: "interrupt-default",
        subject: Subject::Interrupts,
        why: "a device that comes up or resets during the run requests its interrupts on these \
              CPUs",
        look: default_affinity,
    },
    Check {
        name: "irqbalance",
        subject: Subject::Interrupts,
        why: "irqbalance moves interrupts every ten seconds, back onto CPUs that were cleared of \
              them, too",
        look: irqbalance,
    },
    Check {
        name: "receive-steering",
        subject: Subject::Interrupts,
        why: "a port with receive steering hands packets to these CPUs by interprocessor \
              interrupts",
        look: receive_steering,
    },
];

/// A numbered row of `/proc/interrupts`.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    number: u32,
    counts: Vec<u64>,
    /// Chip, hardware number and handlers, fit to print.
    about: String,
}

impl Row {
    /// The handlers: what follows chip and hardware number.
    fn name(&self) -> &str {
        let mut words = self.about.splitn(3, ' ');
        words.nth(2).or_else(|| self.about.split(' ').next_back()).unwrap_or("")
    }

    /// An interrupt that each CPU has for itself, such as arm64's timer: hardware numbers below 32
    /// of the GIC are private to a CPU (Arm IHI 0048, INTIDs 0 to 31) and cannot be moved.
    fn private(&self) -> bool {
        let mut words = self.about.split(' ');
        let gic = words.next().is_some_and(|chip| chip.starts_with("GIC"));
        gic && words.next().and_then(|word| word.parse::<u32>().ok()).is_some_and(|irq| irq < 32)
    }
}

/// Columns and numbered rows; `None` when the first line names no CPU.
fn table(text: &str) -> Option<(Vec<CpuId>, Vec<Row>)> {
    let mut lines = text.lines();
    let header = lines.next()?.split_whitespace();
    let cpus: Option<Vec<CpuId>> =
        header.map(|name| name.strip_prefix("CPU")?.parse().ok().map(CpuId)).collect();
    let cpus = cpus.filter(|cpus| !cpus.is_empty())?;
    let row = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace();
        let counts: Option<Vec<u64>> =
            words.by_ref().take(cpus.len()).map(|count| count.parse().ok()).collect();
        let counts = counts.filter(|counts| counts.len() == cpus.len())?;
        let about = words.collect::<Vec<_>>().join(" ");
        let about = Printable(&about).to_string();
        Some(Row { number: number.trim().parse().ok()?, counts, about })
    };
    let rows = lines.filter_map(row).collect();
    Some((cpus, rows))
}

fn affinity(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let text = match exam.view.table("/proc/interrupts") {
        Ok(text) => text,
        Err(missing) => return Outcome::missing("which interrupts there are", &missing),
    };
    let Some((columns, rows)) = table(&text) else {
        return Outcome::unknown(
            "which interrupts there are is not known: /proc/interrupts names \
                                 no CPU in its first line",
        );
    };
    let mut tally = Tally::default();
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| !row.private()) {
        let Some(reach) = reach(exam, row.number, &mut tally) else { continue };
        let counted = columns.iter().zip(&row.counts).filter(|(cpu, _)| exam.is_measured(**cpu));
        let count = counted.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let phrase = format!("IRQ {} {} ({count} since boot)", row.number, row.name());
        found.push(Found { reach, count, phrase, number: row.number });
    }
    found.sort_by_key(|one| (one.reach, std::cmp::Reverse(one.count)));
    let goes: Vec<&Found> = found.iter().filter(|one| one.reach == Reach::Goes).collect();
    let may: Vec<&Found> = found.iter().filter(|one| one.reach == Reach::May).collect();
    tally.bad = [told(&goes, "goes to", "go to", exam), told(&may, "may go to", "may go to", exam)]
        .into_iter()
        .flatten()
        .collect();
    let fine = format!("no device's interrupt goes or may go to {}", exam.measured());
    if tally.evidence.is_empty() {
        tally
            .evidence
            .push(seen("/proc/irq/*", &format!("{} interrupts, all elsewhere", rows.len())));
    }
    let fired = goes.iter().any(|one| one.count > 0);
    let numbers: Vec<u32> = found.iter().map(|one| one.number).collect();
    tally.conclude("where interrupts go", fine, |bad| {
        let what = listed(bad, 2);
        let outcome = if fired { Outcome::spoils(what) } else { Outcome::note(what) };
        moved(outcome, exam, &numbers)
    })
}

/// Whether an interrupt comes to measured CPUs: as it is set up now, or as soon as somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Goes,
    May,
}

/// An interrupt that concerns the measured CPUs.
struct Found {
    reach: Reach,
    /// How often it came to them since boot.
    count: u64,
    phrase: String,
    number: u32,
}

fn told(found: &[&Found], one: &str, more: &str, exam: &Exam<'_>) -> Option<String> {
    let phrases: Vec<String> = found.iter().map(|one| one.phrase.clone()).collect();
    let verb = match found {
        [] => return None,
        [_] => format!("interrupt {one}"),
        _ => format!("interrupts {more}"),
    };
    let never = if found.iter().all(|one| one.count == 0) { "; none has come yet" } else { "" };
    let which = listed(&phrases, 6);
    Some(format!("{} {verb} {}: {which}{never}", found.len(), exam.measured()))
}

/// The effective mask says where an interrupt goes now; kernels without one leave it empty. The
/// other says where it may go: a reset, a CPU that goes offline or irqbalance is enough.
fn reach(exam: &Exam<'_>, number: u32, tally: &mut Tally) -> Option<Reach> {
    let mask = |name: &str| exam.view.cpu_list(&format!("/proc/irq/{number}/{name}"));
    let here = |said: &Said<Vec<CpuId>>| !exam.measured_of(&said.value).is_empty();
    let effective = mask("effective_affinity_list").ok().filter(|said| !said.value.is_empty());
    if let Some(said) = effective.as_ref().filter(|said| here(said)) {
        tally.evidence.push(said.evidence.clone());
        return Some(Reach::Goes);
    }
    let allowed = match mask("smp_affinity_list") {
        Ok(said) => said,
        Err(missing) => {
            tally.missing.push(missing.evidence);
            return None;
        }
    };
    here(&allowed).then(|| {
        let elsewhere = effective.map(|said| said.evidence);
        let reach = if elsewhere.is_some() { Reach::May } else { Reach::Goes };
        tally.evidence.push(allowed.evidence);
        tally.evidence.extend(elsewhere);
        reach
    })
}

/// Most interrupts that a remedy names in one command.
const MAX_NAMED: usize = 24;

fn moved(outcome: Outcome, exam: &Exam<'_>, numbers: &[u32]) -> Outcome {
    let elsewhere = exam.elsewhere();
    if elsewhere.is_empty() {
        return outcome.advise("measure fewer CPUs: none is left to take the interrupts");
    }
    let named: Vec<String> = numbers.iter().take(MAX_NAMED).map(u32::to_string).collect();
    let list = CpuList(&elsewhere);
    outcome
        .run(format!(
            "for i in {}; do echo {list} > /proc/irq/$i/smp_affinity_list; done",
            named.join(" ")
        ))
        .advise(format!(
            "queues that the kernel manages refuse this (EIO, EPERM); boot with: \
             isolcpus=managed_irq,domain,{}",
            CpuList(&exam.cpus)
        ))
        .advise("for one recording: whylate gaps --move-interrupts")
}

const DEFAULT: &str = "/proc/irq/default_smp_affinity";

fn default_affinity(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    match exam.view.cpu_mask(DEFAULT) {
        Err(missing) => Outcome::missing("where new interrupts go", &missing),
        Ok(said) => {
            let here = exam.measured_of(&said.value);
            if here.is_empty() {
                return Outcome::fine(format!("new interrupts keep off {}", exam.measured()))
                    .seen(said.evidence);
            }
            let outcome = Outcome::note(format!(
                "interrupts requested from now on may go to CPU {}",
                CpuList(&here)
            ))
            .seen(said.evidence);
            let elsewhere = exam.elsewhere();
            if elsewhere.is_empty() {
                return outcome.advise("measure fewer CPUs: none is left to take them");
            }
            outcome
                .run(format!("echo {} > {DEFAULT}", mask_of(&elsewhere)))
                .advise(format!("for good, boot with: irqaffinity={}", CpuList(&elsewhere)))
        }
    }
}

fn irqbalance(exam: &Exam<'_>) -> Outcome {
    if exam.processes.is_empty() {
        return Outcome::unknown("whether irqbalance runs is not known: no process can be seen")
            .seen(seen("/proc/PID/status", "absent"));
    }
    let running = exam.processes.iter().find(|process| process.name == "irqbalance");
    let Some(process) = running else {
        return Outcome::fine("irqbalance does not run").seen(seen(
            "/proc/PID/status",
            &format!("none of {} processes is called irqbalance", exam.processes.len()),
        ));
    };
    Outcome::note(format!("irqbalance runs as process {}", process.id))
        .seen(seen(&format!("/proc/{}/status", process.id), "Name: irqbalance"))
        .run("systemctl stop irqbalance")
        .advise(format!(
            "or keep it off these: IRQBALANCE_BANNED_CPULIST={} in its environment",
            CpuList(&exam.cpus)
        ))
}

fn receive_steering(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let mut tally = Tally::default();
    let mut remedies = Vec::new();
    let mut files = 0;
    for port in exam.view.names("/sys/class/net") {
        let queues = format!("/sys/class/net/{port}/queues");
        for queue in exam.view.names(&queues).into_iter().filter(|name| name.starts_with("rx-")) {
            let path = format!("{queues}/{queue}/rps_cpus");
            files += 1;
            let Some(mask) = tally.take(exam.view.cpu_mask(&path)) else { continue };
            let here = exam.measured_of(&mask);
            if !here.is_empty() {
                tally.bad.push(format!("{port} {queue} steers to CPU {}", CpuList(&here)));
                remedies.push(format!("echo 0 > {}", quoted(&path)));
            }
        }
    }
    if files == 0 {
        return Outcome::unknown("whether packets are steered is not known: no port shows a queue")
            .seen(seen("/sys/class/net/*/queues/rx-*/rps_cpus", "absent"));
    }
    let fine = format!("no port steers packets to {}", exam.measured());
    tally.conclude("whether packets are steered", fine, |bad| {
        remedies.into_iter().take(4).fold(Outcome::note(listed(bad, 4)), Outcome::run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_counts_per_column_and_names() {
        let text = "           CPU0       CPU2\n 36:  5  97639 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
                    LOC: 1 2 Local timer\nERR: 0\n  9: 1 x IO-APIC acpi\n";
        let (cpus, rows) = table(text).unwrap();
        assert_eq!(cpus, [CpuId(0), CpuId(2)]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].number, rows[0].counts.as_slice()), (36, &[5, 97_639][..]));
        assert_eq!(rows[0].name(), "virtio1-req.0");
        assert_eq!(table("rubbish\n"), None);
    }

    #[test]
    fn interrupts_private_to_a_cpu_are_told_from_others() {
        let row = |about: &str| Row { number: 1, counts: vec![], about: about.to_owned() };
        assert!(row("GICv3 27 Level arch_timer").private());
        assert!(row("GIC-0 27 Level arch_timer").private());
        assert!(!row("GICv3 64 Level eth0").private());
        assert!(!row("IR-PCI-MSI 27-edge eth0").private());
    }
}
