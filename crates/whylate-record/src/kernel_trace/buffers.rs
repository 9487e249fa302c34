//! One private tracefs instance: opened with its events on, and its pages read by polling.
//!
//! The kernel refuses, or takes less than was asked for: what it lacks is a fact of the trace, what
//! makes it useless is a reason. The instance goes with its guard.

use whylate_host::guard::TraceInstance;
use whylate_host::journal::Journal;
use whylate_model::event::Event;
use whylate_model::run::TraceFacts;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Ticks};
use whylate_sys::SysError;
use whylate_sys::tracefs::{RawPipe, Tracefs};
use whylate_trace::{Decoder, Missed, format::EventFormat, page::PageLayout};

use super::NoTrace;

/// Buffer of CPUs that are not traced.
const IDLE_BUFFER_KIB: u32 = 4;
/// Pages read from one CPU in one turn: more would keep the recording from its other work.
const PAGES_A_TURN: usize = 1024;
/// Pages of one CPU that are thrown away at once: the largest buffer, of 8 MiB, holds half as many.
const MOST_DISCARDED: usize = 4096;
/// What a private instance needs.
const NEEDS: &str = "run as root (CAP_SYS_ADMIN); a locked-down kernel may still refuse";

/// The trace clock that stamps with the counter itself. Only x86-64 has one; elsewhere the trace is
/// refused rather than stamped by a clock that would have to be converted.
pub(crate) const TICK_CLOCK: &str = "x86-tsc";

/// The kernel's trace files, where they stamp by the counter and name threads as this process does.
pub(crate) fn tracefs_on_the_counter() -> Result<Tracefs, NoTrace> {
    let tracefs = Tracefs::open().map_err(|error| no_trace(&error, String::new()))?;
    let clocks = tracefs.read("trace_clock").map_err(cannot("read trace_clock"))?;
    if !clocks.split(['[', ']', ' ', '\n']).any(|clock| clock == TICK_CLOCK) {
        return Err(NoTrace {
            reason: format!(
                "this kernel has no trace clock {TICK_CLOCK} (it has {})",
                clocks.trim()
            ),
            remedy: "boot a kernel with that clock; until then causes are inferred without a trace"
                .to_owned(),
        });
    }
    if !whylate_sys::namespace::is_first_of_pids() {
        return Err(NoTrace {
            reason: "this process is in a PID namespace of its own, and the kernel's trace has \
                     other thread ids"
                .to_owned(),
            remedy: "start it in the host's namespace (docker run --pid=host)".to_owned(),
        });
    }
    Ok(tracefs)
}

/// What an instance is opened with.
pub(crate) struct Opening<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) tracefs: &'a Tracefs,
    /// All CPUs of the machine.
    pub(crate) online: &'a [CpuId],
    /// Tells several instances of one process apart.
    pub(crate) tag: &'a str,
    /// CPUs whose events are recorded.
    pub(crate) traced: &'a [CpuId],
    /// The buffer of each of them.
    pub(crate) buffer_kib: u32,
}

/// An event that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `sched`, `net`, ...
    pub(crate) system: &'static str,
    /// Its name.
    pub(crate) event: &'static str,
    /// The kernel's filter, where not all are.
    pub(crate) filter: Option<String>,
}

impl Wanted {
    /// All events of these kinds.
    pub(crate) fn all(of: &[(&'static str, &'static str)]) -> Vec<Self> {
        of.iter().map(|&(system, event)| Self { system, event, filter: None }).collect()
    }
}

/// An instance and the buffers of its CPUs.
pub(crate) struct Side {
    // Dropped in this order: an instance cannot be removed while one of its files is open.
    pub(crate) sources: Vec<Source>,
    pub(crate) decoder: Decoder,
    pub(crate) instance: TraceInstance,
    /// Filters with which its events could not be begun: these are off.
    pub(crate) refused: Refused,
}

/// Filters that the kernel refused: how many, and the first of them with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Refused {
    count: u64,
    first: Option<String>,
}

impl Refused {
    /// The filter of these events was refused for this reason.
    pub(crate) fn add(&mut self, event: &str, why: &dyn std::fmt::Display) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{event}: {why}"));
    }

    /// For the run, where there is one: what is not seen because of it.
    pub(crate) fn warning(&self, unseen: &str) -> Option<Warning> {
        let first = self.first.as_deref()?;
        let reason = format!(
            "the kernel refused {} filters of its trace, the first of {first}; fewer threads make \
             shorter filters",
            self.count
        );
        Some(Warning::PartLeftOut { part: unseen.to_owned(), reason })
    }
}

