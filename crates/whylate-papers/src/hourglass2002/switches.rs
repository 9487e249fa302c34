//! 5.1: what the kernel's code for a context switch takes, and how long a quantum is. Figure 4.
//!
//! First the paper's two command lines, ten threads of ordinary priority whose execution trace tells;
//! then the kinds of switches apart by evidence, which the paper did not have.

use crate::spelled::in_unit;
use whylate_cause::rules::{r1_cost, r1_gaps};
use whylate_model::cause::Rule;
use whylate_model::execution::Block;
use whylate_model::paper::{Here, Row, Scenario, Unit};
use whylate_model::switch_cost::{Direct, How, Outcome, SwitchCost};
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_record::set::SetRecorded;
use whylate_record::switch_cost::{self, Request};
use whylate_stats::student::Spread;

use super::priorities::{median, turns};
use crate::PaperError;
use crate::bench::{Bench, Times, distrust};
use crate::beside::{Other, sentence};
use crate::host::Taken;
use crate::rows::{Filled, row};

/// The paper's minute.
const TIMES: Times = Times { usual: 60, quick: 2 };
/// For each kind of switch by evidence.
const APART: Times = Times { usual: 10, quick: 1 };
/// Clock of the paper's machine.
const PAPER_HZ: f64 = 850e6;
/// Equal parts of a run, each of which gives a cost.
const PARTS: usize = 10;
/// CPU time after which a thread of the second command yields.
const AFTER: Nanos = Nanos(900_000);
/// Of a kind without a dense cluster.
const APART_FROM_EACH_OTHER: &str = "times did not lie together: there is no cost to expect";
/// A quantum of the paper's table of switches a second.
const QUANTUM_MS: f64 = 60.0;

/// One of the paper's command lines.
struct Command {
    part: &'static str,
    words: &'static str,
    name: &'static str,
    /// The same, and the paper's figure, in few words.
    brief: (&'static str, &'static str),
    /// The paper's figure, in its words and in nanoseconds.
    paper: (&'static str, f64),
}

const COMMANDS: [Command; 2] = [
    Command {
        part: "5.1-cpu",
        words: "-n 10 -a -p NORMAL -w CPU",
        name: "involuntary, ten threads",
        brief: ("involuntary switch", "about 10 µs"),
        paper: ("on the order of 10us, Linux 2.4 (Figure 4)", 10_000.0),
    },
    Command {
        part: "5.1-yield",
        words: "-n 10 -a -p NORMAL -w CPU_YIELD 0.9ms",
        name: "by yielding, ten threads",
        brief: ("switch by yielding", "2.2 µs"),
        paper: ("2.2us in the example output", 2_190.0),
    },
];

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    for command in &COMMANDS {
        let set = bench.hourglass(command.part, command.words, TIMES, &[], scenario)?;
        let Some(facts) = Facts::of(&set, bench) else {
            scenario.notes.push(format!("{}: there was no context switch", command.part));
            continue;
        };
        scenario.rows.extend(facts.rows(command));
        if command.part == COMMANDS[0].part {
            scenario.rows.extend(facts.quantum());
        }
    }
    bench.go_on()?;
    scenario.notes.push(
        "kinds by evidence: two runners in turns, and voluntary switches among equals of a real-time \
         priority"
            .to_owned(),
    );
    let duration = bench.time(APART);
    let words = format!("--direct --duration {}s", duration.0 / Nanos::SECOND.0);
    let request = Request { direct: Some(duration), ..request(bench) };
    let found = record(("5.1", &words), &request, bench, scenario)?;
    for row in &found.direct {
        let name = format!("{}, {}", row.how.name(), row.between.name());
        match &row.outcome {
            Outcome::Measured(direct) => scenario.rows.extend(by_evidence(&name, row.how, direct)),
            Outcome::Refused { reason } => scenario.notes.push(format!("{name}: {reason}")),
        }
    }
    Ok(())
}

/// What the execution trace of ten threads says of their switches.
struct Facts {
    expected: Option<Here>,
    shortest: Here,
    switches: u64,
    /// None without a dense cluster: then `expected` is the median of all.
    contaminated: Option<u64>,
    per_second: f64,
    /// Rate of the counter.
    hz: Hertz,
    /// What the trace of the kernel says of rule R2.
    borne_out: Option<String>,
    host: Option<Taken>,
    turn: Option<Here>,
    slice: Option<Nanos>,
}

