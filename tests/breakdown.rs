//! Where requests spend their time: parts that sum to the whole in every request, by each source alone
//! and by several that agree, and what is done without when something cannot be had.

use std::path::Path;

use whylate_model::breakdown::{
    Breakdown, Differences, Leg, LookingCost, PartAgreement, Point, PointFacts, Source, Station,
    StoredJourney,
};
use whylate_model::directory::RunDir;
use whylate_model::event::EventKind;
use whylate_model::packet::{Outcome, StoredPacket};
use whylate_model::run::Run;
use whylate_model::segments::{read_journeys, read_packets};
use whylate_model::warning::Warning;
use whylate_sys::ring_receive::RingReceive;

use crate::needs;
use crate::program::{self, Recorded, record_without_rights, recorded, said, whylate};
use crate::reflect::Started;
use crate::requests::{Bed, flow, logged, series};

/// A short run that takes requests apart.
fn taken_apart(words: &str) -> Recorded {
    recorded(&format!("rtt --rate 1kpps --duration 300ms --warmup 100ms --log-packets {words}"))
}

fn breakdown(run: &Run) -> &Breakdown {
    flow(run).breakdown.as_deref().expect("requests were taken apart")
}

fn journeys(directory: &Path) -> Vec<StoredJourney> {
    let directory = RunDir::open(directory).unwrap();
    read_journeys(&directory).unwrap().map(Result::unwrap).collect()
}

fn packets(directory: &Path) -> Vec<StoredPacket> {
    let directory = RunDir::open(directory).unwrap();
    read_packets(&directory).unwrap().map(Result::unwrap).collect()
}

/// What holds of every breakdown: requests are all there, and the mean parts sum to the mean whole.
fn closes(run: &Run) {
    let of = breakdown(run);
    let left_out: u64 = of.left_out.iter().map(|left| left.requests).sum();
    let packets = &flow(run).packets;
    let intended = packets.sent + packets.never_sent + packets.refused;
    assert_eq!(of.requests + left_out, intended, "{packets:?} {of:?}");
    assert!(of.requests > 0, "nothing was taken apart: {:?}", of.left_out);
    for composition in [Some(&of.all), of.slow.as_ref().map(|slow| &slow.composition)] {
        let Some(composition) = composition else { continue };
        let sum: f64 = composition.parts.iter().map(|part| part.mean_ns).sum();
        let total = composition.total_mean_ns;
        assert!((sum + composition.residual_ns - total).abs() < 1.0, "{composition:?}");
        assert!(composition.residual_ns.abs() <= 1e-6 * total.max(1.0), "{composition:?}");
        let shares: f64 = composition.parts.iter().map(|part| part.share).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{composition:?}");
    }
}

/// In every request of the log its first and last points are those of its own record, so that parts
/// between them sum to its own response; those that lack one of both, or have them the wrong way round,
/// are as many as are left out for that. How many are taken apart.
fn every_request_sums(run: &Run, directory: &Path) -> u64 {
    let packets = packets(directory);
    let (first, last) = (Point::there(Station::Intended), Point::back(Station::Read));
    let (mut checked, mut unfitted) = (0, 0);
    for journey in journeys(directory) {
        let at = |point: Point| journey.passed[point.index()];
        let fits = at(first).zip(at(last)).filter(|((begin, _), (end, _))| begin <= end);
        let Some(((begin, _), (end, _))) = fits else {
            unfitted += 1;
            continue;
        };
        let of = |packet: &&StoredPacket| packet.number == Some(journey.number);
        let packet = packets.iter().find(of).expect("its record");
        assert_eq!((packet.outcome, packet.at), (Outcome::Answered, end));
        assert_eq!(packet.intended, Some(begin), "{journey:?}");
        checked += 1;
    }
    let of = breakdown(run);
    let unfit = of.left_out.iter().filter(|left| UNFIT.contains(&&*left.reason));
    let left_out: u64 = unfit.map(|left| left.requests).sum();
    each_part_has_its_histogram(run, directory);
    assert_eq!((checked, unfitted), (of.requests, left_out), "{:?}", of.left_out);
    checked
}

