//! `whylate threads`.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use whylate_gap::Threshold;
use whylate_host::topology::Topology;
use whylate_model::{CpuId, CpuList, Nanos};
use whylate_record::set::{Request, SetRecorded, record, rt_app_log};
use whylate_record::{RecordError, storage};
use whylate_rta::rtapp::{self, Note};
use whylate_rta::{File, TaskSet, file, flag, suggest};
use whylate_threads::{models, priority, timers};

use super::gaps::{housekeeping, measured};
use super::{Beginning, Exit, Refused, bed_of_load, begin, conclude, lasting, within};
use crate::cli::{Format, Threads};
use crate::failure;
use crate::out::{self, say};
use crate::progress::Shown;
use crate::stopping::Stopping;

/// How long a set runs that does not say.
const DURATION: Nanos = Nanos(10 * Nanos::SECOND.0);
/// Passes of rt-app tasks kept for their logs: 48 MB.
const LOGGED: u64 = 1_000_000;
/// What of a file has no effect is said in so many lines.
const MOST_NOTES: usize = 10;

pub(super) fn run(options: &Threads) -> Result<Exit> {
    if options.list {
        list()?;
        return Ok(Exit::Done);
    }
    if options.suggest_reservation.is_some() && options.common.format == Format::Json {
        return Err(Refused::because(
            "--suggest-reservation prints proposals as text and has no effect with --format json: \
             leave one of them out",
        ));
    }
    let Asked { file: set, tables_in, notes, cpus } = match asked(options) {
        Ok(asked) => asked,
        Err(error) => {
            failure::refuse(format_args!("{error:#}"));
            return Ok(Exit::Usage);
        }
    };
    if options.rt_app_log.is_some() && set.set.threads.iter().all(|of| of.program.is_none()) {
        return Err(Refused::because(
            "--rt-app-log writes a log of each task of a workload of rt-app, and this set has none: leave \
             --rt-app-log out",
        ));
    }
    if let Some(error) = not_here(&cpus)? {
        say!("error: {error}");
        return Ok(Exit::CouldNotMeasure);
    }
    tell(&notes);
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    let of_file = set.seed;
    let request = request(options, set, tables_in)?;
    if let Some(exit) = not_understood(&request) {
        return Ok(exit);
    }
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    // A seed on the command line goes before that of the file, and that before a drawn one.
    let of_file = of_file.filter(|_| options.common.seed.is_none());
    let request = Request { seed: of_file.unwrap_or(seed), ..request };
    let set = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    let concluded = conclude(&set.recorded, &path, &options.common, &stopping);
    if let Some(folder) = &options.rt_app_log {
        let logs = rt_app_log::write(folder, &request.set.threads, &set)
            .with_context(|| format!("cannot write logs into {}", folder.display()))?;
        say!("Logs in rt-app's columns: {logs}, in {}", folder.display());
    }
    let mut exit = concluded?;
    if options.require_trace && set.recorded.run.validation.is_none() {
        say!("--require-trace: there was no kernel trace to check inferred causes against");
        exit = Exit::CouldNotMeasure;
    }
    if let Some(miss) = options.suggest_reservation {
        propose(&set, miss)?;
    }
    Ok(exit)
}

/// Says what is wrong with the words of a set, before anything is touched.
pub(super) fn not_understood(request: &Request) -> Option<Exit> {
    let error = whylate_record::set::check(request).err()?;
    Some(if matches!(error, RecordError::Word(_)) {
        failure::refuse(error);
        Exit::Usage
    } else {
        say!("error: {error}");
        Exit::CouldNotMeasure
    })
}

/// What is asked for.
struct Asked {
    file: File,
    /// Where the tables of a file lie.
    tables_in: Option<PathBuf>,
    /// What of the file has no effect.
    notes: Vec<Note>,
    /// CPUs that a workload names, and where: the file and the place in it.
    cpus: Vec<(CpuId, String)>,
}

/// Says of the first CPU that a workload names and this machine has not, where that stands.
fn not_here(named: &[(CpuId, String)]) -> Result<Option<String>> {
    if named.is_empty() {
        return Ok(None);
    }
    let topology = Topology::read(Path::new("/"))?;
    let online = topology.online();
    let missing = named.iter().find(|(cpu, _)| !online.contains(cpu));
    Ok(missing.map(|(cpu, place)| {
        format!(
            "{place}: CPU {cpu} is not online here; online are {}: name one of these, or leave \
             `cpus` out",
            CpuList(online)
        )
    }))
}

