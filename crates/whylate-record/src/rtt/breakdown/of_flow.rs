//! One flow that is taken apart: what tells of its requests, and what they are composed of.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

use whylate_breakdown::Met;
use whylate_breakdown::asides::Asides;
use whylate_breakdown::compose::{self, Bounds, Certainty, Composed, Composer, Settings};
use whylate_breakdown::follow::{FollowCounts, Passage};
use whylate_breakdown::meet::Meeting;
use whylate_breakdown::pairs;
use whylate_clock::relation::{Relation, Unrelated};
use whylate_model::breakdown::{Part, Point, Probed, Source, Station};
use whylate_model::event::Event;
use whylate_model::series::Definition;
use whylate_model::series::summary::Identity;
use whylate_model::tail::End;
use whylate_model::tap::TapClock;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks};
use whylate_net::lab::Bed;
use whylate_net::open_loop::settled::Settled;
use whylate_net::open_loop::stamps::{self, Stamped, Stamping, Stampings};
use whylate_net::schedule::Arrivals;
use whylate_net::serve::visits::{ToldVisit, Visit, Visits};
use whylate_port::StampKind;
use whylate_sys::ptp::PtpClock;

use super::asked::{self, Sources};
use super::came::reasoned;
use super::card::{self, Card};
use super::far::FarStamps;
use crate::rtt::request::{FlowRequest, Request};
use crate::rtt::tap::{Followed, OfTap};
use crate::storage::Storage;
use crate::workbench::Workbench;

/// Requests of which the slowest are kept with everything that was beside them.
const SLOWEST: usize = 8;
/// The percentile from which on a request is slow, where none was asked for.
const SLOW_FROM: f64 = 99.9;
/// The kernel stamps in whole nanoseconds.
const STAMP_STEP: Nanos = Nanos(1);
/// Why requests that ended are none of those that are put together.
const TOO_LATE: &str = "it came too late to be put together, or there was no room for it";
/// What is told by the system's clock.
const BY_THE_SYSTEM: [Source; 3] = [Source::Software, Source::Tap, Source::Metadata];
/// Stamps that wait until the clocks' relation is known at their time.
const MOST_WAITING: usize = 1 << 16;

/// A flow that is taken apart.
pub(in crate::rtt) struct FlowParts {
    /// Its number in the run.
    pub(super) number: usize,
    pub(super) name: String,
    client: CpuId,
    other: Option<CpuId>,
    /// The reflector that was started for it.
    reflector: Option<Pid>,
    closed: bool,
    pub(super) sources: Sources,
    expected: Vec<(Point, Source)>,
    whole: Part,
    slow_from: f64,
    rate: Hertz,
    /// A reply that comes so late is none.
    patience: Nanos,
    hand: Receiver<Stampings>,
    stampings: Option<Stampings>,
    /// What the reflector tells.
    visits: Option<Visits>,
    /// What became of its stamps.
    far_stamps: FarStamps,
    waiting: VecDeque<Waiting>,
    /// Stamps that lie nowhere on the counter's timeline.
    unplaced: u64,
    /// Stamps, and times of a tap, that found no room until the clocks were related.
    crowded: u64,
    tap_crowded: u64,
    /// Times of its bed's tap, of all flows, that nobody fetched in time; of its first flow alone.
    pub(super) tap_untold: u64,
    /// What its stamps came to before anything was measured.
    pub(in crate::rtt) probes: Vec<Probed>,
    followed: Followed,
    bed: Option<Bed>,
    tap: Option<OfTap>,
    /// What stamps its client's messages by a clock of its own.
    card: Option<Card<PtpClock>>,
    /// Those of its client.
    threads: Vec<Pid>,
    /// From when they are known.
    going: Option<Going>,
}

/// The other end, as far as it was started here, and what lies between.
pub(in crate::rtt) struct Far {
    pub(in crate::rtt) reflector: Option<Pid>,
    pub(in crate::rtt) visits: Option<Visits>,
    /// How a tap between both knows the flow's messages.
    pub(in crate::rtt) followed: Followed,
    /// The bed, where its tap is read.
    pub(in crate::rtt) bed: Option<Bed>,
    /// The client's card, where it stamps.
    pub(in crate::rtt) card: Option<Card<PtpClock>>,
}

/// An instant by the system's clock, until that is related to the counter.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    request: u64,
    what: What,
    at: Nanos,
}

/// What an instant is of.
#[derive(Debug, Clone, Copy)]
enum What {
    /// A point on the way.
    Point(Point, Source),
    /// A stamp beside it: its place among the flow's.
    Aside(usize),
}

