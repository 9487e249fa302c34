//! How far the numbers of a run may be trusted.
//!
//! One value from one pure function over everything that a run knows and the state of its files: recordings,
//! reports, sums and comparisons all ask it, and the exit status follows from it. What a run stored as its
//! verdict is one reason among the others, so that a file of an older version loses none.

use serde::{Deserialize, Serialize};
use whylate_stats::quantile;

use crate::calibration::Trust as Calibrated;
use crate::cause::Coverage;
use crate::device::Device;
use crate::flow::{Flow, Packets};
use crate::origin::Origin;
use crate::run::{Closure, Run, RunState, SelfTest, SelfTestKind, Verdict, of_either};
use crate::series::Quantile;
use crate::text::{Printable, nearly_all};
use crate::units::Nanos;

mod measured;
mod warnings;

#[cfg(test)]
mod tests;

/// Of what the self-test found or ascribed, this share must be right: a busy machine puts others' work beside
/// what is injected.
const RIGHT: f64 = 0.99;
/// A thread with less CPU time is mostly the kernel's own work around its wake-ups.
const LEAST_CPU_TIME: Nanos = Nanos(100_000_000);
/// The kernel's clock and the gaps lie no further apart for what the kernel does around switches.
const FAR_APART: f64 = 0.25;
/// With a larger share of unanswered requests no p99 is known, which the headline gives.
const MOST_UNANSWERED: f64 = 0.01;
/// A larger share of the lost time without a cause is said.
const MOST_UNEXPLAINED: f64 = 0.2;
/// Half the 95% interval of a share of missed deadlines beyond which the share is hardly known.
const WIDE_SHARE: f64 = 0.1;
/// So many runs have a mean whose interval is of use.
const ENOUGH_RUNS: usize = 5;
/// The percentile that headlines give beside the median.
const HEADLINE: f64 = 99.0;

/// What `--quick` costs.
const QUICK: &str = "a quick run: a tenth of the usual time, so less is known about the tail";

/// Why the time in a box has no bounds below what the whole way takes.
pub const TOO_FEW_ROUNDS: &str = "rounds are too few to bound the time in the box";

/// What there is of a run that was killed, or goes on.
pub const UNFINISHED: &str = "the run did not end: this is its last checkpoint";

/// Why a watch is of no use: it measured nothing.
pub const NO_REQUEST: &str = "no request was seen";

/// Why nobody knows how far the percentiles of a watch may be off.
pub const NO_INTERVAL: &str =
    "no 95% interval of p99 is known: the correlation between watched requests is not known";

/// How far numbers may be trusted, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Use the headline.
    Good,
    /// The headline holds; something beside it does not.
    Limited,
    /// Do not use the headline.
    Poor,
}

impl Level {
    /// As reports name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Limited => "limited",
            Self::Poor => "poor",
        }
    }
}

/// One thing that limits trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// How far: never [`Level::Good`].
    pub level: Level,
    /// What it is, in one clause without a full stop.
    pub what: String,
}

/// How far a run may be trusted, and why no further.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// The worst first; of one level what was asked for and refused, then the order in which a run is judged.
    pub reasons: Vec<Reason>,
}

/// Trust as it is printed beside a run, with its level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PrintedTrust"))]
pub struct Told {
    /// That of the worst reason; good where there is none.
    pub level: Level,
    /// The worst first; of one level what was asked for and refused, then the order in which a run is judged.
    pub reasons: Vec<Reason>,
}

impl From<Trust> for Told {
    fn from(trust: Trust) -> Self {
        Self { level: trust.level(), reasons: trust.reasons }
    }
}

/// The state of the files of a run, as whoever read them found it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// What is wrong with them: `gaps-0001.parquet is missing`.
    pub problems: Vec<String>,
    /// Those that have no digest, by name: a change of their content cannot be noticed.
    pub undigested: Vec<String>,
}

