//! `histograms.hlog`: one histogram per series and interval, as the HdrHistogram tools log them.
//!
//! A text file in version 1.3 of the log format that `HistogramLogWriter` of HdrHistogram writes:
//! comments with the time base, a legend, and one line
//! `Tag=series,start,length,max,histogram` per interval, in seconds, with the histogram in the V2
//! encoding, deflated, in base64. HistogramLogAnalyzer, the `hdrhistogram` packages of other
//! languages and `HistogramLogProcessor` read it. The maximum is in nanoseconds, as the values are.
//!
//! The encoding holds bins only. A comment before the line, which other readers skip, holds what
//! they do not: `#[Exact: min=110 max=64000012 sum=64003211 saturated=0]`.
//!
//! In a merged run the tag is `series@12`, with the index of the recording it comes from.
//!
//! A line is written at once: a recording that is killed leaves whole lines, and a disk that is full
//! leaves the log as it was before the line that did not fit.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Take, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use whylate_stats::histogram::{Exact, Histogram};

use crate::digest::Digesting;
use crate::directory::RunDir;
use crate::error::{ModelError, quote};
use crate::files;
use crate::run::Run;
use crate::units::Nanos;

/// The file in the run directory.
pub const HISTOGRAM_FILE: &str = "histograms.hlog";

/// Begin of the comment with the exact values of the histogram in the next line.
const EXACT: &str = "#[Exact: ";
/// The line that names the fields of those below it.
const LEGEND: &str = "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
                      \"Interval_Compressed_Histogram\"\n";
/// Marks a deflated V2 histogram.
const DEFLATED: u32 = 0x1c84_9314;
/// Most bytes of a line: a histogram with all its bins in use takes a tenth of it.
const LONGEST_LINE: u64 = 1 << 20;
/// Most bytes of an inflated histogram: one with all its bins in use takes half of it.
const LARGEST_HISTOGRAM: u64 = 1 << 20;
const LONGEST_TAG: usize = 128;

/// A histogram log that is being written.
#[derive(Debug)]
pub struct HistogramLog {
    path: PathBuf,
    file: File,
    /// Length of what is whole.
    length: u64,
    /// Digest of what is whole.
    digest: Digesting,
    begun: bool,
}

/// One line of a histogram log.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// The series.
    pub tag: String,
    /// Index of the recording it comes from, in the log of a merged run.
    pub origin: Option<u32>,
    /// Begin of the interval in seconds after the log's base time.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// What was recorded in it.
    pub histogram: Histogram,
}

/// The histograms of a log, one after another.
///
/// A line that cannot be read is an error; reading goes on with the next.
#[derive(Debug)]
pub struct Intervals {
    path: PathBuf,
    lines: BufReader<Take<File>>,
    line: Vec<u8>,
    number: u64,
    /// From the comment before the line.
    exact: Option<Exact>,
    ended: bool,
}

impl RunDir {
    /// Creates the histogram log of a new run.
    pub fn histogram_log(&self) -> Result<HistogramLog, ModelError> {
        let path = self.path().join(HISTOGRAM_FILE);
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = file.map_err(|why| ModelError::write(&path, why))?;
        let mut log =
            HistogramLog { path, file, length: 0, digest: Digesting::default(), begun: false };
        log.write(b"#[Histogram log format version 1.3]\n#[Values are in nanoseconds]\n")?;
        Ok(log)
    }

    /// The histograms of a recorded run, read one by one: those that `run` counts. The log of a run
    /// that was killed goes on beyond its last checkpoint.
    pub fn histograms_of(&self, run: &Run) -> Result<Intervals, ModelError> {
        self.histograms_up_to(run.log_bytes.unwrap_or(u64::MAX))
    }

    /// Every histogram in the log, read one by one.
    pub fn histograms(&self) -> Result<Intervals, ModelError> {
        self.histograms_up_to(u64::MAX)
    }

    fn histograms_up_to(&self, bytes: u64) -> Result<Intervals, ModelError> {
        let path = self.path().join(HISTOGRAM_FILE);
        let lines = BufReader::new(files::open_plain(&path)?.take(bytes));
        Ok(Intervals { path, lines, line: Vec::new(), number: 0, exact: None, ended: false })
    }

