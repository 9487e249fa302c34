//! A client that waits in each of the ways there are is answered.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needs;
use crate::program::{said, whylate};
use crate::requests::flow;

const WAITS: [&str; 6] = ["block", "poll", "epoll", "busy-poll", "spin", "io-uring"];
/// More than 250 of 300.
const MOST: Bound = Bound::AtLeast(250.0 / 300.0);

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: MOST }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "rtt_ways_to_wait",
    method: "300 requests, a thousand a second, over loopback, by a client that waits in each way",
    rows: &[
        row("answered of 300, waiting by block"),
        row("answered of 300, waiting by poll"),
        row("answered of 300, waiting by epoll"),
        row("answered of 300, waiting by busy-poll"),
        row("answered of 300, waiting by spin"),
        row("answered of 300, waiting by io-uring"),
    ],
    rounds: 2,
    seconds: 5.0,
    most_taken: None,
    needs: || needs::can_use(2),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let home = tempfile::tempdir().unwrap();
    let of = |wait: &str| {
        let directory = home.path().join(wait);
        let words =
            format!("rtt --wait {wait} --rate 1kpps --duration 300ms --warmup 50ms --no-trace");
        let mut command = whylate(words.split(' '));
        let output = command.arg("-o").arg(&directory).output().unwrap();
        match output.status.code() {
            Some(0 | 4) => {
                let packets = flow(&crate::program::read(&directory)).packets;
                assert!(packets.add_up(), "{wait}: {packets:?}");
                Reading::Share { hits: packets.received, of: 300 }
            }
            // A kernel without this way to wait.
            _ => Reading::Absent(said(&output).split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    };
    Ok(WAITS.map(of).to_vec())
}
