//! What holds of every run, whatever was measured: what contradicts it was damaged, or made up.
//!
//! Bounds are wide: no run that was recorded is refused, and no number that cannot be goes on.

use std::collections::BTreeMap;

use crate::cause::{CauseTotal, Coverage};
use crate::flow::Departures;
use crate::run::{GapSummary, Run, RunState, SelfTestKind};
use crate::series::{Quantile, Series};
use crate::threads::Deadlines;
use crate::units::{CpuId, Nanos};
use crate::wake::WakeSummary;

/// Most series, and most measuring threads: eight of each on the largest machines that there are.
const MOST_ROWS: usize = 65_536;
/// Most of anything that is counted: a thousand CPUs count a reading of 1 ns each for ten days.
const MOST: u64 = 1_000_000_000_000_000_000;
/// Largest share. One is the whole; what readings of two clocks leave of a difference adds less than this.
const MOST_SHARE: f64 = 1.001;

/// What is wrong with a field, which it names.
type Checked = Result<(), String>;

/// Can a recording have come to this?
pub(super) fn check(run: &Run) -> Checked {
    let hz = run.clock.hz.0;
    if !(hz.is_finite() && hz > 0.0) {
        return Err(format!("a clock of {hz} Hz is none"));
    }
    for (what, rows) in [("series", run.series.len()), ("measuring threads", run.gaps.len())] {
        if rows > MOST_ROWS {
            return Err(format!("{rows} {what}, and the most is {MOST_ROWS}"));
        }
    }
    for of in &run.series {
        series(of).map_err(|what| format!("series {}: {what}", of.name))?;
    }
    for of in &run.gaps {
        gaps(of).map_err(|what| format!("gaps of CPU {}: {what}", of.cpu))?;
    }
    for of in &run.threads {
        let deadlines = of.deadlines.as_ref().map_or(Ok(()), deadlines);
        deadlines.map_err(|what| format!("thread {}: {what}", of.name))?;
    }
    for of in &run.wakes {
        wakes(of).map_err(|what| format!("wake-ups of {}: {what}", of.thread))?;
    }
    for of in &run.causes {
        cause(of).map_err(|what| format!("cause {}: {what}", of.cause))?;
    }
    parts_of_the_lost(&run.causes)?;
    run.coverage.as_ref().map_or(Ok(()), coverage)?;
    for of in run.selftest.iter().flat_map(|test| &test.kinds) {
        selftest(of).map_err(|what| format!("self-test, {}: {what}", of.kind))?;
    }
    for of in &run.segments {
        at_most(("from", of.from.0), ("to", of.to.0))
            .map_err(|what| format!("{}: {what}", of.file))?;
    }
    if let Some(trace) = &run.evidence.trace {
        let (inside, all) = (trace.events_in_gaps, trace.events_measured);
        at_most(("events_in_gaps", inside), ("events_measured", all))
            .map_err(|what| format!("trace: {what}"))?;
    }
    for flow in &run.flows {
        departures(&flow.departures).map_err(|what| format!("flow {}: {what}", flow.name))?;
    }
    // While a run goes on, requests are under way.
    let flows = run.flows.iter().filter(|_| run.state != RunState::Running);
    match flows.into_iter().find(|flow| !flow.packets.add_up()) {
        Some(flow) => Err(format!("flow {}: its counts of packets do not add up", flow.name)),
        None => Ok(()),
    }
}

fn series(of: &Series) -> Checked {
    count("n", of.n)?;
    count("lost", of.lost)?;
    at_most(("censored", of.censored.map_or(0, |censored| censored.count)), ("n", of.n))?;
    not_negative("resolution_ns", of.resolution_ns)?;
    not_negative("mean_ns", of.mean_ns.unwrap_or(0.0))?;
    if let Some(tail) = of.tail {
        at_most(("the count of its tail", tail.count), ("n", of.n))?;
        share("the share of its tail", tail.share)?;
    }
    of.quantiles.iter().try_for_each(quantile)?;
    in_order(of)
}

/// From the smallest value over the percentiles to the largest none comes before a smaller one.
fn in_order(of: &Series) -> Checked {
    let named = |name: &str, value: Option<Nanos>| Some((name.to_owned(), value?));
    let middle = of.quantiles.iter().filter_map(|of| named(&format!("p{}", of.percent), of.value));
    let values = named("min", of.min).into_iter().chain(middle).chain(named("max", of.max));
    let mut before: Option<(String, Nanos)> = None;
    for (name, value) in values {
        if let Some((smaller, least)) = before.filter(|(_, least)| *least > value) {
            return Err(format!("{smaller} {least} is above {name} {value}"));
        }
        before = Some((name, value));
    }
    let percents = of.quantiles.windows(2).find(|pair| pair[0].percent >= pair[1].percent);
    percents.map_or(Ok(()), |pair| {
        Err(format!("p{} stands before p{}", pair[0].percent, pair[1].percent))
    })
}

fn quantile(of: &Quantile) -> Checked {
    let Quantile { percent, value, low, high, n_eff } = of;
    if !(0.0..=100.0).contains(percent) {
        return Err(format!("a percentile of {percent:e}, and they are from 0 to 100"));
    }
    let name = format!("p{percent}");
    not_negative(&format!("n_eff of {name}"), *n_eff)?;
    for (what, a, b) in [("low", low, value), ("value", value, high), ("low", low, high)] {
        if let (Some(a), Some(b)) = (a, b)
            && a > b
        {
            return Err(format!("{what} of {name} is {a}, above {b}"));
        }
    }
    Ok(())
}

