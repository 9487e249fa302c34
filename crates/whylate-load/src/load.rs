//! Load that is being made.

use std::path::PathBuf;
use std::time::Duration;

use whylate_host::journal::Journal;
use whylate_model::load::{LoadFacts, LoadPoint};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Pid};
use whylate_net::lab::Bed;

use crate::arrivals::Arrivals;
use crate::error::LoadError;
use crate::kind::{Kind, MOST_TCP_BYTES};
use crate::plan::{Making, Site};
use crate::process::Generator;
use crate::record::Record;

/// What a sender sent last has so long to arrive before its receiver is told to stop.
const UNDER_WAY: Duration = Duration::from_millis(20);

/// Load to make.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Which.
    pub kinds: Vec<Kind>,
    /// CPUs that are measured, and that the load disturbs.
    pub disturbed: Vec<CpuId>,
    /// All other CPUs that this process may use.
    pub elsewhere: Vec<CpuId>,
    /// Network load goes through this bed; none sends it over loopback.
    pub bed: Option<Bed>,
    /// Generators end after so long by themselves: longer than what is to be measured.
    pub at_most: Duration,
    /// Where files are announced; none opens the journal of this process, which must not be open.
    pub journal: Option<Journal>,
    /// Where files for a disk load are made; none is the directory for temporary files.
    pub files_in: Option<PathBuf>,
}

/// The program that the children run.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its file.
    pub exe: PathBuf,
    /// Words that make it call [`generate_stdin`](crate::generate_stdin).
    pub arguments: Vec<String>,
}

impl Program {
    /// The hidden command of the tool that makes load.
    pub const COMMAND: &str = "load-stdin";

    /// The program that runs now, with that command.
    pub fn this() -> Result<Self, LoadError> {
        let exe = std::env::current_exe()
            .map_err(|source| LoadError::Work { what: "find this program's file", source })?;
        Ok(Self { exe, arguments: vec![Self::COMMAND.to_owned()] })
    }
}

/// Generators at work. Dropping it kills them and removes their files.
#[derive(Debug)]
pub struct Load {
    makings: Vec<Making>,
}

/// Starts what is wanted, with this program's own hidden command, and returns when each generator
/// has done something.
///
/// Call it on a thread that lives as long as the load: the kernel ends children with the thread
/// that started them.
pub fn start(wanted: &Wanted) -> Result<Load, LoadError> {
    start_by(&Program::this()?, wanted)
}

/// [`start`], with another program.
pub fn start_by(program: &Program, wanted: &Wanted) -> Result<Load, LoadError> {
    if wanted.kinds.is_empty() {
        return Err(LoadError::Nothing("no load is named"));
    }
    if wanted.disturbed.is_empty() {
        return Err(LoadError::Nothing("no CPU is to be disturbed"));
    }
    if wanted.at_most.is_zero() {
        return Err(LoadError::Nothing("it would last no time"));
    }
    let wanted = &one_journal(wanted)?;
    let site = Site::new(wanted, program);
    let mut load = Load { makings: Vec::with_capacity(wanted.kinds.len()) };
    for kind in &wanted.kinds {
        load.makings.push(site.make(kind)?);
    }
    for making in &mut load.makings {
        making.wait_until_it_runs()?;
    }
    Ok(load)
}

/// A process has one journal: it is opened once for all loads that need it.
fn one_journal(wanted: &Wanted) -> Result<Wanted, LoadError> {
    let mut wanted = wanted.clone();
    let disk = wanted.kinds.iter().any(|kind| matches!(kind, Kind::Disk { .. }));
    if disk && wanted.journal.is_none() {
        wanted.journal = Some(Journal::open()?);
    }
    Ok(wanted)
}

impl Load {
    /// Loads that ended before they were told to, each told once. How far each is, is noted.
    pub fn poll(&mut self) -> Vec<Warning> {
        for making in &mut self.makings {
            making.note();
        }
        self.makings.iter_mut().filter_map(Making::ended).collect()
    }

    /// The measurement that they are made beside begins: their amounts count from here on.
    pub fn begins(&mut self) {
        for making in &mut self.makings {
            for process in making.processes() {
                process.begins();
            }
            if let Some(arrivals) = &mut making.arrivals {
                arrivals.begins();
            }
            making.course.begins();
        }
    }

    /// The measurement has ended: what they do until they are stopped does not count.
    pub fn ends(&mut self) {
        for making in &mut self.makings {
            for process in making.processes() {
                process.ends();
            }
            if let Some(arrivals) = &mut making.arrivals {
                arrivals.ends();
            }
        }
    }

    /// What each load has done so far, for a checkpoint.
    pub fn so_far(&mut self) -> Vec<LoadFacts> {
        self.makings.iter_mut().map(Making::facts).collect()
    }

