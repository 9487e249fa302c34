//! What every recording stands on: the clock opened, the host read, the guards taken.
//!
//! Guards and the place of the calling thread last as long as the workbench: a recording of several
//! parts keeps one for all of them. Counters of /proc are taken where the measurement says that it
//! begins and ends, so that set-up and warm-up are not among them.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use whylate_cause::{Context, Measured};
use whylate_clock::KernelRaw;
use whylate_clock::calibrate::Calibration;
use whylate_clock::calibrate::Calibrator;
use whylate_clock::facts::{Observer, RecordingCost};
use whylate_clock::{Counter, HardwareCounter};
use whylate_host::guard::{CpuDmaLatency, RtThrottling};
use whylate_host::journal::Journal;
use whylate_host::procfs::{Interrupts, Softirqs, Steal};
use whylate_host::smi::SmiCounts;
use whylate_host::topology::Topology;
use whylate_host::{another, cpus, fingerprint};
use whylate_model::host::Fingerprint;
use whylate_model::run::{
    Beginning, ClockFacts, CpuOffset, CpuSteal, Evidence, ProcDelta, RunState, TraceFacts,
};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};
use whylate_sys::affinity;

use crate::RecordError;
use crate::kernel_trace::{self, KernelTrace};
use crate::storage::Storage;

/// Offsets are measured from the first CPU to so many others: each takes some milliseconds, and a
/// machine of hundreds of CPUs must not be kept busy with them.
const MOST_OFFSETS: usize = 16;

/// What a recording asks of the workbench: nothing by default.
#[derive(Debug, Clone, Default)]
pub struct Need {
    /// CPUs that will be measured.
    pub measured: Vec<CpuId>,
    /// CPUs for the recording's own thread, where the user chose some.
    pub housekeeping: Option<Vec<CpuId>>,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// Measuring threads run under a real-time policy.
    pub real_time: bool,
}

/// The clock opened, the host read, the guards taken.
pub struct Workbench {
    /// The counter.
    pub counter: HardwareCounter,
    /// Its rate, as every conversion of this run uses it.
    pub rate: Hertz,
    /// The host.
    pub fingerprint: Fingerprint,
    /// CPUs and cores.
    pub topology: Topology,
    /// CPUs of the recording's own thread: one, or all that the user chose; none when all are
    /// measured.
    pub housekeeping: Vec<CpuId>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
    /// Where changes to the host are noted before they are made.
    pub journal: Journal,
    /// What the clock is.
    pub observer: Observer,
    measured: Vec<CpuId>,
    calibrator: Calibrator<HardwareCounter, KernelRaw>,
    calibration: Calibration,
    stretches: Vec<Stretch>,
    allowed: Vec<CpuId>,
    own_affinity: Vec<CpuId>,
    _idle_states: Option<CpuDmaLatency>,
}

/// What is known of the host before the clock's rate is.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// Where changes to the host are noted before they are made.
    pub journal: &'a Journal,
    /// CPUs and cores.
    pub topology: &'a Topology,
    /// CPUs of the recording's own thread.
    pub housekeeping: &'a [CpuId],
}

/// A stretch of measurement. One without an end is still going on.
struct Stretch {
    before: Counters,
    after: Option<Counters>,
}

/// Counters of /proc at one instant.
struct Counters {
    at: Ticks,
    interrupts: Option<Interrupts>,
    softirqs: Option<Softirqs>,
    steal: Option<Steal>,
    smi: Option<SmiCounts>,
}

impl Workbench {
    /// CPUs that this process may use.
    #[must_use]
    pub fn allowed(&self) -> &[CpuId] {
        &self.allowed
    }

    /// Sets up everything, and moves the calling thread away from the measured CPUs.
    ///
    /// # Errors
    /// The clock is of no use, CPUs cannot be had, or a guard could not be taken.
    pub fn set_up(need: &Need) -> Result<Self, RecordError> {
        Self::set_up_with(need, |_| ()).map(|(bench, ())| bench)
    }

