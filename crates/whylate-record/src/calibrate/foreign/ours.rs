//! A client of ours beside one of somebody else: over the same line, in the same rounds, there and back, so
//! that it is told what ours would say of that path.
//!
//! It sends by udp, asks again when the reply has come, and sleeps in the receiving call meanwhile, as
//! clients do that are told nothing else. Nothing of it is kept: calibrations of ours are one way, message by
//! message.

use std::path::Path;
use std::time::Duration;

use whylate_model::calibration::Slope;
use whylate_model::calibration_parts::CalibrationPart;
use whylate_model::directory::RunDir;
use whylate_model::run::Run;
use whylate_model::{CpuId, Nanos};
use whylate_net::lab::Bed;

use super::super::Calibrating;
use super::{ForeignTool, Readings, Statistic};
use crate::RecordError;
use crate::child::Program;

/// What it is called.
pub(super) const NAME: &str = "whylate rtt, udp block";
/// Where its number is.
pub(super) fn metric(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Median => "the quantiles of its round trips",
        Statistic::Mean => "the mean of its round trips",
    }
}

/// Length of a run at most: closed loops have enough by then, and the tool's own time is not known.
const LONGEST: Nanos = Nanos(1_000_000_000);
/// Discarded before each at most.
const LONGEST_WARMUP: Nanos = Nanos(200_000_000);
/// What it may take beyond that: to start, and to write down.
pub(super) const MOST: Duration = Duration::from_secs(60);

/// Its command line in this bed.
pub(super) fn words(of: &Calibrating<'_>, bed: &Bed, cpus: &[CpuId]) -> String {
    let (site, request) = (&of.setting.site, of.request);
    let cpu = site.client_cpu;
    // The line's CPU is taken: where there is no third one both ends sleep on one.
    let other = cpus.iter().copied().find(|other| *other != cpu).unwrap_or(cpu);
    let duration = request.duration.min(LONGEST).0;
    let warmup = request.warmup.min(LONGEST_WARMUP).0;
    let (name, bytes, seed, idle) = (bed.name(), site.bytes, site.seed, site.idle());
    format!(
        "rtt --bed {name} --transport udp --wait block --arrivals closed --size {bytes} --duration {duration}ns \
         --warmup {warmup}ns --cpus {cpu} --reflector-cpus {other} --seed {seed} --no-trace{idle}"
    )
}

/// Runs it in a bed, with its run directory there; what it reported.
pub(super) fn run(
    of: &Calibrating<'_>,
    (bed, cpus): (&Bed, &[CpuId]),
    (directory, statistic): (&Path, Statistic),
    part: &mut CalibrationPart,
) -> Result<Vec<(f64, f64)>, RecordError> {
    let site = &of.setting.site;
    let client = Program::whylate(site.program, &words(of, bed, cpus))
        .into_directory(directory)
        .on(&site.allowed);
    part.commands.push(client.named().to_owned());
    client.run(site.stop, Some(MOST))?.recorded()?;
    let found = reported(&RunDir::open(directory)?.read_run()?, statistic);
    if found.is_empty() {
        return Err(RecordError::NotCalibrated(format!("`{}` had no replies", client.named())));
    }
    Ok(found)
}

/// Percentiles of its round trips and their values, ns; where the tool beside it has a mean, its mean, in the
/// median's place.
fn reported(run: &Run, statistic: Statistic) -> Vec<(f64, f64)> {
    let service = run.flows.first().and_then(|flow| flow.service.as_ref());
    let Some(series) = run.series.iter().find(|series| Some(&series.name) == service) else {
        return Vec::new();
    };
    match statistic {
        Statistic::Median => {
            let known = series.quantiles.iter();
            known.filter_map(|at| Some((at.percent, at.value?.0 as f64))).collect()
        }
        Statistic::Mean => series.mean_ns.map(|mean| (50.0, mean)).into_iter().collect(),
    }
}

/// What the tool says of a path, and ours of the same; none where either has nothing at this delay.
pub(super) fn compared(
    delay: Nanos,
    (tool, theirs): (&ForeignTool, &Readings),
    (own, ours): (&ForeignTool, &Readings),
) -> Option<String> {
    let (theirs, ours) = (theirs.at(delay)?, ours.at(delay)?);
    if ours.reported_ns <= 0.0 {
        return None;
    }
    let ratio = theirs.reported_ns / ours.reported_ns;
    let time = |ns: f64| Nanos(ns.max(0.0).round() as u64);
    let mut said = format!(
        "beside it, over the same line and in the same rounds, ours ({NAME}) says {} there and back at a \
         delay of {delay}, and it {}: {ratio:.2} of ours",
        time(ours.reported_ns),
        time(theirs.reported_ns),
    );
    let slope = |of: &ForeignTool| of.slope.as_ref().map(|slope: &Slope| slope.value);
    if let Some((its, own)) = slope(tool).zip(slope(own)) {
        let more = format!("; over the truth ours rises by {own:.3}, and its number by {its:.3}");
        said.push_str(&more);
    }
    if tool.halves() {
        said.push_str(": the halving is what they differ by");
    }
    Some(said)
}
