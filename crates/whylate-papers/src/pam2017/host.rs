//! 4: how long a request stays in a server's host, from the driver that takes it in to the driver that is
//! given the reply. Row 4 of Table 1, and what of Figure 4 is the host's.

use whylate_model::breakdown::{Breakdown, Point, Source, StoredJourney};
use whylate_model::paper::Scenario;
use whylate_model::run::Run;
use whylate_model::series::summary::Identity;
use whylate_model::series::{Definition, Series};
use whylate_model::{Hertz, Nanos, RunDir, Ticks, segments};
use whylate_stats::Histogram;
use whylate_stats::dependence::Exceedances;

use super::client_server::{FIGURE_4, LOOKING};
use super::parts::{self, HOST};
use super::site::Site;
use super::table_1::{ROW_4, rows};
use crate::PaperError;
use crate::bench::{Bench, Times};

/// The paper's is a million packets.
const TIMES: Times = Times { usual: 30, quick: 2 };
/// One under way as in a closed loop, and no more a second than what looks at each of them can follow.
pub(super) const ONE_AT_A_TIME: &str = "--outstanding 1 --rate 4kpps --wait block";
/// Requests that are read again: more than minutes make of them.
const MOST: usize = 4_000_000;
/// Stays are put into so many blocks, to see how much they hang together.
const BLOCKS: usize = 100;

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let site = Site::set_up(bench, scenario)?;
    let pattern = format!("{ONE_AT_A_TIME} {LOOKING} --log-packets");
    let words = site.words(bench, &pattern, TIMES);
    let (directory, run) = bench.tool("4", &words, scenario)?;
    let stays = stays(&directory, &run)?;
    scenario.notes.extend(of_the_ends(&stays));
    let Some(series) = stays.series() else {
        scenario.notes.push(
            "no request is known to have come and gone by the host's drivers: neither the kernel's \
             stamps nor its tracepoints told of both"
                .to_owned(),
        );
        return Ok(());
    };
    scenario.rows.extend(rows("in the server's host", &series, &ROW_4));
    let breakdown = run.flows.first().and_then(|flow| flow.breakdown.as_deref());
    scenario.rows.extend(breakdown.map(|of| parts::rows(of, &HOST)).unwrap_or_default());
    scenario.bars.extend(breakdown.map(|of| parts::bars(of, &HOST, 1.0)).unwrap_or_default());
    scenario.notes.push(FIGURE_4.to_owned());
    scenario.notes.extend(breakdown.and_then(incomplete));
    Ok(())
}

/// How long requests stayed in the host.
#[derive(Debug, Default)]
struct Stays {
    /// In nanoseconds, in the order of sending.
    times: Vec<u64>,
    /// Who told of the request's coming and of the reply's going; of all where that was one.
    told: Option<[Source; 2]>,
    /// Requests that were kept one by one, those without both ends among them.
    requests: u64,
    /// Replies that went before their requests came: the two clocks disagree.
    backwards: u64,
    resolution_ns: f64,
}

fn stays(directory: &RunDir, run: &Run) -> Result<Stays, PaperError> {
    let mut stays = Stays::default();
    for journey in segments::read_journeys(directory)?.take(MOST) {
        stays.add(&journey?, run.clock.hz);
    }
    let points = run.flows.first().and_then(|flow| flow.breakdown.as_deref());
    let steps = points.iter().flat_map(|of| &of.points).filter(|of| ends().contains(&of.point));
    stays.resolution_ns = steps.map(|of| of.resolution.0 as f64).fold(0.0, f64::max);
    Ok(stays)
}

/// Where the host's time begins and ends.
fn ends() -> [Point; 2] {
    [HOST.from, HOST.to]
}

impl Stays {
    fn add(&mut self, journey: &StoredJourney, rate: Hertz) {
        self.requests += 1;
        let [came, gone] = ends().map(|point| journey.passed[point.index()]);
        let (Some((came, by)), Some((gone, then_by))) = (came, gone) else { return };
        if gone < came {
            self.backwards += 1;
            return;
        }
        self.told.get_or_insert([by, then_by]);
        self.times.push(time(came, gone, rate).0);
    }

    /// Its numbers, with intervals that know how much stays hang together; none without any.
    fn series(&self) -> Option<Series> {
        let (mut all, mut exceedances) = (Histogram::new(), Exceedances::new());
        for block in self.times.chunks(self.times.len().div_ceil(BLOCKS).max(1)) {
            let mut values = Histogram::new();
            for ns in block {
                values.record(*ns);
            }
            exceedances.add(&values);
            all.add(&values);
        }
        let told = self.told?;
        let [from, to] = ends().map(|point| point.to_string());
        let identity = Identity {
            name: "host-residence".to_owned(),
            label: "in the server's host".to_owned(),
            paper_row: Some("4".to_owned()),
            from,
            to,
            clock: told.map(Source::clock).join(", then "),
            definition: Definition::Residence,
            resolution_ns: self.resolution_ns,
            lost: self.requests - self.times.len() as u64,
        };
        let n_eff = |percent| exceedances.effective_n(&all, percent);
        Some(Series::summarise(identity, &all, n_eff, None))
    }
}

fn time(came: Ticks, gone: Ticks, rate: Hertz) -> Nanos {
    gone.since(came).to_nanos(rate)
}

