//! Names of the threads that run now, and of their processes, for events that carry a thread id only.

use std::collections::HashMap;
use std::path::Path;

use whylate_model::Pid;
use whylate_model::foreign::ForeignProcess;

use crate::files::text;
use crate::tasks;

/// Thread id and name of every thread of the host.
#[must_use]
pub fn threads() -> Vec<(Pid, String)> {
    tasks::all().into_iter().map(|(_, task)| (task.tid, task.comm)).collect()
}

/// Every thread of the host, its name and its process.
#[must_use]
pub fn processes() -> Vec<(Pid, String, ForeignProcess)> {
    let all = tasks::all();
    let first: HashMap<Pid, String> = all
        .iter()
        .filter(|(process, task)| *process == task.tid)
        .map(|(process, task)| (*process, task.comm.clone()))
        .collect();
    let of = |(pid, task): (Pid, tasks::Task)| {
        let name = as_traced(first.get(&pid).unwrap_or(&task.comm)).to_owned();
        (task.tid, as_traced(&task.comm).to_owned(), ForeignProcess { pid, name })
    };
    all.into_iter().map(of).collect()
}

/// The process of a thread that still has this name; none where there is no such thread any more.
#[must_use]
pub fn process_of(tid: Pid, comm: &str) -> Option<ForeignProcess> {
    let status = text(Path::new(&format!("/proc/{tid}/status"))).ok()?;
    let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
    let named = |of: Pid| Some(as_traced(&tasks::Task::read(of)?.comm).to_owned());
    let name = named(Pid(pid))?;
    // Last: what has the name still is what was asked for.
    (named(tid)? == comm).then_some(ForeignProcess { pid: Pid(pid), name })
}

/// The name that the trace has of a thread: /proc adds what a worker of the kernel works on.
fn as_traced(comm: &str) -> &str {
    let worker = comm.strip_prefix("kworker/").and_then(|of| of.split_once(':'));
    let work = worker.and_then(|(_, number)| number.find(['-', '+']).map(|at| number.len() - at));
    &comm[..comm.len() - work.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_the_kernel_has_the_name_that_the_trace_has() {
        for (name, traced) in [
            ("kworker/1:1-events", "kworker/1:1"),
            ("kworker/u8:2+flush-252:0", "kworker/u8:2"),
            ("kworker/0:1H-kblockd", "kworker/0:1H"),
            ("kworker/1:1", "kworker/1:1"),
            ("kworker/R-kvfre", "kworker/R-kvfre"),
            ("whylate-names", "whylate-names"),
        ] {
            assert_eq!(as_traced(name), traced);
        }
    }

    #[test]
    fn a_thread_is_found_with_its_process_as_long_as_it_has_its_name() {
        let (say, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("whylate-names".to_owned());
        let thread = thread.spawn(move || {
            let tid = Pid(rustix::thread::gettid().as_raw_nonzero().get());
            say.send(tid).unwrap();
            let _ = ended.recv();
        });
        let tid = told.recv().unwrap();
        let own = Pid(std::process::id() as i32);
        let found = process_of(tid, "whylate-names").unwrap();
        assert_eq!(found.pid, own);
        assert_ne!(found.name, "whylate-names", "the first thread has a name of its own");
        assert_eq!(process_of(tid, "another"), None);
        let all = processes();
        let (_, comm, process) = all.iter().find(|(of, ..)| *of == tid).unwrap();
        assert_eq!((comm.as_str(), process), ("whylate-names", &found));
        drop(end);
        thread.unwrap().join().unwrap();
        assert_eq!(process_of(Pid(-1), "whylate-names"), None);
    }
}
