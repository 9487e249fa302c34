//! What `make accept` would do: every figure once, in less than thirty-six minutes, in rounds that are long
//! enough to be judged and so many that one may be left out; and what the committed table has of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use accept::table;
use whylate_stats::quantile;

/// All of them together, in seconds: a machine that is slower still ends within forty minutes.
const LONGEST: f64 = 36.0 * 60.0;
/// What others took is counted in hundredths of a second: what decides over a round is several of them.
const LEAST_DECIDING: f64 = 0.05;

/// What the program says to this word.
fn said(word: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_accept")).arg(word).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A file of this repository.
fn text(path: &Path) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Rounds of each figure, those that are taken by their whole names alone among them.
fn rounds() -> BTreeMap<String, u64> {
    let list = said("--list");
    let lines = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // NAME ROUNDS x SECONDS s MOST METHOD
    let of = lines.filter(|words| words.get(2) == Some(&"x"));
    of.map(|words| (words[0].to_owned(), words[1].parse().expect("rounds"))).collect()
}

#[test]
fn where_a_round_may_be_left_out_as_many_are_planned_as_give_an_interval_without_it() {
    let has_interval = |rounds: &u64| quantile::ranks(*rounds, 0.5).high.is_some();
    let least = (1..100).find(has_interval).unwrap() + 1;
    let mut found = 0;
    for (name, rounds) in rounds() {
        // What a round yields is in its source alone.
        let source = text(&Path::new("src/figures").join(format!("{name}.rs")));
        let has = |words: &str| source.contains(words);
        let is_bounded = ["AtLeast(", "AtMost(", "Within("].iter().any(|bound| has(bound));
        if has("most_taken: Some(") && has("Reading::Value") && is_bounded {
            found += 1;
            assert!(rounds >= least, "{name}: {rounds} rounds, {least} at least");
        }
    }
    assert!(found > 10, "{found} figures alone read one value a round");
}

#[test]
fn figures_of_frames_beside_peers_have_six_rounds_at_least() {
    let specification = text(Path::new("../SPECIFICATION.md"));
    let row = specification.lines().find(|line| line.starts_with("| P771 |")).unwrap();
    let named: Vec<&str> = row.split('`').filter_map(|word| word.strip_prefix("figure:")).collect();
    assert!(named.len() > 4, "{named:?}");
    let rounds = rounds();
    for name in named {
        assert!(rounds[name] >= 6, "{name}: {} rounds", rounds[name]);
    }
}

/// The newest table that is committed, with what writes it anew.
fn committed() -> (String, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../acceptance");
    let newest = table::newest(&folder).expect("a folder").expect("a table is committed");
    let name = newest.file_name().expect("a name").to_string_lossy();
    (text(&newest), format!("acceptance/{name}: cargo run --release -p accept -- --table"))
}

#[test]
fn the_committed_table_has_a_row_in_the_words_of_each_claim_and_no_other() {
    let (table, again) = committed();
    let claims = said("--claims");
    let claims: Vec<&str> = claims.lines().collect();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let wrong = |(claim, row): &(&&str, &&str)| !row.starts_with(**claim);
    if let Some((claim, row)) = claims.iter().zip(&rows).find(wrong) {
        panic!("{again}: {claim} is claimed where it has {row}");
    }
    assert_eq!(rows.len(), claims.len(), "{again}");
    assert!(!rows.is_empty());
}

#[test]
fn rows_of_the_committed_table_that_rest_on_one_round_say_so() {
    let (table, again) = committed();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let mut found = 0;
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [.., rounds, _, verdict, _] = cells.as_slice() else { panic!("{again}: {row}") };
        if rounds.split(',').next() == Some("1") {
            found += 1;
            assert_ne!(*verdict, "met", "{again}: {row}");
        }
    }
    assert!(found > 0, "{again}: no figure is taken once");
}

#[test]
fn the_committed_table_begins_with_what_its_verdicts_mean() {
    let (table, again) = committed();
    assert!(table.starts_with(table::HEAD), "{again}");
}

#[test]
fn all_figures_together_are_planned_to_take_thirty_six_minutes_at_most_and_no_two_have_one_name() {
    let text = said("--list");
    let mut names = BTreeSet::new();
    let mut stated = 0.0;
    // Behind an empty line, all together, and those that are taken by their names alone.
    let (each, rest) = text.split_once("\n\n").unwrap();
    for line in each.lines() {
        // NAME ROUNDS x SECONDS s MOST METHOD
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(names.insert(words[0].to_owned()), "two figures are called {}", words[0]);
        let (rounds, each): (f64, f64) = (words[1].parse().unwrap(), words[3].parse().unwrap());
        assert!(words.len() > 6, "{line}: how is it taken?");
        if let Some(most) = words[5].strip_suffix('%').and_then(|of| of.parse::<f64>().ok()) {
            assert!(each * most / 100.0 >= LEAST_DECIDING, "{line}: too short to be judged");
        }
        stated += rounds * each;
    }
    let told = rest.lines().next().and_then(|line| line.strip_suffix(" s"));
    let (figures, planned) =
        told.and_then(|line| line.split_once(" figures, planned to take ")).unwrap();
    assert_eq!(figures.parse(), Ok(names.len()));
    let planned: f64 = planned.parse().unwrap();
    assert!(
        !names.is_empty() && stated <= planned && planned <= LONGEST,
        "{planned} s, {stated} s of rounds"
    );
}
