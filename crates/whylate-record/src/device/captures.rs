//! What a box adds to packets, by two captures of the same traffic taken on both sides.
//!
//! No measurement of ours: whoever captured stamped the packets, and what their clocks are is only known
//! to them. Times are differences of stamps of two files, counted where the same packet was found in
//! both; a step of the stamps is a step of the result.

mod digest;
mod matching;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::facts::RecordingCost;
use whylate_model::Nanos;
use whylate_model::device::{CapturedWay, Device, PacketPoint, TwoCaptures};
use whylate_model::directory::RunDir;
use whylate_model::flow::Direction;
use whylate_model::run::{Run, RunState};
use whylate_model::series::{Definition, Series};
use whylate_model::settings::Settings;
use whylate_model::warning::Warning;
use whylate_net::capture::Cut;
use whylate_net::capture::seen::{CaptureFacts, Packet, packets};
use whylate_stats::Histogram;

use super::outcome::DeviceError;
use crate::intervals::Interval;
use crate::progress::{Progress, Step};
use crate::storage::{Limits, Storage};
use crate::summary::{self, Description};
use crate::verdict::{judged, unique};
use crate::workbench::{Need, Workbench};
use crate::{RecordError, Recorded};

pub use digest::Changed;
use matching::{Matched, OfWay, Seen, matched};

/// Packets of a file at most: what is kept of them takes 160 MB.
const MOST_PACKETS: usize = 4_000_000;
/// Stretches of time that latencies are told in at most.
const MOST_INTERVALS: u64 = 1_000;
/// Shortest of them.
const SHORTEST_INTERVAL: u64 = Nanos::SECOND.0;
/// Name of what is measured, as the report calls it.
const NAME: &str = "two captures";

/// What is asked about two captures.
#[derive(Debug, Clone)]
pub struct CaptureQuestion {
    /// The one before the box.
    pub before: PathBuf,
    /// The one behind it.
    pub behind: PathBuf,
    /// What the box changes.
    pub changed: Changed,
    /// Packets with the same content are the same one only so far apart.
    pub window: Nanos,
    /// Which point of a packet the stamps of each file are of, before the box and behind it; none where that
    /// is not known, which no format tells.
    pub stamped: Option<[Stamped; 2]>,
    /// What to do with a file that ends in the middle of a packet.
    pub cut: Cut,
    /// Seed of the run: nothing is drawn.
    pub seed: u64,
    /// The command line.
    pub command_line: Vec<String>,
}

/// Which point of a packet a stamp is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamped {
    /// Its first bit.
    Start,
    /// Its last bit.
    End,
}

/// A side of the box.
struct Side {
    path: PathBuf,
    facts: CaptureFacts,
    seen: Vec<Seen>,
    /// Packets were captured up to so many bytes; none where all of them are whole.
    snapped: Option<u32>,
}

/// Reads both captures, and stores what they tell of the box in `directory`.
///
/// # Errors
/// A file that cannot be read, is no capture, is damaged or too large; files without a packet in common.
pub fn record(
    question: &CaptureQuestion,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let undo = directory.undo();
    let recorded = read_and_store(question, directory, stop, progress);
    if recorded.is_err() {
        undo.remove();
    }
    recorded
}

