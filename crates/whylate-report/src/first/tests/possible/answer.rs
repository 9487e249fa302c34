//! Figures of an answer: each stands in a table below it, or follows from what does.

use super::{Number, Screen, Table, interval, time};

/// What stands around a number.
const BESIDE: [char; 9] = ['(', ')', ',', ';', '.', ':', '≥', '+', '~'];
/// Words before a number that is a name.
const NAMED: [&str; 6] = ["CPU", "CPUs", "thread", "Thread", "task", "Job"];

/// Figures that are in no table, by the words around them, and why.
const ALONE: [(&str, &str); 37] = [
    ("in #", "how long it was measured"),
    ("it listened for #", "the same"),
    ("runs (#),", "how long all of them measured"),
    ("run (#),", "how long it measured"),
    ("lost nothing in #", "how long it was measured"),
    ("no stall of # or more", "the threshold"),
    ("fell behind: # of", "how many were sent late, which a warning has"),
    ("left more than # late", "the tolerance, which is a setting"),
    ("# of requests left at least", "what a p99 leaves"),
    ("A frame of # bytes", "what was asked for"),
    (", # B ", "the same, in a name"),
    ("accurate to #", "the error that was asked for"),
    ("(at most # is allowed)", "what was judged by"),
    ("sent # of", "the rate at which requests left; the table has how many did"),
    ("(CPU load #)", "the load of the tasks, which the tables are held against"),
    ("need # of the CPU", "the same"),
    ("they take # of a CPU, and it grants", "what was reserved, which is not what tasks execute"),
    ("and it grants #", "a setting of the kernel"),
    ("took up to # longer", "how far jobs went beyond a bound, which tables are held against"),
    ("The runs disagree: #", "the least of rows that may have no room"),
    ("lies between # and", "the same"),
    (" least (#)", "the same"),
    ("a fairness of #", "what the shares in the table come to"),
    ("(# is equal shares)", "what that is measured by"),
    ("All # limits", "limits stand in the whole report"),
    ("# requests of ", "how many were watched"),
    ("# messages got no reply", "what was no request has no row"),
    ("# of another", "the same"),
    ("# not sent", "the same"),
    ("# frames are in both captures", "frames of captures have no rows"),
    ("# went in and", "the same"),
    ("and # more", "how many have no room"),
    ("by # of", "how many of the rows have one at least"),
    ("# test network", "each has several rows"),
    ("# CPUs are", "what was asked for"),
    ("# notes", "what is found beside the problems"),
    ("# unknown", "the same"),
];
/// Of how many of these something is true, which rows have one by one.
const COUNTED: [&str; 2] = ["backends", "jobs"];
/// From these words on an answer is about what has no table on a first screen: limits, causes on several CPUs,
/// and how many rows have a claim.
const OTHERS: [&str; 3] = ["Limit ", "Over all ", "Shown to "];

/// A figure of the answer: its words, and where they stand.
struct Figure<'a> {
    text: &'a str,
    unit: &'a str,
    before: &'a str,
    behind: &'a str,
}

pub(super) fn contradictions(screen: &Screen) -> Vec<String> {
    // Where nothing was measured there is nothing to hold an answer against.
    if screen.tables.is_empty() {
        return Vec::new();
    }
    let own = own(&screen.answer);
    let figures = figures(own);
    let missing = figures.iter().filter(|of| !stands(of, screen, &figures));
    let missing = missing.map(|of| format!("{} {} of the answer stands nowhere", of.text, of.unit));
    missing.chain(unnamed(own, screen)).collect()
}

/// The answer as far as tables can have its figures.
fn own(answer: &str) -> &str {
    let ends = OTHERS.iter().filter_map(|words| answer.find(words));
    &answer[..ends.min().unwrap_or(answer.len())]
}

/// A percentile that the answer names, and no table has.
fn unnamed(answer: &str, screen: &Screen) -> Option<String> {
    let words = |text: &str| -> Vec<String> {
        let words =
            text.split([' ', ',', '(', ')', ';', ':', '=']).map(|word| word.trim_end_matches('.'));
        words.map(str::to_owned).collect()
    };
    let is_one = |word: &String| word.strip_prefix('p').is_some_and(|of| of.parse::<f64>().is_ok());
    let known: Vec<String> = screen
        .tables
        .iter()
        .flat_map(|table| table.heads.iter().chain(table.rows.iter().flatten()))
        .flat_map(|cell| words(cell))
        .collect();
    let mut named = words(answer).into_iter().filter(is_one);
    named.find(|word| !known.contains(word)).map(|word| format!("no table has a {word}"))
}

