//! Names in as many columns as there is room for. Those that differ are still told apart: what they have in common
//! is left out before what tells them apart is.

use std::collections::BTreeSet;

use crate::render::{beginning, columns, shorter, whole_numbers};

/// Between the beginning and the end of a name.
const LEFT_OUT: &str = "...";
/// Letters of a beginning that say something.
const BEGINNING: usize = 4;

/// Each of these names in so many columns at most. Those whose end is cut are the same then only where they are the
/// same name: else they are without their common beginning, or without their middle, or numbered.
pub(super) fn apart(names: &[String], most: usize) -> Vec<String> {
    let mut cut: Vec<String> = names.iter().map(|name| shorter(name, most)).collect();
    let mut rests: Vec<&str> = names.iter().map(String::as_str).collect();
    for group in alike(names, &cut) {
        let whole: Vec<&str> = group.iter().map(|at| names[*at].as_str()).collect();
        for at in group {
            rests[at] = without_beginning(&names[at], &whole);
            cut[at] = with_beginning(&names[at], rests[at], BEGINNING, most);
        }
    }
    for at in alike(names, &cut).concat() {
        cut[at] = with_beginning(&names[at], rests[at], 1, most);
    }
    for at in alike(names, &cut).concat() {
        cut[at] = without_middle(&names[at], most);
    }
    let left = alike(names, &cut).concat();
    let different: BTreeSet<&str> = left.iter().map(|at| names[*at].as_str()).collect();
    for at in left {
        let before = different.iter().take_while(|of| **of != names[at]).count();
        let number = format!(" ({})", before + 1);
        cut[at] = shorter(&names[at], most.saturating_sub(number.len())) + &number;
    }
    cut
}

/// Where names stand that differ, and are cut to the same.
fn alike(names: &[String], cut: &[String]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|at| (&cut[*at], &names[*at]));
    let groups = order.chunk_by(|one, other| cut[*one] == cut[*other]);
    let differ = |group: &&[usize]| group.iter().any(|at| names[*at] != names[group[0]]);
    groups.filter(differ).map(<[usize]>::to_vec).collect()
}

/// Without the words with which all of them begin.
fn without_beginning<'a>(name: &'a str, all: &[&str]) -> &'a str {
    let common = |other: &&str| {
        let same = name.char_indices().zip(other.chars()).take_while(|((_, a), b)| a == b);
        same.last().map_or(0, |((at, letter), _)| at + letter.len_utf8())
    };
    let same = all.iter().map(common).min().unwrap_or(0);
    let words = name[..same].rfind(' ').map_or(0, |at| at + 1);
    &name[words..]
}

/// What is left of a name behind so many letters of its beginning at least; without them where they have no room.
fn with_beginning(name: &str, rest: &str, least: usize, most: usize) -> String {
    let room = most.saturating_sub(LEFT_OUT.len() + 1 + columns(rest));
    if rest.len() == name.len() || room < least {
        return shorter(rest, most);
    }
    let kept = beginning(name, room);
    format!("{}{LEFT_OUT} {rest}", whole_numbers(kept, &name[kept.len()..]))
}

/// Its beginning and its end.
fn without_middle(name: &str, most: usize) -> String {
    if columns(name) <= most {
        return name.to_owned();
    }
    let room = most.saturating_sub(LEFT_OUT.len());
    let backwards: String = name.chars().rev().collect();
    let end: String = beginning(&backwards, room / 2).chars().rev().collect();
    let begin = beginning(name, room - room / 2);
    format!("{}{LEFT_OUT}{}", begin.trim_end(), end.trim_start())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(names: &[&str], most: usize) -> Vec<String> {
        apart(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), most)
    }

    #[test]
    fn names_that_would_be_cut_to_the_same_leave_out_what_they_have_in_common() {
        let ways =
            ["through bridge, 64 bytes, outbound", "through bridge, 64 bytes, inbound", "other"];
        assert_eq!(told(&ways, 20), ["through... outbound", "through b... inbound", "other"]);
        let sizes = ["through bridge, 64 bytes", "through bridge, 512 bytes"];
        assert_eq!(told(&sizes, 18), ["throug... 64 bytes", "throu... 512 bytes"]);
        assert_eq!(told(&sizes, 14), ["64 bytes", "512 bytes"]);
        // Less of them where another is left with the same.
        let times = ["response, udp spinning", "response, udp blocking"];
        let others = ["service, udp spinning", "service, udp blocking"];
        let shown = ["re... spinning", "re... blocking", "se... spinning", "se... blocking"];
        assert_eq!(told(&[times, others].concat(), 14), shown);
        // One name stays as it is cut, however often it stands there.
        assert_eq!(told(&["a name of many words"; 2], 10), ["a name..."; 2]);
        // What is in common may be no word.
        let runs = ["run-0123456789-first", "run-0123456789-second"];
        assert_eq!(told(&runs, 12), ["run-0...irst", "run-0...cond"]);
        assert_eq!(told(&["aaaaabaaaaa", "aaaaacaaaaa"], 8), ["a... (1)", "a... (2)"]);
    }

    proptest! {
        #[test]
        fn names_that_differ_stay_different_in_whatever_room(
            names in prop::collection::vec("[ab ]{0,14}", 1..8),
            most in 8_usize..16,
        ) {
            let cut = apart(&names, most);
            for (at, one) in names.iter().enumerate() {
                prop_assert!(columns(&cut[at]) <= most);
                for (other, of) in names.iter().zip(&cut) {
                    prop_assert!(one == other || &cut[at] != of, "{} and {}: {}", one, other, of);
                }
            }
        }
    }
}
