//! A server that sleeps, or is busy, before it answers: where its delay is found again, and as how much.

use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::breakdown::Part;

use crate::looked::{Looked, found, growth, look, median};
use crate::needed;
use crate::plant::{self, late_server::LateServer};

/// What it takes before each answer.
const WAIT: Duration = Duration::from_millis(3);
/// What is planted is found again within these shares of it, and of it elsewhere less than this.
pub(super) const SIZED: Bound = Bound::Within(0.75, 1.4);
pub(super) const ELSEWHERE: Bound = Bound::AtMost(0.25);
/// The part grew by what the server itself says that it had requests for longer.
const AS_SAID: Bound = Bound::Within(0.9, 1.1);
/// Who tells of requests here.
pub(super) const LOOKING: &str = "--breakdown=stamps,trace --wait block";

const fn share(claim: &'static str, bound: Bound) -> Row {
    Row { claim, unit: "share", bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "planted_server_delay",
    method: "parts of requests to a server that takes 3 ms before it answers, less those to one that does \
             not",
    rows: &[
        share("asleep: found at the server, of what was planted", SIZED),
        share("asleep: found in another part", ELSEWHERE),
        share("asleep: found, of what the server says", AS_SAID),
        share("busy: found at the server, of what was planted", SIZED),
        share("busy: found in another part", ELSEWHERE),
        share("busy: found, of what the server says", AS_SAID),
    ],
    rounds: 7,
    seconds: 8.0,
    most_taken: Some(0.025),
    needs: || needed::traced(&["python3"]),
    round,
};

fn crosses(part: Part) -> bool {
    part.from.leg != part.to.leg
}

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let seat = plant::seat();
    let ask = |how: &str, wait: Duration| {
        let mut server = LateServer::start(how, wait, seat.other);
        let looked = look(&format!(
            "{} {LOOKING} --cpus {} --rate 100pps --duration 600ms --warmup 100ms",
            server.at, seat.client
        ));
        let had = median(server.had(looked.journeys.len()));
        (looked, had)
    };
    let (prompt, had) = ask("answer", Duration::ZERO);
    let mut readings = Vec::new();
    for how in ["sleep", "spin"] {
        let (late, had_late) = ask(how, WAIT);
        readings.extend(judged(&prompt, late, had_late - had));
    }
    Ok(readings)
}

fn judged(prompt: &Looked, late: Looked, said: f64) -> [Reading; 3] {
    let grown = growth(&[[prompt.clone(), late]]);
    let found = found(&grown, WAIT.as_nanos() as f64, crosses);
    let at_the_server: f64 =
        grown.iter().filter(|(part, _)| crosses(*part)).map(|(_, ns)| ns).sum();
    [found.planted, found.elsewhere, at_the_server / said].map(Reading::Value)
}
