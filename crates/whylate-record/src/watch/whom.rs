//! Which process is meant: by its number, or by a port that it listens at.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use whylate_host::listeners::{self, Listener, Listening, Process};
use whylate_model::Pid;

/// Listeners that are named where none was found, or several.
const MOST_NAMED: usize = 20;

/// Who is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The process of this number.
    Process(Pid),
    /// Whoever listens there.
    Port(Option<Listening>, u16),
    /// A number that may be either.
    Either(u32),
}

/// The process that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whom {
    /// Which.
    pub process: Process,
    /// The port that was named, if one was.
    pub port: Option<u16>,
}

/// Why nobody can be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// There is no process of this number.
    NoProcess(Pid),
    /// It is one of ours: it would watch itself.
    Ourselves(Pid),
    /// Nobody listens there; who does elsewhere.
    Nobody {
        /// Where.
        port: u16,
        /// Who listens at other ports.
        others: Vec<Listener>,
        /// Listeners of all users were seen.
        root: bool,
    },
    /// Several processes listen there.
    Several {
        /// Where.
        port: u16,
        /// They.
        listeners: Vec<Listener>,
    },
    /// The number is that of a process and that of a port.
    Ambiguous {
        /// The number.
        number: u32,
        /// Who listens there.
        listener: Listener,
    },
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is neither a process nor a port: write a number, pid:812, port:4021, \
                 udp:4021 or tcp:4021"
            )
        };
        let port = |words: &str| words.parse().ok().filter(|port| *port != 0).ok_or_else(wrong);
        let process = |words: &str| match words.parse() {
            Ok(pid) if pid > 0 => Ok(Self::Process(Pid(pid))),
            _ => Err(wrong()),
        };
        match text.split_once(':') {
            Some(("pid", number)) => process(number),
            Some(("port" | "", number)) => Ok(Self::Port(None, port(number)?)),
            Some(("udp", number)) => Ok(Self::Port(Some(Listening::Udp), port(number)?)),
            Some(("tcp", number)) => Ok(Self::Port(Some(Listening::Tcp), port(number)?)),
            Some(_) => Err(wrong()),
            None => match text.parse() {
                Ok(0) | Err(_) => Err(wrong()),
                Ok(number) => Ok(Self::Either(number)),
            },
        }
    }
}

/// The one process that is meant.
///
/// # Errors
/// There is none or it is one of ours, several listen there, or the number is ambiguous.
pub fn find(asked: Asked) -> Result<Whom, NotFound> {
    match asked {
        Asked::Process(pid) => of_process(pid),
        Asked::Port(by, port) => {
            of_port(&Seen::now(), by, port).and_then(|of| of_process_at(of.process, port))
        }
        Asked::Either(number) => either(number),
    }
}

fn either(number: u32) -> Result<Whom, NotFound> {
    let pid = i32::try_from(number).map(Pid).ok();
    let process = pid.and_then(|pid| of_process(pid).ok());
    let port = u16::try_from(number).ok();
    let listener = port.map(|port| of_port(&Seen::now(), None, port));
    match (process, listener) {
        (Some(process), None | Some(Err(NotFound::Nobody { .. }))) => Ok(process),
        (Some(_), Some(Ok(listener))) => Err(NotFound::Ambiguous { number, listener }),
        (None, Some(Ok(of))) => of_process_at(of.process, of.port),
        (_, Some(Err(why))) => Err(why),
        (None, None) => Err(NotFound::NoProcess(pid.unwrap_or(Pid(i32::MAX)))),
    }
}

fn of_process(pid: Pid) -> Result<Whom, NotFound> {
    let process = Process::find(pid).ok_or(NotFound::NoProcess(pid))?;
    if pid.0.unsigned_abs() == std::process::id() {
        return Err(NotFound::Ourselves(pid));
    }
    Ok(Whom { process, port: None })
}

fn of_process_at(pid: Pid, port: u16) -> Result<Whom, NotFound> {
    of_process(pid).map(|of| Whom { port: Some(port), ..of })
}

/// The listeners that this user can see.
struct Seen {
    all: Vec<Listener>,
    /// They are those of all users.
    root: bool,
}

impl Seen {
    fn now() -> Self {
        let root = rustix::process::geteuid().is_root();
        Self { all: listeners::all(Path::new("/")), root }
    }
}

