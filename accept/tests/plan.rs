//! What `make accept` would do: every figure once, in less than forty minutes.

use std::collections::BTreeSet;
use std::process::Command;

/// All of them together, in seconds.
const LONGEST: f64 = 40.0 * 60.0;

#[test]
fn all_figures_together_take_less_than_forty_minutes_and_no_two_have_one_name() {
    let output = Command::new(env!("CARGO_BIN_EXE_accept")).arg("--list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names = BTreeSet::new();
    let mut seconds = 0.0;
    for line in text.lines() {
        // NAME ROUNDS x SECONDS s  METHOD
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(names.insert(words[0].to_owned()), "two figures are called {}", words[0]);
        let (rounds, each): (f64, f64) = (words[1].parse().unwrap(), words[3].parse().unwrap());
        assert!(words.len() > 5, "{line}: how is it taken?");
        seconds += rounds * each;
    }
    assert!(!names.is_empty() && seconds <= LONGEST, "{} figures, {seconds} s", names.len());
}
