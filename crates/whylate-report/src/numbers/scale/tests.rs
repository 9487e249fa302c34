//! Digits, units and signs of numbers in sentences, tables and reports.

use proptest::prelude::*;
use whylate_model::Nanos;

use super::*;

fn time(ns: u64) -> Cell {
    Cell::from(Nanos(ns))
}

fn between(value: Value, low: Value, high: Value) -> Cell {
    Cell::from(value).within(Some((low, high)))
}

fn share(value: f64, low: f64, high: f64) -> Cell {
    between(Value::Share(value), Value::Share(low), Value::Share(high))
}

#[test]
fn a_sentence_has_the_unit_that_gives_1_to_999_and_the_digits_of_tables() {
    for (ns, said) in [
        (0, "0 ns"),
        (90, "90 ns"),
        (999, "999 ns"),
        (1_000, "1 µs"),
        (14_000, "14 µs"),
        (14_040, "14.0 µs"),
        (188_000, "188 µs"),
        (999_600, "1.00 ms"),
        (1_824_000, "1.82 ms"),
        (8_024_319, "8.02 ms"),
        (8_003_000, "8.00 ms"),
        (3_000_000_000, "3 s"),
        (303_000_000, "303 ms"),
    ] {
        assert_eq!(time(ns).said(), said, "{ns}");
    }
    assert_eq!(Cell::from(Value::AtLeast(2.559e6)).said(), "≥2.55 ms");
    assert_eq!(Cell::from(Value::Rate(813.4)).said(), "813/s");
    assert_eq!(Cell::from(Value::Absent).said(), "–");
}

#[test]
fn a_table_has_three_digits_and_two_places_of_its_unit_at_most() {
    let shown = |ns: u64| time(ns).in_table(Some(MICROSECONDS));
    for (ns, text) in [
        (0, "0"),
        (4, "<0.01"),
        (23, "0.02"),
        (9_996, "10.0"),
        (14_040, "14.0"),
        (1_074_000, "1,070"),
        (303_200_000, "303,000"),
    ] {
        assert_eq!(shown(ns), text, "{ns}");
    }
    assert_eq!(time(4).resolved(10.01).in_table(Some(MICROSECONDS)), "<0.01");
    let bound = |ns: f64| Cell::from(Value::AtLeast(ns)).in_table(Some(MICROSECONDS));
    assert_eq!([2.55e6, 2.559e6, 9_996.0, 99.0].map(bound), ["≥2,550", "≥2,550", "≥9.99", "≥0.09"]);
    assert_eq!(Cell::from(Value::Count(31_960_000)).in_table(None), "31,960,000");
    let rate = |of: f64| Cell::from(Value::Rate(of)).in_table(None);
    assert_eq!([rate(813.2), rate(0.3), rate(0.01), rate(0.0)], ["813", "0.3", "<0.1", "0"]);
}

#[test]
fn a_time_far_below_the_unit_of_its_table_has_two_digits_down_to_ten_nanoseconds() {
    for (ns, unit, text) in [
        (41_200, MILLISECONDS, "0.041"),
        (5_432, MILLISECONDS, "0.0054"),
        (543, MILLISECONDS, "0.00054"),
        (4, MILLISECONDS, "<0.00001"),
        (99_960, MILLISECONDS, "0.100"),
        (100_000, MILLISECONDS, "0.1"),
        (5_432, SECONDS, "0.0000054"),
        (23, MICROSECONDS, "0.02"),
    ] {
        assert_eq!(time(ns).in_table(Some(unit)), text, "{ns}");
    }
    assert_eq!(time(4).resolved(10.01).in_table(Some(MILLISECONDS)), "<0.01");
}

