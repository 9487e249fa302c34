//! SPECIFICATION.md: every promise names a test or a figure. The test exists and runs; the figure exists, and
//! the newest table in `acceptance/` has it, whatever it came to.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// What the attributes above a function make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No test, or one that is ignored for a reason of its own.
    Other,
    /// A test that always runs.
    Test,
    /// A test over DPDK: it runs by [`OVER_DPDK`] alone.
    OverDpdk,
}

/// The reasons of tests that another test runs, in a process of its own. There is no other.
const OF_ANOTHER: [&str; 8] = [
    "it runs in a process of its own, as the next test starts it",
    "run by another test as the parent that it kills",
    "run by the other test as its child process",
    "run by the other tests as their child process",
    "run by the test below as a parent that dies",
    "runs until it is killed",
    "the process that a test of threads starts",
    "the process that the tests of a kill start",
];

/// The command that runs tests over DPDK.
const OVER_DPDK: &str = "make test-dpdk";

/// What stands in Cargo.toml and above a module where the feature of DPDK is asked for.
const FEATURE: &str = "\"dpdk\"";

/// Functions of all sources by name. Of several of one name the first one decides.
#[derive(Default)]
struct Functions<'a> {
    by_name: HashMap<&'a str, Kind>,
    run: usize,
    over_dpdk: usize,
    /// Tests that nothing runs: they are ignored, and for no reason of [`OF_ANOTHER`].
    never_run: Vec<&'a str>,
}

impl<'a> Functions<'a> {
    /// Adds those of a text whose lines begin with attributes, one a line, and then `fn NAME(`.
    fn read(&mut self, text: &'a str, needs_dpdk: bool) {
        let mut attributes = Vec::new();
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("#[") {
                attributes.push(line);
                continue;
            }
            if let Some((name, _)) = line.strip_prefix("fn ").and_then(|rest| rest.split_once('('))
            {
                self.never_run.extend(is_never_run(&attributes).then_some(name));
                let kind = match kind(&attributes) {
                    Kind::Test if needs_dpdk => Kind::OverDpdk,
                    kind => kind,
                };
                self.run += usize::from(kind == Kind::Test);
                self.over_dpdk += usize::from(kind == Kind::OverDpdk);
                self.by_name.entry(name).or_insert(kind);
            }
            attributes.clear();
        }
    }

    fn kind(&self, name: &str) -> Kind {
        self.by_name.get(name).copied().unwrap_or(Kind::Other)
    }
}

fn kind(attributes: &[&str]) -> Kind {
    let has = |begin: &str| attributes.iter().any(|line| line.starts_with(begin));
    if has("#[test]") && !has("#[ignore") { Kind::Test } else { Kind::Other }
}

fn is_never_run(attributes: &[&str]) -> bool {
    let ignored = attributes.iter().find(|line| line.starts_with("#[ignore"));
    let of_another = |line: &&str| {
        let reason = line.strip_prefix("#[ignore = \"").and_then(|rest| rest.strip_suffix("\"]"));
        reason.is_some_and(|reason| OF_ANOTHER.contains(&reason))
    };
    attributes.iter().any(|line| line.starts_with("#[test]"))
        && ignored.is_some_and(|line| !of_another(line))
}

/// What is wrong, and prints how much is promised.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let path = root.join("SPECIFICATION.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let over_dpdk = over_dpdk(root)?;
    let mut sources = Vec::new();
    for folder in ["crates", "tests", "accept", "xtask"] {
        for file in crate::files(&root.join(folder), "rs")? {
            let needs_dpdk = over_dpdk.iter().any(|of| file.starts_with(of));
            sources.push((std::fs::read_to_string(file)?, needs_dpdk));
        }
    }
    let mut functions = Functions::default();
    for (text, needs_dpdk) in &sources {
        functions.read(text, *needs_dpdk);
    }
    let figures = Figures::read(root)?;
    let mut faults = judge(&text, &functions);
    faults.extend(figures.judge(&text));
    let never_run = |name: &&str| {
        format!(
            "{name} is ignored, and for none of the reasons in xtask/src/promises.rs: no other test runs it"
        )
    };
    faults.extend(functions.never_run.iter().map(never_run));
    println!(
        "{} tests always run, {} by `{OVER_DPDK}` alone, {} figures are taken",
        functions.run,
        functions.over_dpdk,
        figures.files.len()
    );
    Ok(faults)
}

