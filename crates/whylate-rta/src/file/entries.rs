//! The tables of a task set's file, field by field; [`super::parse`] makes a set of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::Spanned;
use whylate_model::duration::DurationError;
use whylate_model::{CpuId, CpuList, Nanos};

use super::{FORMAT_VERSION, File, Protocol, Reservation, Resource, Step, Thread};
use crate::call::Call;
use crate::task_set::{ReservationKind, ReservationScheduler};
use crate::words::{Exact, cpu_list};

/// A set of threads for `whylate threads`, and what they share.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(title = "TaskSet"))]
#[serde(deny_unknown_fields)]
pub(super) struct Entries {
    /// Version of this format: 1.
    pub(super) format_version: u32,
    /// How long to run, such as `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) duration: Option<Spanned<Text<Time>>>,
    /// Seed of everything random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
    /// The threads; their order is their number.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ThreadEntry>"))]
    pub(super) thread: Vec<Spanned<ThreadEntry>>,
    /// Mutexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<MutexEntry>"))]
    pub(super) mutex: Vec<Spanned<MutexEntry>>,
    /// Barriers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<BarrierEntry>"))]
    pub(super) barrier: Vec<Spanned<BarrierEntry>>,
    /// Queues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<QueueEntry>"))]
    pub(super) queue: Vec<Spanned<QueueEntry>>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ConditionEntry>"))]
    pub(super) condition: Vec<Spanned<ConditionEntry>>,
    /// Semaphores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<SemaphoreEntry>"))]
    pub(super) semaphore: Vec<Spanned<SemaphoreEntry>>,
}

/// One thread, or several alike.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadEntry {
    /// Unique name.
    pub(super) name: String,
    /// As many threads, named with -0, -1 and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>"))]
    pub(super) count: Option<Spanned<u32>>,
    /// CPUs it may run on, such as `2-3,5`; where the whole set runs, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) cpus: Option<Text<Cpus>>,
    /// What it does, such as `PERIODIC 3ms 8ms`; `CPU` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) workload: Option<Text<Call>>,
    /// What it waits by, such as `HR`; `NATIVE` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) timer: Option<Text<Call>>,
    /// Its priority, such as `RTMED` or `fifo(50)`; `NORMAL` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) priority: Option<Text<Call>>,
    /// CPU time reserved for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reservation: Option<ReservationEntry>,
    /// When it begins, from the beginning of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) start: Option<Text<Time>>,
    /// When it ends; with the run if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) finish: Option<Text<Time>>,
    /// How long a job may take from its release; its period if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) deadline: Option<Text<Time>>,
    /// What one job does, in order, such as `lock bus`, `run 2ms`, `unlock bus`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub(super) steps: Vec<Spanned<String>>,
}

/// An amount of CPU time in each period.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ReservationEntry {
    /// Never more than the amount, or at least the amount.
    kind: ReservationKind,
    /// CPU time in each period.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    amount: Text<Time>,
    /// The period.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    period: Text<Time>,
    /// Who keeps it; `deadline` if left out.
    #[serde(default)]
    scheduler: ReservationScheduler,
}

/// One thread at a time.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct MutexEntry {
    /// Unique among the resources.
    name: String,
    /// What becomes of the holder's priority: `none`, `inherit` or `protect(50)`; `none` if left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    protocol: Option<Text<Protocol>>,
}

/// A place where threads wait for each other.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct BarrierEntry {
    /// Unique among the resources.
    name: String,
    /// How many threads.
    threads: u32,
}

/// Items on their way from thread to thread.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct QueueEntry {
    /// Unique among the resources.
    name: String,
    /// How many items it holds.
    capacity: u32,
}

/// Something that threads wait for until another signals it.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ConditionEntry {
    /// Unique among the resources.
    name: String,
}

/// A number that threads add to and take from.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct SemaphoreEntry {
    /// Unique among the resources.
    name: String,
    /// What it begins with; 0 if left out.
    #[serde(default)]
    value: u32,
}

