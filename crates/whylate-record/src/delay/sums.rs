//! What the thread of a delay line told, added up.

use std::sync::{Mutex, PoisonError};

use whylate_model::calibration::Emulator;
use whylate_model::delay::{
    DELAY_VERSION, DelayBase, DelayChange, DelayDirection, DelayEnd, DelayLine, TruthLog,
};
use whylate_model::forward::{ForwardPort, InterfaceCounts};
use whylate_model::series::{Definition, Series};
use whylate_model::warning::Warning;
use whylate_model::{Hertz, Nanos};
use whylate_net::delay::control::Shown;
use whylate_net::delay::{Account, Delayed, LaneAccount};
use whylate_net::forward::Why;
use whylate_threads::placement::Seat;

use super::DelayRequest;
use super::threads::{Begun, Told};
use crate::forward::sums::{described, dropped, unequal};
use crate::kept::Kept;
use crate::progress::Progress;
use crate::service::{Attended, Circumstances, Taker};
use crate::storage::Storage;
use crate::summary::Description;

/// Names of the series and their tags, by direction.
const RESIDENCE: [&str; 2] = ["delay-residence-0", "delay-residence-1"];
const LATENESS: [&str; 2] = ["delay-lateness-0", "delay-lateness-1"];
/// Of fewer frames nothing is said about how late 99 of 100 are.
const ENOUGH: u64 = 1_000;
/// Changes that are kept; later ones hold all the same.
const MOST_CHANGES: usize = 1 << 12;

/// Everything that was told.
pub(super) struct Sums<'a> {
    pub(super) request: &'a DelayRequest,
    /// What netem makes of the delay.
    beside: Option<Emulator>,
    rate: Hertz,
    begun: Option<Box<Begun>>,
    after: [Option<InterfaceCounts>; 2],
    /// Of a thread that was pinned.
    seat: Option<Seat>,
    /// Of each direction.
    residence: [Kept; 2],
    lateness: [Kept; 2],
    /// The last one.
    account: Option<Box<Account>>,
    changes: Vec<DelayChange>,
    turned_away: u64,
    why: Option<Why>,
    intervals: u64,
    truths: TruthLog,
    warnings: Vec<Warning>,
    shown: Shown,
}

impl<'a> Sums<'a> {
    pub(super) fn new(request: &'a DelayRequest, rate: Hertz, beside: Option<Emulator>) -> Self {
        Self {
            request,
            beside,
            rate,
            begun: None,
            after: [None; 2],
            seat: None,
            residence: RESIDENCE.map(|name| Kept::new(name, rate)),
            lateness: LATENESS.map(|name| Kept::new(name, rate)),
            account: None,
            changes: Vec::new(),
            turned_away: 0,
            why: None,
            intervals: 0,
            truths: TruthLog::default(),
            warnings: Vec::new(),
            shown: Shown::new(Mutex::new("{}".to_owned())),
        }
    }

    /// What `show` tells, kept up to date.
    pub(super) fn shown(&self) -> Shown {
        self.shown.clone()
    }

    /// Has it told what it has done?
    pub(super) fn has_told(&self) -> bool {
        self.account.is_some()
    }

    fn begin(&mut self, begun: Box<Begun>, progress: &mut dyn Progress) {
        let [first, second] = &begun.ports;
        let (transport, wait) = (self.request.transport(), self.request.wait());
        let DelayBase { base, error, frames, at, .. } = begun.base;
        // Scripts wait for this line.
        progress.say(&format!(
            "delaying between {first} and {second}: base {base}, error {error} ({transport}, --wait \
             {wait}; 99 of 100 at {at}, {frames} frames)"
        ));
        if let Some(facts) = &begun.facts {
            facts.iter().flat_map(|of| &of.instead).for_each(|of| progress.say(of));
            self.warnings.extend(unequal(facts));
        }
        self.begun = Some(begun);
    }

    /// Writes truths down. Without a storage they are read all the same: nobody is to wait for room.
    fn drain(&mut self, mut storage: Option<&mut Storage>) {
        let Some(reader) = self.begun.as_mut().and_then(|begun| begun.truths.as_mut()) else {
            return;
        };
        let kept = &mut self.truths.kept;
        reader.drain(|truth| {
            if let Some(storage) = storage.as_deref_mut() {
                storage.truth(&truth);
                *kept += 1;
            }
        });
        self.truths.missed = reader.missed();
    }

