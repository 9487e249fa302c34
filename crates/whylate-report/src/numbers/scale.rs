//! Digits and units of numbers.
//!
//! The times of a table have one unit, which its head names; a sentence has the unit that gives 1 to 999.
//! There are at most three significant digits, and no more than the interval supports. What cannot be told
//! from nothing is told as less than the last place.

use whylate_model::nearly_all;

use super::{ABSENT, ALL, Cell, MARK, Part, Value, count};

/// Letters that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Letters {
    /// All of Unicode.
    #[default]
    Unicode,
    /// Those of ASCII, as far as they are ours to choose.
    Plain,
}

/// Signs and what stands for each where only ASCII is shown.
const PLAIN: [(char, &str); 6] =
    [('µ', "u"), ('–', "-"), ('−', "-"), ('≥', ">="), ('≤', "<="), ('±', "+-")];

impl Letters {
    /// The text in these letters.
    pub(crate) fn write(self, text: &str) -> String {
        match self {
            Self::Unicode => text.to_owned(),
            Self::Plain => {
                PLAIN.iter().fold(text.to_owned(), |text, (sign, plain)| text.replace(*sign, plain))
            }
        }
    }
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    /// As the head of a table names it.
    pub(crate) name: &'static str,
    /// As it stands behind a number.
    behind: &'static str,
    ns: u32,
}

const NANOSECONDS: Unit = Unit { name: "ns", behind: " ns", ns: 1 };
const MICROSECONDS: Unit = Unit { name: "µs", behind: " µs", ns: 1_000 };
const MILLISECONDS: Unit = Unit { name: "ms", behind: " ms", ns: 1_000_000 };
const SECONDS: Unit = Unit { name: "s", behind: " s", ns: 1_000_000_000 };

/// A time of less than this much of its table's unit has two digits that say something.
const SMALL: f64 = 0.1;

/// A table has a unit when its times lie around this much of it, in the geometric mean.
const AROUND: f64 = 0.3;

impl Unit {
    /// That of a table with these cells; none where none is a time.
    pub(crate) fn of_table<'a>(cells: impl Iterator<Item = &'a Cell>) -> Option<Self> {
        let times: Vec<f64> = cells.filter_map(Cell::time).map(f64::abs).collect();
        if times.is_empty() {
            return None;
        }
        let logs: Vec<f64> = times.iter().filter(|ns| **ns >= 1.0).map(|ns| ns.ln()).collect();
        let mean = (logs.iter().sum::<f64>() / (logs.len() as f64).max(1.0)).exp();
        let fits = |unit: &Self| mean >= AROUND * f64::from(unit.ns);
        Some([SECONDS, MILLISECONDS].into_iter().find(fits).unwrap_or(MICROSECONDS))
    }

    /// Places behind the point that a table with this unit has for a time: two, and of a small one as many as it
    /// has two digits with, down to ten nanoseconds.
    fn places(self, ns: f64) -> i32 {
        let (size, ten_ns) = (ns.abs() / f64::from(self.ns), self.ns.ilog10() as i32 - 1);
        if size > 0.0 && size < SMALL { (1 - size.log10().floor() as i32).min(ten_ns) } else { 2 }
    }

    /// That which gives 1 to 999.
    fn of_sentence(ns: f64) -> Self {
        // What rounds to a thousand of a unit is one of the next.
        let fits = |unit: &Self| ns.abs() >= 0.9995 * f64::from(unit.ns);
        [SECONDS, MILLISECONDS, MICROSECONDS].into_iter().find(fits).unwrap_or(NANOSECONDS)
    }
}

/// Where a number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a table, whose times have this unit.
    Table(Unit),
    /// In a cell or a list, with its unit: as many digits as in a table.
    Alone,
    /// In a sentence, with its unit.
    Sentence,
}

impl Cell {
    /// In a table whose times have this unit.
    pub(crate) fn in_table(&self, unit: Option<Unit>) -> String {
        let written = || self.written(Place::Table(unit.unwrap_or(MICROSECONDS)));
        self.shown.clone().unwrap_or_else(written)
    }

    /// In a sentence.
    pub(crate) fn said(&self) -> String {
        self.written(Place::Sentence)
    }

