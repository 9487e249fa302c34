//! What the paper's Figure 4 asks: what the host, the program and the way between take of the time.
//!
//! The shares that its figure draws are not in the paper's text. What its Table 1 leaves of them is the
//! difference of two rows' medians, which is another thing than the mean of parts of the same requests.

use crate::spelled::in_unit;
use whylate_model::breakdown::{Breakdown, Composition, Leg, Part, Point, Station};
use whylate_model::paper::{Here, Row, StackedBar, StackedPiece, Unit};

use crate::beside::sentence;
use crate::rows::{Filled, row};

/// Who has a request between two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// The client, before it could send what was due.
    Client,
    /// The kernel, from the call that sends to the driver.
    Sending,
    /// What lies between the drivers.
    Way,
    /// The kernel, from the driver to the socket's queue.
    Receiving,
    /// The kernel, from the socket's queue to the program: its wake-up, its turn, its call's return.
    Waking,
    /// The kernel, from the driver to the program, where its queue is not known.
    Delivering,
    /// The server's program.
    Program,
    /// Points between them are not known.
    NotToldApart,
}

impl Holder {
    /// Of a part of a request.
    pub(super) fn of(part: Part) -> Self {
        let Part { from, to } = part;
        if from.leg != to.leg {
            let program = from == Point::there(Station::Read) && to == Point::back(Station::Sent);
            return if program { Self::Program } else { Self::NotToldApart };
        }
        match (Self::after(from.station), Self::before(to.station)) {
            (after, before) if after == before => after,
            (Self::Receiving, Self::Waking) => Self::Delivering,
            _ => Self::NotToldApart,
        }
    }

    /// Who has it when it has passed a station.
    fn after(station: Station) -> Self {
        match station {
            Station::Intended => Self::Client,
            Station::Sent | Station::Queued => Self::Sending,
            Station::Driver | Station::WireOut | Station::Tap | Station::WireIn => Self::Way,
            Station::Arrived => Self::Receiving,
            Station::Delivered | Station::Woken | Station::Running => Self::Waking,
            Station::Read => Self::Program,
        }
    }

    /// Who has it until it passes a station.
    fn before(station: Station) -> Self {
        match station {
            Station::Intended | Station::Sent => Self::Client,
            Station::Queued | Station::Driver => Self::Sending,
            Station::WireOut | Station::Tap | Station::WireIn | Station::Arrived => Self::Way,
            Station::Delivered => Self::Receiving,
            Station::Woken | Station::Running | Station::Read => Self::Waking,
        }
    }

    fn is_kernel(self) -> bool {
        matches!(self, Self::Sending | Self::Receiving | Self::Waking | Self::Delivering)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Client => "the client, late to send",
            Self::Sending => "the kernel, sending",
            Self::Way => "between the drivers",
            Self::Receiving => "the kernel, receiving",
            Self::Waking => "the kernel, wake-up and reading",
            Self::Delivering => "the kernel, receiving to reading",
            Self::Program => "the server's program",
            Self::NotToldApart => "not told apart",
        }
    }
}

/// Stretch of the way that is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) from: Point,
    pub(super) to: Point,
    /// What it is called, as in "of the host's time".
    pub(super) name: &'static str,
    /// The kernel's share of it in the paper, in words.
    pub(super) kernel: Option<&'static str>,
}

/// A server's host, from driver to driver.
pub(super) const HOST: Stretch = Stretch {
    from: Point { leg: Leg::Request, station: Station::Arrived },
    to: Point { leg: Leg::Reply, station: Station::Driver },
    name: "the host's time",
    // (4500 - 946) / 4500
    kernel: Some("79.0% of the median follow from rows 4 and 5 (4.5us, and 946ns past the kernel)"),
};

/// Mean times by holder, in the order of [`Holder`], and their sum.
#[derive(Debug, Clone, PartialEq)]
struct Held {
    by: Vec<(Holder, f64)>,
    sum: f64,
}

impl Held {
    /// Of the parts that lie within the stretch.
    fn of(composition: &Composition, stretch: &Stretch) -> Self {
        let mut by: Vec<(Holder, f64)> = Vec::new();
        let inside = composition
            .parts
            .iter()
            .filter(|of| of.part.from >= stretch.from && of.part.to <= stretch.to);
        for of in inside {
            let holder = Holder::of(of.part);
            match by.iter_mut().find(|(known, _)| *known == holder) {
                Some((_, ns)) => *ns += of.mean_ns,
                None => by.push((holder, of.mean_ns)),
            }
        }
        by.sort_by_key(|(holder, _)| *holder);
        let sum = by.iter().map(|(_, ns)| ns).sum();
        Self { by, sum }
    }

    fn share(&self, of: impl Fn(Holder) -> bool) -> Option<f64> {
        let own: f64 = self.by.iter().filter(|(holder, _)| of(*holder)).map(|(_, ns)| ns).sum();
        (self.sum > 0.0).then(|| own / self.sum)
    }
}

