//! Tick counters, their calibration, and their relation to wall time.
//!
//! Everything whylate measures is stamped by one raw 64-bit counter: the time-stamp counter on
//! x86-64, `cntvct_el0` on aarch64. This crate opens it ([`HardwareCounter`]), or says why it
//! cannot be used; finds its frequency together with a bound ([`calibrate`]); finds how far the
//! counters of two CPUs are apart ([`offset`]); and ties it to wall time ([`anchor`]), over a whole run
//! ([`relation`]) and through it to the clock of a network card ([`card`]).
//!
//! There is no fallback: a counter that stops, changes its rate or is trapped by a hypervisor is
//! refused with a typed reason, and no other clock takes its place.
#![expect(unsafe_code, reason = "counters are read by instructions that have no safe wrapper")]

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub mod anchor;
pub mod calibrate;
pub mod card;
pub mod cost;
mod error;
pub mod facts;
mod fit;
mod kernel;
pub mod mock;
pub mod offset;
mod pieces;
#[cfg(test)]
mod proofs;
pub mod relation;
mod sandwich;
pub mod sources;
#[cfg(test)]
mod testing;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use whylate_model::{CpuId, Ticks};

#[cfg(target_arch = "aarch64")]
pub use aarch64::HardwareCounter;
pub use calibrate::{Calibration, Calibrator};
pub use error::ClockError;
pub use kernel::{KernelRaw, KernelRealtime, KernelView, RawClock};
pub use mock::MockCounter;
pub use relation::{Relation, Unrelated};
#[cfg(target_arch = "x86_64")]
pub use x86_64::HardwareCounter;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("whylate knows the counters of x86-64 and aarch64 only");

/// A raw 64-bit counter and the number of the CPU it was read on.
///
/// Methods take `&mut self` for the sake of [`MockCounter`], which moves its time on at each read.
pub trait Counter: Send {
    /// Kind of counter as a run records it: `tsc`, `cntvct_el0`, `mock`.
    const KIND: &'static str;

    /// The counter, by the cheapest instruction. The processor may execute it some tens of ticks
    /// before or after its neighbours: right for finding gaps of hundreds of ticks, wrong for
    /// ordering events.
    fn read(&mut self) -> Ticks;

    /// The counter once everything before it has executed, and the CPU it was read on.
    ///
    /// On x86-64 both come from one instruction, `rdtscp`.
    fn read_ordered(&mut self) -> (Ticks, CpuId);

    /// The CPU this thread runs on, without a system call.
    fn cpu(&mut self) -> CpuId;
}

#[cfg(test)]
mod tests {
    use whylate_sys::affinity;

    use super::*;

    #[test]
    fn ordered_reads_never_go_back_on_one_cpu() {
        let Some(mut counter) = testing::hardware() else { return };
        // A thread of its own, so that the binding ends with it.
        let body = move || {
            affinity::set(&affinity::get()[..1]).expect("a thread may narrow its affinity");
            let mut previous = counter.read_ordered().0;
            for _ in 0..100_000 {
                let now = counter.read_ordered().0;
                assert!(now >= previous);
                previous = now;
            }
        };
        std::thread::spawn(body).join().expect("reads do not go back");
    }

    #[test]
    fn the_cpu_of_a_reading_is_the_one_the_thread_is_bound_to() {
        let Some(mut counter) = testing::hardware() else { return };
        let body = move || {
            for cpu in affinity::get() {
                affinity::set(&[cpu]).expect("a thread may narrow its affinity");
                assert_eq!(counter.cpu(), cpu);
                assert_eq!(counter.read_ordered().1, cpu);
            }
        };
        std::thread::spawn(body).join().expect("the numbers are the kernel's");
    }
}
