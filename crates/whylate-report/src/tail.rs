//! Why slow requests were slow, in a table and sentences that the terminal and the page share.

use whylate_model::Nanos;
use whylate_model::flow::Flow;
use whylate_model::run::Run;
use whylate_model::tail::{End, Lift, Tail, TailCause, TailVerdict, Watched, WatchedBy};

use crate::doc::{Block, Table, Where};
use crate::numbers::{Cell, Value, count, percent};

/// How the shares are to be read.
const SHARES: &str = "A cause struck a request when it took at least half of what lies \
     between the median and the slow ones. By chance: of windows as long as the slow requests', at \
     other times. Lift: how much more often slow requests were struck than the other ones. \
     Correlation is not proof of a cause.";

/// What is said of each flow whose slow requests were looked at.
pub(crate) fn blocks(run: &Run) -> Vec<Block> {
    run.flows.iter().filter_map(|flow| Some(why(flow, flow.tail.as_ref()?))).flatten().collect()
}

fn why(flow: &Flow, tail: &Tail) -> Vec<Block> {
    let head = ["at", "cause", "of slow", "others", "chance", "lift", "episodes", "took"];
    let caption = format!("Why requests of {} were slow", flow.name);
    let mut table = Table::new(&caption, &head).words(&[1]);
    for cause in &tail.causes {
        table.row(row(cause));
    }
    // The page has the caption, with the table.
    let mut blocks = vec![
        Block::Only(Where::Terminal, vec![Block::Heading(caption)]),
        Block::Text(answer(tail)),
    ];
    if !table.rows.is_empty() {
        blocks.extend(Block::explained(table, SHARES));
    }
    blocks.push(Block::Items(told(tail)));
    blocks
}

fn row(cause: &TailCause) -> [Value; 8] {
    let lift = cause.lift.map(|lift| {
        let mark = if cause.claimed { "" } else { " (no)" };
        format!("{}{mark}", times(lift))
    });
    [
        end(cause.end).into(),
        cause.cause.to_string().into(),
        Value::Share(cause.of_slow),
        Value::Share(cause.of_ordinary),
        cause.by_chance.map(Value::Share).into(),
        lift.into(),
        Value::Count(cause.episodes),
        cause.took.into(),
    ]
}

/// Which requests are slow, what is claimed, and what nothing explains.
pub(crate) fn answer(tail: &Tail) -> String {
    let slow = format!(
        "Of {} requests {} are slow, from {} on (above {}% of them; median {}).",
        count(tail.requests),
        count(tail.slow),
        Value::from(tail.slow_from),
        tail.percent,
        Value::from(tail.median)
    );
    let none = format!("No cause is claimed: {}.", no_claim(tail));
    let claimed: Vec<String> = tail.claimed().map(claim).collect();
    let claimed = if claimed.is_empty() { none } else { claimed.join(" ") };
    let unexplained = match (tail.not_explained, tail.causes.is_empty()) {
        (0, _) | (_, true) => String::new(),
        (not_explained, false) => format!(
            " {} of the slow requests were struck by nothing that was seen.",
            percent(not_explained as f64 / tail.slow.max(1) as f64)
        ),
    };
    format!("{slow} {claimed}{unexplained}")
}

fn claim(cause: &TailCause) -> String {
    let lift = cause.lift.unwrap_or(Lift { ratio: 0.0, low: 0.0, high: 0.0 });
    format!(
        "{} at {} struck {} of them and {} of the other ones (ratio {}, 95% CI {}), in {} episodes.",
        capital(&cause.cause.to_string()),
        whose(cause.end),
        percent(cause.of_slow),
        percent(cause.of_ordinary),
        times(lift),
        within(lift).ends(),
        count(cause.episodes)
    )
}

fn no_claim(tail: &Tail) -> String {
    let watched = tail.ends.iter().any(|end| end.by != WatchedBy::Nothing);
    match tail.verdict {
        _ if !watched => "neither end was looked at".to_owned(),
        TailVerdict::TooFew => "too few requests are slow, or they are hardly slower".to_owned(),
        TailVerdict::NothingStruck => {
            format!("none struck slow requests in {} episodes or more", count(tail.episodes_least))
        }
        TailVerdict::NoneStands | TailVerdict::Claimed => format!(
            "none struck slow requests more than {} times as often as the other ones, and as windows \
             elsewhere, with its whole interval",
            tail.lift_least
        ),
    }
}

