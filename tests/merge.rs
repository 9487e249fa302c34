//! `whylate merge`: the sum is that of the raw data, whatever the order, and says where it is from.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState, Verdict};
use whylate_model::segments;
use whylate_model::{CpuId, Nanos};
use whylate_stats::Histogram;
use whylate_stats::rng::Rng;

use crate::directories::{Planted, latencies, log, merge, pooled, steady};
use crate::program;

const READ: &str = "a reading of the counter";
const KERNEL: &str = include_str!("../crates/whylate-stats/tests/vectors/tsc_kernel.csv");

pub(crate) fn merged(directories: &[PathBuf], into: &Path) -> Run {
    let output = merge(&[], directories, into);
    assert_eq!(output.status.code(), Some(0), "{}", program::said(&output));
    program::read(into)
}

#[test]
fn the_sum_equals_the_pooled_raw_data_and_its_percentiles_are_no_averages() {
    let home = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(7);
    let mut raw: Vec<u64> = Vec::new();
    let directories: Vec<PathBuf> = (0..5u64)
        .map(|number| {
            let intervals: Vec<Histogram> = (0..8)
                .map(|_| {
                    let values: Vec<u64> = (0..500)
                        .map(|_| rng.exponential(2_000.0 * (number + 1) as f64) as u64)
                        .collect();
                    raw.extend(&values);
                    values.into_iter().collect()
                })
                .collect();
            let run = Planted::new(&format!("host-{number}"), number * 60);
            run.gaps(1, Nanos(100), &intervals).write(home.path(), &format!("run-{number}"))
        })
        .collect();
    let into = home.path().join("sum");
    let run = merged(&directories, &into);

    let all: Histogram = raw.iter().copied().collect();
    let (stored, intervals) = log(&into, "gap-cpu1");
    assert_eq!(stored, all);
    assert_eq!(intervals, 5 * 8);
    let series = &run.series[0];
    assert_eq!((series.n, series.max), (20_000, all.max().map(Nanos)));
    raw.sort_unstable();
    let p99 = series.quantiles.iter().find(|q| (q.percent - 99.0).abs() < 1e-9).unwrap();
    let exact = raw[20_000 * 99 / 100 - 1];
    let found = p99.value.unwrap().0;
    assert!(found >= exact && (found - exact) as f64 <= exact as f64 / 1_000.0, "{found} {exact}");
    // Lost time adds up, and its share is of all the time.
    let lost: u64 = raw.iter().sum();
    assert!(run.gaps[0].lost.0.abs_diff(lost) < 10, "{} {lost}", run.gaps[0].lost.0);
    assert!((run.gaps[0].lost_share - lost as f64 / 40e9).abs() < 1e-9);
    assert!(run.gaps[0].lost_share_interval.is_some());
    // Each recording is there with its clock, its host and its rows.
    assert_eq!(run.origins.len(), 5);
    assert_eq!(run.origins[3].host.hostname, "host-3");
    assert_eq!(run.origins[3].series[0].n, 4_000);
    assert!(run.origins.iter().all(|origin| origin.clock.hz.0 > 1e9 && origin.segments.len() == 1));
    let directory = RunDir::open(&into).unwrap();
    let rows = segments::read_gaps(&directory).unwrap().map(Result::unwrap).count() as u64;
    assert_eq!(rows, run.segments.iter().map(|segment| segment.rows).sum::<u64>());
    assert!(segments::survey(&directory, &run).unwrap().is_complete());
    // And it reads as a run.
    let report = program::whylate(["report"]).arg(&into).output().unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("The sum of 5 recordings") && text.contains("host-4"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_sum_says_its_units_and_no_interval_that_is_everything() {
    let home = tempfile::tempdir().unwrap();
    let plant = |number: u64, lost: u64| {
        let intervals: Vec<Histogram> = (0..8).map(|_| Histogram::from_iter([lost])).collect();
        let run = Planted::new("host", number * 100).gaps(1, Nanos(100), &intervals);
        run.write(home.path(), &format!("run-{number}"))
    };
    // A tenth and seven tenths of the time: two recordings do not tell where the share of all lies.
    let directories = [plant(0, 100_000_000), plant(1, 700_000_000)];
    let into = home.path().join("sum");
    let run = merged(&directories, &into);
    assert!((run.gaps[0].lost_share - 0.4).abs() < 0.01, "{}", run.gaps[0].lost_share);
    assert_eq!(run.gaps[0].lost_share_interval, None);
    // Each asked about its own time; what is answered is about the time of both.
    assert!(run.question.starts_with("The sum of 2 recordings, each of which asks: "), "{run:?}");
    let report = program::whylate(["report"]).arg(&into).output().unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!said.replace('–', "-").contains("interval 0-100%"), "{text}");
    // The ticks of a sum are nanoseconds: no clock is that of all.
    assert!(said.contains("ns over") && !said.contains(" ticks ("), "{text}");
}

#[test]
fn order_and_steps_do_not_matter() {
    let home = tempfile::tempdir().unwrap();
    let plant = |number: u64| {
        let intervals = latencies(number, 12, 500.0 * (number + 1) as f64);
        let run = Planted::new("host", number * 100).gaps(1, Nanos(100), &intervals);
        run.write(home.path(), &format!("run-{number}"))
    };
    let [a, b, c]: [PathBuf; 3] = std::array::from_fn(|number| plant(number as u64));
    let of = |directories: &[&PathBuf], name: &str| {
        let directories: Vec<PathBuf> = directories.iter().map(|path| (*path).clone()).collect();
        let into = home.path().join(name);
        (merged(&directories, &into), into)
    };
    let (forwards, _) = of(&[&a, &b, &c], "forwards");
    let (backwards, at) = of(&[&c, &b, &a], "backwards");
    let (_, both) = of(&[&c, &a], "c-and-a");
    let (in_steps, steps) = of(&[&both, &b], "in-steps");
    let facts = |run: &Run| {
        let mut run = run.clone();
        run.command_line.clear();
        run
    };
    assert_eq!(facts(&forwards), facts(&backwards));
    // Sums of floats in another order differ in their last digits.
    let rounded = |run: &Run| {
        let mut series = run.series.clone();
        for quantile in series.iter_mut().flat_map(|one| &mut one.quantiles) {
            quantile.n_eff = quantile.n_eff.round();
        }
        series
    };
    assert_eq!(rounded(&forwards), rounded(&in_steps));
    assert_eq!(log(&at, "gap-cpu1"), log(&steps, "gap-cpu1"));
    let of_origin = |run: &Run| -> Vec<_> {
        run.origins
            .iter()
            .map(|o| (o.directory.clone(), o.series.clone(), o.segments.len()))
            .collect()
    };
    assert_eq!(of_origin(&forwards), of_origin(&in_steps));
    let (one, other) = (&forwards.gaps[0], &in_steps.gaps[0]);
    assert_eq!((one.gaps, one.end, one.threshold), (other.gaps, other.end, other.threshold));
    assert!((one.lost_share - other.lost_share).abs() < 1e-12);
    let ends = [one, other].map(|gaps| gaps.lost_share_interval.unwrap());
    assert!((ends[0].0 - ends[1].0).abs() < 1e-12, "{ends:?}");
    assert!((ends[0].1 - ends[1].1).abs() < 1e-12, "{ends:?}");
}

#[test]
fn the_lecture_s_kernel_table_in_two_halves_has_its_percentiles() {
    let home = tempfile::tempdir().unwrap();
    let mut halves = [Histogram::new(), Histogram::new()];
    for line in KERNEL.lines().skip(2) {
        let (value, count) = line.split_once(',').unwrap();
        let (value, count): (u64, u64) = (value.parse().unwrap(), count.parse().unwrap());
        halves[0].record_n(value, count / 2);
        halves[1].record_n(value, count - count / 2);
    }
    let directories: Vec<PathBuf> = halves
        .iter()
        .zip(["one", "two"])
        .map(|(half, name)| {
            let run = Planted::new(name, 0).series("tsc", READ, std::slice::from_ref(half));
            run.write(home.path(), name)
        })
        .collect();
    let run = merged(&directories, &home.path().join("sum"));
    let at = |percent: f64| {
        run.series[0].quantiles.iter().find(|q| (q.percent - percent).abs() < 1e-9).unwrap().value
    };
    assert_eq!((at(50.0), at(99.9)), (Some(Nanos(9)), Some(Nanos(10))));
    assert_eq!((run.series[0].n, run.series[0].max), (15_091_712_057, Some(Nanos(1_982))));
}

#[test]
fn unlike_series_are_refused_by_name_and_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let values = latencies(1, 5, 1_000.0);
    let a = Planted::new("a", 0).series("rtt", READ, &values).write(home.path(), "a");
    let b = Planted::new("b", 1).series("rtt", "another place", &values).write(home.path(), "b");
    let into = home.path().join("sum");
    let output = merge(&[], &[a, b], &into);
    assert_eq!(output.status.code(), Some(1));
    let said = program::said(&output);
    assert!(
        said.contains("rtt") && said.contains("`from`") && said.contains("another place"),
        "{said}"
    );
    assert!(!into.exists());
}

