//! Sentences that answer a question: words, names, and figures that stand in a table.
//!
//! A figure is the number of a table before it is written, so that no sentence can write it in a way of its own. A
//! number that somebody has formatted has no way into a [`Name`], which may be cut: that does not compile. What the
//! model tells with its numbers is [`Told`], and stays whole. That each figure stands
//! in a table of the same report is looked at in tests wherever an answer is shown, by [`assert_stand`]; a file that
//! contradicts itself is no defect, so a program does not stop there.

use std::borrow::Cow;
use std::fmt::{self, Display};

use whylate_model::{Nanos, Printable};

use crate::doc::{Block, Section, Table};
use crate::numbers::{Cell, MARK, Value, count};
use crate::render::shorter;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Span {
    /// Words, which have no number.
    Text(Cow<'static, str>),
    /// What somebody calls something: its digits are no figures.
    Name(String),
    /// What others tell, with their numbers: these are no figures, either.
    Told(String),
    /// A number that no table has: it was asked for, or is known without one.
    Asked(Cell),
    /// How many things there are in a list of the run.
    Many(usize),
    /// A number of a table.
    Figure(Cell, Form),
}

/// How much of a figure is written as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// The words that follow have its unit.
    Unitless,
    /// The words before it say that it is a lower bound, or an upper one.
    Bound,
}

/// A sentence, or several.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sentence(Vec<Span>);

/// A name from a run, from its user or of its machine: harmless on a terminal, and maybe not all of it.
#[derive(Debug, Clone)]
pub(crate) struct Name(String);

impl Name {
    /// The whole name.
    pub(crate) fn of(name: &str) -> Self {
        Self(Printable(name).to_string())
    }

    /// So many columns of it at most.
    pub(crate) fn cut(name: &str, most: usize) -> Self {
        Self(shorter(&Self::of(name).0, most))
    }

    /// Where a sentence begins with it.
    pub(crate) fn begins(self, upper: fn(&str) -> String) -> Self {
        Self(upper(&self.0))
    }
}

/// Words that are no sentence of ours, numbers and all, such as a reason of the model or a list of CPUs. They are
/// written whole: a cut number would be another one.
#[derive(Debug, Clone)]
pub(crate) struct Told(String);

impl Told {
    pub(crate) fn of(words: impl Display) -> Self {
        Self(words.to_string())
    }
}

/// A sentence of words, names and figures, in their order.
macro_rules! sentence {
    ($($part:expr),+ $(,)?) => {
        $crate::spans::Sentence::of([$($crate::spans::Sentence::from($part)),+])
    };
}
pub(crate) use sentence;

/// What words may have of digits: which interval it is, and the share beyond a p99.
const IN_WORDS: [&str; 2] = ["95%", "1%"];

impl From<&'static str> for Sentence {
    fn from(words: &'static str) -> Self {
        let begins = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
        let is_number = |word: &str| !IN_WORDS.contains(&word);
        let mut numbers = words.split([' ', '(', ')']).filter(begins).filter(|of| is_number(of));
        debug_assert_eq!(numbers.next(), None, "a number in words: {words}");
        Self(vec![Span::Text(Cow::Borrowed(words))])
    }
}

impl From<Name> for Sentence {
    fn from(name: Name) -> Self {
        Self(vec![Span::Name(name.0)])
    }
}

impl From<Told> for Sentence {
    fn from(words: Told) -> Self {
        Self(vec![Span::Told(words.0)])
    }
}

impl From<usize> for Sentence {
    fn from(many: usize) -> Self {
        Self(vec![Span::Many(many)])
    }
}

impl From<Cell> for Sentence {
    fn from(cell: Cell) -> Self {
        Self(vec![Span::Figure(cell, Form::Whole)])
    }
}

impl From<Value> for Sentence {
    fn from(value: Value) -> Self {
        Cell::from(value).into()
    }
}

impl From<Nanos> for Sentence {
    fn from(time: Nanos) -> Self {
        Cell::from(time).into()
    }
}

impl<T: Into<Self>> From<Option<T>> for Sentence {
    fn from(of: Option<T>) -> Self {
        of.map_or_else(Self::default, Into::into)
    }
}