fn read_and_store(
    question: &CaptureQuestion,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let need = Need {
        measured: Vec::new(),
        housekeeping: None,
        hold_idle_states: false,
        real_time: false,
    };
    let mut bench = Workbench::set_up(&need)?;
    let mut storage = Storage::open(directory, bench.observer.epoch(), Limits::default())?;
    let [before, behind] = both(question, stop, progress)?;
    let found = matched(&before.seen, &behind.seen, question.window);
    if found.there.came() + found.back.came() == 0 {
        return Err(RecordError::Device(DeviceError::NothingInCommon {
            before: before.path,
            behind: behind.path,
            packets_before: before.facts.packets,
            packets_behind: behind.facts.packets,
        }));
    }
    let resolution_ns = resolution_ns(&before.facts, &behind.facts);
    let (mut series, mut ways) = (Vec::new(), Vec::new());
    for (direction, of) in [(Direction::There, &found.there), (Direction::Back, &found.back)] {
        if *of == OfWay::default() {
            continue;
        }
        let one = of_way(direction, of, resolution_ns, &mut storage);
        let point = point(direction, question.stamped);
        ways.push(CapturedWay { point, ..way(direction, of, one.as_ref()) });
        series.extend(one);
    }
    let state = if stop.load(Ordering::Relaxed) { RunState::Stopped } else { RunState::Complete };
    let clock = bench.final_clock_facts(RecordingCost::default());
    storage.close();
    let mut warnings = bench.warnings.clone();
    // What a counter of this host is worth does not matter: it has measured nothing.
    warnings.retain(|warning| !matches!(warning, Warning::FrequencyFromRegressionOnly));
    warnings.extend(storage.warnings());
    warnings.extend(summary::not_stationary(&series));
    let warnings = unique(warnings);
    let device = device(question, (&before, &behind), &found, ways, resolution_ns);
    let asked = "How long do packets take from one capture to the other, and how many are lost?";
    let beginning =
        bench.beginning((&question.command_line[..], asked, question.seed), state, clock);
    let run = Run {
        settings: settings(question, &before, &behind),
        series,
        warnings,
        segments: storage.segments(),
        device: Some(Box::new(device)),
        ..Run::begun(beginning)
    };
    let mut run = judged(run, None);
    storage.conclude(&mut run);
    Ok(Recorded { run })
}

/// Reads both files: of each packet as many bytes as both captured.
fn both(
    question: &CaptureQuestion,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<[Side; 2], RecordError> {
    let paths = [&question.before, &question.behind];
    let mut read = |most: u32| -> Result<[Side; 2], RecordError> {
        let mut sides = Vec::with_capacity(paths.len());
        for path in paths {
            progress.step(&Step::of(&format!("reading {}", path.display()), Nanos(0)));
            sides.push(side(path, question, most, stop)?);
        }
        let [before, behind]: [Side; 2] =
            sides.try_into().map_err(|_| RecordError::Device(DeviceError::Stopped))?;
        Ok([before, behind])
    };
    let sides = read(u32::MAX)?;
    let shortest = sides.iter().filter_map(|side| side.snapped).min();
    // Where one side cut its packets, what it left out is compared on neither.
    match shortest {
        Some(shortest) => read(shortest),
        None => Ok(sides),
    }
}

fn side(
    path: &Path,
    question: &CaptureQuestion,
    most: u32,
    stop: &AtomicBool,
) -> Result<Side, RecordError> {
    let (mut seen, mut snapped, mut left_out) = (Vec::new(), None::<u32>, 0_u64);
    let facts = packets(path, question.cut, &mut |packet: &Packet<'_>| {
        if seen.len() == MOST_PACKETS || stop.load(Ordering::Relaxed) {
            left_out += 1;
            return;
        }
        let captured = packet.bytes.len() as u32;
        if captured < packet.length {
            snapped = Some(snapped.map_or(captured, |least| least.min(captured)));
        }
        let told = digest::of(packet, question.changed, most);
        seen.push(Seen { at: packet.at.0, digest: told.digest, pair: told.pair });
    });
    let facts = facts.map_err(DeviceError::from)?;
    if stop.load(Ordering::Relaxed) {
        return Err(RecordError::Device(DeviceError::Stopped));
    }
    if left_out > 0 {
        let path = path.to_owned();
        return Err(RecordError::Device(DeviceError::TooMany { path, most: MOST_PACKETS }));
    }
    Ok(Side { path: path.to_owned(), facts, seen, snapped })
}

impl OfWay {
    /// Frames that were seen on both sides.
    fn came(&self) -> u64 {
        self.times.len() as u64 + self.ambiguous
    }
}