/// Each part has a series of its own over the requests that have it, and a histogram of as many in the log;
/// beyond 64 parts there are none for the rest.
fn each_part_has_its_histogram(run: &Run, directory: &Path) {
    let parts = &breakdown(run).all.parts;
    let with = parts.iter().filter(|part| part.series.is_some());
    assert_eq!(with.clone().count(), parts.len().min(64), "{parts:#?}");
    for part in with {
        let Some(name) = part.series.as_deref() else { continue };
        let of = series(run, name).unwrap_or_else(|| panic!("{name} is not in the run"));
        assert_eq!(of.n, part.requests, "{part:?} {of:?}");
        assert_eq!(logged(directory, name).len(), part.requests, "{part:?}");
    }
}

/// Why journeys that are in the log are not taken apart.
const UNFIT: [&str; 3] = [
    "it is not known when it began",
    "it is not known when it ended",
    "it ended before it began, by what is known of it",
];

/// Of so many requests this point came by that source.
fn came(of: &Breakdown, point: Point, source: Source) -> u64 {
    let facts = of.points.iter().filter(|facts| facts.point == point && facts.source == source);
    facts.map(|facts| facts.came).sum()
}

#[test]
fn parts_sum_to_the_total_in_every_request_by_stamps_alone() {
    let _alone = program::alone();
    for port in ["udp", "tcp"] {
        let recorded = taken_apart(&format!("--port {port} --breakdown=stamps,told --no-trace"));
        closes(&recorded.run);
        let of = breakdown(&recorded.run);
        assert!(every_request_sums(&recorded.run, &recorded.directory) > 0);
        // What is sent over loopback is stamped by the kernel, whoever asks.
        let driver = came(of, Point::there(Station::Driver), Source::Software);
        assert!(driver > 0, "{port}: {:#?}", of.points);
        let probed = of.probes.iter().find(|probed| probed.stamp == "tx software");
        assert!(probed.is_some_and(|of| of.accepted && of.delivered > 0), "{:?}", of.probes);
        assert!(of.points.iter().all(|facts| facts.source != Source::Trace), "{:#?}", of.points);
        assert_eq!(of.pairs, None, "nothing was followed");
        // A client that spins is told of what the other end's kernel has, where the transport is.
        let acked = of.asides.iter().find(|aside| aside.stamp == "tx ack");
        match (port, acked) {
            ("tcp", Some(aside)) => {
                assert_eq!(aside.came + aside.missing, aside.requests, "{aside:?}");
                assert!(aside.came > 0, "{aside:?}");
                let series = recorded.run.series.iter();
                let found = series.filter(|of| Some(&of.name) == aside.series.as_ref());
                assert_eq!(found.count(), 1, "{aside:?}");
            }
            ("udp", None) => {
                let ack = of.probes.iter().find(|probed| probed.stamp == "tx ack").unwrap();
                assert_eq!((ack.delivered, ack.reason.is_some()), (0, true), "{ack:?}");
            }
            _ => panic!("{port}: {acked:?}"),
        }
        // Loopback has no card: the kernel takes the wish, nothing comes, and that is said.
        let card = of.probes.iter().find(|probed| probed.stamp == "tx hardware").unwrap();
        assert!(card.sent > 0 && card.delivered == 0, "{card:?}");
        let why = card.reason.as_deref().unwrap_or_default();
        assert!(why.starts_with("hardware: not present"), "{why}");
        assert!(of.points.iter().all(|facts| facts.source != Source::Hardware), "{:#?}", of.points);
    }
}

#[test]
fn parts_sum_to_the_total_in_every_request_by_the_trace_alone() {
    let _alone = program::alone();
    if !needs::root() || needs::tracefs().is_none() {
        return;
    }
    for (port, wait) in [("udp", "spin"), ("udp", "block"), ("tcp", "spin"), ("tcp", "block")] {
        traced(&format!("--port {port} --wait {wait} --breakdown=trace"), wait);
    }
}

