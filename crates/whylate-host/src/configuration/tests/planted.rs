//! What a planted host with two memory nodes and all knobs is told, and that it is as before.

use super::*;

#[test]
fn on_two_nodes_remote_takes_the_other_one_and_every_knob_reads_back_and_is_restored() {
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    let (tree, idle, other) = (two_nodes([first, last]), Idle::start(), Idle::start());
    let (_dir, journal) = journal();
    let before = settings_of(tree.root());
    let whole = idle.cpus();
    let subject = Subject {
        pids: vec![idle.pid()],
        cpus: vec![first],
        interfaces: vec!["eth9".to_owned()],
        clients: Vec::new(),
    };
    let configuration = words("remote+isolset+power+quiet");
    let mut applied =
        apply_on(&ground(&tree, &[&other]), &configuration, &subject, &journal).unwrap();

    assert_eq!(applied.cpus(), [last]);
    assert_eq!(idle.cpus(), [last]);
    assert!(!other.cpus().contains(&last));
    let here = format!("{CPU}/cpu{last}");
    for (path, value) in [
        ("/proc/irq/40/smp_affinity_list", first.to_string()),
        ("/proc/irq/41/smp_affinity_list", first.to_string()),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1".to_owned()),
        ("/sys/devices/system/cpu/cpufreq/boost", "0".to_owned()),
        ("/sys/module/pcie_aspm/parameters/policy", "performance".to_owned()),
        ("/proc/sys/kernel/numa_balancing", "0".to_owned()),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "never".to_owned()),
        ("/proc/sys/kernel/nmi_watchdog", "0".to_owned()),
        (format!("{here}/power/pm_qos_resume_latency_us").as_str(), "n/a".to_owned()),
        (format!("{here}/cpufreq/scaling_governor").as_str(), "performance".to_owned()),
        (format!("{here}/cpufreq/scaling_max_freq").as_str(), "2400000".to_owned()),
        (format!("{here}/cpufreq/scaling_min_freq").as_str(), "2400000".to_owned()),
        (format!("{here}/cpuidle/state0/disable").as_str(), "0".to_owned()),
        (format!("{here}/cpuidle/state1/disable").as_str(), "1".to_owned()),
        (format!("{here}/cpuidle/state2/disable").as_str(), "1".to_owned()),
    ] {
        assert_eq!(says(&tree, path), value, "{path}");
    }
    // The CPU that is not the box's keeps its idle states and its governor.
    assert_eq!(says(&tree, &format!("{CPU}/cpu{first}/cpuidle/state2/disable")), "0");
    assert_eq!(says(&tree, &format!("{CPU}/cpu{first}/cpufreq/scaling_governor")), "powersave");

    let governor = reading(&applied, &format!("cpu{last}.governor"));
    assert_eq!((governor.before.as_str(), governor.got.as_str()), ("powersave", "performance"));
    assert_eq!(reading(&applied, "thp").before, "madvise");
    assert_eq!(reading(&applied, "aspm").before, "default");
    assert!(reading(&applied, "workqueue.cpus").was_changed());
    let audit = reading(&applied, "audit");
    assert!(audit.asked.is_none() && audit.got.contains("audit=1"), "{audit:?}");
    for knob in ["cpuset", "numa.memory", "dma_latency", "eth9.coalescing"] {
        assert!(applied.missing().iter().any(|one| one.knob == knob), "{:#?}", applied.facts());
    }
    assert_eq!(applied.changed_since(), []);

    assert_eq!(applied.restore(), []);
    assert_eq!(settings_of(tree.root()), before);
    assert_eq!((idle.cpus(), other.cpus()), (whole.clone(), whole));
    assert_eq!(journal.entries(), []);
}

