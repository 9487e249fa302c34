//! A planted breakdown, and what is said of it.

use whylate_model::breakdown::{
    Aside, Beside, CardTold, CountedStamps, FarStamps, LeftOut, Leg, LookingCost, More, Passed,
    Probed, Slow, ThreadsFound, Untold, WatchedProcess,
};
use whylate_model::event::{Event, EventKind, Softirq};
use whylate_model::tail::End;
use whylate_model::tap::{TapCounts, TapPairing};
use whylate_model::{CpuId, Nanos, Pid};

use super::*;
use crate::timeline::tests::recorded;

fn answer(of: &Breakdown) -> String {
    super::answer(of, false).to_string()
}

/// Parts and their mean times in ns, of all and of the slow ones.
const STEPS: [(Point, f64, f64); 6] = [
    (Point::there(Station::Sent), 1_000.0, 1_000.0),
    (Point::there(Station::Queued), 200.0, 200.0),
    (Point::there(Station::Driver), 800.0, 800.0),
    (Point::there(Station::Arrived), 2_000.0, 92_000.0),
    (Point::there(Station::Read), 5_000.0, 5_000.0),
    (Point::back(Station::Sent), 1_000.0, 1_000.0),
];

fn composition(requests: u64, of: impl Fn(&(Point, f64, f64)) -> f64) -> Composition {
    let total: f64 = STEPS.iter().map(&of).sum();
    let ends = STEPS.iter().skip(1).map(|(point, ..)| *point);
    let ends = ends.chain([Point::back(Station::Read)]);
    let parts: Vec<PartShare> = STEPS
        .iter()
        .zip(ends)
        .map(|(step, to)| {
            let part = Part { from: step.0, to };
            PartShare {
                part,
                requests,
                mean_ns: of(step),
                share: of(step) / total,
                told_apart: step.0 != Point::there(Station::Arrived),
                series: Some(part.series("rtt")),
            }
        })
        .collect();
    let merged: f64 = parts.iter().filter(|of| !of.told_apart).map(|of| of.mean_ns).sum();
    Composition {
        requests,
        total_mean_ns: total,
        parts,
        not_told_apart_ns: merged,
        residual_ns: 0.0,
    }
}

fn facts(point: Point, source: Source, came: u64, missing: u64) -> PointFacts {
    let (resolution, bound) = (Nanos(1), Nanos(40));
    PointFacts {
        point,
        source,
        came,
        missing,
        not_asked: 0,
        twice: 0,
        unordered: 0,
        contradicted: 0,
        resolution,
        bound,
    }
}

fn reasoned(reason: &str, count: u64) -> Reasoned {
    Reasoned { reason: reason.to_owned(), count }
}

fn slowest() -> Journey {
    let mut at = 7_000;
    let mut passed = Vec::new();
    for (point, _, slow) in STEPS {
        passed.push(Passed { point, at: Ticks(at), source: Source::Trace });
        at += slow as u64;
    }
    passed.push(Passed { point: Point::back(Station::Read), at: Ticks(at), source: Source::Own });
    let event = |ticks, end, kind| {
        let event = Event { ticks: Ticks(ticks), cpu: CpuId(1), pid: Pid(9), kind };
        Beside { end, event }
    };
    let vector = Softirq::NetRx;
    Journey {
        number: 1_234,
        passed,
        beside: vec![
            event(9_100, Some(End::Other), EventKind::SoftirqEntry { vector }),
            event(9_900, Some(End::Other), EventKind::SoftirqExit { vector }),
            event(90_000, Some(End::Client), EventKind::Nmi { duration_ns: 5 }),
        ],
        events_left_out: 2,
        events_gone: true,
    }
}

