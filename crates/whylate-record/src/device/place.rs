//! Where a box stands: beds that are set up for it, and the process that carries its frames.
//!
//! All beds stand from the first round to the last; a box that is a process of ours runs only while it is
//! measured, because one that looks at its rings all the time is load for all others. What was set up goes
//! with these values, and after a crash with the next start.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use whylate_host::journal::Journal;
use whylate_model::lab::BedKind;
use whylate_model::{CpuId, Nanos, Pid};
use whylate_net::lab::{Bed, Borrowed, Role, borrow};
use whylate_port::Transport;

use super::outcome::DeviceError;
use super::plan::Slot;
use super::question::{LineBetween, Question};
use super::the_box::{Driver, TheBox};
use super::words::{self, Through};
use crate::RecordError;
use crate::child::{Program, Running, last_words};

/// What holds frames back in the delay line that tells the error.
pub(super) const LINE_LAW: &str = "10us";
/// A box says that it is ready within this.
const READY: Duration = Duration::from_secs(30);
/// A process that was told to end has so long.
const ENDING: Duration = Duration::from_secs(20);
/// testpmd says nothing when it forwards: its ports are open after so long.
const TESTPMD_OPENS: Duration = Duration::from_secs(3);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// DPDK's program under the names that packages give it.
const TESTPMD: [&str; 2] = ["dpdk-testpmd", "testpmd"];

/// The beds, and what is known of where the box is.
pub(super) struct Places<'a> {
    question: &'a Question,
    boxed: Option<Borrowed>,
    link: Option<Borrowed>,
    /// None where the box's own bed will do.
    line: Option<Borrowed>,
    testpmd: Option<PathBuf>,
    /// CPUs that processes may use: this one has left those that are measured.
    allowed: Vec<CpuId>,
    /// Why there is no bare link, or no delay line.
    pub(super) missing: Vec<Missing>,
}

/// Why there is no bare link, or no delay line.
#[derive(Debug, Clone)]
pub(super) struct Missing {
    /// The number of the configuration that it is of; none for all of them.
    pub(super) configuration: Option<usize>,
    pub(super) why: String,
}

impl Missing {
    /// Of all configurations.
    fn everywhere(why: &str) -> Self {
        Self { configuration: None, why: why.to_owned() }
    }

    /// Does it count under the configuration with this number?
    pub(super) fn is_of(&self, number: usize) -> bool {
        self.configuration.is_none_or(|of| of == number)
    }
}

/// A box that runs.
pub(super) struct Standing {
    running: Option<Running>,
    /// Where its own run is, of a process of ours.
    directory: Option<PathBuf>,
}

impl<'a> Places<'a> {
    /// Sets up what the box needs, a bare link and a place for the delay line.
    pub(super) fn set_up(
        question: &'a Question,
        journal: &Journal,
        allowed: &[CpuId],
    ) -> Result<Self, RecordError> {
        let allowed = allowed.to_vec();
        let testpmd = match question.the_box {
            TheBox::Testpmd(driver) => {
                has_pages(driver)?;
                Some(installed(question)?)
            }
            _ => None,
        };
        let one = NonZeroU32::MIN;
        let bed = |what: &str, kind| {
            let name = format!("device-{}-{what}", std::process::id());
            borrow(journal, &name, kind, one)
        };
        let mut missing = Vec::new();
        let Some(kind) = question.the_box.bed_kind() else {
            if question.loopback.is_none() {
                missing.push(Missing::everywhere(
                    "no bare link: name two interfaces that a cable joins (--loopback A,B); without it there \
                     are no upper bounds",
                ));
            }
            if question.line.is_none() {
                missing.push(Missing::everywhere(
                    "no delay line: name four more interfaces like those of the box (--line NEAR,A,B,FAR), \
                     with a cable from NEAR to A and one from B to FAR, and whylate delays between A and B; \
                     without it what the client itself adds is not known, and there are no lower bounds",
                ));
            }
            return Ok(Self {
                question,
                boxed: None,
                link: None,
                line: None,
                testpmd,
                allowed,
                missing,
            });
        };
        let boxed = bed("box", kind)?;
        let direct = bed("link", BedKind::Direct)?;
        let line = if kind == BedKind::Open { None } else { Some(bed("line", BedKind::Open)?) };
        Ok(Self {
            question,
            boxed: Some(boxed),
            link: Some(direct),
            line,
            testpmd,
            allowed,
            missing,
        })
    }

    /// The bed that the box stands in; none of what is real.
    pub(super) fn bed_name(&self) -> Option<&str> {
        self.boxed.as_ref().map(|borrowed| borrowed.bed().name())
    }

    /// What can be measured beside the box.
    pub(super) fn slots(&self) -> Vec<Slot> {
        let bare = self.link.is_some() || self.question.loopback.is_some();
        let delayed = self.boxed.is_some() || self.question.line.is_some();
        // What everything else takes depends on the state of the host as the box does.
        let of_one = |number: usize| {
            let beside =
                [bare.then_some(Slot::Link(number)), delayed.then_some(Slot::Line(number))];
            [Some(Slot::Boxed(number))].into_iter().chain(beside).flatten()
        };
        (0..self.question.configurations.len().max(1)).flat_map(of_one).collect()
    }

