//! The reflector: answers one client's well-formed requests, and nothing else.
//!
//! It learns whom to answer from the first greeting, unless it was told. It ends when the client
//! says so, when the client is gone, when its caller says so, or when nothing has come for a while:
//! a reflector is never left behind.

use whylate_model::{Nanos, TicksDelta};
use whylate_port::{Port, PortError, Received};
use whylate_stats::histogram::Histogram;

use crate::error::NetError;
use crate::message::{Cookie, FAREWELL_BYTES, Header, Kind, MAX_BYTES, ReflectorReport};

/// Whether to go on is asked this often while nothing comes.
const LOOK: Nanos = Nanos(100_000_000);

/// How to reflect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reflector {
    /// Whom to answer; none takes the first that greets.
    pub cookie: Option<Cookie>,
    /// Ends after so long without any message.
    pub idle: Nanos,
}

impl Default for Reflector {
    /// Answers the first that greets, and ends after a minute without a message.
    fn default() -> Self {
        Self { cookie: None, idle: Nanos(60_000_000_000) }
    }
}

/// What a reflector did.
#[derive(Debug)]
pub struct ReflectSummary {
    /// Measured requests answered.
    pub echoed: u64,
    /// Messages that were not well-formed or not this client's, and not answered.
    pub foreign: u64,
    /// Requests whose answer could not be sent.
    pub unsent: u64,
    /// Residence of measured requests, in ticks of the port's counter: from the stamp of the
    /// reception to the one of the sending.
    pub residence: Histogram,
    /// Whom it answered.
    pub cookie: Option<Cookie>,
    /// Why it ended.
    pub why: ReflectEnd,
}

/// Why a reflector ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReflectEnd {
    /// The client said that it had finished.
    ToldTo,
    /// The client's end of the port is gone.
    PeerGone,
    /// The caller said so: its stop flag, or the death of the parent process.
    Stopped,
    /// Nothing came for the idle limit.
    Idle,
    /// The interface of its port was gone or down.
    LinkLost,
}

