//! Pages of recorded, hostile, damaged and empty runs.

use std::path::Path;

use tempfile::TempDir;
use whylate_model::Nanos;
use whylate_model::directory::RunDir;
use whylate_model::run::{GapSummary, Run, RunState, Verdict};
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
    let page = render(&sample(), &recorded());
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
    // One for each of the longest gaps among them, and a table beside each.
    assert_eq!(figures, 5 + recorded().worst.len());
    assert!(page.matches("<table>").count() > figures);
    assert_eq!(page.matches("<svg class=").count(), figures);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

/// The cells of the row after the one that a text stands in.
fn row_after<'a>(page: &'a str, text: &str) -> &'a str {
    let table = &page[page.find(text).unwrap_or_else(|| panic!("no {text}"))..];
    let row = table.split("<tbody>").nth(1).unwrap();
    row.split("</tr>").next().unwrap()
}

#[test]
fn times_count_from_the_start_of_the_measurement() {
    let run = recorded();
    let page = render(&sample(), &run);
    assert!(!page.contains("epoch"), "a time that counts from the epoch");
    let at = run.worst[0].start.since(run.gaps[0].start).to_nanos(run.clock.hz).0 as f64 / 1e9;
    assert!(row_after(&page, "id=\"worst\"").contains(&format!(">{at:.6} s ")), "{at}");
    let timeline = &page[page.find("id=\"timeline\"").unwrap()..];
    assert!(timeline.contains(">time since the start of the measurement</text>"));
    let ticks: Vec<&str> = timeline.split("class=\"tick mid").skip(1).take(3).collect();
    assert!(ticks[0].contains(">0</text>"), "{ticks:?}");
}

#[test]
fn each_percentile_has_the_number_of_samples_it_is_worth() {
    let run = recorded();
    let page = render(&sample(), &run);
    let row = row_after(&page, "id=\"ccdf-gaps\"");
    let worth = |q: &whylate_model::series::Quantile| crate::numbers::count(q.n_eff as u64);
    let supported: Vec<_> = run.series[0].quantiles.iter().filter(|q| q.value.is_some()).collect();
    assert!(supported.len() > 1 && worth(supported[0]) != worth(supported[1]));
    for quantile in supported {
        let worth = format!("n_eff\u{a0}{})", worth(quantile));
        assert!(row.contains(&worth), "p{}: {worth} in {row}", quantile.percent);
    }
}

#[test]
fn accuracy_without_an_independent_source_is_unknown() {
    let page = render(&sample(), &recorded());
    assert!(page.contains("unknown (no independent source); agrees with CLOCK_MONOTONIC_RAW"));
}

#[test]
fn a_sum_of_recordings_has_their_numbers_and_no_timeline() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("sum");
    let origins: Vec<PathBuf> = ["one", "two"]
        .map(|name| {
            let to = home.path().join(name);
            std::fs::create_dir(&to).unwrap();
            for file in ["histograms.hlog", "gaps-0001.parquet"] {
                std::fs::copy(sample().path().join(file), to.join(file)).unwrap();
            }
            let mut run = recorded();
            run.host.hostname = format!("host-{name}");
            // Of the recorded example the log lacks what came last.
            let intervals = sample().histograms().unwrap();
            run.series[0].n = intervals.map(|i| i.unwrap().histogram.len()).sum();
            run.gaps[0].gaps = run.series[0].n;
            run.seed += name.len() as u64 + u64::from(name == "two");
            run.segments.retain(|segment| segment.file.starts_with("gaps"));
            // Another frequency: ticks of the two are not to be mixed.
            run.clock.hz.0 *= if name == "two" { 2.0 } else { 1.0 };
            RunDir::open(&to).unwrap().write_run(&run).unwrap();
            to
        })
        .into();
    let request = crate::merge::Request {
        directories: origins,
        across_cpus: false,
        across: Vec::new(),
        skip_damaged: false,
        tables: true,
        table_bytes: 1 << 20,
        command_line: Vec::new(),
    };
    let merged = crate::merge::merge(&request, &into).unwrap();
    let page = render(&RunDir::open(&into).unwrap(), &merged.run);
    assert!(!page.contains("id=\"timeline\"") && !page.contains("id=\"blocks\""));
    assert!(page.contains("The sum of 2 recordings") && page.contains("has no timeline"));
    for name in ["host-one", "host-two"] {
        assert!(page.contains(&format!(">{name}</td>")), "{name} is not told");
    }
    assert!(!page.contains("there is no kernel trace"));
}

