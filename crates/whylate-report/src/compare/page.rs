//! A comparison as one self-contained page: both curves of each series in one figure, beside what is said of
//! it anywhere. No script, no request.

use whylate_model::series::shown_label;

use super::sides::Compared as WithValues;
use super::{Pair, PairResult, Side, section};
use crate::render::plain;
use crate::svg::ccdf;

/// The page. The numbers of a figure are those of the table beside it.
#[must_use]
pub fn html(of: &WithValues) -> String {
    let pairs = of.comparison.pairs.iter().zip(&of.measured);
    let drawn = pairs.map(|(pair, (x, y))| {
        let alike = !matches!(pair.result, PairResult::Unlike { .. });
        alike.then(|| figure(pair, x, y))
    });
    plain::page("whylate compare", &section::document(&of.comparison, drawn.collect()))
}

fn figure(pair: &Pair, x: &super::load::Measured, y: &super::load::Measured) -> String {
    let curve = |side: Side, shown: &super::Shown, measured: &super::load::Measured| {
        let name = shown_label(&shown.label);
        let label = format!("{side:?}: {name}, {} to {}", shown.from, shown.to);
        let values = measured.sample.values();
        ccdf::Curve::of_histogram(label, values, &measured.dependence, shown.resolution_ns)
            .until(shown.censored.map(|of| of.above))
    };
    let curves = [curve(Side::A, &pair.before, x), curve(Side::B, &pair.after, y)];
    let options = ccdf::Options {
        title: format!("{}: A and B", section::heading(pair)),
        of: pair.before.definition.to_string(),
        share_of: "of the samples".to_owned(),
        share: ccdf::Share::OfSamples,
    };
    ccdf::figure(&curves, &options)
}
