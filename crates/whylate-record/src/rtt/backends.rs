//! The same requests over several backends in turns: what does it save to go past the kernel's sockets?
//!
//! Experiment 5 of "Where Has My Time Gone?". In each round every backend is measured once, the first
//! one twice, in an order of its own that the seed draws; rate, size, arrivals, CPUs and the other end's
//! place are the same for all, and so are the instants of a round's requests. Each measurement opens its
//! ports anew, so that none has what another left. A backend that cannot be opened is a row with the
//! reason; one that fails later keeps the rounds it has. Where the first fails, there is nothing to set
//! others against.

mod pooled;
mod saved;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_gap::GapError;
use whylate_model::backends::{BackendMeasured, BackendRole, BackendRound, BackendRow, Backends};
use whylate_model::directory::RunDir;
use whylate_model::flow::{Asked, Packets};
use whylate_model::run::RunState;
use whylate_model::settings::{Setting, Settings};
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Ticks};
use whylate_net::Cookie;
use whylate_net::open_loop::{Ended, Latencies, OpenOutcome, Tell};
use whylate_port::Wait;
use whylate_port::open::{Target as Place, Transport};
use whylate_stats::Histogram;
use whylate_stats::rng::Rng;
use whylate_sys::memory;
use whylate_threads::Placement;

use super::Recording;
use super::ends::{self, Target, Wish};
use super::flow::{self, Names};
use super::pace::Pace;
use super::request::{FlowRequest, Request};
use crate::attend::{Attendant, Part};
use crate::progress::Progress;
use crate::{RecordError, Recorded};

use pooled::Pooled;

/// A round of fewer round trips has no 99th percentile.
const LEAST_FOR_P99: u64 = 100;
/// Why frames do not go over loopback.
const NO_FRAMES: &str = "loopback carries no Ethernet frames: use --bed lab (whylate lab up), or the address of \
     another machine and --interface NAME";

/// One backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backend {
    /// What carries the messages.
    pub transport: Transport,
    /// How the client waits for replies.
    pub wait: Wait,
}

impl Backend {
    /// Can messages of the comparison go by it? They are datagrams to an address.
    #[must_use]
    pub fn carries(transport: Transport) -> bool {
        transport == Transport::Udp || transport.carries_frames()
    }

    /// The ways to wait that fit it, one that spins and one that sleeps where it can: who sleeps for
    /// replies sends on another thread, which not every backend can be divided among.
    #[must_use]
    pub fn ways(transport: Transport) -> &'static [Wait] {
        match transport {
            Transport::Udp => &[Wait::Spin, Wait::Block],
            Transport::Packet => &[Wait::Spin, Wait::Poll],
            _ => &[Wait::Spin],
        }
    }

    /// Those of every transport that messages of the comparison can go by, but for devices of DPDK, which
    /// have to be named.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let carry = Transport::ALL.into_iter().filter(|transport| Self::carries(*transport));
        let carry = carry.filter(|transport| *transport != Transport::Dpdk);
        let of = |transport: Transport| {
            Self::ways(transport).iter().map(move |&wait| Self { transport, wait })
        };
        carry.flat_map(of).collect()
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transport, self.wait)
    }
}

/// What is asked of a comparison.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// What is asked of each: one flow, whose transport and wait are those of the first backend. Its times
    /// are those of one backend in one round.
    pub request: Request,
    /// The backends; the others are set against the first.
    pub backends: Vec<Backend>,
    /// Rounds.
    pub rounds: u32,
    /// Does the reflector go by the backend that is measured, too? If not, it spins over UDP for all.
    pub both_ends: bool,
}

impl Comparison {
    /// Refuses what cannot be measured, before anything is touched.
    ///
    /// # Errors
    /// The first thing of it that cannot be measured.
    pub fn check(&self) -> Result<(), RecordError> {
        self.request.check()?;
        let refuse = |flow: &FlowRequest, reason: &str| {
            Err(RecordError::Flow { flow: flow.name.clone(), reason: reason.to_owned() })
        };
        let flow = &self.request.flows[0];
        let Some(first) = self.backends.first() else {
            return refuse(flow, "there is no backend to compare: name one");
        };
        if self.request.flows.len() > 1 || flow.one_way {
            return refuse(flow, "backends are compared by one flow that asks for replies");
        }
        if let Target::Across(_) = flow.target {
            return refuse(
                flow,
                "backends are compared by what comes back from another end: measure each of them \
                 across by itself, and compare the runs (whylate compare)",
            );
        }
        if let (Target::At(_), true) = (&flow.target, self.both_ends) {
            return refuse(
                flow,
                "a reflector at an address keeps the transport that it was started with: leave --both-ends \
                 out, or use a test network (--bed)",
            );
        }
        if self.backends.iter().any(|backend| backend.transport == Transport::Dpdk)
            && self.request.options.link.device.keeps_its_queue()
        {
            return refuse(
                flow,
                "the driver net_af_xdp keeps its interface's queue until the process ends, and every \
                 round opens it anew: measure it in runs of its own, beside others of --transport xdp",
            );
        }
        match self.unfit(*first) {
            Some(reason) => refuse(flow, &reason),
            None => Ok(()),
        }
    }

