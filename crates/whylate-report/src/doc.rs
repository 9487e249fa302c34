//! The document model of reports: what a section says, before it is known where it is written.
//!
//! A section returns blocks, once; [`crate::render`] writes them on a terminal and on a page. Escaping, limits
//! of rows, widths and folding are the renderers'. What stands here holds numbers as
//! [`crate::numbers::Value`], not as text, so that a sentence that names the figure of a table cannot write it
//! in another way.

use serde::Serialize;
use whylate_model::run::Run;
use whylate_model::trust::{Level, Trust};

use crate::numbers::{Cell, Names};
use crate::svg;

/// Where something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// On a terminal and on the page.
    Both,
    /// On a terminal alone, which has fewer columns and no pictures.
    Terminal,
    /// On the page alone.
    Page,
}

/// A whole report: of a run, or of anything else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    /// What it is of.
    pub(crate) title: String,
    /// What it says.
    pub(crate) sections: Vec<Section>,
    /// Names in what it is of that are no numbers, whatever they look like.
    pub(crate) names: Names,
}

/// A section of a report.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Its name in the page.
    pub(crate) id: String,
    /// What it is about; nothing where it goes on with what stands above.
    pub(crate) heading: String,
    /// Where the heading is shown: a terminal has those of the tables.
    pub(crate) headed: Where,
    /// What it says.
    pub(crate) blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// What the next blocks are about.
    Heading(String),
    /// Sentences.
    Text(String),
    /// How to read what stands above.
    How(String),
    /// What a reader has to know before anything else is believed.
    Note(String),
    /// What to do about the note or the item above.
    Advice(String),
    /// What was judged, and how good that is.
    Judged(Level, String),
    /// Facts, one after the other.
    Items(Vec<String>),
    /// Names of files or commands behind the words that introduce them.
    Code(String, Vec<String>),
    /// A line for a shell, which can be taken from the report as it is.
    Command(String),
    /// A page beside this one, and what it is: on a page alone.
    Link(String, String),
    /// Lines of a drawing in letters: on a terminal alone.
    Drawn(Vec<String>),
    /// What to be warned of, and what to do about it.
    Warnings(Vec<Warning>),
    /// Numbers.
    Table(Table),
    /// A picture with the words below it.
    Figure(Picture),
    /// What is long: folded on the page, left out on a terminal.
    Fold(Fold),
    /// What one of them alone shows.
    Only(Where, Vec<Block>),
}

/// A warning with its advice.
#[derive(Debug, Clone)]
pub(crate) struct Warning {
    pub(crate) text: String,
    pub(crate) advice: String,
    /// How far it lets the headline be used.
    pub(crate) level: Level,
}

/// A picture of our own writing.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    /// An `<svg>` element.
    pub(crate) svg: String,
    /// How to read it.
    pub(crate) how: String,
    /// The plot that the script draws in its place.
    pub(crate) plot: Option<String>,
}

/// What is folded under a line.
#[derive(Debug, Clone)]
pub(crate) struct Fold {
    pub(crate) heading: String,
    /// Which of the longest gaps it is, where the script is to find it.
    pub(crate) gap: Option<usize>,
    pub(crate) blocks: Vec<Block>,
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// What it shows, in a few words.
    pub(crate) caption: String,
    /// Where that is said: a terminal may have it in the head of the table.
    pub(crate) captioned: Where,
    pub(crate) columns: Vec<Column>,
    /// Rows, each as long as there are columns.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Rows that are shown at most, where it is not what the renderer shows of any table.
    pub(crate) most: Option<usize>,
    /// Its rows add up: where there is little room, others lose theirs first.
    pub(crate) whole: bool,
    /// The last row stays where others have no room.
    pub(crate) keeps_last: bool,
    /// Rows that a first screen shows all or none of: so many make one entry.
    pub(crate) together: usize,
    /// By this column the rows are sorted, the largest first: of those without room its values are told.
    pub(crate) sorted_by: Option<usize>,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) head: String,
    /// Is it of words rather than of numbers?
    pub(crate) words: bool,
    pub(crate) shown: Where,
}

