//! Elements of an SVG picture, written one after another.

use std::fmt::{self, Display, Write};

use whylate_model::Printable;

/// Width of every picture in its own units; a page scales it.
pub(super) const WIDTH: f64 = 640.0;

/// Width of a letter where the picture is small, and its letters the largest they get.
pub(super) const GLYPH: f64 = 10.5;

/// A picture under construction.
pub(super) struct Svg {
    text: String,
    open: Vec<&'static str>,
}

/// An attribute: name and value.
pub(super) type Attribute<'a> = (&'static str, &'a dyn Display);

impl Svg {
    /// A picture of [`WIDTH`] and `height`, with the words for those who cannot see it.
    pub(super) fn new(height: f64, title: &str, description: &str) -> Self {
        let mut svg = Self { text: String::new(), open: Vec::new() };
        let view = format!("0 0 {} {}", Coordinate(WIDTH), Coordinate(height));
        svg.open("svg", &[("class", &"figure"), ("viewBox", &view), ("role", &"img")]);
        svg.titled(title);
        svg.element("desc", &[], description);
        svg
    }

    /// Opens an element; [`Svg::close`] ends the innermost.
    pub(super) fn open(&mut self, name: &'static str, attributes: &[Attribute]) {
        self.start(name, attributes);
        self.text.push('>');
        self.open.push(name);
    }

    pub(super) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            let _ = write!(self.text, "</{name}>");
        }
    }

    /// An element without content.
    pub(super) fn empty(&mut self, name: &'static str, attributes: &[Attribute]) {
        self.start(name, attributes);
        self.text.push_str("/>");
    }

    /// An element with text.
    pub(super) fn element(&mut self, name: &'static str, attributes: &[Attribute], text: &str) {
        self.start(name, attributes);
        let _ = write!(self.text, ">{}</{name}>", escaped(text));
    }

    /// Words that show when the pointer rests on the open element.
    pub(super) fn titled(&mut self, text: &str) {
        self.element("title", &[], text);
    }

    pub(super) fn words(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let at = (Coordinate(x), Coordinate(y));
        self.element("text", &[("x", &at.0), ("y", &at.1), ("class", &class)], text);
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let path =
            format!("M{} {}L{} {}", Coordinate(x1), Coordinate(y1), Coordinate(x2), Coordinate(y2));
        self.path(class, &path);
    }

    pub(super) fn path(&mut self, class: &str, path: &str) {
        self.empty("path", &[("class", &class), ("d", &path)]);
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let (x, y) = (Coordinate(x), Coordinate(y));
        let (width, height) = (Coordinate(width.max(0.0)), Coordinate(height.max(0.0)));
        self.empty(
            "rect",
            &[("class", &class), ("x", &x), ("y", &y), ("width", &width), ("height", &height)],
        );
    }

    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn start(&mut self, name: &'static str, attributes: &[Attribute]) {
        let _ = write!(self.text, "<{name}");
        for (attribute, value) in attributes {
            let _ = write!(self.text, " {attribute}=\"{}\"", escaped(&value.to_string()));
        }
    }
}

/// A key of a legend in as many lines as its words take where letters are the largest.
#[derive(Debug)]
pub(super) struct Key(Vec<String>);

impl Key {
    /// Where the words start: after a stroke of the curve.
    const WORDS: f64 = 62.0;
    /// Height of a line.
    const LINE: f64 = 24.0;

    pub(super) fn new(words: &str) -> Self {
        let most = ((WIDTH - Self::WORDS) / GLYPH) as usize;
        let (mut lines, mut line) = (Vec::new(), String::new());
        for word in words.split(' ').flat_map(|word| pieces(word, most)) {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > most {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
        Self(lines)
    }

    pub(super) fn height(&self) -> f64 {
        Self::LINE * self.0.len() as f64
    }

    /// Draws it below `top` and returns where its stroke begins and ends.
    pub(super) fn draw(&self, svg: &mut Svg, top: f64) -> ((f64, f64), (f64, f64)) {
        for (number, line) in self.0.iter().enumerate() {
            let y = top + Self::LINE * (number as f64 + 0.5) + 4.0;
            svg.words((Self::WORDS, y), "legend", line);
        }
        let y = top + Self::LINE / 2.0;
        ((8.0, y), (48.0, y))
    }
}

/// A word in pieces that fit on a line.
fn pieces(word: &str, most: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(most.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// A coordinate to a tenth of a unit, in as few characters as that takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coordinate(pub(super) f64);

impl Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = if self.0.is_finite() { (self.0 * 10.0).round() } else { 0.0 };
        let (whole, rest) = (tenths as i64 / 10, tenths as i64 % 10);
        match rest {
            0 => write!(f, "{whole}"),
            _ if whole == 0 && rest < 0 => write!(f, "-.{}", -rest),
            _ if whole == 0 => write!(f, ".{rest}"),
            _ => write!(f, "{whole}.{}", rest.abs()),
        }
    }
}

/// Text for the inside of an element or of an attribute in double quotes: what would end either is
/// written as a reference, what a page must not hold or would turn around is shown escaped.
pub(crate) fn escaped(text: &str) -> impl Display + '_ {
    struct Escaped<'a>(&'a str);
    impl Display for Escaped<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for c in Printable(self.0).to_string().chars() {
                match c {
                    '&' => f.write_str("&amp;")?,
                    '<' => f.write_str("&lt;")?,
                    '>' => f.write_str("&gt;")?,
                    '"' => f.write_str("&quot;")?,
                    '\'' => f.write_str("&#39;")?,
                    other => f.write_char(other)?,
                }
            }
            Ok(())
        }
    }
    Escaped(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let text = "<script>\"']]>&\u{1b}[31m\u{202e}\0";
        assert_eq!(
            escaped(text).to_string(),
            "&lt;script&gt;&quot;&#39;]]&gt;&amp;\\u{1b}[31m\\u{202e}\\u{0}"
        );
        let mut svg = Svg::new(10.0, text, text);
        svg.words((1.0, 2.0), text, text);
        let svg = svg.finish();
        assert!(!svg.contains("<script") && !svg.contains('\0') && !svg.contains('\u{1b}'));
        assert_eq!(svg.matches('<').count(), svg.matches('>').count());
    }

    #[test]
    fn a_long_name_in_a_legend_takes_lines_and_loses_nothing() {
        let words = format!("A: gaps, CPU 1, {}, resolution 10 ns", "x".repeat(100));
        let key = Key::new(&words);
        assert!(key.0.iter().all(|line| line.chars().count() <= 55), "{key:?}");
        assert_eq!(key.0.concat().replace(' ', ""), words.replace(' ', ""));
        assert!((key.height() - 24.0 * key.0.len() as f64).abs() < 1e-9);
        assert_eq!(Key::new("gaps, CPU 1: n = 3").0, ["gaps, CPU 1: n = 3"]);
    }

    #[test]
    fn coordinates_are_short_and_never_nonsense() {
        for (value, text) in [
            (0.0, "0"),
            (12.0, "12"),
            (12.34, "12.3"),
            (0.26, ".3"),
            (-0.26, "-.3"),
            (-3.16, "-3.2"),
            (-0.01, "0"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(Coordinate(value).to_string(), text, "{value}");
        }
    }
}
