//! What is planted for a figure: loads and disturbances, and what they take of the machine.

pub(crate) mod flood;
pub(crate) mod huge_pages;
pub(crate) mod stalls;
