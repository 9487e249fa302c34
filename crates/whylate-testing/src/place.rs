//! Two network namespaces and a virtual link between them.

use std::fmt::Display;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::mount::{UnmountFlags, unmount};
use whylate_clock::HardwareCounter;
use whylate_suite::{absent, missing};
use whylate_sys::namespace;

/// Says that a test is left out; with `WHYLATE_TESTS_REQUIRE=everything` that is a failure.
fn skip<T>(reason: &impl Display) -> Option<T> {
    missing(reason);
    None
}

/// A namespace, gone with this.
pub struct Place {
    path: PathBuf,
}

/// `near` in one namespace, `far` in the other.
pub struct Bed {
    pub near: Place,
    pub far: Place,
    has_ipv6: bool,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new(directory: &Path, name: &str) -> Option<Self> {
        let path = directory.join(name);
        std::fs::write(&path, "").unwrap();
        if let Err(refusal) = namespace::make_network(&path) {
            return skip(&refusal);
        }
        Some(Self { path })
    }

    /// Runs `ip` inside.
    pub fn ip(&self, words: &str) -> bool {
        self.inside(|| {
            let output = Command::new("ip").args(words.split_whitespace()).output();
            output.is_ok_and(|output| output.status.success())
        })
    }

    /// Does something on a thread of its own inside.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let there = || {
                namespace::enter_network(&self.path).expect("it was made a moment ago");
                work()
            };
            match scope.spawn(there).join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// An ordinary socket inside, bound there, which waits for a minute at most.
    pub fn socket(&self, at: &str) -> UdpSocket {
        let socket = self.inside(|| UdpSocket::bind(at).unwrap());
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Bed {
    /// Both with addresses, up. Says why not where it cannot be.
    pub fn new() -> Option<Self> {
        Self::with("link add near type veth peer name far")
    }

    pub fn with(link: &str) -> Option<Self> {
        if let Err(reason) = HardwareCounter::open() {
            return skip(&reason);
        }
        let directory = tempfile::tempdir().unwrap();
        let near = Place::new(directory.path(), "near")?;
        let far = Place::new(directory.path(), "far")?;
        let mut bed = Self { near, far, has_ipv6: false, _directory: directory };
        let moved = format!("link set far netns {}", bed.far.path.display());
        let ready = bed.near.ip(link)
            && bed.near.ip(&moved)
            && bed.near.ip("addr add 198.18.0.1/24 dev near")
            && bed.far.ip("addr add 198.18.0.2/24 dev far");
        if !ready {
            return skip(&"no `ip`, or it makes no virtual links here");
        }
        bed.has_ipv6 = bed.near.ip("addr add fd00::1/64 dev near nodad")
            && bed.far.ip("addr add fd00::2/64 dev far nodad");
        if !(bed.near.ip("link set near up") && bed.far.ip("link set far up")) {
            return skip(&"the virtual links cannot be brought up");
        }
        Some(bed)
    }

    /// Is there anything to be tried with that address? Says that IPv6 is absent: a kernel may rightly lack it,
    /// whatever is required of the machine.
    pub fn has(&self, address: &str) -> bool {
        let has = self.has_ipv6 || !address.starts_with('[');
        if !has {
            absent(&format!("no IPv6 here for {address}"));
        }
        has
    }
}
