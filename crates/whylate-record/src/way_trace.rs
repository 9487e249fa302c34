//! Messages on their way through the kernel, by its own tracepoints, on the counter's timeline.
//!
//! One private tracefs instance on all CPUs. Events of the network and of the scheduler are those of
//! everybody, for what is delivered to a socket was sent by whoever sent it; system calls are
//! filtered to the threads that are looked at, and to no others. Whoever is looked at is neither
//! changed nor asked: it pays for the tracepoints it passes, and for nothing else.
//!
//! Beside those that messages are followed by there are some that say what kept them: interrupts and
//! soft interrupts, the scheduler, polls that took frames in, datagrams without room at their socket.
//! They stand beside slow requests. What the kernel has not is named as missing, and done without.

use std::collections::BTreeMap;

use whylate_host::guard::Guard;
use whylate_host::journal::Journal;
use whylate_model::event::Event;
use whylate_model::run::{TraceFacts, TraceLoss};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks};
use whylate_trace::OnTheWay;

use crate::kernel_trace::NoTrace;
use crate::kernel_trace::buffers::{
    Lost, Opening, Refused, Side, TICK_CLOCK, Wanted, drain, tracefs_on_the_counter,
};

/// Buffer of each CPU. A message leaves some ten events of 60 bytes: it holds those of 14 000, and is
/// emptied 100 ms after it was last, or 20 ms where whoever empties it shares its CPU with an end or
/// watches a process.
const BUFFER_KIB: u32 = 8192;
/// Events stamped later than this before a poll may still be on their way into the buffer.
pub(crate) const IN_FLIGHT: Nanos = Nanos(1_000_000);
/// More threads than this go into no filter, which has to fit into a page: their range does.
const MOST_NAMED: usize = 150;

/// What is not seen where a filter is refused from the beginning, and where it is later.
const NEVER_SEEN: &str = "events of the kernel's trace that cannot be filtered";
const NEW_UNSEEN: &str = "system calls of threads that were found after the trace had begun";

/// What comes out of the trace, CPU by CPU.
pub(crate) enum Came {
    /// Events of a CPU, in their order.
    Events(CpuId, Vec<Event>),
    /// Events of a CPU were lost: after those before, and before the next.
    Lost(CpuId),
    /// Everything of a CPU before this has come.
    Complete(CpuId, Ticks),
}

/// A running trace of messages.
pub(crate) struct WayTrace {
    side: Side,
    threads: Vec<Pid>,
    facts: TraceFacts,
    lost: BTreeMap<CpuId, Lost>,
    page: Vec<u8>,
    /// Filters that could not be changed when other threads were to be looked at.
    refused: Refused,
}

impl WayTrace {
    /// Opens the instance with its events on. `online` are all CPUs of the machine, `threads` those
    /// whose system calls are wanted.
    pub(crate) fn start(
        journal: &Journal,
        online: &[CpuId],
        threads: &[Pid],
    ) -> Result<Self, NoTrace> {
        let tracefs = tracefs_on_the_counter()?;
        let mut facts = TraceFacts { clock: TICK_CLOCK.to_owned(), ..TraceFacts::default() };
        let opening = Opening {
            journal,
            tracefs: &tracefs,
            online,
            tag: "way",
            traced: online,
            buffer_kib: BUFFER_KIB,
        };
        let threads = sorted(threads);
        let wanted = whylate_trace::wanted_on_the_way().iter().map(|of| Wanted {
            system: of.system,
            event: of.event,
            filter: filter_of(of, &threads),
        });
        let side = opening.side(&wanted.collect::<Vec<_>>(), &mut facts)?;
        let page = vec![0; side.page_bytes()];
        let refused = Refused::default();
        Ok(Self { side, threads, facts, lost: BTreeMap::new(), page, refused })
    }

    /// From here on the system calls of these threads are wanted. Nothing is done where they are the
    /// same as before.
    pub(crate) fn look_at(&mut self, threads: &[Pid]) {
        let threads = sorted(threads);
        if threads == self.threads {
            return;
        }
        for of in whylate_trace::wanted_on_the_way().iter().filter(|of| of.by_thread) {
            let on = self.facts.events.contains(&format!("{}:{}", of.system, of.event));
            if let Some(words) = filter_of(of, &threads).filter(|_| on) {
                let file = format!("events/{}/{}/filter", of.system, of.event);
                // Where it is refused, the calls of the new threads are missing, and that is told.
                if let Err(error) = self.side.instance.instance().write(&file, &words) {
                    self.refused.add(&format!("{}:{}", of.system, of.event), &error);
                }
            }
        }
        self.threads = threads;
    }

