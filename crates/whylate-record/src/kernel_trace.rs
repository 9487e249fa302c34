//! Evidence A: the kernel's own events, on the counter that the gaps are stamped with.
//!
//! Two private tracefs instances: one holds what happens on the measured CPUs, the other what any
//! CPU sends to another. Both are read by polling from the recording's own thread: a blocking
//! reader wakes up for each page and doubles the noise it looks for.

use std::collections::BTreeMap;

use whylate_cause::Attributor;
use whylate_host::guard::{Guard, TraceInstance};
use whylate_host::journal::Journal;
use whylate_model::event::Event;
use whylate_model::run::{TraceFacts, TraceLoss};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Ticks};
use whylate_sys::tracefs::{RawPipe, Tracefs};
use whylate_trace::{Decoder, Missed, format::EventFormat, page::PageLayout};

/// Buffer of each measured CPU. At 60 bytes an event it holds 70 000; it is emptied every 20 ms.
const BUFFER_KIB: u32 = 4096;
/// Buffer of each CPU whose sends are recorded, which are all CPUs of the machine: at 60 bytes an
/// event 8 000, or 400 000 a second.
const SENDERS_BUFFER_KIB: u32 = 512;
/// Buffer of CPUs that are not traced.
const IDLE_BUFFER_KIB: u32 = 4;
/// Pages read from one CPU in one turn: more would keep the recording from its other work.
const PAGES_A_TURN: usize = 1024;
/// Events stamped later than this before a poll may still be on their way into the buffer.
const IN_FLIGHT: Nanos = Nanos(1_000_000);
/// What a private instance needs.
const NEEDS: &str = "run as root (CAP_SYS_ADMIN); a locked-down kernel may still refuse";

/// The trace clock that stamps with the counter itself. Only x86-64 has one; elsewhere the trace is
/// refused rather than stamped by a clock that would have to be converted.
const TICK_CLOCK: &str = "x86-tsc";

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

struct Side {
    // Dropped in this order: an instance cannot be removed while one of its files is open.
    sources: Vec<Source>,
    origin: Origin,
    decoder: Decoder,
    instance: TraceInstance,
}

/// The trace buffer of one CPU.
struct Source {
    cpu: CpuId,
    pipe: RawPipe,
    /// Stamp of the last event read.
    seen: Ticks,
}

impl KernelTrace {
    /// Opens both instances, with their events on. `online` are all CPUs of the machine.
    pub fn start(journal: &Journal, measured: &[CpuId], online: &[CpuId]) -> Result<Self, NoTrace> {
        let tracefs = Tracefs::open().map_err(|error| NoTrace {
            reason: error.to_string(),
            remedy: "run as root (CAP_SYS_ADMIN), or mount tracefs at /sys/kernel/tracing and let \
                     your group read and write it (mount -o remount,gid=GROUP,mode=770)"
                .to_owned(),
        })?;
        let clocks = tracefs.read("trace_clock").map_err(cannot("read trace_clock"))?;
        if !clocks.split(['[', ']', ' ', '\n']).any(|clock| clock == TICK_CLOCK) {
            return Err(NoTrace {
                reason: format!(
                    "this kernel has no trace clock {TICK_CLOCK} (it has {})",
                    clocks.trim()
                ),
                remedy: "boot a kernel with that clock; until then causes come from evidence B"
                    .to_owned(),
            });
        }
        if !whylate_sys::namespace::is_first_of_pids() {
            return Err(NoTrace {
                reason: "this process is in a PID namespace of its own, and the kernel's trace \
                         has other thread ids"
                    .to_owned(),
                remedy: "start it in the host's namespace (docker run --pid=host)".to_owned(),
            });
        }
        let mut facts = TraceFacts { clock: TICK_CLOCK.to_owned(), ..TraceFacts::default() };
        let here = whylate_trace::wanted_on_measured();
        let opening = Opening { journal, tracefs: &tracefs, online };
        let measured = opening.side(Origin::Measured, "gaps", measured, here, &mut facts)?;
        let everywhere = whylate_trace::wanted_elsewhere();
        let elsewhere = opening.side(Origin::Elsewhere, "senders", online, everywhere, &mut facts);
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
        for side in [Some(&mut self.measured), self.elsewhere.as_mut()].into_iter().flatten() {
            for source in &mut side.sources {
                let mut events = Vec::new();
                let drained = drain(source, &side.decoder, &mut self.page, &mut events);
                events.iter().for_each(&mut keep);
                let (count, last) = (events.len() as u64, events.last().map(|event| event.ticks));
                match side.origin {
                    Origin::Measured => {
                        self.facts.events_measured += count;
                        attributor.push_events(source.cpu, events);
                    }
                    Origin::Elsewhere => {
                        self.facts.events_elsewhere += count;
                        attributor.push_sends(events);
                    }
                }
                match side.origin {
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
                    match side.origin {
                        Origin::Measured => attributor.events_complete(source.cpu, complete),
                        Origin::Elsewhere => attributor.sends_complete(source.cpu, complete),
                    }
                }
            }
        }
    }

    /// Stops or continues recording events, for comparing a run with and without.
    pub fn switch(&self, on: bool) {
        let value = if on { "1" } else { "0" };
        for side in [Some(&self.measured), self.elsewhere.as_ref()].into_iter().flatten() {
            // An instance that cannot be switched off makes the comparison show no difference.
            let _ = side.instance.instance().write("tracing_on", value);
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
            for source in &mut side.sources {
                while let Ok(Some(_)) = source.pipe.read(&mut self.page) {}
            }
        }
    }

