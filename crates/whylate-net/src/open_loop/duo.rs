//! Two open loops of one client in turns on one thread that spins: messages leave by the one port and
//! come back by the other, both ways at once.
//!
//! Each flow has its own schedule, account and histograms, as if it were alone; a look is left out where
//! the other flow is about to send. The second flow begins half a distance after the first, so that two
//! constant rates do not meet in every send. Whoever fails ends both.
//!
//! Guarantees: those of [`OpenLoop`], for each flow. Not for ports that sleep, which have threads of their
//! own, nor for closed loops, which wait for replies.

mod hot;

use std::sync::atomic::AtomicBool;

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_port::across::{self, Crossed};
use whylate_port::{Port, PortError, PortFacts};

use super::flight::Flight;
use super::hot::{Guard, Lane};
use super::outcome::{Course, OfPort};
use super::pacing::Pacing;
use super::receiver::Receiver;
use super::sender::Sender;
use super::{Ended, LEAD, Latencies, OpenLoop, OpenOutcome, Tell, guard};
use crate::conversation::Scale;
use crate::error::NetError;
use crate::protocol::{Phase, Protocol};

/// One of two flows in opposite directions.
pub struct Way<'a> {
    /// What is measured.
    pub settings: &'a OpenLoop,
    /// What both ports speak: one whose requests are heard as they left
    /// ([`Through`](crate::protocol::Through)).
    pub protocol: &'a dyn Protocol,
    /// Who is told what.
    pub tell: Tell<'a>,
}

/// Both ports, and what is known of either way between them.
struct Ports<'p, A: ?Sized, B: ?Sized> {
    near: &'p mut A,
    far: &'p mut B,
    facts: &'p [PortFacts; 2],
}

impl<A: Port + ?Sized, B: Port + ?Sized> Ports<'_, A, B> {
    #[inline(always)]
    fn there(&mut self) -> Crossed<'_, A, B> {
        Crossed { out: &mut *self.near, back: &mut *self.far, facts: &self.facts[0] }
    }

    #[inline(always)]
    fn back(&mut self) -> Crossed<'_, B, A> {
        Crossed { out: &mut *self.far, back: &mut *self.near, facts: &self.facts[1] }
    }
}

/// What each flow knows when it has warmed up.
type Warm = [(Guard, Pacing); 2];
/// What is measured, and what both ports speak.
type Asked<'a> = (&'a OpenLoop, &'a dyn Protocol);