    /// Why this backend cannot reach the other end, where that is known beforehand.
    fn unfit(&self, backend: Backend) -> Option<String> {
        let loopback = match &self.request.flows[0].target {
            Target::Own { bed, .. } => bed.is_none(),
            Target::Across(_) => false,
            Target::At(Place::Address(address)) => address.ip().is_loopback(),
            Target::At(Place::Path(_)) => true,
        };
        (loopback && backend.transport.carries_frames()).then(|| NO_FRAMES.to_owned())
    }

    /// Who answers, in words.
    fn other_end(&self) -> String {
        let target = &self.request.flows[0].target;
        match (target, self.both_ends) {
            (Target::At(_) | Target::Across(_), _) => format!("{target}, the same for all"),
            (Target::Own { .. }, false) => format!("{target}, which spins over udp for all"),
            (Target::Own { .. }, true) => {
                format!("{target}, by the backend that is measured, waiting as it does")
            }
        }
    }
}

/// Measures into `directory` until all rounds are over or `stop` is set.
///
/// # Errors
/// What is asked for cannot be measured on this host, an instrument failed meanwhile, or the run directory
/// cannot be written.
pub fn record(
    comparison: &Comparison,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    comparison.check()?;
    let undo = directory.undo();
    let recorded = Recording::begin(&comparison.request, directory, (stop, |_, _| None))
        .map(|recording| Comparing::new(comparison, recording))
        .and_then(|mut comparing| comparing.measure(progress).map(|()| comparing))
        .and_then(Comparing::unless_stopped_before);
    match recorded {
        Ok(comparing) => Ok(comparing.conclude()),
        Err(error) => {
            undo.remove();
            Err(error)
        }
    }
}

struct Comparing<'a> {
    of: &'a Comparison,
    recording: Recording<'a>,
    /// In the order of the rows.
    slots: Vec<Slot>,
    rows: Vec<BackendRow>,
    order: Vec<Vec<u32>>,
    /// The first request of all.
    began: Option<Ticks>,
}

/// What is asked of one backend, and what has come of it.
struct Slot {
    request: Request,
    /// By which way the reflector goes.
    far: FlowRequest,
    pooled: Pooled,
}

/// May the rounds go on?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Goes,
    Ends,
}

impl<'a> Comparing<'a> {
    fn new(of: &'a Comparison, recording: Recording<'a>) -> Self {
        let resolution_ns = recording.bench.resolution_ns();
        let (mut slots, mut rows) = (Vec::new(), Vec::new());
        let mut add = |backend: Backend, role: BackendRole, name: String| {
            slots.push(Slot::new(of, backend, &name, resolution_ns));
            let reason = of.unfit(backend);
            let (backend, saved) = (backend.to_string(), Vec::new());
            rows.push(BackendRow { backend, role, measured: None, reason, saved });
        };
        for (number, backend) in of.backends.iter().enumerate() {
            let name = format!("{}-{}", backend.transport, backend.wait);
            if number > 0 {
                add(*backend, BackendRole::Compared, name);
                continue;
            }
            add(*backend, BackendRole::First, name.clone());
            add(*backend, BackendRole::Control, format!("{name}-again"));
        }
        Self { of, recording, slots, rows, order: Vec::new(), began: None }
    }

    fn measure(&mut self, progress: &mut dyn Progress) -> Result<(), RecordError> {
        for round in 0..self.of.rounds {
            if self.round(round, progress)? == Next::Ends {
                return Ok(());
            }
            self.checkpoint();
        }
        Ok(())
    }

    fn round(&mut self, round: u32, progress: &mut dyn Progress) -> Result<Next, RecordError> {
        let alive = self.rows.iter().map(|row| row.reason.is_none());
        let order = in_turns(&alive.collect::<Vec<_>>(), self.of.request.seed, round);
        self.order.push(Vec::new());
        for slot in order {
            if self.recording.is_stopped() {
                return Ok(Next::Ends);
            }
            if let Some(order) = self.order.last_mut() {
                order.push(slot as u32);
            }
            match self.one(slot, round, progress) {
                Ok(Some(outcome)) => self.take(slot, round, &outcome),
                Ok(None) => return Ok(Next::Ends),
                Err(error) => {
                    if self.failed(slot, error)? == Next::Ends {
                        return Ok(Next::Ends);
                    }
                }
            }
        }
        Ok(Next::Goes)
    }