fn gaps(of: &GapSummary) -> Checked {
    if of.end < of.start {
        return Err("the measurement ends before it starts".to_owned());
    }
    for (name, number) in [("gaps", of.gaps), ("dropped", of.dropped), ("blocks", of.blocks)] {
        count(name, number)?;
    }
    not_negative("period_ticks", of.period_ticks)?;
    share("lost_share", of.lost_share)?;
    if let Some((low, high)) = of.lost_share_interval {
        share("the lower end of lost_share", low)?;
        share("the upper end of lost_share", high)?;
    }
    for part in &of.time_shares {
        share(&format!("the share of time in gaps of {} or more", part.at_least), part.of_elapsed)?;
        share(&format!("the share inside in gaps of {} or more", part.at_least), part.of_inside)?;
    }
    for rate in &of.rates {
        let name = format!("the count of gaps of {} or more", rate.at_least);
        at_most((&name, rate.count), ("gaps", of.gaps))?;
        not_negative(&format!("the rate of gaps of {} or more", rate.at_least), rate.per_second)?;
    }
    Ok(())
}

fn deadlines(of: &Deadlines) -> Checked {
    let Deadlines { hits, misses, skipped, unfinished, unrecorded, .. } = *of;
    for (name, number) in [
        ("hits", hits),
        ("misses", misses),
        ("skipped", skipped),
        ("unfinished", unfinished),
        ("unrecorded", unrecorded),
    ] {
        count(name, number)?;
    }
    if let Some((low, high)) = of.miss_share_interval {
        share("the lower end of miss_share_interval", low)?;
        share("the upper end of miss_share_interval", high)?;
    }
    at_most(("unexplained", of.unexplained.unwrap_or(0)), ("misses", misses))?;
    for cause in &of.causes {
        let name = format!("those because of {}", cause.cause);
        at_most((&name, cause.misses), ("misses", misses))?;
    }
    Ok(())
}

fn wakes(of: &WakeSummary) -> Checked {
    count("woken", of.woken)?;
    count("skipped", of.skipped.unwrap_or(0))?;
    let due = of.woken + of.skipped.unwrap_or(0);
    for later in &of.later {
        let name = format!("later than {}", later.than);
        at_most((&name, later.raw), ("woken", of.woken))?;
        let others = [later.corrected, later.without_host].into_iter().flatten();
        others.into_iter().try_for_each(|few| at_most((&name, few), ("woken and skipped", due)))?;
    }
    Ok(())
}

fn departures(of: &Departures) -> Checked {
    count("intended", of.intended)?;
    count("sent", of.sent)?;
    at_most(("in_time", of.in_time), ("intended and sent", of.intended.max(of.sent)))?;
    if let Some(late) = of.process.beyond_tolerance {
        at_most(("the count of beyond_tolerance", late.count), ("all of it", late.of))?;
    }
    Ok(())
}

fn cause(of: &CauseTotal) -> Checked {
    count("gaps", of.gaps)?;
    not_negative("lost_ns", of.lost_ns)?;
    share("share_of_lost", of.share_of_lost)?;
    share("share_of_elapsed", of.share_of_elapsed)
}

/// Of each CPU, and of all together, the parts are no more than the whole.
fn parts_of_the_lost(causes: &[CauseTotal]) -> Checked {
    let mut by_cpu: BTreeMap<Option<CpuId>, f64> = BTreeMap::new();
    for of in causes {
        *by_cpu.entry(of.cpu).or_default() += of.share_of_lost;
    }
    by_cpu.into_iter().try_for_each(|(cpu, sum)| {
        let whose = cpu.map_or_else(|| "all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
        share(&format!("causes of {whose}: the sum of share_of_lost"), sum)
    })
}

fn coverage(of: &Coverage) -> Checked {
    share("coverage: by_events", of.by_events)?;
    share("coverage: by_residuals", of.by_residuals)?;
    share("coverage: by_nothing", of.by_nothing)?;
    share("coverage: its sum", of.by_events + of.by_residuals + of.by_nothing)
}

fn selftest(of: &SelfTestKind) -> Checked {
    at_most(("found", of.found), ("injected", of.injected))?;
    at_most(("named_right", of.named_right), ("found", of.found))?;
    at_most(("ascribed_rightly", of.ascribed_rightly), ("ascribed", of.ascribed))
}

fn count(name: &str, number: u64) -> Checked {
    if number <= MOST { Ok(()) } else { Err(format!("{name} is {number}, and the most is {MOST}")) }
}

fn at_most((part, few): (&str, u64), (whole, many): (&str, u64)) -> Checked {
    if few <= many {
        Ok(())
    } else {
        Err(format!("{part} is {few}, above {whole}, which is {many}"))
    }
}

fn share(name: &str, value: f64) -> Checked {
    // What rounding leaves of a difference of equals may lie below nothing.
    if (-1e-6..=MOST_SHARE).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} is {value:e}, and a share is from 0 to 1"))
    }
}

fn not_negative(name: &str, value: f64) -> Checked {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(format!("{name} is {value:e}, and it is never negative"))
    }
}
