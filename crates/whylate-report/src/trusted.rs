//! How far calibrations let the numbers of a run be trusted: what is shown grey, and why.
//!
//! A number beyond the limit is shown, greyed and with a mark before it: it was measured, and nobody
//! knows how much of it is the client's own. The largest value of a series lies beyond every limit.

use std::fmt::Write;

use whylate_model::Nanos;
use whylate_model::backends::BackendRole;
use whylate_model::calibration::Trust;
use whylate_model::flow::Flow;
use whylate_model::origin::Share;
use whylate_model::run::Run;

use crate::numbers::{self, ABSENT, MARK, Value, rate};

/// Differences between the conditions of a box and of its client's calibration that are told.
const MOST_OTHER: usize = 8;

/// The percentile of the largest value.
pub(crate) const MAX: f64 = 100.0;

/// How far the calibration of its backend lets a series be trusted; none of a series that is no
/// latency of a calibrated backend.
pub(crate) fn of_series<'a>(run: &'a Run, series: &str) -> Option<&'a Trust> {
    // That of a sum is of all its recordings.
    let summed = run.series.iter().find(|of| of.name == series).and_then(|of| of.trust.as_ref());
    if summed.is_some() {
        return summed;
    }
    // Flows of a sum that stayed apart may be in one series.
    let mut flows = run.flows.iter().filter(|flow| is_latency(flow, series)).peekable();
    if flows.peek().is_some() {
        let trusts = flows.filter_map(|flow| flow.trust.as_ref());
        return trusts.min_by(|a, b| a.reach().total_cmp(&b.reach()));
    }
    let mut sizes = run.device.iter().flat_map(|of| &of.sizes);
    if let Some(at) = sizes.find(|at| at.series.as_deref() == Some(series)) {
        return at.trust.as_ref();
    }
    let rows = run.backends.iter().flat_map(|of| &of.rows);
    let mut measured = rows.filter_map(|row| row.measured.as_ref());
    measured
        .find(|of| of.service == series || of.response.as_deref() == Some(series))?
        .trust
        .as_ref()
}

/// Of what is known of two the one that trusts less: nothing is known where neither was calibrated.
pub(crate) fn less(one: Option<Trust>, other: Option<Trust>) -> Option<Trust> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.least_of(other)),
        (one, other) => one.or(other),
    }
}

/// Do its values hold what the client adds? Lateness and the distances of sends have no way in them.
fn is_latency(flow: &Flow, series: &str) -> bool {
    let whole = [&flow.service, &flow.response].into_iter().flatten();
    let parts = flow.parts.iter().map(|part| &part.response);
    whole.chain(parts).any(|name| name == series)
}

/// Does a number of this series at this percentile lie beyond what may be trusted?
pub(crate) fn is_beyond(run: &Run, series: &str, percent: f64) -> bool {
    of_series(run, series).is_some_and(|trust| trust.is_beyond(percent))
}

/// Does a number of what one recording of a sum added at this percentile?
pub(crate) fn is_beyond_in(share: &Share, percent: f64) -> bool {
    share.trust.as_ref().is_some_and(|trust| trust.is_beyond(percent))
}

/// The share of samples below which a curve is beyond the limit; none where nothing is known.
pub(crate) fn share(run: &Run, series: &str) -> Option<f64> {
    let trust = of_series(run, series)?;
    Some(trust.limit_percent.map_or(1.0, |percent| 1.0 - percent / 100.0))
}

/// A cell of a table, marked where it lies beyond; one without a number stays.
pub(crate) fn marked(cell: String, beyond: bool) -> String {
    if beyond && cell != ABSENT { format!("{MARK}{cell}") } else { cell }
}

/// What the grey means, a sentence for each flow, and each backend of several, that was calibrated.
pub(crate) fn said(run: &Run) -> Vec<String> {
    let flows = run.flows.iter().map(|flow| (flow.name.as_str(), flow.trust.as_ref()));
    let rows = run.backends.iter().flat_map(|of| &of.rows);
    // The control is the first one again.
    let rows = rows.filter(|row| row.role != BackendRole::Control).map(|row| {
        let trust = row.measured.as_ref().and_then(|of| of.trust.as_ref());
        (row.backend.as_str(), trust)
    });
    let all = flows.chain(rows).filter_map(|(name, trust)| Some(sentence(name, trust?)));
    all.chain(of_device(run)).chain(of_sum(run)).collect()
}

