//! Which processes make a load, and where they run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use whylate_host::caches;
use whylate_host::guard::{FileTree, TreeShape};
use whylate_model::{CpuId, CpuList, Nanos, Pid};
use whylate_net::lab::{Bed, Role};
use whylate_sys::disk;
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::arrivals::Arrivals;
use crate::course::Course;
use crate::error::LoadError;
use crate::kind::{Kind, Net};
use crate::load::{Program, Wanted};
use crate::order::{Job, Order, Side};
use crate::process::Generator;
use crate::record::State;

/// Disturbed CPUs that each get processes of their own: on more, the machine starts processes
/// rather than making load.
const MOST_CPUS: usize = 16;
/// Of the memory that is free, a load leaves at least as much again.
const MEMORY_LEFT: u64 = 2;

/// One load: its processes, and what its facts say.
#[derive(Debug)]
pub(crate) struct Making {
    pub(crate) load: &'static str,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    /// What they do is the amount.
    pub(crate) counted: Vec<Generator>,
    /// What they do is offered to the others; they are stopped first.
    pub(crate) senders: Vec<Generator>,
    /// Datagrams can be lost; a stream cannot.
    pub(crate) loses: bool,
    pub(crate) told_of_end: bool,
    /// What is to be known of it from the beginning.
    pub(crate) notes: Vec<String>,
    /// Interrupts that it sends, as their receivers count them.
    pub(crate) arrivals: Option<Arrivals>,
    /// How far they were by when.
    pub(crate) course: Course,
    /// Removed last, after who reads it.
    pub(crate) tree: Option<FileTree>,
}

/// What every process of a load needs to know.
pub(crate) struct Site<'a> {
    wanted: &'a Wanted,
    program: &'a Program,
    /// When all of them end.
    end: Nanos,
}

impl Making {
    fn new(kind: &Kind, what: String, unit: &'static str) -> Self {
        Self {
            load: kind.name(),
            what,
            unit,
            counted: Vec::new(),
            senders: Vec::new(),
            loses: false,
            told_of_end: false,
            notes: Vec::new(),
            arrivals: None,
            course: Course::default(),
            tree: None,
        }
    }

    pub(crate) fn processes(&mut self) -> impl Iterator<Item = &mut Generator> {
        self.senders.iter_mut().chain(&mut self.counted)
    }

    /// Waits until each of its processes has done something.
    pub(crate) fn wait_until_it_runs(&mut self) -> Result<(), LoadError> {
        let load = self.load;
        for process in self.processes() {
            process.wait_until(load, |record| match &record.state {
                State::Running => Some(Ok(())),
                State::Ended(why) | State::Failed(why) => {
                    Some(Err(LoadError::Refused { load: load.to_owned(), why: why.clone() }))
                }
                State::Starting | State::Listening(_) => None,
            })??;
        }
        Ok(())
    }
}

impl<'a> Site<'a> {
    pub(crate) fn new(wanted: &'a Wanted, program: &'a Program) -> Self {
        let mut site = Self { wanted, program, end: Nanos(0) };
        site.end = Nanos(clock_ns(Clock::Monotonic).saturating_add(site.at_most().0));
        site
    }

    fn at_most(&self) -> Nanos {
        Nanos(self.wanted.at_most.as_nanos().try_into().unwrap_or(u64::MAX))
    }

    /// Starts the processes of one load.
    pub(crate) fn make(&self, kind: &Kind) -> Result<Making, LoadError> {
        match kind {
            Kind::Net(net) => self.net(kind, *net),
            Kind::Disk { files, bytes } => self.disk(kind, *files, *bytes),
            Kind::Ipi { per_second } => self.ipi(kind, *per_second),
            Kind::Cpu { share } => {
                let what = format!(
                    "busy threads that ask for {:.0}% of CPU {}",
                    share * 100.0,
                    CpuList(self.disturbed())
                );
                let mut making = Making::new(kind, what, "ns of CPU time");
                making.counted = self.on_each_disturbed(kind, &Job::Hog { share: *share })?;
                Ok(making)
            }
            Kind::Mem { bytes } => self.mem(kind, *bytes),
        }
    }

    fn net(&self, kind: &Kind, net: Net) -> Result<Making, LoadError> {
        let elsewhere = self.elsewhere(kind)?;
        let disturbed = self.disturbed();
        let path = match &self.wanted.bed {
            None => "over loopback".to_owned(),
            Some(bed) => format!("through the bed {}", bed.name()),
        };
        let sent = match net {
            Net::TcpBulk => "TCP bulk".to_owned(),
            Net::Udp { pps, bytes } => format!("UDP, {pps} datagrams of {bytes} bytes a second"),
        };
        let what = format!(
            "{sent} {path}, sent on CPU {}, received on CPU {}",
            CpuList(elsewhere),
            CpuList(disturbed)
        );
        let unit = if net == Net::TcpBulk { "bytes" } else { "datagrams" };
        let mut making = Making::new(kind, what, unit);
        making.loses = net != Net::TcpBulk;
        let at = SocketAddr::new(self.address(), 0);
        let parts = disturbed.len() as u32;
        for cpu in disturbed {
            let job = match net {
                Net::TcpBulk => Job::TcpReceive { at },
                Net::Udp { .. } => Job::UdpReceive { at },
            };
            let receiver = self.start(kind, &[*cpu], job, Some(Side::Server))?;
            making.counted.push(receiver);
        }
        for (index, receiver) in making.counted.iter_mut().enumerate() {
            let port = receiver.wait_until(kind.name(), |record| match record.state {
                State::Listening(port) => Some(port),
                _ => None,
            })?;
            let to = SocketAddr::new(at.ip(), port);
            let job = match net {
                Net::TcpBulk => Job::TcpSend { to },
                // The rate is of the whole load: each sender has its part of it.
                Net::Udp { pps, bytes } => {
                    let own = pps / parts + u32::from((index as u32) < pps % parts);
                    Job::UdpSend { to, pps: own.max(1), bytes }
                }
            };
            making.senders.push(self.start(kind, elsewhere, job, Some(Side::Client))?);
        }
        Ok(making)
    }

