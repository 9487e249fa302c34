//! What can go wrong with a clock.

use std::io;

use whylate_model::CpuId;
use whylate_sys::SysError;

/// Why a counter cannot be used, or why something about it could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// CPUID says that the counter may stop or change its rate with the power state.
    #[error(
        "cannot use the time-stamp counter: CPUID 80000007h does not call it invariant, so it may \
         stop or change its rate; on a virtual machine ask for the `invtsc` CPU flag, elsewhere \
         measure on a processor that has an invariant counter"
    )]
    NotInvariant,
    /// The kernel does not vouch for a constant rate.
    #[error(
        "cannot use the time-stamp counter: /proc/cpuinfo does not list `{missing}`, so the kernel \
         does not take its rate for constant; on a virtual machine ask for the `invtsc` CPU flag"
    )]
    NotConstant {
        /// The flag that is missing: `constant_tsc` or `nonstop_tsc`.
        missing: &'static str,
    },
    /// Reading the counter leaves the machine.
    #[error(
        "cannot use the counter: one read costs {median_ns} ns (median), so a hypervisor or the \
         kernel traps the instruction; switch the trapping off (hypervisor setting for the \
         counter) or measure outside the virtual machine"
    )]
    Trapped {
        /// Median cost of one read.
        median_ns: u64,
    },
    /// No `rdtscp` instruction.
    #[error(
        "cannot use the time-stamp counter: this processor has no `rdtscp`, which tells the CPU \
         a reading was taken on; on a virtual machine ask for the `rdtscp` CPU flag"
    )]
    NoRdtscp,
    /// The register that numbers CPUs does not say what the kernel says.
    #[error(
        "cannot use the time-stamp counter: `{instruction}` calls this CPU {read}, the kernel \
         calls it {kernel}; the hypervisor does not keep the TSC_AUX register, so migrations \
         could not be seen; run on a hypervisor that does, or outside the virtual machine"
    )]
    WrongCpuNumber {
        /// The instruction that was asked.
        instruction: &'static str,
        /// What it said.
        read: CpuId,
        /// What the kernel says.
        kernel: CpuId,
    },
    /// Counter or raw clock did not move while the frequency was measured.
    #[error(
        "cannot find the frequency of the counter: it or CLOCK_MONOTONIC_RAW stood still while it \
         was measured; the clock of this machine is broken or frozen by a debugger or emulator"
    )]
    NoTimePassed,
    /// A thread may not run on a CPU whose counter is to be compared.
    #[error("cannot compare the counter of CPU {cpu}: {source}")]
    Affinity {
        /// The CPU.
        cpu: CpuId,
        /// Why not.
        source: SysError,
    },
    /// Two CPUs never ran the two threads that compare their counters.
    #[error(
        "cannot compare the counters of CPU {reference} and CPU {cpu}: no exchange came about in \
         half a second; something keeps one of them from running a thread, such as a real-time \
         task that spins: end it, or leave the CPU out"
    )]
    Busy {
        /// The one.
        reference: CpuId,
        /// The other.
        cpu: CpuId,
    },
    /// A thread could not be started.
    #[error("cannot start a thread to observe the clock: {source}; see `ulimit -u` and pids.max")]
    Thread {
        /// Why not.
        source: io::Error,
    },
}
