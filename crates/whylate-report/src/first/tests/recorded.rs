//! First screens of kinds of which a run of version 2 alone is kept. What they say is in the manual, word by word.

use super::{INSTEAD, Style, assert_fits, shown, style};
use crate::kept::kept;
use crate::numbers::scale::Letters;

const KINDS: [&str; 14] = [
    "after",
    "backends",
    "before",
    "breakdown",
    "calibrate",
    "delay",
    "device",
    "flows",
    "forward",
    "matrix",
    "reflect",
    "slow",
    "steps",
    "watch",
];

#[test]
fn the_first_screen_of_each_recorded_kind_fits_with_letters_and_without() {
    for kind in KINDS {
        let run = kept(kind).1;
        assert_fits(&shown(&run, style()));
        let plain = shown(&run, Style { letters: Letters::Plain, ..Style::default() });
        assert!(plain.is_ascii(), "{plain}");
        assert_fits(&plain);
    }
}

#[test]
fn no_first_screen_of_a_recorded_kind_has_a_word_for_which_there_is_a_better_one() {
    // A part of a request is called as in the whole report.
    for kind in KINDS.into_iter().filter(|kind| *kind != "breakdown") {
        let screen = shown(&kept(kind).1, style());
        // What the user wrote is his.
        let own = screen.split_once('\n').unwrap().1.split_once("More:").unwrap().0.to_lowercase();
        for (word, better) in INSTEAD {
            assert!(!own.contains(word), "{kind} has {word:?} for {better:?}:\n{screen}");
        }
    }
}
