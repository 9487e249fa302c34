//! Where the lost time went: causes, senders, the longest gaps, and what follows.

use whylate_model::cause::{Cause, CauseTotal, Part, WorstGap};
use whylate_model::run::Run;
use whylate_model::{CpuId, TicksDelta};

use crate::doc::{Block, Section, Table, Where};
use crate::numbers::{Cell, Value, count, instant, percent};

/// Rows of the tables of causes, whose rest is one row, of senders and of foreign threads.
const ON_A_TERMINAL: (usize, usize, usize) = (12, 6, 12);
const ON_THE_PAGE: (usize, usize, usize) = (24, 24, 24);
/// Gaps with a row.
const MOST_GAPS: usize = 64;
/// Causes of the parts of a gap that are told.
const MOST_PARTS: usize = 5;

/// What the section is called on a terminal and on the page.
pub(crate) const TITLE: &str = "Lost time by cause";

/// What the columns of stalls count: another cause may have made a part of each.
const WHOLE: &str =
    "Stalls, longest: of the stalls in which this cause took most, whole. Lost: all its parts.";

/// The sections of a terminal, which has no pictures.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    let taken = Section::new("causes", TITLE, blocks(run, Where::Terminal));
    let taken = if run.causes.is_empty() { taken } else { taken.headed() };
    let worst = format!("The {} longest stalls", run.worst.len());
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
    blocks.extend((!run.causes.is_empty()).then(|| Block::How(WHOLE.to_owned())));
    // Without a trace nobody looked for events, and none of them is the host's for that.
    if let (Some(coverage), Some(_)) = (run.coverage, &run.evidence.trace) {
        let (unnamed, named) = without_event(run, coverage.by_nothing);
        let named = named.map_or_else(String::new, |(cause, share)| {
            format!(", {} went to the {cause}", percent(share))
        });
        blocks.push(Block::Text(format!(
            "Of the lost time, {} has a traced cause, {} is IRQ entry/exit beside such a cause{named}, {} \
             has no kernel event.",
            percent(coverage.by_events),
            percent(coverage.by_residuals),
            percent(unnamed),
        )));
    }
    blocks.extend(crate::first::by_kind(run).map(Block::Table));
    blocks.extend(by_cpu(run).map(|of| Block::Table(of.most(most))));
    blocks.push(Block::Table(senders(run, most_senders)));
    if let Some(table) = crate::foreign::table(run) {
        blocks.push(Block::Table(table.most(most_foreign)));
    }
    blocks
}

/// Of the share of lost time for which there is no event, what has no other name, and what the hypervisor or the
/// firmware is shown to have taken, as the rows of the table have it.
fn without_event(run: &Run, by_nothing: f64) -> (f64, Option<(&Cause, f64)>) {
    let mut whole = run.causes.iter().filter(|total| total.cpu.is_none());
    let lost: f64 =
        whole.clone().filter(|total| total.cause == Cause::Host).map(|total| total.lost_ns).sum();
    let is_named = |of: &&CauseTotal| matches!(of.cause, Cause::Hypervisor | Cause::Firmware);
    match whole.find(is_named).filter(|named| named.lost_ns > 0.0) {
        Some(named) => {
            let share = by_nothing * named.lost_ns / (named.lost_ns + lost);
            (by_nothing - share, Some((&named.cause, share)))
        }
        None => (by_nothing, None),
    }
}

/// What supports or contradicts it; none where nothing does.
pub(crate) fn findings(run: &Run) -> Option<Vec<Block>> {
    let said: Vec<String> = run
        .findings
        .iter()
        .map(|finding| format!("{}: {}", finding.confidence, finding.text))
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
    let head = ["cause", "stalls", "lost", "of lost", denominator(run), "longest"];
    let mut table = Table::new(TITLE, &head);
    let totals = totals(run);
    let (shown, rest) = totals.split_at(totals.len().min(most));
    for total in shown {
        table.row(cells(total));
    }
    if !rest.is_empty() {
        let sum = |of: fn(&CauseTotal) -> f64| rest.iter().map(|total| of(total)).sum::<f64>();
        table.row([
            others(rest.len()).into(),
            Value::Count(rest.iter().map(|total| total.gaps).fold(0, u64::saturating_add)),
            Value::Time(sum(|total| total.lost_ns)),
            Value::Share(sum(|total| total.share_of_lost)),
            Value::Share(sum(|total| total.share_of_elapsed)),
            rest.iter().filter(|total| total.gaps > 0).map(|total| total.longest).max().into(),
        ]);
    }
    table
}

