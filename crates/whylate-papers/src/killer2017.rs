//! Primorac, Bugnion and Argyraki, "How to Measure the Killer Microsecond" (KBNets 2017): its Table 1, its
//! Figures 2 and 3, and its last question as a table: which tool shows what a configuration of the
//! operating system does to a network function?
//!
//! The paper's reference is a switch of hardware that was measured by an appliance; here it is a delay line
//! that writes down how long it held each frame, so that the truth is known of the same frames. Its network
//! function is a DPDK port forwarder; here it is this program's forwarder, whose own log is the truth.
//! Recordings are runs of this program in processes of their own, through beds of namespaces that go
//! with them; figures come from their run directories. What stamps in hardware and remote memory would
//! tell is said to be missing where the host has neither.

mod accuracy;
mod boxes;
mod claims;
mod curves;
mod effects;
mod fig_2;
mod fig_3;
mod foreign;
mod measured;
mod protocol;
mod site;
mod table_1;
mod tools;

use std::sync::atomic::AtomicBool;

use whylate_model::paper::Paper;
use whylate_record::progress::Progress;

use crate::{Experiment, Known, PaperError, Request};

/// Its name on the command line.
pub const NAME: &str = "killer2017";

const PAPER: Known = Known {
    name: NAME,
    reference: "M. Primorac, E. Bugnion, K. Argyraki, How to Measure the Killer Microsecond, KBNets 2017",
    experiments: &[
        Experiment {
            place: "table1",
            title: "tools, who stamps for them, and how finely",
            seconds: (20, 16),
            run: table_1::run,
        },
        Experiment {
            place: "fig2",
            title: "a device of constant latency, by each tool",
            seconds: (7_200, 150),
            run: fig_2::run,
        },
        Experiment {
            place: "fig3",
            title: "a network function under configurations of the operating system, by each tool",
            seconds: (15_500, 280),
            run: fig_3::run,
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
    tools::chosen(request.tools.as_deref())?;
    // A file that is none is told before hours of measuring.
    foreign::imported(&request.imports)?;
    crate::repeat(&PAPER, request, stop, progress)
}

/// Are these places of the paper that are repeated here?
///
/// # Errors
/// The first that is none, with those that are.
pub fn check(only: &[String]) -> Result<(), PaperError> {
    crate::chosen(&PAPER, Some(only)).map(|_| ())
}

/// Are these tools that it knows?
///
/// # Errors
/// The first that is none, with those that are.
pub fn check_tools(named: &[String]) -> Result<(), PaperError> {
    tools::chosen(Some(named)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_places_and_tools_are_known_and_others_are_refused_by_name() {
        let words = |words: &[&str]| words.iter().map(|of| (*of).to_owned()).collect::<Vec<_>>();
        assert!(check(&words(&["table1", "FIG2", "fig3"])).is_ok());
        let error = check(&words(&["fig4"])).unwrap_err().to_string();
        assert!(error.contains("fig4") && error.ends_with("table1, fig2, fig3"), "{error}");
        assert!(check_tools(&words(&["xdp", "udp-block", "sockperf", "dpdk"])).is_ok());
        let error = check_tools(&words(&["netperf"])).unwrap_err().to_string();
        assert!(error.contains("netperf") && error.contains("udp-block"), "{error}");
    }
}
