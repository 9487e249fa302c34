//! What a runaway real-time set needs to show itself: no throttling, and others that want the CPU. Tests and
//! figures have it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use whylate_model::CpuId;
use whylate_sys::affinity;

const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Lifts the throttling of real-time threads until it is dropped.
pub struct Unthrottled(String);

impl Unthrottled {
    pub fn lift() -> Option<Self> {
        let former = fs::read_to_string(THROTTLING).ok()?;
        fs::write(THROTTLING, "-1").ok()?;
        Some(Self(former))
    }
}

impl Drop for Unthrottled {
    fn drop(&mut self) {
        let _ = fs::write(THROTTLING, self.0.trim());
    }
}

/// Ordinary threads, one on each of some CPUs, that want all of their CPU until this is dropped.
pub struct Wanting(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Wanting {
    pub fn on(cpus: &[CpuId]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let threads = cpus.iter().map(|cpu| {
            let (over, cpu) = (Arc::clone(&over), *cpu);
            std::thread::spawn(move || {
                affinity::set(&[cpu]).unwrap();
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        });
        let threads = threads.collect();
        Self(over, threads)
    }
}

impl Drop for Wanting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        for thread in self.1.drain(..) {
            let _ = thread.join();
        }
    }
}
