//! What of a calibration is kept for later measurements, and what later measurements are told of it.

use std::path::Path;

use whylate_host::calibrations::{Asked, Calibrated, Store, Way, over_bed};
use whylate_model::Nanos;
use whylate_model::calibration::{CalibratedBackend, Trust};
use whylate_model::host::Fingerprint;
use whylate_model::lab::BedKind;
use whylate_model::run::{Run, RunState};
use whylate_model::trust;

/// Runs that a limit needs to be kept: fewer say nothing of how runs differ.
const FEWEST_RUNS: u32 = 3;

/// Why the limits of this backend are shown and not kept; none where they are.
#[must_use]
pub(super) fn too_few(of: &CalibratedBackend) -> Option<String> {
    let few = of.runs < FEWEST_RUNS && of.foreign.is_none();
    few.then(|| {
        format!(
            "its limits are not kept for later measurements: {} runs, and {FEWEST_RUNS} are needed to see \
             how runs differ",
            of.runs
        )
    })
}

/// Is the calibration itself not to be relied on? Then nothing else is.
#[must_use]
pub fn is_poor(run: &Run) -> bool {
    trust::Trust::of(run).level() == trust::Level::Poor
}

/// What of this calibration is kept. Nothing where an error was planted, where it was not finished or trust in it is
/// poor, of backends with too few runs, or of clients of somebody else: no measurement of ours is one of theirs.
#[must_use]
pub fn kept(run: &Run, directory: &Path, bytes: usize) -> Vec<Calibrated> {
    let Some(calibration) = &run.calibration else { return Vec::new() };
    let planted = run.calibration_parts.as_ref().is_some_and(|parts| !parts.planted.is_empty());
    if planted || run.state != RunState::Complete || is_poor(run) {
        return Vec::new();
    }
    let path = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let enough = |of: &&CalibratedBackend| of.foreign.is_none() && too_few(of).is_none();
    let ours = calibration.backends.iter().filter(enough);
    let of = ours.map(|of| Calibrated {
        backend: of.backend.clone(),
        limit_raw: of.limit_raw.percent,
        limit_compensated: of.limit_compensated.percent,
        base: of.base,
        tolerance: calibration.tolerance,
        per_second: of.achieved_pps,
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        // The line is in a bed that was left open for it, and the curves are of its first delay.
        way: Some(Way {
            definition: of.definition.clone(),
            over: over_bed(Some(BedKind::Open)),
            delay: Some(calibration.line.delay.clone()),
        }),
        at_ns: calibration.made_at_ns,
        run: path.display().to_string(),
    });
    of.collect()
}

/// How far measurements of a backend may be trusted on this host; none where it was never calibrated here.
#[must_use]
pub(crate) fn trust(
    store: &Store,
    host: &Fingerprint,
    asked: Asked<'_>,
    now_ns: u64,
) -> Option<Trust> {
    let found = store.find(host, asked)?;
    let of = found.of;
    Some(Trust {
        backend: of.backend.clone(),
        limit_percent: of.limit_compensated,
        limit_raw_percent: of.limit_raw,
        base: of.base,
        tolerance: of.tolerance,
        calibrated_at_ns: of.at_ns,
        age: Nanos(now_ns.saturating_sub(of.at_ns)),
        calibrated_pps: of.per_second,
        stale: found.stale,
        other: found.other,
    })
}

#[cfg(test)]
mod tests {
    use whylate_model::directory::parse_run;
    use whylate_model::host::Knob;
    use whylate_model::run::Verdict;

    use super::*;

    #[test]
    fn a_calibration_in_which_trust_is_poor_is_kept_for_nobody() {
        let json = include_str!("../../../../tests/runs/calibrate/run.json");
        let mut run = parse_run(Path::new("run.json"), json.as_bytes()).unwrap();
        (run.state, run.verdict) = (RunState::Complete, Verdict::Trustworthy);
        run.warnings.clear();
        for of in &mut run.calibration.as_mut().unwrap().backends {
            of.runs = FEWEST_RUNS;
        }
        let kept = |run: &Run| kept(run, Path::new("run"), 64).len();
        assert!(!is_poor(&run) && kept(&run) > 0);
        let reasons = vec!["this machine changed during the run".to_owned()];
        run.verdict = Verdict::Untrustworthy { reasons };
        assert!(is_poor(&run));
        assert_eq!(kept(&run), 0);
    }

    #[test]
    fn a_later_measurement_is_told_its_limit_and_what_of_the_host_changed_since() {
        let host = |turbo: &str| Fingerprint {
            hostname: "box".to_owned(),
            knobs: [("turbo".to_owned(), Knob::Value(turbo.to_owned()))].into(),
            ..Fingerprint::default()
        };
        let mut store = Store::default();
        let way = Way {
            definition: "one-way".to_owned(),
            over: over_bed(Some(BedKind::Open)),
            delay: None,
        };
        let of = Calibrated {
            backend: "xdp spin".to_owned(),
            limit_raw: None,
            limit_compensated: Some(99.9),
            base: Some(Nanos(3_000)),
            tolerance: Nanos(1_000),
            per_second: 10_000.0,
            bytes: 64,
            way: Some(Way { delay: Some("20.0us".to_owned()), ..way.clone() }),
            at_ns: 5,
            run: "/runs/one".to_owned(),
        };
        store.add(&host("on"), [of]);
        let asked = |backend| Asked { backend, per_second: Some(10_000.0), bytes: 64, way: &way };
        let told = trust(&store, &host("on"), asked("xdp spin"), 25).unwrap();
        assert_eq!((told.limit_percent, told.age, &told.stale), (Some(99.9), Nanos(20), &None));
        assert!(told.other.is_empty(), "{told:?}");
        let slower = Asked { per_second: Some(100.0), bytes: 512, ..asked("xdp spin") };
        let told = trust(&store, &host("on"), slower, 25).unwrap();
        let other = ["calibrated with 64 bytes, not 512", "calibrated at 10,000/s, not 100/s"];
        assert_eq!(told.other, other);
        assert!(told.is_beyond(99.99) && !told.is_beyond(99.9));
        let back = Way { definition: "rtt".to_owned(), over: "loopback".to_owned(), delay: None };
        let told =
            trust(&store, &host("on"), Asked { way: &back, ..asked("xdp spin") }, 25).unwrap();
        let [other] = &told.other[..] else { panic!("the way alone differs: {told:?}") };
        let begins = "calibrated for one-way latency over an open test network (";
        assert!(other.starts_with(begins), "{other}");
        assert!(other.ends_with("), not for round trips over loopback"), "{other}");
        let told = trust(&store, &host("off"), asked("xdp spin"), 25).unwrap();
        assert_eq!(told.stale.as_deref(), Some("turbo was on and is off"));
        assert_eq!(trust(&store, &host("on"), asked("udp spin"), 25), None);
    }
}
