//! Where requests spent their time.

use whylate_model::breakdown::{
    Agreement, Breakdown, Composition, Differences, Journey, LookedAt, Pairs, Part, PartAgreement,
    PartShare, Point, PointFacts, Reasoned, Source, Station, ThreadsFound, Watched,
};
use whylate_model::run::Run;
use whylate_model::tap::{TapBetween, TapClock, TapFacts, TapFrom, TapSide};
use whylate_model::{Hertz, Ticks};

use crate::doc::Table;
use crate::numbers::{ABSENT, Cell, Value, count, percent, time};
use crate::spans::{Sentence, Told, sentence};
use crate::svg::COLOURS;

mod account;
mod section;
mod stamps;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use section::{Pictures, sections};
use stamps::never_delivered;
use stamps::{ASIDES, FAR_STAMPS, PROBES, STAMPS, asides, far_stamps, probes, stamps};

/// How the parts are to be read.
const PARTS: &str = "Parts lie between neighbouring points of which the time is known, and \
     add up to the whole in every request. Means are over all requests of the column, also over those \
     that lack the part. By: who told the two points.";
/// How the points are to be read.
const POINTS: &str = "Missing: looked for and never came. In order: before the point that \
     comes first, by no more than the two can tell, and taken to be at the same time. Dropped: by more, \
     and not used. Bound: how far a point may lie from the counter's timeline.";
/// The same of two sources of a point.
const AGREEMENTS: &str = "The second less the first. Each reads at a place of its own, and what \
     the kernel does between them, making the stamp among it, is part of the difference. Within: what \
     resolutions and bounds of both allow. Agree: requests in which they are no further apart than that, \
     whichever is earlier; not: those in which they are. In order: apart by no more, or each at its own \
     place, between what the kernel did before and after it.";
/// The same of two sources of a part.
const PART_AGREEMENTS: &str = "By the second less by the first, between points that both tell. \
     Within: what resolutions and bounds of both allow at both points. Agree: requests in which it is \
     no longer and no shorter by more than that; not: those in which it is. In order: that, or both of \
     its points are. What the kernel does between the places of the two, at either point, is in the \
     difference and not in within: the median says how much that usually is.";
/// The same of a tap and stamps.
const BETWEEN: &str = "What a tap sees lies behind the sender's stamp, made when its driver \
     was given the frame, and before the receiver's, made when its stack took it. By at most: how far it \
     lay on the wrong side. Within: what resolutions and bounds of both allow.";
/// The same of the cost.
const COST: &str = "The same requests in turns, looked at and not; differences with their \
     95% intervals. Where the second row differs from the first by as much, the difference is chance.";

/// Heading of the section, after which the name of what was looked at follows.
const SPENT: &str = "Where requests spent their time";
/// What a reason why a card stamps nothing has in it.
const OF_CARD: &str = "hardware: ";
/// Parts named in a sentence.
const MOST_NAMED: usize = 3;
/// Rows of a list of points in a sentence.
const MOST_LISTED: usize = 12;

/// Requests that were taken apart: those of a flow, or of a process that was watched.
#[derive(Debug, Clone)]
pub(crate) struct Taken<'a> {
    pub(crate) heading: String,
    pub(crate) of: &'a Breakdown,
    /// Of the ticks in it.
    pub(crate) rate: Hertz,
    /// Is it the sum of several recordings?
    merged: bool,
    watched: Option<&'a Watched>,
}

/// All that were taken apart in a run.
pub(crate) fn of_run(run: &Run) -> Vec<Taken<'_>> {
    let flows = run.flows.iter().filter_map(|flow| {
        let of = flow.breakdown.as_deref()?;
        Some(Taken {
            heading: format!("{SPENT}: {}", flow.name),
            of,
            rate: run.clock.hz,
            merged: run.is_merged(),
            watched: None,
        })
    });
    let watched = run.watched.as_deref().map(|watched| Taken {
        heading: format!("{SPENT}: {}", process(watched)),
        of: &watched.breakdown,
        rate: run.clock.hz,
        merged: run.is_merged(),
        watched: Some(watched),
    });
    flows.chain(watched).collect()
}