impl Trust {
    /// Judges a run by what it knows and by the state of its files.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let mut trust = Self::default();
        for what in &run.files.problems {
            trust.add(Level::Poor, what.clone());
        }
        for what in run.verdict.reasons() {
            trust.add(Level::Poor, without_process(what).to_owned());
        }
        if run.state != RunState::Running && measured::nothing(run) {
            trust.add(Level::Poor, "nothing was measured".to_owned());
        }
        if run.state != RunState::Running && measured::is_unasked(run) {
            trust.add(Level::Poor, NO_REQUEST.to_owned());
        }
        warnings::judge(run, &mut trust);
        closures(run, &mut trust);
        for what in run.selftest.iter().flat_map(failures) {
            trust.add(Level::Poor, what);
        }
        for flow in &run.flows {
            requests(flow, run, &mut trust);
        }
        of_backends(run, &mut trust);
        for what in doubts(run) {
            trust.add(Level::Limited, what);
        }
        let overheads = run.prediction.as_ref().and_then(|of| of.overheads.as_ref());
        if let Some(what) = overheads.and_then(|of| of.doubt.clone()) {
            trust.add(Level::Limited, what);
        }
        recordings(run, &mut trust);
        unexplained(run, &mut trust);
        stolen(run, &mut trust);
        too_few(run, &mut trust);
        how_it_ran(run, &mut trust);
        trust.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        trust
    }

    /// The level of the worst reason.
    #[must_use]
    pub fn level(&self) -> Level {
        self.reasons.iter().map(|reason| reason.level).max().unwrap_or(Level::Good)
    }

    /// Why the headline is of no use; empty where it is.
    #[must_use]
    pub fn poor(&self) -> Vec<String> {
        let poor = self.reasons.iter().filter(|reason| reason.level == Level::Poor);
        poor.map(|reason| reason.what.clone()).collect()
    }

    /// Each reason once: a sum has those of its recordings with the recording's name before them.
    fn add(&mut self, level: Level, what: String) {
        let of_a_part = format!(": {what}");
        let known = |reason: &Reason| reason.what == what || reason.what.ends_with(&of_a_part);
        if !self.reasons.iter().any(known) {
            self.reasons.push(Reason { level, what });
        }
    }
}

/// What limits trust in a recording and cannot be judged of a sum, which has the series of it alone: doubts about
/// its device.
#[must_use]
pub fn doubts(run: &Run) -> Vec<String> {
    let device = run.device.as_deref();
    let own = device.into_iter().flat_map(|of| of.doubts.iter().cloned());
    own.chain(device.and_then(unbounded)).collect()
}

/// What limits trust in recordings of a sum, each once, with whose it is where not all have it.
fn recordings(run: &Run, trust: &mut Trust) {
    let of = |origin: &Origin| {
        let quick = is_quick(&origin.command_line).then(|| QUICK.to_owned());
        origin.doubts.iter().cloned().chain(quick).collect::<Vec<_>>()
    };
    let all: Vec<Vec<String>> = run.origins.iter().map(of).collect();
    let mut told: Vec<&String> = Vec::new();
    for what in all.iter().flatten() {
        if told.contains(&what) {
            continue;
        }
        told.push(what);
        let mut has = run.origins.iter().zip(&all).filter(|(_, doubts)| doubts.contains(what));
        let (first, more) = (has.next(), has.count());
        let what = match (first, more) {
            (Some(_), more) if more + 1 == run.origins.len() => what.clone(),
            (Some((origin, _)), 0) => format!("{}: {what}", Printable(&origin.directory)),
            (_, more) => format!("{} of {} runs: {what}", more + 1, run.origins.len()),
        };
        trust.add(Level::Limited, what);
    }
}

fn is_quick(command_line: &[String]) -> bool {
    command_line.iter().any(|word| word == "--quick")
}

/// The verdict on a run that follows from its trust. A limit that was exceeded comes before doubts, which it keeps; a run
/// that goes on, or was killed, has none as long as nothing speaks against it.
#[must_use]
pub fn verdict(run: &Run) -> Verdict {
    let reasons = Trust::of(run).poor();
    if let Verdict::LimitExceeded { what, .. } = &run.verdict {
        return Verdict::LimitExceeded { what: what.clone(), reasons };
    }
    match run.state {
        _ if !reasons.is_empty() => Verdict::Untrustworthy { reasons },
        RunState::Running => Verdict::Pending,
        RunState::Complete | RunState::Stopped => Verdict::Trustworthy,
    }
}

