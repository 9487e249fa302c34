//! The first reading: what there is to add up, and whether it can be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whylate_model::calibration::Trust;
use whylate_model::directory::{RUN_FILE, RunDir};
use whylate_model::hlog::HISTOGRAM_FILE;
use whylate_model::identity::Identity;
use whylate_model::origin::{Origin, Share};
use whylate_model::run::{Run, Segment};
use whylate_model::series::Series;
use whylate_model::trust;
use whylate_model::{Bytes, ModelError, Nanos, Printable, segments};

use super::spread::across_cpus;
use super::{MOST_ORIGINS, MOST_SERIES, Request, distrust, skipped};
use crate::compare::unlike;
use crate::error::{ReportError, Unlike};
use crate::trusted;

/// Longest gaps kept of one recording before the longest of all are known.
const WORST_OF_ONE: usize = 3;
/// Entries of a directory that are looked at for cells: a matrix has a dozen.
const MOST_ENTRIES: usize = 4_096;

/// Directories that can be added up, and the recordings in them in the order of the sum.
pub(super) struct Inputs {
    pub(super) directories: Vec<Input>,
    pub(super) origins: Vec<Origin>,
    pub(super) left_out: Vec<String>,
    /// The largest threshold of each series of gaps, by its name in the sum.
    pub(super) floors: BTreeMap<String, Nanos>,
}

/// One directory.
pub(super) struct Input {
    pub(super) path: PathBuf,
    /// For each of its recordings the index in the sum.
    pub(super) origins: Vec<u32>,
    /// Wall time that the starts of its intervals count from.
    pub(super) began_ns: Option<u64>,
    /// It has wake-ups and skipped none, as other directories did.
    pub(super) none_skipped: bool,
}

/// What a series was where it was first seen.
struct Seen {
    directory: String,
    identity: Identity,
}

