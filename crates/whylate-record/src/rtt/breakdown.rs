//! Where requests spend their time, looked at while they go on.
//!
//! The client's readings come with its requests, the kernel's stamps of its sockets through a ring, what
//! the reflector read through memory that both share, and what the kernel did through its trace, one for
//! all flows. Stamps by the system's clock are laid on the counter's timeline first, and those of a card
//! by its own clock through the system's. All of it is met by
//! request and composed into parts that sum to the whole. What cannot be had is said and done without:
//! the trace without stamps, stamps without the trace, and without both the total alone.

mod asked;
mod came;
mod card;
mod far;
mod of_flow;
pub(super) mod open;

use std::path::Path;
use std::time::Duration;

use whylate_breakdown::compose::Composed;
use whylate_breakdown::follow::{Follower, Limits};
use whylate_clock::HardwareCounter;
use whylate_clock::relation::Relation;
use whylate_model::run::TraceFacts;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks};
use whylate_net::open_loop::settled::Settled;

use super::request::Request;
use super::tap::{self, LiveTap};
use crate::storage::Storage;
use crate::way_trace::{Came, WayTrace};
use crate::workbench::Workbench;

pub(super) use asked::{Extent, Sources, what};
pub use asked::{TakeApart, TapFile};
pub(super) use came::{counted, dropped, unheard};
pub(super) use of_flow::{FlowParts, Hand};

/// Stamps of a request, and what the other end read of it, have come when it was answered so long ago:
/// a client takes them in between two requests.
const ALL_TOLD: Nanos = Nanos(200_000_000);
/// What is still on its way at the end has come after this; the clocks are related no more often.
pub(super) const LAST_TOLD: Duration = Duration::from_millis(15);

/// Why stamps have no place.
const UNPLACED: &str = "the system's clock was stepped in their time, or they came when it was not \
                        related to the counter";
/// Why what was told of requests was not put together with them.
const CROWDED: &str = "they came too late to be put together, or there was no room";

/// Takes flows apart while they go on.
pub(super) struct Apart {
    rate: Hertz,
    counter: HardwareCounter,
    resolution: Nanos,
    /// How far the counter of a CPU may be from the timeline.
    cpu_bound: Nanos,
    trace: Option<WayTrace>,
    follower: Follower,
    online: Vec<CpuId>,
    relation: Relation,
    flows: Vec<FlowParts>,
    /// Are journeys kept one by one?
    keeps: bool,
    /// The tap of the flows' bed, with their places among these.
    tap: Option<(LiveTap, Vec<usize>)>,
    /// What a tap writes, to be read in the end.
    tap_file: Option<TapFile>,
}

/// What came of it.
pub(super) struct Found {
    /// By the number of the flow.
    pub(super) flows: Vec<(usize, Composed)>,
    pub(super) trace: Option<TraceFacts>,
    pub(super) warnings: Vec<Warning>,
}

impl Apart {
    /// Begins to look at these flows; none where there is none.
    pub(super) fn begin(
        request: &Request,
        (bench, asked): (&Workbench, &TakeApart),
        directory: Option<&Path>,
        flows: Vec<FlowParts>,
        warnings: &mut Vec<Warning>,
    ) -> Option<Self> {
        if flows.is_empty() {
            return None;
        }
        let traced = flows.iter().any(|flow| flow.sources.trace);
        let online = bench.topology.online();
        let reflectors: Vec<Pid> = flows.iter().filter_map(FlowParts::reflector).collect();
        let trace = traced.then(|| WayTrace::start(&bench.journal, online, &reflectors));
        let trace = trace.and_then(|trace| trace.map_err(|no| warnings.push(no.into())).ok());
        let (mut counter, mut relation) = (bench.counter, Relation::new(bench.rate));
        relation.observe(&mut counter);
        let patience = request.timeout.to_ticks(bench.rate);
        let mut apart = Self {
            rate: bench.rate,
            counter,
            resolution: Nanos(bench.resolution_ns().ceil() as u64),
            cpu_bound: bench.cpu_bound(),
            trace,
            follower: Follower::new(Limits::usual(online.to_vec(), patience)),
            online: online.to_vec(),
            relation,
            flows,
            keeps: request.log_packets,
            tap: None,
            tap_file: asked.tap.clone(),
        };
        if let Some(directory) = directory {
            apart.read_tap(directory, warnings);
        }
        if apart.trace.is_none() {
            apart.flows.iter_mut().for_each(FlowParts::without_trace);
        }
        let alone = apart.flows.iter().filter(|flow| flow.sources.are_none());
        warnings.extend(alone.map(|flow| total_alone(&flow.name)));
        Some(apart)
    }