/// Files and folders that are compiled with the feature of DPDK alone: programs of tests that require it, and
/// modules of a library that it is asked of.
fn over_dpdk(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for manifest in crate::files(&root.join("crates"), "toml")? {
        let package = manifest.parent().unwrap_or(root);
        for program in std::fs::read_to_string(&manifest)?.split("[[test]]").skip(1) {
            let needs = program.lines().any(|of| is_asked(of, "required-features"));
            let path = program.lines().find_map(|of| of.strip_prefix("path = "));
            let path = path.map(|of| package.join(of.trim_matches('"')));
            found.extend(path.filter(|_| needs).map(|of| match of.parent() {
                Some(folder) if of.ends_with("main.rs") => folder.to_owned(),
                _ => of,
            }));
        }
        let library = package.join("src/lib.rs");
        let text =
            if library.is_file() { std::fs::read_to_string(library)? } else { String::new() };
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| is_asked(pair[0], "#[cfg(feature")) {
            let Some((_, name)) = pair[1].trim_end_matches(';').split_once("mod ") else {
                continue;
            };
            found.push(package.join(format!("src/{name}.rs")));
            found.push(package.join("src").join(name));
        }
    }
    Ok(found)
}

/// Is this line of this form, and asks for the feature of DPDK?
fn is_asked(line: &str, form: &str) -> bool {
    line.starts_with(form) && line.contains(FEATURE)
}

/// Live figures: each a file of `accept/src/figures/`, and a line or more of the newest table.
struct Figures {
    files: BTreeSet<String>,
    table: String,
}

impl Figures {
    fn read(root: &Path) -> Result<Self> {
        let names = crate::files(&root.join("accept/src/figures"), "rs")?;
        let name = |path: &Path| path.file_stem().map(|of| of.to_string_lossy().into_owned());
        let files = names.iter().filter_map(|path| name(path)).collect();
        let tables = root.join("acceptance");
        let tables = if tables.is_dir() { crate::files(&tables, "md")? } else { Vec::new() };
        let table = match tables.last() {
            Some(newest) => std::fs::read_to_string(newest)?,
            None => String::new(),
        };
        Ok(Self { files, table })
    }

    /// Figures that a row names and that are none, those that no table has, and those that no row names.
    fn judge(&self, specification: &str) -> Vec<String> {
        let rows = specification.lines().filter(|line| line.starts_with("| P"));
        let named: BTreeSet<&str> =
            rows.flat_map(quoted).filter_map(|word| word.strip_prefix("figure:")).collect();
        let mut faults = Vec::new();
        for name in &named {
            if !self.files.contains(*name) {
                faults.push(format!("SPECIFICATION.md: there is no figure:{name}"));
            } else if !self.table.lines().any(|line| line.starts_with(&format!("| `{name}` |"))) {
                faults.push(format!("acceptance: the newest table has no row of {name}"));
            }
        }
        let unnamed = self.files.iter().filter(|name| !named.contains(name.as_str()));
        faults.extend(unnamed.map(|name| format!("SPECIFICATION.md: no row names figure:{name}")));
        faults
    }
}

/// What stands between backquotes.
fn quoted(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2)
}

