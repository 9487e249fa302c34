//! Paths as short as the picture allows.

use std::fmt::Write;

use super::writer::Coordinate;

/// Points closer than this to the one before are not drawn: they share its pixel.
const THINNEST: f64 = 0.3;

/// A path under construction, along the axes.
#[derive(Debug, Default)]
pub(super) struct Path {
    text: String,
    last: Option<(f64, f64)>,
}

impl Path {
    pub(super) fn move_to(&mut self, (x, y): (f64, f64)) {
        let _ = write!(self.text, "M{} {}", Coordinate(x), Coordinate(y));
        self.last = Some((x, y));
    }

    /// Goes along x, then along y; steps that nobody could see are left out.
    pub(super) fn step_to(&mut self, (x, y): (f64, f64)) {
        let Some((x0, y0)) = self.last else { return self.move_to((x, y)) };
        let (mut at_x, mut at_y) = (x0, y0);
        if (x - x0).abs() >= THINNEST {
            let _ = write!(self.text, "H{}", Coordinate(x));
            at_x = x;
        }
        if (y - y0).abs() >= THINNEST {
            let _ = write!(self.text, "V{}", Coordinate(y));
            at_y = y;
        }
        self.last = Some((at_x, at_y));
    }

    /// Goes there in a straight line; the first point is where it begins.
    pub(super) fn line_to(&mut self, (x, y): (f64, f64)) {
        let Some((x0, y0)) = self.last else { return self.move_to((x, y)) };
        if (x - x0).abs() >= THINNEST || (y - y0).abs() >= THINNEST {
            let _ = write!(self.text, "L{} {}", Coordinate(x), Coordinate(y));
            self.last = Some((x, y));
        }
    }

    /// A filled rectangle.
    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.move_to((x, y));
        let (w, h) = (Coordinate(width), Coordinate(height));
        let _ = write!(self.text, "h{w}v{h}h{}z", Coordinate(-width));
    }

    pub(super) fn close(&mut self) {
        self.text.push('z');
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_points_make_a_short_path_that_ends_where_they_end() {
        let mut path = Path::default();
        path.move_to((0.0, 300.0));
        for n in 0..=1_000_000 {
            let share = f64::from(n) / 1e6;
            path.step_to((share * 600.0, 300.0 - share * 300.0));
        }
        assert!(path.as_str().len() < 32_000, "{}", path.as_str().len());
        let (_, end) = path.as_str().rsplit_once('V').unwrap();
        let end: f64 = end.split('H').next().unwrap().parse().unwrap();
        assert!(end <= 2.0 * THINNEST, "{end}");
    }
}
