//! Stamps of a card that QEMU emulates, by the kernel's own driver: how many come.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::run::Run;

use crate::machine::{self, breakdown, counted, probed, wire};
use crate::needs;

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "runs", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "card_in_a_guest",
    method: "a guest with an emulated igb card takes requests over UDP and TCP apart, one run of each",
    rows: &[
        row("runs whose probe is given nine of ten stamps of what is sent"),
        row("runs with nine of ten stamps of the driver"),
        row("runs with nine of ten stamps of the card"),
        row("runs of whose stamps of the card one of ten at most is contradicted"),
    ],
    rounds: 1,
    seconds: 22.0,
    most_taken: None,
    needs: || {
        machine::is_there()?;
        machine::PROGRAMS.iter().try_for_each(|name| needs::can_run(name))
    },
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let runs = machine::runs().ok_or("the guest did not end")?;
    let of = |is: fn(&Run) -> bool| {
        let hits = runs.iter().filter(|run| is(run)).count() as u64;
        Reading::Share { hits, of: runs.len() as u64 }
    };
    Ok(vec![
        of(|run| {
            let sent = probed(breakdown(run), "tx hardware");
            sent.delivered * 10 >= sent.sent * 9
        }),
        of(|run| most_came(run, "tx software")),
        of(|run| most_came(run, "tx hardware")),
        of(|run| {
            let facts = wire(breakdown(run));
            facts.contradicted * 10 <= facts.came
        }),
    ])
}

/// All but those that were lost on their way through an emulated interrupt.
fn most_came(run: &Run, stamp: &str) -> bool {
    let stamps = counted(breakdown(run), stamp);
    stamps.came * 10 >= stamps.asked * 9
}
