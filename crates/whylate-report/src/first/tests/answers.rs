//! Answers with planted numbers, word by word: what a first screen says at first, and a report and its page as well.

use whylate_model::cause::Cause;
use whylate_model::flow::{Across, Distribution, Flow, OutOf, Packets, ProcessVerdict, Receptions};
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::threads::{Deadlines, MissCause};
use whylate_model::wake::WakeSummary;
use whylate_model::{Nanos, RunDir};

use super::{KINDS, shown, style};
use crate::kept::kept;
use crate::merge::flows::tests::flow;
use crate::numbers::count;
use crate::timeline::tests::recorded;
use crate::{Style, answer, html, render};

/// Letters of an answer for which each screen has room.
const BEGIN: usize = 140;

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_report_and_its_page_begin_with_the_answer_of_the_first_screen() {
    for kind in KINDS {
        let (directory, run): (RunDir, Run) = kept(kind);
        let answer = answer(&run);
        // What a screen has no room for is cut.
        let screen = flat(&shown(&run, style()));
        let begin: String = answer.chars().take(BEGIN).collect();
        assert!(screen.contains(&begin), "{answer}\n{screen}");
        let wide = Style { width: 4_000, ..style() };
        let report = render(&run, wide);
        assert_eq!(report.lines().nth(1), Some(answer.as_str()), "{kind}: {report}");
        let page = html::render(&directory, &run);
        let said = format!("<p class=\"answer\">{}</p>", crate::svg::escaped(&answer));
        assert!(page.contains(&said), "{kind}: {said}");
    }
}

/// What a recording of an older version asked in a sentence is in none of them.
#[test]
fn a_report_and_its_page_have_what_was_measured_as_their_title_and_no_question() {
    for kind in KINDS {
        let (directory, run): (RunDir, Run) = kept(kind);
        let report = render(&run, Style { width: 4_000, ..style() });
        let title = report.lines().next().unwrap_or_default();
        assert!(!title.is_empty() && !title.contains('?') && title != run.question, "{title}");
        assert!(title.chars().count() <= 80, "{title}");
        let page = html::render(&directory, &run);
        let escaped = crate::svg::escaped(title);
        assert!(page.contains(&format!("<h1>{escaped}</h1>")), "{kind}: {title}");
        assert!(page.contains(&format!("<title>whylate: {escaped}</title>")), "{kind}: {title}");
        assert!(!report.contains(&run.question) && !page.contains(&run.question), "{kind}");
    }
    let titles = ["gaps", "merge", "threads"].map(|kind| super::super::subject::of(&kept(kind).1));
    let expected = [
        "Lost CPU time on CPU 1",
        "Lost CPU time on CPU 1, over 2 runs",
        "Deadlines of 3 threads on CPU 1",
    ];
    assert_eq!(titles, expected);
}

#[test]
fn a_client_that_fell_behind_is_told_by_how_many_requests_it_sent_late() {
    let mut run = kept("rtt").1;
    let said = "The client fell behind: 208 of 300 requests left more than 50 µs late.";
    assert!(answer(&run).contains(said), "{}", answer(&run));
    let process = &mut run.flows[0].departures.process;
    process.tolerance = Nanos(20_000);
    process.beyond_tolerance = Some(OutOf { count: 41, of: 5_000 });
    assert!(answer(&run).contains(": 41 of 5,000 requests left more than 20 µs late."));
    // Few were late: the process is disturbed by the distances between its requests.
    let mut other = run.clone();
    let process = &mut other.flows[0].departures.process;
    process.distribution =
        Some(Distribution { n: 5_000, largest: 0.4, a_squared: 900.0, effect: 0.2 });
    assert!(answer(&other).contains(": 41 of 5,000 requests left more than 20 µs late."));
    other.flows[0].departures.process.lateness_p999 = Some(Nanos(19_000));
    let said = answer(&other);
    assert!(said.contains("The send intervals do not follow a Poisson process."), "{said}");
    assert!(!said.contains("fell behind"), "{said}");
    // Where nothing counts them, or none was late, what the p99 leaves is all that is known.
    for late in [None, Some(OutOf { count: 0, of: 5_000 })] {
        run.flows[0].departures.process.beyond_tolerance = late;
        assert!(answer(&run).contains("1% of requests left at least 11.0 ms late"), "{late:?}");
    }
}