/// The one who listens there, by that or by anything.
fn of_port(seen: &Seen, by: Option<Listening>, port: u16) -> Result<Listener, NotFound> {
    let Seen { all, root } = seen;
    let fits = |of: &&Listener| of.port == port && by.is_none_or(|by| by == of.by);
    let listeners: Vec<Listener> = all.iter().filter(fits).cloned().collect();
    let Some(first) = listeners.first() else {
        return Err(NotFound::Nobody { port, others: all.clone(), root: *root });
    };
    if listeners.iter().any(|of| of.process != first.process) {
        return Err(NotFound::Several { port, listeners });
    }
    Ok(first.clone())
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess(pid) => write!(
                f,
                "there is no process {pid}: name one that runs, or a port that somebody listens at \
                 (a thread's number is none)"
            ),
            Self::Ourselves(pid) => {
                write!(f, "{pid} is this program: it does not watch itself")
            }
            Self::Nobody { port, others, root } => {
                write!(f, "nobody listens at port {port}")?;
                if !root {
                    f.write_str(", as far as this user can see; root sees other users' processes")?;
                }
                if others.is_empty() {
                    f.write_str(
                        "; a process of another network namespace is named by its number: pid:812",
                    )
                } else {
                    f.write_str("; there are ")?;
                    name(f, others)
                }
            }
            Self::Several { port, listeners } => {
                write!(f, "several processes listen at port {port}: name one of them, of ")?;
                name(f, listeners)
            }
            Self::Ambiguous { number, listener } => write!(
                f,
                "{number} is a process, and {} ({}) listens at the port of that number: write \
                 pid:{number} or port:{number}",
                listener.name, listener.process
            ),
        }
    }
}

fn name(f: &mut fmt::Formatter<'_>, listeners: &[Listener]) -> fmt::Result {
    let one = |of: &Listener| format!("{}:{} {} ({})", of.by, of.port, of.name, of.process);
    let named: Vec<String> = listeners.iter().take(MOST_NAMED).map(one).collect();
    f.write_str(&named.join(", "))?;
    let more = listeners.len().saturating_sub(MOST_NAMED);
    if more > 0 { write!(f, ", and {more} more") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_process_a_port_or_a_number_that_may_be_either() {
        let read = |text: &str| text.parse::<Asked>();
        assert_eq!(read("812"), Ok(Asked::Either(812)));
        assert_eq!(read("pid:812"), Ok(Asked::Process(Pid(812))));
        assert_eq!(read(":4021"), Ok(Asked::Port(None, 4021)));
        assert_eq!(read("port:4021"), Ok(Asked::Port(None, 4021)));
        assert_eq!(read("udp:4021"), Ok(Asked::Port(Some(Listening::Udp), 4021)));
        assert_eq!(read("tcp:1"), Ok(Asked::Port(Some(Listening::Tcp), 1)));
        for wrong in ["", "0", "-1", "pid:0", "pid:-7", "tcp:0", "tcp:65536", "sctp:7", "nginx"] {
            let refusal = read(wrong).unwrap_err();
            assert!(refusal.contains("pid:812"), "{wrong}: {refusal}");
        }
    }

    fn listener(by: Listening, port: u16, process: i32) -> Listener {
        Listener { by, port, process: Pid(process), name: format!("server-{process}") }
    }

    #[test]
    fn a_port_is_its_one_process_and_nobody_and_several_are_named() {
        let all = [
            listener(Listening::Udp, 53, 7),
            listener(Listening::Tcp, 53, 7),
            listener(Listening::Tcp, 80, 8),
            listener(Listening::Tcp, 80, 9),
        ];
        let all = Seen { all: all.to_vec(), root: true };
        assert_eq!(of_port(&all, None, 53).unwrap().process, Pid(7));
        let several = of_port(&all, None, 80).unwrap_err().to_string();
        assert!(several.contains("server-8 (8)") && several.contains("server-9 (9)"), "{several}");
        let nobody = of_port(&all, Some(Listening::Udp), 80).unwrap_err().to_string();
        assert!(nobody.contains("nobody listens at port 80"), "{nobody}");
        assert!(nobody.contains("udp:53 server-7 (7)"), "{nobody}");
        for root in [true, false] {
            for all in [Vec::new(), all.all.clone()] {
                let nothing = of_port(&Seen { all, root }, None, 443).unwrap_err().to_string();
                assert!(nothing.starts_with("nobody listens at port 443"), "{nothing}");
                assert_eq!(
                    nothing.contains("root sees other users' processes"),
                    !root,
                    "{nothing}"
                );
            }
        }
    }

    #[test]
    fn more_listeners_than_can_be_read_are_counted() {
        let all: Vec<Listener> = (1..=50).map(|n| listener(Listening::Tcp, n, 7)).collect();
        let nobody = of_port(&Seen { all, root: true }, None, 9_999).unwrap_err().to_string();
        assert!(nobody.ends_with(", and 30 more"), "{nobody}");
    }

    #[test]
    fn this_process_is_not_watched_and_one_that_is_not_there_is_named() {
        let own = Pid(std::process::id() as i32);
        assert_eq!(find(Asked::Process(own)), Err(NotFound::Ourselves(own)));
        let nobody = Pid(i32::MAX);
        assert_eq!(find(Asked::Process(nobody)), Err(NotFound::NoProcess(nobody)));
    }
}
