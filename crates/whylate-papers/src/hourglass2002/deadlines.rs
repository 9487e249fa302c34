//! 5.5: response-time analysis of two tasks, beside runs with a good timer and with a coarse one.

use whylate_model::Nanos;
use whylate_model::paper::{Agreement, Scenario};
use whylate_rta::analysis::fixed_priority::analyse;
use whylate_rta::analysis::{Response, Task};

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::beside::{Other, counted, sentence};
use crate::missed::Facts;
use crate::rows::{Filled, row, time};

const TIMES: Times = Times { usual: 10, quick: 3 };
/// What the paper's usleep made of the second task: up to 8 ms late, and 2 ms of busy waiting.
const JITTER: Nanos = ms(8);
const BUSY: Nanos = ms(2);
/// Periods, which are deadlines, of the two tasks, and the execution time of the first.
const PERIODS: [Nanos; 2] = [ms(8), ms(33)];
const FIRST: Nanos = ms(3);

/// The timer of the first task, in every run.
const FIRST_TIMER: &str = "HR";

/// A run: the timer of the second task, what it stands for, its execution time, what the paper
/// counted of both tasks (missed, and all), and the timer in few words.
struct Run {
    part: &'static str,
    timer: &'static str,
    name: &'static str,
    execution: Nanos,
    paper: [(u64, u64); 2],
    brief: &'static str,
}

const RUNS: [Run; 4] = [
    Run {
        part: "5.5-coarse",
        timer: "grid(10ms)",
        name: "the clock of 10ms that the paper's usleep had",
        execution: ms(17),
        paper: [(0, 1001), (142, 285)],
        brief: "usleep (10 ms)",
    },
    Run {
        part: "5.5-native",
        timer: "NATIVE",
        name: "usleep as it is today",
        execution: ms(17),
        paper: [(0, 1001), (142, 285)],
        brief: "usleep today",
    },
    Run {
        part: "5.5-fine",
        timer: "HR",
        name: "a high-resolution timer",
        execution: ms(17),
        paper: [(0, 1003), (0, 304)],
        brief: "fine timer",
    },
    Run {
        part: "5.5-less",
        timer: "grid(10ms)",
        name: "the coarse clock, and less to do",
        execution: ms(12),
        paper: [(0, 1001), (0, 303)],
        brief: "12 ms, usleep",
    },
];

const fn ms(ms: u64) -> Nanos {
    Nanos(ms * 1_000_000)
}

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let first = Task { priority: 2, ..Task::new("0", FIRST, PERIODS[0]) };
    let second = Task { priority: 1, ..Task::new("1", ms(17), PERIODS[1]) };
    let late = Task { jitter: JITTER, execution: Nanos(ms(17).0 + BUSY.0), ..second.clone() };
    let less = Task { jitter: JITTER, execution: ms(12), ..second.clone() };
    for (what, tasks, of, paper) in [
        (
            "response of task 0",
            vec![first.clone(), second.clone()],
            0,
            Some(("3ms", ms(3), "response, task 0, analysis")),
        ),
        (
            "response of task 1",
            vec![first.clone(), second],
            1,
            Some(("29ms", ms(29), "response, task 1, analysis")),
        ),
        (
            "response of task 1 with 8ms of jitter and 2ms of busy waiting",
            vec![first.clone(), late],
            1,
            Some(("39ms, beyond its 33ms", ms(39), "response, task 1, late timer")),
        ),
        ("response of task 1 that needs 12ms, with jitter", vec![first, less], 1, None),
    ] {
        let bound = match analyse(&tasks)?.get(of).copied() {
            Some(Response::Bounded(bound)) => Some(bound),
            _ => None,
        };
        // A late release counts to the nominal response, and not to the one from the arrival.
        let arrival = bound.filter(|bound| bound.actual != bound.nominal);
        let arrival =
            arrival.map(|bound| format!("from the actual arrival it is {}", bound.actual));
        let why = sentence([Some("arithmetic: the same on every machine".to_owned()), arrival]);
        let nominal = bound.map(|bound| bound.nominal);
        let row = row(format!("{what}, by analysis"), why).here(nominal.map(time));
        scenario.rows.push(match paper {
            Some((words, paper, brief)) => row
                .paper(words)
                .agrees(nominal.map(|nominal| Agreement::of(nominal == paper)))
                .brief(brief, format!("{} ms", paper.0 / 1_000_000)),
            None => row,
        });
    }
    for run in &RUNS {
        let Run { part, timer, name, execution, paper, brief } = run;
        let words = format!(
            "-n 2 -t 0 -p RTMED -w PERIODIC {} {} -i {FIRST_TIMER} -t 1 -p RTLOW -w PERIODIC {} {} \
             -i {timer}",
            in_ms(FIRST),
            in_ms(PERIODS[0]),
            in_ms(*execution),
            in_ms(PERIODS[1])
        );
        let set = bench.hourglass(part, &words, TIMES, &[], scenario)?;
        let jobs = bench.jobs(part)?;
        for (index, (missed, all)) in paper.iter().enumerate() {
            let Some(facts) = Facts::of(&set, &jobs, index, (bench.cpu(), None)) else { continue };
            let slack = set.recorded.run.threads[index].timer_slack;
            let paper = Other::counted(*missed, *all);
            let (execution, own, what) = if index == 0 {
                let beside = format!("task 0, {FIRST_TIMER}, beside task 1 by {timer}: {name}");
                (FIRST, FIRST_TIMER, beside)
            } else {
                (*execution, *timer, format!("task 1, {timer}: {name}"))
            };
            let what = format!("missed deadlines of {what}");
            let released = released(&facts, (index, execution), slack, own)?;
            let row = facts.row(&what, [facts.beside(Some(&paper)), released]);
            scenario.rows.push(
                row.paper(format!("{missed} of {all}"))
                    .agrees(paper.agreement(&facts.here))
                    .brief(format!("misses, task {index}, {brief}"), counted(*missed, *all)),
            );
        }
    }
    Ok(())
}

