//! A paper's experiments, repeated: its figures, this host's with their intervals, and why they
//! differ; on a terminal and as one page.

mod distributions;
mod figures;
mod trust;

pub(crate) use distributions::reached;
pub use trust::Parts;

use std::path::{Path, PathBuf};

use whylate_model::paper::{Here, Paper, Scenario, Unit};
use whylate_model::{Nanos, Printable};

use crate::html::REPORT_FILE;
use crate::numbers::{count, percent};
use crate::plain::Plain;
use crate::svg::Table;
use crate::{ReportError, html};

/// Rows of one scenario; a file may hold any number.
const MOST_ROWS: usize = 256;

/// Tables of one scenario.
const MOST_TABLES: usize = 16;

/// Heading of what is not repeated.
pub(crate) const NOT_HERE: &str = "Not repeated here yet";

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
    let name = Printable(&paper.name);
    let mut page = Plain::new(&format!("whylate paper {name}"), &format!("{name}, repeated"));
    page.paragraph(&paper.reference);
    page.paragraph(&host(paper));
    if paper.quick {
        page.note("A quick run: shorter parts, so wider intervals.");
    }
    for scenario in &paper.scenarios {
        page.section(&heading(scenario));
        page.table(&table(scenario));
        page.list(reasons(scenario));
        for table in tables(scenario) {
            page.table(&table);
        }
        let (drawn, unread) = figures::of(directory, scenario);
        for figure in &drawn {
            page.figure(figure);
        }
        page.list(scenario.notes.iter().cloned().chain(unread));
        for command in &scenario.commands {
            page.command(command);
        }
        for run in figures::names(scenario) {
            page.link(&format!("{run}/{REPORT_FILE}"), &format!("the whole report of {run}"));
        }
    }
    if !paper.not_here.is_empty() {
        page.section(NOT_HERE);
        page.list(not_here(paper));
    }
    let trust = Parts::read(directory, paper).trust;
    page.section(&format!("Trust: {}", trust.level().name()));
    page.list(trust.reasons.into_iter().map(|reason| reason.what));
    page.finish()
}

/// What of the paper is not repeated, a sentence each.
pub(crate) fn not_here(paper: &Paper) -> impl Iterator<Item = String> {
    paper.not_here.iter().take(MOST_ROWS).map(|of| {
        let (place, title, would_be) =
            (Printable(&of.place), Printable(&of.title), Printable(&of.would_be));
        format!("{place}, {title}: {would_be}")
    })
}

pub(crate) fn heading(scenario: &Scenario) -> String {
    format!("{}: {}", Printable(&scenario.place), Printable(&scenario.title))
}

pub(crate) fn host(paper: &Paper) -> String {
    let host = &paper.host;
    let machine = match &host.hypervisor {
        Some(name) => format!("virtual machine ({name})"),
        None => "bare metal".to_owned(),
    };
    format!(
        "This machine: {}, {} CPUs, {machine}, Linux {}; whylate {}",
        Printable(&host.cpu_model),
        host.cpus_online.len(),
        Printable(&host.kernel),
        Printable(&paper.tool_version)
    )
}

pub(crate) fn table(scenario: &Scenario) -> Table {
    let mut table = Table::new("", &["", "the paper", "this machine"]);
    table.left = vec![1];
    for row in scenario.rows.iter().take(MOST_ROWS) {
        table.rows.push(vec![
            Printable(&row.what).to_string(),
            row.paper.as_ref().map_or("-".to_owned(), |paper| Printable(paper).to_string()),
            row.here.as_ref().map_or("not measured".to_owned(), shown),
        ]);
        if let Some(without) = &row.without_host {
            let blank = String::new();
            table.rows.push(vec![WITHOUT_HOST.to_owned(), blank, shown(without)]);
        }
    }
    table
}

/// Tables of the paper as they are here, and what tools say of the effects of configurations.
pub(crate) fn tables(scenario: &Scenario) -> Vec<Table> {
    let own = scenario.tables.iter().take(MOST_TABLES).map(|of| {
        let cells = |row: &Vec<String>| -> Vec<String> {
            row.iter().map(|cell| Printable(cell).to_string()).collect()
        };
        let head = cells(&of.head);
        // A row of another length would not fit under the head.
        let rows = of.rows.iter().filter(|row| row.len() == head.len()).take(MOST_ROWS).map(cells);
        let caption = Printable(&of.caption).to_string();
        Table { caption, rows: rows.collect(), head, left: of.left.clone() }
    });
    own.chain(distributions::effects(scenario)).collect()
}

/// Why figures differ, or what to make of them.
pub(crate) fn reasons(scenario: &Scenario) -> impl Iterator<Item = String> {
    let told = scenario.rows.iter().take(MOST_ROWS).filter(|row| !row.why.is_empty());
    told.map(|row| format!("{}: {}", Printable(row.what.trim()), Printable(&row.why)))
}

/// A figure with its interval and what it rests on.
fn shown(here: &Here) -> String {
    let value = |value: f64| in_unit(value, here.unit);
    let interval = here
        .interval
        .map_or(String::new(), |(low, high)| format!(" ({} .. {})", value(low), value(high)));
    let n = match here.unit {
        // What is counted and what it is out of.
        Unit::Count => here.n.map_or(String::new(), |n| format!(" of {}", count(n))),
        Unit::BitsPerSecond => String::new(),
        _ => here.n.map_or(String::new(), |n| format!(", n {}", count(n))),
    };
    format!("{}{interval}{n}", value(here.value))
}

/// A value of a row in its unit.
#[must_use]
pub fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds if value < 0.0 => format!("-{}", in_unit(-value, unit)),
        Unit::Nanoseconds => Nanos(value.round() as u64).to_string(),
        Unit::Share => percent(value),
        Unit::Count => count(value.round() as u64),
        Unit::PerSecond => format!("{value:.1}/s"),
        Unit::BitsPerSecond if value >= 1e9 => format!("{:.2} Gbit/s", value / 1e9),
        Unit::BitsPerSecond => format!("{:.1} Mbit/s", value / 1e6),
        Unit::Ratio => format!("{value:.3}"),
    }
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
                "2.35us (-200ns .. 3.00us), n 15",
            ),
            (
                here(0.33, Unit::Share, Some((0.31, 0.35)), Some(4_000)),
                "33.0% (31.0% .. 35.0%), n 4,000",
            ),
            (here(3.0, Unit::Count, None, Some(12_000)), "3 of 12,000"),
            (here(9.4e7, Unit::BitsPerSecond, None, Some(1)), "94.0 Mbit/s"),
            (here(18.0, Unit::PerSecond, None, None), "18.0/s"),
        ] {
            assert_eq!(shown(&figure), words);
        }
    }
}
