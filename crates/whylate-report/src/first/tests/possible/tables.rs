//! Figures of tables: their order, their sums, and parts beside their wholes.

use super::{Bound, Number, Screen, Table, interval};

/// Columns of a distribution, from the smallest value.
const RISING: [&str; 8] = ["min", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max"];

/// A column, and the one that it is part of.
const PARTS: [(&str, &str); 11] = [
    ("missed", "jobs"),
    ("skipped", "missed"),
    ("found", "injected"),
    ("right cause", "found"),
    ("sent", "asked"),
    ("answered", "sent"),
    ("lost", "sent"),
    ("received", "sent"),
    ("forwarded", "received"),
    ("passed on", "received"),
    ("dropped", "received"),
];

pub(super) fn contradictions(screen: &Screen) -> Vec<String> {
    let mut wrong = Vec::new();
    for table in &screen.tables {
        for row in 0..table.rows.len() {
            let found = [rising, parts, interval_of, task, stalls].map(|of| of(table, row));
            let name = &table.rows[row][0];
            wrong.extend(found.into_iter().flatten().map(|what| format!("{name}: {what}")));
        }
        wrong.extend(shares(table));
        wrong.extend(totals(table));
    }
    let of_all = [runs, clients, set, responses, held, taken].map(|of| of(screen));
    wrong.extend(of_all.into_iter().flatten());
    wrong.extend(papers(screen));
    wrong
}

/// By how much a number may have been cut: a bound is rounded down, and a value to the nearest.
fn cut(of: Number) -> f64 {
    if of.bound == Bound::Least { 2.0 * of.off + 1e-9 } else { 0.0 }
}

/// Each column of a distribution is no less than the one before.
fn rising(table: &Table, row: usize) -> Option<String> {
    let mut before: Option<(&str, Number)> = None;
    for head in RISING {
        let Some(of) = table.at(row, head) else { continue };
        if let Some((less, least)) = before
            && least.value > of.value + cut(of)
            && of.bound != Bound::Less
            && least.bound != Bound::Less
        {
            return Some(format!("{head} {} is below {less} {}", of.value, least.value));
        }
        before = Some((head, of));
    }
    None
}

/// No part is more than its whole: of columns beside each other, of `3 of 5`, and of jobs above their bound.
fn parts(table: &Table, row: usize) -> Option<String> {
    for (part, whole) in PARTS {
        if let (Some(of), Some(all)) = (table.at(row, part), table.at(row, whole))
            && of.is_more(all)
            && table.unit(row, table.column(part)?).is_none()
        {
            return Some(format!("{part} {} of {whole} {}", of.value, all.value));
        }
    }
    let cell = |head: &str| table.rows[row].get(table.column(head)?);
    let of = cell("missed").and_then(|cell| cell.split_once(" of "));
    if let Some((part, all)) = of.and_then(|(a, b)| Number::read(a).zip(Number::read(b))) {
        if part.value > all.value {
            return Some(format!("missed {} of {}", part.value, all.value));
        }
        if let Some(above) = table.at(row, "above").filter(|above| above.value > all.value) {
            return Some(format!("{} above of {} jobs", above.value, all.value));
        }
    }
    if let (Some(missed), Some(jobs), Some(share)) =
        (table.at(row, "missed"), table.at(row, "jobs"), table.at(row, "share"))
    {
        let exact = Number {
            value: 100.0 * missed.value / jobs.value.max(1.0),
            off: 0.0,
            bound: Bound::None,
        };
        if !share.is(exact) && share.bound == Bound::None {
            return Some(format!("share {}, not {:.1}", share.value, exact.value));
        }
    }
    None
}

/// An interval holds the number before it, or that which it names.
fn interval_of(table: &Table, row: usize) -> Option<String> {
    for (at, head) in
        table.heads.iter().enumerate().skip(2).filter(|(_, head)| head.starts_with("95% CI"))
    {
        let named = head.strip_prefix("95% CI, ").and_then(|name| table.column(name));
        let cells = &table.rows[row];
        let cell = cells.get(named.unwrap_or(at - 1));
        let same = cell.zip(cells.get(at)).is_some_and(|(a, b)| a.contains('%') == b.contains('%'));
        let value = cell.filter(|_| same).and_then(|cell| Number::read(cell));
        if let (Some(value), Some(ends)) = (value, cells.get(at).and_then(|cell| interval(cell)))
            && value.bound == Bound::None
            && (value.value + value.off < *ends.start() || value.value - value.off > *ends.end())
        {
            return Some(format!("{} is not in {}", value.value, cells[at]));
        }
    }
    None
}

/// A task takes no less than its execution, and has to spare what is left of its deadline.
fn task(table: &Table, row: usize) -> Option<String> {
    let response = table.at(row, "worst response").or_else(|| table.at(row, "response"))?;
    let execution = table.at(row, "execution")?;
    if execution.is_more(response) {
        return Some(format!("response {} below execution {}", response.value, execution.value));
    }
    let (deadline, slack) = (table.at(row, "deadline")?, table.at(row, "slack")?);
    let spare = Number { value: deadline.value - response.value, ..response };
    (!slack.is(spare)).then(|| format!("slack {}, not {}", slack.value, spare.value))
}

/// So many stalls took no more together than each of them at most.
fn stalls(table: &Table, row: usize) -> Option<String> {
    let [lost, stalls, longest] = ["lost", "stalls", "longest"].map(|head| table.at(row, head));
    let (lost, stalls, longest) = (lost?, stalls?, longest?);
    let most = stalls.value * (longest.value + longest.off);
    (lost.value - lost.off > most).then(|| {
        format!("{} lost in {} stalls of {} at most", lost.value, stalls.value, longest.value)
    })
}

/// Shares of one whole are no more than all of it, and all of it where they are all there.
fn shares(table: &Table) -> Option<String> {
    let of_causes = ["lost CPU time", "cause of latency", "part of a request"];
    let sum =
        table.sum("share").filter(|_| of_causes.iter().any(|of| table.heads[0].starts_with(of)))?;
    // A share below a tenth of one is written as less than that.
    let off = sum.off + 0.1 * table.rows.len() as f64;
    let all = sum.value > 100.0 + off || (table.more == 0 && sum.value < 100.0 - off);
    all.then(|| format!("shares add up to {}", sum.value))
}

/// What stands in the last row is the sum of those above.
fn totals(table: &Table) -> Option<String> {
    let last = table.rows.iter().position(|row| row[0] == "total")?;
    let of = |head: &'static str| {
        let (sum, total) = (table.sum(head)?, table.at(last, head)?);
        (!sum.is(total) && sum.is_more(total)).then(|| format!("{head} adds up to {}", sum.value))
    };
    let longest = table
        .all("longest")
        .into_iter()
        .any(|of| table.at(last, "longest").is_some_and(|all| of.is_more(all)));
    longest
        .then(|| "one is longer than the longest".to_owned())
        .or_else(|| of("lost"))
        .or_else(|| of("stalls"))
}