impl Document {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// With the names that stand in what it is of.
    pub(crate) fn naming(self, data: &impl Serialize) -> Self {
        Self { names: Names::of(data), ..self }
    }

    /// With this below what it has.
    pub(crate) fn with(mut self, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.sections.push(Section::new("", "", blocks.into_iter().collect()));
        self
    }

    /// With a section for each of these.
    pub(crate) fn sections(mut self, sections: impl IntoIterator<Item = Section>) -> Self {
        self.sections.extend(sections);
        self
    }

    /// With a section of its own for what there is of it.
    pub(crate) fn about(self, heading: impl Into<String>, blocks: Vec<Block>) -> Self {
        let section = (!blocks.is_empty()).then(|| Section::new("", heading, blocks).headed());
        self.sections(section)
    }
}

impl Section {
    /// A section whose heading stands on the page alone.
    pub(crate) fn new(id: &str, heading: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id: id.to_owned(), heading: heading.into(), headed: Where::Page, blocks }
    }

    /// The same with its heading on a terminal, too.
    pub(crate) fn headed(self) -> Self {
        Self { headed: Where::Both, ..self }
    }
}

impl Warning {
    /// A warning of this run.
    pub(crate) fn of(of: &whylate_model::warning::Warning, run: &Run) -> Self {
        Self { text: Self::text(of), advice: of.advice_in(run), level: of.level() }
    }

    /// What it says, with the id of the process that it is about.
    fn text(of: &whylate_model::warning::Warning) -> String {
        let process = of.process().map(|pid| format!(" (process {pid})"));
        format!("{of}{}", process.unwrap_or_default())
    }

    /// Warnings of what has no run.
    pub(crate) fn of_account(all: &[whylate_model::warning::Warning]) -> Block {
        let one = |of: &whylate_model::warning::Warning| Self {
            text: Self::text(of),
            advice: of.advice(),
            level: of.level(),
        };
        Block::Warnings(all.iter().map(one).collect())
    }
}

impl Picture {
    /// One that the script lets be.
    pub(crate) fn still(svg: String, how: &str) -> Self {
        Self { svg, how: how.to_owned(), plot: None }
    }
}

impl Block {
    /// A table and how to read it.
    pub(crate) fn explained(table: Table, how: impl Into<String>) -> [Self; 2] {
        [Self::Table(table), Self::How(how.into())]
    }

    /// Sentences, each for itself.
    pub(crate) fn texts(said: impl IntoIterator<Item = String>) -> impl Iterator<Item = Self> {
        said.into_iter().map(Self::Text)
    }

    /// A picture on the page with the table of its numbers.
    pub(crate) fn figure(of: svg::Figure) -> Self {
        let picture = Self::Figure(Picture::still(of.svg, ""));
        Self::Only(Where::Page, vec![picture, Self::Table(of.table)])
    }

    /// An empty line on a terminal.
    pub(crate) fn apart() -> Self {
        Self::Drawn(vec![String::new()])
    }

    /// How far it may be trusted, and all reasons for it.
    pub(crate) fn trust(of: &Trust) -> [Self; 2] {
        let said = format!("Trust: {}", of.level().name());
        let judged = match of.level() {
            Level::Good => Self::Judged(Level::Good, format!("{said}.")),
            Level::Limited => Self::Judged(Level::Good, format!("{said}:")),
            Level::Poor => Self::Judged(Level::Poor, format!("{said}, do not use the headline:")),
        };
        let reasons = of.reasons.iter().map(|reason| reason.what.clone());
        [judged, Self::Items(reasons.collect())]
    }

    /// Facts, where there are some.
    pub(crate) fn items(said: Vec<String>) -> Option<Self> {
        (!said.is_empty()).then_some(Self::Items(said))
    }
}

