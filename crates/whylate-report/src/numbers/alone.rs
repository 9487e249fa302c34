//! Numbers that stand in no cell: in a list, among words, or in a picture.
//!
//! Whatever is no time, share, rate or count is a plain number, whose unit the words behind it name.

use whylate_model::Nanos;

use super::scale::supported;
use super::{ABSENT, Cell, Value, count};

/// A p-value below this is told as less.
const LEAST_P: f64 = 0.001;

/// A time with the unit that gives 1 to 999: `9 ns`, `1.25 µs`, `−64 ms`.
pub(crate) fn time(ns: f64) -> String {
    Value::Time(ns).to_string()
}

/// A difference of times, always with its sign: `+1.25 µs`, `−9 ns`, `0 ns`.
pub(crate) fn difference(ns: f64) -> String {
    Cell::from(Value::Time(ns)).signed().to_string()
}

/// A share as a percentage: `<0.1%`, `4.5%`, `47%`, `100%`.
pub(crate) fn percent(share: f64) -> String {
    Value::Share(share).to_string()
}

/// A rate per second: `1,070/s`, `0.3/s`.
pub(crate) fn rate(per_second: f64) -> String {
    Value::Rate(per_second).to_string()
}

/// A plain number: `1.5`, `0.03`, `<0.01`, `1,070`.
pub(crate) fn number(of: f64) -> String {
    Value::Ratio(of).to_string()
}

/// A plain difference, always with its sign.
pub(crate) fn signed(of: f64) -> String {
    Cell::from(Value::Ratio(of)).signed().to_string()
}

/// An interval, one of whose ends may not be known: `1.8–2.3%`, `≥15 ms`, `−4 to 8 µs`.
pub(crate) fn between(low: Option<Value>, high: Option<Value>) -> String {
    let ends = [low, high].map(|end| end.unwrap_or(Value::Absent));
    let [low, high] = ends;
    Cell::from(Value::Absent).within(Some((low, high))).ends().to_string()
}

/// A number and its interval, which stand in two columns: both with the digits that the interval supports.
pub(crate) fn with_ends(of: Value, ends: Option<(Value, Value)>) -> [String; 2] {
    apart(&Cell::from(of).within(ends))
}

/// The same of a difference, which has its sign.
pub(crate) fn difference_with_ends(of: Value, ends: Option<(Value, Value)>) -> [String; 2] {
    apart(&Cell::from(of).within(ends).signed())
}

fn apart(of: &Cell) -> [String; 2] {
    [of.alone().to_string(), of.ends().to_string()]
}

/// A number with the places behind the point that it is known to, and how well that is, each with this unit:
/// `2,445.4302 ± 0.0008 MHz`.
pub(crate) fn known_to(of: f64, to_each_side: f64, unit: &str) -> String {
    /// What a double of some thousands has.
    const MOST: i32 = 9;
    if !of.is_finite() || !to_each_side.is_finite() || to_each_side <= 0.0 {
        return format!("{} {unit}", number(of));
    }
    let places = supported(to_each_side).clamp(0, MOST) as usize;
    format!("{} ± {to_each_side:.places$} {unit}", placed(of, places))
}

/// So many places behind the point, and thousands apart before it.
fn placed(of: f64, places: usize) -> String {
    let digits = format!("{:.places$}", of.abs());
    let (whole, behind) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = whole.parse().map_or(whole.to_owned(), count);
    let nothing = digits.chars().all(|digit| matches!(digit, '0' | '.'));
    let sign = if of < 0.0 && !nothing { "−" } else { "" };
    let point = if behind.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{behind}")
}

/// When something was, to the microsecond: `0.266315 s`.
pub(crate) fn instant(at: Nanos) -> String {
    format!("{} s", placed(at.0 as f64 / 1e9, 6))
}

/// A place in a gap, to the nanosecond in microseconds: parts of it are to be told apart.
pub(crate) fn exact(ns: f64) -> String {
    format!("{} µs", placed(ns / 1e3, 3))
}

/// How much is sent each second: `94 Mbit/s`, `1.25 Gbit/s`.
pub(crate) fn bit_rate(bits_per_second: f64) -> String {
    const GIGA: f64 = 1e9;
    match bits_per_second {
        _ if !bits_per_second.is_finite() => ABSENT.to_owned(),
        GIGA.. => format!("{} Gbit/s", number(bits_per_second / GIGA)),
        _ => format!("{} Mbit/s", number(bits_per_second / 1e6)),
    }
}

/// How probable it is: `0.207`, `<0.001`.
pub(crate) fn p_value(p: f64) -> String {
    match p {
        _ if !p.is_finite() => ABSENT.to_owned(),
        LEAST_P.. => format!("{p:.3}"),
        _ => format!("<{LEAST_P}"),
    }
}

/// How long ago something was, in the unit in which people count that.
pub(crate) fn age(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6_000.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}
