//! Regehr, "Inferring Scheduling Behavior with Hourglass" (USENIX Annual Technical Conference,
//! FREENIX track, 2002): Figure 3 and the scenarios of its section 5.
//!
//! The command lines are the paper's, on one CPU; what is shorter or otherwise is noted. Its machine was an 850 MHz
//! Pentium III with Linux 2.2 and 2.4.

mod caches;
mod deadlines;
mod dispatch;
mod priorities;
mod receive;
mod reservations;
mod switches;

use std::sync::atomic::AtomicBool;

use whylate_model::paper::Paper;
use whylate_record::progress::Progress;

use crate::{Experiment, Known, PaperError, Request};

/// Its name on the command line.
pub const NAME: &str = "hourglass2002";

const PAPER: Known = Known {
    name: NAME,
    reference: "J. Regehr, Inferring Scheduling Behavior with Hourglass, USENIX Annual Technical \
                Conference, FREENIX track, 2002",
    experiments: &[
        Experiment {
            place: "Figure 3",
            title: "three priorities share a CPU, alone and beside an audio-like load",
            seconds: (14, 8),
            run: priorities::run,
        },
        Experiment {
            place: "5.1",
            title: "the direct cost of context switches",
            seconds: (190, 14),
            run: switches::run,
        },
        Experiment {
            place: "5.2",
            title: "the indirect cost of context switches",
            seconds: (160, 36),
            run: caches::run,
        },
        Experiment {
            place: "5.3",
            title: "dispatch latency under contention",
            seconds: (426, 14),
            run: dispatch::run,
        },
        Experiment {
            place: "5.4",
            title: "deadlines during receive processing",
            seconds: (88, 18),
            run: receive::run,
        },
        Experiment {
            place: "5.5",
            title: "can concurrent applications meet their deadlines?",
            seconds: (48, 20),
            run: deadlines::run,
        },
        Experiment {
            place: "5.6",
            title: "CPU reservations",
            seconds: (24, 10),
            run: reservations::run,
        },
    ],
    not_here: &[],
};

/// Repeats the paper.
///
/// # Errors
/// What is asked for is not in the paper, a recording failed, the result cannot be written, or it was
/// stopped.
pub fn repeat(
    request: &Request,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Paper, PaperError> {
    crate::repeat(&PAPER, request, stop, progress)
}

/// The places that can be asked for alone.
#[must_use]
pub fn places() -> Vec<&'static str> {
    PAPER.experiments.iter().map(|of| of.place).collect()
}

/// Are these places of the paper?
///
/// # Errors
/// The first that is none, with those that are.
pub fn check(only: &[String]) -> Result<(), PaperError> {
    crate::chosen(&PAPER, Some(only)).map(|_| ())
}
