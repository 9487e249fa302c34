//! Delays that are planted on a request's way: each is found in its part, in its size, and nowhere else.
//!
//! What is planted and what is not are measured in turns, or in the same run, and compared by medians or
//! by counts; all sizes are shares of what was planted. The host may stop this machine at any time: what
//! it spoils is made again, by what the kernel counts.

pub(crate) mod foreign;
mod looked;
mod softirq;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::breakdown::{Part, Point, Station, StoredJourney};
use whylate_model::{CpuId, Ticks};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, sched, thread};

use crate::needs::{self, unless_taken};
use crate::program::{self, Beside};
use crate::requests::Bed;
use foreign::{Flood, at, heavy, server};
use looked::{Looked, growth, judged, look, median};

/// Who tells of requests here.
const LOOKING: &str = "--breakdown=stamps,trace --wait block";
/// Rounds without and with a plant, one after the other.
const ROUNDS: usize = 3;

/// What these tests need: two CPUs, root, and the kernel's tracing. Client and other end.
fn place() -> Option<(CpuId, CpuId)> {
    let cpus = needs::cpus(2)?;
    let there = needs::root() && needs::tracefs().is_some();
    there.then(|| (cpus[1], cpus[0]))
}

fn there(from: Station, to: Station) -> Part {
    Part { from: Point::there(from), to: Point::there(to) }
}

fn crosses(part: Part) -> bool {
    part.from.leg != part.to.leg
}

#[test]
#[ignore = "live figure: to accept"]
fn a_server_that_sleeps_or_is_busy_before_it_answers_is_slow_by_itself_by_as_much() {
    const WAIT: Duration = Duration::from_millis(3);
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    let Some((mut prompt_server, prompt)) = server("answer", Duration::ZERO, other) else { return };
    for how in ["sleep", "spin"] {
        let Some((mut late_server, late)) = server(how, WAIT, other) else { return };
        let words = |target: &str| {
            format!("{target} {LOOKING} --cpus {client} --rate 100pps --duration 1s --warmup 100ms")
        };
        let planted = WAIT.as_nanos() as f64;
        // As much as half of a request's delay, so many times as a median needs to be spoilt.
        let excused = planted * 50.0 * ROUNDS as f64;
        unless_taken(&[client, other], excused, || {
            let round = |_| [&prompt, &late].map(|target| look(&words(target)));
            let rounds: Vec<[Looked; 2]> = (0..ROUNDS).map(round).collect();
            let answered =
                |of: usize| -> usize { rounds.iter().map(|round| round[of].journeys.len()).sum() };
            let own = [prompt_server.had(answered(0)), late_server.had(answered(1))].map(median);
            let grown = growth(&rounds);
            judged(&grown, planted, crosses)
                .and_then(|()| as_the_server_says(&grown, own[1] - own[0]))
                .map_err(|why| format!("{how}: {why}"))
        });
    }
}

/// What the part at the server grew by is what the server itself says that it had requests for longer, to
/// within this share.
const AS_SAID: f64 = 0.1;

fn as_the_server_says(growth: &[(Part, f64)], said: f64) -> Result<(), String> {
    let at_the_server = growth.iter().filter(|(part, _)| crosses(*part));
    let grown: f64 = at_the_server.map(|(_, ns)| ns).sum();
    let told = format!("{grown:.0} ns more at the server, which says {said:.0}");
    if (grown - said).abs() <= AS_SAID * said { Ok(()) } else { Err(told) }
}

/// A bucket of tokens for a little more than one frame of `FRAME` bytes, and what it fills by.
const FRAME: f64 = 1_000.0 + 28.0 + 14.0;
const BURST: f64 = 1_100.0;
const BYTES_A_NS: f64 = 4e6 / 8.0 / 1e9;
/// Requests of a pair are no further apart, and pairs no closer.
const OF_A_PAIR_NS: f64 = 1e6;