/// The numbers of an answer. Which CPU it is, and with which certainty an interval holds, are no figures.
fn figures(answer: &str) -> Vec<Figure<'_>> {
    let words: Vec<&str> = answer.split_whitespace().collect();
    let plain = |at: usize| words.get(at).map_or("", |word| word.trim_matches(BESIDE));
    let begins = |word: &str| {
        word.starts_with(|letter: char| letter.is_ascii_digit() || "<−".contains(letter))
    };
    let all = (0..words.len()).map(|at| {
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        let unit = Some(plain(at + 1)).filter(|unit| time(unit).is_some()).unwrap_or_default();
        Figure { text: plain(at), unit, before, behind: plain(at + 1) }
    });
    let own = all.filter(|of| {
        begins(of.text) && !NAMED.contains(&of.before) && of.text != "95%" && of.behind != "to"
    });
    own.collect()
}

/// Does it stand in a table, or follow from what does?
fn stands(of: &Figure, screen: &Screen, all: &[Figure]) -> bool {
    let told = format!("{} {}", of.text, of.unit);
    let own = |words: &&str| screen.answer.contains(&words.replace('#', told.trim()));
    let rows: usize = screen.tables.iter().map(rows).sum();
    ALONE.iter().map(|(words, _)| words).any(own)
        || of.unit.is_empty() && of.text == rows.to_string()
        || screen.tables.iter().any(|table| {
            has(table, of) || has_rows(table, of) || adds_up(table, of) || differs(table, of)
        })
        || screen.table("runs").is_some_and(|runs| is_mean(runs, of))
        || is_counted(of, &screen.answer)
        || is_share(of, all)
        || encloses(of, all)
}

/// A cell holds it; a time is shorter in a sentence, and its cell has the unit of a head.
fn has(table: &Table, of: &Figure) -> bool {
    if of.unit.is_empty() {
        let mut words = table.rows.iter().flatten().flat_map(|cell| cell.split([' ', '(', ')']));
        return words.any(|word| word.trim_matches(BESIDE).trim_end_matches("/s") == of.text);
    }
    let told = format!("{} {}", of.text, of.unit);
    let in_words = table.rows.iter().flatten().any(|cell| cell.contains(&told));
    in_words || time(of.unit).is_some_and(|ns| near(table, of, ns))
}

/// A cell holds the same time as far as both are written: a sentence has two digits at least, and rounds bounds
/// down.
fn near(table: &Table, of: &Figure, ns: f64) -> bool {
    let least = of.text.split('–').next().unwrap_or_default();
    let Some(own) = Number::read(least) else { return false };
    let off = if least.len() == 1 { 0.1 } else { 2.0 * own.off };
    let own = Number { value: own.value * ns, off: off * ns, ..own };
    let in_row = |(row, cells): (usize, &Vec<String>)| {
        cells.iter().enumerate().skip(1).any(|(at, cell)| {
            let Some(unit) = table.unit(row, at) else { return false };
            let cell = cell.replace(" to ", "–");
            let ends = cell.split('–').filter_map(Number::read);
            ends.map(|of| Number { value: of.value * unit, off: of.off * unit, ..of })
                .any(|of| of.is(own))
        })
    };
    table.rows.iter().enumerate().any(in_row)
}

fn rows(table: &Table) -> usize {
    table.rows.iter().filter(|row| row[0] != "total").count() + table.more
}

/// It counts rows, or is no more than what it is a part of.
fn is_counted(of: &Figure, answer: &str) -> bool {
    let whole = answer.split(&format!("{} of ", of.text)).nth(1).unwrap_or_default();
    let mut words = whole.split(' ').map(|word| word.trim_matches(BESIDE));
    let (all, what) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let less =
        Number::read(of.text).zip(Number::read(all)).is_some_and(|(a, b)| a.value <= b.value);
    let known = |word: &str| COUNTED.contains(&word);
    of.unit.is_empty() && !of.text.ends_with('%') && (known(of.behind) || (known(what) && less))
}

