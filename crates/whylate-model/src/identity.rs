//! What a series is: the one value by which it is decided whether two measure the same thing.
//!
//! A number is a distance between two points by a clock, under a definition, of something that was asked
//! for in one way. Where one of these differs, so does what is measured: the numbers do not add up, and
//! their difference says nothing of what changed. Comparisons, limits, sums and reports all ask
//! [`Identity::of`].
//!
//! Machine, kernel, version and settings that are not named here are no part of it: they are what a
//! comparison is made for, and are told beside it. Nor is the threshold of gaps: unlike ones are cut at the
//! larger. The unit is the nanosecond for every series of this format. What a run does not say is
//! [`NOT_RECORDED`], which equals itself alone.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::difference::Difference;
use crate::flow::{Direction, Flow};
use crate::run::{GapSummary, Run};
use crate::series::{Definition, Series};
use crate::switch_cost::{Direct, Outcome};
use crate::text::Printable;
use crate::threads::{PhaseSummary, ThreadSummary};
use crate::units::CpuId;

mod backends;
mod flow;
mod recording;
pub use recording::INJECTED;
use recording::Recordings;

#[cfg(test)]
mod tests;

/// What stands for something that a run does not say.
pub const NOT_RECORDED: &str = "not recorded";

/// Rates that differ by a larger share are not those of one load.
const SAME_RATE: f64 = 0.01;

/// One thing that makes a series what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The point where the clock starts.
    From,
    /// The point where it stops.
    To,
    /// What the number is.
    Definition,
    /// The clock.
    Clock,
    /// Of gaps: which loop reads the counter.
    Loop,
    /// Of gaps: what the loop does between two readings. Of a forwarder: what it does for each frame.
    Work,
    /// Of messages: what carries them.
    Transport,
    /// Of messages: how the client waits.
    Waiting,
    /// Of messages: what is in them.
    Protocol,
    /// Of messages: their bytes.
    Size,
    /// Of messages: the pattern in which they are sent.
    Arrivals,
    /// Of messages: how many a second were asked for, and how many of them left in time.
    Rate,
    /// Of messages: how many may be in flight.
    Outstanding,
    /// Of messages: which end of a bed sends.
    Direction,
    /// Of messages: who answers.
    Replies,
    /// Of what holds messages back on purpose: how long.
    Law,
    /// After how long a message is given up, where some were.
    Timeout,
    /// Threads that run together: what each of them does, and under which policy.
    Tasks,
    /// Of a thread: how it waits.
    Timer,
    /// Load that was made on purpose beside it.
    Load,
    /// Is its CPU kept from other threads?
    CpuRole,
}

/// Each component by its name, and whether numbers may be held against each other across it: what says
/// which number it is can never be passed over.
const NAMES: [(Component, &str, bool); 21] = [
    (Component::From, "from", false),
    (Component::To, "to", false),
    (Component::Definition, "definition", false),
    (Component::Clock, "clock", true),
    (Component::Loop, "loop", true),
    (Component::Work, "work", true),
    (Component::Transport, "transport", true),
    (Component::Waiting, "waiting", true),
    (Component::Protocol, "protocol", true),
    (Component::Size, "size", true),
    (Component::Arrivals, "arrivals", true),
    (Component::Rate, "rate", true),
    (Component::Outstanding, "outstanding", true),
    (Component::Direction, "direction", true),
    (Component::Replies, "replies", true),
    (Component::Law, "law", true),
    (Component::Timeout, "timeout", true),
    (Component::Tasks, "tasks", true),
    (Component::Timer, "timer", true),
    (Component::Load, "load", true),
    (Component::CpuRole, "cpu-role", true),
];

impl Component {
    /// Its name, as it is printed and as `--across` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(one, ..)| *one == self).map_or("", |(_, name, _)| name)
    }

    /// May a difference in it be allowed?
    #[must_use]
    pub fn can_be_crossed(self) -> bool {
        NAMES.iter().any(|(one, _, may)| *one == self && *may)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Component {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match NAMES.iter().find(|(_, name, _)| *name == text) {
            Some((component, _, true)) => Ok(*component),
            Some(_) => Err(format!(
                "`{text}` says which number it is, and cannot be left out; `whylate compare \
                 --side-by-side` shows both without a verdict"
            )),
            None => {
                let may = NAMES.iter().filter(|(.., may)| *may).map(|(_, name, _)| *name);
                let may: Vec<&str> = may.collect();
                Err(format!("`{text}` is no part of what a series is: write {}", may.join(", ")))
            }
        }
    }
}

