//! What stands behind a calibration: rates, slopes, what was planted, in tables and sentences.

use whylate_model::calibration::Limit;
use whylate_model::calibration_parts::{
    BackendSlope, CalibrationParts, HeldRate, PartOf, PlantedFound,
};

use super::slope_in_words;
use crate::doc::Table;
use crate::numbers::{Value, count, difference, difference_with_ends, rate, time, with_ends};

/// What each backend held of each rate that it was asked for; none where that was not looked at.
pub(super) fn rates(of: &CalibrationParts) -> Option<Table> {
    let head = ["backend", "attempt", "asked", "sent", "came behind the line"];
    let row = |one: &HeldRate| {
        vec![
            one.backend.clone(),
            one.attempt.saturating_add(1).to_string(),
            rate(one.asked_pps),
            rate(one.sent_pps),
            rate(one.received_pps),
        ]
    };
    Table::new("Rates that each held, by the sink", &head).with(of.held.iter().map(row)).filled()
}

/// How the median of each backend follows the delay; none where there was one delay.
pub(super) fn slopes(of: &CalibrationParts) -> Option<Table> {
    let head = ["backend", "ns for a ns of delay", "95% interval", "at no delay", "points"];
    let row = |one: &BackendSlope| {
        let slope = one.slope.as_ref()?;
        let ends = slope.low.zip(slope.high);
        let ends = ends.map(|(low, high)| (Value::Ratio(low), Value::Ratio(high)));
        let [value, ends] = with_ends(Value::Ratio(slope.value), ends);
        Some(vec![
            one.backend.clone(),
            value,
            ends,
            difference(slope.intercept),
            slope.points.to_string(),
        ])
    };
    Table::new("How medians follow the delay", &head)
        .with(of.slopes.iter().filter_map(row))
        .filled()
}

/// What was planted on purpose and found; none in a calibration that is to be used.
pub(super) fn planted(of: &CalibrationParts) -> Option<Table> {
    let head =
        ["backend", "with it", "without", "difference", "95% interval", "limit without", "with"];
    let limit = |limit: &Limit| limit.percent.map_or("none".to_owned(), |of| format!("p{of}"));
    let row = |one: &PlantedFound| {
        let ends = one.interval_ns.map(|(low, high)| (Value::Time(low), Value::Time(high)));
        let of = Value::from(one.difference_ns.map(Value::Time));
        let [difference, ends] = difference_with_ends(of, ends);
        vec![
            one.backend.clone(),
            count(one.planted),
            count(one.unplanted),
            difference,
            ends,
            limit(&one.limit_without),
            limit(&one.limit_with),
        ]
    };
    Table::new("Planted on purpose, and found", &head).with(of.planted.iter().map(row)).filled()
}

