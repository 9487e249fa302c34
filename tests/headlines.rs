//! Each number of a headline stands in the tables behind it: in the report on a terminal, on the page and in
//! run.json. That holds of the kept runs, and of generated ones.
//!
//! What is compared is what a reader reads: the text of each, and the numbers in it.

use serde_json::Value;
use whylate_model::directory::RunDir;
use whylate_model::run::Run;
use whylate_report::{Letters, Place, Style, first_screen, render};

use crate::{generated, kept, program};

/// Generated runs where `PROPTEST_CASES` does not say.
const CASES: u32 = 100;
/// Where the words about the measurement begin on a page.
const BODY: &str = "<div class=\"verdict ";
/// So wide that no line of a report is broken.
const WIDE: usize = 4_000;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// In ns.
    Time,
    /// In percent.
    Share,
    Plain,
}

/// A number as it is written.
#[derive(Debug, Clone)]
struct Number {
    text: String,
    kind: Kind,
    value: f64,
    /// What its last digit is worth.
    last: f64,
    /// The words say that it is more or less than that.
    open: bool,
}

/// Units of time, in ns.
const UNITS: [(&str, f64); 5] = [("ns", 1.0), ("µs", 1e3), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
/// What stands around a number.
const AROUND: [char; 13] = ['(', ')', ',', ';', ':', '.', '"', '~', '+', '−', '-', '=', '\''];
/// What says that a number is more or less.
const OPEN: [char; 4] = ['<', '>', '≥', '≤'];

fn ns(unit: &str) -> Option<f64> {
    UNITS.into_iter().find_map(|(name, ns)| (name == unit).then_some(ns))
}

impl Number {
    /// The number of a word, with the unit that it has or that is the next word.
    fn of(word: &str, next: Option<&str>) -> Option<Self> {
        let bare = word.trim_matches(AROUND);
        let open = bare.starts_with(OPEN);
        let bare = bare.trim_start_matches(OPEN).trim_matches(AROUND);
        let end = bare.find(|letter: char| !letter.is_ascii_digit() && !",.".contains(letter));
        let (digits, unit) = bare.split_at(end.unwrap_or(bare.len()));
        let plain = digits.replace(',', "");
        let value: f64 = plain.parse().ok()?;
        let places = plain.split_once('.').map_or(0, |(_, behind)| behind.len());
        let apart = next.filter(|_| unit.is_empty()).map(|next| next.trim_matches(AROUND));
        let (kind, one) = match (unit, apart.and_then(ns)) {
            ("", Some(ns)) => (Kind::Time, ns),
            ("" | "/s", _) => (Kind::Plain, 1.0),
            ("%", _) => (Kind::Share, 1.0),
            (unit, _) => (Kind::Time, ns(unit)?),
        };
        let last = 10_f64.powi(-(places as i32)) * one;
        Some(Self { text: word.to_owned(), kind, value: value * one, last, open })
    }

    /// Does the other one say the same, as far as both have digits?
    fn is(&self, other: &Self) -> bool {
        let apart = (self.value - other.value).abs();
        // Of one number as many digits are the same digits; fewer are rounded, or cut where it is a bound.
        let as_many = (self.last - other.last).abs() < 1e-6 * self.last;
        let digits = match (self.open || other.open, as_many) {
            (true, _) => self.last + other.last,
            (false, true) => 0.0,
            (false, false) => 0.5 * (self.last + other.last),
        };
        // A number whose last digit is nearly all of it says nothing, unless it is a count.
        let says = other.last <= 0.11 * other.value || apart < 1e-9;
        let below = other.open && other.value <= other.last * 1.5 && self.value < other.value;
        self.kind == other.kind && (apart <= digits * 1.001 + 1e-9 * self.value && says || below)
    }
}

/// The words of a text, intervals apart: both ends have the unit that stands behind the second.
fn words(text: &str) -> Vec<String> {
    let all: Vec<&str> = text.split_whitespace().collect();
    let mut words = Vec::new();
    for (at, word) in all.iter().enumerate() {
        let ends = word.trim_matches(AROUND).split_once('–');
        let is_number = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit());
        if let Some((low, high)) = ends.filter(|(low, high)| is_number(low) && is_number(high)) {
            let percent = if high.ends_with('%') { "%" } else { "" };
            words.push(format!("{low}{percent}"));
            let unit = all.get(at + 1).map(|unit| unit.trim_matches(AROUND));
            words.extend(unit.filter(|unit| ns(unit).is_some()).map(str::to_owned));
            words.push(high.to_owned());
        } else {
            words.push((*word).to_owned());
        }
    }
    words
}

