//! What came of a configuration of the host.

use whylate_model::CpuList;
use whylate_model::configuration::AppliedConfiguration;

use crate::doc::Table;

/// What was not asked for.
const ONLY_READ: &str = "(only read)";

/// How it is called, and how many of its knobs there were.
pub(crate) fn answer(of: &AppliedConfiguration) -> String {
    let name = &of.name;
    if of.knobs.is_empty() && of.missing.is_empty() {
        return format!("Configuration {name}: the machine as it was found.");
    }
    let changed = of.knobs.iter().filter(|knob| knob.was_changed()).count();
    let cpus = if of.cpus.is_empty() {
        String::new()
    } else {
        format!(" for the box on CPUs {}", CpuList(&of.cpus))
    };
    let missing = match of.missing.len() {
        0 => "none is missing".to_owned(),
        1 => "1 is not to be had here".to_owned(),
        many => format!("{many} are not to be had here"),
    };
    let knobs = of.knobs.len();
    let were = if changed == 1 { "was" } else { "were" };
    format!(
        "Configuration {name}{cpus}: {knobs} knobs read back, {changed} of which {were} changed; \
         {missing}."
    )
}

/// What each knob said before, what was asked of it and what it reads back, and what the machine does not
/// offer.
pub(crate) fn tables(of: &AppliedConfiguration) -> [Table; 2] {
    let caption = format!("Configuration {}", of.name);
    let mut knobs =
        Table::new(caption, &["knob", "before", "asked", "reads back"]).words(&[1, 2, 3]);
    for one in &of.knobs {
        let asked = one.asked.as_deref().unwrap_or(ONLY_READ);
        knobs.row([one.name.as_str(), &one.before, asked, &one.got]);
    }
    let caption = format!("Configuration {}: not to be had on this machine", of.name);
    let mut missing = Table::new(caption, &["knob", "why"]).words(&[1]);
    of.missing.iter().for_each(|one| missing.row([&*one.knob, &one.why]));
    [knobs, missing]
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::CpuId;
    use whylate_model::configuration::{KnobReading, NotHere};

    use super::*;
    use crate::doc::{Block, Document};
    use crate::render::terminal::write;
    use crate::terminal::Style;

    fn text(of: &AppliedConfiguration) -> String {
        let tables = tables(of).map(Block::Table);
        write(&Document::new(answer(of)).with(tables), Style::default())
    }

    pub(crate) fn applied() -> AppliedConfiguration {
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
        let text = text(&applied());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "Configuration local+isolset+quiet",
            "for the box on CPUs 2-3: 3 knobs read back, 1 of which was changed; 1 is not to be had",
            "knob before asked reads back",
            "affinity 0-7 2-3 2-3",
            "thp never never never",
            "(only read)",
            "Configuration local+isolset+quiet: not to be had on this machine",
            "aspm /sys/module/pcie_aspm/parameters/policy is absent",
        ] {
            assert!(flat.contains(words), "no `{words}` in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_host_as_it_was_found_has_no_table() {
        let mut of = applied();
        (of.name, of.knobs, of.missing) = ("unchanged".to_owned(), Vec::new(), Vec::new());
        let text = text(&of);
        assert!(text.contains("the machine as it was found"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
