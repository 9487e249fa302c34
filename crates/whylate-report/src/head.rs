//! What stands below the answer of a report, the same on a terminal and on a page: the machine, and what a reader
//! has to know of how it was recorded.

use whylate_model::run::{Run, RunState};
use whylate_model::settings::Setting;
use whylate_model::trust::UNFINISHED;
use whylate_model::warning::Warning;

use crate::numbers::Value;

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
    let measured = measured(run);
    let state = match run.state {
        RunState::Complete => None,
        RunState::Stopped => {
            Some(format!("stopped early{measured}: everything up to then is here"))
        }
        RunState::Running => Some(format!(
            "this run did not end: it was killed, or is still going on; what follows is its last \
             checkpoint{measured}"
        )),
    };
    quick.map(str::to_owned).into_iter().chain(state).collect()
}

/// Is that what limits trust in this run: that it has not all that was asked for?
pub(crate) fn is_cut(run: &Run, what: &str) -> bool {
    run.state != RunState::Complete
        && (what == UNFINISHED || what == Warning::Interrupted.to_string())
}

/// After how long it ended, of how long, as far as both are known. Parts of a check-up and recordings of a sum that
/// measured all that they were to say nothing of the whole.
pub(crate) fn measured(run: &Run) -> String {
    let measured = run.measured().filter(|_| !run.is_merged());
    match (measured, run.settings.get("duration")) {
        (Some(measured), Some(Setting::TimeNs(asked))) if measured < *asked => {
            format!(", after {} of {}", Value::from(measured), Value::from(*asked))
        }
        (Some(measured), None) => format!(", after {}", Value::from(measured)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::{Hertz, Nanos, Ticks};

    use super::*;
    use crate::first::{Place, first_screen};
    use crate::kept::kept;
    use crate::numbers::scale::Letters;
    use crate::terminal::Style;

    /// Threads that were to measure for 60 s, and did for 5.
    fn cut(kind: &str) -> Run {
        let mut run = kept(kind).1;
        (run.state, run.clock.hz) = (RunState::Stopped, Hertz(1e9));
        run.settings.insert("duration".to_owned(), Nanos(60 * Nanos::SECOND.0).into());
        for of in &mut run.gaps {
            (of.start, of.end) = (Ticks(7), Ticks(7 + 4_000_000_000));
        }
        for of in &mut run.threads {
            (of.start, of.end) = (Ticks(9), Ticks(9 + 5_000_000_000));
        }
        run
    }

    #[test]
    fn how_a_run_was_recorded_is_noted() {
        let mut run = kept("gaps").1;
        run.state = RunState::Complete;
        assert_eq!(notes(&run), [""; 0]);
        run.command_line.push("--quick".to_owned());
        run.state = RunState::Stopped;
        let quick = "a quick run: a tenth of the usual time, so less is known about the tail";
        run.gaps.clear();
        run.threads.clear();
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
    #[test]
    fn of_a_run_that_ended_early_it_is_told_how_much_was_measured() {
        let style = Style { letters: Letters::Unicode, ..Style::default() };
        let place = Place { directory: None, again: false };
        let screen = |run: &Run| {
            let screen = first_screen(run, place, style).unwrap();
            screen.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let mut run = cut("wake");
        run.warnings = vec![Warning::Interrupted];
        assert_eq!(
            notes(&run),
            ["stopped early, after 5 s of 60 s: everything up to then is here"]
        );
        let text = screen(&run);
        assert!(text.contains("Trust: limited. The run ended early, after 5 s of 60 s"), "{text}");
        assert!(text.contains("runs of the same length only"), "{text}");
        run.settings.remove("duration");
        assert_eq!(measured(&run), ", after 5 s");
        (run.state, run.warnings) = (RunState::Running, Vec::new());
        assert!(notes(&run)[0].ends_with("what follows is its last checkpoint, after 5 s"));
        let text = screen(&run);
        assert!(
            text.contains("he run did not end: this is its last checkpoint, after 5 s"),
            "{text}"
        );
        (run.gaps, run.threads) = (Vec::new(), Vec::new());
        assert_eq!(measured(&run), "");
        // One that was stopped behind its last part, and a sum of two.
        let mut run = cut("wake");
        run.settings.insert("duration".to_owned(), Nanos(5 * Nanos::SECOND.0).into());
        assert_eq!(measured(&run), "");
        let mut sum = cut("wake");
        sum.origins = kept("merge").1.origins;
        assert!(sum.is_merged() && measured(&sum).is_empty());
    }
}
