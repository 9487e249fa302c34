//! What the tool itself can do here: clock and disk.

use whylate_model::doctor::Subject;

use super::exam::{Check, Exam, Outcome};
use super::network;
use super::view::seen;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "clock-cost",
        subject: Subject::Tool,
        why: "what takes no longer than reading the clock cannot be measured by reading the clock",
        look: clock_cost,
    },
    Check {
        name: "disk-speed",
        subject: Subject::Tool,
        why: "records that arrive faster than the disk takes them are lost, or stop the recording",
        look: disk_speed,
    },
];

/// Reading a counter in user space costs 5 to 50 ns.
const CLOCK_NATIVE_NS: f64 = 50.0;

/// Dearer than this it leaves the machine: a hypervisor emulates it.
const CLOCK_TRAPPED_NS: f64 = 500.0;

/// A difference of two readings is good to a tenth from ten readings on.
const READINGS: f64 = 10.0;

fn clock_cost(exam: &Exam<'_>) -> Outcome {
    const CALL: &str = "1000 readings of the counter, five times over";
    let Some(live) = exam.live else {
        return Outcome::unknown(
            "what a reading of the clock costs is not known: this is a \
                                 collected tree",
        )
        .seen(seen(CALL, "not made"));
    };
    let cost = match &live.clock_read_ns {
        Ok(cost) => *cost,
        Err(why) => {
            return Outcome::unknown(format!(
                "what a reading of the clock costs is not known: {why}"
            ))
            .seen(seen(CALL, why));
        }
    };
    let evidence = seen(CALL, &format!("{cost:.1} ns each, in the best of five"));
    let finding = format!("one reading of the cycle counter costs {cost:.1} ns");
    let shortest = cost * READINGS;
    let least = format!("two readings time nothing well that is shorter than {shortest:.0} ns");
    if cost > CLOCK_TRAPPED_NS {
        Outcome::spoils(format!("{finding}: the hypervisor emulates it")).seen(evidence).advise(
            "have the hypervisor stop intercepting rdtsc, or measure outside the virtual machine",
        )
    } else if cost > CLOCK_NATIVE_NS {
        Outcome::note(finding).seen(evidence).advise(least)
    } else {
        Outcome::fine(format!("{finding}; {least}")).seen(evidence)
    }
}

/// Bytes that one gap takes in a segment before it is packed: five words.
const GAP_BYTES: f64 = 40.0;

/// Gaps per second of a CPU that is interrupted without pause.
const GAPS_PER_CPU: f64 = 100_000.0;

fn disk_speed(exam: &Exam<'_>) -> Outcome {
    const CALL: &str = "writing into a nameless file here";
    let Some(live) = exam.live else {
        return Outcome::unknown(
            "how fast the disk takes records is not known: this is a \
                                 collected tree",
        )
        .seen(seen(CALL, "not made"));
    };
    let disk = match &live.disk {
        Ok(disk) => disk,
        Err(why) => {
            return Outcome::unknown(format!(
                "how fast the disk takes records is not known: {why}"
            ))
            .seen(seen(CALL, why));
        }
    };
    let speed = disk.bytes_per_second;
    let evidence = seen(
        &disk.directory,
        &format!("{} MiB written and synced at {}", disk.bytes >> 20, rate(speed)),
    );
    let need = GAP_BYTES * GAPS_PER_CPU * exam.cpus.len().max(1) as f64;
    if speed < need {
        return Outcome::spoils(format!(
            "the disk takes {}; a recording of {} can make {}",
            rate(speed),
            exam.measured(),
            rate(need)
        ))
        .seen(evidence)
        .advise("record onto a faster disk, or onto /dev/shm where memory allows: -o DIR");
    }
    match network::fastest_port(exam) {
        Some((port, bits)) if speed < bits as f64 / 8.0 => Outcome::note(format!(
            "the disk takes {} and {port} brings up to {}: a capture at line rate would not fit",
            rate(speed),
            rate(bits as f64 / 8.0)
        ))
        .seen(evidence)
        .advise("capture headers only, or into memory: -o below /dev/shm"),
        _ => Outcome::fine(format!("the disk takes {}", rate(speed))).seen(evidence),
    }
}

fn rate(bytes_per_second: f64) -> String {
    format!("{:.0} MB/s", bytes_per_second / 1e6)
}
