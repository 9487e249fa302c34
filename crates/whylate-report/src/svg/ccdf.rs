//! What share of the samples, or of the time, lies at or above x: on log-log axes, with intervals.
//!
//! A curve is a staircase from its smallest value to its largest, and is drawn no further than 1/n:
//! below that share a sample of n says nothing. Where samples were given up it ends at the first of them. Its
//! numbers stand beside it, in the tables of whoever shows it. The band around it is its 95 % interval. Values
//! below the resolution of the clock lie in a hatched area. Two or more curves differ by dash and
//! by the mark at their end, not by colour alone.

use whylate_model::Nanos;
use whylate_stats::Histogram;
use whylate_stats::dependence::Exceedances;
use whylate_stats::{share, weighted};

use super::COLOURS;
use super::axis::{Axis, below, percentile_label, resolution_label, share_label, time, time_label};
use super::path::Path;
use super::writer::{Key, Svg, WIDTH};

/// Points of a curve: more than two for each unit of the picture are invisible.
pub const MOST_POINTS: usize = 400;

/// Curves of a figure; more are not told apart.
pub const MOST_CURVES: usize = COLOURS;

const LEFT: f64 = 78.0;
/// Beside it names of percentiles, which grow with the number of samples: `p99.99999`.
const RIGHT: f64 = 572.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 300.0;

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name, from outside or not.
    pub label: String,
    /// Samples behind it.
    pub n: u64,
    /// Smallest step of the clock behind its values.
    pub resolution_ns: f64,
    /// In ascending order of their values.
    pub points: Vec<Point>,
    /// Intervals at single values, drawn as bars, where there is no band.
    pub whiskers: Vec<Point>,
    /// It ends at the first sample that was given up, so that its end is no largest value.
    pub is_cut: bool,
    /// Smaller shares are drawn grey: beyond what the instrument may be trusted for.
    pub faint_below: Option<f64>,
}

/// One step of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The value.
    pub value_ns: f64,
    /// Fraction of the samples, or of the time, at or above the value.
    pub share: f64,
    /// Lower end of the fraction's 95 % interval; the fraction itself where there is none.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

/// What a figure says beside its curves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is shown, in a few words.
    pub title: String,
    /// What lies along x: `length of the gap`.
    pub of: String,
    /// What the share is a share of: `of the gaps`, `of the elapsed time`.
    pub share_of: String,
    /// What kind of share it is.
    pub share: Share,
}

/// What a share counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Samples: nothing below 1/n is drawn, and the right side names percentiles.
    OfSamples,
    /// Time: the curve ends with the share of its longest sample.
    OfTime,
}

impl Curve {
    /// The curve of a histogram, with its band: exact intervals of each share for the number of
    /// samples that these are worth (`dependence` of the same intervals of time), not for n.
    #[must_use]
    pub fn of_histogram(
        label: impl Into<String>,
        histogram: &Histogram,
        dependence: &Exceedances,
        resolution_ns: f64,
    ) -> Self {
        let n = histogram.len();
        let shares = thinned(weighted::ccdf(histogram), MOST_POINTS);
        let below: Vec<u64> = shares.iter().map(|(value, _)| value.saturating_sub(1)).collect();
        let points = shares
            .into_iter()
            .zip(dependence.dispersions(histogram, &below))
            .map(|((value, share), factor)| {
                // One exceedance says nothing of their dependence: its factor is then 1.
                let worth = (n as f64 / factor.max(1.0)).max(1.0);
                let (low, high) = share::interval(share * worth, worth);
                Point { value_ns: value as f64, share, low: low.min(share), high: high.max(share) }
            })
            .collect();
        Self {
            label: label.into(),
            n,
            resolution_ns,
            points,
            whiskers: Vec::new(),
            is_cut: false,
            faint_below: None,
        }
    }

    /// Ends it at the first sample that was given up: all that is known of those is that they are larger than this.
    #[must_use]
    pub fn until(mut self, given_up: Option<Nanos>) -> Self {
        let Some(above) = given_up else { return self };
        let above = above.0 as f64;
        if let Some(first) = self.points.iter().position(|point| point.value_ns >= above) {
            self.points.truncate(first + 1);
            self.points[first].value_ns = above;
            self.is_cut = true;
        }
        self
    }

