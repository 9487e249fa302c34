//! First screens, whole reports and pages of runs that lack something, and of names that nobody should have.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};
use whylate_model::directory::{RunDir, parse_run};
use whylate_model::flow::Packets;
use whylate_model::run::Run;

use super::super::{Place, first_screen};
use super::assert_lines;
use crate::kept::kept;
use crate::numbers::scale::Letters;
use crate::render::columns;
use crate::terminal::Style;

/// Places of a value: names of fields from the outermost, lists left out.
type Fields = Vec<String>;

/// Every field of a value, and of the values in it.
fn fields(value: &Value) -> BTreeSet<Fields> {
    fn walk(value: &Value, above: &Fields, all: &mut BTreeSet<Fields>) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let mut own = above.clone();
                    own.push(name.clone());
                    walk(value, &own, all);
                    all.insert(own);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, above, all)),
            _ => {}
        }
    }
    let mut all = BTreeSet::new();
    walk(value, &Fields::new(), &mut all);
    all
}

/// Changes the field of each object that has it.
fn change(value: &mut Value, fields: &[String], how: &dyn Fn(&mut Map<String, Value>, &str)) {
    match (value, fields) {
        (Value::Array(values), _) => {
            for value in values {
                change(value, fields, how);
            }
        }
        (Value::Object(object), [last]) => how(object, last),
        (Value::Object(object), [first, rest @ ..]) => {
            if let Some(value) = object.get_mut(first) {
                change(value, rest, how);
            }
        }
        _ => {}
    }
}

/// One kept run of each kind: of some there are several, of which nothing else can be missing.
fn kinds() -> Vec<String> {
    let again = ["after", "before", "flows", "slow", "steps"];
    crate::kept::kinds().into_iter().filter(|kind| !again.contains(&kind.as_str())).collect()
}

/// What a file of the run holds.
fn stored(run: &Run) -> Value {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    directory.write_run(run).unwrap();
    serde_json::from_slice(&std::fs::read(directory.path().join("run.json")).unwrap()).unwrap()
}

fn read(value: &Value) -> Option<Run> {
    parse_run(Path::new("run.json"), value.to_string().as_bytes()).ok()
}

/// The first screen, where there is one.
fn screen(run: &Run, style: Style) -> Option<String> {
    first_screen(run, Place { directory: Some(Path::new("RUN")), again: true }, style)
}

/// A kept run, and those of its words that may be any.
struct Named {
    value: Value,
    words: Vec<Fields>,
}

impl Named {
    fn of(kind: &str) -> Self {
        let value = stored(&kept(kind).1);
        let may_be_any = |path: &Fields| {
            let mut changed = value.clone();
            lengthen(&mut changed, path, "x");
            changed != value && read(&changed).is_some()
        };
        let words = fields(&value).into_iter().filter(may_be_any).collect();
        Self { value, words }
    }

    /// With these letters behind each of the words.
    fn with(&self, letters: &str) -> Run {
        let mut value = self.value.clone();
        self.words.iter().for_each(|path| lengthen(&mut value, path, letters));
        read(&value).unwrap()
    }
}

fn lengthen(value: &mut Value, path: &[String], letters: &str) {
    change(value, path, &|object, name| match object.get_mut(name) {
        Some(Value::String(text)) => text.push_str(letters),
        Some(Value::Array(all)) => {
            for one in all {
                if let Value::String(text) = one {
                    text.push_str(letters);
                }
            }
        }
        _ => {}
    });
}

/// What a name of a thread, a process, a host or a file may hold.
fn names() -> [String; 6] {
    [
        "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J".to_owned(),
        "<script>alert(1)</script>\"'&<img src=x>".to_owned(),
        "x".repeat(4_000),
        "\u{202e}\u{200f}\u{61c}\u{2066}txet".to_owned(),
        "漢字🦀".repeat(40),
        "two\r\nlines\tand\u{2028}more".to_owned(),
    ]
}

