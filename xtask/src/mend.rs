//! Mends what killed tests left on this machine, and names each thing.
//!
//! A test cleans up after itself, and whylate does; one that is killed cannot. What is found is mended
//! where it is certain whose it is: a process by its environment, which says which suite started it;
//! settings by what the suite wrote down before (`whylate-suite`); what whylate changed by its own
//! journals, through the program itself; files by the folder of temporary files that a suite has for
//! itself; namespaces, trace instances and cgroups by the process in their names, where that has ended.
//! All else is left alone. It is done by who holds the lock of the suites, so that none of them runs.
//!
//! Does not see what tests left that ran in another container; and in one it leaves trace instances and
//! cgroups alone, which all of a machine share: a process that it cannot see may live.

mod names;
mod processes;
mod temporary;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::suite;

/// Where network namespaces with names are mounted.
const NAMESPACES: &str = "run/netns";
/// The processes of the whole machine.
const ALL_PROCESSES: &str = "pid:[4026531836]";
const DPDK: &str = "run/dpdk";
/// A bed that never is: taking it down has the program look for what dead ones left.
const NO_BED: &str = "t0-none";

/// `cargo xtask mend`.
pub(crate) fn run(root: &Path) -> Result<()> {
    if suite::is_held() {
        bail!("this is part of a suite ({} is set), which would end itself", suite::HOLDER);
    }
    let _held = suite::hold();
    let told = mend(root);
    for line in &told {
        println!("{line}");
    }
    println!("{} things that tests left", told.len());
    Ok(())
}

/// Ends what killed tests left running and clears what they left in their folders, for which the program is not
/// needed; a line for each thing. The caller holds the lock of the suites.
pub(crate) fn at_once(root: &Path) -> Vec<String> {
    let mut told = processes::end(Path::new("/"), &root.join("target/tmp/state"));
    told.extend(suite::folders().iter().flat_map(|folder| temporary::clear(folder)));
    told
}

/// Mends what there is; a line for each thing. The caller holds the lock of the suites.
pub(crate) fn mend(root: &Path) -> Vec<String> {
    let machine = Path::new("/");
    // Processes first: they hold the others.
    let mut told = at_once(root);
    told.extend(by_the_program(machine, root));
    told.extend(namespaces(machine));
    told.extend(remove_directories(machine, &instances(machine), "trace instance"));
    told.extend(remove_directories(machine, &cgroups(machine), "cgroup"));
    for folder in directories(&machine.join(DPDK)).iter().filter(|path| is_left(machine, path)) {
        told.push(outcome(
            &format!("files of DPDK in {}", folder.display()),
            std::fs::remove_dir_all(folder),
        ));
    }
    told
}

fn outcome(what: &str, result: std::io::Result<()>) -> String {
    match result {
        Ok(()) => format!("removed {what}"),
        Err(error) => format!("cannot remove {what}: {error}"),
    }
}

/// Is it named for a process of whylate or of a test that has ended?
fn is_left(machine: &Path, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let maker = name.and_then(names::maker);
    maker.is_some_and(|pid| !machine.join(format!("proc/{pid}")).exists())
}

fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let is_directory =
        |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut found: Vec<PathBuf> = entries.filter(is_directory).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The kernel removes no instance that is read and no cgroup that has processes in it.
fn remove_directories(machine: &Path, all: &[PathBuf], what: &str) -> Vec<String> {
    let seen = std::fs::read_link(machine.join("proc/self/ns/pid"));
    if !seen.is_ok_and(|seen| seen == Path::new(ALL_PROCESSES)) {
        return Vec::new();
    }
    let left = all.iter().filter(|path| is_left(machine, path));
    left.map(|path| outcome(&format!("{what} {}", path.display()), std::fs::remove_dir(path)))
        .collect()
}

/// Buffers of the kernel's tracing beside its own, wherever that is mounted.
fn instances(machine: &Path) -> Vec<PathBuf> {
    suite::tracefs(machine).map_or_else(Vec::new, |at| directories(&at.join("instances")))
}

