//! The table of figures: one row a claim, with what it was taken under and of what; and one row a round.
//!
//! They are kept in `acceptance/DATE.md`. Rows of figures that were not taken this time are those of the table
//! before, each with its own date, commit and machine.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::conditions::Conditions;
use crate::figure::{Figure, Reading, Row};
use crate::journal::{Outcome, Taken};
use crate::judge::{Found, Judged, Verdict, judge};

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name of the figure.
    pub figure: &'static str,
    /// What is claimed, in which unit, and the bound.
    pub claim: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What is promised, in words.
    pub promised: String,
    /// What came of it.
    pub judged: Judged,
    /// Rounds that count.
    pub rounds: usize,
    /// Why others do not.
    pub left_out: Vec<String>,
    /// What the machine was like, over all rounds that were taken.
    pub conditions: Option<Conditions>,
    /// Each round of its figure: its number, what the machine was like, and what came of it.
    pub each: Vec<[String; 3]>,
}

impl Entry {
    /// Rows of a figure, by its rounds.
    #[must_use]
    pub fn of(figure: &Figure, rounds: &[&Taken]) -> Vec<Self> {
        let readings = |at: usize| -> Vec<Reading> {
            let of = rounds.iter().filter_map(|taken| match &taken.outcome {
                Outcome::Readings(readings) => readings.get(at).cloned(),
                _ => None,
            });
            of.collect()
        };
        // Of one row: rounds that are left out, and those that had no reading of it.
        let left_out = |at: usize| -> Vec<String> {
            let of = rounds.iter().filter_map(|taken| match &taken.outcome {
                Outcome::LeftOut(why) => Some(why.clone()),
                Outcome::Readings(readings) => match readings.get(at) {
                    Some(Reading::Absent(why)) => Some(why.clone()),
                    _ => None,
                },
                Outcome::Failed(_) | Outcome::Hung(_) => None,
            });
            of.collect()
        };
        let failed = failed(rounds);
        let entry = |(at, row): (usize, &Row)| {
            let (readings, left_out) = (readings(at), left_out(at));
            let mut judged = judge(row, &readings);
            if let Some(why) = &failed {
                judged.verdict = Verdict::NotMet(Some(why.clone()));
            } else if readings.is_empty() && !left_out.is_empty() {
                let why = format!("every round was left out: {}", left_out[0]);
                judged.verdict = Verdict::NotShown(why);
            }
            let is_there = |reading: &&Reading| !matches!(reading, Reading::Absent(_));
            Self {
                figure: figure.name,
                claim: row.claim,
                unit: row.unit,
                promised: row.bound.to_string(),
                judged,
                rounds: readings.iter().filter(is_there).count(),
                left_out,
                conditions: sum(rounds),
                each: rounds.iter().copied().map(round).collect(),
            }
        };
        figure.rows.iter().enumerate().map(entry).collect()
    }

    /// Rows of a figure that cannot be taken here.
    #[must_use]
    pub fn not_taken(figure: &Figure, why: &str) -> Vec<Self> {
        let mut entries = Self::of(figure, &[]);
        for entry in &mut entries {
            entry.judged.verdict = Verdict::NotShown(why.to_owned());
        }
        entries
    }

    /// How the line of this row begins: whose it is, and what is promised.
    fn begin(&self) -> String {
        let promised = format!("{} ({})", self.promised, self.unit);
        format!("{} | ", cells([&format!("`{}`", self.figure), self.claim, &promised]))
    }

    /// As a line of the table; `taken` is when, of which commit, and where.
    fn line(&self, taken: &str) -> String {
        let found = self.judged.found.as_ref().map_or("–".to_owned(), shown);
        let control = self.judged.control.as_ref().map_or("–".to_owned(), shown);
        let conditions = self.conditions.as_ref().map_or("–".to_owned(), load);
        let mut rounds = self.rounds.to_string();
        if let Some(first) = self.left_out.first() {
            let _ = write!(rounds, ", {} left out: {first}", self.left_out.len());
        }
        let verdict = self.verdict();
        let rest = [&found, &control, &rounds, &conditions, &verdict, taken];
        format!("{}{} |", self.begin(), cells(rest).trim_start_matches("| "))
    }