/// What holds of each request by the trace, which sees some wherever they pass.
fn traced(words: &str, wait: &str) {
    let recorded = taken_apart(words);
    closes(&recorded.run);
    let of = breakdown(&recorded.run);
    assert!(every_request_sums(&recorded.run, &recorded.directory) > 0);
    let pairs = of.pairs.as_deref().expect("the trace was followed");
    assert!(pairs.adds_up() && pairs.requests >= of.requests, "{words}: {pairs:#?}");
    assert!(pairs.by_socket + pairs.by_order > 0, "{words}: {pairs:#?}");
    for point in [
        Point::there(Station::Driver),
        Point::there(Station::Delivered),
        Point::there(Station::Read),
        Point::back(Station::Driver),
        Point::back(Station::Delivered),
    ] {
        // Who spins may have read before the kernel tells of the delivery.
        if wait == "spin" && point.station == Station::Delivered {
            continue;
        }
        let came = came(of, point, Source::Trace);
        assert!(came > 0, "{words}: {point} of {}: {:#?}", of.requests, of.points);
    }
    let woken = came(of, Point::back(Station::Woken), Source::Trace);
    let ran = came(of, Point::back(Station::Running), Source::Trace);
    assert!(ran <= woken, "who ran then had been woken: {:#?}", of.points);
    // Who spins may have been stopped meanwhile, or have waited for memory: then it was woken, too. A server that blocks sleeps from one request to the next; a client may still be on its way into its
    // sleep when a quick reply is there.
    let woken = came(of, Point::there(Station::Woken), Source::Trace);
    assert!(wait == "spin" || woken > 0, "{words}: {:#?}", of.points);
}

#[test]
fn what_stamps_and_tracepoints_tell_together_is_counted_and_a_contradiction_alone_is_named_so() {
    let _alone = program::alone();
    if !needs::root() || needs::tracefs().is_none() {
        return;
    }
    let recorded = taken_apart("--wait block --breakdown");
    closes(&recorded.run);
    let of = breakdown(&recorded.run);
    let both = |point: Point| {
        let found = of.agreements.iter().find(|agreement| {
            let sources = [agreement.told.used, agreement.told.beside];
            agreement.point == point
                && sources.contains(&Source::Software)
                && sources.contains(&Source::Trace)
        });
        found.unwrap_or_else(|| panic!("{point} by both: {:#?}", of.agreements))
    };
    for station in [Station::Queued, Station::Driver, Station::Arrived] {
        let agreement = &both(Point::there(station)).told;
        assert!(agreement.requests > 0, "{agreement:?}");
        let counts = [agreement.agree, agreement.in_order, agreement.requests];
        assert!(counts.is_sorted(), "{agreement:?}");
        assert_eq!(agreement.agree + agreement.disagree(), agreement.requests, "{agreement:?}");
    }
    // The parts between them, too, are told by both.
    let by_both = |of: &&PartAgreement| {
        let sources = [of.told.used, of.told.beside];
        sources.iter().all(|of| matches!(of, Source::Software | Source::Trace))
    };
    let parts: Vec<&PartAgreement> = of.part_agreements.iter().filter(by_both).collect();
    let parts: Vec<&Differences> = parts.into_iter().map(|of| &of.told).collect();
    assert!(parts.iter().any(|of| of.requests > 0), "{:?}", of.part_agreements);
    for told in parts {
        assert!(told.least_ns <= told.most_ns, "{told:?}");
        assert!([told.agree, told.in_order, told.requests].is_sorted(), "{told:?}");
    }
    let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("The same part by two sources"), "{text}");
    // Each pair of sources is named that contradicts itself in more than it may; without one, that is said.
    let points = of.agreements.iter().map(|of| &of.told);
    let all = points.chain(of.part_agreements.iter().map(|of| &of.told));
    let wrong = all.filter(|told| told.is_contradiction()).count();
    assert_eq!(text.matches("contradict each other").count(), wrong, "{text}");
    assert_eq!(text.contains("points that two sources tell:"), wrong == 0, "{text}");
    // The server's own reading of a request lies after its delivery and before its answer.
    for journey in journeys(&recorded.directory) {
        let at = |point: Point| journey.passed[point.index()].map(|(at, _)| at);
        let read = at(Point::there(Station::Read));
        let (sent, driver) = (at(Point::back(Station::Sent)), at(Point::back(Station::Driver)));
        if let (Some(read), Some(sent)) = (read, sent) {
            assert!(read <= sent, "{journey:?}");
        }
        if let (Some(sent), Some(driver)) = (sent, driver) {
            assert!(sent <= driver, "{journey:?}");
        }
    }
}

