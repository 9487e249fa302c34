//! `whylate rta`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use whylate_gap::Threshold;
use whylate_host::fingerprint;
use whylate_host::last_run::{self, Recall};
use whylate_model::directory::RunDir;
use whylate_model::prediction::{
    GIVEN, PREDICTION_VERSION, Prediction, PredictionDocument, ReleaseJitter,
};
use whylate_model::run::Run;
use whylate_model::switch_cost::{Between, How};
use whylate_model::trust::Trust;
use whylate_model::{Nanos, Printable};
use whylate_record::set::{Request, record};
use whylate_record::{command_line, storage};
use whylate_report::prediction::{Releases, beside};
use whylate_report::{first_prediction, full_prediction};
use whylate_rta::analysis::assign::{Assignment, assign};
use whylate_rta::analysis::of_set::{self, OfSet, Policy as By, Taken};
use whylate_rta::analysis::word::{self, Word};
use whylate_rta::analysis::{Overheads, cbs, jitter};
use whylate_rta::prediction::{Asked, predict, response_with_lost};
use whylate_rta::{Call, File, Step, TaskSet, file};
use whylate_threads::priority::Priority;
use whylate_threads::timers::keeps_cpu_up_to;

use super::gaps::{housekeeping, one_cpu};
use super::threads::{is_json, not_understood};
use super::{Beginning, Exit, Refused, begin, conclude, lasting, style};
use crate::cli::{Assign, Common, Format, Jitter, Policy, Rta};
use crate::failure;
use crate::out::{self, say};
use crate::progress::Shown;
use crate::stopping::Stopping;

/// How long tasks run that do not say.
const DURATION: Nanos = Nanos(10 * Nanos::SECOND.0);
/// The timer of tasks for which none is named.
const TIMER: &str = "HR";
/// Records of the execution trace.
const RECORDS: u64 = 300_000;
/// Seed of simulations where none is given: the same question has the same answer.
const SEED: u64 = 1;

pub(super) fn run(options: &Rta) -> Result<Exit> {
    if let Some(refusal) = without_effect(options) {
        return Err(Refused::because(refusal));
    }
    let prepared = Wanted::of(options).and_then(|wanted| {
        let prediction = wanted.predict(options, &wanted.question(None))?;
        Ok((wanted, prediction))
    });
    let (wanted, prediction) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            failure::refuse(format_args!("{error:#}"));
            return Ok(Exit::Usage);
        }
    };
    if !options.run {
        print(&prediction, &options.common)?;
        let is_poor = prediction.overheads.as_ref().is_some_and(|of| of.doubt.is_some());
        let trusted = if is_poor { Exit::PoorTrust } else { Exit::Done };
        return Ok(checked(options, &prediction).unwrap_or(trusted));
    }
    // What is known beforehand is said beforehand.
    if prediction.feasible != Some(true) && options.common.format == Format::Text {
        say!(
            "{}",
            prediction.notes.first().map_or(
                "By analysis deadlines may be missed; running the tasks all the same",
                String::as_str,
            )
        );
    }
    let by_analysis = checked(options, &prediction);
    let measured = measure(options, &wanted, prediction)?;
    Ok(of_both(by_analysis, measured))
}

/// What the analysis does not show is no matter of trust in the run: only a run that was not made, or was
/// abandoned, goes before it.
fn of_both(by_analysis: Option<Exit>, measured: Exit) -> Exit {
    match measured {
        Exit::Done | Exit::LimitExceeded | Exit::PoorTrust => by_analysis.unwrap_or(measured),
        Exit::CouldNotMeasure | Exit::Usage | Exit::Abandoned => measured,
    }
}

/// The status of `--check` where the analysis does not show that every deadline is met.
fn checked(options: &Rta, prediction: &Prediction) -> Option<Exit> {
    (options.check && prediction.feasible != Some(true)).then_some(Exit::LimitExceeded)
}