fn closures(run: &Run, trust: &mut Trust) {
    // At a checkpoint a loop has counted what nobody has taken from it yet.
    if run.state == RunState::Running {
        return;
    }
    for gaps in &run.gaps {
        if let Closure::Broken(why) = &gaps.closure {
            trust.add(Level::Poor, format!("the closure of CPU {} is broken: {why}", gaps.cpu));
        }
    }
    for thread in &run.threads {
        if let Closure::Broken(why) = &thread.closure {
            let what = format!("the closure of thread {} is broken: {why}", thread.name);
            trust.add(Level::Poor, what);
        }
        if let Some(time) = thread.cpu_time.filter(|time| time.kernel >= LEAST_CPU_TIME)
            && !time.agrees(FAR_APART)
        {
            let what = format!(
                "the kernel's CPU time of thread {} and that of its gaps differ by {:.0}%",
                thread.name,
                time.residual * 100.0
            );
            trust.add(Level::Poor, what);
        }
    }
}

/// Where the self-test fell short: everything injected must be found, and nearly everything found must be
/// attributed to the right cause.
fn failures(test: &SelfTest) -> Vec<String> {
    if test.kinds.iter().all(|kind| kind.injected == 0) {
        return vec!["the self-test injected no interruption".to_owned()];
    }
    test.kinds.iter().flat_map(failures_of).collect()
}

fn failures_of(kind: &SelfTestKind) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut say = |what: String| reasons.push(format!("self-test, {}: {what}", kind.kind));
    if kind.found < kind.injected {
        say(format!(
            "{} of {} interruptions were found, and all must be",
            kind.found, kind.injected
        ));
    }
    let too_few = |right: u64, of: u64| (right as f64) < RIGHT * of as f64;
    if kind.with_trace && too_few(kind.named_right, kind.found) {
        say(format!(
            "{} of {} found were attributed to the right cause",
            kind.named_right, kind.found
        ));
    }
    if kind.with_trace && too_few(kind.ascribed_rightly, kind.ascribed) {
        let (wrongly, all) = (kind.ascribed.saturating_sub(kind.ascribed_rightly), kind.ascribed);
        say(format!("{wrongly} of {all} stalls attributed to the injector had another cause"));
    }
    reasons
}

/// Requests that nobody answered in time: those without any reply, and those whose reply came after they were given up.
/// Both are known as longer than the timeout alone.
fn unanswered(name: &str, packets: Packets, trust: &mut Trust) {
    let late = packets.answered_too_late();
    let share = |count: u64| count as f64 / packets.sent as f64;
    let many = share(packets.lost.saturating_add(late)) > MOST_UNANSWERED;
    let level = if many { Level::Poor } else { Level::Limited };
    for (count, what) in [(packets.lost, "got no reply"), (late, "were answered after the timeout")]
    {
        if packets.sent > 0 && count > 0 {
            let (sent, share) = (packets.sent, percent(share(count)));
            trust.add(level, format!("{count} of {sent} requests of {name} {what} ({share})"));
        }
    }
}

/// The same for each backend of several, none of which is a flow of the run.
fn of_backends(run: &Run, trust: &mut Trust) {
    let rows = run.backends.iter().flat_map(|of| &of.rows);
    for (row, measured) in rows.filter_map(|row| Some((row, row.measured.as_ref()?))) {
        unanswered(&row.backend, measured.packets, trust);
    }
}

/// Are requests of this series among those that are told as unanswered?
fn has_unanswered(run: &Run, series: &str) -> bool {
    let is_told = |of: &Packets| of.lost > 0 || of.answered_too_late() > 0;
    run.flows.iter().any(|flow| flow.has_series(series) && is_told(&flow.packets))
}

