//! The section of a box between two ports: latency, bounds of the time in it, how it forwards, who got
//! what of a port that several send to.

use minijinja::Value;
use serde::Serialize;
use whylate_model::device::{Device, DeviceAtSize};
use whylate_model::run::Run;

use super::measured::capped;
use super::template::raw;
use crate::device::{self, BOUGHT, BOUNDS, CARRIED, SHARES};
use crate::svg::{self, Figure, Table};

/// Figures of a section: a row of the tables has the others' numbers.
const MOST_FIGURES: usize = 8;
/// Rows of a table; what is more is counted in the last.
const MOST_ROWS: usize = 128;
/// Tables of ports that share one: 16 ports have 20, the last of which is of all of them.
const MOST_TABLES: usize = 24;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Boxed {
    title: String,
    told: Vec<String>,
    captured: Option<Table>,
    latencies: Table,
    bounds: Option<Table>,
    how: &'static str,
    checked: Vec<String>,
    figures: Vec<Drawn>,
    curve: String,
    beside: Vec<Beside>,
    forwarding: Option<Table>,
    reasons: Vec<String>,
    fan_in: Vec<Table>,
    shares: &'static str,
}

/// A table, and how to read it.
#[derive(Debug, Serialize)]
struct Beside {
    table: Table,
    how: &'static str,
}

#[derive(Debug, Serialize)]
struct Drawn {
    heading: String,
    svg: Value,
}

/// How the figures are to be read.
const CURVE: &str = "Right: the percentile, each nine of the tail as wide as the one before. Shaded: where the \
     time in the box lies, all percentiles together with 95% confidence; a bar alone bounds one side.";

/// The section; none for a run of something else.
pub(super) fn of(run: &Run) -> Option<Boxed> {
    let of = run.device.as_deref()?;
    let mut told = device::circumstances(of);
    told.extend(of.captures.as_ref().map(device::captures));
    told.extend(device::configured(of));
    told.truncate(MOST_ROWS);
    let beside = [(device::bought(of), BOUGHT), (device::carried(of), CARRIED)];
    Some(Boxed {
        title: device::title(of),
        told,
        captured: device::captured_ways(of).map(shortened),
        latencies: shortened(device::latencies(of)),
        bounds: device::bounds(of).map(shortened),
        how: BOUNDS,
        checked: device::checked(of).into_iter().take(MOST_ROWS).collect(),
        figures: drawn(of),
        curve: format!("{CURVE}{}", undrawn(of)),
        beside: beside
            .into_iter()
            .filter_map(|(table, how)| Some(Beside { table: shortened(table?), how }))
            .collect(),
        forwarding: device::forwarding(of).map(shortened),
        reasons: device::reasons(of).into_iter().take(MOST_ROWS).collect(),
        fan_in: device::fan_in(of).into_iter().take(MOST_TABLES).map(shortened).collect(),
        shares: SHARES,
    })
}

fn drawn(of: &Device) -> Vec<Drawn> {
    let bounded = of.sizes.iter().filter(|one| !one.bounds.is_empty());
    let one = |of: &DeviceAtSize| Drawn { heading: device::name(of), svg: raw(&figure(of).svg) };
    bounded.take(MOST_FIGURES).map(one).collect()
}

/// What the tables have and no figure.
fn undrawn(of: &Device) -> String {
    let bounded = of.sizes.iter().filter(|one| !one.bounds.is_empty()).count();
    match bounded.saturating_sub(MOST_FIGURES) {
        0 => String::new(),
        1 => " One more has its bounds in the table alone.".to_owned(),
        more => format!(" {more} more have their bounds in the table alone."),
    }
}

/// The bounds of a size in one direction over the percentile.
pub(super) fn figure(of: &DeviceAtSize) -> Figure {
    let band = device::band(of);
    let title = format!("Time in the box, {}", band.name);
    svg::bounds::figure(&band, &title, Table::default())
}

fn shortened(mut table: Table) -> Table {
    table.rows = capped(table.rows, MOST_ROWS);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::device;

    #[test]
    fn sizes_that_are_not_drawn_are_counted_and_all_ports_together_have_their_table() {
        let mut of = device();
        let bounded = of.sizes.iter().find(|one| !one.bounds.is_empty()).cloned().unwrap();
        of.sizes = vec![bounded.clone(); MOST_FIGURES];
        assert_eq!((drawn(&of).len(), undrawn(&of).as_str()), (MOST_FIGURES, ""));
        of.sizes.extend([bounded.clone(), bounded]);
        assert_eq!(drawn(&of).len(), MOST_FIGURES);
        assert_eq!(undrawn(&of), " 2 more have their bounds in the table alone.");
        // 6 pairs, a subset of each size from 3 to 15, and all 16.
        let one = of.fan_in[0].clone();
        of.fan_in = vec![one; 6 + 13 + 1];
        assert!(device::fan_in(&of).len() <= MOST_TABLES);
    }
}