    /// Replaces what `show` tells.
    fn show(&mut self) {
        let Some(account) = &self.account else { return };
        let [there, back] = &account.directions;
        let of = |direction: &LaneAccount| serde_json::json!({ "law": direction.law, "counts": direction.counts });
        let line = serde_json::json!({
            "after_ns": account.elapsed.to_nanos(self.rate).0,
            "there": of(there),
            "back": of(back),
        });
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = line.to_string();
    }

    /// The series of both directions.
    pub(super) fn series(&self, clock: &str, resolution_ns: f64) -> Vec<Series> {
        let mut all = Vec::new();
        for direction in [0, 1] {
            let way = self.direction(direction);
            let kinds = [
                (&self.residence[direction], "seen", "residence", Definition::Residence),
                (&self.lateness[direction], "was to leave", "late by", Definition::SendLateness),
            ];
            for (kept, from, what, definition) in kinds {
                let description = Description {
                    name: kept.name.to_owned(),
                    label: format!("{what}, {way}"),
                    paper_row: None,
                    from,
                    to: "handed over",
                    clock: clock.to_owned(),
                    definition,
                    resolution_ns,
                    lost: 0,
                };
                all.extend(kept.series(self.intervals, &description));
            }
        }
        all
    }

    fn ports(&self) -> [String; 2] {
        self.begun.as_ref().map_or_else(|| self.request.ports(), |begun| begun.ports.clone())
    }

    /// `eth1 to eth2`.
    fn direction(&self, direction: usize) -> String {
        let [a, b] = self.ports();
        if direction == 0 { format!("{a} to {b}") } else { format!("{b} to {a}") }
    }

    /// All of it.
    pub(super) fn told(&self, of: Circumstances) -> DelayLine {
        let ends: Vec<ForwardPort> =
            [0, 1].into_iter().filter_map(|port| self.told_port(port, of.over)).collect();
        let directions: Vec<DelayDirection> =
            [0, 1].map(|direction| self.told_direction(direction, &of)).into();
        let account = self.account.as_deref();
        let base = self.begun.as_ref().map_or(NOTHING, |begun| begun.base);
        let capacity = self.begun.as_ref().map(|begun| begun.capacity).unwrap_or_default();
        let logs = self.begun.as_ref().is_some_and(|begun| begun.truths.is_some());
        let mut warnings = of.warnings;
        warnings.extend(self.warnings.iter().cloned());
        warnings.extend(self.judged(&directions, &ends, base));
        DelayLine {
            format_version: DELAY_VERSION,
            transport: self.request.transport(),
            wait: self.request.wait(),
            ports: self.ports(),
            ends,
            directions,
            base,
            netem: self.beside.clone(),
            capacity_frames: capacity.frames,
            capacity_bytes: capacity.bytes,
            seed: self.request.laws()[0].seed,
            since_ns: self.begun.as_ref().map_or(0, |begun| begun.since_ns),
            lasted: account.map(|of| of.elapsed.to_nanos(self.rate)).unwrap_or_default(),
            ended: match &self.why {
                Some(Why::Lost { .. }) => DelayEnd::PortLost,
                Some(Why::Duration) => DelayEnd::Duration,
                Some(Why::Stopped) => DelayEnd::Stopped,
                None => DelayEnd::GoingOn,
            },
            changes: self.changes.clone(),
            truths: logs.then_some(self.truths),
            cpu: self.seat.and_then(|seat| seat.cpu),
            looks: account.map_or(0, |of| of.looks),
            in_vain: account.map_or(0, |of| of.in_vain),
            warnings,
        }
    }

