//! What the threads of a forwarder told, added up.

use whylate_model::Hertz;
use whylate_model::forward::{
    FORWARD_VERSION, Forward, ForwardDirection, ForwardEnd, ForwardPort, ForwardThread,
    ForwardTicks, InterfaceCounts, RingDrops, Stamping, TicksPerFrame,
};
use whylate_model::series::{Definition, Series};
use whylate_model::warning::Warning;
use whylate_net::forward::{Account, DirectionAccount, Part, Parts, Times, Why};
use whylate_port::frames::{Counted, Drops, FramesFacts};
use whylate_port::{BusyPolling, Transport};
use whylate_threads::placement::Seat;

use super::ForwardRequest;
use super::threads::{Begun, Told};
use crate::kept::Kept;
use crate::progress::Progress;
use crate::service::{Attended, Circumstances, Taker};
use crate::storage::Storage;
use crate::summary::Description;

/// Names of the series and their tags, by direction.
const RESIDENCE: [&str; 2] = ["forward-residence-0", "forward-residence-1"];
const KERNEL: [&str; 2] = ["forward-kernel-0", "forward-kernel-1"];

/// Everything that was told.
pub(super) struct Sums<'a> {
    pub(super) request: &'a ForwardRequest,
    rate: Hertz,
    begun: Option<Box<Begun>>,
    after: [Option<InterfaceCounts>; 2],
    seats: Vec<Seat>,
    /// Of each direction.
    residence: [Kept; 2],
    kernel: [Kept; 2],
    /// The last one of each thread.
    accounts: [Option<Box<Account>>; 2],
    why: Option<Why>,
    /// Threads that panicked, and their words.
    panicked: Vec<(usize, String)>,
    intervals: u64,
    warnings: Vec<Warning>,
}

impl<'a> Sums<'a> {
    pub(super) fn new(request: &'a ForwardRequest, rate: Hertz) -> Self {
        let kept = |name| Kept::every(request.plan.interval, name, rate);
        Self {
            request,
            rate,
            begun: None,
            after: [None; 2],
            seats: Vec::new(),
            residence: RESIDENCE.map(kept),
            kernel: KERNEL.map(kept),
            accounts: [None, None],
            why: None,
            panicked: Vec::new(),
            intervals: 0,
            warnings: Vec::new(),
        }
    }

    /// Has every thread told what it has done?
    pub(super) fn have_told(&self) -> bool {
        let told = self.accounts.iter().flatten().map(|account| account.directions.len());
        told.sum::<usize>() == 2
    }

    /// What ended the first thread that did: the other one was told to.
    fn ended(&mut self, why: Why) {
        let first = self.why.as_ref().is_none_or(|known| *known == Why::Stopped);
        if first {
            self.why = Some(why);
        }
    }

    fn end(&self) -> ForwardEnd {
        match &self.why {
            _ if !self.panicked.is_empty() => ForwardEnd::ThreadFailed,
            Some(Why::Lost { .. }) => ForwardEnd::PortLost,
            Some(Why::Duration) => ForwardEnd::Duration,
            Some(Why::Stopped) => ForwardEnd::Stopped,
            None => ForwardEnd::GoingOn,
        }
    }

    /// Scripts wait for this line.
    fn announcement(&self, facts: &[FramesFacts; 2]) -> String {
        let [a, b] = facts;
        format!(
            "forwarding between {} and {} ({}, --wait {})",
            a.interface, b.interface, a.backend, self.request.plan.wait
        )
    }

    /// The series of both directions.
    pub(super) fn series(&self, clock: &str, resolution_ns: f64) -> Vec<Series> {
        let own = if self.request.plan.transport == Transport::Udp {
            ("taken from the receiving socket", "handed over to the sending one", "residence")
        } else {
            ("seen in the receiving ring", "handed over to the sending one", "residence")
        };
        let kernel =
            ("stamped by the kernel", "handed over to the sending ring", "from the kernel's stamp");
        let mut all = Vec::new();
        for direction in [0, 1] {
            for (kept, (from, to, what), clock) in [
                (&self.residence[direction], own, clock),
                (&self.kernel[direction], kernel, "CLOCK_REALTIME"),
            ] {
                let description = Description {
                    name: kept.name.to_owned(),
                    label: format!("{what}, {}", self.direction(direction)),
                    paper_row: None,
                    from,
                    to,
                    clock: clock.to_owned(),
                    definition: Definition::Residence,
                    resolution_ns,
                    lost: 0,
                };
                all.extend(kept.series(self.intervals, &description));
            }
        }
        all
    }

    /// `eth1 to eth2`.
    fn direction(&self, direction: usize) -> String {
        let [a, b] = &self.request.plan.interfaces;
        if direction == 0 { format!("{a} to {b}") } else { format!("{b} to {a}") }
    }