    /// The points that can be shown: of samples none below 1/n, no value that is none.
    pub(crate) fn shown(&self, kind: Share) -> impl Iterator<Item = Point> + '_ {
        let least = self.least(kind) * (1.0 - 1e-9);
        let possible = move |p: &Point| p.value_ns.is_finite() && p.share > 0.0 && p.share >= least;
        self.points.iter().copied().filter(move |p| possible(p) && p.share <= 1.0)
    }

    fn least(&self, kind: Share) -> f64 {
        match kind {
            Share::OfSamples => 1.0 / self.n.max(1) as f64,
            Share::OfTime => 0.0,
        }
    }
}

/// At most about `most` of the points, evenly over the decades of values and of shares; the first
/// and the last stay.
#[must_use]
pub fn thinned(points: Vec<(u64, f64)>, most: usize) -> Vec<(u64, f64)> {
    if points.len() <= most {
        return points;
    }
    let (Some(&first), Some(&last)) = (points.first(), points.last()) else { return points };
    let at = |(value, share): (u64, f64)| ((value.max(1) as f64).ln(), share.ln());
    let ((x0, y0), (x1, y1)) = (at(first), at(last));
    // Across and down, each of length 1.
    let step = 2.0 / (most.max(2) - 1) as f64;
    let distance = |point| {
        let (x, y) = at(point);
        (x - x0) / (x1 - x0).abs().max(1e-9) + (y0 - y) / (y1 - y0).abs().max(1e-9)
    };
    let mut next = 0.0;
    let mut kept = Vec::with_capacity(most + 1);
    for &point in &points {
        if distance(point) >= next {
            next = distance(point) + step;
            kept.push(point);
        }
    }
    if kept.last() != Some(&last) {
        kept.push(last);
    }
    kept
}

/// The picture of some curves, which may be none: an `<svg>` element.
#[must_use]
pub fn figure(curves: &[Curve], options: &Options) -> String {
    let drawn: Vec<&Curve> = curves
        .iter()
        .filter(|curve| curve.shown(options.share).next().is_some())
        .take(MOST_CURVES)
        .collect();
    let keys: Vec<Key> = drawn.iter().map(|curve| key(curve)).collect();
    let height = BOTTOM + 52.0 + keys.iter().map(Key::height).sum::<f64>();
    let mut svg = Svg::new(height, &options.title, &describe(&drawn, options));
    if drawn.is_empty() {
        svg.words(
            (WIDTH / 2.0, BOTTOM / 2.0),
            "note mid",
            "Nothing to draw: there are no samples.",
        );
        return svg.finish();
    }
    let frame = Frame::around(&drawn, options.share);
    frame.draw(&mut svg, options);
    frame.resolution(&mut svg, &drawn);
    frame.trusted(&mut svg, &drawn);
    for (index, curve) in drawn.iter().enumerate() {
        frame.band(&mut svg, curve, index);
    }
    for (index, curve) in drawn.iter().enumerate() {
        frame.curve(&mut svg, curve, (index, drawn.len()));
    }
    legend(&mut svg, BOTTOM + 52.0, &keys);
    svg.finish()
}

/// The axes of a figure.
struct Frame {
    x: Axis,
    y: Axis,
    kind: Share,
}