    /// Ids of the generators' processes.
    #[must_use]
    pub fn pids(&self) -> Vec<Pid> {
        let of = |making: &Making| -> Vec<Pid> {
            making.senders.iter().chain(&making.counted).map(Generator::pid).collect()
        };
        self.makings.iter().flat_map(of).collect()
    }

    /// Ends all of them, senders first, removes their files, and tells what each has done.
    #[must_use]
    pub fn stop(mut self) -> Vec<LoadFacts> {
        // Whoever has ended by now was not told to.
        self.poll();
        let makings = &mut self.makings;
        for sender in makings.iter_mut().flat_map(|making| &mut making.senders) {
            sender.tell();
        }
        for sender in makings.iter_mut().flat_map(|making| &mut making.senders) {
            sender.finish();
        }
        if makings.iter().any(|making| !making.senders.is_empty()) {
            std::thread::sleep(UNDER_WAY);
        }
        for receiver in makings.iter_mut().flat_map(|making| &mut making.counted) {
            receiver.tell();
        }
        for receiver in makings.iter_mut().flat_map(|making| &mut making.counted) {
            receiver.finish();
        }
        for making in makings {
            drop(making.tree.take());
        }
        self.so_far()
    }
}

impl Making {
    fn ended(&mut self) -> Option<Warning> {
        let how = self.processes().find_map(Generator::how_it_ended)?;
        if std::mem::replace(&mut self.told_of_end, true) {
            return None;
        }
        Some(Warning::LoadEnded { load: self.load.to_owned(), how })
    }

    /// How far it is.
    fn note(&mut self) {
        let mut now = LoadPoint::default();
        for process in &mut self.counted {
            let record = process.worked();
            now.amount = now.amount.saturating_add(record.amount);
            now.time = now.time.max(record.time);
        }
        self.course.add(now);
    }

    fn facts(&mut self) -> LoadFacts {
        let mut facts = LoadFacts {
            load: self.load.to_owned(),
            what: self.what.clone(),
            amount: 0,
            unit: self.unit.to_owned(),
            time: Nanos(0),
            offered: None,
            lost: None,
            course: self.course.points(),
            ended_early: self.told_of_end,
            notes: self.notes.clone(),
        };
        let mut numbered = 0;
        for process in &mut self.counted {
            let record = process.worked();
            facts.amount += record.amount;
            facts.time = facts.time.max(record.time);
            numbered += record.offered;
        }
        if self.loses {
            // One that was late before the beginning may have come after it.
            let offered = numbered.max(facts.amount);
            facts.offered = Some(offered);
            facts.lost = Some(offered - facts.amount);
        }
        if let Some(arrived) = self.arrivals.as_ref().and_then(Arrivals::count) {
            facts.notes.push(format!(
                "{} shootdowns and barriers asked for; counted are all interrupts of that kind there",
                facts.amount
            ));
            (facts.amount, facts.unit) = (arrived, "interrupts".to_owned());
            // They were read at the beginning and at the end alone.
            facts.course.clear();
        }
        if self.unit == "bytes" {
            let sent = self.senders.iter_mut().map(Generator::worked);
            facts.notes.extend(sent.filter_map(|sent| held_back(&sent)).take(1));
        }
        facts
    }
}

/// Of its bound a sender that is held back by it reaches so much: it sleeps in steps.
const NEARLY: f64 = 0.95;

/// How the note of a load begins that sent as much as it may.
pub const HELD_BACK: &str = "held back by its bound";

/// What is to be said of a sender of a stream that sent as much as it may.
fn held_back(sent: &Record) -> Option<String> {
    let per_second = sent.amount as f64 * 1e9 / sent.time.0.max(1) as f64;
    (sent.time.0 > 0 && per_second >= NEARLY * MOST_TCP_BYTES as f64).then(|| {
        format!(
            "{HELD_BACK} of {} Mbit/s: the receiver would have taken more",
            MOST_TCP_BYTES * 8 / 1_000_000
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_at_its_bound_says_so_and_one_below_does_not() {
        let sent = |amount| Record { amount, time: Nanos::SECOND, ..Record::default() };
        assert!(held_back(&sent(MOST_TCP_BYTES)).unwrap().contains("10000 Mbit/s"));
        assert_eq!(held_back(&sent(MOST_TCP_BYTES / 2)), None);
        assert_eq!(held_back(&Record::default()), None);
    }

    #[test]
    fn what_was_done_before_the_measurement_is_none_of_it() {
        let record = |amount, ms: u64, offered| Record {
            amount,
            time: Nanos(ms * 1_000_000),
            offered,
            ..Record::default()
        };
        let during = record(900, 1_100, 950).less(&record(400, 100, 410));
        assert_eq!((during.amount, during.time, during.offered), (500, Nanos::SECOND, 540));
    }
}
