//! The kernel of this machine: what it prints of its own trace, beside what is decoded from it.
//!
//! Skipped where tracefs cannot be reached. The instances made here are removed again.

use std::fmt::Display;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use whylate_model::CpuId;
use whylate_model::event::Event;
use whylate_suite::{absent, missing};
use whylate_sys::affinity;
use whylate_sys::tracefs::{Instance, Tracefs};
use whylate_trace::format::EventFormat;
use whylate_trace::page::PageLayout;
use whylate_trace::{
    Decoder, Missed, PageSummary, TraceError, wanted_elsewhere, wanted_on_measured,
};

use crate::rendering::assert_same;

/// A clock whose stamps the kernel prints as they are; those of nanoseconds it prints rounded.
const CLOCK: &str = if cfg!(target_arch = "x86_64") { "x86-tsc" } else { "counter" };

/// The file of an instance that sets the size of its sub-buffers.
const SUB_BUFFERS: &str = "buffer_subbuf_size_kb";

/// Reports a test as skipped; with `WHYLATE_TESTS_REQUIRE=everything` that is a failure.
fn skip<T>(reason: &impl Display) -> Option<T> {
    missing(reason);
    None
}

/// The trace files; only who may write there may make an instance.
fn tracefs() -> Option<Tracefs> {
    Tracefs::open().map_or_else(|error| skip(&error), Some)
}

/// A trace instance with all wanted events, which is removed in the end.
struct Trace {
    tracefs: Tracefs,
    instance: Instance,
    decoder: Decoder,
    cpus: Vec<CpuId>,
}

impl Trace {
    /// `None` with a printed reason where the kernel offers no such instance.
    fn start(name: &str, settings: &[(&str, &str)]) -> Option<Self> {
        let tracefs = tracefs()?;
        let name = format!("whylate-trace-test-{name}-{}", std::process::id());
        let instance = match tracefs.create_instance(&name) {
            Ok(instance) => instance,
            Err(error) => return skip(&error),
        };
        let cpus = affinity::get();
        // From here on dropping it removes the instance.
        let layout = PageLayout::parse(&tracefs.read("events/header_page").unwrap()).unwrap();
        let mut trace = Self { tracefs, instance, decoder: Decoder::new(layout), cpus };
        let common = [("tracing_on", "0"), ("trace_clock", CLOCK), ("options/fields", "1")];
        for (file, value) in common.iter().chain(settings) {
            if let Err(error) = trace.instance.write(file, value) {
                return skip(&error);
            }
        }
        // Only the instance's own file knows the size of the instance's sub-buffers.
        let header = trace.instance.read("events/header_page").unwrap();
        trace.decoder = Decoder::new(PageLayout::parse(&header).unwrap());
        let mut wanted: Vec<_> = wanted_on_measured().iter().chain(wanted_elsewhere()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for (system, event) in wanted {
            let folder = format!("events/{system}/{event}");
            let Ok(text) = trace.tracefs.read(&format!("{folder}/format")) else { continue };
            let format = EventFormat::parse(&text).unwrap();
            trace.decoder.register(system, &format).unwrap();
            trace.instance.write(&format!("{folder}/enable"), "1").unwrap();
        }
        Some(trace)
    }

    /// Records while `work` runs. What was being written in the end is whole then.
    fn record(&self, work: impl FnOnce()) {
        self.instance.write("tracing_on", "1").unwrap();
        work();
        self.instance.write("tracing_on", "0").unwrap();
        // Nothing interrupts a writer for a thread: where one has run, those before it are through.
        thread::scope(|scope| {
            let pass = || self.cpus.iter().for_each(|cpu| affinity::set(&[*cpu]).unwrap());
            scope.spawn(pass).join().unwrap();
        });
    }

    /// What the kernel prints of one CPU.
    fn text(&self, cpu: CpuId) -> String {
        self.instance.read(&format!("per_cpu/cpu{cpu}/trace")).unwrap()
    }

    /// All events of one CPU, with the summary of each page.
    fn events(&self, cpu: CpuId) -> Result<(Vec<Event>, Vec<PageSummary>), TraceError> {
        let pipe = self.instance.raw_pipe(cpu).unwrap();
        let (mut events, mut pages) = (Vec::new(), Vec::new());
        let mut page = vec![0; self.decoder.page_size()];
        while let Some(bytes) = pipe.read(&mut page).unwrap() {
            pages.push(self.decoder.decode(&page[..bytes], cpu, &mut events)?);
        }
        Ok((events, pages))
    }

    /// Compares every CPU with what the kernel prints, and returns how many events there were.
    fn compare(&self) -> usize {
        let mut total = 0;
        for cpu in &self.cpus {
            let text = self.text(*cpu);
            let lines: Vec<&str> = text.lines().filter(|line| is_event(line)).collect();
            let (events, pages) = self.events(*cpu).unwrap();
            for (event, line) in events.iter().zip(&lines) {
                assert_same(event, line);
            }
            assert_eq!(events.len(), lines.len(), "on CPU {cpu}");
            assert!(pages.iter().all(|page| page.unknown_events == 0), "{pages:?}");
            assert!(events.is_sorted_by_key(|event| event.ticks), "on CPU {cpu}");
            assert!(pages.iter().all(|page| page.backwards == 0), "{pages:?}");
            total += events.len();
        }
        total
    }

    /// A number from the statistics of a CPU's buffer.
    fn statistic(&self, cpu: CpuId, name: &str) -> u64 {
        let text = self.instance.read(&format!("per_cpu/cpu{cpu}/stats")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap().trim().parse().unwrap()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if let Err(error) = self.tracefs.remove_instance(self.instance.name()) {
            eprintln!("cannot remove the trace instance of this test: {error}");
        }
    }
}

/// Neither a heading nor a note such as `CPU:1 [LOST 12 EVENTS]`.
fn is_event(line: &str) -> bool {
    let note = line.starts_with("CPU:") && line.ends_with(" EVENTS]");
    !(note || line.starts_with('#'))
}

/// Wake-ups, signals, page faults, writes to a disk, and messages, from several threads.
fn work() {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..3 {
                    Command::new("true").status().unwrap();
                    thread::sleep(Duration::from_millis(3));
                }
            });
        }
        scope.spawn(|| {
            let mut file = tempfile();
            for _ in 0..3 {
                file.write_all(&[1; 4096]).unwrap();
                file.sync_all().unwrap();
            }
        });
        scope.spawn(|| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..20 {
                socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
                socket.recv(&mut [0; 8]).unwrap();
                thread::yield_now();
            }
        });
    });
}