fn told(tail: &Tail) -> Vec<String> {
    let mut told: Vec<String> = tail.ends.iter().map(looked).collect();
    told.extend(tried(tail));
    if tail.causes_left_out > 0 {
        told.push(format!("{} causes that struck fewer are left out", count(tail.causes_left_out)));
    }
    if tail.by_whylate > 0 {
        let own = count(tail.by_whylate);
        told.push(format!(
            "{own} requests are left out: threads of whylate itself had a CPU of one of their ends \
             for half of their time and more"
        ));
    }
    if tail.left_aside > 0 {
        let aside = count(tail.left_aside);
        told.push(format!("{aside} requests or interruptions came too late to be looked at"));
    }
    told
}

/// How many causes were tested, and what their intervals are; of causes without a test, that they have none.
fn tried(tail: &Tail) -> Option<String> {
    let were = |of: u64| if of == 1 { "cause was" } else { "causes were" };
    let seen = (tail.causes.len() as u64).saturating_add(tail.causes_left_out);
    match (tail.tried, seen) {
        (0, 0) => None,
        (0, seen) => {
            let untested = match tail.verdict {
                TailVerdict::TooFew => "none was tested",
                _ => "none often enough to test",
            };
            Some(format!("{} {} seen; {untested}", count(seen), were(seen)))
        }
        (tried, _) => Some(format!(
            "a cause struck a request when it took {} or more of it; {} {} tried; the intervals, over {} \
             blocks of time, hold jointly at 95%",
            Value::from(tail.strike),
            count(tried),
            were(tried),
            count(tail.blocks)
        )),
    }
}

fn looked(of: &Watched) -> String {
    let whose = whose(of.end);
    let by = match of.by {
        WatchedBy::Turns { looking, sending } => {
            format!(
                "turns of its loop longer than {}, or {} where it sent",
                known(looking),
                known(sending)
            )
        }
        WatchedBy::Scheduler => "it sleeps; what the kernel's scheduler did with it".to_owned(),
        WatchedBy::Nothing => return format!("{whose}: not looked at"),
    };
    let named =
        if of.traced { "named by the kernel's trace" } else { "not traced, and so not named" };
    let missed = match of.missed {
        0 => String::new(),
        missed => format!("; {} found no room", count(missed)),
    };
    format!("{whose}: {} interruptions, {by}; {named}{missed}", count(of.interruptions))
}

/// An end that did not end by itself has not told.
fn known(limit: Nanos) -> String {
    if limit.0 == 0 { "it has told".to_owned() } else { Value::from(limit).to_string() }
}

fn end(end: End) -> &'static str {
    match end {
        End::Client => "client",
        End::Other => "other",
    }
}

