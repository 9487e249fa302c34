//! Does a switch cost more with a larger working set?
//!
//! Pure: rows in, differences with intervals out. Each pair of trials compares neighbours in time, so
//! that a slow drift of the host is in both; sizes need not have been tried in turns.

use whylate_model::Nanos;
use whylate_model::switch_cost::{Beyond, Cache, Growth, IndirectRow, More, Trend};
use whylate_stats::student::Spread;
use whylate_stats::trend;

/// Working sets beyond the first-level cache beside those inside it; none with fewer than two rows.
pub(super) fn of(rows: &[IndirectRow], caches: &[Cache]) -> Option<Growth> {
    let mut rows: Vec<&IndirectRow> = rows.iter().collect();
    rows.sort_by_key(|row| row.bytes);
    let smallest = rows.first()?.bytes;
    let first_level = caches.iter().find(|cache| cache.level == 1).map(|cache| cache.bytes);
    let limit = first_level.unwrap_or(smallest);
    if rows.len() < 2 {
        return None;
    }
    let (inside, beyond): (Vec<&IndirectRow>, Vec<&IndirectRow>) =
        rows.iter().partition(|row| row.bytes <= limit);
    let pairs: Vec<f64> = inside.iter().flat_map(|row| values(row)).copied().collect();
    let base = Spread::of_mean(&pairs).map(|spread| (mean(&pairs), spread));
    Some(Growth {
        inside: inside.iter().map(|row| row.bytes).collect(),
        first_level_known: first_level.is_some(),
        inside_ns: base.map(|(mean, _)| mean),
        pairs: pairs.len() as u32,
        beyond: beyond.into_iter().map(|row| beside(row, base)).collect(),
        trend: over(&rows),
    })
}

