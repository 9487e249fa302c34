//! Figures with their intervals, as a paper's rows have them.

use whylate_model::Nanos;
use whylate_model::load::LoadFacts;
use whylate_model::paper::{Here, Row, Unit};
use whylate_model::threads::ThreadSummary;
use whylate_stats::share;

/// A row without a figure of the paper or of this host yet.
pub(crate) fn row(what: impl Into<String>, why: impl Into<String>) -> Row {
    Row { what: what.into(), paper: None, here: None, why: why.into() }
}

/// What a row can be given.
pub(crate) trait Filled {
    /// The paper's figure.
    fn paper(self, figure: impl Into<String>) -> Self;
    /// This host's.
    fn here(self, here: impl Into<Option<Here>>) -> Self;
}

impl Filled for Row {
    fn paper(mut self, figure: impl Into<String>) -> Self {
        self.paper = Some(figure.into());
        self
    }

    fn here(mut self, here: impl Into<Option<Here>>) -> Self {
        self.here = here.into();
        self
    }
}

/// A time that is computed, not measured.
pub(crate) fn time(time: Nanos) -> Here {
    Here { value: time.0 as f64, unit: Unit::Nanoseconds, interval: None, n: None }
}

/// A number of things that were all counted.
pub(crate) fn count(count: u64, of: Option<u64>) -> Here {
    Here { value: count as f64, unit: Unit::Count, interval: None, n: of }
}

/// A share that was measured as such.
pub(crate) fn of_time(part: Nanos, whole: Nanos) -> Option<Here> {
    (whole.0 > 0).then(|| Here {
        value: part.0 as f64 / whole.0 as f64,
        unit: Unit::Share,
        interval: None,
        n: None,
    })
}

/// So many things in a time. Without an interval: they come in bursts and in step with ticks.
pub(crate) fn per_second(count: u64, over: Nanos) -> Option<Here> {
    let seconds = over.0 as f64 / 1e9;
    (seconds > 0.0).then(|| Here {
        value: count as f64 / seconds,
        unit: Unit::PerSecond,
        interval: None,
        n: Some(count),
    })
}

/// The share of missed deadlines of a thread.
pub(crate) fn misses(thread: &ThreadSummary) -> Option<Here> {
    let of = thread.deadlines.as_ref()?;
    let judged = of.hits + of.misses;
    (judged > 0).then(|| Here {
        value: of.misses as f64 / judged as f64,
        unit: Unit::Share,
        interval: Some(share::interval(of.misses as f64, judged as f64)),
        n: Some(judged),
    })
}

/// What a network load brought through.
pub(crate) fn throughput(loads: &[LoadFacts]) -> Option<Here> {
    let net = loads.iter().find(|load| load.unit == "bytes")?;
    Some(Here {
        value: net.per_second()? * 8.0,
        unit: Unit::BitsPerSecond,
        interval: None,
        n: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_time_that_it_was_counted_in() {
        let here = per_second(20, Nanos(2 * Nanos::SECOND.0)).unwrap();
        assert!((here.value - 10.0).abs() < 1e-9 && here.interval.is_none());
        assert!(per_second(20, Nanos(0)).is_none());
    }

    #[test]
    fn throughput_is_in_bits() {
        let net = LoadFacts {
            load: "net".to_owned(),
            what: "TCP bulk".to_owned(),
            amount: 1_000,
            unit: "bytes".to_owned(),
            time: Nanos::SECOND,
            offered: None,
            lost: None,
            ended_early: false,
        };
        assert!((throughput(&[net]).unwrap().value - 8_000.0).abs() < 1e-9);
        assert!(throughput(&[]).is_none());
    }
}
