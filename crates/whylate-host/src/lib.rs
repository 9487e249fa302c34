//! The host: fingerprint, CPU sets, guards that restore, and the journal.