/// All numbers of a text.
fn numbers(text: &str) -> Vec<Number> {
    let words = words(text);
    let next = |at: usize| words.get(at + 1).map(String::as_str);
    (0..words.len()).filter_map(|at| Number::of(&words[at], next(at))).collect()
}

/// The figures of a headline: no names, no shares that intervals and percentiles are of, nothing that was asked
/// for. How many things there are is counted in the run.
fn figures(headline: &str, run: &Run) -> Vec<Number> {
    let words = words(&nameless(headline, run));
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map_or("", String::as_str);
    let mut found = Vec::new();
    for (at, own) in words.iter().enumerate() {
        let (before, behind) = (word(at.checked_sub(1)), word(Some(at + 1)));
        let named = matches!(before, "CPU" | "CPUs" | "thread" | "Thread" | "job");
        let level = own.trim_matches(AROUND) == "95%"
            && matches!(behind, "CI" | "interval" | "intervals" | "confidence;")
            || behind == "within"
            || own == "99%" && [behind, word(Some(at + 2))] == ["of", "frames"]
            || own == "1%" && before == "behind:";
        let asked = before == "after" && word(at.checked_sub(2)) == "up" || behind.contains("iB");
        let Some(mut number) = Number::of(own, Some(behind)) else { continue };
        // In words it is a lower bound, too.
        number.open |= before == "least";
        let is_count = number.kind == Kind::Plain;
        let is_thing = |word: &str| is_count && THINGS.contains(&word.trim_matches(AROUND));
        if is_thing(behind) || own.ends_with(':') && before == "of" {
            assert!(lengths(run).contains(&(number.value as usize)), "{own} in {headline}");
        } else if behind == "of" && is_thing(word(Some(at + 3))) {
            assert!(lengths(run).iter().any(|of| number.value as usize <= *of), "{headline}");
        } else if !(named || level || asked) {
            found.push(number);
        }
    }
    found
}

/// Things of which a headline says how many there are.
const THINGS: [&str; 8] =
    ["threads", "quantities", "runs", "CPUs", "causes", "tasks", "backends", "working"];

/// How many of each there are.
fn lengths(run: &Run) -> [usize; 8] {
    let missed = |of: &&whylate_model::threads::ThreadSummary| {
        of.deadlines.as_ref().is_some_and(|of| of.misses > 0)
    };
    let of = [run.threads.len(), run.gaps.len(), run.series.len(), run.wakes.len()];
    let [threads, gaps, series, wakes] = of;
    let costs = run.switch_cost.as_ref().and_then(|of| of.growth.as_ref());
    let sets = costs.map_or(0, |of| of.beyond.len());
    let missed = run.threads.iter().filter(missed).count();
    let backends = run.calibration.as_ref().map_or(0, |of| of.backends.len());
    [threads, gaps, series, wakes, run.origins.len(), missed, sets, backends]
}

/// The text without names that may have digits.
fn nameless(text: &str, run: &Run) -> String {
    let threads = run.threads.iter().map(|of| of.name.clone());
    let series = run.series.iter().flat_map(|of| [of.label.clone(), of.name.clone()]);
    let ways = run.flows.iter().map(|of| of.way.backend.clone());
    let causes = run.causes.iter().map(|of| of.cause.to_string());
    let tasks = run.foreign_threads.iter().map(|of| of.comm.clone());
    let names = threads.chain(series).chain(ways).chain(causes).chain(tasks);
    // A name that is a number alone is known by the word before it.
    let mut names: Vec<String> =
        names.filter(|name| name.contains(|letter: char| letter.is_alphabetic())).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.iter().fold(text.to_owned(), |text, name| text.replace(name.as_str(), "NAME"))
}

