//! The section of wake-ups: how many were later than the lengths of
//! the paper's Table 1, what their latency is made of, and what caused that of the late ones.

use whylate_model::run::Run;
use whylate_model::wake::{LATER_THAN, LateWake, WakeSummary};

use crate::causes;
use crate::doc::{Block, Section, Table};
use crate::numbers::{Value, count};

/// Threads with a row each; the others are in run.json.
const MOST_ROWS: usize = 256;
/// Threads whose causes and latest wake-ups are told in sentences.
const MOST_TOLD: usize = 64;
/// Causes told, per thread.
const MOST_CAUSES: usize = 4;

/// What the table of late wake-ups means.
const CORRECTED: &str = "uncorrected: as measured, a thread that woke late counts once; \
                                    all due: each wake-up that it skipped is counted at \
                                    its own latency.";
/// What the table of where the time went means.
const SPLIT: &str = "Shares of all wake-up latency of a thread. timer: the timer fired late, and \
                     another thread had the CPU; idle: leaving idle, up to the switch from the idle \
                     thread; irq: interrupts; threads: other tasks that ran after the wake-up; kernel: \
                     the kernel's wake-up path. On a virtual machine timer and idle include what the \
                     hypervisor took and nothing shows.";

/// The section of wake-ups; none where no thread does nothing else.
pub(crate) fn section(run: &Run) -> Option<Section> {
    if run.wakes.is_empty() {
        return None;
    }
    let shown = &run.wakes[..run.wakes.len().min(MOST_ROWS)];
    let each = shown.iter().take(MOST_TOLD).flat_map(|of| told(run, of));
    let mut blocks = Block::explained(later(shown), CORRECTED).to_vec();
    blocks.extend(split(shown).into_iter().flat_map(|split| Block::explained(split, SPLIT)));
    blocks.push(Block::Items(run_as(run).into_iter().chain(each).collect()));
    Some(Section::new("wakes", "Wake-ups", blocks))
}

/// The policies of the woken threads; none where other threads ran beside them and are told of.
fn run_as(run: &Run) -> Option<String> {
    let mut policies: Vec<&str> = run.threads.iter().map(|of| of.policy.as_str()).collect();
    policies.sort_unstable();
    policies.dedup();
    run.only_wakes().then(|| format!("scheduling of the woken threads: {}", policies.join(", ")))
}

fn later(wakes: &[WakeSummary]) -> Table {
    let mut table = Table::new("Wake-ups later than", &["thread", "", "woken", "skipped"])
        .columns(LATER_THAN.map(|than| format!(">{than}")))
        .words(&[1]);
    for of in wakes {
        let raw = [
            Value::from(of.thread.as_str()),
            "uncorrected".into(),
            Value::Count(of.woken),
            of.skipped.map(Value::Count).into(),
        ];
        table.row(raw.into_iter().chain(of.later.iter().map(|later| Value::Count(later.raw))));
        let corrected = of.later.iter().map(|later| later.corrected.map(Value::Count));
        let Some(corrected) = corrected.collect::<Option<Vec<Value>>>() else { continue };
        let all = Value::Count(of.woken + of.skipped.unwrap_or(0));
        let row = ["".into(), "all due".into(), all, "".into()];
        table.row(row.into_iter().chain(corrected));
    }
    // A schedule that starts anew with each wake-up skips none, which its own row does not say.
    if wakes.len() > 1 || wakes.iter().any(|of| of.skipped.is_none()) {
        let sum = |of: fn(&WakeSummary) -> u64| {
            Value::Count(wakes.iter().map(of).fold(0, u64::saturating_add))
        };
        let skipped = sum(|of| of.skipped.unwrap_or(0));
        let all = ["all".into(), "".into(), sum(|of| of.woken), skipped];
        table.row(all.into_iter().chain(LATER_THAN.map(|_| "".into())));
    }
    table
}

/// A column for each stage that took something from somebody, as shares of all its latency; none where nothing is
/// known.
fn split(wakes: &[WakeSummary]) -> Option<Table> {
    let mut stages: Vec<_> = wakes.iter().flat_map(WakeSummary::shares).map(|of| of.0).collect();
    stages.sort_unstable();
    stages.dedup();
    if stages.is_empty() {
        return None;
    }
    let mut table = Table::new("Wake-up latency by cause", &["thread", "latency"])
        .columns(stages.iter().map(ToString::to_string));
    for of in wakes {
        let row = [Value::from(of.thread.as_str()), Value::Time(of.late_ns)];
        table.row(row.into_iter().chain(stages.iter().map(|stage| {
            let part = of.shares().into_iter().find(|part| part.0 == *stage);
            part.map(|(_, share, _)| Value::Share(share)).into()
        })));
    }
    Some(table)
}

fn told(run: &Run, of: &WakeSummary) -> Vec<String> {
    let thread = &of.thread;
    let causes: Vec<String> = of
        .causes
        .iter()
        .take(MOST_CAUSES)
        .map(|of| format!("{} ({}, at most {})", of.cause, count(of.wakes), Value::from(of.latest)))
        .collect();
    let more = of.causes.len().saturating_sub(MOST_CAUSES);
    let more = if more > 0 { format!(", {more} more causes") } else { String::new() };
    let mut told = Vec::new();
    if !causes.is_empty() {
        told.push(format!("thread {thread}: mostly {}{more}", causes.join(", ")));
    }
    let host = without_host(of).into_iter().chain(perhaps_host(of));
    told.extend(host.map(|said| format!("thread {thread}: {said}")));
    told.extend(of.latest.first().map(|wake| format!("thread {thread}: {}", latest(run, wake))));
    told
}

