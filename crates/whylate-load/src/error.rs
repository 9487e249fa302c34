//! What can keep load from being made.

use std::path::PathBuf;
use std::time::Duration;

use whylate_host::HostError;
use whylate_net::NetError;
use whylate_sys::SysError;

/// Why there is no load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Words that name no load.
    #[error(
        "cannot read the loads `{words}`: {why}; write them as net, net:udp=20000pps, disk:files=5000, \
         ipi, cpu:50%, mem:64MiB, separated by commas"
    )]
    NotALoad {
        /// The words.
        words: String,
        /// What is wrong with them.
        why: String,
    },
    /// Nothing is asked for, or nobody is to be disturbed.
    #[error("cannot make load: {0}")]
    Nothing(&'static str),
    /// A load of which one part must run on another CPU than those that are disturbed.
    #[error(
        "cannot make the load `{load}`: it needs a CPU that is not measured; measure fewer CPUs, \
         or choose disk or cpu"
    )]
    NoOtherCpu {
        /// Which load.
        load: String,
    },
    /// Memory that the machine does not have.
    #[error(
        "cannot make the load `{load}`: it takes {wanted} bytes of memory, and {free} are free; \
         ask for less"
    )]
    NoMemory {
        /// Which load.
        load: String,
        /// Bytes in all.
        wanted: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A generator could not be started.
    #[error("cannot start {} for the load `{load}`: {source}", exe.display())]
    Spawn {
        /// Which load.
        load: String,
        /// The program.
        exe: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A generator ended, or said why it cannot, before it ran.
    #[error("the load `{load}` did not start: {why}")]
    Refused {
        /// Which load.
        load: String,
        /// What it said.
        why: String,
    },
    /// A generator did nothing in time.
    #[error(
        "the load `{load}` did nothing within {patience:?}; is its CPU taken by real-time threads?"
    )]
    Silent {
        /// Which load.
        load: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// An order that cannot be read: the child was not started by whylate.
    #[error("this command is started by whylate itself, with an order on its standard input: {0}")]
    NoOrder(String),
    /// A generator's own work failed.
    #[error("cannot {what}: {source}")]
    Work {
        /// What it tried.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// Files could not be made, or the journal not be written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A bed could not be used.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A kernel interface refused.
    #[error(transparent)]
    Sys(#[from] SysError),
}