#[test]
fn zeros_at_the_end_of_a_time_are_those_that_were_measured() {
    for (ns, alone, cell) in [
        (3_000_000, "3 ms", "3"),
        (33_000_000, "33 ms", "33"),
        (15_007_000, "15.0 ms", "15.0"),
        (15_000_000, "15 ms", "15"),
        (5_500_000, "5.5 ms", "5.5"),
    ] {
        let shown = [time(ns).said(), time(ns).in_table(Some(MILLISECONDS))];
        assert_eq!(shown, [alone, cell], "{ns}");
    }
    // A few microseconds may be a round number by chance.
    assert_eq!(time(5_000).in_table(Some(MICROSECONDS)), "5.00");
    assert_eq!(time(100).in_table(Some(MICROSECONDS)), "0.10");
    let bound = |ns: f64| Cell::from(Value::AtLeast(ns)).said();
    assert_eq!([bound(20_007_000.0), bound(20e6)], ["≥20.0 ms", "≥20 ms"]);
}

#[test]
fn what_a_clock_does_not_resolve_has_the_places_of_its_column() {
    let column = |all: &[u64]| {
        let cells: Vec<Cell> = all.iter().map(|ns| time(*ns).resolved(10.01)).collect();
        Cell::in_column(&cells.iter().collect::<Vec<_>>(), Some(MILLISECONDS))
    };
    assert_eq!(column(&[4, 14_040_000]), ["<0.01", "14.0"]);
    assert_eq!(column(&[4, 41_200]), ["<0.001", "0.041"]);
    assert_eq!(column(&[4, 5_432, 0]), ["<0.0001", "0.0054", "<0.0001"]);
    assert_eq!(column(&[4]), ["<0.01"]);
}

#[test]
fn a_table_has_a_unit_in_which_the_least_of_its_middles_has_three_digits() {
    let unit = |middles: &[u64], others: &[u64]| {
        let cells = |all: &[u64]| all.iter().map(|ns| time(*ns)).collect::<Vec<_>>();
        let (middles, others) = (cells(middles), cells(others));
        Unit::of_middles(middles.iter().chain(&others), middles.iter()).map(|unit| unit.name)
    };
    let wide = [16_100_000, 14_200_000, 24_000_000];
    assert_eq!(unit(&[], &wide), Some("ms"));
    assert_eq!(unit(&[8_050, 10], &wide), Some("µs"));
    assert_eq!(unit(&[5_700, 4_020_000], &wide), Some("µs"));
    assert_eq!(unit(&[100_000, 4_020_000], &wide), Some("ms"));
    // None is larger than the one around which all times lie.
    assert_eq!(unit(&[4_020_000], &[1_000, 2_000, 9_000]), Some("µs"));
    assert_eq!(unit(&[0], &wide), Some("ms"));
    assert_eq!(unit(&[], &[]), None);
}

#[test]
fn shares_have_a_place_below_ten_percent_and_what_is_below_that_is_told_so() {
    let shown = |of: f64| Cell::from(Value::Share(of)).in_table(None);
    for (of, text) in
        [(0.46, "46%"), (0.005, "0.5%"), (0.0004, "<0.1%"), (0.0, "0%"), (1.0, "100%")]
    {
        assert_eq!(shown(of), text);
    }
    for (of, text) in [
        (0.994, "99%"),
        (0.997, "99.7%"),
        (0.999_4, "99.9%"),
        (0.999_6, ">99.9%"),
        (1.0 - 1e-7, ">99.9%"),
        (1.0 - 1e-12, "100%"),
    ] {
        assert_eq!([shown(of), Cell::from(Value::Share(of)).said()], [text, text], "{of}");
    }
    assert_eq!(share(0.997, 0.98, 0.999).said(), "99.7%");
    assert_eq!(share(0.9999, 0.98, 0.999_95).said(), ">99.9%");
    assert_eq!(Cell::from(Value::Share(0.01)).said(), "1.0%", "as its table has it");
    // What cannot be negative is nothing then.
    assert_eq!(shown(-1e-5), "0%");
}

