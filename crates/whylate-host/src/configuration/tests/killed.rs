//! A process that is killed while its configuration is in force, and what the next start does.

use std::io::{BufRead, BufReader};

use super::here::{Host, ground_here, movable};
use super::*;
use crate::journal::recover_in;

/// Where the child finds its orders.
const ORDERS: &str = "WHYLATE_TEST_CONFIGURATION";
const IN_FORCE: &str = "in force";

/// What a process of this test is to put in force before it is killed.
struct Orders {
    /// `/`, or a planted tree.
    root: PathBuf,
    journals: PathBuf,
    words: String,
    pid: Pid,
    cpu: CpuId,
    irq: Option<u32>,
}

impl Orders {
    fn as_words(&self) -> String {
        let Self { root, journals, words, pid, cpu, irq } = self;
        let irq = irq.map_or_else(|| "-".to_owned(), |irq| irq.to_string());
        format!("{}\n{}\n{words}\n{pid}\n{cpu}\n{irq}", root.display(), journals.display())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        Some(Self {
            root: lines.next()?.into(),
            journals: lines.next()?.into(),
            words: lines.next()?.to_owned(),
            pid: Pid(lines.next()?.parse().ok()?),
            cpu: CpuId(lines.next()?.parse().ok()?),
            irq: lines.next()?.parse().ok(),
        })
    }

    /// Has a process put them in force, and kills it.
    fn obeyed_and_killed(&self) -> Result<(), String> {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "configuration::tests::killed::the_one_that_is_killed"]);
        child.args(["--ignored", "--nocapture"]).env(ORDERS, self.as_words());
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        for line in out.lines().map_while(Result::ok) {
            said.push_str(&line);
            said.push('\n');
            if line.contains(IN_FORCE) {
                break;
            }
        }
        // SIGKILL: no destructor runs.
        child.kill().unwrap();
        child.wait().unwrap();
        if said.contains(IN_FORCE) { Ok(()) } else { Err(said) }
    }
}

#[test]
#[ignore = "the process that the tests of a kill start"]
fn the_one_that_is_killed() {
    let Some(orders) = std::env::var(ORDERS).ok().and_then(|text| Orders::parse(&text)) else {
        return tree::skip(&"it has no orders");
    };
    let journal = Journal::open_in(&orders.journals).unwrap();
    let ground = Ground { root: orders.root, ..ground_here(orders.irq) };
    let subject = Subject { pids: vec![orders.pid], cpus: vec![orders.cpu], ..Subject::default() };
    let applied = apply_on(&ground, &words(&orders.words), &subject, &journal).unwrap();
    println!("{IN_FORCE}");
    // Until it is killed, or the test that started it ends.
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(applied);
}

#[test]
fn settings_of_a_planted_host_are_put_back_after_a_kill() {
    if tree::emulated() {
        return;
    }
    let _turn = tree::turn(&tree::CPUSETS);
    let Some([first, last]) = two_cpus() else { return };
    let (tree, idle) = (two_nodes([first, last]), Idle::start());
    let journals = tempfile::tempdir().unwrap();
    let (before, whole) = (settings_of(tree.root()), idle.cpus());
    let orders = Orders {
        root: tree.root().to_owned(),
        journals: journals.path().join("journals"),
        words: "local+isolset+power+quiet".to_owned(),
        pid: idle.pid(),
        cpu: last,
        irq: Some(40),
    };
    orders.obeyed_and_killed().unwrap();
    assert_ne!(settings_of(tree.root()), before);
    assert_eq!(idle.cpus(), [last]);
    let writable = tree.root().display().to_string();
    let recovered = recover_in(&orders.journals, &[&writable]);
    assert!(recovered.len() > 10, "{recovered:#?}");
    assert!(recovered.iter().all(|one| one.outcome.settled()), "{recovered:#?}");
    assert_eq!(settings_of(tree.root()), before);
    assert_eq!(idle.cpus(), whole);
    assert_eq!(recover_in(&orders.journals, &[&writable]), []);
}

#[test]
fn what_a_killed_process_changed_on_this_host_is_put_back_though_the_box_lives_on() {
    if tree::emulated() {
        return;
    }
    let (_cpusets, _interrupts) = (tree::turn(&tree::CPUSETS), tree::turn(&tree::INTERRUPTS));
    let Some([first, last]) = two_cpus() else { return };
    let journals = tempfile::tempdir().unwrap();
    let idle = Idle::start();
    kernel::set_affinity(idle.pid(), &[first]).unwrap();
    let irq = movable(last);
    let before = Host::of(&idle, last, irq);
    let orders = Orders {
        root: "/".into(),
        journals: journals.path().join("journals"),
        words: "local+isolset+power".to_owned(),
        pid: idle.pid(),
        cpu: last,
        irq,
    };
    if let Err(said) = orders.obeyed_and_killed() {
        // Without privilege too the box can be placed: anything else is a fault.
        return if said.contains("cannot be had here") {
            tree::skip(&said);
        } else {
            panic!("{said}")
        };
    }
    assert_ne!(Host::of(&idle, last, irq), before);
    let recovered = recover_in(&orders.journals, &["/proc/sys", "/proc/irq", "/sys"]);
    assert!(recovered.iter().all(|one| one.outcome.settled()), "{recovered:#?}");
    assert_eq!(Host::of(&idle, last, irq), before);
}