#[test]
fn a_box_that_shares_its_cpu_with_our_housekeeping_keeps_its_priority_and_that_is_told() {
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    for clients in [vec![], vec![first]] {
        let (tree, idle, other) = (two_nodes([first, last]), Idle::start(), Idle::start());
        let (_dir, journal) = journal();
        let is_shared = !clients.is_empty();
        let subject =
            Subject { pids: vec![idle.pid()], cpus: vec![last], clients, ..Subject::default() };
        let applied =
            apply_on(&ground(&tree, &[&other]), &words("isolset"), &subject, &journal).unwrap();
        let told = applied.missing().iter().find(|one| one.knob == "priority");
        assert_eq!(told.is_some(), is_shared, "{:#?}", applied.facts());
        let is_set = applied.facts().knobs.iter().any(|knob| knob.name == "priority");
        assert_eq!(is_set, !is_shared, "{:#?}", applied.facts());
    }
}

#[test]
fn local_brings_a_box_to_the_node_of_its_interface_and_nothing_else_is_touched() {
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    let (tree, idle) = (two_nodes([first, last]), Idle::start());
    let (_dir, journal) = journal();
    let before = settings_of(tree.root());
    let subject = Subject {
        pids: vec![idle.pid()],
        cpus: vec![last],
        interfaces: vec!["lo".to_owned(), "eth9".to_owned()],
        clients: Vec::new(),
    };
    let applied = apply_on(&ground(&tree, &[]), &words("local"), &subject, &journal).unwrap();
    assert_eq!((applied.cpus(), idle.cpus()), ([first].as_slice(), vec![first]));
    assert_eq!(settings_of(tree.root()), before);
    drop(applied);
    assert_eq!(journal.entries(), []);
}

#[test]
fn the_memory_of_a_box_comes_from_a_cpuset_with_the_node_and_goes_with_it() {
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    let (tree, idle) = (two_nodes([first, last]), Idle::start());
    let (_dir, journal) = journal();
    tree.file("/proc/mounts", "cgroup /cg/cpuset cgroup rw,cpuset 0 0\n")
        .file("/cg/cpuset/cpuset.mems", "0-1\n");
    let subject = Subject {
        pids: vec![idle.pid()],
        cpus: vec![first],
        interfaces: vec!["eth9".to_owned()],
        clients: Vec::new(),
    };
    let mut applied = apply_on(&ground(&tree, &[]), &words("remote"), &subject, &journal).unwrap();
    let memory = reading(&applied, "numa.memory");
    assert_eq!((memory.asked.as_deref(), memory.got.as_str()), (Some("node 1"), "node 1"));
    let above = crate::files::under(tree.root(), "/cg/cpuset");
    let mut inside = fs::read_dir(&above).unwrap().map(|entry| entry.unwrap().path());
    let group = inside.find(|path| path.is_dir()).unwrap();
    let file = |name: &str| fs::read_to_string(group.join(name)).unwrap();
    assert_eq!(file("cgroup.procs"), idle.pid().to_string());
    assert_eq!(
        (file("cpuset.memory_migrate"), file("cpuset.cpus")),
        ("1".into(), last.to_string())
    );
    // A real cgroup is empty of files when it is removed.
    for entry in fs::read_dir(&group).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(applied.restore(), []);
    assert!(!group.exists());
    assert_eq!(journal.entries(), []);
}

