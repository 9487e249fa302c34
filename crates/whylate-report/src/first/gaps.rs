//! How much CPU time a busy thread loses, and to what.

use whylate_model::run::{GapSummary, Rate, Run};
use whylate_model::series::Definition;
use whylate_model::{CpuId, CpuList, Nanos};

use super::layout::short;
use super::taken::{self, by_class};
use super::{Screen, selftest};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Name, Sentence, sentence};

/// Lengths for which rates are shown, where the threshold lets them be known.
const LENGTHS: [Nanos; 4] = [Nanos(1_000), Nanos(10_000), Nanos(100_000), Nanos(1_000_000)];
/// The command, as it stands behind the program. A longer list of CPUs is left out of one.
const GAPS: &str = " gaps";
const LIST: usize = 24;
/// Rows of CPUs where there are more than [`ALL`].
const WORST: usize = 5;
const ALL: usize = 8;

/// Is it a recording of what busy threads lost, all of them at once?
pub(super) fn is_it(run: &Run) -> bool {
    of_busy_threads(run) && !super::matrix::is_it(run)
}

/// Is it a recording of what busy threads lost, and of nothing else?
pub(super) fn of_busy_threads(run: &Run) -> bool {
    let alone = |definition| matches!(definition, Definition::Gap | Definition::ReadDelta);
    !run.gaps.is_empty()
        && run.threads.is_empty()
        && run.flows.is_empty()
        && run.selftest.is_none()
        && run.switch_cost.is_none()
        && !run.is_merged()
        && run.series.iter().all(|series| alone(series.definition))
}

pub(super) fn screen(run: &Run) -> Screen {
    match run.gaps.as_slice() {
        [gaps] => of_one(run, gaps),
        all => of_several(run, all),
    }
}

/// The lost share with its interval.
pub(super) fn lost(gaps: &GapSummary) -> Cell {
    let ends = gaps.lost_share_interval.map(|(low, high)| (Value::Share(low), Value::Share(high)));
    Cell::from(Value::Share(gaps.lost_share)).within(ends)
}

/// The longest stall that any part of a run saw on a thread's CPU. A check-up reads the counter without a pause,
/// too, before it looks for gaps, and each of its parts may have met the longest.
pub(super) fn longest(run: &Run, gaps: &GapSummary) -> Option<Nanos> {
    let of_gaps = run.series.iter().find(|series| series.name == gaps.series);
    let of_gaps = of_gaps.and_then(|series| series.max).or_else(|| {
        run.worst.iter().filter(|gap| gap.cpu_before == gaps.cpu).map(|gap| gap.length).max()
    });
    let readings = run.series.iter().filter(|series| {
        let thread = gaps.series.strip_prefix("gap-").unwrap_or(&gaps.series);
        series.definition == Definition::ReadDelta
            && series.name.strip_prefix("delta-") == Some(thread)
    });
    readings.filter_map(|series| series.max).max().max(of_gaps)
}

/// The thread of a CPU, by its name.
pub(super) fn who(run: &Run, gaps: &GapSummary) -> Name {
    short(&run.thread_name(gaps))
}

/// How long a thread was busy.
pub(super) fn elapsed(run: &Run, gaps: &GapSummary) -> Nanos {
    gaps.end.since(gaps.start).to_nanos(run.clock.hz)
}

/// The sentence about one thread.
pub(super) fn answer(run: &Run, gaps: &GapSummary) -> Sentence {
    let (who, longest) = (who(run, gaps), longest(run, gaps));
    if longest.is_none() && gaps.gaps == 0 {
        let stall = sentence!["no stall of ", gaps.threshold.to_nanos(run.clock.hz), " or more"];
        return sentence![who, " lost nothing in ", elapsed(run, gaps), ": there was ", stall, "."];
    }
    let share = lost(gaps);
    let ends = gaps.lost_share_interval.filter(|_| !run.is_merged());
    let ends = ends.map(|_| sentence![" (95% CI ", share.ends(), ")"]);
    let longest = longest.map(|longest| sentence!["; the longest stall was ", longest]);
    sentence![who, " lost ", share, " of its time", ends, longest, "."]
}

fn of_one(run: &Run, gaps: &GapSummary) -> Screen {
    let taken = by_class(run, None);
    let mut answer = vec![answer(run, gaps)];
    answer.extend(taken::sentence(&taken, &"Of that, ".into()));
    let mut table = taken::table(&taken);
    let total = [
        Cell::from("total"),
        gaps.lost.into(),
        Value::Share(1.0).into(),
        lost(gaps),
        Value::Count(gaps.gaps).into(),
        longest(run, gaps).into(),
    ];
    if gaps.gaps > 0 {
        table.row(total);
    }
    let second = selftest::inferred(run).or_else(|| rates(gaps));
    let tables = [table].into_iter().chain(second).collect();
    let notes = not_measured(run, &[gaps.cpu]).into_iter().collect();
    Screen { answer, tables, notes, more: vec![next(run, GAPS, &[gaps.cpu])], ..Screen::default() }
}

