//! The recorded set, planted ones, and directories in which something is missing.

use std::path::Path;

use tempfile::TempDir;
use whylate_model::directory::parse_run;
use whylate_model::origin::Origin;
use whylate_model::segments::{Limits, Writer};
use whylate_model::{CpuId, Hertz};

use super::*;
use crate::Style;
use crate::terminal::{Traced, render_with};

/// The run of the recorded set.
pub(crate) fn set() -> Run {
    let json = include_bytes!("../../../../../tests/runs/threads/run.json");
    parse_run(Path::new("run.json"), json).unwrap()
}

/// Its directory.
pub(crate) fn sample() -> RunDir {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs/threads");
    RunDir::open(path).unwrap()
}

pub(crate) fn empty() -> (TempDir, RunDir) {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(home.path().join("run"), 0).unwrap();
    (home, directory)
}

/// A sum that holds this run and has its threads, as no merge makes it.
pub(crate) fn merged() -> Run {
    let mut run = set();
    let of = run.clone();
    run.origins = vec![Origin {
        directory: "a".to_owned(),
        tool_version: of.tool_version,
        command_line: of.command_line,
        question: of.question,
        seed: of.seed,
        state: of.state,
        host: of.host,
        clock: of.clock,
        settings: of.settings,
        series: Vec::new(),
        worst: Vec::new(),
        warnings: Vec::new(),
        verdict: of.verdict,
        doubts: Vec::new(),
        segments: Vec::new(),
        loads: Vec::new(),
        switch_cost: None,
        traced: None,
    }];
    run
}

/// A run of two threads whose ticks are nanoseconds, from tick 1000 on for ten seconds.
fn planted() -> Run {
    let mut run = set();
    run.clock.hz = Hertz(1e9);
    run.segments.clear();
    run.threads.truncate(2);
    for thread in &mut run.threads {
        (thread.start, thread.end) = (Ticks(1_000), Ticks(1_000 + 10 * Nanos::SECOND.0));
        if let Some(deadlines) = &mut thread.deadlines {
            deadlines.first.clear();
        }
    }
    run
}

const MS: u64 = 1_000_000;

fn block(thread: u16, start_ms: u64, end_ms: u64) -> Block {
    let at = |ms: u64| Ticks(1_000 + ms * MS);
    Block { thread, cpu: CpuId(1), start: at(start_ms), end: at(end_ms) }
}

/// A job that lost nothing, due every 10 ms and done 2 ms late.
pub(crate) fn job(thread: u16, index: u64, verdict: Verdict) -> StoredJob {
    let release = 1_000 + index * 10 * MS;
    StoredJob {
        thread,
        index,
        release: Ticks(release),
        deadline: Ticks(release + 10 * MS),
        woke: Some(Ticks(release)),
        done: (verdict != Verdict::Skipped).then_some(Ticks(release + 12 * MS)),
        received: Nanos(1),
        verdict,
        threads: Nanos(0),
        waking: Nanos(0),
        interrupts: Nanos(0),
        host: Nanos(0),
        blocked: Nanos(0),
        away: Nanos(0),
        unknown: Nanos(0),
    }
}

fn holding(blocks: &[Block], jobs: &[StoredJob]) -> (TempDir, RunDir) {
    let (home, directory) = empty();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    for block in blocks {
        writer.push_block(block).unwrap();
    }
    for job in jobs {
        writer.push_job(job).unwrap();
    }
    writer.checkpoint().unwrap();
    (home, directory)
}

/// Two threads that take turns of 10 ms for ten seconds.
fn turns() -> Vec<Block> {
    (0..1_000).map(|turn| block((turn % 2) as u16, turn * 10, turn * 10 + 9)).collect()
}

#[test]
fn the_recorded_set_has_its_trace_around_the_first_miss_and_its_switches() {
    let run = set();
    let recorded = Recorded::read(&sample(), &run, None).unwrap();
    assert_eq!(recorded.notes(), [] as [String; 0]);
    let rows = recorded.rows().unwrap();
    assert_eq!(rows.len(), run.threads.len());
    assert!(rows.iter().all(|row| !row.spans.is_empty()), "every thread ran in it");
    assert!(
        recorded.window_in_words().starts_with("Around the first missed deadline, of job 0 of")
    );
    let [cpu] = recorded.switches() else { panic!("one CPU: {:?}", recorded.switches()) };
    // Those that rule R1 found while the set was recorded.
    let found = run.findings.iter().find(|finding| finding.text.contains("context switches"));
    let found = found.unwrap().text.split_whitespace().next().unwrap().parse().ok();
    assert_eq!(Some(cpu.times.n), found);
}

#[test]
fn a_window_that_is_asked_for_is_drawn_with_the_blocks_in_it() {
    let (_home, directory) = holding(&turns(), &[]);
    let window = Window { from: Nanos(5_000 * MS), length: Nanos(19 * MS) };
    let recorded = Recorded::read(&directory, &planted(), Some(window)).unwrap();
    let spans: Vec<_> = recorded.rows().unwrap().iter().map(|row| row.spans.clone()).collect();
    let at = |ms: u64| (ms * MS) as f64;
    let span = |from: u64, to: u64| super::super::Span { from_ns: at(from), to_ns: at(to) };
    assert_eq!(spans, [vec![span(5_000, 5_009)], vec![span(5_010, 5_019)]]);
    assert_eq!(recorded.window_in_words(), "From 5 s to 5.02 s, as asked.");
    assert_eq!(recorded.switches()[0].times.n, 999, "switches are those of all blocks");
}

