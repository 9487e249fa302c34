//! Texts with numbers that were written elsewhere, for a reader: `12.0us` becomes `12 µs`.
//!
//! Reports write each number by [`super::Value`], and would need nothing else, but some of their sentences come
//! from elsewhere: warnings, what limits trust and findings are the model's, for whom a time is spelled as a shell
//! and a task set read it, and a recording keeps such sentences for ever in the spelling of its day. The renderers
//! pass each text, and each cell of a column of numbers, through [`Names::respelled`], in one place each; what has
//! the spelling of reports already stays as it is.
//!
//! A name is never touched, whatever it looks like: a thread may be called `10us` and a host `95 %`. Columns of
//! words and names of rows are not passed through here. Of sentences a renderer knows the [`Names`] that stand in
//! what they are about. What stands in quotes or backticks, behind an option, or in a clause of a task set is for a
//! shell, and stays; so does a word of which the number is a part: `poll-10us`, `10us.log`.

use serde::Serialize;
use serde_json::Value as Json;
use whylate_model::Printable;

use super::alone::rate;
use super::count;
use super::scale::Letters;

/// Units, as such a text has them behind a number, and as a reader has them.
const UNITS: [(&str, &str); 4] = [("ns", "ns"), ("us", "µs"), ("ms", "ms"), ("s", "s")];

/// Letters of a word that begins a clause of a task set.
const LEAST_LETTERS: usize = 4;

/// What is counted: a number before one of these has its thousands apart, and so has one of which it is a part.
const THINGS: [&str; 10] = [
    "of", "gaps", "stalls", "requests", "samples", "times", "events", "wake-ups", "jobs", "frames",
];

/// Fields whose strings are sentences, or what somebody typed. Each other one may hold a name.
const SENTENCES: [&str; 18] = [
    "command_line",
    "commands",
    "delay",
    "finding",
    "how",
    "law",
    "notes",
    "other",
    "paper",
    "quantiles_by",
    "question",
    "reason",
    "reasons",
    "text",
    "threshold_rule",
    "what",
    "why",
    "words",
];

/// Whatever somebody asked for: names of it stand elsewhere, too.
const SETTINGS: &str = "settings";

/// What begins the larger of two numbers.
const LARGER: &str = "max(";

/// A whole number of so many digits would get a comma.
const WITH_COMMA: usize = 4;

/// Stands for a name while the words around it are respelled: nobody's letter.
const NAME: char = '\u{e001}';

/// Names in what a report is about that could be taken for numbers; most reports have none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Those in what a report is about: a run, an account, a comparison.
    pub(crate) fn of(data: &impl Serialize) -> Self {
        let mut found = Vec::new();
        if let Ok(data) = serde_json::to_value(data) {
            collect(&data, &mut found);
        }
        // One may be a part of another.
        found.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        found.dedup();
        Self(found)
    }

    /// The text as a reader has it: `12.0us` is `12 µs`, `95 %` is `95%`, and `1.8us .. 2.3us` is `1.8–2.3 µs`.
    pub(crate) fn respelled(&self, text: &str) -> String {
        if !text.contains(|letter: char| letter.is_ascii_digit()) {
            return text.to_owned();
        }
        if self.0.is_empty() || text.contains(NAME) {
            return respelled(text);
        }
        let (mut apart, mut held) = (String::new(), Vec::new());
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let begins = !apart.ends_with(char::is_alphanumeric);
            let name = self.0.iter().find(|name| begins && is_first(rest, name));
            let taken = name.map_or(letter.len_utf8(), String::len);
            apart.push(if name.is_some() { NAME } else { letter });
            held.extend(name);
            rest = &rest[taken..];
        }
        let mut held = held.into_iter();
        let mut told = String::new();
        for letter in respelled(&apart).chars() {
            match letter {
                NAME => told.push_str(held.next().map_or("", String::as_str)),
                letter => told.push(letter),
            }
        }
        told
    }
}

/// What a recording says while it measures as a reader has it, in these letters: `longest 12.0us` is
/// `longest 12 µs`.
#[must_use]
pub fn told(text: &str, letters: Letters) -> String {
    letters.write(&Names::default().respelled(text))
}

