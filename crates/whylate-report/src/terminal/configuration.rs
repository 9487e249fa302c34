//! What came of a configuration of the host, on a terminal.

use whylate_model::Printable;
use whylate_model::configuration::AppliedConfiguration;

use super::Style;
use crate::configuration;
use crate::render::terminal::Page;

/// All of it: each knob with what it said before, what was asked of it and what it reads back, and
/// each that the host does not offer with the reason.
#[must_use]
pub fn render(of: &AppliedConfiguration, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(&format!("Configuration {}", Printable(&of.name)));
    page.paragraph(&configuration::answer(of));
    let knobs = configuration::knobs(of);
    if !knobs.is_empty() {
        page.blank();
        page.table(&configuration::KNOBS, &knobs, &configuration::LEFT);
    }
    if !of.missing.is_empty() {
        page.section(configuration::MISSING);
        for one in &of.missing {
            page.item(&format!("{}: {}", Printable(&one.knob), Printable(&one.why)));
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_model::configuration::{KnobReading, NotHere};

    use super::*;

    fn applied() -> AppliedConfiguration {
        let knob = |name: &str, before: &str, asked: Option<&str>, got: &str| KnobReading {
            name: name.to_owned(),
            before: before.to_owned(),
            asked: asked.map(str::to_owned),
            got: got.to_owned(),
        };
        AppliedConfiguration {
            name: "local+isolset+quiet".to_owned(),
            cpus: vec![CpuId(2), CpuId(3)],
            knobs: vec![
                knob("affinity", "0-7", Some("2-3"), "2-3"),
                knob("thp", "never", Some("never"), "never"),
                knob("audit", "auditd\u{1b}[31m runs", None, "auditd\u{1b}[31m runs"),
            ],
            missing: vec![NotHere {
                knob: "aspm".to_owned(),
                why: "/sys/module/pcie_aspm/parameters/policy is absent".to_owned(),
            }],
        }
    }

    #[test]
    fn each_knob_has_what_it_said_was_asked_and_reads_back_and_each_missing_one_its_reason() {
        let text = render(&applied(), Style::default());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "Configuration local+isolset+quiet",
            "for the box on CPUs 2-3: 3 knobs read back, 1 of which was changed; 1 is not to be had",
            "knob before asked reads back",
            "affinity 0-7 2-3 2-3",
            "thp never never never",
            "(only read)",
            "Not to be had on this machine",
            "aspm: /sys/module/pcie_aspm/parameters/policy is absent",
        ] {
            assert!(flat.contains(words), "no `{words}` in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let tables = configuration::tables(&applied());
        assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [3, 1]);
        assert!(
            tables.iter().all(|table| table
                .rows
                .iter()
                .flatten()
                .all(|cell| !cell.contains('\u{1b}')))
        );
    }

    #[test]
    fn a_host_as_it_was_found_has_no_table() {
        let mut of = applied();
        (of.name, of.knobs, of.missing) = ("unchanged".to_owned(), Vec::new(), Vec::new());
        let text = render(&of, Style::default());
        assert!(text.contains("the machine as it was found"), "{text}");
        assert!(configuration::tables(&of).is_empty());
    }
}
