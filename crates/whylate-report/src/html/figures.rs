//! The figures of the page, each with the numbers that the script draws it from.

use std::fmt::Write;

use whylate_model::Nanos;
use whylate_model::backends::{BackendRow, Backends};
use whylate_model::run::{GapSummary, Run};
use whylate_model::series::summary::Identity;
use whylate_model::series::{Censored, Definition, Series};
use whylate_model::settings::Setting;
use whylate_model::switch_cost::SwitchCost;
use whylate_stats::weighted;

use super::Report;
use super::histograms::{Histograms, Pooled};
use crate::doc::{Block, Picture, Section, Table, Where};
use crate::execution::recorded::{Recorded, SWITCHES, TITLE};
use crate::numbers::Value;
use crate::svg::backends::{self as svg_backends, Bar as BackendBar, Value as BackendValue};
use crate::svg::blocks::{self, Line};
use crate::svg::ccdf::{self, Curve, MOST_CURVES, MOST_POINTS, Options, Point, Share};
use crate::svg::shares::{self, Share as Bar};
use crate::svg::{Figure, execution, switches, timeline, working_sets};
use crate::switch_cost;
use crate::timeline::Timeline;
use crate::trusted;
use crate::{backends, causes};

/// Bars of the figure of causes.
const MOST_BARS: usize = 12;
/// Points of a curve that the script draws: fewer where there are many curves.
const POINTS_OF_ALL: usize = 1_600;

/// What a figure was drawn from.
#[derive(Debug)]
pub(super) enum Plot {
    Ccdf {
        curves: Vec<Curve>,
        options: Options,
    },
    Timeline,
    Blocks(Vec<Line>),
    /// Nothing that the script would zoom.
    Still,
}

pub(super) fn all(report: &Report) -> Vec<(Section, Plot)> {
    let mut all = report.recorded.as_ref().map_or_else(Vec::new, executed);
    let frames = report.run.forward.is_some() || report.run.delay.is_some();
    let stayed = if frames { "of the frames" } else { "of the requests" };
    let meant = "of the messages that were due";
    let heard = report.run.flows.iter().any(|flow| flow.way.across.is_some());
    let late = match (frames, heard) {
        (true, _) => "of the frames",
        (false, true) => meant,
        (false, false) => "of the requests that were due",
    };
    let kinds = [
        (Definition::Gap, "stalls", "length of the stall", "of the stalls"),
        (Definition::ReadDelta, "readings", "distance of two readings", "of the readings"),
        (Definition::DispatchLatency, "wake-ups", "wake-up latency", "of the wake-ups"),
        (Definition::ResponseTime, "jobs", "response time", "of the jobs"),
        (Definition::RoundTrip, "round trips", "round-trip time", "of the round trips"),
        (Definition::Response, "responses", "response time", "of the requests that were due"),
        (Definition::OneWay, "one-way times", "one-way time", "of the messages"),
        (Definition::OneWayResponse, "one-way times as intended", "time since the due send", meant),
        (Definition::SendLateness, "send delays", "send delay", late),
        (Definition::Departures, "departures", "distance of departures", "of the distances"),
        (Definition::Receptions, "receptions", "distance of receptions", "of the distances"),
        (Definition::Residence, "residence", "residence", stayed),
        (Definition::PartOfRequest, "parts", "time of the part", "of the requests that have it"),
        (Definition::ContextSwitch, "context switches", "time of the switch", "of the switches"),
    ];
    for (definition, name, of, share_of) in kinds {
        let of_kind: Vec<&Series> =
            report.run.series.iter().filter(|series| series.definition == definition).collect();
        if of_kind.is_empty() {
            continue;
        }
        let options = Options {
            title: format!("Distribution of {name}"),
            of: of.to_owned(),
            share_of: share_of.to_owned(),
            share: Share::OfSamples,
        };
        all.push(distribution(report, &of_kind, options));
        let logged = |gaps: &GapSummary| report.histograms.get(&gaps.series).is_some();
        if definition == Definition::Gap && report.run.gaps.iter().any(logged) {
            all.push(wasted(report));
        }
    }
    if report.run.series.is_empty() && report.histograms.names().next().is_some() {
        all.push(unsummed(report));
    }
    let measured = !report.run.gaps.is_empty() || report.timeline.gaps > 0;
    if measured && !report.run.is_merged() {
        all.push(over_time(report.run, &report.timeline));
    }
    if !report.run.causes.is_empty() {
        all.push(bars(report.run, &report.timeline));
    }
    // A sum of recordings has no blocks: it has no time of its own.
    if !report.run.series.is_empty() && !report.run.is_merged() {
        all.push(moving(report.run));
    }
    all
}

