//! The set of threads that measures dispatch latency: one for each CPU and timer, each woken on a
//! strict absolute schedule.
//!
//! Threads of several timers share a CPU, each at its own phase of the period: what disturbs one
//! disturbs its neighbours, so that timers are compared under the same conditions. A timer that
//! keeps the CPU while it waits would keep it from the others, and is measured alone.

use whylate_model::{CpuId, CpuList, Nanos};
use whylate_rta::Call;
use whylate_rta::call;
use whylate_rta::task_set::{TaskSet, Thread};
use whylate_sys::capability::{self, Cap};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_threads::timers::{self, Known, grid};
use whylate_threads::{Timer, TimerNanos};

use crate::set::UnknownWord;

/// The timer whose short waits are busy ones.
const GRID: &str = "grid";
/// The same call as another timer, or none of this system.
const SAID_BY_OTHERS: [&str; 2] = ["clock_nanosleep", "MM"];
/// The priority that is asked for where none is named, and the one without the privilege for it.
const PRIORITIES: (&str, &str) = ("RTHIGH", "NORMAL");

/// What is asked.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Timers, apart by commas, or `all`.
    pub timers: String,
    /// CPUs to be woken on.
    pub cpus: Vec<CpuId>,
    /// Time between two wake-ups of a thread.
    pub period: Nanos,
    /// Priority of the threads; none: the highest real-time one, or what is allowed.
    pub priority: Option<String>,
}

/// What is measured.
#[derive(Debug, Clone)]
pub struct Probes {
    /// The threads.
    pub set: TaskSet,
    /// What is not measured, or otherwise than usual, and why.
    pub notes: Vec<String>,
}

/// The threads that answer what is asked.
///
/// A timer that is named and not there is an error; of `all` timers, those that cannot be measured
/// beside others are left out with the reason.
///
/// # Errors
/// A timer that is not known, or is not there, with those that are.
pub fn probes(wanted: &Wanted) -> Result<Probes, UnknownWord> {
    let unknown = |reason: String| UnknownWord { thread: "wake".to_owned(), reason };
    let mut notes = Vec::new();
    let chosen = if wanted.timers.trim().eq_ignore_ascii_case("all") {
        all(wanted.period, &mut notes)
    } else {
        call::list(&wanted.timers).map_err(|error| unknown(error.to_string()))?
    };
    if chosen.is_empty() {
        return Err(unknown("no timer is named: write HR, or all".to_owned()));
    }
    if chosen.len() > 1
        && let Some(busy) = chosen.iter().find(|timer| keeps_cpu(timer, wanted.period))
    {
        return Err(unknown(format!("{}: measure it alone", keeping(busy))));
    }
    let priority = match &wanted.priority {
        Some(words) => Call::parse(words).map_err(|error| unknown(error.to_string()))?,
        None => usual_priority(&mut notes),
    };
    let threads = wanted.cpus.iter().flat_map(|cpu| {
        let (priority, alone) = (priority.clone(), wanted.cpus.len() == 1);
        let (number, period) = (chosen.len() as u64, wanted.period);
        chosen.iter().zip(0..).map(move |(timer, index): (&Call, u64)| Thread {
            cpus: Some(vec![*cpu]),
            workload: Call { name: "LAT_ABS".to_owned(), arguments: vec![exactly(period)] },
            timer: timer.clone(),
            priority: priority.clone(),
            // Each at its own phase: no two are due at once.
            start: Nanos(period.0 * index / number),
            ..Thread::new(name(timer, *cpu, alone))
        })
    });
    let set = TaskSet { threads: threads.collect(), ..TaskSet::default() };
    set.check().map_err(|error| unknown(error.to_string()))?;
    Ok(Probes { set, notes })
}

/// The question in one sentence.
#[must_use]
pub fn question(wanted: &Wanted, probes: &Probes, duration: Nanos) -> String {
    let timers = probes.set.threads.len() / wanted.cpus.len().max(1);
    let timers = match timers {
        1 => probes.set.threads[0].timer.to_string(),
        more => format!("each of {more} timers"),
    };
    let (cpus, period) = (CpuList(&wanted.cpus), wanted.period);
    format!(
        "How long after {timers} does a thread on CPU {cpus} run, every {period} for {duration}?"
    )
}

/// Wake-ups that there will be.
#[must_use]
pub fn expected(wanted: &Wanted, probes: &Probes, duration: Nanos) -> u64 {
    (duration.0 / wanted.period.0.max(1)).saturating_mul(probes.set.threads.len() as u64)
}

/// A time as the grammar of workloads reads it back without loss.
fn exactly(time: Nanos) -> String {
    format!("{}ns", time.0)
}

fn name(timer: &Call, cpu: CpuId, alone: bool) -> String {
    let timer = timer.to_string().replace(' ', "-");
    if alone { timer } else { format!("{timer}-cpu{cpu}") }
}

/// Every timer that can be measured beside the others here.
fn all(period: Nanos, notes: &mut Vec<String>) -> Vec<Call> {
    let known = timers::known().filter(|known| !SAID_BY_OTHERS.contains(&known.name));
    let mut chosen = Vec::new();
    for Known { name, .. } in known {
        let timer = Call::bare(name);
        match not_beside_others(&timer, period) {
            None => chosen.push(timer),
            Some(reason) => notes.push(format!("left out: {reason}")),
        }
    }
    chosen
}