/// What was asked for and would change nothing.
fn without_effect(options: &Rta) -> Option<String> {
    let common = &options.common;
    let of_run = [
        (common.output.is_some(), "--out"),
        (common.percentiles.is_some(), "--percentiles"),
        (common.housekeeping.is_some(), "--housekeeping"),
        (common.quick, "--quick"),
        (common.no_dma_latency, "--no-dma-latency"),
        (common.no_trace, "--no-trace"),
        (options.duration.is_some(), "--duration"),
        (options.warmup.is_some(), "--warmup"),
        (options.cpus.is_some(), "--cpus"),
        (options.records.is_some(), "--records"),
    ];
    let name = |of: &[(bool, &'static str)]| of.iter().find(|(given, _)| *given).map(|of| of.1);
    if let Some(name) = name(&of_run).filter(|_| !options.run) {
        return Some(format!(
            "{name} is of the run, and nothing is run without --run: add --run, or leave {name} out"
        ));
    }
    if common.seed.is_some() && !options.run && options.simulate.is_none() {
        return Some(
            "--seed is of what is random, and the analysis has nothing random: add --simulate or \
             --run, or leave --seed out"
                .to_owned(),
        );
    }
    if options.timer.is_some() && options.task.is_empty() {
        return Some(
            "--timer is of tasks of --task, and those of a file name their own: leave --timer out"
                .to_owned(),
        );
    }
    if options.assign.is_some() && options.policy != Policy::Fp {
        return Some(
            "--assign gives out fixed priorities, which only --policy fp has: leave one of them out"
                .to_owned(),
        );
    }
    None
}

fn print(prediction: &Prediction, common: &Common) -> Result<()> {
    match common.format {
        Format::Text if common.full => out::print(full_prediction(prediction, style())),
        Format::Text => out::print(first_prediction(prediction, &command_line(), style())),
        Format::Json => {
            let text = serde_json::to_string_pretty(&PredictionDocument {
                format_version: PREDICTION_VERSION,
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
                prediction: prediction.clone(),
            });
            out::print(text.context("cannot write the prediction as JSON")? + "\n")
        }
    }
}

/// What is to be predicted.
struct Wanted {
    set: TaskSet,
    /// Of each thread, what its word said beside it.
    said: Vec<Option<Word>>,
    duration: Option<Nanos>,
    seed: Option<u64>,
    tables_in: Option<PathBuf>,
    tasks: OfSet,
    /// Of each thread, the priority that it is given.
    priorities: Vec<Option<u32>>,
    assignment: Option<(Assignment, &'static str)>,
    overheads: Option<Costs>,
}

/// The overheads that are added to every job.
struct Costs {
    overheads: Overheads,
    /// Where they are from.
    from: String,
    /// Why the run that measured them is not to be relied on.
    poor: Vec<String>,
}

impl Wanted {
    fn of(options: &Rta) -> Result<Self> {
        let (file, tables_in) = match &options.file {
            None => (File { set: TaskSet::default(), duration: None, seed: None }, None),
            Some(path) => {
                if is_json(path) {
                    bail!(
                        "{0} is JSON, as workloads of rt-app are, and what is analysed is a task set in \
                         TOML: run it with `whylate threads {0}`, or write its tasks as --task \"C T\"",
                        path.display()
                    );
                }
                let file = file::read(path).with_context(|| path.display().to_string())?;
                (file, path.parent().map(Path::to_path_buf))
            }
        };
        let File { mut set, duration, seed } = file;
        let mut said = vec![None; set.threads.len()];
        let timer: Call = options.timer.as_deref().unwrap_or(TIMER).parse().context("--timer")?;
        for text in &options.task {
            let word = word::parse(text, set.threads.len())
                .with_context(|| format!("--task \"{text}\""))?;
            let mut thread = word.thread.clone();
            if !word.timed {
                thread.timer = timer.clone();
            }
            set.threads.push(thread);
            said.push(Some(word));
        }
        set.check()?;
        let mut wanted = Self {
            tasks: OfSet {
                tasks: Vec::new(),
                threads: Vec::new(),
                left_out: Vec::new(),
                cut: Vec::new(),
            },
            priorities: vec![None; set.threads.len()],
            assignment: None,
            overheads: overheads(options.overhead.as_deref())?,
            set,
            said,
            duration,
            seed,
            tables_in,
        };
        wanted.find_tasks(options)?;
        Ok(wanted)
    }

    /// Priorities first, then the tasks: what blocks whom hangs on them.
    fn find_tasks(&mut self, options: &Rta) -> Result<()> {
        let by = match options.policy {
            Policy::Fp => By::FixedPriority,
            Policy::Edf => By::EarliestDeadline,
            Policy::Cbs => By::Reservations,
        };
        self.priorities = self.stated()?;
        let none = self.priorities.iter().all(Option::is_none);
        let by_period = match options.assign {
            Some(Assign::Rm) => Some((Assignment::RateMonotonic, "rate-monotonic")),
            Some(Assign::Dm) => Some((Assignment::DeadlineMonotonic, "deadline-monotonic")),
            None if none => Some((Assignment::RateMonotonic, "rate-monotonic (none were given)")),
            None => None,
        };
        if let (By::FixedPriority, Some((assignment, _))) = (by, by_period) {
            self.assign(assignment, options.assign.is_some())?;
            self.assignment = by_period;
        }
        let without = self.said.iter().zip(&self.priorities).find(|(said, priority)| {
            by == By::FixedPriority && said.is_some() && priority.is_none()
        });
        if let Some((Some(word), _)) = without {
            bail!(
                "task {} has no priority and others have: write `priority N` for each, or use \
                 --assign rm",
                word.thread.name
            );
        }
        self.tasks = self.taken(by, &self.priorities, &self.set)?;
        Ok(())
    }

    fn taken(&self, by: By, priorities: &[Option<u32>], set: &TaskSet) -> Result<OfSet> {
        let tables = |name: &str| match &self.tables_in {
            Some(folder) => file::beside(folder, name),
            None => file::table(name),
        };
        let mut tasks = of_set::tasks(set, &Taken { policy: by, priorities, tables: &tables })?;
        for (task, thread) in tasks.tasks.iter_mut().zip(&tasks.threads) {
            if let Some(word) = &self.said[*thread] {
                task.jitter = word.jitter;
                task.blocking = Nanos(task.blocking.0.saturating_add(word.blocking.0));
            }
        }
        Ok(tasks)
    }

    /// The real-time priorities that words and files state.
    fn stated(&self) -> Result<Vec<Option<u32>>> {
        let of = |(thread, said): (&whylate_rta::Thread, &Option<Word>)| {
            if let Some(word) = said {
                return Ok(word.priority);
            }
            let priority = Priority::of(&thread.priority)
                .with_context(|| format!("thread {}", thread.name))?;
            Ok(priority.real_time().map(u32::from))
        };
        self.set.threads.iter().zip(&self.said).map(of).collect()
    }

    /// Gives out priorities; to all threads when that was asked for, or to those that have work of
    /// a period.
    fn assign(&mut self, assignment: Assignment, asked: bool) -> Result<()> {
        // Blocking hangs on priorities, and priorities on periods alone: locks are left out here.
        let mut bare = self.set.clone();
        bare.resources.clear();
        for thread in &mut bare.threads {
            thread.steps.retain(|step| !matches!(step, Step::Lock(_) | Step::Unlock(_)));
        }
        let timed = |thread: &whylate_rta::Thread| {
            asked || thread.workload.is("PERIODIC") || thread.workload.is("LAT")
        };
        // What never leaves the CPU must be the least urgent.
        let rank = |thread: &whylate_rta::Thread| {
            u32::from(!thread.workload.is("CPU_PERIODIC") && !of_set::waits_busily(thread))
        };
        let all: Vec<Option<u32>> =
            bare.threads.iter().map(|thread| timed(thread).then(|| rank(thread))).collect();
        let mut tasks = self.taken(By::FixedPriority, &all, &bare)?;
        assign(&mut tasks.tasks, assignment);
        for (task, thread) in tasks.tasks.iter().zip(&tasks.threads) {
            self.priorities[*thread] = Some(task.priority);
        }
        Ok(())
    }

    /// What is asked for the set as it is written, or with the releases that a run had.
    fn question(&self, measured: Option<&[Option<ReleaseJitter>]>) -> Question {
        let mut tasks = self.tasks.clone();
        let (mut delays, mut notes) = (Vec::new(), Vec::new());
        for (task, found) in tasks.tasks.iter_mut().zip(measured.unwrap_or_default()) {
            if let Some(found) = found {
                task.jitter = found.jitter;
            }
            delays.push(found.map_or(Nanos(0), |found| found.least));
        }
        if measured.is_some() {
            // What is known of the timers that made the jitter belongs to the same story.
            for (task, thread) in tasks.tasks.iter_mut().zip(&tasks.threads) {
                let timer = &self.set.threads[*thread].timer;
                let Some(busy) = keeps_cpu_up_to(timer) else { continue };
                task.execution = Nanos(task.execution.0.saturating_add(busy.0));
                notes.push(format!(
                    "C of task {} includes {busy}: its coarse clock keeps the CPU for sleeps of that \
                     length and less",
                    Printable(&task.name)
                ));
            }
        }
        Question { tasks, delays, notes }
    }

    fn asked<'a>(&'a self, options: &Rta, question: &'a Question) -> Asked<'a> {
        let seed = options.common.seed.or(self.seed).unwrap_or(SEED);
        Asked {
            tasks: &question.tasks,
            policy: match options.policy {
                Policy::Fp => By::FixedPriority,
                Policy::Edf => By::EarliestDeadline,
                Policy::Cbs => By::Reservations,
            },
            assignment: self.assignment,
            overheads: self.overheads.as_ref().map(|costs| (costs.overheads, &*costs.from)),
            delays: &question.delays,
            simulation: options.simulate.map(|patterns| (patterns, seed)),
            limit: cbs::Limit::LINUX,
        }
    }

    fn predict(&self, options: &Rta, question: &Question) -> Result<Prediction> {
        let mut prediction = predict(&self.asked(options, question))?;
        prediction.notes.extend(question.notes.iter().cloned());
        if let Some((of, costs)) = prediction.overheads.as_mut().zip(self.overheads.as_ref()) {
            of.doubt = costs.doubt();
        }
        Ok(prediction)
    }

    /// Puts a run beside the answer to a question.
    fn compare(
        &self,
        options: &Rta,
        question: &Question,
        (directory, run): (&RunDir, &Run),
        prediction: &mut Prediction,
    ) -> Result<Vec<Releases>> {
        let asked = self.asked(options, question);
        let with_lost = |task, lost| response_with_lost(&asked, task, lost);
        Ok(beside(directory, run, prediction, &with_lost)?)
    }
}

/// The tasks that a prediction is of.
struct Question {
    tasks: OfSet,
    /// By how much all releases of each are late.
    delays: Vec<Nanos>,
    /// What is to be known of them.
    notes: Vec<String>,
}

/// The overheads that a word states, or those that a run measured.
fn overheads(word: Option<&str>) -> Result<Option<Costs>> {
    let Some(word) = word else { return Ok(None) };
    if word == "measured" {
        return Costs::of_run(&last_measured()?).map(Some);
    }
    if Path::new(word).is_dir() {
        return Costs::of_run(Path::new(word)).map(Some);
    }
    let overheads = Overheads::parse(word)?;
    Ok(Some(Costs { overheads, from: GIVEN.to_owned(), poor: Vec::new() }))
}

impl Costs {
    fn of_run(path: &Path) -> Result<Self> {
        let run = RunDir::open(path)?.read_checked()?;
        let overheads = overheads_of_run(&run).with_context(|| path.display().to_string())?;
        let from = format!("measured in {}", path.display());
        Ok(Self { overheads, from, poor: Trust::of(&run).poor() })
    }

    /// What is to be known of the run that they are from, where its trust is poor.
    fn doubt(&self) -> Option<String> {
        let (first, others) = self.poor.split_first()?;
        let more = match others.len() {
            0 => String::new(),
            more => format!("; and {more} more: whylate report"),
        };
        Some(format!("trust in the overheads, {}, is poor: {first}{more}", self.from))
    }
}

/// The last run of switch-cost of this user, which was on this host as it is now.
fn last_measured() -> Result<PathBuf> {
    let Recall::Last(last) = last_run::recall_switch_cost() else {
        bail!(
            "--overhead measured takes the last run of switch-cost, and none is remembered: run \
             `whylate switch-cost` first, or name the directory of one"
        )
    };
    let now = fingerprint::read(Path::new("/"));
    match last.host.differences(&now).as_slice() {
        [] => Ok(PathBuf::from(last.run)),
        [first, others @ ..] => bail!(
            "--overhead measured takes costs of this machine as it is now, and {} was {} when {} was \
             recorded and is {}{}: run `whylate switch-cost` again, or name that directory to take \
             it all the same",
            first.name,
            first.left,
            Printable(&last.run),
            first.right,
            match others.len() {
                0 => String::new(),
                others => format!(", and {others} more have changed"),
            }
        ),
    }
}

/// What a run of `switch-cost` measured.
fn overheads_of_run(run: &Run) -> Result<Overheads> {
    let measured = run.switch_cost.as_ref().and_then(|found| {
        // A job of a real-time thread is begun and ended by switches of its own accord; those at the
        // end of a quantum include the timer interrupt, which is charged as the tick.
        let hand_off = found.measured(Between::Threads, How::HandOff);
        let direct = hand_off.or_else(|| found.measured(Between::Threads, How::Yield))?;
        let tick = found.tick.map(|tick| (tick.cost, tick.period));
        Some(Overheads { switch: direct.times.cluster_median?, tick })
    });
    measured.with_context(|| {
        format!(
            "the run that asked `{}` does not say what a context switch costs: give the costs as \
             switch=3us,tick=15us/4ms, or a directory of `whylate switch-cost`",
            run.question
        )
    })
}

/// The highest priority that a task gets: what must stop a runaway thread stays above it.
const MOST_URGENT: u32 = 95;

/// The set with priorities by which it can be run.
fn to_run(options: &Rta, wanted: &Wanted) -> Result<TaskSet> {
    let mut set = wanted.set.clone();
    match options.policy {
        Policy::Edf => bail!(
            "Linux schedules by earliest deadline within reservations only: write --policy cbs and \
             `reserve C T`"
        ),
        Policy::Cbs => return Ok(set),
        Policy::Fp => {}
    }
    for (thread, priority) in set.threads.iter_mut().zip(&wanted.priorities) {
        let Some(priority) = priority else { continue };
        if wanted.assignment.is_some() && *priority > MOST_URGENT {
            bail!(
                "{} tasks with a priority each: Linux has {MOST_URGENT} for them; run fewer",
                wanted.tasks.tasks.len()
            );
        }
        thread.priority = format!("fifo({priority})").parse()?;
    }
    Ok(set)
}

fn measure(options: &Rta, wanted: &Wanted, mut prediction: Prediction) -> Result<Exit> {
    let set = match to_run(options, wanted) {
        Ok(set) => set,
        Err(error) => {
            failure::refuse(format_args!("{error:#}"));
            return Ok(Exit::Usage);
        }
    };
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    let request = request(options, wanted, set)?;
    if let Some(exit) = not_understood(&request) {
        return Ok(exit);
    }
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let seed = options.common.seed.or(wanted.seed).unwrap_or(seed);
    let mut recorded =
        record(&Request { seed, ..request }, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    let run = &mut recorded.recorded.run;
    let directory = RunDir::open(&path)?;
    let question = wanted.question(None);
    let releases = wanted.compare(options, &question, (&directory, run), &mut prediction)?;
    let found: Vec<Option<ReleaseJitter>> = releases.iter().map(estimated).collect();
    for (task, found) in prediction.tasks.iter_mut().zip(&found) {
        if let Some(measured) = &mut task.measured {
            measured.releases = *found;
        }
    }
    if options.jitter == Jitter::Measured {
        let question = wanted.question(Some(&found));
        let mut again = wanted.predict(options, &question)?;
        if run.evidence.trace.is_none() {
            again.notes.push(
                "without the kernel's trace an arrival is the first reading of the running thread, \
                 which also waited for more urgent ones: the jitter is too large rather than too \
                 small"
                    .to_owned(),
            );
        }
        wanted.compare(options, &question, (&directory, run), &mut again)?;
        prediction.with_measured_jitter = Some(Box::new(again));
    }
    run.prediction = Some(prediction);
    directory.write_run(run)?;
    conclude(&recorded.recorded, &path, &options.common, &stopping)
}

fn estimated(releases: &Releases) -> Option<ReleaseJitter> {
    let jitter::Estimate { n, least, jitter, p999 } = jitter::estimate(releases)?;
    Some(ReleaseJitter { n, least, jitter, p999 })
}

fn request(options: &Rta, wanted: &Wanted, set: TaskSet) -> Result<Request> {
    let cpu = one_cpu(options.cpus.as_deref(), "the analysis is of one")?;
    let duration = options.duration.or(wanted.duration).unwrap_or(DURATION);
    let duration = lasting(duration, &options.common)?;
    let question = format!(
        "Do {} tasks on CPU {cpu} meet their deadlines, as was predicted, in {duration}?",
        wanted.tasks.tasks.len()
    );
    Ok(Request {
        set,
        tables_in: wanted.tables_in.clone(),
        cpus: vec![cpu],
        duration,
        warmup: options.warmup,
        threshold: Threshold::Automatic,
        housekeeping: housekeeping(options.common.housekeeping.as_deref())?,
        lock_memory: true,
        hold_idle_states: !options.common.no_dma_latency,
        trace: !options.common.no_trace,
        validate: true,
        worst: 3,
        records: options.records.map_or(RECORDS, |records| records.get().into()),
        passes: 0,
        storage: storage::Limits::default(),
        seed: options.common.seed.unwrap_or_default(),
        command_line: command_line(),
        question,
        load: Vec::new(),
        bed: None,
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_is_not_shown_to_be_met_goes_before_poor_trust_and_after_what_ended_the_run()
    {
        let missed = Some(Exit::LimitExceeded);
        for measured in [Exit::Done, Exit::PoorTrust, Exit::LimitExceeded] {
            assert_eq!(of_both(missed, measured), Exit::LimitExceeded, "{measured:?}");
            assert_eq!(of_both(None, measured), measured);
        }
        for measured in [Exit::CouldNotMeasure, Exit::Usage, Exit::Abandoned] {
            assert_eq!(of_both(missed, measured), measured);
            assert_eq!(of_both(None, measured), measured);
        }
    }
}
