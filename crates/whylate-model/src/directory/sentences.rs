//! Sentences of older versions that are no reasons of trust, in the words of today: in what a measurement differs from
//! its calibration, why a box is taken to forward as it does, and why nothing is claimed of a backend.

use crate::backends::Claim;
use crate::calibration::Trust;
use crate::flow::Direction;
use crate::run::Run;

/// What stood between what a calibration was of and what a measurement is of.
const AND_THESE: &str = ", and these numbers are ";

/// What once could not be known of a calibration, and is told as today.
const UNKNOWN: (&str, &str) = (
    "what it was found of, one way or there and back, and over which path, is not known",
    "whether it was calibrated for one-way latency or for round trips, and over which path, is not known",
);

/// Words of once within a sentence, and those of today.
const WORDS: [(&str, &str); 3] = [
    ("one way over ", "one-way latency over "),
    ("there and back over ", "round trips over "),
    (" lab bed", " test network"),
];

/// How a sentence on the time for a byte began and ended.
const GROWS: &str = "latency grows by ";
const A_BYTE: &str = " ns a byte";

pub(super) fn settle(run: &mut Run) {
    for trust in trusts(run) {
        for other in &mut trust.other {
            *other = condition(other);
        }
    }
    for series in &mut run.series {
        series.label = label(&series.label);
    }
    for of in run.device.iter_mut().flat_map(|device| &mut device.forwarding) {
        of.why = why(&of.why);
    }
    let first = run.backends.as_ref().and_then(|of| of.first()).map(|row| row.backend.clone());
    let first = first.unwrap_or_else(|| "the first".to_owned());
    let rows = run.backends.iter_mut().flat_map(|of| &mut of.rows);
    for saved in rows.flat_map(|row| &mut row.saved) {
        if let Some(Claim::Nothing { why }) = &mut saved.claim {
            *why = no_claim(why, &first).unwrap_or_else(|| why.clone());
        }
    }
}

/// `through bridge, 64 bytes, there`.
fn label(once: &str) -> String {
    let told = |words: &str, direction: Direction| {
        let name = once.strip_prefix("through ")?.strip_suffix(words)?;
        let way = direction.name();
        match name.strip_suffix(" bytes") {
            Some(of_size) => Some(format!("through {of_size} B {way}")),
            None => (name == "the box").then(|| format!("through {name}, {way}")),
        }
    };
    let told = told(", there", Direction::There).or_else(|| told(", back", Direction::Back));
    told.unwrap_or_else(|| once.to_owned())
}

/// `the first differs from itself by +-61.9%, and it takes 3% or less`, the same in later words, or `3 rounds of
/// both, and it takes 4`.
fn no_claim(once: &str, first: &str) -> Option<String> {
    if let Some(by) = once.strip_prefix("the first, measured twice a round, differs by up to ") {
        return Some(format!("{first} differs from itself by up to {by}"));
    }
    if let Some((rounds, fewest)) = once.split_once(" rounds of both, and it takes ") {
        return Some(format!("only {rounds} rounds have both, and {fewest} are needed"));
    }
    let (apart, most) =
        once.strip_prefix("the first differs from itself by +-")?.split_once("%, and it takes ")?;
    let (apart, most) = (apart.parse::<f64>().ok()?, most.strip_suffix(" or less")?);
    Some(format!("{first} differs from itself by up to +-{apart:.0}% (at most {most} is allowed)"))
}

fn trusts(run: &mut Run) -> impl Iterator<Item = &mut Trust> {
    let flows = run.flows.iter_mut().map(|flow| &mut flow.trust);
    let sizes = run.device.iter_mut().flat_map(|of| &mut of.sizes).map(|at| &mut at.trust);
    let rows = run.backends.iter_mut().flat_map(|of| &mut of.rows);
    let rows = rows.filter_map(|row| row.measured.as_mut()).map(|of| &mut of.trust);
    flows.chain(sizes).chain(rows).flatten()
}

/// In what a measurement differs from its calibration.
fn condition(once: &str) -> String {
    if once == UNKNOWN.0 {
        return UNKNOWN.1.to_owned();
    }
    let ways = once.strip_prefix("it was found ").and_then(|of| of.split_once(AND_THESE));
    if let Some((calibrated, measured)) = ways {
        return format!("calibrated for {}, not for {}", way(calibrated), way(measured));
    }
    rates(once).unwrap_or_else(|| once.to_owned())
}

/// `one way over an open lab bed with a delay line at 10.0us in it`.
fn way(once: &str) -> String {
    let mut told = WORDS.iter().fold(once.to_owned(), |told, (of, to)| told.replacen(of, to, 1));
    if let Some((over, delay)) = told.split_once(" with a delay line at ")
        && let Some(delay) = delay.strip_suffix(" in it")
    {
        told = format!("{over} (delay line at {delay})");
    }
    told
}

