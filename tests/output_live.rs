//! Where what was just measured goes: to a device that is full, to a pipe that nobody reads, under a name
//! that is no text.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Output, Stdio};

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

fn is_untrusted(directory: &Path) -> bool {
    use whylate_model::run::Verdict;
    matches!(program::read(directory).verdict, Verdict::Untrustworthy { .. })
}