/// Requests of 10 us, half of it in the server; slow ones wait for it to read.
pub(crate) fn planted(requests: u64) -> Breakdown {
    let slow = composition(requests / 1_000, |(.., slow)| *slow);
    let some = requests / 10;
    Breakdown {
        whole: Part { from: Point::there(Station::Sent), to: Point::back(Station::Read) },
        series: Some("rtt-whole".to_owned()),
        points: vec![
            facts(Point::there(Station::Sent), Source::Own, requests, 0),
            facts(Point::there(Station::Queued), Source::Trace, requests, 0),
            facts(Point::there(Station::Driver), Source::Trace, requests, 0),
            facts(Point::there(Station::Driver), Source::Software, requests - some, some),
            facts(Point::there(Station::WireOut), Source::Hardware, 0, requests),
            facts(Point::there(Station::Arrived), Source::Trace, requests, 0),
            facts(Point::there(Station::Woken), Source::Trace, 0, requests),
            facts(Point::there(Station::Read), Source::Trace, requests, 0),
            facts(Point::back(Station::Sent), Source::Trace, requests, 0),
            facts(Point::back(Station::Read), Source::Own, requests, 0),
        ],
        probes: vec![Probed {
            stamp: "tx hardware".to_owned(),
            accepted: true,
            sent: 20,
            delivered: 0,
            step: None,
            read_cost: None,
            reason: Some("not present".to_owned()),
        }],
        card: Some(CardTold {
            told: "card of eth0 stamps: nothing -> everything".to_owned(),
            changed: true,
            put_back: true,
        }),
        dropped: vec![
            reasoned("stamps that nobody took in time", 6),
            reasoned("entries unread", 1),
        ],
        far_stamps: planted_far_stamps(),
        part_agreements: planted_part_agreements(requests, some),
        pairs: Some(Box::new(Pairs {
            requests: requests + requests / 100,
            by_socket: requests.saturating_sub(4),
            by_order: 4,
            unpaired: vec![reasoned("several messages were read", requests / 100)],
            messages: 5 * requests,
            read: (2 * requests).saturating_sub(3),
            acknowledgements: 3 * requests,
            lost: vec![reasoned("still under way", 3)],
            merged: 7,
            ..Pairs::default()
        })),
        stamps: planted_stamps(requests),
        requests,
        left_out: vec![LeftOut { reason: "given up".to_owned(), requests: requests / 100 }],
        all: composition(requests, |(_, all, _)| *all),
        slow: (requests >= 1_000).then_some(Slow {
            percent: 99.9,
            from: Nanos(90_000),
            composition: slow,
        }),
        agreements: vec![Agreement {
            point: Point::there(Station::Driver),
            told: Differences {
                used: Source::Trace,
                beside: Source::Software,
                requests: requests - some,
                least_ns: -30,
                median_ns: -4,
                most_ns: 120,
                within: Nanos(41),
                agree: requests / 2,
                in_order: requests - some,
            },
        }],
        slowest: vec![slowest()],
        asides: vec![acknowledged(requests, some)],
        tap: None,
        cost: Some(LookingCost {
            rounds: 12,
            ways: vec![
                LookedAt { by: "nothing".to_owned(), median: Nanos(9_000), more: None },
                LookedAt {
                    by: "stamps".to_owned(),
                    median: Nanos(9_800),
                    more: Some(More {
                        median_ns: [800.0, 700.0, 900.0],
                        p99_ns: [-100.0, -900.0, 700.0],
                    }),
                },
            ],
            order: ["nothing stamps", "stamps nothing", "nothing stamps"]
                .map(|round| round.split(' ').map(str::to_owned).collect())
                .to_vec(),
            untold: vec![Untold { by: "trace".to_owned(), why: "no trace here".to_owned() }],
        }),
    }
}

fn planted_far_stamps() -> Vec<FarStamps> {
    vec![FarStamps {
        stamp: "rx software".to_owned(),
        asked: 9,
        came: 8,
        missing: 1,
        twice: 0,
        unknown: 7,
    }]
}

fn planted_part_agreements(requests: u64, some: u64) -> Vec<PartAgreement> {
    vec![PartAgreement {
        part: Part { from: Point::there(Station::Queued), to: Point::there(Station::Driver) },
        told: Differences {
            used: Source::Trace,
            beside: Source::Software,
            requests: requests - some,
            least_ns: -60,
            median_ns: 5,
            most_ns: 90,
            within: Nanos(82),
            agree: requests / 2,
            in_order: (requests - some).saturating_sub(1),
        },
    }]
}