/// What would be left of the late wake-ups without the host's part of each; none where that is the
/// same, or not known.
fn without_host(of: &WakeSummary) -> Option<String> {
    let less = of.later.iter().filter_map(|later| {
        let without = later.without_host.filter(|without| *without < later.raw)?;
        Some(format!(
            "{} of {} later than {}",
            count(without),
            count(later.raw),
            Value::from(later.than)
        ))
    });
    let less: Vec<String> = less.collect();
    (!less.is_empty())
        .then(|| format!("without their time with no kernel event: {}", less.join(", ")))
}

/// Late wake-ups of which nobody knows whether the host made them so; none where there are none.
fn perhaps_host(of: &WakeSummary) -> Option<String> {
    let perhaps = of.later.iter().filter_map(|later| {
        let perhaps = later.perhaps_host.filter(|perhaps| *perhaps > 0)?;
        Some(format!(
            "{} of {} later than {}",
            count(perhaps),
            count(later.raw),
            Value::from(later.than)
        ))
    });
    let perhaps: Vec<String> = perhaps.collect();
    (!perhaps.is_empty()).then(|| {
        format!(
            "late for what came before the kernel woke it, and how much of that was the hypervisor's is \
             not known: {}",
            perhaps.join(", ")
        )
    })
}

fn latest(run: &Run, wake: &LateWake) -> String {
    format!("the latest by {}: {}", wake.late, causes::parts(run, &wake.parts))
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_model::cause::Cause;
    use whylate_model::wake::{LaterThan, WakeCause, WakePart, WakeStage};

    use super::*;

    fn summary(skipped: Option<u64>) -> WakeSummary {
        let part = |stage, total_ns| WakePart { stage, total_ns, wakes: 9, most: Nanos(7_000) };
        WakeSummary {
            thread: "HR-cpu1".to_owned(),
            timer: "clock_nanosleep absolute".to_owned(),
            cpus: vec![whylate_model::CpuId(1)],
            period: Nanos(1_000_000),
            woken: 991,
            skipped,
            later: LATER_THAN
                .map(|than| LaterThan {
                    than,
                    raw: 1,
                    corrected: skipped.map(|_| 5),
                    without_host: Some(u64::from(than < LATER_THAN[1])),
                    perhaps_host: Some(u64::from(than < LATER_THAN[1])),
                })
                .to_vec(),
            split: vec![part(WakeStage::IdleExit, 3e6), part(WakeStage::Interrupt, 1e6)],
            causes: vec![WakeCause {
                cause: Cause::IdleExit,
                wakes: 990,
                late_ns: 3e6,
                latest: Nanos(9_000),
                later: vec![1, 1, 1, 1],
            }],
            late_ns: 4e6,
            latest: Vec::new(),
        }
    }

    #[test]
    fn corrected_counts_have_a_row_of_their_own_and_only_where_something_is_skipped() {
        let table = later(&[summary(Some(9)), summary(None)]);
        assert_eq!(table.rows.len(), 4);
        assert_eq!(table.rows[3][..4], ["all", "", "1,982", "9"]);
        assert_eq!(table.rows[0][2..5], ["991", "9", "1"]);
        assert_eq!(table.rows[1][1..5], ["all due", "1,000", "", "5"]);
        assert_eq!(table.rows[2][3], "–");
        assert_eq!(later(&[summary(None)]).rows[1][..4], ["all", "", "991", "0"]);
    }

    #[test]
    fn shares_of_the_latency_add_up() {
        let table = split(&[summary(None)]).unwrap();
        assert_eq!(table.columns[2].head, "idle");
        assert_eq!(table.columns[3].head, "irq");
        assert_eq!(table.rows[0][1..], ["4 ms", "75%", "25%"]);
        // Of twice as much latency half is not known.
        let more = split(&[WakeSummary { late_ns: 8e6, ..summary(None) }]).unwrap();
        assert_eq!(more.columns[4].head, "unknown");
        assert_eq!(more.rows[0][1..], ["8 ms", "38%", "13%", "50%"]);
        assert!(split(&[]).is_none());
    }

    #[test]
    fn what_only_the_host_made_late_is_told_by_length() {
        let said = without_host(&summary(None)).unwrap();
        assert!(
            said.ends_with(
                "0 of 1 later than 5 ms, 0 of 1 later than 10 ms, 0 of 1 later than 50 ms"
            )
        );
        assert!(!said.contains("than 1 ms"), "{said}");
        let mut unknown = summary(None);
        unknown.later.iter_mut().for_each(|later| later.without_host = None);
        assert_eq!(without_host(&unknown), None);
        let perhaps = perhaps_host(&unknown).unwrap();
        assert!(perhaps.ends_with("is not known: 1 of 1 later than 1 ms"), "{perhaps}");
        unknown.later.iter_mut().for_each(|later| later.perhaps_host = Some(0));
        assert_eq!(perhaps_host(&unknown), None);
    }
}
