//! A forwarder between two hosts of network namespaces, for the tests of what it carries and how fast.
//!
//! Everything is inside the namespaces, which go with the bed.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;
use whylate_model::Pid;
use whylate_model::directory::RunDir;
use whylate_model::forward::{Forward, ForwardDirection};
use whylate_sys::signal::send_to_process;
use whylate_sys::{ethtool, namespace};

use crate::lines::Lines;
use crate::needs;
use crate::program::{self, Recorded, Started, doubted, recorded, until, whylate};

pub const SIGINT: i32 = 2;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;
/// Hardware addresses of the hosts, and their addresses.
const CLIENT: (&str, &str) = ("02:00:00:00:00:01", "198.18.0.1");
const SERVER: (&str, &str) = ("02:00:00:00:00:02", "198.18.0.2");
/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// A mark that has not come after so long is followed by another one.
const MARK: Duration = Duration::from_secs(1);

/// A network namespace, gone with this.
pub struct Place {
    path: PathBuf,
}

impl Place {
    fn new(directory: &Path, name: &str) -> Option<Self> {
        let path = directory.join(name);
        std::fs::write(&path, "").unwrap();
        if let Err(refusal) = namespace::make_network(&path) {
            needs::missing(&format!("no network namespaces here: {refusal}"));
            return None;
        }
        let place = Self { path };
        // So that nobody says anything by itself.
        let quiet = |of: &str| format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6");
        place.inside(|| {
            for of in ["all", "default"] {
                // A kernel without IPv6 is as quiet.
                let _ = std::fs::write(quiet(of), "1");
            }
        });
        Some(place)
    }

    /// Does something on a thread of its own inside; processes that it starts are born there.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let there = || {
                namespace::enter_network(&self.path).unwrap();
                work()
            };
            match scope.spawn(there).join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    pub fn try_ip(&self, words: &str) -> bool {
        let run = || Command::new("ip").args(words.split_whitespace()).output();
        self.inside(run).is_ok_and(|output| output.status.success())
    }

    pub fn ip(&self, words: &str) {
        assert!(self.try_ip(words), "ip {words}");
    }

    /// Frames that leave by an interface inside and that the link had no room for.
    pub fn dropped_by_link(&self, interface: &str) -> u64 {
        const DROPPED: usize = 11;
        let text = self.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
        let begin = format!("{interface}:");
        let numbers = text.lines().find_map(|line| line.trim_start().strip_prefix(&begin));
        numbers.unwrap().split_whitespace().nth(DROPPED).unwrap().parse().unwrap()
    }

    /// An ordinary socket inside.
    fn socket(&self, at: &str) -> UdpSocket {
        let socket = self.inside(|| UdpSocket::bind(at).unwrap());
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        let _ = std::fs::remove_file(&self.path);
    }
}

/// `client0` of the client, `a` and `b` of the forwarder, `server0` of the server, joined in this order.
pub struct Bed {
    pub client: Place,
    pub between: Place,
    pub server: Place,
    _directory: TempDir,
}

impl Bed {
    /// Nobody has to ask for an address. Says why not where it cannot be.
    pub fn new() -> Option<Self> {
        Self::asking().map(Self::acquainted)
    }

    /// The same with links that have two queues at either end.
    pub fn of_two_queues() -> Option<Self> {
        Self::with("numtxqueues 2 numrxqueues 2").map(Self::acquainted)
    }

    /// Each host is told the other one's hardware address.
    fn acquainted(self) -> Self {
        let known = |place: &Place, link: &str, (mac, address): (&str, &str)| {
            place.ip(&format!("neigh add {address} lladdr {mac} dev {link} nud permanent"));
        };
        known(&self.client, "client0", SERVER);
        known(&self.server, "server0", CLIENT);
        self
    }

    /// The hosts ask for each other's hardware addresses, as ordinary ones do.
    pub fn asking() -> Option<Self> {
        Self::with("")
    }

