//! Rows of a workload of rt-app: run time, period and length of the passes of each phase, beside what the
//! file asks for. Tests and figures have them.
//!
//! Run time must be that of the file always: it is counted, and nothing that interrupts it can change
//! it. A period or a pass can be longer than the file says, because somebody else had the CPU. Such a
//! row is accounted for only with what the run itself recorded: periods that were put off, the lateness of the
//! last activation, the time that each pass lost, to within the same 1 %.

use std::collections::BTreeMap;
use std::path::Path;

use whylate_model::Nanos;
use whylate_model::directory::RunDir;
use whylate_model::run::Run;
use whylate_model::segments;
use whylate_model::threads::{ActivationSummary, PhaseSummary, ThreadSummary};

/// How far the means of a feasible workload may lie from what the file asks for.
pub const WITHIN: f64 = 0.01;

/// What became of a quantity that the file determines.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// Within 1 %.
    Yes,
    /// Not, and the run says what it was that made the difference.
    Accounted {
        /// In words.
        told: String,
        /// Others than the file's own tasks had a part in it that another run may not have.
        by_others: bool,
    },
    /// Neither.
    No(String),
}

/// Of what each thread lost, the share that threads of its own set took, by name; of one that lost
/// nothing, or of which gaps are missing, nothing.
pub type Shares = BTreeMap<String, f64>;

/// Reads them from the single gaps of a run.
pub fn shares(directory: &Path, run: &Run) -> Shares {
    // The kernel keeps 15 letters of a name.
    let comm = |thread: &ThreadSummary| thread.name.chars().take(15).collect::<String>();
    let of_the_set: Vec<String> =
        run.threads.iter().map(|thread| format!("thread {} of the set", comm(thread))).collect();
    let mut lost = vec![(0.0, 0.0); run.threads.len()];
    for stored in segments::read_gaps(&RunDir::open(directory).unwrap()).unwrap() {
        let stored = stored.unwrap();
        let Some((own, all)) = lost.get_mut(usize::from(stored.thread)) else { continue };
        if stored.gap.kind.is_wait() {
            continue;
        }
        let length = stored.gap.end.since(stored.gap.start).0 as f64;
        let cause = stored.cause.as_deref().unwrap_or_default();
        *all += length;
        if of_the_set.iter().any(|name| cause.starts_with(name.as_str())) {
            *own += length;
        }
    }
    let of = |(thread, (own, all)): (&ThreadSummary, (f64, f64))| {
        let known = all > 0.0 && thread.dropped == 0;
        (thread.name.clone(), if known { own / all } else { 0.0 })
    };
    run.threads.iter().zip(lost).map(of).collect()
}

fn apart(measured: f64, asked: f64) -> f64 {
    (measured / asked - 1.0).abs()
}

fn percent(measured: f64, asked: f64) -> String {
    format!("{:.2} %", measured / asked * 100.0)
}

/// The eleven columns of a row of rt-app's log; none for a comment.
pub fn numbers(line: &str) -> Option<Vec<f64>> {
    let row: Option<Vec<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    row.filter(|row| row.len() == 11)
}

/// Phases with their threads.
pub fn of_phases(run: &Run) -> impl Iterator<Item = (&ThreadSummary, &PhaseSummary)> {
    run.threads.iter().flat_map(|thread| thread.phases.iter().map(move |phase| (thread, phase)))
}

/// Is the run time of a pass the file's? None where it asks for none, or had no pass.
///
/// Below it by what converting ticks to nanoseconds rounds off, and no more.
pub fn run_time_kept(phase: &PhaseSummary) -> Option<bool> {
    let (asked, received) = (phase.run_asked.0 as f64, phase.run_ns?);
    (asked > 0.0).then(|| (asked - 1.0..asked * (1.0 + WITHIN)).contains(&received))
}

/// Does a step that is busy by the clock end late by what it did not have, and by a look at the clock, alone?
/// None where there is no such step.
pub fn ends_as_it_should(phase: &PhaseSummary) -> Option<bool> {
    /// Between two looks at the counter, and what a look takes.
    const PIECE: f64 = 6_000.0;
    let of = phase.runtime?;
    let (lasted, received) = (of.lasted_ns?, of.received_ns?);
    // Three steps of the file at most.
    Some(lasted - of.asked.0 as f64 <= lasted - received + 3.0 * PIECE)
}

/// Activations of all phases of a thread that wait for the same period: where they share a timer, as a
/// beat and its pauses do, each distance begins in one phase and may end in another, and lateness goes
/// from one to the next.
fn activations(thread: &ThreadSummary, period: Nanos) -> Option<ActivationSummary> {
    let phases = thread.phases.iter().filter(|phase| phase.period_asked == Some(period));
    let all = phases.filter_map(|phase| phase.activations).filter(|of| of.count > 0);
    all.reduce(|sum, of| {
        let count = sum.count + of.count;
        let total = |of: &ActivationSummary| Some(of.distance_ns? * of.count as f64);
        let total = total(&sum).zip(total(&of)).map(|(one, other)| one + other);
        ActivationSummary {
            count,
            distance_ns: total.map(|total| total / count as f64),
            put_off: sum.put_off + of.put_off,
            put_off_by: Nanos(sum.put_off_by.0 + of.put_off_by.0),
            last_late: Nanos(sum.last_late.0 + of.last_late.0),
        }
    })
}