/// The same of series of a sum that belong to no flow of it: each limit once.
fn of_sum(run: &Run) -> Vec<String> {
    let of_flow = |name: &str| run.flows.iter().any(|flow| is_latency(flow, name));
    let own = run.series.iter().filter(|series| !of_flow(&series.name));
    let limits = each_limit_once(own.filter_map(|series| series.trust.as_ref()));
    let said = |trust: &Trust| sentence(&format!("what {} measured", trust.backend), trust);
    limits.iter().map(said).collect()
}

/// The same of a box: each limit once, with all in which sizes and rates differ from its calibration's.
fn of_device(run: &Run) -> Vec<String> {
    let sizes = run.device.iter().flat_map(|of| &of.sizes);
    let limits = each_limit_once(sizes.filter_map(|at| at.trust.as_ref()));
    limits.iter().map(|trust| sentence("what was measured through the box", trust)).collect()
}

fn each_limit_once<'a>(all: impl Iterator<Item = &'a Trust>) -> Vec<Trust> {
    let mut limits: Vec<Trust> = Vec::new();
    for trust in all {
        let same = |known: &&mut Trust| {
            known.backend == trust.backend
                && known.calibrated_at_ns == trust.calibrated_at_ns
                && known.limit_percent == trust.limit_percent
        };
        let Some(known) = limits.iter_mut().find(same) else {
            limits.push(trust.clone());
            continue;
        };
        for other in &trust.other {
            if !known.other.contains(other) && known.other.len() < MOST_OTHER {
                known.other.push(other.clone());
            }
        }
    }
    limits
}

fn sentence(flow: &str, trust: &Trust) -> String {
    let (flow, backend) = (flow, &trust.backend);
    let what = match trust.limit_percent {
        Some(limit) => {
            format!("{flow}: numbers beyond p{limit}, marked {MARK}, may be the client's own")
        }
        None => format!("{flow}: all numbers marked {MARK} may be the client's own"),
    };
    let tolerance = Value::from(trust.tolerance);
    let mut said = format!(
        "{what}. A calibration of {backend} on this machine, {} earlier at {}, found ",
        age(trust.age),
        rate(trust.calibrated_pps),
    );
    // Writing to a String cannot fail.
    let _ = match trust.limit_percent {
        Some(limit) => write!(said, "errors of at most {tolerance} up to p{limit}"),
        None => write!(said, "errors above {tolerance} at every percentile"),
    };
    // Nothing is taken off silently, nor is it off.
    if let Some(base) = trust.base.filter(|base| base.0 > 0) {
        let even = if trust.limit_percent.is_none() { "even " } else { "" };
        let base = Value::from(base);
        let _ = write!(said, ", {even}after subtracting a constant {base} (not subtracted here");
        let _ = match (trust.limit_percent, trust.limit_raw_percent) {
            (_, Some(raw)) => write!(said, "; without subtracting, up to p{raw})"),
            (Some(_), None) => write!(said, "; without subtracting, at no percentile)"),
            (None, None) => write!(said, ")"),
        };
    }
    said.push('.');
    if !trust.other.is_empty() {
        let other = trust.other.join("; ");
        let _ = write!(said, " Conditions differ: {other}.");
    }
    if let Some(changed) = &trust.stale {
        let _ = write!(said, " That calibration is STALE: {changed}. Calibrate again.");
    }
    said
}

