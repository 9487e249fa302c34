//! The tables of gap measurements with planted numbers.

use whylate_model::cause::CauseTotal;
use whylate_model::run::TimeShare;
use whylate_model::{CpuId, Ticks, TicksDelta};

use super::*;
use crate::doc::Document;
use crate::render::terminal::write;
use crate::terminal::Style;

fn drawn(gaps: impl Fn(&mut GapSummary)) -> String {
    let mut run = crate::timeline::tests::recorded();
    run.gaps.iter_mut().for_each(gaps);
    write(&Document::default().with(blocks(&run, Where::Terminal)), Style::default())
}

/// The text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn shares_of_time_are_told_over_both_denominators() {
    let share = |at_least, of_elapsed, of_inside| TimeShare { at_least, of_elapsed, of_inside };
    let text = drawn(|gaps| {
        gaps.time_shares =
            vec![share(Nanos(1_000), 0.045, 0.09), share(Nanos(1_000_000), 0.001, 0.002)];
    });
    for wanted in ["1 µs", "1 ms", "of the elapsed time", "of the time inside readings"] {
        assert!(text.contains(wanted), "no {wanted} in {text}");
    }
    for wanted in ["4.5%", "9.0%", "0.1%", "0.2%"] {
        assert!(text.contains(wanted), "no {wanted} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn counts_that_no_sum_holds_end_at_the_largest() {
    let mut run = crate::timeline::tests::recorded();
    let most = GapSummary { gaps: u64::MAX, dropped: u64::MAX, ..run.gaps[0].clone() };
    run.gaps = vec![GapSummary { migrations: u64::MAX, ..most.clone() }, most];
    let cause = CauseTotal {
        cpu: None,
        gaps: u64::MAX,
        share_of_lost: 1.0 / 20.0,
        ..run.causes[0].clone()
    };
    run.causes = vec![cause; 20];
    let text = crate::render(&run, Style { width: 300, ..Style::default() });
    let row = |of: &str| text.lines().find(|line| line.starts_with(of)).unwrap().to_owned();
    for of in ["2 CPUs", "8 others"] {
        assert!(row(of).contains("18,446,744,073,709,551,615"), "{text}");
    }
}

#[test]
fn the_cost_of_counting_is_told_where_every_delta_was_counted() {
    let with = drawn(|gaps| {
        gaps.counting = Some(CountingCost { period_with: 46.0, period_without: 28.0 });
    });
    assert!(words(&with).contains("counting every delta costs"), "{with}");
    let without = drawn(|gaps| gaps.counting = None);
    assert!(!words(&without).contains("counting every delta"), "{without}");
}

/// A run whose counter has two ticks in a nanosecond, with so many threads, each on its own CPU.
fn planted(threads: u32) -> Run {
    let mut run = crate::timeline::tests::recorded();
    run.clock.hz = Hertz(2e9);
    let template = run.gaps[0].clone();
    run.series.clear();
    let rate = |at_least: u64, per_second: f64| Rate {
        at_least: Nanos(at_least),
        count: 9,
        per_second,
        interval: (per_second / 2.0, per_second * 2.0),
    };
    let thread = |cpu: u32| GapSummary {
        cpu: CpuId(cpu),
        series: format!("gap-cpu{cpu}"),
        loop_kind: LoopKind::Chain,
        start: Ticks(1_000),
        end: Ticks(1_000 + 2_000_000_000 * u64::from(cpu + 1)),
        iterations: 12_345,
        threshold: TicksDelta(320),
        threshold_rule: "100 ns".to_owned(),
        period_ticks: 17.0,
        period_spread_ticks: (16.0, 18.0),
        blocks: 1_000,
        gaps: 1_000,
        dropped: 0,
        migrations: 0,
        recording_ticks: TicksDelta(400_000),
        unseen_ticks: TicksDelta(0),
        closure: Closure::Holds,
        noise_below_threshold: -0.001,
        lost_share: 0.1 * f64::from(cpu + 1),
        lost_share_interval: Some((0.05, 0.25)),
        counting: None,
        rates: vec![rate(1_000, 4.0), rate(10_000, 2.0)],
        time_shares: Vec::new(),
        ..template.clone()
    };
    run.gaps = (0..threads).map(thread).collect();
    run
}

fn tables(run: &Run, to: Where) -> Vec<Table> {
    let of = |block| if let Block::Table(table) = block { Some(table) } else { None };
    blocks(run, to).into_iter().filter_map(of).collect()
}

fn items(run: &Run, to: Where) -> Vec<String> {
    let of = |block| if let Block::Items(items) = block { items } else { Vec::new() };
    blocks(run, to).into_iter().flat_map(of).collect()
}

#[test]
fn of_more_threads_than_rows_those_that_lost_most_have_one() {
    let mut run = planted(300);
    run.causes.clear();
    run.gaps.iter_mut().for_each(|gaps| gaps.lost_share /= 100.0);
    for (to, rows, first) in [(Where::Terminal, 256, "CPU 44"), (Where::Page, 64, "CPU 236")] {
        let table = &tables(&run, to)[0].rows;
        assert_eq!(table.len(), rows + 1, "the last is the sum");
        assert_eq!(
            (table[0][0] == first, table[rows - 1][0] == "CPU 299"),
            (true, true),
            "{table:?}"
        );
    }
    let said = crate::answer(&run);
    assert!(said.starts_with("CPU 299 lost most: 30% of its time"), "{said}");
}

#[test]
fn each_thread_has_its_row_and_all_cpus_their_sum_weighted_by_time() {
    let run = planted(2);
    let rows = &tables(&run, Where::Terminal)[0].rows;
    assert_eq!(
        rows[1][..],
        ["CPU 1", "2 s", "1,000", "20%", "5–25%", "160 ns", "8.5 ns", "0%", "holds"]
    );
    // A tenth of one second and a fifth of two.
    assert_eq!(rows[2][..], ["2 CPUs", "3 s", "2,000", "17%", "", "", "", "", ""]);
    let one = &tables(&planted(1), Where::Terminal)[0];
    assert_eq!((one.rows.len(), one.most), (1, Some(257)), "a row for each and their sum");
    let mut floating = run;
    floating.gaps[0].cpu = CpuId(7);
    floating.series.push(whylate_model::series::Series {
        name: "gap-cpu0".to_owned(),
        label: "gaps, floating".to_owned(),
        ..crate::timeline::tests::recorded().series[0].clone()
    });
    assert_eq!(tables(&floating, Where::Terminal)[0].rows.len(), 2, "no sum of CPUs");
}

#[test]
fn rates_have_a_column_for_each_of_few_threads_and_a_row_for_each_of_more() {
    let few = &tables(&planted(2), Where::Terminal)[1];
    assert_eq!(few.rows.len(), 2);
    assert_eq!(few.rows[0][..2], ["1 µs", "4/s (2–8/s)"]);
    let mut unlike = planted(2);
    unlike.gaps[0].rates.pop();
    let rows = &tables(&unlike, Where::Terminal)[1].rows;
    assert_eq!(rows[1][..], ["10 µs", "–", "2.0/s (1.0–4.0/s)"]);
    let more = planted(3);
    let in_rows = &tables(&more, Where::Terminal)[1];
    assert_eq!(in_rows.rows[2][..], ["CPU 2", "4.0/s", "2.0/s"]);
    let told = "their intervals are on the page and in run.json";
    assert!(items(&more, Where::Terminal).iter().any(|said| said == told));
    let on_the_page = &tables(&planted(9), Where::Page)[1];
    assert_eq!((on_the_page.rows.len(), on_the_page.rows[0].len()), (2, 9));
    let mut none = planted(2);
    none.gaps.iter_mut().for_each(|gaps| gaps.rates.clear());
    assert_eq!(tables(&none, Where::Terminal).len(), 1);
}

#[test]
fn of_many_threads_those_with_something_to_say_have_a_paragraph() {
    let paragraphs = |run: &Run| {
        let of_a_thread = |said: &String| said.contains(" loop, ") || said.contains(" threads: ");
        items(run, Where::Terminal).into_iter().filter(of_a_thread).collect::<Vec<_>>()
    };
    assert_eq!(paragraphs(&planted(4)).len(), 4);
    assert_eq!(
        paragraphs(&planted(1)),
        ["CPU 0: chain loop, 12,345 iterations, period 8.5 ns (8.0–9.0 ns over 1,000 quiet \
          blocks), threshold 100 ns; the closure holds; 0 migrations, 0 records dropped, 200 µs spent \
          recording (200 ns a stall)"]
    );
    let mut run = planted(5);
    let quiet = "the closure holds; 0 migrations, 0 records dropped (each in run.json)";
    assert_eq!(paragraphs(&run), [format!("5 threads: {quiet}")]);
    (run.gaps[0].dropped, run.gaps[1].migrations) = (1, 1);
    run.gaps[2].closure = Closure::SumsOnly;
    run.gaps[3].closure = Closure::Broken("overlap".to_owned());
    let said = paragraphs(&run);
    assert_eq!((said.len(), &said[4]), (5, &format!("1 threads: {quiet}")));
    assert!(said[2].contains("; records were dropped: only the sums close; "), "{said:?}");
    assert!(said[3].contains("; THE CLOSURE IS BROKEN: overlap; "), "{said:?}");

    let mut pairs = planted(1);
    let gaps = &mut pairs.gaps[0];
    (gaps.loop_kind, gaps.gaps, gaps.unseen_ticks) = (LoopKind::Pair, 0, TicksDelta(3_000));
    gaps.counting = Some(CountingCost { period_with: 46.0, period_without: 28.0 });
    let said = paragraphs(&pairs).remove(0);
    assert!(said.starts_with("CPU 0: pair loop, "), "{said}");
    assert!(
        said.ends_with(
            "200 µs spent recording (– a stall), 1.5 µs between pairs not seen; counting every delta \
             costs 9 ns an iteration (23 ns with it, 14 ns without, in the warm-up)"
        ),
        "{said}"
    );
}

#[test]
fn more_threads_than_a_page_has_rows_are_counted() {
    let many = planted(66);
    assert_eq!(tables(&many, Where::Page)[0].rows.len(), 65, "with the sum");
    assert!(items(&many, Where::Page).contains(&"2 more are in run.json".to_owned()));
    assert!(!items(&planted(64), Where::Page).iter().any(|said| said.contains("more are")));
}

#[test]
fn shares_of_time_inside_the_readings_are_told_of_few_threads() {
    let with_shares = |threads| {
        let mut run = planted(threads);
        let share = |at_least, of_elapsed, of_inside| TimeShare { at_least, of_elapsed, of_inside };
        for gaps in &mut run.gaps {
            gaps.time_shares =
                vec![share(Nanos(1_000), 0.045, 0.09), share(Nanos(10_000), 0.01, 0.02)];
        }
        run.gaps[0].time_shares.pop();
        run
    };
    let told = "shares of the time inside readings are in run.json";
    let few = with_shares(4);
    let rows = &tables(&few, Where::Terminal)[2].rows;
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[0][..], ["CPU 0, of the elapsed time", "4.5%", "–"]);
    assert_eq!(rows[3][..], ["CPU 1, of the time inside readings", "9.0%", "2.0%"]);
    assert!(!items(&few, Where::Terminal).iter().any(|said| said == told));
    let more = with_shares(5);
    assert_eq!(tables(&more, Where::Terminal)[2].rows.len(), 5);
    assert!(items(&more, Where::Terminal).iter().any(|said| said == told));
}
