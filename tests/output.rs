//! Where a report goes: to files that are none, to a device that is full, to a pipe that nobody reads.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::pipe::fcntl_setpipe_size;

use crate::program::{self, said, whylate};
use crate::{directories, needs, planted};

/// Every view of a recorded run, none of which writes a file.
const VIEWS: [&[&str]; 9] = [
    &["report", "RUN"],
    &["report", "RUN", "--format", "json"],
    &["report", "RUN", "--html", "-"],
    &["compare", "RUN", "OTHER"],
    &["compare", "RUN", "OTHER", "--html", "-"],
    &["rta", "--task", "1ms 8ms"],
    &["threads", "--list"],
    &["lab", "status"],
    &["--help"],
];

fn recorded(name: &str) -> PathBuf {
    program::file("runs").join(name)
}

fn view(words: &[&str], stdout: impl Into<Stdio>) -> Output {
    let words = words.iter().map(|word| match *word {
        "RUN" => recorded("gaps").into_os_string(),
        "OTHER" => recorded("selftest").into_os_string(),
        word => word.into(),
    });
    whylate(words).stdout(stdout).output().unwrap()
}

/// A node of our own of the device that is always full.
fn full(home: &Path) -> Option<PathBuf> {
    let path = home.join("full");
    let made = mknodat(CWD, &path, FileType::CharacterDevice, Mode::RWXU, makedev(1, 7));
    if made.is_err() || OpenOptions::new().write(true).open(&path).is_err() {
        needs::absent("no device node can be made and opened here");
        return None;
    }
    Some(path)
}

#[test]
fn a_device_a_pipe_and_a_link_that_a_page_is_written_to_stay_what_they_are() {
    let home = tempfile::tempdir().unwrap();
    let page = |file: &Path| {
        whylate(["report", "--html"]).arg(file).arg(recorded("gaps")).output().unwrap()
    };
    let pipe = home.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let reads = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let output = page(&pipe);
    assert!(output.status.success(), "{}", said(&output));
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert!(reads.join().unwrap().ends_with("</html>\n"));

    let (link, file) = (home.path().join("link"), home.path().join("page.html"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(page(&link).status.success());
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("</html>\n"));

    let Some(full) = full(home.path()) else { return };
    let output = page(&full);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("No space left"), "{}", said(&output));
    assert!(std::fs::symlink_metadata(&full).unwrap().file_type().is_char_device());
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 4, "something lies beside them");
}

#[test]
fn a_full_standard_output_is_told_and_ends_every_view_with_status_1() {
    for words in VIEWS {
        let output = view(words, OpenOptions::new().write(true).open("/dev/full").unwrap());
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("cannot write to standard output"), "{words:?}: {said}");
        assert!(said.contains("No space left"), "{words:?}: {said}");
        assert!(!said.contains("panicked"), "{words:?}: {said}");
    }
}

/// A view whose reader takes so many lines and closes the pipe, which holds no more than a page of memory.
fn read_for(lines: usize, words: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    fcntl_setpipe_size(&reader, 4_096).unwrap();
    let reads = std::thread::spawn(move || {
        let mut reader = BufReader::with_capacity(64, reader);
        let mut line = Vec::new();
        (0..lines).filter(|_| reader.read_until(b'\n', &mut line).unwrap() > 0).count()
    });
    let output = view(words, writer);
    assert!(reads.join().unwrap() <= lines);
    output
}

#[test]
fn a_reader_that_closes_the_pipe_after_any_line_changes_neither_status_nor_what_is_said() {
    let whole: &[&str] = &["report", "RUN", "--full"];
    let after = |words, last: usize| (0..=last).map(move |lines| (words, lines));
    for (words, lines) in VIEWS.iter().flat_map(|view| after(*view, 2)).chain(after(whole, 24)) {
        let read = view(words, Stdio::piped());
        let unread = read_for(lines, words);
        let told = format!("{words:?} after {lines} lines: {}", said(&unread));
        assert_eq!(unread.status.code(), read.status.code(), "{told}");
        assert_eq!(unread.stderr, read.stderr, "{told}");
    }
}

#[test]
fn a_full_standard_error_costs_nothing_but_what_is_said_there() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = recorded("gaps");
    // It would say that there is no execution trace.
    let words = || {
        let mut command = whylate(["report"]);
        command.arg(&run).arg("--trace");
        command
    };
    let output = words().stderr(full()).output().unwrap();
    assert_eq!(output.stdout, words().output().unwrap().stdout);
    assert_eq!(output.status.code(), Some(0));
    let usage = whylate(["gaps", "--duration", "x"]).stderr(full()).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    let nothing = whylate(["report", "/no/such/run"]).stderr(full()).output().unwrap();
    assert_eq!(nothing.status.code(), Some(1));
}

#[test]
fn a_path_that_is_no_text_is_read_compared_and_written() {
    let home = tempfile::tempdir().unwrap();
    let name = |bytes: &[u8]| home.path().join(OsStr::from_bytes(bytes));
    let (run, page, sum) = (name(b"bad\xff"), name(b"page\xfe.html"), name(b"sum\xff"));
    directories::copy(&recorded("gaps"), &run);
    let output = whylate(["report", "--html"]).arg(&page).arg(&run).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(File::open(&page).is_ok());
    let output = whylate(["compare"]).arg(&run).arg(recorded("selftest")).output().unwrap();
    assert!(!said(&output).contains("panicked"), "{}", said(&output));
    let planted = name(b"planted\xff");
    planted::run(&planted, 100);
    let output = whylate(["merge"]).arg(&planted).arg("-o").arg(&sum).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    assert!(sum.join("report.html").is_file(), "{}", said(&output));
    assert!(program::read(&sum).command_line.iter().any(|word| word.contains("planted\u{fffd}")));
}