#[test]
fn a_recording_is_not_counted_twice() {
    let home = tempfile::tempdir().unwrap();
    let values = latencies(1, 5, 1_000.0);
    let a = Planted::new("a", 0).series("rtt", READ, &values).write(home.path(), "a");
    let output = merge(&[], &[a.clone(), a.join("../a")], &home.path().join("sum"));
    assert_eq!(output.status.code(), Some(1));
    assert!(program::said(&output).contains("the same recording"), "{}", program::said(&output));
}

#[test]
fn truncated_directories_are_refused_or_left_out_and_told() {
    type Damage = fn(&Path);
    let home = tempfile::tempdir().unwrap();
    let plant = |number: u64| {
        let values = latencies(number, 10, 1_000.0);
        let run = Planted::new("host", number * 60).gaps(1, Nanos(100), &values);
        run.write(home.path(), &format!("run-{number}"))
    };
    let whole = plant(1);
    let ways: [(&str, Damage); 4] = [
        ("truncated", |path| cut(&path.join("histograms.hlog"), 2)),
        ("truncated", |path| cut(&path.join("run.json"), 2)),
        ("histograms.hlog", |path| std::fs::remove_file(path.join("histograms.hlog")).unwrap()),
        ("gaps-0001.parquet", |path| std::fs::remove_file(path.join("gaps-0001.parquet")).unwrap()),
    ];
    for (number, (words, damage)) in ways.into_iter().enumerate() {
        let damaged = plant(10 + number as u64);
        damage(&damaged);
        let both = [whole.clone(), damaged];
        let output = merge(&[], &both, &home.path().join(format!("refused-{number}")));
        assert_eq!(output.status.code(), Some(1), "{number}");
        assert!(program::said(&output).contains(words), "{}", program::said(&output));

        let into = home.path().join(format!("sum-{number}"));
        let output = merge(&["--skip-damaged"], &both, &into);
        assert_eq!(output.status.code(), Some(4), "{}", program::said(&output));
        let run = program::read(&into);
        assert_eq!((run.origins.len(), run.series[0].n), (1, 2_000));
        assert!(matches!(run.verdict, Verdict::Untrustworthy { .. }));

        // What was left out of a sum is told of sums of it, too, and no better than of it.
        let step = home.path().join(format!("step-{number}"));
        let output = merge(&[], &[into, plant(100 + number as u64)], &step);
        assert_eq!(output.status.code(), Some(4), "{}", program::said(&output));
        let reasons = program::read(&step).verdict.reasons().join("; ");
        assert!(reasons.contains("1 thing left out of the sum: "), "{reasons}");
    }
}

