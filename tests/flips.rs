//! One flipped bit anywhere in the files of a run: it is told with the name of the file, or the run is
//! refused with it; no other number is printed as if it had been recorded.

use std::path::Path;
use std::process::Output;

use whylate_model::Nanos;
use whylate_model::cause::Cause;
use whylate_model::directory::RunDir;
use whylate_model::doctor::Diagnosis;
use whylate_model::paper::{PAPER_FILE, Paper};
use whylate_model::run::{Run, Verdict};
use whylate_stats::rng::Rng;

use crate::directories::{self, Planted, latencies, merge};
use crate::program::{self, as_used, said, whylate};

/// Bits that are flipped, one after another: half in `run.json`, half in the other files.
const PLACES: usize = 500;

/// Has one bit of every byte of `run.json` flipped, and so many of the other files.
const ALL: &str = "WHYLATE_FLIP_ALL";
const OTHERS_OF_ALL: usize = 10_000;

/// `WHYLATE_FLIP_ALL=1 cargo test -p whylate --test pure flips` takes every byte of `run.json`.
#[test]
fn a_flipped_bit_of_any_file_is_told_or_refused_with_the_name_of_the_file() {
    let all = std::env::var_os(ALL).is_some();
    flip(if all { OTHERS_OF_ALL } else { PLACES / 2 }, all);
}

/// Flips so many bits of the other files, each in a stretch of its own, and as many of `run.json`, or one of
/// every byte of it.
fn flip(of_others: usize, every_byte: bool) {
    let home = tempfile::tempdir().unwrap();
    let causes = [(1_500, 3, Cause::Host), (9_000, 2, Cause::PageFault), (120_000, 1, Cause::Host)];
    let directory = Planted::new("host", 0)
        .named_gaps(1, Nanos(1_000), &causes)
        .series("rtt", "the request's departure", &latencies(1, 10, 2_000.0))
        .write(home.path(), "run");
    let report = || whylate(["report"]).arg(&directory).output().unwrap();
    let whole = report();
    assert_eq!(whole.status.code(), Some(0), "{}", said(&whole));
    let files = ["run.json", "histograms.hlog", "gaps-0001.parquet"];
    let mut rng = Rng::new(20);
    for name in files {
        let path = directory.join(name);
        let content = std::fs::read(&path).unwrap();
        let stretches = match name {
            "run.json" if every_byte => content.len(),
            "run.json" => of_others,
            _ => of_others / (files.len() - 1),
        };
        for stretch in 0..stretches {
            let (from, to) =
                (content.len() * stretch / stretches, content.len() * (stretch + 1) / stretches);
            let place = from + rng.below((to - from).max(1) as u64) as usize;
            let bit = rng.below(8);
            let mut changed = content.clone();
            changed[place] ^= 1 << bit;
            std::fs::write(&path, changed).unwrap();
            told(&report(), &path, &format!("bit {bit} of byte {place} of {name}"));
        }
        std::fs::write(&path, content).unwrap();
    }
    assert_eq!(report().stdout, whole.stdout);
}

fn told(output: &std::process::Output, path: &Path, what: &str) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let text: Vec<String> = said(output).split_whitespace().map(str::to_owned).collect();
    let expected = match output.status.code() {
        Some(1) => name.to_owned(),
        Some(4) => format!("{name} is not as it was recorded"),
        _ => panic!("{what}: {:?}: {}", output.status, said(output)),
    };
    assert!(text.join(" ").contains(&expected), "{what}: {}", said(output));
}