#[test]
#[ignore = "live figure: to accept"]
fn a_queueing_discipline_holds_the_second_of_two_requests_for_as_long_as_its_tokens_take() {
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    if needs::program("tc").is_none() {
        return;
    }
    let Some(bed) = Bed::up("tokens") else { return };
    let words = format!(
        "--bed {} {LOOKING} --cpus {client} --other-cpu {other} --size 1000 --arrivals pair(10us) \
         --rate 100pps --duration 1500ms --warmup 100ms",
        bed.0
    );
    let excused = 0.1 * 1.5e9 * ROUNDS as f64;
    unless_taken(&[client, other], excused, || {
        at(&bed, "client", &["tc", "qdisc", "replace", "dev", "client0", "root", "noqueue"]);
        let free = pairs(&look(&words))?;
        let tokens = "tc qdisc replace dev client0 root tbf rate 4mbit burst 1100b limit 100kb";
        at(&bed, "client", &tokens.split(' ').collect::<Vec<_>>());
        let held = pairs(&look(&words))?;
        // Without a discipline the second of a pair is as the first.
        let planted = held.wait;
        let free = growth(&[[free.first, free.second]]);
        let queued = |of: &[(Part, f64)]| {
            of.iter().find(|(part, _)| part.from == Point::there(Station::Queued)).map(|of| of.1)
        };
        let without = queued(&free).ok_or("the queueing discipline is no part")?;
        if without.abs() > 0.1 * planted {
            return Err(format!("{without:.0} ns where nothing was planted"));
        }
        let held = growth(&[[held.first, held.second]]);
        judged(&held, planted, |part| part.from == Point::there(Station::Queued))
    });
}

/// Requests that came first and second of two, and what a bucket of tokens makes the second wait for.
struct Pairs {
    first: Looked,
    second: Looked,
    wait: f64,
}

fn pairs(all: &Looked) -> Result<Pairs, String> {
    let queued = |number: usize| -> Option<Ticks> {
        all.journeys.get(number)?.passed[Point::there(Station::Queued).index()].map(|(at, _)| at)
    };
    let apart = |number: usize| {
        let (first, second) = (queued(number)?, queued(number + 1)?);
        Some((second.0 as f64 - first.0 as f64) * all.tick_ns)
    };
    let close = |number: &usize| apart(*number).is_some_and(|ns| ns < OF_A_PAIR_NS);
    let first: Vec<usize> = (0..all.journeys.len()).filter(close).collect();
    if first.len() < 40 {
        return Err(format!("{} pairs of {} requests", first.len(), all.journeys.len()));
    }
    let tokens = (2.0 * FRAME - BURST) / BYTES_A_NS;
    let wait = median(first.iter().filter_map(|of| apart(*of)).map(|ns| tokens - ns).collect());
    let numbers = |more: usize| -> Vec<u64> {
        first.iter().map(|of| all.journeys[of + more].number).collect()
    };
    let only = |numbers: &[u64]| all.only(|of| numbers.contains(&of.number));
    Ok(Pairs { first: only(&numbers(0)), second: only(&numbers(1)), wait })
}

#[test]
#[ignore = "live figure: to accept"]
fn requests_behind_a_softirq_that_others_keep_busy_wait_between_the_drivers_as_long_as_it_takes() {
    const APART: Duration = Duration::from_micros(3_100);
    const RATE: f64 = 300.0;
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    let Some(bed) = Bed::up("softirq") else { return };
    let Some(_heavy) = heavy(&bed, client) else { return };
    let Some(traced) = softirq::Traced::begin() else { return };
    let words = format!(
        "--bed {} {LOOKING} --cpus {client} --other-cpu {other} --fifo 50 --rate {RATE}pps \
         --duration 2s --warmup 100ms",
        bed.0
    );
    unless_taken(&[client, other], 0.1 * 4e9, || {
        // First the sender's CPU takes datagrams in itself, which shows how long that takes; then the
        // server's CPU, behind whose back requests wait.
        steer(&bed, None);
        let mut flood = Flood::ready(&bed, client, APART).ok_or("no flood")?;
        steer(&bed, Some(other));
        traced.taken(other)?;
        let quiet = look(&words);
        let taken_quietly = traced.taken(other)?;
        flood.begin();
        let busy = look(&words);
        let each = flood.each.as_nanos() as f64;
        let a_second = flood.end();
        let taken = traced.taken(other)?;
        behind(&quiet, &busy, each, a_second)?;
        let way = there(Station::Driver, Station::Arrived);
        softirq::waited((&quiet, &taken_quietly), (&busy, &taken), way, each)
    });
}

