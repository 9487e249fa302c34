//! The object `tasks`: each task with its policy, its phases, and as many threads as it asks for.

use std::collections::BTreeMap;

use whylate_model::{CpuId, Nanos};

use super::error::RtAppError;
use super::global::Global;
use super::json::{Entry, Node, Value};
use super::names::Names;
use super::{Notes, events, fields, forks};
use crate::call::Call;
use crate::file::Position;
use crate::task_set::{
    MOST_PHASES, MOST_STEPS, MOST_THREADS, Phase, Program, Reservation, ReservationKind,
    ReservationScheduler, Resource, Step, Thread,
};

/// The workload of every thread here.
const WORKLOAD: &str = "PROGRAM";
/// rt-app waits until an instant; so does this timer.
const TIMER: &str = "HR";
/// A timer whose name begins so belongs to each thread alone.
const UNIQUE: &str = "unique";
/// Events of all threads: each thread has its own copy of its task's, some hundred bytes each.
pub(super) const MOST_STEPS_OF_ALL: usize = 1 << 18;
/// Real-time tasks that say no priority have this one.
const REAL_TIME: i64 = 10;

/// A scheduling policy, as rt-app names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Other,
    Batch,
    Idle,
    Fifo,
    RoundRobin,
    Deadline,
}

/// What the tasks come to.
pub(super) struct Tasks {
    pub(super) threads: Vec<Thread>,
    /// Where the task of each thread stands.
    pub(super) places: Vec<Position>,
    pub(super) resources: Vec<Resource>,
}

/// A task, before it is so many threads.
pub(super) struct Task<'a> {
    pub(super) name: &'a str,
    pub(super) at: Position,
    /// Threads that begin with the run.
    pub(super) instances: u32,
    instance_at: Position,
    pub(super) thread: Thread,
    /// Barriers that it waits at.
    barriers: Vec<String>,
    /// Tasks that it forks: which, and where that stands.
    pub(super) forks: Vec<(String, Position)>,
}

impl Policy {
    pub(super) fn read(node: &Node, what: &str) -> Result<Self, RtAppError> {
        Ok(match fields::text(node, what)? {
            "SCHED_OTHER" | "SCHED_NORMAL" => Self::Other,
            "SCHED_BATCH" => Self::Batch,
            "SCHED_IDLE" => Self::Idle,
            "SCHED_FIFO" => Self::Fifo,
            "SCHED_RR" => Self::RoundRobin,
            "SCHED_DEADLINE" => Self::Deadline,
            other => {
                let reason = format!(
                    "there is no policy `{other}`: write SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, \
                     SCHED_FIFO, SCHED_RR or SCHED_DEADLINE"
                );
                return Err(RtAppError::value(node, reason));
            }
        })
    }

    /// The priority of a task set that stands for it.
    fn priority(self, written: Option<&Node>) -> Result<Call, RtAppError> {
        let real_time = matches!(self, Self::Fifo | Self::RoundRobin);
        let (range, default) = if real_time { (1..=99, REAL_TIME) } else { (-20..=19, 0) };
        let number = match written {
            // The kernel takes no number for these.
            Some(node) if matches!(self, Self::Deadline | Self::Idle) => {
                fields::integer(node, "priority", -20..=99)?
            }
            Some(node) => fields::integer(node, "priority", range)?,
            None => default,
        };
        let call = |name: &str| Call { name: name.to_owned(), arguments: vec![number.to_string()] };
        Ok(match self {
            Self::Other if number == 0 => Call::bare("NORMAL"),
            Self::Other => call("nice"),
            Self::Batch => call("batch"),
            Self::Idle => Call::bare("IDLE"),
            Self::Fifo => call("fifo"),
            Self::RoundRobin => call("rr"),
            Self::Deadline => Call::bare("NORMAL"),
        })
    }
}

