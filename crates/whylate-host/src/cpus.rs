//! Saying which CPUs are meant, and choosing the one that keeps house.
//!
//! A [`CpuSpec`] is what the user wrote, checked for form; [`resolve`] checks it against a host and
//! gives the CPUs or an error that names the first one at fault. Nothing is guessed, and no CPU is
//! left out silently.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use whylate_model::CpuId;
use whylate_sys::affinity;

use crate::error::HostError;
use crate::files::{trimmed, under};
use crate::topology::{self, Topology};

/// Largest CPU number that is taken for one: eight times what the largest kernels are built for,
/// and small enough that `0-4294967295` is refused before it becomes a list.
const MAX_CPU: u32 = 65_535;

/// Which CPUs are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuSpec {
    /// These, in this order; a CPU given twice is found by [`resolve`].
    List(Vec<CpuId>),
    /// All that this process may use.
    All,
    /// The kernel's isolated CPUs.
    Isolated,
    /// The CPUs of a cgroup: a path below the cgroup mount, or a directory.
    Cgroup(PathBuf),
}

impl FromStr for CpuSpec {
    type Err = HostError;

    /// Parses `2-5,8`, `all`, `isolated` or `cgroup:PATH`.
    fn from_str(text: &str) -> Result<Self, HostError> {
        let spec = text.trim();
        match spec {
            "all" => return Ok(Self::All),
            "isolated" => return Ok(Self::Isolated),
            _ => {}
        }
        if let Some(path) = spec.strip_prefix("cgroup:") {
            if path.is_empty() {
                return Err(not_a_spec(text, "the path after `cgroup:` is empty"));
            }
            return Ok(Self::Cgroup(PathBuf::from(path)));
        }
        parse_list(spec).map(Self::List)
    }
}

impl fmt::Display for CpuSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(list) => f.write_str(&format_list(list)),
            Self::All => f.write_str("all"),
            Self::Isolated => f.write_str("isolated"),
            Self::Cgroup(path) => write!(f, "cgroup:{}", path.display()),
        }
    }
}

/// Parses a list such as `2-5,8`. Order and repetitions are kept.
pub fn parse_list(text: &str) -> Result<Vec<CpuId>, HostError> {
    if text.trim().is_empty() {
        return Err(not_a_spec(text, "it is empty"));
    }
    let mut list = Vec::new();
    for item in text.split(',') {
        let (from, to) = item.split_once('-').unwrap_or((item, item));
        let (from, to) = (number(text, from)?, number(text, to)?);
        if from > to {
            return Err(not_a_spec(text, &format!("the range {from}-{to} runs backwards")));
        }
        list.extend((from..=to).map(CpuId));
        if list.len() > MAX_CPU as usize + 1 {
            return Err(not_a_spec(text, "it names more CPUs than any kernel has"));
        }
    }
    Ok(list)
}

/// Prints a list with runs as ranges: `2-5,8`. An empty list prints as nothing.
#[must_use]
pub fn format_list(list: &[CpuId]) -> String {
    let mut out = String::new();
    let mut rest = list;
    while let Some(first) = rest.first() {
        let run = rest.iter().zip(first.0..).take_while(|(cpu, expected)| cpu.0 == *expected);
        let length = run.count();
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&first.to_string());
        if length > 1 {
            out.push('-');
            out.push_str(&rest[length - 1].to_string());
        }
        rest = &rest[length..];
    }
    out
}

/// The CPUs the kernel would let this process run on: those of its cpuset.
///
/// The affinity a process starts with can be narrower and says less: `isolcpus=` and systemd's
/// `CPUAffinity=` leave exactly the CPUs out that are to be measured, and asking for them works. So
/// a thread made for the purpose asks for every CPU and reads back what it got.
pub fn allowed(topology: &Topology) -> Result<Vec<CpuId>, HostError> {
    let everything = topology.present().to_vec();
    let asking = std::thread::Builder::new().name("whylate-cpuset".to_owned()).spawn(move || {
        // Partly refused, or wholly as in a sandbox: what is in force then is the answer.
        let _ = affinity::set(&everything);
        affinity::get()
    });
    let died = || std::io::Error::other("the thread that asks has died");
    asking.and_then(|thread| thread.join().map_err(|_| died())).map_err(|source| HostError::Read {
        path: PathBuf::from("the affinity of a thread"),
        source,
    })
}

