//! DPDK's environment (EAL): started once in a process, or never.
//!
//! [EAL parameters](https://doc.dpdk.org/guides-22.11/linux_gsg/linux_eal_parameters.html). It pins the
//! thread that starts it, so that is one of our own. Locks and ordinary memory need no capability;
//! devices may.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use whylate_port::device::{Device, Pages};
use whylate_sys::affinity;

use crate::error::DpdkError;
use crate::hugepages;
use crate::raw;
use crate::words::{Start, last_of};

/// Lines of what DPDK said that an error has.
const LINES: usize = 3;

/// How DPDK runs in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// With what it was started.
    pub start: Start,
    /// What was not to be had, in words.
    pub instead: Option<String>,
}

#[derive(Debug)]
enum State {
    Never,
    Runs(Running),
    /// It cannot be tried again.
    Failed(DpdkError),
}

static STATE: Mutex<State> = Mutex::new(State::Never);
static TAKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Makes DPDK ready for all of these devices, where it does not run yet. Who opens several and has a
/// card among them calls this first: what it was not started for, it does not drive.
pub fn prepare(devices: &[&Device]) -> Result<Running, DpdkError> {
    let (mut asked, pages) = Start::of(devices)?;
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    match &*state {
        State::Runs(running) => {
            if pages == Pages::Auto {
                asked.huge = running.start.huge;
            } else {
                asked.huge = pages == Pages::Huge;
            }
            if running.start.serves(&asked) {
                return Ok(running.clone());
            }
            Err(DpdkError::OtherEal { running: running.start.clone(), asked })
        }
        State::Failed(error) => Err(error.clone()),
        State::Never => {
            let instead =
                choose(&mut asked, pages, hugepages::free_mb(Path::new(hugepages::PLACE)))?;
            match started(&asked) {
                Ok(()) => {
                    let running = Running { start: asked, instead };
                    *state = State::Runs(running.clone());
                    Ok(running)
                }
                Err(error) => {
                    *state = State::Failed(error.clone());
                    Err(error)
                }
            }
        }
    }
}

/// How it runs here; none where it was not started.
#[must_use]
pub fn running() -> Option<Running> {
    match &*STATE.lock().unwrap_or_else(PoisonError::into_inner) {
        State::Runs(running) => Some(running.clone()),
        _ => None,
    }
}

/// Decides on pages; what was not to be had is said.
fn choose(asked: &mut Start, pages: Pages, free_mb: u64) -> Result<Option<String>, DpdkError> {
    let wanted_mb = asked.memory_mb;
    let enough = free_mb >= u64::from(wanted_mb);
    match (pages, enough) {
        (Pages::Huge, false) => Err(DpdkError::NoHugepages { wanted_mb, free_mb }),
        (Pages::Huge | Pages::Auto, true) => {
            asked.huge = true;
            Ok(None)
        }
        (Pages::Auto, false) => Ok(Some(format!(
            "DPDK's memory is of ordinary pages: {free_mb} MB of huge ones are free, and it takes \
             {wanted_mb}"
        ))),
        (Pages::Ordinary, _) => Ok(None),
    }
}

fn started(start: &Start) -> Result<(), DpdkError> {
    let cpus: Vec<u32> = affinity::get().into_iter().map(|cpu| cpu.0).collect();
    let words = start.arguments(&cpus, std::process::id());
    let failed = |reason: String| DpdkError::Start { reason, said: last_of(&raw::said(), LINES) };
    let begin = move || {
        raw::start(&words)?;
        // With nothing shared it stays empty, and nobody else would remove it.
        if let Some(directory) = raw::directory() {
            let _ = std::fs::remove_dir(directory);
        }
        Ok::<(), rustix::io::Errno>(())
    };
    let spawned = thread::Builder::new().name("dpdk-start".to_owned()).spawn(begin);
    let thread = spawned.map_err(|error| failed(error.to_string()))?;
    match thread.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(errno)) => Err(failed(errno.to_string())),
        Err(_) => Err(failed("its thread panicked".to_owned())),
    }
}

/// What DPDK said last.
pub(crate) fn said() -> String {
    last_of(&raw::said(), LINES)
}

/// A device that nobody else of this process has, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Hold(String);

impl Hold {
    pub(crate) fn of(name: &str) -> Result<Self, DpdkError> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.insert(name.to_owned()) {
            Ok(Self(name.to_owned()))
        } else {
            Err(DpdkError::Taken { device: name.to_owned() })
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_taken_where_they_are_free_demanded_or_done_without_which_is_said() {
        let plain = Start { memory_mb: 64, huge: false, cards: Vec::new() };
        let chosen = |pages, free| {
            let mut start = plain.clone();
            choose(&mut start, pages, free).map(|instead| (start.huge, instead))
        };
        assert_eq!(chosen(Pages::Auto, 64), Ok((true, None)));
        let (huge, instead) = chosen(Pages::Auto, 63).unwrap();
        let instead = instead.unwrap();
        assert!(!huge && instead.contains("63 MB") && instead.contains("64"), "{instead}");
        assert_eq!(chosen(Pages::Ordinary, 1_000), Ok((false, None)));
        assert_eq!(chosen(Pages::Huge, 64), Ok((true, None)));
        let error = DpdkError::NoHugepages { wanted_mb: 64, free_mb: 2 };
        assert_eq!(chosen(Pages::Huge, 2), Err(error));
    }

    #[test]
    fn a_device_is_held_by_one() {
        let held = Hold::of("net_null77").unwrap();
        assert!(matches!(Hold::of("net_null77"), Err(DpdkError::Taken { .. })));
        drop(held);
        assert!(Hold::of("net_null77").is_ok());
    }
}