fn planted_stamps(requests: u64) -> Vec<CountedStamps> {
    vec![CountedStamps {
        stamp: "tx software".to_owned(),
        asked: requests + 50,
        came: requests + 40,
        missing: 10,
        not_asked: 0,
        skipped: 9,
        twice: 1,
        unknown: 2,
        zero: 3,
        merged: 4,
        split: 5,
    }]
}

/// Stamps of acknowledgements, `some` of which never came.
fn acknowledged(requests: u64, some: u64) -> Aside {
    Aside {
        stamp: "tx ack".to_owned(),
        requests,
        came: requests - some,
        missing: some,
        not_asked: 0,
        unknown: 0,
        unordered: 1,
        contradicted: 0,
        resolution: Nanos(1),
        bound: Nanos(40),
        median: Some(Nanos(7_000)),
        p99: Some(Nanos(9_000)),
        most: Some(Nanos(40_000)),
        series: Some("rtt-tx-ack".to_owned()),
    }
}

/// What a tap saw of 2000 requests, of which three lie outside of their stamps.
fn tap() -> TapFacts {
    let side = |leg, stamp, agree, largest| TapSide {
        leg,
        stamp,
        compared: 1_990,
        agree,
        largest: Nanos(largest),
    };
    TapFacts {
        from: TapFrom::Bed { interface: "to-client".to_owned(), kept: 256 },
        clock: TapClock::System,
        pairing: TapPairing::Numbers,
        resolution: Nanos(1),
        packets: 4_002,
        lost: 0,
        skipped: 0,
        unwritten: 0,
        counts: TapCounts { paired: 1_999, unanswered: 1, ..TapCounts::default() },
        between: Some(TapBetween {
            agree: 1_987,
            disagree: 3,
            not_compared: 10,
            largest: Nanos(2_500),
            within: Nanos(82),
            sides: vec![
                side(Leg::Request, Station::Driver, 1_990, 0),
                side(Leg::Request, Station::Arrived, 1_987, 2_500),
            ],
        }),
        series: None,
        file: None,
    }
}

/// A run of one flow whose requests were taken apart.
pub(crate) fn run(breakdown: Breakdown) -> Run {
    use whylate_model::flow::ProcessVerdict;
    let mut flow = crate::merge::flows::tests::flow(1_000, ProcessVerdict::Held);
    flow.breakdown = Some(Box::new(breakdown));
    let mut run = Run { flows: vec![flow], ..recorded() };
    run.clock.hz = Hertz(1e9);
    run
}

/// A run that watched a process.
pub(crate) fn watching(breakdown: Breakdown) -> Run {
    let process = WatchedProcess {
        pid: Pid(77),
        name: "ser\u{1b}ver".to_owned(),
        threads: vec![(Pid(78), CpuId(1))],
        port: Some(7_000),
    };
    let mut run = recorded();
    run.clock.hz = Hertz(1e9);
    run.gaps.clear();
    let looking = Some(ThreadsFound { every: Nanos(200_000_000), threads: 3 });
    let lasted = Some(Nanos::SECOND);
    run.watched = Some(Box::new(Watched { process, breakdown, lasted, looking }));
    run
}

#[test]
fn the_answer_names_the_largest_parts_of_all_and_of_the_slow_ones() {
    let said = answer(&planted(2_000));
    assert_eq!(
        said,
        "2,000 requests took 10 µs in the mean from request sent to reply read: 50% the server \
         (request); 20% receive path, wake-up, read (request); 10% send path \
         (request). The 2 slowest requests of 2,000 took 90 µs or more, 100 µs on average: \
         92% receive path, wake-up, read (request); 5.0% the server (request); \
         1.0% send path (request)."
    );
    // Those of a sum were slow each in its own recording.
    let of_sum = super::answer(&planted(1_000), true).to_string();
    assert!(of_sum.contains(" 1 slow request of 1,000 took 100 µs: "), "{of_sum}");
    let of_sum = super::answer(&planted(2_000), true).to_string();
    assert!(of_sum.contains(" The 2 slow requests of 2,000 took "), "{of_sum}");
    let mut nothing = planted(2_000);
    nothing.requests = 0;
    assert_eq!(answer(&nothing), "No request was taken apart.");
}

