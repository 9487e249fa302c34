//! How much a box carries without loss, in words and a table.

use whylate_model::device::{Device, Throughput};

use crate::doc::Table;
use crate::numbers::{ABSENT, number, rate};

/// How the table is to be read.
pub(super) const CARRIED: &str = "Carried: the highest rate of a trial that lost no frame, or no more than was \
     tolerated, by halving between one that did and one that did not (RFC 2544, section 26.1). A box that \
     carries all that the client sends is as fast as that at least, and marked ≥.";

/// The highest rate without loss by configuration and size; none where it was not looked for.
pub(super) fn carried(of: &Device) -> Option<Table> {
    let head = ["", "carried", "L2 Mbit/s", "lost first at", "client alone", "trials"];
    let row = |one: &Throughput| {
        let at_least = if one.is_limited_by_the_client() { "≥" } else { "" };
        let shown = |pps: Option<f64>| pps.map_or(ABSENT.to_owned(), rate);
        let bits = one.l2_bits_per_second().map(|bits| number(bits / 1e6));
        let name = one.configuration.as_ref().map_or(String::new(), |name| format!(", {name}"));
        vec![
            format!("{} B{name}", one.frame_bytes),
            one.highest_pps.map_or(ABSENT.to_owned(), |pps| format!("{at_least}{}", rate(pps))),
            bits.unwrap_or_else(|| ABSENT.to_owned()),
            shown(one.lowest_lossy_pps),
            shown(one.client_pps),
            one.trials.len().to_string(),
        ]
    };
    Table::new("Throughput without loss", &head).with(of.throughput.iter().map(row)).filled()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::device;

    #[test]
    fn a_box_as_fast_as_the_client_is_that_fast_at_least() {
        let mut of = device();
        assert!(carried(&of).is_none());
        let found = Throughput {
            configuration: None,
            frame_bytes: 64,
            client_pps: Some(500_000.0),
            client_lost: 0,
            highest_pps: Some(400_000.0),
            lowest_lossy_pps: Some(410_000.0),
            tolerated: 0.0,
            trials: Vec::new(),
        };
        let fast = Throughput {
            highest_pps: Some(500_000.0),
            lowest_lossy_pps: None,
            configuration: Some("local".to_owned()),
            ..found.clone()
        };
        of.throughput = vec![found, fast];
        let rows = carried(&of).unwrap().rows;
        assert_eq!(rows[0], ["64 B", "400,000/s", "205", "410,000/s", "500,000/s", "0"]);
        assert_eq!(rows[1][..4], ["64 B, local", "≥500,000/s", "256", "–"]);
    }
}
