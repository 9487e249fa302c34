//! The command line of Hourglass 0.5, run as the paper prints it.

use std::path::Path;

use whylate_model::run::Verdict;
use whylate_model::warning::Warning;

use crate::needs;
use crate::program::{self, Recorded, said, whylate};
use crate::reservations;

/// Every command line that the paper prints, in its order.
const OF_THE_PAPER: [&str; 12] = [
    "-n 3 -d 5s -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH",
    "-d 60s -n 10 -a -p NORMAL -w CPU",
    "-d 60s -n 10 -a -p NORMAL -w CPU_YIELD 0.9ms",
    "-d 6m -n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i RTC",
    "-d 20s -n 1 -t 0 -p RTHIGH -w PERIODIC 4ms 5ms -i RTC",
    "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i NATIVE",
    "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i HR",
    "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 12ms 33ms -i NATIVE",
    "-n 2 -t 0 -w PERIODIC 3ms 8ms -rh 3ms 8ms -t 1 -w PERIODIC 17ms 33ms -rh 17ms 33ms",
    "-n 2 -t 0 -w PERIODIC 3ms 8ms -rh 3.1ms 8ms -t 1 -w PERIODIC 17ms 33ms -rh 17.1ms 33ms",
    "-n 2 -a -w CPU_SCAN 32 -t 1 -w CPU_SCAN_YIELD 32 1ms",
    "-n 1 -t 0 -w CPU_PERIODIC 10ms 50ms",
];

/// The same, over in less than a second.
fn shortened(words: &str) -> String {
    let mut all: Vec<&str> = words.split(' ').collect();
    if let Some(at) = all.iter().position(|word| *word == "-d") {
        all.drain(at..at + 2);
    }
    format!("hourglass --raw -d 100ms {}", all.join(" "))
}

/// A line of the execution trace.
struct Line {
    thread: usize,
    start: f64,
    finish: f64,
    duration: f64,
    gap: f64,
}

/// What was printed, by the column definitions of the paper.
#[derive(Default)]
struct Printed {
    trace: Vec<Line>,
    raw: usize,
    latencies: Vec<f64>,
    deadlines: Vec<(usize, u64, u64)>,
}

fn parse(text: &str) -> Printed {
    let mut printed = Printed::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["latlate:", late] => printed.latencies.push(late.parse().unwrap()),
            ["thread", number, "missed", missed, "deadlines,", "hit", hit] => {
                let number = number.trim_end_matches(':').parse().unwrap();
                printed.deadlines.push((number, missed.parse().unwrap(), hit.parse().unwrap()));
            }
            ["raw:", ..] => printed.raw += 1,
            [thread, start, finish, duration, gap] => {
                for number in [start, finish, duration, gap] {
                    assert_eq!(number.split_once('.').unwrap().1.len(), 6, "{line}");
                }
                let number = |text: &str| text.parse::<f64>().unwrap();
                printed.trace.push(Line {
                    thread: thread.parse().unwrap(),
                    start: number(start),
                    finish: number(finish),
                    duration: number(duration),
                    gap: number(gap),
                });
            }
            _ => panic!("not a line of the paper: {line}"),
        }
    }
    printed
}

fn printed(recorded: &Recorded) -> Printed {
    parse(&String::from_utf8_lossy(&recorded.output.stdout))
}

/// What must be true of every run on one CPU.
fn is_sound(printed: &Printed, words: &str) {
    let mut last: f64 = 0.0;
    for line in &printed.trace {
        // A nanosecond of rounding in each number.
        assert!((line.finish - line.start - line.duration).abs() < 3e-6, "{words}");
        assert!((line.start - last - line.gap).abs() < 3e-6 || line.gap == 0.0, "{words}");
        assert!(line.duration >= 0.0 && line.start >= last - 3e-6, "{words}: {}", line.start);
        last = line.finish;
    }
}

#[test]
fn every_command_line_of_the_paper_runs_and_prints_its_columns() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    // Two that reserve would ask for more of a CPU together than there is.
    let (reserved, others): (Vec<&str>, Vec<&str>) =
        OF_THE_PAPER.into_iter().partition(|words| words.contains(" -rh "));
    program::two_at_once(&others, runs_and_prints_its_columns);
    reserved.into_iter().for_each(runs_and_prints_its_columns);
}

fn runs_and_prints_its_columns(words: &str) {
    let words = shortened(words);
    if words.contains("RTC") && !Path::new("/dev/rtc").exists() {
        let recorded = whylate(words.split(' ')).output().unwrap();
        assert_eq!(recorded.status.code(), Some(1), "{}", said(&recorded));
        assert!(said(&recorded).contains("/dev/rtc"), "{}", said(&recorded));
        return;
    }
    if words.contains(" -rh ")
        && let Some(why) = reservations::refused(&words)
    {
        return needs::absent(&format!("no reservations here: {why}"));
    }
    let recorded = program::recorded(&words);
    let printed = printed(&recorded);
    is_sound(&printed, &words);
    let threads = recorded.run.threads.len();
    assert!(printed.trace.iter().all(|line| line.thread < threads), "{words}");
    let blocks: u64 = recorded.run.threads.iter().map(|thread| thread.blocks).sum();
    assert_eq!(printed.trace.len() as u64, blocks, "{words}");
    let with = recorded.run.threads.iter().filter(|thread| thread.deadlines.is_some()).count();
    assert_eq!(printed.deadlines.len(), with, "{words}");
    assert_eq!(printed.raw, 0, "{words}");
}

