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
