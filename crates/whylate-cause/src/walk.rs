//! Walking the events of one gap in time order, keeping what has the CPU.
//!
//! The state is what the kernel's events imply: which thread is current, and a stack of handlers
//! upon it. Between two events the innermost of them has the time.
//!
//! What the walk makes of incomplete records:
//! - an exit, or a switch away of another thread, without its beginning: the stretch since the
//!   event before it belongs to what ended, if nothing else claims it;
//! - an entry without its exit: it lasts until an event shows that it must have ended (the exit of
//!   an outer handler, a context switch), or to the end of the gap;
//! - an event recorded while another thread was current than the switches say: the thread that the
//!   event names has the CPU from there on.

use whylate_model::cause::{Cause, PriorityClass, Sender};
use whylate_model::event::{Event, EventKind, Softirq, Task};
use whylate_model::{CpuId, Pid, Ticks};

use crate::overlay::{Claim, Piece, lay};
use crate::senders::{self, Found, Signalling};
use crate::split::{self, Setting};

/// A handler on the stack.
#[derive(Debug, Clone)]
struct Frame {
    kind: FrameKind,
    claim: Claim,
    id: u32,
}

#[derive(Debug, Clone)]
enum FrameKind {
    Vector { name: String, device: Device },
    Handler { irq: i32 },
    Softirq(Softirq),
    PageFault,
    Signal,
}

/// The device handler that a vector's frame stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Device {
    None,
    Running(i32),
    Done,
}

/// The thread that is current.
#[derive(Debug, Clone)]
enum Current {
    Own,
    Other { pid: Pid, claim: Claim, id: u32 },
}

/// The walk over one gap.
pub(crate) struct Walk<'a> {
    setting: &'a Setting<'a>,
    end: Ticks,
    cursor: Ticks,
    /// Since when the walk follows this CPU.
    here_since: Ticks,
    current: Current,
    stack: Vec<Frame>,
    /// Frames of our own thread while another is current.
    parked: Vec<Frame>,
    pieces: Vec<Piece>,
    /// The last stretch before the event at hand, where there is one.
    fresh: bool,
    next_id: u32,
    /// Sends before this are too old to have led to anything here.
    since: Ticks,
    /// When each kind of inter-processor interrupt last arrived on this CPU in this gap.
    arrived: [Option<Ticks>; Signalling::KINDS],
    /// Indices of the sends that were found to have led to something here.
    used: Vec<usize>,
    /// The CPU on which each frame or thread with a known sender arrived.
    landed: Vec<(u32, CpuId)>,
}

/// What a walk found.
pub(crate) struct Walked {
    /// From the start of the gap to its end.
    pub(crate) pieces: Vec<Piece>,
    /// Indices of the sends that led to something, in no order.
    pub(crate) sends: Vec<usize>,
    /// The CPU on which each frame or thread with a known sender arrived, by id.
    pub(crate) landed: Vec<(u32, CpuId)>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(start: Ticks, end: Ticks, setting: &'a Setting<'a>) -> Self {
        Self {
            setting,
            end,
            cursor: start,
            here_since: start,
            current: Current::Own,
            stack: Vec::new(),
            parked: Vec::new(),
            pieces: Vec::new(),
            fresh: false,
            next_id: 1,
            since: senders::oldest(start, setting.context),
            arrived: [None; Signalling::KINDS],
            used: Vec::new(),
            landed: Vec::new(),
        }
    }

    /// Takes the next event. Events must come in time order; one that does not counts as
    /// happening at the event before it.
    pub(crate) fn step(&mut self, event: &Event) {
        self.advance(event.ticks);
        let was_current = match &event.kind {
            EventKind::Switch { from, .. } => from.pid,
            _ => event.pid,
        };
        self.correct_current(was_current, event);
        match &event.kind {
            EventKind::VectorEntry { name, .. } => self.enter_vector(name, event),
            EventKind::VectorExit { name, .. } => {
                let found = |kind: &FrameKind| match kind {
                    FrameKind::Vector { name: open, .. } => open == name,
                    _ => false,
                };
                self.leave(found, || Cause::Interrupt { name: name.clone() });
            }
            EventKind::HandlerEntry { irq, name } => self.enter_handler(*irq, name),
            EventKind::HandlerExit { irq } => self.leave_handler(*irq),
            EventKind::SoftirqEntry { vector } => {
                let claim = Claim::Named(Cause::Softirq { vector: *vector }, None);
                self.push(FrameKind::Softirq(*vector), claim);
            }
            EventKind::SoftirqExit { vector } => {
                let found =
                    |kind: &FrameKind| matches!(kind, FrameKind::Softirq(open) if open == vector);
                self.leave(found, || Cause::Softirq { vector: *vector });
            }
            EventKind::Switch { to, .. } => self.switch_to(to, event),
            // A fault of kernel code inside a handler is the handler's; one of user code proves
            // that no handler is left.
            EventKind::PageFault { user, .. } => {
                if *user || !self.in_handler() {
                    self.raise(FrameKind::PageFault, Cause::PageFault);
                }
            }
            EventKind::SignalDeliver { signal } => {
                self.raise(FrameKind::Signal, Cause::Signal { signal: *signal });
            }
            // Stamped at its end; it interrupts anything and nothing interrupts it.
            EventKind::Nmi { .. } => {
                let from = split::began(event, self.setting.context).max(self.here_since);
                let nmi = Claim::Named(Cause::Nmi, None);
                let id = self.fresh_id();
                lay(&mut self.pieces, (from, self.cursor), (&nmi, id), |_| true);
            }
            // Points in time: they say that the kernel was there, and who was current.
            EventKind::Wakeup { .. }
            | EventKind::Migrate { .. }
            | EventKind::SignalGenerate { .. }
            | EventKind::WorkStart { .. }
            | EventKind::WorkEnd { .. }
            | EventKind::IpiSend { .. }
            | EventKind::CallQueued { .. }
            | EventKind::SendCall
            | EventKind::TcpSend { .. }
            | EventKind::NetQueue { .. }
            | EventKind::QdiscIn { .. }
            | EventKind::QdiscOut { .. }
            | EventKind::NetXmit { .. }
            | EventKind::NetReceive { .. }
            | EventKind::NapiPoll { .. }
            | EventKind::TcpSegment { .. }
            | EventKind::SocketReady { .. }
            | EventKind::SocketSent { .. }
            | EventKind::SocketRead { .. }
            | EventKind::SocketPeeked { .. }
            | EventKind::SkbCopied { .. }
            | EventKind::UdpRefused { .. }
            | EventKind::SkbFreed { .. }
            | EventKind::SkbConsumed { .. } => {}
        }
    }

