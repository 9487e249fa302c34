//! A fan-in of boxes of this machine, of Open vSwitch, and of ports that the user names: every subset of the
//! ports has its turn, and counts and shares add up.

use whylate_model::device::{Device, FanIn};
use whylate_model::flow::Direction;

use super::{adds_up, device, narrow, possible};
use crate::between::Bed;
use crate::needs;
use crate::program::{self, recorded, said};

const SHORT: &str =
    "--sizes 128 --rate 1kpps --rounds 1 --duration 100ms --warmup 50ms --no-throughput";

/// Three pairs and all of them; counts are those of the sources, and shares are of all that came.
fn every_subset_adds_up(of: &Device) {
    let sizes: Vec<usize> = of.fan_in.iter().map(|one| one.sources.len()).collect();
    assert_eq!(sizes, [2, 2, 2, 3], "three pairs and all of them");
    of.fan_in.iter().for_each(adds_up_to_one);
}

fn adds_up_to_one(one: &FanIn) {
    let received: u64 = one.sources.iter().map(|source| source.received).sum();
    let sum: f64 = one.sources.iter().map(|source| source.share).sum();
    assert_eq!(received, one.received, "{one:?}");
    // A box that got no CPU while they sent let nothing through.
    let whole = if received > 0 { 1.0 } else { 0.0 };
    assert!((sum - whole).abs() < 1e-9, "{one:?}");
    for source in &one.sources {
        assert!(source.low.is_none_or(|low| low <= source.share), "{source:?}");
        assert!(source.high.is_none_or(|high| source.share <= high), "{source:?}");
    }
}

#[test]
fn pairs_and_all_ports_of_a_bridge_send_together_and_shares_add_up() {
    let _alone = program::alone();
    if !possible() || needs::program("tc").is_none() {
        return;
    }
    let words = format!(
        "device --box bridge {SHORT} --fan-in 3 --fan-in-takes 10Mbit/s@L2 --fan-in-sends 2,1,1"
    );
    every_subset_adds_up(device(&recorded(&words)));
}

#[test]
fn a_fan_in_of_open_vswitch_is_told_with_its_weights_and_shares_add_up() {
    let _alone = program::alone();
    let programs = ["tc", "ovs-vswitchd", "ovs-ofctl"];
    if !possible() || !programs.into_iter().all(|name| needs::program(name).is_some()) {
        return;
    }
    let words = format!(
        "device --box ovs {SHORT} --fan-in 3 --fan-in-takes 10Mbit/s@L2 --fan-in-weights 3,1,1"
    );
    let recorded = recorded(&words);
    let of = device(&recorded);
    assert_eq!(of.name, "ovs");
    of.sizes.iter().for_each(adds_up);
    let ways: Vec<Direction> = of.sizes.iter().map(|at| at.direction).collect();
    assert!(ways.len() == 2 && ways.contains(&Direction::There), "{ways:?}");
    assert!(ways.contains(&Direction::Back), "{ways:?}");
    every_subset_adds_up(of);
    let said_of =
        |one: &FanIn| one.takes.as_ref().is_some_and(|takes| takes.contains("by weights"));
    assert!(of.fan_in.iter().all(|one| one.to == "server0" && said_of(one)), "{:?}", of.fan_in);
}

#[test]
fn ports_that_are_named_send_together_by_their_names_and_one_that_is_absent_is_refused() {
    let _alone = program::alone();
    if !possible() || needs::program("tc").is_none() {
        return;
    }
    let Some(bed) = Bed::asking() else { return };
    if !narrow::bridge(&bed) {
        return needs::absent("no bridges here");
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("narrow");
    let words = format!("--rounds 1 {} --fan-in-takes 10Mbit/s@L2", narrow::PORTS);
    let output = narrow::measured(&bed, (&words, "100ms"), &directory);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    let of = run.device.expect("a device");
    every_subset_adds_up(&of);
    for one in &of.fan_in {
        assert_eq!(
            (one.to.as_str(), one.takes.as_ref()),
            ("d0", None),
            "nobody of ours made it narrow"
        );
        assert!(
            one.sources.iter().all(|source| ["s0", "s1", "s2"].contains(&source.from.as_str()))
        );
    }
    let directory = home.path().join("none");
    let words = "--fan-in-from s0,never-was --fan-in-to d0";
    let output = narrow::measured(&bed, (words, "100ms"), &directory);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("no interface `never-was`"), "{}", said(&output));
    assert!(!directory.exists(), "nothing was measured, and something is left");
}
