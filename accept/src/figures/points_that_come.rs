//! Of how many requests each point is told, by the kernel's stamps, its tracepoints, the other end and the
//! metadata of frames.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::breakdown::{Breakdown, CountedStamps, Point, Source, Station};
use whylate_model::run::Run;

use super::fewest;
use crate::needed;
use crate::one_end::whose_server_is_elsewhere;
use crate::plant;
use crate::program::{Recorded, recorded};
use crate::requests::{Bed, flow};

const MOST: Bound = Bound::AtLeast(0.9);

const fn row(claim: &'static str, bound: Bound) -> Row {
    Row { claim, unit: "share", bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "points_that_come",
    method: "requests of which a point is told, of all that are taken apart: over loopback, through a bed, \
             over AF_XDP; of several ports and waits the one that has fewest",
    rows: &[
        row("stamps by the driver over loopback", MOST),
        row("acknowledgements of a spinning client by TCP", MOST),
        row("stamps that came of those asked for", MOST),
        row("requests that the other end stamps", MOST),
        row("replies stamped as they arrive", Bound::AtLeast(0.5)),
        row("requests whose messages the trace follows", MOST),
        row("points by the trace", MOST),
        row("arrivals through a bed by the trace", MOST),
        row("arrivals over AF_XDP by metadata", MOST),
        row("way to another host and back as one part", MOST),
    ],
    rounds: 2,
    seconds: 18.0,
    most_taken: Some(0.05),
    needs: || needed::traced(&["ip"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let bed = plant::bed("points")?;
    let mut readings = by_stamps();
    readings.extend(by_both_ends(&bed));
    readings.extend(by_the_trace());
    let through = taken_apart(&format!("--bed {} --wait block --breakdown", bed.0));
    let arrived = [Point::there(Station::Arrived), Point::back(Station::Arrived)].map(|point| {
        (came(breakdown(&through.run), point, Source::Trace), breakdown(&through.run).requests)
    });
    readings.push(fewest(arrived));
    readings.push(by_metadata(&bed));
    drop(bed);
    readings.push(as_one_part(&whose_server_is_elsewhere().ok_or("there is no bed")?));
    Ok(readings)
}

fn taken_apart(words: &str) -> Recorded {
    recorded(&format!("rtt --rate 1kpps --duration 400ms --warmup 100ms {words}"))
}

fn breakdown(run: &Run) -> &Breakdown {
    flow(run).breakdown.as_deref().expect("requests were taken apart")
}

/// Of so many requests this point came by that source.
fn came(of: &Breakdown, point: Point, source: Source) -> u64 {
    let facts = of.points.iter().filter(|facts| facts.point == point && facts.source == source);
    facts.map(|facts| facts.came).sum()
}

/// Of a client that spins: stamps by the driver, and acknowledgements.
fn by_stamps() -> Vec<Reading> {
    let runs = ["udp", "tcp"].map(|port| {
        taken_apart(&format!("--port {port} --wait spin --breakdown=stamps,told --no-trace"))
    });
    let driver = runs.each_ref().map(|of| {
        let of = breakdown(&of.run);
        (came(of, Point::there(Station::Driver), Source::Software), of.requests)
    });
    let acked = breakdown(&runs[1].run).asides.iter().find(|aside| aside.stamp == "tx ack");
    let acked = acked.expect("it was asked for");
    vec![fewest(driver), Reading::Share { hits: acked.came, of: acked.requests }]
}

/// Of a client that sleeps, over loopback and through a bed: what came, and what the other end stamped.
fn by_both_ends(bed: &Bed) -> Vec<Reading> {
    let places = ["--port udp".to_owned(), "--port tcp".to_owned(), format!("--bed {}", bed.0)];
    let runs = places.map(|words| {
        taken_apart(&format!("--wait block --no-trace --breakdown=stamps,told {words}"))
    });
    let (mut near, mut far, mut arrived) = (Vec::new(), Vec::new(), Vec::new());
    for recorded in &runs {
        let of = breakdown(&recorded.run);
        near.extend(of.stamps.iter().map(|stamps| {
            let CountedStamps { asked, came, merged, .. } = *stamps;
            // What came of a stream in one read has one stamp, and is counted by it.
            (if stamps.stamp.starts_with("tx") { came } else { came + merged }, asked)
        }));
        let received = flow(&recorded.run).packets.received;
        far.extend(of.far_stamps.iter().map(|stamps| (stamps.asked, received)));
        near.push((came(of, Point::there(Station::Driver), Source::Software), of.requests));
        arrived.push((came(of, Point::back(Station::Arrived), Source::Software), of.requests));
    }
    vec![fewest(near), fewest(far), fewest(arrived)]
}

/// By each port and wait: messages that were followed, and the points on their way.
fn by_the_trace() -> Vec<Reading> {
    let (mut followed, mut points) = (Vec::new(), Vec::new());
    for (port, wait) in [("udp", "spin"), ("udp", "block"), ("tcp", "spin"), ("tcp", "block")] {
        let recorded = taken_apart(&format!("--port {port} --wait {wait} --breakdown=trace"));
        let of = breakdown(&recorded.run);
        let pairs = of.pairs.as_deref().expect("the trace was followed");
        assert!(pairs.adds_up(), "{pairs:#?}");
        followed.push((pairs.by_socket + pairs.by_order, pairs.requests));
        for point in [
            Point::there(Station::Driver),
            Point::there(Station::Delivered),
            Point::there(Station::Read),
            Point::back(Station::Driver),
            Point::back(Station::Delivered),
        ] {
            // Who spins may have read before the kernel tells of the delivery.
            if wait == "block" || point.station != Station::Delivered {
                points.push((came(of, point, Source::Trace), of.requests));
            }
        }
    }
    vec![fewest(followed), fewest(points)]
}

fn by_metadata(bed: &Bed) -> Reading {
    let words = "--port xdp --wait spin --breakdown=stamps,told --no-trace";
    let recorded = taken_apart(&format!("--bed {} {words}", bed.0));
    let of = breakdown(&recorded.run);
    let probed = of.probes.iter().find(|probed| probed.stamp == "rx software").expect("probed");
    if probed.delivered == 0 {
        return Reading::Absent(format!("frames are not stamped: {:?}", probed.reason));
    }
    let came = came(of, Point::back(Station::Arrived), Source::Metadata);
    fewest([(came, of.requests)])
}

/// From the client's driver to its arrival back nothing is told.
fn as_one_part(run: &Run) -> Reading {
    let of = breakdown(run);
    let (left, back) = (Point::there(Station::Driver), Point::back(Station::Arrived));
    let way = of.all.parts.iter().find(|part| (part.part.from, part.part.to) == (left, back));
    fewest([(way.map_or(0, |way| way.requests), of.requests)])
}