/// What arrives at the server's end is taken in by this CPU; none: by that of the sender.
fn steer(bed: &Bed, cpu: Option<CpuId>) {
    let mask = cpu.map_or(0, |cpu| 1_u64 << cpu.0);
    let queue = "/sys/class/net/server0/queues/rx-0/rps_cpus";
    at(bed, "server", &["sh", "-c", &format!("echo {mask:x} > {queue}")]);
}

/// Of requests that are sent without regard to them, those wait that come while a datagram is taken in:
/// for more than a quarter of its time, three quarters of these.
fn behind(quiet: &Looked, busy: &Looked, each: f64, a_second: f64) -> Result<(), String> {
    let expected = a_second * 0.75 * each / 1e9;
    let share = |of: &Looked, part: Part| {
        let times = of.times(part);
        let usual = median(quiet.times(part));
        let late = times.iter().filter(|ns| **ns - usual > each / 4.0).count();
        late as f64 / times.len().max(1) as f64
    };
    let way = there(Station::Driver, Station::Arrived);
    let sending = there(Station::Sent, Station::Driver);
    let (before, now, sent) = (share(quiet, way), share(busy, way), share(busy, sending));
    let longest = busy.times(way).iter().filter(|ns| **ns > 2.0 * each).count() as f64;
    let told = format!(
        "a datagram takes {each:.0} ns, {a_second:.0} come in a second: {expected:.3} of requests are \
         expected to wait; between the drivers did {before:.3} without them and {now:.3} with them, and \
         {sent:.3} before the driver; {longest} waited for more than two"
    );
    eprintln!("{told}");
    if busy.times(way).len() < busy.journeys.len() / 2 {
        return Err(format!("few requests have both points: {told}"));
    }
    let sized = now > 0.4 * expected && now < 2.0 * expected;
    let alone = before < 0.2 * expected && sent < 0.3 * expected;
    let bounded = longest <= 0.1 * now * busy.journeys.len() as f64 + 2.0;
    if sized && alone && bounded { Ok(()) } else { Err(told) }
}

/// What a hog takes each time, how long it sleeps between, and the requests a second beside it: none of
/// the two is in step with the other, and at most one request comes in a burst.
const HOGGED: u64 = 4_000_000;
const BETWEEN: Duration = Duration::from_micros(67_300);
const HOG_RATE: f64 = 200.0;
const HOG: &str = "planted-hog";

/// Threads of this process that have the hog's name.
fn hogs() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
    names.filter(|name| name.as_ref().is_ok_and(|name| name.trim_end() == HOG)).count()
}

#[test]
fn a_hog_ends_with_a_test_that_panics() {
    let _alone = program::alone();
    let Some((_, other)) = place() else { return };
    let failed = std::panic::catch_unwind(|| {
        let _hog = Beside::begin(move |stop| hog(other, stop));
        program::until("it is at work", || (hogs() > 0).then_some(()));
        panic!("as a test that fails while it is");
    });
    assert!(failed.is_err());
    // The kernel lists a thread for a moment after it was waited for.
    program::until("it has ended", || (hogs() == 0).then_some(()));
}

/// When a hog had its CPU, by its own readings of the counter: from and to.
type Bursts = Vec<(Ticks, Ticks)>;

/// Takes a CPU now and then until it is told to stop.
fn hog(cpu: CpuId, stop: &AtomicBool) -> Bursts {
    let now = || clock_ns(Clock::Monotonic);
    let mut counter = HardwareCounter::open().unwrap();
    thread::set_name(HOG).unwrap();
    affinity::set(&[cpu]).unwrap();
    sched::set_fifo(50).unwrap();
    let mut bursts = Bursts::new();
    while !stop.load(Ordering::Relaxed) {
        let from = counter.read();
        let until = now() + HOGGED;
        while now() < until {
            std::hint::spin_loop();
        }
        bursts.push((from, counter.read()));
        std::thread::sleep(BETWEEN);
    }
    bursts
}

