//! A comparison as one self-contained page: both curves of each series in one figure, the table of
//! the differences beside it, and what differs between the hosts. No script, no request.

use std::fmt::Write;

use super::sides::Compared as WithValues;
use super::{Pair, PairResult, Side};
use crate::svg::{self, Table, ccdf, escaped};
use crate::terminal::compare as words;

/// Forbids every request and every script.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;\
padding:1rem;background:var(--ground);color:var(--ink)}h1{font-size:1.4rem}h2{font-size:1.15rem;\
margin-top:2.2rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}\
caption{text-align:left;color:var(--soft);padding:.3rem 0}td,th{padding:.2rem .7rem;\
border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}td.l{white-space:normal;\
min-width:9rem;overflow-wrap:anywhere}svg{max-width:100%;height:auto}p,li{overflow-wrap:anywhere}\
td:first-child,th:first-child,td.l,th.l{\
text-align:left}.wide{overflow-x:auto}.note{color:var(--soft)}";

/// The page.
#[must_use]
pub fn html(compared: &WithValues) -> String {
    let comparison = &compared.comparison;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>whylate compare</title>\n<style>{}{STYLE}</style></head><body>\n<h1>A against B</h1>\n",
        svg::STYLE
    );
    let mut put = |text: &str| page.push_str(text);
    for (side, runs) in [(Side::A, &comparison.before), (Side::B, &comparison.after)] {
        put(&format!("<p>{}</p>\n", escaped(&words::side(side, runs))));
    }
    for (pair, (x, y)) in comparison.pairs.iter().zip(&compared.measured) {
        put(&format!("<h2>{}</h2>\n", escaped(&words::heading(pair))));
        for line in words::lines(pair) {
            put(&format!("<p class=\"note\">{}</p>\n", escaped(&line)));
        }
        if !matches!(pair.result, PairResult::Unlike { .. }) {
            put(&figure(pair, x, y));
        }
        put(&table(&words::table(pair)));
        for line in words::footnotes(pair) {
            put(&format!("<p>{}</p>\n", escaped(&line)));
        }
    }
    if !comparison.limits.is_empty() {
        put("<h2>Limits</h2>\n<ul>\n");
        for judged in &comparison.limits {
            put(&format!("<li>{}</li>\n", escaped(&judged.sentence())));
        }
        put("</ul>\n");
    }
    put("<h2>What else differs</h2>\n");
    put(&table(&words::differences(comparison)));
    if !comparison.cautions.is_empty() {
        put("<h2>To be careful about</h2>\n<ul>\n");
        for caution in &comparison.cautions {
            let text = format!("{caution}. {}", caution.advice());
            put(&format!("<li>{}</li>\n", escaped(&text)));
        }
        put("</ul>\n");
    }
    put("</body></html>\n");
    page
}

fn figure(pair: &Pair, x: &super::load::Measured, y: &super::load::Measured) -> String {
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
    let figure = ccdf::figure(&curves, &options);
    format!("{}\n{}", figure.svg, table(&figure.table))
}

fn table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let mut html =
        format!("<div class=\"wide\"><table><caption>{}</caption>\n", escaped(&table.caption));
    let mut row = |tag: &str, cells: &[String]| {
        html.push_str("<tr>");
        for (index, cell) in cells.iter().enumerate() {
            let class = if table.left.contains(&index) { " class=\"l\"" } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(html, "<{tag}{class}>{}</{tag}>", escaped(cell));
        }
        html.push_str("</tr>\n");
    };
    row("th", &table.head);
    for cells in &table.rows {
        row("td", cells);
    }
    html.push_str("</table></div>\n");
    html
}
