//! The question that a recording of a set answers.

use whylate_model::{CpuId, CpuList, Nanos};
use whylate_rta::task_set::{TaskSet, Thread};

/// What is asked of the set, in one sentence; `cpus` are those of threads that name none.
#[must_use]
pub fn question(set: &TaskSet, cpus: &[CpuId], duration: Nanos) -> String {
    let workloads = set.threads.iter().map(|thread| thread.workload.name.to_ascii_uppercase());
    let judged = workloads.clone().any(|name| name.contains("PERIODIC") || name == "PROGRAM");
    let wakes =
        workloads.clone().count() > 0 && workloads.clone().all(|name| name.starts_with("LAT"));
    let of = |thread: &Thread| thread.cpus.clone().unwrap_or_else(|| cpus.to_vec());
    let mut on: Vec<CpuId> = set.threads.iter().flat_map(of).collect();
    on.sort_unstable();
    on.dedup();
    let on = CpuList(&on);
    match (set.threads.len(), judged, wakes) {
        (1, true, _) => format!("Does 1 thread on CPU {on} meet its deadlines in {duration}?"),
        (n, true, _) => format!("Do {n} threads on CPU {on} meet their deadlines in {duration}?"),
        (1, _, true) => {
            format!("What is the wake-up latency of 1 thread on CPU {on} in {duration}?")
        }
        (n, _, true) => {
            format!("What is the wake-up latency of {n} threads on CPU {on} in {duration}?")
        }
        (1, ..) => format!("What does 1 thread receive of CPU {on} in {duration}?"),
        (n, ..) => format!("What do {n} threads receive of CPU {on} in {duration}?"),
    }
}

#[cfg(test)]
mod tests {
    use whylate_rta::Call;

    use super::*;

    #[test]
    fn a_set_is_asked_what_its_threads_can_answer() {
        let ask = |workloads: &[&str]| {
            let threads = workloads.iter().enumerate().map(|(number, workload)| Thread {
                workload: Call::parse(workload).unwrap(),
                ..Thread::new(number.to_string())
            });
            let set = TaskSet { threads: threads.collect(), ..TaskSet::default() };
            question(&set, &[CpuId(1)], Nanos::SECOND)
        };
        for (workloads, asked) in [
            (&["PERIODIC 1ms 8ms"][..], "Does 1 thread on CPU 1 meet its deadlines in 1.00s?"),
            (&["CPU", "CPU_PERIODIC 1ms 8ms"], "Do 2 threads on CPU 1 meet their deadlines"),
            (&["LAT 5ms", "LAT_ABS 5ms"], "What is the wake-up latency of 2 threads on CPU 1"),
            (&["CPU", "LAT 5ms"], "What do 2 threads receive of CPU 1"),
        ] {
            assert!(ask(workloads).starts_with(asked), "{}", ask(workloads));
        }
    }
}