#[test]
#[ignore = "live figure: to accept"]
fn a_thread_that_takes_the_cpu_of_a_sleeping_server_is_in_the_wait_for_a_cpu_and_names_slow_requests()
 {
    let _alone = program::alone();
    let Some((client, other)) = place() else { return };
    let words = format!(
        "{LOOKING} --cpus {client} --other-cpu {other} --rate {HOG_RATE}pps --duration 3s --warmup 100ms \
         --slow 95 --no-dma-latency"
    );
    unless_taken(&[client, other], 0.1 * 6e9, || {
        let quiet = look(&words);
        let hog = Beside::begin(move |stop| hog(other, stop));
        let hogged = look(&words);
        let bursts = hog.end();
        waited(&quiet, &hogged, &bursts)?;
        named(&hogged)
    });
}

/// What the kernel takes, after a hog's last reading, to put it to sleep and to let the next one run.
const HANDED_OVER: f64 = HOGGED as f64 / 20.0;

/// Requests whose reader was woken in a burst wait until its end, as the hog itself tells it: each of nine
/// in ten by as much as was left of the burst. No others wait.
fn waited(quiet: &Looked, hogged: &Looked, bursts: &[(Ticks, Ticks)]) -> Result<(), String> {
    let burst = HOGGED as f64;
    let waits = there(Station::Woken, Station::Running);
    let late = |of: &Looked| of.times(waits).iter().filter(|ns| **ns > burst / 4.0).count() as f64;
    let (before, now) = (late(quiet), late(hogged));
    let ns = |from: Ticks, to: Ticks| (to.0 as f64 - from.0 as f64) * hogged.tick_ns;
    // Of each: what was left of its burst, and by how much longer it waited.
    let left = |of: &StoredJourney| {
        let at = |point: Point| of.passed[point.index()].map(|(at, _)| at);
        let (woken, running) = (at(waits.from)?, at(waits.to)?);
        let (_, end) = bursts.iter().find(|(from, to)| (*from..=*to).contains(&woken))?;
        Some((ns(woken, *end), ns(*end, running)))
    };
    let planted: Vec<(f64, f64)> = hogged.journeys.iter().filter_map(left).collect();
    let long = planted.iter().filter(|(left, _)| *left > burst / 4.0).count() as f64;
    let right = planted.iter().filter(|(_, more)| more.abs() <= HANDED_OVER).count();
    let told = format!(
        "{} of {} requests waited for a CPU until the end of the burst in which they came; {long} are \
         expected to wait for long, {before} did without bursts and {now} with them: {planted:?}",
        right,
        planted.len(),
    );
    eprintln!("{told}");
    let sized = planted.len() >= 10 && right * 10 >= planted.len() * 9;
    let counted = (now - long).abs() <= 0.1 * long + 2.0;
    if sized && counted && before < 0.2 * long { Ok(()) } else { Err(told) }
}

/// The slow requests consist of waiting for a CPU first of all, and the hog stands beside the slowest.
fn named(hogged: &Looked) -> Result<(), String> {
    let slow = hogged.breakdown.slow.as_ref().ok_or("no request is slow")?;
    let most = slow.composition.parts.iter().max_by(|a, b| a.mean_ns.total_cmp(&b.mean_ns));
    let most = most.ok_or("the slow ones have no parts")?;
    let running = Point::there(Station::Running);
    if most.part.to != running || most.share < 0.5 {
        return Err(format!("the slow ones consist of something else: {slow:#?}"));
    }
    let usual = hogged.breakdown.all.parts.iter().find(|of| of.part == most.part);
    if usual.is_none_or(|usual| usual.share >= most.share) {
        return Err(format!("no more than all of them: {:#?}", hogged.breakdown.all));
    }
    let beside = serde_json::to_string(&hogged.breakdown.slowest).unwrap();
    if beside.contains(HOG) { Ok(()) } else { Err(format!("the hog is not beside them: {beside}")) }
}
