//! Kinds of context switches, told apart by the kernel's counts and its trace, and what they cost.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::Nanos;
use whylate_model::run::Run;
use whylate_model::switch_cost::{Between, Direct, How};

use crate::needs;
use crate::program::recorded;

const HOWS: [How; 3] = [How::Involuntary, How::Yield, How::HandOff];

pub(crate) const FIGURE: Figure = Figure {
    name: "switch_kinds",
    method: "threads and processes that switch by expired quanta, by yields and by hand-offs, 1 s each",
    rows: &[
        Row {
            claim: "kinds of which two repetitions lie together",
            unit: "share",
            bound: Bound::Always,
        },
        Row {
            claim: "kinds as the kernel counts them, 10 to 1",
            unit: "share",
            bound: Bound::Always,
        },
        Row { claim: "kinds as most of the trace has them", unit: "share", bound: Bound::Always },
        Row {
            claim: "a hand-off is not shown to cost more than a quantum",
            unit: "share",
            bound: Bound::Always,
        },
        Row { claim: "hand-off over expired quantum", unit: "ratio", bound: Bound::AtMost(1.0) },
        Row {
            claim: "quanta that expired: more than 10, of more than 200 us",
            unit: "share",
            bound: Bound::Always,
        },
    ],
    rounds: 7,
    seconds: 7.5,
    most_taken: Some(0.05),
    needs: || {
        needs::can_be_root()?;
        needs::can_trace()
    },
    round,
};

fn row(run: &Run, between: Between, how: How) -> &Direct {
    let found = run.switch_cost.as_ref().unwrap();
    found.measured(between, how).unwrap_or_else(|| panic!("{between:?} {how:?}: not measured"))
}

/// The interval of the cost to expect, of what the trace says was asked for; without a trace, by R1.
fn interval(direct: &Direct) -> Option<(Nanos, Nanos)> {
    match direct.traced {
        Some(traced) => traced.times?.cluster_interval,
        None => direct.interval(),
    }
}

/// How many of these are so.
#[derive(Default)]
struct Counted(u64, u64);

impl Counted {
    fn add(&mut self, held: bool) {
        self.0 += u64::from(held);
        self.1 += 1;
    }

    fn reading(&self, otherwise: &str) -> Reading {
        match self.1 {
            0 => Reading::Absent(otherwise.to_owned()),
            of => Reading::Share { hits: self.0, of },
        }
    }
}

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let seed = round.number;
    let words = format!("switch-cost --direct --duration 1s --no-dma-latency --seed {seed}");
    let run = recorded(&words).run;
    let [mut repeated, mut counted, mut traced, mut cheaper, mut quanta] =
        [(); 5].map(|()| Counted::default());
    let mut ratios = Vec::new();
    for between in [Between::Threads, Between::Processes] {
        let [expired, yielded, handed] = HOWS.map(|how| row(&run, between, how));
        for of in [expired, yielded, handed] {
            let good = of.repetitions.as_ref().map_or(0, |of| of.medians.len());
            repeated.add(good >= 2);
        }
        // The kernel counts a sleep as voluntary, and sched_yield with the expired quanta.
        let most = |of: u64, other: u64| of > 10 * other.max(1);
        counted.add(most(expired.kernel.involuntary, expired.kernel.voluntary));
        counted.add(most(yielded.kernel.involuntary, yielded.kernel.voluntary));
        counted.add(most(handed.kernel.voluntary, handed.kernel.involuntary));
        by_the_trace([expired, yielded, handed], &mut traced);
        if let (Some(voluntary), Some(involuntary)) = (interval(handed), interval(expired)) {
            cheaper.add(voluntary.0 < involuntary.1);
            let middle = |(low, high): (Nanos, Nanos)| f64::midpoint(low.0 as f64, high.0 as f64);
            ratios.push(middle(voluntary) / middle(involuntary));
        }
        let quantum = expired.quantum.unwrap();
        quanta.add(quantum.turns > 10 && quantum.median > Nanos(200_000));
    }
    let apart = "the times of switches did not lie together";
    let dearest = ratios.into_iter().max_by(f64::total_cmp);
    Ok(vec![
        repeated.reading("no kind was measured"),
        counted.reading("no kind was measured"),
        traced.reading("nothing was traced"),
        cheaper.reading(apart),
        dearest.map_or_else(|| Reading::Absent(apart.to_owned()), Reading::Value),
        quanta.reading("no kind was measured"),
    ])
}

/// Most traced switches of each are of the kind that was asked for.
fn by_the_trace([expired, yielded, handed]: [&Direct; 3], of: &mut Counted) {
    let (Some(expired), Some(yielded), Some(handed)) =
        (expired.traced, yielded.traced, handed.traced)
    else {
        return;
    };
    let most = |part: u64, of: u64| part * 2 > of;
    // Other ordinary threads of this machine have their turns on the CPU, too.
    of.add(most(expired.runnable, expired.switches - expired.with_others));
    // A quantum ends in a tick.
    of.add(most(expired.with_tick, expired.switches));
    of.add(most(yielded.runnable, yielded.switches));
    of.add(!most(yielded.with_tick, yielded.switches));
    of.add(most(handed.sleeping, handed.switches));
}
