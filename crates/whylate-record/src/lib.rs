//! Recording: measuring threads, evidence and checkpoints become one run directory.
