//! "How to Measure the Killer Microsecond", repeated: a device whose truth is known, a network function
//! that keeps a log, and what tools make of both.

use std::path::Path;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::paper::{Distribution, Distributions, EffectVerdict, Paper, Scenario};

use crate::needed;
use crate::program::{self, said, whylate};

/// Results of another tool, as its API gives them.
const TREX: &str = "{\"latency\": {\"7\": {\"latency\": {\"average\": 21.5, \"total_max\": 35, \
                    \"histogram\": {\"0\": 5, \"10\": 5000, \"20\": 400, \"30\": 7}}}}}";

pub(crate) const FIGURE: Figure = Figure {
    name: "killer2017_tools",
    method: "whylate paper killer2017 --quick by xdp, udp-block and sockperf beside an imported result; a round \
             in which a curve, a table or a verdict is not as its run directories tell has failed",
    rows: &[Row {
        claim: "our tools whose median is above that of the box's own log",
        unit: "share",
        bound: Bound::Always,
    }],
    rounds: 1,
    seconds: 400.0,
    most_taken: None,
    needs: || needed::two_ends(&["ip", "sockperf"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("paper");
    let file = home.path().join("trex.json");
    std::fs::write(&file, TREX).unwrap();
    let words =
        ["paper", "killer2017", "--quick", "--tools", "xdp,udp-block,sockperf", "--seed", "5"];
    let mut command = whylate(words);
    command.arg("--import").arg(format!("trex={}", file.display())).arg("-o").arg(&directory);
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let paper = Paper::read(&directory).unwrap().unwrap();
    for bed in ["open", "bridge", "direct"] {
        let left = format!("/run/netns/whylate-killer2017-{bed}-client");
        assert!(!Path::new(&left).exists(), "{left} is still there");
    }
    for of in &paper.scenarios {
        let failed: Vec<&String> =
            of.notes.iter().filter(|note| note.contains("not done")).collect();
        assert!(failed.is_empty(), "{}: {failed:#?}", of.place);
        assert!(!of.commands.is_empty(), "{} names its commands", of.place);
        assert!(of.rows.iter().all(|row| !row.why.is_empty()), "{of:#?}");
        of.distributions.iter().for_each(|set| from_run_directories(&directory, set));
    }
    table_1(scenario(&paper, "table1"));
    let above = figure_2(scenario(&paper, "fig2"));
    figure_3(scenario(&paper, "fig3"));
    let (hits, of) = above;
    Ok(vec![Reading::Share { hits, of }])
}

fn scenario<'a>(paper: &'a Paper, place: &str) -> &'a Scenario {
    paper.scenarios.iter().find(|of| of.place == place).unwrap_or_else(|| panic!("{place}"))
}

fn at(of: &Distribution, percent: f64) -> f64 {
    let found = of.reached.iter().find(|at| (at.percent - percent).abs() < 1e-9);
    found.unwrap_or_else(|| panic!("p{percent} of {of:?}")).value_ns
}

/// Every curve of what was measured comes from run directories that are there, with as many samples.
fn from_run_directories(directory: &Path, set: &Distributions) {
    for curve in set.curves.iter().filter(|of| of.imported.is_none()) {
        assert!(!curve.runs.is_empty() && curve.n > 0, "{curve:?}");
        let (mut n, mut logs, mut cut) = (0, false, false);
        for part in &curve.runs {
            if Path::new(part).extension().is_some_and(|of| of == "csv") {
                // Its head and its rulers are lines, too.
                let text = std::fs::read_to_string(directory.join(part)).unwrap();
                let packets = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
                n += text.lines().filter(packets).count() as u64;
                // Its warm-up is in the log and in no number.
                cut = true;
                continue;
            }
            let run = program::read(&directory.join(part));
            let service: Vec<&String> =
                run.flows.iter().filter_map(|flow| flow.service.as_ref()).collect();
            logs |= service.is_empty();
            let own = |name: &String| service.is_empty() || service.contains(&name);
            n += run.series.iter().filter(|of| own(&of.name)).map(|of| of.n).sum::<u64>();
        }
        // Of a log that goes on before and after, what is of the same time.
        let whole = match (logs, cut) {
            (_, true) => curve.n < n,
            (true, false) => curve.n <= n,
            (false, false) => curve.n == n,
        };
        assert!(whole, "{}: {} of {n}", curve.label, curve.n);
        let last = curve.points.last().unwrap();
        assert!(last.share * curve.n as f64 >= set.fewest_above as f64 - 1e-6, "{curve:?}");
        let shares: Vec<f64> = curve.points.iter().map(|point| point.share).collect();
        assert!(shares.is_sorted_by(|a, b| a >= b) && (shares[0] - 1.0).abs() < 1e-9, "{shares:?}");
    }
}