/// Stalls per second of at least each length.
fn rates(gaps: &GapSummary) -> Option<Table> {
    let known: Vec<&Rate> =
        gaps.rates.iter().filter(|rate| LENGTHS.contains(&rate.at_least)).collect();
    if known.is_empty() || gaps.gaps == 0 {
        return None;
    }
    let lengths = known.iter().map(|rate| Cell::from(rate.at_least).said());
    let heads: Vec<String> = ["stalls of at least".to_owned()].into_iter().chain(lengths).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads);
    let cell = |rate: &&Rate| {
        let (low, high) = rate.interval;
        Cell::from(Value::Rate(rate.per_second)).within(Some((Value::Rate(low), Value::Rate(high))))
    };
    table.row([Cell::from("per second")].into_iter().chain(known.iter().map(cell)));
    table.row([Cell::from("95% CI")].into_iter().chain(known.iter().map(|rate| cell(rate).ends())));
    Some(table)
}

/// The worst of several threads, and what all of them lost together.
fn of_several(run: &Run, all: &[GapSummary]) -> Screen {
    let mut sorted: Vec<&GapSummary> = all.iter().collect();
    sorted.sort_by(|a, b| b.lost_share.total_cmp(&a.lost_share));
    let stall = |gaps: &&&GapSummary| longest(run, gaps);
    let stalled =
        sorted.iter().rev().max_by_key(stall).and_then(|gaps| Some((gaps, longest(run, gaps)?)));
    let most = |worst: &GapSummary| {
        sentence![who(run, worst), " lost most: ", lost(worst), " of its time"]
    };
    let first = match (sorted.first(), stalled) {
        (Some(worst), Some((gaps, longest))) if gaps.series == worst.series => {
            sentence![most(worst), ", with the longest stall of ", longest, "."]
        }
        (Some(worst), Some((gaps, longest))) => {
            sentence![
                most(worst),
                "; the longest stall, ",
                longest,
                ", was on ",
                who(run, gaps),
                "."
            ]
        }
        (Some(worst), None) if worst.gaps > 0 => sentence![most(worst), "."],
        _ => sentence!["None of ", all.len(), " CPUs lost time: there was no stall."],
    };
    let of_all = sentence!["Over all ", all.len(), " CPUs, "];
    let main = taken::sentence(&by_class(run, None), &of_all);
    let answer = std::iter::once(first).chain(main).collect();
    let head = ["lost CPU time", "of CPU", "95% CI", "longest", "main cause"];
    let mut table = Table::new("", &head).words(&[4]).sorted_by(1);
    for gaps in &sorted {
        let main = by_class(run, Some(gaps.cpu)).first().map(taken::Taken::with_share);
        let share = lost(gaps);
        table.row([
            Cell::from(run.thread_name(gaps)),
            share.clone(),
            share.ends(),
            longest(run, gaps).into(),
            main.into(),
        ]);
    }
    let table = if all.len() > ALL { table.most(WORST) } else { table };
    let cpus: Vec<CpuId> = all.iter().map(|gaps| gaps.cpu).collect();
    let notes = not_measured(run, &cpus).into_iter().collect();
    let more = vec![next(run, GAPS, &cpus)];
    Screen { answer, tables: vec![table], notes, more, ..Screen::default() }
}

/// CPUs that were left out for whylate's own work, where nobody chose which are measured.
fn not_measured(run: &Run, measured: &[CpuId]) -> Option<String> {
    let chosen = |word: &String| word.starts_with("--cpu") || word.starts_with("--float");
    if run.is_merged() || run.command_line.iter().any(chosen) {
        return None;
    }
    let left: Vec<CpuId> =
        run.host.cpus_online.iter().copied().filter(|cpu| !measured.contains(cpu)).collect();
    let (cpus, were, them) = match left.len() {
        0 => return None,
        1 => ("CPU", "was", "it"),
        _ => ("CPUs", "were", "them"),
    };
    Some(format!("{cpus} {} {were} not measured; --cpus all includes {them}.", CpuList(&left)))
}

/// What tells more of why: the run's own command as root, or the settings of its CPUs. The path that sudo looks
/// through lacks where cargo installs programs.
pub(super) fn next(run: &Run, command: &str, cpus: &[CpuId]) -> String {
    let list = Some(CpuList(cpus).to_string()).filter(|list| list.len() <= LIST);
    if run.evidence.trace.is_none() && run.causes.iter().any(|total| total.lost_ns > 0.0) {
        let whylate = "sudo \"$(command -v whylate)\"";
        match list {
            Some(list) => format!("{whylate}{command} --cpus {list}  names tasks and interrupts"),
            None => "The same command as root names tasks and interrupts.".to_owned(),
        }
    } else {
        let cpus = list.map_or_else(String::new, |list| format!(" --cpus {list}"));
        format!("whylate doctor{cpus}  lists settings that cause stalls")
    }
}