#[test]
fn a_matrix_shows_its_cells_in_one_figure() {
    let (_home, directory) = empty();
    let mut run = recorded();
    let (series, gaps) = (run.series[0].clone(), run.gaps[0].clone());
    (run.series, run.gaps) = (Vec::new(), Vec::new());
    for cell in ["floating", "pinned-fifo"] {
        let own = RunDir::create(directory.path().join(cell)).unwrap();
        for file in ["histograms.hlog", "gaps-0001.parquet", "run.json"] {
            std::fs::copy(sample().path().join(file), own.path().join(file)).unwrap();
        }
        let name = format!("{cell}-{}", series.name);
        run.series.push(Series { name: name.clone(), label: cell.to_owned(), ..series.clone() });
        run.gaps.push(GapSummary { series: name, ..gaps.clone() });
    }
    run.causes.clear();
    run.worst.clear();
    run.segments.clear();
    let page = render(&directory, &run);
    assert!(!page.contains("summaries alone") && !page.contains("percentiles alone"));
    assert!(page.contains("<code>pinned-fifo/report.html</code>"));
    let lost = row_after(&page, "Stalls over time: lost time");
    let timeline = read(&directory, &run).timeline;
    assert_eq!(timeline.lanes.len(), 2);
    assert!(timeline.gaps > 100 && timeline.gaps.is_multiple_of(2), "{} gaps", timeline.gaps);
    assert!(!lost.contains("0 ns"), "{lost}");
    let causes = recorded().causes;
    let largest = causes.iter().max_by(|a, b| a.lost_ns.total_cmp(&b.lost_ns)).unwrap();
    assert_eq!(timeline.names[0], largest.cause.to_string(), "the first colour");
}

#[test]
fn the_page_of_a_killed_run_is_of_its_last_checkpoint() {
    let (_home, directory, mut run) = holding(&[900, 40_000]);
    run.state = RunState::Running;
    let path = directory.path().join("histograms.hlog");
    let mut log = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    let (_other_home, other, _) = holding(&[1_000_000_000; 3]);
    let later = std::fs::read_to_string(other.path().join("histograms.hlog")).unwrap();
    let line = later.lines().find(|line| line.starts_with("Tag=")).unwrap();
    std::io::Write::write_all(&mut log, format!("{line}\n").as_bytes()).unwrap();
    let page = render(&directory, &run);
    assert!(page.contains("1 interval of the histogram log not drawn"), "no note");
    assert!(!page.contains("the histogram log holds"), "more than all");
    assert_eq!(read(&directory, &run).histograms.get("gap-cpu1").unwrap().all.len(), 2);
    run.state = RunState::Complete;
    let page = render(&directory, &run);
    assert!(page.contains("the histogram log holds 5 of the 2 samples"));
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    // The address in the head of uPlot is that of its source.
    let page = render(&sample(), &recorded()).replace(page::UPLOT, "");
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
    run.settings.insert(hostile(), hostile().into());
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
    let page = render(&sample(), &run);
    let own = render(&sample(), &recorded());
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
        let page = render(&directory, &run);
        assert!(page.contains("id=\"ccdf-gaps\"") && !page.contains("NaN"), "{values:?}");
    }
}

#[test]
fn a_directory_without_anything_but_its_run_is_shown_with_what_is_missing() {
    let (_home, directory) = empty();
    let page = render(&directory, &recorded());
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
    let page = render(&directory, &recorded());
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
    let page = render(&directory, &run);
    assert!(page.contains("this run did not end") && page.contains("this is its last checkpoint"));
    assert!(page.contains("id=\"ccdf-logged\"") && page.contains("id=\"timeline\""));
    assert!(page.contains("Nothing was measured."));
}