/// A time since something, in the unit that fits: `40 s`, `25 min`, `3.1 h`, `12.0 days`.
pub(crate) fn age(of: Nanos) -> String {
    numbers::age(of.0 as f64 / 1e9)
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::calibration::USUAL_TOLERANCE;
    use whylate_model::flow::ProcessVerdict;
    use whylate_model::series::{Definition, Quantile};

    use super::*;
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;

    pub(crate) fn trust(limit_percent: Option<f64>) -> Trust {
        Trust {
            backend: "udp spin".to_owned(),
            limit_percent,
            limit_raw_percent: None,
            base: Some(Nanos(3_200)),
            tolerance: USUAL_TOLERANCE,
            calibrated_at_ns: 951_827_696_000_000_000,
            age: Nanos(7_200_000_000_000),
            calibrated_pps: 10_000.0,
            stale: None,
            other: Vec::new(),
        }
    }

    /// A run of one flow of round trips whose backend may be trusted so far.
    pub(crate) fn calibrated(limit_percent: Option<f64>) -> Run {
        let mut of = flow(1_000_000, ProcessVerdict::Held);
        of.trust = Some(trust(limit_percent));
        let mut run = Run { flows: vec![of], ..recorded() };
        run.gaps.clear();
        run.series.truncate(1);
        let series = &mut run.series[0];
        "rtt-response".clone_into(&mut series.name);
        "response times".clone_into(&mut series.label);
        series.definition = Definition::Response;
        (series.resolution_ns, series.n) = (10.0, 1_000_000);
        (series.min, series.max) = (Some(Nanos(10_000)), Some(Nanos(900_000)));
        let at = |percent, ns| Quantile {
            percent,
            value: Some(Nanos(ns)),
            low: Some(Nanos(ns - 100)),
            high: Some(Nanos(ns + 100)),
            n_eff: 1e6,
        };
        series.quantiles = vec![
            at(50.0, 12_000),
            at(90.0, 14_000),
            at(99.0, 20_000),
            at(99.9, 60_000),
            at(99.99, 300_000),
        ];
        run
    }

    #[test]
    fn only_latencies_of_a_calibrated_flow_are_beyond_its_limit() {
        let mut run = calibrated(Some(99.0));
        let latency = run.flows[0].response.clone().unwrap();
        let lateness = run.flows[0].lateness.clone().unwrap();
        assert!(!is_beyond(&run, &latency, 99.0) && is_beyond(&run, &latency, 99.9));
        assert!(is_beyond(&run, &latency, MAX));
        assert!(!is_beyond(&run, &lateness, MAX) && !is_beyond(&run, "gap-cpu1", MAX));
        assert!((share(&run, &latency).unwrap() - 0.01).abs() < 1e-12);
        run.flows[0].trust = None;
        assert!(!is_beyond(&run, &latency, MAX) && said(&run).is_empty());
        assert_eq!(share(&run, &latency), None);
    }

    #[test]
    fn what_a_client_measured_of_a_box_is_grey_beyond_its_limit_at_each_size() {
        let mut run = calibrated(None);
        run.flows.clear();
        let mut of = crate::device::tests::device();
        let at = crate::device::tests::at_size();
        let sized = |bytes: u32, other: &str| whylate_model::device::DeviceAtSize {
            frame_bytes: bytes,
            series: Some(format!("box-{bytes}-there")),
            trust: Some(Trust { other: vec![other.to_owned()], ..trust(Some(99.0)) }),
            ..at.clone()
        };
        of.sizes = vec![sized(128, "128 bytes"), sized(512, "512 bytes"), at.clone()];
        run.device = Some(Box::new(of));
        assert!(is_beyond(&run, "box-128-there", 99.9) && !is_beyond(&run, "box-128-there", 99.0));
        assert!(!is_beyond(&run, "box-local-64-there", 99.9), "not calibrated");
        let said = said(&run);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("through the box: numbers beyond") && said[0].contains("p99"),
            "{said:?}"
        );
        assert!(said[0].contains("Conditions differ: 128 bytes; 512 bytes."), "{said:?}");
        let table = crate::device::latencies(run.device.as_deref().unwrap());
        assert!(table.rows[0][7].is_beyond() && !table.rows[0][6].is_beyond());
        assert!(!table.rows[2][7].is_beyond(), "{table:?}");
    }

    #[test]
    fn the_sentence_tells_limit_age_constant_and_staleness() {
        let mut run = calibrated(Some(99.9));
        let text = said(&run).join(" ");
        for words in [
            "rtt: numbers beyond p99.9, marked ~,",
            "udp spin on this machine, 2.0 h earlier at 10,000/s",
            "found errors of at most 1 µs up to p99.9, after subtracting a constant 3.2 µs",
            "(not subtracted here; without subtracting, at no percentile).",
        ] {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
        assert!(!text.contains("STALE") && !text.contains("Conditions differ"));
        if let Some(trust) = run.flows[0].trust.as_mut() {
            trust.other = vec!["calibrated with 64 bytes, not 512".to_owned()];
        }
        let text = said(&run).join(" ");
        assert!(text.contains("Conditions differ: calibrated with 64 bytes, not 512."), "{text}");
        run.flows[0].trust =
            Some(Trust { stale: Some("kernel: 6.12.1, now 6.12.2".to_owned()), ..trust(None) });
        let text = said(&run).join(" ");
        assert!(
            text.contains("all numbers marked ~") && text.contains("STALE: kernel: 6.12.1"),
            "{text}"
        );
    }

    #[test]
    fn ages_have_the_unit_that_fits() {
        let text = |seconds: u64| age(Nanos(seconds * 1_000_000_000));
        assert_eq!(text(40), "40 s");
        assert_eq!(text(1_500), "25 min");
        assert_eq!(text(11_160), "3.1 h");
        assert_eq!(text(1_036_800), "12.0 days");
    }

    #[test]
    fn a_cell_without_a_number_has_no_mark() {
        assert_eq!(marked("12 µs".to_owned(), true), "~12 µs");
        assert_eq!(marked("12 µs".to_owned(), false), "12 µs");
        assert_eq!(marked("–".to_owned(), true), "–");
    }
}