/// The CPUs that `spec` means on this host, checked: each exists, is online, is in `allowed` (see
/// [`allowed`]) and is named once. Isolated CPUs that are offline are left out. Those of a cgroup
/// need not be in `allowed`: the measurement goes there.
pub fn resolve(
    spec: &CpuSpec,
    topology: &Topology,
    allowed: &[CpuId],
) -> Result<Vec<CpuId>, HostError> {
    let list = match spec {
        CpuSpec::List(list) if list.is_empty() => return Err(not_a_spec("", "it is empty")),
        CpuSpec::List(list) => list.clone(),
        CpuSpec::All => allowed.to_vec(),
        CpuSpec::Isolated => {
            let online = |cpu: &&CpuId| topology.online().contains(cpu);
            let list: Vec<CpuId> = topology.isolated().iter().filter(online).copied().collect();
            if list.is_empty() {
                let suggestion = allowed.last().map_or_else(String::new, CpuId::to_string);
                return Err(HostError::NoneIsolated { suggestion });
            }
            list
        }
        CpuSpec::Cgroup(path) => cgroup_cpus(topology.root(), path)?,
    };
    let allowed = if matches!(spec, CpuSpec::Cgroup(_)) { topology.online() } else { allowed };
    for (at, &cpu) in list.iter().enumerate() {
        check(cpu, topology, allowed)?;
        if list[..at].contains(&cpu) {
            return Err(HostError::Twice { cpu, spec: spec.to_string() });
        }
    }
    Ok(list)
}

/// The CPUs for everything that is not measuring: one, or all that the user `wanted`; none when
/// every CPU this process may use is measured.
///
/// It is never a measured CPU, and no SMT sibling of one while another CPU exists; when only
/// siblings are left it is one of them (ask [`Topology::share_core`]). Those in `own`, the affinity
/// that this process was started with, come before the rest of `allowed`, and CPUs that are not
/// isolated before those that are. `wanted` is the user's choice and is checked instead: it may lie
/// anywhere in `allowed`.
pub fn housekeeping(
    measured: &[CpuId],
    wanted: Option<&[CpuId]>,
    topology: &Topology,
    allowed: &[CpuId],
    own: &[CpuId],
) -> Result<Vec<CpuId>, HostError> {
    if let Some(wanted) = wanted {
        for &cpu in wanted {
            check(cpu, topology, allowed)?;
            if measured.contains(&cpu) {
                return Err(HostError::HousekeepingMeasured { cpu });
            }
        }
        if !wanted.is_empty() {
            return Ok(wanted.to_vec());
        }
    }
    let beside = |cpu: CpuId| measured.iter().any(|&other| topology.share_core(cpu, other));
    let free = topology
        .online()
        .iter()
        .copied()
        .filter(|cpu| allowed.contains(cpu) && !measured.contains(cpu));
    let last = |cpu| (beside(cpu), !own.contains(&cpu), topology.isolated().contains(&cpu), cpu);
    Ok(free.min_by_key(|&cpu| last(cpu)).into_iter().collect())
}

/// The CPU for the other end of a conversation with `cpu`, and how the two lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opposite {
    /// A CPU of another core.
    OtherCore(CpuId),
    /// No other core is to be had: this is another thread of the same one.
    Sibling(CpuId),
}

/// Chooses the CPU opposite `cpu` among `allowed`: of another core if there is one, in `own` (see
/// [`housekeeping`]) before outside of it, none of `busy` while another is free, isolated ones last.
#[must_use]
pub fn opposite(
    cpu: CpuId,
    topology: &Topology,
    allowed: &[CpuId],
    own: &[CpuId],
    busy: &[CpuId],
) -> Option<Opposite> {
    let online = topology.online().iter().copied();
    let others = online.filter(|other| *other != cpu && allowed.contains(other));
    let last = |other: CpuId| {
        let isolated = topology.isolated().contains(&other);
        (topology.share_core(cpu, other), !own.contains(&other), isolated, busy.contains(&other))
    };
    let chosen = others.min_by_key(|&other| (last(other), other))?;
    Some(if topology.share_core(cpu, chosen) {
        Opposite::Sibling(chosen)
    } else {
        Opposite::OtherCore(chosen)
    })
}