    /// The verdict with its reason, or with what it rests on: one round says nothing about the next.
    fn verdict(&self) -> String {
        let word = self.judged.verdict.word();
        match (self.judged.verdict.why(), &self.judged.verdict) {
            (Some(why), _) => format!("{word}: {why}"),
            (None, Verdict::Met) if self.rounds == 1 => format!("{word}, in 1 round"),
            (None, _) => word.to_owned(),
        }
    }

    /// A line for each round of its figure.
    fn lines_of_rounds(&self, taken: &str) -> impl Iterator<Item = String> {
        let end = end_of_rounds(self.figure);
        self.each.iter().map(move |[number, load, outcome]| {
            format!("{} |", cells([&format!("round {number}{end}"), load, outcome, taken]))
        })
    }
}

/// How the first cell of each round of a figure ends.
fn end_of_rounds(figure: &str) -> String {
    format!(" of `{figure}`")
}

/// The number of a round, what the machine was like, and what came of it.
fn round(of: &Taken) -> [String; 3] {
    let outcome = match &of.outcome {
        Outcome::Readings(_) => "counts".to_owned(),
        Outcome::LeftOut(why) => format!("left out: {why}"),
        Outcome::Failed(why) | Outcome::Hung(why) => format!("failed: {why}"),
    };
    [(of.round + 1).to_string(), load(&of.conditions), outcome]
}

/// What the hypervisor took, others had, and how long something waited for a CPU.
fn load(of: &Conditions) -> String {
    let total = (of.took_ms * of.cpus.max(1) as f64).max(1.0);
    let percent = |ms: f64| format!("{:.1}%", 100.0 * ms / total);
    let waited = |ms: f64| format!("{:.1}%", 100.0 * ms / of.took_ms.max(1.0));
    let waited = of.pressure_ms.map_or("–".to_owned(), waited);
    format!("{} / {} / {waited}", percent(of.steal_ms), percent(of.foreign_ms))
}

/// As it is told while others are taken.
impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { figure, claim, .. } = self;
        write!(f, "{figure:<40} {claim:<40} {}", self.verdict())
    }
}

/// Cells of a line, without what would end one.
fn cells<const N: usize>(of: [&str; N]) -> String {
    format!("| {}", of.map(|cell| cell.replace('|', "/").replace('\n', " ")).join(" | "))
}

/// Why rounds failed, where some did.
fn failed(rounds: &[&Taken]) -> Option<String> {
    let failed = rounds.iter().filter_map(|taken| match &taken.outcome {
        Outcome::Failed(why) | Outcome::Hung(why) => Some(why),
        Outcome::Readings(_) | Outcome::LeftOut(_) => None,
    });
    let all: Vec<&String> = failed.collect();
    let first = all.first()?;
    Some(format!("{} of {} rounds failed: {first}", all.len(), rounds.len()))
}

/// All rounds together.
fn sum(rounds: &[&Taken]) -> Option<Conditions> {
    rounds.iter().map(|taken| taken.conditions).reduce(|all, of| Conditions {
        took_ms: all.took_ms + of.took_ms,
        cpus: of.cpus,
        steal_ms: all.steal_ms + of.steal_ms,
        foreign_ms: all.foreign_ms + of.foreign_ms,
        pressure_ms: all.pressure_ms.zip(of.pressure_ms).map(|(all, of)| all + of),
    })
}

/// Value, interval and number.
fn shown(found: &Found) -> String {
    let interval = found
        .interval
        .map_or(String::new(), |(low, high)| format!(" ({}–{})", digits(low), digits(high)));
    format!("{}{interval}, n {}", digits(found.value), found.n)
}

