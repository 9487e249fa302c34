//! The section of a delay line: how frames were held back, and what became of them.

use whylate_model::delay::{DelayBase, DelayCounts, DelayDirection, DelayEnd, DelayLine};
use whylate_model::reflect::Residence;
use whylate_model::run::Run;

use crate::doc::{Block, Document, Section, Table, Warning};
use crate::first;
use crate::html::utc;
use crate::numbers::{Value, count, percent, rate};
use crate::terminal::Percentiles;
use crate::{calibration, forward, residence};

/// How the table of fates is to be read.
const READ_FATES: &str = "Received = passed on + lost + dropped + waiting at the end. \
     Duplicates and those out of order are told beside them: the former leave once more, the latter are \
     among those passed on.";
/// Heading of the table of times.
const TIMES: &str = "How long they stayed, and how late they left";
/// How it is to be read.
const READ_TIMES: &str = "Residence counts from when a frame was seen to when it was about \
     to be handed over; how late it left from when it was to leave, its delay, the limit of the rate and those \
     before it considered.";

/// The section of a delay line; none for a run of something else.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let of = run.delay.as_deref()?;
    let times = (!times(of).is_empty()).then(|| Block::How(READ_TIMES.to_owned()));
    let blocks = blocks(of).into_iter().chain(times).collect();
    Some(Section::new("delayed", "What was held back", blocks).headed())
}

/// The account of one of which no run is kept.
pub(crate) fn document(of: &DelayLine, columns: Percentiles) -> Document {
    let [first, second] = &of.ports;
    let all = times(of);
    let read = (!all.is_empty()).then(|| Block::How(READ_TIMES.to_owned()));
    let table = residence::table(TIMES, "direction", &all, columns);
    Document::new(format!("Delayed between {first} and {second} by {}", of.transport))
        .naming(of)
        .with([Block::Text(first::of_account(of))])
        .with(blocks(of))
        .with([Block::Table(table)].into_iter().chain(read))
        .with([Warning::of_account(&of.warnings)])
}

/// Where, when, how and how much.
pub(crate) fn blocks(of: &DelayLine) -> Vec<Block> {
    let said = std::iter::once(circumstances(of)).chain(remarks(of));
    let table = |caption, head, words: &[usize], rows| {
        Block::Table(Table::new(caption, head).words(words).with(rows))
    };
    let losses = forward::port_losses(&of.ends);
    Block::texts(said)
        .chain([
            table("How frames were held back", &["direction", "law", "rate"], &[], laws(of)),
            table("Frames by outcome", &["direction", "what", "frames"], &[1], fates(of)),
            Block::How(READ_FATES.to_owned()),
            table("Settings changed meanwhile", &["after", "direction", "law"], &[1], changes(of)),
            table("Frames lost before or behind, by place", &forward::PLACES, &[1], losses),
        ])
        // Also where no frame was lost: what was short says that little room was left.
        .chain(Block::texts(forward::occasions(&of.ends)))
        .collect()
}

/// Since when, for how long and where.
fn circumstances(of: &DelayLine) -> String {
    let ended = match of.ended {
        DelayEnd::Stopped => "until it was stopped",
        DelayEnd::Duration => "until --duration ended",
        DelayEnd::PortLost => "until a port was lost",
        DelayEnd::GoingOn => "and its end is not known",
    };
    let cpu = of.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    format!(
        "Since {} for {}, {ended}; on {cpu}, with --wait {}.",
        utc(of.since_ns),
        of.lasted,
        of.wait
    )
}

/// What else is to be said of it.
fn remarks(of: &DelayLine) -> Vec<String> {
    let mut said = vec![own(&of.base)];
    said.extend(of.netem.as_ref().map(calibration::netem));
    let vain = if of.looks == 0 { 0.0 } else { of.in_vain as f64 / of.looks as f64 };
    said.push(format!("{} polls, {} of them empty.", count(of.looks), percent(vain)));
    said.push(format!(
        "Each direction keeps {} frames and {} bytes at most; seed {}.",
        count(of.capacity_frames),
        count(of.capacity_bytes),
        of.seed
    ));
    if let Some(log) = &of.truths {
        let missed = match log.missed {
            0 => "none missed".to_owned(),
            missed => format!("{} missed", count(missed)),
        };
        said.push(format!("Truths of {} frames are kept, {missed}.", count(log.kept)));
    }
    said.extend(of.ends.iter().map(forward::port));
    said.extend(of.directions.iter().filter_map(refused));
    said
}

