//! What a generated run has beside its gaps and series: threads that have deadlines, by the jobs of a simulated
//! schedule, and threads that do nothing but wake.

use proptest::collection::vec;
use proptest::prelude::*;
use whylate_model::cause::Cause;
use whylate_model::execution::{StoredJob, Verdict};
use whylate_model::run::Run;
use whylate_model::series::{Definition, Series};
use whylate_model::threads::{Deadlines, MissCause, ThreadSummary};
use whylate_model::wake::{LATER_THAN, LaterThan, WakeCause, WakePart, WakeStage, WakeSummary};
use whylate_model::{CpuId, Nanos};
use whylate_record::intervals::Interval;
use whylate_record::summary::{self, Description};
use whylate_stats::Histogram;
use whylate_stats::outcomes::Outcomes;

use crate::program;

/// Jobs that are one block of time.
const BLOCK: usize = 8;
/// A wake-up that is later waited for another thread, any other for the timer.
const LATE: u64 = 100_000;

/// Histograms of a series by blocks of time, with its name, as a log has them.
pub(crate) type Logged = (String, Vec<Histogram>);

/// How late a thread woke, by blocks of time.
#[derive(Debug, Clone)]
pub(crate) struct DrawnWakes {
    late: Vec<Vec<u64>>,
    period: u64,
    /// Its schedule goes on while it is late, so that it skips activations.
    skips: bool,
}

pub(crate) fn any_wakes() -> impl Strategy<Value = DrawnWakes> {
    let late = prop_oneof![6 => 1_000..90_000_u64, 2 => 90_000..3_000_000_u64, 1 => 3_000_000..60_000_000_u64];
    let block = vec(late, 0..40);
    (vec(block, 0..12), 500_000..20_000_000_u64, any::<bool>())
        .prop_map(|(late, period, skips)| DrawnWakes { late, period, skips })
}

/// The threads of a schedule whose jobs these are, with their series.
pub(crate) fn put_deadlines(jobs: &[StoredJob], run: &mut Run) {
    let kept = program::read(&program::file("runs/steps")).threads.swap_remove(0);
    let threads = jobs.iter().map(|job| job.thread).max().map_or(0, |last| last + 1);
    for thread in 0..threads {
        let mut own: Vec<&StoredJob> = jobs.iter().filter(|job| job.thread == thread).collect();
        own.sort_by_key(|job| job.index);
        if own.is_empty() {
            continue;
        }
        let name = format!("t{thread}");
        run.series.extend(series_of(&name, &own));
        run.threads.push(ThreadSummary {
            deadlines: Some(deadlines(&own)),
            workload: "PERIODIC".to_owned(),
            cpus: vec![CpuId(0)],
            phases: Vec::new(),
            steps: None,
            name,
            ..kept.clone()
        });
    }
}

fn deadlines(jobs: &[&StoredJob]) -> Deadlines {
    let mut outcomes = Outcomes::default();
    let late: Vec<&&StoredJob> = jobs.iter().filter(|job| job.verdict != Verdict::Hit).collect();
    for job in jobs {
        outcomes.add(job.verdict != Verdict::Hit);
    }
    let by = |job: &StoredJob| match () {
        () if job.waking.0 > job.threads.0 && job.waking.0 > job.interrupts.0 => Cause::TimerLate,
        () if job.interrupts.0 > job.threads.0 => Cause::Host,
        () => Cause::LeftOver,
    };
    let mut causes: Vec<MissCause> = Vec::new();
    for job in &late {
        match causes.iter_mut().find(|known| known.cause == by(job)) {
            Some(known) => known.misses += 1,
            None => causes.push(MissCause { cause: by(job), misses: 1 }),
        }
    }
    causes.sort_by_key(|of| std::cmp::Reverse(of.misses));
    let misses = late.len() as u64;
    Deadlines {
        hits: jobs.len() as u64 - misses,
        misses,
        skipped: 0,
        unfinished: late.iter().filter(|job| job.done.is_none()).count() as u64,
        unrecorded: 0,
        deadline: Some(Nanos(jobs[0].deadline.since(jobs[0].release).0)),
        miss_share_interval: Some(outcomes.interval()),
        causes,
        unexplained: Some(0),
        first: Vec::new(),
        ordinary: None,
    }
}

/// When jobs woke and were done, and how far from their deadline.
fn series_of(thread: &str, jobs: &[&StoredJob]) -> Vec<Series> {
    let blocks = |pick: fn(&StoredJob) -> Option<u64>| -> Vec<Histogram> {
        let of = |block: &[&StoredJob]| block.iter().filter_map(|job| pick(job)).collect();
        jobs.chunks(BLOCK).map(of).collect()
    };
    let late = |job: &StoredJob| Some(job.woke?.since(job.release).0);
    let response = |job: &StoredJob| Some(job.done?.since(job.release).0);
    let slack = |job: &StoredJob| job.deadline.0.checked_sub(job.done?.0);
    let tardiness =
        |job: &StoredJob| job.done?.0.checked_sub(job.deadline.0).filter(|late| *late > 0);
    let found = [
        ("wake", "wake-up", Definition::DispatchLatency, blocks(late)),
        ("response", "response", Definition::ResponseTime, blocks(response)),
        ("slack", "slack", Definition::Slack, blocks(slack)),
        ("tardiness", "tardiness", Definition::Tardiness, blocks(tardiness)),
    ];
    let of = |(name, label, definition, blocks): (&str, &str, _, Vec<Histogram>)| {
        series((&format!("{name}-{thread}"), &format!("{label}, {thread}")), definition, &blocks)
    };
    found.into_iter().filter_map(of).collect()
}