    /// In a table of a whole report, whose head names this unit, or nowhere in particular: with its interval, and
    /// with its mark where it is not to be trusted.
    pub(crate) fn whole(&self, unit: Option<Unit>) -> String {
        let place = unit.map_or(Place::Alone, Place::Table);
        let mark = match &self.value {
            Value::Text(text) if text.starts_with(MARK) => "",
            _ if self.is_beyond() => MARK,
            _ => "",
        };
        let ends = self.interval.is_some() && self.part == Part::Both;
        let ends = if ends { format!(" ({})", self.ends_written(place)) } else { String::new() };
        format!("{mark}{}{ends}", self.written(place))
    }

    /// In a sentence of a whole report, with the digits of its tables.
    pub(crate) fn told(&self) -> String {
        self.written(Place::Alone)
    }

    /// The interval alone.
    pub(crate) fn ends(&self) -> Self {
        Self { part: Part::Ends, ..self.clone() }
    }

    /// The value without its interval, which stands beside it.
    pub(crate) fn alone(&self) -> Self {
        Self { part: Part::Value, ..self.clone() }
    }

    /// Is it a time?
    pub(crate) fn is_time(&self) -> bool {
        self.time().is_some()
    }

    fn time(&self) -> Option<f64> {
        match (&self.value, &self.interval) {
            _ if self.shown.is_some() => None,
            (Value::Time(ns) | Value::AtLeast(ns), _)
            | (_, Some((Value::Time(ns), _) | (_, Value::Time(ns)))) => Some(*ns),
            _ => None,
        }
    }

    fn written(&self, place: Place) -> String {
        if self.part == Part::Ends {
            return self.ends_written(place);
        }
        if let Value::Time(ns) = self.value
            && (0.0..self.resolution_ns).contains(&ns)
        {
            let least = Value::Time(self.resolution_ns.ceil());
            let digits = Digits::of(&least, None, place);
            let shown = match place {
                // Less than the last of two places: what the clock does not resolve needs no more.
                Place::Table(_) => Digits { places: digits.places.min(2), ..digits },
                Place::Alone | Place::Sentence => digits,
            };
            let shown = shown.write(&least);
            return if shown.starts_with('<') { shown } else { format!("<{shown}") };
        }
        let digits = Digits::of(&self.value, self.interval.as_ref(), place).write(&self.value);
        match self.value.number() {
            Some(of) if self.signed => with_sign(digits, of),
            _ => digits,
        }
    }

    /// Both ends with the digits of the value; of an open interval the one that is known.
    fn ends_written(&self, place: Place) -> String {
        let Some((low, high)) = &self.interval else { return ABSENT.to_owned() };
        let digits = Digits::of(&self.value, self.interval.as_ref(), place);
        match (low.number(), high.number()) {
            (Some(from), Some(to)) => {
                let between = if from < 0.0 || self.signed { " to " } else { "–" };
                let end = |of: f64| {
                    let digits = digits.number(of);
                    if self.signed { with_sign(digits, of) } else { digits }
                };
                let (low, high) = (end(from), end(to));
                let both = if low == high { high } else { format!("{low}{between}{high}") };
                both + digits.unit
            }
            (Some(from), None) => format!("≥{}{}", digits.bound(from, f64::floor), digits.unit),
            (None, Some(to)) => format!("≤{}{}", digits.bound(to, f64::ceil), digits.unit),
            _ => ABSENT.to_owned(),
        }
    }
}

impl Value {
    /// The number, where it is one.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Time(of)
            | Self::AtLeast(of)
            | Self::Share(of)
            | Self::Rate(of)
            | Self::Ratio(of) => Some(*of),
            Self::Count(of) => Some(*of as f64),
            Self::Text(_) | Self::Absent => None,
        }
        .filter(|of| of.is_finite())
    }
}

/// With which digits and which unit numbers are written.
#[derive(Debug, Clone, Copy)]
struct Digits {
    /// What is written as 1.
    one: f64,
    unit: &'static str,
    significant: i32,
    /// Places behind the point: those that are shown at most, and that the interval supports.
    places: i32,
    /// Zeros at the end carry something.
    zeros: bool,
}

