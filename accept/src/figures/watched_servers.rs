//! Servers that know nothing of it are watched: of how many requests their way is told, and how long their
//! work is.

use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::breakdown::{Point, Station, StoredJourney};
use whylate_model::directory::RunDir;
use whylate_model::run::Run;
use whylate_model::segments::read_journeys;

use super::fewest;
use crate::looked::median;
use crate::needs;
use crate::watching::{
    ALONE, Foreign, SHORT, SIGINT, TCP, UDP, WORK, Watch, ask_datagrams, ask_stream,
    asked_by_short_connections, behind_queued_bytes, behind_queued_datagrams, watched,
};

const MOST: Bound = Bound::AtLeast(0.9);
const HALF: Bound = Bound::AtLeast(0.5);
/// The median of its work, over what was planted.
const WORKED: Bound = Bound::Within(0.9, 1.5);

const fn row(claim: &'static str, unit: &'static str, bound: Bound) -> Row {
    Row { claim, unit, bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "watched_servers",
    method: "requests to foreign servers of datagrams (one thread, three, one that is killed) and of streams, \
             of those that were asked",
    rows: &[
        row("datagrams: taken apart", "share", MOST),
        row("datagrams: followed by the server's own socket", "share", MOST),
        row("one thread: work over what was planted", "ratio", WORKED),
        row("three threads: work over what was planted", "ratio", WORKED),
        row("a killed server: work over what was planted", "ratio", WORKED),
        row("streams by threads started meanwhile: taken apart", "share", HALF),
        row("and followed by the server's own socket", "share", HALF),
        row("of threads that end before they are found: seen", "share", Bound::AtMost(0.5)),
        row("behind datagrams that were queued before: taken apart", "share", HALF),
        row("behind bytes that were queued before: taken apart", "share", HALF),
    ],
    rounds: 7,
    seconds: 5.0,
    most_taken: Some(0.05),
    needs: || {
        needs::can_be_root()?;
        needs::can_trace()?;
        needs::can_run("python3")
    },
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let datagrams = [("1", 200, false), ("3", 200, false), ("1", 100, true)].map(of_datagrams);
    let mut readings = vec![
        fewest(datagrams.each_ref().map(|of| (of.requests, of.asked))),
        fewest(datagrams.each_ref().map(|of| (of.by_socket, of.asked))),
    ];
    readings.extend(datagrams.each_ref().map(|of| Reading::Value(of.work)));
    readings.extend(of_streams());
    let seen =
        |run: &Run, asked: u32| fewest([(watched(run).breakdown.requests, u64::from(asked))]);
    let (run, _) = asked_by_short_connections().unwrap();
    readings.push(seen(&run, SHORT));
    let (run, _) = behind_queued_datagrams().unwrap();
    readings.push(seen(&run, ALONE));
    let (run, _) = behind_queued_bytes().unwrap();
    readings.push(seen(&run, ALONE));
    Ok(readings)
}

/// What was seen of a server of datagrams.
struct Seen {
    asked: u64,
    requests: u64,
    by_socket: u64,
    /// Its work in the median, over what was planted.
    work: f64,
}

fn of_datagrams((threads, asked, killed): (&str, u32, bool)) -> Seen {
    let mut server = Foreign::start(UDP, threads).unwrap();
    let watch = Watch::start(&format!("udp:{} --log-requests", server.port));
    ask_datagrams(server.port, asked);
    if killed {
        server.child.kill().unwrap();
        server.child.wait().unwrap();
    } else {
        watch.signal(SIGINT);
    }
    let (run, _, watch) = watch.end();
    let of = &watched(&run).breakdown;
    let pairs = of.pairs.as_deref().expect("the trace was followed");
    let work = |journey: StoredJourney| {
        let at = |point: Point| journey.passed[point.index()].map(|(at, _)| at);
        let (read, sent) = at(Point::there(Station::Read)).zip(at(Point::back(Station::Sent)))?;
        Some(sent.since(read).to_nanos(run.clock.hz).0 as f64)
    };
    let directory = RunDir::open(&watch.directory).unwrap();
    let journeys = read_journeys(&directory).unwrap().map(Result::unwrap);
    let planted = WORK.parse::<f64>().unwrap() * 1e9;
    Seen {
        asked: u64::from(asked),
        requests: of.requests,
        by_socket: pairs.by_socket,
        work: median(journeys.filter_map(work).collect()) / planted,
    }
}

/// Each of two connections has a thread that was not there when watching began; calls of a thread are
/// filtered in as soon as it is known.
fn of_streams() -> [Reading; 2] {
    const EACH: u32 = 400;
    let server = Foreign::start(TCP, "1").unwrap();
    let watch = Watch::start(&format!("pid:{}", server.child.id()));
    let port = server.port;
    let clients = [0, 1].map(|_| std::thread::spawn(move || ask_stream(port, EACH)));
    for client in clients {
        client.join().unwrap();
    }
    // What is still on its way at the end is looked at once more.
    std::thread::sleep(Duration::from_millis(20));
    watch.signal(SIGINT);
    let (run, _, _watch) = watch.end();
    let of = &watched(&run).breakdown;
    let pairs = of.pairs.as_deref().expect("the trace was followed");
    let asked = u64::from(2 * EACH);
    [fewest([(of.requests, asked)]), fewest([(pairs.by_socket, asked)])]
}
