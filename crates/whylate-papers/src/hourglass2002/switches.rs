//! 5.1: what the kernel's code for a context switch takes, and how long a quantum is. Figure 4.

use whylate_model::Nanos;
use whylate_model::paper::{Here, Row, Scenario, Unit};
use whylate_model::switch_cost::{Between, Direct, How, Outcome, SwitchCost};
use whylate_record::switch_cost::{self, Request};

use crate::PaperError;
use crate::bench::{Bench, Times, distrust};
use crate::rows::{Filled, row};

/// What the shortest switch is.
const FASTEST: &str = "the shortest way through the kernel's code that was seen";
/// For each kind of switch; the paper's runs took a minute.
const TIMES: Times = Times { usual: 10, quick: 1 };

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    bench.go_on()?;
    scenario.notes.push(
        "two runners in turns, and voluntary switches among equals of a real-time priority; the paper \
         had ten threads of ordinary priority, which yielded after 0.9ms"
            .to_owned(),
    );
    let duration = bench.time(TIMES);
    let words = format!("--direct --duration {}s", duration.0 / Nanos::SECOND.0);
    let request = Request { direct: Some(duration), ..request(bench) };
    let found = record(("5.1", &words), &request, bench, scenario)?;
    for row in &found.direct {
        let name = format!("{}, {}", row.how.name(), row.between.name());
        match &row.outcome {
            Outcome::Measured(direct) => {
                scenario.rows.extend(cost(&name, row.how, row.between, direct));
            }
            Outcome::Refused { reason } => scenario.notes.push(format!("{name}: {reason}")),
        }
    }
    if let Some(direct) = found.measured(Between::Threads, How::Involuntary) {
        scenario.rows.extend(quantum(direct, &found));
    }
    Ok(())
}

fn cost(name: &str, how: How, between: Between, direct: &Direct) -> Vec<Row> {
    let times = &direct.times;
    let paper = match (how, between) {
        (How::Involuntary, Between::Threads) => Some("on the order of 10us, Linux 2.4 (Figure 4)"),
        (How::Yield, Between::Threads) => Some("2.2us in the example output"),
        _ => None,
    };
    let why = match how {
        How::Involuntary => "includes a timer interrupt; of a guest, the host's part of it, too",
        How::Yield => "the system call and the switch, no interrupt",
        How::HandOff => {
            "the wake-up of the next thread, the switch, and the way back from its wait"
        }
    };
    let ns = |time: Nanos| time.0 as f64;
    let expected = times.cluster_median.map(|median| Here {
        value: ns(median),
        unit: Unit::Nanoseconds,
        interval: times.cluster_interval.map(|(low, high)| (ns(low), ns(high))),
        n: Some(times.in_cluster),
    });
    let mut first = row(format!("cost of a switch, {name}"), why).here(expected);
    first.paper = paper.map(str::to_owned);
    let shortest = Here {
        value: ns(times.shortest),
        unit: Unit::Nanoseconds,
        interval: None,
        n: Some(times.n),
    };
    vec![first, row(format!("  the fastest, {name}"), FASTEST).here(shortest)]
}

fn quantum(direct: &Direct, found: &SwitchCost) -> Option<Row> {
    let quantum = direct.quantum?;
    let ns = |time: Nanos| time.0 as f64;
    let slice = found.kernel.base_slice.map_or_else(
        || "the kernel's slice cannot be read here".to_owned(),
        |slice| format!("the kernel's slice is {slice}, and a turn ends with a tick after it"),
    );
    let why = format!("{slice}; {:.0} switches a second", quantum.per_second);
    let here = Here {
        value: ns(quantum.median),
        unit: Unit::Nanoseconds,
        interval: quantum.interval.map(|(low, high)| (ns(low), ns(high))),
        n: Some(quantum.turns),
    };
    let paper = "60ms (18 switches a second, Linux 2.4.17); 20ms (TimeSys, Windows 2000, FreeBSD)";
    Some(row("quantum of threads that never wait", why).paper(paper).here(here))
}

/// A recording of switches of which nothing is asked yet.
pub(super) fn request(bench: &Bench<'_>) -> Request {
    let cpu = bench.cpu();
    Request {
        cpu,
        direct: None,
        indirect: None,
        housekeeping: None,
        lock_memory: true,
        hold_idle_states: true,
        trace: true,
        runner_words: bench.runner_words(),
        seed: bench.seed(),
        command_line: std::env::args().collect(),
        question: format!("What does a context switch cost on CPU {cpu}?"),
    }
}

/// Records it, with its own page.
pub(super) fn record(
    (part, words): (&str, &str),
    request: &Request,
    bench: &mut Bench<'_>,
    scenario: &mut Scenario,
) -> Result<SwitchCost, PaperError> {
    scenario.commands.push(format!("whylate switch-cost --cpus {} {words}", request.cpu));
    let directory = bench.directory(part, scenario)?;
    let path = directory.path().to_owned();
    let recorded = switch_cost::record(request, directory, bench.stop, bench.progress)?;
    bench.page(&path, &recorded.run);
    distrust(part, &recorded.run, scenario);
    recorded.run.switch_cost.ok_or(PaperError::Nothing("switches"))
}