#[test]
fn memory_that_a_box_took_before_is_read_back_by_node_and_what_stays_behind_is_told() {
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    for (lies, got, is_there) in [
        ("N1=3", "node 1", true),
        ("N0=1 N1=2", "4 KiB on node 0, 8 KiB on node 1", false),
        ("N0=3", "node 0", false),
    ] {
        let (tree, idle) = (two_nodes([first, last]), Idle::start());
        let (_dir, journal) = journal();
        let maps = format!("/proc/{}/numa_maps", idle.pid());
        tree.file(&maps, &format!("55f0 default heap anon=3 {lies} kernelpagesize_kB=4\n"));
        let subject = Subject {
            pids: vec![idle.pid()],
            cpus: vec![first],
            interfaces: vec!["eth9".to_owned()],
            clients: Vec::new(),
        };
        let applied = apply_on(&ground(&tree, &[]), &words("remote"), &subject, &journal).unwrap();
        let pages = reading(&applied, "numa.pages");
        assert_eq!((pages.asked.as_deref(), pages.got.as_str()), (Some("node 1"), got));
        let stays = applied.missing().iter().find(|one| one.knob == "numa.pages");
        assert_eq!(stays.is_none(), is_there, "{:#?}", applied.facts());
        assert!(stays.is_none_or(|one| one.why.contains("KiB of the box are on other nodes")));
    }
    // Where the kernel does not tell it is not claimed.
    let (tree, idle) = (two_nodes([first, last]), Idle::start());
    let (_dir, journal) = journal();
    let subject = Subject {
        pids: vec![idle.pid()],
        cpus: vec![first],
        interfaces: vec!["eth9".to_owned()],
        clients: Vec::new(),
    };
    let applied = apply_on(&ground(&tree, &[]), &words("remote"), &subject, &journal).unwrap();
    assert!(applied.read_back().iter().all(|one| one.name != "numa.pages"));
    let missing = applied.missing().iter().find(|one| one.knob == "numa.pages").unwrap();
    assert!(missing.why.contains("numa_maps"), "{missing:?}");
}

#[test]
fn a_host_without_knobs_has_each_listed_with_the_reason() {
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    let (tree, idle) = (Tree::empty(), Idle::start());
    let (_dir, journal) = journal();
    tree.file(format!("{CPU}/online").as_str(), &format!("{}\n", format_list(&[first, last])));
    let subject = Subject { pids: vec![idle.pid()], cpus: vec![last], ..Subject::default() };
    let configuration = words("local+isolset+power+quiet");
    let applied = apply_on(&ground(&tree, &[]), &configuration, &subject, &journal).unwrap();
    let missing: Vec<&str> = applied.missing().iter().map(|one| one.knob.as_str()).collect();
    let governor = format!("cpu{last}.governor");
    let (low, high) = (format!("cpu{last}.min_khz"), format!("cpu{last}.max_khz"));
    let (limit, idle_states) = (format!("cpu{last}.resume_latency"), format!("cpu{last}.idle"));
    for knob in [
        "numa.memory",
        "cpuset",
        "workqueue.cpus",
        "writeback.cpus",
        "dma_latency",
        "turbo.intel_pstate",
        "turbo.boost",
        "aspm",
        "numa_balancing",
        "thp",
        "nmi_watchdog",
        governor.as_str(),
        low.as_str(),
        high.as_str(),
        limit.as_str(),
        idle_states.as_str(),
    ] {
        assert!(missing.contains(&knob), "{knob} is neither set nor missing: {missing:?}");
    }
    assert!(applied.missing().iter().all(|one| !one.why.is_empty()));
    let told = applied.describe().join("\n");
    assert!(told.contains("turbo.boost not here:"), "{told}");
}

#[test]
fn a_knob_that_somebody_moves_meanwhile_is_told_and_left_alone() {
    let Some([first, last]) = two_cpus() else { return };
    let tree = two_nodes([first, last]);
    let (_dir, journal) = journal();
    let subject = Subject { cpus: vec![last], ..Subject::default() };
    let mut applied = apply_on(&ground(&tree, &[]), &words("quiet"), &subject, &journal).unwrap();
    tree.file("/proc/sys/kernel/nmi_watchdog", "7\n");
    let changed = applied.changed_since();
    assert_eq!(changed.len(), 1);
    assert_eq!((changed[0].name.as_str(), changed[0].got.as_str()), ("nmi_watchdog", "7"));
    let warnings = format!("{:?}", applied.restore());
    assert!(warnings.contains("left alone"), "{warnings}");
    assert_eq!(says(&tree, "/proc/sys/kernel/nmi_watchdog"), "7");
    assert_eq!(says(&tree, "/proc/sys/kernel/numa_balancing"), "1");
}
