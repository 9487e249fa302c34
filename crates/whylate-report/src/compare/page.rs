//! A comparison as one self-contained page: both curves of each series in one figure, the table of
//! the differences beside it, and what differs between the hosts. No script, no request.

use super::sides::Compared as WithValues;
use super::{Pair, PairResult, Side};
use crate::plain::Plain;
use crate::svg::{Figure, ccdf};
use crate::terminal::compare as words;

/// The page.
#[must_use]
pub fn html(compared: &WithValues) -> String {
    let comparison = &compared.comparison;
    let mut page = Plain::new("whylate compare", "A against B");
    for (side, runs) in [(Side::A, &comparison.before), (Side::B, &comparison.after)] {
        page.paragraph(&words::side(side, runs));
    }
    for (pair, (x, y)) in comparison.pairs.iter().zip(&compared.measured) {
        page.section(&words::heading(pair));
        for line in words::lines(pair) {
            page.note(&line);
        }
        if !matches!(pair.result, PairResult::Unlike { .. }) {
            page.figure(&figure(pair, x, y));
        }
        page.table(&words::table(pair));
        for line in words::footnotes(pair) {
            page.paragraph(&line);
        }
    }
    if !comparison.limits.is_empty() {
        page.section("Limits");
        page.list(comparison.limits.iter().map(super::Judged::sentence));
    }
    page.section("What else differs");
    page.table(&words::differences(comparison));
    if !comparison.cautions.is_empty() {
        page.section("To be careful about");
        let cautions = comparison.cautions.iter();
        page.list(cautions.map(|caution| format!("{caution}. {}", caution.advice())));
    }
    page.finish()
}

fn figure(pair: &Pair, x: &super::load::Measured, y: &super::load::Measured) -> Figure {
    let curve = |side: Side, shown: &super::Shown, measured: &super::load::Measured| {
        let label = format!("{side:?}: {}, {} to {}", shown.label, shown.from, shown.to);
        let values = measured.sample.values();
        ccdf::Curve::of_histogram(label, values, &measured.dependence, shown.resolution_ns)
    };
    let curves = [curve(Side::A, &pair.before, x), curve(Side::B, &pair.after, y)];
    let options = ccdf::Options {
        title: format!("{}: A and B", words::heading(pair)),
        of: pair.before.definition.to_string(),
        share_of: "of the samples".to_owned(),
        share: ccdf::Share::OfSamples,
    };
    ccdf::figure(&curves, &options)
}
