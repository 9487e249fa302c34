//! Load that was made on purpose beside what was measured.

use whylate_model::Nanos;
use whylate_model::load::LoadFacts;
use whylate_model::run::Run;

use crate::doc::{Block, Section, Table};
use crate::numbers::{ABSENT, Value, bit_rate, count, number, percent, rate};

/// The section; none where no load was made.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let names: Vec<&str> = run.loads.iter().map(|load| load.load.as_str()).collect();
    let heading = format!("Load beside it: {}", names.join(", "));
    let head = ["load", "done", "of", "rate", "time", "lost"];
    let table = Table::new(heading.clone(), &head).words(&[2]);
    let table = table.with(run.loads.iter().map(cells));
    let told = Block::Items(run.loads.iter().map(sentence).collect());
    let blocks = vec![Block::Table(table), told];
    (!run.loads.is_empty()).then(|| Section::new("loads", heading, blocks))
}

/// One row.
fn cells(load: &LoadFacts) -> Vec<String> {
    let (done, of, speed) = match load.unit.as_str() {
        "bytes" => (
            format!("{} MB", number(load.amount as f64 / 1e6)),
            String::new(),
            load.per_second().map(|bytes| bit_rate(bytes * 8.0)),
        ),
        "ns of CPU time" => (
            Value::from(Nanos(load.amount)).to_string(),
            "CPU time".to_owned(),
            load.per_second().map(|ns| format!("{} of a CPU", percent(ns / 1e9))),
        ),
        unit => (count(load.amount), unit.to_owned(), load.per_second().map(rate)),
    };
    let dash = || ABSENT.to_owned();
    let lost = match (load.lost, load.offered) {
        (Some(lost), Some(offered)) if offered > 0 => {
            format!("{} ({})", count(lost), percent(lost as f64 / offered as f64))
        }
        (Some(lost), _) => count(lost),
        (None, _) => dash(),
    };
    vec![
        load.load.clone(),
        done,
        of,
        speed.unwrap_or_else(dash),
        Value::from(load.time).to_string(),
        lost,
    ]
}

/// What it was, and whether it was there all the time.
fn sentence(load: &LoadFacts) -> String {
    let early = if load.ended_early { "; IT ENDED EARLY" } else { "" };
    let said: Vec<&str> =
        std::iter::once(&load.what).chain(&load.notes).map(String::as_str).collect();
    format!("{}: {}{early}", load.load, said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Style, render};
    use crate::timeline::tests::recorded;

    fn planted() -> Vec<LoadFacts> {
        let load = |name: &str, what: &str, amount, unit: &str| LoadFacts {
            load: name.to_owned(),
            what: what.to_owned(),
            amount,
            unit: unit.to_owned(),
            time: Nanos(2_000_000_000),
            offered: None,
            lost: None,
            course: Vec::new(),
            ended_early: false,
            notes: Vec::new(),
        };
        vec![
            load("net", "TCP bulk over loopback, received on CPU 1", 250_000_000, "bytes"),
            LoadFacts {
                offered: Some(40_000),
                lost: Some(10),
                ..load("net:udp", "UDP over loopback, received on CPU 1", 39_990, "datagrams")
            },
            load("cpu", "busy threads on CPU 1", 1_000_000_000, "ns of CPU time"),
            LoadFacts {
                course: Vec::new(),
                ended_early: true,
                notes: vec!["/tmp is tmpfs".to_owned()],
                ..load("disk", "walks over files", 0, "files")
            },
        ]
    }

    #[test]
    fn each_load_has_its_rate_and_its_losses() {
        let rows: Vec<Vec<String>> = planted().iter().map(cells).collect();
        assert_eq!(rows[0], ["net", "250 MB", "", "1.00 Gbit/s", "2 s", "–"]);
        assert_eq!(rows[1], ["net:udp", "39,990", "datagrams", "20,000/s", "2 s", "10 (<0.1%)"]);
        assert_eq!(rows[2][3], "50% of a CPU");
        let never = LoadFacts { time: Nanos(0), ..planted().remove(0) };
        assert_eq!(cells(&never)[3], "–");
    }

    #[test]
    fn load_stands_in_the_report_and_one_that_ended_early_says_so() {
        let mut run = recorded();
        assert!(!render(&run, Style::default()).contains("Load beside it"));
        run.loads = planted();
        let text = render(&run, Style::default());
        assert!(text.contains("Load beside it: net, net:udp, cpu, disk"), "{text}");
        assert!(text.contains("disk: walks over files; /tmp is tmpfs; IT ENDED EARLY"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
