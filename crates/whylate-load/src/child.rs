//! The child's part: does what its order says, counts it, and ends in time.

use std::io::BufReader;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec};
use whylate_model::{CpuId, Nanos};
use whylate_net::lab::{Bed, Role};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, process, sched, timerslack};

use crate::error::LoadError;
use crate::jobs;
use crate::order::{Order, Side};
use crate::record::{Record, State};

/// What was done is noted this often.
const NOTED_EVERY: Nanos = Nanos(50_000_000);
/// Work that has not ended so long after it was told to is given up.
const GRACE: Nanos = Nanos(2_000_000_000);

/// What the work and its watch share.
#[derive(Debug)]
pub(crate) struct Meter {
    stop: AtomicBool,
    amount: AtomicU64,
    offered: AtomicU64,
    begun: u64,
    state: Mutex<State>,
}

impl Meter {
    /// Is the work to end?
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Counts what was done.
    pub(crate) fn add(&self, amount: u64) {
        if self.amount.fetch_add(amount, Ordering::Relaxed) == 0 && amount > 0 {
            // The parent waits for it.
            self.set(State::Running);
        }
    }

    /// Replaces what was done, for work that counts by itself.
    pub(crate) fn set_amount(&self, amount: u64) {
        if self.amount.swap(amount, Ordering::Relaxed) == 0 && amount > 0 {
            self.set(State::Running);
        }
    }

    /// Replaces what came its way, lost or not.
    pub(crate) fn set_offered(&self, offered: u64) {
        self.offered.store(offered, Ordering::Relaxed);
    }

    /// Has all threads of the work end, for it cannot go on.
    pub(crate) fn give_up(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Says how far it is, at once.
    pub(crate) fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.note();
    }

    fn note(&self) {
        let record = Record {
            state: self.state.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            amount: self.amount.load(Ordering::Relaxed),
            time: Nanos(clock_ns(Clock::Monotonic).saturating_sub(self.begun)),
            offered: self.offered.load(Ordering::Relaxed),
        };
        record.write(std::io::stdout());
    }
}

/// Reads an order from standard input and works until its time limit, until standard input ends, or
/// until the parent is gone.
pub fn generate_stdin() -> Result<(), LoadError> {
    let order = Order::read(&mut BufReader::with_capacity(4096, std::io::stdin()))?;
    process::die_with_parent()?;
    if process::parent() != Some(order.parent) {
        return Ok(());
    }
    let begun = clock_ns(Clock::Monotonic);
    let meter = Meter {
        stop: AtomicBool::new(false),
        amount: AtomicU64::new(0),
        offered: AtomicU64::new(0),
        begun,
        state: Mutex::new(State::Starting),
    };
    let done = AtomicBool::new(false);
    let why = Mutex::new("it ended by itself".to_owned());
    let outcome = std::thread::scope(|scope| {
        let watch = || watch(&order, &meter, &done, &why);
        std::thread::Builder::new()
            .name("load/watch".to_owned())
            .spawn_scoped(scope, watch)
            .map_err(|source| LoadError::Work { what: "start a thread", source })?;
        let outcome = settle(&order).and_then(|()| jobs::work(&order.job, &meter));
        done.store(true, Ordering::Relaxed);
        outcome
    });
    let state = match &outcome {
        Ok(()) => State::Ended(why.into_inner().unwrap_or_else(PoisonError::into_inner)),
        Err(error) => State::Failed(error.to_string()),
    };
    meter.set(state);
    // It is told through the record: not a second time on the terminal.
    Ok(())
}

/// Into the namespace, onto the CPUs, and as ordinary as other programs, whatever the parent was.
fn settle(order: &Order) -> Result<(), LoadError> {
    if let Some((bed, side)) = &order.inside {
        let role = match side {
            Side::Client => Role::Client,
            Side::Server => Role::Server,
        };
        Bed::open(bed)?.enter(role)?;
    }
    place(&order.cpus)
}

/// Puts the calling thread on these CPUs under the ordinary policy.
pub(crate) fn place(cpus: &[CpuId]) -> Result<(), LoadError> {
    sched::set_other(0)?;
    // 50 us of slack would make bursts of what is paced; it is no fault where it stays.
    let _ = timerslack::set_ns(1_000);
    Ok(affinity::set(cpus)?)
}

/// Notes what was done, and says when to stop.
fn watch(order: &Order, meter: &Meter, done: &AtomicBool, why: &Mutex<String>) {
    // Where it cannot go there it stays beside the work: it sleeps nearly all the time.
    let _ = place(&order.housekeeping);
    let set_why = |text: String| *why.lock().unwrap_or_else(PoisonError::into_inner) = text;
    let end = order.end.0;
    let mut told_at = None;
    while !done.load(Ordering::Relaxed) {
        let now = clock_ns(Clock::Monotonic);
        match told_at {
            Some(at) if now > GRACE.0 + at => std::process::exit(1),
            Some(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
            None => {
                let rest = end.saturating_sub(now).min(NOTED_EVERY.0);
                let parent_let_go = input_ended(Nanos(rest));
                meter.note();
                let now = clock_ns(Clock::Monotonic);
                if parent_let_go || now >= end {
                    set_why(if parent_let_go {
                        "it was told to".to_owned()
                    } else {
                        format!("its time limit of {} passed", order.at_most)
                    });
                    meter.stop.store(true, Ordering::Relaxed);
                    told_at = Some(now);
                }
            }
        }
    }
}

/// Waits so long for the end of standard input.
fn input_ended(limit: Nanos) -> bool {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: (limit.0 / 1_000_000_000) as i64,
        tv_nsec: (limit.0 % 1_000_000_000) as i64,
    };
    // Nothing more is sent: whatever happens there is its end.
    rustix::event::poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}