/// A sum lies between its recordings, and has the largest value of all.
fn runs(screen: &Screen) -> Option<String> {
    let (runs, first) = (screen.table("runs")?, screen.tables.first()?);
    let in_ns = |table: &Table, head: &str| {
        let unit = table.unit(0, table.column(head)?)?;
        let all = table.all(head).into_iter().map(|of| (of.value - of.off) * unit);
        Some(all.fold(0.0, f64::max))
    };
    if let (Some(one), Some(all)) = (in_ns(runs, "max"), in_ns(first, "max"))
        && one > all * 1.01
    {
        return Some("the largest value of a run is above that of their sum".to_owned());
    }
    let shares = runs.all("of CPU");
    let least = shares.iter().map(|of| of.value - of.off).fold(f64::INFINITY, f64::min);
    let most = shares.iter().map(|of| of.value + of.off).fold(0.0, f64::max);
    let told =
        screen.answer.split(" lost ").nth(1).and_then(|of| Number::read(of.split(' ').next()?))?;
    let below = runs.more == 0 && told.value + told.off < least;
    (!shares.is_empty() && (below || told.value - told.off > most))
        .then(|| format!("{} of runs of {least} to {most}", told.value))
}

/// All that threads lost is what causes took.
fn taken(screen: &Screen) -> Option<String> {
    let (causes, threads) = (screen.table("lost CPU time")?, screen.table("CPU time")?);
    let in_ns = |table: &Table| {
        let (sum, ns) = (table.sum("lost")?, table.unit(0, table.column("lost")?)?);
        Some(Number { value: sum.value * ns, off: sum.off * ns, ..sum })
    };
    let took = in_ns(causes)?;
    let mut words = screen.answer.split(" lost ").nth(1)?.split(' ');
    let (told, ns) = (Number::read(words.next()?)?, super::time(words.next()?)?);
    let told = Number { value: told.value * ns, off: 2.0 * told.off * ns, ..told };
    // Of a table that is cut no more is known than that it has less.
    let all_there = |table: &Table| table.more == 0;
    let lost = in_ns(threads).filter(|_| all_there(threads));
    let differs =
        |lost: Number| if all_there(causes) { !took.is(lost) } else { took.is_more(lost) };
    let wrong = differs(told) || lost.is_some_and(differs);
    wrong.then(|| format!("{} ns of {} ns lost", took.value, told.value))
}

/// What clients were answered, and how long that took, is part of what all were.
fn clients(screen: &Screen) -> Option<String> {
    let (all, clients) = (screen.table("residence")?, screen.table("client")?);
    let told = screen
        .answer
        .strip_prefix("Answered ")
        .and_then(|of| Number::read(of.split(' ').next()?))?;
    if let Some(n) = all.at(0, "n").filter(|n| (n.value - told.value).abs() > 0.5) {
        return Some(format!("n {} of {} answered", n.value, told.value));
    }
    let sum: f64 = clients.all("answered").iter().map(|of| of.value).sum();
    let most = all.at(0, "max")?;
    let unit = |table: &Table| table.unit(0, 0).unwrap_or(1.0);
    let above =
        |of: &Number| (of.value - of.off) * unit(clients) > (most.value + most.off) * unit(all);
    if clients.all("max").iter().any(above) {
        return Some("a client waited longer than the longest of all".to_owned());
    }
    (sum > told.value).then(|| format!("clients have {sum} of {} answers", told.value))
}

