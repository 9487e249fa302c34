//! What happens to a run while it goes on: moved, stopped, starved of disk.

use std::fs::OpenOptions;
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify;
use whylate_model::directory::RunDir;
use whylate_model::run::Verdict;
use whylate_model::warning::Warning;
use whylate_sys::tracefs::Tracefs;
use whylate_sys::{affinity, signal};

use crate::faults::{Mounted, checkpointed, measuring};
use crate::needs;
use crate::program::{self, Started, until, whylate};
use crate::tasks::Task;

const SIGINT: i32 = 2;

#[test]
fn a_thread_moved_in_its_warm_up_is_noticed() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2).filter(|_| needs::times_of_threads()) else { return };
    // Where the host kept its thread from so much of a warm-up, the next one is longer.
    for warmup in ["3s", "10s", "30s"] {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let words =
            format!("gaps --no-trace --duration 100ms --warmup {warmup} --cpus {}", cpus[1]);
        let mut command = whylate(words.split_whitespace());
        command.arg("-o").arg(&directory);
        let mut started = Started::new(command);
        let thread = Task::named(started.0.id(), "gap/0");
        // It pins itself first of all, and looks whether that came true: only then is it moved, once it has
        // worked for much longer than that takes.
        let pinned = until("the thread is pinned", || {
            (affinity::get_of(thread.id).ok()? == cpus[1..2]).then(|| thread.ran()).flatten()
        });
        until("it warms up, or has ended", || {
            let worked = |ran: Duration| ran > pinned + Duration::from_millis(100);
            thread.ran().is_none_or(worked).then_some(())
        });
        // The run is stored first as it begins to measure.
        let moved =
            affinity::set_of(thread.id, &cpus[..1]).is_ok() && !directory.join("run.json").exists();
        let status = started.status();
        if !moved {
            continue;
        }
        assert_eq!(status, Some(4));
        let run = program::read(&directory);
        program::ended(status, &run);
        assert_eq!(run.gaps[0].cpu, cpus[1], "the run is that of the CPU that was asked for");
        assert!(run.warnings.iter().any(|w| matches!(w, Warning::HostChanged { .. })));
        return;
    }
    needs::spoilt("the thread got too little of its CPU in every warm-up");
}

#[test]
fn ctrl_c_in_the_warm_up_ends_at_once_and_leaves_nothing_behind() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate("gaps --no-trace --warmup 300s --duration 1s".split_whitespace());
    command.arg("-o").arg(&directory);
    let mut started = Started::new(command);
    started.measuring_thread();
    signal::send_to_process(started.pid(), SIGINT).unwrap();
    assert_eq!(started.status(), Some(1), "a warm-up of five minutes was waited for");
    assert!(!directory.exists());
}

#[test]
fn a_disk_that_fills_up_costs_neither_the_report_nor_what_was_measured() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let Some(disk) = Mounted::new("size=6m") else { return };
    let directory = disk.0.path().join("run");
    let started = measuring(&directory, "--no-trace --checkpoint 200ms --format json");
    let checkpoint = checkpointed(&directory);
    let mut refused = Refused::in_directory(&directory);
    until("a checkpoint finds no room", || {
        // What it gives up for want of room is room again.
        fill(disk.0.path());
        refused.any().then_some(())
    });
    signal::send_to_process(started.pid(), SIGINT).unwrap();
    let output = crate::faults::finished(started);
    assert_eq!(output.status.code(), Some(4), "{}", program::said(&output));
    let printed: whylate_model::run::Run = serde_json::from_slice(&output.stdout).unwrap();
    // The test filled the disk.
    let planted = ["writing failed during the run: "];
    program::ended_but_for(output.status.code(), &printed, &planted);
    // A CPU that nobody else wants may have had none since.
    assert!(printed.gaps[0].gaps >= checkpoint.gaps[0].gaps, "what came later is lost");
    assert!(printed.gaps[0].end > checkpoint.gaps[0].end, "what came later is lost");
    assert!(printed.warnings.iter().any(|w| matches!(w, Warning::WritingFailed { .. })));
    assert!(matches!(printed.verdict, Verdict::Untrustworthy { .. }));
    let stored = program::read(&directory);
    assert!(stored.gaps[0].gaps >= checkpoint.gaps[0].gaps, "the last checkpoint is gone");
}

