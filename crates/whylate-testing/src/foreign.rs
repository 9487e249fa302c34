//! Programs in another language, which know nothing of this tool, here and at the ends of a bed.

use std::process::{Child, Command, Stdio};

use crate::lines::Lines;
use crate::needs;
use crate::requests::Bed;

/// Another's program, ended with the test, and what it says.
pub struct Foreign {
    child: Child,
    said: Lines,
}

impl Foreign {
    /// A program in the language of the interpreter that `command` starts.
    pub fn start(mut command: Command, program: &str, words: &[String]) -> Self {
        command.arg("-c").arg(program).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Lines::of(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// Its next line.
    pub fn line(&mut self) -> String {
        let line = self.said.line().expect("it ended without a word");
        line.trim_end().to_owned()
    }

    /// Ends what it waits for.
    pub fn go_on(&mut self) {
        use std::io::Write;
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The interpreter; none where this machine has none.
pub fn python() -> Option<Command> {
    Some(Command::new(needs::program("python3")?))
}

/// The interpreter at one end of a bed.
pub fn python_in(bed: &Bed, end: &str) -> Option<Command> {
    let python = needs::program("python3")?;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("whylate-{}-{end}", bed.0)]).arg(python);
    Some(command)
}

/// A command at one end of a bed, which must end well.
pub fn at(bed: &Bed, end: &str, words: &[&str]) {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("whylate-{}-{end}", bed.0)]).args(words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", crate::program::said(&output));
}
