//! Pages of recorded, hostile, damaged and empty runs.

use std::path::Path;

use tempfile::TempDir;
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState, Verdict};
use whylate_model::series::Series;
use whylate_model::warning::Warning;
use whylate_stats::Histogram;

use super::*;
use crate::timeline::tests::{gap, recorded};

/// Everything a text field can hold that a page must not.
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>]]>{{ 7*7 }}\
                       \u{1b}[31m\u{202e}\u{2028}\0</style><!--";

fn sample() -> RunDir {
    RunDir::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs/gaps")).unwrap()
}

fn empty() -> (TempDir, RunDir) {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    (home, directory)
}

/// A directory whose only series holds these values.
fn holding(values: &[u64]) -> (TempDir, RunDir, Run) {
    let (home, directory) = empty();
    let mut run = recorded();
    let mut log = directory.histogram_log().unwrap();
    let histogram: Histogram = values.iter().copied().collect();
    log.append("gap-cpu1", &histogram, 0.0, 1.0).unwrap();
    run.segments.clear();
    run.worst.clear();
    run.series[0].n = values.len() as u64;
    run.series[0].quantiles.clear();
    run.series[0].stationarity = None;
    (home, directory, run)
}

#[test]
fn the_page_of_a_recorded_run_has_all_its_parts() {
    let page = render(&sample(), &recorded()).unwrap();
    for part in [
        "id=\"warnings\"",
        "id=\"measured\"",
        "id=\"ccdf-gaps\"",
        "id=\"wasted\"",
        "id=\"timeline\"",
        "id=\"causes\"",
        "id=\"worst\"",
        "id=\"blocks\"",
        "id=\"trust\"",
        "id=\"host\"",
        "resolution",
        "precision",
        "accuracy",
        "Content-Security-Policy",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(page.contains(&crate::answer(&recorded())), "the answer is missing");
    assert!(page.len() < 300_000, "{} bytes", page.len());
    let figures = page.matches("<figure").count();
    assert_eq!(figures, 5);
    // A table beside each figure, and a picture for each of the longest gaps.
    assert!(page.matches("<table>").count() > figures);
    assert_eq!(page.matches("<svg").count(), figures + recorded().worst.len());
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    // The address in the head of uPlot is that of its source.
    let page = render(&sample(), &recorded()).unwrap().replace(template::UPLOT, "");
    assert!(page.contains(r#"content="default-src &#39;none&#39;; style-src"#), "no policy");
    for way in ["src=\"", "@import", "url(", "http://", "https://", "<iframe", "<object", "<base"] {
        assert!(!page.contains(way), "{way} in the page");
    }
    assert_eq!(page.matches("href=").count(), 1, "only the empty icon");
}

#[test]
fn hostile_texts_stay_texts() {
    let mut run = recorded();
    let hostile = || HOSTILE.to_owned();
    run.question = hostile();
    run.host.hostname = hostile();
    run.host.cpu_model = hostile();
    run.host.kernel = hostile();
    run.host.command_line = hostile();
    run.host.hypervisor = Some(hostile());
    run.host.knobs.insert(hostile(), whylate_model::host::Knob::Value(hostile()));
    run.command_line = vec![hostile()];
    run.tool_version = hostile();
    run.settings.insert(hostile(), hostile());
    run.clock.counter = hostile();
    run.clock.sources[0].name = hostile();
    run.series[0].label = hostile();
    run.series[0].from = hostile();
    run.findings[0].text = hostile();
    run.verdict = Verdict::Untrustworthy { reasons: vec![hostile()] };
    run.warnings = vec![Warning::RseqUnusable { reason: hostile() }];
    run.senders[0].comm = hostile();
    run.evidence.proc_deltas[0].name = hostile();
    let cause = whylate_model::cause::Cause::Interrupt { name: hostile() };
    run.causes[0].cause = cause.clone();
    run.worst[0].cause = cause.clone();
    run.worst[0].parts[0].cause = cause;
    let page = render(&sample(), &run).unwrap();
    let own = render(&sample(), &recorded()).unwrap();
    for tag in ["<script", "<img", "<style", "<!--", "</style", "</script"] {
        assert_eq!(page.matches(tag).count(), own.matches(tag).count(), "{tag}");
    }
    assert!(!page.contains("onerror=alert(2)>") && !page.contains("alert(1)</"));
    assert!(!page.contains("49&lt;") && page.contains("{{ 7*7 }}"), "a text was evaluated");
    let bad = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2028}".contains(c);
    let scripts = own.chars().filter(|c| bad(*c)).count();
    assert_eq!(page.chars().filter(|c| bad(*c)).count(), scripts, "a control character");
}

#[test]
fn none_one_two_and_equal_samples_make_a_page() {
    for values in [&[][..], &[800], &[800, 90_000], &[5_000; 60]] {
        let (_home, directory, run) = holding(values);
        let page = render(&directory, &run).unwrap();
        assert!(page.contains("id=\"ccdf-gaps\"") && !page.contains("NaN"), "{values:?}");
    }
}

#[test]
fn a_directory_without_anything_but_its_run_is_shown_with_what_is_missing() {
    let (_home, directory) = empty();
    let page = render(&directory, &recorded()).unwrap();
    assert!(page.contains("figures rest on summaries alone"));
    assert!(page.contains("listed in run.json and missing"));
    assert!(page.contains("percentiles alone"));
}

#[test]
fn truncated_files_are_named_and_the_rest_is_shown() {
    let (_home, directory) = empty();
    let sample = sample();
    for name in ["histograms.hlog", "gaps-0001.parquet"] {
        let mut content = std::fs::read(sample.path().join(name)).unwrap();
        content.truncate(content.len() * 2 / 3);
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    let page = render(&directory, &recorded()).unwrap();
    assert!(page.contains("figures lack what cannot be read"), "histograms");
    assert!(page.contains("the timeline lacks a segment"), "segment");
    assert!(page.contains("<svg") && !page.contains("percentiles alone"));
}

#[test]
fn a_killed_run_without_any_summary_shows_what_it_logged() {
    let (_home, directory, mut run) = holding(&[900, 40_000]);
    let limits = segments::Limits::default();
    let mut writer = segments::Writer::new(&directory, run.clock.epoch, limits);
    let start = run.clock.epoch.0 + 1_000;
    writer.push_gap(&gap(start, 40_000, Some("host"))).unwrap();
    writer.checkpoint().unwrap();
    run.state = RunState::Running;
    run.verdict = Verdict::Pending;
    run.series.clear();
    run.gaps.clear();
    run.causes.clear();
    run.worst.clear();
    let page = render(&directory, &run).unwrap();
    assert!(page.contains("This run did not end") && page.contains("No verdict"));
    assert!(page.contains("id=\"ccdf-logged\"") && page.contains("id=\"timeline\""));
    assert!(page.contains("nothing was measured"));
}

#[test]
fn a_run_of_nonsense_numbers_is_shown_and_does_not_panic() {
    let mut run = recorded();
    run.clock.hz = whylate_model::Hertz(0.0);
    run.gaps[0].lost_share = f64::NAN;
    run.gaps[0].end = whylate_model::Ticks(0);
    run.causes[0].lost_ns = f64::INFINITY;
    run.causes[1].share_of_lost = f64::NAN;
    run.worst[0].length = whylate_model::Nanos(u64::MAX);
    run.worst[1].parts.clear();
    run.series[0].resolution_ns = f64::NAN;
    render(&sample(), &run).unwrap();
    run.clock.hz = whylate_model::Hertz(f64::NAN);
    run.clock.epoch = whylate_model::Ticks(u64::MAX);
    run.clock.anchors.clear();
    render(&sample(), &run).unwrap();
}

#[test]
fn a_thousand_of_everything_stays_within_the_page() {
    let mut run = recorded();
    let copies = |n: usize| (0..n).map(move |n| n.to_string());
    run.series = copies(1_000)
        .map(|n| Series {
            name: format!("s{n}"),
            label: format!("series {n}"),
            ..run.series[0].clone()
        })
        .collect();
    run.gaps = copies(1_000).map(|_| run.gaps[0].clone()).collect();
    run.worst = copies(1_000).map(|_| run.worst[0].clone()).collect();
    run.warnings = copies(1_000).map(|n| Warning::RseqUnusable { reason: n }).collect();
    run.senders = copies(1_000).map(|_| run.senders[0].clone()).collect();
    let page = render(&sample(), &run).unwrap();
    assert!(page.len() < 500_000, "{} bytes", page.len());
}

#[test]
fn a_report_is_whole_or_not_there() {
    let (_home, directory, run) = holding(&[1_000, 2_000]);
    let path = write(&directory, &run).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("</html>\n"));
    let nowhere = directory.path().join("nowhere/report.html");
    let error = write_to(&directory, &run, &nowhere).unwrap_err().to_string();
    assert!(error.contains("nowhere/report.html") && error.contains("--html"), "{error}");
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 2, "the histogram log and the report");
}
