//! A child, from the parent's side: started, looked at, told to stop, and never left behind.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use whylate_model::Pid;
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::error::LoadError;
use crate::load::Program;
use crate::order::Order;
use crate::record::{self, Record, State};

/// A child that is starting or ending is asked this often how far it is.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// A child that was told to stop has so long; then it is killed.
const STOPPING: Duration = Duration::from_secs(3);
/// A child has so long until it has done something: a machine with real-time threads is slow.
pub(crate) const STARTING: Duration = Duration::from_secs(20);

/// One generator process, which is killed and reaped when this is dropped.
#[derive(Debug)]
pub(crate) struct Generator {
    child: Child,
    /// Closing it tells the child to stop.
    stdin: Option<ChildStdin>,
    record: File,
    /// What it said last.
    last: Record,
    /// What it had done when the measurement beside it began.
    before: Record,
    /// What it had done when that ended; none while it goes on.
    after: Option<Record>,
}

impl Generator {
    /// Starts a child with its order.
    pub(crate) fn start(program: &Program, order: &Order, load: &str) -> Result<Self, LoadError> {
        let failed =
            |source| LoadError::Spawn { load: load.to_owned(), exe: program.exe.clone(), source };
        let record = record::file().map_err(failed)?;
        let child = Command::new(&program.exe)
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::from(record.try_clone().map_err(failed)?))
            // Ctrl-C is for the parent, which tells its children.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        // From here on the child is killed and reaped whatever happens.
        let mut generator = Self {
            child,
            stdin: None,
            record,
            last: Record::default(),
            before: Record::default(),
            after: None,
        };
        generator.stdin = generator.child.stdin.take();
        let line = order.line()?;
        if let Some(stdin) = &mut generator.stdin {
            stdin.write_all(line.as_bytes()).map_err(failed)?;
        }
        Ok(generator)
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid(self.child.id() as i32)
    }

    /// What it has done so far.
    pub(crate) fn record(&mut self) -> &Record {
        if let Some(record) = Record::read(&self.record) {
            self.last = record;
        }
        &self.last
    }

    /// The measurement beside it begins: what was done before is none of its load.
    pub(crate) fn begins(&mut self) {
        self.before = self.record().clone();
        self.after = None;
    }

    /// The measurement beside it has ended.
    pub(crate) fn ends(&mut self) {
        self.after = Some(self.record().clone());
    }

    /// What it did beside the measurement. Amount and time are of the same two notes, so that their
    /// ratio is exact though the notes are up to 50 ms old.
    pub(crate) fn worked(&mut self) -> Record {
        let now = self.after.clone().unwrap_or_else(|| self.record().clone());
        now.less(&self.before)
    }

    /// Waits until `reached` finds what it waits for.
    pub(crate) fn wait_until<T>(
        &mut self,
        load: &str,
        mut reached: impl FnMut(&Record) -> Option<T>,
    ) -> Result<T, LoadError> {
        let begin = clock_ns(Clock::Monotonic);
        loop {
            // Before the record: what it said last is then read after its end.
            let ended = self.how_it_ended();
            if let Some(found) = reached(self.record()) {
                return Ok(found);
            }
            if let Some(why) = ended {
                return Err(LoadError::Refused { load: load.to_owned(), why });
            }
            if clock_ns(Clock::Monotonic) - begin > STARTING.as_nanos() as u64 {
                return Err(LoadError::Silent { load: load.to_owned(), patience: STARTING });
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// How it ended; none while it runs.
    pub(crate) fn how_it_ended(&mut self) -> Option<String> {
        let status = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.to_string(),
            Err(error) => format!("it cannot be waited for: {error}"),
        };
        Some(match &self.record().state {
            State::Ended(why) | State::Failed(why) => why.clone(),
            _ => status,
        })
    }

    /// Tells it to stop.
    pub(crate) fn tell(&mut self) {
        self.stdin = None;
    }

    /// Waits until it has stopped; kills it when it takes too long.
    pub(crate) fn finish(&mut self) {
        self.tell();
        let begin = clock_ns(Clock::Monotonic);
        while clock_ns(Clock::Monotonic) - begin < STOPPING.as_nanos() as u64 {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(ASK_EVERY),
                _ => break,
            }
        }
        self.kill();
        self.record();
    }

    fn kill(&mut self) {
        // Both fail only when the child has ended and been reaped: then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.kill();
    }
}