fn check(cpu: CpuId, topology: &Topology, allowed: &[CpuId]) -> Result<(), HostError> {
    let online = || format_list(topology.online());
    if !topology.present().contains(&cpu) && !topology.online().contains(&cpu) {
        let present = format_list(topology.present());
        return Err(HostError::DoesNotExist { cpu, present, online: online() });
    }
    if !topology.online().contains(&cpu) {
        return Err(HostError::Offline { cpu, online: online() });
    }
    if !allowed.contains(&cpu) {
        return Err(HostError::OutsideCpuset { cpu, allowed: format_list(allowed) });
    }
    Ok(())
}

fn number(text: &str, digits: &str) -> Result<u32, HostError> {
    let digits = digits.trim();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(not_a_spec(text, &format!("`{}` is not a number", clipped(digits))));
    }
    match digits.parse() {
        Ok(number) if number <= MAX_CPU => Ok(number),
        _ => Err(not_a_spec(text, &format!("no kernel has a cpu {}", clipped(digits)))),
    }
}

fn not_a_spec(text: &str, why: &str) -> HostError {
    HostError::NotACpuSpec { text: clipped(text), why: why.to_owned() }
}

/// At most 60 characters of a text that may come from anywhere.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Mount points (below `root`) under which a cgroup's CPUs can be found: cgroup v2 and the cpuset
/// hierarchy of v1.
pub(crate) fn cgroup_mounts(root: &Path) -> Vec<PathBuf> {
    topology::mounts(root)
        .into_iter()
        .filter(|(kind, _, options)| {
            kind == "cgroup2"
                || (kind == "cgroup" && options.split(',').any(|option| option == "cpuset"))
                || kind == "cpuset"
        })
        .map(|(_, point, _)| under(root, &point))
        .collect()
}

/// Where the CPUs of a cgroup are written: v2, then v1, then v1 mounted without its prefix. The
/// effective ones come first: `cpuset.cpus` may be empty (v2: as the parent) or name offline CPUs.
const CPUSET_FILES: [&str; 4] =
    ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus", "cpus"];

fn cgroup_cpus(root: &Path, path: &Path) -> Result<Vec<CpuId>, HostError> {
    let given = path.display().to_string();
    let as_text = path.to_string_lossy();
    let mounts = cgroup_mounts(root);
    let mut looked = Vec::new();
    let mut found = Vec::new();
    // As a directory of its own, then below each mount; the mount bounds the way up.
    let direct = under(root, &as_text);
    let mount_of = |dir: &Path| mounts.iter().find(|mount| dir.starts_with(mount)).cloned();
    if path.is_absolute()
        && let Some(mount) = mount_of(&direct)
    {
        found.push((direct, mount));
    }
    found.extend(mounts.iter().map(|mount| (under(mount, &as_text), mount.clone())));
    found.retain(|(dir, _)| {
        looked.push(dir.display().to_string());
        dir.is_dir()
    });
    if found.is_empty() {
        if looked.is_empty() {
            looked.push("a mounted cgroup2 or cpuset hierarchy, of which there is none".to_owned());
        }
        return Err(HostError::CgroupNotFound { path: given, looked: looked.join(", ") });
    }
    for (dir, mount) in found {
        if let Some((file, list)) = cpuset_at_or_above(&dir, &mount) {
            if list.is_empty() {
                let file = file.display().to_string();
                return Err(HostError::CgroupEmpty { path: given, file });
            }
            return parse_list(&list)
                .map_err(|error| HostError::NotUnderstood { path: file, what: error.to_string() });
        }
    }
    Err(HostError::CgroupWithoutCpuset { path: given })
}

/// A cgroup for which the controller is not enabled has the CPUs of the nearest one above.
fn cpuset_at_or_above(dir: &Path, mount: &Path) -> Option<(PathBuf, String)> {
    let above = dir.ancestors().take_while(|above| above.starts_with(mount));
    above
        .flat_map(|above| CPUSET_FILES.iter().map(|name| above.join(name)))
        .find_map(|file| trimmed(&file).map(|list| (file, list)))
}

#[cfg(test)]
mod tests;
