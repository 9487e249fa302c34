//! What is done at the first gap above the stop limit.
//!
//! Order matters: the marker and the snapshot need a trace that still runs, and come first; then
//! tracing goes off, so that the buffers keep what led to the gap; the rest can wait.

use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use whylate_model::warning::Warning;
use whylate_model::{Nanos, Pid};
use whylate_sys::signal;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Writes 0 to the `tracing_on` of the whole machine's trace; the private instance is stopped
    /// in any case.
    TraceOff,
    /// Writes a line to the machine's `trace_marker`.
    Marker(String),
    /// Takes a snapshot of the machine's trace buffer.
    Snapshot,
    /// Sends a signal to a process.
    Signal {
        /// Which.
        number: i32,
        /// To whom.
        pid: Pid,
    },
    /// Runs a line with `sh -c`; the gap's length in nanoseconds is in `$WHYLATE_GAP_NS`, its CPU
    /// in `$WHYLATE_CPU`.
    Command(String),
}

/// A command of `--on-threshold` that has not ended by then is left to itself.
const COMMAND_PATIENCE: Duration = Duration::from_secs(30);

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        match (word, rest) {
            ("trace-off", None) => Ok(Self::TraceOff),
            ("snapshot", None) => Ok(Self::Snapshot),
            ("marker", text) => Ok(Self::Marker(text.unwrap_or("whylate: threshold").to_owned())),
            ("command", Some(line)) if !line.trim().is_empty() => {
                Ok(Self::Command(line.to_owned()))
            }
            ("signal", Some(rest)) => parse_signal(rest).ok_or_else(|| {
                format!("`signal:{rest}` is not signal:NUMBER:PID with a PID above 1")
            }),
            _ => Err(format!(
                "`{text}` is not an action: use trace-off, marker[:TEXT], snapshot, \
                 signal:NUMBER:PID or command:LINE"
            )),
        }
    }
}

fn parse_signal(text: &str) -> Option<Action> {
    let (number, pid) = text.split_once(':')?;
    let (number, pid) = (number.parse().ok()?, pid.parse().ok()?);
    ((1..=64).contains(&number) && pid > 1).then_some(Action::Signal { number, pid: Pid(pid) })
}

/// The gap that did it.
#[derive(Debug, Clone, Copy)]
pub struct Trigger {
    /// Its length.
    pub length: Nanos,
    /// Its CPU.
    pub cpu: whylate_model::CpuId,
}

/// Does all of them, in the order that keeps the evidence; returns what could not be done, and what stays as it is
/// left when the run has ended.
#[must_use]
pub fn perform(actions: &[Action], trigger: Trigger) -> Vec<Warning> {
    let mut ordered: Vec<&Action> = actions.iter().collect();
    ordered.sort_by_key(|action| match action {
        Action::Marker(_) => 0,
        Action::Snapshot => 1,
        Action::TraceOff => 2,
        Action::Signal { .. } | Action::Command(_) => 3,
    });
    let told = |action: &Action| match (one(action, trigger), action) {
        (Err(what), _) => Some(Warning::ActionFailed { what }),
        (Ok(()), Action::TraceOff) => Some(Warning::TraceLeftOff),
        (Ok(()), _) => None,
    };
    ordered.into_iter().filter_map(told).collect()
}

fn one(action: &Action, trigger: Trigger) -> Result<(), String> {
    match action {
        Action::TraceOff => write_trace("tracing_on", "0"),
        Action::Marker(text) => {
            write_trace("trace_marker", &format!("{text} {}ns\n", trigger.length.0))
        }
        Action::Snapshot => write_trace("snapshot", "1"),
        Action::Signal { number, pid } => signal::send_to_process(*pid, *number)
            .map_err(|error| format!("signal {number} to {pid}: {error}")),
        Action::Command(line) => run(line, trigger),
    }
}

fn write_trace(file: &str, text: &str) -> Result<(), String> {
    whylate_sys::tracefs::Tracefs::open()
        .and_then(|tracefs| tracefs.write(file, text))
        .map_err(|error| format!("{file}: {error}"))
}

fn run(line: &str, trigger: Trigger) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("command `{line}`: {error}");
    let mut child = Command::new("sh")
        .args(["-c", line])
        .env("WHYLATE_GAP_NS", trigger.length.0.to_string())
        .env("WHYLATE_CPU", trigger.cpu.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(fail)?;
    let step = Duration::from_millis(50);
    let mut waited = Duration::ZERO;
    while waited < COMMAND_PATIENCE {
        match child.try_wait().map_err(fail)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("command `{line}` ended with {status}")),
            None => std::thread::sleep(step),
        }
        waited += step;
    }
    Err(format!("command `{line}` still runs after {COMMAND_PATIENCE:?} and is left to itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_read_from_words() {
        let read = |text: &str| text.parse::<Action>();
        assert_eq!(read("trace-off"), Ok(Action::TraceOff));
        assert_eq!(read("marker:here: now"), Ok(Action::Marker("here: now".to_owned())));
        assert_eq!(read("signal:10:4242"), Ok(Action::Signal { number: 10, pid: Pid(4242) }));
        assert_eq!(read("command:true"), Ok(Action::Command("true".to_owned())));
        for text in ["", "trace", "signal:10", "signal:10:1", "signal:0:7", "command:", "command: "]
        {
            assert!(read(text).is_err(), "{text} was taken for an action");
        }
    }

    #[test]
    fn a_failing_command_is_reported_and_a_good_one_is_not() {
        let trigger = Trigger { length: Nanos(5), cpu: whylate_model::CpuId(0) };
        let good = Action::Command("test \"$WHYLATE_GAP_NS\" = 5".to_owned());
        let bad = Action::Command("exit 3".to_owned());
        assert_eq!(perform(&[good], trigger), []);
        let told = perform(&[bad], trigger);
        assert!(matches!(told[..], [Warning::ActionFailed { .. }]), "{told:?}");
    }
}