/// Medians of rows 4 and 5: a host, and a host past its kernel.
const HOST_NS: f64 = 4_500.0;
const PAST_KERNEL_NS: f64 = 946.0;

/// What stretches consist of: in the paper, which has so many hosts in it, and here.
pub(super) fn bars(breakdown: &Breakdown, stretch: &Stretch, hosts: f64) -> Vec<StackedBar> {
    let piece = |label: &str, ns: f64| StackedPiece { label: label.to_owned(), ns };
    let paper = StackedBar {
        label: "the paper: what medians of its rows 4 and 5 leave".to_owned(),
        pieces: vec![
            piece("the kernel", hosts * (HOST_NS - PAST_KERNEL_NS)),
            piece("program, card and PCI Express", hosts * PAST_KERNEL_NS),
        ],
    };
    let here = |label: String, composition: &Composition| {
        let held = Held::of(composition, stretch);
        let pieces = held.by.iter().map(|(holder, ns)| piece(holder.words(), *ns)).collect();
        (held.sum > 0.0).then_some(StackedBar { label, pieces })
    };
    let all = here("this machine, mean of all requests".to_owned(), &breakdown.all);
    let slow = breakdown.slow.as_ref().and_then(|slow| {
        here(format!("this machine, those above p{}", slow.percent), &slow.composition)
    });
    all.map_or_else(Vec::new, |all| [Some(paper), Some(all), slow].into_iter().flatten().collect())
}

