//! A reader of JSON as people write it for rt-app: comments, trailing commas, a key more than once,
//! keys without a value and without quotes.
//!
//! Entries stay in the order of the file, and every value knows its place in it. Any bytes give a
//! value or a reason with a position, never a panic; depth and number of values are limited. Does
//! not know what the keys mean.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

use crate::file::Position;

/// A workload of a thousand threads has fewer.
pub const LONGEST: usize = 1 << 20;
/// A workload needs six: file, tasks, task, phases, phase, event.
const DEEPEST: usize = 32;
/// Values and entries of one file: as many as a file of that length has where each is a word.
const MOST_VALUES: usize = 1 << 16;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its first character.
    pub at: Position,
    /// What it is.
    pub value: Value,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing: the key stands alone.
    Absent,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without a fraction.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object: its entries in their order, the same key as often as it stands there.
    Object(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Where the key stands.
    pub at: Position,
    /// The key.
    pub key: String,
    /// Its value; [`Value::Absent`] where there is none.
    pub node: Node,
}

/// Why a text is not of this format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Where.
    pub at: Position,
    /// What stands there and what was expected.
    pub reason: String,
}

impl Value {
    /// What it is, for an error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Absent => "nothing",
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Integer(_) => "a whole number",
            Self::Real(_) => "a number with a fraction",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads a text, which is one value.
pub fn read(text: &str) -> Result<Node, Malformed> {
    let start = Position { line: 1, column: 1 };
    if text.len() > LONGEST {
        let reason = format!("the file has more than {LONGEST} bytes: split the workload");
        return Err(Malformed { at: start, reason });
    }
    let mut reader = Reader { rest: text.chars().peekable(), at: start, depth: 0, values: 0 };
    reader.skip_blank()?;
    let node = reader.value()?;
    reader.skip_blank()?;
    match reader.peek() {
        None => Ok(node),
        Some(c) => {
            Err(reader.wrong(&format!("the end of the file was expected, not {}", shown(c))))
        }
    }
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    at: Position,
    depth: usize,
    values: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.at = Position { line: self.at.line + 1, column: 1 };
        } else {
            self.at.column += 1;
        }
        Some(c)
    }

    fn wrong(&self, reason: &str) -> Malformed {
        Malformed { at: self.at, reason: reason.to_owned() }
    }

    /// What was expected, and what stands there.
    fn expected(&mut self, what: &str) -> Malformed {
        let found =
            self.peek().map_or("the file ends here".to_owned(), |c| format!("not {}", shown(c)));
        self.wrong(&format!("{what} was expected; {found}"))
    }

    /// White space and comments.
    fn skip_blank(&mut self) -> Result<(), Malformed> {
        loop {
            match self.peek() {
                Some(c) if c.is_whitespace() || c == '\u{feff}' => {
                    self.next();
                }
                Some('/') => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) -> Result<(), Malformed> {
        let begin = self.at;
        self.next();
        match self.next() {
            Some('/') => {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.next();
                }
                Ok(())
            }
            Some('*') => {
                let mut star = false;
                while let Some(c) = self.next() {
                    if star && c == '/' {
                        return Ok(());
                    }
                    star = c == '*';
                }
                let reason = "the comment that begins here does not end: write */".to_owned();
                Err(Malformed { at: begin, reason })
            }
            _ => {
                let reason = "a value was expected, not `/`: a comment begins with // or /*";
                Err(Malformed { at: begin, reason: reason.to_owned() })
            }
        }
    }

    fn value(&mut self) -> Result<Node, Malformed> {
        let at = self.at;
        self.count()?;
        let value = match self.peek() {
            Some('{') => self.nested(Self::object)?,
            Some('[') => self.nested(Self::list)?,
            Some('"') => Value::Text(self.text()?),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number()?,
            Some(c) if c.is_ascii_alphabetic() => self.word()?,
            _ => return Err(self.expected("a value")),
        };
        Ok(Node { at, value })
    }

    fn count(&mut self) -> Result<(), Malformed> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(self.wrong(&format!("the file has more than {MOST_VALUES} values")));
        }
        Ok(())
    }

    fn nested(
        &mut self,
        inside: fn(&mut Self) -> Result<Value, Malformed>,
    ) -> Result<Value, Malformed> {
        if self.depth == DEEPEST {
            return Err(self.wrong(&format!("more than {DEEPEST} values inside each other")));
        }
        self.depth += 1;
        self.next();
        let value = inside(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, Malformed> {
        let mut entries = Vec::new();
        loop {
            self.skip_blank()?;
            if self.closes('}')? {
                return Ok(Value::Object(entries));
            }
            let at = self.at;
            let key = match self.peek() {
                Some('"') => self.text()?,
                Some(c) if c.is_alphabetic() || c == '_' => self.bare(),
                _ => return Err(self.expected("a key or }")),
            };
            self.skip_blank()?;
            let node = if self.peek() == Some(':') {
                self.next();
                self.skip_blank()?;
                self.value()?
            } else {
                self.count()?;
                Node { at, value: Value::Absent }
            };
            entries.push(Entry { at, key, node });
            self.separator('}', "a comma or }")?;
        }
    }

    fn list(&mut self) -> Result<Value, Malformed> {
        let mut items = Vec::new();
        loop {
            self.skip_blank()?;
            if self.closes(']')? {
                return Ok(Value::List(items));
            }
            items.push(self.value()?);
            self.separator(']', "a comma or ]")?;
        }
    }

    fn closes(&mut self, end: char) -> Result<bool, Malformed> {
        match self.peek() {
            Some(c) if c == end => {
                self.next();
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Err(self.expected(&format!("{end}"))),
        }
    }

    /// A comma, or the end that follows.
    fn separator(&mut self, end: char, what: &str) -> Result<(), Malformed> {
        self.skip_blank()?;
        match self.peek() {
            Some(',') => {
                self.next();
                Ok(())
            }
            Some(c) if c == end => Ok(()),
            _ => Err(self.expected(what)),
        }
    }

    fn bare(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || "_-.".contains(*c)) {
            word.push(c);
            self.next();
        }
        word
    }

    fn word(&mut self) -> Result<Value, Malformed> {
        let at = self.at;
        let word = self.bare();
        // workgen and Python write True and False.
        match word.to_ascii_lowercase().as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            _ => {
                let reason = format!("a value was expected, not `{word}`: text stands in quotes");
                Err(Malformed { at, reason })
            }
        }
    }

    fn number(&mut self) -> Result<Value, Malformed> {
        let at = self.at;
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || "+-.".contains(*c))
        {
            word.push(c);
            self.next();
        }
        if let Ok(whole) = word.parse::<i64>() {
            return Ok(Value::Integer(whole));
        }
        let begins = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        match word.parse::<f64>() {
            Ok(real) if real.is_finite() && begins => Ok(Value::Real(real)),
            _ => Err(Malformed { at, reason: format!("`{word}` is no number") }),
        }
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let begin = self.at;
        self.next();
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape(at)?),
                Some('\n') | None => {
                    let reason = "the text that begins here does not end: write \"".to_owned();
                    return Err(Malformed { at: begin, reason });
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self, at: Position) -> Result<char, Malformed> {
        let wrong = |what: &str| {
            let reason =
                format!("{what} after \\: write \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u0041");
            Malformed { at, reason }
        };
        match self.next() {
            Some(c @ ('"' | '\\' | '/')) => Ok(c),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => {
                let high = self.unit(at)?;
                // A pair of surrogates stands for one character.
                let mut units = vec![high];
                if (0xd800..0xdc00).contains(&high) {
                    if self.next() != Some('\\') || self.next() != Some('u') {
                        return Err(wrong("half of a pair of surrogates"));
                    }
                    units.push(self.unit(at)?);
                }
                match char::decode_utf16(units).next() {
                    Some(Ok(c)) => Ok(c),
                    _ => Err(wrong("half of a pair of surrogates")),
                }
            }
            Some(c) => Err(wrong(&shown(c))),
            None => Err(wrong("nothing")),
        }
    }

    /// Four hexadecimal digits.
    fn unit(&mut self, at: Position) -> Result<u16, Malformed> {
        let mut unit = 0u16;
        for _ in 0..4 {
            let digit = self.next().and_then(|c| c.to_digit(16));
            let Some(digit) = digit else {
                let reason = "four hexadecimal digits were expected after \\u".to_owned();
                return Err(Malformed { at, reason });
            };
            unit = unit << 4 | digit as u16;
        }
        Ok(unit)
    }
}