/// A flow whose requests come.
struct Going {
    meeting: Meeting,
    composer: Composer,
    /// Stamps that lie not on the way.
    asides: Vec<(StampKind, Asides)>,
}

impl Going {
    fn compose(&mut self, mets: &[Met], flow: usize, mut keep: Option<&mut Storage>) {
        for met in mets {
            self.composer.take(met);
            if let Some(storage) = keep.as_deref_mut() {
                storage.journey(&compose::stored(flow as u16, met));
            }
        }
    }
}

/// For the measuring thread.
pub(in crate::rtt) struct Hand {
    to: Sender<Stampings>,
}

impl Hand {
    /// To be called on the measuring thread, before it measures.
    pub(in crate::rtt) fn begin(&self) -> Stamping {
        let (stamping, stampings) = stamps::between();
        // The recording thread is there for as long as this one: it waits for its end.
        let _ = self.to.send(stampings);
        stamping
    }
}

impl FlowParts {
    /// The flow with this number, told of by these; the hand is for its measuring thread, where its
    /// sockets are stamped.
    pub(in crate::rtt) fn open(
        request: &Request,
        (number, flow): (usize, &FlowRequest),
        bench: &Workbench,
        (sources, far): (Sources, Far),
    ) -> (Self, Option<Hand>) {
        let Far { reflector, visits, followed, bed, card } = far;
        let (to, hand) = channel();
        let closed = flow.arrivals == Arrivals::Closed;
        let parts = Self {
            number,
            name: flow.name.clone(),
            client: flow.cpu,
            other: flow.target.cpu(),
            reflector,
            closed,
            sources,
            expected: asked::expected(flow, sources, closed),
            whole: asked::whole(closed),
            slow_from: request.causes.slow_from.unwrap_or(SLOW_FROM),
            rate: bench.rate,
            patience: request.timeout,
            hand,
            stampings: None,
            visits,
            far_stamps: FarStamps::default(),
            waiting: VecDeque::new(),
            unplaced: 0,
            crowded: 0,
            tap_crowded: 0,
            tap_untold: 0,
            probes: Vec::new(),
            followed,
            bed,
            tap: None,
            card,
            threads: Vec::new(),
            going: None,
        };
        (parts, (sources.stamps || sources.metadata).then_some(Hand { to }))
    }

    /// The reflector that was started for it.
    pub(super) fn reflector(&self) -> Option<Pid> {
        self.reflector
    }

