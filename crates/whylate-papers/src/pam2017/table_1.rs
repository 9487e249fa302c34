//! Rows of the paper's Table 1: minimum, median, p99.9 and tail, beside a series of this host.

use crate::spelled::in_unit;
use whylate_model::paper::{Here, Row, Unit};
use whylate_model::series::{Class, Series};

use crate::beside::sentence;
use crate::rows::{Filled, row};

/// A figure as the table prints it, and in nanoseconds.
type Figure = (&'static str, f64);

/// A row of the table.
pub(super) struct TableRow {
    pub(super) minimum: Figure,
    pub(super) median: Figure,
    pub(super) p999: Figure,
    pub(super) tail: Figure,
    /// Its column "Observation Period".
    pub(super) period: &'static str,
    /// What its section 5.1 calls it.
    pub(super) called: Class,
    /// What it is of, in few words.
    short: &'static str,
}

/// Host: 3.9 us, 4.5 us, 21 us, 45 us.
pub(super) const ROW_4: TableRow = TableRow {
    minimum: ("3.9us", 3_900.0),
    median: ("4.5us", 4_500.0),
    p999: ("21us", 21_000.0),
    tail: ("45us", 45_000.0),
    period: "1M packets",
    called: Class::Bad,
    short: "host",
};

/// Client-Server (UDP): 7 us, 9 us, 107 us, 203 us.
pub(super) const ROW_6A: TableRow = TableRow {
    minimum: ("7us", 7_000.0),
    median: ("9us", 9_000.0),
    p999: ("107us", 107_000.0),
    tail: ("203us", 203_000.0),
    period: "1M packets",
    called: Class::Bad,
    short: "client and server",
};

/// Bounds of the classes: Good below the first, Ugly above the second.
const GOOD_BELOW: f64 = 1_000.0;
const UGLY_ABOVE: f64 = 100_000.0;

/// The four figures of a series beside those of a row.
pub(super) fn rows(what: &str, series: &Series, paper: &TableRow) -> Vec<Row> {
    let of = |name: &str| format!("{name}, {what}");
    let n = in_unit(series.n as f64, Unit::Count);
    let bare = |value: Option<whylate_model::Nanos>| {
        value.map(|value| Here {
            value: value.0 as f64,
            unit: Unit::Nanoseconds,
            interval: None,
            n: Some(series.n),
        })
    };
    let (minimum, largest) = (bare(series.min), bare(series.max));
    let (median, p999) = (quantile(series, 50.0), quantile(series, 99.9));
    let few = |percent: &str| format!("{n} requests are too few for a {percent}");
    let minimum_why = [times(minimum.as_ref(), paper.minimum), Some(format!("the least of {n}"))];
    let median_why = match &median {
        Some(here) => [times(Some(here), paper.median), no_interval(here)],
        None => [Some(few("median")), None],
    };
    let p999_why = match &p999 {
        Some(here) => {
            [times(Some(here), paper.p999), no_interval(here), Some(class(series, paper))]
        }
        None => [Some(few("p99.9")), None, None],
    };
    let tail_why = [
        times(largest.as_ref(), paper.tail),
        Some(format!("the largest of {n}, the paper's of {}", paper.period)),
        largest
            .is_none()
            .then(|| "requests were given up: how long they took is not known".to_owned()),
        series.tail.map(|tail| format!("{} above 100us", in_unit(tail.count as f64, Unit::Count))),
    ];
    [
        ("minimum", "minimum", sentence(minimum_why), paper.minimum.0, minimum),
        ("median", "median", sentence(median_why), paper.median.0, median),
        ("p99.9", "p99.9", sentence(p999_why), paper.p999.0, p999),
        ("tail (the largest)", "largest", sentence(tail_why), paper.tail.0, largest),
    ]
    .into_iter()
    .map(|(name, short, why, there, here)| {
        let brief = (format!("{short}, {}", paper.short), there.replace("us", " µs"));
        row(of(name), why).paper(there).here(here).brief(brief.0, brief.1)
    })
    .collect()
}

/// A quantile with its interval, where the sample has both ends of one.
pub(super) fn quantile(series: &Series, percent: f64) -> Option<Here> {
    let found = series.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9)?;
    let value = found.value?;
    Some(Here {
        value: value.0 as f64,
        unit: Unit::Nanoseconds,
        interval: found.low.zip(found.high).map(|(low, high)| (low.0 as f64, high.0 as f64)),
        n: Some(series.n),
    })
}