/// The coarser of both files' steps; nothing finer than a nanosecond is kept.
fn resolution_ns(before: &CaptureFacts, behind: &CaptureFacts) -> f64 {
    let coarser = before.resolution_ps.max(behind.resolution_ps);
    (coarser as f64 / 1_000.0).max(1.0)
}

fn name(direction: Direction) -> (&'static str, &'static str) {
    match direction {
        Direction::There => ("captured-there", "through the box, outbound"),
        Direction::Back => ("captured-back", "through the box, inbound"),
    }
}

/// The latencies of one way, second by second; none where there are none.
fn of_way(
    direction: Direction,
    of: &OfWay,
    resolution_ns: f64,
    storage: &mut Storage,
) -> Option<Series> {
    let (first, _) = *of.times.first()?;
    let (last, _) = *of.times.last()?;
    let (name, label) = name(direction);
    let width = ((last - first) / MOST_INTERVALS).max(SHORTEST_INTERVAL);
    let (mut all, mut intervals) = (Histogram::new(), Vec::new());
    for stretch in of.times.chunk_by(|a, b| (a.0 - first) / width == (b.0 - first) / width) {
        let values: Histogram = stretch.iter().map(|(_, took)| *took).collect();
        let number = stretch.first().map_or(0, |(at, _)| (at - first) / width);
        storage.interval(name, &values, Nanos(number * width), Nanos(width));
        intervals.push(Interval::of(&values));
        all.add(&values);
    }
    let (from, to) = match direction {
        Direction::There => ("packet in the capture before the box", "the same behind it"),
        Direction::Back => ("packet in the capture behind the box", "the same before it"),
    };
    Some(summary::of_histogram(
        &all,
        &intervals,
        &Description {
            name: name.to_owned(),
            label: label.to_owned(),
            paper_row: None,
            from,
            to,
            clock: "the captures'".to_owned(),
            definition: Definition::Residence,
            resolution_ns,
            lost: of.lost,
        },
    ))
}

/// From which point of a packet to which the latency of a way is.
fn point(direction: Direction, stamped: Option<[Stamped; 2]>) -> PacketPoint {
    let Some([before, behind]) = stamped else { return PacketPoint::Unknown };
    let (from, to) = match direction {
        Direction::There => (before, behind),
        Direction::Back => (behind, before),
    };
    match (from, to) {
        (Stamped::Start, Stamped::Start) => PacketPoint::StartToStart,
        (Stamped::End, Stamped::End) => PacketPoint::EndToEnd,
        (Stamped::Start, Stamped::End) => PacketPoint::StartToEnd,
        (Stamped::End, Stamped::Start) => PacketPoint::EndToStart,
    }
}

fn way(direction: Direction, of: &OfWay, series: Option<&Series>) -> CapturedWay {
    CapturedWay {
        direction,
        point: PacketPoint::Unknown,
        series: series.map(|series| series.name.clone()),
        matched: of.times.len() as u64,
        lost: of.lost,
        duplicates: of.duplicates,
        only_out: of.only_out,
        ambiguous: of.ambiguous,
        backwards: of.backwards,
        reordered: of.reordered,
    }
}

fn device(
    question: &CaptureQuestion,
    (before, behind): (&Side, &Side),
    found: &Matched,
    ways: Vec<CapturedWay>,
    resolution_ns: f64,
) -> Device {
    let (there, back) = (&found.there, &found.back);
    let captures = TwoCaptures {
        before: before.path.display().to_string(),
        behind: behind.path.display().to_string(),
        matched: (there.times.len() + back.times.len()) as u64,
        only_before: there.lost + back.only_out + back.duplicates,
        only_behind: there.only_out + there.duplicates + back.lost,
        ambiguous: there.ambiguous + back.ambiguous,
        unjudged: found.unjudged,
        left_out: left_out(question.changed),
        ways,
        resolution_ns,
        clocks: clocks(before, behind),
    };
    Device {
        name: NAME.to_owned(),
        description: "whatever lies between both captures".to_owned(),
        backend: format!("{} and {}", before.facts.format, behind.facts.format),
        error: None,
        sizes: Vec::new(),
        forwarding: Vec::new(),
        throughput: Vec::new(),
        configurations: Vec::new(),
        bought: Vec::new(),
        order: Vec::new(),
        fan_in: Vec::new(),
        captures: Some(captures),
        notes: notes(found, before, behind),
        doubts: Vec::new(),
    }
}