    /// Its client's threads, and the reflector's.
    pub(super) fn threads(&self) -> impl Iterator<Item = Pid> + '_ {
        self.threads.iter().copied().chain(self.reflector)
    }

    /// There is no trace after all: nothing is expected of it.
    pub(super) fn without_trace(&mut self) {
        self.sources.trace = false;
        self.expected.retain(|(_, source)| *source != Source::Trace);
    }

    /// Its threads are known: its requests may come.
    pub(super) fn begin(&mut self, threads: Vec<Pid>, bounds: Bounds) {
        if self.going.is_some() {
            return;
        }
        self.threads.clone_from(&threads);
        let server = self.reflector.map(|pid| vec![pid]);
        let aside = |kind: StampKind| (kind, Asides::new(kind.word(), self.rate, &bounds));
        let asides = self.sources.asides().map(aside).collect();
        let meeting = Meeting::new(threads, server, self.patience.to_ticks(self.rate));
        let composer = Composer::new(Settings {
            rate: self.rate,
            whole: self.whole,
            bounds,
            expected: self.expected.clone(),
            slow_percent: self.slow_from,
            slowest: SLOWEST,
            name: self.name.clone(),
        });
        self.going = Some(Going { meeting, composer, asides });
    }

    pub(super) fn has_begun(&self) -> bool {
        self.going.is_some()
    }

    /// Takes a request that has ended.
    pub(super) fn request(&mut self, settled: &Settled) {
        let Some(Going { meeting, composer, asides }) = &mut self.going else { return };
        if let (Some(number), Some(sent)) = (settled.number, settled.sent) {
            for (_, aside) in asides.iter_mut() {
                aside.sent(number, sent);
            }
        }
        let intended = (!self.closed).then_some(settled.intended);
        match (settled.number, settled.sent, settled.answered) {
            (Some(number), Some(sent), true) => {
                meeting.request(number, intended, sent, settled.at);
            }
            (None, ..) => composer.left_out("never sent", 1),
            (_, None, _) => composer.left_out("refused by the kernel", 1),
            (_, _, false) => composer.left_out("never answered", 1),
        }
    }

    /// Takes what its sockets were stamped with and what the reflector told, as far as the clocks'
    /// relation is known.
    pub(super) fn take_told(&mut self, relation: &Relation) {
        if let Ok(stampings) = self.hand.try_recv() {
            self.stampings = Some(stampings);
        }
        // What is told before its threads are known waits where it is.
        let Some(Going { meeting, composer, asides }) = &mut self.going else { return };
        let (waiting, crowded) = (&mut self.waiting, &mut self.crowded);
        let mut wait = |request, what: Option<What>, at| match what {
            None => (),
            Some(_) if waiting.len() >= MOST_WAITING => *crowded += 1,
            Some(what) => waiting.push_back(Waiting { request, what, at }),
        };
        let software = |point| What::Point(point, Source::Software);
        // The program that takes frames stamps them before the kernel's stack would.
        let metadata = self.sources.metadata;
        let source = if metadata { Source::Metadata } else { Source::Software };
        let near = |point| What::Point(point, source);
        if let Some(stampings) = &mut self.stampings {
            let card = &mut self.card;
            let mut others = Vec::new();
            let stamped = |Stamped { request, kind, at }| {
                if let (Some(point), Some(card)) = (card::point(kind), &mut *card) {
                    return card.wait(request, point, at);
                }
                let aside = asides.iter().position(|(of, _)| *of == kind).map(What::Aside);
                wait(request, aside.or_else(|| of_client(kind).map(near)), at);
            };
            stampings.drain_told(stamped, |request, kinds| others.push((request, kinds)));
            for (request, kinds) in others {
                not_asked((&mut *composer, &mut asides[..]), (request, kinds), source);
            }
        }
        let mut told = Vec::new();
        if let Some(visits) = &mut self.visits {
            let (far, stamped) = (&mut self.far_stamps, self.sources.far_stamps);
            visits.drain(|of| match of {
                ToldVisit::Visit(visit) => {
                    if stamped {
                        far.asked(visit.sequence);
                    }
                    told.push(visit);
                }
                ToldVisit::Stamp { sequence, kind, at } => {
                    far.came(sequence, kind);
                    wait(sequence, of_server(kind).map(software), at);
                }
            });
        }
        if self.sources.told {
            for Visit { sequence, received, sent } in told {
                meeting.instant(sequence, Point::there(Station::Read), received, Source::Told);
                meeting.instant(sequence, Point::back(Station::Sent), sent, Source::Told);
            }
        }
        if let Some(card) = &mut self.card {
            card.place(relation, &mut |request, point, at| {
                meeting.instant(request, point, at, Source::Hardware);
            });
        }
        while let Some(Waiting { request, what, at }) = self.waiting.front().copied() {
            match (relation.ticks_of(at), what) {
                (Ok((at, _)), What::Point(point, source)) => {
                    meeting.instant(request, point, at, source);
                }
                (Ok((at, _)), What::Aside(place)) => asides[place].1.came(request, at),
                (Err(Unrelated::NotYet), _) => return,
                (Err(_), _) => self.unplaced += 1,
            }
            self.waiting.pop_front();
        }
    }

    /// Reads the card's clock, behind all stamps that have come.
    pub(super) fn read_card(&mut self, now: Ticks) {
        if let Some(card) = &mut self.card {
            card.read(now, self.rate);
        }
    }

    /// How sure stamps are by now: the system's clock and the card's are related again and again.
    /// A CPU's counter may be `cpu` from the timeline.
    pub(super) fn sure(&mut self, relation: &Relation, cpu: Nanos) {
        let Some(Going { composer, asides, .. }) = &mut self.going else { return };
        for source in BY_THE_SYSTEM {
            composer.bounded(source, sum(cpu, relation.bound()));
        }
        if let Some(card) = &self.card {
            let bound = sum(cpu, card.bound(relation));
            let certainty = Certainty { resolution: STAMP_STEP, bound };
            composer.sure(Source::Hardware, certainty);
        }
        for (_, aside) in asides {
            aside.sure(composer.bounds());
        }
    }

    /// Nothing more comes of the card, and it stamps what it did before: what there is to say.
    pub(super) fn end_card(&mut self) -> Vec<Warning> {
        self.card.as_mut().map_or_else(Vec::new, |card| card.end(&self.name))
    }

    /// Takes what a tap saw of a request, by the system's clock.
    pub(super) fn tapped(&mut self, request: u64, point: Point, at: Nanos) {
        if self.waiting.len() < MOST_WAITING {
            let what = What::Point(point, Source::Tap);
            self.waiting.push_back(Waiting { request, what, at });
        } else {
            self.tap_crowded += 1;
        }
    }

    /// How a tap knows its messages.
    pub(super) fn followed(&self) -> Followed {
        self.followed
    }

    /// What the tap came to. A file's times may be coarser than the kernel's: until then none of the
    /// requests is composed that it tells of.
    pub(super) fn tap_saw(&mut self, of: OfTap) {
        if let Some(Going { composer, .. }) = &mut self.going {
            composer.set_resolution(Source::Tap, of.facts.resolution.max(STAMP_STEP));
        }
        self.tap = Some(of);
    }

    /// Is its bed's tap read?
    pub(super) fn tapped_bed(&self) -> Option<&Bed> {
        self.bed.as_ref()
    }

    /// There is no tap after all.
    pub(super) fn without_tap(&mut self) {
        (self.bed, self.sources.tap) = (None, false);
        self.expected.retain(|(_, source)| *source != Source::Tap);
    }

    /// Takes a message that the kernel's trace has followed.
    pub(super) fn passage(&mut self, passage: &Passage) {
        if let Some(going) = &mut self.going {
            going.meeting.passage(*passage);
        }
    }

    /// Takes events of a CPU, for the slowest requests.
    pub(super) fn events(&mut self, cpu: CpuId, events: &[Event]) {
        let end = match cpu {
            cpu if cpu == self.client => Some(End::Client),
            cpu if Some(cpu) == self.other => Some(End::Other),
            _ => None,
        };
        if let Some(going) = &mut self.going {
            going.composer.events(end, events);
        }
    }

    /// Everything before `to` has come: what has met is composed, and each journey kept where one is
    /// wanted.
    pub(super) fn complete(&mut self, to: Ticks, keep: Option<&mut Storage>) {
        let Some(going) = &mut self.going else { return };
        let mets = going.meeting.complete(to);
        going.compose(&mets, self.number, keep);
    }

    /// Nothing more comes.
    pub(super) fn complete_all(&mut self, keep: Option<&mut Storage>) {
        let Some(going) = &mut self.going else { return };
        let mets = going.meeting.finish();
        going.compose(&mets, self.number, keep);
    }

    /// What has come of it, with what the trace's messages came to; none where none of its requests ever
    /// came. Beside it, stamps nowhere on the counter's timeline, and what came too late or found no room.
    pub(super) fn finish(self, followed: Option<&FollowCounts>) -> Option<(Composed, [u64; 2])> {
        let Going { meeting, mut composer, asides } = self.going?;
        let visits = self.visits.as_ref();
        let (missed, garbled) = visits.map_or((0, 0), |of| (of.missed(), of.garbled));
        let met = meeting.counts();
        let [unrelated, tap_unrelated] = still_waiting(&self.waiting);
        let crowded = met.crowded + missed + garbled + self.crowded + self.tap_crowded;
        composer.left_out(TOO_LATE, met.requests_crowded);
        let mut composed = composer.finish();
        composed.breakdown.dropped = reasoned([
            ("stamps that found no room until the clocks were related", self.crowded),
            ("times of the tap that found no room until the clocks were related", self.tap_crowded),
            ("stamps that waited for the clocks' relation when all was over", unrelated),
            (
                "times of the tap that waited for the clocks' relation when all was over",
                tap_unrelated,
            ),
            ("times of the bed's tap that nobody fetched in time", self.tap_untold),
            ("records of the other end that found no room in the memory of both", missed),
            ("records of the other end that say nothing", garbled),
            ("messages and instants that came too late or found no room", met.crowded),
        ]);
        composed.breakdown.probes = self.probes;
        composed.breakdown.far_stamps = self.far_stamps.counted();
        composed.breakdown.card = self.card.as_ref().and_then(Card::told);
        let followed = followed.filter(|_| self.sources.trace);
        composed.breakdown.pairs = followed.map(|of| Box::new(pairs::of_meeting(&met, of)));
        for (kind, aside) in asides {
            aside.keep(&mut composed, &self.name, ends_of(kind, self.sources.metadata));
        }
        if let Some(of) = self.tap {
            keep_tap(&mut composed, &self.name, of);
        }
        Some((composed, [self.unplaced, crowded]))
    }
}