    /// All histograms of a recorded run: tag, start and length in seconds, histogram.
    ///
    /// Each takes some hundred kilobytes of memory; [`RunDir::histograms`] gives one at a time.
    pub fn read_histograms(&self) -> Result<Vec<(String, f64, f64, Histogram)>, ModelError> {
        let intervals = self.histograms()?;
        intervals
            .map(|interval| interval.map(|i| (i.tag, i.start_s, i.length_s, i.histogram)))
            .collect()
    }
}

impl HistogramLog {
    /// States the wall time that the intervals' starts count from, before the first of them.
    pub fn set_base_time(&mut self, realtime: Nanos) -> Result<(), ModelError> {
        let seconds =
            format!("{}.{:03}", realtime.0 / 1_000_000_000, realtime.0 / 1_000_000 % 1000);
        self.write(
            format!(
                "#[StartTime: {seconds} (seconds since epoch)]\n\
                 #[BaseTime: {seconds} (seconds since epoch)]\n"
            )
            .as_bytes(),
        )
    }

    /// Adds the histogram of one interval of the series `tag`.
    pub fn append(
        &mut self,
        tag: &str,
        histogram: &Histogram,
        interval_start_s: f64,
        interval_length_s: f64,
    ) -> Result<(), ModelError> {
        if !is_tag(tag) {
            return Err(ModelError::BadTag { tag: quote(tag) });
        }
        let (start, length) = (interval_start_s, interval_length_s);
        if !(is_seconds(start) && is_seconds(length)) {
            return Err(ModelError::BadInterval { tag: quote(tag), start, length });
        }
        let legend = if self.begun { "" } else { LEGEND };
        let exact = histogram.exact().map_or(String::new(), |exact| {
            let Exact { min_ns, max_ns, sum_ns, saturated } = exact;
            format!("{EXACT}min={min_ns} max={max_ns} sum={sum_ns} saturated={saturated}]\n")
        });
        let max = histogram.max().unwrap_or(0);
        let encoded = STANDARD.encode(deflate(&histogram.to_v2()));
        let line = format!("{legend}{exact}Tag={tag},{start:.6},{length:.6},{max}.000,{encoded}\n");
        self.write(line.as_bytes())?;
        self.begun = true;
        Ok(())
    }

    /// Bytes of the log so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// Has `run` count the log as it is now: its length and its digest.
    pub fn count_in(&self, run: &mut Run) {
        run.log_bytes = Some(self.length);
        run.log_digest = Some(self.digest.digest());
    }

    /// Brings the log down to the disk.
    pub fn sync(&mut self) -> Result<(), ModelError> {
        self.file.sync_data().map_err(|why| ModelError::write(&self.path, why))
    }

    fn write(&mut self, text: &[u8]) -> Result<(), ModelError> {
        match self.file.write_all(text) {
            Ok(()) => {
                self.length += text.len() as u64;
                self.digest.add(text);
                Ok(())
            }
            Err(why) => {
                // Take back what was written of it; if even that fails, the reader will say so.
                let _ = self.file.set_len(self.length);
                let bytes = Some(text.len() as u64);
                Err(ModelError::Write { path: self.path.clone(), bytes, why })
            }
        }
    }
}

impl Iterator for Intervals {
    type Item = Result<Interval, ModelError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.next_line() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
            let line = self.line.trim_ascii_end();
            let wrong =
                |what| ModelError::malformed(&self.path, format!("line {}: {what}", self.number));
            if line.starts_with(EXACT.as_bytes()) {
                self.exact = parse_exact(line);
            } else if !(line.is_empty() || line.starts_with(b"#") || line.starts_with(b"\"")) {
                return Some(parse(line, self.exact.take()).map_err(wrong));
            }
        }
        None
    }
}

impl Intervals {
    /// Reads the next line; false at the end of the file.
    fn next_line(&mut self) -> Result<bool, ModelError> {
        self.line.clear();
        self.number += 1;
        let read = (&mut self.lines).take(LONGEST_LINE).read_until(b'\n', &mut self.line);
        read.map_err(|why| ModelError::read(&self.path, why))?;
        if self.line.is_empty() {
            return Ok(false);
        }
        if self.line.ends_with(b"\n") {
            return Ok(true);
        }
        if self.line.len() as u64 == LONGEST_LINE {
            let what = format!("line {} is longer than {LONGEST_LINE} bytes", self.number);
            return Err(ModelError::malformed(&self.path, what));
        }
        let place = format!("in the middle of line {}", self.number);
        Err(ModelError::Truncated { path: self.path.clone(), place })
    }
}

