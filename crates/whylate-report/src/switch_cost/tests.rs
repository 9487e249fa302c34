//! Planted costs in words and numbers.

use whylate_model::CpuId;
use whylate_model::switch_cost::{
    Beyond, Cache, Growth, KernelCount, KernelQuanta, More, Penalty, Quantum, ReadBandwidth,
    Refill, Repetitions, Tick, TimedPasses, Traced, Trend, Trials,
};

use super::*;

fn times(shortest: u64, median: u64) -> SwitchTimes {
    SwitchTimes {
        n: 1_000,
        shortest: Nanos(shortest),
        cluster_median: Some(Nanos(median)),
        cluster_interval: Some((Nanos(median - 20), Nanos(median + 20))),
        in_cluster: 800,
        contaminated: Some(50),
        p50: Some(Nanos(median + 100)),
        p99: Some(Nanos(10 * median)),
        max: Nanos(90_000),
    }
}

fn direct(how: How, series: &str, times: SwitchTimes) -> Outcome {
    let expires = how == How::Involuntary;
    Outcome::Measured(Box::new(Direct {
        series: series.to_owned(),
        runners: 2,
        policy: "SCHED_OTHER".to_owned(),
        after: (!expires).then_some(Nanos(100_000)),
        over: Nanos(2_000_000_000),
        times,
        kernel: KernelCount { voluntary: 3, involuntary: 997 },
        traced: Some(Traced {
            times: Some(times),
            switches: 900,
            runnable: 890,
            sleeping: 3,
            with_tick: 880,
            with_interrupt: 4,
            with_others: 6,
            unseen: 1,
        }),
        quantum: expires.then_some(Quantum {
            turns: 500,
            per_second: 250.0,
            median: Nanos(4_000_000),
            interval: Some((Nanos(3_990_000), Nanos(4_010_000))),
        }),
        // Wider than what one dense cluster says.
        repetitions: times.cluster_median.map(|median| Repetitions {
            medians: vec![median; 5],
            interval: Some((Nanos(median.0 - 200), Nanos(median.0 + 200))),
        }),
    }))
}

fn penalty(mean_ns: f64, half: f64) -> Penalty {
    Penalty {
        pairs: 15,
        mean_ns,
        interval_ns: (mean_ns - half, mean_ns + half),
        of_pairs_ns: vec![mean_ns; 15],
        passes_alone: 1_000.0,
        passes_together: 900.0,
        switches: 700.0,
    }
}

/// What a host might give: one row refused, one working set refused, one below zero.
pub(crate) fn planted() -> SwitchCost {
    let row = |between, how, outcome| DirectRow { between, how, outcome };
    let set = |bytes, penalty: Option<Penalty>, reason: Option<&str>| IndirectRow {
        bytes,
        tried: 20,
        discarded: 4,
        discarded_by_host: 1,
        empty: 1,
        penalty,
        reason: reason.map(str::to_owned),
        refill: Some(Refill {
            warm_from: Some(1),
            cold_from: if bytes > 1 << 20 { None } else { Some(3) },
            warm_ns: 1_000.0,
            cold_ns: 9_000.0,
            reached: if bytes > 1 << 20 { 0.25 } else { 1.0 },
            predicted_ns: 8_000.0,
        }),
        passes: Some(TimedPasses { warm_ns: 1_100.0, cold_ns: 9_700.0, difference_ns: 8_600.0 }),
    };
    SwitchCost {
        cpu: CpuId(1),
        caches: vec![
            Cache { level: 1, bytes: 32 << 10, shared_by: 1 },
            Cache { level: 3, bytes: 32 << 20, shared_by: 8 },
        ],
        kernel: KernelQuanta { base_slice: None, round_robin: Some(Nanos(100_000_000)) },
        direct: vec![
            row(
                Between::Threads,
                How::Involuntary,
                direct(How::Involuntary, "switch-threads-involuntary", times(3_000, 5_000)),
            ),
            row(
                Between::Threads,
                How::Yield,
                Outcome::Refused { reason: "CAP_SYS_NICE is missing".to_owned() },
            ),
            row(
                Between::Threads,
                How::HandOff,
                direct(How::HandOff, "switch-threads-hand-off", times(1_500, 2_000)),
            ),
            row(
                Between::Processes,
                How::HandOff,
                direct(How::HandOff, "switch-processes-hand-off", times(1_700, 2_500)),
            ),
        ],
        tick: Some(Tick { n: 70, cost: Nanos(4_600), period: Nanos(4_000_000) }),
        bandwidths: [(Some(1), Some(48.1)), (Some(3), Some(20.0)), (None, None)]
            .map(|(level, gb_per_s)| ReadBandwidth {
                level,
                bytes: if level == Some(1) { 16 << 10 } else { 256 << 10 },
                gb_per_s,
                pieces: 101,
                reason: gb_per_s.is_none().then(|| "too little memory".to_owned()),
            })
            .into(),
        indirect: vec![
            set(16 << 10, Some(penalty(-300.0, 900.0)), Some("pairs scatter")),
            set(512 << 10, Some(penalty(9_500.0, 700.0)), None),
            set(8 << 20, None, Some("3 good pairs of 15")),
        ],
        trials: Some(Trials {
            quantum: None,
            length: Nanos(200_000_000),
            runners: 10,
            wanted: 15,
            most: 45,
            longest_break: Nanos(74_000),
            tick: Some(Nanos(37_000)),
            breaks_apart: 0.005,
        }),
        growth: Some(Growth {
            inside: vec![16 << 10],
            first_level_known: true,
            inside_ns: Some(-300.0),
            pairs: 15,
            beyond: vec![
                Beyond {
                    bytes: 512 << 10,
                    more: Some(More { mean_ns: 9_800.0, interval_ns: (8_700.0, 10_900.0) }),
                    reason: None,
                },
                Beyond {
                    bytes: 8 << 20,
                    more: None,
                    reason: Some("3 good pairs of 15".to_owned()),
                },
            ],
            trend: Some(Trend { sizes: 2, pairs: 30, z: 4.7, p_value: 2.6e-6 }),
        }),
    }
}

