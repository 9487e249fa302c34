//! Finding numbers in what a foreign tool prints.

use regex_lite::Regex;
use whylate_model::Printable;

/// Numbers that are taken from one output at most: a tool prints some dozen percentiles.
const MOST_FOUND: usize = 1_000;

/// Which number of a line is the percentile, and which the value.
#[derive(Debug, Clone)]
pub struct Metric {
    pattern: Regex,
    has_percent: bool,
    /// The tool says itself in which unit each value is.
    has_unit: bool,
    unit: Unit,
}

/// What a number alone is of all messages of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Statistic {
    /// Their median.
    #[default]
    Median,
    /// Their mean: ping and qperf print one.
    Mean,
}

/// The unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    /// So many nanoseconds.
    fn ns(self) -> f64 {
        match self {
            Self::Ns => 1.0,
            Self::Us => 1e3,
            Self::Ms => 1e6,
            Self::S => 1e9,
        }
    }

    /// As tools print it behind a number; none where it is no unit of time.
    fn of(word: &str) -> Option<Self> {
        match word {
            "ns" | "nsec" => Some(Self::Ns),
            "us" | "usec" | "\u{b5}s" => Some(Self::Us),
            "ms" | "msec" => Some(Self::Ms),
            "s" | "sec" => Some(Self::S),
            _ => None,
        }
    }
}

impl Metric {
    /// Reads a pattern, which must have a group `value`, has one `percent` where the tool prints several, and
    /// one `unit` where it chooses the unit by the value; of one without, values are in `unit`.
    ///
    /// # Errors
    /// It is no regular expression, or has no group `value`; in words that are safe to print.
    pub fn new(pattern: &str, unit: Unit) -> Result<Self, String> {
        let shown = Printable(pattern);
        let read = Regex::new(pattern).map_err(|why| {
            format!("`{shown}` is no regular expression: {}", Printable(&why.to_string()))
        })?;
        let has = |name: &str| read.capture_names().flatten().any(|known| known == name);
        if !has("value") {
            return Err(format!(
                "`{shown}` does not say which number is the value: name a group, as in \
                 `percentile (?P<percent>[0-9.]+) += +(?P<value>[0-9.]+)`"
            ));
        }
        let (has_percent, has_unit) = (has("percent"), has("unit"));
        Ok(Self { pattern: read, has_percent, has_unit, unit })
    }

