//! Test networks, one whole and one half, and none.

use whylate_model::Pid;
use whylate_model::lab::{BedKind, BedNotes, LAB_VERSION, LinkStatus, ProcessInside};

use super::*;
use crate::terminal::{Style, full_of_lab};

/// A network of one namespace with a process inside, and what is left of another.
pub(crate) fn status() -> LabStatus {
    let namespace = NamespaceStatus {
        role: "client".to_owned(),
        name: "whylate-lab-client".to_owned(),
        links: Some(vec![LinkStatus {
            name: "client0".to_owned(),
            state: "UP".to_owned(),
            addresses: vec!["198.18.0.1/24".to_owned()],
        }]),
        processes: vec![ProcessInside { pid: Pid(7), name: "sh\u{1b}[31m".to_owned() }],
    };
    let notes = BedNotes {
        kind: BedKind::Bridge,
        datapath: "a bridge of the kernel".to_owned(),
        since_ns: 951_827_696_000_000_000,
        queues: Some(2),
        tap: Some("to-client".to_owned()),
    };
    let whole = BedStatus {
        name: "lab".to_owned(),
        notes: Some(notes),
        namespaces: vec![namespace.clone()],
    };
    let half = BedStatus {
        name: "half".to_owned(),
        notes: None,
        namespaces: vec![NamespaceStatus { links: None, ..namespace }],
    };
    LabStatus { format_version: LAB_VERSION, beds: vec![half, whole] }
}

#[test]
fn a_bed_shows_its_links_and_who_is_inside_and_what_is_not_whole_says_so() {
    let text = full_of_lab(&status(), Style::default());
    for part in [
        "Bed half: not whole",
        "Bed lab: bridge, up since 2000-02-29 12:34:56 UTC",
        "198.18.0.1/24",
        "a bridge of the kernel; 2 queues at each end",
        "process 7 (sh",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let none = LabStatus { format_version: LAB_VERSION, beds: Vec::new() };
    assert!(full_of_lab(&none, Style::default()).contains("no bed"));
}