/// Measures both ways on the calling thread, until both schedules are over or `stop` is set: the first
/// from `near` to `far`, the second from there to `near`. `counter` is the one that both ports stamp by.
///
/// # Errors
/// Settings that cannot be measured, and whatever keeps one of the two from being begun.
pub fn run_both<A, B, C>(
    [there, back]: [Way<'_>; 2],
    (near, far): (&mut A, &mut B),
    counter: &mut C,
    stop: &AtomicBool,
) -> Result<[OpenOutcome; 2], NetError>
where
    A: Port + ?Sized,
    B: Port + ?Sized,
    C: Counter + Clone,
{
    let asked = [(there.settings, there.protocol), (back.settings, back.protocol)];
    for (settings, protocol) in asked {
        settings.check(protocol)?;
        if settings.plan.is_closed() {
            return Err(NetError::NothingToWaitFor);
        }
    }
    let facts =
        [across::facts(near.facts(), far.facts()), across::facts(far.facts(), near.facts())];
    let mut ports = Ports { near, far, facts: &facts };
    let ready = prepare(asked, &mut ports, counter, stop)?;

    let [(first, first_protocol), (second, second_protocol)] = asked;
    let now = counter.read_ordered().0;
    let begins = begins(second, now);
    let flights = asked.map(|(settings, _)| flight(settings));
    let (to_first, to_second) = (there.tell.for_this_call(), back.tell.for_this_call());
    let mut receivers = (
        first.receiver(first_protocol, &flights[0], begins[0], to_first),
        second.receiver(second_protocol, &flights[1], begins[1], to_second),
    );
    let [pace, second_pace] = match &ready {
        Ok([(_, first), (_, second)]) => [*first, *second],
        Err(_) => asked.map(|(settings, _)| Pacing::new(settings.rate)),
    };
    let phase = Phase::Measured;
    let time = [(begins[0], first.duration), (begins[1], second.duration)];
    let mut senders = (
        Sender::new(first, (first_protocol, phase), &flights[0], time[0], pace),
        Sender::new(second, (second_protocol, phase), &flights[1], time[1], second_pace),
    );
    let (why, ended) = match ready {
        Err(why) => (why, None),
        Ok([(first_guard, _), (second_guard, _)]) => {
            receivers.0.ledger.thread(now);
            receivers.1.ledger.thread(now);
            let until = [first.until(begins[0]), second.until(begins[1])];
            let lanes = (
                Lane::new(&mut senders.0, &mut receivers.0, first_guard, until[0]),
                Lane::new(&mut senders.1, &mut receivers.1, second_guard, until[1]),
            );
            let why = hot::pump(&mut ports, counter, lanes, stop);
            (why, Some(counter.read_ordered().0))
        }
    };
    let abandoned = come_to_rest(&mut ports, counter, &mut receivers, (&why, ended.is_some()));
    let of_ports = (
        OfPort::of(&mut ports.there(), facts[0].clone()),
        OfPort::of(&mut ports.back(), facts[1].clone()),
    );
    let [why, second_why] = why;
    let course = |begin: Ticks, why, abandoned| {
        let began = ended.map(|_| begin);
        Course { began, ended, why, abandoned }
    };
    let courses =
        (course(begins[0], why, abandoned[0]), course(begins[1], second_why, abandoned[1]));
    Ok([
        first.conclude(first_protocol, (senders.0, receivers.0), courses.0, of_ports.0),
        second.conclude(second_protocol, (senders.1, receivers.1), courses.1, of_ports.1),
    ])
}

fn flight(settings: &OpenLoop) -> Flight {
    Flight::new(settings.plan.mean_rate(), settings.timeout)
}

/// When the first request of each is intended, as seen at `now`.
fn begins(second: &OpenLoop, now: Ticks) -> [Ticks; 2] {
    let scale = Scale::new(second.rate);
    let lead = scale.ticks(LEAD).0;
    // Half of a second over the rate: at a low one nobody waits for that.
    let half = Nanos((5e8 / second.plan.mean_rate()) as u64).min(LEAD);
    [Ticks(now.0 + lead), Ticks(now.0 + lead + scale.ticks(half).0)]
}

/// Greets and warms up both ways; why that ended, where nothing can be measured after it.
fn prepare<A, B, C>(
    asked: [Asked<'_>; 2],
    ports: &mut Ports<'_, A, B>,
    counter: &mut C,
    stop: &AtomicBool,
) -> Result<Result<Warm, [Ended; 2]>, NetError>
where
    A: Port + ?Sized,
    B: Port + ?Sized,
    C: Counter + Clone,
{
    let [(first, first_protocol), (second, second_protocol)] = asked;
    let flights = asked.map(|(settings, _)| flight(settings));
    let begin = counter.read_ordered().0;
    let mut nobody = |_, latencies: &mut Latencies| latencies.clear();
    let mut nobody_else = |_, latencies: &mut Latencies| latencies.clear();
    let (to_first, to_second) = (Tell::intervals(&mut nobody), Tell::intervals(&mut nobody_else));
    let mut receivers = (
        first.warming_up(first_protocol, &flights[0], begin, to_first),
        second.warming_up(second_protocol, &flights[1], begin, to_second),
    );
    let greeted =
        first.greet(&mut ports.there(), counter, first_protocol, &mut receivers.0, stop)?
            && second.greet(&mut ports.back(), counter, second_protocol, &mut receivers.1, stop)?;
    if !greeted {
        return Ok(Err([Ended::Stopped, Ended::Stopped]));
    }
    let guards = [
        guard(&mut ports.there(), counter, &mut receivers.0).map_err(NetError::Port)?,
        guard(&mut ports.back(), counter, &mut receivers.1).map_err(NetError::Port)?,
    ];
    let pacing = asked.map(|(settings, _)| Pacing::new(settings.rate));
    if first.warmup.0 == 0 && second.warmup.0 == 0 {
        return Ok(Ok([(guards[0], pacing[0]), (guards[1], pacing[1])]));
    }
    let begins = begins(second, counter.read_ordered().0);
    let until = |settings: &OpenLoop, begin: Ticks| {
        Ticks(begin.0 + Scale::new(settings.rate).ticks(settings.warmup).0)
    };
    let phase = Phase::WarmUp;
    let time = [(begins[0], first.warmup), (begins[1], second.warmup)];
    let mut senders = (
        Sender::new(first, (first_protocol, phase), &flights[0], time[0], pacing[0]),
        Sender::new(second, (second_protocol, phase), &flights[1], time[1], pacing[1]),
    );
    let lanes = (
        Lane::new(&mut senders.0, &mut receivers.0, guards[0], until(first, begins[0])),
        Lane::new(&mut senders.1, &mut receivers.1, guards[1], until(second, begins[1])),
    );
    Ok(match hot::pump(ports, counter, lanes, stop) {
        [Ended::Duration, Ended::Duration] => {
            let next = [senders.0.pacing.next_phase(), senders.1.pacing.next_phase()];
            Ok([(guards[0], next[0]), (guards[1], next[1])])
        }
        other => Err(other),
    })
}

/// Takes in what is still under way both ways, or gives all of it up where that cannot be done: how many
/// those are, of each.
fn come_to_rest<A, B, C>(
    ports: &mut Ports<'_, A, B>,
    counter: &mut C,
    (first, second): &mut (Receiver<'_>, Receiver<'_>),
    (why, measured): (&[Ended; 2], bool),
) -> [u64; 2]
where
    A: Port + ?Sized,
    B: Port + ?Sized,
    C: Counter,
{
    let failed = why.iter().any(|why| matches!(why, Ended::Failed(_)));
    let ends = (&mut *first, &mut *second);
    if failed || !measured || drain(ports, counter, ends).is_err() {
        return [first.abandon(), second.abandon()];
    }
    first.set.drained();
    second.set.drained();
    [0, 0]
}

/// In turns: what came the one way must not wait for what is lost on the other.
fn drain<A, B, C>(
    ports: &mut Ports<'_, A, B>,
    counter: &mut C,
    (first, second): (&mut Receiver<'_>, &mut Receiver<'_>),
) -> Result<(), PortError>
where
    A: Port + ?Sized,
    B: Port + ?Sized,
    C: Counter,
{
    while first.is_waiting() || second.is_waiting() {
        first.look(&mut ports.there(), Nanos(0))?;
        second.look(&mut ports.back(), Nanos(0))?;
        let now = counter.read_ordered().0;
        first.give_up(now);
        second.give_up(now);
    }
    Ok(())
}