    /// Ends the trace, removes both instances, and says what could not be removed.
    #[must_use]
    pub fn finish(self) -> (TraceFacts, Vec<Warning>) {
        let facts = self.facts();
        let mut left = Vec::new();
        for mut side in [Some(self.measured), self.elsewhere].into_iter().flatten() {
            // An instance cannot be removed while one of its files is open.
            side.sources.clear();
            left.extend(side.instance.restore());
        }
        (facts, left)
    }
}

/// Events that the kernel lost.
#[derive(Debug, Clone, Copy, Default)]
struct Lost {
    /// At least so many.
    events: u64,
    /// At least once the kernel gave no number.
    unknown: bool,
}

impl Lost {
    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.unknown |= other.unknown;
    }

    fn of(missed: Missed) -> Self {
        match missed {
            Missed::None => Self::default(),
            Missed::Count(events) => Self { events, unknown: false },
            Missed::Unknown => Self { events: 1, unknown: true },
        }
    }
}

/// What both sides are opened with.
struct Opening<'a> {
    journal: &'a Journal,
    tracefs: &'a Tracefs,
    online: &'a [CpuId],
}

impl Opening<'_> {
    fn side(
        &self,
        origin: Origin,
        tag: &str,
        traced: &[CpuId],
        wanted: &[(&str, &str)],
        facts: &mut TraceFacts,
    ) -> Result<Side, NoTrace> {
        let (tracefs, online) = (self.tracefs, self.online);
        let guard = TraceInstance::create(self.journal, tracefs, tag)
            .map_err(|error| NoTrace { reason: error.to_string(), remedy: NEEDS.to_owned() })?;
        let instance = guard.instance();
        let write = |file: &str, value: &str| {
            instance.write(file, value).map_err(cannot(&format!("write {value} to {file}")))
        };
        write("tracing_on", "0")?;
        write("trace_clock", TICK_CLOCK)?;
        write("buffer_size_kb", &IDLE_BUFFER_KIB.to_string())?;
        let buffer_kib = match origin {
            Origin::Measured => BUFFER_KIB,
            Origin::Elsewhere => SENDERS_BUFFER_KIB,
        };
        for cpu in traced {
            write(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &buffer_kib.to_string())?;
        }
        write("tracing_cpumask", &mask(traced, online))?;
        let header =
            instance.read("events/header_page").map_err(cannot("read events/header_page"))?;
        let layout = PageLayout::parse(&header).map_err(|error| unknown_format(&error))?;
        let mut decoder = Decoder::new(layout);
        for (system, event) in wanted {
            let folder = format!("events/{system}/{event}");
            let name = format!("{system}:{event}");
            let on = tracefs
                .read(&format!("{folder}/format"))
                .ok()
                .and_then(|text| EventFormat::parse(&text).ok())
                .is_some_and(|format| decoder.register(system, &format).is_ok())
                && instance.write(&format!("{folder}/enable"), "1").is_ok();
            let list = if on { &mut facts.events } else { &mut facts.missing };
            if !list.contains(&name) {
                list.push(name);
            }
        }
        let sources = traced
            .iter()
            .map(|cpu| {
                let pipe = instance.raw_pipe(*cpu).map_err(cannot("open trace_pipe_raw"))?;
                Ok(Source { cpu: *cpu, pipe, seen: Ticks(0) })
            })
            .collect::<Result<_, NoTrace>>()?;
        write("tracing_on", "1")?;
        Ok(Side { sources, origin, decoder, instance: guard })
    }
}

impl Side {
    fn page_bytes(&self) -> usize {
        let largest = self.sources.iter().map(|source| source.pipe.page_bytes()).max();
        largest.unwrap_or(0).max(self.decoder.page_size())
    }
}

struct Drained {
    lost: Lost,
    exhausted: bool,
}

fn drain(
    source: &mut Source,
    decoder: &Decoder,
    page: &mut [u8],
    events: &mut Vec<Event>,
) -> Drained {
    let mut drained = Drained { lost: Lost::default(), exhausted: false };
    for _ in 0..PAGES_A_TURN {
        match source.pipe.read(page) {
            Ok(Some(bytes)) => match decoder.decode(&page[..bytes], source.cpu, events) {
                Ok(summary) => drained.lost.add(Lost::of(summary.missed)),
                // A page that cannot be read is lost events, number unknown.
                Err(_) => drained.lost.add(Lost::of(Missed::Unknown)),
            },
            Ok(None) => {
                drained.exhausted = true;
                break;
            }
            Err(_) => break,
        }
    }
    drained
}

fn cannot<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> NoTrace + use<'_, E> {
    move |error| NoTrace {
        reason: format!("cannot {what} of the kernel's trace: {error}"),
        remedy: NEEDS.to_owned(),
    }
}

fn unknown_format(error: &dyn std::fmt::Display) -> NoTrace {
    NoTrace {
        reason: format!("the kernel's trace pages have a layout that is not understood: {error}"),
        remedy: "report it with the file events/header_page".to_owned(),
    }
}

/// The kernel's mask notation: groups of 32 bits in hex, highest first.
fn mask(cpus: &[CpuId], online: &[CpuId]) -> String {
    let highest = online.iter().chain(cpus).map(|cpu| cpu.0).max().unwrap_or(0);
    let mut groups = vec![0u32; highest as usize / 32 + 1];
    for cpu in cpus {
        groups[cpu.0 as usize / 32] |= 1 << (cpu.0 % 32);
    }
    let words: Vec<String> = groups.iter().rev().map(|group| format!("{group:08x}")).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_its_highest_group_first() {
        let cpus: Vec<CpuId> = [1, 33, 64].map(CpuId).to_vec();
        assert_eq!(mask(&cpus, &cpus), "00000001,00000002,00000002");
        assert_eq!(mask(&[CpuId(0)], &[CpuId(0), CpuId(1)]), "00000001");
    }
}
