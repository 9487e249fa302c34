//! Load that the tool makes: by ordinary threads, where it is to disturb.

use std::process::Stdio;
use std::time::Duration;

use whylate_load::{Program, Wanted, parse, start_by};
use whylate_model::CpuId;
use whylate_sys::sched::{self, Policy};

use crate::needs;
use crate::program::{self, said, whylate};

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
