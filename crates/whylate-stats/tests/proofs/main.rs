//! Proofs of the statistics: against vectors made by SciPy, against the lecture's tables, against
//! the definitions, and by simulation with a fixed seed.

mod judgement;
mod lecture;
mod pooling;
mod reading;
mod simulation;
mod special_functions;
mod two_samples;
mod vectors;