    fn disk(&self, kind: &Kind, files: u32, bytes: u32) -> Result<Making, LoadError> {
        let place = self.wanted.files_in.clone().unwrap_or_else(std::env::temp_dir);
        let journal = match &self.wanted.journal {
            Some(journal) => journal.clone(),
            None => whylate_host::journal::Journal::open()?,
        };
        let tree = FileTree::make(&journal, &place, TreeShape { files, bytes })?;
        let what = format!(
            "walks over {files} files of {bytes} bytes in {}, from CPU {}",
            place.display(),
            CpuList(self.disturbed())
        );
        let mut making = Making::new(kind, what, "files");
        making.notes.extend(disk::of_memory(tree.path()).map(|name| {
            format!(
                "{} is {name}: memory, and no file system of a disk was worked",
                place.display()
            )
        }));
        let job = Job::Walk { tree: PathBuf::from(tree.path()) };
        making.tree = Some(tree);
        making.counted = self.on_each_disturbed(kind, &job)?;
        Ok(making)
    }

    fn ipi(&self, kind: &Kind, per_second: u32) -> Result<Making, LoadError> {
        let elsewhere = self.elsewhere(kind)?;
        let targets = self.disturbed().to_vec();
        let what = format!(
            "TLB shootdowns and barriers from CPU {} to a busy thread on CPU {}, {per_second} a \
             second",
            CpuList(elsewhere),
            CpuList(&targets)
        );
        let mut making = Making::new(kind, what, "shootdowns asked for");
        making.arrivals = Arrivals::of(&targets);
        let job = Job::Interrupt { targets, per_second };
        making.counted.push(self.start(kind, elsewhere, job, None)?);
        Ok(making)
    }

    fn mem(&self, kind: &Kind, bytes: u64) -> Result<Making, LoadError> {
        let elsewhere = &self.wanted.elsewhere;
        let streams = self.disturbed().len() as u64 + u64::from(!elsewhere.is_empty());
        let wanted = bytes.saturating_mul(streams);
        let free = caches::memory_available(Path::new("/"));
        if free.is_some_and(|free| free / MEMORY_LEFT < wanted) {
            let (load, free) = (kind.to_string(), free.unwrap_or_default());
            return Err(LoadError::NoMemory { load, wanted, free });
        }
        let beside = match elsewhere.as_slice() {
            [] => String::new(),
            cpus => format!(" and once on CPU {}", CpuList(cpus)),
        };
        let what = format!(
            "streams over {bytes} bytes of memory on CPU {}{beside}",
            CpuList(self.disturbed())
        );
        let mut making = Making::new(kind, what, "bytes");
        let job = Job::Stream { bytes };
        making.counted = self.on_each_disturbed(kind, &job)?;
        if !elsewhere.is_empty() {
            making.counted.push(self.start(kind, elsewhere, job, None)?);
        }
        Ok(making)
    }

    fn on_each_disturbed(&self, kind: &Kind, job: &Job) -> Result<Vec<Generator>, LoadError> {
        self.disturbed().iter().map(|cpu| self.start(kind, &[*cpu], job.clone(), None)).collect()
    }

    fn start(
        &self,
        kind: &Kind,
        cpus: &[CpuId],
        job: Job,
        side: Option<Side>,
    ) -> Result<Generator, LoadError> {
        let wanted = self.wanted;
        let house = if wanted.elsewhere.is_empty() { cpus } else { &wanted.elsewhere };
        let order = Order {
            parent: Pid(std::process::id() as i32),
            at_most: self.at_most(),
            end: self.end,
            cpus: cpus.to_vec(),
            housekeeping: house.to_vec(),
            inside: self
                .wanted
                .bed
                .as_ref()
                .zip(side)
                .map(|(bed, side)| (bed.name().to_owned(), side)),
            job,
        };
        Generator::start(self.program, &order, kind.name())
    }

    /// Where receivers listen.
    fn address(&self) -> IpAddr {
        IpAddr::V4(match self.wanted.bed {
            Some(_) => Bed::address(Role::Server),
            None => Ipv4Addr::LOCALHOST,
        })
    }

    fn disturbed(&self) -> &[CpuId] {
        let all = &self.wanted.disturbed;
        all.get(..MOST_CPUS).unwrap_or(all)
    }

    fn elsewhere(&self, kind: &Kind) -> Result<&[CpuId], LoadError> {
        match self.wanted.elsewhere.as_slice() {
            [] => Err(LoadError::NoOtherCpu { load: kind.name().to_owned() }),
            cpus => Ok(cpus),
        }
    }
}