/// What a series is.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    parts: Vec<(Component, Value)>,
}

/// One component of it.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    /// Of each flow of a sum; one of a recording.
    Rates(Vec<Rate>),
}

/// Messages a second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    asked: f64,
    in_time: f64,
}

impl Identity {
    /// That of a run's series; none where the run has no series of that name.
    #[must_use]
    pub fn of(run: &Run, series: &str) -> Option<Self> {
        let of = run.series.iter().find(|of| of.name == series)?;
        let recordings = Recordings::of(run);
        let gaps = run.gaps.iter().find(|gaps| gaps.series == series);
        let flows: Vec<&Flow> = run.flows.iter().filter(|flow| flow.has_series(series)).collect();
        let thread = thread_of(run, series);
        let mut parts = vec![
            (Component::From, text(&of.from)),
            (Component::To, text(&of.to)),
            (Component::Definition, text(of.definition)),
            (Component::Clock, text(&of.clock)),
        ];
        if matches!(of.definition, Definition::Gap | Definition::ReadDelta) {
            parts.extend(loops(gaps, &recordings));
        }
        if flows.is_empty() {
            parts.extend(passing(run, of, &recordings));
            parts.extend(backends::asked(run, of, &recordings));
        }
        parts.extend(messages(&flows));
        if let Some(given_up) = of.censored.filter(|of| of.count > 0) {
            parts.push((Component::Timeout, text(given_up.above)));
        }
        parts.extend(tasks(run, series, thread));
        parts.push((Component::Load, text(recordings.load())));
        let cpus = cpus(of, gaps, thread, &recordings, &flows);
        parts.extend(cpus.map(|cpus| (Component::CpuRole, text(recordings.role(&cpus)))));
        Some(Self { parts })
    }

    /// Where the two are not one, with both values, fit to print. Empty for series that measure the same
    /// thing.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<(Component, Difference)> {
        let components = NAMES.iter().map(|(component, ..)| *component);
        components.filter_map(|one| Some((one, self.difference(other, one)?))).collect()
    }

    fn difference(&self, other: &Self, component: Component) -> Option<Difference> {
        let (left, right) = match (self.value(component), other.value(component)) {
            (None, None) => return None,
            // Where nothing was given up, no number depends on when it would have been.
            (None, _) | (_, None) if component == Component::Timeout => return None,
            (Some(left), Some(right)) if left.is_as(right) => return None,
            (left, right) => (shown(left), shown(right)),
        };
        Some(Difference { name: component.to_string(), left, right })
    }

    fn value(&self, component: Component) -> Option<&Value> {
        self.parts.iter().find(|(one, _)| *one == component).map(|(_, value)| value)
    }
}

impl Value {
    fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::Rates(left), Self::Rates(right)) => {
                let mut both = left.iter().zip(right);
                left.len() == right.len() && both.all(|(left, right)| left.is_as(right))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Rates(rates) => {
                let rates: Vec<String> = rates.iter().map(Rate::to_string).collect();
                f.write_str(&rates.join(" and "))
            }
        }
    }
}

impl Rate {
    /// Of the rate that was asked for, the share that left in time: how many a random process intends in
    /// so long is chance, and no difference of two.
    fn of(flow: &Flow) -> Option<Self> {
        let asked = flow.asked.per_second?;
        let share = flow.departures.in_time as f64 / flow.departures.intended.max(1) as f64;
        Some(Self { asked, in_time: asked * share })
    }

    fn is_as(&self, other: &Self) -> bool {
        near(self.asked, other.asked) && near(self.in_time, other.in_time)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = |rate: f64| {
            let digits = if rate.fract().abs() < 1e-9 { 0 } else { 3 };
            format!("{rate:.digits$}/s")
        };
        f.write_str(&per_second(self.asked))?;
        if near(self.asked, self.in_time) {
            return Ok(());
        }
        write!(f, " asked for, of which {} left in time", per_second(self.in_time))
    }
}

