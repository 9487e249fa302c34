//! What about a host would spoil a measurement: one check for each pitfall that a host can have.
//!
//! Every check looks at files below a root, says what it read back and where, and changes nothing.
//! Four rules hold for all of them, each kept by a test:
//! - a file that is absent is *unknown* and never *off*, except where the kernel documents what its
//!   absence means; such places name the document;
//! - a file that cannot be read, is no text, is larger than it can be, or says what it cannot say,
//!   is *unknown* with the reason: nothing is concluded from it;
//! - what a hypervisor shows its guest of the machine is *unknown* of the machine;
//! - a check says something about its own pitfall only.
//!
//! What needs a call or a short try on the running host goes through [`Live`].
//!
//! # A collected tree
//!
//! The same checks look at another machine from copies of its files below one directory:
//!
//! | below the directory | what |
//! |---|---|
//! | `proc/...`, `sys/...` | files under the names they have on the host |
//! | `proc/PID/status` | one per process, for `irqbalance`, `auditd` and programs bound to CPUs |
//! | `proc/config.gz`, `boot/config-RELEASE` or `lib/modules/RELEASE/config` | the kernel's configuration |
//! | `commands/ethtool-c-PORT.txt`, `commands/ethtool-k-PORT.txt` | output of `ethtool -c` and `-k` |
//! | `commands/auditctl-s.txt` | output of `auditctl -s` |
//!
//! [`COLLECT`] collects it. What is missing is unknown. Links that lead out of the tree are not
//! followed by the checks. Not seen in any tree: timer slack, the cost of the clock, the speed of
//! the disk, and what was recorded there last.

mod exam;
mod frequency;
mod guest;
mod identity;
mod idle;
mod interrupts;
mod isolation;
mod kernel;
mod live;
mod memory;
mod network;
mod pcie;
mod processes;
mod scheduling;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
mod tool;
mod view;

use std::path::Path;

use whylate_model::CpuId;
use whylate_model::doctor::{DIAGNOSIS_VERSION, Diagnosis, Symptom};

use crate::cpufreq::Policies;
use crate::cpus::{self, CpuSpec};
use crate::error::HostError;
use crate::fingerprint;
use crate::last_run::Recall;
use crate::topology::Topology;

use exam::{Check, Exam};
use view::View;

pub use live::{DiskSpeed, Live};

/// Lines for the root shell of the other machine that collect its tree into `host`.
///
/// Files are named one by one: reading some others of these folders waits for the kernel's log,
/// copies all memory, or reads a device's registers. What is not there is left out. What the kernel
/// shows behind links (ports, their devices, the policies of frequency, `/proc/self`) lies in the
/// tree in folders, by the names that the checks ask for; `cp` would pass over a file that two
/// names of one call lead to, so CPUs, groups and ports are copied one by one.
pub const COLLECT: &str = r#"d="$PWD/host"; mkdir -p "$d/commands"; ( cd /;
c() { cp -L --parents "$@" "$d"; }; r=$(cat proc/sys/kernel/osrelease)
g=$(sed -n 's/^[0-9]*:\([^:]*,\)*cpu\(,[^:]*\)*://p' proc/self/cgroup)
c proc/cpuinfo proc/meminfo proc/cmdline proc/stat proc/swaps proc/mounts \
  proc/loadavg proc/interrupts proc/config.gz proc/self/cgroup \
  proc/net/softnet_stat proc/irq/default_smp_affinity proc/device-tree/model \
  proc/device-tree/hypervisor/compatible boot/config-$r lib/modules/$r/config
