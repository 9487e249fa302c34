//! Noise of a machine that others use, planted: a real-time thread that takes the CPU now and then, a hog on
//! each CPU, and children of the tests that are stopped for a while and go on.
//!
//! All of it is bounded. Real-time thread and hogs are processes of their own (this program again) that end
//! when their parent is gone, and after [`MOST`]. Who is stopped is let go by the same shell that stopped
//! it, which no Ctrl-C ends meanwhile; only descendants of the tests are stopped, and none that is stopped
//! already. A test that stops a child in the very instant at which noise has stopped it sees it go on too
//! soon.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::now;
use crate::processes::{self, Processes, below};

/// Longer than any soak, shorter than a night.
const MOST: Duration = Duration::from_secs(6 * 3_600);
/// The real-time thread takes so long, in milliseconds, and so much of all time, in percent.
const TAKES_MS: (u64, u64) = (10, 100);
const SHARE: u64 = 15;
const PRIORITY: &str = "50";
/// A child is stopped for so long, and some other this long afterwards.
const STOPPED_MS: (u64, u64) = (20, 200);
const BETWEEN_MS: (u64, u64) = (200, 1_000);
/// A hog looks for its parent after so many turns: some milliseconds.
const TURNS: u64 = 1 << 22;
/// Stops `$0` for `$1` seconds; what ends a terminal's programs does not end it halfway.
const STOP: &str = "trap '' INT TERM HUP; kill -s STOP \"$0\" && sleep \"$1\"; kill -s CONT \"$0\"";

/// Numbers that differ, from a seed: xorshift.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn within(&mut self, (least, most): (u64, u64)) -> u64 {
        least + self.next() % (most - least + 1)
    }
}

/// Another one each time.
pub(super) fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// What was made of noise.
#[derive(Debug)]
pub(super) struct Planted {
    hogs: usize,
    /// So often a child of the tests was stopped.
    pub(super) stops: u64,
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hogs, .. } = self;
        let ((least, most), (short, long)) = (TAKES_MS, STOPPED_MS);
        write!(
            f,
            "SCHED_FIFO {PRIORITY} for {least}-{most} ms, {SHARE} % of the time; a hog on each of {hogs} CPUs; \
             children stopped for {short}-{long} ms"
        )
    }
}

/// Noise that is made until [`Noise::end`].
pub(super) struct Noise {
    children: Vec<(String, Child)>,
    over: Arc<AtomicBool>,
    tests: Arc<AtomicU32>,
    stopper: Option<JoinHandle<u64>>,
}

impl Noise {
    pub(super) fn begin() -> Result<Self> {
        let seed = seed();
        let own = std::env::current_exe()?.display().to_string();
        let mut noise = Self {
            children: Vec::new(),
            over: Arc::new(AtomicBool::new(false)),
            tests: Arc::new(AtomicU32::new(0)),
            stopper: None,
        };
        let seeds = seed.to_string();
        noise.start(
            "the real-time thread",
            Command::new("chrt").args(["--fifo", PRIORITY, &own, "noise", "fifo", &seeds]),
        )?;
        for cpu in cpus()? {
            let words = ["--cpu-list", &cpu, &own, "noise", "hog", &seeds];
            noise.start(&format!("the hog of CPU {cpu}"), Command::new("taskset").args(words))?;
        }
        let (over, tests) = (Arc::clone(&noise.over), Arc::clone(&noise.tests));
        noise.stopper = Some(std::thread::spawn(move || stop_children(seed, &over, &tests)));
        Ok(noise)
    }

    fn start(&mut self, what: &str, command: &mut Command) -> Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        self.children.push((what.to_owned(), child));
        Ok(())
    }

    /// From now on, children of the tests that this process runs are stopped.
    pub(super) fn stops_children_of(&self, pid: u32) {
        self.tests.store(pid, Ordering::Relaxed);
    }

    /// Ends it; what was planted. Noise that ended before it was told to proves nothing.
    pub(super) fn end(mut self) -> Result<Planted> {
        for (what, child) in &mut self.children {
            if let Some(status) = child.try_wait()? {
                bail!("{what} ended early: {status}");
            }
        }
        let hogs = self.children.len() - 1;
        Ok(Planted { hogs, stops: self.stop().unwrap_or(0) })
    }

    fn stop(&mut self) -> Option<u64> {
        self.over.store(true, Ordering::Relaxed);
        for (_, child) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.stopper.take()?.join().ok()
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.stop();
    }
}

/// CPUs that this process may use.
fn cpus() -> Result<Vec<String>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    parse_cpus(list.context("/proc/self/status names no CPUs")?.trim())
}

/// Of `0-2,5`.
fn parse_cpus(text: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse()?, last.parse()?);
        found.extend((first..=last).map(|cpu| cpu.to_string()));
    }
    Ok(found)
}

