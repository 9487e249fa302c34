//! The committed schema is that of the types.

#[test]
fn committed_schema_of_run_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/run.schema.json");
    let made = whylate_model::schema::of_run();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == made,
        "schema/run.schema.json is stale: run `UPDATE_SCHEMA=1 cargo test -p whylate-model schema`"
    );
}
