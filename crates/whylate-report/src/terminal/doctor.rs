//! What doctor found, on a terminal: the worst first, what is not known short at the end.

use whylate_model::doctor::{Compared, Diagnosis, Evidence, Level, Remedy, Symptom};
use whylate_model::{CpuList, Printable};

use super::Style;
use crate::render::terminal::Page;

/// Pieces of evidence shown of one symptom; JSON has them all.
const MOST_EVIDENCE: usize = 3;

/// The diagnosis, at most `style.width` columns wide; with `all` also what is fine.
#[must_use]
pub fn render(diagnosis: &Diagnosis, all: bool, style: Style) -> String {
    let mut page = Page::new(style);
    head(&mut page, diagnosis);
    in_full(&mut page, diagnosis, Level::Spoils, "Problems");
    in_full(&mut page, diagnosis, Level::Note, "Notes (report them with your results)");
    in_short(&mut page, diagnosis, Level::Unknown, "Not known");
    if all {
        in_short(&mut page, diagnosis, Level::Fine, "Fine");
    }
    if let Some(compared) = &diagnosis.compared {
        differences(&mut page, compared);
    }
    page.finish()
}

fn head(page: &mut Page, diagnosis: &Diagnosis) {
    let number = |level| diagnosis.of_level(level).count();
    let cpus = CpuList(&diagnosis.cpus);
    page.title(&format!("What would spoil a measurement of CPU {cpus} on this machine?"));
    let host = &diagnosis.host;
    let machine = match &host.hypervisor {
        Some(name) => format!("virtual machine ({})", Printable(name)),
        None => "no hypervisor seen".to_owned(),
    };
    let tree = match diagnosis.root.as_str() {
        "/" => String::new(),
        root => format!(" (from {})", Printable(root)),
    };
    page.paragraph(&format!(
        "{}{tree}, {}, {} CPUs, {machine}, Linux {}; whylate {}",
        named(&host.hostname),
        named(&host.cpu_model),
        host.cpus_online.len(),
        named(&host.kernel),
        Printable(&diagnosis.tool_version),
    ));
    let counts = format!(
        "{} checks: {} spoil, {} to note, {} not known, {} fine. Nothing was changed; commands \
         are for a root shell.",
        diagnosis.symptoms.len(),
        number(Level::Spoils),
        number(Level::Note),
        number(Level::Unknown),
        number(Level::Fine),
    );
    page.paragraph(&counts);
}

fn named(text: &str) -> String {
    if text.is_empty() { "unknown".to_owned() } else { Printable(text).to_string() }
}

fn in_full(page: &mut Page, diagnosis: &Diagnosis, level: Level, heading: &str) {
    let mut symptoms = diagnosis.of_level(level).peekable();
    if symptoms.peek().is_none() {
        return;
    }
    page.section(&format!("{heading} ({})", diagnosis.of_level(level).count()));
    for symptom in symptoms {
        page.note(&format!("{}: {}", symptom.check, Printable(&symptom.finding)));
        page.advice(&format!("Why: {}.", symptom.why));
        remedies(page, symptom);
        page.advice(&format!("Seen: {}", seen(&symptom.evidence)));
    }
}

fn remedies(page: &mut Page, symptom: &Symptom) {
    for remedy in &symptom.remedy {
        match remedy {
            Remedy::Command(line) => page.command(&Printable(line).to_string()),
            Remedy::Advice(text) => page.advice(&format!("Fix: {}", Printable(text))),
        }
    }
}

fn seen(evidence: &[Evidence]) -> String {
    let one =
        |piece: &Evidence| format!("{}: {}", Printable(&piece.source), Printable(&piece.said));
    let mut shown: Vec<String> = evidence.iter().take(MOST_EVIDENCE).map(one).collect();
    let more = evidence.len().saturating_sub(MOST_EVIDENCE);
    if more > 0 {
        shown.push(format!("{more} more (--format json)"));
    }
    shown.join("; ")
}

fn in_short(page: &mut Page, diagnosis: &Diagnosis, level: Level, heading: &str) {
    let mut symptoms = diagnosis.of_level(level).peekable();
    if symptoms.peek().is_none() {
        return;
    }
    page.section(&format!("{heading} ({})", diagnosis.of_level(level).count()));
    for symptom in symptoms {
        page.item(&format!("{}: {}", symptom.check, Printable(&symptom.finding)));
        remedies(page, symptom);
    }
}

fn differences(page: &mut Page, compared: &Compared) {
    page.section(&format!("What differs from {}", Printable(&compared.with)));
    page.paragraph(&format!("Recorded by whylate {}.", Printable(&compared.tool_version)));
    if compared.differences.is_empty() {
        page.good("Nothing that is known of either machine.");
        return;
    }
    let rows: Vec<Vec<String>> = compared
        .differences
        .iter()
        .map(|one| {
            [&one.name, &one.left, &one.right].map(|text| Printable(text).to_string()).to_vec()
        })
        .collect();
    page.table(&["what", "then", "now"], &rows, &[1, 2]);
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::CpuId;
    use whylate_model::doctor::{DIAGNOSIS_VERSION, Subject};
    use whylate_model::host::{Difference, Fingerprint};

    use super::*;

    fn symptom(check: &str, level: Level) -> Symptom {
        Symptom {
            check: check.to_owned(),
            subject: Subject::Memory,
            level,
            finding: format!("{check} is found \u{1b}[31m"),
            why: "it takes time that the measured thread then lacks".to_owned(),
            remedy: vec![
                Remedy::Command(format!("echo madvise > /sys/kernel/mm/{}", "x".repeat(40))),
                Remedy::Advice("boot without it".to_owned()),
            ],
            evidence: vec![
                Evidence { source: "/sys/x".to_owned(), said: "[always]".to_owned() };
                5
            ],
        }
    }

    pub(crate) fn diagnosis() -> Diagnosis {
        Diagnosis {
            format_version: DIAGNOSIS_VERSION,
            tool_version: "0.1.0".to_owned(),
            root: "host".to_owned(),
            cpus: vec![CpuId(2), CpuId(3)],
            host: Fingerprint { hostname: "box".to_owned(), ..Fingerprint::default() },
            symptoms: vec![
                symptom("fine-one", Level::Fine),
                symptom("noted", Level::Note),
                symptom("hidden", Level::Unknown),
                symptom("spoiling", Level::Spoils),
            ],
            compared: Some(Compared {
                with: "run-1".to_owned(),
                tool_version: "0.0.9".to_owned(),
                differences: vec![Difference {
                    name: "command line".to_owned(),
                    left: "quiet ".repeat(30),
                    right: "nothing more".to_owned(),
                }],
            }),
        }
    }

    #[test]
    fn the_worst_stands_first_and_what_is_fine_only_when_asked_for() {
        let text = render(&diagnosis(), false, Style::default());
        let place = |word: &str| text.find(word).unwrap();
        assert!(place("spoiling") < place("noted") && place("noted") < place("hidden"));
        assert!(!text.contains("fine-one"));
        assert!(render(&diagnosis(), true, Style::default()).contains("fine-one"));
    }

    #[test]
    fn a_diagnosis_reads_as_recorded() {
        insta::assert_snapshot!(render(&diagnosis(), true, Style::default()));
    }

    #[test]
    fn it_is_80_columns_wide_and_passes_no_escape_on() {
        let text = render(&diagnosis(), true, Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let coloured = render(&diagnosis(), true, Style { colour: true, ..Style::default() });
        assert!(coloured.contains('\u{1b}'));
    }
}