/// Reads all tasks.
pub(super) fn read(entry: &Entry, global: &Global, notes: &mut Notes) -> Result<Tasks, RtAppError> {
    let mut names = Names::default();
    let mut tasks = Vec::new();
    for entry in fields::object(&entry.node, "`tasks`")? {
        if tasks.len() == MOST_THREADS {
            // Each is a thread at least.
            let reason = format!("there are more tasks than {MOST_THREADS}, the most threads");
            return Err(RtAppError::Malformed { at: entry.at, reason });
        }
        tasks.push(task(entry, global, &mut names, notes)?);
    }
    let mut pools = forks::pools(&tasks, notes)?;
    let (mut threads, mut places, mut steps) = (Vec::new(), Vec::new(), 0_usize);
    for task in &tasks {
        let pool = pools.remove(task.name).unwrap_or_default();
        if task.instances == 0 && pool == 0 {
            let reason = "no thread at all: write 1 or more, or fork the task from another one";
            return Err(RtAppError::Malformed { at: task.instance_at, reason: reason.to_owned() });
        }
        let all = threads.len() + task.instances as usize + pool as usize;
        if all > MOST_THREADS {
            let reason =
                format!("with this task there are {all} threads: the most is {MOST_THREADS}");
            return Err(RtAppError::Malformed { at: task.instance_at, reason });
        }
        let phases = task.thread.program.iter().flat_map(|program| &program.phases);
        let each: usize = phases.map(|phase| phase.steps.len()).sum();
        steps = steps.saturating_add(each.saturating_mul(task.instances as usize + pool as usize));
        if steps > MOST_STEPS_OF_ALL {
            let reason = format!(
                "with this task all threads have {steps} events: the most is {MOST_STEPS_OF_ALL}"
            );
            return Err(RtAppError::Malformed { at: task.instance_at, reason });
        }
        instances(task, pool, &mut names, &mut threads);
        places.resize(threads.len(), task.at);
    }
    Ok(Tasks { threads, places, resources: names.resources(global.protocol) })
}

/// Every CPU that tasks and their phases name, and where that is first.
pub(super) fn cpus(tasks: &Entry) -> BTreeMap<CpuId, Position> {
    fn below(entry: &Entry, depth: u32, found: &mut BTreeMap<CpuId, Position>) {
        match &entry.node.value {
            Value::List(items) if entry.key == "cpus" => {
                for item in items {
                    if let Value::Integer(number) = item.value {
                        let cpu = CpuId(number.unsigned_abs() as u32);
                        found.entry(cpu).or_insert(item.at);
                    }
                }
            }
            // Tasks, a task, its phases, a phase.
            Value::Object(entries) if depth < 4 => {
                for entry in entries {
                    below(entry, depth + 1, found);
                }
            }
            _ => {}
        }
    }
    let mut found = BTreeMap::new();
    below(tasks, 0, &mut found);
    found
}

/// The threads of a task: those that begin with the run, then those that wait to be forked.
fn instances(task: &Task<'_>, pool: u32, names: &mut Names, threads: &mut Vec<Thread>) {
    for number in 0..task.instances {
        let name = match task.instances {
            1 => task.name.to_owned(),
            _ => format!("{}-{number}", task.name),
        };
        threads.push(own_timers(Thread { name, ..task.thread.clone() }));
    }
    for number in 0..pool {
        let name = format!("{}-fork{number}", task.name);
        let mut thread = own_timers(Thread { name, ..task.thread.clone() });
        if let Some(program) = &mut thread.program {
            program.forked_by = Some(names.of(super::names::Space::Fork, task.name));
        }
        threads.push(thread);
    }
    for barrier in &task.barriers {
        names.uses(barrier, task.instances + pool);
    }
}

/// Gives the thread its own timers where the file says so.
fn own_timers(mut thread: Thread) -> Thread {
    let phases = thread.program.iter_mut().flat_map(|program| &mut program.phases);
    for step in phases.flat_map(|phase| &mut phase.steps) {
        if let Step::Timer { name, .. } = step
            && name.starts_with(UNIQUE)
        {
            *name = format!("{name}@{}", thread.name);
        }
    }
    thread
}