/// What is to be said of the parts.
pub(super) fn told(of: &CalibrationParts) -> Vec<String> {
    let mut said = vec![format!(
        "{} parts in {} rounds, in an order that the seed drew, each a line and a client of its own; all were \
         asked for {}, what all of them hold of the {} that were wanted",
        of.parts.len(),
        of.order.len(),
        rate(of.common_pps),
        rate(of.wanted_pps)
    )];
    let attempts = of.attempts();
    if attempts.len() > 1 {
        let asked: Vec<String> = attempts.iter().map(|pps| rate(*pps)).collect();
        let last = attempts.last().copied().unwrap_or_default();
        let untried =
            if of.common_pps < last { "; that of the parts is below all of them" } else { "" };
        said.push(format!(
            "{} attempts at a rate that all hold: {}{untried}",
            attempts.len(),
            asked.join(", ")
        ));
    }
    if !of.parts.is_empty() {
        said.push(
            "the histogram log has beside what is drawn the errors message by message, what was measured \
             back to back, and what other delays than the first one gave"
                .to_owned(),
        );
    }
    said.extend(of.not_compared.iter().map(|why| format!("not to be compared: {why}")));
    said.extend(of.slopes.iter().filter_map(|one| {
        let slope = one.slope.as_ref().filter(|slope| slope.low.is_none())?;
        Some(format!("{}: slope {}", one.backend, slope_in_words(slope)))
    }));
    said.extend(of.planted.iter().map(|one| {
        format!(
            "PLANTED in {}: {}{}; not a calibration to be used",
            one.backend,
            one.what,
            one.size_ns
                .map_or(String::new(), |ns| format!(", {} by the client's counter", time(ns)))
        )
    }));
    let failed = of.parts.iter().filter_map(|part| {
        let between = match part.between {
            PartOf::Line { delay } => format!("at a delay of {delay}"),
            PartOf::BackToBack => "back to back".to_owned(),
        };
        let (backend, why) = (&part.backend, part.failed.as_ref()?);
        Some(format!("{backend} {between}, round {}: {why}", part.round + 1))
    });
    said.extend(failed);
    said
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_model::calibration::{LimitEnd, Slope};
    use whylate_model::calibration_parts::CalibrationPart;

    use super::*;
    use crate::doc::Block;

    #[test]
    fn rates_slopes_plants_and_failures_are_told() {
        let none = CalibrationParts::default();
        assert!(rates(&none).is_none() && slopes(&none).is_none() && planted(&none).is_none());
        let slope = Slope {
            of: "ns over ns".to_owned(),
            method: "least squares".to_owned(),
            value: 1.0002,
            low: Some(0.9995),
            high: Some(1.0009),
            intercept: 3_200.0,
            points: 25,
        };
        let held = |attempt, asked_pps, received_pps| HeldRate {
            backend: "udp spin".to_owned(),
            attempt,
            asked_pps,
            sent_pps: asked_pps,
            received_pps,
        };
        let limit = |percent| Limit { percent, ended_by: LimitEnd::Error, fails_at: None };
        let of = CalibrationParts {
            wanted_pps: 20_000.0,
            common_pps: 10_000.0,
            held: vec![held(0, 20_000.0, 11_000.0), held(1, 10_000.0, 10_000.0)],
            not_compared: vec!["udp block held 9,000/s only\u{1b}[31m".to_owned()],
            order: vec![vec![0]],
            parts: vec![CalibrationPart {
                backend: "udp block".to_owned(),
                between: PartOf::Line { delay: Nanos(10_000) },
                round: 0,
                directory: "parts/1".to_owned(),
                commands: Vec::new(),
                achieved_pps: 0.0,
                met: None,
                measured_p50: None,
                truth_p50: None,
                failed: Some("the line was killed".to_owned()),
            }],
            slopes: vec![BackendSlope { backend: "udp spin".to_owned(), slope: Some(slope) }],
            planted: vec![PlantedFound {
                backend: "udp spin".to_owned(),
                what: "a bias of 500 ns in every other message".to_owned(),
                planted: 5_000,
                unplanted: 5_000,
                size_ns: Some(512.0),
                difference_ns: Some(503.0),
                interval_ns: Some((480.0, 520.0)),
                blocks: 20,
                limit_without: limit(Some(99.99)),
                limit_with: limit(Some(99.9)),
            }],
        };
        let rows = rates(&of).unwrap().rows;
        assert_eq!(rows[0], ["udp spin", "1", "20,000/s", "20,000/s", "11,000/s"]);
        assert_eq!(rows[1], ["udp spin", "2", "10,000/s", "10,000/s", "10,000/s"]);
        assert_eq!(of.attempts(), [20_000.0, 10_000.0]);
        assert_eq!(slopes(&of).unwrap().rows[0], ["udp spin", "1.00", "1.00", "+3.2 µs", "25"]);
        assert_eq!(
            planted(&of).unwrap().rows[0],
            ["udp spin", "5,000", "5,000", "+503 ns", "+480 to +520 ns", "p99.99", "p99.9"]
        );
        let said = told(&of).join("\n");
        for words in [
            "1 parts in 1 rounds",
            "2 attempts at a rate that all hold: 20,000/s, 10,000/s",
            "asked for 10,000/s, what all of them hold of the 20,000/s that were wanted",
            "not to be compared: udp block held",
            "PLANTED in udp spin: a bias of 500 ns",
            "udp block at a delay of 10.0us, round 1: the line was killed",
        ] {
            assert!(said.contains(words), "no `{words}` in\n{said}");
        }
        assert!(!crate::render::terminal::told([Block::Text(said)]).contains('\u{1b}'));
    }
}
