//! What can go wrong while a report is made.

use std::io;
use std::path::PathBuf;

use whylate_model::ModelError;
use whylate_model::difference::Difference;
use whylate_model::identity::Component;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run directory cannot be read.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The report cannot be written.
    #[error(
        "cannot write the report {}: {why}; the run is complete without it, and \
         `whylate report DIR --html FILE` writes it elsewhere", path.display()
    )]
    Write {
        /// Where to.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// Series that are not alike cannot be added up.
    #[error(transparent)]
    Unlike(Box<Unlike>),
    /// The same recording would be counted twice.
    #[error("cannot merge: `{second}` is the same recording as `{first}`; name it once")]
    CountedTwice {
        /// A directory, safe to print.
        first: String,
        /// Another, or the same.
        second: String,
    },
    /// The same recording would be taken for two runs.
    #[error(
        "cannot compare: `{second}` is the same recording as `{first}`, and two copies of a run \
         are not two runs; name it once"
    )]
    ComparedTwice {
        /// A directory, safe to print.
        first: String,
        /// Another, or the same.
        second: String,
    },
    /// A directory does not hold what its run says.
    #[error(
        "cannot merge `{directory}`: the histograms of {series} hold {have} samples where its run \
         counted {counted}, so the sum would be wrong; copy the directory again, or leave it out \
         with --skip-damaged"
    )]
    Incomplete {
        /// The directory, safe to print.
        directory: String,
        /// The series, safe to print.
        series: String,
        /// Samples in the log.
        have: u64,
        /// Samples that the run counted.
        counted: u64,
    },
    /// A matrix without histograms of its own.
    #[error(
        "cannot merge `{directory}`: it is a matrix, whose cells keep their histograms apart; merge \
         equal cells, as in `whylate merge A/pinned B/pinned -o DIR`"
    )]
    CellsApart {
        /// The directory, safe to print.
        directory: String,
    },
    /// A run of a set of threads.
    #[error(
        "cannot merge `{directory}`: it is a run of a set of threads, whose deadlines and blocks of \
         CPU time belong to its own schedule and cannot be summed; compare such runs with \
         `whylate compare`, or leave it out"
    )]
    SetOfThreads {
        /// The directory, safe to print.
        directory: String,
    },
    /// More than a merged run can hold.
    #[error("cannot merge: {what}; the most is {most}")]
    TooMuch {
        /// What there is too much of, and how much.
        what: String,
        /// The limit.
        most: String,
    },
    /// Nothing is left to add up.
    #[error("cannot merge: none of the {named} directories can be read; the first: {why}")]
    NothingToMerge {
        /// How many were named.
        named: usize,
        /// What is wrong with the first.
        why: String,
    },
}

/// Two series of one name that are not of one thing. Its texts are safe to print.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot merge {series} of `{second}` with that of `{first}`: they differ in {}, and numbers of different \
     things do not add up; {}",
    named(differences),
    instead(differences)
)]
pub struct Unlike {
    /// The series.
    pub series: String,
    /// All they differ in.
    pub differences: Vec<(Component, Difference)>,
    /// Where the series was first seen.
    pub first: String,
    /// Where it is another.
    pub second: String,
}

fn named(differences: &[(Component, Difference)]) -> String {
    let one =
        |(of, both): &(Component, Difference)| format!("`{of}` ({} and {})", both.left, both.right);
    differences.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What to do about it.
fn instead(differences: &[(Component, Difference)]) -> String {
    if differences.iter().any(|(of, _)| !of.can_be_crossed()) {
        return "merge them apart".to_owned();
    }
    let names: Vec<&str> = differences.iter().map(|(of, _)| of.name()).collect();
    format!("merge them apart, or allow it by name with --across {}", names.join(","))
}
