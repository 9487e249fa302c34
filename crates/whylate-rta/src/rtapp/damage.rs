//! Damaged copies of real workloads: each is a set of threads that can be checked again, or is refused
//! with a place in the file. The bodies of the fuzz targets, run for a bounded number of cases.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// Where Debian's package of rt-app puts its examples; used where it is installed.
const SHIPPED: &str = "/usr/share/doc/rt-app/examples";
/// What turns one thing into another, or is larger than anything meant.
const TOKENS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "/*",
    "*/",
    "//",
    "-1",
    "0",
    "1e308",
    "-9223372036854775808",
    "99999999999999999999",
    "null",
    "true",
    "\\u0000",
    "\u{0}",
    "\u{202e}",
    "phases",
    "loop",
    "fork",
    "unique",
];

/// Every workload in the repository, and those of the package.
fn workloads() -> &'static [String] {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(read_all)
}

fn read_all() -> Vec<String> {
    fn below(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                below(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
        }
    }
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut files = Vec::new();
    for folder in
        [&format!("{repository}/examples"), &format!("{repository}/tests/rt-app"), SHIPPED]
    {
        below(Path::new(folder), &mut files);
    }
    files.sort();
    let read = |path: &PathBuf| String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    files.iter().map(read).collect()
}

/// One thing that happens to a text.
#[derive(Debug, Clone)]
enum Damage {
    Cut(Index, usize),
    Twice(Index, usize),
    Insert(Index, &'static str),
    Overwrite(Index, Vec<u8>),
    /// Something of another workload in the place of something.
    Graft(Index, usize, Index, Index, usize),
    End(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        (at(), 1..60_usize).prop_map(|(at, length)| Damage::Cut(at, length)),
        (at(), 1..400_usize).prop_map(|(at, length)| Damage::Twice(at, length)),
        (at(), prop::sample::select(&TOKENS[..])).prop_map(|(at, text)| Damage::Insert(at, text)),
        (at(), prop::collection::vec(any::<u8>(), 1..6))
            .prop_map(|(at, bytes)| Damage::Overwrite(at, bytes)),
        (at(), 0..200_usize, at(), at(), 1..400_usize).prop_map(
            |(at, length, other, from, taken)| { Damage::Graft(at, length, other, from, taken) }
        ),
        at().prop_map(Damage::End),
    ]
}

impl Damage {
    fn to(&self, text: &mut Vec<u8>, all: &[String]) {
        let place = |at: &Index, text: &[u8]| at.index(text.len() + 1);
        let range = |from: usize, length: usize, text: &[u8]| from..(from + length).min(text.len());
        match self {
            Self::Cut(at, length) => {
                let cut = range(place(at, text), *length, text);
                text.drain(cut);
            }
            Self::Twice(at, length) => {
                let from = place(at, text);
                let copy = text[range(from, *length, text)].to_vec();
                text.splice(from..from, copy);
            }
            Self::Insert(at, token) => {
                let from = place(at, text);
                text.splice(from..from, token.bytes());
            }
            Self::Overwrite(at, bytes) => {
                let over = range(place(at, text), bytes.len(), text);
                text.splice(over, bytes.iter().copied());
            }
            Self::Graft(at, length, other, from, taken) => {
                let other = all[other.index(all.len())].as_bytes();
                let graft = &other[range(place(from, other), *taken, other)];
                let over = range(place(at, text), *length, text);
                text.splice(over, graft.iter().copied());
            }
            Self::End(at) => {
                let end = place(at, text);
                text.truncate(end);
            }
        }
    }
}

/// The place that a message begins with lies in the text, or just behind it.
fn has_a_place(told: &str, text: &str) -> bool {
    let number = |name: &str, end: char| {
        let rest = &told[told.find(name)? + name.len()..];
        rest[..rest.find(end)?].parse::<usize>().ok()
    };
    let (Some(line), Some(column)) = (number("line ", ','), number("column ", ':')) else {
        return false;
    };
    // The end of a text that ends with its line lies on the next.
    let length = text.split('\n').nth(line - 1).map(|line| line.chars().count());
    told.starts_with("line ") && length.is_some_and(|length| (1..=length + 1).contains(&column))
}

fn judge(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(read) => prop_assert!(read.set.check().is_ok(), "checked, and then refused"),
        Err(error) => {
            let told = error.to_string();
            prop_assert!(told.len() < 20_000, "a message of {} bytes", told.len());
            prop_assert!(has_a_place(&told, text), "{}", told);
        }
    }
    if let Ok(node) = json::read(text) {
        let printed = node.value.to_string();
        let again = json::read(&printed).map(|node| node.value.to_string());
        prop_assert_eq!(again, Ok(printed), "printed, and read back otherwise");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn damaged_workloads_are_sets_or_refused_with_a_place(
        which in any::<Index>(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let all = workloads();
        let mut text = all[which.index(all.len())].clone().into_bytes();
        for damage in &damages {
            damage.to(&mut text, all);
        }
        judge(&String::from_utf8_lossy(&text))?;
    }
}

#[test]
fn the_workloads_themselves_are_judged_and_some_of_them_are_sets() {
    let all = workloads();
    for text in all {
        judge(text).unwrap();
    }
    assert!(all.iter().filter(|text| parse(text).is_ok()).count() > 8);
    assert!(!has_a_place("line 3, column 1: what", "one\ntwo"), "this check can fail");
}

#[test]
fn a_cpu_is_known_by_the_place_where_it_is_named_first() {
    let text = "{ \"tasks\" : { \"a\" : { \"cpus\" : [2, 5],\n \"phases\" : { \"p\" : { \"cpus\" : [0, 2],\n \
                \"run\" : 1 } } } } }";
    let found: Vec<(u32, usize, usize)> =
        parse(text).unwrap().cpus.iter().map(|(cpu, at)| (cpu.0, at.line, at.column)).collect();
    assert_eq!(found, [(0, 2, 33), (2, 1, 33), (5, 1, 36)]);
}