/// A picture with its numbers; the script draws one that is live in its place.
fn drawn(id: &str, heading: &str, how: String, svg: String, live: bool) -> Section {
    let plot = live.then(|| id.to_owned());
    Section::new(id, heading, vec![Block::Figure(Picture { svg, how, plot })])
}

/// The same with its table below.
fn with_table(mut section: Section, table: Table) -> Section {
    section.blocks.push(Block::Table(table));
    section
}

/// Which thread of a set had the CPU when, and what switching between them took.
fn executed(recorded: &Recorded) -> Vec<(Section, Plot)> {
    let mut all = Vec::new();
    if let Some(rows) = recorded.rows() {
        let how = format!(
            "{} A grey box is a continuous stretch of CPU time; between two boxes the thread did \
             not have the CPU.",
            recorded.window_in_words()
        );
        let Figure { svg, table } = execution::figure(rows, recorded.window(), TITLE);
        all.push((with_table(drawn("trace", TITLE, how, svg, false), table), Plot::Still));
    }
    if !recorded.switches().is_empty() {
        let Figure { svg, table } =
            switches::figure(recorded.switches(), "Times of context switches");
        let section = drawn("switches", "Context switches", SWITCHES.to_owned(), svg, false);
        all.push((with_table(section, table), Plot::Still));
    }
    all
}

/// Round trips of several backends in turns.
pub(super) fn compared(run: &Run, found: &Backends) -> String {
    let bar = |row: &BackendRow| {
        let series = row.measured.as_ref().and_then(|of| backends::series(run, &of.service));
        let value = |percent: f64| {
            let of = backends::quantile(series?, percent)?;
            let interval = of.low.zip(of.high).map(|(low, high)| (low.0 as f64, high.0 as f64));
            Some(BackendValue { ns: of.value?.0 as f64, interval })
        };
        BackendBar { label: backends::name(row), values: [50.0, 99.0].map(value) }
    };
    let bars: Vec<BackendBar> = found.rows.iter().map(bar).collect();
    svg_backends::figure(&bars, "Round trips by backend", Table::default()).svg
}

/// Figure 4: times of context switches by kind.
pub(super) fn switch_times(histograms: &Histograms, found: &SwitchCost) -> Option<Figure> {
    let table = switch_cost::times(found)?;
    let logged = |name: &str| histograms.get(name).map(|pooled| &pooled.all);
    let panels = switch_cost::panels(found, logged);
    Some(Figure { table, ..switches::figure(&panels, "Times of context switches") })
}

/// Figure 5: working set against what a switch costs.
pub(super) fn through_caches(found: &SwitchCost) -> Option<Figure> {
    let table = switch_cost::penalties(found)?;
    Some(Figure { table, ..working_sets::figure(found, "What a switch costs through the caches") })
}

