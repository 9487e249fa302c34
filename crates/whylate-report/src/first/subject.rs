//! What a recording measured, in a few words: the title of a whole report and of its page. It comes from what was
//! measured, so that recordings of every version have the same one.

use whylate_model::run::Run;
use whylate_model::{CpuId, CpuList, Printable};

use super::layout::name;

/// Where it is not known what was measured.
const UNKNOWN: &str = "A recording";

/// Of a recording, or of a sum of recordings, which says of how many.
pub(crate) fn of(run: &Run) -> String {
    let what = super::KINDS
        .iter()
        .find(|(is_it, ..)| is_it(run))
        .map_or_else(|| UNKNOWN.to_owned(), |(_, _, subject)| subject(run));
    match run.origins.len() {
        0 => what,
        1 => format!("{what}, over 1 run"),
        many => format!("{what}, over {many} runs"),
    }
}

/// How many of what.
fn counted(number: usize, one: &str, more: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {more}") }
}

/// On which CPUs, behind what was measured there; nothing where none is known.
fn on(cpus: impl IntoIterator<Item = CpuId>) -> String {
    let mut cpus: Vec<CpuId> = cpus.into_iter().collect();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() { String::new() } else { format!(" on CPU {}", CpuList(&cpus)) }
}

fn of_gaps(run: &Run) -> String {
    on(run.gaps.iter().map(|of| of.cpu))
}

fn of_threads(run: &Run) -> String {
    on(run.threads.iter().flat_map(|of| of.cpus.iter().copied()))
}

fn threads(run: &Run) -> String {
    format!("{}{}", counted(run.threads.len(), "thread", "threads"), of_threads(run))
}

pub(super) fn gaps(run: &Run) -> String {
    let pinned = run.gaps.iter().all(|of| run.thread_name(of).starts_with("CPU "));
    match run.gaps.as_slice() {
        _ if pinned => format!("Lost CPU time{}", of_gaps(run)),
        [one] => format!("Lost CPU time, {}", name(&run.thread_name(one))),
        several => format!("Lost CPU time of {} threads", several.len()),
    }
}

pub(super) fn matrix(run: &Run) -> String {
    format!("Lost CPU time, run in {}", counted(run.gaps.len(), "way", "ways"))
}

pub(super) fn wake(run: &Run) -> String {
    format!("Timer wake-up latency{}", of_threads(run))
}

pub(super) fn checkup(run: &Run) -> String {
    format!("Check-up{}", of_gaps(run))
}

pub(super) fn rtt(run: &Run) -> String {
    let Some(flow) = run.flows.first() else { return UNKNOWN.to_owned() };
    let what = if flow.asked.one_way {
        "Messages that ask for no reply"
    } else if flow.way.across.is_some() {
        "One-way latency"
    } else {
        "Response time"
    };
    let flows = match run.flows.len() {
        1 => String::new(),
        many => format!(" of {many} flows"),
    };
    format!("{what}{flows}, {}", name(&flow.way.backend))
}

pub(super) fn backends(run: &Run) -> String {
    let of = run.backends.as_deref();
    let compared = of.map_or(0, |of| super::backends::compared(of).count());
    let first = of.and_then(|of| of.first()).map(|row| name(&row.backend));
    let others = counted(compared, "other backend", "other backends");
    format!("Response time, {} and {others}", first.unwrap_or_default())
}

pub(super) fn spent(run: &Run) -> String {
    match &run.watched {
        Some(of) => {
            let whom = (Printable(&of.process.name), of.process.pid);
            format!("Where requests of {} ({}) spend their time", whom.0, whom.1)
        }
        None => format!("{}, part by part", rtt(run)),
    }
}

pub(super) fn deadlines(run: &Run) -> String {
    format!("Deadlines of {}", threads(run))
}

pub(super) fn received(run: &Run) -> String {
    format!("CPU time of {}", threads(run))
}

pub(super) fn hourglass(run: &Run) -> String {
    format!("Hourglass: {}", threads(run))
}

pub(super) fn rta(run: &Run) -> String {
    let tasks = run.prediction.as_ref().map_or(0, |of| of.tasks.len());
    let tasks = counted(tasks, "task", "tasks");
    format!("Response times of {tasks}{}, predicted and measured", of_threads(run))
}

pub(super) fn switch_cost(run: &Run) -> String {
    format!("Cost of a context switch{}", on(run.switch_cost.iter().map(|of| of.cpu)))
}

pub(super) fn calibrate(run: &Run) -> String {
    let backends = run.calibration.as_deref().map_or(0, |of| of.backends.len());
    format!("Calibration of {}", counted(backends, "backend", "backends"))
}

pub(super) fn device(run: &Run) -> String {
    let the_box = run.device.as_deref().map(|of| name(&of.name));
    format!("Latency through {}", the_box.unwrap_or_default())
}

pub(super) fn account(run: &Run) -> String {
    match (&run.reflected, &run.forward) {
        (Some(_), _) => "Residence time of requests in the reflector",
        (None, Some(_)) => "Residence time of frames in the forwarder",
        (None, None) => "Delay of frames in the delay line",
    }
    .to_owned()
}

pub(super) fn selftest(run: &Run) -> String {
    format!("Self-test with injected interruptions{}", of_gaps(run))
}

/// Of recordings of which no other kind is.
pub(super) fn others(run: &Run) -> String {
    super::sums::first_label(run).unwrap_or_else(|| UNKNOWN.to_owned())
}
