//! How a thread model or a timer is asked for: a name and its arguments.
//!
//! `PERIODIC 3ms 8ms`, `PERIODIC uniform(2ms,4ms) 8ms`, `grid(10ms)`, `CPU`. Arguments stand behind
//! the name, apart by spaces, or in parentheses, apart by commas; an argument may itself be a call.
//! The grammar knows no names: whoever runs a model knows which arguments it takes.

use std::fmt;
use std::str::FromStr;

use whylate_model::Nanos;

/// The longest text of a call: a thousand times what the longest model needs.
const LONGEST: usize = 4_096;
/// Arguments of one call; no model takes more than a handful.
const MOST_ARGUMENTS: usize = 16;

/// A name and its arguments, each still as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// The name, as written.
    pub name: String,
    /// The arguments, as written, calls within them unopened.
    pub arguments: Vec<String>,
}

/// Why a text is no call, or an argument is not what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nothing was written.
    #[error("a name is missing: write one such as `PERIODIC 3ms 8ms`")]
    Empty,
    /// Far longer than any call.
    #[error("{length} bytes are no name with arguments: the most is {LONGEST}")]
    TooLong {
        /// Length.
        length: usize,
    },
    /// More arguments than anything takes.
    #[error("`{name}` has {count} arguments: the most is {MOST_ARGUMENTS}")]
    TooMany {
        /// Of what.
        name: String,
        /// How many.
        count: usize,
    },
    /// A parenthesis without its other one.
    #[error("`{text}` opens a parenthesis that it does not close, or closes one it did not open")]
    Unbalanced {
        /// As written.
        text: String,
    },
    /// An argument is missing.
    #[error("`{call}` lacks its {what}: write `{usage}`")]
    Missing {
        /// As written.
        call: String,
        /// Which argument.
        what: &'static str,
        /// How it is written.
        usage: &'static str,
    },
    /// There is an argument too many.
    #[error("`{call}` has {count} arguments too many: write `{usage}`")]
    Surplus {
        /// As written.
        call: String,
        /// How many too many.
        count: usize,
        /// How it is written.
        usage: &'static str,
    },
    /// An argument is not what stands there.
    #[error("{what} of `{call}`: {reason}")]
    Argument {
        /// As written.
        call: String,
        /// Which argument.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl Call {
    /// A call without arguments.
    #[must_use]
    pub fn bare(name: &str) -> Self {
        Self { name: name.to_owned(), arguments: Vec::new() }
    }

    /// Reads a call.
    pub fn parse(text: &str) -> Result<Self, CallError> {
        if text.len() > LONGEST {
            return Err(CallError::TooLong { length: text.len() });
        }
        let words = split(text, text.trim(), char::is_whitespace)?;
        let mut words = words.into_iter();
        let Some(first) = words.next() else { return Err(CallError::Empty) };
        let (name, mut arguments) = match first.split_once('(') {
            None => (first.as_str(), Vec::new()),
            Some((name, rest)) => {
                let inside = rest.strip_suffix(')').unwrap_or(rest);
                (name, split(text, inside, |c| c == ',')?)
            }
        };
        if name.is_empty() {
            return Err(CallError::Empty);
        }
        arguments.extend(words);
        if arguments.len() > MOST_ARGUMENTS {
            let (name, count) = (name.to_owned(), arguments.len());
            return Err(CallError::TooMany { name, count });
        }
        Ok(Self { name: name.to_owned(), arguments })
    }

    /// Is this the name, whatever the case of its letters?
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Argument `index`, which `what` names in the error.
    pub fn argument(
        &self,
        index: usize,
        what: &'static str,
        usage: &'static str,
    ) -> Result<&str, CallError> {
        let missing = || CallError::Missing { call: self.to_string(), what, usage };
        self.arguments.get(index).map(String::as_str).ok_or_else(missing)
    }

    /// Argument `index` as a time above zero.
    pub fn time(
        &self,
        index: usize,
        what: &'static str,
        usage: &'static str,
    ) -> Result<Nanos, CallError> {
        let text = self.argument(index, what, usage)?;
        match text.parse::<Nanos>() {
            Ok(Nanos(0)) => Err(self.refused(what, "the time must be above zero".to_owned())),
            Ok(nanos) => Ok(nanos),
            Err(error) => Err(self.refused(what, error.to_string())),
        }
    }

    /// Argument `index` as a size in bytes above zero: a plain number is KiB, as in the paper, and
    /// `64KiB` or `1MiB` say so.
    pub fn size(
        &self,
        index: usize,
        what: &'static str,
        usage: &'static str,
    ) -> Result<u64, CallError> {
        /// More than any cache of today, and two of them still fit into a small machine's memory.
        const LARGEST: u64 = 1 << 30;
        let text = self.argument(index, what, usage)?;
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let scale = match unit.to_ascii_lowercase().as_str() {
            "" | "k" | "kb" | "kib" => Some(1 << 10),
            "m" | "mb" | "mib" => Some(1 << 20),
            "g" | "gb" | "gib" => Some(1 << 30),
            _ => None,
        };
        let number = number.parse::<u64>().ok();
        match number.zip(scale).and_then(|(number, scale)| number.checked_mul(scale)) {
            Some(0) => Err(self.refused(what, "zero is no size".to_owned())),
            Some(bytes) if bytes <= LARGEST => Ok(bytes),
            Some(_) => Err(self.refused(what, format!("`{text}` is more than 1GiB"))),
            None => {
                let reason = format!("`{text}` is no size: write it in KB, as 64, or as 1MiB");
                Err(self.refused(what, reason))
            }
        }
    }

    /// Refuses arguments beyond the first `count`.
    pub fn takes(&self, count: usize, usage: &'static str) -> Result<(), CallError> {
        match self.arguments.len().checked_sub(count) {
            None | Some(0) => Ok(()),
            Some(count) => Err(CallError::Surplus { call: self.to_string(), count, usage }),
        }
    }

    /// An argument that is not what was expected.
    #[must_use]
    pub fn refused(&self, what: &'static str, reason: String) -> CallError {
        CallError::Argument { call: self.to_string(), what, reason }
    }
}