/// Between what it was measured, here and in the paper.
fn of_the_ends(stays: &Stays) -> Vec<String> {
    let mut notes = vec![
        "the paper's clock is a capture card of 7.5ns at a tap on the wire (its section 2.1): card, PCI \
         Express and cable are in its figures. Here a request's time runs from where the kernel takes it \
         from the driver to where the kernel gives the reply to the driver, of a virtual link: none of \
         these is in it, and no difference is claimed"
            .to_owned(),
        "the receiving half of a virtual link runs on the CPU of whoever sends, so that the client's CPU \
         does a part of the host's work"
            .to_owned(),
        format!(
            "{} requests, 4000 in a second at most, for each of them is looked at: the paper's are a \
             million packets, of which as many more are seen beyond a percentile",
            stays.requests
        ),
    ];
    if let Some([came, gone]) = stays.told {
        let clocks = if came == gone {
            came.clock().to_owned()
        } else {
            [came, gone].map(Source::clock).join(" and ")
        };
        let known = stays.times.len();
        notes.push(format!(
            "both ends are known of {known} of {} requests, by {clocks}",
            stays.requests
        ));
    }
    if stays.backwards > 0 {
        let backwards = stays.backwards;
        notes.push(format!(
            "{backwards} requests came after their replies had gone, by two clocks that disagree: left out"
        ));
    }
    notes
}

/// What is missing of the host's own points is said.
fn incomplete(breakdown: &Breakdown) -> Option<String> {
    let missing = |of: &&whylate_model::breakdown::PointFacts| {
        of.point > HOST.from && of.point < HOST.to && of.missing > of.came
    };
    let never: Vec<String> = breakdown
        .points
        .iter()
        .filter(missing)
        .map(|of| format!("{} by {}", of.point, of.source.clock()))
        .collect();
    (!never.is_empty()).then(|| format!("mostly missing in the host: {}", never.join(", ")))
}

#[cfg(test)]
mod tests {
    use whylate_model::breakdown::{PointFacts, Station};
    use whylate_model::paper::Row;

    use super::super::parts::tests::round_trip;
    use super::*;

    /// A request that comes every 250 us and stays so long; a tick is a nanosecond.
    fn journey(number: u64, stay: Option<u64>) -> StoredJourney {
        let mut passed = [None; Point::COUNT];
        let came = 1_000 + number * 250_000;
        passed[HOST.from.index()] = Some((Ticks(came), Source::Software));
        passed[HOST.to.index()] = stay.map(|stay| (Ticks(came + stay), Source::Trace));
        StoredJourney { flow: 0, number, passed }
    }

    fn planted(stay: impl Fn(u64) -> Option<u64>) -> Stays {
        let mut stays = Stays::default();
        (0..10_000).for_each(|number| stays.add(&journey(number, stay(number)), Hertz(1e9)));
        stays
    }

    #[test]
    fn a_stay_is_from_driver_to_driver_and_requests_without_both_are_counted() {
        let stays = planted(|number| (number % 10 != 0).then_some(4_000 + number % 7));
        assert_eq!((stays.requests, stays.times.len(), stays.backwards), (10_000, 9_000, 0));
        let series = stays.series().unwrap();
        assert_eq!((series.n, series.lost, series.min), (9_000, 1_000, Some(Nanos(4_000))));
        assert_eq!(series.definition, Definition::Residence);
        assert_eq!(series.from, "request arrived");
        assert_eq!(series.to, "reply driver");
        let rows: Vec<Row> = rows("x", &series, &ROW_4);
        let median = rows[1].here.as_ref().unwrap();
        assert!((median.value - 4_003.0).abs() < 10.0, "{median:?}");
        let notes = of_the_ends(&stays).join("\n");
        assert!(notes.contains("known of 9000 of 10000 requests"), "{notes}");
        assert!(notes.contains("10000 requests, 4000 in a second at most"), "{notes}");
        assert!(notes.contains("the paper's are a million packets"), "{notes}");
        assert!(notes.contains("stamps of the kernel and tracepoints"), "{notes}");
        assert!(planted(|_| None).series().is_none());
    }

    #[test]
    fn stays_that_are_late_together_are_few_witnesses_and_clocks_that_disagree_are_told() {
        let late = |number: u64| Some(if number < 200 { 90_000 } else { 4_000 });
        let apart = |number: u64| Some(if number.is_multiple_of(50) { 90_000 } else { 4_000 });
        let n_eff = |stays: Stays| {
            let series = stays.series().unwrap();
            series.quantiles.iter().find(|of| of.percent > 89.0).unwrap().n_eff
        };
        let (together, apart) = (n_eff(planted(late)), n_eff(planted(apart)));
        assert!(together * 10.0 < apart, "{together} and {apart}");
        let mut stays = planted(|_| Some(4_000));
        let mut odd = journey(1, Some(1));
        odd.passed[HOST.to.index()] = Some((Ticks(5), Source::Trace));
        stays.add(&odd, Hertz(1e9));
        assert_eq!((stays.backwards, stays.times.len()), (1, 10_000));
        assert!(of_the_ends(&stays).iter().any(|note| note.starts_with("1 requests came after")));
    }

    #[test]
    fn points_of_the_host_that_hardly_ever_came_are_named() {
        let mut breakdown = round_trip();
        let facts = |station, came, missing| PointFacts {
            point: Point::there(station),
            source: Source::Trace,
            came,
            missing,
            not_asked: 0,
            twice: 0,
            unordered: 0,
            contradicted: 0,
            resolution: Nanos(1),
            bound: Nanos(0),
        };
        breakdown.points = vec![
            facts(Station::Queued, 0, 10),
            facts(Station::Delivered, 10, 0),
            facts(Station::Woken, 1, 9),
        ];
        let told = incomplete(&breakdown).unwrap();
        assert_eq!(told, "mostly missing in the host: request woken by tracepoints of the kernel");
        breakdown.points.truncate(2);
        assert_eq!(incomplete(&breakdown), None);
    }
}