fn cut(file: &Path, part: usize) {
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() / part]).unwrap();
}

#[test]
fn cpus_of_a_host_add_up_to_one_series() {
    let home = tempfile::tempdir().unwrap();
    let run = Planted::new("host", 0).gaps(1, Nanos(100), &latencies(1, 10, 1_000.0)).gaps(
        2,
        Nanos(120),
        &latencies(2, 10, 3_000.0),
    );
    let directory = run.write(home.path(), "run");
    let into = home.path().join("sum");
    let output = merge(&["--across-cpus", "--without-tables"], &[directory], &into);
    assert_eq!(output.status.code(), Some(0), "{}", program::said(&output));
    let run = program::read(&into);
    assert_eq!((run.series.len(), run.series[0].name.as_str(), run.series[0].n), (1, "gap", 4_000));
    assert_eq!((run.gaps.len(), run.gaps[0].cpu), (1, CpuId(1)));
    assert_eq!(run.gaps[0].threshold.to_nanos(run.clock.hz), Nanos(120));
    assert!(run.segments.is_empty());
}

#[test]
fn a_sum_is_compared_recording_by_recording() {
    let home = tempfile::tempdir().unwrap();
    let sum = |level: f64, first: u64, name: &str| {
        let runs: Vec<PathBuf> = (first..first + 3)
            .map(|number| {
                let values = latencies(number, 30, level);
                let run = Planted::new("host", number * 60).series("rtt", READ, &values);
                run.write(home.path(), &format!("{name}-{number}"))
            })
            .collect();
        let into = home.path().join(name);
        merged(&runs, &into);
        into
    };
    let (a, b) = (sum(1_000.0, 1, "a"), sum(1_600.0, 11, "b"));
    let output = program::whylate(["compare", "--format", "json"]).args([&a, &b]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let pair = &found["pairs"][0];
    assert_eq!((&pair["before"]["runs"], &pair["before"]["n"]), (&3.into(), &18_000.into()));
    let p50 = &pair["result"]["quantiles"][0];
    assert!(p50["difference_ns"]["between"].is_array(), "{p50}");
    assert_eq!(p50["verdict"], "a_lower");
}

/// The most memory that a merge has had when it begins to say what it found, which is the last thing it does.
fn peak_kib(mut command: Command) -> u64 {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let room = rustix::pipe::fcntl_setpipe_size(&writer, 4_096).unwrap();
    let mut child = command.stdout(writer).spawn().unwrap();
    drop(command);
    // What it says is more than the pipe has room for: with the rest it waits until it is read.
    reader.read_exact(&mut [0]).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(rest.len() > room, "{} bytes need not wait", rest.len());
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A small number by default; `WHYLATE_TESTS_FULL=1` takes 1 000 directories.
#[test]
fn many_directories_are_added_in_bounded_memory() {
    let full = std::env::var_os("WHYLATE_TESTS_FULL").is_some_and(|value| value == "1");
    let many = if full { 1_000 } else { 60 };
    let home = tempfile::tempdir().unwrap();
    let peak = |count: u64, first: u64| {
        let directories: Vec<PathBuf> = (first..first + count)
            .map(|number| {
                let values = latencies(number, 4, 1_000.0);
                let run = Planted::new(&format!("host-{number}"), number * 60);
                run.gaps(1, Nanos(100), &values).write(home.path(), &format!("run-{number}"))
            })
            .collect();
        let into = home.path().join(format!("sum-{first}"));
        let mut command = program::whylate(["merge", "--format", "json", "--without-tables"]);
        command.args(&directories).arg("-o").arg(&into);
        let kib = peak_kib(command);
        assert_eq!(program::read(&into).origins.len() as u64, count);
        kib
    };
    let (few, all) = (peak(6, 0), peak(many, 10_000));
    let each = all.saturating_sub(few) / (many - 6);
    let said =
        format!("{few} KiB for 6 directories, {all} KiB for {many}: {each} KiB for each more");
    // A recording takes its origin: host, clock, settings, written and read back. Not its histograms,
    // each of which takes 270 KiB.
    assert!(each < 200, "{said}");
    assert!(all < 512 << 10, "{said}");
    if full {
        println!("{said}");
    }
}

#[test]
fn other_work_between_two_readings_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let plant = |number: u64, work: &str| {
        let mut run = Planted::new("host", number * 60).gaps(1, Nanos(100), &steady(1, 100, 900.0));
        run.run.settings.insert("work".to_owned(), work.into());
        run.write(home.path(), &format!("run-{number}"))
    };
    let directories = [plant(1, "nothing"), plant(2, "memmove:4KiB")];
    let into = home.path().join("sum");
    let output = merge(&[], &directories, &into);
    let said = program::said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`work`") && said.contains("memmove:4KiB"), "{said}");
    assert!(!into.exists());
    let output = program::whylate(["compare"]).args(&directories).output().unwrap();
    let said = program::said(&output);
    assert!(said.contains("work") && said.contains("memmove:4KiB"), "{said}");
    assert!(!said.contains("no difference shown"), "{said}");
}

#[test]
fn gaps_count_from_the_largest_threshold_on_and_shorter_ones_are_told() {
    let home = tempfile::tempdir().unwrap();
    let floor = Nanos(1_500);
    let low = steady(1, 300, 900.0);
    let plant = |number: u64, threshold: Nanos, values: &[Histogram]| {
        let run = Planted::new("host", number * 60).gaps(1, threshold, values);
        run.write(home.path(), &format!("run-{number}"))
    };
    let above = |values: &[Histogram]| -> Vec<Histogram> {
        let kept = |one: &Histogram| {
            let mut kept = Histogram::new();
            one.bins()
                .filter(|(value, _)| *value >= floor.0)
                .for_each(|(v, n)| kept.record_n(v, n));
            kept
        };
        values.iter().map(kept).collect()
    };
    let high = above(&steady(2, 300, 900.0));
    let between = steady(3, 200, 900.0);
    let a = plant(1, Nanos(100), &low);
    let b = plant(2, floor, &high);
    let c = plant(3, Nanos(120), &between);
    let whole = pooled(&[pooled(&above(&low)), pooled(&high), pooled(&above(&between))]);
    let short = pooled(&low).len() + pooled(&between).len()
        - pooled(&above(&low)).len()
        - pooled(&above(&between)).len();

    let into = home.path().join("sum");
    let output = merge(&[], &[a.clone(), b.clone(), c.clone()], &into);
    let said = program::said(&output);
    let run = program::read(&into);
    assert!(short > 1_000, "{short}");
    assert_eq!((run.series[0].n, run.gaps[0].gaps), (whole.len(), whole.len()));
    assert_eq!(log(&into, "gap-cpu1").0.len(), whole.len());
    assert_eq!(run.gaps[0].threshold.to_nanos(run.clock.hz), floor);
    let left_out: Vec<u64> = run.origins.iter().map(|o| o.series[0].left_out).collect();
    assert_eq!((left_out.iter().sum::<u64>(), left_out[1]), (short, 0));
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.replace('µ', "u");
    assert!(words.contains("thresholds from 100 ns to 1.5 us"), "{said}");
    // Lost time is that of the gaps that count; the others are noise below the threshold.
    let lost_of_a = program::read(&a).gaps[0].lost_share;
    let (lost, noise) = (run.gaps[0].lost_share, run.gaps[0].noise_below_threshold);
    let expected = whole.sum() as f64 / 90e9;
    assert!((lost / expected - 1.0).abs() < 0.01, "{lost} {expected}");
    assert!(lost_of_a > run.origins[0].series[0].lost_share.unwrap());
    let all = (pooled(&low).sum() + pooled(&high).sum() + pooled(&between).sum()) as f64 / 90e9;
    let before = program::read(&a).gaps[0].noise_below_threshold;
    assert!((noise - before - (all - expected)).abs() < 0.05 * (all - expected), "{noise}");
    // Nothing is said of gaps that some recordings could not see.
    assert!(run.gaps[0].rates.iter().all(|rate| rate.at_least >= floor));

    // In steps, and with another one first.
    let step = home.path().join("step");
    merge(&[], &[c, a], &step);
    assert_eq!(program::read(&step).gaps[0].threshold.to_nanos(run.clock.hz), Nanos(120));
    let steps = home.path().join("steps");
    merge(&[], &[step, b], &steps);
    let again = program::read(&steps);
    assert_eq!(log(&steps, "gap-cpu1"), log(&into, "gap-cpu1"));
    assert_eq!(again.series[0].n, run.series[0].n);
    let left_out_again: Vec<u64> = again.origins.iter().map(|o| o.series[0].left_out).collect();
    assert_eq!(left_out_again, left_out);
    assert!((again.gaps[0].lost_share - lost).abs() < 1e-9);
}

#[test]
fn clocks_of_unlike_frequency_add_up_in_nanoseconds() {
    let home = tempfile::tempdir().unwrap();
    let plant = |number: u64, times: f64| {
        let mut run = Planted::new("host", number * 60);
        run.run.clock.hz.0 *= times;
        run.run.clock.epoch.0 *= 3;
        run.run.clock.anchors[0].ticks = run.run.clock.epoch;
        run.gaps(1, Nanos(100), &steady(number, 300, 2_000.0))
            .write(home.path(), &format!("run-{number}"))
    };
    let run = merged(&[plant(1, 1.0), plant(2, 0.4)], &home.path().join("sum"));
    let values = pooled(&[pooled(&steady(1, 300, 2_000.0)), pooled(&steady(2, 300, 2_000.0))]);
    assert_eq!(run.gaps[0].end.since(run.gaps[0].start).to_nanos(run.clock.hz).0, 60_000_000_000);
    let lost = values.sum() as f64 / 60e9;
    assert!((run.gaps[0].lost_share / lost - 1.0).abs() < 1e-6);
    let rates: Vec<f64> = run.gaps[0].rates.iter().map(|rate| rate.per_second).collect();
    assert!((rates[0] - 300.0).abs() < 1e-6 && rates.iter().all(|rate| rate.is_finite()));
    assert_eq!(run.gaps[0].threshold.to_nanos(run.clock.hz), Nanos(100));
}

#[test]
fn a_matrix_is_merged_by_its_cells_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let values = latencies(1, 5, 1_000.0);
    let matrix = Planted::new("a", 0).series("rtt", READ, &values).write(home.path(), "matrix");
    std::fs::remove_file(matrix.join("histograms.hlog")).unwrap();
    Planted::new("a", 60).series("rtt", READ, &values).write(&matrix, "pinned");
    let output = merge(&[], std::slice::from_ref(&matrix), &home.path().join("sum"));
    let said = program::said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is a matrix") && said.contains("A/pinned"), "{said}");
    merged(&[matrix.join("pinned")], &home.path().join("cell"));
}