#[test]
fn requests_through_a_bed_are_seen_at_both_ends() {
    let _alone = program::alone();
    let Some(bed) = Bed::up("apart") else { return };
    if needs::tracefs().is_none() {
        return;
    }
    let recorded = taken_apart(&format!("--bed {} --wait block --breakdown", bed.0));
    closes(&recorded.run);
    let of = breakdown(&recorded.run);
    for leg in [Leg::Request, Leg::Reply] {
        let point = Point { leg, station: Station::Arrived };
        assert!(came(of, point, Source::Trace) > 0, "{point}: {:#?}", of.points);
    }
}

#[test]
fn requests_over_af_xdp_are_told_of_by_metadata_of_frames_and_what_never_came_is_named() {
    let _alone = program::alone();
    if needs::lacks("xdp") {
        return;
    }
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up("metadata") else { return };
    let words = "--port xdp --wait spin --breakdown=stamps,told --no-trace";
    let recorded = taken_apart(&format!("--bed {} {words}", bed.0));
    closes(&recorded.run);
    every_request_sums(&recorded.run, &recorded.directory);
    let of = breakdown(&recorded.run);
    let probed = |stamp: &str| {
        let found = of.probes.iter().find(|probed| probed.stamp == stamp);
        found.unwrap_or_else(|| panic!("{stamp}: {:#?}", of.probes))
    };
    for stamp in ["tx completion", "rx software", "tx hardware", "rx hardware"] {
        let one = probed(stamp);
        if one.delivered == 0 {
            // Where there is none it is told why, and nothing is claimed of it below. On a busy machine nobody may
            // have answered in time.
            let why = one.reason.as_deref().unwrap_or_default();
            assert!(!why.is_empty() && (one.accepted || one.sent == 0), "{one:?}");
            needs::absent(&format!("{stamp} of frames: {why}"));
            assert!(said(&recorded.output).contains(stamp), "{stamp} is not named");
        }
    }
    // No socket is stamped, and a virtual link has no card.
    let refused = probed("tx software");
    assert!(!refused.accepted && refused.sent == 0 && refused.reason.is_some(), "{refused:?}");
    let stamped = |facts: &PointFacts| [Source::Software, Source::Hardware].contains(&facts.source);
    assert!(!of.points.iter().any(stamped), "{:#?}", of.points);
    let arrived = Point::back(Station::Arrived);
    let mut told = of.points.iter().filter(|facts| facts.source == Source::Metadata);
    let (Some(facts), None) = (told.next(), told.next()) else { panic!("{:#?}", of.points) };
    assert_eq!(facts.point, arrived);
    assert!(facts.came + facts.missing >= of.requests, "{facts:?}");
    if probed("rx software").delivered > 0 {
        assert!(facts.came > 0, "{facts:?}");
    } else {
        assert_eq!(facts.came, 0, "{facts:?}");
    }
    match (probed("tx completion").delivered > 0, &of.asides[..]) {
        (true, [aside]) => {
            assert_eq!(aside.came + aside.missing, aside.requests, "{aside:?}");
            assert!(aside.came > 0, "{aside:?}");
        }
        (false, []) => (),
        (_, asides) => panic!("{asides:?}"),
    }
}

