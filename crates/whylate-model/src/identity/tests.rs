//! Each component by a run that differs in nothing else, with both values as they are told.
//!
//! The runs are kept ones; what a comparison or a sum makes of a difference is theirs.

use std::path::Path;

use super::*;
use crate::directory::parse_run;
use crate::flow::Across;
use crate::load::LoadFacts;
use crate::run::LoopKind;
use crate::series::Censored;
use crate::settings::Setting;
use crate::threads::RuntimeSummary;
use crate::units::Nanos;

const RESPONSE: &str = "rtt-response";

fn kept(json: &str) -> Run {
    parse_run(Path::new("run.json"), json.as_bytes()).unwrap()
}

/// Requests of 64 bytes, 1000 a second, by a client on CPU 1.
fn requests() -> Run {
    kept(include_str!("../../../../tests/runs/rtt/run.json"))
}

/// Gaps of CPU 1.
fn gaps() -> Run {
    kept(include_str!("../../../../tests/runs/gaps/run.json"))
}

/// The threads audio, video and rest on CPU 1.
fn threads() -> Run {
    kept(include_str!("../../../../tests/runs/threads/run.json"))
}

/// A component with the values of both.
type Told = (Component, String, String);

fn told(one: &Identity, other: &Identity) -> Vec<Told> {
    let of = |(component, of): (Component, Difference)| {
        assert_eq!(of.name, component.name());
        (component, of.left, of.right)
    };
    one.differences(other).into_iter().map(of).collect()
}

/// In what a series of a run differs from the same one after a change; the change undone differs in the same.
fn differing(run: &Run, series: &str, change: impl FnOnce(&mut Run)) -> Vec<Told> {
    let mut changed = run.clone();
    change(&mut changed);
    let of = |run| Identity::of(run, series).unwrap();
    let (one, other) = (of(run), of(&changed));
    assert!(told(&one, &one).is_empty() && told(&other, &other).is_empty());
    let found = told(&one, &other);
    let back = found.iter().cloned().map(|(of, left, right)| (of, right, left));
    assert_eq!(told(&other, &one), back.collect::<Vec<_>>());
    found
}

/// It differs in nothing but this.
#[track_caller]
fn only(found: &[Told], component: Component, left: &str, right: &str) {
    assert_eq!(found, [(component, left.to_owned(), right.to_owned())]);
}

/// A change of a flow, what it is in, and how both sides read.
type OfFlow = (Component, &'static str, &'static str, fn(&mut Flow));

#[test]
fn each_thing_that_makes_requests_other_requests_is_told_with_both_values() {
    let cases: [OfFlow; 15] = [
        (Component::Transport, "udp over ipv4", "tcp over ipv4", |flow| {
            "tcp over ipv4".clone_into(&mut flow.way.backend);
        }),
        (Component::Waiting, "spin", "block", |flow| "block".clone_into(&mut flow.way.wait)),
        (Component::Protocol, "raw", "memcached", |flow| {
            "memcached".clone_into(&mut flow.way.protocol);
        }),
        (Component::Size, "64 bytes", "65 bytes", |flow| flow.asked.bytes = 65),
        (Component::Arrivals, "constant", "poisson", |flow| {
            "poisson".clone_into(&mut flow.asked.arrivals);
        }),
        (Component::Rate, "1000/s", "1020/s", |flow| flow.asked.per_second = Some(1_020.0)),
        (Component::Rate, "1000/s", "1000/s asked for, of which 900/s left in time", |flow| {
            flow.departures.in_time = 270;
        }),
        (Component::Rate, "1000/s", "1000/s asked for, of which 0/s left in time", |flow| {
            (flow.departures.intended, flow.departures.in_time) = (0, 0);
        }),
        (Component::Rate, "1000/s", "that of the replies", |flow| flow.asked.per_second = None),
        (Component::Outstanding, "any number", "at most 4", |flow| {
            flow.asked.most_under_way = Some(4);
        }),
        (Component::Direction, "there", "back", |flow| flow.asked.direction = Direction::Back),
        (Component::Replies, "asked for", "none", |flow| flow.asked.one_way = true),
        (Component::Replies, "asked for", "none: from a to b of one client", |flow| {
            let (out, back) = ("a".to_owned(), "b".to_owned());
            flow.way.across = Some(Across { out, back, one_thread: true });
        }),
        // One byte of a name that a terminal would take for an order.
        (Component::Transport, "udp over ipv4", "u\\u{1b}dp", |flow| {
            "u\x1bdp".clone_into(&mut flow.way.backend);
        }),
        (Component::Size, "64 bytes", "0 bytes", |flow| flow.asked.bytes = 0),
    ];
    let run = requests();
    for (component, left, right, change) in cases {
        let found = differing(&run, RESPONSE, |run| change(&mut run.flows[0]));
        only(&found, component, left, right);
    }
    assert_eq!(differing(&run, RESPONSE, |run| run.flows[0].asked.timeout = Some(Nanos(1))), []);
}

