//! A private bed of three network namespaces, to try things that need a network on one machine.
//!
//! Nothing of it is seen outside its namespaces; it stays until it is taken down.

mod bed;

pub use bed::Bed;
pub use whylate_host::bed::Role;