/// `nginx (77), port 80`.
fn process(watched: &Watched) -> String {
    let of = &watched.process;
    let port = of.port.map_or_else(String::new, |port| format!(", port {port}"));
    format!("{} ({}){port}", of.name, of.pid)
}

/// Why of a process that was watched no request was seen.
pub(crate) const QUIET: &str = "none of its threads read a message and sent one after it meanwhile";

/// What requests consist of, in a sentence or two.
fn answer(of: &Breakdown, merged: bool) -> Sentence {
    if of.requests == 0 {
        return "No request was taken apart.".into();
    }
    let Part { from, to } = of.whole;
    let took =
        sentence![" requests took ", Value::Time(of.all.total_mean_ns), " in the mean from "];
    let points = sentence![Told::of(from), " to ", Told::of(to), ": "];
    let slow = slow(of, merged).map(|(slow, took)| sentence![" ", took, ": ", largest(slow), "."]);
    sentence![Value::Count(of.requests), took, points, largest(&of.all), ".", slow]
}

/// How long the slow requests took, and how many they are; none where none was. They are told by their number and
/// their own times, not by the percentile above which they lie: the sample may be too small for it, and then it is
/// withheld wherever it would stand.
pub(crate) fn slow(of: &Breakdown, merged: bool) -> Option<(&Composition, Sentence)> {
    let slow = of.slow.as_ref().filter(|slow| slow.composition.requests > 0)?;
    let (composition, all) = (&slow.composition, Value::Count(of.requests));
    let (many, mean) = (composition.requests, Value::Time(composition.total_mean_ns));
    // Those of a sum were slow each in its own recording.
    let which = if merged { " slow requests of " } else { " slowest requests of " };
    let took = match many {
        1 if !merged => sentence!["The slowest request of ", all, " took ", mean],
        1 => sentence![Value::Count(many), " slow request of ", all, " took ", mean],
        _ => {
            let took = sentence![" took ", slow.from, " or more, ", mean, " on average"];
            sentence!["The ", Value::Count(many), which, all, took]
        }
    };
    Some((composition, took))
}

/// The parts with the largest shares.
fn largest(of: &Composition) -> Sentence {
    if let [one] = &of.parts[..] {
        let words = Told::of(one.part.words());
        return sentence!["nothing in between is known, the total alone (", words, ")"];
    }
    let mut parts: Vec<&PartShare> = of.parts.iter().collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    let named = parts.into_iter().take(MOST_NAMED).map(|of| {
        let what = Told::of(format_args!(" {} ({})", of.part.words(), of.part.from.leg.word()));
        sentence![Value::Share(of.share), what]
    });
    Sentence::joined(named, "; ")
}

/// The parts of all requests and of the slow ones beside each other.
pub(crate) fn parts(taken: &Taken) -> Table {
    let of = taken.of;
    let slow = of.slow.as_ref().map(|slow| &slow.composition);
    let head = ["part", "from -> to", "by", "mean", "share", "slow", "of slow"];
    let row = |(part, colour): (Part, Option<usize>)| {
        let [(mean, share), (slow_mean, slow_share)] =
            [Some(&of.all), slow].map(|of| cells(of, part));
        let name = crate::svg::shares::numbered(colour, &part_words(of, part));
        [name, part.to_string(), by(of, part), mean, share, slow_mean, slow_share]
    };
    let line = |name: &str, pick: fn(&Composition) -> f64| {
        let cells = [Some(&of.all), slow].map(|of| match of {
            Some(of) if of.total_mean_ns > 0.0 => {
                (time(pick(of)), percent(pick(of) / of.total_mean_ns))
            }
            _ => (absent(), absent()),
        });
        let [(mean, share), (slow, slow_share)] = cells;
        [name.to_owned(), String::new(), String::new(), mean, share, slow, slow_share]
    };
    let sums = [
        line("of these, not told apart", |of| of.not_told_apart_ns),
        line("not in any part", |of| of.residual_ns),
        line("whole", |of| of.total_mean_ns),
    ];
    let rows = colours(of).into_iter().map(row).chain(sums);
    Table::new(taken.heading.as_str(), &head).words(&[1, 2]).with(rows)
}