#[test]
fn what_says_which_number_it_is_is_told_first_with_the_clock() {
    let found = differing(&requests(), RESPONSE, |run| {
        let series = run.series.iter_mut().find(|of| of.name == RESPONSE).unwrap();
        (series.from, series.to) = ("there".to_owned(), "here".to_owned());
        (series.definition, series.clock) = (Definition::OneWayResponse, "raw".to_owned());
    });
    let expected = [
        (Component::From, "intended send", "there"),
        (Component::To, "after the receiving system call", "here"),
        (Component::Definition, "response time, from the due send", "one way, from the due send"),
        (Component::Clock, "tsc", "raw"),
    ];
    let expected = expected.map(|(of, left, right)| (of, left.to_owned(), right.to_owned()));
    assert_eq!(found, expected);
    assert_eq!(Identity::of(&requests(), "rtt"), None);
}

#[test]
fn a_time_after_which_requests_are_given_up_differs_only_where_both_gave_some_up() {
    let given_up = |count, above| {
        move |run: &mut Run| {
            let series = run.series.iter_mut().find(|of| of.name == RESPONSE).unwrap();
            series.censored = Some(Censored { count, above: Nanos(above) });
        }
    };
    let mut run = requests();
    assert_eq!(differing(&run, RESPONSE, given_up(3, 1_000)), []);
    given_up(3, 1_000)(&mut run);
    assert_eq!(differing(&run, RESPONSE, given_up(9, 1_000)), []);
    only(&differing(&run, RESPONSE, given_up(3, 2_000)), Component::Timeout, "1.00us", "2.00us");
    assert_eq!(differing(&run, RESPONSE, given_up(0, 2_000)), [], "nothing was given up");
}

fn load(word: &str) -> LoadFacts {
    LoadFacts {
        load: word.to_owned(),
        what: "TCP bulk over loopback".to_owned(),
        amount: 9,
        unit: "bytes".to_owned(),
        time: Nanos(1),
        offered: None,
        lost: None,
        course: Vec::new(),
        ended_early: false,
        notes: Vec::new(),
    }
}

/// Load that was made, in which words it was asked for, competitors, and how that is told.
type OfLoad = (&'static [&'static str], Option<&'static str>, Option<u64>, Option<&'static str>);

#[test]
fn load_is_told_in_the_words_that_ask_for_it_again_and_with_the_competitors() {
    let cases: [OfLoad; 7] = [
        (&[], None, None, None),
        (&[], None, Some(0), None),
        (&["net"], None, None, Some("net")),
        (&["net", "disk", "net"], None, None, Some("disk and net")),
        (&["net"], Some("net=1Gbit/s"), None, Some("net=1Gbit/s")),
        (&[], None, Some(3), Some("3 competitors on each CPU")),
        (&["net"], None, Some(3), Some("net, 3 competitors on each CPU")),
    ];
    for (made, asked, competitors, expected) in cases {
        let found = differing(&gaps(), "gap-cpu1", |run| {
            run.loads = made.iter().map(|word| load(word)).collect();
            let settings = &mut run.settings;
            settings.extend(asked.map(|words| ("load".to_owned(), words.into())));
            settings.extend(competitors.map(|count| ("competitors".to_owned(), count.into())));
        });
        match expected {
            Some(load) => only(&found, Component::Load, "none", load),
            None => assert_eq!(found, []),
        }
    }
}

