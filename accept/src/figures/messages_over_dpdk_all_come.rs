//! Messages over devices of DPDK: of 500 a second each comes once and in order, to a reflector and through a
//! forwarder.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::over_dpdk::{self, bed, cpus};
use crate::tool::Measured;
use crate::ways::{asked_by_af_packet, asked_by_memif, through};

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "messages_over_dpdk_all_come",
    method: "150 messages each, 500 a second",
    rows: &[
        row("received of those sent, to a reflector over shared memory"),
        row("received of those sent, over af_packet to an ordinary socket"),
        row("received of those sent, through a forwarder of one thread"),
        row("received of those sent, through a forwarder of two threads"),
        row("received of those sent, through a delay line"),
    ],
    rounds: 1,
    seconds: 9.0,
    most_taken: None,
    needs: over_dpdk::program,
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let cpus = cpus();
    let (_, by_memif) = asked_by_memif(cpus);
    let (_, by_af_packet) = asked_by_af_packet(&bed()?, cpus);
    let ready = "forwarding between";
    let (_, by_one) = through("one", ("forward", "--cpus "), ready, cpus);
    let words = format!("--cpus {},", cpus.1);
    let (_, by_two) = through("two", ("forward", &words), ready, cpus);
    let line = ("delay", "--no-netem --delay 100us,0s --cpu ");
    let (_, delayed) = through("line", line, "delaying between", cpus);
    Ok([by_memif, by_af_packet, by_one, by_two, delayed].iter().map(came).collect())
}

fn came(measured: &Measured) -> Reading {
    let packets = measured.flow().packets;
    Reading::Share { hits: packets.received - packets.reordered, of: packets.sent }
}
