//! First screens of runs of version 2.

use super::{INSTEAD, Style, assert_fits, assert_lines, assert_whole, shown, style};
use crate::kept::kept;
use crate::numbers::scale::Letters;

const KINDS: [&str; 16] = [
    "after",
    "backends",
    "before",
    "breakdown",
    "calibrate",
    "delay",
    "device",
    "flows",
    "forward",
    "gaps-2",
    "matrix",
    "reflect",
    "selftest-2",
    "slow",
    "steps",
    "watch",
];

#[test]
fn the_first_screen_of_each_recorded_kind_says_what_it_said() {
    for kind in KINDS {
        let screen = shown(&kept(kind).1, style());
        assert_whole(&screen);
        insta::assert_snapshot!(format!("recorded-{kind}"), screen);
    }
}

#[test]
fn each_kept_run_is_among_those_whose_first_screen_is_pinned() {
    let mut pinned: Vec<&str> = KINDS.into_iter().chain(super::KINDS).collect();
    pinned.sort_unstable();
    assert_eq!(crate::kept::kinds(), pinned);
}

#[test]
fn the_first_screen_of_each_recorded_kind_fits_with_letters_and_without() {
    for kind in KINDS {
        let run = kept(kind).1;
        // Its softirqs took more than their longest stall: they are parts of stalls that have other causes.
        let assert_fits = if kind == "gaps-2" { assert_lines } else { assert_fits };
        assert_fits(&shown(&run, style()));
        let plain = shown(&run, Style { letters: Letters::Plain, ..Style::default() });
        assert!(plain.is_ascii(), "{plain}");
        assert_fits(&plain);
    }
}

#[test]
fn no_first_screen_of_a_recorded_kind_has_a_word_for_which_there_is_a_better_one() {
    // A part of a request is called as in the whole report, and the reasons of a self-test as they were stored.
    for kind in KINDS.into_iter().filter(|kind| !["breakdown", "selftest-2"].contains(kind)) {
        let screen = shown(&kept(kind).1, style());
        // What the user wrote is his.
        let own = screen.split_once('\n').unwrap().1.split_once("More:").unwrap().0.to_lowercase();
        for (word, better) in INSTEAD {
            assert!(!own.contains(word), "{kind} has {word:?} for {better:?}:\n{screen}");
        }
    }
}