fn left_out(changed: Changed) -> Vec<String> {
    let all = [(changed.mac, "mac"), (changed.ttl, "ttl"), (changed.checksum, "checksum")];
    all.into_iter().filter(|(out, _)| *out).map(|(_, name)| name.to_owned()).collect()
}

fn clocks(before: &Side, behind: &Side) -> String {
    let step = |side: &Side| {
        let Side { facts, .. } = side;
        format!("{} in steps of {} ns", facts.format, facts.resolution_ps as f64 / 1_000.0)
    };
    format!(
        "that of whoever captured each file ({} before, {} behind): times are as true as those two agree",
        step(before),
        step(behind)
    )
}

/// What a reader must know of these two files.
fn notes(found: &Matched, before: &Side, behind: &Side) -> Vec<String> {
    let mut notes = Vec::new();
    let backwards = found.there.backwards + found.back.backwards;
    if backwards > 0 {
        notes.push(format!(
            "{backwards} packets came out before they went in: the clocks of the captures differ by more than \
             the box adds, and all times are off by that"
        ));
    }
    for side in [before, behind] {
        let (path, facts) = (side.path.display(), &side.facts);
        for (count, what) in [
            (
                facts.lost,
                "packets were lost by whoever captured it: they are among those lost in the box",
            ),
            (facts.skipped, "records of it hold no packet that can be read"),
            (facts.back, "packets of it are before the one before them"),
        ] {
            if count > 0 {
                notes.push(format!("{path}: {count} {what}"));
            }
        }
        if facts.was_cut {
            notes.push(format!(
                "{path} ends in the middle of a packet: its whole ones were taken, and its last {} bytes \
                 were not",
                facts.cut_bytes
            ));
        }
        if let Some(bytes) = side.snapped {
            notes.push(format!(
                "{path} has packets of which {bytes} bytes were captured: what lies behind that was not \
                 compared"
            ));
        }
    }
    notes
}

fn settings(question: &CaptureQuestion, before: &Side, behind: &Side) -> Settings {
    let left_out = match left_out(question.changed) {
        none if none.is_empty() => "nothing: whole packets were compared".to_owned(),
        left_out => left_out.join(", "),
    };
    let mut settings = Settings::from([
        ("not compared".to_owned(), left_out.into()),
        ("window".to_owned(), question.window.into()),
    ]);
    for (place, Side { path, facts, .. }) in
        [("before the box", before), ("behind the box", behind)]
    {
        settings.extend([
            (place.to_owned(), path.display().to_string().into()),
            (format!("packets {place}"), facts.packets.into()),
            (format!("format {place}"), facts.format.into()),
        ]);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_of_a_packet_are_those_of_each_side_by_the_way_and_else_not_known() {
        let of = |stamped| [Direction::There, Direction::Back].map(|way| point(way, stamped));
        assert_eq!(of(None), [PacketPoint::Unknown; 2]);
        assert_eq!(of(Some([Stamped::End; 2])), [PacketPoint::EndToEnd; 2]);
        assert_eq!(of(Some([Stamped::Start; 2])), [PacketPoint::StartToStart; 2]);
        let mixed = of(Some([Stamped::Start, Stamped::End]));
        assert_eq!(mixed, [PacketPoint::StartToEnd, PacketPoint::EndToStart]);
    }
}
