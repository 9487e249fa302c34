//! What the CPUs do when there is nothing to do.

use std::collections::BTreeMap;

use whylate_model::doctor::Subject;
use whylate_model::{CpuId, CpuList, Printable};

use super::exam::{Check, Exam, Outcome, Tally, listed};
use super::view::seen;

pub(super) const CHECKS: &[Check] = &[Check {
    name: "idle-states",
    subject: Subject::Idle,
    why: "waking from a deep state takes its exit latency, tens to hundreds of microseconds, and \
          caches may be cold then",
    look: idle_states,
}];

/// States that are left within this are as good as none: halting alone takes one or two.
const HARMLESS_US: u64 = 2;

/// States that take longer than this show in every wake-up.
const DEEP_US: u64 = 10;

/// The longest exit latency that is taken for one: a second.
const MAX_LATENCY_US: u64 = 1_000_000;

/// The kernel has room for ten (CPUIDLE_STATE_MAX).
const MAX_STATES: u32 = 32;

fn idle_states(exam: &Exam<'_>) -> Outcome {
    if let Some(unknown) = exam.no_cpus() {
        return unknown;
    }
    // Documentation/admin-guide/pm/cpuidle.rst: with idle=poll no state is ever entered.
    if exam.parameter("idle") == Some("poll") {
        return Outcome::fine_anywhere("idle CPUs poll").seen(seen("/proc/cmdline", "idle=poll"));
    }
    let mut tally = Tally::default();
    let mut open: BTreeMap<(u64, String), Vec<CpuId>> = BTreeMap::new();
    let mut states = 0;
    for &cpu in &exam.cpus {
        for number in 0..MAX_STATES {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}");
            let Ok(name) = exam.view.text(&format!("{dir}/name")) else { break };
            states += 1;
            let disabled = exam.view.look(&format!("{dir}/disable"), |text| match text {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            });
            let latency = exam.view.look(&format!("{dir}/latency"), |text| {
                text.parse::<u64>().ok().filter(|us| *us <= MAX_LATENCY_US)
            });
            let (Some(disabled), Some(latency)) = (tally.take(disabled), tally.take(latency))
            else {
                continue;
            };
            if !disabled && latency > HARMLESS_US {
                let name = Printable(&name.value).to_string();
                open.entry((latency, name)).or_default().push(cpu);
            }
        }
    }
    if states == 0 {
        let driver = exam.view.text("/sys/devices/system/cpu/cpuidle/current_driver");
        let driver = match driver {
            Ok(said) => seen(&said.evidence.source, &said.value),
            Err(missing) => missing.evidence,
        };
        return Outcome::unknown(format!(
            "how deep {} sleeps is not known: the kernel shows no idle states (driver: {}); on a \
             virtual machine the hypervisor decides",
            exam.measured(),
            driver.said
        ))
        .seen(driver);
    }
    let deepest = open.keys().map(|(latency, _)| *latency).max().unwrap_or(0);
    tally.bad = open
        .iter()
        .rev()
        .map(|((us, name), cpus)| format!("{name} ({us} us to leave) on CPU {}", CpuList(cpus)))
        .collect();
    let fine = format!("no idle state of {} takes over {HARMLESS_US} us to leave", exam.measured());
    tally.conclude("how deep CPUs sleep", fine, |bad| {
        let finding = format!("idle states are enabled: {}", listed(bad, 4));
        let outcome =
            if deepest > DEEP_US { Outcome::spoils(finding) } else { Outcome::note(finding) };
        outcome
            .run(
                "for s in /sys/devices/system/cpu/cpu*/cpuidle/state[1-9]; do echo 1 > $s/disable; \
                 done",
            )
            .advise("whylate holds /dev/cpu_dma_latency at 0 while it records: no such state then")
    })
}
