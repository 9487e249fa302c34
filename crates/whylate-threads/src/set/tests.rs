//! Real sets on one CPU: what they left is held against what the models promise.

use std::sync::atomic::AtomicBool;

use whylate_clock::HardwareCounter;
use whylate_clock::calibrate::Calibrator;
use whylate_model::gap::GapKind;
use whylate_rta::Call;
use whylate_rta::demand::no_tables;
use whylate_suite::missing;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, sched};

use super::books::Books;
use super::*;
use crate::ledger::{Entry, Job, Last, Verdict};
use crate::model::Setting;
use crate::models;
use crate::resources::Resources;
use crate::testing;
use crate::timers::ClockNanosleep;

/// What a set left behind.
struct Ran {
    rate: Hertz,
    gaps: Vec<Vec<Gap>>,
    totals: Vec<Totals>,
    jobs: Vec<(usize, Job)>,
    books: Books,
    ended: Vec<Ended>,
}

fn clock() -> TimerNanos {
    TimerNanos(clock_ns(Clock::Monotonic))
}

/// Runs threads of these models on one CPU; none where the counter cannot be used.
fn run(models: &[&str], duration: Nanos) -> Option<Ran> {
    let _alone = testing::alone();
    let mut counter = HardwareCounter::open().inspect_err(missing).ok()?;
    let rate = Calibrator::of_this_host(counter).quick().unwrap().hz;
    let cpus = affinity::get();
    let (cpu, own) = (*cpus.last().unwrap(), cpus[0]);
    affinity::set(&[own]).unwrap();
    let limits = GapLimits {
        threshold: Nanos(1_000).to_ticks(rate),
        recording: Nanos(200).to_ticks(rate),
        recording_with_switches: Nanos(800).to_ticks(rate),
    };
    let set = whylate_rta::task_set::TaskSet {
        threads: models.iter().map(|text| thread(text)).collect(),
        resources: Vec::new(),
    };
    let resources = Resources::of(&set).unwrap();
    let setting = Setting {
        seed: 1,
        deadline: None,
        steps: &[],
        program: None,
        cpus: None,
        resources: &resources,
        tables: &no_tables,
    };
    let members = models.iter().enumerate().map(|(index, text)| Member {
        name: format!("test/{index}"),
        model: models::named(&Call::parse(text).unwrap(), &setting).unwrap(),
        timer: Box::new(ClockNanosleep::default()),
        cpus: Some(vec![cpu]),
        seat: Box::new(|| Ok(Seated { policy: sched::policy(), warnings: Vec::new() })),
        start: Nanos(0),
        finish: None,
        limits,
    });
    let orders = Orders { rate, duration, ring: 1 << 14 };
    let setting_ledgers: Vec<_> = models
        .iter()
        .map(|text| {
            models::named::<HardwareCounter>(&Call::parse(text).unwrap(), &setting)
                .unwrap()
                .ledger()
        })
        .collect();
    let given_up = AtomicBool::new(false);
    let mut set = Set::prepare(members.collect(), &counter, &orders, &given_up).unwrap();
    let (epoch, _) = set.start(&mut counter, &mut clock, &orders);
    let terms = (0..models.len()).map(|index| set.term(index, epoch, &orders));
    let threads: Vec<_> = setting_ledgers.into_iter().zip(terms).collect();
    let mut books = Books::open(threads, epoch, Nanos::SECOND);
    let mut gaps = vec![Vec::new(); models.len()];
    let mut jobs = Vec::new();
    loop {
        let state = set.drain(&mut |index, batch| gaps[index].extend_from_slice(batch));
        set.drain_marks(|index, mark| books.push(index, mark));
        books.tie(&mut counter, clock, &mut |index, entry| keep(&mut jobs, index, entry));
        if state == State::Ended {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = set.finish();
    let totals: Vec<Totals> = (0..models.len()).map(|index| set.totals(index)).collect();
    for (index, totals) in totals.iter().enumerate() {
        let last = Last { at: totals.end, lossy: false };
        books.finish(index, last, &mut |index, entry| keep(&mut jobs, index, entry));
    }
    affinity::set(&cpus).unwrap();
    Some(Ran { rate, gaps, totals, jobs, books, ended })
}

/// Runs until a run is as wished for: on a machine that has other things to do little may happen in one.
fn run_until(models: &[&str], length: Nanos, as_wished: impl Fn(&Ran) -> bool) -> Option<Ran> {
    for _ in 0..200 {
        let ran = run(models, length)?;
        if as_wished(&ran) {
            return Some(ran);
        }
    }
    panic!("none of two hundred runs was as wished for");
}

impl Ran {
    /// Each gap of this thread was kept.
    fn kept_all(&self, index: usize) -> bool {
        self.gaps[index].len() as u64 == self.totals[index].gaps
    }
}

fn thread(workload: &str) -> whylate_rta::task_set::Thread {
    let mut thread = whylate_rta::task_set::Thread::new(workload);
    thread.workload = Call::parse(workload).unwrap();
    thread
}

fn keep(jobs: &mut Vec<(usize, Job)>, index: usize, entry: Entry) {
    if let Entry::Job(job) = entry {
        jobs.push((index, job));
    }
}

fn received(totals: &Totals) -> u64 {
    totals.elapsed().0 - totals.gap_ticks.0
}

#[test]
fn threads_of_one_cpu_never_run_at_the_same_time_and_each_knows_what_it_received() {
    let all_kept = |ran: &Ran| (0..3).all(|index| ran.kept_all(index));
    let Some(ran) = run_until(&["CPU"; 3], Nanos(400_000_000), all_kept) else { return };
    let mut blocks: Vec<(u64, u64, usize)> = Vec::new();
    for (index, (gaps, totals)) in ran.gaps.iter().zip(&ran.totals).enumerate() {
        let mut from = totals.start.0;
        for gap in gaps {
            blocks.push((from, gap.start.0, index));
            from = gap.end.0;
        }
        blocks.push((from, totals.end.0, index));
        assert!(ran.ended[index].failure.is_none());
    }
    blocks.retain(|(from, to, _)| to > from);
    blocks.sort_unstable();
    for pair in blocks.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?}");
    }
    // Each knows the sum of its own blocks, and together they had no more than there was.
    for (index, totals) in ran.totals.iter().enumerate() {
        let own = blocks.iter().filter(|(.., of)| *of == index);
        assert_eq!(own.map(|(from, to, _)| to - from).sum::<u64>(), received(totals));
        assert!(ran.ended[index].cpu_time.unwrap() > Nanos(0));
    }
    let first = ran.totals.iter().map(|totals| totals.start.0).min().unwrap();
    let last = ran.totals.iter().map(|totals| totals.end.0).max().unwrap();
    let got: u64 = ran.totals.iter().map(received).sum();
    assert!(got <= last - first, "{got} of {}", last - first);
}

