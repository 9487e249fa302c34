//! The document model of reports: what a section says, before it is known where it is written.
//!
//! A section returns blocks, once; [`crate::render`] writes them on a terminal and on a page. Escaping, limits
//! of rows, widths and folding are the renderers'. What stands here holds numbers as
//! [`crate::numbers::Value`], not as text, so that a sentence that names the figure of a table cannot write it
//! in another way.

use whylate_model::run::Run;
use whylate_model::trust::Level;

use crate::numbers::Cell;
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

/// A section of a report.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Its name in the page.
    pub(crate) id: String,
    /// What it is about.
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
    /// Facts, one after the other.
    Items(Vec<String>),
    /// Names of files or commands behind the words that introduce them.
    Code(String, Vec<String>),
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
    /// Rows that a first screen shows all or none of: so many make one entry.
    pub(crate) together: usize,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) head: String,
    /// Is it of words rather than of numbers?
    pub(crate) words: bool,
    pub(crate) shown: Where,
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
        Self { text: of.to_string(), advice: of.advice_in(run), level: of.level() }
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
    pub(crate) fn explained(table: impl Into<Table>, how: impl Into<String>) -> [Self; 2] {
        [Self::table(table), Self::How(how.into())]
    }

    /// A table, of any kind.
    pub(crate) fn table(table: impl Into<Table>) -> Self {
        Self::Table(table.into())
    }

    /// Sentences, each for itself.
    pub(crate) fn texts(said: impl IntoIterator<Item = String>) -> impl Iterator<Item = Self> {
        said.into_iter().map(Self::Text)
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
        Self { caption, captioned, columns, rows, most: None, whole: false, together: 1 }
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

    /// Each entry has so many rows.
    pub(crate) fn together(self, rows: usize) -> Self {
        Self { together: rows.max(1), ..self }
    }

    /// With these rows, of text.
    pub(crate) fn with(mut self, rows: Vec<Vec<String>>) -> Self {
        for row in rows {
            self.row(row);
        }
        self
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

impl From<svg::Table> for Table {
    fn from(of: svg::Table) -> Self {
        let svg::Table { caption, head, rows, left } = of;
        let words = |at: usize| at == 0 || left.contains(&at);
        let column = |(at, head)| Column { head, words: words(at), shown: Where::Both };
        Self {
            caption,
            captioned: Where::Both,
            columns: head.into_iter().enumerate().map(column).collect(),
            rows: rows.into_iter().map(|row| row.into_iter().map(Cell::from).collect()).collect(),
            most: None,
            whole: false,
            together: 1,
        }
    }
}