#[test]
fn without_privilege_the_stamps_tell_alone_and_without_stamps_the_total_is_told() {
    let _alone = program::alone();
    let words = "rtt --rate 1kpps --duration 400ms --warmup 100ms";
    let Some(stamped) = record_without_rights(&format!("{words} --breakdown")) else { return };
    closes(&stamped.run);
    let of = breakdown(&stamped.run);
    assert!(came(of, Point::there(Station::Driver), Source::Software) > 0, "{:#?}", of.points);
    let untraced = |warning: &Warning| matches!(warning, Warning::NoKernelTrace { .. });
    assert!(stamped.run.warnings.iter().any(untraced), "{:?}", stamped.run.warnings);
    let Some(bare) = record_without_rights(&format!("{words} --breakdown=trace")) else { return };
    closes(&bare.run);
    let of = breakdown(&bare.run);
    let only: Vec<Source> = of.points.iter().map(|facts| facts.source).collect();
    assert!(only.iter().all(|source| *source == Source::Own), "{only:?}");
    let left_out = |warning: &Warning| matches!(warning, Warning::PartLeftOut { reason, .. } if reason.contains("their total"));
    assert!(bare.run.warnings.iter().any(left_out), "{:?}", bare.run.warnings);
    let text = said(&bare.output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("their total is known"), "{text}");
}

/// Can a ring be had, by anybody?
fn rings() -> bool {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    // Kernels before Linux 6.6 cannot forbid them.
    let allowed = disabled.map_or(true, |disabled| disabled.trim() == "0");
    let there = allowed && RingReceive::new().is_ok();
    if !there {
        needs::absent("no io_uring here, or kernel.io_uring_disabled forbids rings");
    }
    there
}

/// The client's stamps were refused: each kind is told with its reason, and no point of its is expected by
/// stamps.
fn refused(recorded: &Recorded) {
    closes(&recorded.run);
    let of = breakdown(&recorded.run);
    let warned = recorded.run.warnings.iter().any(|warning| {
        let Warning::PartLeftOut { part, reason } = warning else { return false };
        part.starts_with("the kernel's stamps of ") && reason.contains("io-uring")
    });
    assert!(warned, "{:?}", recorded.run.warnings);
    for stamp in ["tx sched", "tx software", "rx software"] {
        let probed = of.probes.iter().find(|probed| probed.stamp == stamp).expect("probed");
        assert!((probed.accepted, probed.sent, probed.delivered) == (false, 0, 0), "{probed:?}");
        let why = probed.reason.as_deref().unwrap_or_default();
        assert!(why.contains("io-uring"), "{probed:?}");
    }
    let near = [
        Point::there(Station::Queued),
        Point::there(Station::Driver),
        Point::back(Station::Arrived),
    ];
    let by_stamp =
        |facts: &&PointFacts| near.contains(&facts.point) && facts.source == Source::Software;
    assert_eq!(of.points.iter().find(by_stamp), None);
}

#[test]
fn where_the_clients_stamps_are_refused_tracepoints_tell_alone_and_without_them_the_total_is_told()
{
    let _alone = program::alone();
    if !needs::root() || needs::tracefs().is_none() || needs::cpus(2).is_none() || !rings() {
        return;
    }
    let recorded = taken_apart("--wait io-uring --breakdown");
    refused(&recorded);
    assert!(every_request_sums(&recorded.run, &recorded.directory) > 0);
    let of = breakdown(&recorded.run);
    let lost = |warning: &Warning| matches!(warning, Warning::TraceLost { .. });
    let told = came(of, Point::there(Station::Driver), Source::Trace) > 0;
    assert!(told || recorded.run.warnings.iter().any(lost), "{:#?}", of.points);
    // A server that tells nothing of its own, and a client that may not trace either.
    let server = Started::new("--listen 127.0.0.1:0");
    let words = format!(
        "rtt {} --wait io-uring --rate 1kpps --duration 400ms --warmup 100ms \
         --breakdown=stamps,trace",
        server.at()
    );
    let Some(bare) = record_without_rights(&words) else { return };
    refused(&bare);
    let of = breakdown(&bare.run);
    assert!(of.points.iter().all(|facts| facts.source == Source::Own), "{:#?}", of.points);
    let left_out = |warning: &Warning| matches!(warning, Warning::PartLeftOut { reason, .. } if reason.contains("their total"));
    assert!(bare.run.warnings.iter().any(left_out), "{:?}", bare.run.warnings);
}

