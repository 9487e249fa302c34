//! The page from its parts.

use whylate_model::run::{Run, Verdict};
use whylate_model::trust::{Level, Trust};

use super::{Report, breakdown, data, figures, machine, worst};
use crate::doc::{Block, Section, Where};
use crate::numbers::Names;
use crate::numbers::scale::Letters;
use crate::render::page::Html;
use crate::switch_cost::{self, Pictures};
use crate::terminal::Style;
use crate::{backends, evidence, first, gaps, head, origins, sections, selftest, series, svg};

pub(super) const PAGE_STYLE: &str = include_str!("../../assets/report.css");
pub(super) const SCRIPT: &str = include_str!("../../assets/report.js");
pub(super) const UPLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");

/// Nothing is fetched, sent or framed, whatever is on the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

pub(super) fn page(report: &Report) -> String {
    let run = report.run;
    let drawn = figures::all(report);
    let worst = worst::of(report);
    let plots = data::of(report, &drawn, &worst);
    let mut html = Html::naming(Names::of(run));
    begin(&mut html, run);
    head(&mut html, report);
    html.raw("<main>\n");
    for section in before_figures(report) {
        html.section(&section);
    }
    for (section, _) in &drawn {
        html.section(section);
        if section.id == "timeline"
            && let Some(worst) = &worst.section
        {
            html.section(worst);
        }
    }
    for section in machine::sections(run) {
        html.section(&section);
    }
    html.raw("</main>\n<footer>\n");
    let made = format!(
        "Made by whylate {} from a run directory. This page holds all it shows and asks nothing of \
         the network. Zoom and hover by uPlot (MIT licence).",
        run.tool_version
    );
    html.element("p", "", &made);
    html.raw("</footer>\n<script type=\"application/json\" id=\"plots\">");
    html.raw(plots);
    html.raw("</script>\n");
    for script in [UPLOT, SCRIPT] {
        html.raw(format_args!("<script>{script}</script>\n"));
    }
    html.raw("</body>\n</html>\n");
    html.finish()
}

fn begin(html: &mut Html, run: &Run) {
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let policy = svg::escaped(POLICY);
    html.raw(format_args!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n"));
    html.raw(
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n",
    );
    html.words("title", "", &format!("whylate: {}", first::subject::of(run)));
    for style in [svg::STYLE, PAGE_STYLE, UPLOT_STYLE] {
        html.raw(format_args!("<style>{style}</style>\n"));
    }
    html.raw("</head>\n<body>\n");
}

/// What was measured, the answer, and how far to trust it.
fn head(html: &mut Html, report: &Report) {
    let run = report.run;
    html.raw("<header>\n");
    html.element("p", "brand", "whylate");
    html.words("h1", "", &first::subject::of(run));
    html.words("p", "answer", &crate::answer(run));
    let recorded = run.clock.anchors.first();
    let recorded = recorded
        .map_or(String::new(), |anchor| format!("; recorded {}", machine::utc(anchor.realtime_ns)));
    html.element("p", "meta", &format!("{}{recorded}", head::machine(run)));
    verdict(html, run);
    let notes = head::notes(run).into_iter().chain(report.notes.iter().cloned());
    html.blocks(&notes.map(Block::Note).collect::<Vec<_>>());
    html.blocks(&first::summary(run, Style { letters: Letters::Unicode, ..Style::default() }));
    html.raw("</header>\n");
}

fn verdict(html: &mut Html, run: &Run) {
    let trust = Trust::of(run);
    let exceeded = match &run.verdict {
        Verdict::LimitExceeded { what, .. } => Some(format!("a limit was exceeded: {what}")),
        _ => None,
    };
    let class = match trust.level() {
        _ if exceeded.is_some() => "bad",
        Level::Good => "good",
        Level::Limited => "open",
        Level::Poor => "bad",
    };
    let level = trust.level().name();
    html.raw(format_args!("<div class=\"verdict {class}\"><strong>Trust:</strong> {level}.\n"));
    let reasons = trust.reasons.into_iter().map(|reason| reason.what);
    html.items(&exceeded.into_iter().chain(reasons).collect::<Vec<_>>());
    html.raw("</div>\n");
}

/// What stands before the figures.
fn before_figures(report: &Report) -> Vec<Section> {
    let run = report.run;
    let warned = (!run.warnings.is_empty())
        .then(|| Section::new("warnings", "Warnings", vec![evidence::warnings(run)]));
    let compared = run
        .backends
        .as_deref()
        .map(|found| backends::section(run, found, Some(figures::compared(run, found))));
    let mut all: Vec<Section> = warned.into_iter().chain([measured(report)]).collect();
    all.extend(sections::of(run, Where::Page, breakdown::pictures));
    all.extend(origins::section(run));
    all.extend(switched(report));
    all.extend(compared);
    all
}

/// What was measured, in numbers.
fn measured(report: &Report) -> Section {
    let run = report.run;
    let mut blocks = series::blocks(run, &series::ON_THE_PAGE);
    blocks.extend(gaps::blocks(run, Where::Page));
    if !report.cells.is_empty() {
        let words =
            "Each row is a run of its own, with causes and longest stalls on a page of its own";
        let pages = report.cells.iter().map(|cell| format!("{}/report.html", cell.name));
        blocks.push(Block::Code(words.to_owned(), pages.collect()));
    }
    blocks.extend(selftest::blocks(run));
    Section::new("measured", "What was measured", blocks)
}

/// What switches cost, with its pictures.
fn switched(report: &Report) -> Vec<Section> {
    let Some(found) = &report.run.switch_cost else { return Vec::new() };
    let pictures = Pictures {
        times: figures::switch_times(&report.histograms, found).map(|figure| figure.svg),
        caches: figures::through_caches(found).map(|figure| figure.svg),
    };
    switch_cost::sections(found, pictures)
}