#[test]
fn the_loop_and_its_work_are_part_of_what_gaps_are_and_of_no_other_series() {
    let run = gaps();
    let pair = differing(&run, "gap-cpu1", |run| run.gaps[0].loop_kind = LoopKind::Pair);
    only(&pair, Component::Loop, "chain", "pair");
    // Where the run has no account of the thread, its setting says which loop it was.
    let set = |word: &'static str| {
        move |run: &mut Run| {
            run.gaps.clear();
            run.settings.insert("loop".to_owned(), word.into());
        }
    };
    let mut without = run.clone();
    set("chain")(&mut without);
    only(&differing(&without, "gap-cpu1", set("pair")), Component::Loop, "chain", "pair");
    let work = |run: &mut Run| drop(run.settings.insert("work".to_owned(), "memory".into()));
    only(&differing(&run, "gap-cpu1", work), Component::Work, "nothing", "memory");
    let silent = |run: &mut Run| drop(run.settings.remove("work"));
    only(&differing(&run, "gap-cpu1", silent), Component::Work, "nothing", NOT_RECORDED);
    let other = |run: &mut Run| run.series[0].definition = Definition::DispatchLatency;
    let components = |found: Vec<Told>| found.into_iter().map(|(of, ..)| of).collect::<Vec<_>>();
    let all = [Component::Definition, Component::Loop, Component::Work];
    assert_eq!(components(differing(&run, "gap-cpu1", other)), all);

    let deltas = kept(include_str!("../../../../tests/runs/checkup/run.json"));
    let pair = |run: &mut Run| drop(run.settings.insert("loop".to_owned(), "pair".into()));
    only(&differing(&deltas, "delta-cpu1", pair), Component::Loop, "chain", "pair");
    assert_eq!(differing(&deltas, "udp-same-core", pair), []);
}

#[test]
fn the_role_of_a_cpu_is_that_of_the_cpus_on_which_the_series_was_measured() {
    let isolate = |cpus: &'static [u32]| {
        move |run: &mut Run| run.host.cpus_isolated = cpus.iter().copied().map(CpuId).collect()
    };
    let (shared, isolated) = ("shared with other threads", "isolated");
    for (run, series) in [(gaps(), "gap-cpu1"), (threads(), "wake-audio"), (requests(), RESPONSE)] {
        assert_eq!(differing(&run, series, isolate(&[0])), []);
        let found = differing(&run, series, isolate(&[1, 2]));
        only(&found, Component::CpuRole, shared, isolated);
    }
    let mut two = threads();
    two.threads[0].cpus.push(CpuId(2));
    let found = differing(&two, "wake-audio", isolate(&[2]));
    only(&found, Component::CpuRole, shared, "isolated and shared with other threads");
    assert_eq!(differing(&two, "response-video", isolate(&[2])), []);
    // Context switches and rows of a check-up are of no CPU that the run names.
    let costs = kept(include_str!("../../../../tests/runs/switch-cost/run.json"));
    assert_eq!(differing(&costs, "switch-threads-yield", isolate(&[1])), []);
}

#[test]
fn of_several_flows_the_client_of_each_has_a_cpu_of_its_own() {
    let isolate = |run: &mut Run| run.host.cpus_isolated = vec![CpuId(1)];
    let mut run = requests();
    let client = run.settings.remove("client").unwrap();
    let unknown = |run: &Run| differing(run, RESPONSE, isolate).is_empty();
    assert!(unknown(&run), "without a client no CPU is known");
    for (name, is_its) in [("client of rtt", true), ("client of rt", false), ("client rtt", false)]
    {
        let mut run = run.clone();
        run.settings.insert(name.to_owned(), client.clone());
        assert_eq!(!unknown(&run), is_its, "{name}");
    }
    // Of several flows of one series one is enough.
    let mut two = run.clone();
    let second = Flow { name: "second".to_owned(), ..two.flows[0].clone() };
    two.flows.push(second);
    assert!(unknown(&two));
    two.settings.insert("client of second".to_owned(), client.clone());
    assert!(!unknown(&two));
    let named = |run: &mut Run| drop(run.settings.insert("client".to_owned(), client.clone()));
    let found = differing(&run, RESPONSE, named);
    only(&found, Component::CpuRole, NOT_RECORDED, "shared with other threads");
}

