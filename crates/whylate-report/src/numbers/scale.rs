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

/// An end of an interval of times has a digit from so many nanoseconds on.
const TEN_NS: f64 = 10.0;

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
        let mark = if self.is_beyond() { MARK } else { "" };
        let written =
            || format!("{mark}{}", self.written(Place::Table(unit.unwrap_or(MICROSECONDS))));
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
        // Nothing at least is no bound.
        let says = !digits.starts_with('≥') || digits.contains(|digit| matches!(digit, '1'..='9'));
        let digits = if says { digits } else { ABSENT.to_owned() };
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
                let signs = from < 0.0 || self.signed;
                let between = if signs { " to " } else { "–" };
                // Of a difference each end has a sign that says something, and of times an order of size.
                let is_time = [low, high].iter().any(|end| matches!(end, Value::Time(_)));
                let says = |of: f64| if is_time { of.abs() >= TEN_NS } else { signs };
                let end = |of: f64| {
                    let written = match digits.number(of) {
                        nothing if is_nothing(&nothing) && says(of) => digits.first(of),
                        written => written,
                    };
                    if self.signed { with_sign(written, of) } else { written }
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
        let mut supported = width.map_or(places, |width| supported((width / one).abs() / 2.0));
        if let (Value::Ratio(_), Some((low, high))) = (kind, interval)
            && [low, high].iter().any(|end| reads_as_one(end, supported))
        {
            supported = supported.saturating_add(1);
        }
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

    /// The first digit, where it lies two places below the last at most.
    fn first(self, of: f64) -> String {
        Self { significant: 1, places: self.places + 2, ..self }.number(of)
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

/// Would this end of the interval of a ratio read as 1, and not tell on which side of it that lies?
fn reads_as_one(end: &Value, places: i32) -> bool {
    let step = 10_f64.powi(-places.clamp(0, 9));
    let is_one = |of: f64| (of - 1.0).abs() < 1e-9;
    end.number().is_some_and(|of| !is_one(of) && is_one((of / step).round() * step))
}

/// Is it told as nothing, or as less than its last digit?
fn is_nothing(digits: &str) -> bool {
    digits.starts_with('<') || digits == "0"
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
mod tests;