impl Entries {
    /// Each resource with the byte it begins at.
    pub(super) fn resources(&self) -> Vec<(usize, Resource)> {
        let mutexes = self.mutex.iter().map(|entry| {
            let MutexEntry { name, protocol } = entry.get_ref();
            let protocol = protocol.as_ref().map_or(Protocol::None, |protocol| protocol.0);
            (entry.span().start, Resource::Mutex { name: name.clone(), protocol })
        });
        let barriers = self.barrier.iter().map(|entry| {
            let BarrierEntry { name, threads } = entry.get_ref();
            (entry.span().start, Resource::Barrier { name: name.clone(), threads: *threads })
        });
        let queues = self.queue.iter().map(|entry| {
            let QueueEntry { name, capacity } = entry.get_ref();
            (entry.span().start, Resource::Queue { name: name.clone(), capacity: *capacity })
        });
        let conditions = self.condition.iter().map(|entry| {
            let name = entry.get_ref().name.clone();
            (entry.span().start, Resource::Condition { name })
        });
        let semaphores = self.semaphore.iter().map(|entry| {
            let SemaphoreEntry { name, value } = entry.get_ref();
            (entry.span().start, Resource::Semaphore { name: name.clone(), value: *value })
        });
        mutexes.chain(barriers).chain(queues).chain(conditions).chain(semaphores).collect()
    }

    pub(super) fn of(file: &File) -> Self {
        let mut entries = Self {
            format_version: FORMAT_VERSION,
            duration: file.duration.map(|time| unplaced(Text(Time(time)))),
            seed: file.seed,
            thread: file
                .set
                .threads
                .iter()
                .map(|thread| unplaced(ThreadEntry::of(thread)))
                .collect(),
            mutex: Vec::new(),
            barrier: Vec::new(),
            queue: Vec::new(),
            condition: Vec::new(),
            semaphore: Vec::new(),
        };
        for resource in &file.set.resources {
            match resource.clone() {
                Resource::Mutex { name, protocol } => {
                    let protocol = Some(Text(protocol));
                    entries.mutex.push(unplaced(MutexEntry { name, protocol }));
                }
                Resource::Barrier { name, threads } => {
                    entries.barrier.push(unplaced(BarrierEntry { name, threads }));
                }
                Resource::Queue { name, capacity } => {
                    entries.queue.push(unplaced(QueueEntry { name, capacity }));
                }
                Resource::Condition { name } => {
                    entries.condition.push(unplaced(ConditionEntry { name }));
                }
                Resource::Semaphore { name, value } => {
                    entries.semaphore.push(unplaced(SemaphoreEntry { name, value }));
                }
            }
        }
        entries
    }
}

impl ThreadEntry {
    /// The thread that the entry describes, or the first of several.
    pub(super) fn thread(&self, steps: Vec<Step>) -> Thread {
        let defaults = Thread::new(self.name.as_str());
        let call = |text: &Option<Text<Call>>, default: Call| {
            text.as_ref().map_or(default, |text| text.0.clone())
        };
        let time = |text: &Option<Text<Time>>| text.as_ref().map(|text| text.0.0);
        Thread {
            cpus: self.cpus.as_ref().map(|text| text.0.0.clone()),
            workload: call(&self.workload, defaults.workload),
            timer: call(&self.timer, defaults.timer),
            priority: call(&self.priority, defaults.priority),
            reservation: self.reservation.as_ref().map(|entry| Reservation {
                kind: entry.kind,
                amount: entry.amount.0.0,
                period: entry.period.0.0,
                scheduler: entry.scheduler,
            }),
            start: time(&self.start).unwrap_or_default(),
            finish: time(&self.finish),
            deadline: time(&self.deadline),
            steps,
            program: None,
            name: defaults.name,
        }
    }

    fn of(thread: &Thread) -> Self {
        let time = |time: Nanos| Text(Time(time));
        Self {
            name: thread.name.clone(),
            count: None,
            cpus: thread.cpus.clone().map(|cpus| Text(Cpus(cpus))),
            workload: Some(Text(thread.workload.clone())),
            timer: Some(Text(thread.timer.clone())),
            priority: Some(Text(thread.priority.clone())),
            reservation: thread.reservation.map(|reservation| ReservationEntry {
                kind: reservation.kind,
                amount: time(reservation.amount),
                period: time(reservation.period),
                scheduler: reservation.scheduler,
            }),
            start: (thread.start > Nanos(0)).then(|| time(thread.start)),
            finish: thread.finish.map(time),
            deadline: thread.deadline.map(time),
            steps: thread.steps.iter().map(|step| unplaced(step.to_string())).collect(),
        }
    }
}

/// Something that is written, not read: it has no place yet.
fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// A value that a file holds as text.
#[derive(Debug)]
pub(super) struct Text<T>(pub(super) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(de::Error::custom)
    }
}

impl<T: fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A time, written without rounding.
#[derive(Debug)]
pub(super) struct Time(pub(super) Nanos);

impl FromStr for Time {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Exact(self.0).fmt(f)
    }
}

/// A list of CPUs.
#[derive(Debug)]
pub(super) struct Cpus(pub(super) Vec<CpuId>);

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        cpu_list(text).map(Self)
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        CpuList(&self.0).fmt(f)
    }
}