impl Facts {
    /// None without a switch.
    fn of(set: &SetRecorded, bench: &Bench<'_>) -> Option<Self> {
        let run = &set.recorded.run;
        let hz = run.clock.hz;
        let cost = r1_cost(r1_gaps(&set.blocks).ok()?)?;
        let begin = set.blocks.first()?.start;
        let over = set.blocks.last()?.end.since(begin).to_nanos(hz);
        let ns = |ticks: TicksDelta| ticks.to_nanos(hz).0 as f64;
        let dense = cost.expected.map(|expected| {
            let dense = cost.interval.map(|(low, high)| (ns(low), ns(high)));
            let apart = over_parts(&set.blocks, ns(expected), hz);
            Here {
                value: ns(expected),
                unit: Unit::Nanoseconds,
                interval: wider(dense, apart),
                n: Some(cost.in_cluster),
            }
        });
        // Without a cost to expect the median of all stands for it.
        let gaps = r1_gaps(&set.blocks).ok()?;
        let all = (0..run.threads.len() as u16).flat_map(|thread| turns(&set.blocks, thread));
        let borne_out = run.findings.iter().filter(|of| of.rule == Rule::R2);
        let borne_out = borne_out.filter(|of| of.text.starts_with("held against"));
        Some(Self {
            contaminated: dense.as_ref().map(|_| cost.contaminated),
            expected: dense.or_else(|| median(gaps, hz)),
            shortest: Here {
                value: ns(cost.shortest),
                unit: Unit::Nanoseconds,
                interval: None,
                n: Some(cost.switches),
            },
            switches: cost.switches,
            per_second: cost.switches as f64 * 1e9 / over.0.max(1) as f64,
            hz,
            borne_out: borne_out.map(|of| of.text.clone()).next(),
            host: Taken::of(set, bench.cpu()),
            turn: median(all.collect(), hz),
            slice: Bench::slice(),
        })
    }

    fn rows(&self, command: &Command) -> Vec<Row> {
        let (words, paper) = command.paper;
        let yields = command.words.contains("YIELD");
        let other = Other::stated(&in_ns(paper), paper);
        let beside = self.expected.as_ref().map(|here| {
            sentence([Some(other.told(here)), Some(cycles(here.value, paper, self.hz))])
        });
        let agreement = self.expected.as_ref().and_then(|here| other.agreement(here));
        let clauses = [
            self.contaminated
                .is_none()
                .then(|| format!("{APART_FROM_EACH_OTHER}, and the median of all stands for it")),
            beside,
            self.spoilt(),
            self.borne_out.clone().filter(|_| !yields),
            yields.then(|| self.yielded()).flatten(),
            self.host.map(took),
        ];
        let expected = row(format!("cost of a switch, {}", command.name), sentence(clauses));
        let fastest = sentence([
            Some(format!("the shortest of {} switches: the fastest way seen", self.switches)),
            self.expected.as_ref().map(|of| {
                format!("{} of the cost to expect", share(self.shortest.value / of.value.max(1.0)))
            }),
        ]);
        vec![
            expected
                .paper(words)
                .here(self.expected.clone())
                .agrees(agreement)
                .brief(command.brief.0, command.brief.1),
            row(format!("  the fastest, {}", command.name), fastest).here(self.shortest.clone()),
        ]
    }

    fn spoilt(&self) -> Option<String> {
        let (n, all) = (self.contaminated?, self.switches);
        let of = share(n as f64 / all.max(1) as f64);
        Some(format!("contaminated by more than the switch: {n} of {all} ({of})"))
    }

    /// Does a yield give the CPU away?
    fn yielded(&self) -> Option<String> {
        let turn = self.turn.as_ref()?;
        let (length, after) = (in_ns(turn.value), AFTER);
        let times = turn.value / AFTER.0 as f64;
        // Between one yield and two.
        let between = 1.5 * AFTER.0 as f64;
        Some(match turn.interval {
            Some((_, high)) if high < 0.9 * AFTER.0 as f64 => format!(
                "a turn lasts {length}, less than {after}: others took the CPU before the yield"
            ),
            Some((low, _)) if low > between => format!(
                "a turn lasts {length} and not {after}: the scheduler let the yielding thread go on \
                 {times:.1} times as long"
            ),
            Some((_, high)) if high < between => {
                format!("a turn lasts {length}, and is over with the first yield")
            }
            _ => format!(
                "a turn lasts {length}: whether it is over with the first yield is not told from \
                 going on"
            ),
        })
    }