#[test]
fn a_number_has_no_more_digits_than_its_interval_supports() {
    for (cell, said, ends) in [
        (share(0.0198, 0.0184, 0.0233), "2.0%", "1.8–2.3%"),
        (share(0.064, 0.049, 0.077), "6.4%", "4.9–7.7%"),
        (share(0.31, 0.24, 0.37), "31%", "24–37%"),
        (share(0.0083, 0.0071, 0.0098), "0.83%", "0.71–0.98%"),
        (share(0.21, 0.10, 0.35), "21%", "10–35%"),
        (share(0.16, -0.038, 0.079), "16%", "−4 to 8%"),
    ] {
        assert_eq!((cell.said().as_str(), cell.ends().said().as_str()), (said, ends));
    }
    let times = between(Value::Time(32_200.0), Value::Time(30_900.0), Value::Time(34_000.0));
    assert_eq!(times.in_table(Some(MICROSECONDS)), "32.2");
    assert_eq!(times.ends().in_table(Some(MICROSECONDS)), "30.9–34.0");
    let open = between(Value::Absent, Value::Time(15e6), Value::Absent);
    assert_eq!(open.ends().in_table(Some(MICROSECONDS)), "≥15,000");
    let open = between(Value::Absent, Value::Absent, Value::Time(27_010.0));
    assert_eq!(open.ends().in_table(Some(MICROSECONDS)), "≤27.1");
    let exact = between(Value::Time(1_760.0), Value::Time(1_760.0), Value::Time(1_760.0));
    assert_eq!(exact.ends().in_table(Some(MICROSECONDS)), "1.76");
    assert_eq!(time(3).ends().said(), "–");
}

#[test]
fn an_end_of_an_interval_tells_its_sign_and_on_which_side_of_one_it_lies() {
    let of = |value: fn(f64) -> Value, low, high| {
        Cell::from(Value::Absent).within(Some((value(low), value(high)))).to_string()
    };
    for (low, high, ends) in [
        (-5_720.0, 496.0, "−6 to 0.5 µs"),
        (-433.0, 4_420.0, "−0.4 to 4 µs"),
        (-4.0, 4_420.0, "0 to 4 µs"),
        (-729.0, 2_830.0, "−0.7 to 2.8 µs"),
        (40_000.0, 1_980_000.0, "40–1,980 µs"),
        (40_000.0, 8_000_000.0, "40–8,000 µs"),
        (4.0, 9_000.0, "<1–9 µs"),
    ] {
        assert_eq!(of(Value::Time, low, high), format!("– ({ends})"));
    }
    assert_eq!(of(Value::Share, -0.000_05, 0.038), "– (0 to 3.8%)");
    for (low, high, ends) in [
        (0.956, 2.192, "0.96–2.19"),
        (1.0, 2.192, "1.0–2.2"),
        (0.604, 1.060, "0.6–1.1"),
        (1.09, 1.83, "1.1–1.8"),
        (12.0, 61.0, "12–61"),
    ] {
        assert_eq!(of(Value::Ratio, low, high), format!("– ({ends})"));
    }
}

#[test]
fn the_lower_end_of_bounds_is_rounded_down_and_the_upper_one_up() {
    for (low, high, estimate, bounds) in [
        (4_074.0, 6_031.0, "4.1–6.0 µs", "4.0–6.1 µs"),
        (5_200.0, 6_000.0, "5.2–6.0 µs", "5.2–6.0 µs"),
        (-1_560.0, 6_031.0, "−2 to 6 µs", "−2 to 7 µs"),
        (0.0, 9_010.0, "0–9 µs", "0–10 µs"),
        (47.0, 9_010.0, "47–9,010 ns", "47–9,010 ns"),
    ] {
        let ends = between(Value::Absent, Value::Time(low), Value::Time(high)).ends();
        assert_eq!([ends.to_string(), ends.bounding().to_string()], [estimate, bounds]);
    }
}

