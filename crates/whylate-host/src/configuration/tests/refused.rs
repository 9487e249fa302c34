//! What is refused before anything is changed, and a knob that does not read back.

use super::*;

fn subject(cpus: &[CpuId]) -> Subject {
    Subject { cpus: cpus.to_vec(), interfaces: vec!["eth9".to_owned()], ..Subject::default() }
}

fn refusal(tree: &Tree, words: &str, subject: &Subject) -> String {
    let plan = Plan::below(tree.root(), &words.parse().unwrap(), subject);
    let error = plan.unwrap_err();
    assert!(matches!(error, HostError::ConfigurationRefused { .. }), "{error}");
    error.to_string()
}

#[test]
fn remote_is_refused_by_name_on_one_memory_node_and_local_is_said_to_be_all() {
    let tree = Tree::empty();
    tree.file(&format!("{CPU}/online"), "0-3\n")
        .file("/sys/devices/system/node/node0/cpulist", "0-3\n")
        // Memory without CPUs, as some machines have it, is no place for a box.
        .file("/sys/devices/system/node/node1/cpulist", "\n");
    let told = refusal(&tree, "remote+power", &subject(&[CpuId(1)]));
    assert!(told.contains("remote+power") && told.contains("one memory node"), "{told}");
    let plan = Plan::below(tree.root(), &words("local"), &subject(&[CpuId(1)])).unwrap();
    assert_eq!((plan.cpus(), plan.node()), ([CpuId(1)].as_slice(), None));
    assert!(plan.notes[0].why.contains("one memory node"), "{plan:?}");
}

#[test]
fn the_last_cpu_that_does_the_housekeeping_is_not_taken() {
    let tree = Tree::empty();
    tree.file(&format!("{CPU}/online"), "0-3\n").file(&format!("{CPU}/isolated"), "2-3\n");
    let told = refusal(&tree, "local+isolset", &subject(&[CpuId(0), CpuId(1)]));
    assert!(told.contains("housekeeping") && told.contains("2-3"), "{told}");
    let all: Vec<CpuId> = (0..4).map(CpuId).collect();
    assert!(refusal(&tree, "isolset", &subject(&all)).contains("housekeeping"));
    assert!(Plan::below(tree.root(), &words("isolset"), &subject(&[CpuId(0)])).is_ok());
    // Without it the box takes nobody's CPU away.
    assert!(Plan::below(tree.root(), &words("power"), &subject(&all)).is_ok());
}

#[test]
fn a_box_is_told_where_what_is_moved_runs_beside_those_who_measure() {
    let tree = Tree::empty();
    tree.file(&format!("{CPU}/online"), "0-1\n");
    let of = Subject { clients: vec![CpuId(1)], ..subject(&[CpuId(0)]) };
    let plan = Plan::below(tree.root(), &words("isolset"), &of).unwrap();
    assert_eq!(plan.notes[0].knob, "housekeeping");
    assert!(plan.is_shared);
    tree.file(&format!("{CPU}/online"), "0-2\n");
    let plan = Plan::below(tree.root(), &words("isolset"), &of).unwrap();
    assert!(plan.notes.is_empty() && !plan.is_shared, "{plan:?}");
    // Nothing is moved to a CPU that is isolated at boot; our own threads may go there.
    tree.file(&format!("{CPU}/isolated"), "2\n");
    let plan = Plan::below(tree.root(), &words("isolset"), &of).unwrap();
    assert!(plan.notes[0].knob == "housekeeping" && !plan.is_shared, "{plan:?}");
}

#[test]
fn cpus_of_those_who_measure_and_nodes_that_are_too_small_are_not_taken() {
    let tree = Tree::smt_host();
    tree.file("/sys/class/net/eth9/device/numa_node", "1\n");
    let of = |clients: &[u32]| Subject {
        clients: clients.iter().copied().map(CpuId).collect(),
        ..subject(&[CpuId(2), CpuId(3)])
    };
    let plan = Plan::below(tree.root(), &words("remote"), &of(&[0])).unwrap();
    assert_eq!((plan.cpus(), plan.node()), ([CpuId(1), CpuId(4)].as_slice(), Some(0)));
    let plan = Plan::below(tree.root(), &words("local"), &of(&[0])).unwrap();
    assert_eq!((plan.cpus(), plan.node()), ([CpuId(2), CpuId(3)].as_slice(), Some(1)));
    let told = refusal(&tree, "remote", &of(&[0, 1, 4]));
    assert!(told.contains("has 2 CPUs") && told.contains("node 0"), "{told}");
}

