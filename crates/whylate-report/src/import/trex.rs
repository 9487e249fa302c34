//! TRex, stateless: statistics of latency streams, as its API gives them and as JSON.
//!
//! A latency stream has a `histogram` whose keys are the lower ends of its buckets in microseconds: 10,
//! 20 ... 90, 100, 200 ... 900, 1000 and so on, each as wide as its leading digit counts, and 0 for all
//! below 10 us. A build that is patched for finer ones adds `histogram100ns`, whose keys are the upper
//! ends of buckets of 100 ns; what lies beyond the last is in an open one. The encoded `hdrh` is not
//! read.

use serde_json::{Map, Value};

use super::{Buckets, Cell, ImportError, Imported, Importer, Measures, shown};

/// Reads files of TRex.
pub(super) struct Trex;

/// Streams of one file.
const MOST_STREAMS: usize = 64;
/// Objects inside one another.
const DEEPEST: usize = 16;
/// Below this all values are in one bucket, in microseconds.
const LEAST_US: u64 = 10;
/// Buckets of the largest decade begin below this.
const END_US: u64 = 1_000_000;
/// Width of the buckets of a patched build, and where the last of them ends, in nanoseconds.
const FINE_NS: u64 = 100;
const FINE_END_NS: u64 = 40_000;

impl Importer for Trex {
    fn name(&self) -> &'static str {
        "trex"
    }

    fn read(&self, text: &str, _unit_ns: Option<f64>) -> Result<Vec<Imported>, ImportError> {
        let json: Value = serde_json::from_str(text).map_err(|why| {
            ImportError::line(why.line() as u64, format!("it is no JSON (column {})", why.column()))
        })?;
        let mut found = Vec::new();
        streams(&json, "", 0, &mut found);
        if found.is_empty() {
            let what = "no latency stream is in it: nothing has a `histogram`";
            return Err(ImportError::File(what.to_owned()));
        }
        if found.len() > MOST_STREAMS {
            let what = format!("it has more than {MOST_STREAMS} latency streams");
            return Err(ImportError::File(what));
        }
        let one = |stream: &Stream<'_>| stream.imported(text);
        let read: Result<Vec<Imported>, ImportError> = found.iter().map(one).collect();
        let read: Vec<Imported> =
            read?.into_iter().filter(|stream| stream.buckets.samples() > 0).collect();
        if read.is_empty() {
            return Err(ImportError::File("its latency streams counted nothing".to_owned()));
        }
        Ok(read)
    }
}

/// A latency stream.
struct Stream<'a> {
    /// Its number, as the file has it; empty where it has none.
    id: String,
    fields: &'a Map<String, Value>,
    /// Packets that did not come, where the file says.
    dropped: Option<u64>,
}

/// Objects with a histogram, wherever they are: the API's `latency`, the protocol's `lat`, or alone.
fn streams<'a>(value: &'a Value, id: &str, depth: usize, found: &mut Vec<Stream<'a>>) {
    let Some(fields) = value.as_object().filter(|_| depth < DEEPEST) else { return };
    if found.len() > MOST_STREAMS {
        return;
    }
    if fields.get("histogram").is_some_and(Value::is_object) {
        found.push(Stream { id: id.to_owned(), fields, dropped: None });
        return;
    }
    let first = found.len();
    for (key, inside) in fields {
        let number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
        streams(inside, if number { key } else { id }, depth + 1, found);
    }
    let errors = |names: [&str; 2]| fields.get(names[0])?.get(names[1])?.as_u64();
    let dropped = errors(["err_cntrs", "dropped"]).or_else(|| errors(["er", "drp"]));
    for stream in &mut found[first..] {
        stream.dropped = stream.dropped.or(dropped);
    }
}