    /// Sets up everything as [`set_up`](Self::set_up) does, and prepares what needs no rate on a thread of
    /// its own while the clock's baseline passes: that takes its time anyhow.
    ///
    /// # Errors
    /// As [`set_up`](Self::set_up).
    pub fn set_up_with<T: Send>(
        need: &Need,
        prepare: impl FnOnce(Ground<'_>) -> T + Send,
    ) -> Result<(Self, T), RecordError> {
        let root = Path::new("/");
        let mut counter = HardwareCounter::open()?;
        let mut calibrator = Calibrator::of_this_host(counter);
        let topology = Topology::read(root)?;
        let own_affinity = affinity::get();
        let allowed = cpus::allowed(&topology)?;
        let housekeeping = cpus::housekeeping(
            &need.measured,
            need.housekeeping.as_deref(),
            &topology,
            &allowed,
            &own_affinity,
        )?;
        let journal = Journal::open()?;
        journal.measures(&need.measured)?;
        let mut warnings = another::warnings(&need.measured);
        if housekeeping.is_empty() {
            warnings.push(Warning::NoHousekeepingCpu);
        } else {
            affinity::set(&housekeeping)?;
        }
        if let (true, Some(limits)) = (need.real_time, RtThrottling::detect(root)) {
            warnings.extend(limits.warning());
        }
        let idle_states = hold_idle_states(need.hold_idle_states, &mut warnings);
        let compared: Vec<CpuId> =
            need.measured.iter().chain(&housekeeping).copied().take(MOST_OFFSETS + 1).collect();
        let ground = Ground { journal: &journal, topology: &topology, housekeeping: &housekeeping };
        let beside = || {
            thread::scope(|scope| {
                let preparing = thread::Builder::new().name("whylate-prepare".to_owned());
                let preparing = preparing.spawn_scoped(scope, || prepare(ground))?;
                let observer = Observer::start(&mut counter, &compared);
                let fingerprint = fingerprint::read(root);
                let prepared = preparing.join().unwrap_or_else(|panic| resume_unwind(panic));
                Ok((observer, fingerprint, prepared))
            })
        };
        let (done, calibration) = calibrator.quick_beside(beside)?;
        let (observer, fingerprint, prepared) = done.map_err(RecordError::NoThread)?;
        let bench = Self {
            rate: calibration.hz,
            fingerprint,
            topology,
            housekeeping,
            warnings,
            journal,
            observer,
            measured: need.measured.clone(),
            calibrator,
            calibration,
            stretches: Vec::new(),
            allowed,
            own_affinity,
            _idle_states: idle_states,
            counter,
        };
        Ok((bench, prepared))
    }

    /// Takes one more sandwich for the calibration. Cheap; call it some times per second.
    pub fn sample(&mut self) {
        self.calibrator.sample();
    }

    /// Smallest step of the clock, in nanoseconds.
    #[must_use]
    pub fn resolution_ns(&self) -> f64 {
        self.observer.so_far(&self.calibration, RecordingCost::default()).resolution_ns
    }

    /// How far a reading of the counter on one CPU may lie from the timeline of the reference CPU: the
    /// furthest offset that was found, and its bound, rounded up. Of two CPUs each may be off by so much.
    #[must_use]
    pub fn cpu_bound(&self) -> Nanos {
        let furthest = furthest(self.observer.offsets()).0 as f64;
        Nanos((furthest * 1e9 / self.rate.0).ceil() as u64)
    }

    /// Is this a virtual machine?
    #[must_use]
    pub fn virtualised(&self) -> bool {
        fingerprint::virtualised(&self.fingerprint)
    }

    /// What is known of a run from its beginning on: the command line, the question in one sentence and
    /// the seed of what was asked, how far it came, the host and the clock.
    #[must_use]
    pub fn beginning(
        &self,
        (command_line, question, seed): (&[String], &str, u64),
        state: RunState,
        clock: ClockFacts,
    ) -> Beginning {
        let (command_line, question) = (command_line.to_vec(), question.to_owned());
        Beginning { command_line, question, seed, state, host: self.fingerprint.clone(), clock }
    }

    /// The clock's facts as far as they are known: so far while a run goes on, and over the whole of it
    /// after [`measure_clock_again`](Self::measure_clock_again).
    #[must_use]
    pub fn clock_facts(&self, recording: RecordingCost) -> ClockFacts {
        self.at_rate_in_use(self.observer.so_far(&self.calibration, recording))
    }

    /// Looks at the clock for the last time, and for other runs: its facts are over the whole run from here on, and
    /// offsets between CPUs are measured again. Call it when nothing is being measured any more.
    pub fn measure_clock_again(&mut self) {
        if let Ok(calibration) = self.calibrator.so_far() {
            // Only the last word on the clock counts.
            self.warnings.retain(|w| !matches!(w, Warning::FrequencyDisagreement { .. }));
            self.warnings.extend(calibration.warnings());
            self.calibration = calibration;
        }
        self.observer.finish(&mut self.counter);
        // Others may have begun after us.
        another::add(&mut self.warnings, another::warnings(&self.measured));
    }

    /// Looks at the clock for the last time, and closes the tables, while the kernel removes the trace: what
    /// is known of the trace, and what could not be put back.
    pub(crate) fn end_beside(
        &mut self,
        trace: Option<KernelTrace>,
        storage: &mut Storage,
    ) -> (Option<TraceFacts>, Vec<Warning>) {
        kernel_trace::finish_beside(trace, || {
            storage.close();
            self.measure_clock_again();
        })
    }

    /// The clock's facts over the whole run, looked at for the last time.
    pub fn final_clock_facts(&mut self, recording: RecordingCost) -> ClockFacts {
        self.measure_clock_again();
        self.clock_facts(recording)
    }

    /// Conversions of this run used the rate found at its start; how far that lies from what the
    /// whole run says is added to the bound.
    fn at_rate_in_use(&self, mut facts: ClockFacts) -> ClockFacts {
        let apart_ppm = (facts.hz.0 / self.rate.0 - 1.0).abs() * 1e6;
        facts.hz = self.rate;
        facts.hz_bound_ppm += apart_ppm;
        facts
    }

    /// A measurement begins: what /proc counts from here on belongs to it.
    pub fn measurement_begins(&mut self) {
        let before = Counters::read(&mut self.counter, &self.measured);
        self.stretches.push(Stretch { before, after: None });
    }

    /// The measurement that began last has ended.
    pub fn measurement_ends(&mut self) {
        let after = Counters::read(&mut self.counter, &self.measured);
        if let Some(open) = self.stretches.last_mut().filter(|stretch| stretch.after.is_none()) {
            open.after = Some(after);
        }
    }

    /// What /proc counted on the measured CPUs while something was measured: the sum of all
    /// measurements that have begun.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        let mut counter = self.counter;
        let now = Counters::read(&mut counter, &self.measured);
        let stretches = self.stretches.iter().map(|Stretch { before, after }| {
            before.until(after.as_ref().unwrap_or(&now), &self.measured, self.rate)
        });
        stretches.reduce(sum).unwrap_or_default()
    }