/// Answers requests until one of the ends comes. `go_on` is asked whenever nothing has come for
/// 100 ms.
pub fn reflect<P: Port + ?Sized>(
    port: &mut P,
    settings: Reflector,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<ReflectSummary, NetError> {
    let mut buffer = vec![0; MAX_BYTES];
    let mut summary = ReflectSummary {
        echoed: 0,
        foreign: 0,
        unsent: 0,
        residence: Histogram::new(),
        cookie: settings.cookie,
        why: ReflectEnd::Stopped,
    };
    let mut idle_looks = 0;
    loop {
        let (length, received) = match port.receive(&mut buffer, LOOK) {
            Ok(Received::Message { length, at }) => (length, at),
            Ok(Received::Nothing { .. }) => {
                idle_looks += 1;
                if idle_looks * LOOK.0 >= settings.idle.0 {
                    summary.why = ReflectEnd::Idle;
                    return Ok(summary);
                }
                if !go_on() {
                    return Ok(summary);
                }
                continue;
            }
            Err(error) if error.is_peer_gone() => {
                summary.why = ReflectEnd::PeerGone;
                return Ok(summary);
            }
            Err(error) => return Err(error.into()),
        };
        idle_looks = 0;
        let answer = buffer
            .get_mut(..length)
            .and_then(|message| answer_in_place(message, &mut summary.cookie));
        let Some(kind) = answer else {
            summary.foreign += 1;
            continue;
        };
        let sent = if kind == Kind::Farewell {
            port.send(&farewell(&buffer[..length], &summary))
        } else {
            port.send(&buffer[..length])
        };
        match sent {
            Ok(sent) if kind == Kind::Reply => {
                summary.echoed += 1;
                summary.residence.record(sent.since(received).0);
            }
            Ok(_) => (),
            Err(error) if error.is_peer_gone() => {
                summary.why = ReflectEnd::PeerGone;
                return Ok(summary);
            }
            // The client does not read: it finds the answer missing, and the account says why.
            Err(PortError::SendTimedOut { .. }) => summary.unsent += 1,
            Err(error) => return Err(error.into()),
        }
        if kind == Kind::Farewell {
            summary.why = ReflectEnd::ToldTo;
            return Ok(summary);
        }
    }
}

/// Turns a request into its answer; none when it is not to be answered. `ours` is whom to answer,
/// and is learnt from the first greeting.
pub fn answer_in_place(message: &mut [u8], ours: &mut Option<Cookie>) -> Option<Kind> {
    let header = Header::parse(message)?;
    let kind = header.kind.answer()?;
    let known = match *ours {
        Some(cookie) => cookie == header.cookie,
        None => header.kind == Kind::Hello,
    };
    if !known {
        return None;
    }
    *ours = Some(header.cookie);
    Header { kind, ..header }.write(message);
    Some(kind)
}

fn farewell(answer: &[u8], summary: &ReflectSummary) -> [u8; FAREWELL_BYTES] {
    let mut message = [0; FAREWELL_BYTES];
    if let Some(header) = Header::parse(answer) {
        header.write(&mut message);
    }
    let ticks = |value: Option<u64>| TicksDelta(value.unwrap_or(0));
    let residence = &summary.residence;
    let report = ReflectorReport {
        echoed: summary.echoed,
        foreign: summary.foreign,
        residence_min: ticks(residence.min()),
        residence_median: ticks(residence.value_at(50.0)),
        residence_max: ticks(residence.max()),
        ..ReflectorReport::default()
    };
    report.write(&mut message);
    message
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use whylate_clock::HardwareCounter;
    use whylate_model::Hertz;
    use whylate_model::warning::Warning;
    use whylate_port::udp::{Family, loopback_pair};
    use whylate_port::{Setup, Wait, inherited, unix};
    use whylate_suite::{absent, missing};
    use whylate_sys::affinity;
    use whylate_threads::Placement;

    use super::*;
    use crate::closed_loop::{ClosedLoop, Ended};

    /// Two ends of each kind there is, each with this way to wait.
    fn ports(wait: Wait) -> Vec<[Box<dyn Port>; 2]> {
        let counter = match HardwareCounter::open() {
            Ok(counter) => counter,
            Err(reason) => {
                missing(&reason);
                return Vec::new();
            }
        };
        // The rate only bounds waits and scales what no test compares with a clock.
        let setup = Setup { counter, rate: Hertz(1e9), wait };
        [unix::pair(), loopback_pair(Family::V4), loopback_pair(Family::V6)]
            .into_iter()
            .filter_map(|pair| pair.inspect_err(absent).ok())
            .map(|(a, b)| [a, b].map(|end| inherited::open(end, setup).unwrap()))
            .collect()
    }

    fn ask(port: &mut Box<dyn Port>, request: &[u8], limit_ns: u64) -> Option<Vec<u8>> {
        port.send(request).unwrap();
        let mut buffer = vec![0; 2_000];
        match port.receive(&mut buffer, Nanos(limit_ns)).unwrap() {
            Received::Message { length, .. } => Some(buffer[..length].to_vec()),
            Received::Nothing { .. } => None,
        }
    }

    fn message(kind: Kind, cookie: u64) -> [u8; 64] {
        let mut message = [0x77; 64];
        Header { kind, cookie: Cookie(cookie), sequence: 5 }.write(&mut message);
        message
    }

    #[test]
    fn a_closed_loop_with_a_reflector_thread_loses_nothing_on_any_backend() {
        for wait in [Wait::Block, Wait::Spin] {
            for [mut here, mut there] in ports(wait) {
                let backend = here.facts().backend;
                thread::scope(|scope| {
                    let reflector = scope
                        .spawn(move || reflect(&mut there, Reflector::default(), &mut || true));
                    let settings = ClosedLoop {
                        requests: 300,
                        warmup_requests: 20,
                        timeout: Nanos(20_000_000_000),
                        duration: Nanos(60_000_000_000),
                        ..ClosedLoop::new(Hertz(1e9))
                    };
                    let (stop, placement) = (AtomicBool::new(false), Placement::default());
                    let placed =
                        settings.run_placed(placement, &mut here, &stop, &mut |_| ()).unwrap();
                    let outcome = placed.outcome;
                    assert!(matches!(outcome.why, Ended::Requests), "{backend} {:?}", outcome.why);
                    assert!(outcome.adds_up(), "{backend} {:?}", outcome.accounting);
                    assert_eq!((outcome.service.len(), outcome.censored), (300, 0), "{backend}");
                    assert_eq!(outcome.accounting.received, 300);
                    assert_eq!(outcome.turnaround.len(), 299);
                    let summary = reflector.join().unwrap().unwrap();
                    assert_eq!(summary.why, ReflectEnd::ToldTo);
                    assert_eq!((summary.echoed, summary.foreign), (300, 0));
                    // On a busy machine the account comes too late to be waited for.
                    assert!(outcome.reflector.is_none_or(|report| report.echoed == 300));
                    // A request is longer under way than it resides.
                    let (round_trip, residence) =
                        (outcome.service.min().unwrap(), summary.residence.min().unwrap());
                    assert!(residence > 0 && residence < round_trip, "{residence} {round_trip}");
                });
            }
        }
    }

    #[test]
    fn only_well_formed_requests_with_the_first_greeters_cookie_are_answered() {
        for [mut here, mut there] in ports(Wait::Block) {
            thread::scope(|scope| {
                let reflector =
                    scope.spawn(move || reflect(&mut there, Reflector::default(), &mut || true));
                let unanswered = |here: &mut _, request: &[u8], why| {
                    assert_eq!(ask(here, request, 30_000_000), None, "{why}");
                };
                let answer = |here: &mut _, kind| {
                    ask(here, &message(kind, 1), 20_000_000_000).expect("an answer")
                };
                unanswered(&mut here, &message(Kind::Probe, 1), "nobody has greeted yet");
                unanswered(&mut here, b"hello?", "not well-formed");
                assert_eq!(answer(&mut here, Kind::Hello), message(Kind::Welcome, 1));
                unanswered(&mut here, &message(Kind::Hello, 2), "another client");
                unanswered(&mut here, &message(Kind::Probe, 2), "another client");
                unanswered(&mut here, &message(Kind::Reply, 1), "answers are not answered");
                unanswered(&mut here, &[0x55; 1_500], "not well-formed");
                assert_eq!(answer(&mut here, Kind::Probe), message(Kind::Reply, 1));
                unanswered(&mut here, &message(Kind::End, 2), "others cannot end it");
                let farewell = answer(&mut here, Kind::End);
                let report = ReflectorReport::parse(&farewell).unwrap();
                let summary = reflector.join().unwrap().unwrap();
                assert_eq!((summary.echoed, summary.foreign), (1, 7));
                assert_eq!((report.echoed, report.foreign), (1, 7));
                assert_eq!(summary.cookie, Some(Cookie(1)));
            });
        }
    }

    #[test]
    fn a_reflector_ends_when_its_caller_says_so_and_when_nothing_comes() {
        for wait in [Wait::Block, Wait::Spin] {
            for [_here, mut there] in ports(wait) {
                let mut asked = 0;
                let mut twice = || {
                    asked += 1;
                    asked < 2
                };
                let summary = reflect(&mut there, Reflector::default(), &mut twice).unwrap();
                assert_eq!((summary.why, asked), (ReflectEnd::Stopped, 2));
                let settings = Reflector { cookie: None, idle: Nanos(200_000_000) };
                let summary = reflect(&mut there, settings, &mut || true).unwrap();
                assert_eq!(summary.why, ReflectEnd::Idle);
            }
        }
    }

    #[test]
    fn a_client_that_is_moved_to_another_cpu_is_told() {
        let cpus = affinity::get();
        let [here, elsewhere, ..] = cpus[..] else { return absent("one CPU only") };
        let Some([mut near, mut far]) = ports(Wait::Block).into_iter().next() else { return };
        thread::scope(|scope| {
            scope.spawn(move || reflect(&mut far, Reflector::default(), &mut || true));
            let settings = ClosedLoop {
                requests: 2_000,
                warmup_requests: 0,
                timeout: Nanos(20_000_000_000),
                duration: Nanos(60_000_000_000),
                interval: Nanos(1_000_000),
                ..ClosedLoop::new(Hertz(1e9))
            };
            let (stop, placement) =
                (AtomicBool::new(false), Placement { cpu: Some(here), fifo: None });
            let mut move_away = |_| affinity::set(&[elsewhere]).unwrap();
            let placed = settings.run_placed(placement, &mut near, &stop, &mut move_away).unwrap();
            let moved = placed.outcome.elsewhere;
            assert!(moved > 0 && moved < 2_000, "{moved}");
            let told = |w: &Warning| matches!(w, Warning::HostChanged { .. }) && w.spoils_trust();
            assert!(placed.warnings.iter().any(told), "{:?}", placed.warnings);
        });
    }

    #[test]
    fn a_reflector_ends_when_its_client_is_gone() {
        for [mut here, mut there] in ports(Wait::Block) {
            here.send(&message(Kind::Hello, 1)).unwrap();
            drop(here);
            let summary = reflect(&mut there, Reflector::default(), &mut || true).unwrap();
            assert_eq!(summary.why, ReflectEnd::PeerGone, "{}", there.facts().backend);
        }
    }
}
