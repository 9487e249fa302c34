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
const PLAIN: [(char, &str); 7] =
    [('×', "x"), ('µ', "u"), ('–', "-"), ('−', "-"), ('≥', ">="), ('≤', "<="), ('±', "+-")];

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

/// Places behind the point of a time in a table that is not small.
const USUAL_PLACES: i32 = 2;

/// A time of less than this much of its table's unit has two digits that say something.
const SMALL: f64 = 0.1;

/// An end of an interval of times has a digit from so many nanoseconds on.
const TEN_NS: f64 = 10.0;

/// In a table, a time that is shorter may be a round number by chance.
const TEN_MICROSECONDS: f64 = 10_000.0;

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

    /// That of a table with these cells, of which those of its middles are to be read with three digits: no larger
    /// than that the least of them has one before the second place.
    pub(crate) fn of_middles<'a>(
        cells: impl Iterator<Item = &'a Cell>,
        middles: impl Iterator<Item = &'a Cell>,
    ) -> Option<Self> {
        let around = Self::of_table(cells)?;
        let least = middles.filter_map(Cell::time).map(f64::abs).filter(|ns| *ns > 0.0);
        let Some(least) = least.min_by(f64::total_cmp) else { return Some(around) };
        let reads = |unit: &Self| unit.ns <= around.ns && least >= SMALL * f64::from(unit.ns);
        Some([SECONDS, MILLISECONDS].into_iter().find(reads).unwrap_or(MICROSECONDS))
    }

    /// Places behind the point that a table with this unit has for a time: two, and of a small one as many as it
    /// has two digits with, down to ten nanoseconds.
    fn places(self, ns: f64) -> i32 {
        let (size, ten_ns) = (ns.abs() / f64::from(self.ns), self.ns.ilog10() as i32 - 1);
        if size > 0.0 && size < SMALL {
            (1 - size.log10().floor() as i32).min(ten_ns)
        } else {
            USUAL_PLACES
        }
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
    /// In a sentence, a cell or a list, with its unit: as many digits as in a table.
    Alone,
}

impl Cell {
    /// In a table whose times have this unit.
    pub(crate) fn in_table(&self, unit: Option<Unit>) -> String {
        let mark = if self.is_beyond() { MARK } else { "" };
        let written =
            || format!("{mark}{}", self.written(Place::Table(unit.unwrap_or(MICROSECONDS))));
        self.shown.clone().unwrap_or_else(written)
    }

    /// A column of a table whose times have this unit. What its clock does not resolve has the places that the other
    /// cells have.
    pub(crate) fn in_column(column: &[&Self], unit: Option<Unit>) -> Vec<String> {
        let bound =
            |cell: &Self| cell.shown.is_none() && cell.part != Part::Ends && cell.is_unresolved();
        let places = |cell: &&&Self| {
            let text = cell.in_table(unit);
            text.split_once('.').map_or(0, |(_, behind)| {
                behind.chars().take_while(char::is_ascii_digit).count() as i32
            })
        };
        let others = column.iter().filter(|cell| cell.is_time() && !bound(cell));
        let most = others.map(|cell| places(&cell)).max().unwrap_or(0).max(USUAL_PLACES);
        let place = Place::Table(unit.unwrap_or(MICROSECONDS));
        let written = |cell: &&Self| {
            if bound(cell) { cell.unresolved(place, most) } else { cell.in_table(unit) }
        };
        column.iter().map(written).collect()
    }

    /// In a sentence, with the digits of tables.
    pub(crate) fn said(&self) -> String {
        self.written(Place::Alone)
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
        if self.is_unresolved() {
            return self.unresolved(place, USUAL_PLACES);
        }
        let digits = Digits::of(&self.value, self.interval.as_ref(), place, self.signed);
        let digits = match (&self.value, self.compared_to) {
            (Value::Share(_), Some(to_each_side)) => digits.as_fine_as(to_each_side),
            _ => digits,
        };
        let digits = digits.write(&self.value);
        // Nothing at least is no bound.
        let says = !digits.starts_with('≥') || digits.contains(|digit| matches!(digit, '1'..='9'));
        let digits = if says { digits } else { ABSENT.to_owned() };
        match self.value.number() {
            Some(of) if self.signed => with_sign(digits, of),
            _ => digits,
        }
    }

    /// Is it shorter than what its clock tells apart?
    fn is_unresolved(&self) -> bool {
        matches!(self.value, Value::Time(ns) if (0.0..self.resolution_ns).contains(&ns))
    }

    /// Less than the resolution, in a table with so many places at most.
    fn unresolved(&self, place: Place, places: i32) -> String {
        let least = Value::Time(self.resolution_ns.ceil());
        let digits = Digits::of(&least, None, place, false);
        let shown = match place {
            Place::Table(_) => Digits { places: digits.places.min(places), ..digits },
            Place::Alone => digits,
        };
        let shown = shown.write(&least);
        if shown.starts_with('<') { shown } else { format!("<{shown}") }
    }