/// The table of one run in the place of another's, as a copy that went wrong leaves it.
#[test]
fn merge_and_compare_tell_of_a_table_of_another_run_and_a_sum_passes_it_on() {
    let home = tempfile::tempdir().unwrap();
    let plant = |number: u64| {
        let run = Planted::new("host", number * 60);
        let run = run.gaps(1, Nanos(100), &latencies(number, 10, 1_000.0));
        run.write(home.path(), &format!("run-{number}"))
    };
    let [first, second, third, fourth, fifth] = [1, 2, 3, 4, 5].map(plant);
    let table = "gaps-0001.parquet";
    std::fs::copy(first.join(table), second.join(table)).unwrap();
    let told = |output: &std::process::Output, status: i32| {
        let text = said(output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(status), "{text}");
        let told = ["is not as it was recorded", "has"].map(|what| format!("{table} {what}"));
        assert!(told.iter().any(|told| text.contains(told)), "{text}");
    };
    told(&merge(&[], &[first.clone(), second.clone()], &home.path().join("of-two")), 4);
    // What differs is still told, with the reason not to trust it.
    told(&whylate(["compare"]).args([&first, &second]).output().unwrap(), 4);

    let sum = home.path().join("sum");
    let output = merge(&[], &[third, fourth], &sum);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    std::fs::copy(sum.join("gaps-0002.parquet"), sum.join(table)).unwrap();
    told(&merge(&[], &[sum.clone(), fifth], &home.path().join("of-three")), 4);
    for words in [&[][..], &["--format", "json"], &["--html", "-"]] {
        told(&whylate([&["report"], words].concat()).arg(&sum).output().unwrap(), 4);
    }
}

/// Two recordings in one directory, as where a shorter one was copied over a longer one.
#[test]
fn a_table_that_the_run_does_not_count_enters_none_of_its_numbers() {
    let home = tempfile::tempdir().unwrap();
    let [first, second] = [1, 2].map(|number| {
        let run = Planted::new("host", number * 60);
        let run = run.gaps(1, Nanos(100), &latencies(number, 10, 1_000.0));
        run.write(home.path(), &format!("run-{number}"))
    });
    let report = || whylate(["report", "--format", "json"]).arg(&second).output().unwrap();
    let before = report();
    assert_eq!(before.status.code(), Some(0), "{}", said(&before));
    std::fs::copy(first.join("gaps-0001.parquet"), second.join("gaps-0002.parquet")).unwrap();
    let after = report();
    assert_eq!((after.status.code(), after.stdout), (Some(0), before.stdout));
    let sum = home.path().join("sum");
    let output = merge(&[], &[first.clone(), second.clone()], &sum);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let [first, second, sum] = [first, second, sum]
        .map(|directory| program::read(&directory).segments.iter().map(|of| of.rows).sum::<u64>());
    assert_eq!(first + second, sum);
}

/// What a command says, in one line, where it ends as it should.
fn ended(output: &Output, status: i32) -> String {
    let text = said(output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(status), "{text}");
    text
}

/// A figure in a file of JSON becomes another one.
fn change_a_figure(file: &Path, field: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    let at = text.find(&format!("\"{field}\": ")).unwrap();
    let digit = at + text[at..].find(|of: char| of.is_ascii_digit()).unwrap();
    let other = if &text[digit..=digit] == "7" { "8" } else { "7" };
    std::fs::write(file, format!("{}{other}{}", &text[..digit], &text[digit + 1..])).unwrap();
}

