//! Spirent TestCenter: the bins of its stream results as CSV, and edges with counts in a plain form.
//!
//! A stream result has up to 16 bins of adjustable size, `HistBin1Name` (`x < 2`, `2 <= x < 6`,
//! `x >= 65534`) with `HistBin1Count`, and so on; a file has one row for each stream, which are added
//! up. The plain form is a head `low,high,count` and one row for each bucket; a row without `high` is
//! open. In what unit the edges are is not in these files, and must be told.
//!
//! Nothing of Ixia's own exports could be checked: for it there is the plain form alone.

use super::{Buckets, Cell, ImportError, Imported, Importer, Measures, lines, shown};

/// Reads files of Spirent.
pub(super) struct Spirent;

/// Reads edges and counts of Ixia.
pub(super) struct Ixia;

/// Bins of one result.
const MOST_BINS: usize = 64;
/// Rows of the plain form.
const MOST_ROWS: usize = 100_000;
/// The head of the plain form.
const PLAIN: &str = "low,high,count";

impl Importer for Spirent {
    fn name(&self) -> &'static str {
        "spirent"
    }

    fn needs_unit(&self) -> bool {
        true
    }

    fn read(&self, text: &str, unit_ns: Option<f64>) -> Result<Vec<Imported>, ImportError> {
        let (_, head) = lines(text).next().ok_or_else(empty)?;
        if is_plain(head) { plain("Spirent", text, unit_ns) } else { bins(text, unit_ns) }
    }
}

impl Importer for Ixia {
    fn name(&self) -> &'static str {
        "ixia"
    }

    fn needs_unit(&self) -> bool {
        true
    }

    fn read(&self, text: &str, unit_ns: Option<f64>) -> Result<Vec<Imported>, ImportError> {
        plain("Ixia", text, unit_ns)
    }
}

fn empty() -> ImportError {
    ImportError::File("it is empty".to_owned())
}

fn is_plain(head: &str) -> bool {
    head.to_ascii_lowercase().replace(' ', "") == PLAIN
}

fn unit(unit_ns: Option<f64>) -> Result<f64, ImportError> {
    unit_ns.ok_or_else(|| ImportError::Words("in what unit are its edges?".to_owned()))
}

/// Edges and counts, a row each.
fn plain(tool: &str, text: &str, unit_ns: Option<f64>) -> Result<Vec<Imported>, ImportError> {
    let unit = unit(unit_ns)?;
    let mut rows = lines(text);
    let (number, head) = rows.next().ok_or_else(empty)?;
    if !is_plain(head) {
        return Err(ImportError::line(number, format!("its head is not `{PLAIN}`")));
    }
    let mut cells = Vec::new();
    for (number, line) in rows {
        let bad = || ImportError::line(number, format!("`{}` is not `{PLAIN}`", shown(line)));
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [low, high, count] = fields[..] else { return Err(bad()) };
        let high = if high.is_empty() { None } else { Some(edge(high).ok_or_else(bad)?) };
        let low = edge(low).ok_or_else(bad)?;
        if high.is_some_and(|high| high <= low) {
            return Err(ImportError::line(number, "a bucket ends where it begins, or before"));
        }
        let count = count.parse().map_err(|_| bad())?;
        cells.push(Cell { low_ns: low * unit, high_ns: high.map(|high| high * unit), count });
        if cells.len() > MOST_ROWS {
            return Err(ImportError::line(number, format!("more than {MOST_ROWS} buckets")));
        }
    }
    imported(tool, cells, 1)
}

/// The bins of stream results.
fn bins(text: &str, unit_ns: Option<f64>) -> Result<Vec<Imported>, ImportError> {
    let unit = unit(unit_ns)?;
    let mut rows = lines(text);
    let (number, head) = rows.next().ok_or_else(empty)?;
    let columns = columns(&fields(head))
        .ok_or_else(|| ImportError::line(number, "it names no HistBin1Name with HistBin1Count"))?;
    let mut cells: Vec<Cell> = Vec::new();
    let mut streams = 0;
    for (number, line) in rows {
        let row = fields(line);
        let of = |at: usize| row.get(at).map(|field| field.trim());
        for (bin, (name, count)) in columns.iter().enumerate() {
            let Some((name, count)) = of(*name).zip(of(*count)) else {
                return Err(ImportError::line(number, "it has fewer fields than the head"));
            };
            let (low, high) = ends(name).ok_or_else(|| {
                ImportError::line(number, format!("`{}` is no bin, as `2 <= x < 6`", shown(name)))
            })?;
            let count: u64 = count.parse().map_err(|_| {
                ImportError::line(number, format!("`{}` is no count of a bin", shown(count)))
            })?;
            let cell = Cell { low_ns: low * unit, high_ns: high.map(|high| high * unit), count };
            if streams == 0 {
                cells.push(cell);
                continue;
            }
            let known = &mut cells[bin];
            if (known.low_ns, known.high_ns) != (cell.low_ns, cell.high_ns) {
                return Err(ImportError::line(
                    number,
                    "its bins are not those of the stream above",
                ));
            }
            known.count = known
                .count
                .checked_add(count)
                .ok_or_else(|| ImportError::line(number, "it counts more than there can be"))?;
        }
        streams += 1;
    }
    imported("Spirent", cells, streams)
}