/// The trace buffer of one CPU.
pub(crate) struct Source {
    pub(crate) cpu: CpuId,
    pub(crate) pipe: RawPipe,
    /// Stamp of the last event read.
    pub(crate) seen: Ticks,
}

impl Opening<'_> {
    /// Opens it with these events on. Which of them are, and which are not to be had, goes into
    /// `facts`.
    pub(crate) fn side(&self, wanted: &[Wanted], facts: &mut TraceFacts) -> Result<Side, NoTrace> {
        let (tracefs, online) = (self.tracefs, self.online);
        let guard = TraceInstance::create(self.journal, tracefs, self.tag)
            .map_err(|error| NoTrace { reason: error.to_string(), remedy: NEEDS.to_owned() })?;
        let instance = guard.instance();
        let write = |file: &str, value: &str| {
            instance.write(file, value).map_err(cannot(&format!("write {value} to {file}")))
        };
        write("tracing_on", "0")?;
        write("trace_clock", TICK_CLOCK)?;
        for (file, kib) in sizes(self.traced, online, self.buffer_kib) {
            write(&file, &kib.to_string())?;
        }
        write("tracing_cpumask", &mask(self.traced, online))?;
        let header =
            instance.read("events/header_page").map_err(cannot("read events/header_page"))?;
        let layout = PageLayout::parse(&header).map_err(|error| unknown_format(&error))?;
        let mut decoder = Decoder::new(layout);
        let mut refused = Refused::default();
        for Wanted { system, event, filter } in wanted {
            let folder = format!("events/{system}/{event}");
            let name = format!("{system}:{event}");
            // What is to be filtered and cannot be would be of every process.
            let mut filtered = || {
                let Some(words) = filter else { return true };
                let done = instance.write(&format!("{folder}/filter"), words);
                done.inspect_err(|error| refused.add(&name, error)).is_ok()
            };
            let on = tracefs
                .read(&format!("{folder}/format"))
                .ok()
                .and_then(|text| EventFormat::parse(&text).ok())
                .is_some_and(|format| decoder.register(system, &format).is_ok())
                && filtered()
                && instance.write(&format!("{folder}/enable"), "1").is_ok();
            let list = if on { &mut facts.events } else { &mut facts.missing };
            if !list.contains(&name) {
                list.push(name);
            }
        }
        let sources = self
            .traced
            .iter()
            .map(|cpu| {
                let pipe = instance.raw_pipe(*cpu).map_err(cannot("open trace_pipe_raw"))?;
                Ok(Source { cpu: *cpu, pipe, seen: Ticks(0) })
            })
            .collect::<Result<_, NoTrace>>()?;
        write("tracing_on", "1")?;
        Ok(Side { sources, decoder, instance: guard, refused })
    }
}

impl Side {
    /// Bytes of its largest page.
    pub(crate) fn page_bytes(&self) -> usize {
        let largest = self.sources.iter().map(|source| source.pipe.page_bytes()).max();
        largest.unwrap_or(0).max(self.decoder.page_size())
    }

    /// Stops or continues recording events.
    pub(crate) fn switch(&self, on: bool) {
        // An instance that cannot be switched off makes a comparison show no difference.
        let _ = self.instance.instance().write("tracing_on", if on { "1" } else { "0" });
    }

    /// Throws away what was recorded so far: of each CPU a bounded number of pages, more than its buffer
    /// holds. A CPU that records faster than it is emptied keeps the rest.
    pub(crate) fn discard(&mut self, page: &mut [u8]) {
        for source in &mut self.sources {
            thrown_away(|| matches!(source.pipe.read(page), Ok(Some(_))));
        }
    }
}

/// Throws pages away for as long as `read` finds one and no more than [`MOST_DISCARDED`]; how many.
fn thrown_away(mut read: impl FnMut() -> bool) -> usize {
    (0..MOST_DISCARDED).take_while(|_| read()).count()
}

/// What came out of one CPU's buffer.
pub(crate) struct Drained {
    pub(crate) lost: Lost,
    /// There was no more.
    pub(crate) exhausted: bool,
}

/// Events that the kernel lost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lost {
    /// At least so many.
    pub(crate) events: u64,
    /// At least once the kernel gave no number.
    pub(crate) unknown: bool,
}

