//! The threads that forward: one, or two of which the first opens the ports for both.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::thread;

use whylate_clock::HardwareCounter;
use whylate_host::journal::Journal;
use whylate_model::forward::InterfaceCounts;
use whylate_model::warning::Warning;
use whylate_net::NetError;
use whylate_net::forward::{
    self, Account, Cost, Forwarder, Halt, Opened, Times, Told as OfThread, Why,
};
use whylate_net::lab::Role;
use whylate_port::frames::{Frames, FramesFacts};
use whylate_threads::Placement;
use whylate_threads::placement::Seat;

use super::ForwardRequest;
use super::tags::Tags;
use crate::service;
use crate::{RecordError, date_ns};

/// Name of the second thread, as `ps -L` shows it.
const SECOND: &str = "forward/1";

/// What the threads tell.
#[expect(clippy::large_enum_variant, reason = "some are sent a second; a box would be allocated")]
pub(super) enum Told {
    /// Frames are forwarded from here on.
    Begun(Box<Begun>),
    /// A thread has its place.
    Seated { seat: Seat, warnings: Vec<Warning> },
    /// An interval of a direction is over. Its histograms go back empty.
    Interval { direction: usize, index: u64, times: Times },
    /// What a thread has done until now.
    Account { thread: usize, account: Box<Account> },
    /// The interfaces' counters, as they are now.
    Counters(Box<[Option<InterfaceCounts>; 2]>),
    /// A thread has ended.
    Ended { why: Why },
    /// A thread panicked, with these words. What it told before is all that is known of it.
    Panicked { thread: usize, why: String },
}

/// What is known when frames are forwarded from here on.
pub(super) struct Begun {
    /// When, in nanoseconds since 1970.
    pub(super) since_ns: u64,
    pub(super) facts: [FramesFacts; 2],
    pub(super) before: [Option<InterfaceCounts>; 2],
    pub(super) cost: Option<Cost>,
}

/// What the threads are given.
type Crew = service::Crew<Told, Times>;

/// Forwards on the calling thread, and on another one where there are two, until it is to end. What is
/// changed of interfaces for that is in the journal.
pub(super) fn work(
    request: &ForwardRequest,
    (crew, journal): (&Crew, Option<&Journal>),
    stop: &AtomicBool,
) -> Result<(), RecordError> {
    crew.spread()?;
    if let Some(bed) = &request.bed {
        // The other thread is born there.
        bed.enter(Role::Device)?;
    }
    // Where it is to run the stamps' cost is measured, too.
    seat(request, 0, crew)?;
    // Before the ports are there, and until they are gone.
    let tags = Tags::keep(request.plan.transport, &request.plan.interfaces, journal);
    let Opened { forwarders, mut facts, before, cost, hold } =
        forward::open(&request.plan, crew.counter, crew.rate)?;
    tags.tell(&mut facts);
    let interfaces = [facts[0].index, facts[1].index];
    let since_ns = date_ns();
    crew.tell(Told::Begun(Box::new(Begun { since_ns, facts, before, cost })));
    let halt = &Halt::new(stop);
    let mut forwarders = forwarders.into_iter();
    let (first, second) = (forwarders.next(), forwarders.next());
    thread::scope(|scope| -> Result<(), RecordError> {
        // However this thread ends, the other one need not go on alone; nor this one without the other.
        let _ending = halt.ends_with();
        let other = second.map(|forwarder| {
            let builder = thread::Builder::new().name(SECOND.to_owned());
            let work = move || -> Result<(), RecordError> {
                let _ending = halt.ends_with();
                seat(request, 1, crew)?;
                carry(forwarder, 1, halt, crew);
                Ok(())
            };
            builder.spawn_scoped(scope, work).map_err(RecordError::NoThread)
        });
        let other = other.transpose()?;
        if let Some(first) = first {
            carry(first, 0, halt, crew);
        }
        match other {
            Some(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Ok(()),
        }
    })?;
    crew.tell(Told::Counters(Box::new(interfaces.map(forward::counters))));
    drop(hold);
    Ok(())
}

/// Takes the calling thread to its CPU.
fn seat(request: &ForwardRequest, thread: usize, crew: &Crew) -> Result<(), RecordError> {
    let cpu = request.cpus.get(thread).copied();
    let placement = Placement { cpu, fifo: request.fifo };
    let (seat, warnings) = placement.settle().map_err(NetError::from)?;
    crew.tell(Told::Seated { seat, warnings });
    Ok(())
}

/// Forwards on the calling thread, and tells what comes of it.
fn carry(
    mut forwarder: Forwarder<HardwareCounter, Box<dyn Frames>>,
    thread: usize,
    halt: &Halt<'_>,
    crew: &Crew,
) {
    let mut watch = |told: OfThread<'_>| {
        let index = told.index;
        for (way, direction) in told.ways.iter_mut().zip(told.directions) {
            let times = crew.taken(&mut way.stamped.times);
            crew.tell(Told::Interval { direction: *direction, index, times });
        }
        let account = Box::new(told.account);
        crew.tell(Told::Account { thread, account });
    };
    match caught(|| forwarder.run(halt, &mut watch)) {
        Ok(why) => crew.tell(Told::Ended { why }),
        Err(why) => crew.tell(Told::Panicked { thread, why }),
    }
}

/// What this gives, or the words that it panicked with: what both threads measured until then is kept.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    // Nothing that it worked on is used again.
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| words(&*panic))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    let words = literal.or_else(|| panic.downcast_ref::<String>().cloned());
    words.unwrap_or_else(|| "without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_forwarding_thread_is_told_in_its_words() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught(|| -> u8 { panic!("planted") }), Err("planted".to_owned()));
        let number = 7;
        assert_eq!(caught(|| -> u8 { panic!("planted {number}") }), Err("planted 7".to_owned()));
        let odd = caught(|| -> u8 { std::panic::panic_any(number) });
        assert_eq!(odd, Err("without words".to_owned()));
    }
}