    /// All of it.
    pub(super) fn told(&self, of: Circumstances) -> Forward {
        let plan = &self.request.plan;
        let facts = self.begun.as_ref().map(|begun| &begun.facts);
        let accounts = || self.accounts.iter().flatten();
        let elapsed = accounts().map(|account| account.elapsed).max().unwrap_or_default();
        let directions: Vec<ForwardDirection> =
            [0, 1].into_iter().map(|direction| self.told_direction(direction, &of)).collect();
        let ports: Vec<ForwardPort> = [0, 1]
            .into_iter()
            .filter_map(|port| Some(self.told_port(port, &facts?[port], of.over)))
            .collect();
        let mut warnings = of.warnings;
        warnings.extend(self.warnings.iter().cloned());
        warnings.extend(ports.iter().filter(|port| port.downs > 0).map(|port| Warning::LinkDown {
            interface: port.interface.clone(),
            times: port.downs,
        }));
        let broken = directions.iter().filter(|direction| !direction.closes());
        warnings.extend(broken.map(|direction| Warning::FramesUncounted {
            direction: format!("{} -> {}", direction.from, direction.to),
        }));
        if let Some(Why::Lost { port, why }) = &self.why {
            let part = format!("forwarding by {}", plan.interfaces[*port]);
            warnings.push(Warning::PartEndedEarly { part, reason: why.clone() });
        }
        warnings.extend(self.panicked.iter().map(|(thread, why)| Warning::PartEndedEarly {
            part: format!("the thread forward/{thread}"),
            reason: format!("it panicked: {why}"),
        }));
        Forward {
            format_version: FORWARD_VERSION,
            backend: facts.map_or(plan.transport.name(), |facts| facts[0].backend).to_owned(),
            wait: plan.wait.to_string(),
            busy_polling: self.told_polling(),
            stamps: plan.stamps.to_string(),
            stamping: self.begun.as_ref().and_then(|begun| begun.cost).map(|cost| Stamping {
                per_burst_ns: cost.per_burst_ns,
                per_frame_ns: cost.per_frame_ns,
                bursts: cost.bursts,
            }),
            ticks_hz: self.rate.0,
            work: plan.work,
            since_ns: self.begun.as_ref().map_or(0, |begun| begun.since_ns),
            lasted: elapsed.to_nanos(self.rate),
            ended: self.end(),
            ports,
            directions,
            threads: self.told_threads(),
            warnings,
        }
    }

    fn told_direction(&self, direction: usize, of: &Circumstances) -> ForwardDirection {
        let mut accounts = self.accounts.iter().flatten().flat_map(|account| &account.directions);
        let account = accounts.find(|account| account.direction == direction);
        let [a, b] = &self.request.plan.interfaces;
        let (from, to) = if direction == 0 { (a, b) } else { (b, a) };
        let counts = account.map(|account| account.counts).unwrap_or_default();
        ForwardDirection {
            from: from.clone(),
            to: to.clone(),
            received: counts.received,
            received_bytes: counts.received_bytes,
            forwarded: counts.forwarded,
            forwarded_bytes: counts.forwarded_bytes,
            waiting: counts.waiting,
            ring_full: counts.ring_full,
            too_long: counts.too_long,
            runts: counts.runts,
            refused: counts.refused,
            bursts: counts.bursts,
            refusals: account.map_or(0, |account| account.refusals),
            first_refusal: account.and_then(|account| account.first_refusal.clone()),
            residence: self.residence[direction].residence(of.resolution_ns, of.bound_ppm),
            kernel_residence: self.kernel[direction].residence(of.resolution_ns, of.bound_ppm),
            kernel_stamps_unfit: account.map_or(0, |account| account.unfit),
            ticks: account.and_then(|account| ticks(&account.parts)),
        }
    }

    fn told_port(&self, port: usize, facts: &FramesFacts, over: bool) -> ForwardPort {
        let accounts = || self.accounts.iter().flatten();
        let before = self.begun.as_ref().and_then(|begun| begun.before[port]);
        let after = self.after[port].filter(|_| over);
        // Each thread sees the same outages.
        let downs = accounts().map(|account| account.downs[port]).max().unwrap_or(0);
        let drops = dropped(accounts().flat_map(|account| &account.drops[port]));
        let counted = before.zip(after).map(|(before, after)| after.since(before));
        described(facts, downs, drops, counted)
    }

