//! The watchdog of a set with real-time threads: it ends a set that lets nobody else run.
//!
//! On each CPU of the set an ordinary thread, the *canary*, wakes every half second and says that it
//! ran. A thread above all of the set looks, and ends the set when a canary has not run for
//! [`PATIENCE`]. Where the kernel throttles real-time threads the canary gets what they leave; where
//! it does not, nothing else would get the machine back before the set ends by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use whylate_model::{CpuId, Nanos};
use whylate_sys::nanosleep::{Clock, clock_ns, sleep_until};
use whylate_sys::{affinity, sched};

use crate::error::ThreadsError;

/// A CPU that no ordinary thread gets for so long is starved: the kernel's own watchdog waits for
/// twenty seconds, a person at a frozen screen for less.
pub const PATIENCE: Nanos = Nanos(3 * Nanos::SECOND.0);
/// A canary runs this often.
const CHIRP: Nanos = Nanos(500_000_000);
/// The watchdog looks this often.
const LOOK: Nanos = Nanos(250_000_000);
/// Above every thread of a set, below the kernel's own.
pub const PRIORITY: u8 = 98;
/// Canary and watchdog do next to nothing.
const STACK: usize = 64 << 10;

/// A watchdog and its canaries.
pub struct Watchdog {
    over: Arc<AtomicBool>,
    starved: Arc<AtomicU64>,
    handles: Vec<JoinHandle<()>>,
}

/// Brings the calling thread onto a CPU: as a rule by its affinity.
pub type Settle = Arc<dyn Fn(CpuId) -> Result<(), ThreadsError> + Send + Sync>;

/// Brings the calling thread onto a CPU by its affinity.
#[must_use]
pub fn by_affinity() -> Settle {
    Arc::new(|cpu| affinity::set(&[cpu]).map_err(ThreadsError::Resource))
}

impl Watchdog {
    /// Watches over `cpus` and sets `stop` when one of them is starved.
    pub fn start(
        cpus: &[CpuId],
        stop: &Arc<AtomicBool>,
        settle: &Settle,
    ) -> Result<Self, ThreadsError> {
        let (over, starved) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut dog = Self { over, starved, handles: Vec::new() };
        let mut chirps = Vec::new();
        for cpu in cpus.iter().copied() {
            let chirped = Arc::new(AtomicU64::new(clock_ns(Clock::Monotonic)));
            chirps.push((cpu, Arc::clone(&chirped)));
            let (over, settle) = (Arc::clone(&dog.over), Arc::clone(settle));
            dog.spawn(format!("canary/{cpu}"), move || chirp(cpu, &settle, &chirped, &over))?;
        }
        let (over, starved) = (Arc::clone(&dog.over), Arc::clone(&dog.starved));
        let stop = Arc::clone(stop);
        dog.spawn("watchdog".to_owned(), move || watch(&chirps, &over, &starved, &stop))?;
        Ok(dog)
    }

    /// The CPU that was starved, where the set was ended for it.
    #[must_use]
    pub fn starved(&self) -> Option<CpuId> {
        let cpu = self.starved.load(Ordering::Relaxed).checked_sub(1)?;
        Some(CpuId(cpu as u32))
    }

    fn spawn(
        &mut self,
        name: String,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), ThreadsError> {
        let thread = std::thread::Builder::new().name(name).stack_size(STACK);
        self.handles.push(thread.spawn(body).map_err(ThreadsError::Spawn)?);
        Ok(())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

fn chirp(cpu: CpuId, settle: &Settle, chirped: &AtomicU64, over: &AtomicBool) {
    // A canary that cannot sit on its CPU would sing of another one.
    let settled = settle(cpu).is_ok();
    while !over.load(Ordering::Relaxed) {
        let now = clock_ns(Clock::Monotonic);
        chirped.store(if settled { now } else { u64::MAX }, Ordering::Relaxed);
        nap(CHIRP, over);
    }
}

fn watch(
    chirps: &[(CpuId, Arc<AtomicU64>)],
    over: &AtomicBool,
    starved: &AtomicU64,
    stop: &AtomicBool,
) {
    // Without the right to it the watchdog looks as an ordinary thread, on whatever CPU is left.
    let _ = sched::set_fifo(PRIORITY);
    while !over.load(Ordering::Relaxed) {
        let now = clock_ns(Clock::Monotonic);
        let silent = chirps
            .iter()
            .find(|(_, chirped)| now.saturating_sub(chirped.load(Ordering::Relaxed)) > PATIENCE.0);
        if let Some((cpu, _)) = silent {
            starved.store(u64::from(cpu.0) + 1, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
            return;
        }
        nap(LOOK, over);
    }
}

/// Sleeps in short pieces, so that the end is heard.
fn nap(length: Nanos, over: &AtomicBool) {
    const PIECE: u64 = 50_000_000;
    let until = clock_ns(Clock::Monotonic) + length.0;
    while !over.load(Ordering::Relaxed) {
        let now = clock_ns(Clock::Monotonic);
        if now >= until || sleep_until(Clock::Monotonic, until.min(now + PIECE)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_others_can_use_is_left_alone() {
        let is_left_alone = || {
            let stop = Arc::new(AtomicBool::new(false));
            let dog = Watchdog::start(&affinity::get(), &stop, &by_affinity()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(400));
            let starved = dog.starved();
            drop(dog);
            let is_stopped = stop.load(Ordering::Relaxed);
            println!("starved: {starved:?}, stopped: {is_stopped}");
            starved.is_none() && !is_stopped
        };
        // The host may have taken a CPU for longer than the dog waits, but not time and again.
        assert!((0..5).any(|_| is_left_alone()));
    }

    #[test]
    fn a_silent_canary_ends_the_set_and_names_its_cpu() {
        let (over, starved, stop) =
            (AtomicBool::new(false), AtomicU64::new(0), AtomicBool::new(false));
        let now = clock_ns(Clock::Monotonic);
        let silent = now.saturating_sub(PATIENCE.0 + 1);
        let chirps = [
            (CpuId(3), Arc::new(AtomicU64::new(now))),
            (CpuId(5), Arc::new(AtomicU64::new(silent))),
        ];
        std::thread::scope(|scope| {
            scope.spawn(|| watch(&chirps, &over, &starved, &stop));
        });
        assert!(stop.load(Ordering::Relaxed));
        assert_eq!(starved.load(Ordering::Relaxed), 6, "the CPU and one");
    }
}