/// Takes all the room there is.
fn fill(place: &Path) {
    let mut filler = OpenOptions::new();
    let mut filler = filler.create(true).append(true).open(place.join("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
}

/// Checkpoints that could not be written: the new `run.json` was removed again before it had taken the place of the
/// old one.
struct Refused(OwnedFd);

impl Refused {
    fn in_directory(directory: &Path) -> Self {
        let told = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&told, directory, inotify::WatchFlags::DELETE).unwrap();
        Self(told)
    }

    fn any(&mut self) -> bool {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut told = inotify::Reader::new(&self.0, &mut room);
        // Until nothing more is told.
        while let Ok(removed) = told.next() {
            if removed.file_name() == Some(c"run.json.tmp") {
                return true;
            }
        }
        false
    }
}

/// The machine's own trace while a test turns it on and off; put back as it was.
struct OwnTrace {
    tracefs: Tracefs,
    was: String,
}

impl OwnTrace {
    fn turned_on() -> Option<Self> {
        let tracefs = needs::tracefs().filter(|_| needs::root())?;
        let was = tracefs.read("tracing_on").unwrap();
        tracefs.write("tracing_on", "1").unwrap();
        Some(Self { tracefs, was })
    }

    fn is_on(&self) -> bool {
        self.tracefs.read("tracing_on").unwrap().trim() == "1"
    }
}

impl Drop for OwnTrace {
    fn drop(&mut self) {
        let _ = self.tracefs.write("tracing_on", self.was.trim());
    }
}

#[test]
fn marker_and_snapshot_are_made_before_the_trace_goes_off() {
    let _alone = program::alone();
    let Some(trace) = OwnTrace::turned_on() else { return };
    let words = "gaps --duration 60s --warmup 200ms --threshold-stop 1us --on-threshold trace-off \
                 --on-threshold marker:here";
    let recorded = program::record_ending(words, &[3, 4]);
    assert!(!trace.is_on(), "trace-off did nothing");
    let told = &recorded.run.warnings;
    let failed = told.iter().find(|w| matches!(w, Warning::ActionFailed { .. }));
    assert_eq!(failed, None, "{}", program::said(&recorded.output));
    // It stays off by design, and whoever reads the report learns how it is switched on again.
    assert!(told.contains(&Warning::TraceLeftOff), "{told:?}");
    let report = program::said(&program::reported(&recorded.directory, &[]));
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("echo 1 | sudo tee /sys/kernel/tracing/tracing_on"), "{report}");
}

#[test]
fn a_set_that_is_stopped_in_a_long_sleep_has_slept_and_lost_nothing_for_it() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = ["threads", "--thread", "PERIODIC 1ms 30s", "--duration", "60s", "-o"];
    let mut command = whylate(words);
    command.arg(&directory);
    let mut started = Started::new(command);
    until("a set has begun", || RunDir::open(&directory).ok()?.read_run().ok());
    let thread = Task::named(started.0.id(), "hourglass/0");
    let now = || whylate_sys::nanosleep::clock_ns(whylate_sys::nanosleep::Clock::Monotonic);
    // It looks now and then whether it is to stop. Half a second between looks at which it slept, and from the
    // first to the second without a break.
    let mut slept_ns = 0;
    until("it has slept for long", || {
        let (began, before) = (now(), thread.asleep()?);
        std::thread::sleep(Duration::from_millis(50));
        let ended = now();
        slept_ns += if thread.asleep()? == before { ended - began } else { 0 };
        (slept_ns > 500_000_000).then_some(())
    });
    signal::send_to_process(started.pid(), SIGINT).unwrap();
    let status = started.status();
    let run = program::read(&directory);
    program::ended(status, &run);
    let thread = &run.threads[0];
    // Two clocks may differ by far less than a hundredth.
    let slept_ns = slept_ns - slept_ns / 100;
    assert!(thread.waited.0 >= slept_ns, "{thread:?} has slept for {slept_ns} ns");
    let others = thread.received.0 + thread.lost.0;
    let all = thread.end.since(thread.start).to_nanos(run.clock.hz);
    assert!(others <= all.0 - slept_ns, "{thread:?}: {slept_ns} ns of {all} were a sleep");
}
