//! What stands below the answer of a report, the same on a terminal and on a page: the machine, and what a reader
//! has to know of how it was recorded.

use whylate_model::run::{Run, RunState};

/// On which machine, and by which tool.
pub(crate) fn machine(run: &Run) -> String {
    let host = &run.host;
    let machine = match &host.hypervisor {
        Some(name) => format!("virtual machine ({name})"),
        None => "bare metal".to_owned(),
    };
    format!(
        "{}, {}, {} CPUs, {machine}, Linux {}; whylate {}",
        host.hostname,
        host.cpu_model,
        host.cpus_online.len(),
        host.kernel,
        run.tool_version,
    )
}

/// What a reader has to know of how it was recorded.
pub(crate) fn notes(run: &Run) -> Vec<String> {
    let quick =
        run.command_line.iter().any(|word| word == "--quick").then_some(match run.switch_cost {
            Some(_) => "a quick run: shorter and fewer trials than usual, so intervals are wider",
            None => "a quick run: a tenth of the usual time, so less is known about the tail",
        });
    let state = match run.state {
        RunState::Complete => None,
        RunState::Stopped => Some("stopped early: everything up to then is here"),
        RunState::Running => Some(
            "this run did not end: it was killed, or is still going on; what follows is its last \
             checkpoint",
        ),
    };
    quick.into_iter().chain(state).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::kept;

    #[test]
    fn how_a_run_was_recorded_is_noted() {
        let mut run = kept("gaps").1;
        run.state = RunState::Complete;
        assert_eq!(notes(&run), [""; 0]);
        run.command_line.push("--quick".to_owned());
        run.state = RunState::Stopped;
        let quick = "a quick run: a tenth of the usual time, so less is known about the tail";
        assert_eq!(notes(&run), [quick, "stopped early: everything up to then is here"]);
        run.state = RunState::Running;
        assert!(notes(&run)[1].starts_with("this run did not end"));
        let mut costs = kept("switch-cost").1;
        costs.command_line.push("--quick".to_owned());
        assert!(notes(&costs)[0].starts_with("a quick run: shorter and fewer trials"));
        run.host.hypervisor = None;
        (run.host.hostname, run.host.cpu_model) = ("box".to_owned(), "Some Xeon".to_owned());
        (run.host.kernel, run.tool_version) = ("6.12".to_owned(), "0.1.0".to_owned());
        assert_eq!(machine(&run), "box, Some Xeon, 2 CPUs, bare metal, Linux 6.12; whylate 0.1.0");
        run.host.hypervisor = Some("KVM".to_owned());
        assert!(machine(&run).contains("2 CPUs, virtual machine (KVM), Linux"));
    }
}