/// The causes that have no row.
fn others(many: usize) -> String {
    if many == 1 { "1 other".to_owned() } else { format!("{} others", count(many as u64)) }
}

/// Who took most of what was lost on a CPU, or of all that was lost where that is not told apart; none where nothing
/// was lost.
pub(crate) fn largest(run: &Run, cpu: CpuId) -> Option<&CauseTotal> {
    let of = |cpu| run.causes.iter().filter(move |total: &&CauseTotal| total.cpu == cpu);
    let own: Vec<&CauseTotal> = of(Some(cpu)).collect();
    let totals = if own.is_empty() { of(None).collect() } else { own };
    let largest = totals.into_iter().max_by(|a, b| a.lost_ns.total_cmp(&b.lost_ns));
    largest.filter(|of| of.lost_ns > 0.0)
}

/// The largest cause of each of several CPUs, of which the totals tell nothing; the CPU that lost most to one first.
fn by_cpu(run: &Run) -> Option<Table> {
    let mut cpus: Vec<CpuId> = run.causes.iter().filter_map(|total| total.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let largest = |cpu: &CpuId| Some((*cpu, largest(run, *cpu)?));
    let mut rows: Vec<_> = cpus.iter().filter_map(largest).collect();
    rows.sort_by(|(_, a), (_, b)| b.lost_ns.total_cmp(&a.lost_ns));
    let head = ["CPU", "cause", "lost", "of lost", "longest"];
    let mut table = Table::new("Largest cause on each CPU", &head).words(&[1]);
    for (cpu, of) in rows {
        table.row([
            Value::from(format!("CPU {cpu}")),
            of.cause.to_string().into(),
            Value::Time(of.lost_ns),
            Value::Share(of.share_of_lost),
            // Of none there is no longest.
            (of.gaps > 0).then_some(of.longest).into(),
        ]);
    }
    (cpus.len() > 1).then_some(table)
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
        // Of none there is no longest.
        (total.gaps > 0).then_some(total.longest).into(),
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
    let mut at = instant(at);
    if let Some(wall) = run.clock.realtime_ns(gap.start) {
        at = format!("{at} {}", time_of_day(wall));
    }
    [
        at.into(),
        gap.length.into(),
        cpus(gap).into(),
        gap.cause.to_string().into(),
        parts(run, &gap.parts).into(),
    ]
}

/// What the parts of a stall took by cause, the longest first, and how many causes are left out.
pub(crate) fn parts(run: &Run, of: &[Part]) -> String {
    let parts = by_cause(of);
    let mut words: Vec<String> = parts
        .iter()
        .take(MOST_PARTS)
        .map(|(cause, length, times)| {
            let times = if *times > 1 { format!(" x{times}") } else { String::new() };
            format!("{cause}{times} {}", Value::from(length.to_nanos(run.clock.hz)))
        })
        .collect();
    if parts.len() > MOST_PARTS {
        words.push(format!("and {} more", parts.len() - MOST_PARTS));
    }
    words.join(", ")
}

/// Where a gap began, and where it ended.
pub(crate) fn cpus(gap: &WorstGap) -> String {
    if gap.cpu_before == gap.cpu_after {
        gap.cpu_before.to_string()
    } else {
        format!("{} to {}", gap.cpu_before, gap.cpu_after)
    }
}

/// Parts of a gap by cause, with how often it came, the longest first.
fn by_cause(parts: &[Part]) -> Vec<(&Cause, TicksDelta, u32)> {
    let mut sums: Vec<(&Cause, TicksDelta, u32)> = Vec::new();
    for part in parts {
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

/// `CLOCK_REALTIME` as the time of day in UTC.
fn time_of_day(realtime_ns: u64) -> String {
    let ms = realtime_ns / 1_000_000 % 86_400_000;
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", ms % 1_000)
}

#[cfg(test)]
mod tests {
    use whylate_model::cause::SenderTotal;
    use whylate_model::event::Softirq;
    use whylate_model::run::Anchor;
    use whylate_model::{CpuId, Nanos, Ticks};

    use super::*;
    use crate::timeline::tests::{quiet, recorded};

    fn total(cause: Cause, cpu: Option<u32>, lost_ns: f64) -> CauseTotal {
        CauseTotal {
            cause,
            cpu: cpu.map(CpuId),
            gaps: 3,
            parts: 4,
            lost_ns,
            share_of_lost: 0.25,
            share_of_elapsed: 0.03,
            longest: Nanos(lost_ns as u64 / 2),
        }
    }

    fn interrupt(name: &str) -> Cause {
        Cause::Interrupt { name: name.to_owned() }
    }

    fn told(table: &Table) -> Vec<String> {
        let row =
            |row: &Vec<Cell>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
        table.rows.iter().map(row).collect()
    }

    #[test]
    fn causes_over_all_cpus_are_told_the_largest_first_and_those_of_each_cpu_where_there_are_none()
    {
        let mut run = quiet();
        run.causes = vec![
            total(interrupt("a"), None, 1e3),
            total(interrupt("b"), Some(1), 9e3),
            total(interrupt("c"), None, 5e3),
        ];
        let lost = |run: &Run| totals(run).iter().map(|total| total.lost_ns).collect::<Vec<_>>();
        assert_eq!(lost(&run), [5e3, 1e3]);
        run.causes.iter_mut().for_each(|total| total.cpu = Some(CpuId(1)));
        assert_eq!(lost(&run), [9e3, 5e3, 1e3]);
    }

    #[test]
    fn of_no_gap_there_is_no_longest() {
        let mut run = quiet();
        run.causes = vec![CauseTotal { gaps: 0, ..total(Cause::Nmi, None, 4e6) }; 3];
        for row in told(&table(&run, 1)) {
            assert!(row.ends_with(" | –"), "{row}");
        }
    }

    #[test]
    fn causes_beyond_the_rows_of_a_table_are_one_row_that_sums_them_up() {
        let mut run = quiet();
        run.causes = (1..=4_u8).map(|n| total(Cause::Nmi, None, f64::from(n) * 1e6)).collect();
        let four = |n: u8| {
            format!(
                "{} | 3 | {n} ms | 25% | 3.0% | {}",
                Cause::Nmi,
                Value::from(Nanos(u64::from(n) * 500_000))
            )
        };
        let rest = "2 others | 6 | 3 ms | 50% | 6.0% | 1 ms".to_owned();
        assert_eq!(told(&table(&run, 2)), [four(4), four(3), rest]);
        assert_eq!(told(&table(&run, 4)), [four(4), four(3), four(2), four(1)]);
    }

    #[test]
    fn the_share_of_threads_is_of_their_time_and_that_of_loops_of_what_elapsed() {
        let mut run = quiet();
        assert_eq!(denominator(&run), "of elapsed");
        let path = std::path::Path::new("run.json");
        let json = include_bytes!("../../../tests/runs/threads/run.json");
        run.threads = whylate_model::directory::parse_run(path, json).unwrap().threads;
        assert_eq!(denominator(&run), "of thread time");
    }

    #[test]
    fn the_most_frequent_senders_are_told_each_with_its_cpu_and_one_without_a_name_as_such() {
        let sender = |comm: &str, count| SenderTotal {
            comm: comm.to_owned(),
            from: CpuId(0),
            to: CpuId(1),
            cause: interrupt("reschedule"),
            count,
            lost_ns: 2e3,
        };
        let mut run = quiet();
        run.senders = vec![sender("few", 1), sender("", 9), sender("some", 5)];
        let cause = interrupt("reschedule").to_string();
        let row =
            |name: &str, count: u64| format!("{name} on CPU 0 | {cause} | CPU 1 | {count} | 2 µs");
        assert_eq!(told(&senders(&run, 2)), [row("(unnamed)", 9), row("some", 5)]);
    }

    #[test]
    fn coverage_is_told_of_a_traced_run_and_evidence_where_there_is_some() {
        let mut run = recorded();
        let texts = |run: &Run| -> Vec<String> {
            let text = |block| match block {
                Block::Text(text) => Some(text),
                _ => None,
            };
            blocks(run, Where::Terminal).into_iter().filter_map(text).collect()
        };
        let coverage =
            whylate_model::cause::Coverage { by_events: 0.5, by_residuals: 0.3, by_nothing: 0.2 };
        run.coverage = Some(coverage);
        assert!(run.evidence.trace.is_some());
        assert_eq!(
            texts(&run),
            [
                "Of the lost time, 50% has a traced cause, 30% is IRQ entry/exit beside such a cause, \
              20% has no kernel event."
            ]
        );
        // What is the hypervisor's in the table is its here, and what is nobody's is nobody's.
        run.causes = vec![total(Cause::Host, None, 1e3), total(Cause::Hypervisor, None, 3e3)];
        let told = "Of the lost time, 50% has a traced cause, 30% is IRQ entry/exit beside such a cause, \
                    15% went to the hypervisor, 5.0% has no kernel event.";
        assert_eq!(texts(&run), [told]);
        run.evidence.trace = None;
        assert_eq!(texts(&run), Vec::<String>::new());
        run.findings.clear();
        assert!(findings(&run).is_none());
    }

    #[test]
    fn the_longest_gaps_have_a_section_where_there_are_some_and_causes_a_heading() {
        let keys = |run: &Run| {
            let headed = |of: &Section| of.headed == Where::Both;
            sections(run).iter().map(|of| (of.id.clone(), headed(of))).collect::<Vec<_>>()
        };
        let mut run = quiet();
        run.findings.clear();
        let key = |id: &str, headed| (id.to_owned(), headed);
        assert_eq!(keys(&run), [key("causes", false)]);
        run.causes = vec![total(Cause::Host, None, 1e3)];
        run.worst = vec![worst(&[])];
        assert_eq!(keys(&run), [key("causes", true), key("worst", true)]);
    }

    /// A gap 2.5 ms after the start, of parts of these lengths.
    fn worst(parts: &[(u64, Cause)]) -> WorstGap {
        let part = |(length, cause): &(u64, Cause)| Part {
            start: Ticks(0),
            length: TicksDelta(*length),
            cause: cause.clone(),
            sender: None,
        };
        WorstGap {
            start: Ticks(2_501_000),
            length: Nanos(9_000),
            cpu_before: CpuId(1),
            cpu_after: CpuId(1),
            cause: Cause::Host,
            rule: None,
            parts: parts.iter().map(part).collect(),
            ..recorded().worst[0].clone()
        }
    }

    #[test]
    fn a_gap_is_told_with_its_time_its_cpus_its_cause_and_its_parts_by_cause() {
        let mut run = quiet();
        run.clock.anchors.clear();
        let softirq = |vector| Cause::Softirq { vector };
        let timer = interrupt("local_timer");
        let few = worst(&[(100, timer.clone()), (500, Cause::Nmi), (150, timer.clone())]);
        let row = |run: &Run, gap: &WorstGap| gap_row(run, gap).map(|value| value.to_string());
        let parts = format!("{} 500 ns, {timer} x2 250 ns", Cause::Nmi);
        assert_eq!(row(&run, &few), ["0.002500 s", "9 µs", "1", &Cause::Host.to_string(), &parts]);
        let many = [
            (1, timer),
            (2, Cause::Nmi),
            (3, softirq(Softirq::Timer)),
            (4, softirq(Softirq::Rcu)),
            (5, Cause::PageFault),
            (6, Cause::IdleExit),
        ];
        let told = |of: &[(u64, Cause)]| row(&run, &worst(of))[4].clone();
        assert_eq!(told(&many[..5]).matches(", ").count(), 4);
        assert!(told(&many).ends_with("2 ns, and 1 more"), "{}", told(&many));
        let moved = WorstGap {
            cpu_after: CpuId(3),
            rule: Some(whylate_model::cause::Rule::R7),
            cause: Cause::Migration,
            ..few
        };
        run.clock.anchors = vec![Anchor {
            ticks: Ticks(1_000),
            // A day, an hour, two minutes, three seconds and four milliseconds.
            realtime_ns: 86_400_000_000_000 + 3_723_004_000_000,
            raw_ns: 0,
            bound_ns: 1.0,
        }];
        let [at, _, cpus, cause, _] = row(&run, &moved);
        assert_eq!((at.as_str(), cpus.as_str()), ("0.002500 s 01:02:03.006Z", "1 to 3"));
        assert_eq!(cause, Cause::Migration.to_string());
    }

    #[test]
    fn gaps_have_numbers_from_one_on() {
        let mut run = quiet();
        run.worst = vec![worst(&[]), worst(&[])];
        let numbers: Vec<String> =
            longest(&run).rows.iter().map(|row| row[0].to_string()).collect();
        assert_eq!(numbers, ["1", "2"]);
    }

    #[test]
    fn the_time_of_day_is_that_of_its_day() {
        let at = |hours: u64, minutes: u64, seconds: u64, ms: u64| {
            let days = 20_000 * 86_400;
            time_of_day(((days + hours * 3_600 + minutes * 60 + seconds) * 1_000 + ms) * 1_000_000)
        };
        assert_eq!(at(0, 0, 0, 0), "00:00:00.000Z");
        assert_eq!(at(23, 59, 58, 7), "23:59:58.007Z");
        assert_eq!(at(12, 34, 56, 789), "12:34:56.789Z");
    }
}
