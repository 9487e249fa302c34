//! Words for CPUs, and which CPUs they come to on trees of files that are planted.

use proptest::prelude::*;

use super::*;
use crate::tree::{self, Tree};

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
    let ask = |wanted: &[u32]| housekeeping(&ids(&[1]), Some(&ids(wanted)), &topology, &all, &all);
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
    let _turn = tree::turn(&tree::CPUSETS);
    let topology = Topology::read(Path::new("/")).unwrap();
    let allowed = allowed(&topology).unwrap();
    let affinity = affinity::get();
    assert!(affinity.iter().all(|cpu| allowed.contains(cpu)), "{affinity:?} in {allowed:?}");
}
