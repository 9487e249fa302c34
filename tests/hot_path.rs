//! The measuring loops as compiled into the program.

use std::process::Command;

use crate::{needs, program};

/// The inner loop is ten instructions; more than twice that is another loop.
const LONGEST: usize = 20;

#[test]
fn the_chain_loop_reads_the_counter_once_and_calls_nothing() {
    reads_once_and_calls_nothing(&["hot::chain>:", "hot::chain::<"]);
}

#[test]
fn the_loop_of_a_runner_reads_the_counter_once_and_calls_nothing() {
    reads_once_and_calls_nothing(&["switch_cost::hot::run>:", "switch_cost::hot::run::<"]);
}

/// Of all functions with such a headline one has a loop that does nothing but read the counter.
fn reads_once_and_calls_nothing(headlines: &[&str]) {
    let _alone = program::alone();
    if !cfg!(target_arch = "x86_64") {
        return needs::missing("the listing is read for x86-64 only");
    }
    let Some(objdump) = needs::program("objdump") else { return };
    let arguments = ["--disassemble", "--demangle", "--no-show-raw-insn"];
    let output = Command::new(objdump).args(arguments).arg(program::path()).output().unwrap();
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let loops: Vec<Vec<&str>> = headlines
        .iter()
        .flat_map(|headline| functions(&listing, headline))
        .filter_map(|function| innermost(&function))
        .collect();
    assert!(!loops.is_empty(), "no loop around the counter was found in the program");
    let pure = loops.iter().filter(|lines| {
        let count = |word: &str| lines.iter().filter(|line| line.contains(word)).count();
        lines.len() <= LONGEST && count("rdtsc") == 1 && count("call") == 0
    });
    assert!(pure.count() >= 1, "every loop calls something or is long:\n{loops:#?}");
}

/// Instructions of each function whose headline contains `name`.
fn functions<'a>(listing: &'a str, name: &str) -> impl Iterator<Item = Vec<&'a str>> {
    listing
        .split("\n\n")
        .filter(move |text| text.lines().next().is_some_and(|line| line.contains(name)))
        .map(|text| text.lines().skip(1).collect())
}

/// The shortest backward jump that spans a reading of the counter.
fn innermost<'a>(function: &[&'a str]) -> Option<Vec<&'a str>> {
    let address = |line: &str| u64::from_str_radix(line.split(':').next()?.trim(), 16).ok();
    let spans = function.iter().enumerate().filter_map(|(end, line)| {
        let mut words = line.split(':').nth(1)?.split_whitespace();
        let jump = words.next()?.starts_with('j');
        let target = u64::from_str_radix(words.next()?, 16).ok().filter(|_| jump)?;
        let begin = function[..end].iter().position(|line| address(line) == Some(target))?;
        let lines = &function[begin..=end];
        lines.iter().any(|line| line.contains("rdtsc")).then(|| lines.to_vec())
    });
    spans.min_by_key(Vec::len)
}