/// What is gathered of a task while its keys are read.
#[derive(Default)]
struct Keys<'a> {
    instance: Option<&'a Entry>,
    policy: Option<&'a Node>,
    priority: Option<&'a Node>,
    runtime: Option<&'a Node>,
    period: Option<&'a Node>,
    deadline: Option<&'a Node>,
    cpus: Option<&'a Node>,
    delay: Option<&'a Node>,
    rounds: Option<&'a Node>,
    phases: Option<&'a Entry>,
    events: Vec<&'a Entry>,
}

impl<'a> Keys<'a> {
    fn gather(entry: &'a Entry) -> Result<Self, RtAppError> {
        let mut keys = Self::default();
        for entry in fields::object(&entry.node, "a task")? {
            let place = match entry.key.as_str() {
                "policy" => &mut keys.policy,
                "priority" => &mut keys.priority,
                "dl-runtime" | "dl_runtime" => &mut keys.runtime,
                "dl-period" | "dl_period" => &mut keys.period,
                "dl-deadline" | "dl_deadline" => &mut keys.deadline,
                "cpus" => &mut keys.cpus,
                "delay" => &mut keys.delay,
                "loop" => &mut keys.rounds,
                "instance" | "phases" => {
                    let place =
                        if entry.key == "phases" { &mut keys.phases } else { &mut keys.instance };
                    if place.replace(entry).is_some() {
                        return Err(RtAppError::twice(entry));
                    }
                    continue;
                }
                _ => {
                    keys.events.push(entry);
                    continue;
                }
            };
            if place.replace(&entry.node).is_some() {
                return Err(RtAppError::twice(entry));
            }
        }
        Ok(keys)
    }
}

fn task<'a>(
    entry: &'a Entry,
    global: &Global,
    names: &mut Names,
    notes: &mut Notes,
) -> Result<Task<'a>, RtAppError> {
    let keys = Keys::gather(entry)?;
    let most = i64::try_from(MOST_THREADS).unwrap_or(i64::MAX);
    let instances = match keys.instance {
        Some(entry) => fields::integer(&entry.node, "instance", 0..=most)?,
        None => 1,
    };
    let policy = keys.policy.map_or(Ok(global.policy), |node| Policy::read(node, "policy"))?;
    let (reservation, deadline) = reservation(entry, &keys, policy, notes)?;
    let mut task = Task {
        name: &entry.key,
        at: entry.at,
        instances: instances as u32,
        instance_at: keys.instance.map_or(entry.at, |entry| entry.node.at),
        thread: Thread::new(entry.key.as_str()),
        barriers: Vec::new(),
        forks: Vec::new(),
    };
    let rounds = keys.rounds.map_or(Ok(None), fields::rounds)?;
    let phases = if let Some(phases) = keys.phases {
        if let Some(event) = keys.events.first() {
            let instead = "events stand in the phases where a task has `phases`";
            return Err(events::refused(event, instead));
        }
        written_phases(phases, &mut task, names, notes)?
    } else {
        let steps = steps(&keys.events, &mut task, names, notes)?;
        vec![Phase { name: entry.key.clone(), repeat: Some(1), cpus: None, steps }]
    };
    task.thread = Thread {
        cpus: keys.cpus.map(fields::cpus).transpose()?,
        workload: Call::bare(WORKLOAD),
        timer: Call::bare(TIMER),
        priority: policy.priority(keys.priority)?,
        reservation,
        start: keys.delay.map_or(Ok(Nanos(0)), |node| fields::micros(node, "delay"))?,
        deadline,
        program: Some(Program {
            phases,
            repeat: rounds,
            forked_by: None,
            buffer: global.buffer,
            device: global.device.clone(),
        }),
        ..task.thread
    };
    Ok(task)
}

