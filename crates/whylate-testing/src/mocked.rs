//! The measuring loop by a mocked counter whose ticks are nanoseconds: what a recording is told of it.

use whylate_cause::{Context, Measured, Placement as Freedom};
use whylate_gap::{Placement, Plan, Policy, ThreadFacts, Threshold, Work};
use whylate_model::run::LoopKind;
use whylate_model::{CpuId, Hertz, Nanos, Pid, TicksDelta};

/// Rate of the counter.
pub const RATE: Hertz = Hertz(1e9);

/// What the thread of a CPU finds in its warm-up: a reading each `period` ticks, and gaps from twice that on.
pub fn facts(cpu: CpuId, period: u64) -> ThreadFacts {
    ThreadFacts {
        cpu,
        fifo: None,
        tid: pid(cpu),
        threshold: TicksDelta(period * 2),
        warmup_period: period as f64,
        plain_period: None,
        recording: TicksDelta(period),
        recording_with_switches: TicksDelta(period),
        rseq: false,
        warnings: Vec::new(),
    }
}

/// The thread that measures a CPU.
pub fn pid(cpu: CpuId) -> Pid {
    Pid(1 + cpu.0 as i32)
}

/// Those threads, one pinned to each CPU.
pub fn context(cpus: &[CpuId], period: u64, virtualised: bool) -> Context {
    let mut context = Context::new(virtualised, RATE);
    context.threads.extend(cpus.iter().enumerate().map(|(index, cpu)| Measured {
        index: index as u16,
        pid: pid(*cpu),
        cpu: *cpu,
        placement: Freedom::Pinned,
        period_ticks: period as f64,
        always_runs: true,
        slack: TicksDelta(0),
    }));
    context
}

pub fn plan(cpus: Vec<CpuId>) -> Plan {
    Plan {
        placement: Placement::Pinned(cpus),
        loop_kind: LoopKind::Chain,
        counting: false,
        work: Work::Nothing,
        threshold: Threshold::Automatic,
        warmup: Nanos(0),
        policy: Policy::Ordinary,
        competitors: 0,
        stop_at: None,
    }
}