#[test]
fn the_table_has_every_part_with_its_share_and_what_is_not_told_apart() {
    let run = run(planted(2_000));
    let taken = &of_run(&run)[0];
    let table = parts(taken);
    assert_eq!(table.rows.len(), STEPS.len() + 3);
    assert_eq!(
        table.rows[0],
        ["[1] send path", "request sent -> queued", "own, trace", "1 µs", "10%", "1 µs", "1.0%"]
    );
    assert!(table.texts()[4][0].ends_with("(not told apart)"), "{:?}", table.rows[3]);
    let last = |back: usize| &table.rows[table.rows.len() - back];
    assert_eq!(last(3)[3..], ["2 µs", "20%", "92 µs", "92%"]);
    assert_eq!(last(2)[3..5], ["0 ns", "0%"]);
    assert_eq!(last(1)[3..], ["10 µs", "100%", "100 µs", "100%"]);
}

#[test]
fn what_never_came_what_is_missing_and_what_was_left_out_is_said() {
    let run = run(planted(2_000));
    let said = remarks(&of_run(&run)[0]);
    let has = |words: &str| said.iter().any(|said| said.contains(words));
    assert!(has("never came: request wire out (card), request woken (trace)"), "{said:?}");
    assert!(has("missing in some requests: request driver (stamp) in 10%"), "{said:?}");
    assert!(has("20 requests are left out: given up"), "{said:?}");
    assert!(of_run(&run)[0].of.pairs.as_ref().is_some_and(|of| of.adds_up()));
    assert!(
        has("of 2,020 requests the replies of 1,996 were followed by their socket"),
        "{said:?}"
    );
    assert!(has("of 4 met by order, of 20 neither (20 several messages were read)"), "{said:?}");
    assert!(has("of 10,000 messages 3,997 were followed to their reader, 0 left"), "{said:?}");
    assert!(has("3 were lost (3 still under way); 7 reads took several pieces"), "{said:?}");
    assert!(has("takes and never delivers: tx hardware (not present)"), "{said:?}");
    assert!(has("a reader that is awake is not woken"), "{said:?}");
    assert!(!has("only the total"), "{said:?}");
    let mut alone = planted(2_000);
    alone.points.retain(|facts| facts.source == Source::Own || facts.came == 0);
    let run = super::tests::run(alone);
    assert!(remarks(&of_run(&run)[0]).iter().any(|said| said.contains("only the total is known")));
}

#[test]
fn what_a_card_was_told_and_what_was_dropped_is_said_where_there_is_any() {
    let said = |of: Breakdown| remarks(&of_run(&run(of))[0]).join("\n");
    let mut of = planted(10);
    let put_back = "eth0 stamps: nothing -> everything; put back in the end";
    assert!(said(of.clone()).contains(put_back));
    let other = "the other end's card is not stamped";
    assert!(said(of.clone()).contains(other));
    let mut no_card = of.clone();
    no_card.points.retain(|facts| facts.source != Source::Hardware);
    assert!(!said(no_card).contains(other), "neither is");
    if let Some(card) = &mut of.card {
        card.put_back = false;
    }
    assert!(said(of.clone()).contains("NOT put back: see the warnings"));
    if let Some(card) = &mut of.card {
        (card.told, card.changed) = ("card of eth0 stamps already: all".to_owned(), false);
    }
    assert!(said(of.clone()).contains("nothing was changed for the measurement: card of eth0"));
    of.card = None;
    let words = "7 were dropped on their way here (6 stamps that nobody took in time, 1 entries";
    assert!(said(of.clone()).contains(words));
    of.dropped.clear();
    let without = said(of.clone());
    assert!(!without.contains("not asked for"), "{without}");
    of.points[3].not_asked = 1_500;
    of.asides[0].not_asked = 6;
    let words = "room for few: request driver (stamp) in 1,500, tx ack in 6";
    assert!(said(of).contains(words));
    assert!(!without.contains("eth0") && !without.contains("dropped on their way"), "{without}");
}

