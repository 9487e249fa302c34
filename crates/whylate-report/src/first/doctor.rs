//! Which settings of a machine distort a measurement, and how they are fixed.

use whylate_model::doctor::{Compared, Diagnosis, Level, Remedy, Symptom};
use whylate_model::trust::{self, Reason, Trust};
use whylate_model::{CpuList, Printable};

use super::{Screen, for_a_shell};
use crate::doc::Table;
use crate::numbers::Cell;
use crate::spans::{Name, Sentence, Told, sentence};

/// A longer list of CPUs is counted in a sentence, and left out of a command.
const LIST: usize = 24;
const SHORT_LIST: usize = 12;
/// Letters of a fix beside the name of its check, and of a command with what it is for.
const ROOM: usize = 56;
const LINE: usize = 73;

pub(super) fn screen(of: &Diagnosis) -> Screen {
    let mut answer = vec![headline(of)];
    answer.extend(of.compared.as_ref().map(against));
    let differing = of.compared.as_ref().map(differences);
    let tables = [problems(of)].into_iter().chain(differing).collect();
    Screen {
        answer,
        tables,
        notes: [named(of, Level::Note, "Notes"), unknown(of)].into_iter().flatten().collect(),
        trust: Some(trust(of)),
        more: more(of),
        ..Screen::default()
    }
}

/// The CPUs that are to be measured, as the beginning of a sentence.
fn cpus(of: &Diagnosis) -> Sentence {
    match of.cpus.as_slice() {
        [] => "This machine is ".into(),
        [cpu] => sentence!["CPU ", Told::of(cpu), " is "],
        several => match CpuList(several).to_string() {
            list if list.len() > LIST => sentence![several.len(), " CPUs are "],
            list => sentence!["CPUs ", Told::of(list), " are "],
        },
    }
}

fn headline(of: &Diagnosis) -> Sentence {
    let number = |level| of.of_level(level).count();
    let (unknown, fine) = (number(Level::Unknown), number(Level::Fine));
    let (not, problems) = match number(Level::Spoils) {
        0 => ("", "no problem".into()),
        1 => ("not ", sentence![1_usize, " problem"]),
        several => ("not ", sentence![several, " problems"]),
    };
    let notes = number(Level::Note);
    let notes = sentence![notes, if notes == 1 { " note, " } else { " notes, " }];
    let found = sentence![problems, ", ", notes, unknown, " unknown, ", fine, " fine."];
    sentence![cpus(of), not, "ready to measure: ", found]
}

/// How far the machine is that of a run.
fn against(of: &Compared) -> Sentence {
    let run = Name::of(&of.with);
    match of.differences.len() {
        0 => sentence!["Nothing that is known of it differs from ", run, "."],
        1 => sentence![1_usize, " thing differs from ", run, "."],
        many => sentence![many, " things differ from ", run, "."],
    }
}

fn differences(of: &Compared) -> Table {
    let mut table = Table::new("", &["what differs", "in the run", "now"]).words(&[1, 2]);
    for one in &of.differences {
        table.row([&one.name, &one.left, &one.right].map(|text| Printable(text).to_string()));
    }
    table
}

/// Each problem, and below it what fixes it.
fn problems(of: &Diagnosis) -> Table {
    let mut table = Table::new("", &["problem", "found, and the fix"]).words(&[1]).together(2);
    for symptom in of.of_level(Level::Spoils) {
        table.row([symptom.check.as_str(), symptom.finding.as_str()]);
        table.row([Cell::from(""), fix(symptom).into()]);
    }
    table
}

/// The first way to fix it whose words fit a line. What leads to a command stands with that and never alone.
fn fix(symptom: &Symptom) -> String {
    let (mut said, mut lead) = (Vec::new(), None);
    for remedy in &symptom.remedy {
        match (remedy, lead.take()) {
            (Remedy::Advice(text), _) if text.ends_with(':') => lead = Some(text),
            (Remedy::Advice(text), _) => said.push(text.clone()),
            (Remedy::Command(line), Some(lead)) => said.push(format!("{lead} {line}")),
            (Remedy::Command(line), None) => said.push(format!("$ {line}")),
        }
    }
    let fits = said.iter().find(|text| text.chars().count() <= ROOM).or(said.first());
    fits.cloned().unwrap_or_else(|| "nothing fixes it from here".to_owned())
}

/// The names of what is of one level, in a sentence; none where nothing is.
fn named(of: &Diagnosis, level: Level, what: &str) -> Option<String> {
    let names: Vec<&str> = of.of_level(level).map(|symptom| symptom.check.as_str()).collect();
    (!names.is_empty()).then(|| format!("{what}: {}.", names.join(", ")))
}

/// How much is not known: why stands beside the trust.
fn unknown(of: &Diagnosis) -> Option<String> {
    let unknown = of.of_level(Level::Unknown).count();
    (unknown > 0).then(|| format!("Unknown: {unknown} (--full names them)."))
}

fn trust(of: &Diagnosis) -> Trust {
    let unknown = of.of_level(Level::Unknown).count();
    let what = if of.root != "/" {
        format!("only what the tree {} holds was read", Printable(&of.root))
    } else if of.host.hypervisor.is_some() {
        "a virtual machine hides the settings of its processor and firmware".to_owned()
    } else {
        format!("{unknown} settings could not be read")
    };
    let limited = Reason { level: trust::Level::Limited, what };
    Trust { reasons: if unknown > 0 { vec![limited] } else { Vec::new() } }
}

fn more(of: &Diagnosis) -> Vec<String> {
    let mut command = "whylate doctor".to_owned();
    let cpus = CpuList(&of.cpus).to_string();
    if !of.cpus.is_empty() && cpus.len() <= SHORT_LIST {
        command = format!("{command} --cpus {cpus}");
    }
    if of.root != "/" {
        command = format!("{command} --root {}", for_a_shell(&of.root));
    }
    let with = |option: &str, what: &str| {
        let (alone, told) = (format!("{command} {option}"), format!("{command} {option}  {what}"));
        if told.chars().count() <= LINE { told } else { alone }
    };
    let worst = of.of_level(Level::Spoils).chain(of.of_level(Level::Note)).next();
    match worst {
        Some(symptom) => vec![
            with(&format!("--explain {}", symptom.check), "why, and every fix"),
            with("--fix-script", "the commands for a root shell"),
        ],
        None => vec![with("--full", "every check")],
    }
}