/// Stamps, and times of a tap, that still wait until the clocks are related.
fn still_waiting(waiting: &VecDeque<Waiting>) -> [u64; 2] {
    let of_tap = |of: &&Waiting| matches!(of.what, What::Point(_, Source::Tap));
    let tap = waiting.iter().filter(of_tap).count();
    [(waiting.len() - tap) as u64, tap as u64]
}

/// Puts what the tap saw beside what was composed, with a series of its own.
fn keep_tap(composed: &mut Composed, flow: &str, of: OfTap) {
    let OfTap { mut facts, distances } = of;
    facts.between = composed.between.take();
    if !distances.is_empty() {
        let identity = Identity {
            name: format!("{flow}-tap"),
            label: "request to reply at the tap".to_owned(),
            paper_row: None,
            from: "a request at the tap".to_owned(),
            to: "its reply there".to_owned(),
            clock: match facts.clock {
                TapClock::System => "system".to_owned(),
                TapClock::Own => "the tap's own".to_owned(),
            },
            definition: Definition::PartOfRequest,
            resolution_ns: facts.resolution.0 as f64,
            lost: 0,
        };
        facts.series = Some(identity.name.clone());
        composed.histograms.push((identity.name.clone(), identity.label.clone(), distances));
        composed.identities.push(identity);
    }
    composed.breakdown.tap = Some(Box::new(facts));
}

