//! Which test networks are up.

use whylate_model::Printable;
use whylate_model::lab::{BedKind, BedStatus, LabStatus, LinkStatus, NamespaceStatus};

use super::Screen;
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Name, Sentence, sentence};

/// Networks that the answer names.
const NAMED: usize = 3;
/// The loopback interface, which each namespace has.
const LOOPBACK: &str = "lo";
/// The name of a network for which nobody chose one.
const USUAL: &str = "lab";

pub(super) fn screen(of: &LabStatus) -> Screen {
    let whole: Vec<&BedStatus> = of.beds.iter().filter(|bed| bed.notes.is_some()).collect();
    let broken = of.beds.iter().find(|bed| bed.notes.is_none());
    let mut answer = vec![headline(&whole)];
    answer.extend(broken.map(|bed| {
        let name = || Name::of(&bed.name);
        let down = sentence!["whylate lab down --name ", name()];
        sentence![name(), " is not whole: ", down, "  removes what is left of it."]
    }));
    Screen {
        answer,
        tables: vec![interfaces(of)],
        notes: notes(of),
        more: more(whole.first().copied()),
        ..Screen::default()
    }
}

fn headline(whole: &[&BedStatus]) -> Sentence {
    let named = whole.iter().take(NAMED).filter_map(|bed| {
        let kind = bed.notes.as_ref()?.kind;
        let kind = if whole.len() == 1 { between(kind) } else { kind.name() };
        Some(sentence![Name::of(&bed.name), " (", kind, ")"])
    });
    let named = Sentence::joined(named, ", ");
    match whole.len() {
        0 => "No test network is up.".into(),
        1 => sentence![1_usize, " test network is up: ", named, "."],
        all @ ..=NAMED => sentence![all, " test networks are up: ", named, "."],
        all => sentence![all, " test networks are up: ", named, " and ", all - NAMED, " more."],
    }
}

/// What is between client and server.
fn between(kind: BedKind) -> &'static str {
    match kind {
        BedKind::Direct => "client and server joined directly",
        BedKind::Bridge => "joined by a bridge",
        BedKind::Ovs => "joined by Open vSwitch",
        BedKind::Open => "open: nothing joins client and server yet",
    }
}

/// A row for each interface but loopback.
fn interfaces(of: &LabStatus) -> Table {
    let mut table =
        Table::new("", &["namespace", "interface", "state", "address"]).words(&[1, 2, 3]);
    let mut row = |namespace: &NamespaceStatus, link: Option<&LinkStatus>| {
        let state = match (&namespace.links, link) {
            (None, _) => Cell::from("not readable"),
            (Some(_), link) => link.map(|link| Printable(&link.state).to_string()).into(),
        };
        let name = link.map(|link| Value::Text(Printable(&link.name).to_string()));
        let address = link.and_then(|link| link.addresses.iter().find(|of| !of.contains(':')));
        table.row([
            Cell::from(Printable(&namespace.name).to_string()),
            name.into(),
            state,
            address.map(|of| Printable(of).to_string()).into(),
        ]);
    };
    for namespace in of.beds.iter().flat_map(|bed| &bed.namespaces) {
        let links = namespace.links.iter().flatten().filter(|link| link.name != LOOPBACK);
        let links: Vec<&LinkStatus> = links.collect();
        if links.is_empty() {
            row(namespace, None);
        }
        for link in links {
            row(namespace, Some(link));
        }
    }
    table
}

/// What a network was asked to have, and who is inside.
fn notes(of: &LabStatus) -> Vec<String> {
    let mut notes = Vec::new();
    for bed in &of.beds {
        let name = Printable(&bed.name);
        let of_bed = bed.notes.as_ref();
        if let Some(queues) = of_bed.and_then(|notes| notes.queues) {
            notes.push(format!(
                "{name} has {queues} queues at each end of a link, each with a CPU."
            ));
        }
        if let Some(tap) = of_bed.and_then(|notes| notes.tap.as_ref()) {
            let tap = Printable(tap);
            notes.push(format!(
                "A tap on {tap} of {name}'s device sees all its packets, both ways."
            ));
        }
    }
    let inside = of.beds.iter().flat_map(|bed| &bed.namespaces);
    let inside: usize = inside.map(|of| of.processes.len()).sum();
    if inside > 0 {
        let processes = if inside == 1 { "process runs" } else { "processes run" };
        notes.insert(0, format!("{inside} {processes} inside: --full names them."));
    }
    notes
}

fn more(bed: Option<&BedStatus>) -> Vec<String> {
    let Some(bed) = bed else {
        return vec!["whylate lab up  sets one up".to_owned()];
    };
    let name = Printable(&bed.name);
    let client = bed.namespaces.iter().find(|of| of.role == "client");
    let client = client.map(|of| {
        format!("nsenter --net=/run/netns/{} sh  a shell on the client", Printable(&of.name))
    });
    let down = if bed.name == USUAL { String::new() } else { format!(" --name {name}") };
    let measure = format!("whylate rtt --bed {name}      whylate lab down{down}");
    client.into_iter().chain([measure]).collect()
}