/// Nothing in it moves a cursor or turns the direction of what is written.
fn assert_harmless(text: &str, of: &str) {
    let turns = |letter: char| matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let bad =
        text.chars().find(|letter| (letter.is_control() && *letter != '\n') || turns(*letter));
    assert_eq!(bad, None, "{of}");
}

#[test]
fn a_name_moves_no_cursor_turns_no_line_and_makes_no_line_longer_than_the_terminal() {
    let plain = [(40, Letters::Plain), (80, Letters::Unicode), (200, Letters::Unicode)];
    let styles = plain.map(|(width, letters)| Style { width, letters, ..Style::default() });
    for kind in kinds() {
        let named = Named::of(&kind);
        assert!(named.words.len() > 10, "{kind}: {:?}", named.words);
        for letters in names() {
            let run = named.with(&letters);
            for style in styles {
                assert_harmless(&crate::render(&run, style), &kind);
                let first = screen(&run, style);
                assert_eq!(first.is_some(), screen(&kept(&kind).1, style).is_some(), "{kind}");
                let Some(first) = first else { continue };
                assert_harmless(&first, &kind);
                let (text, _) = first.split_once("More:").unwrap();
                for line in text.lines() {
                    assert!(columns(line) <= style.width, "{kind}: {line:?} in\n{first}");
                }
                assert!(style.width < 80 || first.lines().count() < 24, "{kind}:\n{first}");
            }
        }
    }
}

#[test]
fn no_name_is_markup_on_a_page() {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    for kind in kinds() {
        let named = Named::of(&kind);
        for letters in names().into_iter().filter(|letters| letters.len() < 1_000) {
            let page = crate::html::render(&directory, &named.with(&letters));
            assert!(!page.contains("<script>alert") && !page.contains("<img"), "{kind}");
            assert_harmless(&page, &kind);
        }
    }
}

/// What is no figure of anything.
const NO_FIGURES: [&str; 5] = ["NaN", "inf ", "18,446,744", "1844674407", "-0 "];

/// Numbers of a text, without their units; what has no digit is none.
fn figures(text: &str) -> Vec<f64> {
    let words = text.split(|letter: char| letter.is_whitespace() || "–(".contains(letter));
    let number = |word: &str| {
        let digits = word.trim_matches(|letter: char| !letter.is_ascii_digit()).replace(',', "");
        digits.parse::<f64>().ok()
    };
    words.filter_map(number).collect()
}

/// Whatever a run lacks, what is said of it is said of the whole run, too, and nothing is zero that was not.
#[test]
fn a_run_that_lacks_a_part_is_shown_without_it_and_with_no_other_figure() {
    std::thread::scope(|scope| {
        for kind in kinds() {
            scope.spawn(move || each_part_missing(&kind));
        }
    });
}

/// What a run is of is decided by these: without one it is another, whose figures are others.
const DECIDE: [&str; 9] = [
    "flows",
    "flows.breakdown",
    "gaps",
    "origins",
    "prediction",
    "selftest",
    "switch_cost",
    "threads",
    "wakes",
];