fn cells(of: Option<&Composition>, part: Part) -> (String, String) {
    let found = of.and_then(|of| of.parts.iter().find(|share| share.part == part));
    found.map_or_else(|| (absent(), absent()), |found| (time(found.mean_ns), percent(found.share)))
}

/// A part's name, with what does not tell it apart.
pub(crate) fn part_words(of: &Breakdown, part: Part) -> String {
    let shares = of.all.parts.iter().find(|share| share.part == part);
    match shares {
        Some(share) if !share.told_apart => format!("{} (not told apart)", part.words()),
        _ => part.words(),
    }
}

/// Who told both ends of a part.
fn by(of: &Breakdown, part: Part) -> String {
    let source = |point: Point| {
        let facts = of.points.iter().find(|facts| facts.point == point && facts.came > 0);
        facts.map_or(ABSENT, |facts| facts.source.word())
    };
    let (from, to) = (source(part.from), source(part.to));
    if from == to { from.to_owned() } else { format!("{from}, {to}") }
}

/// All parts in the order of the way, those that take most with a colour.
pub(crate) fn colours(of: &Breakdown) -> Vec<(Part, Option<usize>)> {
    let slow = of.slow.iter().flat_map(|slow| &slow.composition.parts);
    let mut all: Vec<(Part, f64)> = Vec::new();
    for share in of.all.parts.iter().chain(slow) {
        match all.iter_mut().find(|(part, _)| *part == share.part) {
            Some((_, most)) => *most = most.max(share.share),
            None => all.push((share.part, share.share)),
        }
    }
    let mut largest = all.clone();
    largest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let coloured: Vec<Part> = largest.into_iter().take(COLOURS).map(|(part, _)| part).collect();
    all.sort_by_key(|(part, _)| *part);
    let mut next = 0..COLOURS;
    all.into_iter()
        .map(|(part, _)| (part, coloured.contains(&part).then(|| next.next()).flatten()))
        .collect()
}

/// What is known of each point.
fn points(of: &Breakdown) -> Table {
    let head = ["point", "by", "came", "missing", "twice", "in order", "dropped", "step", "bound"];
    let row = |facts: &PointFacts| {
        vec![
            facts.point.to_string(),
            facts.source.to_string(),
            count(facts.came),
            count(facts.missing),
            count(facts.twice),
            count(facts.unordered),
            count(facts.contradicted),
            facts.resolution.to_string(),
            facts.bound.to_string(),
        ]
    };
    let caption = "Points on the way, by outcome";
    Table::new(caption, &head).words(&[1]).with(of.points.iter().map(row))
}

/// Points that two sources tell; none where each has one.
fn agreements(of: &Breakdown) -> Option<Table> {
    let row = |of: &Agreement| differences(of.point.to_string(), &of.told);
    by_two("The same point by two sources", "point", of.agreements.iter().map(row))
}

/// Parts that two sources tell; none where each has one.
fn part_agreements(of: &Breakdown) -> Option<Table> {
    let row = |of: &PartAgreement| differences(of.part.to_string(), &of.told);
    by_two("The same part by two sources", "part", of.part_agreements.iter().map(row))
}

/// A table of what two sources tell; none where they tell nothing together.
fn by_two(title: &str, what: &str, rows: impl Iterator<Item = Vec<String>>) -> Option<Table> {
    let head =
        [what, "by", "and by", "agree", "not", "in order", "least", "median", "most", "within"];
    Table::new(title, &head).words(&[1, 2]).with(rows).filled()
}

