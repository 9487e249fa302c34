//! Distributions of a paper's figure, drawn, and what tools say of the effects of configurations.

use whylate_model::paper::{Distribution, Distributions, Effect, EffectSize, Reached, Scenario};

use crate::doc::Table;
use crate::numbers::{ABSENT, Cell, Value, count};
use crate::svg::ccdf::{self, Curve, Point, Share};
use crate::svg::{Figure, cdf, resolution_label};
use crate::trusted::marked;

/// Figures of one scenario, curves of a figure, steps of a curve and effects; a file may hold any number.
const MOST_FIGURES: usize = 16;
const MOST_CURVES: usize = 64;
const MOST_POINTS: usize = 4_096;
const MOST_EFFECTS: usize = 1_024;
/// What all shares are of.
const OF: &str = "of the frames";

/// The figures of a scenario: the complementary distribution of each, after the cumulative one where
/// that is asked for.
pub(super) fn figures(scenario: &Scenario) -> Vec<Figure> {
    let mut figures = Vec::new();
    for set in scenario.distributions.iter().take(MOST_FIGURES) {
        let curves: Vec<Curve> = set.curves.iter().take(MOST_CURVES).map(curve).collect();
        let (title, of) = (set.title.clone(), set.of.clone());
        if set.cumulative {
            let options =
                cdf::Options { title: title.clone(), of: of.clone(), share_of: OF.to_owned() };
            // Its numbers stand below the next one, which is of the same.
            figures.push(cdf::figure(&curves, &options, Table::default()));
        }
        let options = ccdf::Options { title, of, share_of: OF.to_owned(), share: Share::OfSamples };
        figures.push(Figure { svg: ccdf::figure(&curves, &options), table: values(set) });
    }
    figures
}

/// The numbers of each figure.
pub(crate) fn reached(scenario: &Scenario) -> Vec<Table> {
    scenario.distributions.iter().take(MOST_FIGURES).map(values).collect()
}

fn curve(of: &Distribution) -> Curve {
    let points = of.points.iter().take(MOST_POINTS).map(|point| Point {
        value_ns: point.value_ns,
        share: point.share,
        low: point.share,
        high: point.share,
    });
    Curve {
        label: of.label.clone(),
        n: of.n,
        resolution_ns: of.granularity_ns,
        points: points.collect(),
        whiskers: Vec::new(),
        is_cut: false,
        faint_below: of.beyond_share,
    }
}

/// Values at the usual percentiles with what they lie between; of what was imported, its buckets.
fn values(set: &Distributions) -> Table {
    let mut percents: Vec<f64> = set
        .curves
        .iter()
        .take(MOST_CURVES)
        .flat_map(|of| &of.reached)
        .map(|at| at.percent)
        .collect();
    percents.retain(|percent| percent.is_finite());
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    let cell = |at: &Reached| {
        let ends = at.between_ns.map(|(low, high)| (Value::Time(low), Value::Time(high)));
        Cell::from(Value::Time(at.value_ns)).within(ends).to_string()
    };
    let row = |of: &Distribution| {
        let label = match &of.imported {
            Some(file) => format!("{} (imported: {})", of.label, file),
            None => of.label.clone(),
        };
        let mut row = vec![label, count(of.n), resolution_label(of.granularity_ns)];
        row.extend(percents.iter().map(|percent| {
            let at = of.reached.iter().find(|at| at.percent.total_cmp(percent).is_eq());
            // Percentiles are decimal, and binary numbers of them differ in the last digits.
            let share = 1.0 - percent / 100.0;
            let beyond = of.beyond_share.is_some_and(|least| share < least - 1e-11);
            marked(at.map_or(ABSENT.to_owned(), cell), beyond)
        }));
        row
    };
    let caption = format!(
        "{}: values at percentiles, with 95% intervals, and of what was imported with the ends of its \
         buckets; curves end where fewer than {} of their samples lie above",
        set.title, set.fewest_above
    );
    Table::new(caption, &["", "n", "granularity"])
        .columns(percents.iter().map(|percent| format!("p{percent}")))
        .with(set.curves.iter().take(MOST_CURVES).map(row))
}

