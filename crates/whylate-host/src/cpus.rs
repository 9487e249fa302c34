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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::Tree;

    fn ids(list: &[u32]) -> Vec<CpuId> {
        list.iter().copied().map(CpuId).collect()
    }

    fn spec(text: &str) -> CpuSpec {
        text.parse().unwrap()
    }

    fn smt() -> (Tree, Topology) {
        let tree = Tree::smt_host();
        let topology = Topology::read(tree.root()).unwrap();
        (tree, topology)
    }

    fn resolved(text: &str) -> Result<Vec<CpuId>, HostError> {
        let (_tree, topology) = smt();
        let allowed = topology.online().to_vec();
        resolve(&spec(text), &topology, &allowed)
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_what_was_printed(
            list in prop::collection::vec(0u32..=MAX_CPU, 1..40)
        ) {
            let spec = CpuSpec::List(list.into_iter().map(CpuId).collect());
            prop_assert_eq!(spec.to_string().parse::<CpuSpec>().unwrap(), spec);
        }

        #[test]
        fn runs_and_repetitions_survive_the_round_trip(
            list in prop::collection::vec(0u32..12, 1..60)
        ) {
            let spec = CpuSpec::List(list.into_iter().map(CpuId).collect());
            prop_assert_eq!(spec.to_string().parse::<CpuSpec>().unwrap(), spec);
        }

        #[test]
        fn no_text_makes_the_parser_panic_or_the_list_huge(text in "[0-9,\\- a-z:]{0,40}|.{0,40}") {
            if let Ok(CpuSpec::List(list)) = text.parse::<CpuSpec>() {
                prop_assert!(list.len() <= 2 * (MAX_CPU as usize + 1));
            }
        }
    }

    #[test]
    fn lists_and_words_are_parsed() {
        assert_eq!(spec("2-5,8"), CpuSpec::List(ids(&[2, 3, 4, 5, 8])));
        assert_eq!(spec(" 3 , 1 "), CpuSpec::List(ids(&[3, 1])));
        assert_eq!(spec("isolated"), CpuSpec::Isolated);
        assert_eq!(spec("all"), CpuSpec::All);
        assert_eq!(spec("cgroup:/a/b"), CpuSpec::Cgroup(PathBuf::from("/a/b")));
        assert_eq!(spec("2-3,4,6,6-7").to_string(), "2-4,6,6-7");
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_offending_part() {
        for (text, part) in [
            ("", "empty"),
            ("  ", "empty"),
            ("1,,2", "`` is not a number"),
            ("1,", "not a number"),
            ("a", "`a`"),
            ("-1", "not a number"),
            ("+1", "`+1`"),
            ("5-2", "5-2 runs backwards"),
            ("1-2-3", "`2-3`"),
            ("0x3", "`0x3`"),
            ("70000", "cpu 70000"),
            ("0-4294967295", "cpu 4294967295"),
            ("0-99999999999999999999999", "no kernel has"),
            ("cgroup:", "path"),
            ("Isolated", "`Isolated`"),
        ] {
            let error = text.parse::<CpuSpec>().unwrap_err();
            assert!(matches!(error, HostError::NotACpuSpec { .. }));
            let message = error.to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.contains("2-5,8"), "no remedy: {message}");
        }
        let many = ["0-65535"; 3].join(",");
        assert!(many.parse::<CpuSpec>().unwrap_err().to_string().contains("more CPUs"));
    }

    #[test]
    fn each_wrong_cpu_is_named_with_its_own_error() {
        assert_eq!(resolved("1-2,5").unwrap(), ids(&[1, 2, 5]));
        assert_eq!(resolved("all").unwrap(), ids(&[0, 1, 2, 3, 4, 5, 6]));
        let error = resolved("1,9").unwrap_err();
        assert!(matches!(error, HostError::DoesNotExist { cpu: CpuId(9), .. }), "{error}");
        assert!(error.to_string().contains("0-7"), "{error}");
        let error = resolved("7").unwrap_err();
        assert!(matches!(error, HostError::Offline { cpu: CpuId(7), .. }), "{error}");
        assert!(error.to_string().contains("cpu7/online"), "{error}");
        let error = resolved("1-3,2").unwrap_err();
        assert!(matches!(error, HostError::Twice { cpu: CpuId(2), .. }), "{error}");
        let (_tree, topology) = smt();
        let error = resolve(&spec("3"), &topology, &ids(&[0, 1])).unwrap_err();
        assert!(matches!(error, HostError::OutsideCpuset { cpu: CpuId(3), .. }), "{error}");
        assert!(error.to_string().contains("0-1"), "{error}");
    }

    #[test]
    fn isolated_means_the_kernels_isolated_set() {
        assert_eq!(resolved("isolated").unwrap(), ids(&[2, 6]));
        let tree = Tree::empty();
        tree.file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/sys/devices/system/cpu/isolated", "\n");
        let topology = Topology::read(tree.root()).unwrap();
        let error = resolve(&CpuSpec::Isolated, &topology, &ids(&[0, 1, 2, 3])).unwrap_err();
        assert!(error.to_string().contains("--cpus 3"), "{error}");
        // Isolated, and all of them offline.
        tree.file("/sys/devices/system/cpu/present", "0-7\n")
            .file("/sys/devices/system/cpu/isolated", "4-7\n");
        let topology = Topology::read(tree.root()).unwrap();
        let error = resolve(&CpuSpec::Isolated, &topology, &ids(&[0, 1, 2, 3])).unwrap_err();
        assert!(matches!(error, HostError::NoneIsolated { .. }), "{error}");
    }

    fn with_cgroups() -> (Tree, Topology) {
        let (tree, topology) = smt();
        tree.file(
            "/proc/mounts",
            "proc /proc proc rw 0 0\n\
             cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
             cgroup /sys/fs/cgroup/cpuset cgroup rw,nosuid,cpuset 0 0\n\
             cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
        );
        tree.file("/sys/fs/cgroup/unified/cpuset.cpus.effective", "0-6\n")
            .file("/sys/fs/cgroup/unified/a/cpuset.cpus", "\n")
            .file("/sys/fs/cgroup/unified/a/cpuset.cpus.effective", "4-5\n")
            .file("/sys/fs/cgroup/unified/a/b/cgroup.procs", "1\n")
            .file("/sys/fs/cgroup/cpuset/v1/cpuset.cpus", "3-7\n")
            .file("/sys/fs/cgroup/cpuset/v1/cpuset.effective_cpus", "3-6\n")
            .file("/sys/fs/cgroup/cpuset/old/cpuset.cpus", "1\n")
            .file("/sys/fs/cgroup/cpuset/empty/cpuset.cpus", "\n")
            .file("/sys/fs/cgroup/cpu/elsewhere/cpu.shares", "1\n");
        (tree, topology)
    }

    #[test]
    fn cgroups_of_both_versions_give_their_effective_cpus() {
        let (tree, topology) = with_cgroups();
        let all = topology.online().to_vec();
        for (path, cpus) in [
            ("cgroup:/a", vec![4, 5]),
            ("cgroup:a", vec![4, 5]),
            ("cgroup:/a/b", vec![4, 5]),
            ("cgroup:/v1", vec![3, 4, 5, 6]),
            ("cgroup:/old", vec![1]),
            ("cgroup:/sys/fs/cgroup/cpuset/v1", vec![3, 4, 5, 6]),
        ] {
            assert_eq!(resolve(&spec(path), &topology, &all).unwrap(), ids(&cpus), "{path}");
        }
        drop(tree);
    }

    #[test]
    fn cgroups_that_say_nothing_are_errors_of_their_own() {
        let (tree, topology) = with_cgroups();
        let all = topology.online().to_vec();
        let error = resolve(&spec("cgroup:/nowhere"), &topology, &all).unwrap_err();
        assert!(matches!(error, HostError::CgroupNotFound { .. }), "{error}");
        assert!(error.to_string().contains("/sys/fs/cgroup/cpuset/nowhere"), "{error}");
        let error = resolve(&spec("cgroup:/empty"), &topology, &all).unwrap_err();
        assert!(matches!(error, HostError::CgroupEmpty { .. }), "{error}");
        let error = resolve(&spec("cgroup:/elsewhere"), &topology, &all).unwrap_err();
        assert!(matches!(error, HostError::CgroupNotFound { .. }), "{error}");
        tree.file("/proc/mounts", "cgroup2 /sys/fs/cgroup/bare cgroup2 rw 0 0\n")
            .file("/sys/fs/cgroup/bare/x/cgroup.procs", "");
        let error = resolve(&spec("cgroup:/x"), &topology, &all).unwrap_err();
        assert!(matches!(error, HostError::CgroupWithoutCpuset { .. }), "{error}");
        tree.file("/proc/mounts", "");
        let error = resolve(&spec("cgroup:/x"), &topology, &all).unwrap_err();
        assert!(error.to_string().contains("there is none"), "{error}");
    }

    #[test]
    fn housekeeping_avoids_measured_cpus_then_their_siblings_then_isolated_ones() {
        let (_tree, topology) = smt();
        let all = topology.online().to_vec();
        let choose = |measured: &[u32]| housekeeping(&ids(measured), None, &topology, &all, &all);
        assert_eq!(choose(&[1, 2]).unwrap(), ids(&[0]));
        assert_eq!(choose(&[0]).unwrap(), ids(&[1]));
        // 4 is the sibling of 0, 5 of 1; 3 has a core of its own.
        assert_eq!(choose(&[0, 1]).unwrap(), ids(&[3]));
        // Only isolated CPUs have a core without measurement.
        assert_eq!(choose(&[0, 1, 3]).unwrap(), ids(&[2]));
        // Only siblings of measured CPUs are left.
        assert_eq!(choose(&[0, 1, 2, 3]).unwrap(), ids(&[4]));
        assert_eq!(choose(&[0, 1, 2, 3, 4, 5, 6]).unwrap(), []);
    }

    #[test]
    fn housekeeping_stays_inside_the_cpuset() {
        let (_tree, topology) = smt();
        let choose = |allowed: &[u32]| {
            housekeeping(&ids(&[1]), None, &topology, &ids(allowed), &ids(allowed)).unwrap()
        };
        assert_eq!(choose(&[1, 5]), ids(&[5]));
        assert_eq!(choose(&[1]), []);
    }

    #[test]
    fn housekeeping_leaves_the_own_affinity_only_when_nothing_is_free_in_it() {
        let (_tree, topology) = smt();
        let all = topology.online().to_vec();
        let choose = |own: &[u32], wanted: Option<&[CpuId]>| {
            housekeeping(&ids(&[1]), wanted, &topology, &all, &ids(own)).unwrap()
        };
        // Started on the measured CPU alone: the cpuset has others.
        assert_eq!(choose(&[1], None), ids(&[0]));
        assert_eq!(choose(&[1], Some(&ids(&[3]))), ids(&[3]));
        assert_eq!(choose(&[1, 3], None), ids(&[3]));
        // 5 is the sibling of 1.
        assert_eq!(choose(&[1, 5], None), ids(&[0]));
    }

    #[test]
    fn wanted_housekeeping_cpus_are_checked() {
        let (_tree, topology) = smt();
        let all = topology.online().to_vec();
        let ask =
            |wanted: &[u32]| housekeeping(&ids(&[1]), Some(&ids(wanted)), &topology, &all, &all);
        assert_eq!(ask(&[5, 0]).unwrap(), ids(&[5, 0]), "all of them are used");
        assert!(matches!(ask(&[1]), Err(HostError::HousekeepingMeasured { cpu: CpuId(1) })));
        assert!(matches!(ask(&[7]), Err(HostError::Offline { .. })));
        assert!(matches!(ask(&[8]), Err(HostError::DoesNotExist { .. })));
    }

    #[test]
    fn the_cpu_opposite_is_of_another_core_and_a_sibling_is_called_one() {
        let (_tree, topology) = smt();
        let all = topology.online().to_vec();
        let choose = |allowed: &[u32], busy: &[u32]| {
            opposite(CpuId(0), &topology, &ids(allowed), &all, &ids(busy))
        };
        // 4 is the sibling of 0 and comes before 5 in number.
        assert_eq!(choose(&[0, 4, 5], &[]), Some(Opposite::OtherCore(CpuId(5))));
        assert_eq!(choose(&[0, 1, 3, 4], &[1]), Some(Opposite::OtherCore(CpuId(3))));
        assert_eq!(choose(&[0, 1, 4], &[1]), Some(Opposite::OtherCore(CpuId(1))));
        assert_eq!(choose(&[0, 2, 3], &[]), Some(Opposite::OtherCore(CpuId(3))), "2 is isolated");
        assert_eq!(choose(&[0, 4], &[]), Some(Opposite::Sibling(CpuId(4))));
        assert_eq!(choose(&[0], &[]), None);
        let within = opposite(CpuId(0), &topology, &all, &ids(&[0, 5]), &[]);
        assert_eq!(within, Some(Opposite::OtherCore(CpuId(5))), "the own affinity comes first");
    }

    #[test]
    fn the_cpuset_of_this_process_holds_its_affinity() {
        let topology = Topology::read(Path::new("/")).unwrap();
        let allowed = allowed(&topology).unwrap();
        let affinity = affinity::get();
        assert!(affinity.iter().all(|cpu| allowed.contains(cpu)), "{affinity:?} in {allowed:?}");
    }
}
