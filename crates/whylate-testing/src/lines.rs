//! What a child says, line by line: whoever waits for a word of it waits no longer than its patience.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// A child that has anything to say has said it after so long, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(90);

/// Lines of a pipe, read by a thread of their own, so that the child never waits for its reader.
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn of(pipe: impl Read + Send + 'static) -> Self {
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                if tell.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// The next one; none behind the last.
    pub fn line(&mut self) -> Option<String> {
        match self.0.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("nothing was said in {} s", PATIENCE.as_secs())
            }
        }
    }

    /// All up to the first that holds these words.
    pub fn until(&mut self, words: &str) -> String {
        let mut said = String::new();
        while let Some(line) = self.line() {
            said.push_str(&line);
            said.push('\n');
            if line.contains(words) {
                return said;
            }
        }
        panic!("it ended without `{words}`: {said}")
    }

    /// All that is left, to its end.
    pub fn rest(&mut self) -> String {
        let lines: Vec<String> = std::iter::from_fn(|| self.line()).collect();
        lines.join("\n")
    }
}

#[test]
fn lines_are_told_up_to_a_word_and_the_rest_behind_it_and_an_end_without_it_is_said() {
    let mut lines = Lines::of(&b"one\nlistening on 7\nthree\nfour"[..]);
    assert_eq!(lines.until("listening on "), "one\nlistening on 7\n");
    assert_eq!(lines.rest(), "three\nfour");
    assert_eq!(lines.line(), None);
    let ended = std::panic::catch_unwind(|| Lines::of(&b"refused\n"[..]).until("listening"));
    let why = *ended.unwrap_err().downcast::<String>().unwrap();
    assert!(why.contains("refused"), "{why}");
}