    /// What the attribution knows beside gaps and events of these threads.
    #[must_use]
    pub fn context(&self, threads: Vec<Measured>) -> Context {
        let mut context = Context::new(self.virtualised(), self.rate);
        context.threads = threads;
        // Between two CPUs neither of which is the reference, both offsets count.
        context.cross_cpu_bound = TicksDelta(2 * furthest(self.observer.offsets()).0);
        for (pid, name) in whylate_host::names::threads() {
            context.learn_name(pid, &name);
        }
        context
    }

    /// The CPU for the other end of messages from `cpu`: none when there is no other.
    #[must_use]
    pub fn opposite(&self, cpu: CpuId) -> Option<cpus::Opposite> {
        let (allowed, own) = (&self.allowed, &self.own_affinity);
        cpus::opposite(cpu, &self.topology, allowed, own, &self.housekeeping)
    }
}

/// The threads of this process, as they are now.
pub(crate) fn own_threads() -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks.filter_map(|task| Some(Pid(task.file_name().to_str()?.parse().ok()?))).collect()
}

/// How far the counter of a CPU may be from the reference's at most.
fn furthest(offsets: &[CpuOffset]) -> TicksDelta {
    let all = offsets.iter().map(|of| of.offset_ticks.unsigned_abs().saturating_add(of.bound.0));
    TicksDelta(all.max().unwrap_or(0))
}

impl Drop for Workbench {
    fn drop(&mut self) {
        // The process goes on with the CPUs it had.
        let _ = affinity::set(&self.own_affinity);
    }
}

