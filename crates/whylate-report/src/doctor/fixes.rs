//! The fixes of what doctor found as a script, of which nothing is run here.

use std::fmt::Write;

use whylate_model::doctor::{Diagnosis, Level, Remedy};
use whylate_model::{CpuList, Printable};

/// The commands that fix problems and notes, each under what it is for; what no command does is a comment.
#[must_use]
pub fn script(diagnosis: &Diagnosis) -> String {
    let mut text = format!(
        "#!/bin/sh\n# Fixes of whylate doctor for CPU {}, for a root shell. They last until the next boot.\n\
         # Read them first: whylate runs none of them.\n",
        CpuList(&diagnosis.cpus)
    );
    let found =
        [Level::Spoils, Level::Note].into_iter().flat_map(|level| diagnosis.of_level(level));
    let mut commands = 0;
    for symptom in found.filter(|symptom| !symptom.remedy.is_empty()) {
        let _ = write!(text, "\n# {}: {}\n", symptom.check, Printable(&symptom.finding));
        for remedy in &symptom.remedy {
            let _ = match remedy {
                Remedy::Command(line) => {
                    commands += 1;
                    writeln!(text, "{}", Printable(line))
                }
                Remedy::Advice(advice) => writeln!(text, "# {}", Printable(advice)),
            };
        }
    }
    if commands == 0 {
        text.push_str("\n# No command fixes what was found.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_model::doctor::{DIAGNOSIS_VERSION, Evidence, Subject, Symptom};
    use whylate_model::host::Fingerprint;

    use super::*;
    use crate::terminal::{Style, explained};

    fn diagnosis() -> Diagnosis {
        let symptom = |check: &str, level| Symptom {
            check: check.to_owned(),
            subject: Subject::Memory,
            level,
            finding: format!("{check} is on\u{1b}[31m\nrm -rf /"),
            why: "it takes time".to_owned(),
            remedy: vec![
                Remedy::Command(format!("echo never > /sys/{check}")),
                Remedy::Advice("boot without it\nreboot".to_owned()),
            ],
            evidence: (0..5)
                .map(|n| Evidence { source: format!("/sys/{n}"), said: "on".to_owned() })
                .collect(),
        };
        Diagnosis {
            format_version: DIAGNOSIS_VERSION,
            tool_version: "0.1.0".to_owned(),
            root: "/".to_owned(),
            cpus: vec![CpuId(1)],
            host: Fingerprint::default(),
            symptoms: vec![
                symptom("fine", Level::Fine),
                symptom("noted", Level::Note),
                symptom("hidden", Level::Unknown),
                symptom("bad", Level::Spoils),
            ],
            compared: None,
        }
    }

    #[test]
    fn one_check_is_explained_with_all_fixes_and_all_that_was_read() {
        let text = explained(&diagnosis(), "noted", Style::default()).unwrap();
        for part in [
            "it takes time",
            "echo never > /sys/noted",
            "boot without it",
            "/sys/0: on",
            "/sys/4: on",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(explained(&diagnosis(), "nothing", Style::default()), None);
    }

    #[test]
    fn the_script_has_the_commands_of_what_is_to_be_fixed_and_all_else_as_comments() {
        let text = script(&diagnosis());
        let commands: Vec<&str> =
            text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert_eq!(commands, ["echo never > /sys/bad", "echo never > /sys/noted"]);
        assert!(text.contains("# boot without it"), "{text}");
        let none = Diagnosis { symptoms: Vec::new(), ..diagnosis() };
        assert!(script(&none).contains("No command"));
    }
}
