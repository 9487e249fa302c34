//! What tests of the whole tool and live figures share: the program as it is run, what it needs, places and
//! loads that are planted, and predicates over what was recorded.
//!
//! Compiled once for all of them. Only tests and `accept` use it; what is the matter is said by a panic.

#![allow(missing_docs, reason = "fields and constants say what they are; nobody else uses them")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]
#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "it is for tests alone"
)]

pub mod archive;
pub mod between;
pub mod borne_out;
pub mod chromium;
pub mod delaying;
pub mod directories;
pub mod elsewhere;
pub mod ended;
pub mod exponential;
pub mod foreign;
pub mod hog;
pub mod hogs;
pub mod hourglass2002;
pub mod huge_pages;
pub mod lines;
pub mod listing;
pub mod looked;
pub mod machine;
pub mod misses;
pub mod mocked;
pub mod narrow;
pub mod needs;
pub mod one_end;
pub mod peer;
pub mod place;
pub mod planted;
pub mod program;
pub mod requests;
pub mod rt_app_peer;
pub mod rt_app_rows;
pub mod runaway;
pub mod segments;
pub mod softirq;
pub mod stalls;
pub mod told;
pub mod tool;
pub mod trials;
pub mod two_cpus;
pub mod wall;
pub mod watching;
pub mod ways;