/// The tasks take what the answer says of the CPU.
fn set(screen: &Screen) -> Option<String> {
    let table = screen.table("task")?;
    let share =
        |row: usize| Some(table.at(row, "execution")?.value / table.at(row, "period")?.value);
    let sum: f64 = (0..table.rows.len()).filter_map(share).sum::<f64>() * 100.0;
    let words: Vec<&str> = screen.answer.split([' ', '(', ')']).collect();
    let behind =
        |word: &str| words.iter().position(|of| *of == word).and_then(|at| words.get(at + 1));
    let told = behind("load").or_else(|| behind("need")).and_then(|of| Number::read(of))?;
    let is_near = (sum - told.value).abs() <= told.off + 0.5;
    let contradicts = if table.more == 0 { sum > 0.0 && !is_near } else { sum > told.value + 1.0 };
    contradicts.then(|| format!("a load of {}%, where tasks take {sum:.1}%", told.value))
}

/// No job lost more than it took, and none took longer beyond its bound than the longest did.
fn responses(screen: &Screen) -> Option<String> {
    let table = screen.table("response time of task")?;
    let unit = table.unit(0, 0)?;
    let beyond = (0..table.rows.len()).filter_map(|row| {
        let (max, bound) = (table.at(row, "max")?, table.at(row, "predicted")?);
        Some((max.value - bound.value, max.off + bound.off))
    });
    let (most, off) = beyond.fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
    let duration = |text: &str, before: &str| {
        let mut words = text.split(before).nth(1)?.split_whitespace();
        let value = Number::read(words.next()?)?;
        let unit = super::time(words.next()?.trim_end_matches(['.', ',']))?;
        Some((value.value * unit, value.off * unit))
    };
    if let Some((told, exact)) = duration(&screen.answer, "took up to ")
        && table.more == 0
        && (told - most * unit).abs() > exact + off * unit
    {
        return Some(format!("up to {told} ns longer, where the longest are {most} longer"));
    }
    let longest = table.all("max").iter().map(|of| of.value + of.off).fold(0.0, f64::max);
    let lost = duration(&screen.notes, "lost the most: ")?.0;
    (lost > longest * unit)
        .then(|| format!("{lost} ns lost by a job, where the longest took {longest}"))
}

/// What a delay line held back passed it.
fn held(screen: &Screen) -> Option<String> {
    let (directions, times) = (
        screen.table("direction")?,
        screen.table("time in the delay line").or(screen.table("residence"))?,
    );
    let passed: Vec<Number> = [directions.all("passed on"), directions.all("forwarded")].concat();
    if passed.len() < directions.rows.len() {
        // They have no room.
        return None;
    }
    let most = passed.iter().map(|of| of.value).fold(0.0, f64::max);
    times
        .all("n")
        .iter()
        .any(|n| n.value > most)
        .then(|| format!("more samples than the {most} that passed"))
}

/// What agrees has an interval that holds the paper's figure, what differs one that does not.
fn papers(screen: &Screen) -> Vec<String> {
    let mut wrong = Vec::new();
    for (head, agrees) in [("agrees", true), ("differs", false)] {
        let Some(table) = screen.tables.iter().find(|of| of.heads[0] == head) else { continue };
        for row in &table.rows {
            let [_, paper, _, ends] = row.as_slice() else { continue };
            if let Some(holds) = holds(paper, ends)
                && holds != agrees
            {
                wrong.push(format!("{head}: {paper} beside {ends}"));
            }
        }
    }
    wrong
}

/// Does the interval hold the paper's figure? None where the two are no numbers of one kind.
fn holds(paper: &str, ends: &str) -> Option<bool> {
    let (ends, unit) = ends.split_once(' ').unwrap_or((ends, ""));
    let ends = interval(ends)?;
    let one = scale(unit)?;
    let least = paper.strip_prefix("at least ");
    let plain = least.unwrap_or(paper).trim_start_matches("about ");
    if let Some((part, all)) = plain.split_once(" of ") {
        let all = all.split(' ').next().and_then(Number::read)?;
        return Some(ends.contains(&(100.0 * Number::read(part)?.value / all.value)));
    }
    let (value, of) = plain.split_once(' ').unwrap_or((plain, ""));
    let value = Number::read(value)?.value * scale(of)? / one;
    Some(if least.is_some() { *ends.end() >= value } else { ends.contains(&value) })
}

/// What a unit is worth.
fn scale(unit: &str) -> Option<f64> {
    match unit {
        "" | "times" => Some(1.0),
        "Mbit/s" => Some(1e6),
        "Gbit/s" => Some(1e9),
        unit => super::time(unit),
    }
}
