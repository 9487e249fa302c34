//! 6a: a request by UDP from a program on one host to a program on the other, and back. Row 6a of Table 1
//! and, of the same requests looked at on their way, Figure 4.

use whylate_model::flow::{Flow, ProcessVerdict};
use whylate_model::paper::{Here, Row, Scenario, Unit};
use whylate_model::run::Run;
use whylate_model::series::Series;

use super::host::ONE_AT_A_TIME;
use super::parts::{self, Stretch};
use super::site::Site;
use super::table_1::{ROW_6A, quantile, rows};
use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::rows::{Filled, row};

/// Each part; the paper's is a million packets.
const TIMES: Times = Times { usual: 30, quick: 2 };
/// The next request leaves when the reply has come, as in the paper; both ends sleep for messages.
const CLOSED: &str = "--arrivals closed --wait block";
/// The same where both ends look for messages and never sleep.
const SPINNING: &str = "--arrivals closed --wait spin";
/// Requests that leave when they are due, whatever came of those before.
const OPEN: &str = "--arrivals poisson --rate 5kpps --wait block";
/// The paper's round trip has two of its hosts in it: twice 4.5 us are its 9 us.
const HOSTS: f64 = 2.0;
/// Nobody looks while the figures are taken.
const UNSEEN: &str = "--no-trace";
/// What looks where parts are asked for.
pub(super) const LOOKING: &str = "--breakdown=stamps,trace,told";

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let site = Site::set_up(bench, scenario)?;
    scenario.notes.push(
        "the paper does not say how its ends wait, and considers the best of configurations: here both \
         sleep in the kernel for messages, and in a part of its own both spin"
            .to_owned(),
    );
    let words = |bench: &Bench<'_>, pattern: &str| site.words(bench, pattern, TIMES);
    let closed = words(bench, &format!("{CLOSED} {UNSEEN}"));
    let (_, closed) = bench.tool("6a", &closed, scenario)?;
    let service = service(&closed).ok_or(PaperError::Nothing("the closed loop"))?;
    scenario.rows.extend(rows("closed loop", service, &ROW_6A));
    let spinning = words(bench, &format!("{SPINNING} {UNSEEN}"));
    let (_, spinning) = bench.tool("6a-spin", &spinning, scenario)?;
    scenario.rows.extend(beside(&spinning, "closed loop, both ends spin", service));
    let open = words(bench, &format!("{OPEN} {UNSEEN}"));
    let (_, open) = bench.tool("6a-open", &open, scenario)?;
    scenario.rows.extend(open_loop(&open));
    let unseen = words(bench, &format!("{ONE_AT_A_TIME} {UNSEEN}"));
    let (_, unseen) = bench.tool("6a-paced", &unseen, scenario)?;
    let looked_at = words(bench, &format!("{ONE_AT_A_TIME} {LOOKING}"));
    let (_, looked_at) = bench.tool("6a-parts", &looked_at, scenario)?;
    taken_apart(&looked_at, &unseen, scenario);
    Ok(())
}

fn flow(run: &Run) -> Option<&Flow> {
    run.flows.first()
}

fn named<'a>(run: &'a Run, name: Option<&String>) -> Option<&'a Series> {
    run.series.iter().find(|series| Some(&series.name) == name)
}

fn service(run: &Run) -> Option<&Series> {
    named(run, flow(run)?.service.as_ref())
}

/// Median and p99.9 of another way, beside those of the closed loop.
fn beside(run: &Run, what: &str, closed: &Series) -> Vec<Row> {
    let Some(series) = service(run) else { return Vec::new() };
    let one = |(name, percent): (&str, f64)| {
        let here = quantile(series, percent);
        let why = match (&here, quantile(closed, percent)) {
            (Some(here), Some(closed)) => format!(
                "{} times that of the closed loop whose ends sleep",
                crate::spelled::in_unit(here.value / closed.value.max(1.0), Unit::Ratio)
            ),
            _ => "too few requests for it".to_owned(),
        };
        row(format!("{name}, {what}"), why).here(here)
    };
    [("median", 50.0), ("p99.9", 99.9)].map(one).into()
}

/// Response times of the open loop; they begin when a request was due.
fn open_loop(run: &Run) -> Vec<Row> {
    let Some(flow) = flow(run) else { return Vec::new() };
    let Some(response) = named(run, flow.response.as_ref()) else { return Vec::new() };
    let held = match flow.departures.process.verdict {
        ProcessVerdict::Saturated => "; the rate could not be held: saturated",
        ProcessVerdict::Disturbed => "; requests left later than the tolerance",
        ProcessVerdict::TooFew => "; too few left to tell whether the rate was held",
        ProcessVerdict::Held | ProcessVerdict::ClosedLoop => "",
    };
    let why = format!(
        "from when a request was due, with others in flight; a closed loop waits where it is late, and \
         hides that{held}"
    );
    let one = |(name, percent): (&str, f64)| {
        let here = quantile(response, percent);
        let few = if here.is_none() { "too few requests for it; " } else { "" };
        row(format!("{name}, open loop (response)"), format!("{few}{why}")).here(here)
    };
    [("median", 50.0), ("p99.9", 99.9)].map(one).into()
}

