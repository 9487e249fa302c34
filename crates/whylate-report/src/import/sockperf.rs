//! sockperf: the log of `--full-log`, or what the client prints.
//!
//! The log's head names its columns, `packet, txTime(sec), rxTime(sec), latency(usec)`, where the last
//! is half of the distance of the two times; with `--full-rtt` it is `rtt(usec)` and all of it. Each
//! line is held against that. Where there are no lines of packets, the percentiles that the client
//! prints are all there is.

use std::collections::BTreeMap;

use super::{Buckets, Cell, ImportError, Imported, Importer, Measures, fixed, lines, shown};

/// Reads files of sockperf.
pub(super) struct Sockperf;

/// What of a log of packets was sent within a stretch of it: sockperf itself leaves out less than half a
/// second, whatever warm-up is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct SockperfStretch {
    /// Those packets; what sockperf printed of all of them is not of them.
    pub imported: Imported,
    /// Packets of the log that were sent before the stretch or behind it.
    pub outside: u64,
    /// Requests a second that left within it and were answered: over all of the stretch, or up to the last
    /// one where the log ends before; none of fewer than 2.
    pub per_second: Option<f64>,
    /// The log goes on to the end of the stretch.
    pub whole: bool,
}

/// Reads a log whose stretch begins so long behind the first packet's time, in nanoseconds.
pub(super) fn stretch_of(
    text: &str,
    after_ns: u64,
    length_ns: u64,
) -> Result<SockperfStretch, ImportError> {
    let mut file = File {
        stretch: Some(Stretch { after_ns, length_ns, ..Stretch::default() }),
        ..File::default()
    };
    for (number, line) in lines(text) {
        file.take(number, line)?;
    }
    let of = file.stretch.clone().unwrap_or_default();
    let Some((first, last)) = of.kept else {
        return Err(ImportError::File(
            "no packet of its log was sent within the time that is measured: it ended before, or it is no log \
             of packets (--full-log)"
                .to_owned(),
        ));
    };
    let packets = file.packets;
    let mut imported = file.imported()?;
    (imported.stated, imported.samples) = (Vec::new(), None);
    let per_second = if of.whole {
        Some(packets as f64 * 1e9 / length_ns as f64)
    } else {
        (last > first).then(|| (packets - 1) as f64 * 1e9 / (last - first) as f64)
    };
    Ok(SockperfStretch { imported, outside: of.outside, per_second, whole: of.whole })
}

/// Which packets of a log are kept.
#[derive(Debug, Clone, Default)]
struct Stretch {
    after_ns: u64,
    length_ns: u64,
    /// When the first packet of the log was sent.
    first: Option<u64>,
    /// When the first and the last of those were sent that are kept.
    kept: Option<(u64, u64)>,
    outside: u64,
    /// One was sent behind it.
    whole: bool,
}

impl Stretch {
    fn keeps(&mut self, sent: u64) -> bool {
        let since = sent.saturating_sub(*self.first.get_or_insert(sent));
        let inside = since >= self.after_ns && since - self.after_ns < self.length_ns;
        if inside {
            self.kept = Some((self.kept.map_or(sent, |(first, _)| first), sent));
        } else {
            self.outside += 1;
            self.whole |= since >= self.after_ns;
        }
        inside
    }
}

/// Digits below a microsecond in what it prints.
const DECIMALS: usize = 3;
/// Digits below a second in its times.
const TIME_DECIMALS: usize = 9;
/// What the halving and the last digit may differ by, in nanoseconds.
const ROUNDING: u64 = 2;
/// Smallest step of a printed value, in nanoseconds.
const STEP_NS: f64 = 1.0;

impl Importer for Sockperf {
    fn name(&self) -> &'static str {
        "sockperf"
    }

    fn read(&self, text: &str, _unit_ns: Option<f64>) -> Result<Vec<Imported>, ImportError> {
        let mut file = File::default();
        for (number, line) in lines(text) {
            file.take(number, line)?;
        }
        file.imported().map(|imported| vec![imported])
    }
}

/// What was read so far.
#[derive(Default)]
struct File {
    measures: Option<Measures>,
    /// Are the lines that follow those of packets?
    in_log: bool,
    /// Values in nanoseconds, and how often.
    counts: BTreeMap<u64, u64>,
    packets: u64,
    /// Percent and nanoseconds.
    stated: Vec<(f64, f64)>,
    samples: Option<u64>,
    dropped: Option<u64>,
    /// Which packets are kept; all where there is none.
    stretch: Option<Stretch>,
}

