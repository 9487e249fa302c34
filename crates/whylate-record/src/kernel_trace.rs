//! Evidence A: the kernel's own events, on the counter that the gaps are stamped with.
//!
//! Two private tracefs instances: one holds what happens on the measured CPUs, the other what any
//! CPU sends to another. Both are read by polling from the recording's own thread: a blocking
//! reader wakes up for each page and doubles the noise it looks for.

pub(crate) mod buffers;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use whylate_cause::Attributor;
use whylate_host::guard::Guard;
use whylate_host::journal::Journal;
use whylate_model::event::Event;
use whylate_model::run::{TraceFacts, TraceLoss};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Ticks};

use buffers::{Lost, Opening, Side, TICK_CLOCK, Wanted, drain, tracefs_on_the_counter};

/// Recordings of gaps and of sets of threads empty their buffers so often: it is the length of their turns.
pub(crate) const EMPTIED_EVERY: Duration = Duration::from_millis(20);
/// Buffer of each measured CPU. At 60 bytes an event it holds 70 000: as it is emptied, 3.5 million a
/// second.
const BUFFER_KIB: u32 = 4096;
/// Buffer of each CPU whose sends are recorded, which are all CPUs of the machine: at 60 bytes an
/// event 8 000, or 400 000 a second.
const SENDERS_BUFFER_KIB: u32 = 512;
/// What is still on its way when a measurement has ended has come after this.
pub(crate) const LAST_EVENTS: Duration = Duration::from_millis(5);
/// Events stamped later than this before a poll may still be on their way into the buffer.
const IN_FLIGHT: Nanos = Nanos(1_000_000);

/// Why there is no kernel trace, and what would make it available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoTrace {
    /// Why.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

/// What the reader must know of what the trace lost, and of what did not fit.
pub(crate) fn warnings(trace: &TraceFacts) -> Vec<Warning> {
    let lost = trace.losses.iter().map(|loss| Warning::TraceLost {
        cpu: loss.cpu,
        events: loss.exactly.then_some(loss.events),
    });
    let mut warnings: Vec<Warning> = lost.collect();
    if trace.shed.sends + trace.shed.gaps_forced + trace.lost_elsewhere > 0 {
        warnings.push(Warning::CausesIncomplete {
            gaps_forced: trace.shed.gaps_forced,
            sends: trace.shed.sends + trace.lost_elsewhere,
        });
    }
    warnings
}

impl From<NoTrace> for Warning {
    fn from(NoTrace { reason, remedy }: NoTrace) -> Self {
        Self::NoKernelTrace { reason, remedy }
    }
}

/// Where an event was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// On a measured CPU, by the instance that looks at those.
    Measured,
    /// On any CPU, by the instance that looks for senders.
    Elsewhere,
}

/// A running kernel trace.
pub struct KernelTrace {
    measured: Side,
    elsewhere: Option<Side>,
    /// Why senders are not recorded.
    without_senders: Option<NoTrace>,
    facts: TraceFacts,
    lost: BTreeMap<CpuId, Lost>,
    page: Vec<u8>,
}

impl KernelTrace {
    /// Opens both instances, with their events on. `online` are all CPUs of the machine.
    ///
    /// # Errors
    /// Why there is no trace: no rights, or a kernel that offers none.
    pub fn start(journal: &Journal, measured: &[CpuId], online: &[CpuId]) -> Result<Self, NoTrace> {
        let tracefs = tracefs_on_the_counter()?;
        let mut facts = TraceFacts { clock: TICK_CLOCK.to_owned(), ..TraceFacts::default() };
        let opening = |tag, traced, buffer_kib| Opening {
            journal,
            tracefs: &tracefs,
            online,
            tag,
            traced,
            buffer_kib,
        };
        let here = Wanted::all(whylate_trace::wanted_on_measured());
        let measured = opening("gaps", measured, BUFFER_KIB).side(&here, &mut facts)?;
        let everywhere = Wanted::all(whylate_trace::wanted_elsewhere());
        let elsewhere = opening("senders", online, SENDERS_BUFFER_KIB);
        let elsewhere = elsewhere.side(&everywhere, &mut facts);
        let (elsewhere, without_senders) = match elsewhere {
            Ok(side) => (Some(side), None),
            Err(no) => (None, Some(no)),
        };
        let page = vec![0; measured.page_bytes()];
        Ok(Self { measured, elsewhere, without_senders, facts, lost: BTreeMap::new(), page })
    }

