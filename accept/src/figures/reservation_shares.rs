//! What threads that never block get of a CPU under the reservations and quotas of the kernel.

use std::path::Path;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_host::journal::Journal;
use whylate_host::procfs::Steal;
use whylate_model::Nanos;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::thread_clock;
use whylate_threads::reservations::{
    Deadline, Grant, Quota, Request, ReservationKind, ReservationScheduler, Reservations,
};

use crate::needs;

const MS: u64 = 1_000_000;
/// How long they spin.
const SPUN: u64 = 600 * MS;
/// A soft reservation has so much of what nobody took, and always more than a hard one may have.
const SOFT: f64 = 0.4;
const HARD: Bound = Bound::Within(0.2 - 0.07, 0.2 + 0.07);
/// Of a pair above the usual limit each is so close to its own.
const CLOSE: Bound = Bound::Within(-0.1, 0.1);

pub(crate) const FIGURE: Figure = Figure {
    name: "reservation_shares",
    method: "CPU time of threads that spin for 600 ms: a hard and a soft 4 ms in 20 ms by SCHED_DEADLINE, \
             3.1 ms in 8 ms beside 17.1 ms in 33 ms with the whole CPU granted, and a quota of 20 ms in 100 ms",
    rows: &[
        Row { claim: "hard 4 ms in 20 ms: share of the CPU", unit: "share", bound: HARD },
        Row { claim: "its overruns are counted", unit: "rounds", bound: Bound::Always },
        Row {
            claim: "soft 4 ms in 20 ms: share over the least it may be",
            unit: "ratio",
            bound: Bound::AtLeast(1.0),
        },
        Row { claim: "3.1 ms in 8 ms: share beside its own", unit: "share", bound: CLOSE },
        Row { claim: "17.1 ms in 33 ms: share beside its own", unit: "share", bound: CLOSE },
        Row {
            claim: "quota of 20 ms in 100 ms: share of the CPU",
            unit: "share",
            bound: Bound::AtMost(0.5),
        },
        Row {
            claim: "periods in which it was held are told",
            unit: "rounds",
            bound: Bound::Always,
        },
    ],
    rounds: 6,
    seconds: 2.7,
    most_taken: None,
    needs: needs::can_be_root,
    round,
};

/// What a thread got.
struct Got {
    share: f64,
    overruns: u64,
}

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let usual = Deadline::default();
    let [hard] = spun(&usual, [request(4_000, 20_000, ReservationKind::Hard)]).0;
    let ([soft], stolen) = spun(&usual, [request(4_000, 20_000, ReservationKind::Soft)]);
    let least = (SOFT * (1.0 - stolen)).max(0.27);
    let pair = [(3_100, 8_000), (17_100, 33_000)];
    let pair = pair.map(|(amount, period)| request(amount, period, ReservationKind::Hard));
    let (both, stolen) = spun(&Deadline { grant: Grant::WholeCpu }, pair);
    let beside = |at: usize| {
        read(&both[at], |got| {
            let off = got.share - pair[at].utilisation();
            // What the hypervisor took can be missing, nothing else.
            Reading::Value(if off < 0.0 { (off + stolen).min(0.0) } else { off })
        })
    };
    let whole_process = Quota.offer(&[]).is_ok_and(|offer| offer[0].contains("this whole process"));
    let [quota] = if whole_process {
        [Err("here a quota holds the whole process".to_owned())]
    } else {
        spun(&Quota, [request(20_000, 100_000, ReservationKind::Hard)]).0
    };
    Ok(vec![
        read(&hard, |got| Reading::Value(got.share)),
        read(&hard, |got| Reading::held(got.overruns > 0)),
        read(&soft, |got| Reading::Value(got.share / least)),
        beside(0),
        beside(1),
        read(&quota, |got| Reading::Value(got.share)),
        read(&quota, |got| Reading::held(got.overruns > 0)),
    ])
}

fn request(amount_us: u64, period_us: u64, kind: ReservationKind) -> Request {
    Request { amount: Nanos(1_000 * amount_us), period: Nanos(1_000 * period_us), kind }
}

fn read(got: &Result<Got, String>, reading: impl Fn(&Got) -> Reading) -> Reading {
    got.as_ref().map_or_else(|refusal| Reading::Absent(refusal.clone()), reading)
}

/// Threads that spin on the last CPU, each under its reservation, and the share of it that the hypervisor
/// took meanwhile. A refusal is that of each of them.
fn spun<const N: usize>(
    scheduler: &dyn ReservationScheduler,
    requests: [Request; N],
) -> ([Result<Got, String>; N], f64) {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open_in(directory.path()).unwrap();
    let cpu = needs::last_cpu();
    let steal = || Steal::read(Path::new("/")).unwrap();
    let prepared = match scheduler.prepare(&journal, &[cpu]) {
        Ok(prepared) => prepared,
        Err(refusal) => return (requests.map(|_| Err(refusal.to_string())), 0.0),
    };
    let on = &*prepared;
    let (before, begun) = (steal(), clock_ns(Clock::Monotonic));
    let got = std::thread::scope(|scope| {
        let spinning = requests.map(|request| scope.spawn(move || spin(on, request)));
        spinning.map(|thread| thread.join().unwrap())
    });
    let taken = before.delta_ns(&steal(), &[cpu]).unwrap_or(0.0);
    let taken = taken / (clock_ns(Clock::Monotonic) - begun) as f64;
    drop(prepared);
    assert_eq!(journal.entries(), [], "something was left changed");
    (got, taken)
}

fn spin(reservations: &dyn Reservations, request: Request) -> Result<Got, String> {
    let applied = reservations.apply(request).map_err(|refusal| refusal.to_string())?;
    let (begun, used) = (clock_ns(Clock::Monotonic), thread_clock::cpu_time());
    while clock_ns(Clock::Monotonic) - begun < SPUN {}
    let used = thread_clock::cpu_time().0 - used.0;
    let share = used as f64 / (clock_ns(Clock::Monotonic) - begun) as f64;
    let overruns = reservations.overruns(applied.thread).unwrap();
    reservations.give_up().map_err(|refusal| refusal.to_string())?;
    Ok(Got { share, overruns })
}