    /// Both ends with the digits of the value; of an open interval the one that is known.
    fn ends_written(&self, place: Place) -> String {
        let Some((low, high)) = &self.interval else { return ABSENT.to_owned() };
        let digits = Digits::of(&self.value, self.interval.as_ref(), place, self.signed);
        match (low.number(), high.number()) {
            (Some(from), Some(to)) => {
                let signs = from < 0.0 || self.signed;
                let between = if signs { " to " } else { "–" };
                // Of a difference each end has a sign that says something, and of times an order of size.
                let is_time = [low, high].iter().any(|end| matches!(end, Value::Time(_)));
                let tenth = digits.one / 10_f64.powi(digits.places + 1) * (1.0 - 1e-9);
                let says = |of: f64| {
                    if is_time { of.abs() >= TEN_NS } else { signs && of.abs() >= tenth }
                };
                // Both have the same places: where the lower one has none left, those of a smaller unit.
                let coarse = place == Place::Alone && is_time && from >= TEN_NS;
                let write = |digits: Digits, of: f64, whole: fn(f64) -> f64| {
                    if self.bounding { digits.bound(of, whole) } else { digits.number(of) }
                };
                let digits = if coarse && is_nothing(&write(digits, from, f64::floor)) {
                    digits.finer().unwrap_or(digits)
                } else {
                    digits
                };
                let end = |of: f64, whole: fn(f64) -> f64| {
                    let written = match write(digits, of, whole) {
                        nothing if is_nothing(&nothing) && says(of) => {
                            write(digits.first(), of, whole)
                        }
                        written => written,
                    };
                    if self.signed { with_sign(written, of) } else { written }
                };
                let (low, high) = (end(from, f64::floor), end(to, f64::ceil));
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
    fn of(value: &Value, interval: Option<&(Value, Value)>, place: Place, signed: bool) -> Self {
        let end = interval.and_then(|(low, high)| match (low.number(), high.number()) {
            (Some(low), Some(high)) => Some(low.abs().max(high.abs())),
            (low, high) => low.or(high),
        });
        let is_below = |of: &Value| of.number().is_some_and(|of| of < 0.0);
        let spans = interval.is_some_and(|(low, high)| is_below(low) && !is_below(high));
        let about = match (value.number(), end) {
            // A difference may be next to nothing, and known to much more than that.
            (Some(value), Some(end)) if (signed || spans) && place == Place::Alone => {
                value.abs().max(end)
            }
            (value, end) => value.or(end).unwrap_or(0.0),
        };
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
        };
        let width = interval.and_then(|(low, high)| Some(high.number()? - low.number()?));
        let mut supported = width.map_or(places, |width| supported((width / one).abs() / 2.0));
        if let (Value::Ratio(_), Some((low, high))) = (kind, interval)
            && [low, high].iter().any(|end| reads_as_one(end, supported))
        {
            supported = supported.saturating_add(1);
        }
        let zeros = !is_chosen(kind, place) || width.is_some();
        Self { one, unit, significant, places: places.min(supported).max(0), zeros }
    }

    /// With the places of what is known to so much on each side, where that has more.
    fn as_fine_as(self, to_each_side: f64) -> Self {
        let places = supported(to_each_side / self.one).min(USUAL_PLACES);
        if places < 1 {
            return self;
        }
        Self { significant: 3, places: places.max(self.places), ..self }
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
        if size == 0.0 {
            return self.number(of);
        }
        let places = (self.significant - 1 - size.abs().log10().floor() as i32).min(self.places);
        let step = 10_f64.powi(-places);
        // A number that has no more digits is not the one beside it for being stored as a little less or more.
        let steps = size / step;
        let near = (steps - steps.round()).abs() < 1e-6;
        self.number(if near { steps.round() } else { whole(steps) } * step * self.one)
    }

    /// Those with the next smaller unit of time, and as many of them before the unit; none below nanoseconds.
    fn finer(self) -> Option<Self> {
        let units = [SECONDS, MILLISECONDS, MICROSECONDS, NANOSECONDS];
        let at = units.iter().position(|unit| unit.behind == self.unit)?;
        let unit = units.get(at + 1)?;
        let places = (self.places - 3).max(0);
        Some(Self { one: f64::from(unit.ns), unit: unit.behind, places, ..self })
    }

    /// Those of the first digit alone, where it lies two places below the last at most.
    fn first(self) -> Self {
        Self { significant: 1, places: self.places + 2, ..self }
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

/// Is it a time that somebody chose, whose zeros at the end carry nothing? What was measured is hardly ever a number
/// of three digits to the nanosecond. In a table, times of a few microseconds may be.
fn is_chosen(value: &Value, place: Place) -> bool {
    let (Value::Time(ns) | Value::AtLeast(ns)) = *value else { return false };
    let size = ns.abs();
    if !size.is_finite() || (matches!(place, Place::Table(_)) && size < TEN_MICROSECONDS) {
        return false;
    }
    let step = 10_f64.powi((size.max(1.0).log10().floor() as i32 - 2).max(0));
    // A sum of fractions is not less of a number for being stored as a little less or more.
    (size / step - (size / step).round()).abs() < 1e-9
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
