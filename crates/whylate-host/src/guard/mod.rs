//! Changes of the host that last as long as a value.
//!
//! A guard writes to the [`Journal`] before it changes anything, reads back what it wrote, says
//! what it did ([`Guard::describe`]), and takes everything back when it is dropped, also while a
//! panic unwinds. What somebody else has changed in between is left alone. When the process is
//! killed, the journal stays and the next start takes the changes back.
//!
//! Two runs at once that move the same tasks undo only their own change; what the second found
//! narrowed by the first stays narrowed when it ends last: see [`crate::another`].

mod bed;
mod box_cpuset;
mod cgroup;
mod changes;
mod coalescing;
mod cpuset;
mod dma_latency;
mod file_tree;
mod group;
mod hardware_stamps;
mod interrupts;
mod mask;
mod placed;
mod quota;
mod rt_throttling;
mod settings;
mod tags_in_frames;
mod tasks;
mod trace_instance;

use std::fmt::Display;
use std::io::Write;

use whylate_model::warning::Warning;

pub use self::bed::BedInTheMaking;
pub use self::box_cpuset::{BoxCpuset, BoxCpusetShape};
pub use self::cgroup::InsideCgroup;
pub use self::coalescing::NoCoalescing;
pub use self::cpuset::{CpusetPlan, ExclusiveCpuset};
pub use self::dma_latency::CpuDmaLatency;
pub use self::file_tree::{FileTree, TreeShape};
pub use self::hardware_stamps::HardwareStamps;
pub use self::interrupts::MovedInterrupts;
pub(crate) use self::interrupts::all as interrupts_below;
pub(crate) use self::mask::without as mask_without;
pub use self::placed::{FavouredTasks, PlacedTasks};
pub use self::quota::{CgroupQuota, CpuQuota, Weight};
pub use self::rt_throttling::{RtLimits, RtThrottling};
pub use self::settings::{ReadBack, Settings};
pub use self::tags_in_frames::TagsInFrames;
pub use self::tasks::{MovedTasks, Scope};
pub use self::trace_instance::TraceInstance;
#[cfg(doc)]
use crate::journal::Journal;

/// Says on standard error what could not be put back. Where that takes nothing, the rest is still put back.
fn say(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Something that was changed and will be put back.
pub trait Guard: Send {
    /// What was changed and what could not be, a line each, for the user.
    fn describe(&self) -> Vec<String>;

    /// Takes the change back now and tells what could not be taken back. Dropping does the same and
    /// prints to stderr; the second time there is nothing to do.
    fn restore(&mut self) -> Vec<Warning>;
}

/// Joins names for a line: the first few, then how many more.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let first = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_with_a_count() {
        let names: Vec<String> = (0..7).map(|n| n.to_string()).collect();
        assert_eq!(listed(&names[..2]), "0, 1");
        assert_eq!(listed(&names), "0, 1, 2, 3, 4 and 2 more");
    }

    #[test]
    fn guards_can_be_held_together_and_moved_between_threads() {
        fn held<T: Guard + 'static>() {}
        held::<InsideCgroup>();
        held::<MovedTasks>();
        held::<MovedInterrupts>();
        held::<TraceInstance>();
        held::<CpuDmaLatency>();
        held::<FileTree>();
        held::<HardwareStamps>();
        held::<RtThrottling>();
        held::<ExclusiveCpuset>();
        held::<CgroupQuota>();
        held::<BoxCpuset>();
        held::<PlacedTasks>();
        held::<FavouredTasks>();
        held::<NoCoalescing>();
        held::<TagsInFrames>();
        held::<Settings>();
    }
}