    /// Our thread was moved to another CPU at `at`; `next` is the first event there.
    pub(crate) fn moved(&mut self, at: Ticks, next: Option<&Event>) {
        self.advance(at);
        self.here_since = self.cursor;
        self.arrived = [None; Signalling::KINDS];
        self.park();
        let Some(next) = next else {
            self.resume_own();
            return;
        };
        match &next.kind {
            EventKind::Switch { from, .. } if from.pid != self.setting.own => {
                self.set_other(from.pid, self.task_claim(from, None));
            }
            _ if next.pid != self.setting.own => {
                let claim = self.known_claim(next.pid);
                self.set_other(next.pid, claim);
            }
            _ => self.resume_own(),
        }
    }

    pub(crate) fn finish(mut self) -> Walked {
        let end = self.end;
        self.advance(end);
        Walked { pieces: self.pieces, sends: self.used, landed: self.landed }
    }

    /// Gives the time up to `to` to whatever has the CPU.
    fn advance(&mut self, to: Ticks) {
        let to = to.min(self.end);
        self.fresh = to > self.cursor;
        if !self.fresh {
            return;
        }
        let (claim, id) = match (self.stack.last(), &self.current) {
            (Some(frame), _) => (frame.claim.clone(), frame.id),
            (None, Current::Other { claim, id, .. }) => (claim.clone(), *id),
            (None, Current::Own) => (Claim::Residual, 0),
        };
        self.pieces.push(Piece { start: self.cursor, end: to, claim, id });
        self.cursor = to;
    }

    /// The stretch just passed belongs to `claim` if nobody claimed it: its beginning was not
    /// recorded.
    fn claim_last(&mut self, claim: Claim, id: u32) {
        if let Some(piece) = self.pieces.last_mut()
            && self.fresh
            && piece.claim == Claim::Residual
        {
            piece.claim = claim;
            piece.id = id;
        }
    }

    /// Notes a match for the frame or thread that gets the next id.
    fn note(&mut self, cpu: CpuId, found: Found) -> Option<Sender> {
        self.used.extend(found.sends);
        self.landed.push((self.next_id, cpu));
        found.sender
    }

    fn fresh_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn push(&mut self, kind: FrameKind, claim: Claim) {
        let id = self.fresh_id();
        self.stack.push(Frame { kind, claim, id });
    }

    /// Ends the innermost frame that `found` accepts, and what lies above it.
    fn leave(&mut self, found: impl Fn(&FrameKind) -> bool, cause: impl FnOnce() -> Cause) {
        if let Some(at) = self.stack.iter().rposition(|frame| found(&frame.kind)) {
            self.stack.truncate(at);
        } else {
            let id = self.fresh_id();
            self.claim_last(Claim::Named(cause(), None), id);
        }
    }

    fn enter_vector(&mut self, name: &str, event: &Event) {
        let sender = Signalling::of_vector(name).and_then(|kind| {
            let after = self.arrived[kind.index()].replace(event.ticks).unwrap_or(self.since);
            let found = senders::interrupt(self.setting, event, kind, after)?;
            self.note(event.cpu, found)
        });
        let claim = Claim::Named(Cause::Interrupt { name: name.to_owned() }, sender);
        self.push(FrameKind::Vector { name: name.to_owned(), device: Device::None }, claim);
    }

