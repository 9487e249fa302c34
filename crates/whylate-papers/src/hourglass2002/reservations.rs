//! 5.6: the same two tasks with CPU reservations, exact and with a little to spare.

use whylate_model::paper::Scenario;

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::rows::{Filled, missed_for, misses, row};

const TIMES: Times = Times { usual: 10, quick: 3 };

/// What is reserved for each task, and what the paper counted of both.
const RUNS: [(&str, [&str; 2], &str, [&str; 2]); 2] = [
    ("5.6-exact", ["3ms", "17ms"], "exactly what is needed", ["985 of 997", "106 of 303"]),
    ("5.6-spare", ["3.1ms", "17.1ms"], "0.1ms to spare", ["0 of 1000", "0 of 303"]),
];

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    for (part, [first, second], name, paper) in RUNS {
        let words = format!(
            "-n 2 -t 0 -w PERIODIC 3ms 8ms -rh {first} 8ms -t 1 -w PERIODIC 17ms 33ms -rh {second} 33ms"
        );
        let set = bench.hourglass(part, &words, TIMES, &[], scenario)?;
        for (index, thread) in set.recorded.run.threads.iter().enumerate() {
            let overruns = thread.overruns.map(|n| {
                format!("the kernel counted {n} overruns: interrupts and the way into the kernel are charged, too")
            });
            let said: Vec<String> = overruns.into_iter().chain([missed_for(thread, 2)]).collect();
            let what = format!("missed deadlines of task {index}, {name}");
            scenario
                .rows
                .push(row(what, said.join("; ")).paper(paper[index.min(1)]).here(misses(thread)));
        }
    }
    Ok(())
}