#[test]
fn a_killed_run_counts_up_to_its_last_checkpoint_and_its_sum_is_no_better() {
    let home = tempfile::tempdir().unwrap();
    let values = steady(1, 100, 2_000.0);
    let mut killed = Planted::new("host", 0).gaps(1, Nanos(100), &values[..20]);
    (killed.run.state, killed.run.verdict) = (RunState::Running, Verdict::Pending);
    let killed = killed.and_later("gap-cpu1", &values[20..]).write(home.path(), "killed");
    let whole = Planted::new("host", 60).gaps(1, Nanos(100), &values).write(home.path(), "whole");
    let into = home.path().join("sum");
    let output = merge(&[], &[killed, whole], &into);
    assert_eq!(output.status.code(), Some(4), "{}", program::said(&output));
    let run = program::read(&into);
    assert_eq!((run.series[0].n, run.gaps[0].gaps), (5_000, 5_000));
    assert_eq!((log(&into, "gap-cpu1").1, run.state), (50, RunState::Running));
    assert!(matches!(run.verdict, Verdict::Untrustworthy { .. }));

    // A log that is longer than its run says is no killed run's.
    let longer = home.path().join("killed");
    let mut run = program::read(&longer);
    (run.log_bytes, run.log_digest) = (None, None);
    RunDir::open(&longer).unwrap().write_run(&run).unwrap();
    let output = merge(&[], &[longer], &home.path().join("no"));
    assert_eq!(output.status.code(), Some(1), "{}", program::said(&output));
    assert!(program::said(&output).contains("2000"), "{}", program::said(&output));
}

