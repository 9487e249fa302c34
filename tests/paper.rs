//! The experiments of a paper: its figures beside this host's, in one directory with its runs.

use whylate_model::paper::{PAPER_FILE, Paper, Scenario, Unit};

use crate::needs;
use crate::program::{self, said, whylate};

fn row<'a>(scenario: &'a Scenario, words: &[&str]) -> &'a whylate_model::paper::Row {
    let named = |what: &str| words.iter().all(|word| what.contains(word));
    scenario.rows.iter().find(|row| named(&row.what)).unwrap_or_else(|| panic!("{words:?}"))
}

#[test]
fn the_papers_two_tasks_miss_with_a_coarse_timer_and_less_with_a_fine_one() {
    let _alone = program::alone();
    if !needs::root() || needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("paper");
    let words = ["paper", "hourglass2002", "--quick", "--only", "5.5", "-o"];
    let output = whylate(words).arg(&directory).output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let paper = Paper::read(&directory).unwrap().unwrap();
    let [scenario] = paper.scenarios.as_slice() else { panic!("only what was asked: {text}") };
    for words in ["1 experiments: about", "1 of 1, 5.5:", "left)"] {
        assert!(text.contains(words), "its time is told before it begins: {words}: {text}");
    }
    assert!(scenario.rows.iter().all(|row| !row.why.is_empty()), "{:?}", scenario.rows);
    // Theory is exact.
    for (words, ms) in [("of task 0, by", 3.0), ("of task 1, by", 29.0), ("8ms of jitter", 39.0)] {
        let here = row(scenario, &[words]).here.as_ref().unwrap();
        assert_eq!(here.unit, Unit::Nanoseconds);
        assert!((here.value / 1e6 - ms).abs() < 1e-6, "{words}: {here:?}");
    }
    let missed = |timer: &str| {
        let row = row(scenario, &["missed deadlines of task 1", timer]);
        (row.here.as_ref().unwrap().value, row.paper.clone())
    };
    let (coarse, paper_says) = missed("that the paper's usleep had");
    let (fine, _) = missed("high-resolution");
    assert!(paper_says.is_some());
    assert!(coarse > 0.2, "the story of 5.5: {coarse}");
    assert!(fine < coarse / 2.0, "a fine timer mends it: {fine} of {coarse}");
    for run in &scenario.runs {
        assert!(directory.join(run).join("run.json").is_file(), "{run}");
        assert!(directory.join(run).join("report.html").is_file(), "{run}");
    }
    assert_eq!(scenario.commands.len(), scenario.runs.len(), "each with what repeats it");
    // The directory alone gives both reports again, figures included.
    let again = whylate(["report"]).arg(&directory).output().unwrap();
    assert_eq!(again.stdout, output.stdout);
    let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(
        page.contains("<svg") && page.contains("142 of 285"),
        "figures and the paper's numbers"
    );
}

#[test]
fn places_that_the_paper_has_not_and_damaged_files_are_refused_by_name() {
    let output = whylate(["paper", "hourglass2002", "--only", "7.1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("Figure 3, 5.1"), "{}", said(&output));
    let home = tempfile::tempdir().unwrap();
    for (content, told) in
        [("{", "paper.json"), ("{\"format_version\": 99}", "paper.json"), ("[]", "paper.json")]
    {
        std::fs::write(home.path().join(PAPER_FILE), content).unwrap();
        let output = whylate(["report"]).arg(home.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{content}: {}", said(&output));
        assert!(said(&output).contains(told), "{content}: {}", said(&output));
    }
}