    /// One backend in one round; none when the run is to stop.
    fn one(
        &mut self,
        slot: usize,
        round: u32,
        progress: &mut dyn Progress,
    ) -> Result<Option<OpenOutcome>, RecordError> {
        let Slot { request, far, .. } = &self.slots[slot];
        let (flow, recording) = (&request.flows[0], &mut self.recording);
        let protocol = flow.protocol.with(Cookie::fresh());
        let framing = protocol.framing();
        let mut ends =
            ends::open_unlike(request, (flow, far), (&recording.bench, Wish::default()), framing)?;
        let mut settings = request.open_loop(flow, recording.bench.rate);
        settings.plan.seed = request.seed.wrapping_add(u64::from(round));
        settings.interval = settings.duration;
        let (cpus, watched) = (request.cpus(), ends.watched());
        let what = format!("round {} of {}", round + 1, self.of.rounds);
        let duration = Nanos(request.warmup.0 + request.duration.0);
        let part = Part { what: &what, duration, cpus: &cpus, watched: &watched };
        let (stop, halt) = (recording.stop, AtomicBool::new(false));
        // It may share a CPU with an end, and there is nothing that it must take in.
        let pace = Pace::beside_an_end(false, 0.0);
        let placement = Placement { cpu: Some(flow.cpu), fifo: flow.fifo };
        let mut counter = recording.bench.counter;
        let near = &mut *ends.near;
        let mut attendant = Attendant {
            bench: &mut recording.bench,
            progress,
            warnings: &mut recording.warnings,
            every: pace.wake,
            host_every: pace.host,
            beside: &mut |_| {
                if stop.load(Ordering::Relaxed) {
                    halt.store(true, Ordering::Relaxed);
                }
            },
        };
        let done = attendant.attend(&part, || -> Result<_, RecordError> {
            let (_, warnings) = placement.settle()?;
            let mut nobody = |_, latencies: &mut Latencies| latencies.clear();
            let tell = Tell::intervals(&mut nobody);
            let outcome = settings.run(near, &mut counter, &*protocol, &halt, tell)?;
            Ok((outcome, warnings))
        })?;
        let (outcome, warnings) = done?;
        recording.warnings.extend(warnings);
        if recording.is_stopped() || matches!(outcome.why, Ended::Stopped) {
            return Ok(None);
        }
        match ends.cut_short(&outcome.why, outcome.account.is_some()) {
            Some(reason) => Err(RecordError::Flow { flow: flow.name.clone(), reason }),
            None => Ok(Some(outcome)),
        }
    }

    fn take(&mut self, slot: usize, round: u32, outcome: &OpenOutcome) {
        let (of, recording) = (&mut self.slots[slot], &mut self.recording);
        let flow = &of.request.flows[0];
        let length = of.request.duration;
        let began = outcome.began.or(self.began).unwrap_or(Ticks(0));
        let first = *self.began.get_or_insert(began);
        let start = began.since(first).to_nanos(recording.bench.rate);
        of.pooled.add(outcome, (round, start, length), &mut recording.storage);
        if !outcome.adds_up() {
            recording.warnings.push(Warning::AccountBroken { flow: flow.name.clone() });
        }
        let names = of.pooled.names(outcome.closed);
        let way = flow::way(outcome, flow.cpu);
        let measured = self.rows[slot].measured.get_or_insert_with(|| BackendMeasured {
            service: names.0,
            response: names.1,
            way: way.clone(),
            packets: Packets::default(),
            rounds: Vec::new(),
            trust: None,
        });
        measured.way = way;
        measured.packets.add(&flow::packets(outcome));
        measured.rounds.push(round_of(round, outcome, length));
    }

    /// A backend that failed is not tried again. Without the first there is nothing to compare with.
    fn failed(&mut self, slot: usize, error: RecordError) -> Result<Next, RecordError> {
        let row = &mut self.rows[slot];
        let reason = give_up(row, error)?;
        if row.role == BackendRole::Compared {
            return Ok(Next::Goes);
        }
        let part = format!("the backend {}, which the others are set against,", row.backend);
        self.recording.warnings.push(Warning::PartEndedEarly { part, reason });
        Ok(Next::Ends)
    }

    fn checkpoint(&mut self) {
        let Some(began) = self.began else { return };
        let recording = &mut self.recording;
        let elapsed = recording.bench.counter.read().since(began).to_nanos(recording.bench.rate);
        if recording.storage.checkpoint_is_due(elapsed) {
            recording.series = self.slots.iter().flat_map(|slot| slot.pooled.series()).collect();
            let mut run = recording.run(RunState::Running);
            run.backends = Some(Box::new(self.found()));
            self.recording.storage.checkpoint(&mut run);
        }
    }