impl File {
    fn take(&mut self, number: u64, line: &str) -> Result<(), ImportError> {
        let plain = without_colours(line);
        if let Some(measures) = head_of_log(&plain) {
            self.agree(number, measures)?;
            self.in_log = true;
            return Ok(());
        }
        if plain.starts_with("-----") {
            self.in_log = false;
            return Ok(());
        }
        if self.in_log { self.packet(number, &plain) } else { self.printed(number, &plain) }
    }

    /// Whole and half round trips do not go together.
    fn agree(&mut self, number: u64, measures: Measures) -> Result<(), ImportError> {
        match self.measures.replace(measures) {
            Some(before) if before != measures => Err(ImportError::line(
                number,
                "whole and half round trips in one file: these are two recordings",
            )),
            _ => Ok(()),
        }
    }

    fn packet(&mut self, number: u64, line: &str) -> Result<(), ImportError> {
        let no_packet = || {
            let what = "no packet of sockperf, as `0, 2.438528073, 2.438538758, 5.342`";
            ImportError::line(number, format!("`{}` is {what}", shown(line)))
        };
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [packet, sent, received, took] = fields[..] else { return Err(no_packet()) };
        let read = || {
            fixed(packet, 0)?;
            Some((
                fixed(sent, TIME_DECIMALS)?,
                fixed(received, TIME_DECIMALS)?,
                fixed(took, DECIMALS)?,
            ))
        };
        let (sent, received, took) = read().ok_or_else(no_packet)?;
        let Some(distance) = received.checked_sub(sent) else {
            return Err(ImportError::line(number, "the packet came before it was sent"));
        };
        let halves = self.measures == Some(Measures::HalfRoundTrip);
        let expected = if halves { distance / 2 } else { distance };
        if expected.abs_diff(took) > ROUNDING {
            let part = if halves { "half of the" } else { "the" };
            return Err(ImportError::line(
                number,
                format!("{took}ns are not {part} {distance}ns between its two times"),
            ));
        }
        if self.stretch.as_mut().is_some_and(|of| !of.keeps(sent)) {
            return Ok(());
        }
        *self.counts.entry(took).or_insert(0) += 1;
        self.packets += 1;
        Ok(())
    }

    /// A line that the client prints; most say nothing of the distribution.
    fn printed(&mut self, number: u64, line: &str) -> Result<(), ImportError> {
        let value = |text: &str| -> Result<f64, ImportError> {
            let ns = fixed(text.trim(), DECIMALS).ok_or_else(|| {
                ImportError::line(number, format!("`{}` is no time in us", shown(text)))
            })?;
            Ok(ns as f64)
        };
        if let Some(rest) = after(line, "---> percentile ") {
            let bad = || ImportError::line(number, format!("`{}` is no percentile", shown(line)));
            let (percent, ns) = rest.split_once('=').ok_or_else(bad)?;
            let percent: f64 = percent.trim().parse().map_err(|_| bad())?;
            if !(percent > 0.0 && percent < 100.0) {
                return Err(bad());
            }
            let ns = value(ns)?;
            let falls = |(known, at): &(f64, f64)| {
                (*known < percent && *at > ns) || (*known > percent && *at < ns)
            };
            if self.stated.iter().any(falls) {
                let what = format!("`{}` does not go up with the others", shown(line));
                return Err(ImportError::line(number, what));
            }
            // The same lines stand at the head of its log.
            if !self.stated.iter().any(|(known, _)| (known - percent).abs() < 1e-9) {
                self.stated.push((percent, ns));
            }
        } else if let Some(rest) =
            after(line, "Total ").filter(|rest| rest.contains("observations"))
        {
            let count = rest.split_whitespace().next().and_then(|count| fixed(count, 0));
            self.samples = Some(count.ok_or_else(|| {
                ImportError::line(number, format!("`{}` is no number of observations", shown(rest)))
            })?);
        } else if line.contains("Summary: Round trip") || line.contains("====> avg-rtt=") {
            self.agree(number, Measures::RoundTrip)?;
        } else if line.contains("Summary: Latency") || line.contains("====> avg-latency=") {
            self.agree(number, Measures::HalfRoundTrip)?;
        } else if let Some(rest) = after(line, "# dropped messages = ") {
            self.dropped = rest.split(';').next().and_then(|count| fixed(count.trim(), 0));
        }
        Ok(())
    }