#[test]
fn the_answer_of_wake_ups_counts_those_skipped_at_their_own_latency() {
    let mut run = kept("wake").1;
    let with_median = |run: &mut Run, name: &str, median: u64| {
        let series = run.series.iter_mut().find(|series| series.name == name).unwrap();
        series.quantiles[0].value = Some(Nanos(median));
    };
    with_median(&mut run, "wake-HR", 45_600);
    with_median(&mut run, "wake-corrected-HR", 194_000);
    run.wakes[0].skipped = Some(2_395);
    assert!(answer(&run).contains(": p50 194 µs, "), "{}", answer(&run));
    // A timer that skips nothing has nothing to correct.
    run.series.retain(|series| series.name != "wake-corrected-HR");
    run.wakes[0].skipped = None;
    assert!(answer(&run).contains(": p50 45.6 µs, "), "{}", answer(&run));
}

#[test]
fn counts_of_threads_that_no_sum_holds_end_at_the_largest() {
    let mut run = kept("threads").1;
    let judged = run.threads.iter().position(|of| of.deadlines.is_some()).unwrap();
    let mut thread = run.threads.swap_remove(judged);
    if let Some(deadlines) = &mut thread.deadlines {
        (deadlines.hits, deadlines.misses) = (u64::MAX, u64::MAX);
    }
    run.threads = vec![thread.clone(), thread];
    let largest = count(u64::MAX);
    let said = answer(&run);
    assert!(said.starts_with(&format!("{largest} of {largest} deadlines were missed")), "{said}");
}

fn missed(hits: u64, misses: u64, causes: &[(Cause, u64)]) -> Deadlines {
    let causes = causes.iter().cloned().map(|(cause, misses)| MissCause { cause, misses });
    let causes = causes.collect();
    Deadlines {
        hits,
        misses,
        deadline: None,
        skipped: 0,
        unfinished: 0,
        unrecorded: 0,
        miss_share_interval: None,
        causes,
        unexplained: None,
        first: Vec::new(),
        ordinary: None,
    }
}

#[test]
fn deadlines_are_added_up_and_the_thread_that_missed_most_is_named_with_its_largest_cause() {
    let mut run = kept("threads").1;
    let mut said = |of: [Option<Deadlines>; 3]| {
        run.threads.iter_mut().zip(of).for_each(|(thread, of)| thread.deadlines = of);
        answer(&run)
    };
    let few = missed(5, 2, &[(Cause::Host, 2)]);
    let many = missed(10, 7, &[(Cause::Host, 3), (Cause::PageFault, 4)]);
    assert_eq!(
        said([Some(few.clone()), Some(many), None]),
        "9 of 24 deadlines were missed (38%): 7 by thread video, 2 by thread audio. Thread video missed most \
         often because of other causes (4 of 7)."
    );
    let unknown = missed(10, 7, &[(Cause::Unknown, 5), (Cause::Host, 2)]);
    assert_eq!(
        said([Some(few), Some(unknown), None]),
        "9 of 24 deadlines were missed (38%): 7 by thread video, 2 by thread audio. Thread video missed most \
         often without a known cause (5 of 7)."
    );
    let met = |hits| Some(missed(hits, 0, &[]));
    assert_eq!(said([met(1_000), met(5), None]), "All 1,005 deadlines were met.");
}

#[test]
fn of_several_threads_that_were_woken_the_best_and_the_worst_are_named() {
    let mut run = kept("wake").1;
    let (wake, thread) = (run.wakes[0].clone(), run.threads[0].clone());
    let template = run.series[0].clone();
    run.series.clear();
    (run.wakes, run.threads) = (Vec::new(), Vec::new());
    for (name, median, p99, max) in [
        ("a", Some(30_000), Some(40_000), 50_000),
        ("b", Some(10_000), Some(20_000), 90_000),
        ("c", Some(20_000), Some(80_000), 85_000),
    ] {
        let mut series = Series { name: format!("wake-{name}"), ..template.clone() };
        for (percent, value) in [(50.0, median), (99.0, p99)] {
            let of = series.quantiles.iter_mut().find(|of| (of.percent - percent).abs() < 1e-9);
            let of = of.unwrap();
            of.value = value.map(Nanos);
            (of.low, of.high) = (of.value, of.value);
        }
        series.max = Some(Nanos(max));
        run.series.push(series);
        run.wakes.push(WakeSummary { thread: name.to_owned(), skipped: Some(0), ..wake.clone() });
        run.threads.push(whylate_model::threads::ThreadSummary {
            name: name.to_owned(),
            ..thread.clone()
        });
    }
    assert_eq!(answer(&run), "Wake-up latency on CPU 1: best b (p99 20 µs), worst c (p99 80 µs).");
}

