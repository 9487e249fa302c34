//! A recorded run, printed again.

use std::path::Path;

use crate::program;

#[test]
fn report_prints_what_the_recording_printed() {
    let _alone = program::alone();
    let recorded = program::record("gaps --duration 2s --warmup 200ms", 0);
    let printed = String::from_utf8(recorded.output.stdout.clone()).unwrap();
    let (first, _) = printed.split_once("\nRun directory: ").unwrap();
    let again = program::whylate(["report"]).arg(&recorded.directory).output().unwrap();
    assert!(again.status.success());
    assert_eq!(String::from_utf8(again.stdout).unwrap(), first);
}

#[test]
fn a_report_is_80_columns_wide_and_without_colour() {
    let _alone = program::alone();
    let text = rendered("runs/gaps");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    assert!(!text.contains('\u{1b}'), "an escape sequence is in the report");
}

#[test]
fn a_run_of_another_machine_renders_as_recorded() {
    let _alone = program::alone();
    insta::assert_snapshot!(rendered("runs/gaps"));
}

fn rendered(run: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(run);
    let output = program::whylate(["report"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", program::said(&output));
    String::from_utf8(output.stdout).unwrap()
}