#[test]
fn every_deadline_of_a_periodic_thread_is_judged_and_no_job_is_done_before_its_time() {
    let as_wished = |ran: &Ran| ran.kept_all(0) && ran.books.ledger(0).account().unwrap().hits > 5;
    let Some(ran) = run_until(&["PERIODIC 1ms 10ms"], Nanos(500_000_000), as_wished) else {
        return;
    };
    let account = ran.books.ledger(0).account().unwrap();
    assert_eq!(account.hits + account.misses, 50, "every deadline of half a second is judged");
    assert_eq!(ran.jobs.len(), 50);
    let indexes: Vec<u64> = ran.jobs.iter().map(|(_, job)| job.index).collect();
    assert_eq!(indexes, (0..50).collect::<Vec<_>>());
    // Releases are of the timer's clock, and known in ticks as well as the clocks are tied.
    let relation = ran.books.relation();
    let bound = Nanos(relation.bound_ns().ceil() as u64).to_ticks(ran.rate);
    for (_, job) in ran.jobs.iter().filter(|(_, job)| job.verdict == Verdict::Hit) {
        let (woke, done) = (job.woke.unwrap(), job.done.unwrap());
        let in_order = job.release <= woke + bound && woke < done && done <= job.deadline + bound;
        assert!(in_order, "{job:?} {relation:?}");
        let lost: u64 = ran.gaps[0]
            .iter()
            .filter(|gap| gap.start >= woke && gap.end <= done)
            .map(|gap| gap.length().0)
            .sum();
        let got = done.since(woke).0 - lost;
        let wanted = Nanos(1_000_000).to_ticks(ran.rate).0;
        assert!(got >= wanted, "{got} {wanted}");
    }
}

