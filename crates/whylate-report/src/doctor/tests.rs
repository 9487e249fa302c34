//! What doctor found, in whole.

use whylate_model::CpuId;
use whylate_model::doctor::{DIAGNOSIS_VERSION, Subject};
use whylate_model::host::{Difference, Fingerprint};

use super::*;
use crate::terminal::{Style, full_of_diagnosis};

fn symptom(check: &str, level: Level) -> Symptom {
    Symptom {
        check: check.to_owned(),
        subject: Subject::Memory,
        level,
        finding: format!("{check} is found \u{1b}[31m"),
        why: "it takes time that the measured thread then lacks".to_owned(),
        remedy: vec![
            Remedy::Command(format!("echo madvise > /sys/kernel/mm/{}", "x".repeat(40))),
            Remedy::Advice("boot without it".to_owned()),
        ],
        evidence: vec![Evidence { source: "/sys/x".to_owned(), said: "[always]".to_owned() }; 5],
    }
}

pub(crate) fn diagnosis() -> Diagnosis {
    Diagnosis {
        format_version: DIAGNOSIS_VERSION,
        tool_version: "0.1.0".to_owned(),
        root: "collected".to_owned(),
        cpus: vec![CpuId(2), CpuId(3)],
        host: Fingerprint { hostname: "box".to_owned(), ..Fingerprint::default() },
        symptoms: vec![
            symptom("fine-one", Level::Fine),
            symptom("noted", Level::Note),
            symptom("hidden", Level::Unknown),
            symptom("spoiling", Level::Spoils),
        ],
        compared: Some(Compared {
            with: "run-1".to_owned(),
            tool_version: "0.0.9".to_owned(),
            problem: None,
            differences: vec![Difference {
                name: "command line".to_owned(),
                left: "quiet ".repeat(30),
                right: "nothing more".to_owned(),
            }],
        }),
    }
}

#[test]
fn the_worst_stands_first_and_what_is_fine_only_when_asked_for() {
    let text = full_of_diagnosis(&diagnosis(), false, Style::default());
    let place = |word: &str| text.find(word).unwrap();
    assert!(place("spoiling") < place("noted") && place("noted") < place("hidden"));
    assert!(!text.contains("fine-one"));
    assert!(full_of_diagnosis(&diagnosis(), true, Style::default()).contains("fine-one"));
}

#[test]
fn a_run_whose_file_was_changed_is_told_above_its_differences() {
    let mut changed = diagnosis();
    let compared = changed.compared.as_mut().unwrap();
    compared.problem = Some("run.json is not as it was recorded".to_owned());
    for none in [false, true] {
        if none {
            changed.compared.as_mut().unwrap().differences.clear();
        }
        let text = full_of_diagnosis(&changed, false, Style::default());
        let (_, told) = text.split_once("What differs from run-1").unwrap();
        let rest = if none { "Nothing that is known" } else { "nothing more" };
        let [problem, rest] = ["run.json is not as it was recorded.", rest].map(|of| told.find(of));
        assert!(problem.is_some() && problem < rest, "{text}");
    }
}

#[test]
fn a_diagnosis_reads_as_recorded() {
    insta::assert_snapshot!(full_of_diagnosis(&diagnosis(), true, Style::default()));
}

#[test]
fn it_is_80_columns_wide_and_passes_no_escape_on() {
    let text = full_of_diagnosis(&diagnosis(), true, Style::default());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let coloured =
        full_of_diagnosis(&diagnosis(), true, Style { colour: true, ..Style::default() });
    assert!(coloured.contains('\u{1b}'));
}
