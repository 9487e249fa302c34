//! SPECIFICATION.md: every promise names a test, and the test exists.

use std::path::Path;

use anyhow::{Context, Result};

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
            if !tests.contains(&format!("fn {function}(")) {
                faults.push(format!("SPECIFICATION.md: there is no test {name}"));
            }
        }
    }
    Ok(faults)
}
