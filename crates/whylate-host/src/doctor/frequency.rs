//! How fast the CPUs run, and whether that changes.

use std::collections::BTreeMap;

use whylate_model::doctor::{Evidence, Subject};
use whylate_model::{CpuId, CpuList};

use super::exam::{Check, Exam, Outcome, Tally, listed};
use super::view::Look;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "governor",
        subject: Subject::Frequency,
        why: "a governor that follows the load runs an idle CPU slowly: the first microseconds \
              after a wake-up are measured at a fraction of the speed",
        look: governor,
    },
    Check {
        name: "turbo",
        subject: Subject::Frequency,
        why: "with turbo the speed depends on temperature and on how many other cores are busy, \
              so the same work takes another time in the next run",
        look: turbo,
    },
];

const CPU: &str = "/sys/devices/system/cpu";

/// Highest plausible frequency in kHz: ten times the fastest processors.
const MAX_KHZ: u64 = 100_000_000;

fn khz(exam: &Exam<'_>, cpu: CpuId, file: &str) -> Look<u64> {
    exam.view.look(&format!("{}/{file}", exam.policies.directory(cpu)), |text| {
        text.parse().ok().filter(|khz| (1..=MAX_KHZ).contains(khz))
    })
}

fn governor(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    let mut tally = Tally::default();
    let mut by_governor: BTreeMap<String, Vec<CpuId>> = BTreeMap::new();
    let mut thrifty: Vec<CpuId> = Vec::new();
    for &cpu in &exam.cpus {
        let dir = exam.policies.directory(cpu);
        let word = |file: &str| exam.view.look(&format!("{dir}/{file}"), a_word);
        let Some(governor) =
            tally.take(exam.view.look(&format!("{dir}/scaling_governor"), a_governor))
        else {
            continue;
        };
        if governor != "performance" {
            if !fixed(exam, cpu) {
                by_governor.entry(governor).or_default().push(cpu);
            }
        } else if word("energy_performance_preference")
            .is_ok_and(|said| !matches!(said.value.as_str(), "performance" | "0"))
        {
            thrifty.push(cpu);
        }
    }
    for (governor, cpus) in &by_governor {
        let range = cpus.first().map_or_else(String::new, |cpu| range(exam, *cpu));
        tally.bad.push(format!("governor {governor} on CPU {}{range}", CpuList(cpus)));
    }
    let slow = !by_governor.is_empty();
    if !thrifty.is_empty() {
        tally
            .bad
            .push(format!("the energy preference of CPU {} is not performance", CpuList(&thrifty)));
    }
    let steady = format!("{} at a fixed speed or under governor performance", exam.measured());
    let what = if exam.host.hypervisor.is_some() {
        "the governor, which on a virtual machine is the hypervisor's,"
    } else {
        "the governor"
    };
    tally.conclude(what, steady, |bad| {
        let outcome =
            if slow { Outcome::spoils(listed(bad, 4)) } else { Outcome::note(listed(bad, 4)) };
        let file = if slow { "scaling_governor" } else { "energy_performance_preference" };
        outcome.run(format!("for f in {CPU}/cpu*/cpufreq/{file}; do echo performance > $f; done"))
    })
}

/// Governors of the kernel, and of the vendors' kernels that change it.
const GOVERNORS: [&str; 8] = [
    "performance",
    "powersave",
    "userspace",
    "ondemand",
    "conservative",
    "schedutil",
    "interactive",
    "walt",
];

fn a_governor(text: &str) -> Option<String> {
    GOVERNORS.contains(&text).then(|| text.to_owned())
}

/// One word of the kernel's: anything else in such a file is no preference.
fn a_word(text: &str) -> Option<String> {
    let fits = !text.is_empty()
        && text.len() <= 32
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    fits.then(|| text.to_owned())
}

/// Lowest and highest speed are the same: then the governor has nothing to choose.
fn fixed(exam: &Exam<'_>, cpu: CpuId) -> bool {
    let read = |file| khz(exam, cpu, file).map(|said| said.value).ok();
    match (read("scaling_min_freq"), read("scaling_max_freq")) {
        (Some(lowest), Some(highest)) => lowest == highest,
        _ => false,
    }
}