/// It is a share between those of the runs.
fn is_mean(runs: &Table, of: &Figure) -> bool {
    let Some(own) = Number::read(of.text).filter(|_| of.text.ends_with('%')) else { return false };
    let all = runs.all("of CPU");
    let is_less = |one: &Number| one.value <= own.value + own.off;
    let is_more = |one: &Number| one.value >= own.value - own.off;
    of.before == "lost"
        && of.behind == "of"
        && all.iter().any(is_more)
        && (runs.more > 0 || all.iter().any(is_less))
}

/// It counts the rows.
fn has_rows(table: &Table, of: &Figure) -> bool {
    of.unit.is_empty() && Number::read(of.text).is_some_and(|of| of.value as usize == rows(table))
}

/// It is the sum of a column, or of the wholes of `3 of 5`; of a column that is cut it is no less.
fn adds_up(table: &Table, of: &Figure) -> bool {
    let Some(own) = Number::read(of.text) else { return false };
    let is_sum = |at: usize| {
        let (unit, cells) = (table.unit(0, at), table.rows.iter().filter(|row| row[0] != "total"));
        let cells =
            cells.map(|row| row.get(at).map(|cell| cell.rsplit(" of ").next().unwrap_or(cell)));
        let Some(all) = cells.map(|cell| Number::read(cell?)).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let percent = table.rows[0].get(at).is_some_and(|cell| cell.ends_with('%'));
        if percent != of.text.ends_with('%') {
            return false;
        }
        let ns = if of.unit.is_empty() {
            Some(1.0)
        } else {
            unit.zip(time(of.unit)).map(|(a, b)| a / b)
        };
        let Some(ns) = ns else { return false };
        let off: f64 = all.iter().map(|of| of.off * ns).sum();
        let sum: f64 = all.iter().map(|of| of.value * ns).sum();
        if of.unit.is_empty() && !percent {
            // Counts are written whole.
            return (sum - own.value).abs() < 0.5 || (table.more > 0 && own.value >= sum);
        }
        let sum = Number { value: sum, off, ..own };
        sum.is(own) || (table.more > 0 && own.value >= sum.value)
    };
    (1..table.heads.len()).any(is_sum)
}

/// It is what a cell of a row is beyond another.
fn differs(table: &Table, of: &Figure) -> bool {
    let (Some(own), Some(ns)) = (Number::read(of.text), time(of.unit)) else { return false };
    table.rows.iter().any(|row| {
        let known: Vec<Number> = row.iter().skip(1).filter_map(|cell| Number::read(cell)).collect();
        let unit = table.unit(0, 0).unwrap_or(0.0);
        known.iter().any(|a| {
            known.iter().any(|b| {
                let by = Number {
                    value: (a.value - b.value) * unit / ns,
                    off: (a.off + b.off) * unit / ns,
                    ..own
                };
                by.value > 0.0 && by.is(own)
            })
        })
    })
}

/// It is the share that one figure of the answer is of another.
fn is_share(of: &Figure, all: &[Figure]) -> bool {
    let Some(own) = Number::read(of.text).filter(|_| of.text.ends_with('%')) else { return false };
    let counts: Vec<f64> = all
        .iter()
        .filter(|of| of.unit.is_empty())
        .filter_map(|of| Some(Number::read(of.text)?.value))
        .collect();
    let is = |a: &f64| {
        counts.iter().any(|b| {
            *b >= *a && Number { value: 100.0 * a / b.max(1.0), off: own.off * 0.02, ..own }.is(own)
        })
    };
    counts.iter().any(is)
}

/// It is the interval of a figure before it, and holds that.
fn encloses(of: &Figure, all: &[Figure]) -> bool {
    let Some(ends) = interval(of.text) else { return false };
    let holds = |one: &Figure| Number::read(one.text).is_some_and(|one| ends.contains(&one.value));
    // All of so many are 100%.
    of.before.ends_with("CI") && (all.iter().any(holds) || ends.contains(&100.0))
}