impl Inputs {
    pub(super) fn check(request: &Request) -> Result<Self, ReportError> {
        let mut checked = Self {
            directories: Vec::new(),
            origins: Vec::new(),
            left_out: Vec::new(),
            floors: BTreeMap::new(),
        };
        let mut seen = BTreeMap::new();
        let mut bytes = 0;
        let mut first_failure = None;
        for path in &request.directories {
            match read(path, &mut checked.left_out) {
                Ok(run) => checked.take(request, path, run, &mut seen, &mut bytes)?,
                Err(error) if request.skip_damaged => {
                    first_failure.get_or_insert_with(|| error.to_string());
                    checked.left_out.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        if checked.origins.is_empty() {
            let why = first_failure.unwrap_or_else(|| "no directory was named".to_owned());
            return Err(ReportError::NothingToMerge { named: request.directories.len(), why });
        }
        if request.tables && bytes > request.table_bytes {
            return Err(ReportError::TooMuch {
                what: format!(
                    "the tables have {} (--without-tables leaves them out)",
                    Bytes(bytes)
                ),
                most: format!("{} (--max-disk)", Bytes(request.table_bytes)),
            });
        }
        checked.count_those_without_skipped(seen.contains_key(skipped::CORRECTED));
        checked.sort()?;
        Ok(checked)
    }

    fn take(
        &mut self,
        request: &Request,
        path: &Path,
        run: Run,
        seen: &mut BTreeMap<String, Seen>,
        bytes: &mut u64,
    ) -> Result<(), ReportError> {
        let directory = shown(path);
        if !run.threads.is_empty() {
            return Err(ReportError::SetOfThreads { directory });
        }
        for series in &run.series {
            let name = merged_name(&series.name, request.across_cpus);
            let gaps = run.gaps.iter().find(|gaps| gaps.series == series.name);
            if let Some(gaps) = gaps {
                let threshold = gaps.threshold.to_nanos(run.clock.hz);
                let floor = self.floors.entry(name.clone()).or_default();
                *floor = threshold.max(*floor);
            }
            let Some(identity) = Identity::of(&run, &series.name) else { continue };
            let Some(known) = seen.get(&name) else {
                seen.insert(name, Seen { directory: directory.clone(), identity });
                continue;
            };
            let found = unlike(&known.identity, &identity, &request.across);
            if !found.refused.is_empty() {
                return Err(ReportError::Unlike(Box::new(Unlike {
                    series: Printable(&name).to_string(),
                    differences: found.refused,
                    first: known.directory.clone(),
                    second: directory,
                })));
            }
        }
        if run.backends.is_some() {
            let what = "its comparison of backends, whose rounds are its own";
            self.left_out.push(format!("{what}, of `{directory}`"));
        }
        if seen.len() > MOST_SERIES {
            let what = format!("there are {} series", seen.len());
            return Err(ReportError::TooMuch { what, most: MOST_SERIES.to_string() });
        }
        *bytes += run.segments.iter().map(|segment| segment.bytes).sum::<u64>();
        let none_skipped = skipped::none_in(&run);
        let origins = origins(run, &directory, request.across_cpus);
        let began_ns = origins.iter().filter_map(Origin::began).min();
        let first = self.origins.len() as u32;
        let indices = (first..first + origins.len() as u32).collect();
        self.origins.extend(origins);
        if self.origins.len() > MOST_ORIGINS {
            let what = format!("there are more than {MOST_ORIGINS} recordings");
            return Err(ReportError::TooMuch { what, most: MOST_ORIGINS.to_string() });
        }
        let path = path.to_owned();
        self.directories.push(Input { path, origins: indices, began_ns, none_skipped });
        Ok(())
    }

    /// Lets wake-ups without skipped ones stand for both rows, where others have two.
    fn count_those_without_skipped(&mut self, others_have: bool) {
        for input in &mut self.directories {
            input.none_skipped &= others_have;
            for origin in input.origins.iter().filter(|_| input.none_skipped) {
                skipped::share_for_both(&mut self.origins[*origin as usize].series);
            }
        }
    }

    /// Puts the recordings into an order of their own, so that the order in which directories were
    /// named does not matter, and finds those that are there twice.
    fn sort(&mut self) -> Result<(), ReportError> {
        let mut order: Vec<usize> = (0..self.origins.len()).collect();
        order.sort_by(|x, y| key(&self.origins[*x]).cmp(&key(&self.origins[*y])));
        for pair in order.windows(2) {
            let (first, second) = (&self.origins[pair[0]], &self.origins[pair[1]]);
            if key(first) == key(second) {
                return Err(ReportError::CountedTwice {
                    first: Printable(&first.directory).to_string(),
                    second: Printable(&second.directory).to_string(),
                });
            }
        }
        let mut place = vec![0u32; order.len()];
        for (new, old) in order.iter().enumerate() {
            place[*old] = new as u32;
        }
        for index in self.directories.iter_mut().flat_map(|input| &mut input.origins) {
            *index = place[*index as usize];
        }
        let mut slots: Vec<Option<Origin>> = self.origins.drain(..).map(Some).collect();
        self.origins = order.into_iter().filter_map(|old| slots[old].take()).collect();
        // Directories in the order of their first recording: sums of floats then come out the same.
        self.directories.sort_by_key(|input| input.origins.iter().min().copied());
        Ok(())
    }
}

/// What one recording is known by: its wall time, its host and its counter.
fn key(origin: &Origin) -> (Option<u64>, &str, u64, u64, &[String]) {
    let host = origin.host.hostname.as_str();
    (origin.began(), host, origin.clock.epoch.0, origin.seed, &origin.command_line)
}

/// Reads a directory whole, once, and keeps nothing but its run.
fn read(path: &Path, left_out: &mut Vec<String>) -> Result<Run, ReportError> {
    let directory = RunDir::open(path)?;
    let run = directory.read_checked()?;
    if !path.join(HISTOGRAM_FILE).exists() && has_cells(path) {
        return Err(ReportError::CellsApart { directory: shown(path) });
    }
    let survey = segments::survey(&directory, &run)?;
    if let Some(missing) = survey.missing.first() {
        let place = format!("before its table {}", Printable(missing));
        return Err(ModelError::Truncated { path: path.to_owned(), place }.into());
    }
    let mut have: BTreeMap<String, u64> = BTreeMap::new();
    for interval in directory.histograms_of(&run)? {
        let interval = interval?;
        let count = have.entry(interval.tag).or_default();
        *count = count.saturating_add(interval.histogram.len());
    }
    for series in &run.series {
        let have = have.get(&series.name).copied();
        match have {
            None if series.n > 0 => left_out.push(format!(
                "{} of `{}`: its run keeps no histograms of it",
                Printable(&series.name),
                shown(path)
            )),
            Some(have) if have != series.n => {
                return Err(ReportError::Incomplete {
                    directory: shown(path),
                    series: Printable(&series.name).to_string(),
                    have,
                    counted: series.n,
                });
            }
            _ => {}
        }
    }
    Ok(run)
}

/// Has it run directories inside, as a matrix has?
fn has_cells(path: &Path) -> bool {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.take(MOST_ENTRIES).any(|entry| entry.path().join(RUN_FILE).is_file())
}

/// The recordings of a run: one, or those that it was merged from.
fn origins(mut run: Run, directory: &str, across_cpus: bool) -> Vec<Origin> {
    if run.is_merged() {
        let own = reasons_of_the_sum(&run);
        for reason in own {
            // Any of them has it on.
            let first = &mut run.origins[0].verdict;
            distrust(first, format!("in the sum `{directory}`, {reason}"));
        }
        let own = trusts_of_the_sum(&run);
        for origin in &mut run.origins {
            origin.segments = Vec::new();
            for share in &mut origin.series {
                share.trust = own.get(&share.series).cloned().or(share.trust.take());
            }
            for problem in &run.files.problems {
                distrust(&mut origin.verdict, format!("in the sum `{directory}`, {problem}"));
            }
            for share in &mut origin.series {
                share.series = merged_name(&share.series, across_cpus);
            }
            origin.series = joined(std::mem::take(&mut origin.series));
        }
        return run.origins;
    }
    let shares = run.series.iter().map(|series| share(&run, series, across_cpus)).collect();
    let series = joined(shares);
    let (verdict, doubts) = (trust::verdict(&run), trust::doubts(&run));
    run.worst.sort_by_key(|gap| std::cmp::Reverse(gap.length));
    run.worst.truncate(WORST_OF_ONE);
    vec![Origin {
        directory: directory.to_owned(),
        tool_version: run.tool_version,
        command_line: run.command_line,
        question: run.question,
        seed: run.seed,
        state: run.state,
        host: run.host,
        clock: run.clock,
        settings: run.settings,
        series,
        worst: run.worst,
        warnings: run.warnings,
        verdict,
        doubts,
        segments: Vec::<Segment>::new(),
        loads: run.loads,
        switch_cost: run.switch_cost,
        traced: Some(run.evidence.trace.is_some()),
    }]
}

/// Why a sum is not to be trusted for itself, and not for one of its recordings: what was left out of it.
fn reasons_of_the_sum(run: &Run) -> Vec<String> {
    let named = |reason: &str, origin: &Origin| {
        reason
            .strip_prefix(&Printable(&origin.directory).to_string())
            .is_some_and(|rest| rest.starts_with(": "))
    };
    let is_own = |reason: &&String| {
        let is_rest = reason.starts_with("and ") && reason.ends_with(" more reasons");
        !is_rest && !run.origins.iter().any(|origin| named(reason, origin))
    };
    run.verdict.reasons().iter().filter(is_own).cloned().collect()
}

/// How far a sum of an older release is trusted, by series, which does not say it of its recordings: each of them
/// may be the one that is trusted so little.
fn trusts_of_the_sum(run: &Run) -> BTreeMap<String, Trust> {
    let mut shares = run.origins.iter().flat_map(|origin| &origin.series);
    if shares.any(|share| share.trust.is_some()) {
        return BTreeMap::new();
    }
    let of = |series: &Series| {
        Some((series.name.clone(), trusted::of_series(run, &series.name)?.clone()))
    };
    run.series.iter().filter_map(of).collect()
}

/// Trusts each series of the sum as far as that of its recordings which is trusted least.
pub(super) fn trust(series: &mut [Series], origins: &[Origin]) {
    struct Known {
        least: Option<Trust>,
        with: usize,
        of: usize,
    }
    let mut all: BTreeMap<&str, Known> = BTreeMap::new();
    for share in origins.iter().flat_map(|origin| &origin.series) {
        let known = all.entry(&share.series).or_insert(Known { least: None, with: 0, of: 0 });
        known.with += usize::from(share.trust.is_some());
        known.of += 1;
        known.least = trusted::less(known.least.take(), share.trust.clone());
    }
    for one in series {
        let Some(Known { least: Some(mut least), with, of }) = all.remove(one.name.as_str()) else {
            continue;
        };
        if with < of {
            least.other.push(format!("{} of {of} recordings without a calibration", of - with));
        }
        one.trust = Some(least);
    }
}

/// One share of each series: the CPUs of a recording together where they have one name in the sum.
fn joined(shares: Vec<Share>) -> Vec<Share> {
    let mut joined: Vec<Share> = Vec::with_capacity(shares.len());
    for share in shares {
        match joined.iter().position(|known| known.series == share.series) {
            Some(at) => {
                let known = joined.remove(at);
                joined.insert(at, across_cpus(known, &share));
            }
            None => joined.push(share),
        }
    }
    joined
}

fn share(run: &Run, series: &Series, across_cpus: bool) -> Share {
    let gaps = run.gaps.iter().find(|gaps| gaps.series == series.name);
    let at = |percent: f64| -> Option<Nanos> {
        series.quantiles.iter().find(|q| (q.percent - percent).abs() < 1e-9)?.value
    };
    Share {
        series: merged_name(&series.name, across_cpus),
        recorded_as: series.name.clone(),
        n: series.n,
        left_out: 0,
        p50: at(50.0),
        p99: at(99.0),
        p999: at(99.9),
        max: series.max,
        elapsed: gaps.map(|gaps| gaps.end.since(gaps.start).to_nanos(run.clock.hz)),
        lost_share: gaps.map(|gaps| gaps.lost_share),
        lost_share_interval: gaps.and_then(|gaps| gaps.lost_share_interval),
        threshold: gaps.map(|gaps| gaps.threshold.to_nanos(run.clock.hz)),
        period_ns: gaps.map(|gaps| gaps.period_ticks * 1e9 / run.clock.hz.0),
        rates: gaps.map(|gaps| gaps.rates.clone()).unwrap_or_default(),
        quantiles: series.quantiles.clone(),
        trust: trusted::of_series(run, &series.name).cloned(),
    }
}

/// The name of a series in the sum: without its CPU where CPUs are added up.
pub(super) fn merged_name(name: &str, across_cpus: bool) -> String {
    let without = || {
        let (head, cpu) = name.rsplit_once("-cpu")?;
        (!cpu.is_empty() && cpu.bytes().all(|c| c.is_ascii_digit())).then_some(head)
    };
    if across_cpus { without().unwrap_or(name) } else { name }.to_owned()
}

fn shown(path: &Path) -> String {
    Printable(&path.display().to_string()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cpu_s_number_is_taken_off() {
        assert_eq!(merged_name("gap-cpu12", true), "gap");
        assert_eq!(merged_name("gap-cpu12", false), "gap-cpu12");
        for name in ["udp-rtt-other-core", "gap-cpu", "gap-cpux1"] {
            assert_eq!(merged_name(name, true), name);
        }
    }
}
