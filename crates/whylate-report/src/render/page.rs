//! Documents on a page: elements of HTML, every text escaped.

use std::fmt::{Display, Write};

use whylate_model::trust::Level;

use super::{and_more, capped, is_shown, shortened};
use crate::doc::{Block, Column, Fold, Picture, Section, Table, Where};
use crate::numbers::{Cell, Names};
use crate::svg::escaped;

/// Rows of a table, of which there may be more than anybody reads.
pub(crate) const MOST_ROWS: usize = 64;
/// Items of a list.
pub(crate) const MOST_ITEMS: usize = 64;

/// Elements, one below the other.
#[derive(Debug, Default)]
pub(crate) struct Html {
    text: String,
    names: Names,
}

impl Html {
    /// Of something in which these names stand.
    pub(crate) fn naming(names: Names) -> Self {
        Self { names, ..Self::default() }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// Markup of our own.
    pub(crate) fn raw(&mut self, markup: impl Display) {
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{markup}");
    }

    /// As a reader has it: the numbers of what was written elsewhere as those of the report.
    fn told(&self, text: &str) -> String {
        self.names.respelled(text)
    }

    /// An element with sentences in it.
    pub(crate) fn words(&mut self, name: &str, class: &str, text: &str) {
        self.element(name, class, &self.told(text));
    }

    /// An element with a text in it.
    pub(crate) fn element(&mut self, name: &str, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(self.text, "<{name}{class}>{}</{name}>", escaped(&shortened(text)));
    }

    pub(crate) fn section(&mut self, section: &Section) {
        if section.heading.is_empty() {
            return self.blocks(&section.blocks);
        }
        let id = &section.id;
        let id = if id.is_empty() {
            String::new()
        } else {
            format!(" id=\"{}\"", escaped(&shortened(id)))
        };
        let _ = writeln!(self.text, "<section{id}>");
        self.words("h2", "", &section.heading);
        self.blocks(&section.blocks);
        self.raw("</section>\n");
    }

    pub(crate) fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text) => self.words("h3", "", text),
            Block::Text(text) => self.words("p", "", text),
            Block::How(text) | Block::Advice(text) => self.words("p", "how", text),
            Block::Note(text) | Block::Judged(_, text) => self.words("p", "note", text),
            Block::Items(items) => self.items(items),
            Block::Code(words, code) => self.code(words, code),
            Block::Command(text) => {
                self.raw("<p>");
                self.element("code", "", text);
                self.raw("</p>\n");
            }
            Block::Link(to, text) => {
                let (to, text) = (shortened(to), shortened(text));
                let (to, text) = (escaped(&to), escaped(&text));
                self.raw(format_args!("<p class=\"how\"><a href=\"{to}\">{text}</a></p>\n"));
            }
            Block::Warnings(all) => self.warnings(all),
            Block::Table(table) => self.table(table),
            Block::Figure(picture) => self.figure(picture),
            Block::Fold(fold) => self.fold(fold),
            Block::Only(there, blocks) if is_shown(*there, Where::Page) => self.blocks(blocks),
            Block::Only(..) | Block::Drawn(_) => {}
        }
    }

    pub(crate) fn items(&mut self, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.raw("<ul>");
        items.iter().take(MOST_ITEMS).for_each(|item| self.words("li", "", item));
        if items.len() > MOST_ITEMS {
            self.element("li", "", &and_more(items.len() - MOST_ITEMS));
        }
        self.raw("</ul>\n");
    }

    fn code(&mut self, words: &str, code: &[String]) {
        let code: Vec<String> =
            code.iter().map(|one| format!("<code>{}</code>", escaped(&shortened(one)))).collect();
        let _ = writeln!(
            self.text,
            "<p class=\"how\">{}: {}</p>",
            escaped(&shortened(&self.told(words))),
            code.join(", ")
        );
    }

    fn warnings(&mut self, all: &[crate::doc::Warning]) {
        self.raw("<ul class=\"warnings\">\n");
        for warning in all.iter().take(MOST_ITEMS) {
            let poor = if warning.level == Level::Poor { "Trust is poor: " } else { "" };
            let _ = writeln!(
                self.text,
                "<li><strong>{poor}{}</strong><br>{}</li>",
                escaped(&shortened(&self.told(&warning.text))),
                escaped(&shortened(&self.told(&warning.advice)))
            );
        }
        if all.len() > MOST_ITEMS {
            self.element("li", "", &and_more(all.len() - MOST_ITEMS));
        }
        self.raw("</ul>\n");
    }

    fn figure(&mut self, picture: &Picture) {
        let plot = picture.plot.as_ref();
        let plot =
            plot.map_or(String::new(), |id| format!(" data-plot=\"{}\"", escaped(&shortened(id))));
        let _ = writeln!(self.text, "<figure{plot}>\n{}", picture.svg);
        if !picture.how.is_empty() {
            self.words("figcaption", "how", &picture.how);
        }
        self.raw("</figure>\n");
    }

    fn fold(&mut self, fold: &Fold) {
        let gap = fold.gap.map_or(String::new(), |gap| format!(" data-gap=\"{gap}\""));
        let _ = writeln!(self.text, "<details{gap}>");
        self.words("summary", "", &fold.heading);
        self.blocks(&fold.blocks);
        self.raw("</details>\n");
    }

    /// A table, where it has rows.
    pub(crate) fn table(&mut self, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        let shown: Vec<bool> =
            table.columns.iter().map(|column| is_shown(column.shown, Where::Page)).collect();
        self.raw("<div class=\"scroll\"><table>\n");
        if !table.caption.is_empty() {
            self.words("caption", "", &table.caption);
        }
        if table.columns.iter().any(|column| !column.head.is_empty()) {
            self.raw("<thead><tr>");
            let columns = table.columns.iter().zip(&shown).filter(|(_, shown)| **shown);
            for (column, _) in columns {
                let class = if column.words { " class=\"left\"" } else { "" };
                let head = self.told(&column.head);
                let head = shortened(&head);
                let head = escaped(&head);
                let _ = write!(self.text, "<th scope=\"col\"{class}>{head}</th>");
            }
            self.raw("</tr></thead>\n");
        }
        self.raw("<tbody>\n");
        for row in capped(&table.rows, table.most.unwrap_or(MOST_ROWS)) {
            self.raw("<tr>");
            let cells = row.iter().zip(&table.columns).zip(&shown);
            for (at, ((cell, column), _)) in cells.enumerate().filter(|(_, (_, shown))| **shown) {
                self.cell(cell, column, at == 0);
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody></table></div>\n");
    }

    fn cell(&mut self, cell: &Cell, column: &Column, names_the_row: bool) {
        let text = cell.to_string();
        let text = if names_the_row || column.words { text } else { self.told(&text) };
        let text = shortened(&text);
        let (open, close) = match (names_the_row, column.words, cell.is_beyond()) {
            (true, ..) => ("<th scope=\"row\">", "</th>"),
            (_, true, _) => ("<td class=\"left\">", "</td>"),
            (.., true) => ("<td class=\"beyond\">", "</td>"),
            _ => ("<td>", "</td>"),
        };
        let _ = write!(self.text, "{open}{}{close}", escaped(&text));
    }
}