    /// The pattern.
    #[must_use]
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }

    /// Does it say which percentile each value is?
    #[must_use]
    pub fn has_percent(&self) -> bool {
        self.has_percent
    }

    /// Percentiles with their values in nanoseconds, rising. Where the pattern has no percentile the value
    /// has the median's place, whatever [`Statistic`] it is. Of a percentile that is there twice the last one counts, as a tool that
    /// prints on its way prints the whole at its end.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<(f64, f64)> {
        let mut found: Vec<(f64, f64)> = Vec::new();
        for groups in self.pattern.captures_iter(text).take(MOST_FOUND) {
            let number = |name: &str| groups.name(name)?.as_str().parse::<f64>().ok();
            let percent = if self.has_percent { number("percent") } else { Some(50.0) };
            let unit = if self.has_unit {
                groups.name("unit").and_then(|word| Unit::of(word.as_str()))
            } else {
                Some(self.unit)
            };
            let value = number("value").zip(unit).map(|(value, unit)| value * unit.ns());
            let (Some(percent), Some(value)) = (percent, value) else { continue };
            if !(percent > 0.0 && percent < 100.0 && value.is_finite() && value >= 0.0) {
                continue;
            }
            found.retain(|(known, _)| (known - percent).abs() > 1e-9);
            found.push((percent, value));
        }
        found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_their_values_are_found_in_what_sockperf_prints() {
        let text = "sockperf: Summary: Latency is 5.021 usec\n\
                    sockperf: ---> <MAX> observation =   30.113\n\
                    sockperf: ---> percentile 99.999 =   30.113\n\
                    sockperf: ---> percentile 99.900 =   12.500\n\
                    sockperf: ---> percentile 50.000 =    4.900\n";
        let metric = r"percentile (?P<percent>[0-9.]+) += +(?P<value>[0-9.]+)";
        let metric = Metric::new(metric, Unit::Us).unwrap();
        assert_eq!(metric.find(text), [(50.0, 4_900.0), (99.9, 12_500.0), (99.999, 30_113.0)]);
        assert_eq!(metric.find("nothing of the kind"), []);
    }

    #[test]
    fn a_value_alone_has_the_medians_place_and_the_last_one_counts() {
        let metric = Metric::new(r"= [0-9.]+/(?P<value>[0-9.]+)/", Unit::Ms).unwrap();
        let text = "rtt min/avg/max/mdev = 0.041/0.052/0.090/0.011 ms\n";
        assert_eq!(metric.find(text), [(50.0, 52_000.0)]);
        let metric = Metric::new("latency = (?P<value>[0-9.]+) us", Unit::Us).unwrap();
        assert_eq!(metric.find("latency = 1 us\nlatency = 2.5 us\n"), [(50.0, 2_500.0)]);
    }

    #[test]
    fn a_tool_that_chooses_the_unit_by_the_value_is_read_in_each_of_them() {
        // As qperf prints it.
        let pattern = r"latency += +(?P<value>[0-9.]+) (?P<unit>[a-z]+)";
        let metric = Metric::new(pattern, Unit::S).unwrap();
        for (printed, ns) in
            [("812 ns", 812.0), ("53.4 us", 53_400.0), ("4.05 ms", 4_050_000.0), ("1.5 sec", 1.5e9)]
        {
            let found = metric.find(&format!("udp_lat:\n    latency  =  {printed}\n"));
            let [(percent, value)] = found[..] else { panic!("{printed}: {found:?}") };
            assert!((percent - 50.0).abs() < 1e-9 && (value - ns).abs() < 1e-3, "{found:?}");
        }
        assert_eq!(metric.find("latency = 53.4 MB\n"), [], "no unit of time");
        assert_eq!(metric.find("latency = 53.4 parsecs\n"), []);
    }

    #[test]
    fn what_is_no_percentile_or_no_number_is_passed_over_and_bad_patterns_are_refused() {
        let metric = Metric::new("(?P<percent>[^ \n]+) (?P<value>[^ \n]+)", Unit::Ns).unwrap();
        assert_eq!(metric.find("100 7\n0 7\nx 7\n50 x\n50 -1\n50 inf\n99 8\n"), [(99.0, 8.0)]);
        let refused = Metric::new("latency ([0-9]+)", Unit::Us).unwrap_err();
        assert!(refused.contains("name a group"), "{refused}");
        assert!(Metric::new("(", Unit::Us).unwrap_err().contains("no regular expression"));
        for hostile in ["(\u{1b}[31m", "\u{1b}\n"] {
            let refused = Metric::new(hostile, Unit::Us).unwrap_err();
            assert!(!refused.chars().any(char::is_control), "{refused:?}");
        }
    }

    #[test]
    fn whatever_a_tool_prints_gives_rising_percentiles_with_values_or_nothing() {
        let metric = Metric::new("(?P<percent>[^ ]*) (?P<value>[^ ]*)", Unit::S).unwrap();
        let mut rng = whylate_stats::rng::Rng::new(5);
        let pieces =
            ["99", ".", " ", "50", "-", "e", "9", "inf", "nan", "\n", "\u{0}", "\u{e9}", "0"];
        let mut most = 0;
        for _ in 0..20_000 {
            let piece = |_| pieces[rng.below(pieces.len() as u64) as usize];
            let text: String = (0..30).map(piece).collect();
            let found = metric.find(&text);
            assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "{text:?}: {found:?}");
            let inside = |(percent, value): &(f64, f64)| {
                *percent > 0.0 && *percent < 100.0 && value.is_finite() && *value >= 0.0
            };
            assert!(found.iter().all(inside), "{text:?}: {found:?}");
            most = most.max(found.len());
        }
        assert!(most > 0, "nothing was found in anything");
    }
}