/// Four significant digits.
fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let text = format!("{value:.*}", (4 - before).clamp(0, 9) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// What stands above the rows: what the words of a verdict mean.
pub const HEAD: &str = "\
# Live figures

`make accept` takes them: ours and a control in turns, as many rounds as were decided beforehand. `met` says
that the whole 95 % interval lies inside of what is promised, `not met` that it lies outside or that a round
failed, `not shown` that neither is so, and why. Of what is promised `always`, `met` says that each of the n that
were counted held, however few they are, and `not met` that one did not; the interval says how much that shows.
`met, in 1 round` rests on the only round that counts: how far another would differ is not known.
Load is what the hypervisor took, what other processes had, and how long something waited for a CPU, as shares
of the time of all rounds.

All of them take at most 40 minutes, but for those that take long or need what few machines have. These are the
last ones of the table, and beside the 40 minutes: each is taken by its whole name (`make accept ONLY=NAME`).

| figure | claim | promised | found (95 % interval) | control | rounds | steal / others / waiting | verdict | taken |
|---|---|---|---|---|---|---|---|---|
";

/// What stands above the rounds.
const ROUNDS: &str = "
## Each round

| round | steal / others / waiting | what came of it | taken |
|---|---|---|---|
";

/// How the rows of a figure begin: its name and, of each, what is claimed and promised.
pub fn claims(figure: &Figure) -> Vec<String> {
    Entry::of(figure, &[]).iter().map(Entry::begin).collect()
}

/// The newest table of a folder, if there is one.
pub fn newest(folder: &Path) -> Result<Option<PathBuf>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|of| of == "md")).max())
}

