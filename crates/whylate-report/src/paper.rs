//! A paper's experiments, repeated: its figures, this host's with their intervals, and why they
//! differ; on a terminal and as one page.

mod distributions;
mod figures;
mod trust;

use distributions::reached;
pub use trust::Parts;

use std::path::{Path, PathBuf};

use whylate_model::paper::{Here, NotHere, Paper, Scenario, Unit};
use whylate_model::trust::Trust;

use crate::doc::{Block, Document, Section, Table, Where};
use crate::html::REPORT_FILE;
use crate::numbers::{ABSENT, Cell, Names, Value, count};
use crate::render::plain;
use crate::{ReportError, html};

/// Rows of one scenario; a file may hold any number.
const MOST_ROWS: usize = 256;

/// Tables of one scenario.
const MOST_TABLES: usize = 16;

/// Heading of what is not repeated.
const NOT_HERE: &str = "Not repeated here yet";

/// The line below a figure that has more of the host in it.
const WITHOUT_HOST: &str = "  without time that has no kernel event";

/// Writes the page into the directory that holds the paper and its runs; returns where it is.
pub fn write(directory: &Path, paper: &Paper) -> Result<PathBuf, ReportError> {
    let path = directory.join(REPORT_FILE);
    write_to(&path, directory, paper)?;
    Ok(path)
}

/// Writes the page to a file, which is whole or not there.
pub fn write_to(file: &Path, directory: &Path, paper: &Paper) -> Result<(), ReportError> {
    html::put(file, &page(directory, paper))
}

/// The page. What of the runs cannot be read is left out and named.
#[must_use]
pub fn page(directory: &Path, paper: &Paper) -> String {
    let trust = Parts::read(directory, paper).trust;
    let drawn = |of: &Scenario| drawn(directory, of);
    plain::page(&format!("whylate paper {}", paper.name), &document(paper, &trust, drawn))
}

/// All of it, with what of a scenario is drawn.
pub(crate) fn document(
    paper: &Paper,
    trust: &Trust,
    drawn: impl Fn(&Scenario) -> Vec<Block>,
) -> Document {
    let quick = paper
        .quick
        .then(|| Block::Note("a quick run: shorter parts, so wider intervals".to_owned()));
    let told = [Block::Text(paper.reference.clone()), Block::Text(host(paper))];
    let scenarios = paper.scenarios.iter().map(|of| {
        let mut blocks = said(of);
        blocks.extend(drawn(of));
        Section::new("", format!("{}: {}", of.place, of.title), blocks).headed()
    });
    let [judged, reasons] = Block::trust(trust);
    let judged = Block::Only(Where::Terminal, vec![Block::apart(), judged]);
    let level = format!("Trust: {}", trust.level().name());
    Document::new(format!("{}, repeated", paper.name))
        .naming(paper)
        .with(told.into_iter().chain(quick))
        .sections(scenarios)
        .about(NOT_HERE, Block::items(not_here(paper)).into_iter().collect())
        .sections([Section::new("trust", level, vec![judged, reasons])])
}

/// A scenario with its tables, why its figures differ, and how to have it again.
fn said(of: &Scenario) -> Vec<Block> {
    let mut blocks = vec![Block::Table(table(of)), Block::Items(reasons(of))];
    // A page has them below their figures.
    let reached = reached(of).into_iter().map(whole).map(Block::Table).collect();
    blocks.push(Block::Only(Where::Terminal, reached));
    blocks.extend(tables(of).into_iter().map(Block::Table));
    blocks.extend(of.notes.iter().cloned().map(Block::Note));
    blocks.extend(of.commands.iter().cloned().map(Block::Command));
    blocks
}

/// The figures of a scenario, what could not be drawn, and where its runs are.
fn drawn(directory: &Path, of: &Scenario) -> Vec<Block> {
    let (drawn, unread) = figures::of(directory, of);
    let links = figures::names(of).map(|run| {
        Block::Link(format!("{run}/{REPORT_FILE}"), format!("the whole report of {run}"))
    });
    drawn
        .into_iter()
        .map(Block::figure)
        .chain(unread.into_iter().map(Block::Note))
        .chain(links)
        .collect()
}

/// What of the paper is not repeated, a sentence each.
fn not_here(paper: &Paper) -> Vec<String> {
    let one = |of: &NotHere| format!("{}, {}: {}", of.place, of.title, of.would_be);
    paper.not_here.iter().take(MOST_ROWS).map(one).collect()
}