/// All cgroups of all hierarchies, children before their parents.
pub(crate) fn cgroups(machine: &Path) -> Vec<PathBuf> {
    let mut open = suite::mounted(machine, |kind| kind.starts_with("cgroup"));
    let mut found = Vec::new();
    while let Some(group) = open.pop() {
        let below = directories(&group);
        found.extend(below.iter().cloned());
        open.extend(below);
    }
    found.reverse();
    found
}

/// Has the program put back what its own journals say, and take down beds of tests that have ended.
fn by_the_program(machine: &Path, root: &Path) -> Vec<String> {
    let namespaces = entries(&machine.join(NAMESPACES));
    let mut beds: Vec<&str> = namespaces
        .iter()
        .filter(|path| is_left(machine, path))
        .filter_map(|path| names::bed(path.file_name()?.to_str()?))
        .collect();
    beds.sort_unstable();
    beds.dedup();
    if beds.is_empty() && !has_journals(machine) {
        return Vec::new();
    }
    let program = match program(root) {
        Ok(program) => program,
        Err(error) => {
            return vec![format!("journals and beds are left, and no whylate: {error:#}")];
        }
    };
    let mut told = Vec::new();
    for bed in std::iter::once(NO_BED).chain(beds) {
        let output = match Command::new(&program).args(["lab", "down", "--name", bed]).output() {
            Ok(output) => output,
            Err(error) => return vec![format!("{}: {error}", program.display())],
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let recovered =
            |line: &&str| line.starts_with("left by process ") || line.starts_with("journal ");
        told.extend(said.lines().filter(recovered).map(|line| format!("whylate: {line}")));
        if bed != NO_BED {
            told.push(if output.status.success() {
                format!("took down bed {bed}")
            } else {
                format!("cannot take down bed {bed}: {}", said.trim())
            });
        }
    }
    told
}

fn entries(path: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Is there a journal, `PID-START.json`, of a process that has ended?
fn has_journals(machine: &Path) -> bool {
    let owner = std::fs::metadata("/proc/self").map_or(0, |of| of.uid());
    let mut folders =
        vec![machine.join("run/whylate"), machine.join(format!("tmp/whylate-{owner}"))];
    folders.extend(std::env::var_os("XDG_RUNTIME_DIR").map(|at| PathBuf::from(at).join("whylate")));
    let is_dead = |path: PathBuf| {
        let process =
            path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")?.split_once('-'));
        let process = process.and_then(|(pid, start)| pid.parse().ok().zip(start.parse().ok()));
        process.is_some_and(|(pid, start)| !processes::lives(machine, pid, start))
    };
    folders.iter().flat_map(|folder| entries(folder)).any(is_dead)
}

/// The program that the tests run, or that is built here.
fn program(root: &Path) -> Result<PathBuf> {
    let built = ["debug", "release"].map(|kind| root.join("target").join(kind).join("whylate"));
    if let Some(there) = built.iter().find(|path| path.is_file()) {
        return Ok(there.clone());
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut compile = Command::new(cargo);
    compile.current_dir(root).args(["build", "--locked", "--package", "whylate"]);
    if !compile.status().with_context(|| format!("{compile:?}"))?.success() {
        bail!("it cannot be built");
    }
    let [debug, _] = built;
    Ok(debug)
}

/// Namespaces that a test of a crate had.
fn namespaces(machine: &Path) -> Vec<String> {
    let remove = |name: &str| {
        let output = Command::new("ip").args(["netns", "del", name]).output()?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(std::io::Error::other(said)) }
    };
    entries(&machine.join(NAMESPACES))
        .iter()
        .filter(|path| is_left(machine, path))
        .filter_map(|path| path.file_name()?.to_str())
        .filter(|name| names::bed(name).is_none())
        .map(|name| outcome(&format!("network namespace {name}"), remove(name)))
        .collect()
}

#[cfg(test)]
mod tests;
