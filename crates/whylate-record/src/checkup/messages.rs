//! Messages between two processes, and UDP round trips, on the same core and on another one.
//!
//! A reflector that dies, a port that fails, a request without an answer: each is said in the run,
//! and what is not known is not printed as if it were.

use std::os::fd::OwnedFd;

use whylate_clock::{Counter, HardwareCounter};
use whylate_host::cpus::Opposite;
use whylate_host::watch::Watched;
use whylate_model::series::{Censored, Definition};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos};
use whylate_net::closed_loop::{Ended, Outcome};
use whylate_net::{ClosedLoop, ReflectorProcess};
use whylate_port::port::{Setup, Wait};
use whylate_port::{Port, udp, unix};
use whylate_threads::Placement;

use super::{Checkup, PARTS_OF_TIME};
use crate::RecordError;
use crate::attend::Part;
use crate::summary::Description;

/// The time ends a row of messages, not their number.
const MOST_REQUESTS: u64 = 1_000_000_000;
/// A reflector that was told that this is the end takes a moment to go.
const LEAVE_TAKING: Nanos = Nanos(500_000_000);

/// Which way a message goes.
#[derive(Debug, Clone, Copy)]
enum Way {
    Unix,
    Udp,
}

/// Where the other end of the messages is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    cpu: CpuId,
    name: &'static str,
    /// The paper's row of messages between processes there.
    paper_row: Option<&'static str>,
}

/// One row of messages.
#[derive(Debug, Clone, Copy)]
struct Row {
    way: Way,
    place: Place,
}

/// The same core and, where there is one, another.
fn places(here: CpuId, opposite: Option<Opposite>) -> Vec<Place> {
    let mut places = vec![Place { cpu: here, name: "same core", paper_row: Some("2a") }];
    places.extend(opposite.map(|opposite| match opposite {
        Opposite::OtherCore(cpu) => Place { cpu, name: "other core", paper_row: Some("2b") },
        // The paper's row is between cores.
        Opposite::Sibling(cpu) => Place { cpu, name: "sibling", paper_row: None },
    }));
    places
}

impl Checkup<'_> {
    /// Every kind of message to every place.
    pub(super) fn messages(&mut self) {
        let places = places(self.request.cpu, self.bench.opposite(self.request.cpu));
        if places.len() == 1 {
            self.warn(Warning::PartLeftOut {
                part: "messages to another core".to_owned(),
                reason: format!("this process may use no CPU but {}", self.request.cpu),
            });
        }
        for way in [Way::Unix, Way::Udp] {
            for place in &places {
                let row = Row { way, place: *place };
                self.part(&row.label(), |checkup| checkup.message(row));
            }
        }
    }

    fn message(&mut self, row: Row) -> Result<(), RecordError> {
        let label = row.label();
        let (near, far) = match row.way {
            Way::Unix => unix::pair()?,
            Way::Udp => udp::loopback_pair(udp::Family::V4)?,
        };
        let mut socket = self.port(row.way, near)?;
        let cpu = row.place.cpu;
        let arguments = ["reflect-stdin".to_owned(), "--cpu".to_owned(), cpu.to_string()];
        let mut reflector = ReflectorProcess::spawn(&self.request.program, arguments, far, cpu)?;
        let duration = self.request.times.message;
        let closed_loop = ClosedLoop {
            requests: MOST_REQUESTS,
            duration,
            interval: Nanos(duration.0 / PARTS_OF_TIME),
            ..ClosedLoop::new(self.bench.rate)
        };
        let mut intervals = Vec::new();
        let (placement, stop) = (Placement { cpu: Some(self.request.cpu), fifo: None }, self.stop);
        let watched = [Watched { tid: reflector.pid(), cpus: vec![cpu] }];
        let part =
            Part { what: &label, duration, cpus: &[self.request.cpu, cpu], watched: &watched };
        let ended = self.attend(&part, || {
            closed_loop.run_placed(placement, &mut socket, stop, &mut |interval| {
                intervals.push(interval.service);
            })
        })??;
        for warning in ended.warnings {
            self.warn(warning);
        }
        let outcome = ended.outcome;
        // A Ctrl-C reaches the reflector, too.
        let cut_short = if self.stopped() { None } else { cut_short(&outcome, &mut reflector) };
        // The star says which row the warning means.
        let label = if cut_short.is_some() { format!("{label}*") } else { label };
        if let Some(reason) = cut_short {
            self.warn(Warning::PartEndedEarly { part: label.clone(), reason });
        }
        let description = row.description(label, self.run.clock.resolution_ns, &outcome);
        let censored = Censored { count: outcome.censored, above: outcome.timeout };
        let censored = (censored.count > 0).then_some(censored);
        self.add(&outcome.service, &intervals, closed_loop.interval, &description, censored);
        Ok(())
    }

    fn port(&self, way: Way, end: OwnedFd) -> Result<Box<dyn Port>, RecordError> {
        let setup = Setup { counter: self.bench.counter, rate: self.bench.rate, wait: Wait::Block };
        Ok(match way {
            Way::Unix => Box::new(unix::UnixDatagram::open(end, setup)?),
            Way::Udp => Box::new(udp::Udp::open(end, setup)?),
        })
    }
}

/// Why a row ended before its time; none when it did not, or when the user stopped it.
fn cut_short(outcome: &Outcome, reflector: &mut ReflectorProcess) -> Option<String> {
    let told_to_go = outcome.reflector.is_some();
    let left = reflector.wait(if told_to_go { LEAVE_TAKING } else { Nanos(0) }).ok().flatten();
    let died = left.filter(|status| !status.success());
    let died = died.map(|status| format!("the reflector's process ended by {status}"));
    match (&outcome.why, died) {
        (Ended::Failed(error), Some(died)) => Some(format!("{died}; {error}")),
        (Ended::Failed(error), None) => Some(error.to_string()),
        (_, died) => died,
    }
}

impl Row {
    fn label(self) -> String {
        match self.way {
            Way::Unix => format!("message, {}", self.place.name),
            Way::Udp => format!("UDP, {}", self.place.name),
        }
    }

    fn description(self, label: String, resolution_ns: f64, outcome: &Outcome) -> Description {
        let (way, paper_row, from) = match self.way {
            Way::Unix => ("unix", self.place.paper_row, "before sending to a Unix socket"),
            Way::Udp => ("udp", None, "before sending to a UDP socket"),
        };
        Description {
            name: format!("{way}-{}", self.place.name.replace(' ', "-")),
            label,
            paper_row,
            from,
            to: "after the receiving system call",
            clock: HardwareCounter::KIND.to_owned(),
            definition: Definition::RoundTrip,
            resolution_ns,
            lost: outcome.accounting.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sibling_is_not_another_core_and_repeats_no_row_of_the_paper() {
        let rows = |opposite| -> Vec<_> {
            let places = places(CpuId(0), opposite);
            places.iter().map(|place| (place.cpu.0, place.name, place.paper_row)).collect()
        };
        let same = (0, "same core", Some("2a"));
        assert_eq!(rows(None), [same]);
        let other = rows(Some(Opposite::OtherCore(CpuId(2))));
        assert_eq!(other, [same, (2, "other core", Some("2b"))]);
        assert_eq!(rows(Some(Opposite::Sibling(CpuId(1)))), [same, (1, "sibling", None)]);
    }
}
