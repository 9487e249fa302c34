//! What stands below the percentiles of a series, on a terminal and on a page: the tail with what its share
//! is a share of, what is known from below only, what was lost, and what decided the class.

use whylate_model::series::{Definition, Denominator, Series};

use crate::numbers::{Value, count, percent};

/// None where there is nothing to be said.
pub(crate) fn of(series: &Series) -> Option<String> {
    let mut words = Vec::new();
    if let Some(tail) = series.tail.filter(|tail| tail.count > 0) {
        let of = match (tail.denominator, series.definition) {
            (Denominator::Elapsed, _) => "the elapsed time",
            (Denominator::Measured, Definition::ReadDelta) => "the time inside readings",
            (Denominator::Measured, _) => "all latencies added up",
        };
        let (over, all) = (count(tail.count), count(series.n));
        // Of values of which some are known from below only, no sum is known, and so no share of one.
        let is_known = tail.denominator == Denominator::Elapsed || series.censored.is_none();
        let share =
            if is_known { format!(" ({} of {of})", percent(tail.share)) } else { String::new() };
        words.push(format!("{over} of {all} over 100 µs{share}"));
    }
    if let Some(censored) = series.censored.filter(|censored| censored.count > 0) {
        words.push(format!(
            "{} given up or never sent: known only to have taken {} or more",
            count(censored.count),
            Value::from(censored.above)
        ));
    }
    if series.lost > 0 {
        words.push(format!("{} lost", count(series.lost)));
    }
    // That of anything else is by the p99.9 that its row has, or by what that is at least.
    let weighted = series.definition == Definition::Gap && series.paper_row.is_none();
    if let Some(by) = series.class_by.filter(|_| weighted) {
        words.push(format!("class: by the time-weighted p99.9, {}", Value::from(by)));
    }
    (!words.is_empty()).then(|| format!("{}: {}", series.label, words.join("; ")))
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_model::series::{Censored, Tail};

    use super::*;
    use crate::timeline::tests::recorded;

    fn planted(definition: Definition, denominator: Denominator) -> Series {
        let mut series = recorded().series.remove(0);
        (series.label, series.definition, series.n) = ("it".to_owned(), definition, 2_000);
        series.tail = Some(Tail { count: 1, share: 0.005_05, denominator });
        (series.lost, series.class_by) = (0, None);
        series
    }

    #[test]
    fn a_share_of_the_tail_says_what_it_is_a_share_of() {
        let said = |definition, denominator| of(&planted(definition, denominator)).unwrap();
        assert_eq!(
            said(Definition::DispatchLatency, Denominator::Measured),
            "it: 1 of 2,000 over 100 µs (0.5% of all latencies added up)"
        );
        assert!(said(Definition::ReadDelta, Denominator::Measured).contains("inside readings"));
        assert!(said(Definition::Gap, Denominator::Elapsed).contains("of the elapsed time"));
    }

    #[test]
    fn only_what_decides_a_class_and_is_not_in_the_row_is_said() {
        let mut series = planted(Definition::Gap, Denominator::Elapsed);
        (series.tail, series.paper_row) = (None, None);
        series.class_by = Some(Nanos(51_935));
        assert_eq!(of(&series).unwrap(), "it: class: by the time-weighted p99.9, 51.9 µs");
        series.definition = Definition::Response;
        assert_eq!(of(&series), None, "a second p99.9 of one series");
    }

    #[test]
    fn what_is_known_from_below_is_counted_as_in_the_json_and_apart_from_what_was_lost() {
        let mut series = planted(Definition::Response, Denominator::Measured);
        (series.tail, series.lost) = (None, 119_901);
        series.censored = Some(Censored { count: 9_964_109, above: Nanos(100_000_000) });
        assert_eq!(
            of(&series).unwrap(),
            "it: 9,964,109 given up or never sent: known only to have taken 100 ms or more; 119,901 lost"
        );
        // The sum of values of which some are known from below is not known, and no share of it.
        let mut late = series.clone();
        (late.tail, late.lost) =
            (Some(Tail { count: 7, share: 0.5, denominator: Denominator::Measured }), 0);
        assert!(of(&late).unwrap().starts_with("it: 7 of 2,000 over 100 µs; 9,964,109 given up"));
        // With one request under way at a time nothing is lost, and 230 are given up.
        (series.lost, series.censored) =
            (0, series.censored.map(|of| Censored { count: 230, ..of }));
        assert!(of(&series).unwrap().starts_with("it: 230 given up"), "{series:?}");
        (series.censored, series.lost) = (None, 3);
        assert_eq!(of(&series).unwrap(), "it: 3 lost");
    }
}