fn each_part_missing(kind: &str) {
    let (_, run) = kept(kind);
    let value = stored(&run);
    let style = Style { letters: Letters::Unicode, ..Style::default() };
    let whole = |run: &Run| screen(run, style).unwrap_or_default();
    let mut known = figures(&whole(&run));
    known.extend(figures(&crate::render(&run, style)));
    // Of a percentile that is not there the bound is shown that it reaches, in the unit of its table.
    let lows = run.series.iter().flat_map(|of| &of.quantiles).filter_map(|of| of.low);
    known.extend(lows.flat_map(|low| [1.0, 1e3, 1e6].map(|unit| low.0 as f64 / unit)));
    // The words of the user are his.
    known.extend(figures(&run.command_line.join(" ")));
    let zeros = |text: &str| figures(text).iter().filter(|of| **of == 0.0).count();
    // The command is his, too, and a CPU has a name.
    let nameless = |screen: &str| {
        let (first, rest) = screen.split_once('\n').unwrap_or_default();
        let own = first.starts_with("Recorded").then_some(rest);
        own.unwrap_or(screen).replace("CPU 0", "CPU")
    };
    let (mut seen, before) = (0, zeros(&nameless(&whole(&run))));
    for path in fields(&value) {
        let mut changed = value.clone();
        change(&mut changed, &path, &without);
        let Some(lacking) = read(&changed) else { continue };
        seen += 1;
        let said = format!("{kind} without {}", path.join("."));
        let first = whole(&lacking);
        // What stands deep in a run is looked at on the first screen alone.
        let full = (path.len() < 3).then(|| crate::render(&lacking, style));
        for text in full.iter().chain([&first]) {
            let none = NO_FIGURES.iter().find(|of| text.contains(**of));
            assert_eq!(none, None, "{said}:\n{text}");
        }
        assert!(first.lines().count() < 24, "{said}:\n{first}");
        let (of_screen, _) = first.split_once("More:").unwrap_or_default();
        if DECIDE.contains(&path.join(".").as_str()) {
            continue;
        }
        for figure in figures(of_screen).into_iter().filter(|figure| *figure > 0.0) {
            let near = |known: &f64| (known - figure).abs() <= 0.06 * known.max(1.0);
            assert!(known.iter().any(near), "{said}: {figure} in\n{first}");
        }
        assert!(zeros(&nameless(of_screen)) <= before, "{said}:\n{first}");
    }
    assert!(seen > 50, "{kind}: {seen} parts may be missing");
}

/// The field is gone; a list stays, without what was in it.
fn without(object: &mut Map<String, Value>, name: &str) {
    match object.get_mut(name) {
        Some(Value::Array(all)) => all.clear(),
        _ => drop(object.remove(name)),
    }
}

fn emptied(object: &mut Map<String, Value>, name: &str) {
    if let Some(value) = object.get_mut(name) {
        *value = if value.is_array() { Value::Array(Vec::new()) } else { Value::Null };
    }
}

#[test]
fn a_page_of_a_run_that_lacks_a_part_is_made() {
    let home = tempfile::tempdir().unwrap();
    let empty = RunDir::create(home.path().join("run")).unwrap();
    for kind in kinds() {
        let (directory, run) = kept(&kind);
        let value = stored(&run);
        for (at, path) in fields(&value).into_iter().filter(|path| path.len() < 2).enumerate() {
            let mut changed = value.clone();
            change(&mut changed, &path, &emptied);
            let Some(lacking) = read(&changed) else { continue };
            // Files are read with the whole of some, and with none of the others.
            let directory = if at % 8 == 0 { &directory } else { &empty };
            let page = crate::html::render(directory, &lacking);
            assert!(page.ends_with("</html>\n"), "{kind} without {}", path.join("."));
            let none = NO_FIGURES[..4].iter().find(|of| page.contains(&format!(">{of}")));
            assert_eq!(none, None, "{kind} without {}", path.join("."));
        }
    }
}

/// The run as it would be had it ended before anything was measured.
fn with_samples(mut run: Run, many: u64) -> Run {
    for series in &mut run.series {
        series.n = many;
        if many == 0 {
            (series.min, series.max) = (None, None);
        }
        (series.mean_ns, series.tail, series.snr, series.class) = (None, None, None, None);
        (series.class_by, series.stationarity) = (None, None);
        for of in &mut series.quantiles {
            (of.value, of.low, of.high) = (None, None, None);
        }
    }
    for gaps in &mut run.gaps {
        gaps.gaps = many;
        gaps.rates.clear();
        gaps.lost_share_interval = None;
        if many == 0 {
            (gaps.lost_share, gaps.lost) = (0.0, whylate_model::Nanos(0));
        }
    }
    if many == 0 {
        run.causes.clear();
        run.worst.clear();
        run.coverage = None;
    }
    for flow in &mut run.flows {
        flow.packets = Packets { sent: many, received: many, arrived: many, ..Packets::default() };
        (flow.departures.intended, flow.departures.sent) = (many, many);
    }
    for deadlines in run.threads.iter_mut().filter_map(|thread| thread.deadlines.as_mut()) {
        (deadlines.hits, deadlines.misses) = (many, 0);
        (deadlines.miss_share_interval, deadlines.causes) = (None, Vec::new());
    }
    for wake in &mut run.wakes {
        wake.woken = many;
        (wake.split, wake.causes, wake.latest) = (Vec::new(), Vec::new(), Vec::new());
    }
    run
}

