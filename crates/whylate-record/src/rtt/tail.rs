//! Why slow requests were slow, looked at while they come.
//!
//! The clients tell their stalls through rings and the reflectors through pipes; of ends that sleep, and
//! of who took the CPU, the kernel's trace tells, one for all flows. All of it is on the counter's one
//! timeline. This side runs on the recording's own thread, whose every look may cost another end its
//! CPU: where they share one, less is looked at, and what is not is said. Threads of whylate itself are
//! named as that: what they take is an effect of the measurement.

mod flow;
mod lanes;

use std::collections::{BTreeSet, HashSet};
use std::thread::sleep;

use whylate_cause::attribute::Limits;
use whylate_cause::{Attributed, Attributor, Context};
use whylate_model::flow::NamedTurns;
use whylate_model::run::TraceFacts;
use whylate_model::tail::Tail;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks};
use whylate_net::open_loop::settled::Settled;

use super::line::Line;
use super::pace::{Pace, Shared};
use super::request::{FlowRequest, Request};
use crate::kernel_trace::{self, KernelTrace, NoTrace};
use crate::workbench::{self, Ground, Workbench};
use lanes::Lane;

pub(super) use flow::{FlowWatch, Hand, Reflecting, open};

/// Requests a second that are looked at: each costs the recording's thread about a microsecond, and a
/// ring holds those of half a second.
const MOST: f64 = 100_000.0;
/// The same where that thread shares a CPU with an end, which would be late for it.
const MOST_BESIDE_AN_END: f64 = 20_000.0;
/// Requests a second that are traced there: each leaves some events on either CPU.
const MOST_TRACED_BESIDE_AN_END: f64 = 5_000.0;
/// Events stamped later than this before a look may still be on their way.
const IN_FLIGHT: Nanos = Nanos(1_000_000);
/// An end that is stopped for seconds keeps all events of that time waiting.
const LIMITS: Limits = Limits {
    events_per_cpu: 262_144,
    gaps_per_thread: 65_536,
    sends_per_cpu: 16_384,
    events_per_gap: 4_096,
};

/// What is asked about slow requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Causes {
    /// Have the kernel's trace name what took the CPUs.
    pub traced: bool,
    /// The percentile from which on a request is slow; none for the usual one.
    pub slow_from: Option<f64>,
}

/// A trace, or why there is none.
pub(super) type Opened = Result<KernelTrace, NoTrace>;

/// Which flows are looked at, and whether the kernel's trace is read.
pub(super) struct Extent {
    looked_at: Vec<bool>,
    /// None where there is to be one.
    untraced: Option<NoTrace>,
    /// When the recording's thread does what.
    pub(super) pace: Pace,
    /// Flows of requests that are not looked at, and why.
    pub(super) left_out: Vec<Warning>,
}

/// Looks for causes while the flows go on.
pub(super) struct TailWatch {
    rate: Hertz,
    trace: Option<KernelTrace>,
    context: Option<Context>,
    online: Vec<CpuId>,
    attributor: Option<Attributor>,
    flows: Vec<FlowWatch>,
    /// Reflectors that the recording has started.
    reflectors: Vec<Pid>,
}

/// What came of it.
pub(super) struct Found {
    /// By the number of the flow.
    pub(super) flows: Vec<(usize, OfFlow)>,
    pub(super) trace: Option<TraceFacts>,
    /// What traced, which is still there.
    pub(super) instances: Option<KernelTrace>,
    pub(super) warnings: Vec<Warning>,
}

/// What was found of one flow.
pub(super) struct OfFlow {
    /// Why its slow requests were slow.
    pub(super) tail: Tail,
    /// What the long turns of its client were.
    pub(super) named: Option<NamedTurns>,
}

impl Extent {
    /// Flows come in their order, until there are as many requests as can be looked at beside them.
    /// The recording's own thread has these CPUs.
    pub(super) fn of(request: &Request, house: &[CpuId]) -> Self {
        let Shared { beside, perhaps } = Shared::of(request, house);
        let most = if beside { MOST_BESIDE_AN_END } else { MOST };
        let (mut sum, mut looked_at, mut left_out) = (0.0, Vec::new(), Vec::new());
        for flow in &request.flows {
            let per_second = flow.expected_rate();
            // What asks for no reply is never slow.
            let asks = !flow.one_way;
            let fits = sum + per_second <= most;
            looked_at.push(asks && fits);
            if asks && fits {
                sum += per_second;
            } else if asks {
                left_out.push(left_aside(flow, most, beside));
            }
        }
        let shared = beside && sum > MOST_TRACED_BESIDE_AN_END;
        let untraced = (shared && request.causes.traced).then(|| NoTrace {
            reason: format!(
                "reading the events of {sum} requests a second would keep an end from its CPU, which \
                 the recording's own thread shares"
            ),
            remedy: format!(
                "leave a CPU for it (--housekeeping), or ask for {MOST_TRACED_BESIDE_AN_END} a second"
            ),
        });
        let traced = request.causes.traced && untraced.is_none() && looked_at.contains(&true);
        // Events of messages are read as often, and stamps need the clocks related as often.
        let traced = traced || request.take_apart.is_some();
        let recorded = request.flows.iter().zip(&looked_at);
        let recorded = recorded.filter(|(_, looked_at)| **looked_at || request.log_packets);
        let busiest = recorded.map(|(flow, _)| flow.expected_rate()).fold(0.0, f64::max);
        let pace =
            if beside || perhaps { Pace::beside_an_end(traced, busiest) } else { Pace::apart() };
        Self { looked_at, untraced, pace, left_out }
    }