/// The CCDF of the series of one kind.
fn distribution(report: &Report, series: &[&Series], options: Options) -> (Section, Plot) {
    let mut curves: Vec<Curve> = series
        .iter()
        .map(|series| {
            let faint_below = trusted::share(report.run, &series.name);
            Curve { faint_below, ..curve(report, series) }
        })
        .collect();
    // The longest tails, where not all fit in one picture.
    let largest = |curve: &Curve| curve.points.last().map_or(0.0, |p| p.value_ns);
    if curves.len() > MOST_CURVES {
        curves.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
        curves.truncate(MOST_CURVES);
    }
    let svg = ccdf::figure(&curves, &options);
    let mut how = format!(
        "Up: the share {} that took at least as long as the time below, on logarithmic axes. No \
         curve is drawn below 1/n.",
        options.share_of
    );
    let logged = |series: &&Series| report.histograms.get(&series.name).is_some();
    let of_percentiles = series.iter().filter(|series| !logged(series)).count();
    if of_percentiles < series.len() {
        how.push_str(
            " Shaded: the 95% interval of each share, from n_eff, the independent samples that n \
             dependent ones are worth.",
        );
    }
    if of_percentiles > 0 {
        how.push_str(
            " Where the run keeps percentiles alone the curve is known at its corners; between two \
             of them the lower share is drawn, and there is no band.",
        );
    }
    if series.len() > curves.len() {
        let _ = write!(how, " Drawn are the {MOST_CURVES} with the longest tails.");
    }
    if curves.iter().any(|curve| curve.faint_below.is_some()) {
        how.push_str(
            " Below the dashed line a curve is grey: what its backend's calibration does not let be \
             trusted.",
        );
    }
    // Places of a page keep their names, which links and scripts know.
    let id = match options.title.rsplit(' ').next().unwrap_or("all") {
        "stalls" => "ccdf-gaps".to_owned(),
        "delays" => "ccdf-sends".to_owned(),
        other => format!("ccdf-{other}"),
    };
    let section = drawn(&id, &options.title, how, svg, true);
    let table = crate::series::quantiles(report.run, series);
    (with_table(section, table), Plot::Ccdf { curves, options })
}

fn curve(report: &Report, series: &Series) -> Curve {
    match report.histograms.get(&series.name) {
        Some(pooled) => Curve::of_histogram(
            &series.label,
            &pooled.all,
            &pooled.dependence,
            series.resolution_ns,
        )
        .until(series.censored.map(|of| of.above)),
        None => of_quantiles(series),
    }
}

/// What is known of a series without its histogram: its ends and its percentiles.
fn of_quantiles(series: &Series) -> Curve {
    let point =
        |value: u64, share: f64| Point { value_ns: value as f64, share, low: share, high: share };
    let mut points: Vec<Point> = series.min.iter().map(|min| point(min.0, 1.0)).collect();
    points.extend(
        series
            .quantiles
            .iter()
            .filter_map(|quantile| Some(point(quantile.value?.0, 1.0 - quantile.percent / 100.0))),
    );
    points.extend(series.max.iter().map(|max| point(max.0, 1.0 / series.n.max(1) as f64)));
    points.sort_by(|a, b| a.value_ns.total_cmp(&b.value_ns).then(b.share.total_cmp(&a.share)));
    let label = format!("{} (percentiles alone)", series.label);
    Curve {
        label,
        n: series.n,
        resolution_ns: series.resolution_ns,
        points,
        whiskers: vec![],
        is_cut: false,
        faint_below: None,
    }
}

/// Histograms of a run that was killed before it summed them up, with the percentiles that its report would have.
fn unsummed(report: &Report) -> (Section, Plot) {
    let resolution = report.run.clock.resolution_ns;
    // What took as long as was waited at most may have been given up: nothing says which did.
    let given_up = match report.run.settings.get("timeout") {
        Some(Setting::TimeNs(timeout)) => Some(*timeout),
        _ => None,
    };
    let logged = report.histograms.names().filter_map(|name| {
        let pooled = report.histograms.get(name)?;
        let curve = Curve::of_histogram(name, &pooled.all, &pooled.dependence, resolution);
        Some((curve.until(given_up), summed(name, pooled, resolution, given_up)))
    });
    let (curves, series): (Vec<Curve>, Vec<Series>) = logged.take(MOST_CURVES).unzip();
    let options = Options {
        title: "Distribution of what was logged".to_owned(),
        of: "value".to_owned(),
        share_of: "of the samples".to_owned(),
        share: Share::OfSamples,
    };
    let how = "The run holds no summary; these are the histograms that it had logged.".to_owned();
    let svg = ccdf::figure(&curves, &options);
    let section = drawn("ccdf-logged", &options.title, how, svg, true);
    let all: Vec<&Series> = series.iter().collect();
    let table = crate::series::quantiles(report.run, &all);
    (with_table(section, table), Plot::Ccdf { curves, options })
}