/// Requests that nobody answered in time, and requests that the client itself sent late.
fn requests(flow: &Flow, run: &Run, trust: &mut Trust) {
    let packets = flow.packets;
    // Of messages that ask for no reply, what came is the answer and not a doubt about it.
    if !flow.asked.one_way {
        unanswered(&flow.name, packets, trust);
    }
    let is_first = run.flows.first().is_some_and(|first| first.name == flow.name);
    if flow.asked.one_way && is_first && packets.unaccounted > 0 {
        let what =
            format!("how many of {} messages of {} came is unknown", packets.sent, flow.name);
        trust.add(Level::Poor, what);
    }
    if let Some(at) = flow.trust.as_ref().filter(|_| is_first).and_then(beyond) {
        let backend = &flow.way.backend;
        trust.add(Level::Limited, format!("the calibration of {backend} does not support {at}"));
    }
    if let Some((percent, late, service)) = own_time(flow, run) {
        let (own, measured) = match flow.way.across {
            Some(_) => ("one-way latency", "latencies from due measure the client, not the path"),
            None => ("service time", "response times measure the client, not the server"),
        };
        let what = format!(
            "the send delay of {} (p{percent} {late}) exceeds its {own} (p{percent} {service}): the {measured}",
            flow.name
        );
        trust.add(Level::Poor, what);
    }
}

/// Which percentile of a headline its calibration does not support.
fn beyond(calibrated: &Calibrated) -> Option<&'static str> {
    match () {
        () if calibrated.is_beyond(50.0) => Some("even p50"),
        () if calibrated.is_beyond(HEADLINE) => Some("p99"),
        () => None,
    }
}

/// How late the requests of a flow left, and how long they were in flight, at the highest percentile up to that of
/// headlines at which they left later than they were in flight: response times there are the client's own.
pub(crate) fn own_time(flow: &Flow, run: &Run) -> Option<(f64, Nanos, Nanos)> {
    let named = |name: &Option<String>| {
        run.series.iter().find(|series| Some(&series.name) == name.as_ref())
    };
    let (late, service) = (named(&flow.lateness)?, named(&flow.service)?);
    let headlines = late.quantiles.iter().rev().filter(|of| of.percent < HEADLINE + 1e-9);
    headlines
        .filter_map(|of| Some((of.percent, of.value?, service.at(of.percent)?)))
        .find(|(_, late, service)| late > service)
}

/// Are there as many independent samples as a percentile needs to have an interval at all?
fn is_enough(of: &Quantile) -> bool {
    of.n_eff >= quantile::smallest_n(of.percent / 100.0) as f64
}

/// Lost time without a cause. Where steal bears out that the hypervisor took it, that is its cause.
fn unexplained(run: &Run, trust: &mut Trust) {
    // Where no event was recorded, that none explains it says nothing: causes are inferred.
    let is_traced = run.evidence.trace.is_some()
        || run.origins.iter().any(|recording| recording.traced != Some(false));
    if !is_traced {
        return;
    }
    let Some(Coverage { by_residuals, by_nothing, .. }) = run.coverage else { return };
    let by_nothing = by_nothing * run.no_event_share();
    for (share, what) in [
        (by_nothing, "of the lost time has no kernel event"),
        (by_residuals, "of the lost time is IRQ entry/exit, which no event covers"),
    ] {
        if share > MOST_UNEXPLAINED {
            trust.add(Level::Limited, format!("{} {what}", percent(share)));
        }
    }
}

/// Sizes of a box of whose own time nothing is known, as far as anything came through it, and why by the first of
/// them; none where there is none. Two captures see the box's own time and need no bounds.
fn unbounded(device: &Device) -> Option<String> {
    let came = || device.sizes.iter().filter(|one| one.n > 0 && device.captures.is_none());
    let mut without = came().filter(|one| !one.is_bounded());
    let first = without.next()?;
    let (all, without) = (came().count(), 1 + without.count());
    let at = if without < all {
        format!(" at {without} of {all} sizes and ways")
    } else {
        String::new()
    };
    let runs = first.runs;
    Some(match &first.no_bounds {
        Some(why) => format!("the time in the box has no bounds{at}: {why}"),
        None => format!("{runs} {TOO_FEW_ROUNDS}{at}"),
    })
}

/// Time that the hypervisor gave to others.
fn stolen(run: &Run, trust: &mut Trust) {
    if let Some(steal) = run.evidence.steal_ns.filter(|steal| *steal >= 1.0) {
        let what =
            format!("the CPU was shared: the hypervisor reported {} of steal", Nanos(steal as u64));
        trust.add(Level::Limited, what);
    }
}