    /// The way that the client goes.
    pub(super) fn through(&self, slot: Slot) -> Result<Through<'_>, RecordError> {
        if let Some(bed) = self.bed(slot) {
            return Ok(Through::Bed(bed.name()));
        }
        let question = self.question;
        let interfaces = match slot {
            Slot::Boxed(_) => question.interfaces.as_ref(),
            Slot::Link(_) => question.loopback.as_ref(),
            Slot::Line(_) => question.line.as_ref().map(|line| &line.client),
        };
        let none = || RecordError::Device(DeviceError::Refused("there is no way there".to_owned()));
        Ok(Through::Interfaces(interfaces.ok_or_else(none)?, &question.ends))
    }

    fn bed(&self, slot: Slot) -> Option<&Bed> {
        let borrowed = match slot {
            Slot::Boxed(_) => self.boxed.as_ref(),
            Slot::Link(_) => self.link.as_ref(),
            Slot::Line(_) => self.line.as_ref().or(self.boxed.as_ref()),
        };
        borrowed.map(Borrowed::bed)
    }

    /// Starts what stands between the ports of this slot, where that is a process, with a run of its own in
    /// `directory`; it ends by itself after `most`, whatever happens.
    pub(super) fn start(
        &self,
        slot: Slot,
        directory: &Path,
        most: Nanos,
        stop: &AtomicBool,
    ) -> Result<Standing, RecordError> {
        let nothing = Standing { running: None, directory: None };
        let question = self.question;
        let bed = self.bed(slot);
        let between = match (bed, slot, &question.line) {
            (Some(bed), _, _) => words::in_bed(bed.name()),
            (None, Slot::Line(_), Some(LineBetween { ports: [a, b], .. })) => format!("{a} {b}"),
            _ => return Ok(nothing),
        };
        let (words, ready) = match (slot, &question.the_box) {
            (Slot::Line(_), the_box) => {
                let port = the_box.like().to_string();
                let law = (port.as_str(), LINE_LAW);
                (words::delay(question, law, &between, most), "delaying between")
            }
            (Slot::Boxed(_), TheBox::Forward(transport)) => {
                let port = transport.to_string();
                (words::forward(question, &port, &between, most), "forwarding between")
            }
            (Slot::Boxed(_), TheBox::Delay(law)) => {
                let port = Transport::Packet.to_string();
                let law = (port.as_str(), law.as_str());
                (words::delay(question, law, &between, most), "delaying between")
            }
            (Slot::Boxed(_), TheBox::Testpmd(driver)) => {
                let Some(bed) = bed else { return Ok(nothing) };
                return self.start_testpmd(*driver, bed, stop);
            }
            _ => return Ok(nothing),
        };
        let program =
            Program::whylate(&question.program, &words).into_directory(directory).on(&self.allowed);
        let mut running = program.start()?;
        running.wait_for(ready, stop, READY)?;
        Ok(Standing { running: Some(running), directory: Some(directory.to_owned()) })
    }

    fn start_testpmd(
        &self,
        driver: Driver,
        bed: &Bed,
        stop: &AtomicBool,
    ) -> Result<Standing, RecordError> {
        let cpu = self.question.box_cpu.map(|cpu| cpu.0);
        let path = self.testpmd.as_deref().unwrap_or_else(|| Path::new(TESTPMD[0]));
        let words = words::testpmd(driver, cpu);
        let program = Program::foreign(&path.display().to_string(), words)
            .inside(bed, Role::Device)
            .on(&self.allowed);
        let mut running = program.start()?;
        let looks = TESTPMD_OPENS.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            thread::sleep(LOOK);
            if running.is_over() || stop.load(Ordering::Relaxed) {
                let ended = running.wait(stop, Some(ENDING))?;
                let why = format!("it ended with {}: {}", ended.status, last_words(&ended.stderr));
                let what = self.question.the_box.to_string();
                return Err(RecordError::Device(DeviceError::NotMeasured { what, why }));
            }
        }
        Ok(Standing { running: Some(running), directory: None })
    }
}

impl Standing {
    /// Its process.
    pub(super) fn pid(&self) -> Option<Pid> {
        self.running.as_ref().map(Running::pid)
    }

    /// Tells it to end; where its run is, of one of ours.
    pub(super) fn end(self) -> Result<Option<PathBuf>, RecordError> {
        if let Some(running) = self.running {
            let ended = running.end(ENDING)?;
            if self.directory.is_some() {
                ended.recorded()?;
            }
        }
        Ok(self.directory)
    }
}

/// Huge pages of this machine that nobody has.
const FREE_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

/// Where testpmd needs huge pages by this driver, and fewer are free, the refusal.
fn has_pages(driver: Driver) -> Result<(), RecordError> {
    let needed = words::TESTPMD_PAGES;
    let free = || std::fs::read_to_string(FREE_PAGES).ok()?.trim().parse::<u64>().ok();
    let free = match driver {
        Driver::Packet => return Ok(()),
        Driver::Xdp => free().unwrap_or(0),
    };
    if free >= needed {
        return Ok(());
    }
    Err(RecordError::Device(DeviceError::Refused(format!(
        "testpmd by net_af_xdp needs {needed} huge pages of 2 MB, and {free} are free: reserve them, such as by \
         `sysctl vm.nr_hugepages={needed}`, or take testpmd over packet sockets (--box testpmd)"
    ))))
}

/// Where testpmd is, or the refusal.
fn installed(question: &Question) -> Result<PathBuf, RecordError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|directory| TESTPMD.map(|name| directory.join(name)))
        .find(|file| file.is_file());
    found.ok_or_else(|| {
        RecordError::Device(DeviceError::NotInstalled {
            what: question.the_box.to_string(),
            program: TESTPMD[0],
            package: "DPDK (Debian: dpdk)",
        })
    })
}