#[test]
fn without_a_miss_the_window_holds_ten_deadlines_or_a_second() {
    let hits: Vec<StoredJob> = (0..100).map(|index| job(0, index, Verdict::Hit)).collect();
    let of = |jobs: &[StoredJob]| {
        let (_home, directory) = holding(&turns(), jobs);
        Recorded::read(&directory, &planted(), None).unwrap().window()
    };
    assert_eq!(of(&hits), Window { from: Nanos(0), length: Nanos(100 * MS) });
    assert_eq!(of(&[]), Window { from: Nanos(0), length: Nanos::SECOND });
}

#[test]
fn the_window_lies_around_the_first_miss_of_all_threads() {
    for verdict in [Verdict::Late, Verdict::Skipped, Verdict::Unfinished] {
        let jobs: Vec<StoredJob> = (0..900)
            .map(|index| job((index % 2) as u16, index, Verdict::Hit))
            .chain([job(1, 801, Verdict::Late), job(0, 700, verdict)])
            .collect();
        let (_home, directory) = holding(&turns(), &jobs);
        let recorded = Recorded::read(&directory, &planted(), None).unwrap();
        // Released at 7 s; two deadlines before it, two after its end or its deadline.
        let end = if verdict == Verdict::Skipped { 7_030 } else { 7_032 };
        let window = Window { from: Nanos(6_980 * MS), length: Nanos((end - 6_980) * MS) };
        assert_eq!(recorded.window(), window, "{verdict:?}");
        assert!(recorded.window_in_words().contains("of job 700 of thread audio"));
        assert!(recorded.rows().unwrap().iter().all(|row| !row.spans.is_empty()));
    }
}

#[test]
fn what_is_missing_or_damaged_is_said_and_the_rest_is_shown() {
    let (_home, directory) = empty();
    let recorded = Recorded::read(&directory, &set(), None).unwrap();
    assert!(recorded.rows().is_none() && recorded.switches().is_empty());
    assert!(recorded.notes()[0].contains("holds no block"), "{:?}", recorded.notes());
    // The run itself knows where its first miss was.
    assert!(recorded.window_in_words().starts_with("Around the first missed deadline"));

    let (_home, directory) = empty();
    for name in ["blocks-0001.parquet", "jobs-0001.parquet"] {
        let content = std::fs::read(sample().path().join(name)).unwrap();
        std::fs::write(directory.path().join(name), &content[..content.len() / 2]).unwrap();
    }
    let whole = directory.path().join("blocks-0002.parquet");
    std::fs::copy(sample().path().join("blocks-0001.parquet"), whole).unwrap();
    let recorded = Recorded::read(&directory, &set(), None).unwrap();
    assert!(recorded.rows().is_some() && recorded.switches().len() == 1);
    let notes = recorded.notes().join("\n");
    assert!(
        notes.contains("blocks-0001.parquet") && notes.contains("jobs-0001.parquet"),
        "{notes}"
    );

    let recorded = Recorded::read(&sample(), &merged(), None).unwrap();
    assert!(recorded.rows().is_none());
    assert!(recorded.notes()[0].contains("a sum of recordings"), "{:?}", recorded.notes());

    let mut other = set();
    other.threads.clear();
    assert_eq!(Recorded::read(&sample(), &other, None), None);
}

#[test]
fn two_threads_on_one_cpu_at_a_time_have_no_switches_and_a_reason() {
    let (_home, directory) = holding(&[block(0, 0, 10), block(1, 5, 20)], &[]);
    let recorded = Recorded::read(&directory, &planted(), None).unwrap();
    assert!(recorded.switches().is_empty() && recorded.rows().is_some());
    assert!(recorded.notes()[0].contains("did not share one CPU"), "{:?}", recorded.notes());
}

#[test]
fn ticks_and_times_of_any_kind_do_no_harm() {
    let strange = [
        Block {
            thread: u16::MAX,
            cpu: CpuId(u32::MAX),
            start: Ticks(0),
            end: Ticks(u64::MAX >> 1),
        },
        Block { thread: 1, cpu: CpuId(0), start: Ticks(0), end: Ticks(0) },
    ];
    let mut late = job(9, 0, Verdict::Late);
    (late.index, late.release, late.deadline) = (u64::MAX >> 1, Ticks(0), Ticks(i64::MAX as u64));
    let (_home, directory) = holding(&strange, &[late, StoredJob { thread: 0, ..late }]);
    let end = Nanos(u64::MAX);
    for hz in [1e9, 0.0, f64::NAN, f64::INFINITY, 1e-300] {
        let mut run = planted();
        run.clock.hz = Hertz(hz);
        for window in [None, Some(Window { from: end, length: end })] {
            let recorded = Recorded::read(&directory, &run, window).unwrap();
            let traced = Traced { recorded: &recorded, trace: true };
            let text = render_with(&run, Some(traced), Style::default());
            assert!(text.contains("Execution trace"));
        }
    }
}

#[test]
fn the_terminal_s_report_has_the_trace_and_the_switches() {
    let run = set();
    let recorded = Recorded::read(&sample(), &run, None).unwrap();
    let render =
        |trace| render_with(&run, Some(Traced { recorded: &recorded, trace }), Style::default());
    let text = render(true);
    let from = text.find("Deadlines\n").unwrap();
    let to = text.find("\nLost time by cause").unwrap();
    insta::assert_snapshot!(&text[from..to]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!render(false).contains("Execution trace"));
    assert!(!crate::render(&run, Style::default()).contains("Context switches\n"));
}