fn whose(end: End) -> &'static str {
    match end {
        End::Client => "the client",
        End::Other => "the other end",
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

fn times(of: Lift) -> String {
    within(of).alone().to_string()
}

fn within(Lift { ratio, low, high }: Lift) -> Cell {
    Cell::from(Value::Ratio(ratio)).within(Some((Value::Ratio(low), Value::Ratio(high))))
}

#[cfg(test)]
mod tests {
    use whylate_model::cause::{Cause, PriorityClass};

    use super::*;

    fn cause(claimed: bool) -> TailCause {
        let lift = Some(Lift { ratio: 37.4, low: 12.0, high: 61.0 });
        TailCause {
            end: End::Other,
            cause: Cause::Thread { comm: "hog".to_owned(), class: PriorityClass::RealTime },
            episodes: 23,
            slow: 55,
            of_slow: 0.92,
            of_ordinary: 0.025,
            by_chance: Some(0.05),
            lift,
            over_chance: lift,
            took: Nanos(2_900_000),
            claimed,
        }
    }

    fn tail(causes: Vec<TailCause>, verdict: TailVerdict) -> Tail {
        let turns = |end| Watched {
            end,
            by: WatchedBy::Turns { looking: Nanos(3_000), sending: Nanos(19_000) },
            traced: true,
            interruptions: 900,
            missed: 0,
        };
        Tail {
            percent: 99.0,
            slow_from: Nanos(1_200_000),
            median: Nanos(14_000),
            strike: Nanos(600_000),
            requests: 6_000,
            slow: 60,
            not_explained: 3,
            left_aside: 0,
            by_whylate: 0,
            ends: vec![turns(End::Client), Watched { traced: false, ..turns(End::Other) }],
            causes,
            causes_left_out: 0,
            tried: 2,
            blocks: 40,
            episodes_least: 5,
            lift_least: 2.0,
            verdict,
        }
    }

    #[test]
    fn a_claim_names_the_cause_the_end_and_its_lift() {
        let said = answer(&tail(vec![cause(true)], TailVerdict::Claimed));
        assert_eq!(
            said,
            "Of 6,000 requests 60 are slow, from 1.2 ms on (above 99% of them; median 14 µs). Task hog \
             (real-time) at the other end struck 92% of them and 2.5% of the other ones (ratio 37, 95% CI \
             12–61), in 23 episodes. 5.0% of the slow requests were struck by nothing that was \
             seen."
        );
    }

    #[test]
    fn where_nothing_is_claimed_the_reason_is_told() {
        let none = |verdict| answer(&tail(vec![cause(false)], verdict));
        assert!(none(TailVerdict::NoneStands).contains("No cause is claimed: none struck slow"));
        assert!(none(TailVerdict::NothingStruck).contains("in 5 episodes or more"));
        assert!(none(TailVerdict::TooFew).contains("too few requests are slow"));
        let mut blind = tail(Vec::new(), TailVerdict::NothingStruck);
        blind.ends.iter_mut().for_each(|end| end.by = WatchedBy::Nothing);
        assert!(answer(&blind).contains("neither end was looked at"), "{}", answer(&blind));
        let told = told(&tail(vec![cause(false)], TailVerdict::NoneStands));
        assert!(told[1].contains("not traced, and so not named"), "{told:?}");
    }

    #[test]
    fn what_was_looked_at_and_what_was_left_out_is_told_line_by_line() {
        let mut of = tail(Vec::new(), TailVerdict::TooFew);
        let tried = "a cause struck a request when it took 600 µs or more of it; 2 causes were tried; the intervals, over 40 blocks of time, hold jointly at 95%";
        let client = "the client: 900 interruptions, turns of its loop longer than 3 µs, or 19 µs where it sent; named by the kernel's trace";
        let other = "the other end: 900 interruptions, turns of its loop longer than 3 µs, or 19 µs where it sent; not traced, and so not named";
        assert_eq!(told(&of), [client, other, tried]);
        of.ends[0].by = WatchedBy::Turns { looking: Nanos(0), sending: Nanos(0) };
        of.ends[1] = Watched { by: WatchedBy::Scheduler, missed: 1_200, ..of.ends[1].clone() };
        (of.causes_left_out, of.by_whylate, of.left_aside) = (3, 4, 5);
        let client = "the client: 900 interruptions, turns of its loop longer than it has told, or it has \
                      told where it sent; named by the kernel's trace";
        let other = "the other end: 900 interruptions, it sleeps; what the kernel's scheduler did with it; \
                     not traced, and so not named; 1,200 found no room";
        let own = "4 requests are left out: threads of whylate itself had a CPU of one of their ends for \
                   half of their time and more";
        let lines = [
            client,
            other,
            tried,
            "3 causes that struck fewer are left out",
            own,
            "5 requests or interruptions came too late to be looked at",
        ];
        assert_eq!(told(&of), lines);
        of.ends[0].by = WatchedBy::Nothing;
        assert_eq!(told(&of)[0], "the client: not looked at");
    }

    #[test]
    fn where_no_cause_was_tested_there_are_no_intervals_to_tell_of() {
        let said = |causes: Vec<TailCause>, left_out: u64, verdict| {
            let mut of = tail(causes, verdict);
            (of.tried, of.blocks, of.causes_left_out) = (0, 0, left_out);
            tried(&of)
        };
        let none = "none often enough to test";
        let nothing = TailVerdict::NothingStruck;
        assert_eq!(said(vec![cause(false)], 0, nothing), Some(format!("1 cause was seen; {none}")));
        let many = said(vec![cause(false), cause(false)], 3, nothing);
        assert_eq!(many, Some(format!("5 causes were seen; {none}")));
        let few = said(vec![cause(false)], 0, TailVerdict::TooFew);
        assert_eq!(few.as_deref(), Some("1 cause was seen; none was tested"));
        assert_eq!(said(Vec::new(), 0, nothing), None);
    }

    #[test]
    fn a_row_has_the_lift_of_a_cause_and_says_where_it_is_not_claimed() {
        let cells = |cause: &TailCause| row(cause).map(|value| value.to_string());
        let named = cause(true).cause.to_string();
        let first = ["other", &named, "92%", "2.5%", "5.0%", "37", "23", "2.9 ms"];
        assert_eq!(cells(&cause(true)), first);
        assert_eq!(cells(&cause(false))[5], "37 (no)");
        let unknown = TailCause { end: End::Client, lift: None, by_chance: None, ..cause(false) };
        let [end, .., chance, lift, _, _] = cells(&unknown);
        assert_eq!([end, chance, lift], ["client", "–", "–"]);
    }

    #[test]
    fn requests_that_nothing_struck_are_told_where_there_are_some_and_something_was_seen() {
        let nothing = "were struck by nothing that was seen";
        let all = Tail { not_explained: 0, ..tail(vec![cause(true)], TailVerdict::Claimed) };
        assert!(!answer(&all).contains(nothing));
        assert!(!answer(&tail(Vec::new(), TailVerdict::TooFew)).contains(nothing));
        let both = tail(vec![cause(true), cause(false), cause(true)], TailVerdict::Claimed);
        assert_eq!(answer(&both).matches("struck 92% of them").count(), 2);
        // One end that was looked at is enough to speak of causes.
        let mut half = tail(Vec::new(), TailVerdict::TooFew);
        half.ends[0].by = WatchedBy::Nothing;
        assert!(answer(&half).contains("too few requests are slow"));
    }

    #[test]
    fn a_ratio_has_the_digits_that_its_interval_supports_and_none_where_it_is_not_finite() {
        let told = |ratio, low, high| {
            let lift = Lift { ratio, low, high };
            (times(lift), within(lift).ends().to_string())
        };
        for ((ratio, low, high), said, ends) in [
            ((37.4, 12.0, 61.0), "37", "12–61"),
            ((2.04, 1.91, 2.17), "2.04", "1.91–2.17"),
            ((61.4, 3.2, f64::INFINITY), "61.4", "≥3.20"),
            ((f64::INFINITY, 3.2, f64::INFINITY), "–", "≥3.20"),
        ] {
            assert_eq!(told(ratio, low, high), (said.to_owned(), ends.to_owned()));
        }
    }

    #[test]
    fn only_flows_whose_slow_requests_were_looked_at_are_told_and_a_table_where_causes_struck() {
        let mut run = crate::trusted::tests::calibrated(Some(99.0));
        let kinds = |run: &Run| -> Vec<&str> {
            let kind = |block: &Block| match block {
                Block::Only(Where::Terminal, _) => "heading",
                Block::Text(_) => "answer",
                Block::Table(_) => "table",
                Block::How(_) => "how",
                Block::Items(_) => "told",
                _ => "other",
            };
            blocks(run).iter().map(kind).collect()
        };
        run.flows[0].tail = None;
        assert_eq!(kinds(&run), Vec::<&str>::new());
        run.flows[0].tail = Some(tail(Vec::new(), TailVerdict::TooFew));
        assert_eq!(kinds(&run), ["heading", "answer", "told"]);
        run.flows[0].tail = Some(tail(vec![cause(true)], TailVerdict::Claimed));
        assert_eq!(kinds(&run), ["heading", "answer", "table", "how", "told"]);
    }
}
