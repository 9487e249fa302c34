//! The committed schemas are those of the types.

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
