//! Where what was just measured goes: to a device that is full, to a pipe that nobody reads, under a name
//! that is no text; and what a terminal shows meanwhile.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use whylate_model::directory::RunDir;
use whylate_model::run::Verdict;

use crate::faults::Mounted;
use crate::needs;
use crate::program::{self, said, whylate};

/// A recording of each way to print: text, JSON, an execution trace.
const RECORDINGS: [&str; 3] = [
    "gaps --duration 100ms --warmup 20ms",
    "gaps --duration 100ms --warmup 20ms --format json",
    "hourglass --raw -d 100ms -n 1 -t 0 -p NORMAL -i HR -w PERIODIC 1ms 10ms",
];

fn recorded_to(words: &str, directory: &Path, stdout: impl Into<Stdio>) -> Output {
    let words: Vec<&str> = words.split_whitespace().collect();
    whylate(words).arg("-o").arg(directory).stdout(stdout).output().unwrap()
}

#[test]
fn a_recording_that_cannot_be_printed_is_complete_in_its_directory() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    for (number, words) in RECORDINGS.iter().enumerate() {
        let directory = home.path().join(number.to_string());
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = recorded_to(words, &directory, full);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        for told in ["cannot write to standard output", "whylate report", "No space left"] {
            assert!(said.contains(told), "{words}: no `{told}` in {said}");
        }
        program::ended(
            Some(4).filter(|_| is_untrusted(&directory)).or(Some(0)),
            &program::read(&directory),
        );
        let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
        assert!(page.ends_with("</html>\n"), "{words}");
    }
}

#[test]
fn a_recording_whose_reader_has_gone_ends_as_if_it_was_read() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    for (number, words) in RECORDINGS.iter().enumerate() {
        let directory = home.path().join(number.to_string());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = recorded_to(words, &directory, writer);
        let status = if is_untrusted(&directory) { 4 } else { 0 };
        assert_eq!(output.status.code(), Some(status), "{words}: {}", said(&output));
        assert!(!said(&output).contains("cannot write"), "{words}: {}", said(&output));
        assert!(directory.join("report.html").is_file(), "{words}");
    }
}

#[test]
fn a_directory_whose_name_is_no_text_is_recorded_into() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join(OsStr::from_bytes(b"bad\xff"));
    let output = recorded_to(RECORDINGS[0], &directory, Stdio::piped());
    program::ended(output.status.code(), &program::read(&directory));
    assert!(directory.join("report.html").is_file(), "{}", said(&output));
}