fn host(paper: &Paper) -> String {
    let host = &paper.host;
    let machine = match &host.hypervisor {
        Some(name) => format!("virtual machine ({name})"),
        None => "bare metal".to_owned(),
    };
    format!(
        "This machine: {}, {} CPUs, {machine}, Linux {}; whylate {}",
        host.cpu_model,
        host.cpus_online.len(),
        host.kernel,
        paper.tool_version
    )
}

fn table(scenario: &Scenario) -> Table {
    let mut table = whole(Table::new("", &["", "the paper", "this machine"]).words(&[1]));
    for row in scenario.rows.iter().take(MOST_ROWS) {
        let here = row.here.as_ref().map_or("not measured".to_owned(), shown);
        let [what, paper] = [Some(&row.what), row.paper.as_ref()]
            .map(|words| words.map(|of| Value::from(Names::default().respelled(of).as_str())));
        table.row([what.into(), paper.into(), Cell::from(here)]);
        if let Some(without) = &row.without_host {
            table.row([WITHOUT_HOST, "", &shown(without)]);
        }
    }
    table
}

/// All its rows are shown, as far as they were let in.
fn whole(of: Table) -> Table {
    of.most(2 * MOST_ROWS)
}

/// Tables of the paper as they are here, and what tools say of the effects of configurations.
fn tables(scenario: &Scenario) -> Vec<Table> {
    let own = scenario.tables.iter().take(MOST_TABLES).map(|of| {
        let head = &of.head;
        let left: Vec<usize> = of.left.iter().copied().filter(|at| *at < head.len()).collect();
        // A row of another length would not fit under the head.
        let rows = of.rows.iter().filter(|row| row.len() == head.len()).take(MOST_ROWS).cloned();
        whole(Table::new(of.caption.as_str(), &[]).columns(head.clone()).words(&left).with(rows))
    });
    own.chain(distributions::effects(scenario).map(whole)).collect()
}

/// Why figures differ, or what to make of them.
fn reasons(scenario: &Scenario) -> Vec<String> {
    let told = scenario.rows.iter().take(MOST_ROWS).filter(|row| !row.why.is_empty());
    told.map(|row| format!("{}: {}", row.what.trim(), row.why)).collect()
}

/// A figure with its interval and what it rests on.
fn shown(here: &Here) -> String {
    let (value, ends) = figure(here);
    let interval = if here.interval.is_some() { format!(" ({ends})") } else { String::new() };
    let n = match here.unit {
        // What is counted and what it is out of.
        Unit::Count => here.n.map_or(String::new(), |n| format!(" of {}", count(n))),
        Unit::BitsPerSecond => String::new(),
        _ => here.n.map_or(String::new(), |n| format!(", n {}", count(n))),
    };
    format!("{value}{interval}{n}")
}

/// A figure and its interval, each with its own unit: rows of one table are of different things.
pub(crate) fn figure(here: &Here) -> (String, String) {
    let (scale, unit) = match here.unit {
        Unit::BitsPerSecond if here.value >= 1e9 => (1e9, " Gbit/s"),
        Unit::BitsPerSecond => (1e6, " Mbit/s"),
        Unit::Ratio => (1.0, " times"),
        _ => (1.0, ""),
    };
    let value = |of: f64| match here.unit {
        Unit::Nanoseconds => Value::Time(of),
        Unit::Share => Value::Share(of),
        Unit::Count => Value::Count(of.round() as u64),
        Unit::PerSecond => Value::Rate(of),
        Unit::BitsPerSecond | Unit::Ratio => Value::Ratio(of / scale),
    };
    let ends = here.interval.map(|(low, high)| (value(low), value(high)));
    let cell = Cell::from(value(here.value)).within(ends);
    let written = |cell: &Cell| {
        let text = cell.said();
        if text == ABSENT { text } else { text + unit }
    };
    (written(&cell), written(&cell.ends()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_shown_in_its_unit_with_its_interval_and_what_it_rests_on() {
        let here = |value, unit, interval, n| Here { value, unit, interval, n };
        for (figure, words) in [
            (
                here(2_345.0, Unit::Nanoseconds, Some((-200.0, 3_000.0)), Some(15)),
                "2.3 µs (−0.2 to 3.0 µs), n 15",
            ),
            (here(0.33, Unit::Share, Some((0.31, 0.35)), Some(4_000)), "33% (31–35%), n 4,000"),
            (here(3.0, Unit::Count, None, Some(12_000)), "3 of 12,000"),
            (here(9.4e7, Unit::BitsPerSecond, None, Some(1)), "94.0 Mbit/s"),
            (here(18.0, Unit::PerSecond, None, None), "18.0/s"),
        ] {
            assert_eq!(shown(&figure), words);
        }
    }
}