/// How many times the paper's figure it is. That is no verdict: their ends are others.
fn times(here: Option<&Here>, (words, paper): Figure) -> Option<String> {
    let ratio = in_unit(here?.value / paper, Unit::Ratio);
    Some(format!("{ratio} times the paper's {words}, whose ends are others"))
}

fn no_interval(here: &Here) -> Option<String> {
    here.interval.is_none().then(|| "too few requests for its interval".to_owned())
}

/// Its class by the paper's rule, and the paper's own against the same rule.
fn class(series: &Series, paper: &TableRow) -> String {
    let here = series.class.map_or_else(
        || "no class can be told".to_owned(),
        |class| format!("{class:?} by the paper's rule"),
    );
    let by_rule = by_rule(paper.p999.1);
    let there = if by_rule == paper.called {
        format!("the paper's is {by_rule:?}, too, by its own")
    } else {
        format!(
            "the paper's {} is {by_rule:?} by that rule, and its section 5.1 counts it as {:?}",
            paper.p999.0, paper.called
        )
    };
    let there = if series.class == Some(by_rule) { there } else { there.replace(", too,", "") };
    format!("{here}; {there}")
}

fn by_rule(p999: f64) -> Class {
    match p999 {
        ..GOOD_BELOW => Class::Good,
        GOOD_BELOW..=UGLY_ABOVE => Class::Bad,
        _ => Class::Ugly,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use whylate_model::series::Definition;
    use whylate_model::series::summary::Identity;
    use whylate_stats::Histogram;

    use super::*;

    /// A series of these times in nanoseconds.
    pub(in crate::pam2017) fn planted(times: impl Iterator<Item = u64>) -> Series {
        let mut values = Histogram::new();
        times.for_each(|time| values.record(time));
        let n = values.len() as f64;
        let identity = Identity {
            name: "x".to_owned(),
            label: "x".to_owned(),
            paper_row: None,
            from: "a".to_owned(),
            to: "b".to_owned(),
            clock: "tsc".to_owned(),
            definition: Definition::RoundTrip,
            resolution_ns: 1.0,
            lost: 0,
        };
        Series::summarise(identity, &values, |_| n, None)
    }

    fn why<'a>(rows: &'a [Row], name: &str) -> &'a str {
        &rows.iter().find(|row| row.what.starts_with(name)).unwrap().why
    }

    #[test]
    fn a_series_has_the_four_figures_of_the_table_with_what_they_rest_on() {
        // 10 000 requests of 18us, of which every hundredth took 250us.
        let times = (0..10_000).map(|at| if at % 100 == 0 { 250_000 } else { 18_000 });
        let rows = rows("round trips", &planted(times), &ROW_6A);
        let papers: Vec<&str> = rows.iter().map(|row| row.paper.as_deref().unwrap()).collect();
        assert_eq!(papers, ["7us", "9us", "107us", "203us"]);
        let values: Vec<f64> = rows.iter().map(|row| row.here.as_ref().unwrap().value).collect();
        for (value, wanted) in values.iter().zip([18e3, 18e3, 250e3, 250e3]) {
            assert!((value / wanted - 1.0).abs() < 2e-3, "{values:?}");
        }
        assert!(rows[1].here.as_ref().unwrap().interval.is_some(), "{rows:?}");
        assert!(rows[0].here.as_ref().unwrap().interval.is_none(), "{rows:?}");
        assert!(why(&rows, "median").starts_with("2.00"), "{rows:?}");
        assert!(why(&rows, "tail").contains("100 above 100us"), "{rows:?}");
        let class = why(&rows, "p99.9");
        assert!(class.contains("Ugly by the paper's rule"), "{class}");
        assert!(
            class.contains("107us is Ugly by that rule") && class.contains("as Bad"),
            "{class}"
        );
    }

    #[test]
    fn too_few_requests_have_no_p999_and_say_so_and_rows_that_agree_with_their_class_do() {
        let few = rows("x", &planted((0..300).map(|_| 5_000)), &ROW_4);
        assert!(
            few[2].here.is_none() && few[2].why.contains("300 requests are too few"),
            "{few:?}"
        );
        assert!(few.iter().all(|row| !row.why.is_empty()), "{few:?}");
        let many = rows("x", &planted((0..10_000).map(|_| 5_000)), &ROW_4);
        assert!(why(&many, "p99.9").contains("Bad, too, by its own"), "{many:?}");
        let good = rows("x", &planted((0..10_000).map(|_| 500)), &ROW_4);
        let why = why(&good, "p99.9");
        assert!(why.contains("Good by the paper's rule; the paper's is Bad by its own"), "{why}");
    }
}
