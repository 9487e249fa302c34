//! Who sent an inter-processor interrupt, and who woke the thread that took the CPU.
//!
//! Both are recorded where the sender ran, by a trace of all CPUs. An arrival on a measured CPU is
//! matched with the nearest earlier send to that CPU of the same kind, later than the arrival
//! before it: what was sent before that has been answered by it. Two stamps of different CPUs have
//! no order within the bound of their clocks, so a send may lie that much after the arrival.
//!
//! No sender is named when the send was recorded on the measured CPU itself while the measuring
//! thread was current: an interrupt there did it, not the thread.
//!
//! Limit: an event tells which thread was current, not whether an interrupt was being served upon
//! it, so a wake-up by an interrupt on another CPU is ascribed to the thread it interrupted there.

use std::collections::HashMap;

use whylate_model::cause::{Cause, Sender, SenderTotal};
use whylate_model::event::{Event, EventKind};
use whylate_model::{CpuId, Nanos, Pid, Ticks};

use crate::context::Context;
use crate::naming;
use crate::split::{Arrival, Setting};

/// A send this long before a gap cannot have led to anything in it: an interrupt is pending for
/// microseconds, and a woken thread waits for the CPU at most for some slices of the scheduler.
const OLDEST_SEND: Nanos = Nanos(10_000_000);

/// Sends that are looked at for one arrival: bounds the work in a gap of seconds.
const SENDS_TRIED: usize = 4096;

/// Rows the table of senders keeps; senders that come after are counted together for each pair
/// of CPUs.
const ROWS_MAX: usize = 4096;

/// Kinds of inter-processor interrupts that a send can be matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signalling {
    /// Look at the run queue again.
    Reschedule,
    /// Call a function.
    Call,
    /// Deferred work, sent by a CPU to itself.
    Work,
}

/// A match.
pub(crate) struct Found {
    /// Indices of the sends.
    pub(crate) sends: Vec<usize>,
    /// Who, unless nobody is to be named.
    pub(crate) sender: Option<Sender>,
}

impl Signalling {
    pub(crate) const KINDS: usize = 3;

    /// From the name of a vector, as x86 and aarch64 call it.
    #[must_use]
    pub fn of_vector(name: &str) -> Option<Self> {
        match name {
            "reschedule" | "Rescheduling interrupts" => Some(Self::Reschedule),
            "call_function" | "call_function_single" | "Function call interrupts" => {
                Some(Self::Call)
            }
            "irq_work" | "IRQ work interrupts" => Some(Self::Work),
            _ => None,
        }
    }

    /// What a send event sends to `target`.
    #[must_use]
    pub fn of_send(send: &Event, target: CpuId) -> Option<Self> {
        match &send.kind {
            EventKind::IpiSend { targets, callback, .. } if targets.contains(&target) => {
                Some(match callback {
                    0 => Self::Reschedule,
                    _ if send.cpu == target => Self::Work,
                    _ => Self::Call,
                })
            }
            EventKind::CallQueued { target: queued_for, .. } if *queued_for == target => {
                Some(Self::Call)
            }
            _ => None,
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Reschedule => 0,
            Self::Call => 1,
            Self::Work => 2,
        }
    }
}

/// The CPUs that a send concerns.
#[must_use]
pub fn targets(send: &Event) -> &[CpuId] {
    match &send.kind {
        EventKind::IpiSend { targets, .. } => targets,
        EventKind::CallQueued { target, .. } | EventKind::Wakeup { target, .. } => {
            std::slice::from_ref(target)
        }
        _ => &[],
    }
}

/// Sends before this moment are too old for a gap that begins at `start`.
pub(crate) fn oldest(start: Ticks, context: &Context) -> Ticks {
    Ticks(start.0.saturating_sub(OLDEST_SEND.to_ticks(context.hz).0))
}