/// The mean distance of activations beside the period.
///
/// `own` is the share of what the thread lost that its own set took.
pub fn period(asked: Nanos, of: &ActivationSummary, own: f64) -> Option<Kept> {
    let (asked, mean) = (asked.0 as f64, of.distance_ns?);
    if apart(mean, asked) < WITHIN {
        return Some(Kept::Yes);
    }
    // The last one may have been late, and by how much is known: what is late in the middle is as much
    // nearer to the next, and changes no sum. What was put off is told apart.
    let (n, put_off) = (of.count as f64, of.put_off_by.0 as f64);
    let rest = mean * n - put_off - asked * n;
    let told = format!(
        "{}: put off {} times, by {} in all, and the last was {} late",
        percent(mean, asked),
        of.put_off,
        of.put_off_by,
        of.last_late
    );
    let known = rest.abs() <= asked * n * WITHIN + of.last_late.0 as f64;
    let by_others = apart(mean - own * put_off / n, asked) >= WITHIN;
    Some(if known { Kept::Accounted { told, by_others } } else { Kept::No(told) })
}

/// The mean length of a pass beside what run and sleep come to; `own` as for [`period`].
pub fn length(phase: &PhaseSummary, own: f64) -> Option<Kept> {
    let (asked, mean) = (phase.length_asked?.0 as f64, phase.period_ns?);
    if apart(mean, asked) < WITHIN {
        return Some(Kept::Yes);
    }
    let lost = phase.lost_ns?;
    let told = format!(
        "{}: of each pass {} were lost to others",
        percent(mean, asked),
        Nanos(lost as u64)
    );
    let known = apart(mean - lost, asked) < WITHIN;
    let by_others = apart(mean - own * lost, asked) >= WITHIN;
    Some(if known { Kept::Accounted { told, by_others } } else { Kept::No(told) })
}

/// What became of period and length of each phase, with its name.
pub fn judge(run: &Run, shares: &Shares) -> Vec<(String, Kept)> {
    let mut rows = Vec::new();
    for (thread, phase) in of_phases(run).filter(|(_, phase)| phase.passes > 0) {
        let name = |what: &str| format!("{what} of {}/{}", thread.name, phase.name);
        let timed = phase.period_asked.and_then(|asked| Some((asked, activations(thread, asked)?)));
        let own = shares.get(&thread.name).copied().unwrap_or_default();
        let kept = timed.and_then(|(asked, of)| period(asked, &of, own));
        rows.extend(kept.map(|kept| (name("period"), kept)));
        rows.extend(length(phase, own).map(|kept| (name("length"), kept)));
    }
    rows
}

#[test]
fn a_row_is_excluded_only_by_what_makes_up_the_difference() {
    let late = |distance: f64, put_off, by, last_late| ActivationSummary {
        count: 100,
        distance_ns: Some(distance),
        put_off,
        put_off_by: Nanos(by),
        last_late: Nanos(last_late),
    };
    let activations = |distance: f64, put_off, by| late(distance, put_off, by, 0);
    let of = |of| period(Nanos(10_000_000), &of, 0.0).unwrap();
    let accounted = |kept: Kept| matches!(kept, Kept::Accounted { by_others: true, .. });
    assert_eq!(of(activations(10_050_000.0, 0, 0)), Kept::Yes);
    assert!(accounted(of(activations(12_000_000.0, 3, 200_000_000))));
    assert!(matches!(of(activations(12_000_000.0, 3, 150_000_000)), Kept::No(_)));
    assert!(matches!(of(activations(9_000_000.0, 0, 0)), Kept::No(_)));
    // 300 ms late at the end are 3 ms of each distance; late anywhere else they are none.
    assert!(accounted(of(late(13_000_000.0, 0, 0, 300_000_000))));
    assert!(matches!(of(late(13_000_000.0, 0, 0, 0)), Kept::No(_)));
    let phase = |length: f64, lost: f64| PhaseSummary {
        name: "p".to_owned(),
        passes: 10,
        run_asked: Nanos(0),
        run_ns: None,
        runtime: None,
        period_asked: None,
        activations: None,
        length_asked: Some(Nanos(10_000_000)),
        period_ns: Some(length),
        lost_ns: Some(lost),
    };
    assert_eq!(length(&phase(10_090_000.0, 0.0), 0.0), Some(Kept::Yes));
    assert!(accounted(length(&phase(14_000_000.0, 3_950_000.0), 0.0).unwrap()));
    assert!(matches!(length(&phase(14_000_000.0, 3_000_000.0), 0.0), Some(Kept::No(_))));
    // Of the 4 ms the file's own tasks took all but 20 us: another run would be no nearer.
    let is_own = |kept: Kept| matches!(kept, Kept::Accounted { by_others: false, .. });
    assert!(is_own(length(&phase(14_000_000.0, 4_000_000.0), 0.995).unwrap()));
    assert!(accounted(length(&phase(14_000_000.0, 4_000_000.0), 0.9).unwrap()));
    let put_off = activations(12_000_000.0, 3, 200_000_000);
    assert!(is_own(period(Nanos(10_000_000), &put_off, 0.97).unwrap()));
    assert!(accounted(period(Nanos(10_000_000), &put_off, 0.9).unwrap()));
}
