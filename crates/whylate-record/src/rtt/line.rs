//! One flow while it is measured: its client, its other end, and what has been collected of it.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use whylate_clock::HardwareCounter;
use whylate_model::Ticks;
use whylate_model::warning::Warning;
use whylate_net::open_loop::duo::{Way, run_both};
use whylate_net::open_loop::settled::Settled;
use whylate_net::open_loop::{OpenOutcome, Tell};
use whylate_net::{Cookie, OpenLoop, Protocol, ReflectorProcess};
use whylate_port::Port;
use whylate_threads::Placement;

use super::across;
use super::breakdown::{self, Apart, FlowParts};
use super::ends::{self, Ends, Target, Wish};
use super::flow::Names;
use super::intervals::{self, Collected, Hand};
use super::late::{self, Planted, Planting};
use super::packets::{self, Giver, Packets};
use super::request::{FlowRequest, Request};
use super::tail::{self, Extent, FlowWatch, TailWatch};
use crate::RecordError;
use crate::storage::Storage;
use crate::workbench::Workbench;

/// A flow that is open.
pub(super) struct Line<'a> {
    pub(super) flow: &'a FlowRequest,
    pub(super) settings: OpenLoop,
    pub(super) ends: Ends,
    pub(super) collected: Collected,
    packets: Packets,
    giver: Giver,
    /// For whoever looks at all flows' slow requests.
    pub(super) watch: Option<FlowWatch>,
    stalling: Option<tail::Hand>,
    /// For whoever takes requests apart.
    pub(super) parts: Option<FlowParts>,
    stamping: Option<breakdown::Hand>,
    protocol: Box<dyn Protocol>,
    hand: Hand,
    /// What was planted into the stamps of receptions.
    pub(super) planted: Option<Planted>,
    /// With the other flow, on one thread.
    takes_turns: bool,
}

/// Whoever looks at requests while they go on.
pub(super) struct Watches {
    /// At why slow ones are slow.
    pub(super) tail: Option<TailWatch>,
    /// At where all of them spend their time.
    pub(super) apart: Option<Apart>,
}

/// The half of a flow that measures.
pub(super) struct Client<'a> {
    flow: &'a FlowRequest,
    settings: &'a OpenLoop,
    protocol: &'a dyn Protocol,
    port: &'a mut dyn Port,
    hand: &'a mut Hand,
    giver: &'a Giver,
    stalling: Option<&'a tail::Hand>,
    stamping: Option<&'a breakdown::Hand>,
    takes_turns: bool,
}

/// What of a flow the recording thread looks after while it is measured.
pub(super) struct Beside<'a> {
    pub(super) collected: &'a mut Collected,
    packets: &'a mut Packets,
    reflector: Option<&'a ReflectorProcess>,
}

/// What a client leaves behind.
pub(super) struct Left {
    pub(super) outcome: OpenOutcome,
    /// What was not as asked.
    pub(super) warnings: Vec<Warning>,
    /// Records of requests that found no room.
    pub(super) unlogged: u64,
}