/// What two sources tell of this, beside each other.
fn differences(what: String, of: &Differences) -> Vec<String> {
    vec![
        what,
        of.used.to_string(),
        of.beside.to_string(),
        count(of.agree),
        count(of.disagree()),
        count(of.in_order),
        time(of.least_ns as f64),
        time(of.median_ns as f64),
        time(of.most_ns as f64),
        Value::from(of.within).to_string(),
    ]
}

/// Whether a tap's times lie between the stamps of both ends; none where there are not both.
fn between(of: &Breakdown) -> Option<Table> {
    let found = of.tap.as_ref()?.between.as_ref()?;
    let head = ["way", "the tap is", "requests", "agree", "not", "by at most", "within"];
    let row = |side: &TapSide| {
        let place = if side.stamp < Station::Tap { "behind" } else { "before" };
        vec![
            side.leg.word().to_owned(),
            format!("{place} {} ({})", side.stamp.word(), Source::Software),
            count(side.compared),
            count(side.agree),
            count(side.compared.saturating_sub(side.agree)),
            Value::from(side.largest).to_string(),
            Value::from(found.within).to_string(),
        ]
    };
    let caption = "The tap between the stamps of both ends";
    Some(Table::new(caption, &head).words(&[1]).with(found.sides.iter().map(row)))
}

/// What a tap saw, and how that lies to the stamps.
fn tapped(of: &TapFacts) -> String {
    let by = match &of.from {
        TapFrom::Bed { interface, .. } => format!("the tap at {interface}"),
        TapFrom::File { name, format } => {
            format!("the tap that wrote {name} ({format})")
        }
    };
    let said = format!(
        "{by} saw {} packets and lost {}: {} requests with their replies, {} without, {} replies \
         alone",
        count(of.packets),
        count(of.lost),
        count(of.counts.paired),
        count(of.counts.unanswered),
        count(of.counts.unasked)
    );
    let more = [
        (of.skipped, "records of it hold no packet that can be read"),
        (of.unwritten, "packets found no room in the run's file"),
    ];
    let more = more.iter().filter(|(number, _)| *number > 0);
    let said = more.fold(said, |said, (number, what)| format!("{said}; {} {what}", count(*number)));
    match (&of.between, of.clock) {
        (Some(between), _) => format!("{said}; {}", judged(between)),
        (None, TapClock::Own) => {
            format!("{said}; its clock is its own, so that no time of it is set beside a stamp")
        }
        (None, TapClock::System) => said,
    }
}

/// How many requests agree.
fn judged(of: &TapBetween) -> String {
    let outside = match of.disagree {
        0 => String::new(),
        some => format!(", {} do not, by {} at most", count(some), of.largest),
    };
    format!(
        "of {} requests that both tell of {} passed it between the stamps of both ends, to within {}\
         {outside}; {} cannot be compared",
        count(of.compared()),
        count(of.agree),
        of.within,
        count(of.not_compared)
    )
}

/// What looking costs; none where that was not measured.
fn cost(of: &Breakdown) -> Option<Table> {
    let cost = of.cost.as_ref()?;
    let caption = if cost.rounds == 0 {
        "What looking costs: no round had requests enough for a p99, so none is set against another; \
         measure for longer, or in fewer rounds"
            .to_owned()
    } else {
        format!("What looking costs, over {} rounds", count(cost.rounds))
    };
    let interval = |[more, low, high]: [f64; 3]| {
        let ends = Some((Value::Time(low), Value::Time(high)));
        Cell::from(Value::Time(more)).within(ends).to_string()
    };
    let row = |way: &LookedAt| {
        let (median, p99) = way.more.map_or_else(
            || (absent(), absent()),
            |more| (interval(more.median_ns), interval(more.p99_ns)),
        );
        vec![way.by.clone(), Value::from(way.median).to_string(), median, p99]
    };
    let without = cost.untold.iter().filter(|of| cost.ways.iter().all(|way| way.by != of.by));
    let without = without.map(|of| vec![of.by.clone(), absent(), absent(), absent()]);
    let head = ["looked at by", "median", "more", "more at p99"];
    Table::new(caption, &head).with(cost.ways.iter().map(row).chain(without)).filled()
}

