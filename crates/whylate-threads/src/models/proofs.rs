//! Models on mock time: what others take of the CPU is planted, and what is left is theirs to the reading.

use std::sync::atomic::AtomicBool;

use whylate_gap::hot::{Limits, Live, Recorder};
use whylate_gap::table::LogLinear;
use whylate_gap::{Totals, ring};
use whylate_model::gap::{Gap, GapKind};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_rta::Call;
use whylate_rta::demand::no_tables;
use whylate_rta::task_set::{TaskSet, Thread};

use super::named;
use crate::ledger::{Calendar, Entry, Job, Last, Ledger, Verdict};
use crate::mark::Mark;
use crate::mock::MockTime;
use crate::model::Setting;
use crate::relation::{Segment, Tie};
use crate::resources::Resources;
use crate::ring as marks;
use crate::stage::{End, Stage, Term};
use crate::timer::TimerNanos;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// Of the mock counter.
const RATE: Hertz = Hertz(3e9);
/// What a thread does between two of its readings: a few readings of the clock and the counter.
const BETWEEN: Nanos = Nanos(200);

/// What a thread left behind.
struct Ran {
    gaps: Vec<Gap>,
    jobs: Vec<Job>,
    ledger: Ledger,
    totals: Totals,
}

fn ticks(nanos: u64) -> u64 {
    MockTime::ticks_at(TimerNanos(nanos)).0
}

/// Runs a thread of this model from 1 ms on; when it could run at `ns`, it runs at `runs_at(ns)`.
fn run(model: &str, length: u64, runs_at: fn(u64) -> u64) -> Ran {
    let call = Call::parse(model).unwrap();
    let mut thread = Thread::new("0");
    thread.workload = call.clone();
    let set = TaskSet { threads: vec![thread], resources: Vec::new() };
    let setting = Setting {
        seed: 1,
        deadline: None,
        steps: &[],
        program: None,
        cpus: None,
        resources: &Resources::of(&set).unwrap(),
        tables: &no_tables,
    };
    let mut model = named(&call, &setting).unwrap();
    let term = Term { start: TimerNanos(MS), end: TimerNanos(MS + length) };
    let limits = Limits {
        threshold: Nanos(US).to_ticks(RATE),
        recording: Nanos(200).to_ticks(RATE),
        recording_with_switches: Nanos(800).to_ticks(RATE),
        stop_at: TicksDelta(u64::MAX),
        begin: Ticks(0),
        end: MockTime::ticks_at(term.end),
    };
    let (gaps, mut gaps_out) = ring::ring_of(1 << 12);
    let (marks, mut marks_out) = marks::ring_of(1 << 12);
    let (overflow, live, stop) = (LogLinear::default(), Live::default(), AtomicBool::new(false));
    let recorder = Recorder::new(gaps, &overflow, &live, &stop, None, limits);
    let (time, mut ledger) = (MockTime::new(), model.ledger());
    let (counter, timer) = (time.counter_of(runs_at), Box::new(time.timer(runs_at)));
    let mut stage = Stage::new(counter, timer, recorder, marks, RATE, term);
    let end = stage.await_start().map_or_else(|end| end, |_| model.body(&mut stage));
    assert!(matches!(end, End::Over) && stage.marks_dropped() == 0, "{end:?}");
    stage.close(|| ());
    let (mut gaps, mut jobs) = (Vec::new(), Vec::new());
    gaps_out.drain(&mut gaps);
    let totals = Totals::of(&live, None);
    assert_eq!(gaps.len() as u64, totals.gaps, "nothing was dropped");
    let shown = |at| Tie { ticks: Ticks(ticks(at)), at: TimerNanos(at), half_width: TicksDelta(0) };
    let segment = Segment::between(shown(0), shown(1_000 * MS)).unwrap();
    let mut keep = |entry| {
        if let Entry::Job(job) = entry {
            jobs.push(job);
        }
    };
    ledger.begin(term, Calendar { start: term.start, interval: Nanos::SECOND });
    marks_out.drain(|words| ledger.take(&Mark::unpack(words).unwrap(), &segment, &mut keep));
    ledger.finish(Last { at: totals.end, lossy: false }, &segment, &mut keep);
    Ran { gaps, jobs, ledger, totals }
}