#[test]
fn programs_of_other_steps_and_threads_of_another_deadline_are_other_task_sets() {
    let run = kept(include_str!("../../../../tests/runs/steps/run.json"));
    let series = run.series.iter().find(|of| thread_of(&run, &of.name).is_some()).unwrap();
    let name = series.name.clone();
    let thread = run.threads.iter().position(|of| !of.phases.is_empty()).unwrap();
    let phase = |change: fn(&mut PhaseSummary)| {
        let found = differing(&run, &name, |run| change(&mut run.threads[thread].phases[0]));
        found.iter().map(|of| of.0).collect::<Vec<_>>() == [Component::Tasks]
    };
    assert!(phase(|of| of.name.push('x')));
    assert!(phase(|of| of.run_asked.0 += 1_000_000));
    assert!(phase(|of| of.period_asked = Some(Nanos(7_000_000))));
    assert!(phase(|of| of.length_asked = Some(Nanos(7_000_000))));
    assert!(phase(|of| {
        of.runtime = Some(RuntimeSummary {
            asked: Nanos(7_000_000),
            lasted_ns: None,
            received_ns: None,
            longest_over: Nanos(0),
        });
    }));
    // What came of them is no part of what they are.
    assert!(!phase(|of| (of.passes, of.run_ns) = (of.passes + 1, None)));
    let mut set = threads();
    let with = set.threads.iter().position(|of| of.deadlines.is_some()).unwrap();
    let within = |ms: u64| Some(Nanos(ms * 1_000_000));
    set.threads[with].deadlines.as_mut().unwrap().deadline = within(5);
    let found = differing(&set, "wake-audio", |run| {
        run.threads[with].deadlines.as_mut().unwrap().deadline = within(8);
    });
    assert_eq!(found.len(), 1);
    assert!(found[0].1.contains("deadline 5.00ms"), "{found:?}");
}

#[test]
fn a_thread_is_told_by_what_runs_beside_it_in_whatever_order_and_by_its_own_timer() {
    let run = threads();
    assert_eq!(differing(&run, "wake-audio", |run| run.threads.swap(0, 2)), []);
    let before = "CPU (SCHED_OTHER nice 0); PERIODIC 17ms 33ms (SCHED_FIFO 1); \
                  PERIODIC 3ms 8ms (SCHED_FIFO 50)";
    let found = differing(&run, "wake-audio", |run| {
        run.threads[1].reservation = Some("17ms of 33ms".to_owned());
    });
    let after = before.replace("(SCHED_FIFO 1)", "(SCHED_FIFO 1, 17ms of 33ms)");
    only(&found, Component::Tasks, before, &after);
    let found = differing(&run, "wake-audio", |run| drop(run.threads.pop()));
    only(&found, Component::Tasks, before, before.split_once("; ").unwrap().1);

    let timer = |of: usize| move |run: &mut Run| "timerfd".clone_into(&mut run.threads[of].timer);
    let found = differing(&run, "wake-audio", timer(0));
    only(&found, Component::Timer, "clock_nanosleep absolute", "timerfd");
    assert_eq!(differing(&run, "wake-audio", timer(1)), []);
    // Of two names that a series ends in, the longer one is the thread's.
    let mut run = run;
    "b-audio".clone_into(&mut run.threads[1].name);
    "wake-b-audio".clone_into(&mut run.series[0].name);
    assert_eq!(differing(&run, "wake-b-audio", timer(0)), []);
    assert_eq!(differing(&run, "wake-b-audio", timer(1)).len(), 1);
    // A part of a name is none.
    "xaudio".clone_into(&mut run.series[0].name);
    assert_eq!(differing(&run, "xaudio", timer(0)), []);
}

#[test]
fn context_switches_are_told_by_the_runners_of_their_own_row() {
    let costs = kept(include_str!("../../../../tests/runs/switch-cost/run.json"));
    let change = |of: &'static str, with: fn(&mut Direct)| {
        move |run: &mut Run| {
            for row in &mut run.switch_cost.as_mut().unwrap().direct {
                if let Outcome::Measured(direct) = &mut row.outcome
                    && direct.series == of
                {
                    with(direct);
                }
            }
        }
    };
    let (yielding, taken) = ("switch-threads-yield", "switch-threads-involuntary");
    let more = |of| change(of, |direct| direct.runners = 3);
    let found = differing(&costs, yielding, more(yielding));
    let (left, right) =
        ("2 runners (SCHED_FIFO 10, each for 100us)", "3 runners (SCHED_FIFO 10, each for 100us)");
    only(&found, Component::Tasks, left, right);
    assert_eq!(differing(&costs, yielding, more(taken)), []);
    let found = differing(&costs, taken, change(taken, |direct| direct.policy = "FIFO".to_owned()));
    only(&found, Component::Tasks, "2 runners (SCHED_OTHER)", "2 runners (FIFO)");
}