    /// Is this flow looked at? Then its reflector tells its stalls.
    pub(super) fn looks_at(&self, number: usize) -> bool {
        self.looked_at.get(number).copied().unwrap_or(false)
    }
}

fn left_aside(flow: &FlowRequest, most: f64, beside: bool) -> Warning {
    let shares = if beside { ", for it shares a CPU with an end" } else { "" };
    let reason =
        format!("the recording's thread looks at {most} requests a second at most{shares}");
    Warning::PartLeftOut { part: format!("why requests of {} were slow", flow.name), reason }
}

/// Opens the kernel's trace of the flows' CPUs, where it is asked for and there is something to look at.
/// Before any end spins: each step waits for the kernel to have seen every CPU.
pub(super) fn open_trace(request: &Request, ground: Ground<'_>) -> Option<Opened> {
    let extent = Extent::of(request, ground.housekeeping);
    let looked_at = request.flows.iter().enumerate().filter(|(number, _)| extent.looks_at(*number));
    let ends = looked_at.flat_map(|(_, flow)| [Some(flow.cpu), flow.target.cpu()]);
    let cpus: BTreeSet<CpuId> = ends.flatten().collect();
    if cpus.is_empty() || !request.causes.traced {
        return None;
    }
    let cpus: Vec<CpuId> = cpus.into_iter().collect();
    let start = || KernelTrace::start(ground.journal, &cpus, ground.topology.online());
    Some(extent.untraced.map_or_else(start, Err))
}

impl TailWatch {
    /// Begins to look at the flows that are to be looked at; none where none is.
    pub(super) fn begin(
        extent: Extent,
        trace: Option<Opened>,
        bench: &Workbench,
        lines: &mut [Line<'_>],
        warnings: &mut Vec<Warning>,
    ) -> Option<Self> {
        warnings.extend(extent.left_out);
        let reflectors = lines.iter().flat_map(|line| line.ends.watched());
        let reflectors = reflectors.map(|of| of.tid).collect();
        let flows: Vec<FlowWatch> = lines.iter_mut().filter_map(|line| line.watch.take()).collect();
        if flows.is_empty() {
            return None;
        }
        let online = bench.topology.online().to_vec();
        let trace = trace.and_then(|trace| trace.map_err(|no| warnings.push(no.into())).ok());
        // What was seen while the ends were opened is nobody's concern.
        let trace = trace.map(|mut trace| {
            trace.discard();
            trace
        });
        let context = Some(bench.context(Vec::new()));
        let (rate, attributor) = (bench.rate, None);
        Some(Self { rate, trace, context, online, attributor, flows, reflectors })
    }

    /// Takes in what has come until `now`, a reading made just before.
    pub(super) fn look(&mut self, now: Ticks) {
        let traced = self.trace.is_some();
        for flow in &mut self.flows {
            flow.take_told(traced);
        }
        if self.attributor.is_none() {
            self.attribute();
        }
        let Some(attributor) = &mut self.attributor else {
            // The warm-up's events are nobody's concern; those from the first begun flow on are.
            if self.flows.iter().all(|flow| flow.lanes.is_empty()) {
                self.trace.iter_mut().for_each(KernelTrace::discard);
            }
            return;
        };
        if let Some(trace) = &mut self.trace {
            let lanes = self.flows.iter_mut().flat_map(|flow| &mut flow.lanes);
            let mut scheduled: Vec<_> = lanes.filter_map(Lane::scheduled).collect();
            trace.poll(now, self.rate, attributor, |event| {
                for of in &mut scheduled {
                    of.event(event);
                }
            });
        }
        let complete = Ticks(now.0.saturating_sub(IN_FLIGHT.to_ticks(self.rate).0));
        for flow in &mut self.flows {
            for (index, lane) in (flow.first..).zip(&mut flow.lanes) {
                lane.hand_over(index, complete, attributor);
            }
        }
        let mut gaps = Vec::new();
        attributor.drain(&mut |gap| gaps.push(gap));
        take_gaps(&gaps, &mut self.flows, attributor.context());
    }

    /// May requests of this flow be taken? Where it is looked at, not before its threads are known.
    pub(super) fn takes(&self, number: usize) -> bool {
        self.flows.iter().all(|flow| flow.number != number || flow.has_begun())
    }

    /// The client's threads of the flow with this number, once all of them are known.
    pub(super) fn client_threads(&self, number: usize) -> Option<Vec<Pid>> {
        let flow = self.flows.iter().find(|flow| flow.number == number)?;
        flow.has_begun().then(|| flow.client_threads())
    }

    /// Takes a request of the flow with this number that has ended.
    pub(super) fn request(&mut self, number: usize, settled: &Settled) {
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.number == number) {
            flow.request(settled);
        }
    }

