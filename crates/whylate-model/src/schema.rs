//! The JSON schemas of `run.json` and of what commands print with `--format json`, made from the types themselves.
//!
//! They are committed as `schema/*.schema.json` in this crate; a test fails when one differs, and
//! `UPDATE_SCHEMA=1 cargo test -p whylate-model schema` writes it anew.

use crate::delay::DelayLine;
use crate::doctor::Diagnosis;
use crate::forward::Forward;
use crate::lab::LabStatus;
use crate::prediction::PredictionDocument;
use crate::reflect::Reflected;
use crate::run::Run;
use crate::trust::Told;

pub mod names;

/// What is printed of a run and stands in no file.
const TRUST: &str = "How far the run may be trusted, by itself and by the state of its files: only in what is \
                     printed, as by `whylate report RUN --format json`.";

/// The schema of `run.json` as JSON text.
///
/// # Panics
///
/// Never: a schema is made of strings, numbers and lists, and JSON has them all.
#[must_use]
pub fn of_run() -> String {
    let mut generator = schemars::SchemaGenerator::default();
    // Files may be changed after a run was written, so that its trust is found out when it is read.
    let mut trust = generator.subschema_for::<Told>();
    trust.insert("description".to_owned(), TRUST.into());
    let mut schema = generator.into_root_schema_for::<Run>();
    let fields = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut);
    fields.map(|fields| fields.insert("trust".to_owned(), trust.into()));
    // Beside what a run is, its file has the digest of itself; see `digest`.
    for (field, description) in [
        ("digest_kind", "The first field: of which kind the digest in the last field is."),
        ("digest", "The last field: the digest of all bytes of the file before its first digit."),
    ] {
        let of_field = serde_json::json!({ "description": description, "type": "string" });
        let fields = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut);
        fields.map(|fields| fields.insert(field.to_owned(), of_field));
    }
    text(&schema)
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

/// The schema of what `whylate lab status --format json` prints, as JSON text.
///
/// # Panics
///
/// Never, as [`of_run`].
#[must_use]
pub fn of_lab() -> String {
    text(&schemars::schema_for!(LabStatus))
}

/// The schema of what `whylate reflect --format json` prints, as JSON text.
///
/// # Panics
///
/// Never, as [`of_run`].
#[must_use]
pub fn of_reflected() -> String {
    text(&schemars::schema_for!(Reflected))
}

/// The schema of what `whylate forward --format json` prints, as JSON text.
///
/// # Panics
///
/// Never, as [`of_run`].
#[must_use]
pub fn of_forward() -> String {
    text(&schemars::schema_for!(Forward))
}

/// The schema of what `whylate rta --format json` prints, as JSON text.
///
/// # Panics
///
/// Never, as [`of_run`].
#[must_use]
pub fn of_prediction() -> String {
    text(&schemars::schema_for!(PredictionDocument))
}

/// The schema of what `whylate delay --format json` prints, as JSON text.
///
/// # Panics
///
/// Never, as [`of_run`].
#[must_use]
pub fn of_delay() -> String {
    text(&schemars::schema_for!(DelayLine))
}

fn text(schema: &schemars::Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema)
        .expect("invariant: a schema is made of strings, numbers and lists");
    text.push('\n');
    text
}