impl Frame {
    fn around(curves: &[&Curve], kind: Share) -> Self {
        let points = || curves.iter().flat_map(|curve| curve.shown(kind));
        let fold = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| {
                (low.min(value), high.max(value))
            })
        };
        let x = fold(&mut points().map(|p| p.value_ns.max(1.0)));
        let (lowest, _) = fold(&mut points().map(|p| p.share));
        Self {
            x: Axis::log(x, (LEFT, RIGHT)),
            y: Axis::log((lowest.min(0.1), 1.0), (BOTTOM, TOP)),
            kind,
        }
    }

    fn draw(&self, svg: &mut Svg, options: &Options) {
        for tick in self.y.ticks(8) {
            svg.line("grid", (LEFT, tick.at), (RIGHT, tick.at));
            svg.words((LEFT - 8.0, tick.at + 4.0), "tick end", &share_label(tick.value));
            if options.share == Share::OfSamples {
                let label = percentile_label(tick.value);
                svg.words((RIGHT + 6.0, tick.at + 4.0), "tick aside", &label);
            }
        }
        below(svg, &self.x.ticks(9), Some((TOP, BOTTOM)), BOTTOM + 20.0, time_label);
        svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
        svg.line("axis", (LEFT, TOP), (LEFT, BOTTOM));
        svg.words((f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0), "label mid", &options.of);
        let up = format!("share {} at least as long", options.share_of);
        svg.words((RIGHT - 6.0, TOP + 18.0), "note end", &up);
    }

    /// Hatches what lies below the smallest step of the clock.
    fn resolution(&self, svg: &mut Svg, curves: &[&Curve]) {
        let coarsest = curves.iter().map(|curve| curve.resolution_ns).fold(0.0, f64::max);
        if coarsest <= self.x.low() {
            return;
        }
        let mut hatch = Path::default();
        let end = self.x.at(coarsest);
        let mut x = LEFT + 4.0;
        while x < end {
            hatch.move_to((x, TOP));
            hatch.line_to((x, BOTTOM));
            x += 5.0;
        }
        svg.open("g", &[]);
        svg.titled(&format!("below the resolution of the clock, {}", resolution_label(coarsest)));
        svg.path("hatch", hatch.as_str());
        svg.line("limit", (end, TOP), (end, BOTTOM));
        svg.close();
        let words = format!("resolution {}", resolution_label(coarsest));
        let (x, class) = if end > f64::midpoint(LEFT, RIGHT) {
            (end - 5.0, "note end")
        } else {
            (end + 5.0, "note")
        };
        svg.words((x, BOTTOM - 7.0), class, &words);
    }

    /// A line where the first of the curves stops being trusted.
    fn trusted(&self, svg: &mut Svg, curves: &[&Curve]) {
        let faint = curves.iter().filter_map(|curve| curve.faint_below).fold(0.0, f64::max);
        if faint <= self.y.low() {
            return;
        }
        let y = self.y.at(faint);
        svg.line("limit", (LEFT, y), (RIGHT, y));
        let words = match faint {
            1.0.. => "nothing is trusted".to_owned(),
            _ => format!("trusted up to p{}", rounded(100.0 * (1.0 - faint))),
        };
        svg.words((RIGHT - 6.0, y - 5.0), "note end", &words);
    }

    fn band(&self, svg: &mut Svg, curve: &Curve, index: usize) {
        let points: Vec<Point> = curve.shown(self.kind).collect();
        if points.iter().all(|p| p.low >= p.share && p.high <= p.share) {
            return;
        }
        let least = curve.least(self.kind);
        let mut path = Path::default();
        let mut before = points[0].value_ns;
        for p in &points {
            let y = self.y.at(p.high.min(1.0));
            path.step_to((self.x.at(before), y));
            path.step_to((self.x.at(p.value_ns), y));
            before = p.value_ns;
        }
        for (at, p) in points.iter().enumerate().rev() {
            let y = self.y.at(p.low.max(least));
            path.line_to((self.x.at(p.value_ns), y));
            let start = if at == 0 { p.value_ns } else { points[at - 1].value_ns };
            path.line_to((self.x.at(start), y));
        }
        path.close();
        svg.path(&format!("band f{}", index % COLOURS), path.as_str());
    }

    fn curve(&self, svg: &mut Svg, curve: &Curve, (index, curves): (usize, usize)) {
        let (mut path, mut faint) = (Path::default(), Path::default());
        let mut end = (LEFT, TOP);
        for p in curve.shown(self.kind) {
            // At least as long as something between two values is at least as long as the larger.
            let at = (self.x.at(p.value_ns), self.y.at(p.share));
            if path.is_empty() && faint.is_empty() {
                end = at;
            }
            let beyond = curve.faint_below.is_some_and(|least| p.share < least * (1.0 - 1e-9));
            let path = if beyond { &mut faint } else { &mut path };
            if path.is_empty() {
                path.move_to(end);
            }
            path.step_to((end.0, at.1));
            path.step_to(at);
            end = at;
        }
        svg.open("g", &[]);
        svg.titled(&format!("{}, n = {}", curve.label, curve.n));
        svg.path(&format!("curve s{0} d{0}", index % COLOURS), path.as_str());
        if !faint.is_empty() {
            svg.path(&format!("curve faint d{}", index % COLOURS), faint.as_str());
        }
        for p in &curve.whiskers {
            // Beside one another, where several curves have them at the same values.
            let x = self.x.at(p.value_ns) + 3.0 * (index as f64 - (curves - 1) as f64 / 2.0);
            let class = format!("whisker s{}", index % COLOURS);
            svg.line(&class, (x, self.y.at(p.low)), (x, self.y.at(p.high.min(1.0))));
        }
        mark(svg, end, index);
        svg.close();
    }
}