/// A character in an error.
fn shown(c: char) -> String {
    if c.is_control() { format!("`{}`", c.escape_debug()) } else { format!("`{c}`") }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => Ok(()),
            Self::Null => f.write_str("null"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number:?}"),
            Self::Text(text) => quoted(f, text),
            Self::List(items) => {
                f.write_str("[")?;
                items.iter().try_for_each(|item| write!(f, "{},", item.value))?;
                f.write_str("]")
            }
            Self::Object(entries) => {
                f.write_str("{")?;
                for entry in entries {
                    quoted(f, &entry.key)?;
                    if entry.node.value != Self::Absent {
                        write!(f, ":{}", entry.node.value)?;
                    }
                    f.write_str(",")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(text: &str) -> Vec<(String, Value, (usize, usize))> {
        let Value::Object(entries) = read(text).unwrap().value else { panic!("{text}") };
        let at = |entry: &Entry| (entry.node.at.line, entry.node.at.column);
        entries.iter().map(|e| (e.key.clone(), e.node.value.clone(), at(e))).collect()
    }

    #[test]
    fn what_people_write_is_read_in_its_order_with_its_places() {
        let text = "/* a\n * b **/ { // c\n \"run\" : 10, run: -2.5e1,\n\t\"run\"/**/:\"x\",\"suspend\",\n}\n";
        let own = |key: &str, value, at| (key.to_owned(), value, at);
        let expected = [
            own("run", Value::Integer(10), (3, 10)),
            own("run", Value::Real(-25.0), (3, 19)),
            own("run", Value::Text("x".to_owned()), (4, 12)),
            own("suspend", Value::Absent, (4, 16)),
        ];
        assert_eq!(entries(text), expected);
        let all = r#"{"a":[1,true,False,null,{}],"b":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00"}"#;
        let kinds = entries(all);
        assert_eq!(kinds[1].1, Value::Text("\"\\/\u{8}\u{c}\n\r\tä😀".to_owned()));
        let Value::List(items) = &kinds[0].1 else { panic!() };
        assert_eq!(items.len(), 5);
    }

    #[test]
    fn every_error_names_its_place_and_what_was_expected() {
        for (text, place, word) in [
            ("", (1, 1), "a value was expected; the file ends"),
            ("{\n \"a\" 5}", (2, 6), "a comma or } was expected; not `5`"),
            ("{\"a\":}", (1, 6), "a value was expected; not `}`"),
            ("{\"a\":1", (1, 7), "a comma or }"),
            ("{\"a\":1,", (1, 8), "} was expected; the file ends"),
            ("{5:1}", (1, 2), "a key or }"),
            ("[1 2]", (1, 4), "a comma or ]"),
            ("{} x", (1, 4), "the end of the file"),
            ("[\"a]\n", (1, 2), "does not end"),
            ("{ /* x", (1, 3), "does not end"),
            ("[/x]", (1, 2), "begins with //"),
            ("[yes]", (1, 2), "not `yes`"),
            ("[1x]", (1, 2), "`1x` is no number"),
            ("[1e999]", (1, 2), "no number"),
            ("[-inf]", (1, 2), "no number"),
            ("[\"\\x\"]", (1, 3), "`x` after \\"),
            ("[\"\\u12\"]", (1, 3), "hexadecimal"),
            ("[\"\\ud800x\"]", (1, 3), "surrogates"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.at.line, error.at.column), place, "{text}: {}", error.reason);
            assert!(error.reason.contains(word), "{text}: {}", error.reason);
        }
    }

    #[test]
    fn size_depth_and_number_are_limited() {
        assert!(read(&" ".repeat(LONGEST + 1)).unwrap_err().reason.contains("more than"));
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(&deep(DEEPEST)).is_ok());
        assert!(read(&deep(DEEPEST + 1)).unwrap_err().reason.contains("inside each other"));
        let wide = format!("[{}]", "1,".repeat(MOST_VALUES));
        assert!(read(&wide).unwrap_err().reason.contains("values"));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let at = Position { line: 1, column: 1 };
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Integer),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::Real),
            ".{0,8}".prop_map(Value::Text),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            let node = move |value| Node { at, value };
            let keyed = prop_oneof![4 => inner.clone(), 1 => Just(Value::Absent)];
            prop_oneof![
                prop::collection::vec(inner.prop_map(node), 0..5).prop_map(Value::List),
                prop::collection::vec((".{0,6}", keyed), 0..5).prop_map(move |entries| {
                    let entry = |(key, value)| Entry { at, key, node: node(value) };
                    Value::Object(entries.into_iter().map(entry).collect())
                }),
            ]
        })
    }

    /// The same without its places.
    fn placeless(value: Value) -> Value {
        let at = Position { line: 1, column: 1 };
        let node = |node: Node| Node { at, value: placeless(node.value) };
        match value {
            Value::List(items) => Value::List(items.into_iter().map(node).collect()),
            Value::Object(entries) => Value::Object(
                entries
                    .into_iter()
                    .map(|entry| Entry { at, key: entry.key, node: node(entry.node) })
                    .collect(),
            ),
            // A whole number in a float prints as one with a fraction, and stays one.
            other => other,
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(value in any_value()) {
            let read = read(&value.to_string()).unwrap();
            prop_assert_eq!(placeless(read.value), value);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn no_text_of_the_format_panics(text in "[\\[\\]{}\":,/*\\\\u0-9a-z\n .-]{0,60}") {
            let _ = read(&text);
        }
    }
}
