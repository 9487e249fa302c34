//! Beds of network namespaces, on a terminal.

use whylate_model::lab::{BedStatus, LabStatus, NamespaceStatus};

use super::Style;
use crate::html::utc;
use crate::render::terminal::Page;

/// All beds.
#[must_use]
pub fn render(all: &LabStatus, style: Style) -> String {
    let mut page = Page::new(style);
    if all.beds.is_empty() {
        page.paragraph("There is no bed; `whylate lab up` sets one up.");
    }
    for (index, bed) in all.beds.iter().enumerate() {
        if index > 0 {
            page.blank();
        }
        show(&mut page, bed);
    }
    page.finish()
}

fn show(page: &mut Page, bed: &BedStatus) {
    page.title(&match &bed.notes {
        Some(notes) => {
            format!("Bed {}: {}, up since {}", bed.name, notes.kind.name(), utc(notes.since_ns))
        }
        None => format!("Bed {}: not whole", bed.name),
    });
    match &bed.notes {
        Some(notes) => {
            let queues = notes.queues.map_or_else(String::new, |queues| {
                format!("; {queues} queues at each end of a link, each with a CPU that sends by it")
            });
            page.paragraph(&format!("Between client and server: {}{queues}", notes.datapath));
            if let Some(tap) = &notes.tap {
                page.paragraph(&format!("Tap: {tap} of its device sees everything, both ways"));
            }
        }
        None => page.note(&format!(
            "it was not finished or is damaged: `whylate lab down --name {}`",
            bed.name
        )),
    }
    page.blank();
    let rows: Vec<Vec<String>> = bed.namespaces.iter().flat_map(rows).collect();
    page.table(&["namespace", "link", "state", "addresses"], &rows, &[1, 2, 3]);
    for namespace in &bed.namespaces {
        for process in &namespace.processes {
            page.item(&format!(
                "inside {}: process {} ({})",
                namespace.name, process.pid, process.name
            ));
        }
    }
}

fn rows(namespace: &NamespaceStatus) -> Vec<Vec<String>> {
    let row = |link: &str, state: &str, addresses: String| {
        vec![namespace.name.clone(), link.to_owned(), state.to_owned(), addresses]
    };
    match &namespace.links {
        None => vec![row("not readable", "-", "-".to_owned())],
        Some(links) => links
            .iter()
            .map(|link| row(&link.name, &link.state, link.addresses.join(" ")))
            .collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::Pid;
    use whylate_model::lab::{BedKind, BedNotes, LAB_VERSION, LinkStatus, ProcessInside};

    use super::*;

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
        let text = render(&status(), Style::default());
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
        assert!(render(&none, Style::default()).contains("no bed"));
    }
}
