//! What every recording stands on: the clock opened, the host read, the guards taken.

use std::path::Path;

use whylate_clock::HardwareCounter;
use whylate_clock::KernelRaw;
use whylate_clock::calibrate::Calibration;
use whylate_clock::calibrate::Calibrator;
use whylate_clock::facts::{Observer, RecordingCost};
use whylate_host::guard::{CpuDmaLatency, Guard, RtThrottling};
use whylate_host::journal::Journal;
use whylate_host::procfs::{Interrupts, Softirqs, Steal};
use whylate_host::smi::SmiCounts;
use whylate_host::topology::Topology;
use whylate_host::{another, cpus, fingerprint};
use whylate_model::host::Fingerprint;
use whylate_model::run::{ClockFacts, Evidence};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz};
use whylate_sys::affinity;

use crate::RecordError;
use crate::progress::Progress;

/// Offsets are measured from the first CPU to so many others: each takes some milliseconds, and a
/// machine of hundreds of CPUs must not be kept busy with them.
const MOST_OFFSETS: usize = 16;

/// What a recording asks of the workbench.
#[derive(Debug, Clone)]
pub struct Need {
    /// CPUs that will be measured.
    pub measured: Vec<CpuId>,
    /// CPU for the recording's own thread, where the user chose one.
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
    /// CPU of the recording's own thread; none when all are measured.
    pub housekeeping: Option<CpuId>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
    /// Where changes to the host are noted before they are made.
    pub journal: Journal,
    /// What the clock is.
    pub observer: Observer,
    measured: Vec<CpuId>,
    calibrator: Calibrator<HardwareCounter, KernelRaw>,
    calibration: Calibration,
    before: Counters,
    own_affinity: Vec<CpuId>,
    _idle_states: Option<CpuDmaLatency>,
}

/// Counters of /proc at one instant.
struct Counters {
    interrupts: Option<Interrupts>,
    softirqs: Option<Softirqs>,
    steal: Option<Steal>,
    smi: Option<SmiCounts>,
}

impl Workbench {
    /// Sets up everything, and moves the calling thread away from the measured CPUs.
    pub fn set_up(need: &Need, progress: &mut dyn Progress) -> Result<Self, RecordError> {
        let root = Path::new("/");
        let mut counter = HardwareCounter::open()?;
        let topology = Topology::read(root)?;
        let own_affinity = affinity::get();
        let housekeeping = cpus::housekeeping(
            &need.measured,
            need.housekeeping.as_deref(),
            &topology,
            &own_affinity,
        )?;
        let journal = Journal::open()?;
        let mut warnings = another::warnings();
        match housekeeping {
            Some(cpu) => affinity::set(&[cpu])?,
            None => warnings.push(Warning::NoHousekeepingCpu),
        }
        if let (true, Some(limits)) = (need.real_time, RtThrottling::detect(root)) {
            warnings.extend(limits.warning());
        }
        let idle_states =
            if need.hold_idle_states { hold_idle_states(&mut warnings, progress) } else { None };
        let mut calibrator = Calibrator::of_this_host(counter);
        let calibration = calibrator.quick()?;
        let compared: Vec<CpuId> =
            need.measured.iter().copied().chain(housekeeping).take(MOST_OFFSETS + 1).collect();
        let observer = Observer::start(&mut counter, &compared);
        Ok(Self {
            rate: calibration.hz,
            fingerprint: fingerprint::read(root),
            topology,
            housekeeping,
            warnings,
            journal,
            observer,
            measured: need.measured.clone(),
            calibrator,
            calibration,
            before: Counters::read(&need.measured),
            own_affinity,
            _idle_states: idle_states,
            counter,
        })
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

    /// Is this a virtual machine?
    #[must_use]
    pub fn virtualised(&self) -> bool {
        fingerprint::virtualised(&self.fingerprint)
    }

    /// The clock's facts as far as they are known.
    #[must_use]
    pub fn clock_facts(&self, recording: RecordingCost) -> ClockFacts {
        self.at_rate_in_use(self.observer.so_far(&self.calibration, recording))
    }

    /// The clock's facts over the whole run: offsets between CPUs are measured again. Call it when
    /// nothing is being measured any more.
    pub fn final_clock_facts(&mut self, recording: RecordingCost) -> ClockFacts {
        if let Ok(calibration) = self.calibrator.so_far() {
            self.warnings.extend(calibration.warnings());
            self.calibration = calibration;
        }
        let facts = self.observer.finish(&mut self.counter, &self.calibration, recording);
        self.at_rate_in_use(facts)
    }

    /// Conversions of this run used the rate found at its start; how far that lies from what the
    /// whole run says is added to the bound.
    fn at_rate_in_use(&self, mut facts: ClockFacts) -> ClockFacts {
        let apart_ppm = (facts.hz.0 / self.rate.0 - 1.0).abs() * 1e6;
        facts.hz = self.rate;
        facts.hz_bound_ppm += apart_ppm;
        facts
    }

    /// What /proc counted on the measured CPUs since the set-up.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        let after = Counters::read(&self.measured);
        let cpus = &self.measured;
        let mut proc_deltas = Vec::new();
        if let (Some(before), Some(after)) = (&self.before.interrupts, &after.interrupts) {
            proc_deltas.extend(before.delta(after, cpus));
        }
        if let (Some(before), Some(after)) = (&self.before.softirqs, &after.softirqs) {
            proc_deltas.extend(before.delta(after, cpus));
        }
        let steal = self.before.steal.as_ref().zip(after.steal.as_ref());
        let smi = self.before.smi.as_ref().zip(after.smi.as_ref());
        Evidence {
            trace: None,
            rseq: false,
            proc_deltas,
            steal_ns: steal.and_then(|(before, after)| before.delta_ns(after, cpus)),
            smi_count: smi.and_then(|(before, after)| before.delta(after)),
        }
    }
}

impl Drop for Workbench {
    fn drop(&mut self) {
        // The process goes on with the CPUs it had.
        let _ = affinity::set(&self.own_affinity);
    }
}

impl Counters {
    fn read(cpus: &[CpuId]) -> Self {
        let root = Path::new("/");
        Self {
            interrupts: Interrupts::read(root).ok(),
            softirqs: Softirqs::read(root).ok(),
            steal: Steal::read(root).ok(),
            smi: SmiCounts::read(root, cpus),
        }
    }
}

fn hold_idle_states(
    warnings: &mut Vec<Warning>,
    progress: &mut dyn Progress,
) -> Option<CpuDmaLatency> {
    match CpuDmaLatency::hold() {
        Ok(guard) => {
            guard.describe().iter().for_each(|line| progress.say(line));
            Some(guard)
        }
        Err(error) => {
            warnings.push(CpuDmaLatency::not_held(&error));
            None
        }
    }
}
