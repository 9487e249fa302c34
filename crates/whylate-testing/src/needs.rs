//! What a test needs from the machine.
//!
//! A test that cannot run says so on stderr and returns. Where `WHYLATE_TESTS_REQUIRE=everything`
//! is set nothing may be left out, and a missing thing is a failure.

use std::path::PathBuf;

use whylate_model::CpuId;
pub use whylate_suite::{absent, missing, say};
use whylate_sys::capability::{self, Cap};
use whylate_sys::tracefs::Tracefs;
use whylate_sys::{affinity, sched};

/// Says that a test is left out for want of something that no machine is bound to have.
pub fn left_out(reason: &str) {
    say(&format!("skipped: {reason}"));
}

/// Says that the host or others spoilt every run of a test, by evidence: nothing was missing, nothing
/// is claimed, and nothing fails.
pub fn spoilt(reason: &str) {
    say(&format!("no claim: {reason}"));
}

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
    assert_eq!(cpus(usize::MAX), None);
    assert_eq!(cpus(1).map(|all| all.is_empty()), Some(false));
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
