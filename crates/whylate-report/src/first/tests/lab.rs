//! First screens of test networks: one, none, broken ones, and more than fit.

use whylate_model::Pid;
use whylate_model::lab::{
    BedKind, BedNotes, BedStatus, LAB_VERSION, LabStatus, LinkStatus, NamespaceStatus,
    ProcessInside,
};

use super::super::first_of_lab;
use super::{assert_small, style};
use crate::lab::tests::status;

/// A network with its three namespaces, as it comes up.
fn bed(name: &str) -> BedStatus {
    let link = |name: &str, addresses: &[&str]| LinkStatus {
        name: name.to_owned(),
        state: "up".to_owned(),
        addresses: addresses.iter().map(|of| (*of).to_owned()).collect(),
    };
    let namespace = |role: &str, links: Vec<LinkStatus>| NamespaceStatus {
        role: role.to_owned(),
        name: format!("whylate-{name}-{role}"),
        links: Some([link("lo", &["127.0.0.1/8", "::1/128"])].into_iter().chain(links).collect()),
        processes: Vec::new(),
    };
    let notes = BedNotes {
        kind: BedKind::Direct,
        datapath: "nothing".to_owned(),
        since_ns: 951_827_696_000_000_000,
        queues: None,
        tap: None,
    };
    BedStatus {
        name: name.to_owned(),
        notes: Some(notes),
        namespaces: vec![
            namespace("client", vec![link("client0", &["198.18.0.1/24"])]),
            namespace("device", Vec::new()),
            namespace("server", vec![link("server0", &["fe80::1/64", "198.18.0.2/24"])]),
        ],
    }
}

fn screen(beds: Vec<BedStatus>) -> String {
    let screen = first_of_lab(&LabStatus { format_version: LAB_VERSION, beds }, style());
    assert_small(&screen);
    screen
}

#[test]
fn a_test_network_is_told_with_its_interfaces_and_without_loopback() {
    let screen = screen(vec![bed("lab")]);
    assert!(!screen.contains("127.0.0.1") && !screen.contains("fe80"), "{screen}");
    insta::assert_snapshot!("lab", screen);
}

#[test]
fn no_test_network_is_told_with_the_command_that_makes_one() {
    assert_eq!(
        screen(Vec::new()),
        "No test network is up.\n\nMore:  whylate lab up  sets one up\n"
    );
}

#[test]
fn of_many_test_networks_three_are_named_and_the_rows_that_do_not_fit_are_counted() {
    let name = |at: usize| format!("bed{at}");
    for many in [2, 4, 12, 200] {
        let screen = screen((0..many).map(|at| bed(&name(at))).collect());
        let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = format!("{many} test networks are up: bed0 (");
        assert!(screen.starts_with(&said), "{screen}");
        let others = many > 3 && flat.contains(&format!(" and {} more.", many - 3));
        assert_eq!(others, many > 3, "{screen}");
        assert!(screen.contains("whylate lab down --name bed0"), "{screen}");
    }
    insta::assert_snapshot!("lab-12", screen((0..12).map(|at| bed(&name(at))).collect()));
}

#[test]
fn what_is_left_of_a_network_a_tap_queues_and_who_is_inside_are_told() {
    let first = first_of_lab(&status(), style());
    assert_small(&first);
    for part in [
        "half is not whole: whylate lab down --name half",
        "not readable",
        "lab has 2 queues at each end of a link",
        "A tap on to-client of lab's device",
        "2 processes run inside: --full names them.",
    ] {
        assert!(first.contains(part), "no `{part}` in\n{first}");
    }
    let mut crowded = bed("lab");
    let process = ProcessInside { pid: Pid(7), name: "sh\u{1b}[31m".to_owned() };
    crowded.namespaces[0].processes = vec![process; 40];
    let screen = screen(vec![crowded]);
    assert!(screen.contains("40 processes run inside: --full"), "{screen}");
}
