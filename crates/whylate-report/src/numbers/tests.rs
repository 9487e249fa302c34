//! Numbers as they are written, and that nobody else writes them.

use proptest::prelude::*;

use super::*;

#[test]
fn shares_keep_two_digits_and_nothing_has_no_sign() {
    for (share, text) in [
        (0.0, "0%"),
        (-0.0, "0%"),
        (1.0, "100%"),
        (0.045, "4.5%"),
        (0.123_4, "12%"),
        (0.999_4, "99.9%"),
        (0.999_6, ">99.9%"),
        (1.0 - 1e-12, "100%"),
        (0.000_123, "<0.1%"),
        (-0.045, "−4.5%"),
        (-1e-12, "0%"),
        (1e-12, "<0.1%"),
        (f64::NAN, "–"),
    ] {
        assert_eq!(percent(share), text, "{share}");
    }
}

#[test]
fn rates_have_one_place_at_most_and_their_thousands_apart() {
    for (per_second, text) in [
        (0.0, "0/s"),
        (1_074.2, "1,070/s"),
        (99.96, "100/s"),
        (12.34, "12.3/s"),
        (1.0, "1.0/s"),
        (0.333_33, "0.3/s"),
        (0.012_34, "<0.1/s"),
        (-0.5, "−0.5/s"),
        (f64::INFINITY, "–"),
    ] {
        assert_eq!(rate(per_second), text, "{per_second}");
    }
}

#[test]
fn times_have_a_sign_only_where_they_are_something_and_no_zeros_that_carry_nothing() {
    for (ns, without, with) in [
        (0.0, "0 ns", "0 ns"),
        (11.41, "11.4 ns", "+11.4 ns"),
        (1_250.0, "1.25 µs", "+1.25 µs"),
        (-9.0, "−9 ns", "−9 ns"),
        (12_000.0, "12 µs", "+12 µs"),
        (3e9, "3 s", "+3 s"),
        (999_600.0, "1.00 ms", "+1.00 ms"),
        (f64::NAN, "–", "–"),
    ] {
        assert_eq!((time(ns).as_str(), difference(ns).as_str()), (without, with), "{ns}");
    }
}

#[test]
fn counts_have_their_thousands_apart() {
    for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(count(n), text);
    }
}

#[test]
fn a_cell_has_its_interval_its_resolution_and_its_mark() {
    let time = |ns: u64| Cell::from(Nanos(ns));
    assert!(time(9) != "10 ns", "what tests compare by tells numbers apart");
    assert_eq!(time(9).resolved(10.01), "<11 ns");
    assert_eq!(time(0).resolved(10.01), "<11 ns");
    assert_eq!(time(11).resolved(10.01), "11 ns");
    let within = time(1_250).within(Some((Nanos(1_000), Nanos(2_000))));
    assert_eq!(within, "1.2 µs (1.0–2.0 µs)");
    assert_eq!([within.alone(), within.ends()].map(|of| of.to_string()), ["1.2 µs", "1.0–2.0 µs"]);
    assert_eq!(time(1_250).marked(true), "~1.25 µs");
    assert_eq!(Cell::from(Value::AtLeast(18_790.0)), "≥18.7 µs");
    assert_eq!(Cell::from(None::<Nanos>).marked(true), "–");
    assert!(Cell::from("~9 ms").is_beyond() && !Cell::from("–").marked(true).is_beyond());
    assert_eq!(Cell::from("~9 ms").marked(true), "~9 ms");
    assert_eq!(interval(Some((Nanos(1), Nanos(2)))), "1.0–2.0 ns");
    assert_eq!(interval::<Nanos>(None), "–");
}

#[test]
fn shares_that_are_compared_have_no_fewer_places_than_their_difference() {
    for (of, low, high, text) in [
        (0.197_2, 0.174, 0.180, "19.7%"),
        (0.020_3, 0.174, 0.180, "2.0%"),
        (0.020_3, 0.010_01, 0.010_07, "2.03%"),
        // A difference that is known to whole points takes nothing from them.
        (0.512, -0.54, -0.45, "51%"),
        (0.016, -0.54, -0.45, "1.6%"),
    ] {
        assert_eq!(Cell::from(Value::Share(of)).compared((low, high)), text, "{low} to {high}");
    }
}

#[test]
fn a_number_whose_interval_holds_nothing_has_the_unit_of_the_interval() {
    let ends = Some((Value::Time(-433.0), Value::Time(4_410.0)));
    assert_eq!(with_ends(Value::Time(460.0), ends), ["<1 µs", "−0.4 to 4 µs"]);
    let ends = Some((Value::Time(4_000.0), Value::Time(6_000.0)));
    assert_eq!(difference_with_ends(Value::Time(5_000.0), ends), ["+5.0 µs", "+4.0 to +6.0 µs"]);
}

#[test]
fn an_interval_whose_end_is_not_known_is_a_bound() {
    let share = |of| Some(Value::Share(of));
    assert_eq!(between(share(0.0175), share(0.0233)), "1.8–2.3%");
    assert_eq!(between(Some(Value::Time(15e6)), None), "≥15 ms");
    assert_eq!(between(None, Some(Value::Time(15e6))), "≤15 ms");
    assert_eq!(between(Some(Value::Rate(-2.0)), Some(Value::Rate(3.0))), "−2 to 3/s");
    assert_eq!(between(None, None), "–");
}