/// A percentile without the digits that binary numbers add.
fn rounded(percent: f64) -> f64 {
    (percent * 1e8).round() / 1e8
}

/// A mark whose form tells curves apart.
pub(super) fn mark(svg: &mut Svg, (x, y): (f64, f64), index: usize) {
    let class = format!("mark f{}", index % COLOURS);
    let forms = [
        "a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        "l4-4 4 4-4 4z",
        "m0-3.5h7v7h-7z",
        "m0 4l4-8 4 8z",
        "m0-4l4 8 4-8z",
        "h8m-4-4v8",
        "m0-3l7 7m-7 0l7-7",
        "m4-4v8",
    ];
    let path = format!("M{:.1} {y:.1}{}", x - 4.0, forms[index % forms.len()]);
    let class =
        if index % forms.len() >= 5 { format!("stroked s{}", index % COLOURS) } else { class };
    svg.path(&class, &path);
}

/// What stands beside them of a curve.
pub(super) fn key(curve: &Curve) -> Key {
    let n = crate::numbers::count(curve.n);
    let resolution = resolution_label(curve.resolution_ns);
    Key::new(&format!("{}: n = {n}, resolution {resolution}", curve.label))
}

/// A line and a mark for each curve, from this height on.
pub(super) fn legend(svg: &mut Svg, mut top: f64, keys: &[Key]) {
    for (index, key) in keys.iter().enumerate() {
        let (from, to) = key.draw(svg, top);
        svg.line(&format!("curve s{0} d{0}", index % COLOURS), from, to);
        mark(svg, to, index);
        top += key.height();
    }
}