/// Writes the tables of a day into a folder: these rows and their rounds; those of other figures from the newest
/// file that is there, as far as they still are what is claimed; and of what was never taken that it was not. The
/// file's path.
pub fn write(
    folder: &Path,
    day: &str,
    taken: &str,
    entries: &[Entry],
    figures: &[&Figure],
) -> Result<PathBuf> {
    let before = match newest(folder)? {
        None => String::new(),
        Some(path) => std::fs::read_to_string(&path).with_context(|| path.display().to_string())?,
    };
    let mut text = HEAD.to_owned();
    for figure in figures {
        let mut new = entries.iter().filter(|of| of.figure == figure.name).peekable();
        if new.peek().is_none() {
            for entry in Entry::not_taken(figure, "not taken yet") {
                let begin = entry.begin();
                let old = before.lines().find(|line| line.starts_with(&begin));
                let _ = writeln!(text, "{}", old.map_or(entry.line("–"), str::to_owned));
            }
        }
        for entry in new {
            let _ = writeln!(text, "{}", entry.line(taken));
        }
    }
    text.push_str(ROUNDS);
    for figure in figures {
        let end = end_of_rounds(figure.name) + " | ";
        let old =
            || before.lines().filter(|line| line.starts_with("| round ") && line.contains(&end));
        let lines: Vec<String> = match entries.iter().find(|of| of.figure == figure.name) {
            Some(new) => new.lines_of_rounds(taken).collect(),
            None => old().map(str::to_owned).collect(),
        };
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
    }
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // Whole, whoever is killed meanwhile.
    let (path, begun) = (folder.join(format!("{day}.md")), folder.join(format!("{day}.begun")));
    std::fs::write(&begun, text)
        .and_then(|()| std::fs::rename(&begun, &path))
        .with_context(|| path.display().to_string())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::{Entry, digits, newest, write};
    use crate::conditions::Conditions;
    use crate::figure::{Bound, Figure, Reading, Row, anywhere};
    use crate::journal::{Outcome, Taken};

    const ROWS: [Row; 1] =
        [Row { claim: "p99 over a peer's", unit: "ratio", bound: Bound::AtMost(1.1) }];
    const ONE: Figure = Figure {
        name: "one",
        method: "planted",
        rows: &ROWS,
        rounds: 6,
        seconds: 0.0,
        most_taken: None,
        needs: anywhere,
        round: |_| Err(String::new()),
    };
    const TWO: Figure = Figure { name: "two", ..ONE };

    fn rounds(outcomes: &[Outcome]) -> Vec<Taken> {
        let conditions = Conditions {
            took_ms: 1_000.0,
            cpus: 2,
            steal_ms: 20.0,
            foreign_ms: 100.0,
            pressure_ms: Some(50.0),
        };
        let taken = |(round, outcome): (usize, &Outcome)| Taken {
            of: String::new(),
            figure: "one".to_owned(),
            round,
            outcome: outcome.clone(),
            conditions,
        };
        outcomes.iter().enumerate().map(taken).collect()
    }

    fn entries(outcomes: &[Outcome]) -> Vec<Entry> {
        Entry::of(&ONE, &rounds(outcomes).iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_row_has_its_value_its_interval_what_was_left_out_and_what_it_was_taken_under() {
        let mut outcomes: Vec<Outcome> = (0..6)
            .map(|of| Outcome::Readings(vec![Reading::Value(0.9 + 0.01 * f64::from(of))]))
            .collect();
        outcomes.push(Outcome::LeftOut("steal | much".to_owned()));
        let line = entries(&outcomes)[0].line("2026-01-02 abc here");
        assert_eq!(
            line,
            "| `one` | p99 over a peer's | at most 1.1 (ratio) | 0.925 (0.9–0.95), n 6 | – | \
             6, 1 left out: steal / much | 1.0% / 5.0% / 5.0% | met | 2026-01-02 abc here |"
        );
    }

    #[test]
    fn what_is_met_in_the_only_round_that_counts_says_so() {
        const ALL: [Row; 1] = [Row { bound: Bound::Always, ..ROWS[0] }];
        let figure = Figure { rows: &ALL, ..ONE };
        let verdict = |outcomes: &[Outcome]| {
            let entry = Entry::of(&figure, &rounds(outcomes).iter().collect::<Vec<_>>()).remove(0);
            let cell = entry.verdict();
            assert!(entry.to_string().ends_with(&format!(" {cell}")), "{entry}");
            assert!(entry.line("then").ends_with(&format!(" | {cell} | then |")), "{entry:?}");
            cell
        };
        let of = |held: bool| Outcome::Readings(vec![Reading::held(held)]);
        let left_out = || Outcome::LeftOut("busy".to_owned());
        assert_eq!(verdict(&[of(true)]), "met, in 1 round");
        assert_eq!(verdict(&[left_out(), of(true)]), "met, in 1 round");
        assert_eq!(verdict(&[of(true), of(true)]), "met");
        // One that does not hold is enough, and a round that failed is the reason.
        assert_eq!(verdict(&[of(false)]), "not met");
        let failed = Outcome::Failed("it ended".to_owned());
        assert_eq!(verdict(&[of(true), failed]), "not met: 1 of 2 rounds failed: it ended");
    }

    #[test]
    fn rows_that_were_not_taken_are_those_of_the_table_before_and_what_is_no_figure_any_more_goes()
    {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("acceptance");
        assert_eq!(newest(&folder).unwrap(), None);
        let first = [Entry::not_taken(&ONE, "no card"), Entry::not_taken(&TWO, "no luck")].concat();
        let path = write(&folder, "2026-01-02", "then", &first, &[&ONE, &TWO]).unwrap();
        assert_eq!(newest(&folder).unwrap(), Some(path));
        let again = Entry::not_taken(&TWO, "no luck again");
        let path = write(&folder, "2026-01-03", "now", &again, &[&ONE, &TWO]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(rows[0].contains("no card") && rows[0].ends_with("| then |"), "{text}");
        assert!(rows[1].contains("no luck again") && rows[1].ends_with("| now |"), "{text}");
        let three = Figure { name: "three", ..ONE };
        let path = write(&folder, "2026-01-04", "later", &[], &[&TWO, &three]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("`one`"), "{text}");
        assert!(text.contains("| – | not shown: not taken yet | – |\n"), "{text}");
        assert_eq!(newest(&folder).unwrap(), Some(path));
    }

    #[test]
    fn each_round_stands_with_what_it_was_taken_under_and_stays_until_its_figure_is_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let good = || Outcome::Readings(vec![Reading::Value(0.5)]);
        let first = entries(&[good(), Outcome::LeftOut("steal | much".into())]);
        let of = |entries: &[Entry], taken: &str| {
            let path = write(folder.path(), "2026-01-02", taken, entries, &[&ONE, &TWO]).unwrap();
            let text = std::fs::read_to_string(path).unwrap();
            let rounds = text.lines().filter(|line| line.contains(" of `one` |"));
            rounds.map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = [
            "| round 1 of `one` | 1.0% / 5.0% / 5.0% | counts | then |",
            "| round 2 of `one` | 1.0% / 5.0% / 5.0% | left out: steal / much | then |",
        ];
        assert_eq!(of(&first, "then"), expected);
        assert_eq!(of(&Entry::not_taken(&TWO, "no luck"), "later"), expected);
        let again = entries(&[Outcome::Failed("it ended".into())]);
        let failed = "| round 1 of `one` | 1.0% / 5.0% / 5.0% | failed: it ended | last |";
        assert_eq!(of(&again, "last"), [failed]);
    }

    #[test]
    fn every_round_left_out_is_not_shown_with_the_first_reason() {
        let of = entries(&[Outcome::LeftOut("busy".into()), Outcome::LeftOut("idle".into())]);
        assert_eq!(of[0].judged.verdict.why(), Some("every round was left out: busy"));
    }

    #[test]
    fn rounds_that_have_no_reading_of_a_row_are_counted_there_with_the_first_reason() {
        let reading = |of: Reading| Outcome::Readings(vec![of]);
        let mut outcomes: Vec<Outcome> =
            (0..6).map(|of| reading(Reading::Value(f64::from(of)))).collect();
        outcomes.insert(2, reading(Reading::Absent("no p99".to_owned())));
        let of = &entries(&outcomes)[0];
        assert_eq!((of.rounds, of.left_out.as_slice()), (6, &["no p99".to_owned()][..]));
        assert!(of.line("now").contains("| 2.5 (0–5), n 6 | – | 6, 1 left out: no p99 |"));
    }

    #[test]
    fn rounds_that_failed_are_counted_and_decide_whatever_the_others_say() {
        let good = Outcome::Readings(vec![Reading::Value(0.5)]);
        let mut outcomes = vec![good; 6];
        assert_eq!(entries(&outcomes)[0].judged.verdict.word(), "met");
        outcomes.push(Outcome::Failed("its process ended: signal: 11".into()));
        outcomes.push(Outcome::Hung("no end within 180 s".into()));
        let of = &entries(&outcomes)[0];
        let why = "2 of 8 rounds failed: its process ended: signal: 11";
        assert_eq!((of.judged.verdict.word(), of.judged.verdict.why()), ("not met", Some(why)));
        assert_eq!(of.rounds, 6);
        assert!(of.to_string().ends_with(&format!("not met: {why}")), "{of}");
    }

    #[test]
    fn a_row_of_the_table_before_that_claims_something_else_is_not_kept() {
        const STRICTER: [Row; 1] = [Row { bound: Bound::AtMost(1.0), ..ROWS[0] }];
        const OTHER: [Row; 1] = [Row { claim: "p50 over a peer's", ..ROWS[0] }];
        let folder = tempfile::tempdir().unwrap();
        let taken = Entry::not_taken(&ONE, "no card");
        write(folder.path(), "2026-01-02", "then", &taken, &[&ONE]).unwrap();
        let kept = |figure: &Figure| {
            let path = write(folder.path(), "2026-01-03", "", &[], &[figure]).unwrap();
            let kept = std::fs::read_to_string(&path).unwrap().contains("| then |");
            std::fs::remove_file(path).unwrap();
            kept
        };
        assert!(kept(&ONE));
        assert!(!kept(&Figure { rows: &STRICTER, ..ONE }));
        assert!(!kept(&Figure { rows: &OTHER, ..ONE }));
    }

    #[test]
    fn numbers_have_four_digits_and_no_zeros_that_say_nothing() {
        let of = [0.0, 0.987_654, 12.0, 1_234.56, 0.000_123_456, -2.5, 99_999.0];
        let shown = ["0", "0.9877", "12", "1235", "0.0001235", "-2.5", "99999"];
        assert_eq!(of.map(digits), shown);
    }
}
