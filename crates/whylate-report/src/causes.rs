//! Who took the lost time: causes, senders, the longest gaps, and what follows.

use whylate_model::TicksDelta;
use whylate_model::cause::{Cause, CauseTotal, WorstGap};
use whylate_model::event::EventKind;
use whylate_model::run::Run;

use crate::doc::{Block, Section, Table, Where};
use crate::numbers::{Cell, Value, percent};

/// Rows of the tables of causes, whose rest is one row, of senders and of foreign threads.
const ON_A_TERMINAL: (usize, usize, usize) = (12, 6, 12);
const ON_THE_PAGE: (usize, usize, usize) = (24, 24, 24);
/// Gaps with a row.
const MOST_GAPS: usize = 64;
/// Causes of the parts of a gap that are told.
const MOST_PARTS: usize = 5;

/// The sections of a terminal, which has no pictures.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    let taken = Section::new("causes", "Who took it", blocks(run, Where::Terminal));
    let taken = if run.causes.is_empty() { taken } else { taken.headed() };
    let worst = format!("The {} longest gaps", run.worst.len());
    let worst = (!run.worst.is_empty())
        .then(|| Section::new("worst", worst, vec![Block::Table(longest(run))]).headed());
    let follows = findings(run).map(|of| Section::new("findings", "", of));
    [taken].into_iter().chain(worst).chain(follows).collect()
}

/// Who took how much, and who sent it.
pub(crate) fn blocks(run: &Run, to: Where) -> Vec<Block> {
    let (most, most_senders, most_foreign) =
        if to == Where::Page { ON_THE_PAGE } else { ON_A_TERMINAL };
    let mut blocks = vec![Block::Table(table(run, most))];
    // Without a trace nobody looked for events, and none of them is the host's for that.
    if let (Some(coverage), Some(_)) = (run.coverage, &run.evidence.trace) {
        blocks.push(Block::Text(format!(
            "Of the lost time, {} has a traced cause, {} is IRQ entry/exit beside such a cause, {} \
             has no kernel event.",
            percent(coverage.by_events),
            percent(coverage.by_residuals),
            percent(coverage.by_nothing),
        )));
    }
    blocks.push(Block::Table(senders(run, most_senders)));
    if let Some(table) = crate::foreign::table(run) {
        blocks.push(Block::Table(table.most(most_foreign)));
    }
    blocks
}

/// What supports or contradicts it; none where nothing does.
pub(crate) fn findings(run: &Run) -> Option<Vec<Block>> {
    let said: Vec<String> = run
        .findings
        .iter()
        .map(|finding| format!("{}, {}: {}", finding.rule, finding.confidence, finding.text))
        .collect();
    let heading = Block::Heading("Evidence".to_owned());
    (!said.is_empty()).then(|| vec![heading, Block::Items(said)])
}

/// Totals over all CPUs, the largest first.
pub(crate) fn totals(run: &Run) -> Vec<&CauseTotal> {
    let mut totals: Vec<&CauseTotal> = run.causes.iter().filter(|t| t.cpu.is_none()).collect();
    if totals.is_empty() {
        totals = run.causes.iter().collect();
    }
    totals.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns));
    totals
}

fn table(run: &Run, most: usize) -> Table {
    let head = ["cause", "gaps", "lost", "of lost", denominator(run), "longest"];
    let mut table = Table::new("Lost time by cause", &head);
    let totals = totals(run);
    let (shown, rest) = totals.split_at(totals.len().min(most));
    for total in shown {
        table.row(cells(total));
    }
    if !rest.is_empty() {
        let sum = |of: fn(&CauseTotal) -> f64| rest.iter().map(|total| of(total)).sum::<f64>();
        table.row([
            format!("{} others", rest.len()).into(),
            Value::Count(rest.iter().map(|total| total.gaps).fold(0, u64::saturating_add)),
            Value::Time(sum(|total| total.lost_ns)),
            Value::Share(sum(|total| total.share_of_lost)),
            Value::Share(sum(|total| total.share_of_elapsed)),
            rest.iter().map(|total| total.longest).max().unwrap_or_default().into(),
        ]);
    }
    table
}

/// What the share of a cause is of: threads of one CPU lose the same time at once.
fn denominator(run: &Run) -> &'static str {
    if run.threads.is_empty() { "of elapsed" } else { "of thread time" }
}

/// Cause, gaps, lost time, its shares, the longest.
fn cells(total: &CauseTotal) -> [Value; 6] {
    [
        total.cause.to_string().into(),
        Value::Count(total.gaps),
        Value::Time(total.lost_ns),
        Value::Share(total.share_of_lost),
        Value::Share(total.share_of_elapsed),
        total.longest.into(),
    ]
}

