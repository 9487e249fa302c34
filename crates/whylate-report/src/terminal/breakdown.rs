//! Where requests spent their time: parts, points, stamps, and what looking costs.

use whylate_model::run::Run;

use super::text::Page;
use crate::breakdown::{
    self, AGREEMENTS, ASIDES, BETWEEN, COST, FAR_STAMPS, PART_AGREEMENTS, PARTS, POINTS, PROBES,
    STAMPS, Taken,
};
use crate::svg::Table;

pub(super) fn sections(page: &mut Page, run: &Run) {
    for taken in breakdown::of_run(run) {
        section(page, &taken);
    }
}

fn section(page: &mut Page, taken: &Taken) {
    let of = taken.of;
    if of.requests > 0 {
        print(page, &breakdown::parts(taken), PARTS);
    } else {
        page.section(&taken.heading);
        page.paragraph(&breakdown::answer(of));
    }
    for said in &breakdown::remarks(taken) {
        page.item(said);
    }
    if !of.points.is_empty() {
        print(page, &breakdown::points(of), POINTS);
    }
    let more = [
        (breakdown::probes(of), PROBES),
        (breakdown::stamps(of), STAMPS),
        (breakdown::far_stamps(of), FAR_STAMPS),
        (breakdown::asides(of), ASIDES),
        (breakdown::agreements(of), AGREEMENTS),
        (breakdown::part_agreements(of), PART_AGREEMENTS),
        (breakdown::between(of), BETWEEN),
        (breakdown::cost(of), COST),
    ];
    for (table, how) in more {
        if let Some(table) = table {
            print(page, &table, how);
        }
    }
    if let Some(slowest) = of.slowest.first() {
        let table = breakdown::journey(slowest, taken.rate);
        let events = slowest.beside.len();
        print(page, &table, &format!("The slowest. Its {events} events are on the page."));
    }
}

fn print(page: &mut Page, table: &Table, how: &str) {
    page.section(&table.caption);
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
    page.paragraph(how);
}

#[cfg(test)]
mod tests {
    use crate::breakdown::tests::{planted, run, watching};
    use crate::terminal::{Style, render};

    #[test]
    fn the_report_has_parts_points_stamps_agreement_cost_and_the_slowest() {
        let text = render(&run(planted(2_000)), Style::default());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "Where requests spent their time: rtt",
            "2.00us 20.0% 92.0us 92.0%",
            "whole 10.0us 100% 100us 100%",
            "never came: request wire out (card)",
            "Points on the way, and what became of them",
            "Stamps, before anything was measured",
            "Sent to stamped, beside the way",
            "The same point by two sources",
            "The same part by two sources",
            "What looking costs, over 12 rounds",
            "Request 1 234: 100us",
            "Its 3 events are on the page.",
        ] {
            assert!(flat.contains(words), "no `{words}` in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_run_directory_alone_has_the_report() {
        let home = tempfile::tempdir().unwrap();
        let directory = whylate_model::RunDir::create(home.path().join("run")).unwrap();
        let recorded = run(planted(2_000));
        directory.write_run(&recorded).unwrap();
        let read = directory.read_run().unwrap();
        assert_eq!(read.flows[0].breakdown, recorded.flows[0].breakdown);
        assert_eq!(render(&read, Style::default()), render(&recorded, Style::default()));
    }

    #[test]
    fn a_watched_process_has_the_same_section_and_its_name_prints_harmlessly() {
        let text = render(&watching(planted(2_000)), Style::default());
        assert!(text.contains("(77), port 7000") && !text.contains('\u{1b}'), "{text}");
        let mut none = planted(0);
        none.slowest.clear();
        let text = render(&watching(none), Style::default());
        assert!(text.contains("No request was taken apart."), "{text}");
    }

    #[test]
    fn a_run_without_a_breakdown_has_no_section_of_it() {
        let mut plain = run(planted(10));
        plain.flows[0].breakdown = None;
        assert!(!render(&plain, Style::default()).contains("spent their time"));
    }
}
