//! Programs of others, run beside ours.

pub(crate) mod cyclictest;
pub(crate) mod netsniff;
pub(crate) mod oslat;
pub(crate) mod qperf;
pub(crate) mod sockperf;
pub(crate) mod testpmd;
