//! What this host has of a configuration: the box and one interrupt of it, nobody else's tasks.

use whylate_sys::{dma_latency, sched};

use super::*;
use crate::guard::{MovedInterrupts, interrupts_below};

/// What of this host a configuration of these tests touches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Host {
    cpus: Vec<CpuId>,
    cgroup: String,
    policy: sched::Policy,
    files: Vec<Option<String>>,
}

impl Host {
    pub(super) fn of(idle: &Idle, cpu: CpuId, irq: Option<u32>) -> Self {
        let read = |path: &str| trimmed(Path::new(path));
        let mut files = vec![
            read("/sys/devices/virtual/workqueue/cpumask"),
            read("/sys/devices/virtual/workqueue/writeback/cpumask"),
            read(&format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us")),
            read("/sys/kernel/mm/transparent_hugepage/enabled"),
            read("/sys/module/pcie_aspm/parameters/policy"),
        ];
        files.extend(irq.map(|irq| read(&format!("/proc/irq/{irq}/smp_affinity_list"))));
        Self {
            cpus: idle.cpus(),
            cgroup: fs::read_to_string(format!("/proc/{}/cgroup", idle.pid())).unwrap(),
            policy: sched::policy_of(idle.pid()).unwrap(),
            files,
        }
    }
}

/// An interrupt that can be moved off a CPU, as a trial under the guard shows.
pub(super) fn movable(cpu: CpuId) -> Option<u32> {
    let (_dir, journal) = journal();
    interrupts_below(Path::new("/")).into_iter().find(|&irq| {
        let moved = MovedInterrupts::away_from(&journal, &[cpu], Some(&[irq]));
        moved.is_ok_and(|moved| moved.moved() == [irq])
    })
}

pub(super) fn ground_here(irq: Option<u32>) -> Ground {
    let (others, interrupts) = (Some(Vec::new()), Some(irq.into_iter().collect()));
    Ground { others, interrupts, ..Ground::here() }
}

#[test]
fn on_this_host_what_it_has_reads_back_and_all_of_it_is_as_before() {
    let (_cpusets, _interrupts) = (tree::turn(&tree::CPUSETS), tree::turn(&tree::INTERRUPTS));
    let Some([first, last]) = two_cpus() else { return };
    let (_dir, journal) = journal();
    let idle = Idle::start();
    kernel::set_affinity(idle.pid(), &[first]).unwrap();
    let irq = movable(last);
    let before = Host::of(&idle, last, irq);
    let subject = Subject { pids: vec![idle.pid()], cpus: vec![last], ..Subject::default() };
    let configuration = words("local+isolset+power+quiet");
    let applied = match apply_on(&ground_here(irq), &configuration, &subject, &journal) {
        Ok(applied) => applied,
        Err(error @ HostError::ConfigurationRefused { .. }) => return tree::skip(&error),
        Err(error) => panic!("{error}"),
    };
    let affinity = reading(&applied, "affinity");
    assert_eq!((&affinity.before, &affinity.got), (&first.to_string(), &last.to_string()));
    assert_eq!(idle.cpus(), [last]);
    let has = |knob: &str| {
        let read = applied.read_back().iter().any(|one| one.name == knob);
        let missing = applied.missing().iter().find(|one| one.knob == knob);
        assert!(read != missing.is_some(), "{knob}: {:#?}", applied.facts());
        if let Some(missing) = missing {
            tree::skip(&format!("{knob}: {}", missing.why));
        }
        read
    };
    if has("dma_latency") {
        assert_eq!(dma_latency::limit_us().unwrap(), 0);
    }
    if has("cpuset") {
        assert_ne!(Host::of(&idle, last, irq).cgroup, before.cgroup);
    }
    if has("priority") {
        let policy = sched::policy_of(idle.pid()).unwrap();
        assert_eq!(policy, sched::Policy::Other { nice: -20 });
    }
    if let Some(irq) = irq {
        let now = trimmed(Path::new(&format!("/proc/irq/{irq}/smp_affinity_list"))).unwrap();
        assert!(!crate::cpus::parse_list(&now).unwrap().contains(&last), "{now}");
    }
    has(&format!("cpu{last}.resume_latency"));
    for knob in ["workqueue.cpus", "thp", "aspm"] {
        has(knob);
    }
    drop(applied);
    assert_eq!(Host::of(&idle, last, irq), before);
    assert_eq!(journal.entries(), []);
}
