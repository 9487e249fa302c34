//! Answering inside the kernel: a program on the interface does it, and this looks after the program.
//!
//! No socket listens. What the program does is counted by itself, and read ten times a second; the
//! residence of a request is not measured (see [`whylate_port::bpf::reflector`]), and whose requests
//! they were is not known. Ends as a server does, and when the interface is gone or down; the kernel
//! takes the program away with this process, however that ends.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use whylate_model::Nanos;
use whylate_model::directory::RunDir;
use whylate_model::reflect::{REFLECTED_VERSION, Reflected, ReflectedEnd};
use whylate_model::run::{ClockFacts, RunState};
use whylate_model::settings::Settings;
use whylate_model::warning::Warning;
use whylate_net::lab::{Bed, Role};
use whylate_net::message::wire_form;
use whylate_net::serve::frames::told_program;
use whylate_port::PortError;
use whylate_port::bpf::{Attached, Counts, HeldBy, Messages, Reflector, Verdict, Wanted};
use whylate_sys::interface::{self, Interface};
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::progress::Progress;
use crate::service::{self, Account, Asked, Page, Recording, Service};
use crate::workbench::Need;
use crate::{RecordError, Recorded, date_ns};

/// Time between two looks at the program.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Name of the thread, as `ps -L` shows it.
const THREAD_NAME: &str = "reflector";
/// What warnings call it.
const PART: &str = "the reflector";

/// What is to be answered inside the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRequest {
    /// The address and port that are answered at: one of the interface's own.
    pub at: SocketAddr,
    /// The interface; none is the one that has the address.
    pub interface: Option<String>,
    /// Where the program is to run.
    pub attaching: Wanted,
    /// Inside this part of a bed.
    pub bed: Option<(Bed, Role)>,
    /// End after so long without any message.
    pub idle: Nanos,
}

/// Has the kernel answer until `stop` is set or nothing comes any more. `progress` is told where, as
/// soon as it does.
///
/// The calling thread enters the network namespace of the bed and stays there.
///
/// # Errors
/// The interface is not there or down, or the program cannot be loaded or attached.
pub fn run_in_kernel(
    request: &KernelRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Reflected, RecordError> {
    let answering = Answering::begin(request)?;
    progress.say(&answering.announcement());
    answering.go_on(stop, &mut |_| ())
}

/// The same with a run directory.
///
/// # Errors
/// As [`run_in_kernel`], or the run directory cannot be written.
pub fn record_in_kernel(
    request: &KernelRequest,
    asked: &Asked,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    service::record(
        (asked, directory),
        &Need::default(),
        progress,
        |_, _| Server { request, told: None },
        |recording, progress| answer(recording, request, stop, progress),
    )
}

/// The interface that is meant; refused where a program there would answer nobody.
fn interface_of(request: &KernelRequest) -> Result<Interface, RecordError> {
    let (at, address) = (request.at, request.at.ip());
    let refuse = |why| {
        let (transport, target) = ("xdp-tx", at.to_string());
        Err(PortError::WrongTarget { transport, target, why }.into())
    };
    if address.is_unspecified() || address.is_multicast() || at.port() == 0 {
        return refuse("a program looks for one address and one port: name both");
    }
    if address.is_loopback() {
        return refuse(
            "messages over loopback carry no finished checksum, and none would be answered: use --transport udp",
        );
    }
    let all = interface::all()?;
    let found = match &request.interface {
        Some(name) => {
            let named = all.into_iter().find(|one| one.name == *name);
            let missing = || PortError::InterfaceMissing { name: name.clone(), elsewhere: None };
            named.ok_or_else(missing)?
        }
        None => match all.into_iter().find(|one| one.addresses.contains(&address)) {
            Some(having) => having,
            None => {
                return refuse("no interface here has that address, so nobody would be led to it");
            }
        },
    };
    if !found.addresses.contains(&address) {
        return refuse("the interface has not that address, so nobody would be led to it");
    }
    if !found.up {
        return Err(PortError::InterfaceDown { name: found.name }.into());
    }
    Ok(found)
}

/// A program that answers.
struct Answering<'a> {
    request: &'a KernelRequest,
    program: Attached<Reflector>,
    /// The interface's number, which stays when it is renamed.
    index: u32,
    since_ns: u64,
    began: u64,
}

