//! Interruption by a thread on the measured CPU: SCHED_FIFO, or an ordinary busy one.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::{CpuId, Nanos, TicksDelta};
use whylate_sys::{affinity, sched};

use super::{Injected, Kind, Pacer, Target};
use crate::GapError;

/// Thread names, at most 15 bytes: the trace shows them.
pub(super) const FIFO_NAME: &str = "whylate-fifo";
pub(super) const HOG_NAME: &str = "whylate-hog";

/// Above the measuring thread's own FIFO priority, below the kernel's.
const PRIORITY: u8 = 60;
/// Long enough that the thread, not the interrupt that wakes it, is what takes the time.
const FIFO_SPIN: (Nanos, Nanos) = (Nanos(30_000), Nanos(120_000));
const HOG_SPIN: (Nanos, Nanos) = (Nanos(200_000), Nanos(800_000));

pub(super) fn inject(
    kind: Kind,
    target: Target,
    counter: HardwareCounter,
    pacer: &mut Pacer,
) -> Result<Vec<Injected>, GapError> {
    let (name, (shortest, longest)) = match kind {
        Kind::FifoPreemption => (FIFO_NAME, FIFO_SPIN),
        _ => (HOG_NAME, HOG_SPIN),
    };
    let (ask, asked) = sync_channel::<TicksDelta>(1);
    let (tell, told) = sync_channel(1);
    let mut clock = counter;
    let worker = Worker { kind, cpu: target.cpu, counter, asked, tell };
    let handle = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || worker.run())
        .map_err(GapError::Spawn)?;
    let mut injected = Vec::with_capacity(pacer.left);
    let result = told.recv().unwrap_or(Ok(None)).and_then(|_| {
        while let Some(length) = pacer.next(shortest, longest) {
            let since = clock.read();
            // The worker lives as long as this sender; it answers each length once.
            if ask.send(length).is_err() {
                break;
            }
            let made = told.recv().unwrap_or(Ok(None))?;
            injected.extend(made.map(|made| Injected { since, ..made }));
        }
        Ok(())
    });
    drop(ask);
    let _ = handle.join();
    result.map(|()| injected)
}

struct Worker {
    kind: Kind,
    cpu: CpuId,
    counter: HardwareCounter,
    asked: Receiver<TicksDelta>,
    tell: SyncSender<Result<Option<Injected>, GapError>>,
}

impl Worker {
    fn run(mut self) {
        let ready = self.settle();
        let failed = ready.is_err();
        if self.tell.send(ready.map(|()| None)).is_err() || failed {
            return;
        }
        while let Ok(length) = self.asked.recv() {
            let start = self.counter.read();
            let mut end = start;
            while end.since(start) < length {
                end = self.counter.read();
            }
            let injected = Injected { kind: self.kind, since: start, start, end, asked: length };
            if self.tell.send(Ok(Some(injected))).is_err() {
                return;
            }
        }
    }

    fn settle(&self) -> Result<(), GapError> {
        let what = || format!("{} on CPU {}", self.kind.name(), self.cpu);
        affinity::set(&[self.cpu]).map_err(|source| GapError::Inject { what: what(), source })?;
        match self.kind {
            Kind::FifoPreemption => sched::set_fifo(PRIORITY)
                .map_err(|source| GapError::Inject { what: what(), source }),
            _ => Ok(()),
        }
    }
}