/// Stops one child of the tests after the other; how many.
fn stop_children(seed: u64, over: &AtomicBool, tests: &AtomicU32) -> u64 {
    let mut random = Random::new(seed);
    let mut stops = 0;
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(random.within(BETWEEN_MS)));
        let all = processes::all();
        let children = descendants(&all, tests.load(Ordering::Relaxed));
        if children.is_empty() {
            continue;
        }
        let chosen = children[random.next() as usize % children.len()].to_string();
        let seconds = format!("0.{:03}", random.within(STOPPED_MS));
        let done = Command::new("sh").args(["-c", STOP, &chosen, &seconds]).output();
        stops += u64::from(done.is_ok_and(|output| output.status.success()));
    }
    stops
}

/// Running descendants of the program of tests that cargo runs, without both of them.
fn descendants(all: &Processes, cargo: u32) -> Vec<u32> {
    let is_test = |pid: &u32| all.get(pid).is_some_and(|of| of.parent == cargo);
    let runs = |pid: &u32| all.get(pid).is_some_and(|of| !of.stopped);
    below(all, cargo).into_iter().filter(|pid| !is_test(pid) && runs(pid)).collect()
}

/// Makes noise of this kind until the parent is gone.
pub(crate) fn make(kind: &str, seed: &str) -> Result<()> {
    let mut random = Random::new(seed.parse()?);
    let (parent, begun) = (std::os::unix::process::parent_id(), now());
    let goes_on = || std::os::unix::process::parent_id() == parent && begun.elapsed() < MOST;
    match kind {
        "fifo" => {
            while goes_on() {
                let takes = random.within(TAKES_MS);
                let (begins, most) = (now(), Duration::from_millis(takes));
                while begins.elapsed() < most {
                    std::hint::spin_loop();
                }
                std::thread::sleep(Duration::from_millis(rest_ms(takes)));
            }
        }
        "hog" => {
            while goes_on() {
                (0..TURNS).for_each(|_| std::hint::spin_loop());
            }
        }
        other => bail!("there is no noise `{other}`"),
    }
    Ok(())
}

/// How long it rests after so much.
fn rest_ms(takes: u64) -> u64 {
    takes * (100 - SHARE) / SHARE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::Process;

    #[test]
    fn what_is_drawn_lies_within_its_bounds_and_differs() {
        let mut random = Random::new(4);
        let all: Vec<u64> = (0..1_000).map(|_| random.within((10, 100))).collect();
        assert!(all.iter().all(|ms| (10..=100).contains(ms)));
        assert!(all.iter().min() < Some(&15) && all.iter().max() > Some(&95));
    }

    #[test]
    fn the_real_time_thread_rests_for_the_rest_of_its_share() {
        let (takes, rests) =
            (1..=60).map(|n| (n, rest_ms(n))).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        let share = takes * 100 / (takes + rests);
        assert!((14..=16).contains(&share), "{share} %");
    }

    #[test]
    fn only_those_below_the_tests_are_stopped_and_none_that_is_already() {
        // 5 is cargo, 6 the tests, 7 their child, 8 its child, 9 stopped, 20 somebody else's.
        let all = [(1, 0), (4, 1), (5, 4), (6, 5), (7, 6), (8, 7), (9, 6), (20, 4)];
        let of = |parent, stopped| Process { parent, stopped };
        let all = all.map(|(pid, parent)| (pid, of(parent, pid == 9))).into();
        assert_eq!(descendants(&all, 5), [7, 8]);
        assert_eq!(descendants(&all, 0), [0; 0]);
        assert_eq!(descendants(&all, 99), [0; 0]);
        let ring = [(7, of(8, false)), (8, of(7, false))].into();
        assert_eq!(descendants(&ring, 5), [0; 0]);
    }

    #[test]
    fn cpus_are_read() -> Result<()> {
        assert_eq!(parse_cpus("0-2,5")?, ["0", "1", "2", "5"]);
        assert!(parse_cpus("a").is_err());
        Ok(())
    }

    #[test]
    fn a_child_is_stopped_and_goes_on() -> Result<()> {
        let mut child = Command::new("sleep").arg("600").spawn()?;
        let pid = child.id();
        let stopper = Command::new("sh").args(["-c", STOP, &pid.to_string(), "0.3"]).spawn();
        let is = |stopped: bool| processes::all().get(&pid).is_some_and(|of| of.stopped == stopped);
        let until = |stopped: bool| {
            (0..3_000).any(|_| {
                std::thread::sleep(Duration::from_millis(20));
                is(stopped)
            })
        };
        let (was_stopped, goes_on) = (until(true), until(false));
        let _ = stopper.map(|mut shell| shell.wait());
        let ended = child.kill().and_then(|()| child.wait());
        assert!(was_stopped && goes_on, "{was_stopped} {goes_on}");
        assert!(ended.is_ok());
        Ok(())
    }
}