    /// The first device handler inside a vector gives the whole vector its name; a further one
    /// takes its own time.
    fn enter_handler(&mut self, irq: i32, name: &str) {
        let cause = Cause::Interrupt { name: name.to_owned() };
        if let Some(frame) = self.stack.last_mut()
            && let FrameKind::Vector { device, .. } = &mut frame.kind
            && *device == Device::None
        {
            *device = Device::Running(irq);
            let Claim::Named(named, _) = &mut frame.claim else { return };
            *named = cause;
            let (id, claim) = (frame.id, frame.claim.clone());
            for piece in self
                .pieces
                .iter_mut()
                .rev()
                .take_while(|piece| piece.id >= id)
                .filter(|piece| piece.id == id)
            {
                piece.claim = claim.clone();
            }
        } else {
            self.push(FrameKind::Handler { irq }, Claim::Named(cause, None));
        }
    }

    fn leave_handler(&mut self, irq: i32) {
        let open = self.stack.iter().rposition(|frame| match &frame.kind {
            FrameKind::Handler { irq: open } => *open == irq,
            FrameKind::Vector { device, .. } => *device == Device::Running(irq),
            _ => false,
        });
        let Some(at) = open else {
            let id = self.fresh_id();
            let name = self.setting.context.handler(irq);
            self.claim_last(Claim::Named(Cause::Interrupt { name }, None), id);
            return;
        };
        if let FrameKind::Vector { device, .. } = &mut self.stack[at].kind {
            *device = Device::Done;
            self.stack.truncate(at + 1);
        } else {
            self.stack.truncate(at);
        }
    }

    /// A page fault or a signal of our own thread. The kernel records no end of either, so it
    /// lasts to the next of them or to the end of the gap; interrupts and switches on the way are
    /// nested in it. What other threads fault is their own time.
    fn raise(&mut self, kind: FrameKind, cause: Cause) {
        if matches!(self.current, Current::Own) {
            self.stack.clear();
            self.push(kind, Claim::Named(cause, None));
        }
    }

    fn in_handler(&self) -> bool {
        let handler =
            |frame: &Frame| !matches!(frame.kind, FrameKind::PageFault | FrameKind::Signal);
        self.stack.iter().any(handler)
    }

    fn switch_to(&mut self, to: &Task, event: &Event) {
        self.park();
        if to.pid == self.setting.own {
            self.resume_own();
            return;
        }
        let waker = senders::waker(self.setting, event, to.pid, self.since)
            .and_then(|found| self.note(event.cpu, found));
        self.set_other(to.pid, self.task_claim(to, waker));
    }

    /// Takes the frames off the CPU: handlers cannot survive a switch, so their exits were lost;
    /// those of our own thread wait until it is switched in again.
    fn park(&mut self) {
        let stack = std::mem::take(&mut self.stack);
        if matches!(self.current, Current::Own) {
            let survives = |frame: &Frame| {
                !matches!(frame.kind, FrameKind::Vector { .. } | FrameKind::Handler { .. })
            };
            self.parked = stack.into_iter().filter(survives).collect();
        }
    }

    fn resume_own(&mut self) {
        self.current = Current::Own;
        self.stack = std::mem::take(&mut self.parked);
    }

    fn set_other(&mut self, pid: Pid, claim: Claim) {
        let id = self.fresh_id();
        self.current = Current::Other { pid, claim, id };
    }

    /// `pid` was current when `event` was recorded; if the switches say otherwise, one was lost.
    fn correct_current(&mut self, pid: Pid, event: &Event) {
        let own = self.setting.own;
        match &self.current {
            Current::Own if pid != own => {
                self.park();
                let claim = match &event.kind {
                    EventKind::Switch { from, .. } => self.task_claim(from, None),
                    _ => self.known_claim(pid),
                };
                self.set_other(pid, claim.clone());
                self.claim_last(claim, self.next_id - 1);
            }
            Current::Other { .. } if pid == own => {
                self.stack.clear();
                self.resume_own();
            }
            Current::Other { pid: known, .. } if *known != pid => {
                self.stack.clear();
                let claim = self.known_claim(pid);
                self.set_other(pid, claim);
            }
            _ => {}
        }
    }

    fn known_claim(&self, pid: Pid) -> Claim {
        let context = self.setting.context;
        Claim::Named(self.thread(pid, &context.comm(pid), context.class(pid)), None)
    }

    fn task_claim(&self, task: &Task, waker: Option<Sender>) -> Claim {
        let class = PriorityClass::from_kernel(task.prio, task.pid);
        // One name for the idle thread of every CPU, so that totals over CPUs add up.
        let comm = if class == PriorityClass::Idle { "swapper" } else { &task.comm };
        Claim::Named(self.thread(task.pid, comm, class), waker)
    }

    /// A thread that had the CPU: the tool's own, another one of the set, or a foreign one.
    fn thread(&self, pid: Pid, comm: &str, class: PriorityClass) -> Cause {
        let (context, comm) = (self.setting.context, comm.to_owned());
        if context.own.contains(&pid) {
            Cause::Whylate
        } else if context.threads.iter().any(|thread| thread.pid == pid) {
            Cause::Member { comm, class }
        } else {
            Cause::Thread { comm, class }
        }
    }
}