/// Shares of a stretch by who had the request: the kernel in all, then each one.
pub(super) fn rows(breakdown: &Breakdown, stretch: &Stretch) -> Vec<Row> {
    let all = Held::of(&breakdown.all, stretch);
    let slow = breakdown.slow.as_ref().map(|slow| {
        (format!("of those above p{}", slow.percent), Held::of(&slow.composition, stretch))
    });
    let one = |what: String, of: &dyn Fn(Holder) -> bool| {
        let share = all.share(of)?;
        let mean = in_unit(share * all.sum, Unit::Nanoseconds);
        let whole = in_unit(all.sum, Unit::Nanoseconds);
        let slow = slow.as_ref().and_then(|(name, held)| {
            let share = in_unit(held.share(of)?, Unit::Share);
            let whole = in_unit(held.sum, Unit::Nanoseconds);
            Some(format!("{share} {name}, which took {whole}"))
        });
        let here = Here {
            value: share,
            unit: Unit::Share,
            interval: None,
            n: Some(breakdown.all.requests),
        };
        let why = sentence([Some(format!("{mean} of {whole} in the mean")), slow]);
        Some(row(what, why).here(here))
    };
    let title = |words: &str| format!("Figure 4: {words}, of {}", stretch.name);
    let kernel =
        one(title("the kernel in all"), &Holder::is_kernel).map(|row| match stretch.kernel {
            Some(words) => row.paper(words).brief("share of the kernel", "79% of the median"),
            None => row,
        });
    let each = all
        .by
        .iter()
        .filter_map(|(holder, _)| one(title(holder.words()), &|other| other == *holder));
    kernel.into_iter().chain(each).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use whylate_model::Nanos;
    use whylate_model::breakdown::{PartShare, Slow};

    use super::*;

    /// A breakdown of parts with these mean times.
    pub(in crate::pam2017) fn planted(whole: Part, parts: &[(Point, Point, f64)]) -> Breakdown {
        let total: f64 = parts.iter().map(|(_, _, ns)| ns).sum();
        let shares = parts.iter().map(|(from, to, ns)| PartShare {
            part: Part { from: *from, to: *to },
            requests: 1_000,
            mean_ns: *ns,
            share: ns / total,
            told_apart: true,
            series: None,
        });
        let all = Composition {
            requests: 1_000,
            total_mean_ns: total,
            parts: shares.collect(),
            ..Composition::default()
        };
        Breakdown {
            whole,
            series: None,
            points: Vec::new(),
            probes: Vec::new(),
            stamps: Vec::new(),
            card: None,
            dropped: Vec::new(),
            far_stamps: Vec::new(),
            part_agreements: Vec::new(),
            pairs: None,
            requests: 1_000,
            left_out: Vec::new(),
            all,
            slow: None,
            agreements: Vec::new(),
            slowest: Vec::new(),
            asides: Vec::new(),
            tap: None,
            cost: None,
        }
    }

    fn there(station: Station) -> Point {
        Point::there(station)
    }

    fn back(station: Station) -> Point {
        Point::back(station)
    }

    /// A whole round trip of 20 us.
    pub(in crate::pam2017) fn round_trip() -> Breakdown {
        use Station::{Arrived, Delivered, Driver, Queued, Read, Running, Sent, Woken};
        let parts = [
            (there(Sent), there(Queued), 1_000.0),
            (there(Queued), there(Driver), 500.0),
            (there(Driver), there(Arrived), 500.0),
            (there(Arrived), there(Delivered), 1_000.0),
            (there(Delivered), there(Woken), 500.0),
            (there(Woken), there(Running), 4_000.0),
            (there(Running), there(Read), 500.0),
            (there(Read), back(Sent), 2_000.0),
            (back(Sent), back(Driver), 1_000.0),
            (back(Driver), back(Arrived), 1_000.0),
            (back(Arrived), back(Read), 8_000.0),
        ];
        planted(Part { from: there(Sent), to: back(Read) }, &parts)
    }

    fn share(rows: &[Row], words: &str) -> f64 {
        let found = rows.iter().find(|row| row.what.contains(words));
        found.unwrap_or_else(|| panic!("{words}: {rows:#?}")).here.as_ref().unwrap().value
    }

    #[test]
    fn the_hosts_time_is_what_lies_between_its_drivers_and_its_shares_add_up() {
        let rows = rows(&round_trip(), &HOST);
        // 1000 + 500 + 4000 + 500 + 2000 + 1000 between the drivers.
        for (words, ns) in [
            ("the kernel in all", 7_000.0),
            ("kernel, receiving", 1_000.0),
            ("wake-up and reading", 5_000.0),
            ("server's program", 2_000.0),
            ("kernel, sending", 1_000.0),
        ] {
            assert!((share(&rows, words) - ns / 9_000.0).abs() < 1e-9, "{words}: {rows:#?}");
        }
        let each: f64 = rows[1..].iter().map(|row| row.here.as_ref().unwrap().value).sum();
        assert!((each - 1.0).abs() < 1e-9 && rows.len() == 5, "{rows:#?}");
        assert!(rows[0].paper.as_deref().unwrap().starts_with("79.0%"), "{rows:#?}");
        assert!(rows[0].why.contains("7.00us of 9.00us in the mean"), "{rows:#?}");
    }

    #[test]
    fn the_papers_bar_is_what_its_medians_leave_and_this_hosts_are_its_means() {
        let bars = bars(&round_trip(), &HOST, 1.0);
        let sums = bars.iter().map(|bar| bar.pieces.iter().map(|piece| piece.ns).sum::<f64>());
        let sums: Vec<f64> = sums.collect();
        assert_eq!(sums.len(), 2, "none of requests that are not slow");
        assert!((sums[0] - 4_500.0).abs() < 1e-9 && (sums[1] - 9_000.0).abs() < 1e-9, "{sums:?}");
        let kernel = bars[0].pieces[0].ns / sums[0];
        assert!(HOST.kernel.unwrap().starts_with(&format!("{:.1}%", 100.0 * kernel)), "{kernel}");
        let nothing = Breakdown { all: Composition::default(), ..round_trip() };
        assert!(super::bars(&nothing, &HOST, 1.0).is_empty());
    }

    #[test]
    fn what_cannot_be_told_apart_has_a_row_of_its_own_and_slow_requests_their_shares() {
        let whole = Part { from: there(Station::Sent), to: back(Station::Read) };
        let parts = [
            (there(Station::Sent), there(Station::Arrived), 3_000.0),
            (there(Station::Arrived), back(Station::Driver), 5_000.0),
            (back(Station::Driver), back(Station::Read), 2_000.0),
        ];
        let mut breakdown = planted(whole, &parts);
        let composition = Composition { total_mean_ns: 3e6, ..round_trip().all };
        breakdown.slow = Some(Slow { percent: 99.9, from: Nanos(50_000), composition });
        let all = Stretch { from: whole.from, to: whole.to, name: "the round trip", kernel: None };
        let rows = rows(&breakdown, &all);
        assert!((share(&rows, "not told apart") - 1.0).abs() < 1e-9, "{rows:#?}");
        assert!((share(&rows, "the kernel in all")).abs() < 1e-9, "{rows:#?}");
        assert!(rows[0].why.contains("82.5% of those above p99.9, which took 20.0us"), "{rows:#?}");
        let nothing = Breakdown { all: Composition::default(), ..breakdown };
        assert!(super::rows(&nothing, &all).is_empty());
    }

    #[test]
    fn every_part_between_neighbours_has_one_holder() {
        use Station::{Arrived, Driver, Intended, Read, Sent, Tap};
        for (from, to, holder) in [
            (there(Intended), there(Sent), Holder::Client),
            (there(Sent), there(Driver), Holder::Sending),
            (there(Driver), there(Tap), Holder::Way),
            (back(Tap), back(Arrived), Holder::Way),
            (there(Arrived), there(Read), Holder::Delivering),
            (there(Read), back(Sent), Holder::Program),
            (there(Driver), there(Read), Holder::NotToldApart),
            (there(Arrived), back(Sent), Holder::NotToldApart),
        ] {
            assert_eq!(Holder::of(Part { from, to }), holder, "{from} to {to}");
        }
    }
}
