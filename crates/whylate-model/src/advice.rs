//! What each warning says, and what to do about it.

use std::fmt;

use serde_json::Value;

use crate::commands::Options;
use crate::run::Run;
use crate::text::{CpuList, Printable, percent_of};
use crate::trust::own_time;
use crate::warning::{Asking, Warning};

impl fmt::Display for Warning {
    /// The fact, in one line without a full stop.
    #[expect(clippy::too_many_lines, reason = "a table: one arm for each warning")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoiseBelowThreshold { cpu, share } => {
                let percent = 100.0 * share.abs();
                if *share < 0.0 {
                    write!(
                        f,
                        "CPU {cpu}: its clock rate rose: the loop took {percent:.2}% less time"
                    )
                } else {
                    write!(
                        f,
                        "CPU {cpu}: the loop took {percent:.2}% more time than in the warm-up, for stalls below \
                         the threshold or a lower clock rate"
                    )
                }
            }
            Self::RecordsDropped { cpu, dropped } => {
                write!(f, "CPU {cpu}: {dropped} stalls were counted but not kept one by one")
            }
            Self::JobsUnrecorded { thread, records } => write!(
                f,
                "thread {}: {records} records of its jobs or wake-ups found no room, and those are \
                 in no count",
                Printable(thread)
            ),
            Self::TraceLost { cpu, events } => {
                let how_many = events.map_or("some".to_owned(), |events| events.to_string());
                write!(f, "CPU {cpu}: the kernel's trace buffer lost {how_many} events")
            }
            Self::CausesIncomplete { gaps_forced, sends } => write!(
                f,
                "{gaps_forced} stalls were given a cause before all their events had come, and {sends} or \
                 more senders of interrupts and wake-ups were lost"
            ),
            Self::NoKernelTrace { reason, .. } => {
                write!(f, "no kernel trace: {}", Printable(reason))
            }
            Self::NoSenders { reason, .. } => {
                write!(f, "senders of interrupts are not recorded: {}", Printable(reason))
            }
            Self::RseqUnusable { reason } => {
                write!(f, "the rseq word is not usable: {}", Printable(reason))
            }
            Self::FrequencyFromRegressionOnly => {
                f.write_str("the counter's frequency was checked against CLOCK_MONOTONIC_RAW alone")
            }
            Self::FrequencyDisagreement { ppm } => {
                write!(f, "sources of the counter's frequency differ by {ppm:.3} ppm")
            }
            Self::HostChanged { what } => {
                write!(f, "this machine changed during the run: {}", Printable(what))
            }
            Self::NoHousekeepingCpu => {
                f.write_str("no CPU was left for whylate's own work: it ran on a measured one")
            }
            Self::MemoryNotLocked { reason } => {
                write!(f, "memory is not locked: {}", Printable(reason))
            }
            Self::PolicyRefused { reason } => {
                write!(f, "scheduling policy refused: {}", Printable(reason))
            }
            Self::Overcommitted { .. } => overcommitted(f, self),
            Self::RtThrottling { runtime, period } => {
                write!(f, "real-time throttling is on: {runtime} in every {period}")
            }
            Self::ThresholdNearPeriod { threshold, period } => {
                write!(f, "the threshold of {threshold} is close to the loop's period of {period}")
            }
            Self::SegmentsRotated { deleted } => {
                write!(f, "{deleted} oldest segments were deleted to stay within the disk bound")
            }
            Self::SetStarved { cpu, patience } => write!(
                f,
                "the set was ended: for {patience} no thread of a normal policy could run on CPU {cpu}"
            ),
            Self::ExecutionCut { kept, lost } => write!(
                f,
                "the execution trace holds the first {kept} records; {lost} found no room"
            ),
            Self::WritingFailed { reason } => {
                write!(f, "writing failed during the run: {}", Printable(reason))
            }
            Self::Interrupted => f.write_str("the run ended early"),
            Self::AnotherRun { same_cpu: true, .. } => {
                f.write_str("another whylate was measuring on the same CPU")
            }
            Self::AnotherRun { same_cpu: false, .. } => {
                f.write_str("another whylate was running on this machine")
            }
            Self::NotStationary { series, test, p_value } => {
                let (series, test) = (Printable(series), Printable(test));
                write!(f, "{series} moves over the run ({test}, p = {p_value:.2e})")
            }
            Self::IdleStatesNotHeld { reason } => {
                write!(f, "idle states were not held off: {}", Printable(reason))
            }
            Self::ActionFailed { what } => {
                write!(f, "not done at the stop limit: {}", Printable(what))
            }
            Self::TraceLeftOff => f.write_str(
                "the kernel's own trace was switched off at the stop limit and stays off",
            ),
            Self::PartEndedEarly { part, reason } => {
                write!(f, "{} ended before its time: {}", Printable(part), Printable(reason))
            }
            Self::PartLeftOut { part, reason } => {
                write!(f, "{} was left out: {}", Printable(part), Printable(reason))
            }
            Self::TapDisagrees { flow, requests, of, largest, within } => write!(
                f,
                "{}: in {requests} of {of} requests the tap was not passed between the stamps of both \
                 ends, by {largest} at most, where {within} are allowed",
                Printable(flow)
            ),
            Self::WokeEarly { early, of, earliest } => write!(
                f,
                "{early} of {of} wake-ups were stamped before their instant, by {earliest} at most"
            ),
            Self::Guard { what } => write!(f, "a setting of this machine: {}", Printable(what)),
            Self::LoadEnded { load, how } => {
                write!(f, "the load `{}` ended early: {}", Printable(load), Printable(how))
            }
            Self::Saturated { flow, share } => write!(
                f,
                "{}: saturated: {:.1}% of the intended requests left in the measured time",
                Printable(flow),
                share * 100.0
            ),
            Self::DeparturesDisturbed { flow, how } => {
                write!(f, "{}: requests were sent late: {}", Printable(flow), Printable(how))
            }
            Self::MessagesRefused { flow, refused, reason } => write!(
                f,
                "{}: the kernel did not take {refused} messages: {}",
                Printable(flow),
                Printable(reason)
            ),
            Self::PacketsUnlogged { records } => {
                write!(f, "{records} requests are not in the log of single requests")
            }
            Self::AccountBroken { flow } => {
                write!(f, "{}: the counts of its requests do not add up", Printable(flow))
            }
            Self::LinkDown { interface, times } => {
                let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
                write!(f, "the link of `{}` went down {times} during the run", Printable(interface))
            }
            Self::UnequalMtus { larger, larger_mtu, smaller, smaller_mtu } => write!(
                f,
                "`{}` has an MTU of {larger_mtu} and `{}` one of {smaller_mtu}",
                Printable(larger),
                Printable(smaller)
            ),
            Self::FramesUncounted { direction } => {
                write!(f, "{}: the counts of its frames do not add up", Printable(direction))
            }
            Self::Planted { what } => {
                write!(f, "PLANTED ON PURPOSE: {}", Printable(what))
            }
            Self::DelayOverflow { direction, frames } => write!(
                f,
                "{}: {frames} frames found no room in the delay line",
                Printable(direction)
            ),
            Self::DelayLate { direction, late, said } => write!(
                f,
                "{}: 99 of 100 frames left no more than {late} late, and it had been {said} before the \
                 first",
                Printable(direction)
            ),
            Self::TruthsMissed { missed } => {
                write!(f, "the truths of {missed} frames were not kept")
            }
            Self::ClientsTurnedAway { dropped } => {
                write!(f, "{dropped} datagrams or connections of new clients found no place")
            }
            Self::NoAccount { flow } => {
                write!(f, "{}: the other end gave no account of what came", Printable(flow))
            }
            Self::OwnThreadsInTheWay { flow, left_out, requests } => write!(
                f,
                "{}: whylate's own threads ran on the client's or the reflector's CPU during {left_out} of \
                 {requests} requests",
                Printable(flow)
            ),
            Self::NotToBeHad { part, instead } => {
                write!(f, "{}: {}", Printable(part), Printable(instead))
            }
            Self::OtherVersion { version, messages } => write!(
                f,
                "{messages} messages of version {version} of whylate's format came and were not answered"
            ),
            Self::WallClockStepped { by_ns } => {
                write!(f, "the wall clock was set by {:+.6} s during the run", *by_ns as f64 / 1e9)
            }
            Self::Unknown(stored) => {
                let name = stored.get("warning").and_then(Value::as_str).unwrap_or_default();
                let rest: Vec<String> = stored
                    .iter()
                    .filter(|(key, _)| *key != "warning")
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                write!(f, "a warning that is not known here, `{}`", Printable(name))?;
                match rest.join(",") {
                    rest if rest.is_empty() => Ok(()),
                    rest => write!(f, " ({})", Printable(&rest)),
                }
            }
            Self::Within { part, of } => write!(f, "{}: {of}", Printable(part)),
        }
    }
}