impl FromStr for Call {
    type Err = CallError;

    fn from_str(text: &str) -> Result<Self, CallError> {
        Self::parse(text)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

/// The calls of a list apart by commas, such as `HR, grid(10ms)`.
pub fn list(text: &str) -> Result<Vec<Call>, CallError> {
    pieces(text, |c| c == ',')?.iter().map(|piece| Call::parse(piece)).collect()
}

/// The pieces of `text` between separators that are not inside parentheses.
pub(crate) fn pieces(
    text: &str,
    is_separator: impl Fn(char) -> bool,
) -> Result<Vec<String>, CallError> {
    match text.len() {
        ..=LONGEST => split(text, text, is_separator),
        length => Err(CallError::TooLong { length }),
    }
}

/// Cuts `text` at each separator that is not inside parentheses; empty pieces are left out.
fn split(
    whole: &str,
    text: &str,
    is_separator: impl Fn(char) -> bool,
) -> Result<Vec<String>, CallError> {
    let mut pieces = vec![String::new()];
    let mut depth = 0u32;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Err(CallError::Unbalanced { text: whole.to_owned() }),
            ')' => depth -= 1,
            _ => {}
        }
        match pieces.last_mut() {
            Some(piece) if depth > 0 || !is_separator(c) => piece.push(c),
            _ => pieces.push(String::new()),
        }
    }
    if depth > 0 {
        return Err(CallError::Unbalanced { text: whole.to_owned() });
    }
    let trimmed = pieces.iter().map(|piece| piece.trim().to_owned());
    Ok(trimmed.filter(|piece| !piece.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(name: &str, arguments: &[&str]) -> Call {
        let arguments = arguments.iter().map(|&a| a.to_owned()).collect();
        Call { name: name.to_owned(), arguments }
    }

    #[test]
    fn arguments_stand_behind_the_name_or_in_parentheses() {
        for (text, expected) in [
            ("CPU", call("CPU", &[])),
            ("PERIODIC 3ms 8ms", call("PERIODIC", &["3ms", "8ms"])),
            ("PERIODIC uniform(2ms, 4ms)  8ms", call("PERIODIC", &["uniform(2ms, 4ms)", "8ms"])),
            ("grid(10ms)", call("grid", &["10ms"])),
            ("bimodal(1ms,9ms,5%)", call("bimodal", &["1ms", "9ms", "5%"])),
            ("LAT()", call("LAT", &[])),
        ] {
            assert_eq!(Call::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        assert_eq!(Call::parse("  "), Err(CallError::Empty));
        assert_eq!(Call::parse("(1ms)"), Err(CallError::Empty));
        for text in ["a(b", "a)b", "a (b))"] {
            assert!(matches!(Call::parse(text), Err(CallError::Unbalanced { .. })), "{text}");
        }
        assert!(matches!(Call::parse(&"x".repeat(5_000)), Err(CallError::TooLong { .. })));
        assert!(matches!(Call::parse(&"x ".repeat(18)), Err(CallError::TooMany { .. })));
    }

    #[test]
    fn a_missing_a_wrong_and_a_surplus_argument_are_named() {
        let usage = "PERIODIC <amount> <period>";
        let short = Call::parse("PERIODIC 3ms").unwrap();
        let text = short.time(1, "period", usage).unwrap_err().to_string();
        assert_eq!(text, "`PERIODIC 3ms` lacks its period: write `PERIODIC <amount> <period>`");
        for word in ["3", "0ms", "-1ms", "abc", "3 ms"] {
            let call = call("PERIODIC", &[word]);
            assert!(call.time(0, "amount", usage).is_err(), "{word}");
        }
        assert!(Call::parse("LAT 1ms 2ms").unwrap().takes(1, "LAT <period>").is_err());
    }

    #[test]
    fn a_plain_size_is_in_kilobytes() {
        let usage = "CPU_SCAN <size>";
        let size = |text: &str| call("CPU_SCAN", &[text]).size(0, "size", usage);
        for (text, bytes) in
            [("100", 102_400), ("64KiB", 65_536), ("1MiB", 1 << 20), ("1G", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "-1", "1.5", "2GiB", "99999999999999999999", "9ms"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_call_reads_back_as_it_prints(
            name in "[A-Za-z_]{1,12}",
            arguments in proptest::collection::vec("[a-z0-9.]{1,8}(\\([0-9]{1,3}ms\\))?", 0..5),
        ) {
            let call = Call { name, arguments };
            prop_assert_eq!(Call::parse(&call.to_string()), Ok(call));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = Call::parse(&text);
        }
    }
}
