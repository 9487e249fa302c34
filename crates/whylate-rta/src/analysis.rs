//! What theory predicts for tasks of one CPU: response times, whether deadlines are met, and why no
//! answer can be given where none can.
//!
//! Times are whole nanoseconds in checked arithmetic: what does not fit into 64 bits is an error,
//! never a wrapped number. Each search is bounded by a named limit; what lies beyond it is said to
//! be undecided. Nothing here runs or measures, and a prediction holds for the model alone: tasks of
//! one CPU that ask for no more than they say.

pub mod assign;
pub mod cbs;
pub mod edf;
pub mod fixed_priority;
pub mod jitter;
pub mod of_set;
pub mod overhead;
pub mod task;
pub mod word;

mod blocking;
mod error;
mod load;
mod window;

pub use error::{Amount, AnalysisError};
pub use fixed_priority::{Bound, Response, Undecided};
pub(crate) use load::Load;
pub use load::utilisation;
pub use overhead::Overheads;
pub use task::{MOST_TASKS, Releases, Task};