/// What the parts say, what they leave over, and what it costs to look.
fn taken_apart(run: &Run, unseen: &Run, scenario: &mut Scenario) {
    let breakdown = flow(run).and_then(|flow| flow.breakdown.as_deref());
    let Some(breakdown) = breakdown.filter(|of| of.requests > 0) else {
        scenario.notes.push("no request was taken apart: there are no parts".to_owned());
        return;
    };
    let whole = breakdown.whole;
    let round_trip =
        Stretch { from: whole.from, to: whole.to, name: "the round trip", kernel: None };
    scenario.rows.extend(parts::rows(breakdown, &round_trip));
    scenario.bars.extend(parts::bars(breakdown, &round_trip, HOSTS));
    scenario.rows.push(closure(&breakdown.all));
    scenario.rows.extend(looking(service(run), service(unseen)));
    scenario.notes.push(FIGURE_4.to_owned());
    scenario.notes.push(
        "what is taken apart are requests of which one is in flight at a time, 4000 a second: what looks at \
         each could not follow a closed loop"
            .to_owned(),
    );
}

/// What the paper's text has of its Figure 4.
pub(super) const FIGURE_4: &str = "the shares of the paper's Figure 4 are drawn, not written: what \
     is set beside the kernel's share follows from medians of two rows of its Table 1, where this machine's \
     are means of parts of the same requests; its section 3 says that no single component contributes \
     overwhelmingly";

/// The parts' sum against the whole.
fn closure(all: &whylate_model::breakdown::Composition) -> Row {
    let total = all.total_mean_ns;
    let here = (total > 0.0).then(|| Here {
        value: (total - all.residual_ns) / total,
        unit: Unit::Share,
        interval: None,
        n: Some(all.requests),
    });
    let unit = |ns: f64| crate::spelled::in_unit(ns, Unit::Nanoseconds);
    let why = format!(
        "of a mean of {} {} are in no part, and {} in parts between points that are no neighbours",
        unit(total),
        unit(all.residual_ns),
        unit(all.not_told_apart_ns)
    );
    row("Figure 4: all parts together, of the round trip", why).here(here)
}

/// The median with stamps and tracepoints over that without.
fn looking(seen: Option<&Series>, unseen: Option<&Series>) -> Option<Row> {
    let (seen, unseen) = (quantile(seen?, 50.0)?, quantile(unseen?, 50.0)?);
    let (with, without) = (seen.interval, unseen.interval);
    let here = Here {
        value: seen.value / unseen.value.max(1.0),
        unit: Unit::Ratio,
        interval: with
            .zip(without)
            .map(|((low, high), (least, most))| (low / most.max(1.0), high / least.max(1.0))),
        n: None,
    };
    let why = "two recordings, one after the other: what looking at parts costs, and how the machine was \
               meanwhile; whylate rtt --breakdown-cost takes turns";
    Some(row("the median of what is taken apart, over that of the same unseen", why).here(here))
}

#[cfg(test)]
mod tests {
    use super::super::parts::tests::round_trip;
    use super::super::table_1::tests::planted;
    use super::*;

    fn steady(ns: u64) -> Series {
        planted((0..10_000).map(|at| ns + at % 100))
    }

    #[test]
    fn what_looking_costs_is_a_ratio_with_an_interval_that_holds_both() {
        let row = looking(Some(&steady(30_000)), Some(&steady(20_000))).unwrap();
        let here = row.here.unwrap();
        let (low, high) = here.interval.unwrap();
        assert!(low <= here.value && here.value <= high && (here.value - 1.5).abs() < 0.01);
        assert!(looking(None, Some(&steady(20_000))).is_none());
    }

    #[test]
    fn the_parts_close_against_the_whole_and_what_they_leave_is_told() {
        let mut all = round_trip().all;
        let whole = closure(&all);
        assert!((whole.here.unwrap().value - 1.0).abs() < 1e-9);
        all.residual_ns = 2_000.0;
        let row = closure(&all);
        assert!((row.here.as_ref().unwrap().value - 0.9).abs() < 1e-9, "{row:?}");
        assert!(row.why.contains("of a mean of 20.0us 2.00us are in no part"), "{row:?}");
    }
}