    fn quantum(&self) -> Option<Row> {
        let turn = self.turn.as_ref()?;
        let paper = Other::stated("60ms of Linux 2.4.17", QUANTUM_MS * 1e6);
        let slice = self.slice.map_or_else(
            || "the kernel's slice cannot be read here".to_owned(),
            |slice| format!("the kernel's slice is {slice}"),
        );
        let clauses = [
            Some(paper.told(turn)),
            Some(slice),
            self.borne_out.clone(),
            Some(format!("{:.0} switches a second", self.per_second)),
            self.host.map(took),
        ];
        let words =
            "60ms (18 switches a second, Linux 2.4.17); 20ms (TimeSys, Windows 2000, FreeBSD)";
        let row = row("quantum of threads that never wait", sentence(clauses));
        let row = row.paper(words).here(turn.clone()).agrees(paper.agreement(turn));
        Some(row.brief("turn of a busy thread", "60 ms"))
    }
}

fn in_ns(ns: f64) -> String {
    in_unit(ns, Unit::Nanoseconds)
}

fn share(value: f64) -> String {
    in_unit(value, Unit::Share)
}

fn took(of: Taken) -> String {
    format!(
        "{} of the time or more has no kernel event, at most {} at once",
        share(of.share),
        of.longest
    )
}

/// The same cost in cycles, which a faster machine does not change by itself.
fn cycles(here_ns: f64, paper_ns: f64, hz: Hertz) -> String {
    let (there, here) = (paper_ns * PAPER_HZ / 1e9, here_ns * hz.0 / 1e9);
    format!(
        "{there:.0} cycles of its 850 MHz, {here:.0} of the counter's {:.2} GHz here",
        hz.0 / 1e9
    )
}

/// The interval of the `cost` over equal parts of the run: it may drift.
fn over_parts(blocks: &[Block], cost: f64, hz: Hertz) -> Option<(f64, f64)> {
    let (begin, end) = (blocks.first()?.start, blocks.last()?.end);
    let width = (end.since(begin).0 / PARTS as u64).max(1);
    let mut parts: Vec<Vec<Block>> = vec![Vec::new(); PARTS];
    for block in blocks {
        let at = block.start.since(begin).0 / width;
        parts[at.min(PARTS as u64 - 1) as usize].push(*block);
    }
    let of_part = |part: &Vec<Block>| r1_cost(r1_gaps(part).ok()?)?.expected;
    let costs: Vec<f64> =
        parts.iter().filter_map(of_part).map(|of| of.to_nanos(hz).0 as f64).collect();
    let interval = Spread::of_mean(&costs)?.around(cost);
    Some((interval.low.max(0.0), interval.high))
}

/// The wider of two intervals.
fn wider(a: Option<(f64, f64)>, b: Option<(f64, f64)>) -> Option<(f64, f64)> {
    [a, b].into_iter().flatten().max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
}