    /// The same, and `queues` are words about either end of both links.
    fn with(queues: &str) -> Option<Self> {
        if !needs::root() || needs::program("ip").is_none() {
            return None;
        }
        // Not from inside a namespace.
        program::path();
        let directory = tempfile::tempdir().unwrap();
        let place = |name| Place::new(directory.path(), name);
        let (client, between, server) = (place("client")?, place("between")?, place("server")?);
        for (host, link, port, (mac, address)) in
            [(&client, "client0", "a", CLIENT), (&server, "server0", "b", SERVER)]
        {
            let near = format!("link add {link} address {mac} {queues}");
            if !host.try_ip(&format!("{near} type veth peer name {port} {queues}")) {
                needs::missing("no virtual links here");
                return None;
            }
            host.ip(&format!("link set dev {port} netns {}", between.path.display()));
            host.ip(&format!("addr add {address}/24 dev {link}"));
            between.ip(&format!("link set dev {port} up"));
            host.ip(&format!("link set dev {link} up"));
            // A link that leaves checksums to a card has none to leave them to.
            host.inside(|| ethtool::make_checksums_early(link)).unwrap();
        }
        Some(Self { client, between, server, _directory: directory })
    }

    /// A forwarder between the hosts, started.
    pub fn forward(&self, words: &str) -> Forwarding {
        Forwarding::new(self, words)
    }

    /// A forwarder that ends by itself.
    pub fn forward_to_its_end(&self, words: &str) -> Output {
        let mut command = whylate(format!("forward {words}").split_whitespace());
        self.between.inside(move || command.output()).unwrap()
    }

    /// Requests of the client to a reflector of the server, through whatever is between them.
    pub fn asked(&self, words: &str) -> Recorded {
        let at: SocketAddr = "198.18.0.2:11111".parse().unwrap();
        let (reflector, _) = self.server.inside(|| reflecting(at));
        let recorded = self.client.inside(|| asked(at, words));
        drop(reflector);
        recorded
    }

    /// Sockets of both hosts.
    pub fn sockets(&self) -> (UdpSocket, UdpSocket) {
        let client = self.client.socket("198.18.0.1:7000");
        let server = self.server.socket("198.18.0.2:7000");
        (client, server)
    }
}

/// Sends so many datagrams there and back, each when the one before has come.
pub fn there_and_back((client, server): &(UdpSocket, UdpSocket), times: u32) {
    let mut buffer = [0; 2_048];
    for number in 0..times {
        let text = format!("message {number}");
        client.send_to(text.as_bytes(), "198.18.0.2:7000").unwrap();
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(
            (&buffer[..length], from.to_string()),
            (text.as_bytes(), "198.18.0.1:7000".into())
        );
        server.send_to(&buffer[..length], from).unwrap();
        let length = client.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], text.as_bytes());
    }
}

/// Sends marks until the last one has come: all that was sent before has been passed on by then, or lost.
/// How many marks were sent, and how many messages came, the marks among them.
pub fn settled((client, server): (&UdpSocket, &UdpSocket), to: SocketAddr) -> (u64, u64) {
    server.set_read_timeout(Some(MARK)).unwrap();
    let (mut came, mut buffer) = (0, [0; 2_048]);
    for sent in 1..=PATIENCE.as_secs() {
        let mark = format!("mark {sent}");
        client.send_to(mark.as_bytes(), to).unwrap();
        while let Ok(length) = server.recv(&mut buffer) {
            came += 1;
            if &buffer[..length] == mark.as_bytes() {
                return (sent, came);
            }
        }
    }
    panic!("no mark came, and {came} other messages")
}

