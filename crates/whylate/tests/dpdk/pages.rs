//! The memory of DPDK: of huge pages where they are, refused or of ordinary ones where they are not.
//!
//! What the kernel reserves for this is reserved under a guard of whylate's own: it is put back at the end,
//! and at the next start of whylate where this test was killed.

use std::path::{Path, PathBuf};

use whylate_host::guard::{Guard, Settings};
use whylate_host::journal::Journal;
use whylate_model::forward::Forward;

use crate::asked::has_answered;
use crate::peer::missing;
use crate::tool::{Measured, Service, memif, run, said};
use crate::{alone, cpus};

/// Where the kernel keeps count of pages of 2 MiB.
const PLACE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
/// What each process asks for, and pages for two of them with some to spare.
const MEMORY: &str = "--dpdk-memory 128MiB";
const MEMORY_PAGES: u64 = 64;
const PAGES: u64 = 2 * MEMORY_PAGES + 16;

fn file(name: &str) -> PathBuf {
    Path::new(PLACE).join(name)
}

/// A number of the kernel's; none where it has no such pages.
fn number(name: &str) -> Option<u64> {
    std::fs::read_to_string(file(name)).ok()?.trim().parse().ok()
}

/// Has the kernel keep so many pages; whether it does.
fn reserve(settings: &mut Settings, pages: u64) -> bool {
    match settings.set(&file("nr_hugepages"), &pages.to_string()) {
        Ok(_) => true,
        Err(refusal) => {
            missing(&format!("the kernel does not keep {pages} huge pages: {refusal}"));
            false
        }
    }
}

#[test]
fn huge_pages_are_used_where_they_are_and_where_not_refused_or_done_without_and_all_are_put_back() {
    let _alone = alone();
    let Some(cpus) = cpus() else { return };
    let Some((before, free)) = number("nr_hugepages").zip(number("free_hugepages")) else {
        return missing("this kernel has no huge pages of 2 MiB");
    };
    let journal = Journal::open().unwrap();
    let mut settings = Settings::new(&journal);
    let used = before.saturating_sub(free);
    if !reserve(&mut settings, used) {
        return;
    }
    absent(cpus.0.0);
    if !reserve(&mut settings, used + PAGES) {
        return;
    }
    let reserved = number("free_hugepages").unwrap();
    if reserved < PAGES {
        return missing(&format!(
            "the kernel has {reserved} huge pages, and {PAGES} were asked for"
        ));
    }
    let server = memif("huge", 0, "server");
    let words = format!(
        "reflect --port dpdk --vdev {server} --pages huge {MEMORY} --listen 198.18.9.2:11111 --cpu {} --idle \
         240s",
        cpus.0
    );
    let reflector = Service::start(&words, "listening on");
    let taken = reserved - number("free_hugepages").unwrap();
    assert!(
        taken >= MEMORY_PAGES,
        "{taken} huge pages are taken, and {MEMORY_PAGES} were demanded"
    );
    let client = memif("huge", 0, "client");
    let words = format!(
        "198.18.9.2:11111 --port dpdk --vdev {client} --from 198.18.9.1 --rate 500pps --warmup 100ms \
         --duration 300ms --pages huge {MEMORY}"
    );
    let measured = Measured::new(&words, cpus.1);
    measured.is_accounted_by("net_memif0");
    has_answered(&reflector.stop(), &measured);
    assert_eq!(number("free_hugepages"), Some(reserved), "both have given theirs back");
    assert_eq!(settings.restore(), []);
    assert_eq!(number("nr_hugepages"), Some(before));
}

/// None is free.
fn absent(cpu: u32) {
    let ports = || [0, 1].map(|number| memif("absent", number, "server")).join(" ");
    let output = run(&format!("forward {} --port dpdk --pages huge {MEMORY}", ports()));
    let refused = said(&output);
    assert_eq!(output.status.code(), Some(1), "{refused}");
    assert!(refused.contains("128 MB of huge pages") && refused.contains("are free"), "{refused}");
    let words = format!("forward {} --port dpdk {MEMORY} --duration 240s --cpus {cpu}", ports());
    let told = Service::start(&words, "DPDK's memory is of ordinary pages").stop();
    let told: Forward = serde_json::from_str(&told).unwrap();
    let mut instead = told.ports.iter().flat_map(|port| &port.instead);
    assert!(instead.any(|said| said.contains("ordinary pages")), "{told:?}");
}