    /// Hands over every event recorded so far. `now` is a reading made before the call.
    pub(crate) fn poll(&mut self, now: Ticks, rate: Hertz, each: &mut dyn FnMut(Came)) {
        let complete = Ticks(now.0.saturating_sub(IN_FLIGHT.to_ticks(rate).0));
        for source in &mut self.side.sources {
            let mut events = Vec::new();
            let drained = drain(source, &self.side.decoder, &mut self.page, &mut events);
            self.facts.events_measured += events.len() as u64;
            let last = events.last().map(|event| event.ticks);
            // What was lost lies somewhere among them: nothing that is open then can be trusted.
            each(Came::Events(source.cpu, events));
            if drained.lost.events > 0 {
                self.facts.lost += drained.lost.events;
                self.lost.entry(source.cpu).or_default().add(drained.lost);
                each(Came::Lost(source.cpu));
            }
            source.seen = last.unwrap_or(source.seen);
            if drained.exhausted {
                each(Came::Complete(source.cpu, complete));
            }
        }
    }

    /// Throws away what was recorded so far.
    pub(crate) fn discard(&mut self) {
        self.side.discard(&mut self.page);
    }

    /// What the trace was so far.
    pub(crate) fn facts(&self) -> TraceFacts {
        let losses = self.lost.iter().map(|(cpu, lost)| TraceLoss {
            cpu: *cpu,
            events: lost.events,
            exactly: !lost.unknown,
        });
        TraceFacts { losses: losses.collect(), ..self.facts.clone() }
    }

    /// Ends the trace, removes the instance, and says what could not be removed and which filters were
    /// refused.
    pub(crate) fn finish(self) -> (TraceFacts, Vec<Warning>) {
        let facts = self.facts();
        let mut side = self.side;
        // An instance cannot be removed while one of its files is open.
        side.sources.clear();
        let mut warnings = side.instance.restore();
        warnings.extend(side.refused.warning(NEVER_SEEN));
        warnings.extend(self.refused.warning(NEW_UNSEEN));
        (facts, warnings)
    }
}