#[test]
fn a_paper_with_a_changed_part_or_file_is_as_poor_as_that_part() {
    let home = tempfile::tempdir().unwrap();
    let mut paper = Paper::read(&program::file("papers/hourglass2002")).unwrap().unwrap();
    paper.scenarios.truncate(1);
    paper.scenarios[0].runs = ["one", "other"].map(str::to_owned).to_vec();
    let [one, _] = [("one", 1), ("other", 2)].map(|(name, number)| {
        let run = Planted::new("host", number * 60);
        run.gaps(1, Nanos(100), &latencies(number, 10, 1_000.0)).write(home.path(), name)
    });
    paper.write(home.path()).unwrap();
    let report =
        |words: &[&str]| as_used(["report"]).arg(home.path()).args(words).output().unwrap();
    let whole = ended(&report(&[]), 0);
    assert!(!whole.contains("not as it was recorded"), "{whole}");
    let forms: [&[&str]; 4] = [&[], &["--full"], &["--html", "-"], &["--format", "json"]];
    let (run, table, own) =
        (one.join("run.json"), one.join("gaps-0001.parquet"), home.path().join(PAPER_FILE));
    let files: [(&Path, &dyn Fn()); 3] = [
        (&run, &|| change_a_figure(&run, "seed")),
        (&table, &|| std::fs::write(&table, b"PAR1").unwrap()),
        (&own, &|| change_a_figure(&own, "value")),
    ];
    for (file, change) in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let before = std::fs::read(file).unwrap();
        change();
        for words in forms {
            let text = ended(&report(words), 4);
            let told = [format!("{name} is not as it was"), format!("{name} has 4 bytes")];
            assert!(told.iter().any(|of| text.contains(of)), "{words:?}: {text}");
        }
        if file != own {
            ended(&whylate(["report"]).arg(&one).output().unwrap(), 4);
        }
        std::fs::write(file, before).unwrap();
    }
    // A part that is damaged is no better than one that was changed; of one that is gone nothing else is known.
    let before = std::fs::read(&run).unwrap();
    std::fs::write(&run, &before[..before.len() / 2]).unwrap();
    let unread = "the run one cannot be read";
    assert!(ended(&report(&["--full"]), 4).contains(unread));
    std::fs::remove_dir_all(&one).unwrap();
    assert!(ended(&report(&["--full"]), 0).contains(unread));
}

#[test]
fn rta_names_a_poor_run_whose_overheads_it_takes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("costs");
    directories::copy(&program::file("runs/switch-cost"), &path);
    let directory = RunDir::open(&path).unwrap();
    let whole = directory.read_run().unwrap();
    directory.write_run(&whole).unwrap();
    let rta = |words: &[&str], status| {
        let mut rta = as_used(["rta", "--task", "3ms 8ms"]);
        ended(&rta.args(words).arg("--overhead").arg(&path).output().unwrap(), status)
    };
    let forms: [&[&str]; 3] = [&[], &["--full"], &["--format", "json"]];
    let poor = |what: &str| {
        for words in forms {
            let text = rta(words, 4);
            let lower = text.to_lowercase();
            assert!(lower.contains("trust in the overheads, measured in"), "{text}");
            assert!(text.contains(what), "{what}: {text}");
        }
    };
    for words in forms {
        assert!(!rta(words, 0).to_lowercase().contains("trust in the overheads"), "{words:?}");
    }
    let reasons = vec!["the host went away".to_owned(), "and came back".to_owned()];
    let doubted = Run { verdict: Verdict::Untrustworthy { reasons }, ..whole };
    directory.write_run(&doubted).unwrap();
    poor("is poor: the host went away; and 1 more: whylate report");
    change_a_figure(&path.join("run.json"), "seed");
    poor("is poor: run.json is not as it was recorded; and 2 more");
}

#[test]
fn doctor_names_a_changed_run_from_which_it_tells_what_differs() {
    let home = tempfile::tempdir().unwrap();
    let run = Planted::new("host", 0).gaps(1, Nanos(100), &latencies(1, 10, 1_000.0));
    let run = run.write(home.path(), "run");
    let tree = home.path().join("tree");
    std::fs::create_dir_all(tree.join("proc")).unwrap();
    std::fs::write(tree.join("proc/stat"), "cpu0 1 0 0 9 0 0 0 0\n").unwrap();
    let problem = || {
        let mut doctor = whylate(["doctor", "--format", "json", "--root"]);
        let output = doctor.arg(&tree).arg("--diff").arg(&run).output().unwrap();
        let diagnosis: Diagnosis = serde_json::from_slice(&output.stdout).unwrap();
        diagnosis.compared.unwrap().problem
    };
    assert_eq!(problem(), None);
    change_a_figure(&run.join("run.json"), "seed");
    assert_eq!(problem().as_deref(), Some("run.json is not as it was recorded"));
}