/// Are these rates those of one load?
fn near(left: f64, right: f64) -> bool {
    (left - right).abs() <= SAME_RATE * left.max(right)
}

fn shown(value: Option<&Value>) -> String {
    value.map_or(NOT_RECORDED.to_owned(), |value| Printable(&value.to_string()).to_string())
}

fn text(of: impl fmt::Display) -> Value {
    Value::Text(of.to_string())
}

/// Different ones of several, in one order.
fn distinct(values: impl IntoIterator<Item = String>) -> String {
    let values: BTreeSet<String> = values.into_iter().collect();
    values.into_iter().collect::<Vec<_>>().join(" and ")
}

/// Between two readings of the counter lies the loop with its work. Not so the counting of every delta:
/// its cost is part of the period, which is taken off.
fn loops(gaps: Option<&GapSummary>, of: &Recordings<'_>) -> Vec<(Component, Value)> {
    let kind = gaps.map(|gaps| gaps.loop_kind.to_string()).or_else(|| of.setting("loop"));
    let both = [(Component::Loop, kind), (Component::Work, of.work())];
    both.into_iter().filter_map(|(one, value)| Some((one, Value::Text(value?)))).collect()
}

/// A round trip is that of messages of one size, by one way, in one pattern, at one rate: a server that
/// is asked twice as often is another one.
fn messages(flows: &[&Flow]) -> Vec<(Component, Value)> {
    if flows.is_empty() {
        return Vec::new();
    }
    let of = |component, pick: &dyn Fn(&Flow) -> String| {
        (component, Value::Text(distinct(flows.iter().map(|flow| pick(flow)))))
    };
    let mut rates: Vec<Rate> = flows.iter().filter_map(|flow| Rate::of(flow)).collect();
    rates.sort_by(|left, right| left.asked.total_cmp(&right.asked));
    let rate = if rates.is_empty() { text("that of the replies") } else { Value::Rates(rates) };
    vec![
        of(Component::Transport, &|flow| flow.way.backend.clone()),
        of(Component::Waiting, &|flow| flow.way.wait.clone()),
        of(Component::Protocol, &|flow| flow.way.protocol.clone()),
        of(Component::Size, &|flow| format!("{} bytes", flow.asked.bytes)),
        of(Component::Arrivals, &|flow| flow.asked.arrivals.clone()),
        (Component::Rate, rate),
        of(Component::Outstanding, &|flow| match flow.asked.most_under_way {
            Some(most) => format!("at most {most}"),
            None => "any number".to_owned(),
        }),
        of(Component::Direction, &|flow| {
            match flow.asked.direction {
                Direction::There => "there",
                Direction::Back => "back",
            }
            .to_owned()
        }),
        of(Component::Replies, &|flow| match &flow.way.across {
            Some(ports) => format!("none: from {} to {} of one client", ports.out, ports.back),
            None if flow.asked.one_way => "none".to_owned(),
            None => "asked for".to_owned(),
        }),
    ]
}

/// How messages go that no flow tells of: what answers them, passes them on, holds them back, or is measured with
/// them between the two ends of a box says it in its settings, which a sum has of each of its recordings.
const PASSING: [(&str, Component); 8] = [
    ("carried by", Component::Transport),
    // Of a device with how the client waits.
    ("client by", Component::Transport),
    ("waiting by", Component::Waiting),
    ("protocol", Component::Protocol),
    ("size", Component::Size),
    ("rate", Component::Rate),
    ("rate in each direction", Component::Rate),
    ("work for each frame", Component::Work),
];

/// How long what holds messages back was to hold them: of a delay line at its start, of a calibration in turns.
const LAWS: [&str; 3] = ["law at the start, there", "law at the start, back", "delays"];

