//! Load that the tool makes: whether it arrives where it is to disturb.

use std::process::Stdio;
use std::time::Duration;

use whylate_load::{Program, Wanted, parse, start_by};
use whylate_model::CpuId;
use whylate_sys::sched::{self, Policy};

use crate::needs;
use crate::program::{self, said, whylate};

/// Turns without and with load, one after the other.
const TURNS: usize = 4;
const TURN: Duration = Duration::from_millis(300);

fn tool() -> Program {
    Program { exe: program::path().to_owned(), arguments: vec![Program::COMMAND.to_owned()] }
}

fn wanted(words: &str, cpus: &[CpuId]) -> Wanted {
    Wanted {
        kinds: parse(words).unwrap(),
        disturbed: vec![cpus[1]],
        elsewhere: vec![cpus[0]],
        at_most: Duration::from_secs(30),
        ..Wanted::default()
    }
}

/// A counter of a CPU in a table of `/proc`; none where this machine does not count that.
fn counter(table: &str, names: &[&str], cpu: CpuId) -> Option<u64> {
    let text = std::fs::read_to_string(table).unwrap();
    let mut lines = text.lines();
    let cpu = format!("CPU{cpu}");
    let column = lines.next()?.split_whitespace().position(|name| name == cpu)?;
    let row = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let number = numbers.split_whitespace().nth(column)?.parse::<u64>().ok()?;
        names.contains(&name.trim()).then_some(number)
    };
    lines.filter_map(row).reduce(|sum, more| sum + more)
}

/// How much a counter rises in turns without load and in as many with it.
fn rises(words: &str, table: &str, names: &[&str]) -> Option<(u64, u64)> {
    let cpus = needs::cpus(2)?;
    let now = || counter(table, names, cpus[1]);
    if now().is_none() {
        needs::missing(&format!("{table} has no row {}", names.join(" or ")));
    }
    let (mut without, mut with) = (0, 0);
    for _ in 0..TURNS {
        let before = now()?;
        std::thread::sleep(TURN);
        without += now()? - before;
        let load = start_by(&tool(), &wanted(words, &cpus)).unwrap();
        let before = now()?;
        std::thread::sleep(TURN);
        with += now()? - before;
        let facts = load.stop();
        assert!(facts.iter().all(|facts| facts.amount > 0 && !facts.ended_early), "{facts:?}");
    }
    Some((without, with))
}

#[test]
#[ignore = "live figure: to accept"]
fn interrupts_that_are_sent_arrive_at_the_disturbed_cpu() {
    let _alone = program::alone();
    let rows = ["TLB", "CAL"];
    let Some((without, with)) = rises("ipi:rate=20000", "/proc/interrupts", &rows) else { return };
    eprintln!("interrupts {without} without, {with} with");
    assert!(with > 3 * without && with > 1_000, "{without} without, {with} with");
}

#[test]
#[ignore = "live figure: to accept"]
fn network_load_is_received_on_the_disturbed_cpu() {
    let _alone = program::alone();
    let Some((without, with)) = rises("net", "/proc/softirqs", &["NET_RX"]) else { return };
    eprintln!("softirqs {without} without, {with} with");
    assert!(with > 3 * without && with > 100, "{without} without, {with} with");
}

#[test]
fn the_tools_own_generators_are_ordinary_and_on_the_disturbed_cpu() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let load = start_by(&tool(), &wanted("cpu:10%,mem:1MiB", &cpus)).unwrap();
    let look = |pid: &whylate_model::Pid| {
        (sched::policy_of(*pid).unwrap(), whylate_sys::affinity::get_of(*pid).unwrap())
    };
    let looks: Vec<_> = load.pids().iter().map(look).collect();
    let ordinary = |cpu| (Policy::Other { nice: 0 }, vec![cpu]);
    assert_eq!(looks, [ordinary(cpus[1]), ordinary(cpus[1]), ordinary(cpus[0])]);
    assert_eq!(load.stop().len(), 2);
}

#[test]
fn the_hidden_command_does_nothing_without_an_order() {
    let _alone = program::alone();
    let output = whylate([Program::COMMAND]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("started by whylate itself"), "{}", said(&output));
}