/// Samples too small for what the headline says of them.
///
/// Of a series it is the percentile of headlines, whose 95% interval must have an upper end. Of a thread that missed
/// deadlines it is the share of them: the 95% interval of that share, which allows for misses that come together,
/// must reach no further than 10 points to each side in the mean, so that a rate of one in five is told from one in
/// ten. A thread that missed none has no share to be told: that its interval ends at 6% says all there is. Of several
/// threads the one that is known least is named. Of runs that were added up it is their mean: its interval follows
/// from how they differ, and is 12.7 standard errors to each side for two, 2.8 for five (Student's t at 95%).
fn too_few(run: &Run, trust: &mut Trust) {
    let widest = run.threads.iter().filter_map(|thread| {
        let of = thread.deadlines.as_ref().filter(|of| of.misses > 0)?;
        let (low, high) = of.miss_share_interval?;
        Some((thread, of.hits.saturating_add(of.misses), (high - low) / 2.0))
    });
    let widest = widest.max_by(|a, b| a.2.total_cmp(&b.2)).filter(|of| of.2 > WIDE_SHARE);
    if let Some((thread, jobs, half)) = widest {
        let (name, points) = (&thread.name, half * 100.0);
        let what =
            format!("{jobs} jobs of thread {name} give its miss rate only to +-{points:.0} points");
        trust.add(Level::Limited, what);
    }
    if let Some(many @ 2..ENOUGH_RUNS) = run.is_merged().then_some(run.origins.len()) {
        let many = ["two", "three", "four"][many - 2];
        let what =
            format!("{many} runs give no useful interval for their mean: merge five or more");
        trust.add(Level::Limited, what);
    }
    for (series, label) in measured::headlines(run) {
        let at = series.quantiles.iter().find(|of| (of.percent - HEADLINE).abs() < 1e-9);
        // That it lies among requests nobody answered in time is no fault of the sample where those are told.
        let given_up = series.censored.is_some_and(|of| of.count > 0)
            && at.is_some_and(is_enough)
            && has_unanswered(run, &series.name);
        let is_bounded = at.is_some_and(|of| of.value.is_some() && of.high.is_some());
        if series.n > 0 && !is_bounded && !given_up {
            let label = of_either(label);
            // Of samples that come in bursts few stand for themselves.
            let alone = at.map(|of| of.n_eff).filter(|n_eff| *n_eff < 0.5 * series.n as f64);
            let alone = alone.map_or_else(String::new, |n_eff| {
                let many = n_eff.round().max(1.0);
                format!(", as many as {many} independent ones,")
            });
            let what = format!("{} samples of {label}{alone} do not bound p99", series.n);
            trust.add(Level::Limited, what);
        }
    }
    if let Some(series) = measured::watched(run).filter(|series| series.n > 0) {
        let at = series.quantiles.iter().find(|of| (of.percent - HEADLINE).abs() < 1e-9);
        match at.filter(|of| of.value.is_some()) {
            None => {
                let what = format!("{} requests do not bound p99", series.n);
                trust.add(Level::Limited, what);
            }
            Some(of) if of.high.is_none() => trust.add(Level::Limited, NO_INTERVAL.to_owned()),
            Some(_) => {}
        }
    }
}

fn how_it_ran(run: &Run, trust: &mut Trust) {
    if is_quick(&run.command_line) {
        trust.add(Level::Limited, QUICK.to_owned());
    }
    if run.state == RunState::Running {
        trust.add(Level::Limited, UNFINISHED.to_owned());
    }
}

/// A reason that was stored while warnings of another run had the id of its process.
fn without_process(what: &str) -> &str {
    let known = what.starts_with("another whylate ").then(|| what.split_once(" (process "));
    known.flatten().map_or(what, |(what, _)| what)
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent < 0.05 => "<0.1%".to_owned(),
        _ if percent < 9.95 => format!("{percent:.1}%"),
        _ => nearly_all(share).unwrap_or_else(|| format!("{percent:.0}%")),
    }
}