/// What the settings say of a series of messages that no flow tells of.
fn passing(run: &Run, of: &Series, recordings: &Recordings<'_>) -> Vec<(Component, Value)> {
    if !matches!(
        of.definition,
        Definition::Residence | Definition::OneWay | Definition::SendLateness
    ) {
        return Vec::new();
    }
    let said = |name: &str| recordings.setting(name);
    let mut found: Vec<(Component, Value)> = PASSING
        .iter()
        .filter_map(|(name, component)| Some((*component, Value::Text(said(name)?))))
        .collect();
    let laws: Vec<String> = LAWS.iter().filter_map(|name| said(name)).collect();
    if !laws.is_empty() {
        found.push((Component::Law, Value::Text(laws.join(" and "))));
    }
    // Older runs of a reflector say it in their account alone.
    let reflected = run.reflected.as_ref().map(|of| text(&of.backend));
    if found.iter().all(|(component, _)| *component != Component::Transport) {
        found.extend(reflected.map(|backend| (Component::Transport, backend)));
    }
    found
}

/// What runs together, and how the thread of this series waits.
fn tasks(run: &Run, series: &str, thread: Option<&ThreadSummary>) -> Vec<(Component, Value)> {
    let mut found = Vec::new();
    if !run.threads.is_empty() {
        let mut tasks: Vec<String> = run.threads.iter().map(task).collect();
        tasks.sort_unstable();
        found.push((Component::Tasks, Value::Text(tasks.join("; "))));
    }
    found.extend(thread.map(|of| (Component::Timer, text(&of.timer))));
    let runners = distinct(switches(run, series).map(runners));
    found.extend((!runners.is_empty()).then_some((Component::Tasks, Value::Text(runners))));
    found
}

fn task(thread: &ThreadSummary) -> String {
    let reserved = thread.reservation.clone();
    let deadline = thread.deadlines.as_ref().and_then(|of| of.deadline);
    let deadline = deadline.map(|within| format!("deadline {within}"));
    let policy = std::iter::once(thread.policy.clone());
    let asked = policy.chain(reserved).chain(deadline).chain(thread.phases.iter().map(phase));
    format!("{} ({})", thread.workload, asked.collect::<Vec<String>>().join(", "))
}

/// What a phase of a program asks for: the workload of its thread does not say.
fn phase(of: &PhaseSummary) -> String {
    let busy = of.runtime.as_ref().map(|of| of.asked);
    let parts = [
        ("run", Some(of.run_asked).filter(|time| time.0 > 0)),
        ("busy", busy),
        ("every", of.period_asked),
        ("lasts", of.length_asked),
    ];
    let parts = parts.into_iter().filter_map(|(word, time)| Some(format!(" {word} {}", time?)));
    format!("phase {}:{}", of.name, parts.collect::<String>())
}

/// The thread that a series of a set is of: its name ends in the thread's.
fn thread_of<'a>(run: &'a Run, series: &str) -> Option<&'a ThreadSummary> {
    let is = |thread: &&ThreadSummary| {
        let head = series.strip_suffix(thread.name.as_str());
        head.is_some_and(|head| head.ends_with('-'))
    };
    run.threads.iter().filter(is).max_by_key(|thread| thread.name.len())
}

/// What a series of context switches is of, in each recording.
fn switches<'a>(run: &'a Run, series: &'a str) -> impl Iterator<Item = &'a Direct> {
    let of_origins = run.origins.iter().filter_map(|origin| origin.switch_cost.as_ref());
    let costs = run.switch_cost.as_ref().into_iter().chain(of_origins);
    costs.flat_map(|costs| &costs.direct).filter_map(move |row| match &row.outcome {
        Outcome::Measured(direct) if direct.series == series => Some(direct.as_ref()),
        _ => None,
    })
}

fn runners(of: &Direct) -> String {
    let after = of.after.map_or_else(String::new, |after| format!(", each for {after}"));
    format!("{} runners ({}{after})", of.runners, of.policy)
}

/// The CPUs that a series was measured on; none where it is of no CPU that the run names.
fn cpus(
    of: &Series,
    gaps: Option<&GapSummary>,
    thread: Option<&ThreadSummary>,
    recordings: &Recordings<'_>,
    flows: &[&Flow],
) -> Option<Vec<CpuId>> {
    let named = recordings.cpus_of(&of.name);
    if !named.is_empty() {
        return Some(named);
    }
    let own = gaps.map(|gaps| vec![gaps.cpu]).or_else(|| Some(thread?.cpus.clone()));
    own.or_else(|| (!flows.is_empty()).then(|| recordings.clients(flows)))
}