/// A run of one flow whose series of this name has these percentiles.
fn timed(flow: Flow, series: &str, percentiles: &[(f64, u64)]) -> Run {
    let mut run = Run { flows: vec![flow], gaps: Vec::new(), ..recorded() };
    series.clone_into(&mut run.series[0].name);
    for of in &mut run.series[0].quantiles {
        let found = percentiles.iter().find(|(percent, _)| (of.percent - percent).abs() < 1e-9);
        of.value = found.map(|(_, ns)| Nanos(*ns));
        of.low = None;
    }
    run.series[0].max = Some(Nanos(900_000));
    run
}

const TAIL: [(f64, u64); 2] = [(50.0, 12_000), (99.0, 20_000)];

#[test]
fn requests_are_answered_with_their_median_their_p99_and_the_worst() {
    let open = flow(1_000, ProcessVerdict::Held);
    let said = |of: &Flow, series| answer(&timed(of.clone(), series, &TAIL));
    let times = "p50 12 µs, p99 20 µs, worst 900 µs";
    assert_eq!(
        said(&open, "rtt-response"),
        format!("Response time (udp over ipv4): {times}; 100 lost.")
    );
    // What has samples is told, whatever it is of.
    assert_eq!(said(&open, "another"), "Stalls, CPU 1: p50 12 µs, p99 20 µs, worst 900 µs.");
    let mut none = timed(open.clone(), "another", &TAIL);
    none.series[0].n = 0;
    assert_eq!(answer(&none), "Nothing was measured.");
    let mut closed = flow(1_000, ProcessVerdict::ClosedLoop);
    closed.response = None;
    closed.packets.lost = 0;
    assert_eq!(
        said(&closed, "rtt-service"),
        format!("Service time (closed loop, udp over ipv4): {times}; none lost.")
    );
}

#[test]
fn what_is_beyond_the_trust_of_a_calibration_is_marked_and_the_mark_is_explained() {
    use crate::trusted::tests::calibrated;
    let marked = shown(&calibrated(Some(95.0)), style());
    assert!(marked.contains("p99 ~") && !marked.contains("p50 ~"), "{marked}");
    assert!(marked.contains("~20 ") && marked.contains("\n~: beyond what "), "{marked}");
    // Only percentiles are calibrated: the largest value is beyond each of them, here as in the whole report.
    let last = shown(&calibrated(Some(99.99)), style());
    assert!(last.contains("worst ~") && !last.contains("p99 ~"), "{last}");
    let mut unknown = calibrated(None);
    unknown.flows[0].trust = None;
    assert!(!shown(&unknown, style()).contains('~'));
}

#[test]
fn messages_without_a_reply_are_answered_with_what_came() {
    let mut one_way = flow(1_000, ProcessVerdict::Held);
    one_way.asked.one_way = true;
    let said = |flow: &Flow| answer(&timed(flow.clone(), "rtt-response", &[]));
    assert_eq!(said(&one_way), "900 of 1,000 messages came; 100 lost.");
    let receptions = Receptions {
        per_second: Some(450.0),
        gap_min: Nanos(1),
        gap_median: Nanos(2),
        gap_p99: Nanos(3),
        gap_max: Nanos(4),
    };
    one_way.other_end.as_mut().unwrap().receptions = Some(receptions);
    assert_eq!(said(&one_way), "900 of 1,000 messages came at 450/s; 100 lost.");
    one_way.packets.unaccounted = 1;
    assert_eq!(said(&one_way), "How many of the 1,000 messages came is unknown.");
    one_way.packets = Packets::default();
    assert_eq!(said(&one_way), "0 of 0 messages came at 450/s; none lost.");
}

#[test]
fn messages_that_their_sender_hears_are_answered_with_their_way_between_the_ports() {
    let mut heard = flow(1_000, ProcessVerdict::Held);
    let (out, back) = ("client0".to_owned(), "server0".to_owned());
    heard.way.across = Some(Across { out, back, one_thread: true });
    (heard.response, heard.other_end, heard.packets.lost) = (None, None, 0);
    let run = timed(heard, "rtt-service", &TAIL);
    assert_eq!(
        answer(&run),
        "One-way latency, client0 to server0 (udp over ipv4): p50 12 µs, p99 20 µs, worst 900 µs; none lost."
    );
    let screen = shown(&run, style());
    assert!(screen.contains("\nmessages ") && !screen.contains("request"), "{screen}");
}

#[test]
fn requests_answered_after_the_timeout_are_no_requests_without_loss() {
    let told = |lost, given_up| {
        let packets = Packets { sent: 1_000, lost, given_up, ..Packets::default() };
        super::super::rtt::lost(&packets).said()
    };
    assert_eq!(told(0, 0), "none lost");
    assert_eq!(told(100, 100), "100 lost");
    assert_eq!(told(0, 230), "none lost, 230 answered after the timeout");
    assert_eq!(told(100, 330), "100 lost, 230 answered after the timeout");
}
