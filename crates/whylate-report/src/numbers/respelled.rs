//! Texts with numbers that were written elsewhere: by the model, for whom a time is spelled as a shell and a task
//! set read it, and by whoever recorded a run.
//!
//! What a reader gets of them is spelled as every other number of a report. What stands between backticks or
//! behind an option is for a shell, and stays.

use super::count;

/// Units, as such a text has them behind a number, and as a reader has them.
const UNITS: [(&str, &str); 4] = [("ns", "ns"), ("us", "µs"), ("ms", "ms"), ("s", "s")];

/// Letters of a word that begins a clause of a task set.
const LEAST_LETTERS: usize = 4;

/// What is counted: a number before one of these has its thousands apart, and so has one of which it is a part.
const THINGS: [&str; 9] =
    ["of", "gaps", "requests", "samples", "times", "events", "wake-ups", "jobs", "frames"];

/// The text as a reader has it: `12.0us` is `12 µs`, `95 %` is `95%`, and `1.8us .. 2.3us` is `1.8–2.3 µs`.
pub(crate) fn respelled(text: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut is_code = false;
    let mut is_option = false;
    let mut is_clause = false;
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let ticks = word.matches('`').count();
        // `PERIODIC 3ms 8ms` is how a task set says it.
        let bare = word.trim_start_matches('(');
        is_clause = bare.len() >= LEAST_LETTERS && bare.chars().all(|of| of.is_ascii_uppercase())
            || is_clause && word.starts_with(|of: char| of.is_ascii_digit());
        let untouched = is_code || is_option || is_clause || ticks > 0;
        is_code ^= ticks % 2 == 1;
        is_option = word.starts_with("--") && !word.contains('=');
        if untouched {
            all.push(word.to_owned());
            continue;
        }
        let next = words.peek().copied().unwrap_or_default();
        let part_of = all.last().is_some_and(|last| last == "of")
            && all.len() > 1
            && is_number(&all[all.len() - 2]);
        let percent = word.starts_with('%') && all.last().is_some_and(|last| ends_in_a_digit(last));
        match all.last_mut() {
            Some(last) if percent => last.push_str(word),
            _ => all.push(of_word(word, next, part_of)),
        }
    }
    joined(&all)
}

fn ends_in_a_digit(word: &str) -> bool {
    word.ends_with(|letter: char| letter.is_ascii_digit())
}

/// A number with its unit, or a sign.
fn of_word(word: &str, next: &str, part_of: bool) -> String {
    match word {
        "+-" => return "±".to_owned(),
        "-" => return word.to_owned(),
        _ => {}
    }
    let bare = |word: &str| word.trim_end_matches([',', '.', ';', ':', ')']).to_owned();
    let (next, number) = (bare(next), bare(word));
    if let Some(n) = whole(&number).filter(|_| part_of || THINGS.contains(&next.as_str())) {
        return format!("{}{}", count(n), &word[number.len()..]);
    }
    let start = word.find(|letter: char| letter.is_ascii_digit()).unwrap_or(word.len());
    let (before, rest) = word.split_at(start);
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (digits, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic());
    let (unit, behind) = rest.split_at(end.unwrap_or(rest.len()));
    let unit = UNITS.iter().find(|(known, _)| *known == unit).map(|(_, told)| told);
    let before = before.replace("+-", "±");
    let before = before.as_str();
    let known = before.chars().all(|of| "(<>=~+-±".contains(of));
    let number = digits.parse::<f64>().ok().filter(|_| known);
    match (unit, number) {
        (Some(unit), Some(number)) => {
            let before = before.replace(">=", "≥").replace('-', "−");
            format!("{before}{number} {unit}{behind}")
        }
        (None, Some(_)) if before == "±" => format!("±{digits}{rest}"),
        _ => word.to_owned(),
    }
}

/// The words in one line; of an interval both ends have the unit of the second, and a dash between them.
fn joined(all: &[String]) -> String {
    let mut line = String::new();
    let mut words = all.iter().map(String::as_str).peekable();
    let mut at = 0;
    while let Some(word) = words.next() {
        if at > 0 {
            line.push(' ');
        }
        at += 1;
        let high = words.clone().nth(1).filter(|_| words.peek() == Some(&".."));
        let Some(high) = high.filter(|high| is_number(word) && is_number(high)) else {
            line.push_str(word);
            continue;
        };
        let unit = |of: &str| of.split_once(' ').map(|(_, unit)| unit.to_owned());
        let (low_unit, high_unit) = (unit(word), unit(high));
        let bare = |of: &str| of.trim_end_matches([')', ',', ';', '.']).to_owned();
        let same = low_unit.as_deref() == high_unit.as_deref().map(bare).as_deref();
        let low = word.split_once(' ').filter(|_| same).map_or(word, |(digits, _)| digits);
        let low = if same && bare(high).ends_with('%') { low.trim_end_matches('%') } else { low };
        let negative = [low, high].iter().any(|end| end.contains('−') || end.contains('-'));
        line.push_str(low);
        line.push_str(if negative || !same { " to " } else { "–" });
        line.push_str(high);
        words.nth(1);
    }
    line
}

/// A whole number as a program writes it.
fn whole(word: &str) -> Option<u64> {
    word.chars().all(|letter| letter.is_ascii_digit()).then(|| word.parse().ok())?
}

fn is_number(word: &str) -> bool {
    word.trim_start_matches(['(', '<', '~', '+', '-', '−'])
        .starts_with(|of: char| of.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_model_gets_the_spaces_units_and_signs_of_a_report() {
        for (of, text) in [
            ("tolerance of 50.0us, or never", "tolerance of 50 µs, or never"),
            ("the kernel grants 950ms in every 1.00s", "the kernel grants 950 ms in every 1 s"),
            ("(p99 1.07ms)", "(p99 1.07 ms)"),
            ("<11ns", "<11 ns"),
            ("-34.5us +- 2.00us", "−34.5 µs ± 2 µs"),
            ("100 % of 251 gaps, 95 %.", "100% of 251 gaps, 95%."),
            ("from 1.75us .. 2.33us;", "from 1.75–2.33 µs;"),
            ("(1.75% .. 2.33%)", "(1.75–2.33%)"),
            ("-3.00us .. 2.00us", "−3 to 2 µs"),
            ("900ns .. 1.10us", "900 ns to 1.1 µs"),
            ("a .. b", "a .. b"),
            ("run-3s.d and 4 CPUs v1.2", "run-3s.d and 4 CPUs v1.2"),
            ("run `whylate gaps --duration 3s` for 3s", "run `whylate gaps --duration 3s` for 3 s"),
            ("with --duration 3s or --since=3s", "with --duration 3s or --since=3s"),
            ("grid(10ms)", "grid(10ms)"),
            ("0 (PERIODIC 3ms 8ms) 3ms", "0 (PERIODIC 3ms 8ms) 3ms"),
            ("PERIODIC 1ms 9ms (nice 0) took 9ms", "PERIODIC 1ms 9ms (nice 0) took 9 ms"),
            ("in 2328 of 2339 gaps, 12345 in all", "in 2,328 of 2,339 gaps, 12345 in all"),
            ("took 2087 gaps at 4021", "took 2,087 gaps at 4021"),
            ("known to 4.00 µs", "known to 4.00 µs"),
        ] {
            assert_eq!(respelled(of), text);
        }
    }

    #[test]
    fn what_is_spelled_for_a_reader_stays() {
        for text in ["12 µs", "1.8–2.3 µs", "≥15 ms", "", "two  spaces "] {
            assert_eq!(respelled(text), text);
        }
    }
}