impl Counters {
    fn read(counter: &mut HardwareCounter, cpus: &[CpuId]) -> Self {
        let root = Path::new("/");
        Self {
            at: counter.read(),
            interrupts: Interrupts::read(root).ok(),
            softirqs: Softirqs::read(root).ok(),
            steal: Steal::read(root).ok(),
            smi: SmiCounts::read(root, cpus),
        }
    }

    fn until(&self, after: &Self, cpus: &[CpuId], rate: Hertz) -> Evidence {
        let mut proc_deltas = Vec::new();
        if let (Some(before), Some(after)) = (&self.interrupts, &after.interrupts) {
            proc_deltas.extend(before.delta(after, cpus));
        }
        if let (Some(before), Some(after)) = (&self.softirqs, &after.softirqs) {
            proc_deltas.extend(before.delta(after, cpus));
        }
        let steal = self.steal.as_ref().zip(after.steal.as_ref());
        let smi = self.smi.as_ref().zip(after.smi.as_ref());
        Evidence {
            trace: None,
            messages: None,
            rseq: false,
            counted_over: Some(after.at.since(self.at).to_nanos(rate)),
            proc_deltas,
            steal_ns: steal.and_then(|(before, after)| before.delta_ns(after, cpus)),
            steal_by_cpu: steal
                .map_or_else(Vec::new, |(before, after)| before.delta_by_cpu(after, cpus)),
            smi_count: smi.and_then(|(before, after)| before.delta(after)),
        }
    }
}

/// Steal time of the CPUs that show it in both of two stretches.
fn steal_by_cpu(first: &[CpuSteal], second: &[CpuSteal]) -> Vec<CpuSteal> {
    let both = |of: &CpuSteal| {
        let other = second.iter().find(|other| other.cpu == of.cpu)?;
        Some(CpuSteal { cpu: of.cpu, steal_ns: of.steal_ns + other.steal_ns })
    };
    first.iter().filter_map(both).collect()
}

/// Two stretches together. What one of them does not know is not known of both.
fn sum(first: Evidence, second: Evidence) -> Evidence {
    let mut counts: BTreeMap<(String, CpuId), u64> = BTreeMap::new();
    for delta in first.proc_deltas.into_iter().chain(second.proc_deltas) {
        *counts.entry((delta.name, delta.cpu)).or_default() += delta.count;
    }
    let deltas = counts.into_iter().map(|((name, cpu), count)| ProcDelta { name, cpu, count });
    Evidence {
        trace: None,
        messages: None,
        rseq: false,
        counted_over: first.counted_over.zip(second.counted_over).map(|(a, b)| Nanos(a.0 + b.0)),
        proc_deltas: deltas.collect(),
        steal_ns: first.steal_ns.zip(second.steal_ns).map(|(a, b)| a + b),
        steal_by_cpu: steal_by_cpu(&first.steal_by_cpu, &second.steal_by_cpu),
        smi_count: first.smi_count.zip(second.smi_count).map(|(a, b)| a + b),
    }
}