/// Does the text begin with that name, and not with a longer word?
fn is_first(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// All strings that are no sentences, as far as they could be taken for a number.
fn collect(data: &Json, found: &mut Vec<String>) {
    match data {
        Json::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| *name != SETTINGS) {
                add(name, found);
                let is_text =
                    |value: &Json| value.is_string() && SENTENCES.contains(&name.as_str());
                match value {
                    Json::Array(all) => {
                        all.iter().filter(|one| !is_text(one)).for_each(|one| collect(one, found));
                    }
                    value if is_text(value) => {}
                    value => collect(value, found),
                }
            }
        }
        Json::Array(all) => all.iter().for_each(|one| collect(one, found)),
        Json::String(text) => add(text, found),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The name as it is and as it is shown, where it would be changed.
fn add(name: &str, found: &mut Vec<String>) {
    let is_whole = name.len() >= WITH_COMMA && whole(name).is_some();
    if !name.is_empty() && (is_whole || respelled(name) != name) {
        found.extend([name.to_owned(), Printable(name).to_string()]);
    }
}

/// What a quotation begins and ends with.
const QUOTES: [char; 3] = ['"', '`', '\''];

/// What a word stands in that is not for a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// Behind an option, whose value it is.
    Option,
    /// `PERIODIC 3ms 8ms` is how a task set says it.
    Clause,
    /// In what begins and ends with this.
    Quote(char),
}

impl Within {
    /// Where the word stands, and where the next one does.
    fn of(word: &str, before: Self) -> (Self, Self) {
        let bare = word.trim_start_matches('(').trim_end_matches(ENDS);
        let ends = |quote: char| word.matches(quote).count() % 2 == 1;
        if let Self::Quote(quote) = before {
            return (before, if ends(quote) { Self::Nothing } else { before });
        }
        // An apostrophe within a word quotes nothing.
        let begins_with = |quote: char| bare.starts_with(quote);
        let opens = |quote: &char| ends(*quote) && (*quote != '\'' || begins_with(*quote));
        if let Some(quote) = QUOTES.into_iter().find(opens) {
            return (Self::Quote(quote), Self::Quote(quote));
        }
        if let Some(quote) = QUOTES.into_iter().find(|quote| begins_with(*quote)) {
            return (Self::Quote(quote), Self::Nothing);
        }
        let capital = |letter: char| letter.is_ascii_uppercase() || letter == '_';
        let begins = bare.len() >= LEAST_LETTERS && bare.chars().all(capital);
        let in_clause = before == Self::Clause && bare.starts_with(|of: char| of.is_ascii_digit());
        let letter = bare.strip_prefix('-').is_some_and(|of| of.len() == 1 && !ends_in_a_digit(of));
        match before {
            _ if begins || in_clause => (Self::Clause, Self::Clause),
            _ if letter || (bare.starts_with("--") && !bare.contains('=')) => {
                (Self::Option, Self::Option)
            }
            Self::Option => (Self::Option, Self::Nothing),
            _ => (Self::Nothing, Self::Nothing),
        }
    }
}

/// What stands behind a word.
const ENDS: [char; 6] = [',', '.', ';', ':', ')', '?'];

fn respelled(text: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut next_is = Within::Nothing;
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let within;
        (within, next_is) = Within::of(word, next_is);
        if within != Within::Nothing {
            all.push(word.to_owned());
            continue;
        }
        let next = words.peek().copied().unwrap_or_default();
        let part_of = all.last().is_some_and(|last| last == "of")
            && all.len() > 1
            && is_number(&all[all.len() - 2]);
        let percent = word.trim_end_matches(ENDS) == "%";
        match all.last_mut() {
            Some(last) if percent && ends_in_a_digit(last) => last.push_str(word),
            _ => all.push(of_word(word, next, part_of)),
        }
    }
    joined(&all)
}

fn ends_in_a_digit(word: &str) -> bool {
    word.ends_with(|letter: char| letter.is_ascii_digit())
}

/// What stands behind a rate.
const PER_SECOND: &str = "/s";

/// Is that all that stands behind the digits, but for what ends a sentence?
fn is_rate(rest: &str, behind: &str) -> bool {
    rest == behind
        && behind
            .strip_prefix(PER_SECOND)
            .is_some_and(|end| end.trim_start_matches(ENDS).is_empty())
}

