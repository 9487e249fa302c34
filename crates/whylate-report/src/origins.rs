//! What a merged run is the sum of: its recordings, each with its own numbers.

use std::collections::BTreeMap;

use whylate_model::Nanos;
use whylate_model::origin::{Measure, Origin, Share, Spread};
use whylate_model::run::{Run, Verdict};

use crate::causes;
use crate::doc::{Block, Section, Table, Where};
use crate::evidence;
use crate::html::utc;
use crate::numbers::{ABSENT, Cell, Value, between, count, instant, number};
use crate::trusted;

/// Recordings shown of each series: those with the largest values.
const MOST_SHOWN: usize = 8;
/// Longest gaps of all recordings.
const MOST_GAPS: usize = 24;
/// Quantiles whose spread is shown, in percent; the others are in the JSON.
const SPREADS_SHOWN: [f64; 3] = [50.0, 99.0, 99.9];

/// How the spreads are to be read.
const SPREADS: &str = "within: as if the recordings were one; between: from the spread of their own numbers, \
     12.7 standard errors to each side for two recordings, 4.3 for three, 2.8 for five. The wider one stands \
     above. Ratio: variance between over variance within, about 1 when the recordings differ by chance alone.";

/// The section; none for a run that is no sum.
pub(crate) fn section(run: &Run) -> Option<Section> {
    if !run.is_merged() {
        return None;
    }
    let added = "Counts are added; percentiles are those of the sum, never averages. Each recording keeps its \
                 own clock, so that the sum has no timeline.";
    let mut blocks = vec![
        Block::Text(added.to_owned()),
        Block::Only(Where::Page, vec![Block::Table(recordings(run))]),
    ];
    for series in &run.series {
        blocks.extend(shares(run, &series.name));
        blocks.push(Block::Table(spreads(run, &series.name)));
    }
    if !run.spreads.is_empty() {
        blocks.push(Block::How(SPREADS.to_owned()));
    }
    blocks.extend(not_everywhere(run));
    blocks.extend(left_out(run));
    blocks.push(Block::Table(worst(run)));
    let distrusted = |origin: &&Origin| matches!(origin.verdict, Verdict::Untrustworthy { .. });
    let distrusted = run.origins.iter().filter(distrusted).count();
    if distrusted > 0 {
        blocks.push(Block::Note(format!(
            "trust is poor in {distrusted} of the recordings by themselves"
        )));
    }
    // The page has them in a place of their own.
    blocks.push(Block::Only(Where::Terminal, vec![evidence::warnings(run)]));
    let heading = format!("The sum of {} recordings", run.origins.len());
    Some(Section::new("origins", heading, blocks).headed())
}

/// Each recording with its series, the largest values first.
fn recordings(run: &Run) -> Table {
    let head = [
        "recording",
        "machine",
        "began",
        "series",
        "n",
        "p50",
        "p99",
        "p99.9",
        "max",
        "lost",
        "trust",
    ];
    let mut table = Table::new("Each recording by itself, the largest values first", &head)
        .words(&[1, 2, 3, 10]);
    let mut shares: Vec<(&Origin, &Share)> =
        run.origins.iter().flat_map(|o| o.series.iter().map(move |share| (o, share))).collect();
    shares.sort_by_key(|(origin, share)| (std::cmp::Reverse(share.max), &origin.directory));
    for (origin, share) in shares {
        table.row([
            Cell::from(origin.directory.as_str()),
            origin.host.hostname.as_str().into(),
            Value::from(origin.began().map(utc)).into(),
            share.series.as_str().into(),
            Value::Count(share.n).into(),
            at(share, P50),
            at(share, P99),
            at(share, P999),
            at(share, LARGEST),
            Value::from(share.lost_share.map(Value::Share)).into(),
            verdict(&origin.verdict).into(),
        ]);
    }
    table
}

/// What its verdict says of trust in a recording: how far it is limited is not stored.
fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Trustworthy => "good or limited",
        Verdict::LimitExceeded { reasons, .. } if !reasons.is_empty() => "poor, a limit exceeded",
        Verdict::LimitExceeded { .. } => "a limit exceeded",
        Verdict::Untrustworthy { .. } => "poor",
        Verdict::Pending => "not known",
    }
}

/// The spread between the recordings of one series, the largest first.
fn shares(run: &Run, name: &str) -> Vec<Block> {
    let mut shares: Vec<(&Origin, &Share)> = run
        .origins
        .iter()
        .flat_map(|origin| origin.series.iter().map(move |share| (origin, share)))
        .filter(|(_, share)| share.series == name)
        .collect();
    if shares.is_empty() {
        return Vec::new();
    }
    shares.sort_by_key(|(origin, share)| (std::cmp::Reverse(share.max), origin.directory.clone()));
    let head = ["", "p50", "p99", "p99.9", "max", "n", "lost"];
    let mut table = Table::new(name, &head).captioned_on_the_page();
    table.row([
        Cell::from(format!("{name}, lowest to highest")),
        range(&shares, P50),
        range(&shares, P99),
        range(&shares, P999),
        range(&shares, LARGEST),
        "".into(),
        "".into(),
    ]);
    for (origin, share) in shares.iter().take(MOST_SHOWN) {
        table.row([
            Cell::from(format!("{} ({})", origin.directory, origin.host.hostname)),
            at(share, P50),
            at(share, P99),
            at(share, P999),
            at(share, LARGEST),
            Value::Count(share.n).into(),
            Value::from(share.lost_share.map(Value::Share)).into(),
        ]);
    }
    let more = shares.len().saturating_sub(MOST_SHOWN);
    let more =
        (more > 0).then(|| Block::Items(vec![format!("{more} more recordings are in the JSON")]));
    [Block::Table(table)].into_iter().chain(more).collect()
}

