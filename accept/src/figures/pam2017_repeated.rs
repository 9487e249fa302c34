//! Row 4 of "Where Has My Time Gone?", repeated: the time in a host is a part of the round trip.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::paper::{Here, Paper};

use crate::hourglass2002;
use crate::needed;
use crate::program::{self, said, whylate};

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "rounds", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "pam2017_repeated",
    method: "experiment 4 of the paper, shortened: time in the server's host, and round trips of the same kind of \
             requests",
    rows: &[
        row("least time in the host no more than the least round trip"),
        row("median time in the host no more than the median round trip"),
    ],
    rounds: 1,
    seconds: 7.0,
    most_taken: None,
    needs: || needed::traced(&["ip"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("paper");
    let words = "paper pam2017 --quick --only 4 --seed 5 -o";
    let output = whylate(words.split(' ')).arg(&directory).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let paper = Paper::read(&directory).unwrap().unwrap();
    let host = |what| -> &Here {
        hourglass2002::here(&paper.scenarios[0], &[what, "in the server's host"])
    };
    let whole = program::read(&directory.join("4"));
    let service = whole.flows[0].service.as_ref().unwrap();
    let service = whole.series.iter().find(|of| of.name == *service).unwrap();
    let least = service.min.unwrap().0 as f64;
    let median = service.quantiles.iter().find(|of| (of.percent - 50.0).abs() < 1e-9).unwrap();
    let median = median.value.unwrap().0 as f64;
    Ok(vec![
        Reading::held(host("minimum").value <= least),
        Reading::held(host("median").value <= median),
    ])
}