fn imported(tool: &str, cells: Vec<Cell>, streams: u64) -> Result<Vec<Imported>, ImportError> {
    let widths = cells.iter().filter_map(|cell| Some(cell.high_ns? - cell.low_ns));
    let finest = widths.filter(|width| *width > 0.0).fold(f64::INFINITY, f64::min);
    let buckets = Buckets::new(cells).map_err(|why| ImportError::File(why.to_owned()))?;
    if buckets.samples() == 0 {
        return Err(ImportError::File("its buckets counted nothing".to_owned()));
    }
    let mut notes = Vec::new();
    if streams > 1 {
        notes.push(format!("{tool}: {streams} streams, added up"));
    }
    let open: u64 =
        buckets.cells().iter().filter(|cell| cell.high_ns.is_none()).map(|cell| cell.count).sum();
    if open > 0 {
        notes.push(format!(
            "{tool}: {open} of {} lie in its open bucket, and have no value",
            buckets.samples()
        ));
    }
    Ok(vec![Imported {
        label: tool.to_owned(),
        measures: Measures::OneWay,
        granularity_ns: if finest.is_finite() { finest } else { 1.0 },
        buckets,
        stated: Vec::new(),
        samples: None,
        notes,
    }])
}

/// Where names and counts of the bins stand, in their order; none where there is no first one.
fn columns(head: &[String]) -> Option<Vec<(usize, usize)>> {
    let place =
        |name: String| head.iter().position(|field| field.trim().eq_ignore_ascii_case(&name));
    let pair =
        |bin: usize| place(format!("HistBin{bin}Name")).zip(place(format!("HistBin{bin}Count")));
    let columns: Vec<(usize, usize)> = (1..=MOST_BINS).map_while(pair).collect();
    (!columns.is_empty()).then_some(columns)
}

/// `x < 2`, `2 <= x < 6`, `x >= 65534`: both ends, in the unit of the file.
fn ends(name: &str) -> Option<(f64, Option<f64>)> {
    let name = name.replace(' ', "");
    if let Some(high) = name.strip_prefix("x<") {
        return edge(high).filter(|high| *high > 0.0).map(|high| (0.0, Some(high)));
    }
    if let Some(low) = name.strip_prefix("x>=") {
        return edge(low).map(|low| (low, None));
    }
    let (low, high) = name.split_once("<=x<")?;
    let (low, high) = (edge(low)?, edge(high)?);
    (low < high).then_some((low, Some(high)))
}

fn edge(text: &str) -> Option<f64> {
    text.parse().ok().filter(|edge: &f64| edge.is_finite() && *edge >= 0.0)
}

/// Fields of a line, those in double quotes with commas inside.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => {
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAMS: &str = "\
StreamIndex,FrameCount,HistBin1Name,HistBin1Count,HistBin2Name,HistBin2Count,HistBin3Name,HistBin3Count
0,100,x < 224,0,224 <= x < 226,96,x >= 226,4
1,100,x < 224,1,\"224 <= x < 226\",99,x >= 226,0
";

    fn read(of: &dyn Importer, text: &str) -> Result<Imported, String> {
        let read = of.read(text, Some(10.0));
        read.map(|mut all| all.remove(0)).map_err(|error| error.to_string())
    }

    #[test]
    fn bins_of_streams_are_added_up_in_the_unit_that_was_told() {
        let of = read(&Spirent, STREAMS).unwrap();
        assert_eq!(
            of.buckets.cells(),
            [
                Cell { low_ns: 0.0, high_ns: Some(2_240.0), count: 1 },
                Cell { low_ns: 2_240.0, high_ns: Some(2_260.0), count: 195 },
                Cell { low_ns: 2_260.0, high_ns: None, count: 4 },
            ]
        );
        assert!((of.granularity_ns - 20.0).abs() < 1e-9);
        let notes = of.notes.join("\n");
        assert!(notes.contains("2 streams") && notes.contains("4 of 200 lie in its open bucket"));
    }

    #[test]
    fn edges_and_counts_in_the_plain_form_are_the_same_for_both() {
        let text = "low, high, count\n0,2,1\n2,6,90\n6,,9\n";
        let spirent = read(&Spirent, text).unwrap();
        let ixia = read(&Ixia, text).unwrap();
        assert_eq!(spirent.buckets, ixia.buckets);
        assert_eq!((ixia.label.as_str(), ixia.buckets.samples()), ("Ixia", 100));
        assert!(read(&Ixia, STREAMS).unwrap_err().starts_with("line 1: its head is not"));
    }

    #[test]
    fn files_without_a_unit_and_bins_that_are_none_are_refused_with_their_line() {
        assert!(Spirent.needs_unit() && Ixia.needs_unit());
        assert!(Spirent.read(STREAMS, None).unwrap_err().to_string().contains("in what unit"));
        for (text, told) in [
            (String::new(), "it is empty"),
            ("a,b\n1,2\n".to_owned(), "line 1: it names no HistBin1Name"),
            (STREAMS.replace("1,100,x < 224", "1,100,x < 223"), "line 3: its bins are not those"),
            (
                STREAMS.replace("224 <= x < 226,96", "224 to 226,96"),
                "line 2: `224 to 226` is no bin",
            ),
            (STREAMS.replace(",96,", ",many,"), "line 2: `many` is no count"),
            (STREAMS.replace("1,100,x < 224,1", "1,100,x < 224"), "line 3:"),
            ("low,high,count\n5,2,1\n".to_owned(), "line 2: a bucket ends"),
            ("low,high,count\n5,7\n".to_owned(), "line 2: `5,7` is not"),
            ("low,high,count\n0,7,1\n5,9,1\n".to_owned(), "buckets overlap"),
            ("low,high,count\n0,7,0\n".to_owned(), "counted nothing"),
        ] {
            let error = read(&Spirent, &text).unwrap_err();
            assert!(error.contains(told), "{told}: {error}");
        }
    }
}
