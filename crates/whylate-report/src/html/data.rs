//! What the script draws: the numbers of the figures as JSON inside the page.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Report;
use super::figures::{self, Plot};
use super::worst::{All, OnTimeline};
use crate::doc::Section;
use crate::svg::ccdf::{Curve, Options, Share};
use crate::timeline::{NAMED, SLOTS, Timeline};

/// Cells of the timeline that travel with the page, some 10 bytes each.
const MOST_CELLS: usize = 9_000;

/// The JSON, fit to stand inside a `<script>` element.
pub(super) fn of(report: &Report, drawn: &[(Section, Plot)], worst: &All) -> String {
    let plots: Vec<Value> = drawn
        .iter()
        .filter_map(|(drawn, plot)| {
            let mut value = match plot {
                Plot::Ccdf { curves, options } => ccdf(curves, options),
                Plot::Timeline => timeline(&report.timeline, &worst.pictures),
                Plot::Blocks(lines) => json!({
                    "kind": "blocks",
                    "lines": lines.iter().take(crate::svg::blocks::MOST_LINES).map(|line| json!({
                        "label": shown(&line.label),
                        "y": line.values_ns.iter().map(|v| v.map_or(Value::Null, number)).collect::<Vec<_>>(),
                    })).collect::<Vec<_>>(),
                }),
                Plot::Still => return None,
            };
            value["id"] = json!(drawn.id);
            Some(value)
        })
        .collect();
    embedded(&Value::from(plots))
}

/// No `<` ends the element, and no line separator ends a line of old scripts. Invisible and control
/// characters are shown, as everywhere on the page.
fn embedded(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{7f}' => {
                let _ = write!(text, "\\u{:04x}", c as u32);
            }
            other => text.push(other),
        }
    }
    text
}

fn ccdf(curves: &[Curve], options: &Options) -> Value {
    let most = figures::points_each(curves.len());
    let curves: Vec<Value> = curves
        .iter()
        .map(|curve| {
            let points: Vec<_> = curve.shown(options.share).collect();
            let step = points.len().div_ceil(most).max(1);
            let last = points.len().saturating_sub(1);
            let kept: Vec<_> = points
                .iter()
                .enumerate()
                .filter(|(at, _)| at % step == 0 || *at == last)
                .map(|(_, point)| point)
                .collect();
            let column = |of: fn(&crate::svg::ccdf::Point) -> f64| -> Vec<Value> {
                kept.iter().map(|point| number(of(point))).collect()
            };
            let banded = kept.iter().any(|p| p.low < p.share || p.high > p.share);
            json!({
                "label": shown(&curve.label),
                "n": curve.n,
                "resolution": number(curve.resolution_ns),
                "faint": curve.faint_below.map_or(Value::Null, number),
                "step": crate::svg::resolution_label(curve.resolution_ns),
                "x": column(|p| p.value_ns),
                "y": column(|p| p.share),
                "low": if banded { column(|p| p.low) } else { Vec::new() },
                "high": if banded { column(|p| p.high) } else { Vec::new() },
                "whiskers": curve.whiskers.iter().map(|p| {
                    json!([number(p.value_ns), number(p.low), number(p.high)])
                }).collect::<Vec<_>>(),
            })
        })
        .collect();
    let percentiles = options.share == Share::OfSamples;
    json!({"kind": "ccdf", "of": options.of, "percentiles": percentiles, "curves": curves})
}

fn timeline(timeline: &Timeline, worst: &[OnTimeline]) -> Value {
    let mut fine = timeline.coarsened(timeline.bins());
    while fine.cells() > MOST_CELLS && fine.bins() > 64 {
        fine = fine.coarsened(fine.bins() / 2);
    }
    let lanes: Vec<Value> = fine
        .lanes
        .iter()
        .enumerate()
        .map(|(index, lane)| {
            let cells: Vec<Value> = (0..SLOTS)
                .map(|slot| cells(lane.cells.iter().map(|c| c[slot]), fine.bin_ns()))
                .collect();
            let gaps: Vec<Value> = timeline
                .longest
                .iter()
                .filter(|gap| gap.lane == index)
                .flat_map(|gap| [whole(gap.start_ns), whole(gap.length_ns), json!(gap.slot)])
                .collect();
            json!({"label": shown(&lane.label), "cells": cells, "gaps": gaps})
        })
        .collect();
    json!({
        "kind": "timeline",
        "of": timeline.time_label(),
        "length": whole(timeline.length_ns()),
        "bin": number(fine.bin_ns()),
        "names": timeline.names.iter().map(|name| shown(name)).collect::<Vec<_>>(),
        "colours": NAMED,
        "completeFrom": whole(timeline.complete_from_ns),
        "lanes": lanes,
        "worst": worst.iter().map(detail).collect::<Vec<_>>(),
    })
}

/// Pairs of bin (as the step from the one before) and lost share in millionths.
fn cells(lost: impl Iterator<Item = f64>, bin_ns: f64) -> Value {
    let mut flat = Vec::new();
    let mut before = 0;
    for (bin, ns) in lost.enumerate().filter(|(_, ns)| *ns > 0.0) {
        flat.push(json!(bin - before));
        flat.push(json!((ns / bin_ns * 1e6).ceil().min(1e6) as u64));
        before = bin;
    }
    Value::from(flat)
}

fn detail(gap: &OnTimeline) -> Value {
    let OnTimeline { index, lane, start_ns, picture } = gap;
    json!({
        "index": index,
        "lane": lane,
        "start": whole(*start_ns),
        "length": whole(picture.length_ns),
        "title": shown(&picture.title),
        "parts": picture.parts.iter().map(|part| json!([
            whole(part.from_ns), whole(part.length_ns), part.colour, shown(&part.label),
        ])).collect::<Vec<_>>(),
        "events": picture.events.iter().map(|mark| json!([
            whole(mark.at_ns), shown(&mark.label), u8::from(mark.elsewhere),
        ])).collect::<Vec<_>>(),
    })
}

fn shown(text: &str) -> String {
    whylate_model::Printable(text).to_string()
}

/// A number with four digits.
fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let short: f64 = format!("{value:.3e}").parse().unwrap_or(0.0);
    if short.fract() == 0.0 && short.abs() < 1e15 { json!(short as i64) } else { json!(short) }
}

fn whole(value: f64) -> Value {
    json!(value.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_the_script() {
        let hostile = json!({"label": "</script><!--]]>\u{2028}&"});
        let text = embedded(&hostile);
        assert!(!text.contains('<') && !text.contains('>') && !text.contains('\u{2028}'));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), hostile);
    }

    #[test]
    fn numbers_keep_four_digits() {
        for (value, text) in [
            (12_345_678.0, "12350000"),
            (0.000_123_456, "0.0001235"),
            (1.0, "1"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(number(value).to_string(), text);
        }
    }
}
