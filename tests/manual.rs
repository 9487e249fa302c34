//! Outputs in the README and in the manual: each is what the program prints of a run that is kept.
//!
//! Above a block with an output stands where it comes from, as a comment that no reader sees:
//!
//! - `<!-- recorded: tests/runs/gaps as small -->`: the run that the command left, by the name that the command
//!   gives it. What the program prints of it today is what the block shows. A command of the block that reads
//!   runs (`report`, `compare`, `merge`) or computes (`rta`) is run as it stands there.
//! - `<!-- computed -->`: of no run; the command is run as it stands there.
//! - `<!-- refused on CPUs 0-1 -->`: the command is refused with these words, on a machine with these CPUs.
//! - `<!-- planted: doctor__doctor -->`: of what no run can be kept, a first screen of planted values, which a test
//!   of the crate that writes it has pinned under this name.
//!
//! A line `...` stands for lines that are left out. `UPDATE_MANUAL=1` writes the outputs anew: a part between two
//! such lines from the line with which it begins, where that is still printed; otherwise that is done by hand.

use std::ops::Range;
use std::path::Path;

use whylate_model::paper::Paper;

use crate::{directories, program};

/// Commands that read runs, or compute: they print the same again, but for `rta --run`, which measures.
const REPEATABLE: [&str; 4] = ["compare", "merge", "report", "rta"];

/// Where first screens of planted values are pinned, up to their names.
const SCREENS: &str =
    "crates/whylate-report/src/first/tests/snapshots/whylate_report__first__tests__";

/// A block of a page with what stands above it.
#[derive(Debug)]
struct Block {
    above: String,
    shown: Vec<Shown>,
}

/// A command, if one stands there, and the lines that it printed.
#[derive(Debug, Default)]
struct Shown {
    command: String,
    said: Vec<String>,
    /// Where in the page they stand.
    at: Range<usize>,
}

/// Blocks of a page in which an output stands.
fn blocks(page: &str) -> Vec<Block> {
    let lines: Vec<&str> = page.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let begins = ["```text", "```console"].contains(&lines[at]);
        let is_fence = lines[at].starts_with("```");
        let begin = at + 1;
        at = begin;
        if !is_fence {
            continue;
        }
        while lines.get(at).is_some_and(|line| *line != "```") {
            at += 1;
        }
        let shown = shown(&lines, begin..at.min(lines.len()));
        if begins && shown.iter().any(|one| one.said.iter().any(|line| !line.is_empty())) {
            let above = begin.checked_sub(2).map_or("", |above| lines[above]);
            found.push(Block { above: above.to_owned(), shown });
        }
        at += 1;
    }
    found
}

fn shown(lines: &[&str], within: Range<usize>) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut unfinished = false;
    for at in within {
        let line = lines[at];
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(Shown { command: command.to_owned(), said: Vec::new(), at: at + 1..at + 1 });
        } else if unfinished && let Some(last) = found.last_mut() {
            last.command = format!("{} {}", last.command.trim_end_matches('\\'), line.trim());
            last.at = at + 1..at + 1;
        } else {
            if found.is_empty() {
                found.push(Shown { at: at..at, ..Shown::default() });
            }
            if let Some(last) = found.last_mut() {
                last.said.push(line.to_owned());
                last.at.end = at + 1;
            }
        }
        unfinished = line.ends_with('\\') && (unfinished || line.starts_with("$ "));
    }
    found
}

/// Where an output comes from.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// Directories below this repository, each with its name in the block; none where nothing is read.
    Recorded(Vec<(String, String)>),
    Refused,
    /// A snapshot of the tests of first screens.
    Planted(String),
}