impl<'a> Line<'a> {
    pub(super) fn open(
        request: &'a Request,
        (number, flow): (usize, &'a FlowRequest),
        bench: &Workbench,
        (extent, apart): (&Extent, &breakdown::Extent),
        (left, warnings): (&mut Option<across::Opened>, &mut Vec<Warning>),
    ) -> Result<Self, RecordError> {
        let settings = request.open_loop(flow, bench.rate);
        let cookie = Cookie::fresh();
        let protocol = flow.speaks(cookie);
        let looked_at = extent.looks_at(number);
        let asked = request.take_apart.as_ref().filter(|_| apart.takes(number));
        let sources = asked.map(|of| of.sources(flow)).unwrap_or_default();
        let visits = sources.told || sources.far_stamps;
        // The probes' ends are gone before the measurement's are there.
        let probes = match asked {
            Some(of) => breakdown::open::probed(request, of, flow, bench)?,
            None => Vec::new(),
        };
        let (stamps, frames) = (sources.far_stamps, sources.metadata);
        let wish = Wish { stalls: looked_at, visits, stamps, frames };
        let mut planted = None;
        let (mut ends, both_ports) = match &flow.target {
            Target::Across(ports) => {
                let across::Opened { mut port, told } =
                    across::port(request, (flow, ports), bench, left)?;
                if let Some(tail) = request.plant {
                    let (seed, bytes, rate) = (request.seed, flow.bytes, bench.rate);
                    let protocol = flow.speaks(cookie);
                    let planting = Planting { tail, seed, protocol, bytes, rate };
                    let (late, sizes) = late::plant(port, planting, bench.counter);
                    (port, planted) = (late, Some(sizes));
                }
                (Ends::alone(port), Some(told))
            }
            Target::Own { .. } | Target::At(_) => {
                (ends::open(request, flow, (bench, wish), protocol.framing())?, None)
            }
        };
        let names = Names {
            flow: flow.name.clone(),
            alone: request.flows.len() == 1,
            across: both_ports,
            resolution_ns: bench.resolution_ns(),
        };
        let wait = extent.pace.histograms(settings.interval, request.flows.len());
        let (collected, hand) = intervals::between(names, &settings, bench.rate, wait);
        let watch = looked_at.then(|| tail::open(request, (number, flow), bench, &mut ends));
        let (watch, stalling) = watch.unzip();
        let by = (bench, cookie, &probes[..]);
        let opened = asked
            .map(|of| breakdown::open::open(request, of, (number, flow), by, &mut ends, warnings));
        let (mut parts, stamping) = opened.unzip();
        if let Some(of) = &mut parts {
            of.probes.clone_from(&probes);
        }
        let (packets, giver) = packets::between(request, number as u16, &settings, looked_at);
        Ok(Self {
            flow,
            settings,
            ends,
            collected,
            packets,
            giver,
            watch,
            stalling,
            parts,
            stamping: stamping.flatten(),
            protocol,
            hand,
            planted,
            takes_turns: request.takes_turns(),
        })
    }

    /// The half that measures, and the one that is looked after meanwhile.
    pub(super) fn halves(&mut self) -> (Client<'_>, Beside<'_>) {
        let (port, reflector) = self.ends.halves();
        let client = Client {
            flow: self.flow,
            settings: &self.settings,
            protocol: &*self.protocol,
            port,
            hand: &mut self.hand,
            giver: &self.giver,
            stalling: self.stalling.as_ref(),
            stamping: self.stamping.as_ref(),
            takes_turns: self.takes_turns,
        };
        let (collected, packets) = (&mut self.collected, &mut self.packets);
        (client, Beside { collected, packets, reflector })
    }

    /// Takes in what its client left on the way.
    pub(super) fn finish(&mut self, storage: &mut Storage, each: &mut dyn FnMut(&Settled)) {
        self.collected.write(storage);
        self.packets.take(storage, each);
    }

    /// What it is, in messages.
    pub(super) fn what(&self) -> String {
        format!("the flow {}", self.flow.name)
    }
}

impl Beside<'_> {
    /// Has its reflector ended before its time? A connection tells the client so, a frame that nobody
    /// answers does not.
    pub(super) fn is_deserted(&self) -> bool {
        self.reflector.is_some_and(ReflectorProcess::has_failed)
    }
}

/// Takes in the records of all flows' requests and stalls until `now`, a reading made just before.
pub(super) fn take_records(
    flows: &mut [Beside<'_>],
    watches: &mut Watches,
    now: Ticks,
    storage: &mut Storage,
) {
    watches.look(now);
    for (number, of) in flows.iter_mut().enumerate() {
        // Others wait for whoever looks.
        if watches.takes(number) {
            of.packets.take(storage, &mut |settled| watches.request(number, settled));
        }
    }
    watches.meet(now, storage);
}

impl Watches {
    fn look(&mut self, now: Ticks) {
        if let Some(tail) = &mut self.tail {
            tail.look(now);
        }
        let Some(apart) = &mut self.apart else { return };
        // Of flows that are taken apart the causes are looked at, too.
        for number in apart.waiting() {
            let threads = self.tail.as_ref().and_then(|tail| tail.client_threads(number));
            if let Some(threads) = threads {
                apart.threads(number, &threads);
            }
        }
        apart.look(now);
    }

    /// The flows have ended: what is still on its way to whoever takes them apart. The clocks are related
    /// once behind the last stamp, and once more.
    pub(super) fn last_look(&mut self, now: &mut dyn FnMut() -> Ticks) {
        if self.apart.is_none() {
            return;
        }
        for _ in 0..2 {
            thread::sleep(breakdown::LAST_TOLD);
            self.look(now());
        }
    }

    /// May requests of this flow be taken?
    fn takes(&self, number: usize) -> bool {
        self.tail.as_ref().is_none_or(|tail| tail.takes(number))
            && self.apart.as_ref().is_none_or(|apart| apart.takes(number))
    }

    /// Takes a request that has ended.
    pub(super) fn request(&mut self, number: usize, settled: &Settled) {
        if let Some(tail) = &mut self.tail {
            tail.request(number, settled);
        }
        if let Some(apart) = &mut self.apart {
            apart.request(number, settled);
        }
    }

    fn meet(&mut self, now: Ticks, storage: &mut Storage) {
        if let Some(tail) = &mut self.tail {
            tail.meet(now);
        }
        if let Some(apart) = &mut self.apart {
            apart.meet(now, storage);
        }
    }
}

impl Client<'_> {
    fn run(
        &mut self,
        mut counter: HardwareCounter,
        halt: &AtomicBool,
    ) -> Result<Left, RecordError> {
        let placement = Placement { cpu: Some(self.flow.cpu), fifo: self.flow.fifo };
        let (_, warnings) = placement.settle()?;
        let hand = &mut *self.hand;
        let mut watch = |index, of: &mut _| hand.over(index, of);
        let mut settling = self.giver.begin();
        let mut stalling = self.stalling.map(tail::Hand::begin);
        let mut stamping = self.stamping.map(breakdown::Hand::begin);
        let tell = Tell {
            intervals: &mut watch,
            requests: settling.as_mut(),
            stalls: stalling.as_mut(),
            stamps: stamping.as_mut(),
        };
        let measured = self.settings.run(self.port, &mut counter, self.protocol, halt, tell);
        let outcome = measured.map_err(|error| across::unheard(error, &self.flow.target))?;
        Ok(Left { outcome, warnings, unlogged: settling.map_or(0, |settling| settling.missed) })
    }
}