/// Who asks for more than there is, and of what.
fn overcommitted(f: &mut fmt::Formatter<'_>, of: &Warning) -> fmt::Result {
    let Warning::Overcommitted { cpus, asked, from, most, others, unknown } = of else {
        return Ok(());
    };
    let when = if from.0 > 0 { format!(" from {from} of the run on") } else { String::new() };
    if let ([only], 0, 2..) = (most.as_slice(), *others, cpus.len()) {
        let thread = Printable(&only.thread);
        return write!(f, "thread {thread} asks for {asked:.2} CPUs{when}, and uses one at a time");
    }
    let there = match cpus.as_slice() {
        [cpu] => format!("CPU {cpu} is all they have"),
        several => format!("they have {}, {}", several.len(), CpuList(several)),
    };
    let asking = |of: &Asking| format!("{} {}", Printable(&of.thread), percent_of(of.share, 1));
    let most: Vec<String> = most.iter().map(asking).collect();
    let percent = percent_of(*asked, cpus.len());
    write!(f, "threads ask for {percent} of a CPU{when}, and {there}: {}", most.join(", "))?;
    if *others > 0 {
        write!(f, " and {others} more")?;
    }
    if *unknown > 0 {
        write!(f, "; what {unknown} other threads ask for is not known and not counted")?;
    }
    Ok(())
}