#[test]
fn every_job_of_the_papers_rate_monotonic_threads_is_a_hit_or_a_miss() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    // Eight periods of 33 ms, 33 of 8 ms.
    let words = "hourglass -d 264ms -n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR \
                 -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i HR";
    let run = program::recorded(words).run;
    let jobs = |index: usize| {
        let of = run.threads[index].deadlines.as_ref().unwrap();
        assert!(of.causes.iter().map(|of| of.misses).sum::<u64>() <= of.misses, "{of:?}");
        assert!(of.first.len() as u64 <= of.misses, "{of:?}");
        of.hits + of.misses
    };
    assert_eq!((jobs(0), jobs(1)), (33, 8));
}

#[test]
fn the_raw_trace_has_a_line_for_each_record_and_a_small_trace_counts_what_it_leaves_out() {
    let _alone = program::alone();
    let recorded = program::recorded("hourglass --raw -d 500ms -n 2 -c -e 20 -a -w CPU");
    let printed = printed(&recorded);
    assert_eq!((printed.trace.len(), printed.raw), (20, 20));
    let kept = std::fs::read(recorded.directory.join("hourglass.txt")).unwrap();
    assert_eq!(kept, recorded.output.stdout, "the run has what was printed");
    let cut = recorded.run.warnings.iter().find_map(|warning| match warning {
        Warning::ExecutionCut { kept, lost } => Some((*kept, *lost)),
        _ => None,
    });
    let blocks: u64 = recorded.run.threads.iter().map(|thread| thread.blocks).sum();
    assert_eq!(cut, Some((20, blocks - 20)));
}

#[test]
fn without_raw_a_report_is_printed_and_the_run_has_the_lines_of_the_paper() {
    let _alone = program::alone();
    let words = "hourglass -d 100ms -n 1 -t 0 -p NORMAL -i HR -w PERIODIC 1ms 10ms";
    let recorded = program::recorded(words);
    let report = String::from_utf8_lossy(&recorded.output.stdout);
    assert!(report.contains("whylate report "), "{report}");
    let lines = recorded.directory.join("hourglass.txt");
    let text = std::fs::read_to_string(&lines).unwrap();
    let kept = parse(&text);
    assert_eq!(kept.trace.len() as u64, recorded.run.threads[0].blocks);
    assert_eq!(kept.deadlines.len(), 1);
    // They are a file of the run as its others are.
    program::reported(&recorded.directory, &[]);
    std::fs::write(&lines, text.replacen(' ', "  ", 1)).unwrap();
    let output = whylate(["report"]).arg(&recorded.directory).output().unwrap();
    let told = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("hourglass.txt is not as it was recorded"), "{told}");
}

#[test]
fn latencies_are_printed_raw_and_one_for_each_wake_up() {
    let _alone = program::alone();
    let words =
        "hourglass --raw -d 300ms -n 2 -a -p NORMAL -i HR -t 0 -w LAT 5.3ms -t 1 -w LAT_ABS 5ms";
    let recorded = program::recorded(words);
    let printed = printed(&recorded);
    let wakes: u64 = recorded
        .run
        .series
        .iter()
        .filter(|series| series.name == "wake-0" || series.name == "wake-1")
        .map(|series| series.n)
        .sum();
    assert_eq!(printed.latencies.len() as u64, wakes);
    assert!(wakes > 0 && printed.latencies.iter().all(|late| *late >= 0.0));
}

#[test]
fn hundreds_of_threads_run_and_are_all_accounted_for() {
    let _alone = program::alone();
    let recorded = program::recorded("hourglass -d 500ms -n 300 -a -w PERIODIC 100us 250ms");
    assert_eq!(recorded.run.threads.len(), 300);
    for thread in &recorded.run.threads {
        let of = thread.deadlines.as_ref().unwrap();
        assert_eq!(of.hits + of.misses, 2, "thread {}", thread.name);
    }
}

#[test]
fn a_refused_priority_is_named_and_the_threads_run_all_the_same() {
    let _alone = program::alone();
    let words = "hourglass -d 300ms -n 1 -t 0 -p RTHIGH -w PERIODIC 1ms 10ms";
    let Some(recorded) = program::record_without_rights(words) else { return };
    let run = &recorded.run;
    let named = run.warnings.iter().any(|warning| warning.advice().contains("CAP_SYS_NICE"));
    assert!(named, "{:?}", run.warnings);
    assert!(run.threads[0].policy.starts_with("SCHED_OTHER"), "{}", run.threads[0].policy);
    assert!(!matches!(run.verdict, Verdict::Pending));
}