fn range(exam: &Exam<'_>, cpu: CpuId) -> String {
    let read = |file| khz(exam, cpu, file).map(|said| said.value / 1000).ok();
    match (read("scaling_min_freq"), read("scaling_max_freq")) {
        (Some(lowest), Some(highest)) => format!(" ({lowest} to {highest} MHz)"),
        _ => String::new(),
    }
}

/// What one source says of turbo.
struct Said {
    on: bool,
    off_by: String,
    evidence: Evidence,
}

fn turbo(exam: &Exam<'_>) -> Outcome {
    let mut said = Vec::new();
    let mut missing = Vec::new();
    let flag = |text: &str| match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    // Documentation/admin-guide/pm/intel_pstate.rst and cpufreq.rst. Where neither file is, nothing
    // follows: other drivers have turbo, too.
    for (path, on_is) in
        [(format!("{CPU}/intel_pstate/no_turbo"), false), (format!("{CPU}/cpufreq/boost"), true)]
    {
        match exam.view.look(&path, flag) {
            Ok(value) => said.push(Said {
                on: value.value == on_is,
                off_by: format!("echo {} > {path}", u8::from(!on_is)),
                evidence: value.evidence,
            }),
            Err(why) => missing.push(why.evidence),
        }
    }
    if said.iter().any(|one| one.on) && said.iter().any(|one| !one.on) {
        return Outcome::unknown("whether turbo is on is not known: what was read disagrees")
            .all_seen(said.into_iter().map(|one| one.evidence));
    }
    let requests: Vec<Said> = exam.cpus.iter().filter_map(|cpu| requested(exam, *cpu)).collect();
    let allowed = said.first().map(|one| one.on);
    let asked = (!requests.is_empty()).then(|| requests.iter().any(|one| one.on));
    // Allowed for the host and requested for the CPU; where only one of them shows, it decides.
    let on = match (allowed, asked) {
        (None, None) => {
            return Outcome::unknown(
                "whether turbo is on is not known: neither intel_pstate nor cpufreq says, and \
                 other drivers have it, too",
            )
            .all_seen(missing);
        }
        (allowed, asked) => allowed.unwrap_or(true) && asked.unwrap_or(true),
    };
    said.extend(requests);
    let off_by = said.first().map(|one| one.off_by.clone()).unwrap_or_default();
    let evidence = said.into_iter().map(|one| one.evidence);
    if on {
        Outcome::note("turbo is on").all_seen(evidence).run(off_by)
    } else {
        Outcome::fine("turbo is off").all_seen(evidence)
    }
}

/// Under acpi-cpufreq the state 1 MHz above the nominal one is the request for turbo: it is listed
/// first among the available frequencies, and in force when the policy reaches up to it.
fn requested(exam: &Exam<'_>, cpu: CpuId) -> Option<Said> {
    let dir = exam.policies.directory(cpu);
    let driver = exam.view.text(&format!("{dir}/scaling_driver")).ok()?;
    (driver.value == "acpi-cpufreq").then_some(())?;
    let path = format!("{dir}/scaling_available_frequencies");
    let listed = exam.view.look(&path, |text| {
        text.split_whitespace().map(|word| word.parse::<u64>().ok()).collect::<Option<Vec<_>>>()
    });
    let mut available = listed.ok()?.value;
    available.sort_unstable_by(|a, b| b.cmp(a));
    let (turbo, nominal) = (*available.first()?, *available.get(1)?);
    (turbo.checked_sub(1000) == Some(nominal)).then_some(())?;
    let most = khz(exam, cpu, "scaling_max_freq").ok()?;
    Some(Said {
        on: most.value >= turbo,
        off_by: format!(
            "for f in {CPU}/cpu*/cpufreq/scaling_max_freq; do echo {nominal} > $f; done"
        ),
        evidence: most.evidence,
    })
}
