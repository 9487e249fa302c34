//! Stamps and tracepoints of the same points and parts, beside each other.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::breakdown::{Breakdown, Differences, Point, Source, Station};
use whylate_model::run::Run;

use super::fewest;
use crate::needs;
use crate::program::recorded;
use crate::requests::flow;
use crate::segments::of_several_segments_by_both;

const fn row(claim: &'static str, unit: &'static str, bound: Bound) -> Row {
    Row { claim, unit, bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "agreement_of_sources",
    method: "requests of which stamps and tracepoints tell the same point, at the places where the kernel \
             makes both; of several points the one that has fewest",
    rows: &[
        row("stand at their places: queue, driver, arrival", "share", Bound::AtLeast(0.99)),
        row("told by both, of 800 requests", "share", Bound::AtLeast(0.5)),
        row("some part is told by both for as many", "rounds", Bound::Always),
        row("no two sources contradict each other", "rounds", Bound::Always),
        row("of several segments: told by both", "share", Bound::AtLeast(0.9)),
        row("of several segments: stand at their places", "share", Bound::AtLeast(0.9)),
    ],
    rounds: 3,
    seconds: 3.0,
    most_taken: Some(0.05),
    needs: || {
        needs::can_be_root()?;
        needs::can_trace()?;
        needs::can_run("ip")
    },
    round,
};

/// Requests of a run.
const REQUESTS: u64 = 800;

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let whole =
        recorded("rtt --rate 1kpps --duration 800ms --warmup 200ms --wait block --breakdown");
    let of = breakdown(&whole.run);
    let stations = [Station::Queued, Station::Driver, Station::Arrived];
    let points = stations.map(|station| by_both(of, Point::there(station)));
    let parts: Vec<&Differences> =
        of.part_agreements.iter().map(|of| &of.told).filter(|told| is_of_both(told)).collect();
    let pieces = of_several_segments_by_both().ok_or("there is no bed")?;
    let cut = breakdown(&pieces.run);
    let cut_points = [Station::Queued, Station::Driver].map(|station| {
        let told = by_both(cut, Point::there(station));
        assert_eq!([told.used, told.beside], [Source::Trace, Source::Software]);
        told
    });
    let all = of.agreements.iter().map(|of| &of.told);
    let all = all.chain(of.part_agreements.iter().map(|of| &of.told));
    let contradict = all.filter(|told| told.is_contradiction()).count();
    Ok(vec![
        fewest(points.map(|told| (told.in_order, told.requests))),
        fewest(points.map(|told| (told.requests, REQUESTS))),
        Reading::held(parts.iter().any(|told| told.requests >= REQUESTS / 2)),
        Reading::held(contradict == 0),
        fewest(cut_points.map(|told| (told.requests, cut.requests))),
        fewest(cut_points.map(|told| (told.in_order, told.requests))),
    ])
}

fn breakdown(run: &Run) -> &Breakdown {
    flow(run).breakdown.as_deref().expect("requests were taken apart")
}

fn is_of_both(told: &Differences) -> bool {
    [told.used, told.beside].iter().all(|of| matches!(of, Source::Software | Source::Trace))
}

fn by_both(of: &Breakdown, point: Point) -> &Differences {
    let found = of.agreements.iter().find(|of| of.point == point && is_of_both(&of.told));
    &found.unwrap_or_else(|| panic!("{point} by both: {:#?}", of.agreements)).told
}