/// A number with its unit, or a sign.
fn of_word(word: &str, next: &str, part_of: bool) -> String {
    match word {
        "+-" => return "±".to_owned(),
        "x" if is_number(next) || next.starts_with('p') => return "×".to_owned(),
        "-" => return word.to_owned(),
        _ => {}
    }
    let bare = |word: &str| word.trim_end_matches(ENDS).to_owned();
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
    let sign = before.strip_prefix(LARGER).unwrap_or(before);
    let known = sign.chars().all(|of| "(<>=~+-±".contains(of));
    let number = digits.parse::<f64>().ok().filter(|_| known);
    match (unit, number) {
        // The number is all of it, but for what ends a sentence or goes on with one.
        (Some(unit), Some(number)) if behind.trim_start_matches(ENDS).is_empty() => {
            let before = before.replace(">=", "≥").replace('-', "−");
            format!("{before}{number} {unit}{behind}")
        }
        (None, Some(_)) if before == "±" => format!("±{digits}{rest}"),
        (None, Some(number)) if before.is_empty() && is_rate(rest, behind) => {
            // Of one that was asked for no zero behind the point was measured.
            let whole = number.fract() < 1e-9;
            let told = if whole { format!("{}/s", count(number as u64)) } else { rate(number) };
            told + behind.trim_start_matches(PER_SECOND)
        }
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
        let bare = |of: &str| of.trim_end_matches(ENDS).to_owned();
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
            (
                "1000/s asked for, of which 700.800/s left in time",
                "1,000/s asked for, of which 701/s left in time",
            ),
            ("(rate 1200000/s and 50/s)", "(rate 1,200,000/s and 50/s)"),
            ("every 1.00ms for 300ms?", "every 1 ms for 300 ms?"),
            (
                "threshold max(100ns, 8 x p99.9 of the warm-up); the",
                "threshold max(100 ns, 8 × p99.9 of the warm-up); the",
            ),
        ] {
            assert_eq!(respelled(of), text);
        }
    }

    #[test]
    fn a_word_of_which_the_number_is_a_part_and_what_is_for_a_shell_stay() {
        for text in [
            "poll-10us woke",
            "10us.log and ./10us/log",
            "x10us, 10us_a and 10usx",
            "95 %a",
            "hourglass -d 3s -w PERIODIC 3ms 8ms -i HR",
            "it runs LAT_ABS 1000000ns",
            "rta --task \"3ms 8ms, name audio\" again",
            "it was called '10us 20us' there",
            "rta --task=\"3ms 8ms, name audio\" again",
        ] {
            assert_eq!(respelled(text), text);
        }
        // An apostrophe quotes nothing, and what was quoted ends.
        assert_eq!(respelled("the set's 3ms and 'a' 3ms"), "the set's 3 ms and 'a' 3 ms");
    }

    #[test]
    fn names_that_could_be_taken_for_numbers_are_found_in_what_a_report_is_about() {
        let data = serde_json::json!({
            "question": "How late is 10us by 12.0us?",
            "settings": {"task": "3ms 8ms"},
            "notes": ["at 20us", {"host": "95 %"}],
            "threads": [{"name": "10us", "cpu": 1}, {"name": "poll-10us"}, {"comm": "4021"}],
            "by_name": {"5 ms": 1, "7us": null},
            "trusted": true,
        });
        let names = Names::of(&data);
        assert_eq!(names.0, ["10us", "4021", "95 %", "7us"]);
        assert_eq!(Names::of(&"a\u{1b} 10us").0, ["a\\u{1b} 10us", "a\u{1b} 10us"]);
    }

    #[test]
    fn a_name_stays_wherever_it_stands_and_the_numbers_around_it_do_not() {
        let names = Names(["95 % .. 3", "10us", "95 %", "+-", "4021"].map(str::to_owned).to_vec());
        for (of, text) in [
            ("thread 10us: 10.0us late", "thread 10us: 10 µs late"),
            ("host 95 % lost 95 % of 1.00s", "host 95 % lost 95 % of 1 s"),
            ("95 % .. 3 and 94 %", "95 % .. 3 and 94%"),
            ("+- is off by +-2.00us", "+- is off by ±2 µs"),
            ("4021 of 4021 requests, 4022 of 4023", "4021 of 4021 requests, 4,022 of 4,023"),
            ("110us, 10usx and (10us)", "110 µs, 10usx and (10us)"),
            ("\u{e001} 10us", "\u{e001} 10 µs"),
        ] {
            assert_eq!(names.respelled(of), text);
        }
    }

    #[test]
    fn what_is_spelled_for_a_reader_stays() {
        for text in ["12 µs", "1.8–2.3 µs", "≥15 ms", "", "two  spaces "] {
            assert_eq!(respelled(text), text);
        }
    }
}