    /// What a reader must know of what was counted.
    fn judged(
        &self,
        directions: &[DelayDirection],
        ends: &[ForwardPort],
        base: DelayBase,
    ) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (of, lateness) in directions.iter().zip(&self.lateness) {
            let direction = format!("{} -> {}", of.from, of.to);
            if !of.counts.closes() {
                warnings.push(Warning::FramesUncounted { direction: direction.clone() });
            }
            if of.counts.overflow > 0 {
                let frames = of.counts.overflow;
                warnings.push(Warning::DelayOverflow { direction: direction.clone(), frames });
            }
            let late = lateness.value_at(99.0).unwrap_or_default();
            let enough = of.lateness.as_ref().is_some_and(|of| of.samples >= ENOUGH);
            if enough && late > base.error {
                warnings.push(Warning::DelayLate { direction, late, said: base.error });
            }
        }
        let down = ends.iter().filter(|port| port.downs > 0);
        warnings.extend(down.map(|port| Warning::LinkDown {
            interface: port.interface.clone(),
            times: port.downs,
        }));
        let missed = self.truths.missed;
        warnings.extend((missed > 0).then_some(Warning::TruthsMissed { missed }));
        let dropped = self.turned_away;
        warnings.extend((dropped > 0).then_some(Warning::ClientsTurnedAway { dropped }));
        if let Some(Why::Lost { port, why }) = &self.why {
            let part = format!("delaying by {}", self.ports()[*port]);
            warnings.push(Warning::PartEndedEarly { part, reason: why.clone() });
        }
        warnings
    }

    fn told_direction(&self, direction: usize, of: &Circumstances) -> DelayDirection {
        let account = self.account.as_ref().map(|account| &account.directions[direction]);
        let [a, b] = self.ports();
        let (from, to) = if direction == 0 { (a, b) } else { (b, a) };
        let asked = || self.request.laws()[direction].to_string();
        let times = |kept: &Kept| kept.residence(of.resolution_ns, of.bound_ppm);
        let (residence, lateness) =
            (times(&self.residence[direction]), times(&self.lateness[direction]));
        let series = [
            (residence.is_some(), RESIDENCE[direction]),
            (lateness.is_some(), LATENESS[direction]),
        ];
        DelayDirection {
            from,
            to,
            law: account.map_or_else(asked, |account| account.law.clone()),
            counts: account.map(|account| account.counts).unwrap_or_default(),
            received_bytes: account.map_or(0, |account| account.received_bytes),
            passed_bytes: account.map_or(0, |account| account.passed_bytes),
            residence,
            lateness,
            refusals: account.map_or(0, |account| account.refusals),
            first_refusal: account.and_then(|account| account.first_refusal.clone()),
            series: series.iter().filter(|of| of.0).map(|of| of.1.to_owned()).collect(),
        }
    }

    fn told_port(&self, port: usize, over: bool) -> Option<ForwardPort> {
        let begun = self.begun.as_ref()?;
        let facts = &begun.facts.as_ref()?[port];
        let after = self.after[port].filter(|_| over);
        let account = self.account.as_deref();
        let downs = account.map_or(0, |account| account.downs[port]);
        let drops = dropped(account.iter().flat_map(|account| &account.drops[port]));
        let counted = begun.before[port].zip(after).map(|(before, after)| after.since(before));
        Some(described(facts, downs, drops, counted))
    }
}

impl Attended for Sums<'_> {
    type Told = Told;
    type Times = Delayed;

    fn take(
        &mut self,
        taker: &Taker<Told, Delayed>,
        mut storage: Option<&mut Storage>,
        progress: &mut dyn Progress,
    ) {
        while let Some(told) = taker.heard() {
            match told {
                Told::Begun(begun) => self.begin(begun, progress),
                Told::Seated { seat, warnings } => {
                    // One that may run anywhere is not watched.
                    self.seat = Some(seat).filter(|seat| seat.cpu.is_some());
                    self.warnings.extend(warnings);
                }
                Told::Interval { direction, index, mut times } => {
                    self.intervals = self.intervals.max(index + 1);
                    let (residence, lateness) = (&times.residence, &times.lateness);
                    self.residence[direction].take(index, residence, storage.as_deref_mut());
                    self.lateness[direction].take(index, lateness, storage.as_deref_mut());
                    times.clear();
                    taker.give_back(times);
                }
                Told::Account { account, changes, turned_away } => {
                    self.turned_away = turned_away;
                    let room = MOST_CHANGES.saturating_sub(self.changes.len());
                    for change in &changes {
                        let way = self.direction(usize::from(change.direction));
                        progress.say(&format!("{way} after {}: {}", change.at, change.law));
                    }
                    self.changes.extend(changes.into_iter().take(room));
                    self.account = Some(account);
                    self.show();
                }
                Told::Counters(after) => self.after = *after,
                Told::Ended { why } => self.why = Some(why),
            }
        }
        self.drain(storage);
    }

    fn seats(&self) -> &[Seat] {
        self.seat.as_slice()
    }
}

/// Of a line that did not begin.
const NOTHING: DelayBase = DelayBase {
    base: Nanos(0),
    error: Nanos(0),
    error_median: Nanos(0),
    error_max: Nanos(0),
    at: Nanos(0),
    frames: 0,
    resolution: Nanos(0),
};
