//! Test networks of network namespaces.

use whylate_model::lab::{BedStatus, LabStatus, NamespaceStatus};

use crate::doc::{Block, Document, Section, Table};
use crate::html::utc;
use crate::numbers::ABSENT;

#[cfg(test)]
pub(crate) mod tests;

/// All of them, each a section.
pub(crate) fn document(of: &LabStatus) -> Document {
    let title = match of.beds.len() {
        0 => "There is no bed; `whylate lab up` sets one up.".to_owned(),
        1 => "1 test network".to_owned(),
        many => format!("{many} test networks"),
    };
    Document::new(title).naming(of).sections(of.beds.iter().map(section))
}

fn section(of: &BedStatus) -> Section {
    let heading = match &of.notes {
        Some(notes) => {
            format!("Bed {}: {}, up since {}", of.name, notes.kind.name(), utc(notes.since_ns))
        }
        None => format!("Bed {}: not whole", of.name),
    };
    let mut blocks = said(of);
    let mut table = Table::new("", &["namespace", "link", "state", "addresses"]).words(&[1, 2, 3]);
    of.namespaces.iter().for_each(|namespace| links(namespace, &mut table));
    blocks.push(Block::Table(table));
    let inside = of.namespaces.iter().flat_map(|namespace| {
        let one = |process: &whylate_model::lab::ProcessInside| {
            format!("inside {}: process {} ({})", namespace.name, process.pid, process.name)
        };
        namespace.processes.iter().map(one)
    });
    blocks.extend(Block::items(inside.collect()));
    Section::new("", heading, blocks).headed()
}

/// What is between its ends.
fn said(of: &BedStatus) -> Vec<Block> {
    let Some(notes) = &of.notes else {
        let words = "it was not finished or is damaged: `whylate lab down --name";
        return vec![Block::Note(format!("{words} {}`", of.name))];
    };
    let queues = notes.queues.map_or_else(String::new, |queues| {
        format!("; {queues} queues at each end of a link, each with a CPU that sends by it")
    });
    let between = format!("Between client and server: {}{queues}", notes.datapath);
    let tap = notes.tap.as_ref();
    let tap = tap.map(|tap| format!("Tap: {tap} of its device sees everything, both ways"));
    Block::texts([between].into_iter().chain(tap)).collect()
}

fn links(of: &NamespaceStatus, table: &mut Table) {
    let mut row = |link: &str, state: &str, addresses: &str| {
        table.row([of.name.as_str(), link, state, addresses]);
    };
    match &of.links {
        None => row("not readable", ABSENT, ABSENT),
        Some(links) => {
            for link in links {
                row(&link.name, &link.state, &link.addresses.join(" "));
            }
        }
    }
}