#[test]
fn the_trace_is_gone_with_the_run_whether_it_ended_or_was_killed() {
    let _alone = program::alone();
    let Some(tracefs) = needs::tracefs().filter(|_| needs::root()) else { return };
    // An instance is named by its process: others may have theirs.
    let of = |process: u32| {
        let begin = format!("whylate-{process}-");
        tracefs.instances().unwrap().into_iter().any(|name| name.starts_with(&begin))
    };
    let words = "rtt --breakdown --rate 1kpps --duration 300ms --warmup 100ms";
    let words: Vec<&str> = words.split_whitespace().collect();
    let (_, ended) = program::recorded_beside(&words, |process| process);
    assert!(!of(ended), "an instance of a run that has ended");
    let home = tempfile::tempdir().unwrap();
    let mut command = whylate(["rtt", "--breakdown", "--duration", "60s", "-o"]);
    command.arg(home.path().join("run"));
    let mut going = program::Started::new(command);
    let killed = going.0.id();
    program::until("there is a trace", || of(killed).then_some(()));
    going.0.kill().unwrap();
    going.status();
    // The next run puts back what a killed one left.
    taken_apart("--breakdown=stamps --no-trace");
    assert!(!of(killed), "an instance of a run that was killed");
}

#[test]
fn polls_that_took_frames_in_stand_beside_slow_requests() {
    let _alone = program::alone();
    if !needs::root() || needs::tracefs().is_none() {
        return;
    }
    let recorded = taken_apart("--wait block --breakdown=trace");
    let followed = recorded.run.evidence.messages.as_ref().expect("messages were followed");
    if followed.missing.iter().any(|of| of.contains("napi:napi_poll")) {
        return needs::absent("napi:napi_poll is not on this kernel");
    }
    let lost = |warning: &Warning| matches!(warning, Warning::TraceLost { .. });
    let slowest = &breakdown(&recorded.run).slowest;
    let beside = slowest.iter().flat_map(|journey| &journey.beside);
    let polls: Vec<i32> = beside
        .filter_map(|beside| match beside.event.kind {
            EventKind::NapiPoll { work, .. } => Some(work),
            _ => None,
        })
        .collect();
    // Where there was room for the events of one of them, and none were lost, its poll is among them.
    let whole = slowest.iter().any(|of| of.events_left_out == 0 && !of.events_gone);
    let all_told = whole && !recorded.run.warnings.iter().any(lost);
    assert!(!polls.is_empty() || !all_told, "{slowest:#?}");
    assert!(polls.iter().all(|work| *work > 0), "a poll for nothing: {polls:?}");
}

#[test]
fn what_looking_costs_is_told_in_turns_with_nothing_against_itself() {
    let _alone = program::alone();
    let traced = needs::root() && needs::tracefs().is_some();
    let words = "rtt --rate 5kpps --wait block --duration 500ms --warmup 50ms --breakdown \
                 --breakdown-cost --rounds 4";
    let recorded = recorded(words);
    closes(&recorded.run);
    let cost = breakdown(&recorded.run).cost.as_ref().expect("what looking costs");
    let by: Vec<&str> = cost.ways.iter().map(|way| way.by.as_str()).collect();
    if traced {
        let all = ["nothing", "nothing, again", "stamps", "trace", "stamps and trace"];
        assert_eq!(by, all);
    } else {
        assert_eq!(by, ["nothing", "nothing, again", "stamps"]);
    }
    assert_eq!(cost.ways[0].more, None);
    assert!(cost.rounds <= 4, "{cost:?}");
    for way in &cost.ways[1..] {
        let Some(more) = way.more else { continue };
        for [estimate, low, high] in [more.median_ns, more.p99_ns] {
            assert!(low <= estimate && estimate <= high, "{way:?}");
        }
        assert!(way.median.0 > 0, "{way:?}");
    }
    in_turns(cost, 4);
    both_pairs_are_told(cost, &recorded);
}

