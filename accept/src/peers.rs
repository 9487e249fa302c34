//! Programs of others, run beside ours.

pub(crate) mod cyclictest;