    /// Packets of the log, kept or not.
    fn logged(&self) -> u64 {
        self.packets + self.stretch.as_ref().map_or(0, |of| of.outside)
    }

    fn imported(mut self) -> Result<Imported, ImportError> {
        let Some(measures) = self.measures else {
            return Err(ImportError::File(
                "it is no output of sockperf: neither the head of its log nor its summary is there"
                    .to_owned(),
            ));
        };
        if self.packets == 0 && self.stated.is_empty() {
            return Err(ImportError::File("it has neither packets nor percentiles".to_owned()));
        }
        self.stated.sort_by(|a, b| a.0.total_cmp(&b.0));
        let cells = self.counts.iter().map(|(ns, count)| Cell {
            low_ns: *ns as f64,
            high_ns: Some(*ns as f64),
            count: *count,
        });
        let buckets = Buckets::new(cells).map_err(|why| ImportError::File(why.to_owned()))?;
        let mut notes = vec![format!("sockperf: {}", measures.words())];
        if self.packets == 0 {
            notes
                .push("sockperf: percentiles that it printed, and nothing between them".to_owned());
        } else if let Some(said) = self.samples.filter(|said| *said != self.logged()) {
            notes.push(format!(
                "sockperf: {} packets in its log, {said} by its own count",
                self.logged()
            ));
        }
        if let Some(dropped) = self.dropped.filter(|dropped| *dropped > 0) {
            notes.push(format!("sockperf: {dropped} messages were dropped, and are in no number"));
        }
        Ok(Imported {
            label: "sockperf".to_owned(),
            measures,
            granularity_ns: STEP_NS,
            buckets,
            stated: self.stated,
            samples: self.samples,
            notes,
        })
    }
}

fn after<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    line.split_once(words).map(|(_, rest)| rest)
}

fn head_of_log(line: &str) -> Option<Measures> {
    match line.strip_prefix("packet, txTime(sec), rxTime(sec), ")? {
        "latency(usec)" => Some(Measures::HalfRoundTrip),
        "rtt(usec)" => Some(Measures::RoundTrip),
        _ => None,
    }
}

