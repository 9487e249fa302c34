//! The JSON schema of `run.json`, made from the types themselves.
//!
//! The schema is committed as `schema/run.schema.json` in this crate; a test fails when the two
//! differ. `UPDATE_SCHEMA=1 cargo test -p whylate-model schema` writes it anew.

use crate::run::Run;

/// The schema as JSON text.
///
/// # Panics
///
/// Never: a schema is made of strings, numbers and lists, and JSON has them all.
#[must_use]
pub fn of_run() -> String {
    let schema = schemars::schema_for!(Run);
    let mut text = serde_json::to_string_pretty(&schema)
        .expect("invariant: a schema is made of strings, numbers and lists");
    text.push('\n');
    text
}
