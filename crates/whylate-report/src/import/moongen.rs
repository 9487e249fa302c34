//! MoonGen: what `histogram:save` writes, a value in nanoseconds and its count on each line; or one
//! value on each line, as scripts write that stamp every packet in software.

use super::{Buckets, Cell, ImportError, Imported, Importer, Measures, lines, shown};

/// Reads files of MoonGen.
pub(super) struct Moongen;

/// Values above a day are no latencies.
const MOST_NS: f64 = 86_400e9;

impl Importer for Moongen {
    fn name(&self) -> &'static str {
        "moongen"
    }

    fn read(&self, text: &str, _unit_ns: Option<f64>) -> Result<Vec<Imported>, ImportError> {
        let mut rows: Vec<Row> = Vec::new();
        let mut counted = None;
        for (number, line) in lines(text) {
            let row = Row::read(number, line)?;
            if *counted.get_or_insert(row.counted) != row.counted {
                let what = "values with counts and values alone do not go together";
                return Err(ImportError::line(number, what));
            }
            rows.push(row);
        }
        let Some(counted) = counted else {
            return Err(ImportError::File("it is empty".to_owned()));
        };
        // Of `-0` and `0` there is one.
        for row in &mut rows {
            row.ns = row.ns.abs();
        }
        rows.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        if counted && let Some(twice) = rows.windows(2).find(|pair| same(&pair[0], &pair[1])) {
            let line = twice[0].line.max(twice[1].line);
            let what = format!("{} stands twice: are these two files in one?", twice[0].ns);
            return Err(ImportError::line(line, what));
        }
        let granularity_ns = finest(&rows);
        let cells = rows
            .chunk_by(same)
            .map(|rows| (rows[0].ns, rows.iter().map(|row| row.count).sum::<u64>()))
            .map(|(ns, count)| Cell { low_ns: ns, high_ns: Some(ns), count });
        let buckets = Buckets::new(cells).map_err(|why| ImportError::File(why.to_owned()))?;
        if buckets.samples() == 0 {
            return Err(ImportError::File("all its counts are 0".to_owned()));
        }
        Ok(vec![Imported {
            label: "MoonGen".to_owned(),
            measures: Measures::OneWay,
            granularity_ns,
            buckets,
            stated: Vec::new(),
            samples: None,
            notes: vec![
                "MoonGen: the file does not say who stamped. Stamps of a card are of one packet at a \
                 time, a sample of the traffic"
                    .to_owned(),
            ],
        }])
    }
}

struct Row {
    line: u64,
    ns: f64,
    count: u64,
    /// Does it say how often?
    counted: bool,
}

impl Row {
    fn read(line: u64, text: &str) -> Result<Self, ImportError> {
        let (value, count) = text.split_once(',').map_or((text, None), |(a, b)| (a, Some(b)));
        let bad = |what: &str| ImportError::line(line, format!("`{}` {what}", shown(text)));
        let ns: f64 = value.trim().parse().map_err(|_| bad("is no time in ns and its count"))?;
        if !(0.0..=MOST_NS).contains(&ns) {
            return Err(bad("is no latency: below 0, or longer than a day"));
        }
        let counted = count.is_some();
        let count = match count.map(|count| count.trim().parse::<u64>()) {
            None => 1,
            // A sum of counts below this cannot overflow.
            Some(Ok(count)) if count <= u64::from(u32::MAX) << 16 => count,
            Some(_) => return Err(bad("has no count")),
        };
        Ok(Self { line, ns, count, counted })
    }
}

fn same(a: &Row, b: &Row) -> bool {
    a.ns.total_cmp(&b.ns).is_eq()
}

/// The smallest distance of two values: what the tool told apart at best.
fn finest(rows: &[Row]) -> f64 {
    let distances = rows.windows(2).map(|pair| pair[1].ns - pair[0].ns);
    let finest = distances.filter(|distance| *distance > 0.0).fold(f64::INFINITY, f64::min);
    if finest.is_finite() { finest } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Imported, String> {
        let read = Moongen.read(text, None);
        read.map(|mut all| all.remove(0)).map_err(|error| error.to_string())
    }

    #[test]
    fn values_with_counts_and_values_alone_are_the_same_distribution() {
        let counted = read("2466,1\n2478.8,3\n2491.6,2\n").unwrap();
        let alone = read("2478.8\n2466\n2491.6\n2478.8\n\n2491.6\n2478.8\n").unwrap();
        assert_eq!(counted.buckets, alone.buckets);
        assert_eq!((counted.buckets.samples(), counted.measures), (6, Measures::OneWay));
        assert!((counted.granularity_ns - 12.8).abs() < 1e-6, "steps of its clock");
    }

    #[test]
    fn what_is_no_histogram_of_moongen_is_refused_with_its_line() {
        for (text, told) in [
            ("", "it is empty"),
            ("10,2\n\nten,1\n", "line 3: `ten,1` is no time"),
            ("10,2\n20,1.5\n", "line 2: `20,1.5` has no count"),
            ("10,2\n-20,1\n", "line 2: `-20,1` is no latency"),
            ("10,2\nnan,1\n", "line 2: `nan,1` is no latency"),
            ("10,2\n20\n", "line 2: values with counts and values alone"),
            ("10,2\n20,1\n10,1\n", "line 3: 10 stands twice"),
            ("10,18446744073709551615\n", "line 1: `10,184467"),
            ("10,0\n", "all its counts are 0"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
