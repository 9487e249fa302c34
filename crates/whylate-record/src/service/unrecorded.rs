//! A service without a run directory: the clock, the guard, and what was added up.

use whylate_clock::{Calibrator, HardwareCounter, KernelRaw};
use whylate_host::guard::CpuDmaLatency;
use whylate_model::Hertz;
use whylate_model::warning::Warning;

use super::threads::{Look, attend, crew};
use super::{Attended, Circumstances, Crew, Pace, Taker, resolution_ns};
use crate::RecordError;
use crate::progress::Progress;
use crate::workbench::hold_idle_states;

/// What a service stands on that is not recorded.
pub(crate) struct Unrecorded {
    counter: HardwareCounter,
    /// The counter's rate, as it is known at the start.
    pub(crate) rate: Hertz,
    calibrator: Calibrator<HardwareCounter, KernelRaw>,
    warnings: Vec<Warning>,
    _idle_states: Option<CpuDmaLatency>,
}

impl Unrecorded {
    /// Opens the clock, and keeps CPUs from sleeping deeply where that is wanted.
    ///
    /// # Errors
    /// The clock cannot be used.
    pub(crate) fn set_up(hold: bool) -> Result<Self, RecordError> {
        let counter = HardwareCounter::open()?;
        let mut calibrator = Calibrator::of_this_host(counter);
        let rate = calibrator.quick()?.hz;
        let mut warnings = Vec::new();
        let idle_states = hold_idle_states(hold, &mut warnings);
        Ok(Self { counter, rate, calibrator, warnings, _idle_states: idle_states })
    }

    /// A crew that has so many histograms open at once.
    pub(crate) fn crew<M, T>(
        &self,
        open: usize,
        touched: impl Fn() -> T,
    ) -> (Crew<M, T>, Taker<M, T>) {
        crew((self.counter, self.rate), None, (open, touched))
    }

    /// Has a thread of this name do `work`, and takes in what it tells until it ends; under which
    /// circumstances that was.
    ///
    /// # Errors
    /// There is no thread to be had, what `work` says, or the clock did not move.
    pub(crate) fn attend<S: Attended>(
        mut self,
        (service, taker): (&mut S, &Taker<S::Told, S::Times>),
        thread: (&str, Pace),
        work: impl FnOnce() -> Result<(), RecordError> + Send,
        progress: &mut dyn Progress,
    ) -> Result<Circumstances, RecordError> {
        attend(thread, work, |look| {
            if look == Look::Thorough {
                self.calibrator.sample();
            }
            service.take(taker, None, progress);
        })?;
        let clock = self.calibrator.finish()?;
        self.warnings.extend(clock.warnings());
        Ok(Circumstances {
            bound_ppm: clock.bound_ppm,
            resolution_ns: resolution_ns(&mut self.counter, self.rate),
            warnings: self.warnings,
            over: true,
        })
    }
}
