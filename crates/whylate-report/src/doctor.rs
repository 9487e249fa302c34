//! What doctor found: the worst first, what is not known short at the end.

use whylate_model::CpuList;
use whylate_model::doctor::{Compared, Diagnosis, Evidence, Level, Remedy, Symptom};
use whylate_model::trust;

use crate::doc::{Block, Document, Table};

pub(crate) mod fixes;
#[cfg(test)]
pub(crate) mod tests;

/// Pieces of evidence shown of one symptom; JSON has them all.
const MOST_EVIDENCE: usize = 3;

/// How a symptom is told.
type Shown = fn(&Symptom) -> Vec<Block>;

/// All that was found; with `all` also what is fine.
pub(crate) fn document(of: &Diagnosis, all: bool) -> Document {
    let cpus = CpuList(&of.cpus);
    let mut document =
        Document::new(format!("Settings that distort a measurement of CPU {cpus} on this machine"))
            .naming(of)
            .with([Block::Text(machine(of)), Block::Text(counts(of))]);
    let parts: [(Level, &str, Shown); 4] = [
        (Level::Spoils, "Problems", in_full),
        (Level::Note, "Notes (report them with your results)", in_full),
        (Level::Unknown, "Unknown", in_short),
        (Level::Fine, "Fine", in_short),
    ];
    for (level, heading, shown) in parts {
        if all || level != Level::Fine {
            let heading = format!("{heading} ({})", of.of_level(level).count());
            document = document.about(heading, of.of_level(level).flat_map(shown).collect());
        }
    }
    match &of.compared {
        Some(with) => document.about(format!("What differs from {}", with.with), differences(with)),
        None => document,
    }
}

/// One check with all its fixes and all that was read; none where doctor has no check of that name.
pub(crate) fn explained(of: &Diagnosis, check: &str) -> Option<Document> {
    let symptom = of.symptoms.iter().find(|symptom| symptom.check == check)?;
    let read = symptom.evidence.iter().map(told).collect();
    let document = Document::new(format!("{check}: {}", symptom.finding))
        .naming(of)
        .with([Block::Text(format!("Why: {}.", symptom.why))])
        .about("Fix", remedies(symptom, |advice| Block::Items(vec![advice.to_owned()])))
        .about("Read", vec![Block::Items(read)]);
    Some(document)
}

fn machine(of: &Diagnosis) -> String {
    let host = &of.host;
    let machine = match &host.hypervisor {
        Some(name) => format!("virtual machine ({name})"),
        None => "no hypervisor seen".to_owned(),
    };
    let tree = match of.root.as_str() {
        "/" => String::new(),
        root => format!(" (from {root})"),
    };
    let named = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
    format!(
        "{}{tree}, {}, {} CPUs, {machine}, Linux {}; whylate {}",
        named(&host.hostname),
        named(&host.cpu_model),
        host.cpus_online.len(),
        named(&host.kernel),
        of.tool_version,
    )
}

fn counts(of: &Diagnosis) -> String {
    let number = |level| of.of_level(level).count();
    let several = |many: usize, what: &str| {
        if many == 1 { format!("1 {what}") } else { format!("{many} {what}s") }
    };
    format!(
        "{}: {}, {}, {} unknown, {} fine. Nothing was changed; commands are for a root shell.",
        several(of.symptoms.len(), "check"),
        several(number(Level::Spoils), "problem"),
        several(number(Level::Note), "note"),
        number(Level::Unknown),
        number(Level::Fine),
    )
}

fn in_full(of: &Symptom) -> Vec<Block> {
    let found = [Block::Note(finding(of)), Block::Advice(format!("Why: {}.", of.why))].into_iter();
    let seen = Block::Advice(format!("Seen: {}", seen(&of.evidence)));
    found.chain(remedies(of, fix)).chain([seen]).collect()
}

fn in_short(of: &Symptom) -> Vec<Block> {
    [Block::Items(vec![finding(of)])].into_iter().chain(remedies(of, fix)).collect()
}

fn finding(of: &Symptom) -> String {
    format!("{}: {}", of.check, of.finding)
}

fn fix(advice: &str) -> Block {
    Block::Advice(format!("Fix: {advice}"))
}

fn remedies(of: &Symptom, advice: fn(&str) -> Block) -> Vec<Block> {
    let one = |remedy: &Remedy| match remedy {
        Remedy::Command(line) => Block::Command(line.clone()),
        Remedy::Advice(text) => advice(text),
    };
    of.remedy.iter().map(one).collect()
}

fn told(of: &Evidence) -> String {
    format!("{}: {}", of.source, of.said)
}

fn seen(evidence: &[Evidence]) -> String {
    let mut shown: Vec<String> = evidence.iter().take(MOST_EVIDENCE).map(told).collect();
    let more = evidence.len().saturating_sub(MOST_EVIDENCE);
    if more > 0 {
        shown.push(format!("{more} more (--format json)"));
    }
    shown.join("; ")
}

fn differences(with: &Compared) -> Vec<Block> {
    let by = Block::Text(format!("Recorded by whylate {}.", with.tool_version));
    let changed = |what: &String| Block::Judged(trust::Level::Poor, format!("{what}."));
    let mut blocks: Vec<Block> =
        [by].into_iter().chain(with.problem.as_ref().map(changed)).collect();
    if with.differences.is_empty() {
        let none = "Nothing that is known of either machine.".to_owned();
        blocks.push(Block::Judged(trust::Level::Good, none));
        return blocks;
    }
    let mut table = Table::new("", &["what", "then", "now"]).words(&[1, 2]);
    for one in &with.differences {
        table.row([&*one.name, &one.left, &one.right]);
    }
    blocks.push(Block::Table(table));
    blocks
}