/// What else is to be said.
fn remarks(taken: &Taken) -> Vec<String> {
    let of = taken.of;
    let mut said: Vec<String> = taken.watched.map(threads).into_iter().collect();
    said.extend(taken.watched.and_then(looked_for));
    said.extend(
        of.left_out
            .iter()
            .map(|left| format!("{} requests are left out: {}", count(left.requests), left.reason)),
    );
    said.extend(of.pairs.iter().flat_map(|of| [of_requests(of), of_messages(of)]));
    said.extend(never_delivered(of));
    said.extend(account::said(of));
    said.extend(account::contradictions(of));
    let cost = account::cost(of, taken.watched.is_some());
    said.extend(cost.into_iter().filter(|_| !taken.merged));
    let never = |facts: &&PointFacts| facts.came == 0 && facts.missing > 0;
    let never: Vec<String> = of.points.iter().filter(never).map(named).collect();
    if !never.is_empty() {
        said.push(format!("never came: {}", listed(&never)));
    }
    // Both ways have the same card, and the same reason.
    let mut reasons = of.probes.iter().filter_map(|probed| probed.reason.as_deref());
    if let Some(why) = reasons.find(|why| why.contains(OF_CARD)) {
        said.push(why.to_string());
    }
    let some = |facts: &&PointFacts| facts.came > 0 && facts.missing > 0 && !is_wake(facts.point);
    let some: Vec<String> = of
        .points
        .iter()
        .filter(some)
        .map(|facts| {
            let share = facts.missing as f64 / (facts.missing + facts.came) as f64;
            format!("{} in {}", named(facts), percent(share))
        })
        .collect();
    if !some.is_empty() {
        said.push(format!("missing in some requests: {}", listed(&some)));
    }
    let nobodys = of.asides.iter().filter(|aside| aside.unknown > 0);
    said.extend(nobodys.map(|aside| {
        format!("{} stamps {} belong to no request", count(aside.unknown), aside.stamp)
    }));
    if of.points.iter().any(|facts| is_wake(facts.point) && facts.missing > 0) {
        said.push(
            "a reader that is awake is not woken: where `woken` and `running` are missing beside a \
             delivery, nothing is"
                .to_owned(),
        );
    }
    if of.points.iter().all(|facts| matches!(facts.source, Source::Own) || facts.came == 0) {
        said.push("no stamp and no tracepoint came: only the total is known".to_owned());
    }
    if let Some(slow) = of.slow.as_ref().filter(|slow| (slow.percent - 99.9).abs() > 1e-9) {
        let percent = short(slow.percent);
        said.push(format!("slow are those above p{percent}, of which all points are kept"));
    }
    said.extend(of.tap.as_deref().map(tapped));
    if taken.merged {
        said.push("slow are those that were slow in their own recording".to_owned());
    }
    said
}

/// How requests got their replies, by the trace.
fn of_requests(of: &Pairs) -> String {
    let neither: u64 = of.unpaired.iter().map(|of| of.count).fold(0, u64::saturating_add);
    let mut said = format!(
        "by the trace, of {} requests the replies of {} were followed by their socket, of {} met by order, \
         of {} neither{}",
        count(of.requests),
        count(of.by_socket),
        count(of.by_order),
        count(neither),
        reasons(&of.unpaired)
    );
    for (number, what) in [
        (of.unsent, "requests were not seen to be sent"),
        (of.by_another_thread, "were answered by another thread than read them"),
        (of.unasked, "messages answer nothing that was read"),
    ] {
        if number > 0 {
            said = format!("{said}; {} {what}", count(number));
        }
    }
    said
}

