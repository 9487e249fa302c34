//! Which percentiles the table of series has columns for.

use std::str::FromStr;

use whylate_stats::quantile::PERCENTS;

/// Columns that a line of 80 has room for beside label, minimum, maximum, count and class.
const MOST: usize = 4;

/// A few of the percentiles that every run holds, in their one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentiles {
    /// Indices into [`PERCENTS`], ascending.
    chosen: [Option<u8>; MOST],
}

impl Default for Percentiles {
    /// p50, p99 and p99.9, as Table 1 of the PAM paper.
    fn default() -> Self {
        Self { chosen: [Some(0), Some(2), Some(3), None] }
    }
}

impl Percentiles {
    /// In percent, ascending.
    pub(crate) fn percents(self) -> impl Iterator<Item = f64> {
        self.chosen.into_iter().flatten().map(|index| PERCENTS[usize::from(index)])
    }
}

impl FromStr for Percentiles {
    type Err = String;

    /// Reads `50,99,99.99`.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = PERCENTS.map(|percent| percent.to_string()).join(", ");
        let mut found = Vec::new();
        for word in text.split(',') {
            let wanted: Option<f64> = word.trim().trim_start_matches('p').parse().ok();
            let at = PERCENTS
                .iter()
                .position(|percent| wanted.is_some_and(|wanted| (wanted - percent).abs() < 1e-9));
            match at {
                Some(index) => found.push(index as u8),
                None => return Err(format!("`{word}` is not a percentile of a run: use {known}")),
            }
        }
        found.sort_unstable();
        found.dedup();
        if found.len() > MOST {
            return Err(format!("a line has room for {MOST} percentiles, not {}", found.len()));
        }
        let mut chosen = [None; MOST];
        chosen.iter_mut().zip(found).for_each(|(place, index)| *place = Some(index));
        Ok(Self { chosen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_run_are_read_in_any_order_and_others_are_refused() {
        let read = |text: &str| {
            text.parse::<Percentiles>().map(|chosen| chosen.percents().collect::<Vec<_>>())
        };
        assert_eq!(read("99.99,50,p99.9"), Ok(vec![50.0, 99.9, 99.99]));
        assert_eq!(read("50,50"), Ok(vec![50.0]));
        for text in ["", "95", "nan", "50,,99", "50,90,99,99.9,99.99"] {
            assert!(read(text).is_err(), "{text}");
        }
        let usual: Vec<f64> = Percentiles::default().percents().collect();
        assert_eq!(usual, [50.0, 99.0, 99.9]);
    }
}