/// What a report would have said of a logged series, of which only the name is known.
fn summed(name: &str, pooled: &Pooled, resolution_ns: f64, given_up: Option<Nanos>) -> Series {
    let identity = Identity {
        name: name.to_owned(),
        label: name.to_owned(),
        paper_row: None,
        from: String::new(),
        to: String::new(),
        clock: String::new(),
        definition: Definition::Gap,
        resolution_ns,
        lost: 0,
    };
    let n_eff = |percent: f64| pooled.dependence.effective_n(&pooled.all, percent);
    let mut series = Series::summarise(identity, &pooled.all, n_eff, None);
    if let Some(above) = given_up {
        let count = pooled.all.count_at_least(above.0);
        series.censor(&pooled.all, Censored { count, above });
    }
    series
}

/// Share of the elapsed time in gaps of at least x (Figure 8 of the PAM paper).
fn wasted(report: &Report) -> (Section, Plot) {
    let run = report.run;
    let mut curves = Vec::new();
    let lengths = [1_000_u64, 10_000, 100_000, 1_000_000];
    let caption = "Share of the elapsed time in stalls, the loop's own period included";
    let mut table = Table::new(caption, &["", "elapsed", "in all stalls"])
        .columns(lengths.map(|ns| format!("of at least {}", whylate_model::Nanos(ns))));
    for gaps in &run.gaps {
        let Some(pooled) = report.histograms.get(&gaps.series) else { continue };
        let curve = time_curve(run, gaps, pooled);
        let elapsed = elapsed_ns(run, gaps);
        let at = |ns: u64| Value::Share(curve_share(pooled, ns, elapsed));
        let cells = [run.thread_name(gaps).into(), Value::Time(elapsed), at(0)];
        table.row(cells.into_iter().chain(lengths.map(at)));
        curves.push(curve);
    }
    let total = curves.len();
    curves.sort_by(|a, b| {
        let share = |curve: &Curve| curve.points.first().map_or(0.0, |p| p.share);
        share(b).total_cmp(&share(a))
    });
    curves.truncate(MOST_CURVES);
    let options = Options {
        title: "Lost time by length of stall".to_owned(),
        of: "length of the stall".to_owned(),
        share_of: "of the elapsed time in stalls".to_owned(),
        share: Share::OfTime,
    };
    let svg = ccdf::figure(&curves, &options);
    let mut how =
        "Up: the share of the elapsed time that was spent in stalls of at least the length \
                   below. A percentile over stalls weighs one of 64ms like one of 100ns; this does \
                   not. Bars: 95% intervals by block bootstrap over intervals of time; of several curves \
                   they stand beside one another."
            .to_owned();
    if total > curves.len() {
        let _ = write!(how, " Drawn are the {MOST_CURVES} CPUs that lost most.");
    }
    let section = drawn("wasted", &options.title, how, svg, true);
    (with_table(section, table), Plot::Ccdf { curves, options })
}

fn elapsed_ns(run: &Run, gaps: &GapSummary) -> f64 {
    gaps.end.since(gaps.start).to_nanos(run.clock.hz).0 as f64
}

fn curve_share(pooled: &Pooled, at_least: u64, elapsed_ns: f64) -> f64 {
    let time = pooled.all.bins().filter(|(value, _)| *value >= at_least);
    let time: f64 = time.map(|(value, count)| value as f64 * count as f64).sum();
    if elapsed_ns > 0.0 { (time / elapsed_ns).min(1.0) } else { 0.0 }
}

fn time_curve(run: &Run, gaps: &GapSummary, pooled: &Pooled) -> Curve {
    let points = weighted::time_ccdf(pooled.all.bins(), elapsed_ns(run, gaps));
    let points: Vec<Point> = ccdf::thinned(points, MOST_POINTS)
        .into_iter()
        .map(|(value, share)| Point { value_ns: value as f64, share, low: share, high: share })
        .collect();
    let (first, last) = (points.first().copied(), points.last().copied());
    let inside = |value: f64| {
        first.is_some_and(|p| value >= p.value_ns) && last.is_some_and(|p| value <= p.value_ns)
    };
    let whiskers = pooled
        .time_shares(run.seed)
        .into_iter()
        .filter(|share| inside(share.value_ns))
        .map(|s| Point { value_ns: s.value_ns, share: s.share, low: s.low, high: s.high })
        .collect();
    let resolution_ns = run.clock.resolution_ns;
    let label = format!("{} ({} intervals)", run.thread_name(gaps), pooled.intervals());
    Curve {
        label,
        n: pooled.all.len(),
        resolution_ns,
        points,
        whiskers,
        is_cut: false,
        faint_below: None,
    }
}