impl<'a> Answering<'a> {
    fn begin(request: &'a KernelRequest) -> Result<Self, RecordError> {
        if let Some((bed, role)) = &request.bed {
            bed.enter(*role)?;
        }
        let interface = interface_of(request)?;
        let messages = Messages {
            ports: vec![request.at.port()],
            addresses: vec![request.at.ip()],
            neighbours: Vec::new(),
        };
        let wanted = request.attaching;
        let program = Reflector::attach((&interface).into(), &messages, &wire_form(), wanted)
            .map_err(PortError::from)?;
        let (since_ns, began) = (date_ns(), clock_ns(Clock::Monotonic));
        Ok(Self { request, program, index: interface.index, since_ns, began })
    }

    /// Scripts wait for this line.
    fn announcement(&self) -> String {
        let (facts, at) = (self.program.facts(), self.request.at);
        format!(
            "listening on {at} (in the kernel: program {} on {}, {})",
            facts.id, facts.interface, facts.mode
        )
    }

    /// Looks after the program until the end, and tells `look` what it did so far.
    fn go_on(
        &self,
        stop: &AtomicBool,
        look: &mut dyn FnMut(Reflected),
    ) -> Result<Reflected, RecordError> {
        let (mut addressed, mut heard) = (0, self.began);
        loop {
            let counts = self.counts()?;
            let now = clock_ns(Clock::Monotonic);
            let so_far = counts.seen().saturating_sub(counts.of(Verdict::Passed));
            if so_far != addressed {
                (addressed, heard) = (so_far, now);
            }
            let lost = self.lost();
            let ended = match &lost {
                Some(_) => ReflectedEnd::Lost,
                None if stop.load(Ordering::Relaxed) => ReflectedEnd::Stopped,
                None if now.saturating_sub(heard) >= self.request.idle.0 => ReflectedEnd::Idle,
                None => ReflectedEnd::GoingOn,
            };
            let told = self.told(&counts, ended, lost);
            if ended != ReflectedEnd::GoingOn {
                return Ok(told);
            }
            look(told);
            thread::sleep(LOOK_EVERY);
        }
    }

    fn counts(&self) -> Result<Counts, RecordError> {
        Ok(self.program.program().counts().map_err(PortError::from)?)
    }

    /// What became of the interface or of the program on it; none while both are there.
    fn lost(&self) -> Option<String> {
        let name = &self.program.facts().interface;
        // That the list cannot be had says nothing of the interface.
        let all = interface::all().ok()?;
        match all.iter().find(|one| one.index == self.index) {
            None => Some(format!("the interface `{name}` was deleted, and the program with it")),
            Some(one) if !one.up => Some(format!("the interface `{name}` went down")),
            Some(_) if !self.program.is_attached() => {
                Some(format!("somebody took the program off the interface `{name}`"))
            }
            Some(_) => None,
        }
    }

    fn told(&self, counts: &Counts, ended: ReflectedEnd, lost: Option<String>) -> Reflected {
        let of = |verdict| counts.of(verdict);
        let lasted = clock_ns(Clock::Monotonic).saturating_sub(self.began);
        Reflected {
            format_version: REFLECTED_VERSION,
            protocol: "raw".to_owned(),
            backend: "xdp_tx in the kernel".to_owned(),
            listening: self.request.at.to_string(),
            wait: "nothing: the kernel runs a program for each frame".to_owned(),
            busy_polling: None,
            socket: None,
            frames: None,
            program: Some(told_program(self.program.facts(), counts)),
            cpu: None,
            since_ns: self.since_ns,
            lasted: Nanos(lasted),
            ended,
            answered: of(Verdict::Answered),
            warm_ups: of(Verdict::AnsweredBeside) + of(Verdict::OneWayBeside),
            one_way: of(Verdict::OneWay),
            unasked: 0,
            foreign: of(Verdict::Foreign),
            other_version: 0,
            unsent: 0,
            first_unsent: None,
            connections: None,
            residence: None,
            clients: Vec::new(),
            clients_replaced: 0,
            without_account: 0,
            warnings: self.warnings(counts, lost),
        }
    }

