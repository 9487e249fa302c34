//! What tests share: trees of `/proc` and `/sys` made by hand, and how a test is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;
use whylate_model::{CpuId, Pid};

use crate::files::under;
use crate::kernel;

pub(crate) use whylate_suite::absent as skip;

/// Says that a test which starts its own program again cannot be done here, where that is so: under an
/// emulator of another processor the kernel does not start it.
pub(crate) fn emulated() -> bool {
    let emulated = std::env::var_os("WHYLATE_EMULATED").is_some();
    if emulated {
        skip(&"the kernel does not start what an emulator runs");
    }
    emulated
}

/// Tests that move interrupts of this host take turns: they move the same few.
pub(crate) static INTERRUPTS: Mutex<()> = Mutex::new(());

/// Tests that give CPUs of this host to one cpuset alone take turns, with each other and with those
/// that look at which CPUs threads may run on.
pub(crate) static CPUSETS: Mutex<()> = Mutex::new(());

/// Waits for one's turn, also after a test that failed in its own.
pub(crate) fn turn(of: &'static Mutex<()>) -> MutexGuard<'static, ()> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A root directory that goes away with its value.
pub(crate) struct Tree(TempDir);

impl Tree {
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, absolute: &str, text: &str) -> &Self {
        self.bytes(absolute, text.as_bytes())
    }

    pub(crate) fn bytes(&self, absolute: &str, bytes: &[u8]) -> &Self {
        let path = under(self.root(), absolute);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    /// Four cores of two threads on two nodes; cpu 7 offline, core 2 isolated.
    pub(crate) fn smt_host() -> Self {
        let tree = Self::empty();
        let cpu = "/sys/devices/system/cpu";
        tree.file(&format!("{cpu}/possible"), "0-127\n")
            .file(&format!("{cpu}/present"), "0-7\n")
            .file(&format!("{cpu}/online"), "0-6\n")
            .file(&format!("{cpu}/offline"), "7\n")
            .file(&format!("{cpu}/isolated"), "2,6\n")
            .file("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n")
            .file("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
        for number in 0..7_u32 {
            let core = number % 4;
            let list = if core == 3 { "3\n".to_owned() } else { format!("{core},{}\n", core + 4) };
            tree.file(&format!("{cpu}/cpu{number}/topology/core_cpus_list"), &list);
        }
        tree
    }
}

/// A process that does nothing; it ends with its input, and so with the test.
pub(crate) struct Idle(Child);

impl Idle {
    pub(crate) fn start() -> Self {
        let mut idle = Command::new("cat");
        Self(idle.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// One that may run on this CPU alone.
    pub(crate) fn on(cpu: CpuId) -> Self {
        let idle = Self::start();
        kernel::set_affinity(idle.pid(), &[cpu]).unwrap();
        idle
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid(self.0.id() as i32)
    }

    /// Where it may run.
    pub(crate) fn cpus(&self) -> Vec<CpuId> {
        kernel::affinity(self.pid()).unwrap()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A knob with a will of its own: it takes 0 for 50000. The timer slack of a process that does
/// nothing; to write it takes `CAP_SYS_NICE`.
pub(crate) struct SelfWilled(Idle);

impl SelfWilled {
    pub(crate) fn start() -> Self {
        Self(Idle::start())
    }

    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/timerslack_ns", self.0.pid()).into()
    }
}