/// The send behind the inter-processor interrupt that arrived with `entry`, later than `after`.
pub(crate) fn interrupt(
    setting: &Setting<'_>,
    entry: &Event,
    kind: Signalling,
    after: Ticks,
) -> Option<Found> {
    let mut sent = None;
    let mut queued = None;
    for (index, send) in nearest_first(setting, entry.ticks) {
        if send.ticks <= after || (sent.is_some() && queued.is_some()) {
            break;
        }
        if Signalling::of_send(send, entry.cpu) == Some(kind) {
            let nearest = match send.kind {
                EventKind::CallQueued { .. } => &mut queued,
                _ => &mut sent,
            };
            nearest.get_or_insert(index);
        }
    }
    // The queueing of the call is shown beside the send, where it is of the same CPU.
    let named = sent.or(queued)?;
    let beside = queued
        .filter(|&queued| queued != named && setting.sends[queued].cpu == setting.sends[named].cpu);
    let sends = beside.into_iter().chain([named]).collect();
    Some(Found { sends, sender: sender(setting, &setting.sends[named], entry.cpu) })
}

/// The wake-up of thread `pid`, which got the CPU with `switch`.
pub(crate) fn waker(
    setting: &Setting<'_>,
    switch: &Event,
    pid: Pid,
    since: Ticks,
) -> Option<Found> {
    if pid.0 == 0 {
        return None;
    }
    let woke = |send: &Event| {
        matches!(&send.kind, EventKind::Wakeup { task, target }
            if task.pid == pid && *target == switch.cpu)
    };
    let (index, send) = nearest_first(setting, switch.ticks)
        .take_while(|(_, send)| send.ticks >= since)
        .find(|(_, send)| woke(send))?;
    Some(Found { sends: vec![index], sender: sender(setting, send, switch.cpu) })
}

/// The sends that may have led to something at `at`, the nearest first.
fn nearest_first<'a>(setting: &Setting<'a>, at: Ticks) -> impl Iterator<Item = (usize, &'a Event)> {
    let latest = at + setting.context.cross_cpu_bound;
    let to = setting.sends.partition_point(|send| send.ticks <= latest);
    setting.sends[..to].iter().enumerate().rev().take(SENDS_TRIED)
}

fn sender(setting: &Setting<'_>, send: &Event, arrived_on: CpuId) -> Option<Sender> {
    let by_itself = send.cpu == arrived_on && send.pid == setting.own;
    (!by_itself).then(|| Sender {
        cpu: send.cpu,
        pid: send.pid,
        comm: setting.context.comm(send.pid),
    })
}

/// How often each sender interrupted each measured CPU.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: HashMap<(String, CpuId, CpuId, Cause), Sum>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    lost_ns: f64,
}

impl Table {
    /// Adds an arrival that took `lost_ns`.
    pub fn add(&mut self, arrival: &Arrival, lost_ns: f64) {
        let sender = &arrival.sender;
        let key = (sender.comm.clone(), sender.cpu, arrival.cpu, arrival.cause.clone());
        let key = if self.rows.len() < ROWS_MAX || self.rows.contains_key(&key) {
            key
        } else {
            (naming::OTHERS.to_owned(), key.1, key.2, naming::without_name(&key.3))
        };
        let sum = self.rows.entry(key).or_default();
        sum.count += 1;
        sum.lost_ns += lost_ns;
    }