/// Both intervals of the numbers of one series, and the ratio of their variances.
fn spreads(run: &Run, name: &str) -> Table {
    let shown = |spread: &&Spread| match spread.of {
        Measure::Quantile { percent } => SPREADS_SHOWN.iter().any(|p| (p - percent).abs() < 1e-9),
        Measure::LostShare | Measure::Rate { .. } => true,
    };
    let of_series = run.spreads.iter().filter(|spread| spread.series == name);
    let head = ["", "sum", "95% within", "95% between", "ratio"];
    let caption = format!("{name}: within and between recordings");
    Table::new(caption, &head)
        .captioned_on_the_page()
        .with(of_series.filter(shown).map(|spread| row(run, spread)))
}

fn row(run: &Run, spread: &Spread) -> Vec<Cell> {
    let (name, value): (String, fn(f64) -> Value) = match spread.of {
        Measure::Quantile { percent } => (format!("p{percent}"), Value::Time),
        Measure::LostShare => ("lost".to_owned(), Value::Share),
        Measure::Rate { at_least } => {
            (format!("stalls of {} or more", Value::from(at_least)), Value::Rate)
        }
    };
    let beyond = match spread.of {
        Measure::Quantile { percent } => trusted::is_beyond(run, &spread.series, percent),
        Measure::LostShare | Measure::Rate { .. } => false,
    };
    let sum = |ends: Option<(f64, f64)>| {
        let ends = ends.map(|(low, high)| (value(low), value(high)));
        Cell::from(value(spread.value)).within(ends).marked(beyond)
    };
    let (within, between) = (sum(spread.within), sum(spread.between));
    let ratio = spread.ratio.map_or(ABSENT.to_owned(), |ratio| format!("{}x", number(ratio)));
    vec![name.into(), within.alone(), within.ends(), between.ends(), ratio.into()]
}

/// Series that not every recording has: their numbers are those of some recordings.
fn not_everywhere(run: &Run) -> Vec<Block> {
    let mut notes = Vec::new();
    let mut having: BTreeMap<&str, usize> = BTreeMap::new();
    for share in run.origins.iter().flat_map(|origin| &origin.series) {
        *having.entry(&share.series).or_default() += 1;
    }
    for (name, recordings) in having.into_iter().filter(|(_, n)| *n < run.origins.len()) {
        notes.push(Block::Note(format!(
            "{name} is in {recordings} of {} recordings: its numbers are of those alone",
            run.origins.len()
        )));
    }
    notes
}

/// Gaps below the threshold of the sum.
fn left_out(run: &Run) -> Vec<Block> {
    let mut notes = Vec::new();
    for gaps in &run.gaps {
        let shares = || {
            let all = run.origins.iter().flat_map(|origin| &origin.series);
            all.filter(|share| share.series == gaps.series)
        };
        let left_out: u64 = shares().map(|share| share.left_out).fold(0, u64::saturating_add);
        let Some(lowest) = shares().filter_map(|share| share.threshold).min() else { continue };
        let threshold = gaps.threshold.to_nanos(run.clock.hz);
        if lowest < threshold {
            notes.push(Block::Note(format!(
                "{}: the recordings have thresholds from {lowest} to {threshold}. The sum, its causes and its \
                 longest stalls count stalls from {threshold} on; the {} shorter ones of recordings with a \
                 lower threshold are left out, as noise below the threshold",
                gaps.series,
                count(left_out),
            )));
        }
    }
    notes
}

/// A number of what a recording added, and where in its distribution it lies.
type Number = (f64, fn(&Share) -> Option<Nanos>);

const P50: Number = (50.0, |share| share.p50);
const P99: Number = (99.0, |share| share.p99);
const P999: Number = (99.9, |share| share.p999);
const LARGEST: Number = (trusted::MAX, |share| share.max);

fn at(share: &Share, (percent, of): Number) -> Cell {
    Cell::from(of(share)).marked(trusted::is_beyond_in(share, percent))
}

fn range(shares: &[(&Origin, &Share)], (percent, of): Number) -> Cell {
    let values: Vec<Nanos> = shares.iter().filter_map(|(_, share)| of(share)).collect();
    let said = match (values.iter().min(), values.iter().max()) {
        (Some(low), Some(high)) if low == high => Value::from(*low).to_string(),
        (low, high) => between(low.copied().map(Value::from), high.copied().map(Value::from)),
    };
    let beyond = shares.iter().any(|(_, share)| trusted::is_beyond_in(share, percent));
    Cell::from(said).marked(beyond)
}

/// The longest gaps of all recordings, each by its own clock.
fn worst(run: &Run) -> Table {
    let mut worst: Vec<_> = run
        .origins
        .iter()
        .flat_map(|origin| origin.worst.iter().map(move |gap| (origin, gap)))
        .collect();
    worst.sort_by_key(|(origin, gap)| (std::cmp::Reverse(gap.length), origin.directory.clone()));
    let head = ["recording", "machine", "at", "UTC", "length", "CPU", "cause"];
    let mut table = Table::new(format!("The {} longest stalls", worst.len()), &head)
        .words(&[1, 3, 6])
        .page_columns(&[0, 3])
        .most(MOST_GAPS);
    for (origin, gap) in worst {
        let at = gap.start.since(origin.clock.epoch).to_nanos(origin.clock.hz);
        table.row([
            origin.directory.as_str().into(),
            origin.host.hostname.as_str().into(),
            Value::from(instant(at)),
            origin.clock.realtime_ns(gap.start).map(utc).into(),
            gap.length.into(),
            causes::cpus(gap).into(),
            gap.cause.to_string().into(),
        ]);
    }
    table
}
