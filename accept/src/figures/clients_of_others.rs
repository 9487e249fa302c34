//! Clients of others through a delay line: whether their numbers follow what was added, or half of it, and
//! ours beside them.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::calibration::{CalibratedBackend, ForeignTool};

use crate::needed;
use crate::program::{record_words, said};

/// Of sockperf's percentiles.
const SOCKPERF: &str = r"percentile (?P<percent>[0-9.]+) += +(?P<value>[0-9.]+)";
/// Of qperf's mean, in the unit that it chooses by the value.
const QPERF: &str = r"latency += +(?P<value>[0-9.]+) (?P<unit>[a-z]+)";
/// Of ping's mean.
const PING: &str = r"= [0-9.]+/(?P<value>[0-9.]+)/";

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "clients_of_others",
    method: "sockperf, qperf and ping through a line at three delays, and ours beside each",
    rows: &[
        row("sockperf is told to halve, and prints less than the truth"),
        row("sockperf is 0.35 to 0.65 of ours at the longest delay"),
        row("qperf's udp_lat rises by 0.4 to 0.6 of the truth, and is told to halve"),
        row("qperf's udp_lat is 0.35 to 0.65 of ours at the longest delay"),
        row("qperf's tcp_lat rises by 0.4 to 0.6 of the truth, and is told to halve"),
        row("qperf's tcp_lat is 0.35 to 0.65 of ours at the longest delay"),
        row("qperf's numbers are read in the unit that it chose"),
        row("ping rises by 0.9 to 1.1 of the truth, and is not told to halve"),
        row("ping is 0.8 to 1.2 of ours at the longest delay"),
        row("ours rises by 0.8 to 1.2 of the truth beside each, and is not told to halve"),
    ],
    rounds: 1,
    seconds: 70.0,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip", "sockperf", "qperf", "ping"]),
    round,
};

/// A tool, and ours beside it.
struct Both([CalibratedBackend; 2]);

impl Both {
    fn tool(&self) -> &ForeignTool {
        tool(&self.0[0])
    }

    fn slope(&self) -> f64 {
        slope(&self.0[0])
    }

    fn halves(&self) -> bool {
        let halves = self.tool().halves();
        let notes = &self.0[0].notes;
        let told = notes.iter().any(|note| note.contains("it halves"));
        assert_eq!(told, halves, "{notes:?}");
        let beside = notes.iter().find(|note| note.starts_with("beside it"));
        let beside = beside.unwrap_or_else(|| panic!("nothing is said of ours: {notes:?}"));
        assert_eq!(beside.contains("the halving"), halves, "{notes:?}");
        halves
    }

    /// By how much of ours the tool's number is its own, at the longest delay: there what each path adds by
    /// itself is little beside it.
    fn share_of_ours(&self) -> f64 {
        let [theirs, ours] = &self.0;
        tool(theirs).readings[2].reported_ns / tool(ours).readings[2].reported_ns
    }

    /// Ours counts there and back: over several delays it follows the truth.
    fn ours_follows(&self) -> bool {
        let ours = &self.0[1];
        assert_eq!((ours.backend.as_str(), tool(ours).passes), ("whylate rtt, udp block", 2));
        !tool(ours).halves() && (0.8..1.2).contains(&slope(ours))
    }
}

fn tool(of: &CalibratedBackend) -> &ForeignTool {
    of.foreign.as_ref().expect("a client through a line")
}

/// How its number follows the truth.
fn slope(of: &CalibratedBackend) -> f64 {
    tool(of).slope.as_ref().expect("several delays").value
}

fn judged(words: &[&str]) -> Both {
    let recorded = record_words(&[&["calibrate", "--runs", "1"], words].concat(), &[0, 4]);
    let text = said(&recorded.output);
    let backends = &recorded.run.calibration.as_ref().expect("a calibration").backends;
    let [of, ours] = &backends[..] else { panic!("a tool and ours: {text}") };
    assert_eq!((tool(of).passes, tool(of).readings.len()), (2, 3), "{of:?}");
    Both([of.clone(), ours.clone()])
}

fn sockperf() -> Both {
    let client = "sockperf ping-pong -i {address} -p {port} -t 1";
    let server = "sockperf server -i {address} -p {port}";
    let words = ["--client", client, "--server", server, "--metric", SOCKPERF];
    let both = judged(&[&words[..], &["--delays", "50us,200us,500us"]].concat());
    let of = &both.0[0];
    assert!(of.errors_raw.len() > 3, "it prints several percentiles");
    assert_eq!(of.limit_raw.percent, None);
    both
}

fn qperf(test: &str) -> Both {
    let client = format!("qperf {{address}} --listen_port {{port}} -t 1 {test}");
    let server = "qperf --listen_port {port}";
    let words = ["--client", &client, "--server", server, "--metric", QPERF, "--statistic", "mean"];
    judged(&[&words[..], &["--delays", "100us,500us,4ms"]].concat())
}

fn ping() -> Both {
    let client = "ping -q -c 200 -i 0.002 {address}";
    let words = ["--client", client, "--metric", PING, "--unit", "ms", "--statistic", "mean"];
    judged(&[&words[..], &["--delays", "100us,1ms,3ms"]].concat())
}

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let [sockperf, udp, tcp, ping] = [sockperf(), qperf("udp_lat"), qperf("tcp_lat"), ping()];
    let less = sockperf.tool().readings.iter().all(|of| {
        // There and back, and what the line adds by itself.
        let truth = of.truth.0 as f64 / of.delay.0 as f64;
        (2.0..3.0).contains(&truth) && of.reported_ns < of.truth.0 as f64
    });
    let half_of_ours = |both: &Both| (0.35..0.65).contains(&both.share_of_ours());
    let rises_by_half = |both: &Both| (0.4..0.6).contains(&both.slope()) && both.halves();
    // Half of 200 us and more is printed in us, half of 8 ms and more in ms: both are what they say.
    let in_its_unit = |both: &Both| {
        both.tool().readings.iter().enumerate().all(|(at, of)| {
            let share = of.reported_ns / of.truth.0 as f64;
            share > 0.4 && (at < 2 || share < 0.65)
        })
    };
    let held = [
        less && sockperf.halves(),
        half_of_ours(&sockperf),
        rises_by_half(&udp),
        half_of_ours(&udp),
        rises_by_half(&tcp),
        half_of_ours(&tcp),
        in_its_unit(&udp) && in_its_unit(&tcp),
        (0.9..1.1).contains(&ping.slope()) && !ping.halves(),
        (0.8..1.2).contains(&ping.share_of_ours()),
        [&sockperf, &udp, &tcp, &ping].into_iter().all(Both::ours_follows),
    ];
    Ok(held.map(Reading::held).to_vec())
}
