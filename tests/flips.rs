//! One flipped bit anywhere in the files of a run: it is told with the name of the file, or the run is
//! refused with it; no other number is printed as if it had been recorded.

use std::path::Path;

use whylate_model::Nanos;
use whylate_model::cause::Cause;
use whylate_stats::rng::Rng;

use crate::directories::{Planted, latencies, merge};
use crate::program::{self, said, whylate};

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
        told(&whylate(["report"]).arg(&sum).args(words).output().unwrap(), 4);
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
    let report = || whylate(["report"]).arg(&second).args(["--format", "json"]).output().unwrap();
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