/// The table of effects, where there are any.
pub(super) fn effects(scenario: &Scenario) -> Option<Table> {
    let size = |of: Option<&EffectSize>| {
        of.map_or(ABSENT.to_owned(), |of| {
            let ends = Some((Value::Time(of.low_ns), Value::Time(of.high_ns)));
            Cell::from(Value::Time(of.ns)).within(ends).to_string()
        })
    };
    let row = |of: &Effect| {
        vec![
            of.tool.clone(),
            format!("{} over {}", of.to, of.from),
            format!("p{}", of.percent),
            size(of.truth.as_ref()),
            size(of.reported.as_ref()),
            of.verdict.name().to_owned(),
            of.why.clone(),
        ]
    };
    let caption = "Does a tool preserve what a configuration does to the box? By the box's own log, and as the \
                   tool reports it, of the same frames; 95% intervals";
    let head = ["tool", "configuration", "", "own log", "reported", "verdict", "why"];
    Table::new(caption, &head)
        .words(&[1, 5, 6])
        .with(scenario.effects.iter().take(MOST_EFFECTS).map(row))
        .filled()
}

#[cfg(test)]
mod tests {
    use whylate_model::paper::{DistributionPoint, EffectVerdict};

    use super::*;

    fn distribution(label: &str, imported: Option<&str>) -> Distribution {
        let point = |value_ns, share| DistributionPoint { value_ns, share };
        Distribution {
            label: label.to_owned(),
            n: 1_000,
            granularity_ns: 100.0,
            runs: Vec::new(),
            imported: imported.map(str::to_owned),
            beyond_share: None,
            points: vec![point(2_260.0, 1.0), point(3_000.0, 0.4), point(9_000.0, 0.001)],
            reached: vec![Reached {
                percent: 50.0,
                value_ns: 2_500.0,
                between_ns: Some((2_260.0, 3_000.0)),
            }],
        }
    }

    fn scenario() -> Scenario {
        Scenario {
            place: "fig2".to_owned(),
            title: "x".to_owned(),
            commands: Vec::new(),
            runs: Vec::new(),
            rows: Vec::new(),
            bars: Vec::new(),
            tables: Vec::new(),
            distributions: vec![Distributions {
                title: "Figure <2>".to_owned(),
                of: "latency".to_owned(),
                cumulative: true,
                fewest_above: 1,
                curves: vec![distribution("xdp", None), distribution("TRex", Some("a.json"))],
            }],
            effects: vec![Effect {
                tool: "xdp".to_owned(),
                percent: 99.9,
                from: "local".to_owned(),
                to: "local+power".to_owned(),
                reported: None,
                truth: Some(EffectSize { ns: -800.0, low_ns: -900.0, high_ns: -700.0 }),
                verdict: EffectVerdict::NotTold,
                why: "few".to_owned(),
            }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn distributions_are_drawn_both_ways_with_the_ends_of_buckets_in_their_table() {
        let drawn = figures(&scenario());
        assert_eq!(drawn.len(), 2);
        assert!(drawn[0].svg.contains("at most as long") && drawn[0].table.rows.is_empty());
        assert!(drawn[1].svg.contains("at least as long") && !drawn[1].svg.contains("<2>"));
        assert_eq!(
            drawn[1].table.rows[1],
            ["TRex (imported: a.json)", "1,000", "100 ns", "2.5 µs (2.3–3.0 µs)"]
        );
        assert!(drawn[1].table.caption.contains("fewer than 1 of their samples"));
    }

    #[test]
    fn effects_have_a_table_with_both_sides_and_a_verdict() {
        let table = effects(&scenario()).unwrap();
        assert_eq!(
            table.rows[0],
            [
                "xdp",
                "local+power over local",
                "p99.9",
                "−800 ns (−900 to −700 ns)",
                "–",
                "not told",
                "few"
            ]
        );
        assert!(effects(&Scenario { effects: Vec::new(), ..scenario() }).is_none());
        let mut hostile = scenario();
        hostile.distributions[0].curves[0].reached[0].percent = f64::NAN;
        hostile.distributions[0].curves[0].points[1].value_ns = f64::INFINITY;
        assert!(
            figures(&hostile).iter().all(|of| !of.svg.contains("NaN") && !of.svg.contains("inf\""))
        );
    }
}