fn senders(run: &Run, most: usize) -> Table {
    let mut totals: Vec<_> = run.senders.iter().collect();
    totals.sort_by_key(|total| std::cmp::Reverse(total.count));
    let mut table =
        Table::new("Who sent interrupts and wake-ups", &["sent by", "what", "to", "times", "lost"])
            .captioned_on_the_page()
            .words(&[1]);
    for total in totals.iter().take(most) {
        let name = if total.comm.is_empty() { "(unnamed)" } else { &total.comm };
        table.row([
            format!("{name} on CPU {}", total.from).into(),
            total.cause.to_string().into(),
            format!("CPU {}", total.to).into(),
            Value::Count(total.count),
            Value::Time(total.lost_ns),
        ]);
    }
    table
}

/// The longest gaps, each with what its parts took, by cause.
pub(crate) fn longest(run: &Run) -> Table {
    let head = ["", "at", "length", "CPU", "cause", "parts"];
    let mut table = Table::new("Each with what its parts took, by cause", &head)
        .captioned_on_the_page()
        .words(&[3, 4, 5])
        .page_columns(&[0])
        .most(MOST_GAPS);
    for (at, gap) in run.worst.iter().enumerate() {
        let number = Cell::from((at + 1).to_string());
        table.row([number].into_iter().chain(gap_row(run, gap).map(Cell::from)));
    }
    table
}

fn gap_row(run: &Run, gap: &WorstGap) -> [Value; 5] {
    let at = gap.start.since(crate::timeline::start_of(run)).to_nanos(run.clock.hz);
    let mut at = format!("{:.6}s", at.0 as f64 / 1e9);
    if let Some(wall) = run.clock.realtime_ns(gap.start) {
        at = format!("{at} {}", time_of_day(wall));
    }
    let parts = by_cause(gap);
    let mut words: Vec<String> = parts
        .iter()
        .take(MOST_PARTS)
        .map(|(cause, length, times)| {
            let who = who(gap, cause);
            let times = if *times > 1 { format!(" x{times}") } else { String::new() };
            format!("{cause}{who}{times} {}", length.to_nanos(run.clock.hz))
        })
        .collect();
    if parts.len() > MOST_PARTS {
        words.push(format!("and {} more", parts.len() - MOST_PARTS));
    }
    [at.into(), gap.length.into(), cpus(gap).into(), cause(gap).into(), words.join(", ").into()]
}

/// What a gap is named after, and by which rule.
pub(crate) fn cause(gap: &WorstGap) -> String {
    match gap.rule {
        Some(rule) => format!("{} ({rule})", gap.cause),
        None => gap.cause.to_string(),
    }
}

/// Where a gap began, and where it ended.
pub(crate) fn cpus(gap: &WorstGap) -> String {
    if gap.cpu_before == gap.cpu_after {
        gap.cpu_before.to_string()
    } else {
        format!("{} to {}", gap.cpu_before, gap.cpu_after)
    }
}

/// The parts of a gap by cause, with how often it came, the longest first.
fn by_cause(gap: &WorstGap) -> Vec<(&Cause, TicksDelta, u32)> {
    let mut sums: Vec<(&Cause, TicksDelta, u32)> = Vec::new();
    for part in &gap.parts {
        match sums.iter_mut().find(|(cause, ..)| *cause == &part.cause) {
            Some((_, length, times)) => {
                *length = *length + part.length;
                *times += 1;
            }
            None => sums.push((&part.cause, part.length, 1)),
        }
    }
    sums.sort_by_key(|(_, length, _)| std::cmp::Reverse(*length));
    sums
}

/// Which thread of that name it was, where the gap's own events tell: its id and priority.
fn who(gap: &WorstGap, cause: &Cause) -> String {
    let Cause::Thread { comm, .. } = cause else { return String::new() };
    // Its process may stand behind its name.
    let named = |own: &str| {
        comm.strip_prefix(own).is_some_and(|of| of.is_empty() || of.starts_with(" of "))
    };
    let switched_to = gap.events.iter().find_map(|event| match &event.kind {
        EventKind::Switch { to, .. } if named(&to.comm) => Some(to),
        _ => None,
    });
    switched_to.map_or(String::new(), |task| format!(" pid {} prio {}", task.pid, task.prio))
}

/// `CLOCK_REALTIME` as the time of day in UTC.
fn time_of_day(realtime_ns: u64) -> String {
    let ms = realtime_ns / 1_000_000 % 86_400_000;
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", ms % 1_000)
}
