//! Reasons of poor trust in the words of older versions.
//!
//! Trust finds most of what an older run stored as a reason by itself, and tells a reason once only where both have
//! the same words.

use crate::device::by_direction;
use crate::flow::Flow;
use crate::run::{Run, Verdict};

/// Words of once, and those of today.
const WORDS: [(&str, &str); 7] = [
    (" found were named right", " found were attributed to the right cause"),
    (
        ": response times are the client's own",
        ": the response times measure the client, not the server",
    ),
    (
        ": latencies from due are the client's own",
        ": the latencies from due measure the client, not the path",
    ),
    ("self-test could not judge a single interruption", "self-test injected no interruption"),
    (" gaps were counted but not kept one by one", " stalls were counted but not kept one by one"),
    ("the host changed during the run: ", "this machine changed during the run: "),
    (
        " own threads had a CPU of an end during ",
        " own threads ran on the client's or the reflector's CPU during ",
    ),
];

/// What all interruptions being found says, once and today.
const FOUND: (&str, &str) =
    (" interruptions were found", " interruptions were found, and all must be");

/// What a client once said of requests that it sent late itself.
const OWN: &str = "response times are the client's own";

/// Tells each stored reason in the words of today.
pub(super) fn settle(run: &mut Run) {
    let of_parts = run.origins.iter_mut().map(|origin| &mut origin.verdict);
    for reason in of_parts.chain([&mut run.verdict]).flat_map(stored) {
        *reason = today(reason, &run.flows);
    }
    // What a client thought of itself was a note of a device once.
    let of_device = run.device.iter_mut();
    let of_device = of_device.flat_map(|device| device.notes.iter_mut().chain(&mut device.doubts));
    let of_origins = run.origins.iter_mut().flat_map(|origin| &mut origin.doubts);
    for said in of_device.chain(of_origins) {
        *said = by_direction(&today(said, &run.flows));
    }
}

fn stored(verdict: &mut Verdict) -> &mut [String] {
    match verdict {
        Verdict::Untrustworthy { reasons } | Verdict::LimitExceeded { reasons, .. } => reasons,
        Verdict::Trustworthy | Verdict::Pending => &mut [],
    }
}

fn today(reason: &str, flows: &[Flow]) -> String {
    if let Some((whose, reason)) = of_client(reason) {
        return format!("{whose}{}", today(reason, flows));
    }
    if let Some(said) = injector(reason).or_else(|| late(reason, flows)) {
        return said;
    }
    if let Some((once, today)) = WORDS.iter().find(|(once, _)| reason.contains(once)) {
        return reason.replacen(once, today, 1);
    }
    if let Some(before) = reason.strip_suffix(FOUND.0).filter(|of| of.contains("self-test")) {
        return format!("{before}{}", FOUND.1);
    }
    reason.to_owned()
}

/// `a client of bridge (64 bytes) doubts itself: ...`.
fn of_client(reason: &str) -> Option<(String, &str)> {
    let (client, reason) = reason.split_once(" bytes) doubts itself: ")?;
    let (the_box, bytes) = client.strip_prefix("a client of ")?.rsplit_once(" (")?;
    Some((format!("through {the_box}, {bytes} bytes: "), reason))
}

/// `self-test, ipi: 78 of 79 gaps ascribed to the injector were made by it`.
fn injector(reason: &str) -> Option<String> {
    let said = reason.strip_suffix(" ascribed to the injector were made by it")?;
    let said = said.strip_suffix(" gaps").or_else(|| said.strip_suffix(" stalls"))?;
    let (before, counts) = said.rsplit_once(": ")?;
    let (rightly, all) = counts.split_once(" of ")?;
    let (rightly, of_all) = (rightly.parse::<u64>().ok()?, all.parse::<u64>().ok()?);
    let wrongly = of_all.checked_sub(rightly)?;
    Some(format!(
        "{before}: {wrongly} of {all} stalls attributed to the injector had another cause"
    ))
}