/// From where to where a stamp beside the way is told.
fn ends_of(kind: StampKind, frames: bool) -> (&'static str, &'static str) {
    let to = match kind {
        StampKind::Ack => "acknowledged by the other end's kernel, as this machine's had it",
        _ if frames => "let go of by the kernel, which had its frame",
        _ => "out, as the card told its driver",
    };
    ("request sent", to)
}

/// Of this request these kinds of stamps were not asked for, a bit each.
fn not_asked(
    (composer, asides): (&mut Composer, &mut [(StampKind, Asides)]),
    (request, kinds): (u64, u8),
    near: Source,
) {
    for kind in StampKind::ALL.into_iter().filter(|kind| kinds & kind.bit() != 0) {
        if let Some(point) = card::point(kind) {
            composer.not_asked(request, point, Source::Hardware);
        } else if let Some((_, aside)) = asides.iter_mut().find(|(of, _)| *of == kind) {
            aside.not_asked(request);
        } else if let Some(point) = of_client(kind) {
            composer.not_asked(request, point, near);
        }
    }
}

/// Which point a stamp of the client's socket is; none of what lies not on the way. Those by a card's
/// clock are the card's matter.
fn of_client(kind: StampKind) -> Option<Point> {
    match kind {
        StampKind::Sched => Some(Point::there(Station::Queued)),
        StampKind::Software => Some(Point::there(Station::Driver)),
        StampKind::ReceivedSoftware => Some(Point::back(Station::Arrived)),
        _ => None,
    }
}

/// The same of the reflector's socket.
fn of_server(kind: StampKind) -> Option<Point> {
    match kind {
        StampKind::Sched => Some(Point::back(Station::Queued)),
        StampKind::Software => Some(Point::back(Station::Driver)),
        StampKind::ReceivedSoftware => Some(Point::there(Station::Arrived)),
        _ => None,
    }
}

/// Steps and bounds of the sources: readings of the counter have its step, and are as far from the
/// timeline as the CPU's counter may be; what is by the system's clock, which each CPU reads by its own
/// counter, is by as much further as the relation of the two allows.
pub(super) fn bounds(resolution: Nanos, cpu: Nanos, system: Nanos) -> Bounds {
    let read = [Source::Own, Source::Told, Source::Trace]
        .into_iter()
        .fold(Bounds::default(), |bounds, source| bounds.with(source, resolution, cpu));
    let bound = sum(cpu, system);
    BY_THE_SYSTEM.into_iter().fold(read, |bounds, source| bounds.with(source, STAMP_STEP, bound))
}

fn sum(one: Nanos, other: Nanos) -> Nanos {
    Nanos(one.0.saturating_add(other.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_the_clocks_when_all_is_over_is_counted_stamps_and_times_of_a_tap_apart() {
        let point = Point::there(Station::Driver);
        let of = |what| Waiting { request: 1, what, at: Nanos(1) };
        let waiting = VecDeque::from([
            of(What::Point(point, Source::Software)),
            of(What::Point(Point::there(Station::Tap), Source::Tap)),
            of(What::Aside(0)),
        ]);
        assert_eq!(still_waiting(&waiting), [2, 1]);
    }

    #[test]
    fn every_source_is_as_unsure_as_the_counter_of_its_cpu_and_stamps_by_their_relation_too() {
        let bounds = bounds(Nanos(3), Nanos(40), Nanos(500));
        for source in [Source::Own, Source::Told, Source::Trace] {
            let certainty = Certainty { resolution: Nanos(3), bound: Nanos(40) };
            assert_eq!(bounds.of(source), certainty, "{source}");
        }
        for source in BY_THE_SYSTEM {
            let certainty = Certainty { resolution: STAMP_STEP, bound: Nanos(540) };
            assert_eq!(bounds.of(source), certainty, "{source}");
        }
    }
}