/// A kind of switch by evidence, which the paper has not.
fn by_evidence(name: &str, how: How, direct: &Direct) -> Vec<Row> {
    let times = &direct.times;
    let ns = |time: Nanos| time.0 as f64;
    let expected = times.cluster_median.map(|median| Here {
        value: ns(median),
        unit: Unit::Nanoseconds,
        interval: direct.interval().map(|(low, high)| (ns(low), ns(high))),
        n: Some(times.in_cluster),
    });
    let clauses = [
        expected.is_none().then(|| APART_FROM_EACH_OTHER.to_owned()),
        direct.repetitions.as_ref().map(|of| match of.medians.len() {
            0 | 1 => "nothing is known of what differs between repetitions".to_owned(),
            n => format!("interval over {n} repetitions in turns, or within them if wider"),
        }),
        times.contaminated.map(|n| {
            let of = share(n as f64 / times.n.max(1) as f64);
            format!("contaminated by more than the switch: {n} of {} ({of})", times.n)
        }),
        direct.traced.map(|traced| {
            let asked = match how {
                How::Involuntary => {
                    format!("{} had a timer tick before the switch", traced.with_tick)
                }
                How::Yield => format!("{} left a thread that could still run", traced.runnable),
                How::HandOff => format!("{} left a thread that slept", traced.sleeping),
            };
            format!("by the kernel's trace {asked}, of {}", traced.switches)
        }),
    ];
    let first = row(format!("cost of a switch, {name}"), sentence(clauses)).here(expected);
    let shortest = Here {
        value: ns(times.shortest),
        unit: Unit::Nanoseconds,
        interval: None,
        n: Some(times.n),
    };
    let fastest = format!("the shortest of {} switches: the fastest way seen", times.n);
    vec![first, row(format!("  the fastest, {name}"), fastest).here(shortest)]
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
        command_line: whylate_record::command_line(),
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

#[cfg(test)]
mod tests {
    use whylate_model::{CpuId, Ticks};

    use super::*;

    fn time(value: f64, half: f64) -> Here {
        let interval = Some((value - half, value + half));
        Here { value, unit: Unit::Nanoseconds, interval, n: Some(900) }
    }

    fn facts(expected: f64, turn: f64) -> Facts {
        Facts {
            expected: Some(time(expected, 100.0)),
            shortest: time(expected / 2.0, 0.0),
            switches: 1_000,
            contaminated: Some(80),
            per_second: 1_000.0,
            hz: Hertz(2.5e9),
            borne_out: Some("held against the trace: 990 of 1000".to_owned()),
            host: Some(Taken { share: 0.02, stretches: 9, longest: Nanos(3_000_000) }),
            turn: Some(time(turn, 10.0)),
            slice: None,
        }
    }

    #[test]
    fn the_cost_stands_beside_the_papers_in_time_and_in_cycles() {
        let [expected, fastest] = facts(4_000.0, 4e6).rows(&COMMANDS[0]).try_into().unwrap();
        for words in [
            "less than the paper's 10.0us",
            "8500 cycles of its 850 MHz, 10000 of the counter's 2.50 GHz",
            "80 of 1000 (8.00%)",
            "990 of 1000",
            "2.00% of the time or more has no kernel event",
        ] {
            assert!(expected.why.contains(words), "{words}: {}", expected.why);
        }
        assert!(fastest.why.contains("50.0% of the cost"), "{}", fastest.why);
        let same = &facts(10_050.0, 4e6).rows(&COMMANDS[0])[0];
        assert!(same.why.contains("no difference from the paper's"), "{}", same.why);
        let none = Facts { contaminated: None, ..facts(4_000.0, 4e6) };
        let why = &none.rows(&COMMANDS[0])[0].why;
        assert!(why.starts_with("times did not lie together") && why.contains("median of all"));
        assert!(!why.contains("contaminated"), "{why}");
    }

    #[test]
    fn whether_a_yield_gives_the_cpu_away_follows_from_the_turns() {
        let said = |turn| facts(2_000.0, turn).rows(&COMMANDS[1])[0].why.clone();
        assert!(said(901_000.0).contains("over with the first yield"), "{}", said(901_000.0));
        assert!(said(500_000.0).contains("others took the CPU before the yield"));
        let on = said(3_600_000.0);
        assert!(on.contains("4.0 times as long") && !on.contains("held against"), "{on}");
        let wide = Facts { turn: Some(time(1.4e6, 2e5)), ..facts(2_000.0, 1.4e6) };
        let wide = &wide.rows(&COMMANDS[1])[0].why;
        assert!(wide.contains("is not told from going on"), "{wide}");
        let quantum = facts(2_000.0, 4e6).quantum().unwrap();
        assert!(quantum.why.starts_with("less than the paper's 60ms"), "{}", quantum.why);
        // What a turn ends with is what this run's trace says, and nothing else.
        assert!(quantum.why.contains("held against the trace: 990 of 1000"), "{}", quantum.why);
        assert!(!quantum.why.contains("tick"), "{}", quantum.why);
        let slice = Facts { slice: Some(Nanos(2_800_000)), borne_out: None, ..facts(2_000.0, 4e6) };
        let why = slice.quantum().unwrap().why;
        assert!(why.contains("the kernel's slice is 2.80ms;") && !why.contains("tick"), "{why}");
    }

    #[test]
    fn a_cost_that_drifts_over_the_run_has_a_wider_interval_than_its_cluster() {
        // Switches of two threads: 2 000 ticks at first, 2 200 at the end.
        let mut at = 0;
        let blocks = (0..2_000_u64).map(|n| {
            let block = Block {
                thread: (n % 2) as u16,
                cpu: CpuId(1),
                start: Ticks(at),
                end: Ticks(at + 100_000),
            };
            at += 100_000 + 2_000 + n / 10;
            block
        });
        let blocks: Vec<Block> = blocks.collect();
        let (low, high) = over_parts(&blocks, 2_100.0, Hertz(1e9)).unwrap();
        assert!(low < 2_070.0 && high > 2_130.0, "{low} .. {high}");
        assert_eq!(wider(Some((1.0, 2.0)), Some((1.0, 4.0))), Some((1.0, 4.0)));
        assert_eq!(wider(None, Some((1.0, 4.0))), Some((1.0, 4.0)));
        assert_eq!(over_parts(&blocks[..1], 2_100.0, Hertz(1e9)), None);
    }
}
