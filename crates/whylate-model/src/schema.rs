//! The JSON schemas of `run.json` and of doctor's diagnosis, made from the types themselves.
//!
//! They are committed as `schema/*.schema.json` in this crate; a test fails when one differs, and
//! `UPDATE_SCHEMA=1 cargo test -p whylate-model schema` writes it anew.

use crate::doctor::Diagnosis;
use crate::run::Run;

/// The schema of `run.json` as JSON text.
///
/// # Panics
///
/// Never: a schema is made of strings, numbers and lists, and JSON has them all.
#[must_use]
pub fn of_run() -> String {
    text(&schemars::schema_for!(Run))
}

/// The schema of what `whylate doctor --format json` prints, as JSON text.
///
/// # Panics
///
/// Never, as [`of_run`].
#[must_use]
pub fn of_diagnosis() -> String {
    text(&schemars::schema_for!(Diagnosis))
}

fn text(schema: &schemars::Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema)
        .expect("invariant: a schema is made of strings, numbers and lists");
    text.push('\n');
    text
}