/// Rows of the specification that name neither a test nor a figure, and tests of them that are none.
fn judge(specification: &str, functions: &Functions<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    for row in specification.lines().filter(|line| line.starts_with("| P")) {
        let promised: Vec<&str> = quoted(row).filter(|word| word.starts_with("test:")).collect();
        if promised.is_empty() && !quoted(row).any(|word| word.starts_with("figure:")) {
            faults.push(format!("SPECIFICATION.md: names neither a test nor a figure: {row}"));
        }
        let of = |name: &str| {
            functions.kind(name.trim_start_matches("test:").rsplit("::").next().unwrap_or(""))
        };
        for name in promised.iter().filter(|name| of(name) == Kind::Other) {
            faults.push(format!("SPECIFICATION.md: there is no test {name} that always runs"));
        }
        let named = quoted(row).any(|word| word == OVER_DPDK);
        for name in promised.iter().filter(|name| of(name) == Kind::OverDpdk && !named) {
            faults.push(format!(
                "SPECIFICATION.md: {name} runs by `{OVER_DPDK}` alone, which its row does not name"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Figures, Functions, Kind, OF_ANOTHER, judge, over_dpdk};

    /// Of each kind of function one; of `doubled` a test in one module and an ignored one in another, of
    /// `behind` the other way about.
    const SOURCES: &str = "fn helper() {}\n#[test]\nfn runs() {}\n\
        mod a {\n    #[test]\n    #[ignore = \"slow\"]\n    fn ignored() {}\n\
        #[ignore]\n#[test]\nfn behind() {}\n#[test]\nfn doubled() {}\n}\n\
        mod b {\n#[test]\n#[ignore]\nfn doubled() {}\n#[test]\nfn behind() {}\n}\n\
        #[test]\n\nfn apart() {}\n#[test]\nconst BETWEEN: u8 = 0;\nfn after() {}\n\
        #[test]\n#[cfg(unix)]\nfn with_more() {}\n\
        #[inline]\nfn no_test() {}\n";

    fn functions(of: &str) -> Functions<'_> {
        let mut found = Functions::default();
        found.read(of, false);
        found
    }

    fn row(test: &str) -> String {
        format!("| P1 | a promise | `{test}` | `cmd` |\n")
    }

    #[test]
    fn a_promise_is_kept_by_a_test_that_runs_and_not_by_an_ignored_or_a_missing_one() {
        let functions = functions(SOURCES);
        let of = |test: &str| judge(&row(test), &functions);
        for kept in ["test:runs", "test:crate a::tests::runs", "test:with_more"] {
            assert!(of(kept).is_empty(), "{kept}");
        }
        let broken = ["ignored", "missing", "helper", "apart", "after", "run", "no_test", ""];
        for broken in broken {
            let name = format!("test:{broken}");
            let said = format!("SPECIFICATION.md: there is no test {name} that always runs");
            assert_eq!(of(&name), [said]);
        }
        assert!(of("cargo test runs")[0].contains("names neither"));
        // Rows of other tables promise nothing, and each test of a row is asked for.
        let other = "| No | Promise |\n|----|\ntext `test:missing`\n";
        assert_eq!(judge(other, &functions).len(), 0);
        let row = "| P2 | two | `test:runs`, `test:missing`, `test:ignored` | |";
        assert_eq!(judge(row, &functions).len(), 2);
    }

    #[test]
    fn what_is_ignored_is_run_by_another_test() {
        assert_eq!(functions(SOURCES).never_run, ["ignored", "behind", "doubled"]);
        let ignored =
            |reason: &str| format!("#[test]\n#[ignore = \"{reason}\"]\nfn child() {{}}\n");
        for reason in OF_ANOTHER {
            assert_eq!(functions(&ignored(reason)).never_run, [""; 0], "{reason}");
        }
        // No word makes a reason one of them.
        let others = [
            "its child process is flaky",
            "runs until it is killed by noise",
            "the parent process",
        ];
        for reason in others {
            assert_eq!(functions(&ignored(reason)).never_run, ["child"], "{reason}");
        }
    }

    #[test]
    fn a_figure_exists_is_named_by_a_row_and_has_a_line_in_the_newest_table() {
        let files = ["told", "new"].map(str::to_owned).into();
        let table =
            "| figure | claim |\n| `told` | p50 | not met |\n| `gone` | p50 | met |\n".to_owned();
        let figures = Figures { files, table };
        let row =
            |name: &str| format!("| P1 | a promise | `test:runs`, `figure:{name}` | `cmd` |\n");
        assert!(figures.judge(&(row("told") + &row("told"))).iter().all(|of| of.ends_with(":new")));
        let of = figures.judge(&(row("told") + &row("new") + &row("gone")));
        let expected = [
            "SPECIFICATION.md: there is no figure:gone",
            "acceptance: the newest table has no row of new",
        ];
        assert_eq!(of, expected);
        let row = "| P2 | two | `figure:told` | |";
        assert!(judge(row, &functions(SOURCES)).is_empty());
    }

    #[test]
    fn of_two_tests_of_one_name_in_different_modules_the_first_one_decides() {
        let functions = functions(SOURCES);
        assert_eq!(functions.kind("doubled"), Kind::Test);
        assert_eq!(functions.kind("behind"), Kind::Other);
    }
    #[test]
    fn a_test_over_dpdk_keeps_a_promise_only_where_its_command_stands() {
        let home = tempfile::tempdir().unwrap();
        let package = home.path().join("crates/with");
        for (path, text) in [
            (
                "Cargo.toml",
                "[[test]]\nname = \"all\"\npath = \"tests/all.rs\"\n\n[[test]]\nname = \"one\"\n\
                 path = \"tests/one/main.rs\"\nrequired-features = [\"dpdk\"]\n",
            ),
            (
                "src/lib.rs",
                "#[cfg(feature = \"dpdk\")]\npub mod behind;\n#[cfg(feature = \"schema\")]\nmod other;\nmod a;\n",
            ),
        ] {
            let path = package.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = over_dpdk(home.path()).unwrap();
        let expected = ["tests/one", "src/behind.rs", "src/behind"].map(|of| package.join(of));
        assert_eq!(found, expected);
        let mut functions = Functions::default();
        functions.read("#[test]\nfn sent() {}\n", true);
        functions.read("#[test]\nfn told() {}\n", false);
        assert_eq!((functions.run, functions.over_dpdk), (1, 1));
        let row = |test: &str, by: &str| format!("| P1 | a promise | `test:{test}` | `{by}` |\n");
        assert!(judge(&row("sent", "make test-dpdk"), &functions).is_empty());
        assert!(judge(&row("told", "make test"), &functions).is_empty());
        let said = judge(&row("sent", "make test"), &functions);
        assert_eq!(
            said,
            [
                "SPECIFICATION.md: test:sent runs by `make test-dpdk` alone, which its row does not name"
            ]
        );
    }
}