/// Two clients in turns on the calling thread, each with one of the two ports.
fn in_turns(
    there: &mut Client<'_>,
    back: &mut Client<'_>,
    mut counter: HardwareCounter,
    halt: &AtomicBool,
) -> Result<[Left; 2], RecordError> {
    let placement = Placement { cpu: Some(there.flow.cpu), fifo: there.flow.fifo };
    let (_, warnings) = placement.settle()?;
    let (hand, other_hand) = (&mut *there.hand, &mut *back.hand);
    let mut watch = |index, of: &mut _| hand.over(index, of);
    let mut other_watch = |index, of: &mut _| other_hand.over(index, of);
    let mut settling = [there.giver.begin(), back.giver.begin()];
    let mut stalling = [there.stalling, back.stalling].map(|hand| hand.map(tail::Hand::begin));
    let ([requests, other_requests], [stalls, other_stalls]) =
        (settling.each_mut().map(Option::as_mut), stalling.each_mut().map(Option::as_mut));
    let tell = Tell { intervals: &mut watch, requests, stalls, stamps: None };
    let other_tell = Tell {
        intervals: &mut other_watch,
        requests: other_requests,
        stalls: other_stalls,
        stamps: None,
    };
    let ways = [
        Way { settings: there.settings, protocol: there.protocol, tell },
        Way { settings: back.settings, protocol: back.protocol, tell: other_tell },
    ];
    let ports = (&mut *there.port, &mut *back.port);
    let measured = run_both(ways, ports, &mut counter, halt);
    let [outcome, other] = measured.map_err(|error| across::unheard(error, &there.flow.target))?;
    let [unlogged, others_unlogged] = settling.map(|of| of.map_or(0, |of| of.missed));
    Ok([
        Left { outcome, warnings, unlogged },
        Left { outcome: other, warnings: Vec::new(), unlogged: others_unlogged },
    ])
}

/// Runs all clients at once, the first on the calling thread; ends all when one fails.
pub(super) fn run_all(
    clients: &mut [Client<'_>],
    counter: HardwareCounter,
    halt: &AtomicBool,
) -> Vec<Result<Left, RecordError>> {
    if let [there, back] = &mut *clients
        && there.takes_turns
    {
        return match in_turns(there, back, counter, halt) {
            Ok(both) => both.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
    }
    let run = |client: &mut Client<'_>| {
        let outcome = client.run(counter, halt);
        if outcome.is_err() {
            halt.store(true, Ordering::Relaxed);
        }
        outcome
    };
    let Some((first, others)) = clients.split_first_mut() else { return Vec::new() };
    thread::scope(|scope| {
        let started: Vec<_> = others
            .iter_mut()
            .map(|client| {
                let name = format!("client/{}", client.flow.name);
                thread::Builder::new().name(name).spawn_scoped(scope, || run(client))
            })
            .collect();
        let mut outcomes = vec![run(first)];
        for thread in started {
            outcomes.push(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(error) => Err(RecordError::NoThread(error)),
            });
        }
        outcomes
    })
}