    /// Whether busy-polling did anything, port by port; none where nobody asked for it. Of two threads
    /// each has the rings of one port.
    fn told_polling(&self) -> Option<String> {
        let ports = self.request.plan.interfaces.iter().enumerate();
        let told = ports.filter_map(|(port, name)| {
            let mut accounts = self.accounts.iter().flatten();
            let outcome = accounts.find_map(|account| told_polling(account.busy_polling[port]))?;
            Some(format!("{name}: {outcome}"))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn told_threads(&self) -> Vec<ForwardThread> {
        let told = self.accounts.iter().enumerate();
        let told = told.filter_map(|(thread, account)| Some((thread, account.as_ref()?)));
        told.map(|(thread, account)| {
            let parts = account.directions.iter().map(|of: &DirectionAccount| of.parts.all());
            let busy: u64 = parts.clone().map(|part| part.ticks()).sum();
            let stamped = parts.map(|part| part.bursts).sum::<u64>() > 0;
            let elapsed = account.elapsed.0;
            ForwardThread {
                cpu: self.seats.get(thread).and_then(|seat| seat.cpu),
                looks: account.looks,
                in_vain: account.in_vain,
                busy: (stamped && elapsed > 0).then(|| busy as f64 / elapsed as f64),
            }
        })
        .collect()
    }
}

impl Attended for Sums<'_> {
    type Told = Told;
    type Times = Times;

    fn take(
        &mut self,
        taker: &Taker<Told, Times>,
        mut storage: Option<&mut Storage>,
        progress: &mut dyn Progress,
    ) {
        while let Some(told) = taker.heard() {
            match told {
                Told::Begun(begun) => {
                    progress.say(&self.announcement(&begun.facts));
                    begun.facts.iter().flat_map(|of| &of.instead).for_each(|of| progress.say(of));
                    self.warnings.extend(unequal(&begun.facts));
                    self.begun = Some(begun);
                }
                Told::Seated { seat, warnings } => {
                    self.seats.push(seat);
                    self.warnings.extend(warnings);
                }
                Told::Interval { direction, index, mut times } => {
                    self.intervals = self.intervals.max(index + 1);
                    let (residence, kernel) = (&times.residence, &times.kernel);
                    self.residence[direction].take(index, residence, storage.as_deref_mut());
                    self.kernel[direction].take(index, kernel, storage.as_deref_mut());
                    times.clear();
                    taker.give_back(times);
                }
                Told::Account { thread, account } => self.accounts[thread] = Some(account),
                Told::Counters(after) => self.after = *after,
                Told::Ended { why } => self.ended(why),
                Told::Panicked { thread, why } => self.panicked.push((thread, why)),
            }
        }
    }

    fn seats(&self) -> &[Seat] {
        &self.seats
    }
}

/// A port in full.
pub(crate) fn described(
    facts: &FramesFacts,
    downs: u64,
    drops: Vec<RingDrops>,
    interface_counts: Option<InterfaceCounts>,
) -> ForwardPort {
    ForwardPort {
        interface: facts.interface.clone(),
        index: facts.index,
        mtu: facts.mtu,
        queues: facts.queues.clone(),
        ring: facts.rings.receive,
        copies: facts.copies.to_string(),
        attachment: facts.attachment.map(|mode| mode.name().to_owned()),
        instead: facts.instead.clone(),
        downs,
        drops,
        interface_counts,
    }
}

/// Ports that do not send frames of the same length.
pub(crate) fn unequal(facts: &[FramesFacts; 2]) -> Option<Warning> {
    let [a, b] = facts;
    let (larger, smaller) = if a.mtu > b.mtu { (a, b) } else { (b, a) };
    (larger.mtu != smaller.mtu).then(|| Warning::UnequalMtus {
        larger: larger.interface.clone(),
        larger_mtu: larger.mtu,
        smaller: smaller.interface.clone(),
        smaller_mtu: smaller.mtu,
    })
}

/// Each counter of a port once: its two halves have the same ones.
pub(crate) fn dropped<'a>(all: impl Iterator<Item = &'a Drops>) -> Vec<RingDrops> {
    let mut told: Vec<RingDrops> = Vec::new();
    for drops in all {
        let ring = drops.ring.to_string();
        let same = |known: &&mut RingDrops| {
            (known.queue, &*known.ring, &*known.counter) == (drops.queue, &*ring, drops.counter)
        };
        match told.iter_mut().find(same) {
            Some(known) => known.count += drops.count,
            None => told.push(RingDrops {
                queue: drops.queue,
                ring,
                counter: drops.counter.to_owned(),
                count: drops.count,
                frames: drops.of == Counted::Frames,
            }),
        }
    }
    told
}

/// Ticks for a frame; none where nothing was stamped.
fn ticks(parts: &Parts) -> Option<ForwardTicks> {
    let mean = |part: &Part, (from, to)| {
        let of = |ticks: u64| ticks as f64 / part.frames as f64;
        (part.frames > 0).then(|| TicksPerFrame {
            from,
            to,
            bursts: part.bursts,
            frames: part.frames,
            receive: of(part.receive),
            work: of(part.work),
            transmit: of(part.transmit),
        })
    };
    let sizes = Parts::sizes();
    let most = sizes.last().map_or(1, |(_, most)| *most);
    let all = mean(&parts.all(), (1, most))?;
    let by_burst = parts.by_size.iter().zip(sizes);
    let by_burst = by_burst.filter_map(|(part, size)| mean(part, size)).collect();
    Some(ForwardTicks { all, by_burst })
}

fn told_polling(outcome: BusyPolling) -> Option<String> {
    match outcome {
        BusyPolling::NotAsked => None,
        BusyPolling::NoQueue => {
            Some("no frame came through a queue that can be polled: it was spinning".to_owned())
        }
        BusyPolling::Queue(id) => Some(format!("of the receiving queue {id} (NAPI id)")),
    }
}