impl Sentence {
    /// Of these parts, in their order.
    pub(crate) fn of(parts: impl IntoIterator<Item = Self>) -> Self {
        Self(parts.into_iter().flat_map(|part| part.0).collect())
    }

    /// A figure whose unit stands in the words behind it.
    pub(crate) fn unitless(cell: impl Into<Cell>) -> Self {
        Self(vec![Span::Figure(cell.into(), Form::Unitless)])
    }

    /// A figure of which the words before it say that it is one at least, or at most.
    pub(crate) fn bound(cell: impl Into<Cell>) -> Self {
        Self(vec![Span::Figure(cell.into(), Form::Bound)])
    }

    /// A number that stands in no table, because it was asked for or needs none.
    pub(crate) fn asked(cell: impl Into<Cell>) -> Self {
        Self(vec![Span::Asked(cell.into())])
    }

    /// One after the other, with these words between them.
    pub(crate) fn joined(all: impl IntoIterator<Item = Self>, between: &'static str) -> Self {
        let begun = |(at, one): (usize, Self)| [if at > 0 { between } else { "" }.into(), one];
        Self::of(all.into_iter().enumerate().flat_map(begun))
    }

    /// Without the stop at its end.
    pub(crate) fn without_stop(mut self) -> Self {
        if let Some(Span::Text(last)) = self.0.last_mut() {
            *last = last.trim_end_matches('.').to_owned().into();
        }
        self
    }

    /// As a first screen has it.
    pub(crate) fn said(&self) -> String {
        self.written(Cell::said)
    }

    fn written(&self, told: fn(&Cell) -> String) -> String {
        // What is not to be trusted in a table is not without that mark in a sentence.
        let marked = |cell: &Cell| {
            let text = told(cell);
            if cell.is_beyond() && !text.starts_with(MARK) { format!("{MARK}{text}") } else { text }
        };
        let figure = |cell: &Cell, form: Form| match form {
            Form::Whole => marked(cell),
            Form::Unitless => cell.in_table(None).trim_end_matches('%').to_owned(),
            Form::Bound => told(cell).trim_start_matches(['≥', '≤']).to_owned(),
        };
        let span = |span: &Span| match span {
            Span::Text(words) => words.to_string(),
            Span::Name(text) | Span::Told(text) => text.clone(),
            Span::Asked(cell) => told(cell),
            Span::Many(many) => count(*many as u64),
            Span::Figure(cell, form) => figure(cell, *form),
        };
        self.0.iter().map(span).collect()
    }

    fn figures(&self) -> impl Iterator<Item = &Cell> {
        self.0.iter().filter_map(|span| match span {
            Span::Figure(cell, _) if cell.is_known() => Some(cell),
            _ => None,
        })
    }
}

/// As a whole report has it, with the digits of its tables.
impl Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(Cell::said))
    }
}

/// Where an answer names a figure that stands nowhere in the report, that is a defect, and no test lets it pass.
pub(crate) fn assert_stand(answer: &[Sentence], tables: &[Table], sections: &[Section]) {
    if !cfg!(test) {
        return;
    }
    for said in answer {
        for figure in said.figures() {
            let mut blocks = sections.iter().flat_map(|section| &section.blocks);
            let stands = tables.iter().any(|table| table.has(figure));
            let stands = stands || blocks.any(|block| has(block, figure));
            assert!(stands, "{} of `{said}` stands nowhere", figure.said());
        }
    }
}

