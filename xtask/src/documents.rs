//! Documents: links lead somewhere, every page of the manual is in its table of contents, and the README is
//! short enough to be read.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

/// Lines of the README at most.
const README: usize = 150;
const MANUAL: &str = "docs/src";
const CONTENTS: &str = "SUMMARY.md";

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in crate::files(root, "md")? {
        let text = read(&path)?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let beside = path.parent().unwrap_or(root);
        for target in links(&text).into_iter().filter(|target| !leads_to(beside, target)) {
            faults.push(format!("{shown}: {target} leads nowhere"));
        }
        if shown == "README.md" && text.lines().count() > README {
            faults.push(format!("{shown}: more than {README} lines; the manual has room"));
        }
    }
    let manual = root.join(MANUAL);
    let contents = read(&manual.join(CONTENTS))?;
    let listed: BTreeSet<&str> = links(&contents).into_iter().collect();
    for page in crate::files(&manual, "md")? {
        let name = page.strip_prefix(&manual).unwrap_or(&page).display().to_string();
        if name != CONTENTS && !listed.contains(name.as_str()) {
            faults.push(format!("{MANUAL}/{CONTENTS}: {name} is missing"));
        }
    }
    Ok(faults)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Targets of links within this repository, without what stands behind `#`; not those in blocks of code.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        for part in line.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                found.push(target);
            }
        }
    }
    found
}

fn leads_to(beside: &Path, target: &str) -> bool {
    beside.join(target).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        check(root.path()).unwrap()
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named_and_others_are_not() {
        let contents = ("docs/src/SUMMARY.md", "- [a](a.md)\n");
        let page = "[b](../../README.md#x) [c](https://example.org/x)\n```\n[d](none)\n```\n";
        let whole = [contents, ("docs/src/a.md", page), ("README.md", "")];
        assert_eq!(faults(&whole), Vec::<String>::new());
        let broken = [contents, ("docs/src/a.md", "[b](b.md)")];
        assert_eq!(faults(&broken), ["docs/src/a.md: b.md leads nowhere"]);
    }

    #[test]
    fn a_page_outside_the_contents_and_a_long_readme_are_named() {
        let contents = ("docs/src/SUMMARY.md", "");
        let outside = [contents, ("docs/src/a.md", "")];
        assert_eq!(faults(&outside), ["docs/src/SUMMARY.md: a.md is missing"]);
        let long = "line\n".repeat(README + 1);
        let found = faults(&[contents, ("README.md", &long)]);
        assert!(found.len() == 1 && found[0].contains("more than 150 lines"), "{found:?}");
    }
}
