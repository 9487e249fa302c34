//! Recordings that this program makes in a process of its own: what was run is the command that is
//! named, to the last word.

use std::path::PathBuf;
use std::time::Duration;

use whylate_model::paper::Scenario;
use whylate_model::run::Run;
use whylate_model::{Pid, RunDir};
use whylate_record::child::{Program, Running};

use crate::PaperError;
use crate::bench::{Bench, distrust};

/// A recording that is to be beside another one is ready, and has ended, within so long.
const READY: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(20);

/// A recording that goes on beside another one. Dropped, it is killed.
pub(crate) struct Beside {
    running: Running,
    part: String,
    path: PathBuf,
}

impl Beside {
    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        self.running.pid()
    }

    /// Ends it, and names its run in the scenario.
    pub(crate) fn end(self, scenario: &mut Scenario) -> Result<(RunDir, Run), PaperError> {
        self.running.end(END)?.recorded()?;
        read(&self.part, self.path, scenario)
    }
}

/// What a part left.
fn read(part: &str, path: PathBuf, scenario: &mut Scenario) -> Result<(RunDir, Run), PaperError> {
    scenario.runs.push(part.to_owned());
    let directory = RunDir::open(path)?;
    let run = directory.read_run()?;
    distrust(part, &run, scenario);
    Ok((directory, run))
}

impl Bench<'_> {
    /// Runs `whylate WORDS` into the directory of a part, and names it in the scenario.
    pub(crate) fn tool(
        &mut self,
        part: &str,
        words: &str,
        scenario: &mut Scenario,
    ) -> Result<(RunDir, Run), PaperError> {
        self.go_on()?;
        let path = self.place(part);
        let program = Program::whylate(self.program(), words).into_directory(&path);
        scenario.commands.push(program.named().to_owned());
        program.run(self.stop, None)?.recorded()?;
        read(part, path, scenario)
    }

    /// Starts `whylate WORDS` into the directory of a part, and waits until it says that it is ready.
    pub(crate) fn beside(
        &mut self,
        part: &str,
        words: &str,
        ready: &str,
        scenario: &mut Scenario,
    ) -> Result<Beside, PaperError> {
        self.go_on()?;
        let path = self.place(part);
        let program = Program::whylate(self.program(), words).into_directory(&path);
        scenario.commands.push(program.named().to_owned());
        let mut running = program.start()?;
        running.wait_for(ready, self.stop, READY)?;
        Ok(Beside { running, part: part.to_owned(), path })
    }
}
