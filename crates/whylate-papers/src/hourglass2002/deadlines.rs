//! 5.5: response-time analysis of two tasks, beside runs with a good timer and with a coarse one.

use whylate_model::Nanos;
use whylate_model::paper::Scenario;
use whylate_rta::analysis::fixed_priority::analyse;
use whylate_rta::analysis::{Response, Task};

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::rows::{Filled, missed_for, misses, row, time};

const TIMES: Times = Times { usual: 10, quick: 3 };
/// What the paper's usleep made of the second task: up to 8 ms late, and 2 ms of busy waiting.
const JITTER: Nanos = Nanos(8_000_000);
const BUSY_MS: u64 = 2;

/// The timer of the second task, what it stands for, its execution time, and what the paper counted
/// of both: missed and hit.
const RUNS: [(&str, &str, &str, &str, [&str; 2]); 4] = [
    (
        "5.5-coarse",
        "grid(10ms)",
        "the clock of 10ms that the paper's usleep had",
        "17ms",
        ["0 of 1001", "142 of 285"],
    ),
    ("5.5-native", "NATIVE", "usleep as it is today", "17ms", ["0 of 1001", "142 of 285"]),
    ("5.5-fine", "HR", "a high-resolution timer", "17ms", ["0 of 1003", "0 of 304"]),
    (
        "5.5-less",
        "grid(10ms)",
        "the coarse clock, and less to do",
        "12ms",
        ["0 of 1001", "0 of 303"],
    ),
];

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let ms = |ms: u64| Nanos(ms * 1_000_000);
    let first = Task { priority: 2, ..Task::new("0", ms(3), ms(8)) };
    let second = Task { priority: 1, ..Task::new("1", ms(17), ms(33)) };
    let late = Task { jitter: JITTER, execution: ms(17 + BUSY_MS), ..second.clone() };
    let less = Task { jitter: JITTER, execution: ms(12), ..second.clone() };
    for (what, tasks, of, paper) in [
        ("response of task 0", vec![first.clone(), second.clone()], 0, Some("3ms")),
        ("response of task 1", vec![first.clone(), second], 1, Some("29ms")),
        (
            "response of task 1 with 8ms of jitter and 2ms of busy waiting",
            vec![first.clone(), late],
            1,
            Some("39ms, beyond its 33ms"),
        ),
        ("response of task 1 that needs 12ms, with jitter", vec![first, less], 1, None),
    ] {
        let response = analyse(&tasks)?.get(of).copied();
        let bound = match response {
            Some(Response::Bounded(bound)) => Some(time(bound.nominal)),
            _ => None,
        };
        let why = "arithmetic: the same on every machine";
        let mut row = row(format!("{what}, by analysis"), why).here(bound);
        row.paper = paper.map(str::to_owned);
        scenario.rows.push(row);
    }
    for (part, timer, name, execution, paper) in RUNS {
        let words = format!(
            "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC {execution} 33ms \
             -i {timer}"
        );
        let set = bench.hourglass(part, &words, TIMES, &[], scenario)?;
        for (index, thread) in set.recorded.run.threads.iter().enumerate() {
            let why = missed_for(thread, 2);
            let what = format!("missed deadlines of task {index}, {timer}: {name}");
            let paper = paper[index.min(1)];
            scenario.rows.push(row(what, why).paper(paper).here(misses(thread)));
        }
    }
    Ok(())
}