#[test]
fn a_box_without_a_cpu_or_with_one_that_is_offline_is_refused() {
    let tree = Tree::smt_host();
    assert!(refusal(&tree, "power", &subject(&[])).contains("no CPU"));
    assert!(refusal(&tree, "power", &subject(&[CpuId(7)])).contains("cpu 7"));
    assert!(Plan::below(tree.root(), &words("unchanged"), &subject(&[])).is_ok());
}

#[test]
fn an_interface_of_no_device_is_taken_to_be_where_the_box_is_and_that_is_said() {
    let tree = Tree::smt_host();
    for (name, node) in [("eth9", None), ("eth8", Some("-1\n")), ("../eth7", None)] {
        if let Some(node) = node {
            tree.file(&format!("/sys/class/net/{name}/device/numa_node"), node);
        }
        let of = Subject { interfaces: vec![name.to_owned()], ..subject(&[CpuId(0)]) };
        let plan = Plan::below(tree.root(), &words("remote"), &of).unwrap();
        assert_eq!((plan.cpus(), plan.node()), ([CpuId(2)].as_slice(), Some(1)));
        assert!(plan.notes[0].why.contains(name), "{plan:?}");
    }
}

#[test]
fn a_knob_that_does_not_read_back_is_named_and_all_of_the_configuration_is_taken_back() {
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    let (tree, idle) = (two_nodes([first, last]), Idle::start());
    let (_dir, journal) = journal();
    // It takes 0 for 50000.
    let knob = tree::SelfWilled::start();
    if let Err(refusal) = fs::write(knob.path(), "70000") {
        return tree::skip(&refusal);
    }
    let file = crate::files::under(tree.root(), "/proc/sys/kernel/numa_balancing");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(knob.path(), &file).unwrap();
    let (before, whole) = (settings_of(tree.root()), idle.cpus());
    let of = Subject { pids: vec![idle.pid()], ..subject(&[first]) };
    let configuration = words("local+isolset+power+quiet");
    let error = apply_on(&ground(&tree, &[]), &configuration, &of, &journal).unwrap_err();
    match &error {
        HostError::KnobNotKept { knob, asked, got } => {
            assert_eq!((knob.as_str(), asked.as_str()), ("numa_balancing", "0"));
            assert_ne!(got, "70000");
        }
        _ => panic!("{error}"),
    }
    assert!(error.to_string().contains("numa_balancing"), "{error}");
    assert_eq!(settings_of(tree.root()), before);
    assert_eq!(fs::read_to_string(knob.path()).unwrap().trim(), "70000");
    assert_eq!(idle.cpus(), whole);
    assert_eq!(journal.entries(), []);
}

#[test]
fn nothing_is_changed_when_the_journal_cannot_be_written() {
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    let (tree, idle) = (two_nodes([first, last]), Idle::start());
    let (dir, journal) = journal();
    let before = settings_of(tree.root());
    fs::remove_dir_all(dir.path().join("journals")).unwrap();
    let of = Subject { pids: vec![idle.pid()], ..subject(&[first]) };
    for steps in ["local", "power", "quiet"] {
        let error = apply_on(&ground(&tree, &[]), &words(steps), &of, &journal).unwrap_err();
        assert!(matches!(error, HostError::JournalWrite { .. }), "{steps}: {error}");
    }
    assert_eq!(settings_of(tree.root()), before);
}

#[test]
fn a_box_that_has_ended_is_refused_and_unchanged_changes_nothing() {
    let Some([first, last]) = two_cpus() else { return };
    let tree = two_nodes([first, last]);
    let (_dir, journal) = journal();
    let of = Subject { pids: vec![Pid(i32::MAX)], ..subject(&[first]) };
    let error = apply_on(&ground(&tree, &[]), &words("local"), &of, &journal).unwrap_err();
    assert!(matches!(error, HostError::BoxEnded { .. }), "{error}");
    let applied = apply_on(&ground(&tree, &[]), &words("unchanged"), &of, &journal).unwrap();
    assert!(applied.read_back().is_empty() && applied.missing().is_empty());
    assert_eq!(journal.entries(), []);
}