impl Warning {
    /// What it means for the numbers, and what to do, whatever command it is of.
    #[must_use]
    pub fn advice(&self) -> String {
        self.advice_for(Options::default())
    }

    fn advice_for(&self, command: Options) -> String {
        let advice = self.meaning(command);
        match self {
            Self::Within { of, .. } => of.advice_for(command),
            Self::NoSenders { remedy, .. } | Self::NoKernelTrace { remedy, .. } => {
                format!("{advice} {}", Printable(remedy))
            }
            _ => advice.to_owned(),
        }
    }

    /// The same of a warning of this run, with what the run knows besides.
    #[must_use]
    pub fn advice_in(&self, run: &Run) -> String {
        match self {
            Self::Within { of, .. } => of.advice_in(run),
            Self::DeparturesDisturbed { flow, .. } => {
                let flow = run.flows.iter().find(|of| of.name == *flow);
                let (time, times, what) = match flow.and_then(|of| of.way.across.as_ref()) {
                    Some(_) => ("latency from due", "latencies from due", "message"),
                    None => ("response time", "response times", "request"),
                };
                let held = if flow.is_some_and(|of| own_time(of, run).is_some()) {
                    format!(
                        "Most of each {time} is the client's own delay: it counts from when the {what} was due."
                    )
                } else {
                    format!("The {times} hold: they count from when each {what} was due.")
                };
                format!("{held} {}", self.advice())
            }
            _ => self.advice_for(Options::of(run)),
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table: one arm for each warning")]
    fn meaning(&self, of: Options) -> &'static str {
        match self {
            Self::Unknown(_) => {
                "The run was recorded by a newer whylate, whose verdict counts it. Read it with that \
                 version to know what it means."
            }
            Self::NoiseBelowThreshold { share, .. } => noise(*share),
            Self::RecordsDropped { .. } => of.records_dropped(),
            Self::JobsUnrecorded { .. } => of.jobs_unrecorded(),
            Self::TraceLost { .. } => of.trace_lost(),
            Self::CausesIncomplete { .. } => of.causes_incomplete(),
            Self::NoSenders { .. } => {
                "Causes are interrupts and threads, without who sent or woke them."
            }
            Self::NoKernelTrace { .. } => {
                "Causes are inferred from what the thread knows by itself: no names, no senders."
            }
            Self::RseqUnusable { .. } => {
                "Whether a stall was a context switch rests on getrusage alone. The word needs glibc \
                 2.35 and Linux 4.18 or newer, and rseq not turned off in GLIBC_TUNABLES."
            }
            Self::FrequencyFromRegressionOnly => {
                "Durations are as right as the kernel's own clock. Nothing to do, unless they are \
                 compared with another machine's to better than the bound that is printed."
            }
            Self::FrequencyDisagreement { .. } => {
                "Durations may be off by this much. Look at the sources, and in `dmesg` for an \
                 unstable counter, before recording again."
            }
            Self::HostChanged { .. } => {
                "Numbers from before and after do not belong together. Keep CPU hotplug, cpusets \
                 and taskset away from the measured CPUs, and record again."
            }
            Self::NoHousekeepingCpu => of.no_housekeeping_cpu(),
            Self::MemoryNotLocked { .. } => {
                "Page faults of whylate itself may be among the stalls. Give CAP_IPC_LOCK, or raise \
                 `memlock` in limits.conf as root."
            }
            Self::PolicyRefused { .. } => {
                "The thread ran under the normal policy, where others may preempt it. Give \
                 CAP_SYS_NICE, raise `rtprio` in limits.conf, or run as root."
            }
            Self::Overcommitted { .. } => {
                "Deadlines will be missed, and the thread of the lowest priority never catches up. \
                 Ask for less, or give the threads more CPUs."
            }
            Self::RtThrottling { .. } => {
                "A FIFO thread that never sleeps is stopped for the rest of each period. Lift it \
                 with `sysctl kernel.sched_rt_runtime_us=-1` and put it back afterwards."
            }
            Self::ThresholdNearPeriod { .. } => {
                "The loop's own spread is counted as stalls. Raise --threshold, or leave it out to \
                 have it chosen from the warm-up."
            }
            Self::SegmentsRotated { .. } => {
                "Summaries and histograms cover the whole run; single stalls and events are kept for \
                 its end only. Raise --max-disk to keep more."
            }
            Self::SetStarved { .. } => {
                "A real-time thread that never waits takes the whole machine with it. Give the set \
                 less to do, a reservation, or leave real-time throttling on."
            }
            Self::ExecutionCut { .. } => {
                "Sums, deadlines and causes cover the whole run; single blocks are kept for its \
                 beginning only. Raise the number of records (-e) or run for a shorter time."
            }
            Self::WritingFailed { .. } => {
                "Summaries cover the whole run; single stalls and events are missing from then on. \
                 Free some space, or record to another disk with -o."
            }
            Self::Interrupted => {
                "Everything measured until then is here. Rare events had less time to show: compare \
                 with runs of the same length only."
            }
            Self::AnotherRun { .. } => {
                "Both runs disturbed each other. Wait for the other to end, and record again."
            }
            Self::NotStationary { .. } => {
                "One number for the whole run hides a change. Look at the blocks over time and find \
                 what changed, or lengthen --warmup until it has settled."
            }
            Self::IdleStatesNotHeld { .. } => {
                "Waking a CPU from an idle state may be in the latencies. Run as root, or allow \
                 writing to /dev/cpu_dma_latency."
            }
            Self::ActionFailed { .. } => {
                "The stall and its evidence are in this run all the same; the action can be tried by \
                 hand."
            }
            Self::TraceLeftOff => {
                "Read /sys/kernel/tracing/trace, which ends at the stall, and switch it on again: \
                 echo 1 | sudo tee /sys/kernel/tracing/tracing_on."
            }
            Self::PartEndedEarly { .. } => {
                "What it measured until then is printed, and holds for that time only. Find out what \
                 ended it, and record again."
            }
            Self::PartLeftOut { .. } => {
                "Nothing is known about it. Remove the reason, and record again, if it is wanted."
            }
            Self::TapDisagrees { .. } => {
                "One of the two clocks is wrong, or the tap lies elsewhere: parts from and to the tap \
                 mean little, and its times that contradict their neighbours are not used. Name the \
                 clock of a file as what it is (--tap-clock), and record again."
            }
            Self::WokeEarly { .. } => {
                "They count as 0. Within the bound of the clocks' relation that is its error; beyond \
                 it the timer fires early, and short latencies of this row mean little."
            }
            Self::Guard { .. } => {
                "Check the setting by hand; the next start of whylate puts back what it can."
            }
            Self::LoadEnded { .. } => {
                "What was measured afterwards was measured without it. Find out what ended it, and \
                 record again."
            }
            Self::Saturated { .. } => {
                "Times from due grow for as long as such a run lasts, and say more about its duration \
                 than about the path. Lower --rate, or give the client a faster port or CPU."
            }
            Self::DeparturesDisturbed { .. } => {
                "Give the client a CPU of its own, and --sched fifo:50."
            }
            Self::MessagesRefused { .. } => {
                "They never left, and stay in the sample as values of which only a lower bound is \
                 known. See what changed on the path while it was measured: its MTU, its queue."
            }
            Self::PacketsUnlogged { .. } => {
                "Histograms and accounts have them all. The log takes some 500 000 records a second: \
                 lower --rate, or leave --log-packets out."
            }
            Self::LinkDown { .. } => {
                "Frames that came meanwhile are lost or late. Look for the reason with `dmesg` and `ip \
                 monitor link`."
            }
            Self::UnequalMtus { .. } => {
                "Frames that the smaller one does not send are dropped and counted. Give both the same \
                 (`ip link set dev NAME mtu BYTES`)."
            }
            Self::FramesUncounted { .. } | Self::AccountBroken { .. } => {
                "This is an error of whylate: please report it with the run directory."
            }
            Self::Planted { .. } => {
                "This calibration is a test of itself and of no use for anything else: it is not kept for \
                 later measurements. Leave --plant-bias and --plant-tail out."
            }
            Self::DelayOverflow { .. } => {
                "They are lost, and counted. Hold frames back for less time, send fewer, or give the line \
                 more room (--capacity)."
            }
            Self::DelayLate { .. } => {
                "Each frame's own times are in its truth all the same. Give the line a CPU for itself \
                 (--cpus, isolcpus), and send no faster than it can."
            }
            Self::TruthsMissed { .. } => {
                "They are in every count; who judges by truths leaves them out. Send more slowly, or give \
                 the recording another CPU than the line and the client."
            }
            Self::ClientsTurnedAway { .. } => {
                "What was measured is of the others. Let fewer clients come at a time."
            }
            Self::NoAccount { .. } => {
                "How many messages were lost is not known. Let a reflector of this version listen \
                 there, and see that its last message is not lost on a saturated path."
            }
            Self::OwnThreadsInTheWay { .. } => of.own_threads_in_the_way(),
            Self::NotToBeHad { .. } => {
                "The port works all the same, and costs more than it would with it. To have that or \
                 nothing, ask for it by name (--attach, --copying)."
            }
            Self::OtherVersion { .. } => {
                "Whoever sent them waits in vain: run the same version of whylate at both ends."
            }
            Self::WallClockStepped { .. } => {
                "Nothing that was measured rests on it: times come from the counter. Times of day in \
                 files of this run are those of the nearest reading."
            }
            Self::Within { of: warning, .. } => warning.meaning(of),
        }
    }
}

fn noise(share: f64) -> &'static str {
    if share >= 0.0 {
        "Lower --threshold, or fix the CPU's frequency, and record again."
    } else {
        "It ran faster than its own blocks without a stall say. Fix the CPU's frequency, or lengthen --warmup, \
         and record again."
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuId, Nanos};

