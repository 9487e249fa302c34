//! One flow of which slow requests are looked at: its threads, what they tell, and its requests.

use std::sync::mpsc::{Receiver, Sender, channel};

use whylate_cause::tail::join::Window;
use whylate_cause::tail::turns::Turns;
use whylate_cause::tail::{Looking, Scope, interruptions};
use whylate_cause::{Attributed, Context};
use whylate_model::flow::NamedTurns;
use whylate_model::tail::{End, Tail, Watched, WatchedBy};
use whylate_model::{CpuId, Hertz, Pid, Ticks};
use whylate_net::open_loop::settled::Settled;
use whylate_net::open_loop::stalls::{self, Stalling, Stalls, Told};
use whylate_net::process::ToldStalls;
use whylate_net::serve::stalls::Line;

use super::lanes::{By, Lane};
use crate::rtt::ends::{Ends, Target};
use crate::rtt::request::{FlowRequest, Request};
use crate::workbench::Workbench;

/// A flow that is looked at.
pub(in crate::rtt) struct FlowWatch {
    /// Its number in the run.
    pub(super) number: usize,
    pub(super) name: String,
    rate: Hertz,
    scope: Scope,
    percent: Option<f64>,
    client: CpuId,
    client_sleeps: bool,
    /// The client has both ports, and there is no other end.
    alone: bool,
    hand: Receiver<Stalls>,
    near: Option<Stalls>,
    other: Option<Reflecting>,
    pub(super) lanes: Vec<Lane>,
    /// Number of the first lane among those of all flows.
    pub(super) first: u16,
    looking: Option<Looking>,
    /// Long turns of a client that spins.
    turns: Turns,
    missed: u64,
}

/// The other end, where it is known.
pub(in crate::rtt) struct Reflecting {
    pub(in crate::rtt) pid: Pid,
    pub(in crate::rtt) cpu: CpuId,
    pub(in crate::rtt) told: Option<ToldStalls>,
}

/// For the measuring thread.
pub(in crate::rtt) struct Hand {
    to: Sender<Stalls>,
}

impl Hand {
    /// To be called on the measuring thread, before it measures.
    pub(in crate::rtt) fn begin(&self) -> Stalling {
        let (stalling, stalls) = stalls::between();
        // The recording thread is there for as long as this one: it waits for its end.
        let _ = self.to.send(stalls);
        stalling
    }
}

/// Begins to look at the flow with this number.
pub(in crate::rtt) fn open(
    request: &Request,
    (number, flow): (usize, &FlowRequest),
    bench: &Workbench,
    ends: &mut Ends,
) -> (FlowWatch, Hand) {
    let (to, hand) = channel();
    let scope = Scope {
        lanes: 0,
        start: Ticks(0),
        duration: request.duration,
        longest: request.timeout,
        rate: bench.rate,
        seed: request.seed,
    };
    let watch = FlowWatch {
        number,
        name: flow.name.clone(),
        rate: bench.rate,
        scope,
        percent: request.causes.slow_from,
        client: flow.cpu,
        client_sleeps: flow.wait.sleeps(),
        alone: matches!(flow.target, Target::Across(_)),
        hand,
        near: None,
        other: ends.reflecting(),
        lanes: Vec::new(),
        first: 0,
        looking: None,
        turns: Turns::default(),
        missed: 0,
    };
    (watch, Hand { to })
}

impl FlowWatch {
    /// When its first thread began.
    pub(super) fn start(&self) -> Ticks {
        self.scope.start
    }

    /// Takes in what both ends tell of themselves.
    pub(super) fn take_told(&mut self, traced: bool) {
        if self.near.is_none() {
            self.near = self.hand.try_recv().ok();
        }
        if let Some(stalls) = &mut self.near {
            let mut told = Vec::new();
            let until = stalls.drain(|of| told.push(of));
            for of in told {
                match of {
                    Told::Thread { tid, at } => self.add_thread((tid, at), traced),
                    Told::Stall { from, to } => {
                        self.lanes.iter_mut().take(1).for_each(|lane| lane.stall(from, to));
                    }
                }
            }
            self.lanes.first_mut().into_iter().for_each(|lane| lane.told_until(until));
        }
        let Some(other) = &mut self.other else { return };
        let (lanes, missed) = (&mut self.lanes, &mut self.missed);
        let mut take = |line| {
            // What was before the measurement has no lane yet.
            let lane = lanes.iter_mut().find(|lane| lane.end == End::Other);
            match (line, lane) {
                (Line::Stall { from, to }, Some(lane)) => lane.stall(from, to),
                (Line::Until(at), Some(lane)) => lane.told_until(at),
                (Line::Limits(limits), Some(lane)) => lane.limits = limits,
                (Line::Missed(count), _) => *missed = count,
                (_, None) => (),
            }
        };
        if let Some(told) = &mut other.told {
            told.drain(&mut take);
        }
    }

