//! Phrases planted in each place where they may be read, in each that no user reads, and around values.

use super::*;

const PHRASES: &str = "# a comment\n\nnamed after => by cause\nhost => this machine | within: host-a, of the host\n\
                       what did * not get => lost time | except: docs/src/old.md\ngap => stall | only: output, script\n";
/// The list that is committed.
const COMMITTED: &str = include_str!("../../../docs/phrases.txt");

fn faults_of(list: &str, files: &[(&str, &str)]) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in [&[(LIST, list)], files].concat() {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    check(root.path()).unwrap()
}

fn faults(files: &[(&str, &str)]) -> Vec<String> {
    faults_of(PHRASES, files)
}

#[test]
fn a_phrase_is_found_wherever_a_user_reads_it() {
    let said = "\"named after\"; say: by cause";
    let planted = [
        ("README.md", "Misses are named\nafter their cause."),
        ("docs/src/threads.md", "NAMED AFTER"),
        ("tests/snapshots/a.snap", "misses named after: x"),
        ("tests/snapshots/b.snap", "<p>misses <b>named</b> after: x</p>"),
        ("tests/cli/help.trycmd", "  named after"),
        ("crates/a/src/b.rs", "fn b() -> &'static str { \"misses are named \\\n   after\" }"),
        ("crates/whylate/src/cli/c.rs", "/// What misses are named\n/// after.\nstruct C;"),
        ("crates/a/assets/page.js", "// A line.\nlet a = 1 / 2, b = `named after ${cause}`;"),
    ];
    for (path, text) in planted {
        assert_eq!(faults(&[(path, text)]), [format!("{path}: {said}")]);
    }
}

/// Five phrases of the committed list, each in another kind of place, two of them around a value.
#[test]
fn five_phrases_of_the_committed_list_are_found_by_name() {
    let planted = [
        ("README.md", "It names what\ntook them.", "names what took them"),
        (
            "docs/src/wake.md",
            "Half of the wake-ups\ncame within 42 us.",
            "half of the wake-ups came within",
        ),
        (
            "crates/whylate/src/cli/a.rs",
            "/// Requests under way at\n/// most.\nstruct A;",
            "under way",
        ),
        (
            "tests/snapshots/a.snap",
            "What did a busy thread on CPU 1 not get in 1.00s, and who took it?",
            "what did a busy thread * not get",
        ),
        (
            "crates/a/src/b.rs",
            "fn b(n: u64) -> String { format!(\"the largest part beyond what jobs in time \\\n    lose is \
             {n}: they are {} named \\\n  after\", n) }\nfn c(n: u64) -> Sentence { sentence![\"What did a busy \
             thread on CPU \", Name::of(n), \" not get?\"] }",
            "what did a busy thread * not get",
        ),
    ];
    for (path, text, phrase) in planted {
        let found = faults_of(COMMITTED, &[(path, text)]);
        let named = format!("{path}: \"{phrase}\"; say: ");
        assert!(found.iter().any(|fault| fault.starts_with(&named)), "{path}: {found:?}");
    }
    let all: Vec<_> = planted.iter().map(|(path, text, _)| (*path, *text)).collect();
    assert!(faults_of(COMMITTED, &all).len() >= planted.len());
}

#[test]
fn a_star_is_a_few_words_of_one_text_or_a_value_in_it() {
    let source = |text: &str| format!("fn b() {{ let _ = ({text}); }}");
    let found = |text: &str| !faults(&[("crates/a/src/b.rs", &source(text))]).is_empty();
    assert!(found("format!(\"What did {who} not get in {time:.2}?\")"));
    assert!(found("sentence![\"What did \", Name::of(who), \" not get\"]"));
    assert!(found("\"what did the one of the two not get\""));
    assert!(!found("\"what did not get\""), "a star is a word at least");
    assert!(!found("\"what did one two three four five six seven not get\""));
    assert!(!found("(\"what did\", \"one\", \"not get\")"), "three texts");
}

#[test]
fn what_no_user_reads_may_hold_it() {
    let files = [
        ("ARCHITECTURE.md", "named after"),
        ("crates/a/src/b.rs", "/// named after\nfn b() {} // named after"),
        ("crates/a/src/c.rs", "#[cfg(test)]\nmod tests { const A: &str = \"named after\"; }"),
        ("crates/a/src/b/tests.rs", "const A: &str = \"named after\";"),
        ("crates/a/assets/uplot/c.js", "let a = \"named after\";"),
        ("crates/a/assets/c.js", "// named after\n/* named after */ let a = b.named.after;"),
        ("tests/d.rs", "const A: &str = \"named after\";"),
        ("tests/snapshots/e.snap", "<p class=\"named after\">1 < 2</p>"),
        ("README.md", "It is renamed after; named afterwards."),
    ];
    assert_eq!(faults(&files), Vec::<String>::new());
}

#[test]
fn a_phrase_may_be_a_part_of_the_longer_ones_that_its_line_names() {
    assert_eq!(faults(&[("README.md", "host-a and the name of the host; hosts")]), [""; 0]);
    assert_eq!(faults(&[("README.md", "the host")]).len(), 1);
}

#[test]
fn a_phrase_is_looked_for_in_the_places_that_its_line_names() {
    for (path, found) in [
        ("docs/src/old.md", 0),
        ("docs/src/new.md", 1),
        ("tests/snapshots/a.snap", 2),
        ("crates/a/assets/a.js", 2),
    ] {
        let text = "\"what did they not get; a gap\"";
        assert_eq!(faults(&[(path, text)]).len(), found, "{path}");
    }
}

#[test]
fn a_line_that_says_nothing_instead_or_names_no_place_is_no_part_of_the_list() {
    for line in
        ["named after", "a => b | only: nowhere", "a => b | except: nowhere", "a => b | within"]
    {
        assert!(list::read(line).is_err(), "{line}");
    }
}