fn sorted(threads: &[Pid]) -> Vec<Pid> {
    let mut threads = threads.to_vec();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// The kernel's filter for this kind of events, of these threads where that matters.
fn filter_of(of: &OnTheWay, threads: &[Pid]) -> Option<String> {
    match (of.by_thread.then(|| of_threads(threads)), of.filter) {
        (None, filter) => filter.map(str::to_owned),
        (Some(threads), None) => Some(threads),
        (Some(threads), Some(filter)) => Some(format!("({threads}) && ({filter})")),
    }
}

/// Events of these threads, which are sorted.
fn of_threads(threads: &[Pid]) -> String {
    match threads {
        // The idle thread calls nothing.
        [] => "common_pid == 0".to_owned(),
        [first, .., last] if threads.len() > MOST_NAMED => {
            format!("common_pid >= {first} && common_pid <= {last}")
        }
        _ => {
            let each: Vec<String> =
                threads.iter().map(|thread| format!("common_pid == {thread}")).collect();
            each.join(" || ")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::thread;
    use std::time::Duration;

    use whylate_clock::HardwareCounter;
    use whylate_model::event::EventKind;
    use whylate_port::{Frame, Options, Port, Received, Server, Setup, Target, Transport, Wait};
    use whylate_suite::{absent, missing};
    use whylate_sys::affinity;

    use super::*;

    /// More datagrams than a socket has room for.
    const SENT: u64 = 3_000;
    /// So many are sent before it is waited until they have been judged: fewer than loopback's
    /// backlog of a CPU holds.
    const AT_ONCE: u64 = 200;
    const ROOM: usize = 64 << 10;

    /// A socket with less room than what it is sent takes, and where it is.
    fn small(counter: HardwareCounter) -> (Box<dyn Port>, SocketAddr) {
        let target = Target::Address("127.0.0.1:0".parse().unwrap());
        let options = Options { receive_buffer: Some(ROOM), ..Options::default() };
        let server = Server { transport: Transport::Udp, target, options };
        let setup = Setup { counter, rate: Hertz(1e9), wait: Wait::Spin };
        let socket = server.open(setup, |_| Frame::Unknown).unwrap();
        let at = socket.facts().socket.as_ref().unwrap().local.parse().unwrap();
        (socket, at)
    }

    /// Sends them all from one CPU. Loopback's backlog of a CPU is first in, first out: once the last
    /// of some has come to a socket of its own, those before it have been taken or refused.
    fn send_all(cpu: CpuId, to: SocketAddr) {
        affinity::set(&[cpu]).unwrap();
        let [from, done] = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        done.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let marker = done.local_addr().unwrap();
        for number in 1..=SENT {
            from.send_to(&[0; 64], to).unwrap();
            if number.is_multiple_of(AT_ONCE) {
                from.send_to(&[0; 64], marker).unwrap();
                done.recv(&mut [0; 64]).unwrap();
            }
        }
    }

    #[test]
    fn datagrams_without_room_are_told_one_by_one_with_their_port_beside_the_polls() {
        let counter = match HardwareCounter::open() {
            Ok(counter) => counter,
            Err(reason) => return missing(&reason),
        };
        let journal = Journal::open().unwrap();
        let online = affinity::get();
        let mut trace = match WayTrace::start(&journal, &online, &[]) {
            Ok(trace) => trace,
            Err(no) => return absent(&no.reason),
        };
        let (mut socket, at) = small(counter);
        let port = at.port();
        // A thread of its own, so that no binding outlives the test.
        thread::scope(|scope| scope.spawn(|| send_all(online[0], at)).join().unwrap());
        let mut comes =
            || matches!(socket.receive(&mut [0; 64], Nanos(0)), Ok(Received::Message { .. }));
        let mut taken = 0;
        while comes() {
            taken += 1;
        }
        let (mut refused, mut polls) = (0, 0);
        trace.poll(Ticks(0), Hertz(1e9), &mut |came| {
            let Came::Events(_, events) = came else { return };
            for event in events {
                match event.kind {
                    EventKind::UdpRefused { error, port: told } if told == Some(port) => {
                        assert!(error < 0, "{error}");
                        refused += 1;
                    }
                    EventKind::NapiPoll { work, .. } => {
                        assert!(work > 0, "a poll for nothing");
                        polls += 1;
                    }
                    _ => (),
                }
            }
        });
        let (facts, left) = trace.finish();
        assert!(left.is_empty(), "{left:?}");
        let on = |name: &str| {
            let there = facts.events.iter().any(|event| event == name);
            let missing = facts.missing.iter().any(|event| event == name);
            assert!(there != missing, "{name} is on or missing: {facts:?}");
            there
        };
        assert!(taken < SENT, "the socket had room for all of them");
        if facts.lost > 0 {
            return absent(&format!("{} events were lost", facts.lost));
        }
        if on("udp:udp_fail_queue_rcv_skb") {
            assert_eq!(refused, SENT - taken);
        }
        if on("napi:napi_poll") {
            assert!(polls > 0);
        }
        on("irq:irq_handler_entry");
        on("irq:irq_handler_exit");
    }

    #[test]
    fn a_filter_names_each_thread_and_of_too_many_their_range() {
        let of = |threads: &[i32]| {
            let threads: Vec<Pid> = threads.iter().copied().map(Pid).collect();
            of_threads(&sorted(&threads))
        };
        assert_eq!(of(&[]), "common_pid == 0");
        assert_eq!(of(&[7]), "common_pid == 7");
        assert_eq!(of(&[9, 7, 9]), "common_pid == 7 || common_pid == 9");
        let many: Vec<i32> = (1_000..1_200).rev().collect();
        assert_eq!(of(&many), "common_pid >= 1000 && common_pid <= 1199");
        // The longest that names each fits into a page.
        let named: Vec<i32> = (4_194_000..4_194_000 + MOST_NAMED as i32).collect();
        assert!(of(&named).len() < 4_096, "{}", of(&named).len());
    }
}