fn describe(curves: &[&Curve], options: &Options) -> String {
    let words: Vec<String> = curves
        .iter()
        .map(|curve| {
            let end = curve.shown(options.share).last().map_or(0.0, |p| p.value_ns);
            let of_end = if curve.is_cut { "given up from" } else { "largest" };
            format!("{}: n = {}, {of_end} {}", curve.label, curve.n, time(end))
        })
        .collect();
    format!("Share {} by {}. {}", options.share_of, options.of, words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            title: "Stalls".to_owned(),
            of: "length of the stall".to_owned(),
            share_of: "of the stalls".to_owned(),
            share: Share::OfSamples,
        }
    }

    fn curve(values: impl IntoIterator<Item = u64>) -> Curve {
        let histogram: Histogram = values.into_iter().collect();
        Curve::of_histogram("stalls, CPU 1", &histogram, &Exceedances::new(), 10.0)
    }

    #[test]
    fn a_curve_of_few_samples_is_drawn_as_recorded() {
        let figure = figure(&[curve([200, 3_000, 3_000, 50_000])], &options());
        insta::assert_snapshot!(figure.replace("><", ">\n<"));
    }

    #[test]
    fn a_curve_ends_at_the_first_sample_that_was_given_up() {
        let values =
            || (1..=1_000).map(|n| if n > 990 { n * 100_000 - 94_000_000 } else { n * 10 });
        let whole = curve(values());
        let cut = curve(values()).until(Some(Nanos(5_000_000)));
        let last = *cut.points.last().unwrap();
        assert!((last.value_ns - 5e6).abs() < 1e-9 && (last.share - 0.01).abs() < 1e-9, "{last:?}");
        assert!(cut.points.len() < whole.points.len() && cut.is_cut, "planted");
        let drawn = figure(std::slice::from_ref(&cut), &options());
        assert!(drawn.contains("given up from 5 ms") && !drawn.contains("largest"), "{drawn}");
        // Nothing was given up so late, or at all.
        for above in [None, Some(Nanos(9_000_000))] {
            assert_eq!(whole.clone().until(above), whole);
        }
    }

    #[test]
    fn no_curve_reaches_below_one_sample() {
        let mut planted = curve((1..=1_000).map(|n| n * n));
        planted.points.push(Point { value_ns: 1e9, share: 1e-4, low: 0.0, high: 0.01 });
        planted.points.push(Point { value_ns: f64::NAN, share: 0.5, low: 0.5, high: 0.5 });
        let shares: Vec<f64> = planted.shown(Share::OfSamples).map(|p| p.share).collect();
        assert!(shares.iter().all(|share| *share >= 1.0 / 1_000.0 - 1e-12));
        let last = planted.shown(Share::OfSamples).last().unwrap();
        assert!((last.share - 0.001).abs() < 1e-12 && (last.value_ns - 1e6).abs() < 1.0);
        let figure = figure(&[planted], &options());
        assert!(!figure.contains("NaN"), "{figure}");
    }

    #[test]
    fn none_one_two_and_equal_samples_make_a_figure() {
        for values in [&[][..], &[7], &[7, 7], &[7, 9_000], &[250; 90], &[0; 3], &[u64::MAX; 2]] {
            let figure = figure(&[curve(values.iter().copied())], &options());
            assert!(figure.ends_with("</svg>"));
            assert!(!figure.contains("NaN") && !figure.contains("inf"), "{values:?}");
            assert_eq!(figure.contains("Nothing to draw"), values.is_empty());
        }
        assert!(figure(&[], &options()).contains("Nothing to draw"));
    }

    #[test]
    fn the_band_is_wider_where_samples_hang_together() {
        let (mut all, mut alone, mut bursts) =
            (Histogram::new(), Exceedances::new(), Exceedances::new());
        for second in 0..60_u64 {
            let level = if second % 6 == 0 { 50_000 } else { 1_000 };
            let interval: Histogram = (0..100).map(|n| level + n).collect();
            all.add(&interval);
            bursts.add(&interval);
        }
        for part in 0..60_u64 {
            let mixed = (0..100).map(|n| if n % 6 == part % 6 { 50_000 + n } else { 1_000 + n });
            alone.add(&mixed.collect());
        }
        let width = |dependence| {
            let curve = Curve::of_histogram("", &all, dependence, 1.0);
            let p = *curve.points.iter().find(|p| p.value_ns >= 40_000.0).unwrap();
            assert!(p.low < p.share && p.share < p.high);
            p.high - p.low
        };
        assert!(width(&bursts) > 5.0 * width(&alone));
    }

    #[test]
    fn thinning_keeps_ends_and_order_and_hides_no_step() {
        let points: Vec<(u64, f64)> = (0..40_000_u32)
            .map(|n| (100 + u64::from(n) * 37, 1.0 - f64::from(n) / 40_000.0))
            .collect();
        let kept = thinned(points.clone(), MOST_POINTS);
        assert!(kept.len() <= MOST_POINTS + 1, "{}", kept.len());
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1));
    }

    #[test]
    fn what_may_not_be_trusted_is_grey_below_a_line_that_says_so() {
        let plain = figure(&[curve((1..=5_000).map(|n| n * n))], &options());
        assert!(!plain.contains("faint") && !plain.contains("trusted"));
        let limited = Curve { faint_below: Some(0.01), ..curve((1..=5_000).map(|n| n * n)) };
        let drawn = figure(std::slice::from_ref(&limited), &options());
        assert!(
            drawn.contains("trusted up to p99<") && drawn.contains("curve faint d0"),
            "{drawn}"
        );
        assert!(drawn.contains("curve s0 d0"));
        let none = figure(&[Curve { faint_below: Some(1.0), ..limited.clone() }], &options());
        assert!(none.contains("nothing is trusted") && none.contains("curve faint"));
        // A limit that the sample does not reach is no line.
        let beyond = figure(&[Curve { faint_below: Some(1e-9), ..limited }], &options());
        assert!(!beyond.contains("trusted") && !beyond.contains("faint"));
    }
}