#[test]
fn a_yielding_thread_has_its_amount_before_each_time_it_yields() {
    let yielded = |gaps: &Vec<Gap>| gaps.iter().filter(|gap| gap.kind == GapKind::Yield).count();
    let as_wished = |ran: &Ran| {
        (0..2).all(|index| ran.kept_all(index)) && ran.gaps.iter().all(|gaps| yielded(gaps) > 10)
    };
    let Some(ran) = run_until(&["CPU_YIELD 1ms"; 2], Nanos(400_000_000), as_wished) else {
        return;
    };
    // Where the CPU was taken at an end, one of them yields to nobody for a while: that is no gap.
    let from = ran.totals.iter().map(|totals| totals.start).max().unwrap();
    let to = ran.totals.iter().map(|totals| totals.end).min().unwrap();
    let amount = Nanos(1_000_000).to_ticks(ran.rate).0;
    for gaps in &ran.gaps {
        let within = gaps.iter().filter(|gap| gap.start < to && gap.end > from);
        let lost: u64 = within.clone().map(|gap| gap.end.min(to).0 - gap.start.max(from).0).sum();
        let yields = within.filter(|gap| gap.kind == GapKind::Yield).count() as u64;
        assert!(yields <= (to.0 - from.0 - lost) / amount + 1, "{yields}");
    }
}

#[test]
fn wake_ups_and_frames_are_accounted_for() {
    let models = ["LAT 2ms", "LAT_ABS 2ms", "CPU_PERIODIC 1ms 20ms"];
    let woke = |ran: &Ran| {
        let account = |index: usize| ran.books.ledger(index).account().unwrap();
        account(0).lateness.whole.len() > 10 && account(2).hits > 0
    };
    let Some(ran) = run_until(&models, Nanos(400_000_000), woke) else { return };
    let account = |index: usize| ran.books.ledger(index).account().unwrap();
    assert!(account(0).drift.is_some());
    assert_eq!(account(1).corrected.whole.len(), 199, "each activation once");
    assert_eq!(account(1).lateness.whole.len() + account(1).skipped, 199);
    // A frame that is complete moves the next deadline on by a period at most, and so does a miss.
    let judged = account(2).hits + account(2).misses;
    assert!(judged >= 400 / 20 - 1, "{judged}");
}

#[test]
fn the_cpu_is_handed_on_in_turn_and_only_the_holder_of_the_baton_runs() {
    let handed = |gaps: &Vec<Gap>| gaps.iter().filter(|gap| gap.kind == GapKind::HandOff).count();
    let as_wished = |ran: &Ran| {
        (0..3).all(|index| ran.kept_all(index)) && ran.gaps.iter().all(|gaps| handed(gaps) > 20)
    };
    let Some(ran) = run_until(&["HAND_OFF 1ms"; 3], Nanos(400_000_000), as_wished) else {
        return;
    };
    let mut blocks: Vec<(u64, u64, usize)> = Vec::new();
    for (index, gaps) in ran.gaps.iter().enumerate() {
        let handed: Vec<&Gap> = gaps.iter().filter(|gap| gap.kind == GapKind::HandOff).collect();
        blocks.extend(handed.windows(2).map(|two| (two[0].end.0, two[1].start.0, index)));
    }
    blocks.sort_unstable();
    for pair in blocks.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?}");
    }
    // One that begins late, or has ended, is not waited for: all three are there in between.
    let of = |index| blocks.iter().filter(move |(.., of)| *of == index);
    let from = (0..3).filter_map(|index| of(index).next()).map(|(from, ..)| *from).max().unwrap();
    let to = (0..3).filter_map(|index| of(index).next_back()).map(|(_, to, _)| *to).min().unwrap();
    blocks.retain(|block| block.0 >= from && block.1 <= to);
    assert!(blocks.len() > 3, "{from} {to}");
    for three in blocks.windows(3) {
        let [a, b, c] = [three[0].2, three[1].2, three[2].2];
        assert!(a != b && b != c && a != c, "{three:?}");
    }
}
