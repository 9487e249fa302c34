//! How long something stayed: the account of a service and the series of its recording say the same.

use super::Run;
use crate::reflect::{Residence, ResidencePercentile};
use crate::series::Series;

impl Run {
    /// Gives the account of a service the percentiles of its series, where there are some: an account that
    /// was written without them does not know how far neighbours depend on each other.
    pub fn settle_residences(&mut self) {
        let series = &self.series;
        let settle = |residence: &mut Option<Residence>, name: &str| {
            let series = series.iter().find(|of| of.name == name);
            if let (Some(residence), Some(series)) = (residence, series) {
                residence.percentiles = percentiles(series);
            }
        };
        if let Some(of) = &mut self.reflected {
            settle(&mut of.residence, "reflect-residence");
        }
        let directions = self.forward.iter_mut().flat_map(|of| &mut of.directions);
        for (number, direction) in directions.enumerate() {
            settle(&mut direction.residence, &format!("forward-residence-{number}"));
            settle(&mut direction.kernel_residence, &format!("forward-kernel-{number}"));
        }
        let directions = self.delay.iter_mut().flat_map(|of| &mut of.directions);
        for (number, direction) in directions.enumerate() {
            settle(&mut direction.residence, &format!("delay-residence-{number}"));
            settle(&mut direction.lateness, &format!("delay-lateness-{number}"));
        }
    }
}

fn percentiles(of: &Series) -> Vec<ResidencePercentile> {
    let percentile = |of: &crate::series::Quantile| ResidencePercentile {
        percent: of.percent,
        value: of.value,
        low: of.low,
    };
    of.quantiles.iter().map(percentile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    fn kept(json: &str) -> Run {
        serde_json::from_str(json).unwrap()
    }

    fn at(of: Option<&Residence>, percent: f64) -> (Option<u64>, Option<u64>) {
        let of =
            of.unwrap().percentiles.iter().find(|of| (of.percent - percent).abs() < 1e-9).unwrap();
        (of.value.map(|of| of.0), of.low.map(|of| of.0))
    }

    #[test]
    fn how_long_something_stayed_is_told_by_its_series_where_it_has_one() {
        let mut run = kept(include_str!("../../../../tests/runs/forward/run.json"));
        let directions = |run: &Run| run.forward.clone().unwrap().directions;
        // By itself the account takes neighbours as independent, and shows a p99 of 402 frames.
        assert_eq!(at(directions(&run)[0].residence.as_ref(), 99.0), (Some(6_015), None));
        run.settle_residences();
        assert_eq!(at(directions(&run)[0].residence.as_ref(), 99.0), (None, Some(4_059)));
        assert_eq!(at(directions(&run)[1].kernel_residence.as_ref(), 50.0).0, Some(673));
        let mut run = kept(include_str!("../../../../tests/runs/reflect/run.json"));
        let before = run.reflected.clone();
        run.settle_residences();
        let all = run.reflected.as_ref().unwrap().residence.as_ref();
        assert_eq!(at(all, 99.0).0, run.series[0].at(99.0).map(|Nanos(ns)| ns));
        // Without a series the account says what it knows.
        let mut alone = Run { reflected: before.clone(), series: Vec::new(), ..run };
        alone.settle_residences();
        assert_eq!(alone.reflected, before);
        let mut run = kept(include_str!("../../../../tests/runs/delay/run.json"));
        run.settle_residences();
        let lines = run.delay.as_ref().unwrap().directions.iter();
        assert!(lines.clone().all(|of| at(of.lateness.as_ref(), 99.9).1.is_some()));
        assert!(lines.clone().all(|of| at(of.residence.as_ref(), 99.9).1.is_some()));
    }
}