    /// Gives every event recorded so far to the attribution, and says up to which tick each CPU is
    /// complete. `now` is a reading made before the call. `keep` sees each event once.
    pub fn poll(
        &mut self,
        now: Ticks,
        rate: Hertz,
        attributor: &mut Attributor,
        mut keep: impl FnMut(&Event),
    ) {
        let complete = Ticks(now.0.saturating_sub(IN_FLIGHT.to_ticks(rate).0));
        let measured = Some((Origin::Measured, &mut self.measured));
        let elsewhere = self.elsewhere.as_mut().map(|side| (Origin::Elsewhere, side));
        for (origin, side) in [measured, elsewhere].into_iter().flatten() {
            for source in &mut side.sources {
                let mut events = Vec::new();
                let drained = drain(source, &side.decoder, &mut self.page, &mut events);
                events.iter().for_each(&mut keep);
                let (count, last) = (events.len() as u64, events.last().map(|event| event.ticks));
                match origin {
                    Origin::Measured => {
                        self.facts.events_measured += count;
                        attributor.push_events(source.cpu, events);
                    }
                    Origin::Elsewhere => {
                        self.facts.events_elsewhere += count;
                        attributor.push_sends(events);
                    }
                }
                match origin {
                    _ if drained.lost.events == 0 => {}
                    Origin::Measured => {
                        self.facts.lost += drained.lost.events;
                        self.lost.entry(source.cpu).or_default().add(drained.lost);
                        attributor.events_lost(source.cpu, source.seen, now);
                    }
                    Origin::Elsewhere => self.facts.lost_elsewhere += drained.lost.events,
                }
                source.seen = last.unwrap_or(source.seen);
                if drained.exhausted {
                    match origin {
                        Origin::Measured => attributor.events_complete(source.cpu, complete),
                        Origin::Elsewhere => attributor.sends_complete(source.cpu, complete),
                    }
                }
            }
        }
    }

    /// Stops or continues recording events, for comparing a run with and without.
    pub fn switch(&self, on: bool) {
        for side in [Some(&self.measured), self.elsewhere.as_ref()].into_iter().flatten() {
            side.switch(on);
        }
    }

    /// Why senders of interrupts and wake-ups are not recorded, where they are not.
    #[must_use]
    pub fn without_senders(&self) -> Option<&NoTrace> {
        self.without_senders.as_ref()
    }

    /// What the trace was so far.
    #[must_use]
    pub fn facts(&self) -> TraceFacts {
        let losses = self.lost.iter().map(|(cpu, lost)| TraceLoss {
            cpu: *cpu,
            events: lost.events,
            exactly: !lost.unknown,
        });
        TraceFacts { losses: losses.collect(), ..self.facts.clone() }
    }

    /// Throws away what was recorded so far.
    pub fn discard(&mut self) {
        for side in [Some(&mut self.measured), self.elsewhere.as_mut()].into_iter().flatten() {
            side.discard(&mut self.page);
        }
    }

    /// Ends the trace, removes both instances, and says what could not be removed.
    #[must_use]
    pub fn finish(self) -> (TraceFacts, Vec<Warning>) {
        let facts = self.facts();
        (facts, self.remove())
    }

    fn remove(self) -> Vec<Warning> {
        let mut left = Vec::new();
        for mut side in [Some(self.measured), self.elsewhere].into_iter().flatten() {
            // An instance cannot be removed while one of its files is open.
            side.sources.clear();
            left.extend(side.instance.restore());
        }
        left
    }
}

/// Ends the trace, if there is one, as [`KernelTrace::finish`] does, and does `work` meanwhile: the kernel
/// waits for its CPUs many times before an instance is gone. Nothing may be measured any more.
pub(crate) fn finish_beside(
    trace: Option<KernelTrace>,
    work: impl FnOnce(),
) -> (Option<TraceFacts>, Vec<Warning>) {
    let Some(trace) = trace else {
        work();
        return (None, Vec::new());
    };
    let facts = trace.facts();
    let left = thread::scope(|scope| {
        let removing = thread::Builder::new().name("whylate-trace".to_owned());
        let removing = removing.spawn_scoped(scope, || trace.remove());
        work();
        // Without a thread the guards have removed them, and told on standard error what they could not.
        removing.map_or_else(|_| Vec::new(), |of| of.join().unwrap_or_else(|of| resume_unwind(of)))
    });
    (Some(facts), left)
}