#[test]
fn progress_is_one_line_of_a_terminal_that_no_width_wraps_and_is_gone_at_the_end() {
    const COLUMNS: usize = 30;
    let Some(script) = needs::program("script") else { return };
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let (run, screen) = (home.path().join("run"), home.path().join("screen"));
    let measures = format!(
        "stty rows 24 cols {COLUMNS}; '{}' gaps --duration 1s --warmup 20ms -o '{}' > '{}'",
        program::path().display(),
        run.display(),
        screen.display()
    );
    let mut command = Command::new(script);
    command.args(["-qec", &measures, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    let output = command.output().unwrap();
    program::ended(output.status.code(), &program::read(&run));
    let is_progress = |row: &&String| row.contains("/1 s");
    let mut rows = Terminal::of(COLUMNS);
    let mut drawn = 0;
    for letter in String::from_utf8_lossy(&output.stdout).chars() {
        // What was drawn is whole where the next begins.
        if matches!(letter, '\r' | '\u{1b}') {
            let shown: Vec<&String> = rows.rows.iter().filter(is_progress).collect();
            assert!(shown.len() <= 1, "{shown:?}");
            // Its name leads it, and not the rest of a line that was wrapped.
            let is_whole = |row: &&&String| {
                row.starts_with(char::is_alphabetic) && row.trim_end().chars().count() < COLUMNS
            };
            assert!(shown.iter().all(|row| is_whole(&row)), "{shown:?}");
            drawn += shown.len();
        }
        rows.take(letter);
    }
    assert!(drawn > 0, "{}", said(&output));
    assert!(!rows.rows.iter().any(|row| is_progress(&row)), "{:?}", rows.rows);
    let first = std::fs::read_to_string(&screen).unwrap();
    assert!(first.contains("\nTrust: ") && !first.contains('\u{1b}'), "{first}");
}

/// On disks with room for one file more each, until all fit: what was written is read again, what was not is told,
/// and no next step leads to what is not there.
#[test]
fn a_recording_for_whose_files_the_disk_has_no_room_tells_what_of_it_is_kept() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let words = ["-d", "100ms", "-n", "1", "-t", "0", "-i", "HR", "-w", "PERIODIC 1ms 10ms"];
    for first in [["gaps", "--duration=100ms", "--warmup=20ms"].as_slice(), &["hourglass"]] {
        let mut seen = BTreeSet::new();
        for files in 1.. {
            assert!(files < 20, "{first:?} never fits");
            let Some(disk) = Mounted::new(&format!("size=32m,nr_inodes={files}")) else { return };
            let run = disk.0.path().join("run");
            let mut command = program::as_used(first);
            command.args(words.iter().filter(|_| first[0] == "hourglass")).arg("-o").arg(&run);
            let output = command.output().unwrap();
            let told = format!("{first:?} with {files} files: {}", said(&output));
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let stored = RunDir::open(&run).and_then(|of| of.read_run()).map(|of| of.verdict);
            let is_complete = told.contains("the run is complete");
            let leads = printed.contains("whylate report");
            seen.insert(match stored {
                Err(_) => {
                    assert_eq!(output.status.code(), Some(1), "{told}");
                    assert!(told.contains("the disk is full") && !leads && !is_complete, "{told}");
                    let kept = "error: nothing of this run is kept: cannot write";
                    assert_eq!(!printed.is_empty(), told.contains(kept), "{told}");
                    if printed.is_empty() { "refused" } else { "nothing kept" }
                }
                Ok(Verdict::Pending) => {
                    assert_eq!(output.status.code(), Some(4), "{told}");
                    assert!(told.contains("the run is kept up to its last checkpoint: "), "{told}");
                    assert!(leads && !is_complete, "{told}");
                    "up to its checkpoint"
                }
                Ok(_) => {
                    assert!(matches!(output.status.code(), Some(0 | 4)), "{told}");
                    assert!(leads && !told.contains(" is kept"), "{told}");
                    let page = run.join("report.html").is_file();
                    assert_eq!(is_complete, !page, "{told}");
                    if !page || printed.contains("Writing failed") { "in part" } else { "whole" }
                }
            });
            let report = whylate(["report"]).arg(&run).output().unwrap();
            let status = report.status.code();
            assert_eq!(matches!(status, Some(0 | 4)), run.join("run.json").is_file(), "{told}");
            if seen.contains("whole") {
                break;
            }
        }
        assert!(seen.is_superset(&["refused", "in part", "whole"].into()), "{first:?}: {seen:?}");
    }
}

/// What stands on a terminal that wraps, as far as a line of progress needs one.
struct Terminal {
    columns: usize,
    rows: Vec<String>,
    at: (usize, usize),
    escape: Option<String>,
}

impl Terminal {
    fn of(columns: usize) -> Self {
        Self { columns, rows: vec![String::new()], at: (0, 0), escape: None }
    }

    fn take(&mut self, letter: char) {
        if let Some(mut escape) = self.escape.take() {
            escape.push(letter);
            match escape.as_str() {
                "[2K" => self.rows[self.at.0].clear(),
                "[1A" => self.at.0 = self.at.0.saturating_sub(1),
                _ if letter.is_ascii_alphabetic() => {}
                _ => self.escape = Some(escape),
            }
            return;
        }
        match letter {
            '\u{1b}' => self.escape = Some(String::new()),
            '\r' => self.at.1 = 0,
            '\n' => self.line_down(),
            letter => {
                if self.at.1 == self.columns {
                    self.line_down();
                    self.at.1 = 0;
                }
                let row = &mut self.rows[self.at.0];
                let mut letters: Vec<char> = row.chars().collect();
                letters.resize(letters.len().max(self.at.1 + 1), ' ');
                letters[self.at.1] = letter;
                *row = letters.into_iter().collect();
                self.at.1 += 1;
            }
        }
    }

    fn line_down(&mut self) {
        self.at.0 += 1;
        if self.at.0 == self.rows.len() {
            self.rows.push(String::new());
        }
    }
}

fn is_untrusted(directory: &Path) -> bool {
    matches!(program::read(directory).verdict, Verdict::Untrustworthy { .. })
}
