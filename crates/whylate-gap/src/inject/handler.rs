//! Interruption by a signal handler on the measuring thread itself.
//!
//! A handler may touch nothing but atomics, so its orders and its stamps lie in statics. One
//! injection at a time: a second injector in the same process is refused.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::{Nanos, Ticks, TicksDelta};
use whylate_sys::memory::PageBuffer;
use whylate_sys::process;
use whylate_sys::signal::{self, Handler};

use super::{Injected, Kind, Pacer, Target};
use crate::GapError;

/// Pages touched by one injection: enough that faults, not the signal, take the time.
const PAGES: usize = 16;
const SPIN: (Nanos, Nanos) = (Nanos(5_000), Nanos(60_000));
/// A handler that has not answered by then never ran: its thread has ended.
const PATIENCE: Nanos = Nanos(1_000_000_000);

static BUSY: AtomicBool = AtomicBool::new(false);
static COUNTER: OnceLock<HardwareCounter> = OnceLock::new();
static PAGES_TO_TOUCH: OnceLock<PageBuffer> = OnceLock::new();
static SPIN_TICKS: AtomicU64 = AtomicU64::new(0);
static STARTED: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

pub(super) fn signal_to_spin() -> i32 {
    signal::real_time(4)
}

pub(super) fn signal_to_fault() -> i32 {
    signal::real_time(5)
}

extern "C" fn spin(_: i32) {
    let Some(counter) = COUNTER.get() else { return };
    let mut counter = *counter;
    let start = counter.read();
    let length = TicksDelta(SPIN_TICKS.load(Ordering::Relaxed));
    let mut end = start;
    while end.since(start) < length {
        end = counter.read();
    }
    STARTED.store(start.0, Ordering::Relaxed);
    ENDED.store(end.0, Ordering::Release);
}

extern "C" fn fault(_: i32) {
    let (Some(counter), Some(pages)) = (COUNTER.get(), PAGES_TO_TOUCH.get()) else { return };
    let mut counter = *counter;
    let start = counter.read();
    pages.touch_all();
    let end = counter.read();
    STARTED.store(start.0, Ordering::Relaxed);
    ENDED.store(end.0, Ordering::Release);
}

pub(super) fn inject(
    kind: Kind,
    target: Target,
    counter: &mut HardwareCounter,
    pacer: &mut Pacer,
) -> Result<Vec<Injected>, GapError> {
    let what = || format!("a {} on thread {}", kind.name(), target.tid);
    let fail = |source| GapError::Inject { what: what(), source };
    if BUSY.swap(true, Ordering::Acquire) {
        return Err(GapError::InjectorBusy);
    }
    let _release = Release;
    COUNTER.get_or_init(|| *counter);
    let (number, handler): (i32, extern "C" fn(i32)) = match kind {
        Kind::PageFault => (signal_to_fault(), fault),
        _ => (signal_to_spin(), spin),
    };
    if kind == Kind::PageFault && PAGES_TO_TOUCH.get().is_none() {
        let pages = PageBuffer::new(PAGES).map_err(fail)?;
        PAGES_TO_TOUCH.get_or_init(|| pages);
    }
    let _installed = Handler::install(number, handler).map_err(fail)?;
    let mut injected = Vec::with_capacity(pacer.left);
    while let Some(length) = pacer.next(SPIN.0, SPIN.1) {
        SPIN_TICKS.store(length.0, Ordering::Relaxed);
        ENDED.store(0, Ordering::Relaxed);
        let since = counter.read();
        if let (Kind::PageFault, Some(pages)) = (kind, PAGES_TO_TOUCH.get()) {
            pages.drop_pages().map_err(fail)?;
        }
        signal::send_to_thread(process::pid(), target.tid, number).map_err(fail)?;
        let Some((start, end)) = answer(counter, pacer) else { break };
        let asked = if kind == Kind::Signal { length } else { TicksDelta(0) };
        injected.push(Injected { kind, since, start, end, asked });
    }
    Ok(injected)
}

/// Waits for the handler's stamps.
fn answer(counter: &mut HardwareCounter, pacer: &Pacer) -> Option<(Ticks, Ticks)> {
    let give_up = counter.read() + PATIENCE.to_ticks(pacer.rate);
    loop {
        let ended = ENDED.load(Ordering::Acquire);
        if ended != 0 {
            return Some((Ticks(STARTED.load(Ordering::Relaxed)), Ticks(ended)));
        }
        if counter.read() > give_up {
            return None;
        }
        std::hint::spin_loop();
    }
}

/// Lets the next injector in.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}