fn table_1(of: &Scenario) {
    let table = &of.tables[0];
    let tools: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(tools, ["xdp spin", "udp block", "sockperf", "TRex stream 7"]);
    // Who stamps, step, cost and precision are those of a run.
    for row in &table.rows[..2] {
        assert!(row[3..6].iter().all(|cell| cell.ends_with('s')), "{row:?}");
    }
}

/// How many of our tools say in the middle more than the box does, and of how many.
fn figure_2(of: &Scenario) -> (u64, u64) {
    let notes = of.notes.join("\n");
    assert!(notes.contains("--quick: 2 runs of 3 s after 1 s"), "{notes}");
    assert!(
        notes.contains("on the wire (L1)") && notes.contains("each curve ends at 1/n"),
        "{notes}"
    );
    assert!(notes.contains("the delay line holds each frame for"), "{notes}");
    assert!(notes.contains("no distance from this one's truth is claimed"), "{notes}");
    let figure = &of.distributions[0];
    let (truth, tools) = figure.curves.split_last().unwrap();
    assert!(truth.label.starts_with("truth"), "{:?}", truth.label);
    let trex = tools.iter().find(|of| of.label.starts_with("TRex")).unwrap();
    assert_eq!((trex.n, at(trex, 50.0)), (5_412, 15_000.0), "the middle of a bucket of 10us");
    // From outside a frame takes longer than it stays in the box; what sockperf says is halved.
    let own = tools.iter().filter(|of| of.imported.is_none() && !of.label.starts_with("sockperf"));
    let above = own.map(|tool| u64::from(at(tool, 50.0) > at(truth, 50.0)));
    let above: Vec<u64> = above.collect();
    // It is drawn, or it is told that its rate was another.
    let drawn = tools.iter().any(|of| of.label.contains("half of its round trip"));
    assert_ne!(
        drawn,
        notes.contains("sockperf (half of its round trip) sent"),
        "{tools:?} {notes}"
    );
    assert!(notes.contains("sockperf has no warm-up to ask for: it ran for 5 s"), "{notes}");
    for claim in ["spread of the reference", "blocking sockets", "by stamps of a card"] {
        let row = of.rows.iter().find(|row| row.what.contains(claim)).unwrap();
        let verdicts = ["holds", "does not hold here", "cannot be told here"];
        assert!(verdicts.iter().any(|verdict| row.why.starts_with(verdict)), "{row:?}");
        assert!(row.paper.is_some(), "{row:?}");
    }
    let card = of.rows.iter().find(|row| row.what.contains("stamps of a card")).unwrap();
    assert!(card.here.is_none() && card.why.starts_with("cannot be told here"), "{card:?}");
    (above.iter().sum(), above.len() as u64)
}

fn figure_3(of: &Scenario) {
    let names: Vec<&str> =
        of.distributions[0].curves.iter().map(|curve| curve.label.as_str()).collect();
    assert!(names.contains(&"local"), "{names:?}");
    // Two tools, and the box's own log.
    assert_eq!(of.distributions.len(), 3);
    for panel in &of.distributions[1..] {
        assert!(panel.curves.last().unwrap().label.starts_with("reference"), "{panel:?}");
    }
    let paper = ["local", "remote", "local+isolset", "local+isolset+power"];
    for name in paper {
        let refused =
            of.notes.iter().any(|note| note.starts_with(&format!("{name}: not measured")));
        assert_ne!(names.contains(&name), refused, "{name}: {:#?}", of.notes);
    }
    let pairs = names.len() * (names.len() - 1) / 2;
    assert_eq!(of.effects.len(), pairs * 4 * 2, "each pair at four percentiles by two tools");
    for effect in of.effects.iter().filter(|of| of.verdict != EffectVerdict::NotTold) {
        assert!(effect.reported.is_some() && effect.truth.is_some(), "{effect:?}");
    }
}