/// Each round has each way once, and of any two of them each comes first in half of the rounds.
fn in_turns(cost: &LookingCost, rounds: usize) {
    let ways: Vec<&str> = cost.ways.iter().map(|way| way.by.as_str()).collect();
    assert_eq!(cost.order.len(), rounds, "{:?}", cost.order);
    let place = |round: &[String], by: &str| {
        let mut found = round.iter().enumerate().filter(|(_, of)| *of == by);
        let (Some((at, _)), None) = (found.next(), found.next()) else {
            panic!("not once: {by} in {round:?}")
        };
        at
    };
    for (number, one) in ways.iter().enumerate() {
        for other in &ways[..number] {
            let before = cost.order.iter().filter(|of| place(of, one) < place(of, other)).count();
            assert_eq!(2 * before, rounds, "{one} and {other}: {:?}", cost.order);
        }
    }
    assert!(cost.order.iter().all(|round| round.len() == ways.len()), "{:?}", cost.order);
}

/// Stamped against unstamped, and traced against untraced: each stands in the report with its intervals, or
/// with why it has none.
fn both_pairs_are_told(cost: &LookingCost, recorded: &Recorded) {
    let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, table) = text.split_once("What looking costs, over").expect("its table");
    let (table, _) = table.split_once("The same requests in turns").expect("how to read it");
    let told = cost.ways.iter().filter(|way| way.more.is_some()).count();
    // An interval at the median and one at p99, of each.
    let begins = |word: &&str| {
        word.strip_prefix('(').is_some_and(|end| {
            end.trim_start_matches(['-', '−', '<']).starts_with(|of: char| of.is_ascii_digit())
        })
    };
    let intervals = table.split(' ').filter(begins).count();
    assert!(intervals >= 2 * told, "{intervals} of {told}: {table}");
    for by in ["stamps", "trace"] {
        let more = cost.ways.iter().find(|way| way.by == by).and_then(|way| way.more);
        match (more, cost.untold.iter().find(|of| of.by == by)) {
            (Some(_), None) => assert!(table.contains(by), "{table}"),
            (None, Some(untold)) => {
                let words = format!("cost of looking by {by}: not told, because {}", untold.why);
                assert!(text.contains(&words), "no `{words}` in {text}");
            }
            both => panic!("{by}: {both:?}"),
        }
    }
    assert!(text.contains("everything in turns, in"), "{text}");
}

#[test]
fn what_cannot_be_had_or_was_not_asked_for_has_its_reason_in_place_of_its_cost() {
    let _alone = program::alone();
    let words =
        "rtt --rate 5kpps --wait block --duration 400ms --warmup 50ms --breakdown-cost --rounds 2";
    let reason = |recorded: &Recorded, by: &str| {
        let cost = breakdown(&recorded.run).cost.as_ref().expect("what looking costs");
        in_turns(cost, 2);
        both_pairs_are_told(cost, recorded);
        let untold = cost.untold.iter().find(|of| of.by == by);
        untold.unwrap_or_else(|| panic!("{by}: {cost:?}")).why.clone()
    };
    let stamped = recorded(&format!("{words} --breakdown=stamps"));
    assert!(reason(&stamped, "trace").contains("not asked for"));
    let Some(untraced) = record_without_rights(&format!("{words} --breakdown")) else { return };
    assert!(reason(&untraced, "trace").contains("trace cannot be had"));
}