#[test]
fn a_run_of_one_sample_and_one_of_none_are_shown() {
    let style = Style { letters: Letters::Unicode, ..Style::default() };
    for kind in kinds() {
        for many in [0, 1] {
            let run = with_samples(kept(&kind).1, many);
            let full = crate::render(&run, style);
            let first = screen(&run, style);
            for text in first.iter().chain([&full]) {
                let none = NO_FIGURES.iter().find(|of| text.contains(**of));
                assert_eq!(none, None, "{kind} of {many}:\n{text}");
            }
            if let Some(first) = &first {
                assert_lines(first);
            }
        }
    }
}

#[test]
fn what_is_not_known_is_not_said_to_be_nothing() {
    let style = Style { letters: Letters::Unicode, ..Style::default() };
    let mut run = kept("gaps").1;
    run.series.clear();
    run.worst.clear();
    let answer = |run: &Run| screen(run, style).unwrap().lines().nth(1).unwrap().to_owned();
    assert_eq!(answer(&run), "CPU 1 lost 1.9% of its time (95% CI 1.8–2.3%).");
    let mut other = run.gaps[0].clone();
    (other.cpu, other.lost_share) = (whylate_model::CpuId(2), 0.5);
    other.lost_share_interval = None;
    run.gaps.push(other);
    assert_eq!(answer(&run), "CPU 2 lost most: 50% of its time.");
    let mut run = kept("rta").1;
    run.threads.iter_mut().for_each(|thread| thread.deadlines = None);
    assert!(answer(&run).ends_with("; in this run none was judged."), "{}", answer(&run));
}

#[test]
fn a_run_stored_by_this_version_has_the_screen_that_it_had_in_version_one() {
    let home = tempfile::tempdir().unwrap();
    for kind in kinds() {
        let (_, run) = kept(&kind);
        let directory = RunDir::create(home.path().join(&kind)).unwrap();
        directory.write_run(&run).unwrap();
        let again = directory.read_run().unwrap();
        let style = Style { letters: Letters::Unicode, ..Style::default() };
        assert_eq!(screen(&again, style), screen(&run, style), "{kind}");
        assert_eq!(crate::render(&again, style), crate::render(&run, style), "{kind}");
    }
}

#[test]
fn a_directory_without_one_of_its_files_is_shown_and_names_it() {
    let style = Style { letters: Letters::Unicode, ..Style::default() };
    for kind in kinds() {
        let (directory, _) = kept(&kind);
        let entries = || std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap());
        for missing in entries().map(|entry| entry.file_name()) {
            if missing == "run.json" {
                continue;
            }
            let home = tempfile::tempdir().unwrap();
            for entry in entries().filter(|entry| entry.file_name() != missing) {
                std::fs::copy(entry.path(), home.path().join(entry.file_name())).unwrap();
            }
            let left = RunDir::open(home.path()).unwrap();
            let run = left.read_checked().unwrap();
            let missing = missing.to_string_lossy().into_owned();
            // The log of one of them was made before a run counted its bytes: nobody misses it.
            let counted = run.files.problems.iter().any(|problem| problem.contains(&missing));
            assert!(counted || missing == "histograms.hlog", "{kind} without {missing}");
            if let Some(first) = screen(&run, style) {
                assert_lines(&first);
                assert!(!counted || first.contains(&missing), "{kind} without {missing}:\n{first}");
            }
            let full = crate::render(&run, style);
            assert!(!counted || full.contains(&missing), "{kind} without {missing}");
            let page = crate::html::render(&left, &run);
            assert!(page.ends_with("</html>\n"), "{kind} without {missing}");
        }
    }
}
