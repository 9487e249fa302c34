//! Boxes of others as the box: each carries frames both ways, counts add up, and nothing of it stays behind.

use std::path::{Path, PathBuf};

use super::{SHORT, adds_up, device, ended, naming, possible};
use crate::huge_pages::free as free_huge_pages;
use crate::needs;
use crate::program::{self, recorded, said};
use crate::rates::huge_pages;

/// Namespaces of every bed of a device there is.
fn beds() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let of_a_device = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("whylate-device-"))
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(of_a_device).collect();
    found.sort();
    found
}

fn testpmd_is_measured(the_box: &str) {
    if !possible() || needs::program("dpdk-testpmd").is_none() {
        return;
    }
    let before = beds();
    let words = format!("device --box {the_box} {SHORT}");
    let recorded = recorded(&words);
    let of = device(&recorded);
    assert_eq!((of.name.as_str(), of.sizes.len()), (the_box, 2), "both ways: {:?}", of.notes);
    for at in &of.sizes {
        adds_up(at);
        assert!(at.received > 0 && at.runs == 1, "{at:?}");
    }
    let left: Vec<PathBuf> = beds().into_iter().filter(|bed| !before.contains(bed)).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "no bed is left");
    // Its processes name the interface of the bed.
    assert_eq!(naming(Path::new("iface=to-client")), Vec::new(), "no process is left");
}

#[test]
fn testpmd_over_packet_sockets_is_measured_both_ways_and_nothing_of_it_is_left() {
    let _alone = program::alone();
    testpmd_is_measured("testpmd");
}

#[test]
fn testpmd_over_af_xdp_is_measured_both_ways_and_nothing_of_it_is_left() {
    let _alone = program::alone();
    if !possible() || needs::lacks("testpmd:xdp") {
        return;
    }
    // Where somebody has reserved some already, it is not refused.
    if free_huge_pages() == Some(0) {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        let words = format!("device --box testpmd:xdp --no-throughput -o {}", run.display());
        let refused = ended(&words);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(
            said(&refused).contains("huge pages of 2 MB, and") && !run.exists(),
            "{}",
            said(&refused)
        );
    }
    let Some(_pages) = huge_pages() else { return };
    testpmd_is_measured("testpmd:xdp");
}
