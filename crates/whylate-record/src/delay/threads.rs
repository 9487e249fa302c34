//! The thread that delays, and what it tells.

use std::sync::atomic::AtomicBool;

use whylate_host::journal::Journal;
use whylate_model::delay::{DelayBase, DelayChange};
use whylate_model::forward::InterfaceCounts;
use whylate_model::warning::Warning;
use whylate_net::NetError;
use whylate_net::delay::control::Shown;
use whylate_net::delay::proxy::PROXY_CAPACITY;
use whylate_net::delay::{
    self, Account, Capacity, Control, Delayed, Inbox, Opened, OpenedProxy, Plan, ProxyPlan,
    ProxyTold, Tells, Told as OfLine, TruthReader,
};
use whylate_net::forward::{self, Halt, Why};
use whylate_net::lab::Role;
use whylate_net::protocol::tap::numbers;
use whylate_port::frames::FramesFacts;
use whylate_threads::Placement;
use whylate_threads::placement::Seat;

use super::{DelayRequest, What};
use crate::forward::tags::{Tags, uncut};
use crate::service::Crew;
use crate::{RecordError, date_ns};

/// What the thread tells.
#[expect(clippy::large_enum_variant, reason = "some are sent a second; a box would be allocated")]
pub(super) enum Told {
    /// Frames or messages are held back from here on.
    Begun(Box<Begun>),
    /// The thread has its place.
    Seated { seat: Seat, warnings: Vec<Warning> },
    /// An interval of a direction is over. Its histograms go back empty.
    Interval { direction: usize, index: u64, times: Delayed },
    /// What was done until now.
    Account { account: Box<Account>, changes: Vec<DelayChange>, turned_away: u64 },
    /// The interfaces' counters, as they are now.
    Counters(Box<[Option<InterfaceCounts>; 2]>),
    /// The thread has ended.
    Ended { why: Why },
}

/// What is known when it begins.
pub(super) struct Begun {
    /// When, in nanoseconds since 1970.
    pub(super) since_ns: u64,
    pub(super) ports: [String; 2],
    /// None of a proxy.
    pub(super) facts: Option<[FramesFacts; 2]>,
    pub(super) before: [Option<InterfaceCounts>; 2],
    pub(super) base: DelayBase,
    pub(super) capacity: Capacity,
    pub(super) truths: Option<TruthReader>,
}

/// What the thread needs.
pub(super) struct Work<'a> {
    pub(super) request: &'a DelayRequest,
    pub(super) crew: &'a Crew<Told, Delayed>,
    /// What is changed of interfaces is in it; none where nothing is to be.
    pub(super) journal: Option<&'a Journal>,
    /// What `show` tells.
    pub(super) shown: Shown,
}

impl Work<'_> {
    /// Delays on the calling thread until it is to end.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<(), RecordError> {
        // The thread that takes orders runs where the recording's does.
        let (control, inbox) = self.control()?;
        self.crew.spread()?;
        let done = match &self.request.what {
            What::Frames(plan) => self.frames(plan, stop, inbox),
            What::Messages(plan) => self.messages(plan, stop, inbox),
        };
        drop(control);
        done
    }

    fn control(&self) -> Result<(Option<Control>, Inbox), RecordError> {
        let Some(path) = &self.request.control else { return Ok((None, Inbox::empty())) };
        let laws = self.request.laws().clone();
        let listening = Control::listen(path, laws, self.shown.clone());
        let (control, inbox) = listening.map_err(NetError::from)?;
        Ok((Some(control), inbox))
    }

    /// Takes the calling thread to its CPU.
    fn seat(&self) -> Result<(), RecordError> {
        let placement = Placement { cpu: self.request.cpu, fifo: self.request.fifo };
        let (seat, warnings) = placement.settle().map_err(NetError::from)?;
        self.crew.tell(Told::Seated { seat, warnings });
        Ok(())
    }

    fn tells(&self) -> [Tells; 2] {
        [numbers(self.request.speaks), numbers(self.request.speaks)]
    }

    fn frames(&self, plan: &Plan, stop: &AtomicBool, mut inbox: Inbox) -> Result<(), RecordError> {
        if let Some(bed) = &self.request.bed {
            bed.enter(Role::Device)?;
        }
        // Where it is to run its base is measured, too.
        self.seat()?;
        // Before the ports are there, and until they are gone.
        let tags = Tags::keep(plan.transport, &plan.interfaces, self.journal);
        let opened = delay::open(plan, self.crew.counter, self.crew.rate, self.tells())?;
        let Opened { mut line, truths, base, capacity, mut facts, before, hold } = opened;
        tags.tell(&mut facts);
        for (of, name) in facts.iter_mut().zip(&plan.interfaces) {
            of.instead.extend(uncut(plan.transport, name));
        }
        let interfaces = [facts[0].index, facts[1].index];
        let ports = [facts[0].interface.clone(), facts[1].interface.clone()];
        let since_ns = date_ns();
        let facts = Some(facts);
        let begun = Begun { since_ns, ports, facts, before, base, capacity, truths };
        self.crew.tell(Told::Begun(Box::new(begun)));
        let halt = Halt::new(stop);
        let mut watch = |told: OfLine<'_>| {
            let OfLine { index, lanes, account, changes } = told;
            for (direction, lane) in lanes.iter_mut().enumerate() {
                self.interval(direction, index, &mut lane.times);
            }
            let account = Box::new(account);
            self.crew.tell(Told::Account { account, changes, turned_away: 0 });
        };
        let why = line.run(&halt, &mut inbox, &mut watch);
        self.crew.tell(Told::Counters(Box::new(interfaces.map(forward::counters))));
        self.crew.tell(Told::Ended { why });
        drop(hold);
        Ok(())
    }

    fn messages(
        &self,
        plan: &ProxyPlan,
        stop: &AtomicBool,
        mut inbox: Inbox,
    ) -> Result<(), RecordError> {
        self.seat()?;
        let opened = delay::open_proxy(plan, self.crew.counter, self.crew.rate, self.tells())?;
        let OpenedProxy { mut proxy, truths, base, listen } = opened;
        let begun = Begun {
            since_ns: date_ns(),
            ports: [listen.to_string(), plan.way.to.to_string()],
            facts: None,
            before: [None; 2],
            base,
            capacity: PROXY_CAPACITY,
            truths,
        };
        self.crew.tell(Told::Begun(Box::new(begun)));
        let halt = Halt::new(stop);
        let mut watch = |told: ProxyTold<'_>| {
            let ProxyTold { index, times, account, changes, turned_away, .. } = told;
            for (direction, times) in times.into_iter().enumerate() {
                self.interval(direction, index, times);
            }
            let account = Box::new(account);
            self.crew.tell(Told::Account { account, changes, turned_away });
        };
        let why = proxy.run(&halt, &mut inbox, &mut watch);
        self.crew.tell(Told::Ended { why });
        Ok(())
    }

    /// Sends the times of an interval of a direction, and leaves empty ones behind.
    fn interval(&self, direction: usize, index: u64, times: &mut Delayed) {
        let times = self.crew.taken(times);
        self.crew.tell(Told::Interval { direction, index, times });
    }
}
