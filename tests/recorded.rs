//! A recording, and what is made of its directory afterwards: the same report, the same page, and sums.

use std::path::PathBuf;

use whylate_model::run::Run;
use whylate_sys::affinity;

use crate::directories::{log, merge};
use crate::program;

#[test]
fn report_prints_what_the_recording_printed() {
    let _alone = program::alone();
    let recorded = program::recorded("gaps --duration 500ms --warmup 50ms");
    let printed = String::from_utf8(recorded.output.stdout.clone()).unwrap();
    let (first, _) = printed.split_once("\nRun directory: ").unwrap();
    let again = program::reported(&recorded.directory, &[]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), first);
}

#[test]
fn a_recording_leaves_its_page_and_report_writes_the_same() {
    let _alone = program::alone();
    let recorded = program::recorded("gaps --duration 500ms --warmup 50ms");
    let left = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    assert!(left.contains(&escaped(&whylate_report::answer(&recorded.run))));
    let again = recorded.directory.join("again.html");
    program::reported(&recorded.directory, &["--html", &again.display().to_string()]);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), left);
    let printed = program::whylate(["report", "--html", "-"]).arg(&recorded.directory).output();
    assert_eq!(String::from_utf8(printed.unwrap().stdout).unwrap(), left);
}

#[test]
fn a_set_of_threads_leaves_its_page_by_either_command() {
    let _alone = program::alone();
    // On one CPU they switch with each other.
    let cpu = affinity::get()[0];
    for words in [
        format!("threads --thread CPU --thread CPU --cpus {cpu} --duration 300ms"),
        "hourglass -n 2 -d 300ms -a -p NORMAL -w CPU".to_owned(),
    ] {
        let recorded = program::recorded(&words);
        let left = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
        assert!(left.contains(&escaped(&whylate_report::answer(&recorded.run))), "{words}");
        for id in ["threads", "trace", "switches"] {
            assert!(left.contains(&format!("<section id=\"{id}\">")), "{words}: no {id}");
        }
        let output = program::whylate(["report", "--html", "-"]).arg(&recorded.directory).output();
        assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), left, "{words}");
    }
}

#[test]
fn a_recording_alone_keeps_its_intervals_and_two_add_up() {
    let cpu = *affinity::get().last().unwrap();
    let words = format!("gaps --cpus {cpu} --duration 1s --warmup 200ms");
    let _alone = program::alone();
    let recorded: Vec<program::Recorded> = (0..2).map(|_| program::recorded(&words)).collect();
    let directories: Vec<PathBuf> = recorded.iter().map(|one| one.directory.clone()).collect();
    let home = tempfile::tempdir().unwrap();
    let output = merge(&[], &directories[..1], &home.path().join("one"));
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", program::said(&output));
    let (own, alone) = (&recorded[0].run, program::read(&home.path().join("one")));
    for (own, of_sum) in own.gaps[0].rates.iter().zip(&alone.gaps[0].rates) {
        assert_eq!((own.at_least, own.count), (of_sum.at_least, of_sum.count));
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * own.per_second.max(1.0);
        assert!(near(own.interval.0, of_sum.interval.0), "{own:?} {of_sum:?}");
        assert!(near(own.interval.1, of_sum.interval.1), "{own:?} {of_sum:?}");
    }
    let ends = |run: &Run| run.gaps[0].lost_share_interval.unwrap();
    let (own_ends, ends) = (ends(own), ends(&alone));
    // A share of the whole time need not lie inside what whole intervals tell.
    let share = own.gaps[0].lost_share;
    let inside = own_ends.0 <= share && share <= own_ends.1;
    let near = (own_ends.0 - ends.0).abs() < 1e-9 && (own_ends.1 - ends.1).abs() < 1e-9;
    assert!(near || !inside, "{own_ends:?} {ends:?}");
    for (own, of_sum) in own.series[0].quantiles.iter().zip(&alone.series[0].quantiles) {
        assert_eq!((own.value, own.low, own.high), (of_sum.value, of_sum.low, of_sum.high));
    }
    assert!(alone.spreads.is_empty());

    let output = merge(&[], &directories, &home.path().join("two"));
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", program::said(&output));
    let sum = program::read(&home.path().join("two"));
    // The larger threshold of the two is that of the sum.
    let counted: u64 = recorded.iter().map(|one| one.run.series[0].n).sum();
    let left_out: u64 = sum.origins.iter().map(|origin| origin.series[0].left_out).sum();
    assert_eq!(sum.series[0].n + left_out, counted);
    assert_eq!(log(&home.path().join("two"), &format!("gap-cpu{cpu}")).0.len(), sum.series[0].n);
    assert_eq!(sum.gaps[0].gaps, sum.series[0].n);
    let longest = recorded.iter().map(|one| one.run.series[0].max).max().unwrap();
    assert_eq!(sum.series[0].max, longest);
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('\'', "&#39;").replace('"', "&quot;").replace('>', "&gt;")
}