    fn found(&self) -> Backends {
        let request = &self.of.request;
        let flow = &request.flows[0];
        let settings = request.open_loop(flow, self.recording.bench.rate);
        let asked = flow::asked(flow, &settings, request.options.link.tags.count());
        let mut rows = self.rows.clone();
        saved::fill(&mut rows, asked.per_second.is_some(), request.seed);
        for (row, slot) in rows.iter_mut().zip(&self.slots) {
            if let Some(measured) = &mut row.measured {
                let conditions = (asked.per_second, asked.bytes);
                measured.trust = self.recording.trust(&slot.request.flows[0], conditions);
            }
        }
        Backends {
            other_end: self.of.other_end(),
            both_ends: self.of.both_ends,
            asked,
            rounds: self.of.rounds,
            length: request.duration,
            warmup: request.warmup,
            order: self.order.clone(),
            rows,
        }
    }

    /// Refuses what was stopped before the first round of the first backend was over.
    fn unless_stopped_before(self) -> Result<Self, RecordError> {
        let nothing = self.rows.iter().all(|row| row.measured.is_none());
        if nothing && self.recording.is_stopped() {
            return Err(GapError::Stopped.into());
        }
        Ok(self)
    }

    fn conclude(mut self) -> Recorded {
        let found = self.found();
        let recording = &mut self.recording;
        // Harmless where it was never locked.
        let _ = memory::unlock_all();
        let state = if recording.is_stopped() { RunState::Stopped } else { RunState::Complete };
        if state == RunState::Stopped {
            recording.warnings.push(Warning::Interrupted);
        }
        recording.series = self.slots.iter().flat_map(|slot| slot.pooled.series()).collect();
        recording.storage.close();
        recording.bench.measure_clock_again();
        let mut run = recording.run(state);
        run.settings.extend(settings(self.of, &found.asked));
        run.backends = Some(Box::new(found));
        recording.storage.conclude(&mut run);
        Recorded { run }
    }
}

/// What is to be said beside the settings of a single recording: what was asked of each backend, too, which a sum of
/// such runs knows by them alone.
fn settings(of: &Comparison, asked: &Asked) -> Settings {
    let mut settings = Settings::from([
        ("rounds".to_owned(), of.rounds.into()),
        ("times are".to_owned(), "of each backend in each round".into()),
        ("way".to_owned(), "that of each backend in turns".into()),
        ("size".to_owned(), Setting::SizeBytes(u64::from(asked.bytes))),
        ("arrivals".to_owned(), asked.arrivals.clone().into()),
    ]);
    settings.extend(asked.per_second.map(|rate| ("rate".to_owned(), Setting::RatePerS(rate))));
    settings
}

impl Slot {
    fn new(of: &Comparison, backend: Backend, name: &str, resolution_ns: f64) -> Self {
        let mut near = of.request.flows[0].clone();
        name.clone_into(&mut near.name);
        (near.transport, near.wait) = (backend.transport, backend.wait);
        let mut far = near.clone();
        if !of.both_ends {
            (far.transport, far.wait) = (Transport::Udp, Wait::Spin);
        }
        let names = Names { flow: name.to_owned(), alone: false, across: None, resolution_ns };
        let request = Request { flows: vec![near], ..of.request.clone() };
        Self { request, far, pooled: Pooled::new(names) }
    }
}

/// Those that are still there, in an order that the seed draws for this round.
fn in_turns(alive: &[bool], seed: u64, round: u32) -> Vec<usize> {
    let alive = alive.iter().enumerate().filter(|(_, alive)| **alive);
    let mut order: Vec<usize> = alive.map(|(slot, _)| slot).collect();
    Rng::stream(seed, u64::from(round)).shuffle(&mut order);
    order
}

/// Notes why a backend failed; it keeps the rounds that it has. Of the first, before it has one, the
/// error comes back.
fn give_up(row: &mut BackendRow, error: RecordError) -> Result<String, RecordError> {
    if row.role != BackendRole::Compared && row.measured.is_none() {
        return Err(error);
    }
    let reason = match error {
        RecordError::Flow { reason, .. } => reason,
        error => error.to_string(),
    };
    row.reason = Some(reason.clone());
    Ok(reason)
}

fn round_of(round: u32, outcome: &OpenOutcome, length: Nanos) -> BackendRound {
    let (values, above) = (&outcome.latencies.service, outcome.given_up.service_above);
    let p99 = known(values, 99.0, above).filter(|_| values.len() >= LEAST_FOR_P99);
    BackendRound {
        round,
        n: values.len(),
        per_second: outcome.departures.in_time as f64 * 1e9 / length.0.max(1) as f64,
        p50: known(values, 50.0, above),
        p99,
    }
}

/// A percentile of values of which nothing is known from `above` on.
fn known(values: &Histogram, percent: f64, above: Option<Nanos>) -> Option<Nanos> {
    let value = Nanos(values.value_at(percent)?);
    above.is_none_or(|above| value < above).then_some(value)
}

#[cfg(test)]
mod tests;
