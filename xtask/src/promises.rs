//! SPECIFICATION.md: every promise names a test, and the test exists.

use std::path::Path;

use anyhow::{Context, Result};

/// Is there a test of this name, and is it run without being asked for?
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let at = lines.iter().position(|line| line.starts_with(&format!("fn {name}(")));
    at.is_some_and(|at| {
        let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        let has = |name: &str| attributes.clone().any(|line| line.starts_with(name));
        has("#[test]") && !has("#[ignore")
    })
}

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let path = root.join("SPECIFICATION.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut tests = String::new();
    for folder in ["crates", "tests", "xtask"] {
        for file in crate::files(&root.join(folder), "rs")? {
            tests.push_str(&std::fs::read_to_string(file)?);
        }
    }
    let mut faults = Vec::new();
    for row in text.lines().filter(|line| line.starts_with("| P")) {
        let quoted = row.split('`').skip(1).step_by(2);
        let promised: Vec<&str> = quoted.filter(|word| word.starts_with("test:")).collect();
        if promised.is_empty() {
            faults.push(format!("SPECIFICATION.md: names no test: {row}"));
        }
        for name in promised {
            let function = name.trim_start_matches("test:").rsplit("::").next().unwrap_or("");
            if !is_test(&tests, function) {
                faults.push(format!("SPECIFICATION.md: there is no test {name} that always runs"));
            }
        }
    }
    Ok(faults)
}