/// A time as the paper writes it.
fn in_ms(time: Nanos) -> String {
    format!("{}ms", time.0 / 1_000_000)
}

/// How late the task was released by its own timer, and what the analysis makes of that; none where
/// nothing was released on time to tell.
fn released(
    facts: &Facts,
    (index, execution): (usize, Nanos),
    slack: Option<Nanos>,
    timer: &str,
) -> Result<Option<String>, PaperError> {
    let Some(late) = facts.released else { return Ok(None) };
    // A coarse clock keeps the CPU for its short sleeps, at the cost of the job that waits by it.
    let busy = if timer.starts_with("grid") { BUSY } else { Nanos(0) };
    let with =
        if busy.0 > 0 { format!("that and {busy} of busy waiting") } else { "that".to_owned() };
    let period = PERIODS[index];
    let own = Task {
        priority: 1,
        jitter: late.most,
        execution: Nanos(execution.0 + busy.0),
        ..Task::new("own", execution, period)
    };
    let more_urgent = Task { priority: 2, ..Task::new("0", FIRST, PERIODS[0]) };
    let tasks = if index == 0 { vec![own] } else { vec![more_urgent, own] };
    let expected = match analyse(&tasks)?.last().copied() {
        Some(Response::Bounded(bound)) if bound.nominal <= period => {
            format!(
                "analysed with {with} it is done {} after its release at most: that misses none",
                bound.nominal
            )
        }
        Some(Response::Bounded(bound)) => format!(
            "analysed with {with} it may be done {} after its release, beyond its {period}: misses \
             are possible",
            bound.nominal
        ),
        _ => format!("analysed with {with} its response has no bound"),
    };
    let slack = match slack {
        Some(Nanos(0)) if timer == "NATIVE" => {
            ", timer slack does not count for a real-time thread".to_owned()
        }
        Some(slack) if slack.0 > 1 => format!(", timer slack {slack}"),
        _ => String::new(),
    };
    Ok(Some(format!(
        "released late by {} (median) to {}{slack}; {expected}",
        late.median, late.most
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::missed::Spread;
    use crate::missed::tests::facts;

    fn said(late: (u64, u64), task: (usize, u64), slack: u64, timer: &str) -> String {
        let (median, most) = (Nanos(late.0), Nanos(late.1));
        let facts = Facts { released: Some(Spread { median, most }), ..facts(3, 300) };
        released(&facts, (task.0, ms(task.1)), Some(Nanos(slack)), timer).unwrap().unwrap()
    }

    #[test]
    fn what_is_to_be_expected_follows_from_how_late_releases_were() {
        // The paper's own case: 8 ms of jitter and 2 ms of busy waiting are 39 ms.
        let coarse = said((4_000_000, 8_000_000), (1, 17), 1, "grid(10ms)");
        assert!(coarse.contains("39.0ms") && coarse.contains("misses are possible"), "{coarse}");
        assert!(!coarse.contains("slack"), "{coarse}");
        assert!(coarse.contains("that and 2.00ms of busy waiting"), "{coarse}");
        // The first task waits by its own timer and keeps the CPU for no sleep.
        let first = said((5_000, 100_000), (0, 3), 0, FIRST_TIMER);
        assert!(first.contains("analysed with that it is done 3.10ms"), "{first}");
        assert!(first.contains("that misses none") && !first.contains("slack"), "{first}");
        let late = said((5_000, 4_000_000), (0, 3), 0, FIRST_TIMER);
        assert!(late.contains("done 7.00ms") && late.contains("that misses none"), "{late}");
        let native = said((55_000, 120_000), (1, 17), 50_000, "NATIVE");
        assert!(native.contains("timer slack 50.0us"), "{native}");
        let native = said((55_000, 120_000), (1, 17), 0, "NATIVE");
        assert!(native.contains("slack does not count for a real-time thread"), "{native}");
        assert!(native.contains("29.1ms") && native.contains("that misses none"), "{native}");
        let less = said((4_000_000, 8_000_000), (1, 12), 1, "grid(10ms)");
        assert!(less.contains("that misses none"), "{less}");
        // The host held a release back: then the fine timer, too, is to miss.
        let held = said((5_000, 12_000_000), (1, 17), 1, "HR");
        assert!(held.contains("misses are possible"), "{held}");
        assert!(said((5_000, 60_000), (0, 3), 1, "HR").contains("3.06ms"));
    }

    #[test]
    fn without_a_release_nothing_is_said_of_it() {
        let none = released(&facts(3, 300), (1, ms(17)), None, "HR").unwrap();
        assert_eq!(none, None);
    }
}