#[test]
fn wake_ups_of_a_run_that_skipped_none_are_in_both_rows() {
    let home = tempfile::tempdir().unwrap();
    let (few, more) = (steady(1, 100, 2_000.0), steady(2, 110, 9_000.0));
    let none = Planted::new("a", 0).series("wake", READ, &few).write(home.path(), "none");
    let some = Planted::new("b", 60).series("wake", READ, &few);
    let some = some.series("wake-corrected", READ, &more).write(home.path(), "some");
    let into = home.path().join("sum");
    let run = merged(&[some, none], &into);
    let n = |name: &str| run.series.iter().find(|series| series.name == name).unwrap().n;
    assert_eq!((n("wake"), n("wake-corrected")), (6_000, 6_300));
    assert_eq!(log(&into, "wake-corrected").0, pooled(&[pooled(&few), pooled(&more)]));
    let corrected = run.series.iter().find(|series| series.name == "wake-corrected").unwrap();
    assert_eq!(corrected.label, "  and 300 skipped");
}

#[test]
fn a_series_that_not_every_recording_has_is_told() {
    let home = tempfile::tempdir().unwrap();
    let values = steady(1, 100, 2_000.0);
    let a = Planted::new("a", 0).series("rtt", READ, &values).write(home.path(), "a");
    let b = Planted::new("b", 60).series("rtt", READ, &values).series("ipc", READ, &values);
    let output = merge(&[], &[a, b.write(home.path(), "b")], &home.path().join("sum"));
    let said = program::said(&output);
    assert!(said.contains("ipc is in 1 of 2 recordings"), "{said}");
    assert!(!said.contains("rtt is in"), "{said}");
}

#[test]
fn a_run_of_a_set_of_threads_is_refused_with_a_reason() {
    let home = tempfile::tempdir().unwrap();
    let run = |name: &str| program::file("runs").join(name);
    for words in [&[][..], &["--skip-damaged"]] {
        let into = home.path().join("sum");
        let output = merge(words, &[run("threads"), run("gaps")], &into);
        assert_eq!(output.status.code(), Some(1), "{}", program::said(&output));
        let said = program::said(&output);
        assert!(said.contains("a set of threads") && said.contains("whylate compare"), "{said}");
        assert!(!into.exists(), "something was written");
    }
}
