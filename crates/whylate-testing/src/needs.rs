//! What a test needs from the machine.
//!
//! A test that cannot run says so on stderr and returns. Where `WHYLATE_TESTS_REQUIRE=everything`
//! is set nothing may be left out, and a missing thing is a failure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whylate_host::procfs::Steal;
use whylate_model::CpuId;
pub use whylate_suite::{absent, missing, spoilt};
use whylate_sys::capability::{self, Cap};
use whylate_sys::tracefs::Tracefs;
use whylate_sys::{affinity, sched};

/// Root, for what only root may do.
pub fn root() -> bool {
    given(is_root(), "this test needs root")
}

fn is_root() -> bool {
    let uid = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
        let line = status.lines().find(|line| line.starts_with("Uid:"))?.to_owned();
        line.split_whitespace().nth(2)?.parse::<u32>().ok()
    });
    uid == Some(0)
}

/// SCHED_FIFO for a thread of this process. Where the kernel shares real time out among groups of processes,
/// the group of a test may have none, whoever runs it: that no machine is bound to have.
pub fn real_time() -> bool {
    let asked = std::thread::spawn(|| sched::set_fifo(1)).join();
    let is_there = asked.is_ok_and(|asked| asked.is_ok());
    match (is_there, capability::effective().has(Cap::SysNice)) {
        (true, _) => {}
        (false, true) => {
            absent("this test needs SCHED_FIFO, and its group of processes has no real time");
        }
        (false, false) => missing("this test needs SCHED_FIFO, and CAP_SYS_NICE for it"),
    }
    is_there
}

/// The kernel's tracing.
pub fn tracefs() -> Option<Tracefs> {
    Tracefs::open().map_err(|error| missing(&format!("no kernel tracing: {error}"))).ok()
}

/// At least so many CPUs for this process, which not every machine has to give.
pub fn cpus(count: usize) -> Option<Vec<CpuId>> {
    let cpus = affinity::get();
    if cpus.len() < count {
        absent(&format!("this test needs {count} CPUs, and {} may be used", cpus.len()));
        return None;
    }
    Some(cpus)
}

#[test]
fn more_cpus_than_there_are_leave_a_test_out_also_where_nothing_may_be_missing() {
    const WITHIN: &str = "WHYLATE_TEST_MORE_CPUS";
    if std::env::var_os(WITHIN).is_some() {
        assert_eq!(cpus(usize::MAX), None);
        return;
    }
    assert_eq!(cpus(1).map(|all| all.is_empty()), Some(false));
    // In a process of its own, for which nothing may be missing; what it leaves out is none of a suite's.
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", std::thread::current().name().unwrap()]).env(WITHIN, "1");
    child.env("WHYLATE_TESTS_REQUIRE", "everything").env_remove(whylate_suite::LEFT_OUT);
    let output = child.output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|of| String::from_utf8_lossy(of));
    assert!(out.contains("1 passed") && err.contains("skipped: this test needs "), "{out}{err}");
}

/// The CPU time of each thread, `/proc/PID/task/TID/schedstat`: an option of the kernel's build.
pub fn times_of_threads() -> bool {
    let is_there = Path::new("/proc/thread-self/schedstat").exists();
    if !is_there {
        absent("this kernel tells no CPU time of threads: it is built without CONFIG_SCHED_INFO");
    }
    is_there
}

/// Does this kernel lack what a port needs? Says so. Sockets of `AF_XDP` are an option of its build.
pub fn lacks(port: &str) -> bool {
    let protocols = std::fs::read_to_string("/proc/net/protocols").unwrap_or_default();
    // `xdp-tx` is a program of the kernel, and no socket.
    let asks = port.replace("xdp-tx", "").contains("xdp");
    let lacks = asks && !has_protocol(&protocols, "XDP");
    if lacks {
        absent(&format!("this kernel has no sockets of AF_XDP, which {port} needs"));
    }
    lacks
}