    /// Begins to read the tap of the bed that flows go through, where it has one.
    fn read_tap(&mut self, directory: &Path, warnings: &mut Vec<Warning>) {
        let tapped = self.flows.iter().enumerate().filter(|(_, flow)| flow.tapped_bed().is_some());
        let places: Vec<usize> = tapped.map(|(place, _)| place).collect();
        let bed = self.flows.iter().find_map(|flow| flow.tapped_bed().cloned());
        let Some(bed) = bed else { return };
        let followed: Vec<_> = places.iter().map(|place| self.flows[*place].followed()).collect();
        match LiveTap::start(&bed, directory, &followed) {
            Ok(tap) => self.tap = Some((tap, places)),
            Err(error) => {
                for place in &places {
                    self.flows[*place].without_tap();
                }
                let part = format!("the tap of the bed {}", bed.name());
                warnings.push(Warning::PartLeftOut { part, reason: error.to_string() });
            }
        }
    }

    /// Ends the tap, or reads what it has written.
    fn end_tap(&mut self, warnings: &mut Vec<Warning>) {
        let (flows, part) = (&mut self.flows, "what the tap saw".to_owned());
        let (saw, places) = if let Some((tap, places)) = self.tap.take() {
            let finished = tap.finish(&mut |(index, number, point, at)| {
                flows[places[index]].tapped(number, point, at);
            });
            let finished = finished.map(|finished| {
                warnings.extend(finished.no_file.map(|reason| Warning::WritingFailed { reason }));
                if let Some(first) = places.first() {
                    flows[*first].tap_untold = finished.untold;
                }
                finished.flows
            });
            (finished, places)
        } else if let Some(TapFile { path, clock }) = self.tap_file.take() {
            let followed: Vec<_> = flows.iter().map(FlowParts::followed).collect();
            let relation = &self.relation;
            let read = tap::from_file(&path, clock, &followed, &mut |(flow, number, point, at)| {
                flows[flow].tapped(number, point, at);
                flows[flow].take_told(relation);
            });
            let places = (0..flows.len()).collect();
            let read = read.map(|(saw, capture)| {
                warnings.extend(tap::cut(&path, &capture));
                saw
            });
            (read, places)
        } else {
            return;
        };
        match saw {
            Ok(saw) => places.iter().zip(saw).for_each(|(place, of)| flows[*place].tap_saw(of)),
            Err(error) => {
                warnings.push(Warning::PartLeftOut { part, reason: error.to_string() });
            }
        }
        for flow in flows {
            flow.take_told(&self.relation);
        }
    }

