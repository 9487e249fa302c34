//! Every program that a test runs is installed by name: `install-test-tools.sh` knows its package.
//!
//! Sees names that stand as words in the call (`needs::program("tc")`, `Command::new("tc")`), or in its list
//! (`needed::two_ends(&["ip", "tc"])`); a program in a variable is asked for by a word somewhere else, which
//! its author must see to.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

const SCRIPT: &str = "xtask/install-test-tools.sh";
/// Calls in which the first word is a program.
const CALLS: [&str; 4] = ["needs::program(\"", "can_run(\"", "is_installed(\"", "Command::new(\""];

/// Calls in which every word of a list is one.
const LISTS: [&str; 3] = ["as_root(&[", "two_ends(&[", "traced(&["];

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let script = std::fs::read_to_string(root.join(SCRIPT)).context(SCRIPT)?;
    let known = known(&script);
    let mut faults = Vec::new();
    for folder in ["tests", "accept", "crates"] {
        for path in crate::files(&root.join(folder), "rs")? {
            let of_tests = |part: &std::ffi::OsStr| part == "tests" || part == "whylate-testing";
            if folder == "crates" && !path.components().any(|part| of_tests(part.as_os_str())) {
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            let shown = path.strip_prefix(root).unwrap_or(&path).display();
            let unknown = asked(&text).into_iter().filter(|name| !known.contains(name));
            faults.extend(
                unknown.map(|name| format!("{shown} runs {name}, which {SCRIPT} does not install")),
            );
        }
    }
    Ok(faults)
}

/// Programs of the script's list.
fn known(script: &str) -> BTreeSet<&str> {
    let list = script.split("\nprograms=\"").nth(1).and_then(|rest| rest.split('"').next());
    list.unwrap_or("").lines().filter_map(|line| line.split_whitespace().next()).collect()
}

/// Programs that a file of tests runs; one by its path is none of a package.
fn asked<'a>(text: &'a str) -> BTreeSet<&'a str> {
    let of = |call| text.split(call).skip(1).filter_map(|rest: &str| rest.split('"').next());
    let list = |call| text.split(call).skip(1).filter_map(|rest: &str| rest.split(']').next());
    let words = |list: &'a str| list.split('"').skip(1).step_by(2);
    let listed = LISTS.into_iter().flat_map(list).flat_map(words);
    CALLS.into_iter().flat_map(of).chain(listed).filter(|name| !name.contains('/')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_and_the_calls_are_found() {
        let script = "#!/bin/sh\nset -u\nprograms=\"\nip iproute2\ntc iproute2\n\"\nmissing() {\n";
        assert_eq!(known(script).into_iter().collect::<Vec<_>>(), ["ip", "tc"]);
        let text = concat!(
            "let Some(ip) = needs::program(\"i",
            "p\") else { return };\n",
            "Command::new(\"t",
            "c\").arg(\"x\"); needs::can_run(\"cc\")?; Command::new(\"/bin/a\")",
            "two_ends(&[])?; needed::traced(&[\"perl\", \"awk\"])",
        );
        assert_eq!(asked(text).into_iter().collect::<Vec<_>>(), ["awk", "cc", "ip", "perl", "tc"]);
    }

    #[test]
    fn a_program_that_is_not_installed_is_a_fault() -> Result<()> {
        let root = tempfile::tempdir()?;
        for folder in ["xtask", "tests", "accept", "crates/a/tests", "crates/a/src"] {
            std::fs::create_dir_all(root.path().join(folder))?;
        }
        std::fs::write(root.path().join(SCRIPT), "\nprograms=\"\nip iproute2\n\"\n")?;
        let run = |name: &str| format!("Command::new(\"{name}\")");
        std::fs::write(root.path().join("crates/a/src/a.rs"), run("of-the-product"))?;
        std::fs::write(root.path().join("tests/a.rs"), run("ip"))?;
        assert_eq!(check(root.path())?, [""; 0]);
        std::fs::write(root.path().join("crates/a/tests/b.rs"), run("tc"))?;
        let faults = check(root.path())?;
        assert_eq!(
            faults,
            [format!("crates/a/tests/b.rs runs tc, which {SCRIPT} does not install")]
        );
        Ok(())
    }
}