/// Holds `/dev/cpu_dma_latency` at 0 for as long as the guard lives, where that is wanted. That it cannot
/// be had is a warning.
pub(crate) fn hold_idle_states(wanted: bool, warnings: &mut Vec<Warning>) -> Option<CpuDmaLatency> {
    if !wanted {
        return None;
    }
    match CpuDmaLatency::hold() {
        Ok(guard) => Some(guard),
        Err(error) => {
            warnings.push(CpuDmaLatency::not_held(&error));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use whylate_host::cpus::parse_list;
    use whylate_sys::nanosleep::{Clock, clock_ns};

    use super::*;

    #[test]
    fn the_counter_that_is_furthest_counts_with_its_bound_whichever_way_it_is_off() {
        let offset = |cpu, offset_ticks, bound| CpuOffset {
            reference: CpuId(0),
            cpu: CpuId(cpu),
            offset_ticks,
            bound: TicksDelta(bound),
            offset_ticks_at_end: None,
        };
        assert_eq!(furthest(&[]), TicksDelta(0));
        let all = [offset(1, 20, 10), offset(2, -60, 15), offset(3, 5, 40)];
        assert_eq!(furthest(&all), TicksDelta(75));
    }

    fn bench(measured: CpuId) -> Option<Workbench> {
        let need = Need {
            measured: vec![measured],
            housekeeping: None,
            hold_idle_states: false,
            real_time: false,
        };
        Workbench::set_up(&need).inspect_err(whylate_suite::missing).ok()
    }

    /// Interrupts of the timer on this CPU by now: where the kernel counts them under this name.
    fn of_timer(evidence: &Evidence) -> Option<u64> {
        let is_timer = |delta: &&ProcDelta| delta.name == "interrupts LOC";
        evidence.proc_deltas.iter().find(is_timer).map(|delta| delta.count)
    }

    /// Does the kernel stop the timer of this CPU while one thread alone wants it?
    fn is_tickless(cpu: CpuId) -> bool {
        let listed = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full");
        let listed = listed.ok().and_then(|text| parse_list(text.trim()).ok());
        listed.is_some_and(|cpus| cpus.contains(&cpu))
    }

    fn now() -> u64 {
        clock_ns(Clock::MonotonicRaw)
    }

    /// Keeps a CPU busy, so that its timer ticks.
    fn spin(cpu: CpuId, length: Duration) {
        let burning = std::thread::spawn(move || {
            let _ = affinity::set(&[cpu]);
            let until = now() + length.as_nanos() as u64;
            while now() < until {
                std::hint::spin_loop();
            }
        });
        burning.join().unwrap();
    }

    #[test]
    fn counters_cover_the_measurements_and_nothing_between_them() {
        let cpus = affinity::get();
        let measured = *cpus.last().unwrap();
        let Some(mut bench) = bench(measured) else { return };
        assert_eq!(bench.evidence(), Evidence::default(), "nothing is measured yet");
        spin(measured, Duration::from_millis(400));
        let from = now();
        bench.measurement_begins();
        spin(measured, Duration::from_millis(200));
        bench.measurement_ends();
        let at_most = now() - from;
        let first = bench.evidence();
        spin(measured, Duration::from_millis(400));
        assert_eq!(bench.evidence(), first, "an end is an end");
        bench.measurement_begins();
        spin(measured, Duration::from_millis(200));
        bench.measurement_ends();
        let both = bench.evidence();
        let over = |evidence: &Evidence| evidence.counted_over.unwrap().0;
        // A thousandth for the two clocks.
        assert!(over(&first) >= 199_800_000, "{first:?}");
        assert!(over(&first) <= at_most + at_most / 1_000, "{first:?} in {at_most}");
        assert!(over(&both) >= over(&first) + 199_800_000, "{both:?}");
        if let (Some(first), Some(both)) = (of_timer(&first), of_timer(&both)) {
            let grown = if is_tickless(measured) { both >= first } else { both > first };
            assert!(grown, "{first} {both}");
        }
    }

    #[test]
    fn sums_hold_only_what_both_know() {
        let delta = |cpu, count| ProcDelta { name: "softirqs RCU".to_owned(), cpu, count };
        let stolen = |cpu, steal_ns| CpuSteal { cpu: CpuId(cpu), steal_ns };
        let of = |deltas: &[ProcDelta], smi_count| Evidence {
            counted_over: Some(Nanos(5)),
            proc_deltas: deltas.to_vec(),
            steal_ns: Some(10.0),
            steal_by_cpu: deltas.iter().map(|delta| stolen(delta.cpu.0, 10.0)).collect(),
            smi_count,
            ..Evidence::default()
        };
        let one = of(&[delta(CpuId(0), 1), delta(CpuId(1), 2)], Some(3));
        let other = of(&[delta(CpuId(1), 5)], None);
        let expected = Evidence {
            counted_over: Some(Nanos(10)),
            proc_deltas: vec![delta(CpuId(0), 1), delta(CpuId(1), 7)],
            steal_ns: Some(20.0),
            steal_by_cpu: vec![stolen(1, 20.0)],
            smi_count: None,
            ..Evidence::default()
        };
        assert_eq!(sum(one, other), expected);
    }

    #[test]
    fn the_calling_thread_keeps_house_until_the_workbench_goes() {
        let before = affinity::get();
        let Some(bench) = bench(before[0]) else { return };
        if !bench.housekeeping.is_empty() {
            assert_eq!(affinity::get(), bench.housekeeping);
            assert!(!bench.housekeeping.contains(&before[0]));
        }
        drop(bench);
        assert_eq!(affinity::get(), before);
    }
}
