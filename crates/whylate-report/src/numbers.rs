//! How numbers are written, decided here for every report: digits, unit, sign, interval and resolution.
//!
//! A [`Value`] is a number before it is written, so that a sentence and a table that name the same figure
//! cannot write it in two ways.

use std::fmt::{self, Display};

use whylate_model::{Nanos, nearly_all};

pub(crate) mod scale;

/// What stands where there is no number.
pub(crate) const ABSENT: &str = "-";

/// How a share of all of it is written.
const ALL: &str = "100%";

/// What stands before a number beyond the limit of trust, wherever colours may be missing.
pub(crate) const MARK: &str = "~";

/// A number of a report, or a word in its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Words, written as they are.
    Text(String),
    /// Nanoseconds; a difference may be negative.
    Time(f64),
    /// Nanoseconds that the sample reaches; how much more it is, is not known.
    AtLeast(f64),
    /// How many.
    Count(u64),
    /// A part of a whole, 1 being all of it.
    Share(f64),
    /// How many each second.
    Rate(f64),
    /// How much of the one is one of the other.
    Ratio(f64),
    /// Not known, or not to be had.
    Absent,
}

/// A value with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    value: Value,
    interval: Option<(Value, Value)>,
    resolution_ns: f64,
    beyond: bool,
    /// The interval is what is shown, not the value.
    only_ends: bool,
    /// It is a difference: what is more than nothing has its sign on a first screen.
    signed: bool,
    /// How its table has it, whatever is usual.
    shown: Option<String>,
}

impl Cell {
    /// With the interval that it lies in.
    pub(crate) fn within(self, interval: Option<(impl Into<Value>, impl Into<Value>)>) -> Self {
        Self { interval: interval.map(|(low, high)| (low.into(), high.into())), ..self }
    }

    /// It is a difference, and always has its sign on a first screen.
    pub(crate) fn signed(self) -> Self {
        Self { signed: true, ..self }
    }

    /// Its table has it as this text.
    pub(crate) fn shown_as(self, text: String) -> Self {
        Self { shown: Some(text), ..self }
    }

    /// Measured by a clock of this resolution: a shorter time is told as less than that.
    pub(crate) fn resolved(self, resolution_ns: f64) -> Self {
        Self { resolution_ns, ..self }
    }

    /// Marked where it lies beyond what may be trusted; what is no number stays.
    pub(crate) fn marked(self, beyond: bool) -> Self {
        Self { beyond, ..self }
    }

    /// Is it to be shown as beyond trust?
    pub(crate) fn is_beyond(&self) -> bool {
        match &self.value {
            Value::Text(text) => text.starts_with(MARK) || (self.beyond && text != ABSENT),
            Value::Absent => false,
            _ => self.beyond,
        }
    }

    /// Is there something that a table can have?
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.value, Value::Absent) || self.interval.is_some()
    }

    /// Is it the number of this figure, or does it have that as an end of its interval or among its words?
    pub(crate) fn names(&self, figure: &Self) -> bool {
        let ends = self.interval.iter().flat_map(|(low, high)| [low, high]);
        let same = if figure.only_ends {
            self.interval == figure.interval
        } else {
            std::iter::once(&self.value).chain(ends).any(|value| *value == figure.value)
        };
        same || figure.is_in(&self.to_string())
    }

    /// As a sentence of a report has it: the value without its interval, or the interval alone.
    pub(crate) fn told(&self) -> String {
        let interval = self.interval.clone().filter(|_| self.only_ends);
        Self { interval, ..self.clone() }.to_string()
    }

    /// Is it written in this text of a report?
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let apart = |letter: char| letter.is_whitespace() || "();:".contains(letter);
        let beside = ['~', '>', '<', '=', '+', '-', ',', '.', '%'];
        let digits = |word: &str| word.trim_matches(beside).to_owned();
        let words: Vec<String> = text.split(apart).map(digits).collect();
        let own = self.told();
        let mut own = own.split(apart).map(digits).filter(|word| !word.is_empty());
        own.all(|word| words.contains(&word))
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.only_ends {
            return match &self.interval {
                Some((low, high)) => write!(f, "{low} .. {high}"),
                None => f.write_str(ABSENT),
            };
        }
        let mark = match &self.value {
            Value::Text(text) if text.starts_with(MARK) => "",
            _ if self.is_beyond() => MARK,
            _ => "",
        };
        f.write_str(mark)?;
        match self.value {
            Value::Time(ns) if (0.0..self.resolution_ns).contains(&ns) => {
                write!(f, "<{}", time(self.resolution_ns.ceil()))?;
            }
            _ => self.value.fmt(f)?,
        }
        match &self.interval {
            Some((low, high)) => write!(f, " ({low} .. {high})"),
            None => Ok(()),
        }
    }
}

