//! A client and a server at two ends of a bed that know nothing of each other, as on two hosts.

use std::process::{Command, Stdio};

use whylate_model::run::Run;

use crate::lines::Lines;
use crate::program::{self, ended, said, whylate};
use crate::requests::Bed;

/// A command of the program in one end of a bed, as on a host of its own.
fn inside(bed: &Bed, end: &str, words: &[&str]) -> Command {
    // For its environment.
    let program = whylate([""; 0]);
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("whylate-{}-{end}", bed.0)]);
    command.arg(program.get_program()).args(words).stdin(Stdio::null());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A run that takes requests apart whose server is another host's; none where there is no bed.
pub fn whose_server_is_elsewhere() -> Option<Run> {
    let bed = Bed::up("one-end")?;
    let listen = ["reflect", "--listen", "198.18.0.2:4021", "--idle", "60s"];
    let mut server = inside(&bed, "server", &listen);
    let child = server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut server = program::Started(child);
    let mut told = Lines::of(server.0.stderr.take().unwrap());
    told.until("listening on ");
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = "rtt 198.18.0.2:4021 --rate 1kpps --duration 300ms --warmup 100ms --wait block \
                 --no-trace --breakdown=stamps,told -o";
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.push(directory.to_str().unwrap());
    let output = inside(&bed, "client", &words).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = program::read(&directory);
    ended(output.status.code(), &run);
    Some(run)
}