#[test]
fn the_table_of_a_killed_run_withholds_what_hangs_together_and_what_may_have_been_given_up() {
    let (_home, directory) = empty();
    let mut run = recorded();
    let mut log = directory.histogram_log().unwrap();
    for second in 0..20_u64 {
        // Two in a hundred are late, all of them in one second; one may have been given up there.
        let slow = if second == 7 { 40 } else { 0 };
        let values = (0..100).map(|n| if n < slow { 700_000 + n * 10_000 } else { 1_000 + n });
        let last = (second == 7).then_some(60_000_000_000);
        log.append("rtt-service", &values.chain(last).collect(), second as f64, 1.0).unwrap();
    }
    run.state = RunState::Running;
    run.settings.insert("timeout".to_owned(), Nanos(60_000_000_000).into());
    (run.series, run.gaps, run.segments) = (Vec::new(), Vec::new(), Vec::new());
    (run.causes, run.worst) = (Vec::new(), Vec::new());
    let page = render(&directory, &run);
    let logged = page.split_once("id=\"ccdf-logged\"").unwrap().1;
    let section = logged.split_once("</section>").unwrap().0;
    let row = row_after(&page, "id=\"ccdf-logged\"");
    assert!(row.contains("2,001") && row.contains("n_eff"), "{row}");
    // 2 001 are enough for p99, had they come one by one.
    assert!(!section.contains(">p99</th>") && section.contains(">p90</th>"), "{section}");
    assert!(!row.contains("1 min") && !row.contains("60 s"), "{row}");
    assert!(section.contains("given up from"), "{section}");
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
    assert!(render(&sample(), &run).ends_with("</html>\n"));
    run.clock.hz = whylate_model::Hertz(f64::NAN);
    run.clock.epoch = whylate_model::Ticks(u64::MAX);
    run.clock.anchors.clear();
    assert!(render(&sample(), &run).ends_with("</html>\n"));
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
    let page = render(&sample(), &run);
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

#[test]
fn load_beside_a_run_is_a_table_of_its_page_and_is_escaped() {
    let mut run = recorded();
    let page = render(&sample(), &run);
    assert!(!page.contains("Load beside it"));
    run.loads.push(whylate_model::load::LoadFacts {
        load: "net".to_owned(),
        what: "TCP bulk <b>over</b> loopback".to_owned(),
        amount: 250_000_000,
        unit: "bytes".to_owned(),
        time: whylate_model::Nanos(2_000_000_000),
        offered: None,
        lost: None,
        course: Vec::new(),
        ended_early: false,
        notes: Vec::new(),
    });
    let page = render(&sample(), &run);
    assert!(page.contains("Load beside it") && page.contains("1.00 Gbit/s"));
    assert!(!page.contains("<b>over</b>"));
}

#[test]
fn a_page_of_several_backends_has_a_row_and_an_interval_of_each_and_why_one_is_missing() {
    let (_home, directory) = empty();
    let page = render(&directory, &crate::backends::tests::planted());
    for part in ["id=\"backends\"", "xdp spin", "udp spin again", "not measured", "CAP_NET_RAW"] {
        assert!(page.contains(part), "no `{part}` on the page");
    }
    assert!(page.contains("Saved against udp spin"));
}

#[test]
fn a_calibration_and_a_device_have_their_sections_with_a_figure_and_tables() {
    let (_home, directory) = empty();
    let mut run = recorded();
    run.calibration = Some(Box::new(crate::calibration::tests::calibration()));
    let page = render(&directory, &run);
    for part in [
        "id=\"calibrated\"",
        "less the path of 3.2 µs: trusted up to p99",
        "packet spin: errors, n = 300,000",
        "dpdk was not calibrated: no huge pages",
    ] {
        assert!(page.contains(part), "no {part}");
    }
    assert_eq!(error_figures(&run).len(), 1);
    run.calibration = None;
    run.device = Some(Box::new(crate::device::tests::device()));
    let page = render(&directory, &run);
    for part in
        ["id=\"device\"", "what the box itself wrote down", "store-and-forward", "2 ports into p4"]
    {
        assert!(page.contains(part), "no {part}");
    }
    assert_eq!(bounds_figures(&run).len(), 1);
    assert!(!page.contains("id=\"calibrated\""));
}

#[test]
fn what_the_numbers_of_a_calibration_come_from_is_nothing_that_figures_lack() {
    use whylate_model::calibration_parts::{CalibrationPart, CalibrationParts, PartOf};
    let (_home, directory) = empty();
    let mut log = directory.histogram_log().unwrap();
    let values: Histogram = [900_u64, 40_000].into_iter().collect();
    for of in ["measured", "error", "error-below-zero", "back-to-back", "at-100us-truth"] {
        log.append(&format!("udp-spin-{of}"), &values, 0.0, 1.0).unwrap();
    }
    log.append("nobody", &values, 0.0, 1.0).unwrap();
    let mut run = recorded();
    run.segments.clear();
    run.worst.clear();
    run.gaps.clear();
    run.series.truncate(1);
    "udp-spin-measured".clone_into(&mut run.series[0].name);
    (run.series[0].n, run.series[0].stationarity) = (2, None);
    run.series[0].quantiles.clear();
    let strange = |run: &Run| {
        let notes = read(&directory, run).notes;
        notes.into_iter().find(|note| note.contains("of the histogram log")).unwrap_or_default()
    };
    assert!(strange(&run).starts_with("5 lines of the histogram log"), "{}", strange(&run));
    let part = CalibrationPart {
        backend: "udp spin".to_owned(),
        between: PartOf::BackToBack,
        round: 0,
        directory: "parts/001-udp-spin".to_owned(),
        commands: Vec::new(),
        achieved_pps: 1_000.0,
        met: None,
        measured_p50: None,
        truth_p50: None,
        failed: None,
    };
    let parts = CalibrationParts { parts: vec![part], ..CalibrationParts::default() };
    run.calibration_parts = Some(Box::new(parts));
    // A line that is nobody's is told as before.
    let told = strange(&run);
    assert_eq!(told, "1 line of the histogram log is not drawn: of no series of this run");
}

#[test]
fn series_beyond_what_a_page_has_room_for_are_told_apart_from_those_of_nobody() {
    let (_home, directory) = empty();
    let mut log = directory.histogram_log().unwrap();
    let values: Histogram = [900_u64, 40_000].into_iter().collect();
    for number in 0..70 {
        log.append(&format!("box-{number}-there"), &values, 0.0, 1.0).unwrap();
    }
    let mut run = recorded();
    run.segments.clear();
    run.worst.clear();
    run.gaps.clear();
    run.series.clear();
    let notes = read(&directory, &run).notes;
    let told = notes.iter().find(|note| note.contains("of the histogram log")).unwrap();
    assert!(
        told.starts_with("6 lines of the histogram log are not drawn: a page has room"),
        "{told}"
    );
    assert!(!notes.iter().any(|note| note.contains("no series of this run")), "{notes:?}");
}

#[test]
fn numbers_beyond_trust_are_marked_grey_and_explained_on_the_page() {
    let (_home, directory) = empty();
    let mut run = crate::trusted::tests::calibrated(Some(99.0));
    run.segments.clear();
    run.worst.clear();
    let page = render(&directory, &run);
    assert!(page.contains("<td class=\"beyond\">~60 µs</td>"), "no grey p99.9");
    assert!(page.contains("<td>20 µs</td>"), "p99 is not as it was");
    assert!(page.contains("rtt: numbers beyond p99, marked ~,"));
    assert!(page.contains("trusted up to p99<") && page.contains("curve faint"));
    assert!(!page.contains("STALE"));
    if let Some(trust) = run.flows[0].trust.as_mut() {
        trust.stale = Some("kernel was 6.12.1 and is 6.12.2".to_owned());
    }
    let page = render(&directory, &run);
    assert!(page.contains("STALE: kernel was 6.12.1 and is 6.12.2. Calibrate again."));
    assert!(page.contains("<td class=\"beyond\">~60 µs</td>"), "it is grey all the same");
    run.flows[0].trust = None;
    let page = render(&directory, &run);
    assert!(!page.contains("class=\"beyond\"") && !page.contains("curve faint"));
}