impl Digits {
    fn of(value: &Value, interval: Option<&(Value, Value)>, place: Place) -> Self {
        let end = interval.and_then(|(low, high)| match (low.number(), high.number()) {
            (Some(low), Some(high)) => Some(low.abs().max(high.abs())),
            (low, high) => low.or(high),
        });
        let about = value.number().or(end).unwrap_or(0.0);
        // Of an interval alone its ends say what it is of.
        let kind = match (value, interval) {
            (Value::Absent, Some((Value::Absent, end) | (end, _))) => end,
            _ => value,
        };
        let (one, unit, significant, places) = match (kind, interval, place) {
            (Value::Share(_), None, _) => (0.01, "%", 2, 1),
            (Value::Share(_), Some(_), _) => (0.01, "%", 3, 2),
            (Value::Rate(_), _, Place::Table(_)) => (1.0, "", 3, 1),
            (Value::Rate(_), ..) => (1.0, "/s", 3, 1),
            (Value::Ratio(_), ..) => (1.0, "", 3, 2),
            (Value::Count(_), ..) => (1.0, "", 3, 0),
            (_, _, Place::Table(unit)) => (f64::from(unit.ns), "", 3, unit.places(about)),
            (_, _, Place::Alone) => {
                let unit = Unit::of_sentence(about);
                (f64::from(unit.ns), unit.behind, 3, if unit == NANOSECONDS { 1 } else { 2 })
            }
            (_, _, Place::Sentence) => {
                let unit = Unit::of_sentence(about);
                let (significant, places) = if interval.is_some() { (3, 2) } else { (2, 1) };
                (f64::from(unit.ns), unit.behind, significant, places)
            }
        };
        let width = interval.and_then(|(low, high)| Some(high.number()? - low.number()?));
        let supported = width.map_or(places, |width| supported((width / one).abs() / 2.0));
        // Those of a time that somebody chose carry nothing.
        let chosen = matches!(kind, Value::Time(_) | Value::AtLeast(_)) && width.is_none();
        let zeros = !chosen || matches!(place, Place::Table(_));
        Self { one, unit, significant, places: places.min(supported).max(0), zeros }
    }

    fn write(self, value: &Value) -> String {
        let digits = match value {
            Value::Text(text) => return text.clone(),
            Value::Count(n) => return count(*n),
            Value::AtLeast(of) if of.is_finite() => format!("≥{}", self.bound(*of, f64::floor)),
            _ => match value.number() {
                Some(of) => self.number(of),
                None => return ABSENT.to_owned(),
            },
        };
        match (value, digits + self.unit) {
            (Value::Share(of), all) if all == ALL => nearly_all(*of).unwrap_or(all),
            (_, written) => written,
        }
    }

    /// A bound: the digits of the nearest number that holds as well, below a lower one and above an upper one,
    /// and has no more of them.
    fn bound(self, of: f64, whole: fn(f64) -> f64) -> String {
        let size = of / self.one;
        if size <= 0.0 {
            return self.number(of);
        }
        let places = (self.significant - 1 - size.log10().floor() as i32).min(self.places);
        let step = 10_f64.powi(-places);
        // A number that has no more digits is not the one beside it for being stored as a little less or more.
        let steps = size / step;
        let near = (steps - steps.round()).abs() < 1e-6;
        self.number(if near { steps.round() } else { whole(steps) } * step * self.one)
    }

    /// The digits with their sign.
    fn number(self, of: f64) -> String {
        let of = of / self.one;
        let size = of.abs();
        if !size.is_finite() {
            return ABSENT.to_owned();
        }
        if size == 0.0 {
            return "0".to_owned();
        }
        let places = |size: f64| {
            (self.significant - 1 - size.log10().floor() as i32).clamp(0, self.places) as usize
        };
        let mut digits = format!("{size:.*}", places(size));
        // What rounds up to the next power of ten has a digit less behind the point.
        if let Ok(shown) = digits.parse::<f64>()
            && shown > size
        {
            digits = format!("{size:.*}", places(shown));
        }
        if digits.chars().all(|digit| matches!(digit, '0' | '.')) {
            let least = format!("<{}1", &digits[..digits.len() - 1]);
            return if of < 0.0 { "0".to_owned() } else { least };
        }
        if !digits.contains('.') {
            digits = count(significant(size));
        } else if !self.zeros {
            digits.truncate(digits.trim_end_matches('0').trim_end_matches('.').len());
        }
        format!("{}{digits}", if of < 0.0 { "−" } else { "" })
    }
}

/// The digits of what is more than nothing with its sign; what cannot be told from nothing has none.
fn with_sign(digits: String, of: f64) -> String {
    let has = of > 0.0 && digits.starts_with(|first: char| first.is_ascii_digit());
    if has { format!("+{digits}") } else { digits }
}