/// What is read below the answer of a page.
fn body(page: &str) -> String {
    let (_, body) = page.split_once(BODY).unwrap();
    let (body, _) = body.split_once("</main>").unwrap();
    let mut text = String::new();
    for (at, part) in body.split("<svg").enumerate() {
        let part = if at == 0 { part } else { part.split_once("</svg>").map_or("", |(_, of)| of) };
        for piece in part.split('<') {
            text.push(' ');
            text.push_str(piece.split_once('>').map_or(piece, |(_, text)| text));
        }
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Numbers of run.json, and those that follow from them: sums over a list, all of it or for each CPU, and what is
/// a part of which.
fn stored(run: &Run) -> Vec<Number> {
    let mut found = Vec::new();
    walk(&serde_json::to_value(run).unwrap(), run.clock.hz.0, "", &mut found);
    found
}

fn exact(name: &str, hz: f64, value: f64) -> Vec<Number> {
    let number = |kind, value: f64, last: f64| Number {
        text: format!("{name}: {value}"),
        kind,
        value,
        last,
        open: false,
    };
    // Counters and histograms have whole ones, a resolution has not.
    let last = if value.fract() > 0.0 { 0.0 } else { 1.0 };
    let time = number(Kind::Time, value, last);
    let [share, plain] = [number(Kind::Share, 100.0 * value, 0.0), number(Kind::Plain, value, 0.0)];
    match name {
        _ if name.ends_with("_ns") => vec![time],
        _ if name.ends_with("_ticks") => vec![number(Kind::Time, value * 1e9 / hz, 1.0)],
        _ => vec![share, plain],
    }
}

fn walk(value: &Value, hz: f64, name: &str, found: &mut Vec<Number>) {
    match value {
        Value::Number(of) => found.extend(exact(name, hz, of.as_f64().unwrap())),
        Value::Object(object) => {
            object.iter().for_each(|(name, value)| walk(value, hz, name, found));
            let get = |name: &str| object.get(name).and_then(Value::as_f64);
            if let (Some(start), Some(end)) = (get("start_ticks"), get("end_ticks")) {
                found.extend(exact("elapsed_ticks", hz, end - start));
            }
            let watched = object.get("breakdown").and_then(|of| of.get("requests")?.as_f64());
            if let (Some(requests), Some(lasted)) = (watched, get("lasted_ns")) {
                found.extend(exact("each second", hz, requests * 1e9 / lasted));
            }
            if let (Some(given_up), Some(lost)) = (get("given_up"), get("lost")) {
                let abandoned = get("abandoned").unwrap_or_default();
                let late = given_up - (lost - abandoned).max(0.0);
                found.extend(exact("answered later", hz, late));
                found.extend(exact("lost of sent", hz, lost / get("sent").unwrap_or(1.0)));
            }
        }
        Value::Array(values) => {
            for value in values {
                walk(value, hz, name, found);
            }
            sums(values, hz, found);
        }
        _ => {}
    }
}

/// Of each number of a list of things its sum, and what part of that each is.
fn sums(values: &[Value], hz: f64, found: &mut Vec<Number>) {
    let mut cpus: Vec<Option<&Value>> = values.iter().map(|value| value.get("cpu")).collect();
    cpus.dedup();
    let all = std::iter::once(None).chain(cpus.into_iter().map(Some));
    for cpu in all {
        let of_cpu = |value: &&Value| cpu.is_none_or(|cpu| value.get("cpu") == cpu);
        let of_cpu: Vec<&Value> = values.iter().filter(of_cpu).collect();
        let mut totals: Vec<(String, f64)> = Vec::new();
        for (name, number) in of_cpu.iter().flat_map(|value| leaves(value)) {
            match totals.iter_mut().find(|(known, _)| *known == name) {
                Some((_, total)) => *total += number,
                None => totals.push((name, number)),
            }
        }
        for (name, number) in of_cpu.iter().flat_map(|value| leaves(value)) {
            let total = totals.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, of)| *of);
            found.extend(exact("a part", hz, number / total));
        }
        let total = |name: &str| totals.iter().find(|(known, _)| known == name).map(|(_, of)| *of);
        if let (Some(hits), Some(misses)) = (total("hits"), total("misses")) {
            found.extend(exact("judged", hz, hits + misses));
            found.extend(exact("missed", hz, misses / (hits + misses)));
        }
        for (name, total) in &totals {
            found.extend(exact(name, hz, *total));
        }
    }
}