    /// The rows, most frequent first.
    #[must_use]
    pub fn rows(&self) -> Vec<SenderTotal> {
        let row = |(key, sum): (&(String, CpuId, CpuId, Cause), &Sum)| SenderTotal {
            comm: key.0.clone(),
            from: key.1,
            to: key.2,
            cause: key.3.clone(),
            count: sum.count,
            lost_ns: sum.lost_ns,
        };
        let mut rows: Vec<_> = self.rows.iter().map(row).collect();
        rows.sort_by(|a, b| {
            let key = |row: &SenderTotal| (row.comm.clone(), row.from, row.to, row.cause.clone());
            b.count.cmp(&a.count).then_with(|| key(a).cmp(&key(b)))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::TicksDelta;

    #[test]
    fn a_full_table_counts_further_senders_together() {
        let mut table = Table::default();
        let arrivals = ROWS_MAX as i32 + 100;
        for pid in 0..arrivals {
            let sender = Sender { cpu: CpuId(0), pid: Pid(pid), comm: format!("sender-{pid}") };
            let cause = Cause::Interrupt { name: "reschedule".to_owned() };
            let length = TicksDelta(10);
            table.add(&Arrival { cause, sender, cpu: CpuId(1), length }, 5.0);
        }
        let rows = table.rows();
        assert_eq!(rows.len(), ROWS_MAX + 1);
        assert_eq!((rows[0].comm.as_str(), rows[0].count), (naming::OTHERS, 100));
        assert!((rows[0].lost_ns - 500.0).abs() < 1e-9);
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), arrivals as u64);
    }

    #[test]
    fn vectors_and_sends_are_of_the_kind_the_kernel_means() {
        let send = |cpu, callback| Event {
            ticks: Ticks(0),
            cpu: CpuId(cpu),
            pid: Pid(1),
            kind: EventKind::IpiSend { targets: vec![CpuId(2)], callsite: 0, callback },
        };
        assert_eq!(Signalling::of_send(&send(0, 0), CpuId(2)), Some(Signalling::Reschedule));
        assert_eq!(Signalling::of_send(&send(0, 9), CpuId(2)), Some(Signalling::Call));
        assert_eq!(Signalling::of_send(&send(2, 9), CpuId(2)), Some(Signalling::Work));
        assert_eq!(Signalling::of_send(&send(0, 9), CpuId(3)), None);
        let queued = at(0, 0, 1, queued());
        assert_eq!(Signalling::of_send(&queued, CPU), Some(Signalling::Call));
        assert_eq!(Signalling::of_send(&queued, CpuId(3)), None);
        for (name, kind) in [
            ("reschedule", Some(Signalling::Reschedule)),
            ("Function call interrupts", Some(Signalling::Call)),
            ("irq_work", Some(Signalling::Work)),
            ("local_timer", None),
        ] {
            assert_eq!(Signalling::of_vector(name), kind);
        }
    }

    #[test]
    fn each_kind_has_a_place_of_its_own_and_events_that_send_nothing_concern_no_cpu() {
        let kinds = [Signalling::Reschedule, Signalling::Call, Signalling::Work];
        assert_eq!(kinds.map(Signalling::index), [0, 1, 2]);
        assert_eq!(kinds.len(), Signalling::KINDS);
        let both = vec![CpuId(2), CpuId(3)];
        let ipi = EventKind::IpiSend { targets: both.clone(), callsite: 0, callback: 0 };
        assert_eq!(targets(&at(0, 0, 1, ipi)), both);
        assert_eq!(targets(&at(0, 0, 1, queued())), [CPU]);
        assert_eq!(targets(&at(0, 0, 1, woken(7, CPU))), [CPU]);
        assert_eq!(targets(&at(0, 0, 1, EventKind::WorkStart { function: 0 })), []);
    }

    const CPU: CpuId = CpuId(2);
    const OWN: Pid = Pid(100);

    fn at(ticks: u64, cpu: u32, pid: i32, kind: EventKind) -> Event {
        Event { ticks: Ticks(ticks), cpu: CpuId(cpu), pid: Pid(pid), kind }
    }

    fn call() -> EventKind {
        EventKind::IpiSend { targets: vec![CPU], callsite: 0, callback: 9 }
    }

    fn queued() -> EventKind {
        EventKind::CallQueued { target: CPU, callsite: 0, function: 7 }
    }

    fn woken(pid: i32, target: CpuId) -> EventKind {
        let task = whylate_model::event::Task { pid: Pid(pid), comm: String::new(), prio: 120 };
        EventKind::Wakeup { task, target }
    }

    /// The sends behind a call that arrives at 1000 and its sender's thread.
    fn found(sends: &[Event], after: u64) -> Option<(Vec<usize>, Option<i32>)> {
        let context = Context::new(true, whylate_model::Hertz(1e9));
        let setting =
            Setting { context: &context, own: OWN, sends, lost: &[], slack: TicksDelta(0) };
        let vector = EventKind::VectorEntry { name: "call_function".to_owned(), vector: 1 };
        let entry = at(1_000, CPU.0, 5, vector);
        let found = interrupt(&setting, &entry, Signalling::Call, Ticks(after))?;
        Some((found.sends, found.sender.map(|sender| sender.pid.0)))
    }

    #[test]
    fn the_queueing_of_a_call_is_shown_beside_its_send_where_it_is_of_the_same_cpu() {
        let beside = [at(890, 0, 51, queued()), at(900, 0, 51, call())];
        assert_eq!(found(&beside, 0), Some((vec![0, 1], Some(51))));
        let elsewhere = [at(890, 1, 52, queued()), at(900, 0, 51, call())];
        assert_eq!(found(&elsewhere, 0), Some((vec![1], Some(51))));
        // Alone it names who queued, and is told once.
        assert_eq!(found(&elsewhere[..1], 0), Some((vec![0], Some(52))));
    }

    #[test]
    fn a_send_at_the_arrival_before_was_answered_by_it_and_the_nearest_one_after_it_counts() {
        let sends = [at(800, 0, 50, call()), at(900, 0, 51, call())];
        assert_eq!(found(&sends, 899), Some((vec![1], Some(51))));
        assert_eq!(found(&sends, 900), None);
        assert_eq!(found(&[at(1_001, 0, 50, call())], 0), None);
    }

    #[test]
    fn a_send_is_ones_own_on_the_same_cpu_by_the_own_thread_alone() {
        assert_eq!(found(&[at(900, 0, OWN.0, call())], 0), Some((vec![0], Some(OWN.0))));
        let by_another = EventKind::CallQueued { target: CPU, callsite: 0, function: 7 };
        assert_eq!(found(&[at(900, CPU.0, 9, by_another)], 0), Some((vec![0], Some(9))));
        assert_eq!(found(&[at(900, CPU.0, OWN.0, queued())], 0), Some((vec![0], None)));
    }

    #[test]
    fn only_so_many_sends_are_looked_at_for_one_arrival() {
        let others = |n: usize| (0..n).map(|_| at(950, 0, 8, woken(3, CpuId(0))));
        let sends = |n| [at(900, 0, 51, call())].into_iter().chain(others(n)).collect::<Vec<_>>();
        assert!(found(&sends(SENDS_TRIED - 1), 0).is_some());
        assert_eq!(found(&sends(SENDS_TRIED), 0), None);
    }

    #[test]
    fn a_thread_was_woken_for_this_cpu_since_the_walk_began_and_the_idle_thread_never() {
        let context = Context::new(true, whylate_model::Hertz(1e9));
        let waker = |pid: i32, since: u64| {
            let sends = [
                at(500, 0, 60, woken(7, CPU)),
                at(510, 0, 61, woken(7, CpuId(0))),
                at(520, 0, 62, woken(0, CPU)),
            ];
            let setting = Setting {
                context: &context,
                own: OWN,
                sends: &sends,
                lost: &[],
                slack: TicksDelta(0),
            };
            let switch = at(600, CPU.0, 5, EventKind::WorkStart { function: 0 });
            waker(&setting, &switch, Pid(pid), Ticks(since)).map(|found| found.sends)
        };
        assert_eq!(waker(7, 500), Some(vec![0]));
        assert_eq!((waker(7, 501), waker(8, 0), waker(0, 0)), (None, None, None));
    }

    #[test]
    fn sends_of_ten_milliseconds_before_a_gap_are_not_too_old() {
        let context = Context::new(true, whylate_model::Hertz(2e9));
        assert_eq!(oldest(Ticks(20_000_005), &context), Ticks(5));
        assert_eq!(oldest(Ticks(19_999_999), &context), Ticks(0));
    }

    #[test]
    fn senders_of_one_pair_of_cpus_add_up_and_the_most_frequent_stand_first() {
        let mut table = Table::default();
        for (comm, to, lost_ns) in
            [("b", 1, 2.0), ("a", 1, 1.0), ("c", 1, 4.0), ("c", 1, 8.0), ("b", 0, 16.0)]
        {
            let sender = Sender { cpu: CpuId(0), pid: Pid(1), comm: comm.to_owned() };
            let cause = Cause::Interrupt { name: "reschedule".to_owned() };
            let arrival = Arrival { cause, sender, cpu: CpuId(to), length: TicksDelta(10) };
            table.add(&arrival, lost_ns);
        }
        let rows: Vec<_> = table
            .rows()
            .into_iter()
            .map(|row| (row.comm, row.to.0, row.count, row.lost_ns.to_string()))
            .collect();
        let row = |comm: &str, to, count, lost: &str| (comm.to_owned(), to, count, lost.to_owned());
        let expected =
            [row("c", 1, 2, "12"), row("a", 1, 1, "1"), row("b", 0, 1, "16"), row("b", 1, 1, "2")];
        assert_eq!(rows, expected);
    }
}
