//! A client of somebody else, judged: it goes through the delay line as our own do, and what it reports is
//! set beside what the line wrote down.
//!
//! The client runs in the client's namespace of the bed, its server in the server's, and both know nothing
//! of it. No shell reads their words: they are split at blanks, and `{address}` and `{port}` are filled in.
//! Its number is taken out of what it prints by a regular expression. With several delays it shows what
//! every tool should be asked: does its number follow what was added, and by which factor? One that prints
//! half of a round trip rises half as fast as the truth. A client of ours goes beside it over the same line, in
//! the same rounds (`foreign/ours.rs`).

mod metric;
mod ours;
mod pairs;
mod said;

use std::collections::BTreeMap;
use std::time::Duration;

use whylate_model::calibration::{CalibratedBackend, ForeignReading, ForeignTool};
use whylate_model::calibration_parts::{CalibrationPart, PartOf};
use whylate_model::segments;
use whylate_model::{CpuId, Nanos};
use whylate_net::lab::{Bed, Role};
use whylate_stats::Histogram;
use whylate_stats::error_curve::{ErrorAt, compensated};
use whylate_stats::quantile::smallest_n;
use whylate_stats::rng::Rng;
use whylate_stats::slope::least_squares;
use whylate_stats::student::Spread;

use super::Calibrating;
use super::judge::{limit, stored, stored_slope};
use crate::RecordError;
use crate::child::{ChildError, Program, Running, last_words};
use crate::progress::Progress;

pub use metric::{Metric, Statistic, Unit};
pub use pairs::Passes;

use pairs::Paired;
use said::{notes, quantiles, reported};

/// A server has its port by then, or is waited for no longer.
const LISTENS: Duration = Duration::from_secs(3);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(20);
/// A server that is told to end has so long.
const ENDING: Duration = Duration::from_secs(3);
/// The line is up so much longer than its client may be.
const SPARE: Duration = Duration::from_secs(30);
/// Runs that an interval needs.
const FEWEST_RUNS: usize = 3;
/// What its slope is of.
const SLOPE_OF: &str = "ns reported over ns of truth";

/// What is asked about a client of somebody else.
#[derive(Debug, Clone)]
pub struct ForeignRequest {
    /// Its words, with `{address}` and `{port}`.
    pub client: Vec<String>,
    /// Its server's; none where the kernel answers.
    pub server: Option<Vec<String>>,
    /// Where its number is.
    pub metric: Metric,
    /// What a number alone is of all its messages.
    pub statistic: Statistic,
    /// What its number counts.
    pub passes: Passes,
    /// The port that is filled in.
    pub port: u16,
    /// It is ended after so long.
    pub most: Duration,
}

impl ForeignRequest {
    /// Its command line.
    #[must_use]
    pub fn client_words(&self) -> String {
        self.client.join(" ")
    }