#[test]
fn each_larger_working_set_grows_or_says_why_that_is_not_shown() {
    let mut found = planted();
    let table = growth(&found).unwrap();
    let rows = &table.rows;
    assert_eq!(rows[0], ["512 KiB", "9.8 µs", "8.7–10.9 µs", "yes"]);
    assert_eq!(rows[1], ["8 MiB", "–", "–", "not shown: 3 good pairs of 15"]);
    let said = growth_remarks(&found).join("\n");
    assert!(said.contains("inside the first-level cache: 16 KiB, −300 ns over 15 pairs"), "{said}");
    assert!(
        said.contains("over 2 working sets in their order it rises: z 4.70, p <0.001"),
        "{said}"
    );
    if let Some(growth) = &mut found.growth {
        growth.trend = Some(Trend { sizes: 2, pairs: 30, z: -0.3, p_value: 0.76 });
        growth.first_level_known = false;
        growth.inside_ns = None;
    }
    let said = growth_remarks(&found).join("\n");
    assert!(said.contains("no rise is shown: z −0.30, p 0.760"), "{said}");
    assert!(said.contains("does not tell of its caches"), "{said}");
    found.growth = None;
    assert!(growth(&found).is_none() && growth_remarks(&found).is_empty());
}

#[test]
fn each_kind_has_its_times_and_what_the_kernel_says_of_them() {
    let found = planted();
    let times = super::times(&found).unwrap();
    assert_eq!(times.rows.len(), 6, "each with a row by evidence");
    assert_eq!(times.rows[1][0], "  by evidence");
    assert_eq!(
        times.rows[0],
        [
            "threads, involuntary",
            "1,000",
            "3 µs",
            "5.0 µs",
            "4.8–5.2 µs",
            "5.0%",
            "5.1 µs",
            "50 µs",
            "90 µs"
        ]
    );
    let evidence = evidence(&found).unwrap();
    assert_eq!(evidence.rows[0][1..], ["3 / 997", "900", "890", "3", "880", "10"]);
}

#[test]
fn refusals_quanta_ticks_and_address_spaces_are_said() {
    let said = remarks(&planted()).join("\n");
    for words in [
        "threads, yield was not measured: CAP_SYS_NICE is missing",
        "run for 4 ms (95% interval 3.99–4.01 ms): 250/s switches",
        "cannot be read (it lies in debugfs); that of SCHED_RR is 100 ms",
        "takes 4.6 µs every 4 ms (median of 70, traced)",
        "kinds took turns: 5 repetitions of each",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
}

#[test]
fn penalties_stand_beside_the_switch_in_them_and_the_refill() {
    let table = penalties(&planted()).unwrap();
    let rows = &table.rows;
    // With the kernel's quanta the switch inside is the involuntary one.
    assert_eq!(
        rows[0],
        ["16 KiB", "15 of 20", "−0.3 µs", "−1.2 to 0.6 µs", "−5.3 µs", "8 µs", "no"]
    );
    assert_eq!(rows[1][4..], ["4.5 µs", "8 µs", "yes"]);
    assert_eq!(rows[2][..4], ["8 MiB", "15 of 20", "–", "–"]);
    let said = penalty_remarks(&planted()).join("\n");
    for words in [
        "quanta are the kernel's",
        "L1 32 KiB, L3 32 MiB (of 8 CPUs)",
        "breaks of more than 74 µs",
        "a tick takes 37 µs",
        "512 KiB: 5 of 20 pairs discarded: 1 for the hypervisor, which the kernel's count of stolen time bears \
         out, 3 for longer breaks in which none of the runners had the CPU, 1 without a switch or a pass",
        "8 MiB: 3 good pairs of 15",
        "8 MiB: a turn reaches 25% of a pass",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
}

#[test]
fn what_is_predicted_stands_with_its_bandwidths_beside_passes_that_are_no_prediction() {
    let found = planted();
    let table = refills(&found).unwrap();
    assert_eq!(table.rows[0], ["16 KiB", "L1 1 µs", "L3 9 µs", "8 µs", "1.1 µs", "9.7 µs"]);
    assert_eq!(table.rows[2][2], "memory 9 µs");
    let said = refill_remarks(&found).join("\n");
    for words in [
        "L1 48.1 GB/s (a set of 16 KiB), L3 20.0 GB/s (a set of 256 KiB)",
        "the read bandwidth of memory is not known: too little memory",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    let mut nothing = found;
    nothing.bandwidths.clear();
    assert!(refill_remarks(&nothing)[0].contains("no caches"), "{:?}", refill_remarks(&nothing));
    for row in &mut nothing.indirect {
        (row.refill, row.passes) = (None, None);
    }
    assert!(refills(&nothing).is_none());
}

#[test]
fn histograms_come_from_the_log_and_end_where_contamination_begins() {
    let mut log = Histogram::new();
    log.record_n(2_000, 900);
    log.record_n(3_000, 50);
    log.record_n(90_000, 50);
    let found = planted();
    let panels = panels(&found, |name| (name == "switch-threads-hand-off").then_some(&log));
    assert_eq!(panels.len(), 1);
    let times = &panels[0].times;
    assert_eq!((panels[0].label.as_str(), times.beyond), ("threads, hand-off", 50));
    assert_eq!(times.bins.iter().map(|bin| bin.count).sum::<u64>(), 950);
}