/// A kept run and a series of it; a setting, what it is changed to, what that is in, and how both sides read.
type OfSetting =
    (&'static str, &'static str, &'static str, Setting, Component, &'static str, &'static str);

/// What reflectors, delay lines, forwarders, devices and calibrations may be asked for.
fn of_settings() -> [OfSetting; 10] {
    let reflect = include_str!("../../../../tests/runs/reflect/run.json");
    let delay = include_str!("../../../../tests/runs/delay/run.json");
    let forward = include_str!("../../../../tests/runs/forward/run.json");
    let device = include_str!("../../../../tests/runs/device/run.json");
    let calibrate = include_str!("../../../../tests/runs/calibrate/run.json");
    [
        (
            reflect,
            "reflect-residence",
            "carried by",
            "tcp over ipv4".into(),
            Component::Transport,
            "udp over ipv4",
            "tcp over ipv4",
        ),
        (
            reflect,
            "reflect-residence",
            "waiting by",
            "block".into(),
            Component::Waiting,
            "spin",
            "block",
        ),
        (
            reflect,
            "reflect-residence",
            "protocol",
            "memcached".into(),
            Component::Protocol,
            "raw",
            "memcached",
        ),
        (
            delay,
            "delay-residence-0",
            "carried by",
            "xdp".into(),
            Component::Transport,
            "packet",
            "xdp",
        ),
        (
            delay,
            "delay-lateness-1",
            "law at the start, back",
            "1ms".into(),
            Component::Law,
            "100us and 100us",
            "100us and 1ms",
        ),
        (
            forward,
            "forward-residence-0",
            "work for each frame",
            Nanos(100_000).into(),
            Component::Work,
            "0ns",
            "100us",
        ),
        (
            device,
            "box-64-there",
            "client by",
            "udp block".into(),
            Component::Transport,
            "packet spin",
            "udp block",
        ),
        (
            device,
            "box-64-there",
            "rate in each direction",
            Setting::RatePerS(200_000.0),
            Component::Rate,
            "2000/s",
            "200000/s",
        ),
        (
            calibrate,
            "udp-spin-measured",
            "size",
            Setting::SizeBytes(1_400),
            Component::Size,
            "64",
            "1400",
        ),
        (
            calibrate,
            "udp-spin-truth",
            "rate",
            Setting::RatePerS(20_000.0),
            Component::Rate,
            "2000/s",
            "20000/s",
        ),
    ]
}

#[test]
fn messages_that_no_flow_tells_of_are_told_by_what_was_asked_of_who_handles_them() {
    for (json, series, setting, other, component, left, right) in of_settings() {
        let found = differing(&kept(json), series, |run| {
            run.settings.insert(setting.to_owned(), other);
        });
        let [(of, from, to)] = &found[..] else { panic!("{setting}: {found:?}") };
        assert_eq!(*of, component, "{setting}");
        let of_unit = |text: &str, begin: &str| text.replace(',', "").starts_with(begin);
        assert!(of_unit(from, left) && of_unit(to, right), "{setting}: {from} and {to}");
    }
    // Requests have all of it from their flow.
    let same = differing(&requests(), RESPONSE, |run| {
        run.settings.insert("waiting by".to_owned(), "block".into());
    });
    assert_eq!(same, []);
}

#[test]
fn gaps_into_which_interruptions_were_injected_are_those_of_another_load() {
    let injected = kept(include_str!("../../../../tests/runs/selftest-2/run.json"));
    let found = differing(&injected, "gap-cpu1", |run| run.selftest = None);
    only(&found, Component::Load, INJECTED, "none");
    // A sum has no self-test: its recordings say it in their settings.
    let sum = kept(include_str!("../../../../tests/runs/merge/run.json"));
    let found = differing(&sum, "gap-cpu1", |run| {
        for origin in &mut run.origins {
            origin.settings.insert(INJECTED.to_owned(), Setting::Count(20));
        }
    });
    only(&found, Component::Load, "none", INJECTED);
}

#[test]
fn a_sum_of_context_switches_has_the_runners_of_its_recordings() {
    let costs = kept(include_str!("../../../../tests/runs/switch-cost/run.json"));
    let sum = kept(include_str!("../../../../tests/runs/merge/run.json"));
    let of = |runners: u32| {
        let mut sum = sum.clone();
        sum.series.clone_from(&costs.series);
        let mut costs = costs.switch_cost.clone().unwrap();
        for row in &mut costs.direct {
            if let Outcome::Measured(direct) = &mut row.outcome {
                direct.runners = runners;
            }
        }
        sum.origins.iter_mut().for_each(|origin| origin.switch_cost = Some(costs.clone()));
        Identity::of(&sum, "switch-threads-involuntary").unwrap()
    };
    let found = told(&of(2), &of(8));
    only(&found, Component::Tasks, "2 runners (SCHED_OTHER)", "8 runners (SCHED_OTHER)");
    assert!(told(&of(2), &of(2)).is_empty());
}

#[test]
fn a_sum_is_what_each_of_its_recordings_is() {
    let sum = kept(include_str!("../../../../tests/runs/merge/run.json"));
    let one = |with: fn(&mut crate::origin::Origin)| move |run: &mut Run| with(&mut run.origins[1]);
    let found = differing(
        &sum,
        "gap-cpu1",
        one(|of| drop(of.settings.insert("work".to_owned(), "memory".into()))),
    );
    only(&found, Component::Work, "nothing", "memory and nothing");
    let found = differing(&sum, "gap-cpu1", one(|of| of.loads = vec![load("net")]));
    only(&found, Component::Load, "none", "net and none");
    let found = differing(&sum, "gap-cpu1", one(|of| of.host.cpus_isolated = vec![CpuId(1)]));
    let (shared, both) = ("shared with other threads", "isolated and shared with other threads");
    only(&found, Component::CpuRole, shared, both);
    // What the sum says of itself is nobody's, and its series may have another name.
    let found = differing(&sum, "gap-cpu1", |run| {
        run.settings.insert("work".to_owned(), "memory".into());
        run.host.cpus_isolated = vec![CpuId(1)];
    });
    assert_eq!(found, []);
    let mut sum = sum;
    sum.origins[0].series[0].recorded_as = "gap-cpu3, gap-cpu12".to_owned();
    for (cpu, differs) in [(1, true), (3, true), (12, true), (2, false)] {
        let found = differing(&sum, "gap-cpu1", |run| {
            run.origins.iter_mut().for_each(|of| of.host.cpus_isolated = vec![CpuId(cpu)]);
        });
        assert_eq!(!found.is_empty(), differs, "{cpu}");
    }
}

#[test]
fn rates_are_near_up_to_a_hundredth_of_the_larger_one() {
    for (left, right, is) in [
        (99.0, 100.0, true),
        (100.0, 99.0, true),
        (98.9, 100.0, false),
        (100.0, 98.9, false),
        (0.0, 0.0, true),
    ] {
        assert_eq!(near(left, right), is, "{left} {right}");
    }
}

#[test]
fn each_component_is_read_by_its_name_unless_it_says_which_number_it_is() {
    for (component, name, may) in NAMES {
        assert_eq!(component.to_string(), name);
        assert_eq!(component.can_be_crossed(), may);
        match name.parse::<Component>() {
            Ok(read) => assert!(may && read == component),
            Err(why) => assert!(!may && why.contains("--side-by-side"), "{why}"),
        }
    }
    let why = "colour".parse::<Component>().expect_err("no component");
    assert!(why.contains("rate") && !why.contains("definition"), "{why}");
}

#[test]
fn rates_are_one_within_a_hundredth_asked_for_and_in_time() {
    let rate = |asked, in_time| Value::Rates(vec![Rate { asked, in_time }]);
    let one = rate(1_000.0, 1_000.0);
    assert!(one.is_as(&rate(1_009.0, 1_000.0)) && one.is_as(&rate(1_000.0, 991.0)));
    assert!(!one.is_as(&rate(1_020.0, 1_000.0)) && !one.is_as(&rate(1_000.0, 980.0)));
    assert!(!one.is_as(&text("that of the replies")));
    let both = Value::Rates(vec![Rate { asked: 10.0, in_time: 10.0 }; 2]);
    assert!(!both.is_as(&rate(10.0, 10.0)) && both.is_as(&both));
    let of_two = |second| [10.0, second].map(|asked| Rate { asked, in_time: asked }).to_vec();
    assert!(!both.is_as(&Value::Rates(of_two(20.0))), "the second is another");
    assert_eq!(Value::Rates(of_two(20.0)).to_string(), "10/s and 20/s");
    assert_eq!(one.to_string(), "1000/s");
    let less = rate(1_000.5, 700.0).to_string();
    assert_eq!(less, "1000.500/s asked for, of which 700/s left in time");
}