    fn add_thread(&mut self, (tid, at): (Pid, Ticks), traced: bool) {
        if self.lanes.is_empty() {
            self.scope.start = at;
        }
        let by = match (self.client_sleeps, traced) {
            (false, _) => By::Turns,
            (true, true) => By::scheduler(tid, self.client),
            (true, false) => By::Nothing,
        };
        self.lanes.push(Lane::new(End::Client, tid, self.client, by));
        if let (1, Some(other)) = (self.lanes.len(), &self.other) {
            let by = match (&other.told, traced) {
                (Some(_), _) => By::Turns,
                (None, true) => By::scheduler(other.pid, other.cpu),
                (None, false) => By::Nothing,
            };
            self.lanes.push(Lane::new(End::Other, other.pid, other.cpu, by));
        }
    }

    /// Are all its threads known?
    pub(super) fn is_known(&self) -> bool {
        let clients = self.lanes.iter().filter(|lane| lane.end == End::Client).count();
        clients > usize::from(self.client_sleeps)
    }

    /// The threads of its client.
    pub(super) fn client_threads(&self) -> Vec<Pid> {
        let client = self.lanes.iter().filter(|lane| lane.end == End::Client);
        client.map(|lane| lane.own).collect()
    }

    /// Begins to look.
    pub(super) fn look(&mut self) {
        self.scope.lanes = self.lanes.len();
        self.looking = Some(Looking::new(self.scope));
    }

    /// Has it begun to look?
    pub(super) fn has_begun(&self) -> bool {
        self.looking.is_some()
    }

    /// Its own number of a lane, where that is one of its.
    pub(super) fn lane(&self, index: u16) -> Option<usize> {
        let own = usize::from(index.checked_sub(self.first)?);
        (own < self.lanes.len()).then_some(own)
    }

    /// Takes what took a gap of one of its threads.
    pub(super) fn gap(&mut self, gap: &Attributed, context: &Context) {
        let Some(index) = self.lane(gap.thread) else { return };
        let (Some(lane), Some(looking)) = (self.lanes.get_mut(index), &mut self.looking) else {
            return;
        };
        lane.named();
        let taken = interruptions::taken(gap, lane.own, context);
        if lane.end == End::Client && matches!(lane.by, By::Turns) {
            self.turns.turn(gap.gap.length(), &taken);
        }
        looking.interruption(index, lane.end, &taken);
    }

    /// Takes a request that has ended.
    pub(super) fn request(&mut self, settled: &Settled) {
        if let Some(looking) = &mut self.looking {
            looking.request(Window { from: settled.intended, to: settled.at });
        }
    }

    /// Meets the requests of whose time everything has come until `now`.
    pub(super) fn meet(&mut self, now: Ticks) {
        let known = self.lanes.iter().map(Lane::known_to).min();
        if let Some(looking) = &mut self.looking {
            looking.complete(known.unwrap_or(now));
        }
    }

    /// What the trace says of the client's long turns; none without one, and of a client that sleeps.
    pub(super) fn named(&self, traced: bool) -> Option<NamedTurns> {
        let spins =
            self.lanes.iter().any(|lane| lane.end == End::Client && matches!(lane.by, By::Turns));
        (traced && spins).then(|| self.turns.told(self.rate))
    }

    /// What has come of it; none where it never began.
    pub(super) fn tail(&mut self, traced: bool) -> Option<Tail> {
        let looking = self.looking.take()?;
        let ends = self.ends(&looking, traced);
        Some(Tail { ends, ..looking.finish(self.percent) })
    }

    /// How both ends were looked at.
    fn ends(&self, looking: &Looking, traced: bool) -> Vec<Watched> {
        let near = self.near.as_ref();
        let client = near.map(|stalls| (stalls.limits(), stalls.missed()));
        let of = |end: End| {
            let lanes = self.lanes.iter().enumerate();
            let own: Vec<(usize, &Lane)> = lanes.filter(|(_, lane)| lane.end == end).collect();
            let known = client.filter(|_| end == End::Client);
            let by = own.first().map_or(WatchedBy::Nothing, |(_, lane)| match lane.by {
                By::Nothing => WatchedBy::Nothing,
                By::Scheduler(_) => WatchedBy::Scheduler,
                By::Turns => {
                    let limits = known.map_or(lane.limits, |(limits, _)| limits);
                    let [looking, sending] = limits.map(|limit| limit.to_nanos(self.rate));
                    WatchedBy::Turns { looking, sending }
                }
            });
            let missed = match end {
                End::Client => known.map_or(0, |(_, missed)| missed),
                End::Other => self.missed,
            };
            let interruptions = own.iter().map(|(index, _)| looking.interruptions(*index)).sum();
            Watched { end, by, traced: traced && !own.is_empty(), interruptions, missed }
        };
        let mut ends = vec![of(End::Client)];
        ends.extend((!self.alone).then(|| of(End::Other)));
        ends
    }
}
