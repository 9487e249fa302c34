//! A paper's experiments, repeated: a table for each, and why its figures differ from this host's.

use whylate_model::Printable;
use whylate_model::paper::{Paper, Scenario};
use whylate_model::trust::Trust;

use super::Style;
use crate::paper::{NOT_HERE, heading, host, not_here, reached, reasons, table, tables};
use crate::render::terminal::Page;
use crate::svg::Table;

/// The whole of it with how far it may be trusted, at most `style.width` columns wide.
#[must_use]
pub fn render(paper: &Paper, trust: &Trust, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(&format!("{}, repeated", Printable(&paper.name)));
    page.paragraph(&Printable(&paper.reference).to_string());
    page.paragraph(&host(paper));
    if paper.quick {
        page.note("a quick run: shorter parts, so wider intervals");
    }
    paper.scenarios.iter().for_each(|scenario| draw(&mut page, scenario));
    if !paper.not_here.is_empty() {
        page.section(NOT_HERE);
        not_here(paper).for_each(|line| page.item(&line));
    }
    page.blank();
    super::write_trust(&mut page, trust);
    page.finish()
}

fn draw(page: &mut Page, scenario: &Scenario) {
    page.section(&heading(scenario));
    let table = table(scenario);
    if !table.rows.is_empty() || !scenario.has_tables() {
        put(page, &table);
    }
    for reason in reasons(scenario) {
        page.item(&reason);
    }
    for table in reached(scenario).into_iter().chain(tables(scenario)) {
        page.blank();
        page.paragraph(&table.caption);
        put(page, &table);
    }
    scenario.notes.iter().for_each(|note| page.note(&Printable(note).to_string()));
    scenario.commands.iter().for_each(|command| page.command(&Printable(command).to_string()));
}

fn put(page: &mut Page, table: &Table) {
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}
