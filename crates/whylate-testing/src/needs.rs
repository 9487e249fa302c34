//! What a test needs from the machine.
//!
//! A test that cannot run says so on stderr and returns. Where `WHYLATE_TESTS_REQUIRE=everything`
//! is set nothing may be left out, and a missing thing is a failure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use whylate_host::procfs::Steal;
use whylate_model::CpuId;
pub use whylate_suite::{absent, missing, say};
use whylate_sys::capability::{self, Cap};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::tracefs::Tracefs;
use whylate_sys::{affinity, sched};

/// Share of all CPUs that other processes may use while names of gaps are judged.
const QUIET: f64 = 0.1;

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

/// Time that all CPUs together were busy, less what ended children of this process used.
pub struct Busy {
    total: u64,
    foreign: u64,
}

impl Busy {
    pub fn now() -> Self {
        let read = |path| std::fs::read_to_string(Path::new(path)).unwrap();
        let stat = read("/proc/stat");
        let row = stat.lines().next().unwrap().split_whitespace().skip(1).take(8);
        let fields: Vec<u64> = row.map(|field| field.parse().unwrap()).collect();
        let own = read("/proc/self/stat");
        let after_name = own.rsplit(')').next().unwrap();
        let own: u64 =
            after_name.split_whitespace().skip(11).take(4).map(|t| t.parse::<u64>().unwrap()).sum();
        // user, nice and system; not the host's steal, and not the interrupts of the run itself.
        Self {
            total: fields.iter().sum(),
            foreign: fields[..3].iter().sum::<u64>().saturating_sub(own),
        }
    }

    /// Share of the CPUs' time since then that others used.
    pub fn share_until_now(&self) -> f64 {
        let now = Self::now();
        now.foreign.saturating_sub(self.foreign) as f64
            / now.total.saturating_sub(self.total).max(1) as f64
    }

    /// Were others busy since then?
    pub fn disturbed(&self) -> bool {
        self.share_until_now() > QUIET
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

/// Runs made at most where the host or others may spoil one.
pub const TRIES: usize = 3;

/// Share of the CPU time of a long run that is taken from it on any machine that others use.
const USUAL_SHARE: f64 = 0.02;

/// What the first of some runs came to that is as it should be. One that is not fails, unless the host
/// and others took `excused_ns` and more of the CPUs meanwhile; then it is made again. None where they
/// did in every one.
pub fn unless_taken<T>(
    cpus: &[CpuId],
    excused_ns: f64,
    run: impl FnMut() -> Result<T, String>,
) -> Option<T> {
    unless_more_taken(cpus, |_| excused_ns, run)
}

/// The same of runs so long that what a quiet machine takes of them is more than `least_ns`: what excuses
/// one is a share of the CPU time that it had, and `least_ns` at least.
pub fn unless_much_taken<T>(
    cpus: &[CpuId],
    least_ns: f64,
    run: impl FnMut() -> Result<T, String>,
) -> Option<T> {
    unless_more_taken(cpus, |took| excused_of(cpus.len(), took, least_ns), run)
}

/// What excuses a run that took so long on so many CPUs, in nanoseconds of CPU time.
fn excused_of(cpus: usize, took: Duration, least_ns: f64) -> f64 {
    least_ns.max(USUAL_SHARE * cpus as f64 * took.as_secs_f64() * 1e9)
}

fn unless_more_taken<T>(
    cpus: &[CpuId],
    excused_ns: impl Fn(Duration) -> f64,
    mut run: impl FnMut() -> Result<T, String>,
) -> Option<T> {
    for _ in 0..TRIES {
        let (taken, began) = (Taken::now(cpus), clock_ns(Clock::Monotonic));
        match run() {
            Ok(found) => return Some(found),
            Err(why) => {
                let took = Duration::from_nanos(clock_ns(Clock::Monotonic) - began);
                let excused_ns = excused_ns(took);
                let ms = taken.ns() / 1e6;
                assert!(
                    ms * 1e6 >= excused_ns,
                    "{why}; the host and others took no more than {ms:.0} ms"
                );
                say(&format!("once more, {ms:.0} ms were taken: {why}"));
            }
        }
    }
    spoilt("the host or other processes took the CPUs during every run");
    None
}

#[test]
fn a_run_that_is_not_as_it_should_be_fails_unless_the_cpus_were_taken() {
    let cpus = affinity::get();
    assert_eq!(unless_taken(&cpus, f64::MAX, || Ok::<_, String>(7)), Some(7));
    let mut runs = 0;
    let good_at_last = || {
        runs += 1;
        if runs < 3 { Err("bad".to_owned()) } else { Ok(runs) }
    };
    // Nothing need have been taken for the excuse.
    assert_eq!(unless_taken(&cpus, 0.0, good_at_last), Some(3));
    let failed =
        std::panic::catch_unwind(|| unless_taken(&cpus, f64::MAX, || Err::<(), _>("bad".into())));
    assert!(failed.is_err(), "nobody takes so much");
}

#[test]
fn what_excuses_a_long_run_grows_with_it_and_a_short_one_needs_as_much_as_it_says() {
    // 2 % of a minute of two CPUs.
    assert!((excused_of(2, Duration::from_secs(60), 50e6) - 2.4e9).abs() < 1.0);
    assert!((excused_of(2, Duration::from_millis(100), 50e6) - 50e6).abs() < 1.0);
    let cpus = affinity::get();
    assert_eq!(unless_much_taken(&cpus, f64::MAX, || Ok::<_, String>(7)), Some(7));
    let failed = std::panic::catch_unwind(|| {
        unless_much_taken(&cpus, f64::MAX, || Err::<(), _>("bad".into()))
    });
    assert!(failed.is_err(), "nobody takes so much");
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
