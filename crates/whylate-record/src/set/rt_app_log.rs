//! Logs in the columns of rt-app: a file for each thread, a row for each pass through a phase.
//!
//! Times are microseconds. `perf` counts rt-app's calibrated loop, which there is none of here: it is
//! always 0, and the header says so. `start` and `end` are by the counter from the run's first
//! reading on, so rows of all threads are on one timeline.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use whylate_model::output;
use whylate_model::{Hertz, Ticks, TicksDelta};
use whylate_rta::task_set::Thread;
use whylate_threads::ledger::Pass;

use super::SetRecorded;

/// The columns, in rt-app's widths.
const HEAD: &str = "#idx     perf      run   period           start             end          rel_st \
                    \x20    slack c_duration   c_period     wu_lat";

/// Writes a log of each thread that has a program into `folder`, as `whylate-NAME-INDEX.log`; gives
/// how many.
pub fn write(folder: &Path, threads: &[Thread], of: &SetRecorded) -> io::Result<usize> {
    if !folder.is_dir() {
        output::make_directory(folder)?;
    }
    let run = &of.recorded.run;
    let mut written = 0;
    for (index, (thread, summary)) in threads.iter().zip(&run.threads).enumerate() {
        let Some(program) = &thread.program else { continue };
        let mut text = header(&summary.policy, of.passes.left_out());
        for pass in of.passes.thread(index) {
            let Some(phase) = program.phases.get(pass.phase as usize) else { continue };
            let asked = phase.run().0.saturating_add(phase.runtime().0);
            let configured = (asked / 1_000, phase.period().0 / 1_000);
            row(&mut text, index, pass, configured, of.begin, run.clock.hz);
        }
        let name = format!("whylate-{}-{index}.log", thread.name.replace(['/', '\0'], "_"));
        output::write(&folder.join(name), text.as_bytes())?;
        written += 1;
    }
    Ok(written)
}

fn header(policy: &str, left_out: u64) -> String {
    let mut text = format!(
        "# Policy : {policy}\n# perf is 0: no loop is calibrated; run is CPU time received, also of \
         runtime events; slack is to the job's deadline\n"
    );
    if left_out > 0 {
        let _ = writeln!(text, "# {left_out} passes of all threads found no room and are left out");
    }
    text + HEAD + "\n"
}

fn row(
    text: &mut String,
    index: usize,
    pass: &Pass,
    (duration_us, period_us): (u64, u64),
    begin: Ticks,
    hz: Hertz,
) {
    let us = |ticks: TicksDelta| (ticks.to_nanos(hz).0 + 500) / 1_000;
    let _ = writeln!(
        text,
        "{index:4} {:8} {:8} {:8} {:15} {:15} {:15} {:10} {duration_us:10} {period_us:10} {:10}",
        0,
        us(pass.run + pass.busy.received),
        us(pass.end.since(pass.start)),
        us(TicksDelta(pass.start.0)),
        us(TicksDelta(pass.end.0)),
        us(pass.start.since(begin)),
        pass.slack_ns / 1_000,
        (pass.late.0 + 500) / 1_000,
    );
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_threads::ledger::Busy;

    use super::*;

    #[test]
    fn a_row_stands_in_the_columns_of_rt_app() {
        let pass = Pass {
            phase: 0,
            start: Ticks(5_000_000),
            end: Ticks(15_000_400),
            run: TicksDelta(700_600),
            busy: Busy {
                elapsed: TicksDelta(900_000),
                received: TicksDelta(300_000),
                over: TicksDelta(0),
            },
            slack_ns: -2_500_000,
            late: Nanos(92_000),
        };
        let mut text = header("SCHED_OTHER", 3);
        row(&mut text, 7, &pass, (1_000, 10_000), Ticks(4_000_000), Hertz(1e9));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("perf is 0") && lines[2].contains("3 passes"), "{text}");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            words(lines[4]),
            ["7", "0", "1001", "10000", "5000", "15000", "1000", "-2500", "1000", "10000", "92"]
        );
        assert_eq!(words(lines[3]).len(), words(lines[4]).len());
        // Columns are flush right under their names, as rt-app prints them.
        assert_eq!(lines[3].find("run").map(|at| at + 3), lines[4].find(" 1001").map(|at| at + 5));
    }
}