impl Stream<'_> {
    fn imported(&self, text: &str) -> Result<Imported, ImportError> {
        let coarse = self.counts("histogram", text)?;
        let fine = match self.fields.get("histogram100ns") {
            Some(_) => Some(self.counts("histogram100ns", text)?),
            None => None,
        };
        let (cells, granularity_ns) = match fine {
            Some(fine) => (fine_cells(&fine, &coarse, text)?, FINE_NS as f64),
            None => (coarse_cells(&coarse, text)?, LEAST_US as f64 * 1e3),
        };
        let buckets = Buckets::new(cells).map_err(|why| ImportError::File(why.to_owned()))?;
        let label =
            if self.id.is_empty() { "TRex".to_owned() } else { format!("TRex stream {}", self.id) };
        let mut notes = vec![format!(
            "{label}: buckets of {} at best; its sending and receiving are in every value",
            if granularity_ns < 1e3 { "100ns" } else { "10us" }
        )];
        if let Some(largest) = self.fields.get("total_max").and_then(Value::as_f64) {
            notes.push(format!("{label}: the largest was {largest}us by its own count"));
        }
        if let Some(dropped) = self.dropped.filter(|dropped| *dropped > 0) {
            notes.push(format!("{label}: {dropped} packets were dropped, and are in no number"));
        }
        Ok(Imported {
            label,
            measures: Measures::OneWay,
            granularity_ns,
            buckets,
            stated: Vec::new(),
            samples: None,
            notes,
        })
    }

    /// Keys and counts of a histogram.
    fn counts(&self, name: &str, text: &str) -> Result<Vec<(u64, u64)>, ImportError> {
        let Some(histogram) = self.fields.get(name).and_then(Value::as_object) else {
            return Err(at(text, name, format!("`{name}` is no histogram")));
        };
        let one = |(key, count): (&String, &Value)| {
            let number = key.parse::<u64>().ok().filter(|_| !key.starts_with('+'));
            let pair = number.zip(count.as_u64());
            pair.ok_or_else(|| {
                at(text, key, format!("`{}` in `{name}` is no bucket with a count", shown(key)))
            })
        };
        histogram.iter().map(one).collect()
    }
}

/// The line on which a key stands first.
fn at(text: &str, key: &str, what: String) -> ImportError {
    let quoted = format!("\"{key}\"");
    match text.find(&quoted) {
        Some(place) => {
            let lines = text[..place].matches('\n').count();
            ImportError::line(lines as u64 + 1, what)
        }
        None => ImportError::File(what),
    }
}

fn coarse_cells(counts: &[(u64, u64)], text: &str) -> Result<Vec<Cell>, ImportError> {
    let cell = |(key, count): &(u64, u64)| {
        let high = if *key == 0 { Some(LEAST_US) } else { width(*key).map(|width| key + width) };
        let high = high.ok_or_else(|| {
            at(
                text,
                &key.to_string(),
                format!("{key} is no bucket of TRex: 0, 10, 20 ... 90, 100 ..."),
            )
        })?;
        Ok(Cell { low_ns: *key as f64 * 1e3, high_ns: Some(high as f64 * 1e3), count: *count })
    };
    counts.iter().map(cell).collect()
}

/// What the leading digit of a key counts; none of a key that has more than one digit that is not 0.
fn width(key: u64) -> Option<u64> {
    if !(LEAST_US..END_US).contains(&key) {
        return None;
    }
    let width = 10_u64.pow(key.ilog10());
    key.is_multiple_of(width).then_some(width)
}