/// Without the sequences that colour it on a terminal.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
------------------------------
test was performed using the following parameters: --mps=600000 --burst=1 --time=1
------------------------------
sockperf: \u{1b}[2;35m====> avg-latency=5.754 (std-dev=25.417)\u{1b}[0m
sockperf: # dropped messages = 2; # duplicated messages = 0; # out-of-order messages = 0
sockperf: \u{1b}[2;35mTotal 3 observations\u{1b}[0m; each percentile contains 0.03 observations
sockperf: ---> percentile 99.000 =    5.569
sockperf: ---> percentile 50.000 =    5.372
------------------------------
packet, txTime(sec), rxTime(sec), latency(usec)
0, 2.438528073, 2.438538758, 5.342
1, 2.438538811, 2.438549555, 5.372
2, 2.438549642, 2.438560780, 5.569
------------------------------
";

    fn read(text: &str) -> Result<Imported, String> {
        let read = Sockperf.read(text, None);
        read.map(|mut all| all.remove(0)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_log_is_read_packet_by_packet_and_its_halving_is_said() {
        let log = read(LOG).unwrap();
        assert_eq!((log.measures, log.buckets.samples()), (Measures::HalfRoundTrip, 3));
        let values: Vec<f64> = log.buckets.cells().iter().map(|cell| cell.low_ns).collect();
        assert_eq!(values, [5_342.0, 5_372.0, 5_569.0], "as printed: never doubled");
        assert_eq!(log.stated, [(50.0, 5_372.0), (99.0, 5_569.0)]);
        let notes = log.notes.join("\n");
        assert!(notes.contains("divides by two") && notes.contains("2 messages were dropped"));
        let whole = LOG.replace("latency(usec)", "rtt(usec)").replace("avg-latency", "avg-rtt");
        let error = read(&whole).unwrap_err();
        assert!(error.starts_with("line 11: 5342ns are not the 10685ns"), "{error}");
    }

    #[test]
    fn of_a_log_what_was_sent_within_a_stretch_is_kept_with_its_rate_and_nothing_of_the_warm_up() {
        // A packet each millisecond for 10 s: 9us in the first 3 s, then 5us.
        let mut log = String::from("sockperf: Total 10000 observations\n");
        log.push_str("packet, txTime(sec), rxTime(sec), latency(usec)\n");
        for n in 0_u64..10_000 {
            let took = if n < 3_000 { 9_000 } else { 5_000 };
            let sent = 2_000_000_000 + n * 1_000_000;
            let received = sent + 2 * took;
            let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            let line =
                format!("{n}, {}, {}, {}.000\n", seconds(sent), seconds(received), took / 1_000);
            log.push_str(&line);
        }
        let of = stretch_of(&log, 3_000_000_000, 4_000_000_000).unwrap();
        assert_eq!((of.imported.buckets.samples(), of.outside, of.whole), (4_000, 6_000, true));
        let values: Vec<f64> = of.imported.buckets.cells().iter().map(|cell| cell.low_ns).collect();
        assert_eq!(values, [5_000.0], "nothing of the warm-up");
        assert!((of.per_second.unwrap() - 1_000.0).abs() < 1e-9, "{of:?}");
        assert!(of.imported.notes.iter().all(|note| !note.contains("by its own count")), "{of:?}");
        // One that stalls within it is slower by that.
        let kept = |n: u64| !(4_000..5_000).contains(&n);
        let head = |text: &str| text.split(',').next().and_then(|of| of.parse::<u64>().ok());
        let stalled: Vec<&str> = log.lines().filter(|text| head(text).is_none_or(kept)).collect();
        let of = stretch_of(&stalled.join("\n"), 3_000_000_000, 4_000_000_000).unwrap();
        assert!((of.per_second.unwrap() - 750.0).abs() < 1e-9, "{of:?}");
        // One that ends before has the rate of what there is, and that is told.
        let short = stretch_of(&log, 8_000_000_000, 4_000_000_000).unwrap();
        assert!(!short.whole && (short.per_second.unwrap() - 1_000.0).abs() < 1e-6, "{short:?}");
        let none = stretch_of(&log, 20_000_000_000, 1_000_000_000).unwrap_err().to_string();
        assert!(none.contains("no packet of its log was sent within"), "{none}");
    }

    #[test]
    fn percentiles_alone_are_percentiles_alone_and_none_is_told_beyond_the_sample() {
        let printed: String = LOG.split_inclusive('\n').take(8).collect();
        let of = read(&printed).unwrap();
        assert_eq!((of.buckets.samples(), of.n()), (0, Some(3)));
        let drawn = of.distribution("f", 0);
        assert!(drawn.reached.is_empty(), "3 samples show no percentile: {drawn:?}");
        let many = read(&printed.replace("Total 3 ", "Total 3000 ")).unwrap().distribution("f", 1);
        let reached: Vec<(f64, f64)> =
            many.reached.iter().map(|of| (of.percent, of.value_ns)).collect();
        assert_eq!(reached, [(50.0, 5_372.0), (99.0, 5_569.0)]);
    }

    #[test]
    fn what_is_no_log_of_sockperf_is_refused_with_its_line() {
        for (text, told) in [
            (LOG.replace("5.372\n2,", "5.972\n2,"), "line 12: 5972ns are not half of"),
            (
                LOG.replace("1, 2.438538811, ", "1, "),
                "line 12: `1, 2.438549555, 5.372` is no packet",
            ),
            (LOG.replace("2.438549555", "1.438549555"), "line 12: the packet came before"),
            (LOG.replace("Total 3 obs", "Total x obs"), "line 6: `x observations"),
            (LOG.replace("99.000 =    5.569", "99.000 =    fast"), "line 7: `    fast` is no time"),
            (LOG.replace("percentile 99.000", "percentile 199.0"), "line 7:"),
            (
                LOG.replace("50.000 =    5.372", "50.000 =    5.570"),
                "line 8: `sockperf: ---> percentile 50.000",
            ),
            ("hello\n".to_owned(), "no output of sockperf"),
            ("packet, txTime(sec), rxTime(sec), rtt(usec)\n".to_owned(), "neither packets nor"),
            (LOG.replace("avg-latency", "avg-rtt"), "line 10: whole and half round trips"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(told), "{told}: {error}");
        }
    }
}