/// `requests of rtt left later (p90 346us) than they were in flight (p90 111us): ...`.
fn late(reason: &str, flows: &[Flow]) -> Option<String> {
    let (before, rest) = reason.split_once("requests of ")?;
    let (name, rest) = rest.split_once(" left later (")?;
    let (late, rest) = rest.split_once(") than they were ")?;
    let (_, rest) = rest.split_once(" (")?;
    let (flight, end) = rest.split_once("): ")?;
    let across = flows.iter().any(|flow| flow.name == name && flow.way.across.is_some());
    let (own, measured) = if across {
        ("one-way latency", "latencies from due measure the client, not the path")
    } else {
        ("service time", "response times measure the client, not the server")
    };
    let said =
        format!("the send delay of {name} ({late}) exceeds its {own} ({flight}): the {measured}");
    (end == OWN).then(|| format!("{before}{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_trust_tells_today_in_other_words_is_told_in_those() {
        for (once, now) in [
            (
                "self-test, ipi: 78 of 79 gaps ascribed to the injector were made by it",
                "self-test, ipi: 1 of 79 stalls attributed to the injector had another cause",
            ),
            (
                "second: self-test, cpu hog: 26 of 28 stalls ascribed to the injector were made by it",
                "second: self-test, cpu hog: 2 of 28 stalls attributed to the injector had another cause",
            ),
            (
                "self-test, ipi: 494 of 500 found were named right",
                "self-test, ipi: 494 of 500 found were attributed to the right cause",
            ),
            (
                "the send delay of rtt (p99 3.00ms) exceeds its service time (p99 17.7us): response times are the \
                 client's own",
                "the send delay of rtt (p99 3.00ms) exceeds its service time (p99 17.7us): the response times \
                 measure the client, not the server",
            ),
            (
                "the send delay of there (p90 346us) exceeds its one-way latency (p90 111us): latencies from due \
                 are the client's own",
                "the send delay of there (p90 346us) exceeds its one-way latency (p90 111us): the latencies from \
                 due measure the client, not the path",
            ),
            (
                "second: requests of rtt left later (p90 346us) than they were in flight (p90 111us): \
                 response times are the client's own",
                "second: the send delay of rtt (p90 346us) exceeds its service time (p90 111us): the \
                 response times measure the client, not the server",
            ),
            (
                "requests of rtt left later (p99 3.00ms) than they were under way (p99 17.7us): response \
                 times are the client's own",
                "the send delay of rtt (p99 3.00ms) exceeds its service time (p99 17.7us): the response times \
                 measure the client, not the server",
            ),
            (
                "a client of bare link (64 bytes) doubts itself: requests of there left later (p90 3.46ms) than \
                 they were in flight (p90 28.2us): response times are the client's own",
                "through bare link, 64 bytes: the send delay of there (p90 3.46ms) exceeds its service time \
                 (p90 28.2us): the response times measure the client, not the server",
            ),
            (
                "self-test, ipi: 499 of 500 interruptions were found",
                "self-test, ipi: 499 of 500 interruptions were found, and all must be",
            ),
            (
                "the self-test could not judge a single interruption",
                "the self-test injected no interruption",
            ),
            (
                "CPU 1: 7 gaps were counted but not kept one by one",
                "CPU 1: 7 stalls were counted but not kept one by one",
            ),
            (
                "the host changed during the run: cpu 1 went offline",
                "this machine changed during the run: cpu 1 went offline",
            ),
            (
                "rtt: whylate's own threads had a CPU of an end during 109 of 300 requests",
                "rtt: whylate's own threads ran on the client's or the reflector's CPU during 109 of 300 \
                 requests",
            ),
        ] {
            assert_eq!(today(once, &[]), now);
            assert_eq!(today(now, &[]), now, "it is told so today");
        }
        for other in
            ["trace lost 3 events", "requests of a left later", "no interruptions were found"]
        {
            assert_eq!(today(other, &[]), other);
        }
    }
}