fn fine_cells(
    fine: &[(u64, u64)],
    coarse: &[(u64, u64)],
    text: &str,
) -> Result<Vec<Cell>, ImportError> {
    let mut cells = Vec::with_capacity(fine.len() + 1);
    for (key, count) in fine {
        if *key == 0 || *key > FINE_END_NS || !key.is_multiple_of(FINE_NS) {
            let what = format!("{key} is no bucket of 100ns up to {}us", FINE_END_NS / 1_000);
            return Err(at(text, &key.to_string(), what));
        }
        let (low, high) = ((key - FINE_NS) as f64, *key as f64);
        cells.push(Cell { low_ns: low, high_ns: Some(high), count: *count });
    }
    let sum =
        |counts: &[(u64, u64)]| counts.iter().fold(0, |sum: u64, (_, n)| sum.saturating_add(*n));
    let beyond = sum(coarse).saturating_sub(sum(fine));
    cells.push(Cell { low_ns: FINE_END_NS as f64, high_ns: None, count: beyond });
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    const API: &str = r#"{
  "latency": {
    "global": {"old_flow": 0, "bad_hdr": 0},
    "7": {
      "err_cntrs": {"dropped": 3, "out_of_order": 0},
      "latency": {"average": 31.2, "jitter": 2, "total_max": 412, "last_max": 18,
        "histogram": {"0": 10, "10": 9000, "20": 900, "90": 80, "400": 10}}
    }
  },
  "flow_stats": {"7": {"rx_pkts": {"0": 10000}}}
}"#;

    fn read(text: &str) -> Result<Vec<Imported>, String> {
        Trex.read(text, None).map_err(|error| error.to_string())
    }

    #[test]
    fn a_stream_of_the_api_has_the_buckets_of_its_decades() {
        let streams = read(API).unwrap();
        assert_eq!(streams.len(), 1);
        let stream = &streams[0];
        assert_eq!((stream.label.as_str(), stream.buckets.samples()), ("TRex stream 7", 10_000));
        let ends: Vec<(f64, Option<f64>)> =
            stream.buckets.cells().iter().map(|cell| (cell.low_ns, cell.high_ns)).collect();
        assert_eq!(
            ends,
            [
                (0.0, Some(10e3)),
                (10e3, Some(20e3)),
                (20e3, Some(30e3)),
                (90e3, Some(100e3)),
                (400e3, Some(500e3)),
            ]
        );
        let notes = stream.notes.join("\n");
        assert!(notes.contains("412us") && notes.contains("3 packets were dropped"), "{notes}");
        let half = stream.buckets.at(50.0).unwrap();
        assert_eq!((half.low_ns, half.high_ns), (10e3, Some(20e3)), "no finer than its bucket");
    }

    #[test]
    fn the_protocols_own_names_and_a_stream_alone_are_read_too() {
        let raw = r#"{"latency": {"5": {"er": {"drp": 1}, "lat": {"histogram": {"30": 4}}}}}"#;
        let stream = &read(raw).unwrap()[0];
        assert_eq!((stream.label.as_str(), stream.buckets.samples()), ("TRex stream 5", 4));
        assert!(stream.notes.iter().any(|note| note.contains("1 packets were dropped")));
        let alone = &read(r#"{"histogram": {"30": 4, "0": 1}}"#).unwrap()[0];
        assert_eq!((alone.label.as_str(), alone.buckets.samples()), ("TRex", 5));
    }

    #[test]
    fn a_patched_build_is_read_in_its_finer_buckets_and_the_rest_is_open() {
        let text =
            r#"{"histogram": {"0": 0, "10": 100}, "histogram100ns": {"100": 0, "6600": 90}}"#;
        let cells = read(text).unwrap()[0].buckets.cells().to_vec();
        assert_eq!(
            cells,
            [
                Cell { low_ns: 6_500.0, high_ns: Some(6_600.0), count: 90 },
                Cell { low_ns: 40_000.0, high_ns: None, count: 10 },
            ]
        );
    }

    #[test]
    fn what_is_no_statistics_of_trex_is_refused_with_its_line() {
        for (text, told) in [
            ("{\n\"latency\": nothing}", "line 2: it is no JSON"),
            ("{\"latency\": {\"7\": {}}}", "no latency stream"),
            ("[1, 2]", "no latency stream"),
            ("{\n\n\"histogram\": {\"15\": 1}}", "line 3: 15 is no bucket of TRex"),
            ("{\"histogram\": {\"5\": 1}}", "line 1: 5 is no bucket of TRex"),
            ("{\"histogram\": {\"10000000\": 1}}", "is no bucket of TRex"),
            ("{\"histogram\":\n{\"20\": -1}}", "line 2: `20` in `histogram`"),
            ("{\"histogram\":\n{\"x\": 1}}", "line 2: `x` in `histogram`"),
            (
                "{\"histogram\": {}, \"histogram100ns\":\n{\"150\": 1}}",
                "line 2: 150 is no bucket of 100",
            ),
            ("{\"histogram\": {}, \"histogram100ns\": 7}", "`histogram100ns` is no histogram"),
            ("{\"histogram\": {\"20\": 0}}", "counted nothing"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
