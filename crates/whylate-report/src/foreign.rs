//! Threads of other processes that had a measured CPU: which process each belongs to.

use whylate_model::foreign::ForeignThread;
use whylate_model::run::Run;

use crate::doc::Table;

/// The threads with their processes, those first whose process has another name; none where no thread is
/// known.
pub(crate) fn table(run: &Run) -> Option<Table> {
    let mut threads: Vec<&ForeignThread> = run.foreign_threads.iter().collect();
    if threads.is_empty() {
        return None;
    }
    threads.sort_by_key(|of| of.process.as_ref().is_none_or(|process| process.name == of.comm));
    let head = ["thread", "tid", "process", "pid"];
    let row = |of: &&ForeignThread| {
        let (process, pid) = match &of.process {
            Some(process) => (process.name.clone(), process.pid.to_string()),
            None => ("ended before it was looked at".to_owned(), "-".to_owned()),
        };
        vec![of.comm.clone(), of.tid.to_string(), process, pid]
    };
    Some(
        Table::new("Threads of other processes that had a measured CPU", &head)
            .words(&[2])
            .with(threads.iter().map(row)),
    )
}

#[cfg(test)]
mod tests {
    use whylate_model::Pid;
    use whylate_model::cause::{Cause, CauseTotal, PriorityClass};
    use whylate_model::foreign::ForeignProcess;

    use super::*;
    use crate::timeline::tests::recorded;

    #[test]
    fn a_foreign_thread_goes_with_its_process_in_text_and_page_and_one_that_ended_says_so() {
        let mut run = recorded();
        let thread = |comm: &str, tid, process: Option<(i32, &str)>| ForeignThread {
            comm: comm.to_owned(),
            tid: Pid(tid),
            process: process
                .map(|(pid, name)| ForeignProcess { pid: Pid(pid), name: name.to_owned() }),
        };
        run.foreign_threads = vec![
            thread("kworker/1:2", 41, Some((41, "kworker/1:2"))),
            thread("gone", 500, None),
            thread("gap/0", 4_711, Some((4_700, "whylate"))),
            thread("bad", 600, Some((601, "bad\u{1b}[31m"))),
        ];
        let cause = Cause::Thread { comm: "gap/0".to_owned(), class: PriorityClass::RealTime };
        let total = CauseTotal { cause, lost_ns: 1e15, ..run.causes[0].clone() };
        run.causes.insert(0, total);
        let found = table(&run).unwrap();
        assert_eq!(found.rows[0], ["gap/0", "4711", "whylate", "4700"], "{found:?}");
        assert_eq!(found.rows[1], ["bad", "600", "bad\u{1b}[31m", "601"], "{found:?}");
        let text = crate::render(&run, crate::Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let page = crate::html::render(&crate::execution::recorded::tests::sample(), &run);
        for said in ["gap/0 of whylate", "gone", "ended before it was looked at", "4711", "4700"] {
            assert!(text.contains(said) && page.contains(said), "{said}: {text}");
        }
        assert!(!text.contains('\u{1b}') && !page.contains('\u{1b}'));
        let stored = serde_json::to_value(&run).unwrap();
        assert_eq!(stored["foreign_threads"][2]["process"]["pid"], 4_700);
        run.foreign_threads.clear();
        assert!(table(&run).is_none());
    }
}