impl Ran {
    /// What the thread had from one reading to another.
    fn had(&self, from: Ticks, to: Ticks) -> u64 {
        let within = self.gaps.iter().filter(|gap| gap.start >= from && gap.end <= to);
        to.since(from).0 - within.map(|gap| gap.length().0).sum::<u64>()
    }

    fn of(&self, kind: GapKind) -> Vec<&Gap> {
        self.gaps.iter().filter(|gap| gap.kind == kind).collect()
    }
}

/// 200 us are taken in each 3.7 ms.
fn now_and_then(ns: u64) -> u64 {
    let (phase, taken) = (ns % (3_700 * US), 1_100 * US..1_300 * US);
    if taken.contains(&phase) { ns - phase + taken.end } else { ns }
}

/// The same, and 25 ms from the middle of the job that is released at 101 ms.
fn once_for_long(ns: u64) -> u64 {
    let taken = 101_500 * US..126_500 * US;
    if taken.contains(&ns) { taken.end } else { now_and_then(ns) }
}

/// It has what it asked for, and a few readings more.
fn is_its_amount(had: u64, amount: u64) -> bool {
    (ticks(amount)..=ticks(amount) + BETWEEN.to_ticks(RATE).0).contains(&had)
}

#[test]
fn a_job_runs_until_it_has_its_execution_time_to_the_reading_whatever_is_taken_meanwhile() {
    let undisturbed: fn(u64) -> u64 = |ns| ns;
    for runs_at in [undisturbed, now_and_then] {
        let ran = run("PERIODIC 1ms 10ms", 500 * MS, runs_at);
        let indexes: Vec<u64> = ran.jobs.iter().map(|job| job.index).collect();
        assert_eq!(indexes, (0..50).collect::<Vec<_>>());
        for job in &ran.jobs {
            let (woke, done) = (job.woke.unwrap(), job.done.unwrap());
            assert!(job.release <= woke && woke < done && done <= job.deadline, "{job:?}");
            assert!(is_its_amount(ran.had(woke, done), MS), "{job:?}");
        }
        let account = ran.ledger.account().unwrap();
        assert_eq!((account.hits, account.misses), (50, 0));
        // To the begin, and after each job to the next release.
        assert_eq!(ran.of(GapKind::Sleep).len(), 51);
    }
}

#[test]
fn a_job_that_is_kept_from_its_time_has_it_late_and_those_it_passed_over_are_misses() {
    let ran = run("PERIODIC 1ms 10ms", 500 * MS, once_for_long);
    let account = ran.ledger.account().unwrap();
    assert_eq!((account.hits, account.misses, account.skipped), (48, 2, 1));
    let missed = ran.jobs.iter().filter(|job| job.verdict != Verdict::Hit);
    let missed: Vec<_> = missed.map(|job| (job.index, job.verdict)).collect();
    assert_eq!(missed, [(10, Verdict::Late), (11, Verdict::Skipped)]);
    for job in ran.jobs.iter().filter(|job| job.verdict != Verdict::Skipped) {
        let had = ran.had(job.woke.unwrap(), job.done.unwrap());
        assert!(is_its_amount(had, MS), "{job:?}: {had}");
    }
}

#[test]
fn a_thread_that_yields_does_so_each_time_it_has_its_amount_and_not_before() {
    for runs_at in [now_and_then, once_for_long] {
        let ran = run("CPU_YIELD 1ms", 200 * MS, runs_at);
        let yields = ran.of(GapKind::Yield);
        for pair in yields.windows(2) {
            let had = ran.had(pair[0].end, pair[1].start);
            assert!(is_its_amount(had, MS), "{pair:?}: {had}");
        }
        let received = ran.totals.elapsed().0 - ran.totals.gap_ticks.0;
        assert_eq!(yields.len() as u64, received / ticks(MS));
    }
}
