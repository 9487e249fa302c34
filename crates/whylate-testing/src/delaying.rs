//! Delay lines for the tests of what they hold back: between two hosts of network namespaces, or as
//! proxies without a right to anything.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use whylate_model::Pid;
use whylate_model::delay::{DelayDirection, DelayLine, Truth};
use whylate_model::directory::RunDir;
use whylate_model::segments::read_truths;
use whylate_sys::signal::send_to_process;

use crate::between::{Bed, PATIENCE, SIGINT};
use crate::lines::Lines;
use crate::program::{doubted, until, whylate};

/// A delay line, killed with the test.
pub struct Delaying {
    pub child: Child,
    stderr: Lines,
    /// What it said when it began.
    pub said: String,
}

impl Delaying {
    /// Starts it between `a` and `b` of a bed, and waits until it delays.
    pub fn new(bed: &Bed, words: &str) -> Self {
        let words = format!("delay a b --no-netem --format json --no-dma-latency {words}");
        let command = whylate(words.split_whitespace());
        bed.between.inside(move || Self::started(command))
    }

    /// Waits until it delays.
    pub fn started(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = Lines::of(child.stderr.take().unwrap());
        let said = stderr.until("delaying between ");
        Self { child, stderr, said }
    }

    pub fn pid(&self) -> Pid {
        Pid(self.child.id() as i32)
    }

    /// Stops it and reads what it did; a noisy host may end it with 4.
    pub fn stop(mut self) -> DelayLine {
        send_to_process(self.pid(), SIGINT).unwrap();
        self.end()
    }

    /// Waits for its end, and reads what it did.
    pub fn end(&mut self) -> DelayLine {
        let told = serde_json::from_reader(self.child.stdout.take().unwrap());
        let rest = self.stderr.rest();
        let status = self.child.wait().unwrap().code();
        assert!(matches!(status, Some(0 | 4)), "{status:?}: {rest}");
        let line: DelayLine = told.unwrap();
        doubted(status, &line.warnings, &[]);
        line
    }
}

impl Drop for Delaying {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A delay line between `a` and `b` that ends by itself.
pub fn to_its_end(bed: &Bed, words: &str) -> Output {
    let words = format!("delay {words} --no-netem --no-dma-latency");
    let mut command = whylate(words.split_whitespace());
    bed.between.inside(move || command.output()).unwrap()
}

/// What every account holds.
pub fn closes(of: &DelayLine) {
    let closes = |direction: &DelayDirection| direction.counts.closes();
    assert!(of.directions.iter().all(closes), "{of:?}");
}

/// The truths that a run left.
pub fn truths(directory: &Path) -> Vec<Truth> {
    let directory = RunDir::open(directory).unwrap();
    read_truths(&directory).unwrap().map(Result::unwrap).collect()
}

/// Somebody who gives orders.
pub struct Orders(BufReader<UnixStream>);

impl Orders {
    pub fn at(path: &Path) -> Self {
        let stream = until("it takes orders", || UnixStream::connect(path).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn give(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.0.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    /// Has the line taken in so many messages that go there, and does it hold none of them?
    pub fn has_passed_on(&mut self, count: u64) -> bool {
        let shown: serde_json::Value = serde_json::from_str(&self.give("show")).unwrap();
        let counts = &shown["there"]["counts"];
        counts["received"] == count && counts["waiting_at_the_end"] == 0
    }
}