    /// Meets the requests of whose time everything has come.
    pub(super) fn meet(&mut self, now: Ticks) {
        self.flows.iter_mut().for_each(|flow| flow.meet(now));
    }

    /// Begins to attribute once the threads of all flows are known.
    fn attribute(&mut self) {
        if !self.flows.iter().all(FlowWatch::is_known) {
            return;
        }
        let Some(mut context) = self.context.take() else { return };
        context.own = own_threads(&self.reflectors);
        let mut next = 0;
        for flow in &mut self.flows {
            flow.first = next;
            for (index, lane) in (next..).zip(&flow.lanes) {
                context.threads.push(lane.measured(index));
            }
            next += flow.lanes.len() as u16;
        }
        let mut attributor = Attributor::new(context, LIMITS);
        if self.trace.is_some() {
            let lanes = self.flows.iter().flat_map(|flow| &flow.lanes);
            lanes.for_each(|lane| attributor.trace_cpu(lane.cpu));
            self.online.iter().for_each(|cpu| attributor.trace_sends(*cpu));
        }
        for flow in &mut self.flows {
            for index in (flow.first..).take(flow.lanes.len()) {
                // Its threads are those of the lanes.
                let _ = attributor.begin(index, flow.start());
            }
            flow.look();
        }
        self.attributor = Some(attributor);
    }

    /// The flows have ended, and so have the other ends where they were started for them. `requests`
    /// gives what has been settled of the flow with this number.
    pub(super) fn finish(
        mut self,
        mut now: impl FnMut() -> Ticks,
        mut requests: impl FnMut(usize, &mut dyn FnMut(&Settled)),
    ) -> Found {
        sleep(kernel_trace::LAST_EVENTS);
        self.look(now());
        for flow in &mut self.flows {
            let number = flow.number;
            requests(number, &mut |settled| flow.request(settled));
        }
        let attributed = self.attributor.take().map(|mut attributor| {
            let mut gaps = Vec::new();
            attributor.finish(&mut |gap| gaps.push(gap));
            take_gaps(&gaps, &mut self.flows, attributor.context());
            attributor
        });
        let (traced, mut flows, mut warnings) = (self.trace.is_some(), Vec::new(), Vec::new());
        for mut flow in self.flows {
            let Some(tail) = flow.tail(traced) else { continue };
            warnings.extend(in_the_way(&flow.name, &tail));
            flows.push((flow.number, OfFlow { tail, named: flow.named(traced) }));
        }
        let facts = self.trace.as_ref().map(|trace| {
            trace.switch(false);
            let mut facts = trace.facts();
            if let Some(attributor) = &attributed {
                let inside = attributor.event_counts().values().map(|count| count.inside).sum();
                (facts.events_in_gaps, facts.shed) = (inside, attributor.shed());
            }
            // Events that were lost cost a cause its name, and no request its time.
            let told = kernel_trace::warnings(&facts).into_iter();
            warnings.extend(told.filter(|warning| !matches!(warning, Warning::TraceLost { .. })));
            facts
        });
        Found { flows, trace: facts, instances: self.trace, warnings }
    }
}

/// Threads of this process, and the reflectors that it has started.
fn own_threads(reflectors: &[Pid]) -> HashSet<Pid> {
    reflectors.iter().copied().chain(workbench::own_threads()).collect()
}

/// Did whylate keep an end from its CPU, and so often that it is no chance?
fn in_the_way(flow: &str, tail: &Tail) -> Option<Warning> {
    let (left_out, requests) = (tail.by_whylate, tail.requests + tail.by_whylate);
    let often = left_out >= tail.episodes_least;
    often.then(|| Warning::OwnThreadsInTheWay { flow: flow.to_owned(), left_out, requests })
}

/// Hands over what took the gaps that are named by now.
fn take_gaps(gaps: &[Attributed], flows: &mut [FlowWatch], context: &Context) {
    for gap in gaps {
        let of = flows.iter_mut().find(|flow| flow.lane(gap.thread).is_some());
        if let Some(flow) = of {
            flow.gap(gap, context);
        }
    }
}