impl Table {
    /// A table whose first column is of words and the others of numbers.
    pub(crate) fn new(caption: impl Into<String>, head: &[&str]) -> Self {
        let column = |(at, head): (usize, &&str)| Column {
            head: (*head).to_owned(),
            words: at == 0,
            shown: Where::Both,
        };
        let columns = head.iter().enumerate().map(column).collect();
        let captioned = Where::Both;
        let (rows, caption) = (Vec::new(), caption.into());
        let (most, whole, keeps_last, together, sorted_by) = (None, false, false, 1, None);
        Self { caption, captioned, columns, rows, most, whole, keeps_last, together, sorted_by }
    }

    /// With these columns of numbers behind those that it has.
    pub(crate) fn columns<H: Into<String>>(mut self, heads: impl IntoIterator<Item = H>) -> Self {
        let column = |head: H| Column { head: head.into(), words: false, shown: Where::Both };
        self.columns.extend(heads.into_iter().map(column));
        self
    }

    /// Further columns of words.
    pub(crate) fn words(mut self, columns: &[usize]) -> Self {
        for column in columns {
            self.columns[*column].words = true;
        }
        self
    }

    /// The caption is on the page alone.
    pub(crate) fn captioned_on_the_page(self) -> Self {
        Self { captioned: Where::Page, ..self }
    }

    /// These columns are on the page alone.
    pub(crate) fn page_columns(mut self, columns: &[usize]) -> Self {
        for column in columns {
            self.columns[*column].shown = Where::Page;
        }
        self
    }

    /// No more rows than so many, wherever it is shown.
    pub(crate) fn most(self, rows: usize) -> Self {
        Self { most: Some(rows), ..self }
    }

    /// Its rows add up, so that none is left out before those of other tables are.
    pub(crate) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Its last row is shown, however many before it have no room.
    pub(crate) fn with_last(self) -> Self {
        Self { keeps_last: true, ..self }
    }

    /// Its rows are sorted by this column, the largest first.
    pub(crate) fn sorted_by(self, column: usize) -> Self {
        Self { sorted_by: Some(column), ..self }
    }

    /// Each entry has so many rows.
    pub(crate) fn together(self, rows: usize) -> Self {
        Self { together: rows.max(1), ..self }
    }

    /// With these rows.
    pub(crate) fn with<R, C>(mut self, rows: impl IntoIterator<Item = R>) -> Self
    where
        R: IntoIterator<Item = C>,
        C: Into<Cell>,
    {
        rows.into_iter().for_each(|row| self.row(row));
        self
    }

    /// None where there are no rows.
    pub(crate) fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// Rows as columns. What names the rows stands in the first column, or nowhere.
    pub(crate) fn transposed(self) -> Self {
        let head: Vec<Cell> = self.columns.iter().map(|of| Cell::from(of.head.as_str())).collect();
        let lines: Vec<Vec<Cell>> = [head].into_iter().chain(self.rows).collect();
        let mut columns = (0..self.columns.len())
            .map(|at| lines.iter().map(|line| line[at].clone()).collect::<Vec<_>>());
        let first = columns.next().unwrap_or_default();
        let names = first.iter().skip(1).map(ToString::to_string);
        Self::new(self.caption, &[""]).columns(names).with(columns)
    }

    /// A row. What is no number yet is given as text.
    pub(crate) fn row<T: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Has it this figure?
    pub(crate) fn has(&self, figure: &Cell) -> bool {
        figure.is_in(&self.caption) || self.rows.iter().flatten().any(|cell| cell.names(figure))
    }
}

#[cfg(test)]
impl Table {
    /// The head and the rows as they are written.
    pub(crate) fn texts(&self) -> Vec<Vec<String>> {
        let head = self.columns.iter().map(|of| of.head.clone()).collect();
        let text = |row: &Vec<Cell>| row.iter().map(ToString::to_string).collect();
        [head].into_iter().chain(self.rows.iter().map(text)).collect()
    }
}

impl Default for Table {
    /// None at all.
    fn default() -> Self {
        Self::new("", &[])
    }
}
