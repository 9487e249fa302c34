//! Stalls that are planted on one CPU, each with its stamps. Tests and figures have them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::{CpuId, Nanos, Ticks};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, sched};

/// Above the priority that `wake` uses by itself.
const PRIORITY: u8 = 97;

/// A thread above everything on one CPU that keeps it for 10 ms, now and then.
pub struct Stalls {
    stop: Arc<AtomicBool>,
    /// Begin and end of each.
    done: Arc<Mutex<Vec<(Ticks, Ticks)>>>,
    thread: Option<JoinHandle<()>>,
}

/// How long each lasts, at least: whatever else takes the CPU meanwhile comes on top.
pub const STALL: Nanos = Nanos(10_000_000);

impl Stalls {
    /// One after the other, with so long a pause before each.
    pub fn on(cpu: CpuId, pause: Duration) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (told, stalls) = (stop.clone(), done.clone());
        let body = move || {
            affinity::set(&[cpu]).unwrap();
            sched::set_fifo(PRIORITY).unwrap();
            let mut counter = HardwareCounter::open().unwrap();
            while !told.load(Ordering::Relaxed) {
                std::thread::sleep(pause);
                let (start, until) = (counter.read(), clock_ns(Clock::Monotonic) + STALL.0);
                while clock_ns(Clock::Monotonic) < until {}
                let end = counter.read();
                stalls.lock().unwrap().push((start, end));
            }
        };
        let thread = std::thread::Builder::new().name("stall".to_owned()).spawn(body).unwrap();
        Self { stop, done, thread: Some(thread) }
    }

    /// How many lay between two instants.
    pub fn between(&self, from: Ticks, to: Ticks) -> u64 {
        let done = self.done.lock().unwrap();
        done.iter().filter(|(start, end)| from <= *start && *end <= to).count() as u64
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
