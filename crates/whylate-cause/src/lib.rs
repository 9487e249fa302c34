//! Gaps and evidence, resolved into parts and causes.
