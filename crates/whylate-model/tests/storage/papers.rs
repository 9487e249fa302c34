//! The file of a repeated paper: what is written comes back, and what is cut, newer or no paper is refused.

use std::path::Path;

use proptest::prelude::*;
use whylate_model::ModelError;
use whylate_model::paper::{NotHere, PAPER_VERSION, Paper};

use crate::samples::run;

const PATH: &str = "paper.json";

fn paper() -> Paper {
    Paper {
        format_version: PAPER_VERSION,
        tool_version: "0.1.0".to_owned(),
        command_line: vec!["whylate".to_owned(), "paper".to_owned()],
        name: "pam2017".to_owned(),
        reference: "somebody, somewhere".to_owned(),
        quick: true,
        seed: 7,
        host: run().host,
        scenarios: Vec::new(),
        not_here: vec![NotHere {
            place: "1c".to_owned(),
            title: "two readings".to_owned(),
            would_be: "whylate gaps".to_owned(),
        }],
    }
}

fn parse(json: &[u8]) -> Result<Paper, ModelError> {
    Paper::parse(Path::new(PATH), json)
}

#[test]
fn a_paper_comes_back_and_one_that_is_cut_or_newer_or_none_is_refused() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(Paper::read(place.path()).unwrap(), None);
    paper().write(place.path()).unwrap();
    assert_eq!(Paper::read(place.path()).unwrap(), Some(paper()));
    let json = serde_json::to_vec(&paper()).unwrap();
    for length in 0..json.len() {
        assert!(parse(&json[..length]).is_err(), "{length} bytes");
    }
    assert_eq!(parse(&json).unwrap(), paper());
    // Nothing but its version need be as it is here.
    let error = parse(br#"{"name": 5, "format_version": 4000000000}"#).unwrap_err();
    assert!(matches!(error, ModelError::NewerFormat { found: 4_000_000_000, .. }), "{error}");
    for none in ["{}", "null", r#"{"format_version": 0}"#, r#"{"format_version": 1}"#] {
        let error = parse(none.as_bytes()).unwrap_err();
        assert!(matches!(error, ModelError::Malformed { .. }), "{none}: {error}");
    }
}

#[test]
fn a_paper_of_an_older_version_has_no_command_and_rows_of_which_nothing_is_judged() {
    let mut json = serde_json::to_value(paper()).unwrap();
    json.as_object_mut().unwrap().remove("command_line");
    json["scenarios"] = serde_json::json!([{
        "place": "6a", "title": "requests", "commands": [], "runs": [], "notes": [],
        "rows": [{ "what": "median", "paper": "9us", "here": null, "why": "not measured" }],
    }]);
    let read = parse(json.to_string().as_bytes()).unwrap();
    assert!(read.command_line.is_empty());
    let row = &read.scenarios[0].rows[0];
    assert_eq!((row.agreement, &row.brief), (None, &None));
}

proptest! {
    #[test]
    fn any_bytes_are_no_paper_and_changed_ones_are_one_or_a_reason_that_is_safe_to_print(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut changed = serde_json::to_vec(&paper()).unwrap();
        for (place, value) in &changes {
            let at = place.index(changed.len());
            changed[at] = *value;
        }
        prop_assert!(parse(&bytes).is_err());
        for content in [&bytes, &changed] {
            if let Err(error) = parse(content) {
                let told = error.to_string();
                prop_assert!(told.len() < 1_000, "{}", told.len());
                prop_assert!(!told.chars().any(char::is_control), "{told:?}");
            }
        }
    }
}
