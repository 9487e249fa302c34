//! Thread models and timers.