    /// Refuses what cannot be run, before anything is touched.
    ///
    /// # Errors
    /// What cannot be run, in words.
    pub fn check(&self) -> Result<(), String> {
        for (what, words) in [("client", Some(&self.client)), ("server", self.server.as_ref())] {
            if words.is_some_and(Vec::is_empty) {
                return Err(format!("--{what} names no program"));
            }
        }
        if self.statistic == Statistic::Mean && self.metric.has_percent() {
            return Err(
                "--statistic mean is for a number alone: the expression of --metric has a group \
                        `percent`, and a mean has none"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// As it is judged.
    fn told(&self) -> Client {
        Client {
            name: self.client_words(),
            command: self.client_words(),
            metric: self.metric.pattern().to_owned(),
            passes: self.passes,
        }
    }

    fn program(&self, words: &[String]) -> Option<Program> {
        let address = Bed::address(Role::Server).to_string();
        let port = self.port.to_string();
        let filled = |word: &String| word.replace("{address}", &address).replace("{port}", &port);
        let (program, rest) = words.split_first()?;
        Some(Program::foreign(&filled(program), rest.iter().map(filled).collect()))
    }
}

/// What was found in one part.
struct Reading {
    /// Percentiles and their values, ns; a mean stands alone, where the median would.
    found: Vec<(f64, f64)>,
    truth: Histogram,
    alone: u64,
    per_second: f64,
}

/// Whose client a part is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Somebody else's.
    Tool,
    /// Ours, beside it.
    Ours,
}

/// One client as it is judged.
struct Client {
    name: String,
    command: String,
    metric: String,
    passes: Passes,
}

/// All parts so far.
#[derive(Default)]
struct Readings {
    /// What its numbers are.
    statistic: Statistic,
    /// By delay.
    parts: Vec<(Nanos, Reading)>,
    /// Back to back: its medians, or its means.
    base: Vec<f64>,
}

/// Runs the client through the line and back to back, and judges it.
pub(super) fn measure(
    of: &mut Calibrating<'_>,
    request: &ForeignRequest,
    progress: &mut dyn Progress,
) -> Result<(), RecordError> {
    let of_either = || Readings { statistic: request.statistic, ..Readings::default() };
    let (mut readings, mut beside) = (of_either(), of_either());
    let mut why_not: Option<String> = None;
    for round in 0..of.request.runs {
        let mut order = in_turns(&of.request.delays);
        Rng::stream(of.request.seed, u64::from(round)).shuffle(&mut order);
        of.parts.order.push(Vec::new());
        for (who, between) in order {
            if of.is_stopped() {
                break;
            }
            let part = (who, between, round);
            match who {
                Who::Tool => one(of, request, part, &mut readings, progress)?,
                // What is asked is of the tool: ours that fails is told, and not tried again.
                Who::Ours if why_not.is_none() => {
                    let measured = one(of, request, part, &mut beside, progress);
                    why_not = measured.err().map(|error| error.to_string());
                }
                Who::Ours => {}
            }
        }
    }
    of.parts.common_pps = readings.per_second();
    let Some(mut judged_tool) = judged(of, request.told(), &readings) else { return Ok(()) };
    let own = judged(of, told_of_ours(of, request.statistic), &beside);
    let said = match (&judged_tool.foreign, own.as_ref().and_then(|own| own.foreign.as_ref())) {
        (Some(tool), Some(own)) => {
            ours::compared(of.first_delay(), (tool, &readings), (own, &beside))
        }
        _ => None,
    };
    judged_tool.notes.extend(said);
    if let Some(why) = why_not {
        judged_tool.notes.push(format!("ours is not known beside it: {why}"));
    }
    of.judged.push(judged_tool);
    of.judged.extend(own);
    Ok(())
}

/// Both clients through every delay and back to back.
fn in_turns(delays: &[Nanos]) -> Vec<(Who, PartOf)> {
    let line = |delay: &Nanos| PartOf::Line { delay: *delay };
    let between: Vec<PartOf> = delays.iter().map(line).chain([PartOf::BackToBack]).collect();
    let both = [Who::Tool, Who::Ours].into_iter();
    both.flat_map(|who| between.iter().map(move |of| (who, *of))).collect()
}

/// Ours, as it is judged.
fn told_of_ours(of: &Calibrating<'_>, statistic: Statistic) -> Client {
    Client {
        name: ours::NAME.to_owned(),
        command: format!("whylate {}", ours::words(of, of.setting.bed(), &others(of))),
        metric: ours::metric(statistic).to_owned(),
        passes: Passes::Both,
    }
}

fn one(
    of: &mut Calibrating<'_>,
    request: &ForeignRequest,
    (who, between, round): (Who, PartOf, u32),
    readings: &mut Readings,
    progress: &mut dyn Progress,
) -> Result<(), RecordError> {
    let number = of.parts.parts.len();
    if let Some(order) = of.parts.order.last_mut() {
        order.push(number as u32);
    }
    let (name, kind) = match who {
        Who::Tool => (request.client_words(), "foreign"),
        Who::Ours => (ours::NAME.to_owned(), "ours"),
    };
    of.step(&format!("{name}, run {} of {}", round + 1, of.request.runs), progress);
    let directory = format!("parts/{:03}-{kind}", number + 1);
    let mut part = CalibrationPart {
        backend: name,
        between,
        round,
        directory: directory.clone(),
        commands: Vec::new(),
        achieved_pps: 0.0,
        met: None,
        measured_p50: None,
        truth_p50: None,
        failed: None,
    };
    let reading = match between {
        PartOf::Line { delay } => {
            of.setting.prove(delay, progress)?;
            through(of, (who, request), (delay, &directory), &mut part).map(Some)
        }
        PartOf::BackToBack => {
            let bed = of.setting.direct().clone();
            let found = client(of, (who, request), (&bed, &directory), &mut part);
            found.map(|found| {
                readings.base.extend(median(&found));
                None
            })
        }
    };
    match reading {
        Ok(Some(reading)) => {
            part.achieved_pps = reading.per_second;
            part.truth_p50 = reading.truth.value_at(50.0).map(Nanos);
            let reported =
                median(&reading.found).filter(|_| request.statistic == Statistic::Median);
            part.measured_p50 = reported.map(|value| Nanos(value.round() as u64));
            if let PartOf::Line { delay } = between {
                readings.parts.push((delay, reading));
            }
        }
        Ok(None) => {}
        Err(_) if of.is_stopped() => {}
        // One that fails once fails again: nothing is known of it, and the reason is its own.
        Err(error) => {
            part.failed = Some(error.to_string());
            of.parts.parts.push(part);
            return Err(error);
        }
    }
    of.parts.parts.push(part);
    Ok(())
}

/// Client and server with the line between them.
fn through(
    of: &mut Calibrating<'_>,
    (who, request): (Who, &ForeignRequest),
    (delay, directory): (Nanos, &str),
    part: &mut CalibrationPart,
) -> Result<Reading, RecordError> {
    let place = of.setting.site.path.join(directory).join("line");
    let (most, passes) = match who {
        Who::Tool => (request.most, request.passes),
        Who::Ours => (ours::MOST, Passes::Both),
    };
    let line = of.setting.site.line(delay, most + SPARE, &place)?;
    part.commands.push(line.command.clone());
    let bed = of.setting.bed().clone();
    let found = client(of, (who, request), (&bed, directory), part);
    let (log, run) = line.end()?;
    let found = found?;
    let mut paired = Paired::new(passes, run.clock.hz);
    for row in segments::read_truths(&log)? {
        paired.take(&row?);
    }
    if paired.truth.is_empty() {
        return Err(RecordError::NotCalibrated(format!(
            "nothing of `{}` came through the delay line",
            part.backend
        )));
    }
    let per_second = paired.per_second();
    of.take_line_run(&run);
    Ok(Reading { found, truth: paired.truth, alone: paired.alone, per_second })
}

/// Runs whoever's turn it is in a bed; what it reported.
fn client(
    of: &Calibrating<'_>,
    (who, request): (Who, &ForeignRequest),
    (bed, directory): (&Bed, &str),
    part: &mut CalibrationPart,
) -> Result<Vec<(f64, f64)>, RecordError> {
    let cpus = others(of);
    match who {
        Who::Tool => run(of, request, (bed, &cpus), part),
        Who::Ours => {
            let place = of.setting.site.path.join(directory).join("client");
            ours::run(of, (bed, &cpus), (&place, request.statistic), part)
        }
    }
}

/// CPUs for client and server: all but the line's, which spins.
fn others(of: &Calibrating<'_>) -> Vec<CpuId> {
    let site = &of.setting.site;
    site.allowed.iter().copied().filter(|cpu| *cpu != site.line_cpu).collect()
}

/// Runs the server and the client in a bed; what the client reported.
fn run(
    of: &Calibrating<'_>,
    request: &ForeignRequest,
    (bed, cpus): (&Bed, &[CpuId]),
    part: &mut CalibrationPart,
) -> Result<Vec<(f64, f64)>, RecordError> {
    let stop = of.setting.site.stop;
    let mut server = None;
    if let Some(words) = &request.server
        && let Some(program) = request.program(words)
    {
        let program = program.inside(bed, Role::Server).on(cpus);
        part.commands.push(program.named().to_owned());
        let mut running = program.start()?;
        wait_until_it_listens(&mut running, request.port);
        server = Some(running);
    }
    let Some(program) = request.program(&request.client) else { return Ok(Vec::new()) };
    let program = program.inside(bed, Role::Client).on(cpus);
    part.commands.push(program.named().to_owned());
    let ended = program.run(stop, Some(request.most));
    // However it ended: nobody needs to know how a server that was told to go went.
    let said = server.map(|server| server.end(ENDING));
    let ended = ended?;
    if ended.killed || !ended.status.success() {
        let servers = said.and_then(Result::ok).map(|of| last_words(&of.stderr));
        let mut error = match ended.with_one_of(&[0]) {
            Ok(ended) => ChildError { what: ended.what, why: "it failed".to_owned() },
            Err(error) => error,
        };
        if let Some(words) = servers.filter(|words| !words.is_empty()) {
            error.why.push_str("; its server: ");
            error.why.push_str(&words);
        }
        return Err(error.into());
    }
    let found = request.metric.find(&format!("{}\n{}", ended.stdout, ended.stderr));
    if found.is_empty() {
        let why = format!(
            "`{}` finds nothing in what it printed, which ends with: {}",
            request.metric.pattern(),
            last_words(&format!("{}\n{}", ended.stdout, ended.stderr))
        );
        return Err(ChildError { what: ended.what, why }.into());
    }
    Ok(found)
}

/// Until a socket of its namespace has the port; a server that shows none is given its time.
fn wait_until_it_listens(server: &mut Running, port: u16) {
    let wanted = format!(":{port:04X} ");
    let tables = ["udp", "tcp", "udp6", "tcp6"];
    let looks = LISTENS.as_millis() / LOOK.as_millis();
    for _ in 0..looks {
        let listens = tables.iter().any(|table| {
            let path = format!("/proc/{}/net/{table}", server.pid());
            std::fs::read_to_string(path).is_ok_and(|text| text.contains(&wanted))
        });
        if listens || server.is_over() {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn median(found: &[(f64, f64)]) -> Option<f64> {
    found.iter().find(|(percent, _)| (percent - 50.0).abs() < 1e-9).map(|(_, value)| *value)
}

fn mean(values: &[f64]) -> Option<f64> {
    let n = values.len();
    (n > 0).then(|| values.iter().sum::<f64>() / n as f64)
}

impl Readings {
    fn per_second(&self) -> f64 {
        let rates: Vec<f64> = self.parts.iter().map(|(_, of)| of.per_second).collect();
        mean(&rates).unwrap_or(0.0)
    }

    /// The truth of what its number is: the median, or the mean; ns.
    fn truth_of(&self, truth: &Histogram) -> Option<f64> {
        match self.statistic {
            Statistic::Median => truth.value_at(50.0).map(|value| value as f64),
            Statistic::Mean => truth.mean(),
        }
    }

    /// What it reported less the truth at the same percentile, run by run, at this delay; times `factor`,
    /// where its numbers are taken for another multiple of what they are. A percentile that the truth of any
    /// run has too few messages for has no interval. Of a mean there are none.
    fn curve(&self, delay: Nanos, factor: f64) -> Vec<ErrorAt> {
        if self.statistic == Statistic::Mean {
            return Vec::new();
        }
        let mut errors: BTreeMap<u64, (f64, Vec<f64>, bool)> = BTreeMap::new();
        for (_, of) in self.parts.iter().filter(|(set, _)| *set == delay) {
            for (percent, value) in &of.found {
                let Some(truth) = of.truth.value_at(*percent) else { continue };
                // Positive numbers are in the order of their bits.
                let at = errors.entry(percent.to_bits()).or_insert((*percent, Vec::new(), true));
                at.1.push(factor * value - truth as f64);
                at.2 &= of.truth.len() >= smallest_n(percent / 100.0);
            }
        }
        let at = |(percent, of, supported): (f64, Vec<f64>, bool)| {
            let at = between_runs(percent, &of);
            if supported { at } else { ErrorAt { low_ns: None, high_ns: None, ..at } }
        };
        errors.into_values().map(at).collect()
    }

    /// How far its mean lies from that of the truth at this delay, with `base` taken off, over runs; times
    /// `factor`, where it is taken for another multiple of what it is. None where its number is no mean.
    fn error_of_mean(&self, delay: Nanos, factor: f64, base: f64) -> Option<ErrorAt> {
        if self.statistic != Statistic::Mean {
            return None;
        }
        let here = self.parts.iter().filter(|(set, _)| *set == delay);
        let error = |(_, of): &(Nanos, Reading)| {
            Some(factor * (median(&of.found)? - base) - of.truth.mean()?)
        };
        let errors: Vec<f64> = here.filter_map(error).collect();
        (!errors.is_empty()).then(|| between_runs(50.0, &errors))
    }

    /// Truth and report of each part: at the median, or of the mean.
    fn points(&self) -> Vec<(f64, f64)> {
        let point =
            |(_, of): &(Nanos, Reading)| Some((self.truth_of(&of.truth)?, median(&of.found)?));
        self.parts.iter().filter_map(point).collect()
    }

    fn at(&self, delay: Nanos) -> Option<ForeignReading> {
        let parts = || self.parts.iter().filter(move |(set, _)| *set == delay);
        let reported: Vec<f64> = parts().filter_map(|(_, of)| median(&of.found)).collect();
        let mut truth = Histogram::new();
        parts().for_each(|(_, of)| truth.add(&of.truth));
        Some(ForeignReading {
            delay,
            truth: Nanos(self.truth_of(&truth)?.round() as u64),
            reported_ns: mean(&reported)?,
            readings: u32::try_from(reported.len()).unwrap_or(u32::MAX),
        })
    }
}

/// Of few runs nothing is said of how far they lie apart.
fn between_runs(percent: f64, errors: &[f64]) -> ErrorAt {
    let error_ns = mean(errors);
    let spread = Spread::of_mean(errors).filter(|_| errors.len() >= FEWEST_RUNS);
    let interval = spread.zip(error_ns).map(|(spread, mean)| spread.around(mean));
    ErrorAt {
        percent,
        error_ns,
        low_ns: interval.map(|of| of.low),
        high_ns: interval.map(|of| of.high),
        n_eff: errors.len() as f64,
    }
}

fn judged(of: &Calibrating<'_>, client: Client, readings: &Readings) -> Option<CalibratedBackend> {
    let delay = of.first_delay();
    let (raw, base) = (readings.curve(delay, 1.0), mean(&readings.base));
    if !readings.parts.iter().any(|(set, _)| *set == delay) {
        return None;
    }
    let tolerance = of.request.tolerance.0 as f64;
    let off = compensated(&raw, base.unwrap_or(0.0));
    let slope = least_squares(&readings.points());
    let tool = ForeignTool {
        command: client.command,
        metric: client.metric,
        passes: client.passes.count(),
        readings: of.request.delays.iter().filter_map(|delay| readings.at(*delay)).collect(),
        slope: slope.map(|slope| stored_slope(SLOPE_OF, &slope)),
    };
    let mut truth = Histogram::new();
    let here = || readings.parts.iter().filter(move |(set, _)| *set == delay);
    here().for_each(|(_, reading)| truth.add(&reading.truth));
    let notes = notes(readings, &tool, (delay, base, tolerance));
    Some(CalibratedBackend {
        backend: client.name,
        from: "the tool's own".to_owned(),
        to: "the tool's own".to_owned(),
        definition: "as the tool reports it".to_owned(),
        frame_bytes: None,
        runs: u32::try_from(here().count()).unwrap_or(u32::MAX),
        n: truth.len(),
        without_truth: 0,
        without_measurement: here().map(|(_, reading)| reading.alone).sum(),
        asked_pps: None,
        achieved_pps: readings.per_second(),
        measured: reported(&raw, readings, delay),
        truth: quantiles(&truth),
        errors_raw: raw.iter().map(stored).collect(),
        errors_compensated: off.iter().map(stored).collect(),
        base: base.map(|base| Nanos(base.round() as u64)),
        base_n: readings.base.len() as u64,
        limit_raw: limit(&raw, tolerance),
        limit_compensated: limit(&off, tolerance),
        error_min_ns: 0,
        error_quantiles: Vec::new(),
        foreign: Some(tool),
        notes,
    })
}

#[cfg(test)]
mod tests;