#[test]
fn a_difference_has_its_sign_and_so_have_both_ends_of_its_interval() {
    let of = |value, low, high| {
        between(Value::Share(value), Value::Share(low), Value::Share(high)).signed()
    };
    for (cell, said, ends) in [
        (of(0.161, 0.056, 0.27), "+16%", "+6 to +27%"),
        (of(0.0145, 0.014, 0.015), "+1.45%", "+1.40 to +1.50%"),
        (of(-0.02, -0.04, 0.001), "−2%", "−4 to +0.1%"),
        (of(0.0, -0.01, 0.01), "0%", "−1.0 to +1.0%"),
    ] {
        assert_eq!((cell.said().as_str(), cell.ends().said().as_str()), (said, ends));
    }
    let time = between(Value::Time(4_000.0), Value::Time(3_900.0), Value::Time(4_100.0));
    let time = time.signed();
    assert_eq!(time.said(), "+4.00 µs");
    assert_eq!(time.ends().said(), "+3.90 to +4.10 µs");
    assert_eq!(Cell::from(Value::Absent).signed().said(), "–");
}

#[test]
fn a_difference_around_nothing_has_the_unit_of_the_larger_end_of_its_interval() {
    for (value, low, high, said, ends) in [
        (0.0, -22_700.0, 22_700.0, "0 µs", "−23 to +23 µs"),
        (0.0, -53_500.0, 53_500.0, "0 µs", "−54 to +54 µs"),
        (0.0, -165.0, 165.0, "0 ns", "−165 to +165 ns"),
        (94.0, -11.0, 171.0, "+94 ns", "−11 to +171 ns"),
        (-120.0, -2_100_000.0, 40_000.0, "0 ms", "−2.1 to +0.04 ms"),
        (4_000.0, 3_900.0, 4_100.0, "+4.00 µs", "+3.90 to +4.10 µs"),
    ] {
        let of = between(Value::Time(value), Value::Time(low), Value::Time(high)).signed();
        assert_eq!((of.said().as_str(), of.ends().said().as_str()), (said, ends));
    }
    // In a table all times have its unit.
    let of = between(Value::Time(0.0), Value::Time(-165.0), Value::Time(165.0)).signed();
    assert_eq!(of.ends().in_table(Some(MICROSECONDS)), "−0.17 to +0.17");
}

proptest! {
    /// As far as ten nanoseconds go: a headline may name any of them.
    #[test]
    fn a_time_reads_as_the_same_number_in_a_table_of_any_unit(ns in 100_u64..1 << 40) {
        for unit in [MICROSECONDS, MILLISECONDS, SECONDS] {
            let told: f64 = time(ns).in_table(Some(unit)).replace(',', "").parse().unwrap();
            let told = told * f64::from(unit.ns);
            prop_assert!((told - ns as f64).abs() <= 0.051 * ns as f64, "{} of {}", told, ns);
        }
    }

    #[test]
    fn an_upper_bound_is_never_told_as_less_than_it_is(ns in 10_u64..1 << 60) {
        let open = between(Value::Absent, Value::Absent, Value::Time(ns as f64)).ends();
        let told = open.in_table(Some(MICROSECONDS)).replace(['≤', ','], "");
        let (told, ns) = (told.parse::<f64>().unwrap(), ns as f64 / 1e3);
        prop_assert!(told >= ns * (1.0 - 1e-6) && told <= ns * 2.0, "{} of {}", told, ns);
    }

    #[test]
    fn ends_that_are_bounds_hold_as_they_are_told(low in 10_u64..1 << 40, width in 0_u64..1 << 40) {
        let ends = [low, low + width].map(|ns| ns as f64);
        let of = between(Value::Absent, Value::Time(ends[0]), Value::Time(ends[1])).ends().bounding();
        for unit in [MICROSECONDS, MILLISECONDS, SECONDS] {
            let text = of.in_table(Some(unit)).replace(',', "");
            // Of what is told as less than the last place the lower end is nothing.
            let end = |text: &str| text.parse::<f64>().unwrap_or(0.0) * f64::from(unit.ns);
            let (from, to) = text.split_once('–').unwrap_or((&text, &text));
            prop_assert!(end(from) <= ends[0] * (1.0 + 1e-6), "{} of {:?}", text, ends);
            prop_assert!(end(to) >= ends[1] * (1.0 - 1e-6), "{} of {:?}", text, ends);
        }
    }

    #[test]
    fn a_lower_bound_is_never_told_as_more_than_it_is(ns in 10_u64..1 << 60) {
        let told = |cell: &Cell| cell.in_table(Some(MICROSECONDS)).replace(['≥', ','], "");
        let open = between(Value::Absent, Value::Time(ns as f64), Value::Absent).ends();
        for cell in [Cell::from(Value::AtLeast(ns as f64)), open] {
            let told: f64 = told(&cell).parse().unwrap();
            let ns = ns as f64 / 1e3;
            prop_assert!(told <= ns * (1.0 + 1e-6) && told >= ns * 0.5, "{} of {}", told, ns);
        }
    }
}