/// Reads one line of a log, without its end; `path` names the log in errors.
///
/// Nothing in it is trusted: a content of any kind gives an interval or says what is wrong.
pub fn parse_line(path: &Path, line: &[u8]) -> Result<Interval, ModelError> {
    parse(line, None).map_err(|what| ModelError::malformed(path, what))
}

fn parse(line: &[u8], exact: Option<Exact>) -> Result<Interval, String> {
    let line = str::from_utf8(line).map_err(|_| "not text".to_owned())?;
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',').ok_or("a tag and nothing else")?,
        None => return Err("a histogram without a tag".to_owned()),
    };
    if !is_tag(tag) {
        return Err("a tag that cannot be one".to_owned());
    }
    let fields: Vec<&str> = rest.splitn(4, ',').collect();
    // The maximum is for people; the exact one is in the comment.
    let [start, length, _max, encoded] = fields[..] else {
        return Err("fewer fields than a histogram has".to_owned());
    };
    let bytes = STANDARD.decode(encoded).map_err(|why| format!("histogram: {why}"))?;
    let mut histogram = Histogram::from_v2(&inflate(&bytes)?).map_err(|why| why.to_string())?;
    if let Some(exact) = exact {
        histogram.set_exact(exact).map_err(|why| why.to_string())?;
    }
    let (series, origin) = split_tag(tag);
    Ok(Interval {
        tag: series.to_owned(),
        origin,
        start_s: seconds(start)?,
        length_s: seconds(length)?,
        histogram,
    })
}

/// The exact values in the comment before a line. A comment that is not as whylate writes it may be
/// anybody's, and says nothing.
fn parse_exact(line: &[u8]) -> Option<Exact> {
    let values = str::from_utf8(line).ok()?.strip_prefix(EXACT)?.strip_suffix(']')?;
    let mut values = values.split(' ');
    let mut value = |name: &str| values.next()?.strip_prefix(name)?.strip_prefix('=');
    Some(Exact {
        min_ns: value("min")?.parse().ok()?,
        max_ns: value("max")?.parse().ok()?,
        sum_ns: value("sum")?.parse().ok()?,
        saturated: value("saturated")?.parse().ok()?,
    })
}

/// The tag of a series of one of the recordings that a merged run is made of: `gap-cpu1@12`.
#[must_use]
pub fn tag_of(series: &str, origin: u32) -> String {
    format!("{series}@{origin}")
}

/// The series, and the origin that [`tag_of`] put behind it.
fn split_tag(tag: &str) -> (&str, Option<u32>) {
    match tag.rsplit_once('@') {
        Some((series, number)) if !series.is_empty() => match number.parse() {
            Ok(origin) => (series, Some(origin)),
            Err(_) => (tag, None),
        },
        _ => (tag, None),
    }
}

fn is_tag(tag: &str) -> bool {
    (1..=LONGEST_TAG).contains(&tag.len())
        && !tag.contains(|c: char| c == ',' || c.is_whitespace() || c.is_control())
}

fn is_seconds(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if is_seconds(value) => Ok(value),
        _ => Err(format!("`{text}` is no time")),
    }
}

fn deflate(histogram: &[u8]) -> Vec<u8> {
    let mut body = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = body.write_all(histogram).and_then(|()| body.finish());
    let body = written.expect("invariant: writing to memory does not fail");
    let mut bytes = DEFLATED.to_be_bytes().to_vec();
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let header = bytes.split_first_chunk::<8>();
    let (header, body) = header.ok_or("a histogram cut short")?;
    if header[..4] != DEFLATED.to_be_bytes() {
        return Err("not a deflated V2 histogram".to_owned());
    }
    if header[4..] != (body.len() as u32).to_be_bytes() {
        return Err("a histogram of another length than it states".to_owned());
    }
    let mut histogram = Vec::new();
    ZlibDecoder::new(body)
        .take(LARGEST_HISTOGRAM)
        .read_to_end(&mut histogram)
        .map_err(|why| format!("histogram: {why}"))?;
    Ok(histogram)
}
