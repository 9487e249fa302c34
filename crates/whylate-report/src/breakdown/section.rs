//! The sections of where requests spent their time: parts, points, stamps, and what looking costs.

use whylate_model::run::Run;

use super::{
    AGREEMENTS, ASIDES, BETWEEN, COST, FAR_STAMPS, PART_AGREEMENTS, PARTS, POINTS, PROBES, STAMPS,
    Taken, agreements, answer, asides, between, cost, far_stamps, journey, of_run, part_agreements,
    parts, points, probes, remarks, stamps,
};
use crate::doc::{Block, Picture, Section, Where};

/// Sections: one for each flow.
const MOST_SECTIONS: usize = 16;

/// How the bars are to be read.
const BARS: &str = "Each bar is the mean of its requests, as wide as the page whatever it takes: the \
     total stands above it. From left to right as a request passes it.";

/// Pictures of what was taken apart, which the page has.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    /// What requests consist of.
    pub(crate) bars: Option<String>,
    /// Slow requests, one by one.
    pub(crate) journeys: Vec<Block>,
}

/// The sections; none for a run whose requests were not taken apart.
pub(crate) fn sections(run: &Run, pictures: impl Fn(&Taken) -> Pictures) -> Vec<Section> {
    let all = of_run(run);
    let some = all.iter().take(MOST_SECTIONS).enumerate();
    some.map(|(at, taken)| {
        let id = if at == 0 { "breakdown".to_owned() } else { format!("breakdown-{}", at + 1) };
        Section::new(&id, taken.heading.clone(), blocks(taken, pictures(taken))).headed()
    })
    .collect()
}

fn blocks(taken: &Taken, pictures: Pictures) -> Vec<Block> {
    let of = taken.of;
    let told = Block::Text(answer(of, taken.merged).to_string());
    let mut blocks = Vec::new();
    if of.requests > 0 {
        // A terminal has it at the head of the report.
        blocks.push(Block::Only(Where::Page, vec![told]));
        blocks.extend(pictures.bars.map(|svg| Block::Figure(Picture::still(svg, BARS))));
        blocks.extend(Block::explained(parts(taken), PARTS));
    } else {
        blocks.push(told);
    }
    blocks.extend(Block::items(remarks(taken)));
    if !of.points.is_empty() {
        blocks.extend(Block::explained(points(of), POINTS));
    }
    let more = [
        (probes(of), PROBES),
        (stamps(of), STAMPS),
        (far_stamps(of), FAR_STAMPS),
        (asides(of), ASIDES),
        (agreements(of), AGREEMENTS),
        (part_agreements(of), PART_AGREEMENTS),
        (between(of), BETWEEN),
        (cost(of), COST),
    ];
    for (table, how) in more {
        blocks.extend(table.into_iter().flat_map(|table| Block::explained(table, how)));
    }
    if let Some(slowest) = of.slowest.first() {
        let how = format!("The slowest. Its {} events are on the page.", slowest.beside.len());
        let alone = Block::explained(journey(slowest, taken.rate), how).to_vec();
        blocks.push(Block::Only(Where::Terminal, alone));
    }
    blocks.extend(pictures.journeys);
    blocks
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
            "2 µs 20% 92 µs 92%",
            "whole 10 µs 100% 100 µs 100%",
            "never came: request wire out (card)",
            "Points on the way, by outcome",
            "Stamps, before anything was measured",
            "Sent to stamped, beside the way",
            "The same point by two sources",
            "The same part by two sources",
            "What looking costs, over 12 rounds",
            "Request 1,234: 100 µs",
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
