//! How files look: where unsafe may stand, what a hot path may not do, how long a file may grow.

use std::path::Path;

use anyhow::Result;

const UNSAFE_CRATES: [&str; 4] = ["whylate-sys", "whylate-clock", "whylate-port", "whylate-dpdk"];
const BANNED_FILES: [&str; 4] = ["utils.rs", "common.rs", "helpers.rs", "manager.rs"];
/// A file above this has to be argued for, by an entry in [`LONG`].
const LONGEST: usize = 600;
/// Long files and why they are.
const LONG: [(&str, &str); 1] = [(
    "crates/whylate-cause/src/planted/stream_cases.rs",
    "one case after another, each with its planted truth beside it",
)];

/// What unsafe code begins with.
const UNSAFE_WORDS: [&str; 5] =
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe trait", "unsafe extern"];
/// Lines above it in one of which its reason stands.
const REASON_WITHIN: usize = 3;

/// Words that a hot path may not hold: allocation, locks, formatting, logging, floating point.
const HOT_BANNED: [&str; 16] = [
    "Box::",
    "Vec::",
    "vec!",
    "String",
    "format!",
    "println!",
    "Mutex",
    "RwLock",
    "lock()",
    "tracing::",
    "f64",
    "f32",
    ".clone()",
    "collect()",
    "Instant",
    "SystemTime",
];

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let folders = ["crates", "tests", "accept", "xtask"].map(|folder| root.join(folder));
    for path in folders
        .iter()
        .map(|folder| crate::files(folder, "rs"))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
    {
        let text = std::fs::read_to_string(&path)?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        faults.extend(file(&shown, &text));
    }
    Ok(faults)
}

fn file(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name = path.rsplit('/').next().unwrap_or(path);
    if BANNED_FILES.contains(&name) {
        faults.push(format!("{path}: a file is named for what it holds"));
    }
    let opening = text.lines().find(|line| !line.starts_with("#!") && !line.is_empty());
    if !opening.is_some_and(|line| line.starts_with("//!")) {
        faults.push(format!("{path}: opens without //! (what it is, guarantees, does not do)"));
    }
    let lines = text.lines().count();
    if lines > LONGEST && !LONG.iter().any(|(long, _)| path == *long) {
        faults.push(format!("{path}: {lines} lines, more than {LONGEST}"));
    }
    // This file's own words are no unsafe code.
    let may_be_unsafe = path.starts_with("xtask/")
        || UNSAFE_CRATES.iter().any(|name| path.starts_with(&format!("crates/{name}/")));
    let code = || text.lines().filter(|line| !line.trim_start().starts_with("//"));
    if !may_be_unsafe && code().any(|line| line.contains("unsafe {") || line.contains("unsafe fn"))
    {
        faults.push(format!("{path}: unsafe code stands in {} only", UNSAFE_CRATES.join(", ")));
    }
    if let Some(line) = without_reason(text).filter(|_| !path.starts_with("xtask/")) {
        faults.push(format!("{path}:{line}: unsafe code without its `SAFETY:` right above it"));
    }
    if let Some(line) = running_documentation(text) {
        faults.push(format!(
            "{path}:{line}: code in documentation runs in no test: name its language or write `text`"
        ));
    }
    if name == "hot.rs" {
        for word in HOT_BANNED {
            if code().any(|line| line.contains(word)) {
                faults.push(format!("{path}: {word} on a hot path"));
            }
        }
    }
    faults
}

/// The first line, counted from 1, at which documentation begins code that rustdoc would run as a test.
fn running_documentation(text: &str) -> Option<usize> {
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(said) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            inside = false;
            continue;
        };
        let Some(language) = said.trim_start().strip_prefix("```") else { continue };
        let runs = ["", "rust", "should_panic", "no_run", "compile_fail"];
        if !inside && runs.contains(&language.split(',').next().unwrap_or_default().trim()) {
            return Some(at + 1);
        }
        inside = !inside;
    }
    None
}

/// The first line of unsafe code, counted from 1, above which no reason stands.
fn without_reason(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let is_bare = |at: &usize| {
        let code = lines[*at].split("//").next().unwrap_or_default();
        let above = &lines[at.saturating_sub(REASON_WITHIN)..=*at];
        UNSAFE_WORDS.iter().any(|words| code.contains(words))
            && !above.iter().any(|line| line.contains("SAFETY:"))
    };
    (0..lines.len()).find(is_bare).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::file;

    #[test]
    fn faults_of_a_file_are_found() {
        assert!(file("crates/whylate-gap/src/ring.rs", "//! A ring.\n").is_empty());
        assert_eq!(file("crates/whylate-gap/src/utils.rs", "//! x\n").len(), 1);
        assert_eq!(file("crates/whylate-gap/src/ring.rs", "fn a() {}\n").len(), 1);
        assert_eq!(file("crates/whylate-gap/src/hot.rs", "//! x\nlet v = vec![1];\n").len(), 1);
        assert_eq!(
            file(
                "crates/whylate-gap/src/ring.rs",
                "//! x\n// SAFETY: no.\nlet b = unsafe { a() };\n"
            )
            .len(),
            1
        );
        let reasoned = "//! x\n// SAFETY: it holds.\nunsafe { a() }\n";
        assert!(file("crates/whylate-sys/src/a.rs", reasoned).is_empty());
    }

    #[test]
    fn documentation_holds_no_code_that_would_run_as_a_test() {
        let faults = |docs: &str| file("crates/whylate-gap/src/ring.rs", &format!("//! x\n{docs}"));
        for runs in ["```", "```rust", "```compile_fail,E0277"] {
            let found = faults(&format!("/// A:\n/// {runs}\n/// a();\n/// ```\nfn a() {{}}\n"));
            assert!(found.len() == 1 && found[0].contains("ring.rs:3: code"), "{found:?}");
        }
        assert!(
            faults("/// ```text\n/// a\n/// ```\nfn a() {}\n/// ```sql\n/// b\n/// ```\n")
                .is_empty()
        );
        assert!(faults("let fence = \"```\";\n").is_empty());
    }

    #[test]
    fn unsafe_code_has_its_reason_within_three_lines_above_it() {
        let faults = |text: &str| file("crates/whylate-sys/src/a.rs", &format!("//! x\n{text}\n"));
        for bare in ["unsafe { a() }", "unsafe fn a() {}", "unsafe impl A for B {}"] {
            let found = faults(bare);
            assert!(found.len() == 1 && found[0].contains("a.rs:2: unsafe code"), "{found:?}");
            assert!(faults(&format!("// SAFETY: so.\n//\n//\n{bare}")).is_empty(), "{bare}");
            assert_eq!(faults(&format!("// SAFETY: so.\n//\n//\n//\n{bare}")).len(), 1, "{bare}");
        }
        assert!(faults("// unsafe { a() } is only spoken of").is_empty());
    }
}