/// The set that the words or the file describe.
fn asked(options: &Threads) -> Result<Asked> {
    let mut asked = Asked {
        file: File { set: TaskSet::default(), duration: None, seed: None },
        tables_in: None,
        notes: Vec::new(),
        cpus: Vec::new(),
    };
    if let Some(path) = options.set.as_ref().or(options.file.as_ref()) {
        asked.read(path).with_context(|| path.display().to_string())?;
    }
    let set = &mut asked.file.set;
    for word in &options.thread {
        let more = flag::threads(word, set.threads.len())
            .with_context(|| format!("--thread \"{word}\""))?;
        set.threads.extend(more);
    }
    set.check()?;
    Ok(asked)
}

impl Asked {
    fn read(&mut self, path: &Path) -> Result<()> {
        if is_json(path) {
            let workload = rtapp::read(path)?;
            self.file = File { set: workload.set, duration: workload.duration, seed: None };
            self.notes = workload.notes;
            let named = workload.cpus.into_iter();
            self.cpus = named.map(|(cpu, at)| (cpu, format!("{}: {at}", path.display()))).collect();
        } else {
            self.file = file::read(path)?;
            self.tables_in = path.parent().map(Path::to_path_buf);
        }
        Ok(())
    }
}

/// Is it a workload of rt-app, by its name or by what it holds? No set in TOML begins with a brace.
pub(super) fn is_json(path: &Path) -> bool {
    let by_name = path.extension().is_some_and(|of| of.eq_ignore_ascii_case("json"));
    // What is no regular file can be read only once.
    let begins = || {
        let mut begin = [0; 4096];
        let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut begin));
        read.is_ok_and(|read| begin[..read].trim_ascii_start().starts_with(b"{"))
    };
    by_name || path.is_file() && begins()
}

fn tell(notes: &[Note]) {
    for note in notes.iter().take(MOST_NOTES) {
        say!("{}: {}", note.at, whylate_model::Printable(&note.text));
    }
    if notes.len() > MOST_NOTES {
        say!("{} more entries have no effect", notes.len() - MOST_NOTES);
    }
}

fn request(options: &Threads, asked: File, tables_in: Option<PathBuf>) -> Result<Request> {
    let File { set, duration, .. } = asked;
    let cpus = measured(options.cpus.as_deref())?;
    let duration = options.duration.or(duration).unwrap_or(DURATION);
    let duration = lasting(duration, &options.common)?;
    within(options.threshold, "--threshold", duration)?;
    let load = options.load.as_ref().map_or_else(Vec::new, |loads| loads.0.clone());
    let bed = bed_of_load(options.bed.as_deref(), &load)?;
    let question = whylate_record::set::question(&set, &cpus, duration);
    Ok(Request {
        set,
        tables_in,
        cpus,
        duration,
        warmup: options.warmup,
        threshold: options.threshold.map_or(Threshold::Automatic, Threshold::Fixed),
        housekeeping: housekeeping(options.common.housekeeping.as_deref())?,
        lock_memory: !options.no_mlock,
        hold_idle_states: !options.common.no_dma_latency,
        trace: !options.common.no_trace,
        validate: true,
        worst: 3,
        records: options.records,
        passes: if options.rt_app_log.is_some() { LOGGED } else { 0 },
        storage: storage::Limits { checkpoint: options.checkpoint, ..storage::Limits::default() },
        seed: options.common.seed.unwrap_or_default(),
        command_line: whylate_record::command_line(),
        question,
        load,
        bed,
        notes: Vec::new(),
    })
}

/// The paper's advice: a little more than the thread needs, by how much it varies and how much a
/// miss matters.
fn propose(set: &SetRecorded, miss: f64) -> Result<()> {
    for (thread, jobs) in set.recorded.run.threads.iter().zip(&set.jobs) {
        if jobs.is_empty() {
            continue;
        }
        let (execution, taken): (Vec<Nanos>, Vec<Nanos>) = jobs.iter().copied().unzip();
        match suggest::suggest(&execution, &taken, miss) {
            Ok(proposed) => out::print(format_args!("thread {}: {proposed}\n", thread.name))?,
            Err(reason) => {
                out::print(format_args!("thread {}: no proposal: {reason}\n", thread.name))?;
            }
        }
    }
    Ok(())
}

fn list() -> Result<()> {
    let mut text = "Workloads:\n".to_owned();
    let row = |usage: &str, about: &str| format!("  {usage:36} {about}\n");
    for entry in models::known::<whylate_clock::HardwareCounter>() {
        text += &row(entry.usage, entry.about);
    }
    text += "\nTimers:\n";
    for timer in timers::known() {
        text += &row(timer.usage, timer.about);
    }
    out::print(text + "\nPriorities:\n  " + priority::USAGE + "\n")
}
