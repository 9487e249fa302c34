//! The threads of a service and whoever looks after them: what goes from the ones to the other, and when it
//! is looked for.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use whylate_clock::HardwareCounter;
use whylate_model::{CpuId, Hertz};
use whylate_sys::affinity;

use crate::RecordError;

/// Histograms on the way for each that is open: one that is filled, one that waits.
const SPARES: usize = 2;

/// What the threads are given: the clock, where they may run, and somebody to tell.
pub(crate) struct Crew<M, T> {
    pub(crate) counter: HardwareCounter,
    pub(crate) rate: Hertz,
    /// The recording's thread keeps house; these may run anywhere else. None leaves them where they are.
    allowed: Option<Vec<CpuId>>,
    to: Sender<M>,
    /// Histograms to go on with: their memory has been touched.
    empty: Mutex<Receiver<T>>,
}

/// The other end: what was told, and histograms on their way back.
pub(crate) struct Taker<M, T> {
    told: Receiver<M>,
    emptied: Sender<T>,
}

/// A crew that has so many histograms open at once, as `touched` makes them, and the end of whoever takes in
/// what it tells.
pub(super) fn crew<M, T>(
    (counter, rate): (HardwareCounter, Hertz),
    allowed: Option<Vec<CpuId>>,
    (open, touched): (usize, impl Fn() -> T),
) -> (Crew<M, T>, Taker<M, T>) {
    let ((to, told), (emptied, empty)) = (channel(), channel());
    for _ in 0..SPARES * open {
        // The other end is in this very function.
        let _ = emptied.send(touched());
    }
    (Crew { counter, rate, allowed, to, empty: Mutex::new(empty) }, Taker { told, emptied })
}

impl<M, T: Default> Crew<M, T> {
    /// Lets the calling thread run where those of the service may.
    pub(crate) fn spread(&self) -> Result<(), RecordError> {
        if let Some(allowed) = &self.allowed {
            affinity::set(allowed)?;
        }
        Ok(())
    }

    /// Tells something. Whoever started the threads waits for their end, and so it is heard.
    pub(crate) fn tell(&self, told: M) {
        let _ = self.to.send(told);
    }

    /// Takes the times of an interval to be told, and leaves empty ones behind.
    pub(crate) fn taken(&self, times: &mut T) -> T {
        // Never held for longer than this.
        let spare = self.empty.lock().unwrap_or_else(PoisonError::into_inner).try_recv();
        std::mem::replace(times, spare.unwrap_or_default())
    }
}

impl<M, T> Taker<M, T> {
    /// What was told first of what was not taken in yet.
    pub(crate) fn heard(&self) -> Option<M> {
        self.told.try_recv().ok()
    }

    /// Gives histograms back, which are empty again.
    pub(crate) fn give_back(&self, times: T) {
        // The thread may have ended.
        let _ = self.emptied.send(times);
    }
}

/// When whoever looks after threads does what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Time between two looks at what was told.
    pub(crate) every: Duration,
    /// Of so many looks one is at clocks and host, too.
    pub(crate) thorough: u64,
}

/// A look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// At what was told, and nothing else.
    Brief,
    /// At clocks and host, too.
    Thorough,
    /// The thread has ended: what it told last.
    Last,
}

/// Does `work` on a thread of this name, as `ps -L` shows it, and looks meanwhile. The thread wakes the
/// calling one when it ends.
///
/// # Errors
/// There is no thread to be had, or what `work` says.
pub(super) fn attend<W: Send>(
    (name, pace): (&str, Pace),
    work: impl FnOnce() -> Result<W, RecordError> + Send,
    mut look: impl FnMut(Look),
) -> Result<W, RecordError> {
    thread::scope(|scope| {
        let waiting = thread::current();
        let worker = thread::Builder::new().name(name.to_owned());
        let worker = worker.spawn_scoped(scope, move || {
            let done = work();
            waiting.unpark();
            done
        });
        let worker = worker.map_err(RecordError::NoThread)?;
        for number in 1_u64.. {
            if worker.is_finished() {
                break;
            }
            thread::park_timeout(pace.every);
            let thorough = number.is_multiple_of(pace.thorough);
            look(if thorough { Look::Thorough } else { Look::Brief });
        }
        look(Look::Last);
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
