//! Threads: which call they are in, and when they slept.

use std::collections::{HashMap, VecDeque};

use whylate_model::event::Protocol;
use whylate_model::{Pid, Ticks};

use super::Passage;

/// Calls of a thread whose sockets are remembered: messages that are read after their sender's call
/// was over ask for them.
const CALLS_KEPT: usize = 64;
/// Sleeps of a thread that are remembered: a message that waited while its reader slept more often
/// has no wake-up of its own.
const SLEEPS_KEPT: usize = 8;
/// Messages that wait for the end of their sender's call.
const HELD_MOST: usize = 256;

/// From when on a thread could not run.
#[derive(Debug, Clone, Copy)]
struct Sleep {
    from: Ticks,
    woken: Option<Ticks>,
    ran: Option<Ticks>,
}

#[derive(Debug, Default)]
struct Thread {
    /// The number of the call that is under way, or of the next.
    call: u64,
    begun: Option<Ticks>,
    /// The sockets of the last calls.
    over: VecDeque<(u64, (u64, Protocol))>,
    /// Messages that ended before the call that sent them.
    held: Vec<(u64, Passage)>,
    sleeps: VecDeque<Sleep>,
    /// The last buffer that was copied to it.
    copied: Option<(u64, u32)>,
    /// It sends or reads.
    talks: bool,
}

/// All threads that were heard of.
#[derive(Debug)]
pub(super) struct Threads {
    known: HashMap<Pid, Thread>,
    most: usize,
}

impl Threads {
    pub(super) fn new(most: usize) -> Self {
        Self { known: HashMap::new(), most: most.max(4) }
    }

    /// Forgets everything; gives back how many messages were held.
    pub(super) fn clear(&mut self) -> u64 {
        let held: usize = self.known.values().map(|thread| thread.held.len()).sum();
        // The numbers of calls go on: pieces of two messages must not have one in common.
        for thread in self.known.values_mut() {
            let call = thread.call + 1;
            *thread = Thread { call, talks: thread.talks, ..Thread::default() };
        }
        held as u64
    }

    /// None where there is no room for another one.
    fn of(&mut self, pid: Pid) -> Option<&mut Thread> {
        if self.known.len() >= self.most && !self.known.contains_key(&pid) {
            self.known.retain(|_, thread| thread.talks);
            if self.known.len() >= self.most {
                return None;
            }
        }
        Some(self.known.entry(pid).or_default())
    }

    /// A call that sends begins.
    pub(super) fn calls(&mut self, pid: Pid, at: Ticks) {
        if let Some(thread) = self.of(pid) {
            thread.begun = Some(at);
            thread.talks = true;
        }
    }

    /// A message is being taken: the call began here at the latest.
    pub(super) fn takes(&mut self, pid: Pid, at: Ticks) {
        if let Some(thread) = self.of(pid) {
            thread.begun.get_or_insert(at);
            thread.talks = true;
        }
    }

    /// The call that a thread is in: its number, and when it began where that is known.
    pub(super) fn call(&mut self, pid: Pid) -> Option<(u64, Option<Ticks>)> {
        let thread = self.of(pid)?;
        thread.talks = true;
        Some((thread.call, thread.begun))
    }

    /// The call is over; what it sent and what ended since goes to `done`.
    pub(super) fn sent(
        &mut self,
        pid: Pid,
        socket: (u64, Protocol),
        done: &mut Vec<(u64, Passage)>,
    ) {
        let Some(thread) = self.of(pid) else { return };
        if thread.over.len() == CALLS_KEPT {
            thread.over.pop_front();
        }
        thread.over.push_back((thread.call, socket));
        thread.call += 1;
        thread.begun = None;
        let known = |(id, passage)| (id, by_socket(passage, socket));
        done.extend(thread.held.drain(..).map(known));
    }

    /// A message that ended: to `done` with its sender's socket, or held until the sender's call ends.
    pub(super) fn end(&mut self, id: u64, passage: Passage, done: &mut Vec<(u64, Passage)>) {
        let thread = passage.sender.and_then(|sender| self.known.get_mut(&sender));
        let Some(thread) = thread else { return done.push((id, passage)) };
        if thread.call == passage.call && thread.held.len() < HELD_MOST {
            return thread.held.push((id, passage));
        }
        let call = thread.over.iter().rev().find(|(call, _)| *call == passage.call);
        let known = call.map_or(passage, |(_, socket)| by_socket(passage, *socket));
        done.push((id, known));
    }

    /// The messages that are held for the end of a call that does not come.
    pub(super) fn release(&mut self, sender: Pid, done: &mut Vec<(u64, Passage)>) {
        if let Some(thread) = self.known.get_mut(&sender) {
            done.append(&mut thread.held);
        }
    }

    pub(super) fn copied(&mut self, pid: Pid, skb: u64, length: u32) {
        if let Some(thread) = self.of(pid) {
            thread.copied = Some((skb, length));
        }
    }

    /// The last buffer that was copied to the thread since it read before.
    pub(super) fn take_copied(&mut self, pid: Pid) -> Option<(u64, u32)> {
        self.known.get_mut(&pid)?.copied.take()
    }

    /// A thread left its CPU; one that was not blocked could have gone on.
    pub(super) fn leaves(&mut self, pid: Pid, at: Ticks, blocked: bool) {
        // The idle threads are many under one number, and wait for no message.
        if !blocked || pid == Pid(0) {
            return;
        }
        if let Some(thread) = self.of(pid) {
            if thread.sleeps.len() == SLEEPS_KEPT {
                thread.sleeps.pop_front();
            }
            thread.sleeps.push_back(Sleep { from: at, woken: None, ran: None });
        }
    }

    pub(super) fn woken(&mut self, pid: Pid, at: Ticks) {
        let Some(thread) = self.of(pid) else { return };
        if thread.sleeps.is_empty() {
            // It went to sleep before anything was seen of it.
            thread.sleeps.push_back(Sleep { from: Ticks(0), woken: None, ran: None });
        }
        if let Some(sleep) = self.asleep(pid) {
            sleep.woken.get_or_insert(at);
        }
    }

    pub(super) fn runs(&mut self, pid: Pid, at: Ticks) {
        if let Some(sleep) = self.asleep(pid)
            && sleep.woken.is_some()
        {
            sleep.ran.get_or_insert(at);
        }
    }

    fn asleep(&mut self, pid: Pid) -> Option<&mut Sleep> {
        self.known.get_mut(&pid)?.sleeps.back_mut()
    }

    /// When a thread that slept at that moment was woken and had a CPU; nothing of one that was awake.
    pub(super) fn waking(&mut self, pid: Pid, at: Ticks) -> (Option<Ticks>, Option<Ticks>) {
        if let Some(thread) = self.of(pid) {
            thread.talks = true;
        }
        let sleeps = self.known.get(&pid).map(|thread| &thread.sleeps);
        let within =
            |sleep: &&Sleep| sleep.from <= at && sleep.woken.is_some_and(|woken| at <= woken);
        let sleep = sleeps.and_then(|sleeps| sleeps.iter().find(within));
        sleep.map_or((None, None), |sleep| (sleep.woken, sleep.ran))
    }
}

fn by_socket(passage: Passage, (socket, protocol): (u64, Protocol)) -> Passage {
    let protocol = passage.protocol.or(Some(protocol));
    Passage { sending_socket: Some(socket), protocol, ..passage }
}