fn written_phases(
    entry: &Entry,
    task: &mut Task<'_>,
    names: &mut Names,
    notes: &mut Notes,
) -> Result<Vec<Phase>, RtAppError> {
    let written = fields::object(&entry.node, "`phases`")?;
    if written.is_empty() || written.len() > MOST_PHASES {
        let reason = format!("there are {} phases: write 1 to {MOST_PHASES}", written.len());
        return Err(RtAppError::value(&entry.node, reason));
    }
    let mut phases = Vec::new();
    for phase in written {
        let (mut rounds, mut cpus, mut events): (Option<Option<u64>>, Option<Vec<CpuId>>, _) =
            (None, None, Vec::new());
        for entry in fields::object(&phase.node, "a phase")? {
            let again = match entry.key.as_str() {
                "loop" => rounds.replace(fields::rounds(&entry.node)?).is_some(),
                "cpus" => cpus.replace(fields::cpus(&entry.node)?).is_some(),
                _ => {
                    events.push(entry);
                    false
                }
            };
            if again {
                return Err(RtAppError::twice(entry));
            }
        }
        let steps = steps(&events, task, names, notes)?;
        let repeat = rounds.unwrap_or(Some(1));
        phases.push(Phase { name: phase.key.clone(), repeat, cpus, steps });
    }
    Ok(phases)
}

/// The events of a phase, and what is to be known of them when the tasks are threads.
fn steps(
    written: &[&Entry],
    task: &mut Task<'_>,
    names: &mut Names,
    notes: &mut Notes,
) -> Result<Vec<Step>, RtAppError> {
    let mut steps = Vec::new();
    for entry in written {
        let Some(step) = events::step(entry, task.name, names, notes)? else { continue };
        match &step {
            Step::Barrier(name) => {
                if task.barriers.contains(name) {
                    let reason = format!(
                        "barrier `{name}` stands twice in task `{}`, and each time counts as one \
                         more thread to wait for: give each place a name of its own",
                        task.name
                    );
                    return Err(RtAppError::Malformed { at: entry.at, reason });
                }
                task.barriers.push(name.clone());
            }
            Step::Fork(_) => task.forks.push((forks::target(entry), entry.at)),
            _ => {}
        }
        steps.push(step);
        if steps.len() > MOST_STEPS {
            let reason = format!("more than {MOST_STEPS} events in one phase: write another phase");
            return Err(RtAppError::Malformed { at: entry.at, reason });
        }
    }
    Ok(steps)
}

/// CPU time reserved by SCHED_DEADLINE, and the deadline of a job where it is not the period.
fn reservation(
    entry: &Entry,
    keys: &Keys<'_>,
    policy: Policy,
    notes: &mut Notes,
) -> Result<(Option<Reservation>, Option<Nanos>), RtAppError> {
    let time = |node: Option<&Node>, what| node.map(|node| fields::micros(node, what)).transpose();
    let runtime = time(keys.runtime, "dl-runtime")?;
    let period = time(keys.period, "dl-period")?;
    let deadline = time(keys.deadline, "dl-deadline")?;
    if policy != Policy::Deadline {
        if let Some(node) = keys.runtime.or(keys.period).or(keys.deadline) {
            notes.add(node.at, "dl-runtime, dl-period and dl-deadline are for SCHED_DEADLINE only");
        }
        return Ok((None, None));
    }
    let Some(amount) = runtime.filter(|runtime| runtime.0 > 0) else {
        let reason = "SCHED_DEADLINE needs `dl-runtime` above 0, in microseconds".to_owned();
        return Err(RtAppError::Malformed { at: keys.runtime.map_or(entry.at, |n| n.at), reason });
    };
    let period = period.filter(|period| period.0 > 0).unwrap_or(amount);
    let deadline = deadline.filter(|deadline| deadline.0 > 0);
    if let Some(node) = keys.deadline
        && deadline.is_some_and(|deadline| deadline < amount || deadline > period)
    {
        let reason = "`dl-deadline` lies between `dl-runtime` and `dl-period`";
        return Err(RtAppError::value(node, reason));
    }
    if let Some(node) = keys.deadline.filter(|_| deadline.is_some_and(|of| of < period)) {
        let text = "`dl-deadline` is the deadline of each job; the reservation's is its period";
        notes.add(node.at, text);
    }
    let (kind, scheduler) = (ReservationKind::Hard, ReservationScheduler::Deadline);
    Ok((Some(Reservation { kind, amount, period, scheduler }), deadline))
}