    #[test]
    fn who_asks_for_more_than_there_is_is_named_with_its_share() {
        let asking = |thread: &str, share| Asking { thread: thread.to_owned(), share };
        let warning = |cpus: &[u32], asked, from, most: Vec<Asking>, others| {
            let cpus = cpus.iter().copied().map(CpuId).collect();
            Warning::Overcommitted { cpus, asked, from: Nanos(from), most, others, unknown: others }
                .to_string()
        };
        assert_eq!(
            warning(&[0, 1], 10.8, 300_000_000, vec![asking("a", 0.9), asking("b", 0.9)], 10),
            "threads ask for 1080.0 % of a CPU from 300ms of the run on, and they have 2, 0-1: a \
             90.0 %, b 90.0 % and 10 more; what 10 other threads ask for is not known and not counted"
        );
        assert_eq!(
            warning(&[3], 1.125, 0, vec![asking("a", 0.75), asking("b", 0.375)], 0),
            "threads ask for 112.5 % of a CPU, and CPU 3 is all they have: a 75.0 %, b 37.5 %"
        );
        assert_eq!(
            warning(&[0, 1], 1.35, 0, vec![asking("a", 1.35)], 0),
            "thread a asks for 1.35 CPUs, and uses one at a time"
        );
        let share = 8_000_001.0 / 8e6;
        assert_eq!(
            warning(&[1], share, 0, vec![asking("0", share)], 0),
            "threads ask for just over 100 % of a CPU, and CPU 1 is all they have: 0 just over 100 %"
        );
        assert_eq!(
            warning(&[0, 1], 2.0001, 0, vec![asking("a", 1.0), asking("b", 1.0)], 1),
            "threads ask for just over 200 % of a CPU, and they have 2, 0-1: a 100.0 %, b 100.0 % and \
             1 more; what 1 other threads ask for is not known and not counted"
        );
    }
}
