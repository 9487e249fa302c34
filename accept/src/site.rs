//! Where two ends of a comparison are, over loopback or in a bed, and programs of others at either of them.

use std::ffi::OsStr;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use whylate_model::CpuId;

use crate::plant;
use crate::program::{self, said};
use crate::requests::Bed;

/// The address and the port of a server inside a bed.
const INSIDE: (&str, u16) = ("198.18.0.2", 11_111);

/// An address and a port.
pub(crate) type At = (String, u16);

/// Both ends, each on a CPU of its own.
pub(crate) struct Site {
    pub(crate) bed: Option<Bed>,
    pub(crate) server: CpuId,
    pub(crate) client: CpuId,
}

/// Another's process, killed with this.
pub(crate) struct Theirs(pub(crate) Child);

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What whylate's client found.
pub(crate) struct Asked {
    pub(crate) directory: PathBuf,
    _home: TempDir,
}

impl Site {
    pub(crate) fn loopback() -> Self {
        let cpus = whylate_sys::affinity::get();
        Self { bed: None, server: cpus[0], client: cpus[cpus.len() - 1] }
    }

    pub(crate) fn in_a_bed() -> Self {
        Self { bed: Some(plant::bed("peers").expect("a bed")), ..Self::loopback() }
    }

    /// A program on one side, on no other CPU than `cpu`, where one is given.
    pub(crate) fn command(
        &self,
        side: &str,
        cpu: Option<CpuId>,
        program: impl AsRef<OsStr>,
    ) -> Command {
        let mut words: Vec<String> = Vec::new();
        if let Some(Bed(name)) = &self.bed {
            words.extend(["ip", "netns", "exec"].map(str::to_owned));
            words.push(format!("whylate-{name}-{side}"));
        }
        if let Some(cpu) = cpu {
            words.extend(["taskset".to_owned(), "-c".to_owned(), cpu.to_string()]);
        }
        let mut command = match words.split_first() {
            None => return clean(Command::new(program)),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest);
                command
            }
        };
        command.arg(program);
        clean(command)
    }

    /// Where a server of this side is reached.
    pub(crate) fn free_place(&self) -> At {
        let Some(_) = &self.bed else {
            let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            return (free.ip().to_string(), free.port());
        };
        (INSIDE.0.to_owned(), INSIDE.1)
    }

    /// Has whylate's client ask there, by `words` beside the usual ones.
    pub(crate) fn ask(&self, (ip, port): &At, words: &str) -> Asked {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let mut command = self.command("client", None, program::path());
        command.args(["rtt", &format!("{ip}:{port}"), "--no-trace", "--cpus"]);
        command.arg(self.client.to_string()).args(words.split_whitespace());
        let output = command.arg("-o").arg(&directory).stderr(Stdio::piped()).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{words}: {}", said(&output));
        Asked { directory, _home: home }
    }
}

fn clean(mut command: Command) -> Command {
    command.env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state());
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}
