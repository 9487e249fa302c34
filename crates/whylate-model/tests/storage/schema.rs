//! The committed schemas are those of the types, each number in them says what it is, and all of version 1
//! is in version 2.

use whylate_model::directory::version_one;
use whylate_model::schema::names;

use crate::manual;

#[test]
fn committed_schema_of_run_is_up_to_date() {
    check("run.schema.json", &whylate_model::schema::of_run());
}

#[test]
fn committed_schema_of_diagnosis_is_up_to_date() {
    check("diagnosis.schema.json", &whylate_model::schema::of_diagnosis());
}

#[test]
fn committed_schema_of_the_beds_is_up_to_date() {
    check("lab.schema.json", &whylate_model::schema::of_lab());
}

#[test]
fn committed_schema_of_what_a_reflector_did_is_up_to_date() {
    check("reflected.schema.json", &whylate_model::schema::of_reflected());
}

#[test]
fn committed_schema_of_what_a_forwarder_did_is_up_to_date() {
    check("forward.schema.json", &whylate_model::schema::of_forward());
}

#[test]
fn committed_schema_of_what_a_delay_line_did_is_up_to_date() {
    check("delay.schema.json", &whylate_model::schema::of_delay());
}

#[test]
fn committed_schema_of_a_prediction_is_up_to_date() {
    check("prediction.schema.json", &whylate_model::schema::of_prediction());
}

#[test]
fn the_manual_lists_the_fields_of_a_run_as_they_are() {
    check("../../../docs/src/run-json.md", &manual::page());
}

fn check(file: &str, made: &str) {
    let path = format!("{}/schema/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "schema/{file} is stale: run `UPDATE_SCHEMA=1 cargo test -p whylate-model schema`"
    );
}

#[test]
fn each_number_of_each_document_says_its_unit_or_is_a_count() {
    for (document, schema) in documents() {
        assert_eq!(names::without_unit(&schema), [""; 0], "{document}");
    }
    let planted = serde_json::json!({
        "properties": {
            "length": { "$ref": "#/$defs/Nanos" },
            "length_ticks": { "$ref": "#/$defs/Nanos" },
            "length_ns": { "$ref": "#/$defs/Nanos" },
            "cpu": { "$ref": "#/$defs/CpuId" },
            "of_it": { "type": "array", "items": { "properties": { "mean": { "type": ["number", "null"] } } } },
            "gaps": { "type": "integer" },
            "newly": { "type": "integer" },
        },
        "$defs": {
            "Nanos": { "type": "integer", "x-unit": "ns" },
            "CpuId": { "type": "integer", "x-unit": "identifier" },
        },
    });
    let unfit = [".of_it.mean", "..length", "..length_ticks", "..newly"];
    let mut found = names::without_unit(&planted);
    found.sort();
    let mut unfit = unfit.map(str::to_owned);
    unfit.sort();
    assert_eq!(found, unfit);
}

#[test]
fn each_field_of_each_document_is_described() {
    for (document, schema) in documents() {
        assert_eq!(names::undescribed(&schema), [""; 0], "{document}");
    }
}

#[test]
fn each_field_of_version_one_is_there_by_its_name_or_by_the_one_that_it_became() {
    let kept = include_str!("../../schema/version-1.txt");
    let now = names::fields(&serde_json::from_str(&whylate_model::schema::of_run()).unwrap());
    let mut looked_at = 0;
    for line in kept.lines() {
        let (place, fields) = line.split_once(':').unwrap();
        let (around, object) = place.split_once('.').unwrap();
        for field in fields.split_whitespace() {
            let name = version_one::name_now(around, object, field);
            let place = [around, object, name].map(str::to_owned);
            assert!(now.contains(&place) || FOLDED.contains(&field), "{place:?} was {field}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 1_000, "{looked_at}");
}

/// What a cause of lost time took stands further inside.
const FOLDED: [&str; 7] =
    ["cpu", "gaps", "parts", "lost_ns", "share_of_lost", "share_of_elapsed", "longest"];

fn documents() -> [(&'static str, serde_json::Value); 7] {
    use whylate_model::schema::{
        of_delay, of_diagnosis, of_forward, of_lab, of_prediction, of_reflected, of_run,
    };
    [
        ("run", of_run()),
        ("diagnosis", of_diagnosis()),
        ("lab", of_lab()),
        ("reflected", of_reflected()),
        ("forward", of_forward()),
        ("delay", of_delay()),
        ("prediction", of_prediction()),
    ]
    .map(|(name, schema)| (name, serde_json::from_str(&schema).unwrap()))
}
