//! Integration tests, one file per subject.