fn over_time(run: &Run, timeline: &Timeline) -> (Section, Plot) {
    let mut how = "Above: the share of each stretch of time that was lost, by the cause of its \
                   stalls. Strip below: grey marks time in which the thread ran. A stall at least one column \
                   wide fills it from its start to its end; shorter ones fill the share of their \
                   column that they took, in the colour of the cause that took most of it. A stall \
                   counts whole for the cause with its largest part."
        .to_owned();
    let heading = if run.threads.is_empty() {
        "Stalls over time, by CPU and cause"
    } else {
        how.push_str(" Grey also marks time in which a thread of a set was asleep or blocked.");
        "Stalls over time, by thread and cause"
    };
    if timeline.complete_from_ns > 0.0 {
        let from = whylate_model::Nanos(timeline.complete_from_ns.round() as u64);
        let _ = write!(
            how,
            " All {} stalls are in it; of stalls shorter than {from} the page holds sums over time alone.",
            crate::numbers::count(timeline.gaps)
        );
    }
    if timeline.left_out > 0 {
        let _ = write!(
            how,
            " {} stalls are not shown: before the measurement, or of CPUs beyond the first.",
            crate::numbers::count(timeline.left_out)
        );
    }
    let Figure { svg, table } = timeline::figure(timeline, "Stalls over time");
    (with_table(drawn("timeline", heading, how, svg, true), table), Plot::Timeline)
}

fn bars(run: &Run, timeline: &Timeline) -> (Section, Plot) {
    let totals = causes::totals(run);
    let mut bars: Vec<Bar> = totals
        .iter()
        .take(MOST_BARS)
        .map(|total| {
            let label = total.cause.to_string();
            let colour = timeline.slot_of(&label);
            Bar { label, share: total.share_of_lost, colour }
        })
        .collect();
    if totals.len() > MOST_BARS {
        let share = totals[MOST_BARS..].iter().map(|total| total.share_of_lost).sum();
        let label = format!("{} others", totals.len() - MOST_BARS);
        bars.push(Bar { label, share, colour: None });
    }
    let svg = shares::figure(&bars, "Lost time by cause", "of the lost time").svg;
    let how =
        "Each part of each stall counts for what took it; numbers in brackets are those of the \
               timeline's colours."
            .to_owned();
    let mut section = drawn("causes", causes::TITLE, how, svg, false);
    section.blocks.extend(causes::blocks(run, Where::Page));
    section.blocks.extend(causes::findings(run).into_iter().flatten());
    (section, Plot::Still)
}

fn moving(run: &Run) -> (Section, Plot) {
    let mut lines = Vec::new();
    for series in &run.series {
        let Some(blocks) = &series.stationarity else { continue };
        for (name, values, trend) in
            [("p50", &blocks.p50, blocks.trend_p50), ("p99", &blocks.p99, blocks.trend_p99)]
        {
            lines.push(Line {
                label: format!("{}: {name}", series.label),
                values_ns: values.iter().take(64).map(|v| v.map(|v| v.0 as f64)).collect(),
                trend,
            });
        }
    }
    lines.truncate(64);
    let Figure { svg, table } = blocks::figure(&lines, "p50 and p99 by block of time");
    let how = "Ten equal blocks of time. A small p says that the percentile moved with time \
               (Mann-Kendall): then one number for the whole run hides something."
        .to_owned();
    let section = drawn("blocks", "Did it change during the run?", how, svg, true);
    (with_table(section, table), Plot::Blocks(lines))
}

/// Points for the script, of each of so many curves.
pub(super) fn points_each(curves: usize) -> usize {
    (POINTS_OF_ALL / curves.max(1)).clamp(100, MOST_POINTS)
}