impl Lost {
    pub(crate) fn add(&mut self, other: Self) {
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

/// Reads what there is of one CPU, as far as a turn goes.
pub(crate) fn drain(
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

fn cannot(what: &str) -> impl Fn(SysError) -> NoTrace + use<'_> {
    move |error| no_trace(&error, format!("cannot {what} of the kernel's trace: "))
}

/// Why there is no trace, with what to do about it once.
fn no_trace(error: &SysError, before: String) -> NoTrace {
    let (reason, advice) = error.parted();
    let remedy = if advice.is_empty() { NEEDS.to_owned() } else { advice };
    NoTrace { reason: before + &reason, remedy }
}

fn unknown_format(error: &dyn std::fmt::Display) -> NoTrace {
    NoTrace {
        reason: format!("the kernel's trace pages have a layout that is not understood: {error}"),
        remedy: "report it with the file events/header_page".to_owned(),
    }
}

/// What to write where, so that the CPUs that are traced have buffers of `kib` and the others next to
/// none: all at once what most of them get, and then the rest. Each writing waits for the kernel to have
/// seen every CPU.
fn sizes(traced: &[CpuId], online: &[CpuId], kib: u32) -> Vec<(String, u32)> {
    let others = online.iter().filter(|cpu| !traced.contains(cpu)).collect::<Vec<_>>();
    let (usual, rest, size): (u32, Vec<&CpuId>, u32) = if others.len() < traced.len() {
        (kib, others, IDLE_BUFFER_KIB)
    } else {
        (IDLE_BUFFER_KIB, traced.iter().collect(), kib)
    };
    let rest = rest.into_iter().map(|cpu| (format!("per_cpu/cpu{cpu}/buffer_size_kb"), size));
    std::iter::once(("buffer_size_kb".to_owned(), usual)).chain(rest).collect()
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
    use whylate_sys::tracefs::TracefsRefusal;

    use super::*;

    #[test]
    fn what_is_thrown_away_ends_with_the_last_page_or_where_new_ones_come_without_end() {
        let mut left = 5;
        let thrown = thrown_away(|| {
            left -= 1;
            left >= 0
        });
        assert_eq!((thrown, left), (5, -1));
        assert_eq!(thrown_away(|| true), MOST_DISCARDED);
    }

    #[test]
    fn who_may_not_trace_is_told_once_to_be_root() {
        let path = std::path::PathBuf::from("/sys/kernel/tracing");
        let errno = rustix::io::Errno::ACCESS;
        let denied = SysError::Tracefs(TracefsRefusal::Denied { path, errno });
        let told = crate::RecordError::NotWatched(no_trace(&denied, String::new())).to_string();
        assert_eq!(
            told,
            "cannot watch: cannot open tracefs: /sys/kernel/tracing: Permission denied (os error 13); run \
             as root (CAP_SYS_ADMIN), or let your group read and write it: mount -o \
             remount,gid=GROUP,mode=770 /sys/kernel/tracing"
        );
    }

    #[test]
    fn refused_filters_are_counted_and_the_first_is_told_with_its_reason() {
        let mut refused = Refused::default();
        assert_eq!(refused.warning("calls"), None);
        refused.add("syscalls:sys_enter_sendto", &"Invalid argument");
        refused.add("syscalls:sys_enter_write", &"No space left");
        let Some(Warning::PartLeftOut { part, reason }) = refused.warning("calls") else {
            panic!("{refused:?}")
        };
        assert_eq!(part, "calls");
        let words =
            "refused 2 filters of its trace, the first of syscalls:sys_enter_sendto: Invalid";
        assert!(reason.contains(words), "{reason}");
    }

    #[test]
    fn buffers_get_their_sizes_by_as_few_writings_as_there_are_cpus_that_differ() {
        let cpus = |ids: &[u32]| ids.iter().copied().map(CpuId).collect::<Vec<_>>();
        let told = |traced: &[u32], online: &[u32]| -> Vec<(String, u32)> {
            sizes(&cpus(traced), &cpus(online), 512)
        };
        let all = |kib| ("buffer_size_kb".to_owned(), kib);
        let one = |cpu: u32, kib| (format!("per_cpu/cpu{cpu}/buffer_size_kb"), kib);
        assert_eq!(told(&[0, 1], &[0, 1]), [all(512)]);
        assert_eq!(told(&[1], &[0, 1]), [all(4), one(1, 512)]);
        assert_eq!(told(&[1, 2, 3], &[0, 1, 2, 3]), [all(512), one(0, 4)]);
        assert_eq!(told(&[2, 3], &[0, 1, 2, 3]), [all(4), one(2, 512), one(3, 512)]);
    }

    #[test]
    fn a_mask_has_its_highest_group_first() {
        let cpus: Vec<CpuId> = [1, 33, 64].map(CpuId).to_vec();
        assert_eq!(mask(&cpus, &cpus), "00000001,00000002,00000002");
        assert_eq!(mask(&[CpuId(0)], &[CpuId(0), CpuId(1)]), "00000001");
    }
}