impl PartialEq<&str> for Cell {
    fn eq(&self, text: &&str) -> bool {
        let shown = self.to_string();
        shown.as_str() == *text
    }
}

impl<T: Into<Value>> From<T> for Cell {
    fn from(value: T) -> Self {
        Self {
            value: value.into(),
            interval: None,
            resolution_ns: 0.0,
            beyond: false,
            only_ends: false,
            signed: false,
            shown: None,
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Time(ns) => f.write_str(&time(*ns)),
            Self::AtLeast(ns) => write!(f, ">={}", time(*ns)),
            Self::Count(n) => f.write_str(&count(*n)),
            Self::Share(share) => f.write_str(&percent(*share)),
            Self::Rate(per_second) => f.write_str(&rate(*per_second)),
            Self::Ratio(ratio) => write!(f, "{ratio:.3}"),
            Self::Absent => f.write_str(ABSENT),
        }
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Nanos> for Value {
    fn from(time: Nanos) -> Self {
        Self::Time(time.0 as f64)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

/// A time to the nanosecond or to three significant digits: `9ns`, `1.25us`, `-64.0ms`. What rounds to
/// nothing has no sign, and what is no number is none.
pub(crate) fn time(ns: f64) -> String {
    if !ns.is_finite() {
        return ABSENT.to_owned();
    }
    let rounded = ns.round();
    let sign = if rounded < 0.0 { "-" } else { "" };
    format!("{sign}{}", Nanos(rounded.abs() as u64))
}

/// A difference of times, always with its sign: `+1.25us`, `-9ns`, `0ns`.
pub(crate) fn difference(ns: f64) -> String {
    let plus = if ns.is_finite() && ns.round() > 0.0 { "+" } else { "" };
    format!("{plus}{}", time(ns))
}

/// A share as a percentage with three significant digits, six places at most: `0.0123%`, `4.50%`, `100%`.
pub(crate) fn percent(share: f64) -> String {
    match three_digits(share * 100.0, 6, "%") {
        all if all == ALL => nearly_all(share).unwrap_or(all),
        told => told,
    }
}

/// A rate per second with three significant digits, four places at most: `1074/s`, `0.333/s`.
pub(crate) fn rate(per_second: f64) -> String {
    three_digits(per_second, 4, "/s")
}

/// Three significant digits, or what of them stands within so many places.
fn three_digits(value: f64, places: u8, unit: &str) -> String {
    let size = value.abs();
    if !size.is_finite() {
        return ABSENT.to_owned();
    }
    let wanted = 2.0 - size.log10().floor();
    let decimals = if size > 0.0 { wanted.clamp(0.0, f64::from(places)) as usize } else { 0 };
    let digits = format!("{size:.decimals$}");
    let significant = digits.trim_start_matches(['0', '.']).replace('.', "").len();
    match decimals {
        // What rounds up to the next power of ten has a digit more.
        1.. if significant > 3 => {
            let fewer = decimals - 1;
            unless_nothing(value, &format!("{size:.fewer$}"), unit)
        }
        _ => unless_nothing(value, &digits, unit),
    }
}

/// Digits with their sign and unit. Of a number that is too small for any of them that is said: it is less
/// than the last of them, and a negative one nothing.
fn unless_nothing(value: f64, digits: &str, unit: &str) -> String {
    let is_nothing = digits.chars().all(|digit| matches!(digit, '0' | '.'));
    match (is_nothing, value < 0.0) {
        (true, false) if value > 0.0 => {
            let least = format!("{}1", &digits[..digits.len() - 1]);
            format!("<{least}{unit}")
        }
        (true, _) => format!("0{unit}"),
        (false, negative) => format!("{}{digits}{unit}", if negative { "-" } else { "" }),
    }
}

/// A count with thousands apart: `12,345,678`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut apart = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

/// Both ends of an interval, or that there is none.
pub(crate) fn interval<T: Into<Value>>(interval: Option<(T, T)>) -> Value {
    interval.map_or(Value::Absent, |(low, high)| {
        let (low, high): (Value, Value) = (low.into(), high.into());
        Value::Text(format!("{low} .. {high}"))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_keep_three_digits_and_nothing_has_no_sign() {
        for (share, text) in [
            (0.0, "0%"),
            (-0.0, "0%"),
            (1.0, "100%"),
            (0.045, "4.50%"),
            (0.123_4, "12.3%"),
            (0.999_4, "99.9%"),
            (0.999_6, ">99.9%"),
            (1.0 - 1e-12, "100%"),
            (0.000_123, "0.0123%"),
            (-0.045, "-4.50%"),
            (-1e-12, "0%"),
            (1e-12, "<0.000001%"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
    }

    #[test]
    fn rates_keep_three_digits_at_every_size() {
        for (per_second, text) in [
            (0.0, "0/s"),
            (1_074.2, "1074/s"),
            (99.96, "100/s"),
            (12.34, "12.3/s"),
            (1.0, "1.00/s"),
            (0.333_33, "0.333/s"),
            (0.012_34, "0.0123/s"),
            (1e-9, "<0.0001/s"),
            (-0.5, "-0.500/s"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(rate(per_second), text, "{per_second}");
        }
    }

    #[test]
    fn times_have_a_sign_only_where_they_are_something() {
        for (ns, without, with) in [
            (0.0, "0ns", "0ns"),
            (-0.4, "0ns", "0ns"),
            (0.4, "0ns", "0ns"),
            (1_250.0, "1.25us", "+1.25us"),
            (-9.0, "-9ns", "-9ns"),
            (12_000.0, "12.0us", "+12.0us"),
            (f64::NAN, "-", "-"),
        ] {
            assert_eq!((time(ns).as_str(), difference(ns).as_str()), (without, with), "{ns}");
        }
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), text);
        }
    }

    #[test]
    fn a_cell_has_its_interval_its_resolution_and_its_mark() {
        let time = |ns: u64| Cell::from(Nanos(ns));
        assert!(time(9) != "10ns", "what tests compare by tells numbers apart");
        assert_eq!(time(9).resolved(10.01), "<11ns");
        assert_eq!(time(0).resolved(10.01), "<11ns");
        assert_eq!(time(11).resolved(10.01), "11ns");
        assert_eq!(
            time(1_250).within(Some((Nanos(1_000), Nanos(2_000)))),
            "1.25us (1.00us .. 2.00us)"
        );
        assert_eq!(time(1_250).marked(true), "~1.25us");
        assert_eq!(Cell::from(None::<Nanos>).marked(true), "-");
        assert!(Cell::from("~9ms").is_beyond() && !Cell::from("-").marked(true).is_beyond());
        assert_eq!(Cell::from("~9ms").marked(true), "~9ms");
        assert_eq!(interval(Some((Nanos(1), Nanos(2)))).to_string(), "1ns .. 2ns");
        assert_eq!(interval::<Nanos>(None), Value::Absent);
    }

    /// The digits and the point of a number, without sign, mark and unit.
    fn digits(text: &str) -> String {
        text.chars().filter(char::is_ascii_digit).collect()
    }

    proptest! {
        #[test]
        fn no_number_has_more_than_three_digits_beyond_its_whole_part(value in any::<f64>()) {
            for text in [percent(value), rate(value), time(value)] {
                prop_assert!(!text.starts_with("-0%") && !text.starts_with("-0/") && !text.starts_with("-0n"));
                if let Some((whole, fraction)) = text.split_once('.') {
                    let significant = digits(whole) + &digits(fraction);
                    prop_assert!(significant.trim_start_matches('0').len() <= 3, "{}", text);
                }
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
            }
        }

        #[test]
        fn a_count_without_its_commas_is_the_count(n in any::<u64>()) {
            let text = count(n);
            prop_assert_eq!(text.replace(',', "").parse::<u64>(), Ok(n));
            prop_assert!(text.split(',').skip(1).all(|group| group.len() == 3));
        }

        #[test]
        fn the_larger_share_never_reads_as_the_smaller(share in 1e-7..1.0, times in 1.02..50.0) {
            let read = |share: f64| percent(share).trim_matches(['<', '>', '%']).parse::<f64>();
            prop_assert!(read(share).unwrap() <= read(share * times).unwrap());
        }
    }
}