fn source(above: &str) -> Option<Source> {
    let words = above.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    match words {
        "refused on CPUs 0-1" => Some(Source::Refused),
        "computed" => Some(Source::Recorded(Vec::new())),
        _ => {
            if let Some(name) = words.strip_prefix("planted: ") {
                return Some(Source::Planted(name.to_owned()));
            }
            let runs = words.strip_prefix("recorded: ")?.split(", ");
            let named = runs.map(|run| {
                run.split_once(" as ").map(|(place, name)| (place.to_owned(), name.to_owned()))
            });
            named.collect::<Option<_>>().map(Source::Recorded)
        }
    }
}

/// Does an output read so, where `...` stands for any lines, none of them among them?
fn reads_so(expected: &[String], said: &[&str]) -> bool {
    let mut parts = expected.split(|line| line == "...");
    let first = parts.next().unwrap_or_default();
    if said.len() < first.len() || first.iter().zip(said).any(|(one, other)| one != other) {
        return false;
    }
    let mut rest = &said[first.len()..];
    let parts: Vec<&[String]> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between.iter().filter(|part| !part.is_empty()) {
        let found = rest.windows(part.len()).position(|lines| lines == *part);
        let Some(at) = found else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.len() >= last.len() && &rest[rest.len() - last.len()..] == *last
}

/// What is shown of an output as it reads today: of each part as many lines as there were, up to a blank one.
fn renewed(shown: &[String], said: &[&str]) -> Vec<String> {
    let mut parts = shown.split(|line| line == "...");
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let first = parts.next().unwrap_or_default();
    if first.len() == shown.len() {
        return owned(said);
    }
    let mut rest = &said[first.len().min(said.len())..];
    let mut anew = owned(&said[..said.len() - rest.len()]);
    for part in parts {
        anew.push("...".to_owned());
        let begins = part.first();
        let Some(at) = rest.iter().position(|line| begins.is_some_and(|of| of == line)) else {
            anew.extend_from_slice(part);
            continue;
        };
        let has_blank = part.iter().any(String::is_empty);
        let lines = rest[at..].iter().take(part.len());
        let lines: Vec<&str> =
            lines.copied().take_while(|of| has_blank || !of.is_empty()).collect();
        anew.extend(owned(&lines));
        rest = &rest[at + lines.len()..];
    }
    anew
}

/// The words of a command line; what stands behind a `#` is a remark.
fn words(command: &str) -> Vec<String> {
    shlex::split(command).unwrap_or_else(|| panic!("{command}: a quote is not closed"))
}

/// Is each word of a command one that was typed, in this order? `--full` is about what is printed.
fn was_typed(words: &[String], typed: &[String]) -> bool {
    let mut typed = typed.iter();
    words.iter().filter(|word| *word != "--full").all(|word| typed.any(|one| one == word))
}

/// What is wrong with a block, and what its commands print today, where all of that is shown.
#[derive(Debug, Default)]
struct Judged {
    faults: Vec<String>,
    today: Vec<(Range<usize>, Vec<String>)>,
}

fn judged(page: &str, block: &Block) -> Judged {
    let mut judged = Judged::default();
    let commands: Vec<&str> = block.shown.iter().map(|one| one.command.as_str()).collect();
    let named = format!("{page}: {}", commands.join("; "));
    let source = source(&block.above);
    let recorded = match &source {
        Some(Source::Recorded(recorded)) => recorded.as_slice(),
        Some(Source::Refused | Source::Planted(_)) => &[],
        None => {
            judged.faults.push(format!("{named}: nothing compares this output"));
            return judged;
        }
    };
    let home = tempfile::tempdir().unwrap();
    let root = program::file("..");
    for (place, name) in recorded {
        directories::copy(&root.join(place), &home.path().join(name));
    }
    for one in block.shown.iter().filter(|one| !one.said.is_empty()) {
        let said = match &source {
            Some(Source::Planted(name)) => planted(name),
            _ => printed(home.path(), &one.command, recorded.first().map(|(_, name)| name)),
        };
        let said = match said {
            Ok(Some(said)) => said,
            Ok(None) => continue,
            Err(fault) => {
                judged.faults.push(format!("{page}: {}: {fault}", one.command));
                continue;
            }
        };
        let lines: Vec<&str> = said.lines().collect();
        if !reads_so(&one.said, &lines) {
            judged.faults.push(format!("{page}: {}: prints today:\n{said}", one.command));
        }
        judged.today.push((one.at.clone(), renewed(&one.said, &lines)));
    }
    judged
}

/// A first screen that is pinned.
fn planted(name: &str) -> Result<Option<String>, String> {
    let path = program::file("..").join(format!("{SCREENS}{name}.snap"));
    let text =
        std::fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let screen = text.splitn(3, "---\n").nth(2);
    screen.map(|screen| Some(screen.to_owned())).ok_or_else(|| format!("{name} is no snapshot"))
}

/// What a command prints; nothing where this machine is another one.
fn printed(
    home: &Path,
    command: &str,
    recorded: Option<&String>,
) -> Result<Option<String>, String> {
    let words = words(command);
    if words.first().is_none_or(|word| word != "whylate") {
        return Err("is no command of whylate".to_owned());
    }
    let run = |words: &[String]| {
        let mut whylate = program::as_used(words);
        whylate.current_dir(home).env("LC_ALL", "C.UTF-8");
        whylate.output().unwrap()
    };
    let measures = words.iter().any(|word| word == "--run");
    if !measures && words.get(1).is_some_and(|word| REPEATABLE.contains(&word.as_str())) {
        return Ok(Some(String::from_utf8(run(&words[1..]).stdout).unwrap()));
    }
    let Some(name) = recorded else {
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        if cpus.trim() != "0-1" {
            println!("{command}: not compared, because this machine has CPUs {cpus}");
            return Ok(None);
        }
        return Ok(Some(String::from_utf8(run(&words[1..]).stderr).unwrap()));
    };
    let typed = match Paper::read(&home.join(name)).unwrap() {
        Some(paper) => paper.command_line,
        None => program::read(&home.join(name)).command_line,
    };
    if !was_typed(&words, &typed) {
        return Err(format!("{name} was recorded by: {}", typed.join(" ")));
    }
    let mut report = vec!["report".to_owned(), name.clone()];
    report.extend(words.iter().filter(|word| *word == "--full").cloned());
    let said = String::from_utf8(run(&report).stdout).unwrap();
    // When it was recorded, and by what, is said of a run that is shown again.
    let again = said.starts_with("Recorded ") || said.starts_with("Merged by: ");
    let first = if again { said.find('\n').map_or(0, |end| end + 1) } else { 0 };
    Ok(Some(said[first..].to_owned()))
}

#[test]
fn each_output_in_the_manual_is_what_the_program_prints_of_a_kept_run() {
    let root = program::file("..");
    let manual = std::fs::read_dir(root.join("docs/src")).unwrap();
    let mut pages: Vec<_> = manual.map(|page| page.unwrap().path()).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    let (mut faults, mut compared) = (Vec::new(), 0);
    for path in pages {
        let page = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
        let name = path.file_name().unwrap().to_str().unwrap();
        for block in blocks(&page).iter().rev() {
            let Judged { faults: found, today } = judged(name, block);
            faults.extend(found);
            compared += 1;
            for (at, said) in today.into_iter().rev() {
                lines.splice(at, said);
            }
        }
        let anew = lines.join("\n") + "\n";
        if std::env::var_os("UPDATE_MANUAL").is_some() && anew != page {
            std::fs::write(&path, anew).unwrap();
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(compared >= 40, "{compared} outputs are few");
}

#[test]
fn an_output_that_nothing_compares_is_found_and_so_is_one_that_is_not_so() {
    let faults = |text: &str| -> Vec<String> {
        blocks(text).iter().flat_map(|block| judged("a.md", block).faults).collect()
    };
    let of_another = "```text\n$ whylate gaps\nCPU 1 lost 2%\n```\n";
    assert_eq!(faults(of_another), ["a.md: whylate gaps: nothing compares this output"]);
    let once = faults(&format!("<!-- measured once -->\n{of_another}"));
    assert_eq!(once, ["a.md: whylate gaps: nothing compares this output"]);
    let planted = |said: &str| {
        faults(&format!(
            "<!-- planted: lab__lab -->\n```text\n$ whylate lab status\n{said}\n...\n```\n"
        ))
    };
    assert_eq!(planted("1 test network is up: lab (client and server joined directly)."), [""; 0]);
    assert_eq!(planted("2 test networks are up.").len(), 1);
    assert_eq!(
        faults("```console\n$ whylate gaps\n$ whylate wake \\\n    --quick\n```\n"),
        [""; 0]
    );
    assert_eq!(faults("```sql\nSELECT 1;\n```\n"), [""; 0]);
    let computed = |said: &str| {
        faults(&format!(
            "<!-- computed -->\n```text\n$ whylate rta --task \"1ms 8ms\"\n{said}\n...\n```\n"
        ))
    };
    assert_eq!(
        computed("Yes, in theory: all deadlines are met, 7 ms or more to spare (CPU load 13%)."),
        [""; 0]
    );
    assert_eq!(computed("No.").len(), 1);
    let shown = |command: &str, lines: &str| {
        format!(
            "<!-- recorded: tests/runs/gaps as a -->\n```text\n$ whylate {command}\n{lines}\n```\n"
        )
    };
    let answer = "CPU 1 lost 1.9% of its time (95% CI 1.8–2.3%); the longest stall was 488 µs.";
    assert_eq!(faults(&shown("gaps --cpus 1", &format!("{answer}\n..."))), [""; 0]);
    assert_eq!(faults(&shown("report a", &format!("...\n{answer}\n..."))), [""; 0]);
    let untrue = faults(&shown("gaps --cpus 1", "CPU 1 lost 1.8% of its time\n..."));
    assert!(
        untrue.len() == 1 && untrue[0].contains("prints today:\nCPU 1 lost 1.9%"),
        "{untrue:?}"
    );
    let untyped = faults(&shown("gaps --cpus 2", &format!("{answer}\n...")));
    assert!(
        untyped.len() == 1 && untyped[0].contains("was recorded by: whylate gaps"),
        "{untyped:?}"
    );
}

#[test]
fn a_part_that_still_begins_as_it_did_is_written_anew_and_others_stay() {
    let anew = |shown: &str, said: &str| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        renewed(&shown, &said.lines().collect::<Vec<_>>()).join("\n")
    };
    let said = "answer\n\nhead\nrow 1\nrow 2\n\nother\nrow 3";
    assert_eq!(anew("before", said), said);
    assert_eq!(anew("...\nhead\nrow 0\n...", said), "...\nhead\nrow 1\n...");
    assert_eq!(anew("was\n...\nother\nrow 0\nrow 0", said), "answer\n...\nother\nrow 3");
    assert_eq!(anew("...\nhead\na\na\na\na\n...", said), "...\nhead\nrow 1\nrow 2\n...");
    assert_eq!(anew("...\ngone\na\n...", said), "...\ngone\na\n...");
}

#[test]
fn lines_that_are_left_out_may_be_any_and_all_others_stand_in_their_order() {
    let is = |expected: &str, said: &str| {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        reads_so(&expected, &said.lines().collect::<Vec<_>>())
    };
    for whole in ["a\nb", "...\nb", "a\n...", "...", "a\n...\nb", "...\na\nb\n..."] {
        assert!(is(whole, "a\nb"), "{whole}");
    }
    assert!(is("a\n...\nc\nd\n...\nf", "a\nb\nc\nx\nc\nd\ne\nf"));
    for other in ["a", "b\na", "...\na", "b\n...", "a\n...\nb\n...\nb", "a\nb\nc"] {
        assert!(!is(other, "a\nb"), "{other}");
    }
}