/// `calibrated at 2000 a second, not 1000`.
fn rates(once: &str) -> Option<String> {
    let (calibrated, rest) = once.strip_prefix("calibrated at ")?.split_once(" a second")?;
    let per_second = |of: &str| Some(crate::thousands_apart(of.parse().ok()?) + "/s");
    let calibrated = per_second(calibrated)?;
    if rest.is_empty() {
        return Some(format!("calibrated at {calibrated}"));
    }
    let measured = per_second(rest.strip_prefix(", not ")?)?;
    Some(format!("calibrated at {calibrated}, not {measured}"))
}

/// Why a box is taken to forward as it does.
fn why(once: &str) -> String {
    let of_memory = once.strip_prefix(GROWS).and_then(|of| of.split_once(A_BYTE));
    let of_memory =
        of_memory.filter(|(_, rest)| rest.starts_with("; links of memory take no time"));
    match of_memory.and_then(|(ns, _)| ns.parse::<f64>().ok()) {
        Some(ns) if ns > 0.0 => format!(
            "{GROWS}{ns:.2}ns per byte: a virtual link takes no time for a byte, so this is the time to copy it"
        ),
        Some(ns) => format!(
            "latency does not grow with the frame size ({ns:.2}ns per byte): a virtual link takes no time for \
             a byte"
        ),
        None => once.replacen(A_BYTE, "ns per byte", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_differ_from_a_calibration_are_told_in_the_words_of_today() {
        for (once, now) in [
            ("calibrated at 2000 a second, not 1000", "calibrated at 2,000/s, not 1,000/s"),
            ("calibrated at 100 a second", "calibrated at 100/s"),
            (
                "it was found one way over an open lab bed with a delay line at 10.0us in it, and these numbers \
                 are there and back over loopback",
                "calibrated for one-way latency over an open test network (delay line at 10.0us), not for round \
                 trips over loopback",
            ),
            (
                "it was found there and back over loopback, and these numbers are one way over a lab bed with a \
                 bridge",
                "calibrated for round trips over loopback, not for one-way latency over a test network with a \
                 bridge",
            ),
            UNKNOWN,
        ] {
            assert_eq!(condition(once), now);
            assert_eq!(condition(now), now, "it is told so today");
        }
        for other in ["calibrated with 64 bytes, not 512", "calibrated at ten a second"] {
            assert_eq!(condition(other), other);
        }
    }

    #[test]
    fn directions_through_a_box_have_one_name_each() {
        for (once, now) in [
            ("through bridge, 64 bytes, there", "through bridge, 64 B outbound"),
            ("through bridge, 64 bytes, back", "through bridge, 64 B inbound"),
            ("through the box, back", "through the box, inbound"),
            ("response time, there and back", "response time, there and back"),
        ] {
            assert_eq!(label(once), now);
            assert_eq!(label(now), now, "it is told so today");
        }
        let doubt =
            "through bridge, 64 bytes: the send delay of back (p90 10us) exceeds its service time";
        let told = "through bridge, 64 bytes: the send delay of inbound frames (p90 10us) exceeds its service time";
        assert_eq!(crate::device::by_direction(doubt), told);
        assert_eq!(crate::device::by_direction(told), told);
    }

    #[test]
    fn why_nothing_is_claimed_of_a_backend_is_told_in_the_words_of_today() {
        for (once, now) in [
            (
                "the first differs from itself by +-61.9%, and it takes 3% or less",
                "udp spin differs from itself by up to +-62% (at most 3% is allowed)",
            ),
            (
                "the first, measured twice a round, differs by up to +-62% (at most 3% is allowed)",
                "udp spin differs from itself by up to +-62% (at most 3% is allowed)",
            ),
            ("3 rounds of both, and it takes 4", "only 3 rounds have both, and 4 are needed"),
        ] {
            assert_eq!(no_claim(once, "udp spin").as_deref(), Some(now));
            assert_eq!(no_claim(now, "udp spin"), None, "it is told so today");
        }
    }

    #[test]
    fn why_a_box_forwards_as_it_does_is_told_in_the_words_of_today() {
        let of_memory = "links of memory take no time for a byte, and whole frames are handed over: what grows \
                         is copying";
        for (once, now) in [
            (
                format!("latency grows by -2.629 ns a byte; {of_memory}"),
                "latency does not grow with the frame size (-2.63ns per byte): a virtual link takes no time for \
                 a byte",
            ),
            (
                format!("latency grows by 0.311 ns a byte; {of_memory}"),
                "latency grows by 0.31ns per byte: a virtual link takes no time for a byte, so this is the time \
                 to copy it",
            ),
            (
                "latency grows by 8.00 ns a byte, as the link takes for one".to_owned(),
                "latency grows by 8.00ns per byte, as the link takes for one",
            ),
        ] {
            assert_eq!(why(&once), now);
            assert_eq!(why(now), now, "it is told so today");
        }
    }
}