#[test]
fn a_table_has_the_unit_around_which_its_times_lie() {
    let unit = |all: &[u64]| {
        let cells: Vec<Cell> = all.iter().map(|ns| time(*ns)).collect();
        Unit::of_table(cells.iter()).map(|unit| unit.name)
    };
    assert_eq!(unit(&[8_150, 14_000, 1_070_000, 6_360_000]), Some("µs"));
    assert_eq!(unit(&[27_300_000, 18_000_000, 40_000, 1_820_000]), Some("ms"));
    assert_eq!(unit(&[3_000_000_000]), Some("s"));
    assert_eq!((unit(&[0]), unit(&[])), (Some("µs"), None));
    // From three tenths of a unit on; what is nothing counts for none.
    assert_eq!((unit(&[301_000]), unit(&[299_000])), (Some("ms"), Some("µs")));
    assert_eq!((unit(&[301_000_000]), unit(&[299_000_000, 0])), (Some("s"), Some("ms")));
    assert_eq!(unit(&[1, 10_000_000_000]), Some("µs"), "one nanosecond counts");
    assert_eq!(
        (time(999_500).said(), time(999_499).said()),
        ("1.00 ms".to_owned(), "999 µs".to_owned())
    );
    assert!(time(1).is_time() && !Cell::from(Value::Count(1)).is_time());
    assert_eq!(Cell::from("as it is").said(), "as it is");
    assert_eq!(time(9).resolved(10.01).said(), "<11 ns");
    let from_nothing = between(Value::Time(5e3), Value::Time(0.0), Value::Time(9e3));
    assert_eq!(from_nothing.ends().said(), "0–9 µs");
    // Known to 2 us on either side it has no place behind the point; a rate keeps its zero.
    assert_eq!(between(Value::Time(5e3), Value::Time(3e3), Value::Time(7e3)).said(), "5 µs");
    assert_eq!(Cell::from(Value::Rate(30.0)).said(), "30.0/s");
    // 0.29 of a unit is stored as a little less, and is no 0.28.
    let least = |ns: f64| Cell::from(Value::AtLeast(ns)).in_table(Some(MICROSECONDS));
    assert_eq!([least(290.0), least(0.0), least(f64::INFINITY)], ["≥0.29", "–", "–"]);
}

#[test]
fn signs_have_a_plain_form_for_terminals_without_them() {
    let text = "1.8–2.3 µs, −4, ≥5 and ±1";
    assert_eq!(Letters::Unicode.write(text), text);
    assert_eq!(Letters::Plain.write(text), "1.8-2.3 us, -4, >=5 and +-1");
}

proptest! {
    #[test]
    fn no_number_of_a_first_screen_has_more_than_three_significant_digits(ns in 0_u64..u64::MAX / 2) {
        for text in [time(ns).said(), time(ns).in_table(Some(MILLISECONDS))] {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            let digits = digits.trim_start_matches('0');
            let few = if digits.len() > 3 { digits.trim_end_matches('0') } else { digits };
            prop_assert!(few.len() <= 3, "{}", text);
        }
    }
}