fn tempfile() -> std::fs::File {
    // Several tests of this process write at once.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = format!("{}/live-{process}-{number}", env!("CARGO_TARGET_TMPDIR"));
    let file = std::fs::File::create(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

#[test]
fn every_format_of_this_kernel_is_read() {
    let Some(tracefs) = tracefs() else { return };
    let mut formats = 0;
    for name in tracefs.read("available_events").unwrap().lines() {
        let (system, event) = name.split_once(':').unwrap();
        let Ok(text) = tracefs.read(&format!("events/{system}/{event}/format")) else { continue };
        let format = EventFormat::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format.name, event);
        let lines = text.lines().filter(|line| line.starts_with("\tfield:")).count();
        assert_eq!(format.fields.len(), lines, "{name}");
        formats += 1;
    }
    assert!(formats > 100, "{formats}");
}

#[test]
fn decoded_events_are_those_that_the_kernel_prints() {
    let Some(trace) = Trace::start("same", &[("buffer_size_kb", "16384")]) else { return };
    trace.record(work);
    let total = trace.compare();
    assert!(total > 100, "only {total} events were recorded");
    eprintln!("compared {total} events");
}

#[test]
fn decoded_events_are_those_that_the_kernel_prints_with_larger_sub_buffers() {
    let Some(plain) = Trace::start("plain", &[]) else { return };
    // Only kernels since Linux 6.8 have them.
    if plain.instance.read(SUB_BUFFERS).is_err() {
        return absent("this kernel has sub-buffers of one size");
    }
    drop(plain);
    let settings = [(SUB_BUFFERS, "32"), ("buffer_size_kb", "16384")];
    let Some(trace) = Trace::start("large", &settings) else { return };
    assert_eq!(trace.decoder.page_size(), 32 << 10);
    trace.record(work);
    let total = trace.compare();
    assert!(total > 100, "only {total} events were recorded");
}

#[test]
fn the_events_that_an_overfull_buffer_lost_are_counted_as_the_kernel_counts_them() {
    let Some(trace) = Trace::start("small", &[("buffer_size_kb", "32")]) else { return };
    trace.record(|| (0..8).for_each(|_| work()));
    let mut lost_on = 0;
    for cpu in &trace.cpus {
        let overrun = trace.statistic(*cpu, "overrun");
        let lines = trace.text(*cpu).lines().filter(|line| is_event(line)).count();
        let (events, pages) = trace.events(*cpu).unwrap();
        assert_eq!(events.len(), lines);
        let missed: Vec<Missed> =
            pages.iter().map(|page| page.missed).filter(|missed| *missed != Missed::None).collect();
        match (overrun, missed.as_slice()) {
            (0, []) => {}
            // No room was left for the number behind the data.
            (1.., [Missed::Unknown]) => lost_on += 1,
            (count, [Missed::Count(found)]) if count == *found => lost_on += 1,
            _ => panic!("on CPU {cpu} the kernel lost {overrun}, the pages say {missed:?}"),
        }
    }
    assert!(lost_on > 0, "nothing was lost: this test showed nothing");
}
