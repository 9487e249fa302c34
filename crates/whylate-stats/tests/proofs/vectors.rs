//! The committed vectors of `tests/vectors`, and the tests that need nothing but them.

use std::str::FromStr;

use whylate_stats::quantile::{Ranks, ranks, smallest_n};
use whylate_stats::rate::{poisson_interval, rates_differ};
use whylate_stats::stationarity::{kruskal_wallis, mann_kendall};

/// One line of a vector file.
pub(crate) struct Row<'a>(Vec<&'a str>);

impl Row<'_> {
    pub(crate) fn get<T: FromStr>(&self, column: usize) -> T {
        self.optional(column).unwrap_or_else(|| panic!("column {column} is empty: {:?}", self.0))
    }

    /// None for an empty cell.
    pub(crate) fn optional<T: FromStr>(&self, column: usize) -> Option<T> {
        let cell = self.0[column];
        (!cell.is_empty()).then(|| cell.parse().unwrap_or_else(|_| panic!("not a number: {cell}")))
    }

    pub(crate) fn text(&self, column: usize) -> &str {
        self.0[column]
    }
}

/// The lines of a vector file after the comment and the column names.
pub(crate) fn rows(file: &str) -> impl Iterator<Item = Row<'_>> {
    let mut lines = file.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("# ")), "no origin given");
    lines.skip(1).map(|line| Row(line.split(',').collect()))
}

/// Fails unless the two agree to a relative error.
#[track_caller]
pub(crate) fn assert_close(what: &str, got: f64, expected: f64, relative: f64) {
    let off = (got - expected).abs();
    assert!(off <= relative * expected.abs(), "{what}: got {got:e}, expected {expected:e}");
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(' ').map(|number| number.parse().expect("a number")).collect()
}

#[test]
fn ranks_are_scipy_s_at_every_size_and_percentile() {
    let mut checked = 0;
    for row in rows(include_str!("../vectors/ranks.csv")) {
        let (n, p) = (row.get(0), row.get(1));
        let expected = Ranks { low: row.optional(2), high: row.optional(3) };
        assert_eq!(ranks(n, p), expected, "n = {n}, p = {p}");
        checked += 1;
    }
    assert_eq!(checked, 29 * 12);
}

#[test]
fn smallest_samples_are_scipy_s() {
    for row in rows(include_str!("../vectors/smallest_n.csv")) {
        let (p, n) = (row.get(0), row.get::<u64>(1));
        assert_eq!(smallest_n(p), n, "p = {p}");
    }
}

#[test]
fn smallest_samples_are_those_of_the_method() {
    let fractions = [0.99, 0.999, 0.9999, 0.99999, 0.999_999];
    assert_eq!(fractions.map(smallest_n), [368, 3_688, 36_887, 368_887, 3_688_878]);
    for p in fractions {
        let n = smallest_n(p);
        assert!(ranks(n, p).high.is_some() && ranks(n, p).low.is_some());
        assert_eq!(ranks(n - 1, p).high, None);
    }
}

#[test]
fn poisson_intervals_are_scipy_s() {
    for row in rows(include_str!("../vectors/poisson.csv")) {
        let (count, time) = (row.get(0), row.get(1));
        let (low, high) = poisson_interval(count, time);
        assert_close(&format!("low of {count} in {time}"), low, row.get(2), 1e-10);
        assert_close(&format!("high of {count} in {time}"), high, row.get(3), 1e-10);
    }
}

#[test]
fn rate_tests_are_scipy_s() {
    for row in rows(include_str!("../vectors/rates_differ.csv")) {
        let (a, b) = (row.get(0), row.get(2));
        let p = rates_differ(a, row.get(1), b, row.get(3));
        assert_close(&format!("{a} against {b}"), p, row.get(4), 1e-9);
    }
}

#[test]
fn kruskal_wallis_is_scipy_s() {
    for row in rows(include_str!("../vectors/kruskal_wallis.csv")) {
        let groups: Vec<Vec<f64>> = row.text(0).split(';').map(numbers).collect();
        let test = kruskal_wallis(&groups);
        assert_close("H", test.statistic, row.get(1), 1e-10);
        assert_close("p", test.p_value, row.get(2), 1e-9);
        assert_close("effect", test.effect, row.get(3), 1e-10);
    }
}

#[test]
fn mann_kendall_is_the_reference_s() {
    for row in rows(include_str!("../vectors/mann_kendall.csv")) {
        let test = mann_kendall(&numbers(row.text(0)));
        assert_close("S", test.statistic, row.get(1), 0.0);
        assert_close("p", test.p_value, row.get(2), 1e-9);
        assert_close("tau", test.effect, row.get(3), 1e-9);
    }
}
