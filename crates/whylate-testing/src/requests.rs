//! What tests of requests and replies have in common: a bed, signals, a recording without a CPU of its
//! own, and what a run has of a flow.

use std::path::Path;
use std::process::{Command, Stdio};

use whylate_model::directory::RunDir;
use whylate_model::flow::Flow;
use whylate_model::run::Run;
use whylate_model::series::{Quantile, Series};
use whylate_model::{CpuId, Nanos};
use whylate_stats::Histogram;
use whylate_stats::quantile::smallest_n;

use crate::needs;
use crate::program::{self, said, whylate};

pub const SIGKILL: i32 = 9;
pub const SIGCONT: i32 = 18;
pub const SIGSTOP: i32 = 19;

/// A bed of a test, taken down with it whatever happens.
pub struct Bed(pub String);

impl Bed {
    /// None where this machine cannot have one.
    pub fn up(what: &str) -> Option<Self> {
        Self::up_as(what, "direct")
    }

    /// One of this kind, with more words of `lab up` behind it: `bridge --tap`.
    pub fn up_as(what: &str, kind: &str) -> Option<Self> {
        if !needs::root() || needs::program("ip").is_none() {
            return None;
        }
        let bed = Self(format!("t{}-{what}", std::process::id()));
        let mut command = whylate(["lab", "up", "--name", &bed.0, "--kind"]);
        let up = command.args(kind.split_whitespace()).output().unwrap();
        assert_eq!(up.status.code(), Some(0), "{}", said(&up));
        Some(bed)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = whylate(["lab", "down", "--name", &self.0]).output();
    }
}

/// A recording of 5 000 requests a second whose ends spin on these CPUs, and whose own thread has no
/// other than theirs.
pub fn both_ends_spin([other, client]: [CpuId; 2], words: &str, run: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &format!("{other},{client}")]).arg(program::path());
    command.args("rtt --rate 5kpps --no-trace --wait spin".split(' ')).args(words.split(' '));
    command.args(["--cpus", &client.to_string(), "--other-cpu", &other.to_string(), "-o"]);
    command.arg(run).env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state());
    command.stdin(Stdio::null());
    command
}

/// The first flow of a run.
pub fn flow(run: &Run) -> &Flow {
    run.flows.first().expect("a flow")
}

/// The series with this name.
pub fn series<'a>(run: &'a Run, name: &str) -> Option<&'a Series> {
    run.series.iter().find(|series| series.name == name)
}

/// Are there enough independent samples for this percentile and for each lower one? What is withheld of one
/// is withheld of those above it, too.
pub fn is_shown(quantiles: &[Quantile], percent: f64) -> bool {
    let enough = |of: &Quantile| of.n_eff >= smallest_n(of.percent / 100.0) as f64;
    quantiles.iter().filter(|of| of.percent <= percent).all(enough)
}

/// The lowest percentile of these: it is there, unless a machine that kept all of them waiting together left
/// too few independent samples for it.
pub fn lowest(quantiles: &[Quantile]) -> Option<Nanos> {
    let lowest = quantiles.first().expect("a series has percentiles");
    assert!(lowest.value.is_some() || !is_shown(quantiles, lowest.percent), "{quantiles:?}");
    lowest.value
}

/// What the histogram log of a run adds up to.
pub fn logged(directory: &Path, name: &str) -> Histogram {
    let mut sum = Histogram::new();
    for (tag, _, _, histogram) in RunDir::open(directory).unwrap().read_histograms().unwrap() {
        if tag == name {
            sum.add(&histogram);
        }
    }
    sum
}