/// Those of these ports that this kernel does not lack.
pub fn offered<const N: usize>(ports: [&'static str; N]) -> impl Iterator<Item = &'static str> {
    ports.into_iter().filter(|port| !lacks(port))
}

/// Is there a row of it in `/proc/net/protocols`?
fn has_protocol(protocols: &str, name: &str) -> bool {
    protocols.lines().skip(1).any(|line| line.split_whitespace().next() == Some(name))
}

#[test]
fn a_protocol_is_had_where_the_kernel_lists_it() {
    let head = "protocol  size sockets  memory press maxhdr  slab module     cl co\n";
    let listed =
        format!("{head}PACKET    1408      0      -1   NI       0   no   kernel      n  n\n");
    assert!(!has_protocol(&listed, "XDP") && !has_protocol("", "XDP"));
    assert!(has_protocol(&format!("{listed}XDP  1088 0 -1 NI 0 no kernel n n\n"), "XDP"));
}

/// A program in `$PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let found = find_program(name);
    given(found.is_some(), &format!("{name} is not installed"));
    found
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Time that all CPUs together were busy, less what ended children of this process used.
struct Busy {
    foreign: u64,
}

impl Busy {
    fn now() -> Self {
        let read = |path| std::fs::read_to_string(Path::new(path)).unwrap();
        let stat = read("/proc/stat");
        let row = stat.lines().next().unwrap().split_whitespace().skip(1).take(8);
        let fields: Vec<u64> = row.map(|field| field.parse().unwrap()).collect();
        let own = read("/proc/self/stat");
        let after_name = own.rsplit(')').next().unwrap();
        let own: u64 =
            after_name.split_whitespace().skip(11).take(4).map(|t| t.parse::<u64>().unwrap()).sum();
        // user, nice and system; not the host's steal, and not the interrupts of the run itself.
        Self { foreign: fields[..3].iter().sum::<u64>().saturating_sub(own) }
    }
}

/// What the hypervisor took of some CPUs since then, and other processes of this machine.
pub struct Taken {
    cpus: Vec<CpuId>,
    steal: Option<Steal>,
    busy: Busy,
    threads: BTreeMap<String, u64>,
}

/// CPU time that all threads have had, in nanoseconds, by their names.
fn had_by_name() -> BTreeMap<String, u64> {
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut had = BTreeMap::new();
    for process in entries(Path::new("/proc")) {
        for thread in entries(&process.path().join("task")) {
            // It may have ended since.
            let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let ns = read("schedstat").split_whitespace().next().and_then(|ns| ns.parse().ok());
            *had.entry(read("comm").trim_end().to_owned()).or_insert(0) += ns.unwrap_or(0_u64);
        }
    }
    had
}

/// Nanoseconds of a clock tick of `/proc/stat`, which Linux tells in hundredths of a second.
const TICK_NS: f64 = 1e7;

impl Taken {
    pub fn now(cpus: &[CpuId]) -> Self {
        let steal = Steal::read(Path::new("/")).ok();
        Self { cpus: cpus.to_vec(), steal, busy: Busy::now(), threads: had_by_name() }
    }

    /// What the hypervisor took of these CPUs, in nanoseconds, by what the kernel counts.
    pub fn by_the_host_ns(&self) -> f64 {
        let now = Steal::read(Path::new("/")).ok();
        let both = self.steal.as_ref().zip(now);
        both.and_then(|(before, now)| before.delta_ns(&now, &self.cpus)).unwrap_or(0.0)
    }

    /// CPU time of other processes, in nanoseconds, of all CPUs.
    pub fn by_others_ns(&self) -> f64 {
        Busy::now().foreign.saturating_sub(self.busy.foreign) as f64 * TICK_NS
    }

    /// CPU time of all threads of this name, in nanoseconds, as the scheduler accounts it.
    pub fn by_threads_ns(&self, name: &str) -> f64 {
        let had = |by: &BTreeMap<String, u64>| by.get(name).copied().unwrap_or(0);
        had(&had_by_name()).saturating_sub(had(&self.threads)) as f64
    }

    /// Both.
    pub fn ns(&self) -> f64 {
        self.by_the_host_ns() + self.by_others_ns()
    }
}

/// For figures, which say why they are not taken: root.
pub fn can_be_root() -> Result<(), String> {
    is_root().then_some(()).ok_or_else(|| "it needs root".to_owned())
}

/// At least so many CPUs.
pub fn can_use(cpus: usize) -> Result<(), String> {
    (affinity::get().len() >= cpus).then_some(()).ok_or_else(|| format!("it needs {cpus} CPUs"))
}

/// The last CPU of this process: where something is measured, the first one being everybody's.
pub fn last_cpu() -> CpuId {
    affinity::get().last().copied().unwrap_or(CpuId(0))
}

/// A program in `$PATH`.
pub fn can_run(name: &str) -> Result<(), String> {
    find_program(name).map(|_| ()).ok_or_else(|| format!("{name} is not installed"))
}

/// The kernel's tracing.
pub fn can_trace() -> Result<(), String> {
    Tracefs::open().map(|_| ()).map_err(|error| format!("no kernel tracing: {error}"))
}

fn given(there: bool, reason: &str) -> bool {
    if !there {
        missing(reason);
    }
    there
}
