//! Documents: links lead somewhere, to a heading that there is and in the manual to what a built book has; every
//! page of the manual is in its table of contents, and the README is short enough to be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

/// Lines of the README at most.
const README: usize = 150;
const MANUAL: &str = "docs/src";
const CONTENTS: &str = "SUMMARY.md";

/// A link to something of this repository.
#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    /// The file or folder; empty for the page itself.
    target: &'a str,
    /// What stands behind `#`.
    heading: Option<&'a str>,
}

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in crate::files(root, "md")? {
        let text = read(&path)?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        for link in links(&text) {
            if let Some(fault) = fault(root, &path, &link)? {
                faults.push(format!("{shown}: {fault}"));
            }
        }
        if shown == "README.md" && text.lines().count() > README {
            faults.push(format!("{shown}: more than {README} lines; the manual has room"));
        }
    }
    let manual = root.join(MANUAL);
    let contents = read(&manual.join(CONTENTS))?;
    let listed: BTreeSet<&str> = links(&contents).iter().map(|link| link.target).collect();
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

/// What is wrong with a link of a page.
fn fault(root: &Path, page: &Path, link: &Link<'_>) -> Result<Option<String>> {
    let Link { target, heading } = link;
    let beside = page.parent().unwrap_or(root);
    let path = if target.is_empty() { page.to_owned() } else { beside.join(target) };
    if !path.exists() {
        return Ok(Some(format!("{target} leads nowhere")));
    }
    // A built book has what lies beside its pages, and nothing else of the repository.
    let manual = root.join(MANUAL);
    if page.starts_with(&manual) && target.split('/').any(|part| part == "..") {
        return Ok(Some(format!("{target} leads out of the book")));
    }
    let Some(heading) = heading.filter(|_| path.extension().is_some_and(|of| of == "md")) else {
        return Ok(None);
    };
    let is_there = headings(&read(&path)?).iter().any(|one| one == heading);
    Ok((!is_there).then(|| format!("{target}#{heading} is no heading")))
}

/// Lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        in_block ^= is_fence;
        !is_fence && !in_block
    })
}

/// Links within this repository.
fn links(text: &str) -> Vec<Link<'_>> {
    let parts = prose(text).flat_map(|line| line.split("](").skip(1));
    let targets = parts.map(|part| part.split(')').next().unwrap_or_default());
    let within = targets.filter(|target| !target.is_empty() && !target.contains("://"));
    let link = |target| match str::split_once(target, '#') {
        Some((target, heading)) => Link { target, heading: Some(heading) },
        None => Link { target, heading: None },
    };
    within.map(link).collect()
}

/// What stands behind `#` in a link to each heading of a page: letters and digits in lower case, with a dash for
/// a space; of several that are the same the later ones have a number.
fn headings(text: &str) -> Vec<String> {
    let mut before: BTreeMap<String, u32> = BTreeMap::new();
    let lines = prose(text).filter(|line| line.starts_with('#'));
    let titles = lines.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let names = titles.map(|title| {
        let kept = title.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        });
        kept.collect::<String>()
    });
    let mut found = Vec::new();
    for name in names {
        let times = before.entry(name.clone()).or_default();
        found.push(if *times == 0 { name } else { format!("{name}-{times}") });
        *times += 1;
    }
    found
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
        let page = "[b](b.json) [c](https://example.org/x#y)\n```\n[d](none)\n```\n";
        let readme = ("README.md", "[a](docs/src/a.md), [crates](docs)");
        let whole = [contents, ("docs/src/a.md", page), ("docs/src/b.json", ""), readme];
        assert_eq!(faults(&whole), Vec::<String>::new());
        let broken = [contents, ("docs/src/a.md", "[b](b.md)")];
        assert_eq!(faults(&broken), ["docs/src/a.md: b.md leads nowhere"]);
    }

    #[test]
    fn a_link_to_a_heading_that_a_page_does_not_have_is_named() {
        let contents = ("docs/src/SUMMARY.md", "- [a](a.md)\n- [b](b.md)\n");
        let page = "# What `a` is, and why\n```sh\n# remark\n```\n## Twice\n## Twice\n";
        let of =
            |links: &str| faults(&[contents, ("docs/src/a.md", page), ("docs/src/b.md", links)]);
        assert_eq!(of("[a](a.md#what-a-is-and-why) [a](a.md#twice) [a](a.md#twice-1)"), [""; 0]);
        assert_eq!(of("# Here\n[b](#here)"), [""; 0]);
        for (link, named) in [
            ("[a](a.md#remark)", "a.md#remark"),
            ("[a](a.md#twice-2)", "a.md#twice-2"),
            ("[a](a.md#What-a-is-and-why)", "a.md#What-a-is-and-why"),
            ("[b](#there)", "#there"),
        ] {
            assert_eq!(of(link), [format!("docs/src/b.md: {named} is no heading")]);
        }
    }

    #[test]
    fn a_link_of_the_manual_to_what_no_built_book_has_is_named() {
        let contents = ("docs/src/SUMMARY.md", "- [a](a.md)\n");
        let page = ("docs/src/a.md", "[schema](../../b.json)");
        let found = faults(&[contents, page, ("b.json", "")]);
        assert_eq!(found, ["docs/src/a.md: ../../b.json leads out of the book"]);
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
