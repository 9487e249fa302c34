//! What configurations of the operating system were, and what each bought, in words and tables.

use whylate_model::device::{Bought, Device};

use super::way;
use crate::configuration;
use crate::doc::Table;
use crate::numbers::{Value, difference_with_ends};

/// How the table is to be read.
pub(super) const BOUGHT: &str = "Saved: a percentile under the first configuration less that under this one, \
     with its 95% interval; below zero it has become more. The configurations took turns in an order that the \
     seed drew. Neither: the interval holds zero.";

/// What each configuration buys against the first; none where there was one.
pub(super) fn bought(of: &Device) -> Option<Table> {
    let against = &of.bought.first()?.against;
    let head = ["", "of", "saved", "95% interval", "claim"];
    let row = |one: &Bought| {
        let claim = match one.saved_ns {
            None => "n too small",
            Some(_) if !one.is_shown() => "neither",
            Some(saved) if saved > 0.0 => "saves",
            Some(_) => "costs",
        };
        let [saved, low, high] =
            [one.saved_ns, one.low_ns, one.high_ns].map(|of| Value::from(of.map(Value::Time)));
        let [saved, ends] = difference_with_ends(saved, Some((low, high)));
        vec![
            format!("{} B {}", one.frame_bytes, way(Some(&one.configuration), one.direction)),
            format!("p{}", one.percent),
            saved,
            ends,
            claim.to_owned(),
        ]
    };
    Some(
        Table::new(format!("What a configuration buys against {against}"), &head)
            .words(&[4])
            .with(of.bought.iter().map(row)),
    )
}

/// What came of each configuration, a sentence each.
pub(super) fn configured(of: &Device) -> Vec<String> {
    of.configurations.iter().map(configuration::answer).collect()
}

#[cfg(test)]
mod tests {
    use whylate_model::flow::Direction;

    use super::*;
    use crate::device::tests::device;

    #[test]
    fn a_configuration_saves_costs_or_neither_by_its_interval() {
        let one = |saved_ns: Option<f64>, half: f64| Bought {
            configuration: "local+isolset".to_owned(),
            against: "local".to_owned(),
            direction: Direction::Back,
            frame_bytes: 64,
            percent: 99.9,
            saved_ns,
            low_ns: saved_ns.map(|ns| ns - half),
            high_ns: saved_ns.map(|ns| ns + half),
        };
        let mut of = device();
        assert!(bought(&of).is_none() && configured(&of).is_empty());
        of.bought = vec![
            one(Some(5_000.0), 1_000.0),
            one(Some(500.0), 1_000.0),
            one(Some(-5_000.0), 10.0),
            one(None, 0.0),
        ];
        let table = bought(&of).unwrap();
        assert_eq!(table.caption, "What a configuration buys against local");
        assert_eq!(
            table.rows[0],
            ["64 B inbound, local+isolset", "p99.9", "+5.0 µs", "+4.0 to +6.0 µs", "saves"]
        );
        let claims: Vec<String> = table.rows.iter().map(|row| row[4].to_string()).collect();
        assert_eq!(claims, ["saves", "neither", "costs", "n too small"]);
    }
}
