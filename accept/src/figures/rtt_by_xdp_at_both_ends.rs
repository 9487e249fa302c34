//! Round trips by AF_XDP at both ends of a virtual link beside those of spinning UDP, and these beside
//! themselves, all in one recording.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::backends::BackendRow;

use crate::needed;
use crate::plant;
use crate::program::recorded;

pub(crate) const FIGURE: Figure = Figure {
    name: "rtt_by_xdp_at_both_ends",
    method: "half a second of 5 000 requests a second each by udp, by udp again and by xdp, in an order that is drawn, through a bed",
    rows: &[Row {
        claim: "p50 by xdp over udp's, both spinning at both ends",
        unit: "ratio",
        bound: Bound::AtMost(0.5),
    }],
    rounds: 6,
    seconds: 3.0,
    most_taken: None,
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let bed = plant::bed("half")?;
    let words = format!(
        "rtt --bed {} --compare-backends udp:spin,xdp:spin --both-ends --rounds 2 --duration 300ms \
         --warmup 50ms --rate 5kpps --seed {}",
        bed.0, round.number
    );
    let run = recorded(&words).run;
    let of = run.backends.as_deref().expect("a comparison");
    let xdp = of.rows.iter().find(|row| row.backend == "xdp spin").expect("its row");
    assert_eq!((&xdp.reason, of.both_ends), (&None, true));
    // Two rounds are the fewest that a comparison takes, in an order of their own each.
    let p50 = |row: &BackendRow| {
        let rounds = row.measured.as_ref()?.rounds.iter();
        let all: Vec<f64> = rounds.map(|of| Some(of.p50?.0 as f64)).collect::<Option<_>>()?;
        Some(all.iter().sum::<f64>() / all.len() as f64)
    };
    let known = (|| Some([p50(of.first()?)?, p50(xdp)?, p50(of.control()?)?]))();
    Ok(vec![match known {
        Some([peer, ours, again]) => Reading::Beside { peer, ours, again },
        None => Reading::Absent("a request was lost, and so no median is known".to_owned()),
    }])
}