/// What became of the messages that the trace showed.
fn of_messages(of: &Pairs) -> String {
    let lost: u64 = of.lost.iter().map(|of| of.count).fold(0, u64::saturating_add);
    format!(
        "of {} messages {} were followed to their reader, {} left, {} were mere acknowledgements, {} were \
         lost{}; {} reads took several pieces of a stream, {} pieces took several reads, {} reads were not \
         trusted",
        count(of.messages),
        count(of.read),
        count(of.left),
        count(of.acknowledgements),
        count(lost),
        reasons(&of.lost),
        count(of.merged),
        count(of.split),
        count(of.untrusted)
    )
}

/// ` (3 still under way)`.
fn reasons(all: &[Reasoned]) -> String {
    let named = |of: &Reasoned| format!("{} {}", count(of.count), of.reason);
    let all: Vec<String> = all.iter().map(named).collect();
    if all.is_empty() { String::new() } else { format!(" ({})", listed(&all)) }
}

/// The threads that were watched.
fn threads(watched: &Watched) -> String {
    let of = |(tid, cpu): &(whylate_model::Pid, whylate_model::CpuId)| format!("{tid} (CPU {cpu})");
    let threads: Vec<String> = watched.process.threads.iter().map(of).collect();
    match threads.len() {
        0 => "no thread of it read or answered".to_owned(),
        _ => {
            format!("its threads that read or answered, and their last CPUs: {}", listed(&threads))
        }
    }
}

/// How its threads were found, and whose requests are missed by that.
fn looked_for(watched: &Watched) -> Option<String> {
    let ThreadsFound { every, threads } = watched.looking?;
    let lasted =
        watched.lasted.map_or(String::new(), |lasted| format!(" in {}", Value::from(lasted)));
    let every = Value::from(every);
    Some(format!(
        "{} of it {} found{lasted}, looked for every {every}: what one read or answered before it was \
         found, and all of one that ended before, is not among the requests",
        if threads == 1 { "1 thread".to_owned() } else { format!("{} threads", count(threads)) },
        if threads == 1 { "was" } else { "were" },
    ))
}

fn is_wake(point: Point) -> bool {
    matches!(point.station, Station::Woken | Station::Running)
}

fn named(facts: &PointFacts) -> String {
    format!("{} ({})", facts.point, facts.source)
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MOST_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The points of one request.
pub(crate) fn journey(of: &Journey, rate: Hertz) -> Table {
    let head = ["point", "by", "at", "since the one before"];
    let mut table = Table::new(heading(of, rate), &head).words(&[1, 3]);
    let begin = began(of);
    let mut before: Option<(Point, Ticks)> = None;
    for passed in &of.passed {
        let since = before.map_or_else(String::new, |(point, at)| {
            let part = Part { from: point, to: passed.point };
            format!("{} {}", part.words(), Value::from(passed.at.since(at).to_nanos(rate)))
        });
        table.row([
            passed.point.to_string(),
            passed.source.to_string(),
            Value::from(passed.at.since(begin).to_nanos(rate)).to_string(),
            since,
        ]);
        before = Some((passed.point, passed.at));
    }
    table
}

/// `Request 17: 5.20ms`.
pub(crate) fn heading(of: &Journey, rate: Hertz) -> String {
    let last = of.passed.iter().map(|passed| passed.at).max().unwrap_or_default();
    format!("Request {}: {}", count(of.number), Value::from(last.since(began(of)).to_nanos(rate)))
}

/// When it began.
pub(crate) fn began(of: &Journey) -> Ticks {
    of.passed.iter().map(|passed| passed.at).min().unwrap_or_default()
}

/// A percentile without the noise of its last digits.
fn short(percent: f64) -> String {
    ((percent * 1e4).round() / 1e4).to_string()
}

fn absent() -> String {
    ABSENT.to_owned()
}
