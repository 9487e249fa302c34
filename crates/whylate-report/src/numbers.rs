//! How numbers are written, decided here for every report: digits, unit, sign, interval and resolution.
//!
//! A [`Value`] is a number before it is written, so that a sentence and a table that name the same figure
//! cannot write it in two ways. All is written with all of Unicode; [`scale::Letters`] has the plain forms.

use std::fmt::{self, Display};

use whylate_model::Nanos;
pub(crate) use whylate_model::thousands_apart as count;

pub(crate) mod alone;
pub(crate) mod respelled;
pub(crate) mod scale;
#[cfg(test)]
mod tests;

pub(crate) use respelled::Names;

pub(crate) use alone::{
    age, between, bit_rate, difference, difference_with_ends, exact, instant, known_to, number,
    p_value, percent, rate, signed, time, with_ends,
};

/// What stands where a number does not apply.
pub(crate) const ABSENT: &str = "–";

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

/// What of a cell is shown in a whole report: a first screen never has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Both,
    /// The value, with the digits that its interval supports.
    Value,
    Ends,
}

/// A value with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    value: Value,
    interval: Option<(Value, Value)>,
    resolution_ns: f64,
    beyond: bool,
    part: Part,
    /// It is a difference: what is more than nothing has its sign on a first screen.
    signed: bool,
    /// Its ends are bounds, and not the interval of an estimate.
    bounding: bool,
    /// A share that is compared with another: its difference from that is known to so much on each side.
    compared_to: Option<f64>,
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

    /// Compared with another whose difference from it lies within these: a share has no fewer places than that.
    pub(crate) fn compared(self, (low, high): (f64, f64)) -> Self {
        Self { compared_to: Some((high - low).abs() / 2.0), ..self }
    }

    /// Its ends bound what is not known otherwise: the lower one is never told as more than it is, the upper one
    /// never as less.
    pub(crate) fn bounding(self) -> Self {
        Self { bounding: true, ..self }
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
        let same = if figure.part == Part::Ends {
            self.interval == figure.interval
        } else {
            std::iter::once(&self.value).chain(ends).any(|value| *value == figure.value)
        };
        same || figure.is_in(&self.to_string())
    }

    /// Is it written in this text of a report, as a sentence has it or as a list does?
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let apart = |letter: char| letter.is_whitespace() || "();:–".contains(letter);
        let beside = ['~', '>', '<', '=', '+', '-', ',', '.', '%', '≥', '≤', '±', '−'];
        let digits = |word: &str| {
            let word = word.trim_matches(beside).replace(',', "");
            word.parse::<f64>().map_or(word, |number| number.to_string())
        };
        let text = Names::default().respelled(text);
        let words: Vec<String> = text.split(apart).map(digits).collect();
        let has = |own: String| {
            let mut own = own.split(apart).map(digits).filter(|word| !word.is_empty());
            own.all(|word| words.contains(&word))
        };
        has(self.said()) || has(self.value.to_string())
    }
}

/// With its interval, and with a unit of its own.
impl Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole(None))
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
            part: Part::Both,
            signed: false,
            bounding: false,
            compared_to: None,
            shown: None,
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cell::from(self.clone()).fmt(f)
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

/// Both ends of an interval, or that there is none.
pub(crate) fn interval<T: Into<Value>>(interval: Option<(T, T)>) -> Cell {
    Cell::from(Value::Absent).within(interval).ends()
}