fn not_beside_others(timer: &Call, period: Nanos) -> Option<String> {
    if keeps_cpu(timer, period) {
        return Some(format!("{}; measure it alone: --timers {timer}", keeping(timer)));
    }
    let timer = timer.clone();
    // On a thread of its own: to prepare a timer changes the thread.
    let tried = std::thread::spawn(move || timers::named(&timer)?.prepare()).join();
    tried.ok()?.err().map(|error| error.to_string())
}

fn keeping(timer: &Call) -> String {
    if timer.is(GRID) {
        return format!(
            "the timer {timer} does not sleep for {} or less, as little as is left after a late \
             release, and the others would wait for it",
            grid::BUSY_UP_TO
        );
    }
    format!("the timer {timer} keeps the CPU while it waits, and the others would wait for it")
}

/// Would a wait between two activations keep the CPU? A coarse clock wakes up to a step late, and
/// what is left to the next activation may be so short that it does not sleep.
fn keeps_cpu(timer: &Call, period: Nanos) -> bool {
    if timer.is(GRID) {
        let step = timer.time(0, "step", GRID).unwrap_or(grid::STEP);
        return period.0 <= step.0.saturating_add(grid::BUSY_UP_TO.0);
    }
    let until = TimerNanos(clock_ns(Clock::Monotonic)) + period;
    timers::named(timer).is_ok_and(|mut timer| timer.keeps_cpu(until))
}

fn usual_priority(notes: &mut Vec<String>) -> Call {
    let (wanted, otherwise) = PRIORITIES;
    if capability::effective().has(Cap::SysNice) {
        return Call::bare(wanted);
    }
    notes.push(format!(
        "the threads have an ordinary priority, and wait for others of that kind: {}",
        capability::explain(Cap::SysNice)
    ));
    Call::bare(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(timers: &str, cpus: &[u32]) -> Wanted {
        Wanted {
            timers: timers.to_owned(),
            cpus: cpus.iter().map(|cpu| CpuId(*cpu)).collect(),
            period: Nanos(1_000_000),
            priority: Some("NORMAL".to_owned()),
        }
    }

    #[test]
    fn each_cpu_and_timer_has_a_thread_and_no_two_of_a_cpu_are_due_at_once() {
        let probes = probes(&wanted("HR, timerfd", &[0, 1])).unwrap();
        let threads = &probes.set.threads;
        let names: Vec<&str> = threads.iter().map(|thread| thread.name.as_str()).collect();
        assert_eq!(names, ["HR-cpu0", "timerfd-cpu0", "HR-cpu1", "timerfd-cpu1"]);
        let starts: Vec<u64> = threads.iter().map(|thread| thread.start.0).collect();
        assert_eq!(starts, [0, 500_000, 0, 500_000]);
        assert_eq!(threads[1].workload.to_string(), "LAT_ABS 1000000ns");
        assert_eq!(expected(&wanted("HR, timerfd", &[0, 1]), &probes, Nanos::SECOND), 4_000);
    }

    #[test]
    fn of_all_timers_those_that_keep_the_cpu_are_left_out_by_name() {
        let probes = probes(&wanted("all", &[0])).unwrap();
        let names: Vec<&str> = probes.set.threads.iter().map(|of| of.name.as_str()).collect();
        assert!(names.contains(&"HR") && names.contains(&"timerfd"), "{names:?}");
        for (busy, why) in [("spin", "keeps the CPU"), ("grid", "does not sleep for 2.00ms")] {
            assert!(!names.contains(&busy));
            let told = probes.notes.iter().find(|note| note.contains(busy)).unwrap();
            assert!(told.contains(why) && told.contains("--timers"), "{told}");
        }
    }

    #[test]
    fn a_coarse_clock_is_beside_others_where_every_wait_of_it_is_a_sleep() {
        let at = |ms: u64| Wanted { period: Nanos(ms * 1_000_000), ..wanted("all", &[0]) };
        let has = |ms| {
            let probes = probes(&at(ms)).unwrap();
            probes.set.threads.iter().any(|thread| thread.name == "grid")
        };
        // Up to 10 ms late: of 12 ms as little as 2 may be left, of 13 more.
        assert!(!has(5) && !has(12) && has(13));
        let fine = Wanted { timers: "HR, grid(1ms)".to_owned(), ..at(5) };
        assert_eq!(probes(&fine).unwrap().set.threads.len(), 2);
    }

    #[test]
    fn a_timer_that_keeps_the_cpu_is_measured_alone_or_not_at_all() {
        assert_eq!(probes(&wanted("spin", &[0])).unwrap().set.threads.len(), 1);
        let refusal = probes(&wanted("HR,spin", &[0])).unwrap_err();
        assert!(refusal.reason.contains("spin") && refusal.reason.contains("alone"), "{refusal}");
    }

    #[test]
    fn words_that_lead_nowhere_are_refused() {
        for timers in ["", ",", "HR)", "HR,HR"] {
            assert!(probes(&wanted(timers, &[0])).is_err(), "{timers}");
        }
        let low = Wanted { priority: Some("(".to_owned()), ..wanted("HR", &[0]) };
        assert!(probes(&low).is_err());
    }
}
