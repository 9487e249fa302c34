//! What each warning says, and what to do about it.

use std::fmt;

use crate::text::Printable;
use crate::warning::Warning;

impl fmt::Display for Warning {
    /// The fact, in one line without a full stop.
    #[expect(clippy::too_many_lines, reason = "a table: one arm for each warning")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoiseBelowThreshold { cpu, share } => {
                write!(
                    f,
                    "CPU {cpu}: noise below the threshold is {:+.2}% of elapsed",
                    share * 100.0
                )
            }
            Self::RecordsDropped { cpu, dropped } => {
                write!(f, "CPU {cpu}: {dropped} gaps were counted but not kept one by one")
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
                "{gaps_forced} gaps were named before all their events had come, and {sends} or \
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
            Self::FrequencyFromRegressionOnly => f.write_str(
                "the counter's frequency has no source independent of CLOCK_MONOTONIC_RAW",
            ),
            Self::FrequencyDisagreement { ppm } => {
                write!(f, "sources of the counter's frequency differ by {ppm:.3} ppm")
            }
            Self::HostChanged { what } => {
                write!(f, "the host changed during the run: {}", Printable(what))
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
            Self::RtThrottling { runtime, period } => {
                write!(f, "real-time throttling: the kernel grants {runtime} in every {period}")
            }
            Self::ThresholdNearPeriod { threshold, period } => {
                write!(f, "the threshold of {threshold} is close to the loop's period of {period}")
            }
            Self::SegmentsRotated { deleted } => {
                write!(f, "{deleted} oldest segments were deleted to stay within the disk bound")
            }
            Self::SetStarved { cpu, patience } => write!(
                f,
                "the set was ended: for {patience} no ordinary thread could run on CPU {cpu}"
            ),
            Self::ExecutionCut { kept, lost } => write!(
                f,
                "the execution trace holds the first {kept} records; {lost} found no room"
            ),
            Self::WritingFailed { reason } => {
                write!(f, "writing failed during the run: {}", Printable(reason))
            }
            Self::Interrupted => f.write_str("the run did not end by itself"),
            Self::AnotherRun { pid } => {
                write!(f, "another whylate was running on this machine (process {pid})")
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
            Self::PartEndedEarly { part, reason } => {
                write!(f, "{} ended before its time: {}", Printable(part), Printable(reason))
            }
            Self::PartLeftOut { part, reason } => {
                write!(f, "{} was left out: {}", Printable(part), Printable(reason))
            }
            Self::WokeEarly { early, of, earliest } => write!(
                f,
                "{early} of {of} wake-ups were stamped before their instant, by {earliest} at most"
            ),
            Self::Guard { what } => write!(f, "a host setting: {}", Printable(what)),
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
                write!(
                    f,
                    "{}: requests did not leave as intended: {}",
                    Printable(flow),
                    Printable(how)
                )
            }
            Self::AccountBroken { flow } => {
                write!(f, "{}: the counts of its requests do not add up", Printable(flow))
            }
            Self::Within { part, of } => write!(f, "{}: {of}", Printable(part)),
        }
    }
}

impl Warning {
    /// What it means for the numbers, and what to do.
    #[must_use]
    pub fn advice(&self) -> String {
        let advice = self.meaning();
        match self {
            Self::Within { of, .. } => of.advice(),
            Self::NoSenders { remedy, .. } | Self::NoKernelTrace { remedy, .. } => {
                format!("{advice} {}", Printable(remedy))
            }
            _ => advice.to_owned(),
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table: one arm for each warning")]
    fn meaning(&self) -> &'static str {
        match self {
            Self::NoiseBelowThreshold { share, .. } => noise(*share),
            Self::RecordsDropped { .. } => {
                "Sums and histograms hold; the list of gaps and their causes is incomplete. Raise \
                 --threshold, or give whylate's own work a CPU with --housekeeping."
            }
            Self::JobsUnrecorded { .. } => {
                "Hits, misses and latencies are those of the others. Use longer periods, fewer \
                 threads at once, or a CPU for --housekeeping."
            }
            Self::TraceLost { .. } => {
                "Causes of gaps on this CPU may be missing or wrong while events were lost. Record \
                 for a shorter time, under less load, or with a CPU for --housekeeping."
            }
            Self::CausesIncomplete { .. } => {
                "Such gaps are called `trace lost`, and senders may be missing. Give the drain a \
                 CPU of its own with --housekeeping, or measure fewer CPUs at once."
            }
            Self::NoSenders { .. } => {
                "Gaps are named after interrupts and threads, without who sent or woke them."
            }
            Self::NoKernelTrace { .. } => {
                "Causes are inferred from what the thread knows by itself: no names, no senders."
            }
            Self::RseqUnusable { .. } => {
                "Whether a gap was a context switch rests on getrusage alone. The word needs glibc \
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
            Self::NoHousekeepingCpu => {
                "whylate's own work is among the gaps. Leave one CPU out of --cpus, or name one \
                 with --housekeeping."
            }
            Self::MemoryNotLocked { .. } => {
                "Page faults of whylate itself may be among the gaps. Run `ulimit -l unlimited`, or \
                 give CAP_IPC_LOCK."
            }
            Self::PolicyRefused { .. } => {
                "The thread ran under the ordinary policy, where others may preempt it. Give \
                 CAP_SYS_NICE, raise `ulimit -r`, or run as root."
            }
            Self::RtThrottling { .. } => {
                "A FIFO thread that never sleeps is stopped for the rest of each period. Lift it \
                 with `sysctl kernel.sched_rt_runtime_us=-1` and put it back afterwards."
            }
            Self::ThresholdNearPeriod { .. } => {
                "The loop's own spread is counted as gaps. Raise --threshold, or leave it out to \
                 have it chosen from the warm-up."
            }
            Self::SegmentsRotated { .. } => {
                "Summaries and histograms cover the whole run; single gaps and events are kept for \
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
                "Summaries cover the whole run; single gaps and events are missing from then on. \
                 Free some space, or record to another disk with -o."
            }
            Self::Interrupted => {
                "Everything measured until then is here. Rare events had less time to show: compare \
                 with runs of the same length only."
            }
            Self::AnotherRun { .. } => {
                "Each of the two saw the other's load. Wait for it to end, and record again."
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
                "The gap and its evidence are in this run all the same; the action can be tried by \
                 hand."
            }
            Self::PartEndedEarly { .. } => {
                "What it measured until then is printed, and holds for that time only. Find out what \
                 ended it, and record again."
            }
            Self::PartLeftOut { .. } => {
                "Nothing is known about it. Remove the reason, and record again, if it is wanted."
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
                "Response times grow for as long as such a run lasts, and say more about its duration \
                 than about the path. Lower --rate, or give the client a faster port or CPU."
            }
            Self::DeparturesDisturbed { .. } => {
                "The response times hold: they count from the intended instants. Service times are \
                 those of the process that left. A CPU of its own for the client, and --fifo, help."
            }
            Self::AccountBroken { .. } => {
                "This is an error of whylate: please report it with the run directory."
            }
            Self::Within { of, .. } => of.meaning(),
        }
    }
}

fn noise(share: f64) -> &'static str {
    if share >= 0.0 {
        "Interruptions shorter than the threshold took this much, or the CPU's clock speed changed. \
         Lower --threshold, or fix the frequency, and record again."
    } else {
        "The loop ran faster than its own gap-free blocks say: the CPU's clock speed rose. Fix the \
         frequency, or lengthen --warmup, and record again."
    }
}