/// The numbers of a thing in a list, and of what it has.
fn leaves(value: &Value) -> Vec<(String, f64)> {
    let Some(object) = value.as_object() else { return Vec::new() };
    let own = object.iter().flat_map(|(name, value)| match value {
        Value::Number(of) => vec![(name.clone(), of.as_f64().unwrap())],
        Value::Object(_) => leaves(value),
        _ => Vec::new(),
    });
    own.collect()
}

/// Numbers of the tables of a first screen, in each unit that their heads name.
fn of_tables(tables: &str) -> Vec<Number> {
    let mut all = numbers(tables);
    let units: Vec<f64> = tables.split_whitespace().filter_map(ns).collect();
    for number in all.clone().iter().filter(|number| number.kind == Kind::Plain) {
        all.extend(units.iter().map(|ns| Number {
            kind: Kind::Time,
            value: number.value * ns,
            last: number.last * ns,
            ..number.clone()
        }));
    }
    all
}

fn before_trust(screen: &str) -> &str {
    screen.split_once("Trust: ").map_or(screen, |(tables, _)| tables)
}

/// Looks for each number of the sentences below the tables, which the report has in the same words, in run.json and
/// in the tables themselves.
fn assert_notes_held(name: &str, run: &Run, screen: Option<&str>, in_json: &[Number]) {
    let Some((_, below)) = screen.and_then(|screen| screen.split_once("\n\n")) else { return };
    let below = before_trust(below);
    // So wide a screen has each of them on a line.
    let is_sentence = |line: &&str| !line.contains("  ") && line.ends_with('.');
    let tables: Vec<&str> = below.lines().filter(|line| !is_sentence(line)).collect();
    let tables = of_tables(&tables.join("\n"));
    for note in below.lines().filter(is_sentence) {
        for figure in figures(note, run) {
            let stands = in_json.iter().chain(&tables).any(|number| figure.is(number));
            assert!(stands, "{name}: {} of {note:?} is not in run.json", figure.text);
        }
    }
}