c proc/sys/kernel/*watchdog* proc/sys/kernel/sched_* proc/sys/net/ipv4/icmp_* \
  proc/sys/kernel/numa_balancing proc/sys/kernel/timer_migration \
  proc/sys/kernel/perf_event_paranoid proc/sys/kernel/osrelease \
  proc/sys/kernel/version proc/sys/kernel/arch proc/sys/kernel/hostname \
  proc/sys/vm/swappiness proc/sys/vm/stat_interval proc/sys/vm/nr_hugepages \
  proc/sys/net/core/busy_* proc/sys/net/core/netdev_max_backlog \
  proc/self/timerslack_ns
c proc/[0-9]*/status
c sys/kernel/realtime sys/kernel/mm/ksm/run sys/kernel/debug/sched/preempt \
  sys/kernel/mm/transparent_hugepage/enabled sys/kernel/security/lockdown \
  sys/kernel/mm/transparent_hugepage/defrag sys/hypervisor/type \
  sys/kernel/mm/transparent_hugepage/khugepaged/defrag \
  sys/kernel/debug/sched/fair_server/*/runtime \
  sys/devices/virtual/workqueue/cpumask sys/class/dmi/id/sys_vendor \
  sys/devices/virtual/workqueue/writeback/cpumask \
  sys/class/dmi/id/product_name sys/module/pcie_aspm/parameters/policy
c sys/fs/cgroup/cpuset.cpus.isolated sys/fs/cgroup/*/cpuset.cpus.isolated
for m in sys/fs/cgroup/cpu*; do c $m$g/cpu.rt_runtime_us; done
for f in sys/devices/system/cpu/cpu*/cpufreq; do c $f/*; done
c sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us
for p in $(ls sys/class/net); do n=sys/class/net/$p
  c $n/speed $n/operstate $n/queues/*/[rx]ps_cpus $n/device/uevent \
    $n/device/numa_node $n/device/*_link_* $n/device/link/*aspm \
    $n/device/physfn/uevent
  for o in c k; do ethtool -$o $p > "$d/commands/ethtool-$o-$p.txt"; done
done; auditctl -s > "$d/commands/auditctl-s.txt"
find proc/irq -name '*affinity_list' -exec cp --parents -t "$d" {} +
find sys/devices/system/cpu sys/devices/system/node -type f -readable \
  ! -path '*/cache/*' ! -path '*/power/*' -exec cp --parents -t "$d" {} +
find sys/devices/system/clocksource -name '*_clocksource' -readable \
  -exec cp --parents -t "$d" {} + ) 2>/dev/null"#;

/// All checks, by subject.
const CHECKS: [&[Check]; 10] = [
    isolation::CHECKS,
    interrupts::CHECKS,
    frequency::CHECKS,
    idle::CHECKS,
    memory::CHECKS,
    scheduling::CHECKS,
    kernel::CHECKS,
    network::CHECKS,
    identity::CHECKS,
    tool::CHECKS,
];

/// What to look at.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `/`, or the directory of a collected tree.
    pub root: &'a Path,
    /// The CPUs to be measured; none for all but the first.
    pub cpus: Option<&'a CpuSpec>,
    /// Facts of the running host; none for a collected tree.
    pub live: Option<&'a Live>,
    /// What is remembered of the last recording; none for a collected tree.
    pub last: Option<&'a Recall>,
}

/// Looks at a host.
///
/// Fails when the root cannot be read at all, or when CPUs are asked for that it does not have.
pub fn examine(request: &Request<'_>) -> Result<Diagnosis, HostError> {
    let exam = prepare(request)?;
    let symptoms = CHECKS.into_iter().flatten().map(|check| {
        let outcome = guest::as_far_as_known(&exam, check.name, (check.look)(&exam));
        Symptom {
            check: check.name.to_owned(),
            subject: check.subject,
            level: outcome.level,
            finding: outcome.finding,
            why: check.why.to_owned(),
            remedy: outcome.remedy,
            evidence: outcome.evidence,
        }
    });
    Ok(Diagnosis {
        format_version: DIAGNOSIS_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        root: request.root.display().to_string(),
        cpus: exam.cpus.clone(),
        symptoms: symptoms.collect(),
        host: exam.host,
        compared: None,
    })
}

/// Stable names of all checks, in order.
pub fn checks() -> impl Iterator<Item = &'static str> {
    CHECKS.into_iter().flatten().map(|check| check.name)
}

fn prepare<'a>(request: &Request<'a>) -> Result<Exam<'a>, HostError> {
    let unreadable = |source| HostError::Root { path: request.root.to_owned(), source };
    let view = View::open(request.root).map_err(unreadable)?;
    if !view.exists("/proc") && !view.exists("/sys") {
        let why = "it holds neither `proc` nor `sys`";
        return Err(unreadable(std::io::Error::new(std::io::ErrorKind::NotFound, why)));
    }
    let topology = Topology::read(request.root).ok();
    let cpus = measured(request, topology.as_ref())?;
    let host = fingerprint::read(request.root);
    let known = |path: &str| view.text(path).ok().map(|said| said.value);
    Ok(Exam {
        cpus,
        topology,
        command_line: known("/proc/cmdline"),
        config: view.kernel_config(known("/proc/sys/kernel/osrelease").as_deref()),
        processes: processes::read(&view),
        policies: Policies::read(request.root),
        host,
        live: request.live,
        last: request.last,
        view,
    })
}

/// The CPUs to be measured. Of a host whose CPUs cannot be found out a list is taken as it is.
fn measured(request: &Request<'_>, topology: Option<&Topology>) -> Result<Vec<CpuId>, HostError> {
    let Some(topology) = topology else {
        return Ok(match request.cpus {
            Some(CpuSpec::List(list)) => list.clone(),
            _ => Vec::new(),
        });
    };
    let allowed = if request.root == Path::new("/") {
        cpus::allowed(topology)?
    } else {
        topology.online().to_vec()
    };
    match request.cpus {
        Some(spec) => cpus::resolve(spec, topology, &allowed),
        None if allowed.len() > 1 => Ok(allowed[1..].to_vec()),
        None => Ok(allowed),
    }
}