/// The penalty of each good pair of a row.
fn values(row: &IndirectRow) -> &[f64] {
    row.penalty.as_ref().map_or(&[], |penalty| &penalty.of_pairs_ns)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn beside(row: &IndirectRow, base: Option<(f64, Spread)>) -> Beyond {
    let values = values(row);
    let own = Spread::of_mean(values).map(|spread| (mean(values), spread));
    let more = own.zip(base).map(|((own, own_spread), (base, base_spread))| {
        let interval = own_spread.of_difference(base_spread).around(own - base);
        More { mean_ns: own - base, interval_ns: (interval.low, interval.high) }
    });
    let reason = match (more, own, base) {
        (Some(more), ..) => not_shown(more),
        (None, None, _) => Some(row.reason.clone().unwrap_or_else(|| "too few pairs".to_owned())),
        (None, Some(_), _) => Some(
            "no two good pairs of working sets inside the first-level cache to set it beside"
                .to_owned(),
        ),
    };
    Beyond { bytes: row.bytes, more, reason }
}

fn not_shown(more: More) -> Option<String> {
    let (low, high) = more.interval_ns;
    if more.grows() {
        None
    } else if high < 0.0 {
        Some("it costs less there".to_owned())
    } else {
        let half = Nanos(((high - low) / 2.0).round() as u64);
        Some(format!("the interval includes 0: pairs scatter by +-{half}"))
    }
}

fn over(rows: &[&IndirectRow]) -> Option<Trend> {
    let groups: Vec<Vec<f64>> =
        rows.iter().map(|row| values(row).to_vec()).filter(|group| !group.is_empty()).collect();
    let found = trend::jonckheere_terpstra(&groups)?;
    Some(Trend {
        sizes: groups.len() as u32,
        pairs: groups.iter().map(Vec::len).sum::<usize>() as u32,
        z: found.z,
        p_value: found.p_value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::switch_cost::Penalty;
    use whylate_stats::rng::Rng;

    const L1: [Cache; 2] = [
        Cache { level: 1, bytes: 32 << 10, shared_by: 1 },
        Cache { level: 2, bytes: 512 << 10, shared_by: 1 },
    ];

    /// A row whose pairs scatter by a third of `noise` around `mean_ns`.
    fn row(kib: u64, mean_ns: f64, noise: f64, rng: &mut Rng) -> IndirectRow {
        let of_pairs_ns: Vec<f64> = (0..15).map(|_| mean_ns + noise * (rng.unit() - 0.5)).collect();
        IndirectRow {
            bytes: kib << 10,
            tried: 15,
            discarded: 0,
            discarded_by_host: 0,
            empty: 0,
            penalty: Some(Penalty {
                pairs: 15,
                mean_ns,
                interval_ns: (0.0, 0.0),
                of_pairs_ns,
                passes_alone: 1.0,
                passes_together: 1.0,
                switches: 1.0,
            }),
            reason: None,
            refill: None,
            passes: None,
        }
    }

    fn planted(means: [f64; 4], noise: f64) -> Vec<IndirectRow> {
        let mut rng = Rng::new(3);
        [16, 32, 256, 1024]
            .into_iter()
            .zip(means)
            .map(|(k, m)| row(k, m, noise, &mut rng))
            .collect()
    }

    #[test]
    fn a_cost_that_grows_beyond_the_first_cache_is_shown_with_its_difference() {
        let found = of(&planted([1_500.0, 1_500.0, 9_500.0, 61_500.0], 600.0), &L1).unwrap();
        assert_eq!((found.inside.as_slice(), found.pairs), (&[16 << 10, 32 << 10][..], 30));
        let planted = [8_000.0, 60_000.0];
        for (beyond, truth) in found.beyond.iter().zip(planted) {
            let more = beyond.more.unwrap();
            assert!(more.grows() && beyond.reason.is_none(), "{beyond:?}");
            assert!((more.mean_ns - truth).abs() < 200.0, "{more:?}");
            assert!(more.interval_ns.0 < truth && truth < more.interval_ns.1, "{more:?}");
        }
        let trend = found.trend.unwrap();
        assert!(trend.rises() && (trend.sizes, trend.pairs) == (4, 60), "{trend:?}");
    }

    #[test]
    fn a_flat_cost_and_one_lost_in_noise_are_not_shown_and_say_why() {
        let flat = of(&planted([1_500.0; 4], 600.0), &L1).unwrap();
        assert!(!flat.trend.unwrap().rises(), "{flat:?}");
        let noisy = of(&planted([1_500.0, 1_500.0, 1_600.0, 1_700.0], 60_000.0), &L1).unwrap();
        for beyond in flat.beyond.iter().chain(&noisy.beyond) {
            assert!(!beyond.more.unwrap().grows(), "{beyond:?}");
            assert!(beyond.reason.as_ref().unwrap().contains("includes 0"), "{beyond:?}");
        }
        let falls = of(&planted([9_500.0, 9_500.0, 1_500.0, 1_500.0], 600.0), &L1).unwrap();
        assert!(!falls.trend.unwrap().rises(), "{falls:?}");
        assert_eq!(falls.beyond[0].reason.as_deref(), Some("it costs less there"));
    }

    #[test]
    fn sizes_without_a_mean_say_what_their_row_says() {
        let mut rows = planted([1_500.0, 1_500.0, 9_500.0, 9_500.0], 600.0);
        (rows[2].penalty, rows[2].reason) = (None, Some("4 good pairs of 15".to_owned()));
        let found = of(&rows, &L1).unwrap();
        assert_eq!(found.beyond[0].reason.as_deref(), Some("4 good pairs of 15"));
        assert!(found.beyond[0].more.is_none() && found.beyond[1].more.unwrap().grows());
        assert_eq!(found.trend.unwrap().sizes, 3);
        (rows[0].penalty, rows[1].penalty) = (None, None);
        let found = of(&rows, &L1).unwrap();
        assert_eq!((found.inside_ns, found.pairs), (None, 0));
        assert!(found.beyond[1].reason.as_ref().unwrap().contains("inside the first-level cache"));
    }

    #[test]
    fn without_a_known_cache_the_smallest_stands_for_it_and_one_size_says_nothing() {
        let rows = planted([1_500.0, 9_500.0, 9_500.0, 9_500.0], 600.0);
        let found = of(&rows, &[]).unwrap();
        assert_eq!((found.inside.as_slice(), found.first_level_known), (&[16 << 10][..], false));
        assert_eq!(found.beyond.len(), 3);
        assert_eq!(of(&rows[..1], &L1), None);
        assert_eq!(of(&[], &L1), None);
    }
}
