//! Which live tests were added or changed since a commit, by the lines that git names.
//!
//! Sees what git knows of: a new file counts once it is added.

use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Result;

use super::git;

/// Where this branch left the main line.
pub(super) fn usual_base(root: &Path) -> Result<String> {
    git(root, &["merge-base", "HEAD", "origin/main"])
        .or_else(|_| git(root, &["merge-base", "HEAD", "main"]))
}

/// Of all tests those that were added or changed.
pub(super) fn since(root: &Path, base: &str, all: &[String]) -> Result<Vec<String>> {
    let diff = git(root, &["diff", "--unified=0", "--no-color", base, "--", "tests"])?;
    let mut found = Vec::new();
    for (path, lines) in changes(&diff) {
        // A file that is gone has no tests.
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        let changed = tests(&text).into_iter().filter(|(_, at)| {
            lines.iter().any(|of| of.start() <= at.end() && at.start() <= of.end())
        });
        for (name, _) in changed {
            found.extend(all.iter().filter(|test| is_of(test, &path, name)).cloned());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Is it the test of this name in this file: `a::b::name` of `tests/a/b.rs`?
fn is_of(test: &str, path: &str, name: &str) -> bool {
    let file = path.strip_prefix("tests/").and_then(|rest| rest.strip_suffix(".rs"));
    let module = file.unwrap_or(path).replace('/', "::");
    let module = module.strip_suffix("::mod").unwrap_or(&module);
    let rest = test.strip_prefix(module).and_then(|rest| rest.strip_prefix("::"));
    rest.is_some_and(|rest| rest == name || rest.ends_with(&format!("::{name}")))
}

/// Lines of each file that are new or changed, of a difference without lines around.
fn changes(diff: &str) -> Vec<(String, Vec<RangeInclusive<usize>>)> {
    let mut found: Vec<(String, Vec<RangeInclusive<usize>>)> = Vec::new();
    for line in diff.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            found.push((path.to_owned(), Vec::new()));
        } else if let Some((lines, (_, all))) = hunk(line).zip(found.last_mut()) {
            all.push(lines);
        }
    }
    found
}

/// Of `@@ -3,2 +3,4 @@ ..`; where lines are gone, those around.
fn hunk(line: &str) -> Option<RangeInclusive<usize>> {
    let new = line.strip_prefix("@@ -")?.split_once(" +")?.1.split(' ').next()?;
    let (first, count) = new.split_once(',').unwrap_or((new, "1"));
    let (first, count): (usize, usize) = (first.parse().ok()?, count.parse().ok()?);
    Some(if count == 0 { first..=first + 1 } else { first..=first + count - 1 })
}

/// Tests of a formatted file, with their lines.
fn tests(text: &str) -> Vec<(&str, RangeInclusive<usize>)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.trim() == "#[test]") {
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let after = &lines[at..];
        let name = after.iter().find_map(|line| line.trim().strip_prefix("fn ")?.split('(').next());
        let last = after.iter().position(|line| *line == end).unwrap_or(after.len() - 1);
        // Lines have numbers from 1.
        found.extend(name.map(|name| (name, at + 1..=at + last + 1)));
    }
    found
}

#[cfg(test)]
mod proofs {
    use super::*;

    const FILE: &str = "//! x\n\n#[test]\nfn one() {\n    a();\n}\n\nfn help() {\n}\n\nmod inner {\n    \
                        #[test]\n    #[ignore = \"b\"]\n    fn two() {\n        {\n        }\n    }\n}\n";

    #[test]
    fn tests_are_found_with_their_lines() {
        assert_eq!(tests(FILE), [("one", 3..=6), ("two", 12..=17)]);
    }

    #[test]
    fn lines_of_a_difference_are_read_and_where_lines_are_gone_those_around_count() {
        let diff = "diff --git a/tests/a.rs b/tests/a.rs\n--- a/tests/a.rs\n+++ b/tests/a.rs\n\
                    @@ -3,2 +3,4 @@ fn x() {\n+b\n@@ -9 +12 @@\n@@ -20,2 +22,0 @@\n-c\n\
                    +++ b/tests/b/c.rs\n@@ -0,0 +1,30 @@\n";
        let expected = [
            ("tests/a.rs".to_owned(), vec![3..=6, 12..=12, 22..=23]),
            ("tests/b/c.rs".to_owned(), vec![1..=30]),
        ];
        assert_eq!(changes(diff), expected);
    }

    #[test]
    fn a_test_is_known_by_its_file_and_its_name() {
        assert!(is_of("a::one", "tests/a.rs", "one"));
        assert!(is_of("a::inner::two", "tests/a.rs", "two"));
        assert!(is_of("a::b::one", "tests/a/b.rs", "one"));
        assert!(!is_of("ab::one", "tests/a.rs", "one"));
        assert!(!is_of("a::not_one", "tests/a.rs", "one"));
    }
}