/// A whole number of three significant digits.
fn significant(size: f64) -> u64 {
    let step = 10_f64.powi((size.log10().floor() as i32 - 2).max(0));
    ((size / step).round() * step) as u64
}

/// Places behind the point that a number supports which is known to so much on either side: the first digit of
/// that, and the second where the first is 1.
pub(super) fn supported(to_each_side: f64) -> i32 {
    if to_each_side <= 0.0 {
        return i32::MAX;
    }
    let power = to_each_side.log10().floor() as i32;
    let first = to_each_side / 10_f64.powi(power);
    if first < 2.0 - 1e-9 { 1 - power } else { -power }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whylate_model::Nanos;

    use super::*;

    fn time(ns: u64) -> Cell {
        Cell::from(Nanos(ns))
    }

    fn between(value: Value, low: Value, high: Value) -> Cell {
        Cell::from(value).within(Some((low, high)))
    }

    fn share(value: f64, low: f64, high: f64) -> Cell {
        between(Value::Share(value), Value::Share(low), Value::Share(high))
    }

    #[test]
    fn a_sentence_has_the_unit_that_gives_1_to_999_and_no_zeros_that_carry_nothing() {
        for (ns, said) in [
            (0, "0 ns"),
            (90, "90 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (14_040, "14 µs"),
            (188_000, "188 µs"),
            (999_600, "1 ms"),
            (1_820_000, "1.8 ms"),
            (3_000_000_000, "3 s"),
            (303_000_000, "303 ms"),
        ] {
            assert_eq!(time(ns).said(), said, "{ns}");
        }
        assert_eq!(Cell::from(Value::AtLeast(2.55e6)).said(), "≥2.5 ms");
        assert_eq!(Cell::from(Value::Rate(813.4)).said(), "813/s");
        assert_eq!(Cell::from(Value::Absent).said(), "–");
    }

    #[test]
    fn a_table_has_three_digits_and_two_places_of_its_unit_at_most() {
        let shown = |ns: u64| time(ns).in_table(Some(MICROSECONDS));
        for (ns, text) in [
            (0, "0"),
            (4, "<0.01"),
            (23, "0.02"),
            (9_996, "10.0"),
            (14_040, "14.0"),
            (1_074_000, "1,070"),
            (303_200_000, "303,000"),
        ] {
            assert_eq!(shown(ns), text, "{ns}");
        }
        assert_eq!(time(4).resolved(10.01).in_table(Some(MICROSECONDS)), "<0.01");
        let bound = |ns: f64| Cell::from(Value::AtLeast(ns)).in_table(Some(MICROSECONDS));
        assert_eq!(
            [2.55e6, 2.559e6, 9_996.0, 99.0].map(bound),
            ["≥2,550", "≥2,550", "≥9.99", "≥0.09"]
        );
        assert_eq!(Cell::from(Value::Count(31_960_000)).in_table(None), "31,960,000");
        let rate = |of: f64| Cell::from(Value::Rate(of)).in_table(None);
        assert_eq!([rate(813.2), rate(0.3), rate(0.01), rate(0.0)], ["813", "0.3", "<0.1", "0"]);
    }

    #[test]
    fn a_time_far_below_the_unit_of_its_table_has_two_digits_down_to_ten_nanoseconds() {
        for (ns, unit, text) in [
            (41_200, MILLISECONDS, "0.041"),
            (5_432, MILLISECONDS, "0.0054"),
            (543, MILLISECONDS, "0.00054"),
            (4, MILLISECONDS, "<0.00001"),
            (99_960, MILLISECONDS, "0.100"),
            (100_000, MILLISECONDS, "0.10"),
            (5_432, SECONDS, "0.0000054"),
            (23, MICROSECONDS, "0.02"),
        ] {
            assert_eq!(time(ns).in_table(Some(unit)), text, "{ns}");
        }
        assert_eq!(time(4).resolved(10.01).in_table(Some(MILLISECONDS)), "<0.01");
    }

    #[test]
    fn shares_have_a_place_below_ten_percent_and_what_is_below_that_is_told_so() {
        let shown = |of: f64| Cell::from(Value::Share(of)).in_table(None);
        for (of, text) in
            [(0.46, "46%"), (0.005, "0.5%"), (0.0004, "<0.1%"), (0.0, "0%"), (1.0, "100%")]
        {
            assert_eq!(shown(of), text);
        }
        for (of, text) in [
            (0.994, "99%"),
            (0.997, "99.7%"),
            (0.999_4, "99.9%"),
            (0.999_6, ">99.9%"),
            (1.0 - 1e-7, ">99.9%"),
            (1.0 - 1e-12, "100%"),
        ] {
            assert_eq!([shown(of), Cell::from(Value::Share(of)).said()], [text, text], "{of}");
        }
        assert_eq!(share(0.997, 0.98, 0.999).said(), "99.7%");
        assert_eq!(share(0.9999, 0.98, 0.999_95).said(), ">99.9%");
        assert_eq!(Cell::from(Value::Share(0.01)).said(), "1.0%", "as its table has it");
        // What cannot be negative is nothing then.
        assert_eq!(shown(-1e-5), "0%");
    }

    #[test]
    fn a_number_has_no_more_digits_than_its_interval_supports() {
        for (cell, said, ends) in [
            (share(0.0198, 0.0184, 0.0233), "2.0%", "1.8–2.3%"),
            (share(0.064, 0.049, 0.077), "6.4%", "4.9–7.7%"),
            (share(0.31, 0.24, 0.37), "31%", "24–37%"),
            (share(0.0083, 0.0071, 0.0098), "0.83%", "0.71–0.98%"),
            (share(0.21, 0.10, 0.35), "21%", "10–35%"),
            (share(0.16, -0.038, 0.079), "16%", "−4 to 8%"),
        ] {
            assert_eq!((cell.said().as_str(), cell.ends().said().as_str()), (said, ends));
        }
        let times = between(Value::Time(32_200.0), Value::Time(30_900.0), Value::Time(34_000.0));
        assert_eq!(times.in_table(Some(MICROSECONDS)), "32.2");
        assert_eq!(times.ends().in_table(Some(MICROSECONDS)), "30.9–34.0");
        let open = between(Value::Absent, Value::Time(15e6), Value::Absent);
        assert_eq!(open.ends().in_table(Some(MICROSECONDS)), "≥15,000");
        let open = between(Value::Absent, Value::Absent, Value::Time(27_010.0));
        assert_eq!(open.ends().in_table(Some(MICROSECONDS)), "≤27.1");
        let exact = between(Value::Time(1_760.0), Value::Time(1_760.0), Value::Time(1_760.0));
        assert_eq!(exact.ends().in_table(Some(MICROSECONDS)), "1.76");
        assert_eq!(time(3).ends().said(), "–");
    }

    #[test]
    fn a_difference_has_its_sign_and_so_have_both_ends_of_its_interval() {
        let of = |value, low, high| {
            between(Value::Share(value), Value::Share(low), Value::Share(high)).signed()
        };
        for (cell, said, ends) in [
            (of(0.161, 0.056, 0.27), "+16%", "+6 to +27%"),
            (of(0.0145, 0.014, 0.015), "+1.45%", "+1.40 to +1.50%"),
            (of(-0.02, -0.04, 0.001), "−2%", "−4 to <1%"),
            (of(0.0, -0.01, 0.01), "0%", "−1.0 to +1.0%"),
        ] {
            assert_eq!((cell.said().as_str(), cell.ends().said().as_str()), (said, ends));
        }
        let time = between(Value::Time(4_000.0), Value::Time(3_900.0), Value::Time(4_100.0));
        let time = time.signed();
        assert_eq!(time.said(), "+4.00 µs");
        assert_eq!(time.ends().said(), "+3.90 to +4.10 µs");
        assert_eq!(Cell::from(Value::Absent).signed().said(), "–");
    }

    proptest! {
        /// As far as ten nanoseconds go: a headline may name any of them.
        #[test]
        fn a_time_reads_as_the_same_number_in_a_table_of_any_unit(ns in 100_u64..1 << 40) {
            for unit in [MICROSECONDS, MILLISECONDS, SECONDS] {
                let told: f64 = time(ns).in_table(Some(unit)).replace(',', "").parse().unwrap();
                let told = told * f64::from(unit.ns);
                prop_assert!((told - ns as f64).abs() <= 0.051 * ns as f64, "{} of {}", told, ns);
            }
        }

        #[test]
        fn an_upper_bound_is_never_told_as_less_than_it_is(ns in 10_u64..1 << 60) {
            let open = between(Value::Absent, Value::Absent, Value::Time(ns as f64)).ends();
            let told = open.in_table(Some(MICROSECONDS)).replace(['≤', ','], "");
            let (told, ns) = (told.parse::<f64>().unwrap(), ns as f64 / 1e3);
            prop_assert!(told >= ns * (1.0 - 1e-6) && told <= ns * 2.0, "{} of {}", told, ns);
        }

        #[test]
        fn a_lower_bound_is_never_told_as_more_than_it_is(ns in 10_u64..1 << 60) {
            let told = |cell: &Cell| cell.in_table(Some(MICROSECONDS)).replace(['≥', ','], "");
            let open = between(Value::Absent, Value::Time(ns as f64), Value::Absent).ends();
            for cell in [Cell::from(Value::AtLeast(ns as f64)), open] {
                let told: f64 = told(&cell).parse().unwrap();
                let ns = ns as f64 / 1e3;
                prop_assert!(told <= ns * (1.0 + 1e-6) && told >= ns * 0.5, "{} of {}", told, ns);
            }
        }
    }

    #[test]
    fn a_table_has_the_unit_around_which_its_times_lie() {
        let unit = |all: &[u64]| {
            let cells: Vec<Cell> = all.iter().map(|ns| time(*ns)).collect();
            Unit::of_table(cells.iter()).map(|unit| unit.name)
        };
        assert_eq!(unit(&[8_150, 14_000, 1_070_000, 6_360_000]), Some("µs"));
        assert_eq!(unit(&[27_300_000, 18_000_000, 40_000, 1_820_000]), Some("ms"));
        assert_eq!(unit(&[3_000_000_000]), Some("s"));
        assert_eq!((unit(&[0]), unit(&[])), (Some("µs"), None));
        // From three tenths of a unit on; what is nothing counts for none.
        assert_eq!((unit(&[301_000]), unit(&[299_000])), (Some("ms"), Some("µs")));
        assert_eq!((unit(&[301_000_000]), unit(&[299_000_000, 0])), (Some("s"), Some("ms")));
        assert_eq!(unit(&[1, 10_000_000_000]), Some("µs"), "one nanosecond counts");
        assert_eq!(
            (time(999_500).said(), time(999_499).said()),
            ("1 ms".to_owned(), "999 µs".to_owned())
        );
        assert!(time(1).is_time() && !Cell::from(Value::Count(1)).is_time());
        assert_eq!(Cell::from("as it is").said(), "as it is");
        assert_eq!(time(9).resolved(10.01).said(), "<11 ns");
        let from_nothing = between(Value::Time(5e3), Value::Time(0.0), Value::Time(9e3));
        assert_eq!(from_nothing.ends().said(), "0–9 µs");
        // Known to 2 us on either side it has no place behind the point; a rate keeps its zero.
        assert_eq!(between(Value::Time(5e3), Value::Time(3e3), Value::Time(7e3)).said(), "5 µs");
        assert_eq!(Cell::from(Value::Rate(30.0)).said(), "30.0/s");
        // 0.29 of a unit is stored as a little less, and is no 0.28.
        let least = |ns: f64| Cell::from(Value::AtLeast(ns)).in_table(Some(MICROSECONDS));
        assert_eq!([least(290.0), least(0.0), least(f64::INFINITY)], ["≥0.29", "≥0", "–"]);
    }

    #[test]
    fn signs_have_a_plain_form_for_terminals_without_them() {
        let text = "1.8–2.3 µs, −4, ≥5 and ±1";
        assert_eq!(Letters::Unicode.write(text), text);
        assert_eq!(Letters::Plain.write(text), "1.8-2.3 us, -4, >=5 and +-1");
    }

    proptest! {
        #[test]
        fn no_number_of_a_first_screen_has_more_than_three_significant_digits(ns in 0_u64..u64::MAX / 2) {
            for text in [time(ns).said(), time(ns).in_table(Some(MILLISECONDS))] {
                let digits: String = text.chars().filter(char::is_ascii_digit).collect();
                let digits = digits.trim_start_matches('0');
                let few = if digits.len() > 3 { digits.trim_end_matches('0') } else { digits };
                prop_assert!(few.len() <= 3, "{}", text);
            }
        }
    }
}