/// Looks for each number of the headlines of a run; how many there are.
fn assert_held(name: &str, directory: &RunDir, run: &Run) -> usize {
    let run = &run.as_shown();
    let answer = whylate_report::answer(run);
    let wide = Style { width: WIDE, letters: Letters::Unicode, ..Style::default() };
    let text = render(run, wide);
    let (_, text) = text.split_once(&answer).unwrap_or_else(|| panic!("{name}: {answer}: {text}"));
    let page = body(&whylate_report::html::render(directory, run));
    // Both go on with the tables of the first screen, whose units stand in their heads.
    let place = Place { directory: Some(directory.path()), again: false };
    let screen = first_screen(run, place, wide);
    let behind = screen.as_deref().and_then(|screen| screen.split_once("\n\n"));
    let summary = behind.map_or(Vec::new(), |(_, tables)| of_tables(before_trust(tables)));
    let with_summary = |text: &str| [numbers(text), summary.clone()].concat();
    let (on_terminal, on_page, in_json) = (with_summary(text), with_summary(&page), stored(run));
    // A warning has its numbers in words, and so has a note of a device.
    let warned = run.warnings.iter().map(ToString::to_string);
    let noted = run.device.iter().flat_map(|of| of.notes.iter().cloned());
    let in_words = warned.chain(noted).flat_map(|said| numbers(&said));
    let in_json = [in_json, in_words.collect()].concat();
    let places = [("the report", &on_terminal), ("the page", &on_page), ("run.json", &in_json)];
    let said = figures(&answer, run);
    for figure in &said {
        // How sure the shares of a self-test are follows from its counts.
        let computed = run.selftest.is_some() && figure.kind == Kind::Share;
        for (place, numbers) in places.into_iter().take(if computed { 2 } else { 3 }) {
            let stands = numbers.iter().any(|number| figure.is(number));
            assert!(stands, "{name}: {} of {answer:?} is not in {place}:\n{text}", figure.text);
        }
    }
    let narrow = Style { width: 80, ..wide };
    assert_notes_held(name, run, screen.as_deref(), &in_json);
    let Some(screen) = first_screen(run, place, narrow) else { return said.len() };
    let (first, tables) = screen.split_once("\n\n").unwrap();
    let tables = of_tables(before_trust(tables));
    let on_screen = figures(first, run);
    for figure in &on_screen {
        let mut all = tables.iter().chain(&on_terminal);
        assert!(all.any(|number| figure.is(number)), "{name}: {}:\n{screen}\n{text}", figure.text);
    }
    said.len() + on_screen.len()
}

#[test]
fn each_number_of_the_headlines_of_kept_runs_stands_in_a_table_on_the_page_and_in_run_json() {
    for kind in kept::KINDS {
        let directory = RunDir::open(program::file("runs").join(kind)).unwrap();
        let figures = assert_held(kind, &directory, &directory.read_run().unwrap());
        // Of the self-test of version 1 nothing can be judged.
        assert!(figures > 0 || kind == "selftest", "{kind} has no figure");
    }
}

#[test]
fn each_number_of_the_headlines_of_generated_runs_stands_in_a_table_on_the_page_and_in_run_json() {
    let figures = std::cell::Cell::new(0);
    generated::each(CASES, |_, directory, run| {
        let of = |run: &Run| figures.set(figures.get() + assert_held("generated", directory, run));
        of(run);
        // What stands behind the first question of a run has a headline of its own.
        let mut rest = run.clone();
        for take in [|run: &mut Run| run.flows.clear(), |run: &mut Run| run.gaps.clear()] {
            take(&mut rest);
            of(&rest);
        }
    });
    assert!(figures.get() > 0, "there was nothing to be looked for");
}

#[test]
fn a_number_is_the_same_in_each_of_its_units_and_no_other_number() {
    let same = |one: &str, other: &str| {
        let [one, other] = [one, other].map(|text| numbers(text).remove(0));
        one.is(&other)
    };
    for (one, other) in [
        ("1.8 ms", "1.82ms"),
        ("50 µs", "0.05ms"),
        ("2.0%", "1.98%"),
        ("1,820", "1820"),
        ("≥2.5 ms", "2.55ms"),
        ("12", "12"),
        ("<0.1%", "0.0288%"),
    ] {
        assert!(same(one, other) || same(other, one), "{one} and {other}");
    }
    for (one, other) in
        [("1.8 ms", "1.9ms"), ("1.8 ms", "1.8us"), ("12", "13"), ("12%", "12"), ("5 µs", "0.01ms")]
    {
        assert!(!same(one, other), "{one} and {other}");
    }
    assert_eq!(words("of its time (95% CI 1.8–2.3%)").last().unwrap(), "2.3%");
    let texts = |text: &str| numbers(text).iter().map(|of| of.value).collect::<Vec<_>>();
    assert_eq!(texts("18–23 µs, p99 of 7.5us and 3/s"), [18e3, 23e3, 7_500.0, 3.0]);
    let page = "<p>7</p><div class=\"verdict x\"><td>3&lt;4<svg>9</svg>5</main>6";
    assert_eq!(body(page).split_whitespace().collect::<Vec<_>>(), ["3<4", "5"]);
}
