//! Tick counters, their calibration, and their relation to wall time.