/// Has a part of a section this figure?
fn has(block: &Block, figure: &Cell) -> bool {
    match block {
        Block::Table(table) => table.has(figure),
        Block::Only(_, blocks) => blocks.iter().any(|block| has(block, figure)),
        Block::Fold(fold) => fold.blocks.iter().any(|block| has(block, figure)),
        Block::Items(items) => items.iter().any(|item| figure.is_in(item)),
        Block::Text(text) | Block::Judged(_, text) => figure.is_in(text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall() -> Sentence {
        let share = Value::Share(0.0198);
        let ends = Some((Value::Share(0.0184), Value::Share(0.0233)));
        let share = Cell::from(share).within(ends);
        let who = sentence!["CPU ", Told::of(1)];
        let ends = sentence![" (95% CI ", share.ends(), ")"];
        sentence![who, " lost ", share, " of its time", ends, "; ", Nanos(1_820_000), "."]
    }

    fn table(cells: impl IntoIterator<Item = Cell>) -> Table {
        let mut table = Table::new("", &["", ""]);
        cells.into_iter().for_each(|cell| table.row([Cell::from("CPU 1"), cell]));
        table
    }

    #[test]
    fn a_figure_is_written_with_the_digits_that_its_interval_supports() {
        assert_eq!(stall().said(), "CPU 1 lost 2.0% of its time (95% CI 1.8–2.3%); 1.82 ms.");
        let report = "CPU 1 lost 2.0% of its time (95% CI 1.8–2.3%); 1.82 ms.";
        assert_eq!(stall().to_string(), report);
        let rate = sentence!["sent ", Sentence::unitless(Value::Rate(910.0)), " requests/s"];
        assert_eq!(rate.said(), "sent 910 requests/s");
        let late = sentence!["at least ", Sentence::bound(Value::AtLeast(2.55e6)), " late"];
        assert_eq!(late.said(), "at least 2.55 ms late");
        assert_eq!(sentence![3_usize, " threads", None::<Sentence>].said(), "3 threads");
        let all = ["a", "b"].map(Sentence::from);
        assert_eq!(Sentence::joined(all, " or ").said(), "a or b");
    }

    #[test]
    fn a_name_may_be_cut_and_a_number_is_whole() {
        assert_eq!(sentence![Name::of("a\u{1b}b")].said(), "a\\u{1b}b");
        assert_eq!(sentence![Name::cut("a name of many words", 10)].said(), "a name...");
        let tolerance = Sentence::asked(Nanos(1_250_000));
        let all = sentence![Sentence::asked(Value::Count(12_000)), " above ", tolerance];
        assert_eq!(all.said(), "12,000 above 1.25 ms");
        let reason = "x ".repeat(50) + "12,000";
        assert_eq!(sentence![Told::of(&reason)].said(), reason);
    }

    #[test]
    fn each_figure_of_an_answer_stands_in_a_table_by_its_value_or_in_words() {
        let share = Value::Share(0.0198);
        let ends = Some((Value::Share(0.0184), Value::Share(0.0233)));
        let cells = [Cell::from(share).within(ends), Nanos(1_820_000).into()];
        assert_stand(&[stall()], &[table(cells.clone())], &[]);
        let words = ["2.0%", "from 1.8–2.3%;", "1.82 ms (1.0–2.0 ms)"];
        assert_stand(&[stall()], &[table(words.map(Cell::from))], &[]);
        let section = |blocks| Section::new("", "", blocks);
        let [first, second] = cells.map(|cell| Block::Table(table([cell])));
        let only = Block::Only(crate::doc::Where::Page, vec![second]);
        assert_stand(&[stall()], &[], &[section(vec![first, only])]);
        let items = vec![Block::Items(words.map(str::to_owned).to_vec())];
        assert_stand(&[stall()], &[], &[section(items)]);
        // What is not known has no place, and neither has a name.
        assert_stand(
            &[sentence![
                "p99 ",
                Value::Absent,
                Told::of(7),
                Sentence::asked(Value::Count(5)),
                9_usize
            ]],
            &[],
            &[],
        );
    }

    #[test]
    #[should_panic(expected = "1.82 ms")]
    fn a_figure_that_no_table_has_is_refused() {
        let ends = Some((Value::Share(0.0184), Value::Share(0.0233)));
        let share = Cell::from(Value::Share(0.0198)).within(ends);
        assert_stand(&[stall()], &[table([share, Nanos(1_930_000).into()])], &[]);
    }

    #[test]
    #[should_panic(expected = "a number in words: lost 12 of it")]
    #[cfg(debug_assertions)]
    fn words_have_no_number() {
        let _ = Sentence::from("lost 12 of it");
    }
}