/// Sends so many short messages to the server as fast as the link hands them on.
pub fn flood(client: &UdpSocket, messages: u64) {
    for number in 0..messages {
        client.send_to(b"flood", "198.18.0.2:7000").unwrap();
        // A virtual link holds 256 by itself: it is left the time to hand them over.
        if number % 50 == 49 {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A reflector that listens at this address, from where the calling thread is, and where it says that it does.
pub fn reflecting(listen: SocketAddr) -> (Started, SocketAddr) {
    let mut command = whylate(["reflect", "--listen", &listen.to_string(), "--idle", "60s"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = Lines::of(child.stderr.take().unwrap()).until("listening on ");
    let (_, at) = said.split_once("listening on ").unwrap();
    let at = at.split([' ', '\n']).next().unwrap();
    (Started(child), at.parse().unwrap_or_else(|_| panic!("{said}")))
}

/// Requests to somebody who answers at this address, from where the calling thread is.
pub fn asked(to: SocketAddr, words: &str) -> Recorded {
    recorded(&format!("rtt {to} --warmup 100ms --no-trace {words}"))
}

/// A forwarder, killed with the test.
pub struct Forwarding {
    pub child: Child,
    stderr: Lines,
}

impl Forwarding {
    /// Waits until it forwards.
    fn new(bed: &Bed, words: &str) -> Self {
        let words = format!("a b {words}");
        let (forwarding, said) = bed.between.inside(|| Self::started(&words));
        assert!(said.contains("forwarding between a and b"), "whylate forward {words}: {said}");
        forwarding
    }

    /// Starts one from where the calling thread is, and waits until it forwards. What it said comes with it.
    pub fn started(words: &str) -> (Self, String) {
        let mut command = whylate(["forward", "--format", "json", "--no-dma-latency"]);
        command.args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = Lines::of(child.stderr.take().unwrap());
        let said = stderr.until("forwarding between ");
        (Self { child, stderr }, said)
    }

    /// Starts one of datagrams to this server, and tells where clients reach it.
    pub fn of_datagrams(to: SocketAddr, words: &str) -> (Self, SocketAddr) {
        let (forwarding, said) = Self::started(&format!("127.0.0.1:0 {to} --port udp {words}"));
        let (_, rest) = said.split_once("forwarding between ").unwrap();
        (forwarding, rest.split_once(" and ").unwrap().0.parse().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid(self.child.id() as i32)
    }

    /// Does something while it stands still.
    pub fn standing_still<T>(&self, work: impl FnOnce() -> T) -> T {
        send_to_process(self.pid(), SIGSTOP).unwrap();
        let state = format!("/proc/{}/stat", self.child.id());
        until("it stands still", || {
            let text = std::fs::read_to_string(&state).ok()?;
            text.rsplit_once(')')?.1.trim_start().starts_with('T').then_some(())
        });
        let done = work();
        send_to_process(self.pid(), SIGCONT).unwrap();
        done
    }

    /// Stops it and reads what it did; a noisy host may end it with 4.
    pub fn stop(mut self) -> Forward {
        send_to_process(self.pid(), SIGINT).unwrap();
        self.end_with(&[0, 4])
    }

    /// Waits for its end with this status and reads what it did.
    pub fn end(&mut self, status: i32) -> Forward {
        self.end_with(&[status])
    }

    fn end_with(&mut self, statuses: &[i32]) -> Forward {
        let told = serde_json::from_reader(self.child.stdout.take().unwrap());
        let rest = self.stderr.rest();
        let status = self.child.wait().unwrap().code();
        assert!(status.is_some_and(|status| statuses.contains(&status)), "{status:?}: {rest}");
        let told: Forward = told.unwrap();
        if statuses == [0, 4] {
            doubted(status, &told.warnings, &[]);
        }
        told
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What its last checkpoint has of a forwarder that is recorded there; none before the first.
pub fn checkpoint(directory: &Path) -> Option<Forward> {
    let run = RunDir::open(directory).ok()?.read_run().ok()?;
    run.forward.map(|forward| *forward)
}

/// What every account holds.
pub fn closes(of: &Forward) {
    assert!(of.directions.iter().all(ForwardDirection::closes), "{of:?}");
}