    fn warnings(&self, counts: &Counts, lost: Option<String>) -> Vec<Warning> {
        let (facts, part) = (self.program.facts(), || PART.to_owned());
        let name = &facts.interface;
        let mut instead = Vec::new();
        if let Some(why) = &facts.native_refused {
            instead
                .push(format!("the program runs behind the driver of `{name}` (generic): {why}"));
        }
        if facts.held_by == HeldBy::Interface {
            instead.push(format!(
                "this kernel ties no program to a process: one that is killed leaves it on `{name}` \
                 (`ip link set dev {name} xdp off`)"
            ));
        }
        let unfinished = counts.of(Verdict::Unfinished);
        if unfinished > 0 {
            instead.push(format!(
                "{unfinished} messages had a checksum that their sender left to an interface, and were \
                 left to the host (`ethtool -K NAME tx off` at the sender finishes them)"
            ));
        }
        let to_be_had = |instead| Warning::NotToBeHad { part: part(), instead };
        let early = |reason| Warning::PartEndedEarly { part: part(), reason };
        instead.into_iter().map(to_be_had).chain(lost.map(early)).collect()
    }
}

/// Answers until it is to end. A thread of its own is where the interface is; this one writes.
fn answer(
    recording: &mut Recording<'_, Server<'_>>,
    request: &KernelRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(), RecordError> {
    recording.bench.measurement_begins();
    let reflected = thread::scope(|scope| {
        let (to, told) = channel();
        let worker = thread::Builder::new().name(THREAD_NAME.to_owned());
        let worker = worker.spawn_scoped(scope, move || answer_telling(request, stop, &to));
        let worker = worker.map_err(RecordError::NoThread)?;
        // Ends with the thread, which holds the other end.
        for said in &told {
            match said {
                Said::Listening(announcement) => progress.say(&announcement),
                Said::SoFar(so_far) => {
                    recording.bench.sample();
                    let lasted = so_far.lasted;
                    recording.service.told = Some(so_far);
                    recording.checkpoint(lasted);
                }
            }
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    recording.bench.measurement_ends();
    recording.service.told = Some(Box::new(reflected));
    Ok(())
}

/// A server in the kernel.
struct Server<'a> {
    request: &'a KernelRequest,
    /// What it did until now.
    told: Option<Box<Reflected>>,
}

impl Service for Server<'_> {
    fn has_account(&self) -> bool {
        self.told.is_some()
    }

    fn page(&mut self, _state: RunState, _clock: &ClockFacts) -> Page {
        let request = self.request;
        let mut settings = Settings::from([
            ("server".to_owned(), "a program in the kernel (xdp-tx)".into()),
            ("ends when idle for".to_owned(), request.idle.into()),
            ("protocol".to_owned(), "raw".into()),
            ("listening at".to_owned(), request.at.to_string().into()),
        ]);
        if let Some((bed, role)) = &request.bed {
            settings.insert("bed".to_owned(), format!("{} ({role})", bed.name()).into());
        }
        let account = self.told.clone().map(Account::Server);
        Page { settings, account, ..Page::default() }
    }
}

/// What the thread that looks after the program tells.
enum Said {
    /// It answers.
    Listening(String),
    /// What it did so far.
    SoFar(Box<Reflected>),
}

fn answer_telling(
    request: &KernelRequest,
    stop: &AtomicBool,
    to: &Sender<Said>,
) -> Result<Reflected, RecordError> {
    let answering = Answering::begin(request)?;
    // Whoever started this thread waits for its end.
    let _ = to.send(Said::Listening(answering.announcement()));
    answering.go_on(stop, &mut |so_far| {
        let _ = to.send(Said::SoFar(Box::new(so_far)));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(at: &str, interface: Option<&str>) -> String {
        let request = KernelRequest {
            at: at.parse().unwrap(),
            interface: interface.map(str::to_owned),
            attaching: Wanted::Any,
            bed: None,
            idle: Nanos::SECOND,
        };
        interface_of(&request).unwrap_err().to_string()
    }

    #[test]
    fn where_a_program_would_answer_nobody_is_refused_with_the_reason() {
        assert!(refused("0.0.0.0:7", None).contains("name both"));
        assert!(refused("[ff02::1]:7", None).contains("name both"));
        assert!(refused("198.18.99.99:0", None).contains("name both"));
        assert!(refused("127.0.0.1:7", None).contains("--transport udp"));
        // An address of the documentation (RFC 5737) that no host has.
        assert!(refused("192.0.2.99:7", None).contains("no interface here has"));
        assert!(refused("192.0.2.99:7", Some("lo")).contains("has not that address"));
        assert!(refused("192.0.2.99:7", Some("nosuchport")).contains("nosuchport"));
    }
}