/// Its own delay and error.
pub(crate) fn own(of: &DelayBase) -> String {
    format!(
        "By itself it takes {} (median of {} frames without delay); 99 of 100 leave no more than {} late \
         at {} (half {}, the latest {}), measured before the first; resolution {}.",
        of.base,
        count(of.frames),
        of.error,
        of.at,
        of.error_median,
        of.error_max,
        of.resolution
    )
}

fn refused(of: &DelayDirection) -> Option<String> {
    let why = of.first_refusal.as_ref()?;
    let (name, times) = (name(of), count(of.refusals));
    Some(format!("{name}: the kernel refused to send {times} times, first: {why}."))
}

/// `eth1 -> eth2`.
pub(crate) fn name(of: &DelayDirection) -> String {
    format!("{} -> {}", of.from, of.to)
}

/// Laws and rates.
fn laws(of: &DelayLine) -> Vec<Vec<String>> {
    let seconds = of.lasted.0 as f64 / 1e9;
    let row = |direction: &DelayDirection| {
        let n = direction.counts.passed_on as f64;
        let per_second = if seconds > 0.0 { n / seconds } else { 0.0 };
        vec![name(direction), direction.law.clone(), rate(per_second)]
    };
    of.directions.iter().map(row).collect()
}

/// What became of frames. Fates that no frame had are left out.
fn fates(line: &DelayLine) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for direction in &line.directions {
        let counts = &direction.counts;
        let all = [
            ("received", counts.received),
            ("passed on", counts.passed_on),
            ("  of them let past others", counts.let_past),
            ("  of them out of order", counts.reordered),
            ("dropped as asked", counts.lost_on_purpose),
            ("found no room", counts.overflow),
            ("beyond the rate", counts.rate_dropped),
            ("sending ring full", counts.ring_full),
            ("too long", counts.too_long),
            ("runts", counts.runts),
            ("waiting at the end", counts.waiting_at_the_end),
            ("duplicates", counts.duplicated),
            ("duplicates without room", counts.duplicates_lost),
        ];
        let there = all.into_iter().filter(|(what, n)| *n > 0 || *what == "received");
        rows.extend(there.map(|(what, n)| vec![name(direction), what.to_owned(), count(n)]));
    }
    let in_all: [(&str, Counted); 4] = [
        ("received", |of| of.received),
        ("passed on", |of| of.passed_on),
        ("found no room", |of| of.overflow),
        ("dropped against the settings", dropped),
    ];
    let in_all = in_all.into_iter().map(|(what, of)| (what, sum(line, of)));
    // The answer names the first two, whatever they come to.
    let there = in_all.filter(|(what, n)| *n > 0 || ["received", "passed on"].contains(what));
    rows.extend(there.map(|(what, n)| vec!["in all".to_owned(), what.to_owned(), count(n)]));
    rows
}

/// One of the counts of a direction.
type Counted = fn(&DelayCounts) -> u64;

/// One of the counts of both directions together.
pub(crate) fn sum(of: &DelayLine, what: Counted) -> u64 {
    of.directions.iter().map(|direction| what(&direction.counts)).fold(0, u64::saturating_add)
}

/// What was meant to pass and did not.
pub(crate) fn dropped(of: &DelayCounts) -> u64 {
    let gone = of.passed_on.saturating_add(of.lost_on_purpose);
    of.received.saturating_sub(gone.saturating_add(of.waiting_at_the_end))
}

/// Residence and lateness of both directions.
pub(crate) fn times(of: &DelayLine) -> Vec<(String, &Residence)> {
    let mut all = Vec::new();
    for direction in &of.directions {
        let name = name(direction);
        all.extend(direction.residence.as_ref().map(|found| (name.clone(), found)));
        all.extend(direction.lateness.as_ref().map(|found| (format!("{name}, late"), found)));
    }
    all
}

/// Settings that were changed.
fn changes(of: &DelayLine) -> Vec<Vec<String>> {
    let row = |change: &whylate_model::delay::DelayChange| {
        let direction = of.directions.get(usize::from(change.direction));
        vec![
            Value::from(change.at).to_string(),
            direction.map_or_else(|| change.direction.to_string(), name),
            change.law.clone(),
        ]
    };
    of.changes.iter().map(row).collect()
}

#[cfg(test)]
pub(crate) mod tests;
