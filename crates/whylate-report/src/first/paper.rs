//! Do a paper's results hold on this machine?

use whylate_model::paper::{Agreement, Here, Paper, Row, Scenario, Unit};

use super::layout::name;
use super::{DIRECTORY, Screen, for_a_shell};
use crate::doc::Table;
use crate::numbers::{ABSENT, Cell, Names, count};
use crate::render::shorter;
use crate::spans::{Sentence, Told, sentence};

/// Letters of the paper's figure in a table.
const FIGURE: usize = 18;
/// A sentence that is longer has no line of its own.
const LINE: usize = 80;

/// A row with the experiment that it is of.
type Compared<'a> = (&'a Scenario, &'a Row);

pub(super) fn screen(paper: &Paper) -> Screen {
    let all = paper.scenarios.iter().flat_map(|of| of.rows.iter().map(move |row| (of, row)));
    let rows: Vec<Compared> = all.filter(|(_, row)| papers(row).is_some()).collect();
    let with = |agreement: Option<Agreement>| -> Vec<Compared> {
        rows.iter().filter(|(_, row)| row.agreement == agreement).copied().collect()
    };
    let (differs, agrees) = (with(Some(Agreement::Differs)), with(Some(Agreement::Agrees)));
    let others = with(None);
    let more = next(paper, &differs);
    let compared = differs.len() + agrees.len();
    if compared == 0 {
        return Screen {
            answer: beside(paper, &others),
            tables: vec![table("beside the paper", &others)],
            more,
            ..Screen::default()
        };
    }
    let figures = if compared == 1 { " figure: " } else { " figures: " };
    let first = |word| move |rows: usize| sentence![word, rows, " of ", compared, figures];
    let differ = first("Differs in ")(differs.len());
    let agree = match differs.len() {
        0 => first("Agrees in ")(agrees.len()),
        _ => sentence!["Agrees in ", agrees.len(), ": "],
    };
    let answer = [(differ, &differs), (agree, &agrees)];
    let answer = answer.into_iter().filter_map(|(begin, rows)| most_telling(Some(&begin), rows));
    let mut notes = vec![
        "Agrees: the 95% intervals overlap, or the claim holds. Differs: they do not.".to_owned(),
    ];
    if !others.is_empty() {
        let (figures, are) = if others.len() == 1 { ("figure", "is") } else { ("figures", "are") };
        notes.push(format!(
            "{} more {figures} of the paper {are} not compared: --full has the reasons.",
            count(others.len() as u64)
        ));
    }
    Screen {
        answer: answer.collect(),
        tables: vec![table("differs", &differs), table("agrees", &agrees)],
        notes,
        more,
        ..Screen::default()
    }
}

/// What is said where nothing is shown to agree or to differ.
fn beside(paper: &Paper, rows: &[Compared]) -> Vec<Sentence> {
    let measured = rows.iter().filter(|(_, row)| row.here.is_some()).count();
    if measured == 0 {
        let has_tables = paper.scenarios.iter().any(Scenario::has_tables);
        let tables =
            "Nothing was compared with the paper; its tables, as they are here, are in --full.";
        return vec![
            if has_tables { tables } else { "No figure of the paper was measured." }.into(),
        ];
    }
    let figures = if measured == 1 { " figure is" } else { " figures are" };
    let said =
        sentence![measured, figures, " shown beside the paper's, without judging agreement."];
    [Some(said), most_telling(None, rows)].into_iter().flatten().collect()
}

/// The first row with an interval, or else the first that was measured, whose sentence has a line.
fn most_telling(begin: Option<&Sentence>, rows: &[Compared]) -> Option<Sentence> {
    let with_interval = |row: &Row| row.here.as_ref().is_some_and(|here| here.interval.is_some());
    let (first, later): (Vec<&Row>, Vec<&Row>) =
        rows.iter().map(|(_, row)| *row).partition(|row| with_interval(row));
    let all: Vec<Sentence> = first.iter().chain(&later).map(|row| said(begin, row)).collect();
    let fits = |of: &&Sentence| of.said().chars().count() <= LINE;
    all.iter().find(fits).or(all.first()).cloned()
}

fn said(begin: Option<&Sentence>, row: &Row) -> Sentence {
    let what = if begin.is_some() { what(row) } else { super::trusted::upper(&what(row)) };
    let paper = Cell::from(papers(row).unwrap_or_default());
    let here = row.here.as_ref().map_or("not measured".to_owned(), |here| figure(here).0);
    let is = if begin.is_some() { " " } else { ": " };
    let here = sentence![is, Cell::from(here)];
    sentence![begin.cloned(), Told::of(what), here, " (paper ", paper, ")."]
}

/// What a row is, in few words.
fn what(row: &Row) -> String {
    name(row.brief.as_ref().map_or(row.what.trim(), |brief| &brief.what))
}

/// The paper's figure in few words; none where it gives none.
fn papers(row: &Row) -> Option<String> {
    let words = row.brief.as_ref().map(|brief| &brief.paper).or(row.paper.as_ref())?;
    // It is cut as it will be read.
    let words = Names::default().respelled(words);
    Some(shorter(&whylate_model::Printable(&words).to_string(), FIGURE))
}

fn table(head: &str, rows: &[Compared]) -> Table {
    let mut table = Table::new("", &[head, "paper", "here", "95% CI"]).words(&[1]);
    for (_, row) in rows {
        let (here, ends) = match &row.here {
            Some(here) => figure(here),
            None => ("not measured".to_owned(), ABSENT.to_owned()),
        };
        table.row([what(row), papers(row).unwrap_or_default(), here, ends]);
    }
    table
}

/// A figure, of a count with what it is out of, and its interval.
fn figure(here: &Here) -> (String, String) {
    let (value, ends) = crate::paper::figure(here);
    let of = here.n.filter(|_| here.unit == Unit::Count);
    let of = of.map_or(String::new(), |n| format!(" of {}", count(n)));
    (value + &of, ends)
}

/// What tells more: the experiment that differs first, by itself.
fn next(paper: &Paper, differs: &[Compared]) -> Vec<String> {
    let Some((scenario, _)) = differs.first() else {
        return vec![format!("whylate compare {DIRECTORY}/PART OTHER  compares one part")];
    };
    let (name, place) = (for_a_shell(&paper.name), for_a_shell(&scenario.place));
    let does = if paper.quick { "has narrower intervals" } else { "repeats that one" };
    vec![format!("whylate paper {name} --only {place}  {does}")]
}
