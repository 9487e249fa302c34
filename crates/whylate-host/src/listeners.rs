//! Who listens at a port of this host, and the threads of a process.
//!
//! `/proc/net/{udp,udp6,tcp,tcp6}` name sockets by their inodes, and `/proc/PID/fd` says who has
//! them. Those are the sockets of this process's own network namespace; the descriptors of other
//! users' processes are for root alone. Nothing is asked of the processes themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use whylate_model::Pid;

use crate::files::{text, under};
use crate::tasks::{self, Task};

/// State of a TCP socket that listens, and of a UDP socket without a peer.
const TCP_LISTEN: &str = "0A";
const UDP_UNCONNECTED: &str = "07";

/// What is listened by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listening {
    /// UDP: a socket without a peer.
    Udp,
    /// TCP.
    Tcp,
}

impl Listening {
    fn files(self) -> [&'static str; 2] {
        match self {
            Self::Udp => ["/proc/net/udp", "/proc/net/udp6"],
            Self::Tcp => ["/proc/net/tcp", "/proc/net/tcp6"],
        }
    }

    fn state(self) -> &'static str {
        match self {
            Self::Udp => UDP_UNCONNECTED,
            Self::Tcp => TCP_LISTEN,
        }
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}

/// A process that listens at a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// By what.
    pub by: Listening,
    /// Where.
    pub port: u16,
    /// Who.
    pub process: Pid,
    /// Its name.
    pub name: String,
}

/// A process that can be known again: another that gets its number began at another time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its name.
    pub name: String,
    start_time: u64,
}

impl Process {
    /// The process of this number; none where there is none, or where it is a thread of another.
    #[must_use]
    pub fn find(pid: Pid) -> Option<Self> {
        let task = Task::read(pid).filter(|task| !task.dead)?;
        let leads = leader_of(pid) == Some(pid);
        leads.then_some(Self { pid, name: task.comm, start_time: task.start_time })
    }

    /// Has it not ended?
    #[must_use]
    pub fn lives(&self) -> bool {
        Task::alive(self.pid, self.start_time)
    }

    /// Its threads that live now, in the order of their numbers.
    #[must_use]
    pub fn threads(&self) -> Vec<Pid> {
        let mut threads: Vec<Pid> =
            tasks::of_process(self.pid).into_iter().map(|(_, task)| task.tid).collect();
        threads.sort_unstable();
        threads
    }
}

/// The process that a thread belongs to.
fn leader_of(tid: Pid) -> Option<Pid> {
    let status = text(Path::new(&format!("/proc/{tid}/status"))).ok()?;
    let of = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    of.trim().parse().ok().map(Pid)
}

/// Everybody who listens below `root`, each once, in order.
#[must_use]
pub fn all(root: &Path) -> Vec<Listener> {
    let mut sockets: BTreeMap<u64, (Listening, u16)> = BTreeMap::new();
    for by in [Listening::Udp, Listening::Tcp] {
        for file in by.files() {
            let table = text(&under(root, file)).unwrap_or_default();
            sockets.extend(table.lines().filter_map(|line| listens(line, by)));
        }
    }
    if sockets.is_empty() {
        return Vec::new();
    }
    let mut listeners = BTreeSet::new();
    for (process, descriptors) in descriptors(root) {
        for (by, port) in descriptors.iter().filter_map(|inode| sockets.get(inode)) {
            let name = name_of(root, process);
            listeners.insert(Listener { by: *by, port: *port, process, name });
        }
    }
    listeners.into_iter().collect()
}

/// Inode and port of a line of these tables, where its socket listens.
fn listens(line: &str, by: Listening) -> Option<(u64, (Listening, u16))> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, state, _, _, _, _, _, inode, ..] = fields[..] else { return None };
    if state != by.state() {
        return None;
    }
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    // A socket that nobody has any more has no inode.
    let inode: u64 = inode.parse().ok().filter(|inode| *inode != 0)?;
    Some((inode, (by, port)))
}

/// The inodes of the sockets that each process has open.
fn descriptors(root: &Path) -> impl Iterator<Item = (Pid, Vec<u64>)> {
    let processes = std::fs::read_dir(under(root, "/proc")).into_iter().flatten().flatten();
    processes.filter_map(|process| {
        let pid: i32 = process.file_name().to_str()?.parse().ok()?;
        // Of other users' processes this is for root.
        let open = std::fs::read_dir(process.path().join("fd")).ok()?;
        let inodes = open.flatten().filter_map(|descriptor| {
            let target = std::fs::read_link(descriptor.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        });
        Some((Pid(pid), inodes.collect()))
    })
}

fn name_of(root: &Path, process: Pid) -> String {
    let comm = text(&under(root, &format!("/proc/{process}/comm"))).unwrap_or_default();
    comm.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn only_what_listens_is_read_from_the_tables() {
        let header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                      uid  timeout inode";
        assert_eq!(listens(header, Listening::Tcp), None);
        let line = |state: &str, inode: u64| {
            format!(
                "   0: 0100007F:0FB5 00000000:0000 {state} 00000000:00000000 00:00000000 \
                 00000000     0        0 {inode} 2 0000000000000000 0"
            )
        };
        let tcp = (77, (Listening::Tcp, 4021));
        assert_eq!(listens(&line("0A", 77), Listening::Tcp), Some(tcp));
        assert_eq!(listens(&line("01", 77), Listening::Tcp), None);
        assert_eq!(listens(&line("07", 77), Listening::Udp), Some((77, (Listening::Udp, 4021))));
        assert_eq!(listens(&line("0A", 0), Listening::Tcp), None);
        for broken in ["", "0:", "0: 0100007F 0 0A 0 0 0 0 0 77", "0: :zz 0 0A 0 0 0 0 0 77"] {
            assert_eq!(listens(broken, Listening::Tcp), None, "{broken}");
        }
    }

    #[test]
    fn this_process_is_found_by_the_ports_that_it_listens_at_and_by_no_others() {
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let stream = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0"));
        let stream = stream.unwrap();
        let client = TcpStream::connect(stream.local_addr().unwrap()).unwrap();
        let own = Pid(std::process::id() as i32);
        let found: Vec<Listener> =
            all(Path::new("/")).into_iter().filter(|of| of.process == own).collect();
        let at = |by, port| found.iter().filter(|of| (of.by, of.port) == (by, port)).count();
        assert_eq!(at(Listening::Udp, datagrams.local_addr().unwrap().port()), 1, "{found:?}");
        assert_eq!(at(Listening::Tcp, stream.local_addr().unwrap().port()), 1, "{found:?}");
        // A client listens nowhere.
        assert_eq!(at(Listening::Tcp, client.local_addr().unwrap().port()), 0, "{found:?}");
    }

    #[test]
    fn a_process_has_its_threads_lives_until_its_end_and_a_thread_is_no_process() {
        let own = Process::find(Pid(std::process::id() as i32)).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(whylate_sys::process::tid()).unwrap();
            let _ = ended.recv();
        });
        let tid = told.recv().unwrap();
        assert!(own.lives() && own.threads().contains(&tid), "{own:?}");
        assert_eq!(Process::find(tid), None);
        drop(end);
        thread.join().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::find(Pid(child.id() as i32)).unwrap();
        assert!(process.lives());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.lives());
        assert_eq!(Process::find(process.pid), None);
    }
}
