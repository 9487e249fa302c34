//! Zilberman and others, "Where Has My Time Gone?" (Passive and Active Measurement, 2017): rows 4 and
//! 6a of its Table 1, each with the parts that its Figure 4 asks for.
//!
//! Its hosts were two Xeon E5-2637 v4 of 3.5 GHz with Linux 4.4, back to back, with a
//! capture card at a passive tap between them. Here both ends are namespaces of one machine, joined by a
//! virtual link: no wire, no card, no PCI Express. So a figure is set beside the paper's with what lies
//! between its ends, and no difference is claimed.

mod client_server;
mod host;
mod parts;
mod site;
mod table_1;

use std::sync::atomic::AtomicBool;

use whylate_model::paper::Paper;
use whylate_record::progress::Progress;

use crate::{Experiment, Known, Missing, PaperError, Request};

/// Its name on the command line.
pub const NAME: &str = "pam2017";

const PAPER: Known = Known {
    name: NAME,
    reference: "N. Zilberman and others, Where Has My Time Gone?, Passive and Active Measurement, 2017",
    experiments: &[
        Experiment {
            place: "4",
            title: "host latency: how long a request stays in a host, from driver to driver",
            seconds: (35, 4),
            run: host::run,
        },
        Experiment {
            place: "6a",
            title: "client and server over UDP, and where the time goes",
            seconds: (160, 17),
            run: client_server::run,
        },
    ],
    not_here: &[
        Missing {
            place: "1a",
            title: "readings of the counter early in a kernel's start",
            would_be: "a guest without an operating system that does nothing else",
        },
        Missing {
            place: "1b",
            title: "readings of the counter in the kernel",
            would_be: "a loop inside the kernel with interrupts off; whylate gaps measures a thread of user \
                       space",
        },
        Missing {
            place: "1c",
            title: "readings of the counter by a program",
            would_be: "whylate gaps, both loops, over an hour; of its p99.9 the paper's table has 11ns and \
                       the lecture's table of the same readings 10ns",
        },
        Missing {
            place: "1d",
            title: "readings of the counter in a virtual machine",
            would_be: "whylate gaps inside one and beside it",
        },
        Missing {
            place: "2a",
            title: "messages between two processes on one core",
            would_be: "whylate rtt --transport unix with both ends on one CPU, closed loop",
        },
        Missing {
            place: "2b",
            title: "messages between two processes on two cores",
            would_be: "whylate rtt --transport unix with an end on each of two CPUs, closed loop",
        },
        Missing {
            place: "3a",
            title: "PCI Express round trip of 64 bytes",
            would_be: "a device that reads this machine's memory and times it",
        },
        Missing {
            place: "3b",
            title: "PCI Express round trip of 1536 bytes",
            would_be: "a device that reads this machine's memory and times it",
        },
        Missing {
            place: "5",
            title: "host latency past the kernel",
            would_be: "row 4 of a server by AF_XDP or DPDK with a card that stamps",
        },
        Missing {
            place: "6b",
            title: "client and server of Memcached",
            would_be: "a client that speaks its protocol",
        },
        Missing {
            place: "7a",
            title: "a card's latency, ExaNIC X10",
            would_be: "a card with a loopback, from driver to driver",
        },
        Missing {
            place: "7b",
            title: "a card's latency, SFN8522",
            would_be: "a card with a loopback, from driver to driver",
        },
        Missing {
            place: "8",
            title: "switches",
            would_be: "two ports of one card that stamps, around a switch",
        },
    ],
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

/// Are these places of the paper that are repeated here?
///
/// # Errors
/// The first that is none, with those that are.
pub fn check(only: &[String]) -> Result<(), PaperError> {
    crate::chosen(&PAPER, Some(only)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_that_is_not_here_is_refused_with_what_it_would_be_and_none_is_named_twice() {
        assert!(check(&["4".to_owned(), "6A".to_owned()]).is_ok());
        let error = check(&["1c".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("1c") && error.contains("whylate gaps"), "{error}");
        assert!(error.ends_with("write some of 4, 6a"), "{error}");
        let error = check(&["9".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("the paper has no 9 here"), "{error}");
        let mut all = places();
        all.extend(PAPER.not_here.iter().map(|of| of.place));
        let rows = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!((rows, all.len()), (15, 15), "{all:?}");
    }
}