#[test]
fn a_card_that_is_not_there_is_said_once_and_one_that_stamps_not_at_all() {
    let mut of = planted(10);
    let why = "hardware: not present: lo has no clock of its own";
    let row = |stamp: &str| Probed {
        stamp: stamp.to_owned(),
        accepted: false,
        sent: 0,
        delivered: 0,
        step: None,
        read_cost: None,
        reason: Some(why.to_owned()),
    };
    of.probes = vec![row("tx hardware"), row("rx hardware")];
    let of_card = |run: &Run| {
        let said = remarks(&of_run(run)[0]);
        said.iter().filter(|said| said.contains("hardware: ")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_card(&run(of.clone())), [why]);
    of.probes.clear();
    assert!(of_card(&run(of)).is_empty());
}

#[test]
fn probes_agreements_and_costs_have_tables_only_where_they_are() {
    let of = planted(2_000);
    assert_eq!(probes(&of).expect("a probe").rows[0][1..4], ["yes", "20", "0"]);
    let agree = agreements(&of).expect("two sources");
    assert_eq!(agree.rows[0][3..], ["1,000", "800", "1,800", "−30 ns", "−4 ns", "120 ns", "41 ns"]);
    let parts = part_agreements(&of).expect("two sources");
    assert_eq!(parts.rows[0][3..], ["1,000", "800", "1,799", "−60 ns", "5 ns", "90 ns", "82 ns"]);
    let cost = cost(&of).expect("measured");
    assert_eq!(cost.rows[1][1..], ["9.8 µs", "800 ns (700–900 ns)", "−100 ns (−900 to 700 ns)"]);
    let mut short = of.clone();
    if let Some(cost) = &mut short.cost {
        cost.rounds = 0;
    }
    // What has no number has its row and its reason, and how they were measured is said.
    assert_eq!(cost.rows[2], ["trace", "–", "–", "–"]);
    let said = account::cost(&of, false).join("\n");
    for words in [
        "cost of looking by trace: not told, because no trace here",
        "3 rounds, everything in turns, in 2 different orders",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    let caption = super::cost(&short).unwrap().caption;
    assert!(caption.contains("no round had requests enough"), "{caption}");
    let stamps_of = stamps(&of).expect("stamps were asked for");
    let counts = ["2,050", "2,040", "10", "9", "1", "2", "3", "4", "5"];
    assert_eq!(stamps_of.rows[0][0], "tx software");
    assert_eq!(stamps_of.rows[0][1..], counts);
    let far = far_stamps(&of).expect("the other end's");
    // What the other end does not tell is not shown as a count of none.
    assert_eq!(far.texts()[0], ["stamp", "asked", "came", "missing", "twice", "nobody's"]);
    assert_eq!(far.rows[0], ["rx software", "9", "8", "1", "0", "7"]);
    let aside = asides(&of).expect("acknowledged");
    let cells = ["2,000", "1,800", "200", "1", "0", "7 µs", "9 µs", "40 µs", "40 ns"];
    assert_eq!(aside.rows[0][1..], cells);
    assert_eq!(aside.rows[0][0], "tx ack");
    let none = Breakdown {
        probes: Vec::new(),
        stamps: Vec::new(),
        agreements: Vec::new(),
        asides: Vec::new(),
        cost: None,
        ..of
    };
    assert!(probes(&none).is_none() && agreements(&none).is_none() && stamps(&none).is_none());
    assert!(asides(&none).is_none());
    assert!(super::cost(&none).is_none());
}

#[test]
fn two_sources_that_contradict_each_other_are_named_and_those_that_do_not_are_counted() {
    let sound = planted(2_000);
    let said = remarks(&of_run(&run(sound.clone()))[0]).join("\n");
    assert!(said.contains("points that two sources tell: 1, and parts: 1; each"), "{said}");
    let mut wrong = sound;
    // Of 1 800 requests 18 may be out of order.
    wrong.agreements[0].told.in_order = 1_782;
    wrong.part_agreements[0].told.in_order = 1_781;
    let said = remarks(&of_run(&run(wrong))[0]).join("\n");
    assert!(said.contains("contradict each other in 19 of 1,800 requests"), "{said}");
    assert_eq!(said.matches("contradict each other").count(), 1, "{said}");
    assert!(!said.contains("points that two sources tell"), "{said}");
}

#[test]
fn that_the_cost_of_looking_was_not_measured_is_said_and_only_then() {
    let said = |of: Breakdown| remarks(&of_run(&run(of))[0]).join("\n");
    let words = "cost of looking: not measured";
    let measured = planted(2_000);
    assert!(!said(measured.clone()).contains(words));
    let not = said(Breakdown { cost: None, ..measured.clone() });
    assert!(not.contains(words) && not.contains("--breakdown-cost"), "{not}");
    // Nobody can for a process that is watched: nothing is named that would.
    let watched = watching(Breakdown { cost: None, ..measured });
    let not = remarks(&of_run(&watched)[0]).join("\n");
    assert!(not.contains(words) && not.contains("sent by others"), "{not}");
    assert!(!not.contains("whylate rtt"), "{not}");
}

#[test]
fn a_tap_between_the_stamps_has_a_table_and_a_sentence_with_what_does_not_agree() {
    let tapped = |tap: TapFacts| Breakdown { tap: Some(Box::new(tap)), ..planted(2_000) };
    let table = between(&tapped(tap())).expect("a tap and stamps");
    let rows: Vec<String> = table.texts()[1..].iter().map(|row| row.join("; ")).collect();
    assert_eq!(
        rows,
        [
            "request; behind driver (stamp); 1,990; 1,990; 0; 0 ns; 82 ns",
            "request; before arrived (stamp); 1,990; 1,987; 3; 2.5 µs; 82 ns",
        ]
    );
    let run = run(tapped(tap()));
    let said = remarks(&of_run(&run)[0]).join("\n");
    for words in [
        "the tap at to-client saw 4,002 packets and lost 0: 1,999 requests with their replies",
        "of 1,990 requests that both tell of 1,987 passed it between the stamps of both ends",
        "to within 82ns, 3 do not, by 2.50us at most; 10 cannot be compared",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    let text = crate::terminal::render(&run, crate::terminal::Style::default());
    assert!(text.contains("The tap between the stamps of both ends"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let own = tapped(TapFacts { between: None, clock: TapClock::Own, ..tap() });
    assert!(between(&own).is_none());
    let said = remarks(&of_run(&super::tests::run(own))[0]).join("\n");
    assert!(said.contains("its clock is its own"), "{said}");
}

#[test]
fn a_request_has_its_points_since_it_began() {
    let table = journey(&planted(2_000).slowest[0], Hertz(1e9));
    assert_eq!(table.caption, "Request 1,234: 100 µs");
    assert_eq!(table.rows[0], ["request sent", "trace", "0 ns", ""]);
    assert_eq!(table.rows[1][2..], ["1 µs", "send path 1 µs"]);
    assert_eq!(table.rows.len(), 7);
}

#[test]
fn a_watched_process_is_named_with_how_its_threads_were_found_and_its_name_prints_harmlessly() {
    let run = watching(planted(2_000));
    let taken = &of_run(&run)[0];
    assert!(remarks(taken)[0].contains("78 (CPU 1)"), "{:?}", remarks(taken));
    let found = "3 threads of it were found in 1 s, looked for every 200 ms: what one read";
    assert!(remarks(taken)[1].starts_with(found), "{:?}", remarks(taken));
    let text = crate::render(&run, crate::Style::default());
    for words in [
        "\nWhere requests spent their time: ser\\u{1b}ver (77), port 7000\n",
        "2,000 requests of ser\\u{1b}ver took 10 µs on average.",
    ] {
        assert!(text.contains(words) && !text.contains('\u{1b}'), "{words}: {text}");
    }
}

#[test]
fn the_parts_that_take_most_have_a_colour_in_the_order_of_the_way() {
    let mut many = planted(2_000);
    let station = |index: usize| Point { leg: many.whole.from.leg, station: Station::ALL[index] };
    let parts: Vec<PartShare> = (1..11)
        .map(|index| PartShare {
            part: Part { from: station(index), to: station(index + 1) },
            share: index as f64 / 55.0,
            ..many.all.parts[0].clone()
        })
        .collect();
    (many.all.parts, many.slow) = (parts, None);
    let colours = colours(&many);
    let numbers: Vec<Option<usize>> = colours.iter().map(|(_, colour)| *colour).collect();
    assert_eq!(numbers[..3], [None, None, Some(0)]);
    assert_eq!(numbers[9], Some(7));
}
