//! 5.6: the same two tasks with CPU reservations, exact and with a little to spare.

use crate::spelled::in_unit;
use whylate_model::Nanos;
use whylate_model::paper::{Here, Scenario, Unit};

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::beside::{Other, counted};
use crate::missed::{Charged, Facts};
use crate::rows::Filled;

const TIMES: Times = Times { usual: 10, quick: 3 };
/// What each task needs, and how often.
const TASKS: [(Nanos, Nanos); 2] =
    [(Nanos(3_000_000), Nanos(8_000_000)), (Nanos(17_000_000), Nanos(33_000_000))];

/// Name of a part, what is reserved beyond that, what it stands for, and what the paper counted of both
/// tasks: missed, and all.
type Run = (&'static str, Nanos, &'static str, [(u64, u64); 2]);

const RUNS: [Run; 2] = [
    ("5.6-exact", Nanos(0), "exactly what is needed", [(985, 997), (106, 303)]),
    ("5.6-spare", Nanos(100_000), "0.1ms to spare", [(0, 1000), (0, 303)]),
];

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let mut exact: [Option<Here>; 2] = [None, None];
    for (part, spare, name, paper) in RUNS {
        let words: Vec<String> = (0..)
            .zip(TASKS)
            .map(|(index, (need, period))| {
                let reserved = Nanos(need.0 + spare.0);
                let (need, period, reserved) = (exactly(need), exactly(period), exactly(reserved));
                format!("-t {index} -w PERIODIC {need} {period} -rh {reserved} {period}")
            })
            .collect();
        let words = format!("-n 2 {}", words.join(" "));
        let set = bench.hourglass(part, &words, TIMES, &[], scenario)?;
        let jobs = bench.jobs(part)?;
        for (index, (missed, all)) in paper.iter().enumerate() {
            let budget = Nanos(TASKS[index].0.0 + spare.0);
            let Some(facts) = Facts::of(&set, &jobs, index, (bench.cpu(), Some(budget))) else {
                continue;
            };
            let paper = Other::counted(*missed, *all);
            let beside = exact[index]
                .as_ref()
                .and_then(|of| Other::measured("the run with exactly what is needed", of));
            let what = format!("missed deadlines of task {index}, {name}");
            let clauses = [
                facts.beside(Some(&paper)),
                facts.beside(beside.as_ref()),
                facts.charged.map(charged),
            ];
            let short = if spare.0 == 0 { "exact" } else { "0.1 ms more" };
            scenario.rows.push(
                facts
                    .row(&what, clauses)
                    .paper(format!("{missed} of {all}"))
                    .agrees(paper.agreement(&facts.here))
                    .brief(format!("misses, task {index}, {short}"), counted(*missed, *all)),
            );
            exact[index] = Some(facts.here);
        }
    }
    Ok(())
}

/// A time as the paper writes it, to the microsecond.
fn exactly(time: Nanos) -> String {
    format!("{}ms", time.0 as f64 / 1e6)
}

/// What the jobs were charged beside what was reserved for them.
fn charged(of: Charged) -> String {
    let Charged { budget, over, by_host, jobs, overruns } = of;
    let share = in_unit(over as f64 / (jobs as f64).max(1.0), Unit::Share);
    let kernel = overruns
        .map_or(String::new(), |n| format!(", and the kernel counted {n} overruns of its own"));
    let host = match (over, by_host) {
        (0, _) => String::new(),
        (_, 0) => ", none for time without a kernel event alone".to_owned(),
        (_, by_host) => format!(", {by_host} of them for time without a kernel event alone"),
    };
    format!(
        "with interrupts, the kernel's own time and time without a kernel event {over} of {jobs} jobs \
         ({share}) took more than the {budget} reserved{host}{kernel}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_jobs_were_charged_is_told_with_the_hosts_part_of_it() {
        let of = |over, by_host, overruns| {
            charged(Charged { budget: Nanos(3_100_000), over, by_host, jobs: 375, overruns })
        };
        let some = of(75, 60, Some(80));
        assert!(some.contains("75 of 375 jobs (20.0%) took more than the 3.10ms"), "{some}");
        assert!(
            some.contains("60 of them for time without a kernel event alone")
                && some.contains("80 overruns")
        );
        assert!(of(75, 0, None).contains("none for time without a kernel event alone"));
        let none = of(0, 0, None);
        assert!(none.contains("0 of 375") && !none.contains("event alone"), "{none}");
    }

    #[test]
    fn reservations_are_written_to_the_microsecond() {
        assert_eq!([Nanos(3_100_000), Nanos(17_000_000)].map(exactly), ["3.1ms", "17ms"]);
    }
}