    /// The threads of this flow's client are known.
    pub(super) fn threads(&mut self, number: usize, threads: &[Pid]) {
        let bounds = of_flow::bounds(self.resolution, self.cpu_bound, self.relation.bound());
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.number == number) else { return };
        if flow.has_begun() {
            return;
        }
        flow.begin(threads.to_vec(), bounds);
        let all: Vec<Pid> = self.flows.iter().flat_map(FlowParts::threads).collect();
        if let Some(trace) = &mut self.trace {
            trace.look_at(&all);
        }
    }

    /// Is it known whose requests this flow's are? Before, they wait.
    pub(super) fn takes(&self, number: usize) -> bool {
        self.flows.iter().all(|flow| flow.number != number || flow.has_begun())
    }

    /// Takes in what has come until `now`, a reading made just before.
    pub(super) fn look(&mut self, now: Ticks) {
        self.relation.observe(&mut self.counter);
        let flows = &mut self.flows;
        if let Some((tap, places)) = &mut self.tap {
            tap.drain(&mut |(index, number, point, at)| {
                flows[places[index]].tapped(number, point, at);
            });
        }
        for flow in &mut self.flows {
            flow.take_told(&self.relation);
            flow.read_card(now);
        }
        // The warm-up's messages are nobody's concern.
        if !self.flows.iter().any(FlowParts::has_begun) {
            self.trace.iter_mut().for_each(WayTrace::discard);
            return;
        }
        self.take_events(now);
    }

    fn take_events(&mut self, now: Ticks) {
        let Some(trace) = &mut self.trace else { return };
        let (follower, flows) = (&mut self.follower, &mut self.flows);
        trace.poll(now, self.rate, &mut |came| match came {
            Came::Events(cpu, events) => {
                for flow in &mut *flows {
                    flow.events(cpu, &events);
                }
                follower.push(cpu, events);
            }
            Came::Lost(cpu) => follower.lost(cpu),
            Came::Complete(cpu, to) => follower.complete(cpu, to),
        });
        for passage in self.follower.take() {
            self.flows.iter_mut().for_each(|flow| flow.passage(&passage));
        }
    }

    /// Takes a request of the flow with this number that has ended.
    pub(super) fn request(&mut self, number: usize, settled: &Settled) {
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.number == number) {
            flow.request(settled);
        }
    }

    /// Composes the requests of whose time everything has come.
    pub(super) fn meet(&mut self, now: Ticks, storage: &mut Storage) {
        // What a tap's file says of them is known in the end.
        if self.tap_file.is_some() {
            return;
        }
        let told = Ticks(now.0.saturating_sub(ALL_TOLD.to_ticks(self.rate).0));
        let to = if self.trace.is_some() { told.min(self.follower.settled()) } else { told };
        self.complete(to, storage);
        self.relation.forget_before(to);
    }

    fn complete(&mut self, to: Ticks, storage: &mut Storage) {
        let keeps = self.keeps;
        for flow in &mut self.flows {
            flow.sure(&self.relation, self.cpu_bound);
            flow.complete(to, keeps.then_some(&mut *storage));
        }
    }

    /// Flows of which it is not known yet whose requests are theirs.
    pub(super) fn waiting(&self) -> Vec<usize> {
        let waiting = self.flows.iter().filter(|flow| !flow.has_begun());
        waiting.map(|flow| flow.number).collect()
    }

    /// Is there a trace, where one was asked for?
    pub(super) fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// All requests have been taken: what has come of them.
    pub(super) fn finish(mut self, storage: &mut Storage) -> Found {
        let (mut flows, mut warnings) = (Vec::new(), Vec::new());
        self.end_tap(&mut warnings);
        // Everything has come that ever comes.
        for cpu in std::mem::take(&mut self.online) {
            self.follower.complete(cpu, Ticks(u64::MAX));
        }
        for passage in self.follower.take() {
            self.flows.iter_mut().for_each(|flow| flow.passage(&passage));
        }
        let followed = self.trace.is_some().then(|| self.follower.counts());
        let keeps = self.keeps;
        for flow in &mut self.flows {
            flow.sure(&self.relation, self.cpu_bound);
            flow.complete_all(keeps.then_some(&mut *storage));
        }
        for mut flow in self.flows {
            let (number, name) = (flow.number, flow.name.clone());
            warnings.extend(flow.end_card());
            let finished = flow.finish(followed.as_ref());
            let Some((composed, [unplaced, crowded])) = finished else { continue };
            warnings.extend(left_aside(&name, "stamps", unplaced, UNPLACED));
            warnings.extend(left_aside(&name, "words about requests", crowded, CROWDED));
            warnings.extend(tap_disagrees(&name, &composed));
            flows.push((number, composed));
        }
        let trace = self.trace.map(|trace| {
            let (facts, left) = trace.finish();
            warnings.extend(left);
            warnings.extend(crate::kernel_trace::warnings(&facts));
            facts
        });
        Found { flows, trace, warnings }
    }
}

/// Neither stamps nor the trace nor the other end tell anything.
fn total_alone(flow: &str) -> Warning {
    let reason = "neither the kernel's stamps nor its trace nor the other end tells of them: their total \
                  is known, and nothing of what it consists of";
    Warning::PartLeftOut { part: what(flow), reason: reason.to_owned() }
}

/// A tap that contradicts the stamps in more requests than a few.
fn tap_disagrees(flow: &str, composed: &Composed) -> Option<Warning> {
    let between = composed.breakdown.tap.as_ref()?.between.as_ref()?;
    between.is_contradiction().then(|| Warning::TapDisagrees {
        flow: flow.to_owned(),
        requests: between.disagree,
        of: between.compared(),
        largest: between.largest,
        within: between.within,
    })
}

fn left_aside(flow: &str, what: &str, count: u64, reason: &str) -> Option<Warning> {
    let part = format!("{count} {what} of {flow}");
    (count > 0).then(|| Warning::PartLeftOut { part, reason: reason.to_owned() })
}
