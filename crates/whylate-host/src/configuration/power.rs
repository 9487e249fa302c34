//! `power`: nothing saves power at the cost of time.
//!
//! Idle states are closed twice, by the whole machine's limit, which a kill takes back, and by
//! those of the box's CPUs. Turbo goes first: what frequencies there are depends on it.

use std::collections::BTreeSet;

use whylate_model::CpuId;
use whylate_sys::dma_latency;

use super::work::Work;
use crate::cpufreq::Policies;
use crate::error::HostError;
use crate::guard::{CpuDmaLatency, Settings};

const CPU: &str = "/sys/devices/system/cpu";

/// Two drivers, two files, opposite words.
const TURBO: [(&str, &str, &str); 2] = [
    ("turbo.intel_pstate", "/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
    ("turbo.boost", "/sys/devices/system/cpu/cpufreq/boost", "0"),
];

const ASPM: &str = "/sys/module/pcie_aspm/parameters/policy";

/// More idle states than any processor has.
const MOST_STATES: u32 = 32;

pub(super) fn power(work: &mut Work<'_>) -> Result<(), HostError> {
    latency(work)?;
    let mut settings = Settings::new(work.journal);
    for (name, path, off) in TURBO {
        work.set(&mut settings, name, path, off)?;
    }
    frequencies(work, &mut settings)?;
    for cpu in work.plan.cpus.clone() {
        idle_states(work, &mut settings, cpu)?;
    }
    work.set(&mut settings, "aspm", ASPM, "performance")?;
    work.keep(settings);
    Ok(())
}

/// `/dev/cpu_dma_latency`, held open.
fn latency(work: &mut Work<'_>) -> Result<(), HostError> {
    const KNOB: &str = "dma_latency";
    if !work.ground.is_here() {
        work.lacks(KNOB, "a device of the running machine, which a tree of files has not");
        return Ok(());
    }
    let before = match dma_latency::limit_us() {
        Ok(limit) => format!("{limit} us"),
        Err(_) => "cannot be read".to_owned(),
    };
    let Some(held) = work.offered(KNOB, CpuDmaLatency::hold())? else { return Ok(()) };
    let asked = "0 us".to_owned();
    let got = match dma_latency::limit_us() {
        Ok(limit) => format!("{limit} us"),
        Err(error) => error.to_string(),
    };
    if got != asked {
        return Err(HostError::KnobNotKept { knob: KNOB.to_owned(), asked, got });
    }
    work.read(KNOB, before, Some(&asked), got);
    work.keep(held);
    Ok(())
}

/// Each policy that a CPU of the box belongs to, once.
fn frequencies(work: &mut Work<'_>, settings: &mut Settings) -> Result<(), HostError> {
    let policies = Policies::read(&work.ground.root);
    let mut done = BTreeSet::new();
    for cpu in work.plan.cpus.clone() {
        let dir = policies.directory(cpu);
        if done.insert(dir.clone()) {
            policy(work, settings, cpu, &dir)?;
        }
    }
    Ok(())
}

fn policy(
    work: &mut Work<'_>,
    settings: &mut Settings,
    cpu: CpuId,
    dir: &str,
) -> Result<(), HostError> {
    let name = |knob: &str| format!("cpu{cpu}.{knob}");
    let file = |name: &str| format!("{dir}/{name}");
    let offered = work.says(&file("scaling_available_governors"));
    match offered {
        Some(list) if !list.split_whitespace().any(|one| one == "performance") => {
            work.lacks(&name("governor"), format!("the driver offers {list} and no performance"));
        }
        _ => work.set(settings, &name("governor"), &file("scaling_governor"), "performance")?,
    }
    // The nominal one where the driver names it; what lies above is turbo.
    let highest = work.says(&file("scaling_max_freq"));
    let nominal = work.says(&file("base_frequency"));
    let khz = |text: &Option<String>| text.as_ref()?.parse::<u64>().ok();
    let wanted = match (khz(&highest), khz(&nominal)) {
        (Some(highest), Some(nominal)) => highest.min(nominal),
        (Some(highest), None) => highest,
        (None, _) => {
            let why = format!("{} is absent or no number", file("scaling_max_freq"));
            work.lacks(&name("max_khz"), why.clone());
            work.lacks(&name("min_khz"), why);
            return Ok(());
        }
    };
    let wanted = wanted.to_string();
    work.set(settings, &name("max_khz"), &file("scaling_max_freq"), &wanted)?;
    work.set(settings, &name("min_khz"), &file("scaling_min_freq"), &wanted)
}

/// States that take time to leave are closed to this CPU, and no wake-up of it may take any.
fn idle_states(work: &mut Work<'_>, settings: &mut Settings, cpu: CpuId) -> Result<(), HostError> {
    // 0 is no limit at all there, and `n/a` is the limit of 0.
    let limit = format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us");
    work.set(settings, &format!("cpu{cpu}.resume_latency"), &limit, "n/a")?;
    let mut states = 0_u32;
    for number in 0..MOST_STATES {
        let dir = format!("{CPU}/cpu{cpu}/cpuidle/state{number}");
        let Some(state) = work.says(&format!("{dir}/name")) else { break };
        states += 1;
        let latency = work.says(&format!("{dir}/latency"));
        if latency.and_then(|text| text.parse::<u64>().ok()) == Some(0) {
            continue;
        }
        work.set(settings, &format!("cpu{cpu}.idle.{state}"), &format!("{dir}/disable"), "1")?;
    }
    if states == 0 {
        let why = format!("{CPU}/cpu{cpu}/cpuidle has no states: the kernel has no idle driver");
        work.lacks(&format!("cpu{cpu}.idle"), why);
    }
    Ok(())
}