#[test]
fn a_number_is_told_to_the_place_that_it_is_known_to() {
    for (of, to_each_side, text) in [
        (2_445.430_179, 0.000_8, "2,445.4302 ± 0.0008 MHz"),
        (-14.1, 72.3, "−14 ± 72 MHz"),
        (-0.025, 0.41, "0.0 ± 0.4 MHz"),
        (3.5, 0.0, "3.50 MHz"),
        (f64::NAN, 1.0, "– MHz"),
    ] {
        assert_eq!(known_to(of, to_each_side, "MHz"), text);
    }
}

#[test]
fn places_in_time_rates_of_bits_probabilities_and_ages_have_their_own_digits() {
    assert_eq!(instant(Nanos(266_315_400)), "0.266315 s");
    assert_eq!(
        [exact(-1_570.0), exact(488_123.0), exact(0.0)],
        ["−1.570 µs", "488.123 µs", "0.000 µs"]
    );
    assert_eq!([bit_rate(9.4e7), bit_rate(1.25e9)], ["94.0 Mbit/s", "1.25 Gbit/s"]);
    assert_eq!([p_value(0.207), p_value(1e-9), p_value(f64::NAN)], ["0.207", "<0.001", "–"]);
    assert_eq!([number(1.5), number(0.001), signed(0.5)], ["1.50", "<0.01", "+0.50"]);
    let ages = [40.0, 1_500.0, 11_000.0, 1e6].map(age);
    assert_eq!(ages, ["40 s", "25 min", "3.1 h", "11.6 days"]);
}

/// The digits and the point of a number, without sign, mark and unit.
fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

proptest! {
    #[test]
    fn no_number_has_more_than_three_digits_beyond_its_whole_part(value in any::<f64>()) {
        for text in [percent(value), rate(value), time(value)] {
            prop_assert!(!text.starts_with("−0%") && !text.starts_with("−0/") && !text.starts_with("−0 "));
            if let Some((whole, fraction)) = text.split_once('.') {
                let significant = digits(whole) + &digits(fraction);
                prop_assert!(significant.trim_start_matches('0').len() <= 3, "{}", text);
            }
            prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
        }
    }

    #[test]
    fn a_count_without_its_commas_is_the_count(n in any::<u64>()) {
        let text = count(n);
        prop_assert_eq!(text.replace(',', "").parse::<u64>(), Ok(n));
        prop_assert!(text.split(',').skip(1).all(|group| group.len() == 3));
    }

    #[test]
    fn the_larger_share_never_reads_as_the_smaller(share in 1e-7..1.0, times in 1.02..50.0) {
        let read = |share: f64| percent(share).trim_matches(['<', '>', '%']).replace(',', "").parse::<f64>();
        prop_assert!(read(share).unwrap() <= read(share * times).unwrap());
    }
}

/// Files that write digits for a program to read: the lines of Hourglass, and the numbers of the page's script.
const FOR_PROGRAMS: [&str; 2] = ["hourglass.rs", "html/data.rs"];

/// Lines of a source that choose the digits of a number themselves, before its tests.
fn own_digits(source: &str) -> Vec<&str> {
    let product = source.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    let chooses = |line: &&str| {
        line.split('{').skip(1).any(|rest| {
            let Some((_, format)) = rest.split_once('}').and_then(|(of, _)| of.split_once(':'))
            else {
                return false;
            };
            let precision = format.trim_start_matches(['+', '<', '>', '^', '0']).strip_prefix('.');
            precision.is_some_and(|of| of.starts_with(|of: char| of.is_ascii_digit() || of == '*'))
                || precision.is_some_and(|of| of.ends_with('$'))
        })
    };
    product.filter(chooses).collect()
}

/// The sources below a folder, with their names.
fn sources(below: &std::path::Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|of| of == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn no_digits_of_a_number_are_chosen_outside_of_here_and_of_pictures() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &mut all);
    assert!(all.len() > 100, "the sources are elsewhere");
    for path in all {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let is_test =
            name.ends_with("tests.rs") || name == "html/stylesheet.rs" || name.contains("tests/");
        let may = name.starts_with("numbers") || name.starts_with("svg/");
        if is_test || may || FOR_PROGRAMS.contains(&name.as_str()) {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let found = own_digits(&source);
        assert!(found.is_empty(), "{name} chooses digits, which numbers.rs does: {found:?}");
    }
}

#[test]
fn digits_that_are_chosen_elsewhere_are_found() {
    for planted in [
        "format!(\"{value:.3}us\")",
        "\"{:+.1}%\"",
        "\"{a} {:.*}\"",
        "\"{b:.places$}\"",
        "\"{:>.2e}\"",
    ] {
        assert_eq!(own_digits(planted), [planted]);
    }
    for fine in ["\"{value}\"", "\"{name:>8}\"", "Self { a: 1.5, ..b }", "#[cfg(test)]\n\"{:.3}\""]
    {
        assert_eq!(own_digits(fine), Vec::<&str>::new(), "{fine}");
    }
}
