//! Interruption by a thread on the measured CPU: SCHED_FIFO, or an ordinary busy one.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::{CpuId, Nanos, Pid, TicksDelta};
use whylate_sys::sched::{self, Policy};
use whylate_sys::{affinity, process};

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
    let (say_who, who) = sync_channel(1);
    let mut clock = counter;
    let worker = Worker { kind, counter, asked, tell };
    let handle = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _ = say_who.send(process::tid());
            worker.run();
        })
        .map_err(GapError::Spawn)?;
    let Ok(worker) = who.recv() else { return Ok(Vec::new()) };
    let mut injected = Vec::with_capacity(pacer.left);
    let result = seat(kind, worker, target.cpu).map(|()| {
        while let Some(length) = pacer.next(shortest, longest) {
            let since = clock.read();
            // The worker lives as long as this sender; it answers each length once.
            if ask.send(length).is_err() {
                break;
            }
            let Ok(made) = told.recv() else { break };
            injected.push(Injected { since, ..made });
        }
    });
    leave(worker, target.from);
    drop(ask);
    let _ = handle.join();
    result.map(|()| injected)
}

/// Puts the worker, which waits, on the measured CPU: it runs there for the first time when it is asked to.
fn seat(kind: Kind, worker: Pid, cpu: CpuId) -> Result<(), GapError> {
    let what = || format!("{} on CPU {cpu}", kind.name());
    affinity::set_of(worker, &[cpu]).map_err(|source| GapError::Inject { what: what(), source })?;
    match kind {
        Kind::FifoPreemption => sched::set_for(worker, Policy::Fifo(PRIORITY))
            .map_err(|source| GapError::Inject { what: what(), source }),
        _ => Ok(()),
    }
}

/// Takes it off again while it waits: its end is no interruption that was made. One that cannot be taken off
/// ends where it is.
fn leave(worker: Pid, to: CpuId) {
    let _ = affinity::set_of(worker, &[to]);
}

struct Worker {
    kind: Kind,
    counter: HardwareCounter,
    asked: Receiver<TicksDelta>,
    tell: SyncSender<Injected>,
}

impl Worker {
    fn run(mut self) {
        while let Ok(length) = self.asked.recv() {
            let start = self.counter.read();
            let mut end = start;
            while end.since(start) < length {
                end = self.counter.read();
            }
            let injected = Injected { kind: self.kind, since: start, start, end, asked: length };
            if self.tell.send(injected).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_runs_on_the_measured_cpu_when_it_is_asked_and_ends_elsewhere() {
        let cpus = affinity::get();
        let [own, measured, ..] = cpus[..] else {
            return whylate_suite::absent("a second CPU");
        };
        let (ask, asked) = sync_channel::<()>(0);
        let (tell, told) = sync_channel(0);
        let handle = std::thread::spawn(move || {
            affinity::set(&[own]).unwrap();
            tell.send((process::tid(), affinity::current())).unwrap();
            while asked.recv().is_ok() {
                tell.send((process::tid(), affinity::current())).unwrap();
            }
            affinity::current()
        });
        let (worker, began) = told.recv().unwrap();
        assert_eq!(began, own);
        seat(Kind::CpuHog, worker, measured).unwrap();
        ask.send(()).unwrap();
        assert_eq!(told.recv().unwrap().1, measured);
        leave(worker, own);
        drop(ask);
        assert_eq!(handle.join().unwrap(), own);
    }
}