/// The wake-ups of a thread with their series, which are named as those of the check-up.
pub(crate) fn put_wakes(of: &DrawnWakes, run: &mut Run) -> Vec<Logged> {
    let all: Vec<u64> = of.late.concat();
    if all.is_empty() {
        return Vec::new();
    }
    let skipped_by = |late: u64| if of.skips { late / of.period } else { 0 };
    // Each activation that it skipped is a period less late than the one before it.
    let corrected = |late: u64| (0..=skipped_by(late)).map(move |skipped| (late, skipped));
    let blocks: Vec<Histogram> = of.late.iter().map(|of| of.iter().copied().collect()).collect();
    let with_skipped = |block: &Vec<u64>| -> Histogram {
        let each = block.iter().flat_map(|late| corrected(*late));
        each.map(|(late, skipped)| late - skipped * of.period).collect()
    };
    let corrected_blocks: Vec<Histogram> = of.late.iter().map(with_skipped).collect();
    let above = |blocks: &[Histogram], than: Nanos| -> u64 {
        blocks.iter().map(|block| block.count_at_least(than.0 + 1)).sum()
    };
    let later = LATER_THAN.map(|than| LaterThan {
        than,
        raw: above(&blocks, than),
        corrected: of.skips.then(|| above(&corrected_blocks, than)),
        without_host: None,
        perhaps_host: None,
    });
    let (causes, split) = causes(&all);
    run.wakes.push(WakeSummary {
        thread: "LAT".to_owned(),
        timer: "clock_nanosleep absolute".to_owned(),
        cpus: vec![CpuId(0)],
        period: Nanos(of.period),
        woken: all.len() as u64,
        skipped: of.skips.then(|| all.iter().map(|late| skipped_by(*late)).sum()),
        later: later.to_vec(),
        split,
        causes,
        late_ns: all.iter().sum::<u64>() as f64,
        latest: Vec::new(),
    });
    let mut logged = vec![("wake".to_owned(), "wake-up, LAT", blocks)];
    if of.skips && all.iter().any(|late| skipped_by(*late) > 0) {
        logged.push(("wake-corrected".to_owned(), "  and skipped, LAT", corrected_blocks));
    }
    for (name, label, blocks) in &logged {
        run.series.extend(series((name, label), Definition::DispatchLatency, blocks));
    }
    logged.into_iter().map(|(name, _, blocks)| (name, blocks)).collect()
}

/// The thread of these wake-ups.
pub(crate) fn woken(of: &WakeSummary) -> ThreadSummary {
    let kept = program::read(&program::file("runs/wake")).threads.swap_remove(0);
    ThreadSummary { name: of.thread.clone(), deadlines: None, cpus: of.cpus.clone(), ..kept }
}

/// What wake-ups waited for: each for one thing.
fn causes(all: &[u64]) -> (Vec<WakeCause>, Vec<WakePart>) {
    let (long, short): (Vec<u64>, Vec<u64>) = all.iter().partition(|late| **late >= LATE);
    let of =
        [(Cause::TimerLate, WakeStage::TimerLate, short), (Cause::Host, WakeStage::Host, long)];
    let some = of.into_iter().filter(|(_, _, late)| !late.is_empty());
    some.map(|(cause, stage, late)| {
        let (wakes, late_ns) = (late.len() as u64, late.iter().sum::<u64>() as f64);
        let latest = Nanos(late.iter().copied().max().unwrap_or_default());
        let later =
            LATER_THAN.map(|than| late.iter().filter(|late| **late > than.0).count() as u64);
        let named = WakeCause { cause, wakes, late_ns, latest, later: later.to_vec() };
        (named, WakePart { stage, total_ns: late_ns, wakes, most: latest })
    })
    .unzip()
}

fn series(
    (name, label): (&str, &str),
    definition: Definition,
    blocks: &[Histogram],
) -> Option<Series> {
    let between = ["intended instant", "first reading of the running thread"];
    let (series, all) = added_up([name, label], between, definition, blocks);
    (!all.is_empty()).then_some(series)
}

/// A series with this name and label between these instants, and what its blocks of time add up to.
pub(crate) fn added_up(
    [name, label]: [&str; 2],
    [from, to]: [&'static str; 2],
    definition: Definition,
    blocks: &[Histogram],
) -> (Series, Histogram) {
    let mut all = Histogram::new();
    for block in blocks {
        all.add(block);
    }
    let intervals: Vec<Interval> = blocks.iter().map(Interval::of).collect();
    let description = Description {
        name: name.to_owned(),
        label: label.to_owned(),
        paper_row: None,
        from,
        to,
        clock: "mock".to_owned(),
        definition,
        resolution_ns: 1.0,
        lost: 0,
    };
    (summary::of_histogram(&all, &intervals, &description), all)
}

/// The text has of each thread what came of its deadlines, and of each that only wakes how often it did.
pub(crate) fn holds(run: &Run, text: &str) {
    let row = |begin: [&str; 2], counts: &[u64]| {
        let is_row = |line: &&str| {
            let line = line.replace(',', "");
            let words: Vec<&str> = line.split_whitespace().collect();
            let told: Vec<u64> =
                words.iter().skip(2).filter_map(|word| word.parse().ok()).collect();
            words.starts_with(&begin) && told.starts_with(counts)
        };
        assert!(text.lines().any(|line| is_row(&line)), "{begin:?} {counts:?}: {text}");
    };
    for (thread, of) in run.threads.iter().filter_map(|of| Some((of, of.deadlines.as_ref()?))) {
        row([&thread.name, "PERIODIC"], &[of.hits + of.misses, of.hits, of.misses]);
    }
    for of in &run.wakes {
        let skipped = of.skipped.into_iter();
        let counts: Vec<u64> = [of.woken].into_iter().chain(skipped).collect();
        row([&of.thread, "uncorrected"], &counts);
    }
}
